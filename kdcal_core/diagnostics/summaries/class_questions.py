"""What checks judge of a classifier's rows, from a summary of them.

Each function gives what the one of the same name in `kdcal_core.diagnostics` gives of the rows, for
the confidence in the predicted class or, with ``event``, for the probability of that class. What
the cells of the summary hide is as `kdcal_core.diagnostics.summaries.class_estimates` says.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.labels import area_of_ties, risk_words
from kdcal_core.diagnostics.all_estimates import CLASS_GAPS
from kdcal_core.diagnostics.beside_trivial import as_gains, least_gain, of_accuracy, stated_shares
from kdcal_core.diagnostics.calibration_test import cells_test
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.score_range import (
    RANGE_ENDS,
    certain_and_wrong_of,
    certain_of,
    level_of_each,
    range_of,
    stated_log_odds,
)
from kdcal_core.diagnostics.spiegelhalter import brier_gap_of_cells
from kdcal_core.diagnostics.summaries.block_products import joint_variance
from kdcal_core.diagnostics.summaries.class_estimates import (
    gap_of_cells,
    summary_event_estimates,
    summary_line,
)
from kdcal_core.diagnostics.summaries.class_summary import ClassSummary
from kdcal_core.diagnostics.summaries.score_cells import ScoreCells, cells_asked, require_rows
from kdcal_core.diagnostics.summaries.score_grid import upper_ends
from kdcal_core.statistics import quantile_ranks, surprisal, t_quantile


def summary_question_estimates(
    summary: ClassSummary, event: int | None = None, *, level: float = 0.95, seed: int = 0
) -> tuple[Estimate, ...]:
    """As :func:`kdcal_core.diagnostics.question_estimates` of one set.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> one = summarise([[0.9, 0.1], [0.3, 0.7]], [0, 1], ("no", "yes"))
    >>> [each.label for each in summary_question_estimates(one, 1)][2:5]
    ['Calibration intercept', 'Calibration slope', 'Brier minus expected']
    """
    what = "the confidence" if event is None else "the event's probability"
    own: tuple[Estimate, ...] = ()
    if event is not None:
        own = summary_event_estimates(summary, event, level=level, seed=seed)[1:3]
    cells = cells_asked(summary, event)
    named = (
        *summary_line(summary, event, level=level),
        brier_gap_of_cells(cells.score, cells.count, cells.hits, level, cells.gap_effect()),
        summary_range(summary, event, level=level),
    )
    gaps = class_gaps_named(summary, "top-label", level)
    if event is None:
        gaps = (*gaps, *class_gaps_named(summary, "class", level))
    return (
        *own,
        *(replace(one, name=f"{one.name}, of {what}") for one in named),
        summary_certain_share(summary, level=level),
        summary_certain_and_wrong(summary, level=level),
        summary_gain_over_most_frequent(summary, level=level),
        *summary_gains_over_shares(summary, level=level),
        *gaps,
    )


def summary_test(summary: ClassSummary, event: int | None = None, *, seed: int = 0) -> float:
    """As :func:`kdcal_core.diagnostics.calibration_test`, a cell's rows at their mean score.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> one = summarise(np.full((400, 2), 0.5), np.arange(400) % 4 // 3, ("no", "yes"))
    >>> summary_test(one, 1) < 0.001
    True
    """
    cells = cells_asked(summary, event)
    return cells_test(cells.score, cells.count, cells.hits, seed, cells.gap_effect())


def summary_class_gaps(
    summary: ClassSummary, kind: Literal["top-label", "class"], *, level: float = 0.95
) -> dict[int, Estimate]:
    """Mean stated minus observed of every class that has rows, by class.

    As :func:`kdcal_core.diagnostics.class_gaps`, with the names of
    :func:`kdcal_core.diagnostics.scores.target_gap`.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> one = summarise([[0.9, 0.1], [0.3, 0.7]], [0, 0], ("no", "yes"))
    >>> {at: round(gap.value, 2) for at, gap in summary_class_gaps(one, "top-label").items()}
    {0: -0.1, 1: 0.7}
    """
    require_rows(summary, level)
    of = ScoreCells.of_confidence if kind == "top-label" else ScoreCells.of_class
    cells = {label: of(summary, label) for label in range(len(summary.classes))}
    if kind == "class" and len(cells) == 2:  # one says what the other does
        del cells[0]
    return {label: gap_of_cells(one, level) for label, one in cells.items() if one.n}


def class_gaps_named(
    summary: ClassSummary, kind: Literal["top-label", "class"], level: float
) -> tuple[Estimate, ...]:
    """Those of `summary_class_gaps`, whose names hold their classes: untrusted text."""
    what, label = CLASS_GAPS[kind]
    found = summary_class_gaps(summary, kind, level=level)
    return tuple(
        replace(gap, name=f"{what}: {summary.classes[at]}", label=label)
        for at, gap in found.items()
    )


def summary_certain_share(summary: ClassSummary, *, level: float = 0.95) -> Estimate:
    """As :func:`kdcal_core.diagnostics.certain_share`, exactly.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> summary_certain_share(summarise([[1.0, 0.0], [0.4, 0.6]], [0, 0], ("a", "b"))).value
    0.5
    """
    require_rows(summary, level)
    certain, _ = certain_rows(summary)
    rows = summary.n / _certain_effect(summary, certain / summary.n, wrong=False)
    return certain_of(certain / summary.n, rows, summary.n, level)


def summary_certain_and_wrong(summary: ClassSummary, *, level: float = 0.95) -> Estimate:
    """As :func:`kdcal_core.diagnostics.certain_and_wrong`, exactly.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> summary_certain_and_wrong(summarise([[1.0, 0.0]] * 4, [0, 1, 0, 0], ("a", "b"))).value
    0.25
    """
    require_rows(summary, level)
    certain, right = certain_rows(summary)
    share = (certain - right) / summary.n
    rows = summary.n / _certain_effect(summary, share, wrong=True)
    return certain_and_wrong_of(share, rows, summary.n, level)


def _certain_effect(summary: ClassSummary, share: float, *, wrong: bool) -> float:
    """By how much clusters multiply the variance of the share of certain rows, or wrong ones."""
    top = ScoreCells.of_confidence(summary)
    certain = (top.place == len(upper_ends()) - 1).astype(np.float64)
    right = np.zeros_like(certain) if wrong else certain
    return top.effect(right - share, certain - share, of="share")


def certain_rows(summary: ClassSummary) -> tuple[float, float]:
    """Rows of which a probability of exactly 1 was stated, and how many of them are right."""
    last = summary.cells[0, :, -1].sum(axis=0)  # the cell that holds the score 1 alone
    return float(last[0]), float(last[1])


def summary_range(
    summary: ClassSummary, event: int | None = None, *, level: float = 0.95
) -> Estimate:
    """As :func:`kdcal_core.diagnostics.score_range`, its interval widened to ends of cells.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> p = np.linspace(0.4, 0.6, 1001)
    >>> one = summarise(np.column_stack([1.0 - p, p]), np.zeros(1001, int), ("no", "yes"))
    >>> round(summary_range(one, 1).value, 2)
    0.79
    """
    require_rows(summary, level)
    cells = cells_asked(summary, event)
    rank = np.cumsum(cells.count)
    odds, low, high = (stated_log_odds(one) for one in (cells.score, cells.starts, cells.ends))

    def at(values: FloatArray, place: IntArray | float) -> FloatArray:
        found = np.searchsorted(rank, np.asarray(place) * (1.0 - 1e-12))
        return np.asarray(values[np.minimum(found, len(rank) - 1)])

    ends = []
    for share in RANGE_ENDS:
        # where the first cell holds more rows than the share, its rows are those below
        under = (rank <= max(share * summary.n, rank[0])).astype(np.float64)
        rows = max(round(summary.n / cells.effect(under, under, of="share")), 1)
        below, above = quantile_ranks(rows, share, level_of_each(level))
        each = summary.n / rows
        ends.append(
            (
                float(at(low, below * each)) if below >= 1 else -np.inf,
                float(at(high, above * each)) if above <= rows else np.inf,
            )
        )
    between = (summary.n - 1) * np.array(RANGE_ENDS)
    first = np.floor(between).astype(np.int64)
    one, other = (at(odds, np.minimum(first + step, summary.n)) for step in (1, 2))
    value = float(np.ptp(one + (between - first) * (other - one)))
    found = range_of(value, ends, summary.n, level)
    return replace(found, interval=f"{found.interval}, widened to ends of cells of the summary")


def summary_gain_over_most_frequent(
    summary: ClassSummary, known: ClassSummary | None = None, *, level: float = 0.95
) -> Estimate:
    """As :func:`kdcal_core.diagnostics.gain_over_most_frequent`, exactly.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> proba = np.tile([[0.9, 0.1], [0.2, 0.8]], (50, 1))
    >>> summary_gain_over_most_frequent(summarise(proba, [0, 1] * 50, ("a", "b"))).value
    0.5
    """
    require_rows(summary, level)
    n, rows, right = summary.n, summary.joint.sum(axis=1), float(np.trace(summary.joint))

    def gain(label: int, level: float) -> Estimate:
        both = float(summary.joint[label, label])
        more, less = right - both, float(rows[label]) - both
        mean = (more - less) / n
        variance = max((more + less) / n - mean * mean, 0.0)
        effect = _accuracy_gain_effect(summary, label, mean, variance)
        return _paired(mean, variance * effect, n, level)

    if known is not None:
        return of_accuracy(gain(int(known.joint.sum(axis=1).argmax()), level))
    return least_gain(gain, np.flatnonzero(rows).tolist(), level)


def _accuracy_gain_effect(summary: ClassSummary, label: int, mean: float, variance: float) -> float:
    """By how much clusters multiply the variance of right minus of the class, by row."""
    top, of_class = summary.block_cells(0, None), summary.block_cells(1, label)
    if top is None or of_class is None:
        return 1.0
    totals = top.hits.sum(axis=1) - of_class.hits.sum(axis=1) - mean * top.mass
    return top.effect(totals, variance * summary.n)


def summary_risk(summary: ClassSummary) -> str | None:
    """As :func:`kdcal_core.data.labels.states_a_risk`, with the rows of a cell taken as tied.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> p = np.linspace(0.0, 0.4, 1000)
    >>> y = (np.arange(1000) % 5 < 5 * p).astype(np.int64)
    >>> said = summary_risk(summarise(np.column_stack([1 - p, p]), y, ("no", "yes")))
    >>> said[:42]
    'The model states a risk of yes and hardly '
    """
    if len(summary.classes) != 2 or not summary.n:
        return None
    rows = summary.joint.sum(axis=1)
    rarer = int(rows[1] < rows[0])
    cells = ScoreCells.of_class(summary, rarer)
    named = float(cells.count[cells.ends > 0.5].sum()) / summary.n
    area, errors = area_of_ties(cells.count, cells.hits)
    seen = float(rows[rarer]) / summary.n
    return risk_words(summary.classes[rarer][:60], named, seen, area, errors)


def summary_gains_over_shares(
    summary: ClassSummary, known: ClassSummary | None = None, *, level: float = 0.95
) -> tuple[Estimate, Estimate]:
    """As :func:`kdcal_core.diagnostics.gains_over_shares`.

    The means are exact; their variances take the rows of a cell at its mean score and, with more
    than two classes, the random blocks of rows say how the classes vary together.

    Parameters
    ----------
    known : ClassSummary, optional
        The set whose shares are stated; without it these rows' own.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> proba = np.tile([[0.9, 0.1], [0.2, 0.8]], (50, 1))
    >>> found = summary_gains_over_shares(summarise(proba, [0, 1] * 50, ("a", "b")))
    >>> [round(one.value, 2) for one in found]
    [0.53, 0.45]
    """
    require_rows(summary, level)
    n, rows = summary.n, summary.joint.sum(axis=1)
    shares = stated_shares((known or summary).joint.sum(axis=1))
    base_log = float(rows @ surprisal(shares)) / n
    base_brier = float(rows @ (1.0 - 2.0 * shares)) / n + float(shares @ shares)
    labels = range(len(rows))
    cells = [ScoreCells.of_class(summary, label) for label in labels]
    log_parts, brier_parts = [], []
    for one, share in zip(cells, shares, strict=True):
        log_parts.append((float(surprisal(share)) - surprisal(one.score), np.zeros_like(one.score)))
        brier_parts.append(
            (
                np.square(1.0 - share) - np.square(1.0 - one.score),
                np.square(share) - np.square(one.score),
            )
        )
    return as_gains(
        _paired(
            base_log - summary.moments("log loss")[0] / n,
            joint_variance(summary, cells, log_parts),
            n,
            level,
        ),
        _paired(
            base_brier - summary.moments("Brier")[0] / n,
            joint_variance(summary, cells, brier_parts),
            n,
            level,
        ),
    )


def _paired(mean: float, variance: float, n: int, level: float) -> Estimate:
    """A paired difference, from the mean and the variance of the rows' differences."""
    half = t_quantile(level, n - 1.0) * (variance / (n - 1.0)) ** 0.5 if n > 1 else np.inf
    return Estimate(
        "", "", mean, mean - half, mean + half, n, level, interval="t quantile", expected=0.0
    )
