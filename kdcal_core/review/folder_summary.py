"""A table in many Parquet files, larger than memory: its roles from a sample, and its summary.

A worker process reads the files, as everywhere. What comes back is a small table of some rows, from
which the columns' roles follow as for any table, and then a summary of fixed size of all rows.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial, reduce
from itertools import accumulate, pairwise
from operator import add
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from kdcal_core.blocks import in_flight
from kdcal_core.data import Roles, Task
from kdcal_core.data.parquet_folder import (
    PartedFiles,
    PartedTable,
    RowGroup,
    parquet_files,
    place_of_parted,
)
from kdcal_core.diagnostics.summaries import Summary, n_clusters, rows_of
from kdcal_core.errors import InputError
from kdcal_core.jobs import run_limited
from kdcal_core.jobs.executors import chosen_executor
from kdcal_core.progress import Progress, part_of, silent
from kdcal_core.review.folder_source import FolderSource, SourceFiles
from kdcal_core.review.folder_tallies import TALLIES, DeclaredGroups, FolderTally, columns_of
from kdcal_core.review.folder_times import FolderTimes, SeenTimes, with_settled_dates
from kdcal_core.store import decode, load, save
from kdcal_core.text import counted

SAMPLE = "sample.parquet"
_SAMPLE_ROWS = 20_000
_SECONDS = 6 * 3600
_THREADS = 2
_PART_ROWS = 5_000_000
_WORTH = 1_000_000  # rows; with fewer, workers take longer to start than to read
_ME = "kdcal_core.review.folder_summary:"
_FIRST = 0.2  # of the progress, where times are found before rows are counted
R = TypeVar("R")


@dataclass(frozen=True)
class FolderSize:
    """How much a folder holds: row groups, and the rows of each file in the order of names.

    ``unit`` is that in which weights of rows are counted, where they have any.
    """

    groups: int
    file_rows: tuple[int, ...]
    unit: float = 1.0

    @property
    def files(self) -> int:
        """Number of files."""
        return len(self.file_rows)

    @property
    def rows(self) -> int:
        """Rows of all files."""
        return sum(self.file_rows)


def sample_of_folder(
    folder: PartedFiles,
    into: Path,
    roots: Sequence[Path] | None = None,
) -> tuple[Path, FolderSize]:
    """Write some 20,000 rows of a folder's table, from all over it, to a Parquet file.

    Parameters
    ----------
    folder : path or sequence of paths
        A folder, a pattern or a list of files
        (:func:`kdcal_core.data.parquet_folder.parquet_files`).
    into : Path
        An empty folder for the file.
    roots : sequence of Path, optional
        As for :func:`kdcal_core.data.parquet_folder.parquet_files`.

    Returns
    -------
    Path, FolderSize
        The file, and the size of the whole table.
    """
    kwargs = _files(folder, roots)
    found = run_limited(
        f"{_ME}write_sample",
        kwargs,
        seconds=_SECONDS,
        folder=into,
        what="Reading the folder",
        confined=True,
    )
    rows = tuple(int(one) for one in found["rows"])
    return into / SAMPLE, FolderSize(int(found["groups"]), rows)


def summary_of_folder(
    folder: PartedFiles,
    roles: Roles,
    classes: Sequence[str],
    into: Path,
    roots: Sequence[Path] | None = None,
    progress: Progress | None = None,
    *,
    groups: DeclaredGroups | None = None,
    size: FolderSize | None = None,
    executor: Executor | None = None,
    source: SourceFiles | None = None,
) -> Summary:
    """The summary of the predictions in a folder, every row checked.

    Parameters
    ----------
    roles : Roles
        The target and the columns of the predictions.
    classes : sequence of str
        Names in the order of the summary's classes; none of a regression.
    into : Path
        An empty folder, where the summary is stored.
    folder, roots
        As for :func:`sample_of_folder`.
    groups : DeclaredGroups, optional
        Counted too.
    size : FolderSize, optional
        As :func:`sample_of_folder` found it.
    executor : concurrent.futures.Executor, optional
        Its workers read parts of the folder, which they see under the same name, if the size is
        given. The summary is the same.
    source : SourceFiles, optional
        What makes the predictions, if the folder does not hold them. Workers see these files under
        the same names.

    Raises
    ------
    InputError
        For a value that cannot be used; the error names its file, row group and row of the file.
        For predictions that are single numbers, which need the rows. For declared groups that
        cannot be counted (:func:`kdcal_core.diagnostics.summaries.class_groups`), for more than
        100,000 different times, and where all rows are of one cluster or time.
    """
    check_summarised(roles, folder)
    files = _files(folder, roots)["files"]
    given = {
        "roles": asdict(roles),
        "classes": list(classes),
        "groups": asdict(groups or DeclaredGroups()),
        "source": asdict(source or SourceFiles()),
        "unit": 1.0 if size is None else size.unit,
    }
    if executor is not None and size is not None and size.files == len(files):
        found = _summary_of_parts(files, given, size, executor, progress or silent, roles)
        _check_clusters(found, folder)
        save(into, found)
        return found
    run_limited(
        f"{_ME}summarise_files",
        {"files": files, **given},
        seconds=_SECONDS,
        folder=into,
        progress=progress,
        **_reading(roles.task),
    )
    found = load(into, TALLIES[roles.task].kind)
    _check_clusters(found, folder)
    return found


def _check_clusters(summary: Summary, folder: PartedFiles) -> None:
    if summary.clusters is not None and n_clusters(summary) < 2:
        unit = "cluster" if summary.by_time is None else "time"
        raise InputError(
            f"All rows are of one {unit}, so nothing says how much such units differ",
            fix="Choose a column with several, or take the role away from this one.",
            file=place_of_parted(folder),
            column=summary.clusters.names.column,
        )


@contextmanager
def folder_executor(size: FolderSize) -> Iterator[Executor | None]:
    """The executor that ``KDCAL_SCHEDULER`` names, for a folder that is worth its start."""
    with chosen_executor("none" if size.rows < _WORTH else None) as executor:
        yield executor


def check_summarised(roles: Roles, folder: PartedFiles) -> None:
    """Refuse predictions of which no summary can be made in one pass.

    Raises
    ------
    InputError
        For predictions that are single numbers.
    """
    try:
        FolderSource().columns(roles)
    except InputError as error:
        raise error.at(file=place_of_parted(folder)) from error


def _reading(task: Task) -> dict[str, Any]:
    return {"what": "Reading the folder", "confined": True, "prepared": f"{_ME}load_{task}"}


def _summary_of_parts(
    files: list[dict[str, str]],
    given: dict[str, Any],
    size: FolderSize,
    executor: Executor,
    progress: Progress,
    roles: Roles,
) -> Summary:
    """The sum of the summaries of parts, which workers make; times are found before."""
    start = 0.0
    if roles.time is not None:
        start, seen = _FIRST, SeenTimes(roles)
        of_times = part_of(progress, 0.0, start)
        for one in _of_parts(files, given, size, executor, of_times, times_of_part, "times of "):
            seen.join(SeenTimes(roles, one))
        given = {**given, "times": seen.found().record}
    of_rows = part_of(progress, start, 1.0)
    return _total(_of_parts(files, given, size, executor, of_rows, summary_of_part))


def _of_parts(
    files: list[dict[str, str]],
    given: dict[str, Any],
    size: FolderSize,
    executor: Executor,
    progress: Progress,
    work: Callable[[dict[str, Any], int], R],
    what: str = "",
) -> list[R]:
    """What workers make of parts, from their settings and number of rows."""
    parts = parts_of_folder(size, in_flight(executor, 2) // 2)
    before = (0, *accumulate(size.file_rows))
    running: dict[Future[R], int] = {}
    made: dict[int, R] = {}
    waiting, done = iter(enumerate(parts)), 0
    try:
        while len(made) < len(parts):
            while len(running) < in_flight(executor, 2) and (one := next(waiting, None)):
                at, (start, stop) = one
                expected = before[stop] - before[start]
                asked = {"files": files[start:stop], **given, "first": before[start]}
                running[executor.submit(work, asked, expected)] = at
            for future in wait(running, 0.2, FIRST_COMPLETED).done:
                at = running.pop(future)
                made[at] = future.result()
                done += before[parts[at][1]] - before[parts[at][0]]
            progress(done / size.rows, f"Read {what}{done:,} of {counted(size.rows, 'row')}")
    finally:
        for future in running:
            future.cancel()
        wait(running)
    return [made[at] for at in range(len(parts))]


def _total(parts: Sequence[Any]) -> Summary:
    """The sum of summaries of one kind."""
    total: Summary = reduce(add, parts)
    return total


def parts_of_folder(size: FolderSize, n_workers: int) -> list[tuple[int, int]]:
    """The files of a folder cut into parts of about equal numbers of rows.

    Returns
    -------
    list of (int, int)
        First file and the one after the last. A part takes seconds at least, because a worker
        starts a process for it, and each worker gets up to four, so that none waits long.

    Examples
    --------
    >>> parts_of_folder(FolderSize(4, (5, 5, 0, 10)), 2)
    [(0, 2), (2, 4)]
    """
    n = min(size.files, max(n_workers, min(4 * n_workers, size.rows // _PART_ROWS)))
    ends = np.cumsum(size.file_rows)
    wanted = np.searchsorted(ends, size.rows * (np.arange(n) + 1) / n)
    cuts = [0, *np.minimum(wanted + 1, size.files).tolist()]
    cuts[-1] = size.files
    return [(a, b) for a, b in pairwise(sorted(set(cuts))) if sum(size.file_rows[a:b])]


def summary_of_part(asked: dict[str, Any], expected: int, progress: Progress = silent) -> Summary:
    """Run by an executor's worker: the summary of some files, which a confined process reads.

    Raises
    ------
    InputError
        As `summary_of_folder`, and if the files do not have the expected number of rows.
    """
    task = decode(Roles, asked["roles"]).task
    with tempfile.TemporaryDirectory(prefix="kdcal-part-") as folder:
        run_limited(
            f"{_ME}summarise_files",
            {**asked, "threads": 1},
            seconds=_SECONDS,
            folder=Path(folder),
            progress=progress,
            **_reading(task),
        )
        found = load(Path(folder), TALLIES[task].kind)
    if rows_of(found) != expected:
        raise InputError(
            "The files changed while they were read", fix="Start again once they are written."
        )
    return found


def times_of_part(
    asked: dict[str, Any], expected: int, progress: Progress = silent
) -> dict[str, Any]:
    """Run by an executor's worker: the different times of some files, as `SeenTimes.record`."""
    found: dict[str, Any] = run_limited(
        f"{_ME}times_of_files",
        {"files": asked["files"], "roles": asked["roles"], "threads": 1},
        seconds=_SECONDS,
        progress=progress,
        what="Reading the folder",
        confined=True,
    )
    return found


