"""A chart's finding and its alternative text, in plain sentences with their numbers.

The sentences hold class names as they came: escape them on the way to a screen.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kdcal_core.calibration import ConfidenceCurve, HistogramAnchor, MethodLosses
from kdcal_core.diagnostics.results import Confusion, ReliabilityCurve, ScoreHistogram
from kdcal_core.text import counted


def confidence_words(curve: ConfidenceCurve, name: str) -> str:
    """How often the predicted class is right, and why it has no curve where it has none."""
    n = curve.n_tp + curve.n_fp
    if n == 0:
        return f"No row was predicted as class {name}: nothing can be said about this class."
    share = (
        f"{curve.n_tp:,} of {n:,} rows predicted as class {name} are right ({curve.n_tp / n:.0%})."
    )
    if curve.fallback:
        return f"{share} There is no curve, because {curve.fallback}: Conf1 stands in."
    return share


def shrinkage_words(curve: ConfidenceCurve) -> str:
    """How far the curve is drawn to one temperature for all classes; empty where it is not.

    Examples
    --------
    >>> nothing = np.zeros(2)
    >>> shrinkage_words(
    ...     ConfidenceCurve(0, *[nothing] * 4, 0.1, 3, 1, 0.5, rows=nothing + 4, shrinkage=20.0)
    ... )
    'At every score 20 rows are added that came out as one temperature for all classes says. ...'
    """
    if curve.shrinkage is None or curve.rows is None:
        return ""
    if np.isinf(curve.shrinkage):
        return (
            "The curves of single classes do not predict held-out rows better than one "
            "temperature for all classes, so that temperature answers."
        )
    amount = f"{curve.shrinkage:,.0f}" if curve.shrinkage >= 1 else f"{curve.shrinkage:g}"
    rows = "row is" if curve.shrinkage == 1 else "rows are"
    return (
        f"At every score {amount} {rows} added that came out as one temperature for all classes "
        f"says. Of the class itself at most {curve.rows.max():,.0f} are near a score."
    )


def confidence_alt(curve: ConfidenceCurve, name: str) -> str:
    """Alternative text of the confidence curve."""
    if curve.fallback or not curve.score.size:
        return f"Confidence of predictions of {name}: {curve.fallback or 'no rows'}"
    at = np.linspace(0, curve.score.size - 1, 4).astype(int)
    answer = curve.confidence if curve.safe is None else curve.safe
    points = ", ".join(f"{answer[i]:.0%} at score {curve.score[i]:.2f}" for i in at)
    return (
        f"Confidence against score for predictions of {name}: {points}. Below it the rows of each "
        f"bin and the densities of {curve.n_tp:,} true and {curve.n_fp:,} false positives."
    )


def bandwidth_words(
    recommended: Sequence[ConfidenceCurve],
    monotone: Sequence[ConfidenceCurve],
    class_names: Sequence[str],
) -> str:
    """How far forbidding every dip widens the bandwidths."""
    pairs = [
        (mon.bandwidth / mon2.bandwidth, mon2, mon)
        for mon2, mon in zip(recommended, monotone, strict=True)
        if np.isfinite(mon.bandwidth) and np.isfinite(mon2.bandwidth) and mon2.bandwidth > 0
    ]
    if not pairs:
        return "No class has both right and wrong predictions, so there is no curve to compare."
    ratio, mon2, mon = max(pairs, key=lambda pair: pair[0])
    if ratio < 1.01:
        return "Both rules choose the same bandwidths: no curve has a dip to iron out."
    return (
        f"Removing every dip costs most for class {class_names[mon.label]}: a bandwidth of "
        f"{mon.bandwidth:.2g} instead of {mon2.bandwidth:.2g}."
    )


def bandwidth_alt(
    recommended: Sequence[ConfidenceCurve],
    monotone: Sequence[ConfidenceCurve],
    anchors: Sequence[HistogramAnchor],
    class_names: Sequence[str],
) -> str:
    """Alternative text of the grid of bandwidths: its panels, and the strips of rows at their feet.

    Examples
    --------
    >>> bandwidth_alt([], [], [], [])
    'No class has a panel.'
    """
    if not anchors:
        return "No class has a panel."
    rows = [int(anchor.count.sum()) for anchor in anchors]
    least, most = int(np.argmin(rows)), int(np.argmax(rows))
    between = (
        f"from {rows[least]:,} for class {class_names[anchors[least].label]} to {rows[most]:,} for "
        f"class {class_names[anchors[most].label]}"
        if len(rows) > 1
        else f"{rows[0]:,} in all"
    )
    return (
        f"{counted(len(rows), 'panel')}, one for each class: two curves of confidence against "
        f"score over a histogram. {bandwidth_words(recommended, monotone, class_names)} A strip at "
        f"the foot of each panel shows the right and wrong rows of each bin: {between}."
    )


def noise_words(
    halves: Sequence[tuple[HistogramAnchor, HistogramAnchor]], class_names: Sequence[str]
) -> str:
    """How far two halves of the same rows disagree, on average and at worst."""
    gaps, weights, places = [], [], []
    for one, two in halves:
        gap = np.abs(one.confidence - two.confidence)
        known = np.flatnonzero(np.isfinite(gap))
        gaps.append(gap[known])
        weights.append((one.count + two.count)[known])
        places += [(one.label, one.edges[at], one.edges[at + 1]) for at in known]
    gap, weight = np.concatenate(gaps), np.concatenate(weights)
    if gap.size == 0:
        return "No bin has rows in both halves, so their noise cannot be shown."
    if gap.max() < 0.005:
        return (
            "Two halves of the same rows agree in every bin to within half a point "
            f"({counted(round(weight.sum()), 'row')})."
        )
    worst = int(np.argmax(gap))
    label, low, high = places[worst]
    return (
        f"Two halves of the same rows differ by {100 * np.average(gap, weights=weight):.1f} points "
        f"on average ({counted(round(weight.sum()), 'row')}), and by {100 * gap.max():.0f} points "
        f"for class {class_names[label]} at scores {low:.1f} to {high:.1f} "
        f"({counted(round(weight[worst]), 'row')}). A difference of this size between two curves "
        "proves nothing."
    )


def histogram_words(histogram: ScoreHistogram) -> str:
    """How sure the model was where it was wrong, against where it was right."""
    wrong, right = histogram.wrong.sum(), histogram.correct.sum()
    if wrong == 0:
        return f"All {right:,.0f} predictions are right: there is no error to look at."
    if right == 0:
        return f"All {wrong:,.0f} predictions are wrong."
    middle = (histogram.edges[:-1] + histogram.edges[1:]) / 2
    sure = histogram.edges[:-1] >= 0.9 - 1e-9
    n_sure = histogram.wrong[sure].sum()
    return (
        f"Wrong predictions were stated with {middle @ histogram.wrong / wrong:.0%} confidence on "
        f"average, right ones with {middle @ histogram.correct / right:.0%}; {n_sure:,.0f} of "
        f"{wrong:,.0f} errors were made above 90%."
    )


def confusion_alt(confusion: Confusion, which: str, class_names: Sequence[str]) -> str:
    """Alternative text of one of the three tables."""
    values = getattr(confusion, which)
    form = "{:,.0f}" if which == "joint" else "{:.2f}"
    diagonal = ", ".join(
        f"{name} {form.format(value)}"
        for name, value in zip(class_names[:10], np.diag(values), strict=False)
    )
    title = {
        "joint": "Row counts by true and predicted class",
        "confusion": "Shares of each true class by predicted class",
        "reverse": "Shares of each predicted class by true class",
    }[which]
    return f"{title}. On the diagonal: {diagonal}."


def reliability_alt(curve: ReliabilityCurve) -> str:
    """Alternative text of a reliability diagram: its bins with rows, at most eight."""
    filled = np.flatnonzero(curve.count > 0)
    shown = filled[np.unique(np.linspace(0, len(filled) - 1, 8).astype(int))] if filled.size else []
    bins = ", ".join(
        f"says {curve.confidence[at]:.2f} sees {curve.accuracy[at]:.2f} ({curve.count[at]:,} rows)"
        for at in shown
    )
    return f"Reliability diagram of {curve.n:,} rows: {bins}."


def losses_words(losses: MethodLosses, methods: Sequence[str]) -> str:
    """Which method loses least over all rows, and whether the model does clearly worse."""
    at = [losses.methods.index(key) for key in methods if key in losses.methods]
    best = min(at, key=lambda i: float(losses.overall_nll[i]))
    sentence = (
        f"Over all rows {losses.labels[best]} has the lowest mean log loss: "
        f"{losses.overall_nll[best]:.3f} ({losses.overall_nll_low[best]:.3f} to "
        f"{losses.overall_nll_high[best]:.3f}; {losses.rows})"
    )
    model = losses.methods.index("uncalibrated") if "uncalibrated" in losses.methods else best
    if model == best:
        return sentence + "."
    clear = losses.overall_nll_low[model] > losses.overall_nll_high[best]
    return (
        f"{sentence}; uncalibrated {losses.overall_nll[model]:.3f}"
        f"{', clearly more.' if clear else ', which is within the intervals.'}"
    )


def losses_alt(losses: MethodLosses, methods: Sequence[str]) -> str:
    """Alternative text of the losses: the mean over all rows of each method."""
    values = ", ".join(
        f"{losses.labels[i]} {losses.overall_nll[i]:.3f}"
        for i, key in enumerate(losses.methods)
        if key in methods
    )
    return f"Mean log loss by method and predicted class, {losses.rows}. Over all rows: {values}."
