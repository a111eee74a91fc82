"""Reliability diagrams: stated probabilities against observed frequencies, with intervals.

The diagrams also have a smooth and an isotonic curve. The finding says in one sentence where the
model is over- or under-confident. Class names are not escaped; callers do that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import bdtrik
from scipy.stats import rankdata

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics.calibration_curves import (
    FineCells,
    fine_cells,
    isotonic_curve,
    smooth_curve,
)
from kdcal_core.diagnostics.estimate import (
    CONFIDENCE_GAP,
    EVENT_GAP,
    LEAST_ROWS,
    Estimate,
    reference_text,
    value_text,
)
from kdcal_core.diagnostics.targets import (
    BinTable,
    Kind,
    Strategy,
    Target,
    bin_table,
    check_choice,
    check_level,
    confidence_target,
    edges_for,
    null_rates,
    overall_effect,
    targets,
)
from kdcal_core.shown import Shown
from kdcal_core.statistics import BinDependence, binomial_draws, clopper_pearson
from kdcal_core.text import counted, in_sentence, number_text

BAND_DRAWS = 2000


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """One reliability diagram. Bins without rows have count 0 and NaN elsewhere.

    All arrays of length B run over the bins.

    Attributes
    ----------
    label : int or None
        The class of a "top-label" or "class" curve; None for "confidence".
    edges : (B + 1,)
        Bin edges; bins are (a, b], the first closed at its left end.
    count : (B,) int
        Rows in the bin. ``weight`` holds the sum of their weights (the same without weights),
        ``effective`` Kish's effective number of rows, (sum w)^2 / sum w^2 (likewise).
    confidence, accuracy : (B,)
        Mean stated probability, and observed frequency.
    low, high : (B,)
        Clopper-Pearson interval of the observed frequency.
    band_low, band_high : (B,)
        Consistency band: it contains the observed frequency of a perfectly calibrated model with
        probability ``level``.
    smooth_x, smooth_y, smooth_low, smooth_high : (G,)
        Kernel-smoothed curve on the range of the data with a pointwise band.
    isotonic_x, isotonic_y : (S,)
        Corners of the isotonic (CORP) step function.
    together : BinDependence or None
        How the bins vary together where rows depend on one another.
    """

    label: int | None
    n: int
    edges: FloatArray
    count: IntArray
    weight: FloatArray
    effective: FloatArray
    confidence: FloatArray
    accuracy: FloatArray
    low: FloatArray
    high: FloatArray
    band_low: FloatArray
    band_high: FloatArray
    smooth_x: FloatArray
    smooth_y: FloatArray
    smooth_low: FloatArray
    smooth_high: FloatArray
    isotonic_x: FloatArray
    isotonic_y: FloatArray
    together: BinDependence | None = None

    def table(self) -> pd.DataFrame:
        """One row per bin: the data of the diagram, for download."""
        return pd.DataFrame(
            {
                "bin_low": self.edges[:-1],
                "bin_high": self.edges[1:],
                "count": self.count,
                "weight": self.weight,
                "mean_confidence": self.confidence,
                "observed_frequency": self.accuracy,
                "interval_low": self.low,
                "interval_high": self.high,
                "consistency_low": self.band_low,
                "consistency_high": self.band_high,
            }
        )


@dataclass(frozen=True, eq=False, repr=False)
class Reliability(Shown):
    """Reliability diagrams of one kind: one curve for "confidence", K for the other kinds."""

    kind: Kind
    strategy: Strategy
    n_bins: int
    level: float
    n: int
    curves: tuple[ReliabilityCurve, ...]

    def _shown(self) -> Iterator[tuple[str, str]]:
        yield "Reliability", reliability_finding(self)
        curves = counted(len(self.curves), "curve")
        yield "Diagram", f"{self.kind}, {curves}, {self.n_bins:,} {self.strategy} bins"
        yield "Rows", f"{self.n:,}"


def reliability(
    proba: Any,
    y: Any,
    *,
    kind: Kind = "confidence",
    n_bins: int = 15,
    strategy: Strategy = "uniform",
    level: float = 0.95,
    sample_weight: Any = None,
    label: int | None = None,
    smooth: bool = True,
    seed: int = 0,
) -> Reliability:
    """Reliability diagrams of a classifier.

    Parameters
    ----------
    proba : (n, K) array or data frame, or (n,)
        Probabilities; rows sum to one. A single column is that of the second of two classes;
        columns of a frame that are named as the classes may stand in any order.
    y : (n,) array of int or str
        True classes, 0 to K - 1, or by name; columns are then in the names' sorted order.
    kind : {"confidence", "top-label", "class"}
        "confidence": for all rows, the top label's probability against whether it is right.
        "top-label": the same for the rows of each predicted class (Salamon et al., section IV).
        "class": for all rows, p_k against whether the class is k.
    n_bins, strategy
        "uniform": equal widths on [0, 1]; "quantile": equal mass, where ties may merge bins.
        Bins are (a, b], the first closed at 0 (Salamon et al., Eq. 5).
    level : float
        Level of all intervals and bands, between 0 and 1.
    sample_weight : (n,) array, optional
        Positive row weights; intervals then use Kish's effective number of rows. A
        :class:`kdcal_core.statistics.RowDesign` also says how rows depend on one another; the rows
        of each bin are then divided by their design effect.
    label : int, optional
        Compute only this class's curve; not for "confidence".
    smooth : bool
        Whether to compute the smooth and isotonic curves; without them they are empty.
    seed : int
        Seed of the consistency band's 2,000 draws.

    Returns
    -------
    Reliability
        One curve for "confidence", otherwise one for each class.

    Raises
    ------
    InputError
        For arrays or settings not of this form; the message names the row.

    Notes
    -----
    The interval of a bin is Clopper-Pearson's. The consistency band contains, with probability
    ``level``, the frequency that the bin would show if every stated probability were right. It is
    simulated, not approximated by a normal, so it is also right near 1, where misses are few.

    Examples
    --------
    >>> proba = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]]
    >>> curve = reliability(proba, [0, 0, 1, 0], n_bins=2).curves[0]
    >>> curve.count.tolist(), float(curve.confidence[1]), float(curve.accuracy[1])
    ([0, 4], 0.75, 0.75)
    """
    found = targets(proba, y, sample_weight, kind, label)
    return _diagrams(found, len(np.asarray(y)), kind, n_bins, strategy, level, smooth, seed)


def confidence_reliability(
    confidence: Any,
    correct: Any,
    *,
    n_bins: int = 15,
    strategy: Strategy = "uniform",
    level: float = 0.95,
    sample_weight: Any = None,
    smooth: bool = True,
    seed: int = 0,
) -> Reliability:
    """The "confidence" diagram of calibrated confidences (n,) and whether each row was right.

    Settings as in :func:`reliability`.

    Examples
    --------
    >>> result = confidence_reliability([0.9, 0.8, 0.7, 0.6], [1, 1, 1, 0], n_bins=2)
    >>> float(result.curves[0].accuracy[1])
    0.75
    """
    target = confidence_target(confidence, correct, sample_weight)
    n = len(target.score)
    return _diagrams((target,), n, "confidence", n_bins, strategy, level, smooth, seed)


def _diagrams(
    found: tuple[Target, ...],
    n: int,
    kind: Kind,
    n_bins: int,
    strategy: Strategy,
    level: float,
    smooth: bool,
    seed: int,
) -> Reliability:
    check_choice("strategy", strategy, ("uniform", "quantile"))
    check_level(level)
    rng = np.random.default_rng(seed)
    curves = tuple(_curve(t, edges_for(t, n_bins, strategy), level, smooth, rng) for t in found)
    return Reliability(kind, strategy, n_bins, level, n, curves)


def _curve(
    target: Target, edges: FloatArray, level: float, smooth: bool, rng: np.random.Generator
) -> ReliabilityCurve:
    cells, table = fine_cells(target) if smooth else None, bin_table(target, edges)
    if table.together is not None and len(target.score):
        table = replace(table, together=replace(table.together, whole=overall_effect(target)))
    return curve_of_bins(target.label, len(target.score), table, cells, level, rng)


def curve_of_bins(
    label: int | None,
    n: int,
    table: BinTable,
    cells: FineCells | None,
    level: float,
    rng: np.random.Generator,
) -> ReliabilityCurve:
    """The curve of ``n`` rows that are binned; without cells it has no smooth part."""
    low, high = clopper_pearson(table.rate, table.effective, level)
    band_low, band_high = consistency_band(table, level, rng)
    nothing = np.empty(0)
    smoothed, steps = (nothing, nothing, nothing, nothing), (nothing, nothing)
    if cells is not None:
        some = np.flatnonzero(table.count)
        effect: FloatArray | float = 1.0
        if table.together is not None and len(some):
            effect = np.interp(cells.score, table.score[some], table.design_effect[some])
        smoothed, steps = smooth_curve(cells, level, effect), isotonic_curve(cells)
    return ReliabilityCurve(
        label,
        n,
        table.edges,
        table.count.astype(np.int64),
        table.weight,
        table.effective,
        table.score,
        table.rate,
        low,
        high,
        band_low,
        band_high,
        *smoothed,
        *steps,
        table.together,
    )


def consistency_band(
    table: BinTable, level: float, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Limits (B,), (B,) of each bin's frequency under perfect calibration; NaN if empty."""
    rates, _ = null_rates(table, BAND_DRAWS, rng)
    tail = (1.0 - level) / 2.0
    # frequencies are discrete: quantiles must be values that occur, not means between them
    low, high = np.quantile(np.nan_to_num(rates), [tail, 1.0 - tail], axis=0, method="inverted_cdf")
    some = table.count > 0
    return np.where(some, low, np.nan), np.where(some, high, np.nan)