def tables_of_calibrator(source: SourceFiles, roles: Roles) -> frozenset[str]:
    """SHA-256 of the tables to which the calibrator of a source was fitted.

    Raises
    ------
    InputError
        If its file cannot be used, or is of another model.
    """
    found = run_limited(
        f"{_ME}fitted_on",
        {"roles": asdict(roles), "source": asdict(source)},
        seconds=_SECONDS,
        what="Reading the calibrator",
        confined=True,
    )
    return frozenset(found["tables"])


def fitted_on(roles: dict[str, Any], source: dict[str, Any]) -> dict[str, Any]:
    """Run in the worker: the tables to which the calibrator was fitted."""
    files = decode(SourceFiles, source)
    return {"tables": list(FolderSource.of(files, decode(Roles, roles)).fitted_on)}


def _files(folder: PartedFiles, roots: Sequence[Path] | None) -> dict[str, Any]:
    files = parquet_files(folder, roots)
    return {"files": [{"path": str(path), "name": name} for path, name in files]}


def write_sample(files: list[dict[str, str]], folder: str) -> dict[str, Any]:
    """Run in the worker: write the sample into the folder."""
    table = _table(files)

    def seen(column: str) -> SeenTimes:
        return _seen_times(table, Roles(time=column), silent, _THREADS)

    pq.write_table(with_settled_dates(table.sample(_SAMPLE_ROWS), seen), Path(folder) / SAMPLE)
    counts = dict.fromkeys((one["name"] for one in files), 0)
    for group in table.groups:
        counts[group.file] += group.rows
    return {"groups": len(table.groups), "rows": list(counts.values())}


