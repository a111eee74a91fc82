"""Results as one plain sentence with numbers. Class names pass through: callers escape them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtrik
from scipy.stats import rankdata

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics.estimate import LEAST_ROWS, Estimate
from kdcal_core.diagnostics.reliability import Reliability, ReliabilityCurve
from kdcal_core.statistics import clopper_pearson
from kdcal_core.text import counted, number_text

NULL_DRAWS = 2000


def reliability_finding(
    result: Reliability,
    estimate: Estimate | None = None,
    class_names: Sequence[str] | None = None,
) -> str:
    """Where the model is over- or under-confident, or that nothing exceeds the noise.

    A single curve is judged by its mean gap, its ECE and its worst bin, tested jointly: of
    calibrated models a share of 1 - ``level`` is named. Each of several curves is judged by
    whether more of its bins leave the consistency band than chance explains, or one by too much.
    The sentence names the run of neighbouring bins outside the band, on one side, with the largest
    sum of gaps over rows, and the Clopper-Pearson interval of its row count (the effective one
    with row weights). ``estimate`` is a calibration error or gap of the same rows. If its own
    interval excludes 0 but the joint test does not reject, the sentence says so.

    Examples
    --------
    >>> from kdcal_core.diagnostics import confidence_reliability
    >>> wrong = [0] * 30 + [1] * 70
    >>> reliability_finding(confidence_reliability([0.95] * 100, wrong, n_bins=10))
    'Over-confident above 0.9: says 0.95, sees 0.70 (0.60 to 0.79, 100 rows).'
    """
    alone = len(result.curves) == 1
    found: list[tuple[ReliabilityCurve, _Stretch]] = []
    departs = [
        _departs(curve, result.level) if alone else _beyond_chance(curve, result)
        for curve in result.curves
    ]
    for curve, off in zip(result.curves, departs, strict=True):
        stretch = _worst_stretch(curve) if off else None
        if stretch is not None:
            found.append((curve, stretch))
    if not found:
        return _no_stretch(result, estimate, alone and departs[0])
    curve, stretch = max(found, key=lambda pair: pair[1].moved)
    sentence = _stretch_text(stretch, result.level)
    if curve.label is None:
        return sentence
    name = f"class {class_names[curve.label] if class_names is not None else curve.label}"
    classes = f"{len(found)} of {len(result.curves)} classes"
    if alone:
        return f"{name[0].upper()}{name[1:]}: {sentence[0].lower()}{sentence[1:]}"
    lead = f"{classes} are off by more than noise, most of all {name}"
    return f"{lead}: {sentence[0].lower()}{sentence[1:]}"


@dataclass(frozen=True)
class _Stretch:
    """Neighbouring bins outside the band on one side, pooled."""

    low: float
    high: float
    said: float
    seen: float
    rows: int
    effective: float
    moved: float


def _outside(curve: ReliabilityCurve) -> IntArray:
    """1 where a bin sees more than its band, -1 where less, 0 inside or empty."""
    tiny = 1e-12
    above = curve.accuracy > curve.band_high + tiny
    below = curve.accuracy < curve.band_low - tiny
    return above.astype(np.int64) - below.astype(np.int64)


def _departs(curve: ReliabilityCurve, level: float) -> bool:
    """Whether mean gap, ECE and worst bin at once are rare for a calibrated model.

    The smallest of their three p-values is judged by its own distribution over draws of calibrated
    outcomes (Westfall and Young 1993), because the three are far from independent and reading all
    of them is three tests.
    """
    some = curve.count > 0
    rows = np.maximum(np.rint(curve.effective[some]), 1.0)
    said, mass = np.clip(curve.confidence[some], 0.0, 1.0), curve.weight[some]
    drawn = np.random.default_rng(0).binomial(rows.astype(np.int64), said, (NULL_DRAWS, len(rows)))
    gap = np.vstack([curve.accuracy[some], drawn / rows]) - said  # the observed one first
    # a bin that says 0 or 1 has no noise; half a row of each outcome keeps it finite
    chance = (said * rows + 0.5) / (rows + 1.0)
    size = np.abs(gap) * np.sqrt(rows / (chance * (1.0 - chance)))
    measures = (np.abs(gap @ mass), np.abs(gap) @ mass, size.max(axis=1, initial=0.0))
    least = np.min([_share_above(one) for one in measures], axis=0)
    return bool(np.mean(least <= least[0]) <= 1.0 - level)


def _share_above(values: FloatArray) -> FloatArray:
    """Share of the values that reach each, up to rounding."""
    rounded = np.round(values, 12)
    return np.asarray(rankdata(-rounded, method="max") / len(values))


def _beyond_chance(curve: ReliabilityCurve, result: Reliability) -> bool:
    """More bins outside the band than chance explains, or one bin too far outside for chance.

    Of several curves. Both are corrected for the number of curves, the second also for the number
    of bins (Bonferroni).
    """
    some = curve.count > 0
    filled = int(some.sum())
    miss = 1.0 - result.level
    # the binomial quantile of the number of bins outside
    most = np.ceil(bdtrik(1.0 - miss / len(result.curves), filled, miss))
    strict = 1.0 - miss / (filled * len(result.curves))
    low, high = clopper_pearson(curve.accuracy[some], curve.effective[some], strict)
    said = curve.confidence[some]
    far = np.any((said < low) | (said > high))
    return bool(far or np.count_nonzero(_outside(curve)) > most)


def _worst_stretch(curve: ReliabilityCurve) -> _Stretch | None:
    filled = np.flatnonzero(curve.count > 0)
    side = _outside(curve)[filled]
    if not side.any():
        return None
    cut = np.flatnonzero(np.diff(side)) + 1
    runs = [run for run in np.split(filled, cut) if _outside(curve)[run[0]] != 0]
    found = [one for one in (_pool(curve, run) for run in runs) if one.rows >= LEAST_ROWS]
    return max(found, key=lambda stretch: stretch.moved, default=None)


def _pool(curve: ReliabilityCurve, run: IntArray) -> _Stretch:
    mass = curve.weight[run]
    said = float(mass @ curve.confidence[run] / mass.sum())
    seen = float(mass @ curve.accuracy[run] / mass.sum())
    rows = int(curve.count[run].sum())
    effective = float(mass.sum() ** 2 / (mass**2 / curve.effective[run]).sum())
    moved = float(mass.sum()) * abs(seen - said)
    low, high = float(curve.edges[run[0]]), float(curve.edges[run[-1] + 1])
    return _Stretch(low, high, said, seen, rows, effective, moved)


def _stretch_text(stretch: _Stretch, level: float) -> str:
    word = "Over-confident" if stretch.said > stretch.seen else "Under-confident"
    low, high = (float(v) for v in clopper_pearson(stretch.seen, stretch.effective, level))
    width = high - low
    said, seen, low_text, high_text = (
        number_text(v, width) for v in (stretch.said, stretch.seen, low, high)
    )
    rows = counted(stretch.rows, "row")
    place = _place(stretch.low, stretch.high)
    return f"{word}{place}: says {said}, sees {seen} ({low_text} to {high_text}, {rows})."


def _place(low: float, high: float) -> str:
    if low <= 0.0 and high >= 1.0:
        return ""
    if high >= 1.0:
        return f" above {low:.3g}"
    if low <= 0.0:
        return f" below {high:.3g}"
    return f" between {low:.3g} and {high:.3g}"


def _gap_text(gap: Estimate) -> str:
    """The gap as a word and sizes without signs, in percentage points."""
    word = "over-confident" if gap.value > 0 else "under-confident"
    width = 100.0 * (gap.high - gap.low)
    low, high = sorted((abs(gap.low), abs(gap.high)))
    said, least, most = (
        number_text(100.0 * v, width, largest=100.0 * high) for v in (abs(gap.value), low, high)
    )
    return f"{word} by {said} points on average ({least} to {most})"


def _no_stretch(result: Reliability, estimate: Estimate | None, departs: bool) -> str:
    rows = f"{'this' if result.n == 1 else 'these'} {counted(result.n, 'row')}"
    if len(result.curves) > 1:
        return f"Within sampling noise of perfect calibration in every class, on {rows}."
    clear = estimate is not None and (estimate.low > 0.0 or estimate.high < 0.0)
    if departs:
        lead = f"Not perfectly calibrated on {rows}, though no single bin shows it"
    else:
        lead = f"Within sampling noise of perfect calibration on {rows}"
        lead += ", as several measures are tested at once" * clear
    if estimate is None:
        return f"{lead}."
    width = estimate.high - estimate.low
    value = f"{estimate.label} {number_text(estimate.value, width, estimate.percent)}"
    if clear and estimate.label == "Confidence gap":
        value = _gap_text(estimate)
    if estimate.expected is not None:
        expected = number_text(estimate.expected, width, estimate.percent)
        value += f" against {expected} expected by chance"
    return f"{lead}: {value}."