NULL_DRAWS = 2000


def reliability_finding(
    result: Reliability,
    estimate: Estimate | None = None,
    class_names: Sequence[str] | None = None,
) -> str:
    """Where the model is over- or under-confident, or that nothing exceeds the noise.

    A single curve is judged by its mean gap, its ECE and its worst bin, tested jointly: a share of
    1 - ``level`` of calibrated models is called faulty. Each of several curves is judged by
    whether more of its bins leave the consistency band than chance explains, or one bin or all
    rows together by too much; of dependent rows by the test of a single curve. Either is corrected
    for the number of curves.

    The sentence names the run of neighbouring bins outside the band, on one side, with the largest
    sum of gaps over rows; for one of several curves without such a run, all its rows. It gives the
    Clopper-Pearson interval for the run's number of rows (the effective one with row weights).
    ``estimate`` is a calibration error or gap of the same rows. If its own interval excludes 0 but
    the joint test does not reject, the sentence says so.

    Examples
    --------
    >>> from kdcal_core.diagnostics import confidence_reliability
    >>> wrong = [0] * 30 + [1] * 70
    >>> reliability_finding(confidence_reliability([0.95] * 100, wrong, n_bins=10))
    'Over-confident above 0.9: says 0.95, sees 0.70 (0.60 to 0.79, 100 rows).'
    """
    alone = len(result.curves) == 1
    found: list[tuple[ReliabilityCurve, _Stretch]] = []
    departs = beyond_noise(result)
    for curve, off in zip(result.curves, departs, strict=True):
        stretch = _worst_stretch(curve) if off else None
        if off and stretch is None and not alone:
            stretch = _all_rows(curve, result.level)
        if stretch is not None:
            found.append((curve, stretch))
    if not found:
        return _no_stretch(result, estimate, sum(departs))
    curve, stretch = max(found, key=lambda pair: pair[1].moved)
    sentence = _stretch_text(stretch, result.level)
    if curve.label is None:
        return sentence
    name = f"class {class_names[curve.label] if class_names is not None else curve.label}"
    if alone:
        return f"{name[0].upper()}{name[1:]}: {in_sentence(sentence)}"
    among = (
        "is off by more than noise,"
        if len(found) == 1
        else "are off by more than noise, most of all"
    )
    lead = f"{len(found)} of {len(result.curves)} classes {among} {name}"
    return f"{lead}: {in_sentence(sentence)}"