def load_classification() -> None:
    """Run in the worker before it is confined: compile the pass over rows, or load it."""
    TALLIES["classification"].load_kernels()


def load_regression() -> None:
    """As `load_classification`."""
    TALLIES["regression"].load_kernels()


def load_kernels() -> None:
    """Both, where the task is not known yet."""
    load_classification()
    load_regression()


def summarise_files(
    files: list[dict[str, str]],
    roles: dict[str, Any],
    classes: list[str],
    groups: dict[str, Any],
    source: dict[str, Any],
    unit: float,
    folder: str,
    progress: Progress = silent,
    first: int = 0,
    threads: int = _THREADS,
    times: dict[str, Any] | None = None,
) -> None:
    """Run in the worker: save the summary into the folder.

    ``first`` is the place of its first row, and ``times`` are those of all rows where these files
    hold some of them, as `FolderTimes.record`.
    """
    known = decode(Roles, roles)
    found = summarise_table(
        _table(files),
        known,
        classes,
        progress,
        threads,
        groups=decode(DeclaredGroups, groups),
        first=first,
        source=FolderSource.of(decode(SourceFiles, source), known),
        unit=unit,
        times=None if times is None else FolderTimes.of_record(times),
    )
    save(Path(folder), found)


def times_of_files(
    files: list[dict[str, str]],
    roles: dict[str, Any],
    progress: Progress = silent,
    threads: int = _THREADS,
) -> dict[str, Any]:
    """Run in the worker: the different times of the files, as `SeenTimes.record`."""
    return _seen_times(_table(files), decode(Roles, roles), progress, threads).record


