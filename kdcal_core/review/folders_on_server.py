"""Folders of Parquet files on the server that pages may open: those which a setting names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kdcal_core.data.parquet_folder import PartedTable, parquet_files
from kdcal_core.jobs import run_limited
from kdcal_core.progress import Progress
from kdcal_core.quotas import JOB_TIME

MOST_FOLDERS = 500
"""Folders that are listed at most."""
_SEEN = 20_000  # folders that are looked into at most
_FILE = "folder.parquet"


def server_folders(roots: Sequence[Path]) -> tuple[Path, ...]:
    """Folders in the given ones, and these themselves, that hold Parquet files, there or below.

    No link to a folder is followed, and names that begin with a dot or an underscore are left out.

    Parameters
    ----------
    roots : sequence of Path
        Resolved folders (:func:`kdcal_core.data.parquet_folder.allowed_roots`).

    Returns
    -------
    tuple of Path
        By name, at most `MOST_FOLDERS`. Names are untrusted text.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as made:
    ...     root = Path(made).resolve()
    ...     (root / "scores" / "may").mkdir(parents=True)
    ...     (root / "empty").mkdir()
    ...     (root / "scores" / "may" / "a.parquet").touch()
    ...     [str(one.relative_to(root)) for one in server_folders([root])]
    ['.', 'scores', 'scores/may']
    """
    found: set[Path] = set()
    for root in roots:
        for place in _with_tables(root):
            above = [one for one in place.parents if one.is_relative_to(root)]
            found.update((place, *above))
            if len(found) >= MOST_FOLDERS:
                break
    return tuple(sorted(found)[:MOST_FOLDERS])


def _with_tables(root: Path) -> Iterator[Path]:
    for seen, (place, folders, files) in enumerate(os.walk(root)):
        if seen >= _SEEN:
            return
        folders[:] = sorted(one for one in folders if one[0] not in "._")
        if any(one[0] not in "._" and one.lower().endswith(".parquet") for one in files):
            yield Path(place)


def gathered_table(
    folder: str | Path,
    into: Path,
    roots: Sequence[Path],
    *,
    most: int | None = None,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Path:
    """One Parquet file with all rows of a folder's files, in the order of the files' names.

    Parameters
    ----------
    folder : path
        In one of ``roots``, with links followed.
    into : Path
        An empty folder for the file.
    most : int, optional
        Of more rows than these, as many are drawn at random. Pages show rows and fit what needs
        them, so that a review keeps its rows; those of a folder larger than memory it cannot.

    Raises
    ------
    InputError
        For a folder elsewhere, links that lead out of the roots, a damaged file, and a table that
        would take more memory than any may.
    """
    files = [{"path": str(path), "name": name} for path, name in parquet_files(folder, roots)]
    run_limited(
        "kdcal_core.review.folders_on_server:gather_files",
        {"files": files, "most": most},
        seconds=JOB_TIME,
        folder=into,
        progress=progress,
        cancelled=cancelled,
        what="Reading the folder",
        confined=True,
    )
    return into / _FILE


def gather_files(files: list[dict[str, Any]], most: int | None, folder: str) -> None:
    """Run in the worker: write the rows of the files, or some, into one file in the folder."""
    table = PartedTable([(Path(one["path"]), one["name"]) for one in files])
    table.write(Path(folder) / _FILE, most)
