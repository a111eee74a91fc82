"""The summary of a scored set of very many rows, made once when it is scored.

A page then needs a few megabytes where it would read and sort all rows. Its numbers follow from
counts on a fine grid, as those of a folder of files do.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from kdcal_core.data import Fitness, FloatArray, IntArray, RegressionFitness
from kdcal_core.review.review import TableInfo
from kdcal_core.review.sealed_files import check_folder, check_seal, kept
from kdcal_core.store import decode, encode, read_array, write_arrays
from kdcal_core.store.disk import write_json
from kdcal_core.store.folder import NpyFolder

if TYPE_CHECKING:
    import pandas as pd

    from kdcal_core.diagnostics.summaries import ClassSummary, RegressionSummary
    from kdcal_core.distributions import PredictiveDistribution

F = TypeVar("F", Fitness, RegressionFitness)

MANY = 1_000_000
"""Rows from which on a set is summarised."""
_FOLDER, _RECORD = "summary", "summary.json"
_FITNESS = "fitness.json"
_BLOCK = 250_000  # rows of a regression at once, each of which takes some 300 bytes
_PARTS = ("cells", "joint", "sums", "blocks")
_DRAWN = ("position", "proba", "y")  # of the drawn rows


def prepared_for(*tables: TableInfo) -> str:
    """What a worker runs before it is confined, if it may have to summarise one of these tables."""
    many = any(one.n_rows >= MANY for one in tables)
    return "kdcal_core.review.folder_summary:load_kernels" if many else ""


def write_summary(
    folder: Path,
    proba: FloatArray,
    y: IntArray,
    classes: tuple[str, ...],
    frame: pd.DataFrame,
    *,
    independent: bool,
) -> None:
    """Keep the summary of a set in its folder, and rows drawn from it, if it has many rows.

    Parameters
    ----------
    folder : Path
        Of the set; not sealed yet.
    frame : DataFrame
        The columns of its rows.
    independent : bool
        Whether the rows count alike and do not depend on one another: summaries know neither
        weights nor clusters.
    """
    if not independent or len(y) < MANY:
        return
    from kdcal_core.diagnostics.summaries import summarise  # loads statistics
    from kdcal_core.diagnostics.summaries.class_summary import MOST_CLASSES
    from kdcal_core.review.drawn_rows import write_drawn_scores

    write_drawn_scores(folder, frame, proba, y)

    if len(classes) <= MOST_CLASSES:
        place = folder / _FOLDER
        place.mkdir(mode=0o700)
        made = summarise(proba, y, classes)
        write_arrays(place, {part: getattr(made, part) for part in _PARTS})
        write_arrays(place, {f"drawn_{part}": getattr(made.drawn, part) for part in _DRAWN})


def write_fitness(folder: Path, n: int, measure: Callable[[], Fitness | RegressionFitness]) -> None:
    """Keep what a set is suited for in its folder, if it has many rows, for the Load page."""
    if n >= MANY:
        write_json(folder / _FITNESS, encode(measure(), NpyFolder(folder)))


def read_fitness(folder: Path, kind: type[F], name: str) -> F | None:
    """What the set in ``folder`` is suited for; None if it was not kept.

    Raises
    ------
    InputError
        If it was changed after it was written.
    """
    path = folder / _FITNESS
    if not path.exists():
        return None
    with kept(name):
        check_seal(path)
        return decode(kind, json.loads(path.read_bytes()), NpyFolder(folder))


def write_regression_summary(
    folder: Path,
    distribution: PredictiveDistribution,
    y: FloatArray,
    true_mean: FloatArray | None,
    frame: pd.DataFrame,
    *,
    independent: bool,
) -> None:
    """As `write_summary`, of a regression."""
    if not independent or len(y) < MANY:
        return
    from kdcal_core.diagnostics.summaries import summarise_regression
    from kdcal_core.review.drawn_rows import write_drawn_forecasts

    write_drawn_forecasts(folder, frame, distribution, y, true_mean)
    made: RegressionSummary | None = None
    for first in range(0, len(y), _BLOCK):
        rows = slice(first, first + _BLOCK)
        truth = None if true_mean is None else true_mean[rows]
        one = summarise_regression(distribution[rows], y[rows], first=first, true_mean=truth)
        made = one if made is None else made + one
    place = folder / _FOLDER
    place.mkdir(mode=0o700)
    write_json(place / _RECORD, encode(made, NpyFolder(place)))


def read_regression_summary(folder: Path, name: str) -> RegressionSummary | None:
    """As `read_summary`, of a regression."""
    place = folder / _FOLDER
    if not place.exists():
        return None
    from kdcal_core.diagnostics.summaries import RegressionSummary

    with kept(name):
        if not check_folder(place):
            raise FileNotFoundError(place)
        record = json.loads((place / _RECORD).read_bytes())
        return decode(RegressionSummary, record, NpyFolder(place))


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
    from kdcal_core.diagnostics.summaries import ClassSummary, DrawnRows

    with kept(name):
        if not check_folder(place):
            raise FileNotFoundError(place)
        cells, joint, sums, blocks = (read_array(place / f"{part}.npy") for part in _PARTS)
        drawn = None
        if (place / f"drawn_{_DRAWN[0]}.npy").exists():  # not of sets scored before they were kept
            drawn = DrawnRows(*(read_array(place / f"drawn_{part}.npy") for part in _DRAWN))
        return ClassSummary(classes, int(joint.sum()), cells, joint, sums, blocks, drawn=drawn)