def _table(files: list[dict[str, str]]) -> PartedTable:
    return PartedTable([(Path(one["path"]), one["name"]) for one in files])


def summarise_table(
    table: PartedTable,
    roles: Roles,
    classes: Sequence[str],
    progress: Progress = silent,
    threads: int = _THREADS,
    *,
    groups: DeclaredGroups | None = None,
    first: int = 0,
    source: FolderSource | None = None,
    unit: float = 1.0,
    times: FolderTimes | None = None,
) -> Summary:
    """The summary of all rows; the number of threads does not change its bytes.

    A model is asked in one thread, because it may use several itself. ``times`` are those of all
    rows, by default those of these, which take a pass over their column. Other parameters and
    errors as for :func:`summary_of_folder`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from tempfile import TemporaryDirectory
    >>> roles = Roles(target="y", outputs=(("yes", "p"),))
    >>> with TemporaryDirectory() as made:
    ...     pq.write_table(pa.table({"p": [0.1, 0.9], "y": ["no", "yes"]}), f"{made}/a.parquet")
    ...     table = PartedTable(parquet_files(made))
    ...     summarise_table(table, roles, ("no", "yes")).joint.tolist()
    [[1, 0], [0, 1]]
    """
    rows, declared = TALLIES[roles.task], groups or DeclaredGroups()
    source = source or FolderSource()
    if roles.time is not None and times is None:
        of_times = part_of(progress, 0.0, _FIRST)
        times = _seen_times(table, roles, of_times, threads).found()
        progress = part_of(progress, _FIRST, 1.0)

    def tally() -> FolderTally:
        return rows(roles, classes, declared, source, unit, times)

    columns = columns_of(roles, source, declared)
    tallies = _tallied(
        table, columns, tally, progress, threads if source.model is None else 1, first
    )
    return _total([one for tally in tallies if (one := tally.summary()) is not None])


def _seen_times(table: PartedTable, roles: Roles, progress: Progress, threads: int) -> SeenTimes:
    """The different times of all rows, from a pass over their column."""
    assert roles.time is not None
    made, seen = partial(SeenTimes, roles), SeenTimes(roles)
    for one in _tallied(table, [roles.time], made, progress, threads, 0, "times of "):
        seen.join(one)
    return seen


class _Tally(Protocol):
    def add(self, frame: pd.DataFrame, *, first: int) -> None: ...


T = TypeVar("T", bound=_Tally)


def _tallied(
    table: PartedTable,
    columns: Sequence[str],
    made: Callable[[], T],
    progress: Progress,
    threads: int,
    first: int,
    what: str = "",
) -> list[T]:
    """Tallies, one a thread, to which together all rows were added."""
    left = list(reversed(table.groups))
    lock, stop = threading.Lock(), threading.Event()
    done = 0

    def work() -> T:
        nonlocal done
        tally = made()
        while not stop.is_set():
            with lock:
                if not left:
                    break
                group = left.pop()
            for before, frame in table.read(group, columns):
                if stop.is_set():
                    break
                with _at(group, before):
                    tally.add(frame, first=first + group.in_table + before)
                with lock:
                    done += len(frame)
        return tally

    n = table.n_rows
    with ThreadPoolExecutor(max(1, min(threads, len(left)))) as pool:
        try:
            jobs = {pool.submit(work) for _ in range(max(1, min(threads, len(left))))}
            waiting = set(jobs)
            while waiting:
                finished, waiting = wait(waiting, 0.2, FIRST_COMPLETED)
                for job in finished:
                    job.result()
                progress(done / n, f"Read {what}{done:,} of {counted(n, 'row')}")
        finally:
            stop.set()
    return [job.result() for job in jobs]


@contextmanager
def _at(group: RowGroup, before: int) -> Iterator[None]:
    """Make errors in the body name the row group, and the row of the file."""
    try:
        yield
    except InputError as error:
        row = None if error.row is None else group.in_file + before + error.row
        raise InputError(
            error.what, fix=error.fix, file=group.title, column=error.column, row=row
        ) from error
