"""A table in many Parquet files, larger than memory: its roles from a sample, and its summary.

A worker process reads the files, as everywhere. What comes back is a small table of some rows, from
which the columns' roles follow as for any table, and then a summary of fixed size of all rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from kdcal_core.data import Roles, output_matrix, target_labels
from kdcal_core.data.parquet_folder import PartedTable, RowGroup, parquet_files
from kdcal_core.diagnostics.summaries import ClassSummary, ClassTally
from kdcal_core.errors import InputError
from kdcal_core.jobs import run_limited
from kdcal_core.progress import Progress, silent
from kdcal_core.store import decode, load, save
from kdcal_core.text import counted

SAMPLE = "sample.parquet"
_SAMPLE_ROWS = 20_000
_SECONDS = 6 * 3600
_THREADS = 2
_ME = "kdcal_core.review.folder_summary:"


def sample_of_folder(
    folder: str | Path,
    into: Path,
    roots: Sequence[Path] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> tuple[Path, dict[str, int]]:
    """Write some 20,000 rows of a folder's table, from all over it, to a Parquet file.

    Parameters
    ----------
    folder : path
    into : Path
        An empty folder for the file.
    roots : sequence of Path, optional
        As for :func:`kdcal_core.data.parquet_folder.parquet_files`.

    Returns
    -------
    Path, dict
        The file, and the numbers of "files", "groups" and "rows" of the whole table.
    """
    kwargs = _files(folder, roots)
    found = run_limited(
        f"{_ME}write_sample",
        kwargs,
        seconds=_SECONDS,
        folder=into,
        cancelled=cancelled,
        what="Reading the folder",
        confined=True,
    )
    return into / SAMPLE, {name: int(found[name]) for name in ("files", "groups", "rows")}


def summary_of_folder(
    folder: str | Path,
    roles: Roles,
    classes: Sequence[str],
    into: Path,
    roots: Sequence[Path] | None = None,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> ClassSummary:
    """The summary of a classification's predictions in a folder, every row checked.

    Parameters
    ----------
    roles : Roles
        The target and the columns of the predictions.
    classes : sequence of str
        Names in the order of the summary's classes.
    into : Path
        An empty folder, where the summary is stored.
    folder, roots
        As for :func:`sample_of_folder`.

    Raises
    ------
    InputError
        For a value that cannot be used; the error names its file, row group and row of the file.
        For roles that a summary does not know: row weights, clusters and times need the rows.
    """
    if roles.task != "classification":
        raise InputError(
            "A folder of files is read for a classification only",
            fix="Give the rows of a regression as one file.",
        )
    for name in ("weight", "cluster", "time"):
        if getattr(roles, name) is not None:
            raise InputError(
                f"A summary of a folder knows no {name} of rows",
                fix=f"Leave the {name} out, or give the rows as one file.",
                column=getattr(roles, name),
            )
    kwargs = {**_files(folder, roots), "roles": asdict(roles), "classes": list(classes)}
    run_limited(
        f"{_ME}summarise_files",
        kwargs,
        seconds=_SECONDS,
        folder=into,
        progress=progress,
        cancelled=cancelled,
        what="Reading the folder",
        confined=True,
        prepared=f"{_ME}load_kernels",
    )
    return load(into, ClassSummary)


def _files(folder: str | Path, roots: Sequence[Path] | None) -> dict[str, Any]:
    files = parquet_files(folder, roots)
    return {"files": [{"path": str(path), "name": name} for path, name in files]}


def write_sample(files: list[dict[str, str]], folder: str) -> dict[str, int]:
    """Run in the worker: write the sample into the folder."""
    table = _table(files)
    pq.write_table(table.sample(_SAMPLE_ROWS), Path(folder) / SAMPLE)
    return {"files": len(files), "groups": len(table.groups), "rows": table.n_rows}


def load_kernels() -> None:
    """Run in the worker before it is confined: compile the pass over rows, or load it."""
    ClassTally(("no", "yes")).add(np.full((1, 2), 0.5), np.zeros(1, np.int64), first=0)


def summarise_files(
    files: list[dict[str, str]],
    roles: dict[str, Any],
    classes: list[str],
    folder: str,
    progress: Progress = silent,
) -> None:
    """Run in the worker: save the summary into the folder."""
    save(Path(folder), summarise_table(_table(files), decode(Roles, roles), classes, progress))


def _table(files: list[dict[str, str]]) -> PartedTable:
    return PartedTable([(Path(one["path"]), one["name"]) for one in files])


def summarise_table(
    table: PartedTable,
    roles: Roles,
    classes: Sequence[str],
    progress: Progress = silent,
    threads: int = _THREADS,
) -> ClassSummary:
    """The summary of all rows; the number of threads does not change its bytes.

    Parameters and errors as for :func:`summary_of_folder`.

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
    outputs = [column for _, column in roles.outputs]
    predicted = [roles.predicted] if roles.predicted and roles.output_kind == "confidence" else []
    columns = list(dict.fromkeys([*outputs, *predicted, *([roles.target] if roles.target else [])]))
    names = tuple(classes)
    left = list(reversed(table.groups))
    lock, stop = threading.Lock(), threading.Event()
    done = 0

    def work() -> ClassSummary:
        nonlocal done
        tally = ClassTally(names)
        while not stop.is_set():
            with lock:
                if not left:
                    break
                group = left.pop()
            for before, frame in table.read(group, columns):
                if stop.is_set():
                    break
                with _at(group, before):
                    proba = output_matrix(frame, roles, names)
                    y = target_labels(frame, roles, names)
                    tally.add(proba, y, first=group.in_table + before)
                with lock:
                    done += len(frame)
        return tally.summary()

    n = table.n_rows
    with ThreadPoolExecutor(max(1, min(threads, len(left)))) as pool:
        try:
            jobs: set[Future[ClassSummary]] = {
                pool.submit(work) for _ in range(max(1, min(threads, len(left))))
            }
            waiting = set(jobs)
            while waiting:
                finished, waiting = wait(waiting, 0.2, FIRST_COMPLETED)
                for job in finished:
                    job.result()
                progress(done / n, f"Read {done:,} of {counted(n, 'row')}")
        finally:
            stop.set()
    total, *others = (job.result() for job in jobs)
    for one in others:
        total = total + one
    return total


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