def beyond_noise(result: Reliability) -> tuple[bool, ...]:
    """Whether each curve is off by more than noise, as :func:`reliability_finding` judges it.

    Examples
    --------
    >>> from kdcal_core.diagnostics import confidence_reliability
    >>> beyond_noise(confidence_reliability([0.95] * 100, [0] * 30 + [1] * 70, n_bins=10))
    (True,)
    """
    if len(result.curves) == 1:
        return (_departs(result.curves[0], result.level),)
    return tuple(_beyond_chance(curve, result) for curve in result.curves)


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
    """1 if a bin's frequency is above its band, -1 if below, 0 if inside or empty."""
    tiny = 1e-12
    above = curve.accuracy > curve.band_high + tiny
    below = curve.accuracy < curve.band_low - tiny
    return above.astype(np.int64) - below.astype(np.int64)


@lru_cache(maxsize=256)  # a page asks again at every click
def _departs(curve: ReliabilityCurve, level: float) -> bool:
    """Whether mean gap, ECE and worst bin are jointly unlikely for a calibrated model."""
    return _joint_test(curve)[0] <= 1.0 - level


def _joint_test(curve: ReliabilityCurve) -> tuple[float, float]:
    """p value of mean gap, ECE and worst bin together, and of the mean gap alone.

    The smallest of their three p values is compared with its own distribution over draws of
    calibrated outcomes (Westfall and Young 1993), because the three tests are far from independent.
    """
    some = curve.count > 0
    effect = np.ones(len(some)) if curve.together is None else curve.together.effect
    rows = np.maximum(np.rint((curve.effective * effect)[some]), 1.0)
    said, mass = np.clip(curve.confidence[some], 0.0, 1.0), curve.weight[some]
    rng = np.random.default_rng(0)
    drawn = binomial_draws(rng, rows, said, NULL_DRAWS) / rows
    if curve.together is not None:
        shared = replace(curve.together, root=curve.together.root[:, some])
        drawn = said + shared.scattered(drawn - said, np.sqrt(said * (1.0 - said)), rng)
    gap = np.vstack([curve.accuracy[some], drawn]) - said  # the observed one first
    # a bin that states 0 or 1 has no noise; half a row of each outcome keeps it finite
    chance = (said * rows + 0.5) / (rows + 1.0)
    size = np.abs(gap) * np.sqrt(rows / (chance * (1.0 - chance)))
    mean = np.abs(gap @ mass)
    if curve.together is not None and some.any():
        by_bins = _rows_together(curve, curve.together, np.flatnonzero(some))
        if np.isfinite(by_bins):  # the mean of all rows varies at least as much as bins say
            mean[1:] *= max(by_bins / _rows_of_all(curve, curve.together), 1.0) ** 0.5
    measures = (mean, np.abs(gap) @ mass, size.max(axis=1, initial=0.0))
    shares = [_share_above(one) for one in measures]
    least = np.min(shares, axis=0)
    return float(np.mean(least <= least[0])), float(shares[0][0])


