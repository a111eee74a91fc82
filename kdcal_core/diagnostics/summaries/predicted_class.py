"""What the page Confidence by class shows of one class, from a summary of the rows.

Salamon et al., *Estimating Classification Confidence Using Kernel Densities*,
https://arxiv.org/abs/2207.06529
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_sums
from kdcal_core.diagnostics.by_predicted_class import AnchorKind, HistogramAnchor, anchor_of_bins
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.reliability import Reliability
from kdcal_core.diagnostics.scores import TOP_LABEL_LOG_LOSS
from kdcal_core.diagnostics.summaries.class_diagrams import curve_of_cells
from kdcal_core.diagnostics.summaries.class_estimates import (
    accuracy_of_cells,
    error_of_cells,
    gap_of_cells,
    loss_sums,
    top_label_loss,
)
from kdcal_core.diagnostics.summaries.class_summary import ClassSummary
from kdcal_core.diagnostics.summaries.drawn_rows import DrawnRows
from kdcal_core.diagnostics.summaries.score_cells import ScoreCells
from kdcal_core.diagnostics.summaries.score_grid import bins_of_cells
from kdcal_core.errors import InputError
from kdcal_core.statistics import surprisal

_MOST_NUMBERS = 25_000_000  # of the rows that stand for others, some 400 MB
_LEAD = 1e-9  # by which the predicted class leads at least, as a part of its score


def summary_of_predicted(
    summary: ClassSummary, label: int, *, level: float = 0.95, seed: int = 0
) -> tuple[tuple[Estimate, ...], Reliability | None]:
    """Tiles and reliability of the rows predicted to be one class; none without such rows.

    As :func:`kdcal_core.diagnostics.summary` and :func:`kdcal_core.diagnostics.reliability` of
    those rows. The log loss is that of each cell's mean score, too low by less than 0.02% of
    itself.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> one = summarise([[0.9, 0.1], [0.3, 0.7], [0.2, 0.8]], [0, 1, 0], ("no", "yes"))
    >>> tiles, diagram = summary_of_predicted(one, 1)
    >>> [tile.label for tile in tiles], tiles[0].value, diagram.n
    (['Accuracy', 'Confidence gap', 'ECE', 'Top-label log loss'], 0.5, 2)
    """
    cells = _cells(summary, label, "top-label")
    n = int(cells.n)
    if not n:
        return (), None
    tiles = (
        accuracy_of_cells(cells, n, level),
        gap_of_cells(cells, level),
        error_of_cells(cells, level, seed),
        top_label_loss(
            loss_sums(cells),
            cells,
            level,
            TOP_LABEL_LOG_LOSS,
            cells.effect(surprisal(cells.score), surprisal(1.0 - cells.score)),
        ),
    )
    rows = replace(cells, label=None)
    curve = curve_of_cells(rows, 15, "uniform", level, np.random.default_rng(seed))
    return tiles, Reliability("confidence", "uniform", 15, level, n, (curve,))


def summary_anchor(
    summary: ClassSummary, *, label: int, kind: AnchorKind = "top-label", n_bins: int = 10
) -> HistogramAnchor:
    """As :func:`kdcal_core.diagnostics.histogram_anchor`, exactly.

    Parameters
    ----------
    n_bins : int
        1 to 50, or 100.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> proba = [[0.6, 0.4], [0.7, 0.3], [0.9, 0.1], [0.1, 0.9]]
    >>> one = summarise(proba, [0, 1, 0, 1], ("no", "yes"))
    >>> summary_anchor(one, label=0, n_bins=5).confidence.tolist()
    [nan, nan, 1.0, 0.0, 1.0]
    """
    cells = _cells(summary, label, kind)
    return _anchor(cells, cells.count, cells.hits, label, kind, n_bins)


def summary_halves(
    summary: ClassSummary,
    *,
    label: int,
    kind: AnchorKind = "top-label",
    n_bins: int = 10,
    seed: int = 0,
) -> tuple[HistogramAnchor, HistogramAnchor]:
    """As :func:`kdcal_core.diagnostics.two_halves`; each row's half is drawn by itself.

    Of rows in clusters that of a random block of them is, and in time the first is the earlier.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> score = np.linspace(0.55, 0.95, 40)
    >>> one = summarise(np.c_[score, 1 - score], np.arange(40) % 2, ("a", "b"))
    >>> first, second = summary_halves(one, label=0)
    >>> int(first.count.sum() + second.count.sum())
    40
    """
    cells, rng = _cells(summary, label, kind), np.random.default_rng(seed)
    if cells.clusters is not None:
        return _halves_of_blocks(cells, label, kind, n_bins, rng)
    hits, misses = (
        rng.binomial(rows.astype(np.int64), 0.5).astype(np.float64)
        for rows in (cells.hits, cells.misses)
    )
    count = hits + misses
    return (
        _anchor(cells, count, hits, label, kind, n_bins),
        _anchor(cells, cells.count - count, cells.hits - hits, label, kind, n_bins),
    )


def distinct_rows(summary: ClassSummary) -> tuple[FloatArray, IntArray, FloatArray] | None:
    """Rows that stand for those of a summary, each for many, as calibrators by score take them.

    Up to `DRAWN` rows they are the rows themselves. Of more, every cell gives its right and its
    wrong rows at its mean score. With more than two classes, the others share the rest as in the
    drawn row of the same predicted class whose score is nearest, and the class of a wrong row is
    that with the largest of these shares.

    Returns
    -------
    proba : (m, K) array
    y : (m,) array of int
    count : (m,) array
        Rows that each stands for, at least 1. All three are missing where a summary does not say:
        one of before rows were drawn, of more than two classes, or one of so many classes and
        cells that the rows would be as large as those that they stand for.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> proba, y, count = distinct_rows(summarise([[0.9, 0.1], [0.2, 0.8]], [0, 1], ("a", "b")))
    >>> proba.tolist(), y.tolist(), count.tolist()
    ([[0.9, 0.1], [0.2, 0.8]], [0, 1], [1.0, 1.0])
    """
    drawn, k = summary.drawn, len(summary.classes)
    if drawn is not None and len(drawn) == summary.n:
        return drawn.proba, drawn.y, np.ones(len(drawn))
    filled = int(np.count_nonzero(summary.cells[0, :, :, 0]))
    if k > 2 and (drawn is None or filled * k > _MOST_NUMBERS):
        return None
    proba, y, count = [], [], []
    for label in range(k):
        cells = _cells(summary, label, "top-label")
        rows = _vectors(np.maximum(cells.score, _least(label, k)), label, k, drawn)
        others = rows.copy()
        others[:, label] = -1.0
        for true, many in (
            (np.full(len(rows), label), cells.hits),
            (others.argmax(axis=1), cells.misses),
        ):
            some = many > 0
            proba.append(rows[some])
            y.append(true[some])
            count.append(many[some])
    return np.concatenate(proba), np.concatenate(y), np.concatenate(count)


def _least(label: int, k: int) -> float:
    """The smallest score of a predicted class, for whatever the others then have.

    A tie is the first class's, and sums may differ from 1 by rounding.
    """
    if k == 2:
        return float(np.nextafter(0.5, 1.0)) if label else 0.5
    return (1.0 + 10 * _LEAD) / k


def _vectors(score: FloatArray, label: int, k: int, drawn: DrawnRows | None) -> FloatArray:
    """Probabilities of which the class has the largest, these scores (c,), as (c, K)."""
    rest = 1.0 - score[:, np.newaxis]
    even = np.full(k, 1.0 / (k - 1))
    even[label] = 0.0
    shares = np.tile(even, (len(score), 1))
    if k > 2 and drawn is not None:
        known = drawn.proba[drawn.proba.argmax(axis=1) == label]
        known = known[np.argsort(known[:, label], kind="stable")]
        if len(known):
            others = known.copy()
            others[:, label] = 0.0
            total = others.sum(axis=1, keepdims=True)
            others = np.divide(others, total, out=np.tile(even, (len(known), 1)), where=total > 0)
            shares = others[_nearest(known[:, label], score)]
            # further from the class's own score another one may lead: then they share more evenly
            most = score[:, np.newaxis] * (1.0 - _LEAD)
            largest = rest * shares.max(axis=1, keepdims=True)
            least = rest / (k - 1)
            apart = largest - least
            evened = np.divide(largest - most, apart, out=np.zeros_like(apart), where=apart > 0)
            evened = np.clip(evened, 0.0, 1.0)
            shares = (1.0 - evened) * shares + evened * even
    rows: FloatArray = rest * shares
    rows[:, label] = score
    return rows


def _nearest(known: FloatArray, at: FloatArray) -> IntArray:
    """Places of the nearest of ascending numbers."""
    right = np.searchsorted(known, at).clip(0, len(known) - 1)
    left = np.maximum(right - 1, 0)
    return np.where(np.abs(known[left] - at) < np.abs(known[right] - at), left, right)


def _cells(summary: ClassSummary, label: int, kind: AnchorKind) -> ScoreCells:
    if not 0 <= label < len(summary.classes):
        raise InputError(
            f"There is no class {label}", fix=f"Classes are 0 to {len(summary.classes) - 1}."
        )
    of = ScoreCells.of_class if kind == "class" else ScoreCells.of_confidence
    return of(summary, label)


def _anchor(
    cells: ScoreCells,
    count: FloatArray,
    hits: FloatArray,
    label: int,
    kind: AnchorKind,
    n_bins: int,
) -> HistogramAnchor:
    index = bins_of_cells(n_bins)[cells.place]
    rows, right = (bin_sums(index, n_bins, one) for one in (count, hits))
    return _of_bins(rows, right, cells.table(n_bins).design_effect, label, kind)


def _halves_of_blocks(
    cells: ScoreCells, label: int, kind: AnchorKind, n_bins: int, rng: np.random.Generator
) -> tuple[HistogramAnchor, HistogramAnchor]:
    """Halves of whole blocks; the rows of a bin of the blocks are shared out by their numbers.

    Of times the first half is the earlier.
    """
    blocks = cells.clusters
    assert blocks is not None
    index, effect = bins_of_cells(n_bins)[cells.place], cells.table(n_bins).design_effect
    if blocks.times is None:
        some = np.flatnonzero(blocks.mass)
        mine = rng.permutation(some)[: len(some) // 2]
    else:
        mine = np.arange(-(-blocks.times.n_units // 2))
    first, second = [], []
    for all_of, rows in (
        (cells.hits, blocks.hits),
        (cells.misses, blocks.count - blocks.hits),
    ):
        whole = bin_sums(index, n_bins, all_of)
        half = cells.shared_out(all_of, rows[mine].sum(axis=0), index, n_bins)
        first.append(np.minimum(half, whole))
        second.append(whole - first[-1])
    return (
        _of_bins(first[0] + first[1], first[0], effect, label, kind),
        _of_bins(second[0] + second[1], second[0], effect, label, kind),
    )


def _of_bins(
    rows: FloatArray, right: FloatArray, effect: FloatArray, label: int, kind: AnchorKind
) -> HistogramAnchor:
    share = np.divide(right, rows, out=np.full(len(rows), np.nan), where=rows > 0)
    return anchor_of_bins(label, kind, rows, share, rows / effect)
