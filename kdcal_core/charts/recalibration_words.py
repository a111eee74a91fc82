"""What recalibration gained, in plain sentences with numbers.

The sentences hold names as they came: escape them on the way to a screen.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kdcal_core.charts.predictive_density import DensityPanel
from kdcal_core.charts.recalibration_intervals import RowIntervals
from kdcal_core.charts.recalibration_measures import MEASURES, MeasuredRecalibration
from kdcal_core.charts.recalibration_selection import SelectionCurve
from kdcal_core.data.types import FloatArray
from kdcal_core.diagnostics import Estimate, estimate_text
from kdcal_core.text import number_text


def measures_words(methods: Sequence[MeasuredRecalibration], measure: str = "crps") -> str:
    """Which method has the lowest mean score, and whether it beats the model on the same rows."""
    known = [
        method
        for method in methods
        if method.key != "truth"
        and measure in method.scores.rows
        and np.isfinite(method.scores.rows[measure].value)
    ]
    title = MEASURES[measure]
    if not known:
        return f"{title} is not defined for any method here."
    best = min(known, key=lambda method: method.scores.rows[measure].value)
    told = f"{best.label} has the lowest {title}: {estimate_text(best.scores.rows[measure])}"
    model = next((method for method in known if method.key == "model"), None)
    if model is None:
        return f"{told}."
    if model is best:
        return f"{told}. No repair improves on it."
    change = best.differences.get(measure)
    if change is None:
        return f"{told}, against {estimate_text(model.scores.rows[measure])} before."
    return f"{told}. {_change_words(change, model.scores.rows[measure].value)}"


def _change_words(change: Estimate, before: float) -> str:
    width = change.high - change.low
    value, low, high = (number_text(v, width) for v in (change.value, change.low, change.high))
    share = f", {abs(change.value / before):.0%} {_side(change.value)}" if before > 0 else ""
    clear = change.high < 0 or change.low > 0
    ending = "" if clear else "; that may be chance"
    return f"Row by row it changes by {value} ({low} to {high}){share}{ending}."


def _side(change: float) -> str:
    return "less" if change < 0 else "more"


def measures_alt(methods: Sequence[MeasuredRecalibration], measures: Sequence[str]) -> str:
    """Alternative text of the measures: every value."""
    told = "; ".join(
        f"{method.label}: "
        + ", ".join(
            f"{MEASURES[key]} {estimate_text(method.scores.rows[key])}"
            for key in measures
            if key in method.scores.rows
        )
        for method in methods
    )
    return f"Measures by method with their intervals. {told}."


def density_words(panels: Sequence[DensityPanel]) -> str:
    """For each row where its outcome fell, before and after.

    A PIT near 0 or 1 is an outcome that the distribution took for nearly impossible.
    """
    told = "; ".join(
        f"{shown.name}: outcome {shown.outcome:,.6g}, PIT "
        + ", recalibrated ".join(f"{curve.pit:.4f}" for curve in shown.curves)
        for shown in panels
    )
    smoothed = any(curve.smoothed for shown in panels for curve in shown.curves)
    note = " Densities of samples and quantiles are smoothed." if smoothed else ""
    return f"{told}.{note}"


def density_alt(panels: Sequence[DensityPanel]) -> str:
    """Alternative text of the densities: their 95% intervals and the outcomes."""
    names = {"model": "model", "calibrated": "recalibrated"}
    told = "; ".join(
        f"{shown.name}: "
        + ", ".join(
            f"{names[curve.who]} {curve.low:,.4g} to {curve.high:,.4g}" for curve in shown.curves
        )
        + f", outcome {shown.outcome:,.6g}"
        for shown in panels
    )
    return f"Predictive densities. 95% intervals: {told}."


def intervals_words(
    outcomes: FloatArray, methods: Sequence[RowIntervals], level: float = 0.95
) -> str:
    """How many of the chosen rows each method's intervals hold, and how wide they are.

    Examples
    --------
    >>> one = RowIntervals("model", "Model", np.zeros(2), np.ones(2), np.full(2, 2.0))
    >>> intervals_words(np.array([1.0, 5.0]), [one])
    'Of 2 chosen rows the 95% intervals hold: Model 1, mean width 2. Few rows say little about
     coverage; the whole set does.'
    """
    told = "; ".join(
        f"{shown.label} {int(((outcomes >= shown.low) & (outcomes <= shown.high)).sum()):,}, mean "
        f"width {np.mean(shown.high - shown.low):,.4g}"
        for shown in methods
    )
    return (
        f"Of {outcomes.size:,} chosen rows the {level:.0%} intervals hold: {told}. Few rows say "
        "little about coverage; the whole set does."
    )


def selection_words(
    curves: Sequence[SelectionCurve], chosen: tuple[str, int], model: Estimate | None = None
) -> str:
    """The choice with its CRPS, and how many others are as good: their intervals reach it.

    Examples
    --------
    >>> curve = SelectionCurve("inputs", np.array([50.0, 500.0]), np.array([3.0, 2.0]),
    ...                        np.array([2.9, 2.0]), np.array([3.1, 2.0]))
    >>> selection_words([curve], ("inputs", 500))
    'Cross-fitted CRPS is lowest with 500 neighbours in inputs: 2. No other of the 2 choices is as
     good within its interval.'
    """
    curve = next(each for each in curves if each.space == chosen[0])
    value = float(curve.crps[int(np.argmin(np.abs(curve.ks - chosen[1])))])
    total = sum(each.ks.size for each in curves)
    near = sum(int((each.low <= value).sum()) for each in curves) - 1
    told = f"Cross-fitted CRPS is lowest with {chosen[1]:,} neighbours in {chosen[0]}: {value:,.4g}"
    if model is not None:
        told += f", against {estimate_text(model)} without repair"
    others = f"{near:,} other" if near else "No other"
    verb = "are" if near > 1 else "is"
    return f"{told}. {others} of the {total} choices {verb} as good within its interval."