def _share_above(values: FloatArray) -> FloatArray:
    """Share of the values that are at least as large as each, up to rounding."""
    rounded = np.round(values, 12)
    return np.asarray(rankdata(-rounded, method="max") / len(values))


def _beyond_chance(curve: ReliabilityCurve, result: Reliability) -> bool:
    """Whether more bins leave the band than chance explains, or a bin or all rows leave it too far.

    For several curves. All three are corrected for the number of curves, the second also for the
    number of bins (Bonferroni). Bins of dependent rows leave the band together, so those are judged
    as a single curve is; for more curves than its draws allow, by the last two.
    """
    some = curve.count > 0
    filled = int(some.sum())
    if not filled:  # a class that is never predicted
        return False
    miss = (1.0 - result.level) / len(result.curves)
    if curve.together is None:
        # the binomial quantile of the number of bins outside
        most = np.ceil(bdtrik(1.0 - miss, filled, 1.0 - result.level))
        if np.count_nonzero(_outside(curve)) > most:
            return True
    elif miss * NULL_DRAWS >= 2.0:
        return _departs(curve, 1.0 - miss)
    if _all_rows(curve, 1.0 - miss) is not None:
        return True
    low, high = clopper_pearson(curve.accuracy[some], curve.effective[some], 1.0 - miss / filled)
    said = curve.confidence[some]
    return bool(np.any((said < low) | (said > high)))


def _worst_stretch(curve: ReliabilityCurve) -> _Stretch | None:
    filled = np.flatnonzero(curve.count > 0)
    side = _outside(curve)[filled]
    if not side.any():
        return None
    cut = np.flatnonzero(np.diff(side)) + 1
    runs = [run for run in np.split(filled, cut) if _outside(curve)[run[0]] != 0]
    found = [one for one in (_pool(curve, run) for run in runs) if one.rows >= LEAST_ROWS]
    return max(found, key=lambda stretch: stretch.moved, default=None)


