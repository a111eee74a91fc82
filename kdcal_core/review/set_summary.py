"""The summary of a scored set of very many rows, made once when it is scored.

A page then needs a few megabytes where it would read and sort all rows. Its numbers follow from
counts on a fine grid, as those of a folder of files do.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.review.review import TableInfo
from kdcal_core.review.sealed_files import check_folder, kept
from kdcal_core.store import read_array, write_arrays

if TYPE_CHECKING:
    from kdcal_core.diagnostics.summaries import ClassSummary

MANY = 1_000_000
"""Rows from which on a set of a classification is summarised."""
_FOLDER = "summary"
_PARTS = ("cells", "joint", "sums", "blocks")


def prepared_for(*tables: TableInfo) -> str:
    """What a worker runs before it is confined, if it may have to summarise one of these tables."""
    many = any(one.n_rows >= MANY for one in tables)
    return "kdcal_core.review.folder_summary:load_classification" if many else ""


def write_summary(
    folder: Path, proba: FloatArray, y: IntArray, classes: tuple[str, ...], *, independent: bool
) -> None:
    """Keep the summary of a set in its folder, if it has many rows.

    Parameters
    ----------
    folder : Path
        Of the set; not sealed yet.
    independent : bool
        Whether the rows count alike and do not depend on one another: summaries know neither
        weights nor clusters.
    """
    if not independent or len(y) < MANY:
        return
    from kdcal_core.diagnostics.summaries import summarise  # loads statistics
    from kdcal_core.diagnostics.summaries.class_summary import MOST_CLASSES

    if len(classes) <= MOST_CLASSES:
        place = folder / _FOLDER
        place.mkdir(mode=0o700)
        made = summarise(proba, y, classes)
        write_arrays(place, {part: getattr(made, part) for part in _PARTS})


def read_summary(folder: Path, classes: tuple[str, ...], name: str) -> ClassSummary | None:
    """The summary of the set in ``folder``; None if it has none.

    Raises
    ------
    InputError
        If it was changed after it was written.
    """
    place = folder / _FOLDER
    if not place.exists():
        return None
    from kdcal_core.diagnostics.summaries import ClassSummary

    with kept(name):
        if not check_folder(place):
            raise FileNotFoundError(place)
        cells, joint, sums, blocks = (read_array(place / f"{part}.npy") for part in _PARTS)
        return ClassSummary(classes, int(joint.sum()), cells, joint, sums, blocks)
