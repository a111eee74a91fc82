"""Areas under ROC curves from a summary of a classifier's rows, widened by what the cells hide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics.auc import interval_of_samples
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.scores import ONE_CLASS, auroc_of
from kdcal_core.diagnostics.summaries.block_products import joint_variance
from kdcal_core.diagnostics.summaries.class_summary import ClassSummary
from kdcal_core.diagnostics.summaries.score_cells import ScoreCells, class_cells, require_rows


def area_bound(summary: ClassSummary, label: int) -> float:
    """The most by which a class's AUC from the cells may differ from that of the rows.

    Half the share of pairs, of a row of the class and one of the rest, that lie in one cell.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> area_bound(summarise([[0.6, 0.4], [0.2, 0.8]], [0, 1], ("no", "yes")), 1)
    0.0
    """
    return ClassArea.of(class_cells(summary, label)).bound


@dataclass(frozen=True, eq=False)
class ClassArea:
    """The area under one ROC curve, and DeLong's components of the rows of each cell.

    ``hit`` and ``miss`` (c,) are the components of a row of the class and of one of the rest.
    """

    cells: ScoreCells
    value: float
    hit: FloatArray
    miss: FloatArray
    positives: float
    negatives: float
    bound: float

    @classmethod
    def of(cls, cells: ScoreCells) -> ClassArea:
        yes, no = cells.hits, cells.misses
        positives, negatives = float(yes.sum()), float(no.sum())
        if positives == 0.0 or negatives == 0.0:
            nothing = np.zeros(len(yes))
            return cls(cells, np.nan, nothing, nothing, positives, negatives, np.nan)
        above = (np.cumsum(no) - 0.5 * no) / negatives
        below = 1.0 - (np.cumsum(yes) - 0.5 * yes) / positives
        area = float(yes @ above / positives)
        if min(area, 1.0 - area) < 1e-12:
            area = float(round(area))
        together = yes @ np.where(cells.widths > 0.0, no, 0.0)
        return cls(
            cells,
            area,
            (above - area) / positives,
            (below - area) / negatives,
            positives,
            negatives,
            0.5 * float(together) / positives / negatives,
        )


def summary_auroc(summary: ClassSummary, *, level: float = 0.95) -> Estimate:
    """As :func:`kdcal_core.diagnostics.auroc`, its interval widened by what the cells hide.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> summary_auroc(summarise([[0.9, 0.1], [0.3, 0.7]], [0, 1], ("no", "yes"))).value
    1.0
    """
    require_rows(summary, level)
    k = len(summary.classes)
    if k == 2:
        return areas_of_classes(summary, [1], f"the class {summary.classes[1]}", level)
    there = np.flatnonzero(summary.joint.sum(axis=1))
    labels = there.tolist() if len(there) > 1 else []
    return areas_of_classes(summary, labels, _against_the_rest(len(labels)), level)


def _against_the_rest(n_classes: int) -> str:
    return f"one against the rest, {n_classes} classes by their share"


def areas_of_classes(
    summary: ClassSummary, labels: Sequence[int], words: str, level: float
) -> Estimate:
    """The mean area of classes by their share, its interval widened by what the cells hide."""
    n = summary.n
    areas = [ClassArea.of(class_cells(summary, one)) for one in labels]
    if len(areas) == 1:
        return _one_area(areas[0], words, n, level)
    if not areas or np.isnan(areas[0].value):
        return auroc_of(words, (np.nan,) * 3, n, level, ONE_CLASS)
    mass = np.array([one.positives for one in areas])
    share = mass / mass.sum()
    value = float(share @ [one.value for one in areas])
    bound = float(share @ [one.bound for one in areas])
    samples = _samples(summary, areas, share)
    # the sums of squares hold what clusters add
    clusters = _area_clusters(areas[0].cells, 1.0)
    of_samples = interval_of_samples(value, *samples, level, clusters)
    return _widened(words, value, of_samples, bound, n, level)


def area_of_cells(cells: ScoreCells, words: str, n: int, level: float) -> Estimate:
    """The area under the ROC curve of one class, widened by what the cells hide."""
    return _one_area(ClassArea.of(cells), words, n, level)


def areas_of_cells(cells: Sequence[ScoreCells], n: int, level: float) -> Estimate:
    """The mean area of every class against the rest by their share, from the cells of each.

    How the classes' areas err together is not known, so the interval is as wide as if they always
    did: its distances from the value are the means of theirs. Of 30 rows or more it is at least
    as wide as that of the rows.
    """
    areas = [one for cell in cells if not np.isnan((one := ClassArea.of(cell)).value)]
    words = _against_the_rest(len(areas))
    if not areas:
        return auroc_of(words, (np.nan,) * 3, n, level, ONE_CLASS)
    each = [_one_area(one, words, n, level) for one in areas]
    mass = np.array([one.positives for one in areas])
    share = mass / mass.sum()
    value, low, high = (
        float(share @ [getattr(one, part) for one in each]) for part in ("value", "low", "high")
    )
    return auroc_of(words, (value, low, high), n, level, f"means of: {each[0].interval}")


def _one_area(one: ClassArea, words: str, n: int, level: float) -> Estimate:
    if np.isnan(one.value):
        return auroc_of(words, (np.nan,) * 3, n, level, ONE_CLASS)
    rows = np.array([one.negatives, one.positives])
    square = np.array([one.cells.misses @ np.square(one.miss), one.cells.hits @ np.square(one.hit)])
    clusters = _area_clusters(one.cells, one.cells.effect(one.hit, one.miss, of="sum"))
    found = interval_of_samples(
        one.value, rows, square, 1.0 / rows, float(rows.min()), level, clusters
    )
    return _widened(words, one.value, found, one.bound, n, level)


def _area_clusters(cells: ScoreCells, effect: float) -> tuple[float, tuple[float, float]] | None:
    """As :func:`kdcal_core.diagnostics.auc.variance_of_samples` takes clusters."""
    if cells.clusters is None:
        return None
    units = cells.clusters.units
    return effect, (units / cells.clusters.n, max(units - 1.0, 1.0))


def _widened(
    words: str,
    value: float,
    interval: tuple[float, float, str],
    bound: float,
    n: int,
    level: float,
) -> Estimate:
    low, high, how = interval
    if bound > 0.0:
        low, high = max(low - bound, 0.0), min(high + bound, 1.0)
        how = f"{how}, widened by {bound:.1g} for the cells of the summary"
    return auroc_of(words, (value, low, high), n, level, how)


def _samples(
    summary: ClassSummary, areas: Sequence[ClassArea], share: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Rows of each true class, squares of their components, of their ranges, and pairs of rows."""
    true = summary.joint.sum(axis=1).astype(np.float64)
    present = true > 0.0
    square, lead = np.zeros(len(true)), np.zeros(len(true))
    for one, weight in zip(areas, share, strict=True):
        mine = np.arange(len(true)) == one.cells.label
        hits = one.cells.hits @ np.square(one.hit)
        misses = one.cells.misses @ np.square(one.miss)
        square += weight**2 * np.where(mine, hits, misses * true / one.negatives)
        lead += weight / np.where(mine, one.positives, one.negatives)
    parts = [(w * one.hit, w * one.miss) for one, w in zip(areas, share, strict=True)]
    whole = summary.n * joint_variance(summary, [one.cells for one in areas], parts, of="sum")
    square *= whole / max(float(square.sum()), 1e-300)
    pairs = 1.0 / sum(
        w**2 / min(one.positives, one.negatives) for one, w in zip(areas, share, strict=True)
    )
    return true[present], square[present], (true * lead**2)[present], float(pairs)