def _all_rows(curve: ReliabilityCurve, level: float) -> _Stretch | None:
    """All bins as one, if its interval leaves what it states."""
    whole = _pool(curve, np.flatnonzero(curve.count > 0))
    if curve.together is not None:
        rows = min(whole.effective, _rows_of_all(curve, curve.together))
        whole = replace(whole, effective=rows)
    low, high = clopper_pearson(whole.seen, whole.effective, level)
    return None if low <= whole.said <= high or whole.rows < LEAST_ROWS else whole


def _pool(curve: ReliabilityCurve, run: IntArray) -> _Stretch:
    mass = curve.weight[run]
    said = float(mass @ curve.confidence[run] / mass.sum())
    seen = float(mass @ curve.accuracy[run] / mass.sum())
    rows = int(curve.count[run].sum())
    effective = float(mass.sum() ** 2 / (mass**2 / curve.effective[run]).sum())
    if curve.together is not None:
        effective = min(effective, _rows_together(curve, curve.together, run))
    moved = float(mass.sum()) * abs(seen - said)
    low, high = float(curve.edges[run[0]]), float(curve.edges[run[-1] + 1])
    return _Stretch(low, high, said, seen, rows, effective, moved)


def _rows_together(curve: ReliabilityCurve, together: BinDependence, run: IntArray) -> float:
    """How many independent rows say as much about the mean of these bins, which vary together."""
    share = curve.weight[run] / curve.weight[run].sum()
    said = np.clip(curve.confidence[run], 0.0, 1.0)
    spread = said * (1.0 - said)
    rows = np.maximum(curve.effective[run] * together.effect[run], 1.0)
    alone = together.alone**2 * float(share**2 @ (spread / rows))
    shared = float(np.square(together.root[:, run] @ (np.sqrt(spread) * share)).sum())
    mean = float(share @ said)
    return mean * (1.0 - mean) / (alone + shared) if alone + shared > 0.0 else np.inf


def _rows_of_all(curve: ReliabilityCurve, together: BinDependence) -> float:
    """How many independent rows say as much about the mean of all rows."""
    some = np.flatnonzero(curve.count)
    mass, rows = curve.weight[some], (curve.effective * together.effect)[some]
    return float(mass.sum() ** 2 / (mass**2 / rows).sum()) / together.whole


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


_GAP_WORDS = {
    CONFIDENCE_GAP: ("over-confident", "under-confident"),
    EVENT_GAP: ("too high", "too low"),
}


def _gap_text(gap: Estimate) -> str:
    """The gap as a word and sizes without signs, in percentage points."""
    high_word, low_word = _GAP_WORDS[gap.label]
    word = high_word if gap.value > 0 else low_word
    width = 100.0 * (gap.high - gap.low)
    low, high = sorted((abs(gap.low), abs(gap.high)))
    said, least, most = (
        number_text(100.0 * v, width, largest=100.0 * high) for v in (abs(gap.value), low, high)
    )
    return f"{word} by {said} points on average ({least} to {most})"


def _no_stretch(result: Reliability, estimate: Estimate | None, departs: int) -> str:
    """What is said of rows of which ``departs`` curves are off, but by no bin that can be named."""
    rows = f"{'this' if result.n == 1 else 'these'} {counted(result.n, 'row')}"
    if (classes := len(result.curves)) > 1:
        if departs:
            lead = f"Not perfectly calibrated in {departs} of {classes} classes, on {rows}"
            return f"{lead}, though no single bin shows it."
        return f"Within sampling noise of perfect calibration in every class, on {rows}."
    clear = estimate is not None and (estimate.low > 0.0 or estimate.high < 0.0)
    if departs:
        lead = f"Not perfectly calibrated on {rows}, though no single bin shows it"
    else:
        lead = f"Within sampling noise of perfect calibration on {rows}"
        lead += ", as several measures are tested at once" * clear
    if estimate is None:
        alone = not departs and _joint_test(result.curves[0])[1] <= 1.0 - result.level
        return f"{lead}{', though their mean gap alone exceeds it' * alone}."
    value = f"{estimate.label} {value_text(estimate)}"
    if clear and estimate.label in _GAP_WORDS:
        value = _gap_text(estimate)
    if estimate.expected is not None:
        value += f" against {reference_text(estimate)}"
    return f"{lead}: {value}."
