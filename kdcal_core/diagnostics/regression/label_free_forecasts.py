"""What can be expected of new forecasts of a regression before their outcomes are known.

The widths of the intervals are known without outcomes. Of an error score only its mean under the
forecasts' own distributions is; how far that is from what is seen, the reference rows show.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics.estimate import Estimate, share_estimate, value_text
from kdcal_core.diagnostics.regression.coverage import CoverageRow, checked_outcome, coverage
from kdcal_core.diagnostics.regression.uniformity import wasserstein
from kdcal_core.diagnostics.targets import check_level
from kdcal_core.distributions import PredictiveDistribution, randomised_pit
from kdcal_core.statistics import (
    Dependence,
    design_effect,
    design_of,
    effective_size,
    mean_interval,
    t_quantile,
)

STATED = (0.5, 0.8, 0.95)
"""Probabilities of the central intervals whose coverage is watched."""

WIDTH_OF = 0.8
"""That of the interval whose width is watched."""

MOST_OUTSIDE = 0.1
"""No estimate if more of the new rows than this are surely unlike all reference rows."""

ASSUMPTIONS = (
    "Outcomes miss their forecasts by the same factor as among the reference rows: their CRPS over "
    "the CRPS that the forecasts themselves expect.",
    "Only the forecasts' distribution changed. A change of what the inputs mean cannot be seen.",
)
NOT_GIVEN = "not given: only labels show it"

_NODES, _WEIGHTS = (one / 2.0 for one in np.polynomial.legendre.leggauss(64))
_NODES = _NODES + 0.5
_BLOCK = 16_384  # rows at a time, to save memory
_LEAST = 50  # reference rows
_LEAST_LABELS = 30  # of a PIT distance
_MATES = 1.05  # rows a cluster, from which the correlation within one can be seen


@dataclass(frozen=True)
class ForecastMeasures:
    """Measures of forecasts whose outcomes are known.

    Attributes
    ----------
    crps, width, pit_distance : Estimate
        The mean CRPS, the mean width of the intervals of probability ``level``, and Wasserstein's
        distance between the PIT values and the uniform distribution.
    coverage : tuple of CoverageRow
        Of the intervals of :data:`STATED`, or of those that the forecasts state nearest to them.
    level : float
        Probability of the intervals whose width is given.
    """

    crps: Estimate
    width: Estimate
    pit_distance: Estimate
    coverage: tuple[CoverageRow, ...]
    level: float


@dataclass(frozen=True)
class LabelFreeForecasts:
    """What can be expected of new forecasts without their outcomes.

    Attributes
    ----------
    reference : ForecastMeasures
        Of the reference rows, from their outcomes.
    crps : Estimate
        The mean CRPS of the new rows; its interval says where it will lie once the outcomes are
        known.
    width : Estimate
        Mean width of their intervals of probability ``reference.level``, which needs no outcome.
    factor : Estimate
        CRPS of the reference rows over the CRPS that their forecasts expect; 1 if calibrated.
    outside : Estimate
        Share of new rows whose predicted median or interval width is beyond those of all
        reference rows.
    covered : bool
        Whether the reference rows cover the new ones. If not, no CRPS is given.
    assumptions, cautions : tuple of str
    n_reference, n_new : int
    """

    reference: ForecastMeasures
    crps: Estimate
    width: Estimate
    factor: Estimate
    outside: Estimate
    covered: bool
    assumptions: tuple[str, ...]
    cautions: tuple[str, ...]
    n_reference: int
    n_new: int


def expected_crps(distribution: PredictiveDistribution) -> FloatArray:
    """The CRPS that each forecast itself expects, (n,): its mean if outcomes follow the forecast.

    Notes
    -----
    It is half of Gini's mean difference, the integral of (2 p - 1) Q(p) over p with the quantile
    function Q, computed by Gauss and Legendre's rule with 64 nodes.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> (expected_crps(Normal([0.0, 5.0], [1.0, 2.0])) * np.pi**0.5).round(3).tolist()
    [1.0, 2.0]
    """
    rule = (2.0 * _NODES - 1.0) * _WEIGHTS
    n = len(distribution)
    found = np.empty(n)
    for start in range(0, n, _BLOCK):
        part = slice(start, min(start + _BLOCK, n))
        found[part] = distribution[part].ppf(_NODES[None, :]) @ rule
    return found


def width_level(distribution: PredictiveDistribution) -> float:
    """Probability of the interval whose width is watched: 80%, or the nearest one that is stated.

    Examples
    --------
    >>> from kdcal_core.distributions import Quantiles
    >>> width_level(Quantiles([0.05, 0.5, 0.95], [[-1.0, 0.0, 1.0]]))
    0.9
    """
    return distribution.stated_intervals([WIDTH_OF])[0]


def interval_widths(distribution: PredictiveDistribution) -> FloatArray:
    """Widths of these intervals, (n,), to nine digits.

    Equal widths around different medians differ in the last bits, which are no change.
    """
    low, high = distribution.interval(width_level(distribution))
    width = np.asarray(high - low, dtype=np.float64)
    with np.errstate(divide="ignore"):
        digits = 8.0 - np.floor(np.log10(width))
    unit = 10.0 ** np.clip(np.nan_to_num(digits, posinf=0.0), -290.0, 290.0)
    return np.asarray(np.round(width * unit) / unit)


def forecast_measures(
    distribution: PredictiveDistribution,
    y: Any,
    *,
    dependence: Dependence | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> ForecastMeasures:
    """CRPS, width, coverage and PIT distance of forecasts whose outcomes ``y`` (n,) are known.

    Raises
    ------
    InputError
        For outcomes that do not match the distribution or are not finite.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> rng = np.random.default_rng(0)
    >>> found = forecast_measures(Normal(np.zeros(500), 1.0), rng.normal(size=500))
    >>> round(found.crps.value, 1), round(found.width.value, 2), len(found.coverage)
    (0.6, 2.56, 3)
    """
    y = checked_outcome(y, len(distribution))
    design = design_of(None, dependence)
    held = coverage(
        distribution, y, distribution.stated_intervals(STATED), weight=design, level=level
    )
    pit = randomised_pit(distribution, y, seed)
    distance = wasserstein(pit, level=level, seed=seed, sample_weight=design)
    if len(y) < _LEAST_LABELS:  # its interval would exclude 0 however well calibrated they are
        distance = replace(distance, low=math.nan, high=math.nan, interval="too few rows for one")
    name = "Continuous ranked probability score"
    return ForecastMeasures(
        crps=_mean(distribution.crps(y), name, "CRPS", level, dependence),
        width=_width(distribution, level, dependence),
        pit_distance=replace(distance, label="PIT distance"),
        coverage=held.rows,
        level=width_level(distribution),
    )


def label_free_forecasts(
    reference: PredictiveDistribution,
    y: Any,
    new: PredictiveDistribution,
    *,
    alike: PredictiveDistribution | None = None,
    dependence: Dependence | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> LabelFreeForecasts:
    """CRPS and interval widths to expect of new forecasts, from reference rows with outcomes.

    Parameters
    ----------
    reference, new : PredictiveDistribution
        n and m rows, which state the same quantiles.
    y : (n,) array-like
        Outcomes of the reference rows.
    alike : PredictiveDistribution, optional
        The reference rows' forecasts as new rows have them, where these differ, for the share of
        rows outside.
    dependence : Dependence, optional
        Of the n + m rows, the reference rows first.

    Raises
    ------
    InputError
        As for :func:`forecast_measures`.

    Notes
    -----
    With e the CRPS that a forecast itself expects, the estimate is the mean e of the new rows times
    the factor by which the reference rows' CRPS exceed theirs. The factor is 1 for calibrated
    forecasts, above 1 for over-confident ones. The interval has two sources: the factor, known only
    from n rows (delta method), and the outcomes of the m new rows, whose CRPS vary about factor
    times e with a standard deviation in proportion to e, as among the reference rows. In
    500 runs of 400 reference and 300 new rows, whose forecasts were too narrow by 1.4 and had
    moved, intervals at 95% held the new rows' CRPS in 97%.

    The factor need not be the same for small and for large e. Where the halves of the reference
    rows differ beyond chance, a caution says so.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> rng = np.random.default_rng(0)
    >>> said, new = Normal(np.zeros(500), rng.uniform(1, 3, 500)), Normal(np.zeros(300), 2.5)
    >>> found = label_free_forecasts(said, 1.2 * said.sample(1, seed=1)[:, 0], new)
    >>> found.covered, 1.0 < found.factor.low, 1.5 < found.crps.value < 1.8
    (True, True, True)
    """
    check_level(level)
    y = checked_outcome(y, len(reference))
    n, m = len(reference), len(new)
    old_alone = None if dependence is None else dependence.only(np.arange(n))
    new_alone = None if dependence is None else dependence.only(np.arange(n, n + m))
    known = forecast_measures(reference, y, dependence=old_alone, level=level, seed=seed)
    expects, fresh = expected_crps(reference), expected_crps(new)
    outside = _outside(reference if alike is None else alike, new, level, new_alone)
    factor, residual = _factor(reference.crps(y), expects, level, old_alone)
    covered = n >= _LEAST and outside.low <= MOST_OUTSIDE and math.isfinite(float(fresh.sum()))
    name = "Continuous ranked probability score, expected without labels"
    if not covered or not math.isfinite(factor.value):
        why = _why_not(n, outside)
        crps = Estimate(name, "CRPS", math.nan, math.nan, math.nan, m, level, why)
    else:
        value = factor.value * float(fresh.mean())
        spread = float((residual**2).sum() / (expects**2).sum())
        effect, freedom = _effect(residual / expects.mean(), old_alone, new_alone)
        own = spread * float((fresh**2).sum()) / m**2 * effect
        z = t_quantile(level, freedom)
        of_factor = (factor.high - factor.low) / 2.0 * float(fresh.mean())
        half = math.hypot(of_factor, z * math.sqrt(own))
        how = "delta method, for the factor and the new outcomes"
        crps = Estimate(name, "CRPS", value, max(value - half, 0.0), value + half, m, level, how)
    return LabelFreeForecasts(
        reference=known,
        crps=crps,
        width=_width(new, level, new_alone),
        factor=factor,
        outside=outside,
        covered=bool(math.isfinite(crps.value)),
        assumptions=ASSUMPTIONS,
        cautions=_cautions(outside, m, reference.crps(y), expects),
        n_reference=n,
        n_new=m,
    )


def _effect(
    residual: FloatArray, old: Dependence | None, new: Dependence | None
) -> tuple[float, float]:
    """By how much dependence multiplies the variance of the new rows' mean, and its freedom.

    New clusters may be larger than those of the reference rows: what is taken over is the
    correlation within a cluster, 1 where hardly two reference rows share one.
    """
    effect = max(float(design_effect(residual, np.ones(len(residual)), old)), 1.0)
    if old is None or new is None:
        return effect, math.inf
    if old.kind == "time":
        return effect, math.inf
    then, now = (_mates(one) for one in (old, new))
    if now <= 1.0:
        return effect, math.inf
    within = min((effect - 1.0) / (then - 1.0), 1.0) if then > _MATES else 1.0
    larger = max(effect, 1.0 + (now - 1.0) * within)  # few clusters show little of either
    return larger, max(float(len(np.unique(new.unit))) - 1.0, 1.0)


def _mates(clusters: Dependence) -> float:
    """How many rows the cluster of a row has, on the mean of rows."""
    sizes = np.bincount(clusters.unit).astype(np.float64)
    return float((sizes**2).sum() / sizes.sum())


def _factor(
    seen: FloatArray, expects: FloatArray, level: float, dependence: Dependence | None
) -> tuple[Estimate, FloatArray]:
    """CRPS over what the forecasts expect, and each row's distance from it, (n,)."""
    mean = float(expects.mean())
    name = "CRPS over the CRPS that the forecasts themselves expect"
    n = len(seen)
    if not 0.0 < mean < math.inf:  # forecasts of one number expect no error
        nothing = Estimate(name, "Factor", math.nan, math.nan, math.nan, n, level, "not given")
        return nothing, np.zeros(n)
    value = float(seen.mean()) / mean
    residual = seen - value * expects
    _, low, high = mean_interval(
        residual / mean, np.ones(n), level, student=True, dependence=dependence
    )
    return (
        Estimate(
            name, "Factor", value, value + low, value + high, n, level, "delta method",
            lower_is_better=None,
        ),
        residual,
    )  # fmt: skip


def _mean(
    values: FloatArray, name: str, label: str, level: float, dependence: Dependence | None
) -> Estimate:
    mean, low, high = mean_interval(
        values, np.ones(len(values)), level, student=True, dependence=dependence
    )
    return Estimate(name, label, mean, low, high, len(values), level, "t interval of the mean")


def _width(
    distribution: PredictiveDistribution, level: float, dependence: Dependence | None
) -> Estimate:
    stated = 100 * width_level(distribution)
    found = _mean(
        interval_widths(distribution),
        f"Mean width of the central {stated:g}% intervals",
        f"Width of {stated:g}% intervals",
        level,
        dependence,
    )
    return replace(found, lower_is_better=None)


def _outside(
    reference: PredictiveDistribution,
    new: PredictiveDistribution,
    level: float,
    dependence: Dependence | None,
) -> Estimate:
    flags = np.zeros(len(new), dtype=bool)
    for old, fresh in (
        (reference.ppf(0.5), new.ppf(0.5)),
        (interval_widths(reference), interval_widths(new)),
    ):
        flags |= (fresh < old.min()) | (fresh > old.max())
    share = float(flags.mean())
    rows = effective_size(flags - share, np.ones(len(new)), dependence)
    name = "Share of new rows with a forecast beyond those of all reference rows"
    return share_estimate(name, "Outside", share, rows, len(new), level)


def _why_not(n: int, outside: Estimate) -> str:
    if n < _LEAST:
        return f"not given: only {n:,} reference rows; at least {_LEAST} are needed"
    if outside.low > MOST_OUTSIDE:
        return (
            f"not given: {value_text(outside)} of the new forecasts are beyond those of all "
            "reference rows"
        )
    return "not given: the forecasts expect no finite error"


def _cautions(outside: Estimate, m: int, seen: FloatArray, expects: FloatArray) -> tuple[str, ...]:
    found = []
    if outside.low > 2.0 / m:
        found.append(
            f"{value_text(outside)} of the new rows have a forecast beyond those of all reference "
            "rows. Nothing is known about them."
        )
    order = np.argsort(expects, kind="stable")
    halves = [
        _factor(seen[part], expects[part], 0.95, None)[0]
        for part in (order[: len(order) // 2], order[len(order) // 2 :])
        if len(part) >= 2
    ]
    if len(halves) == 2 and all(math.isfinite(one.value) for one in halves):
        apart = halves[0].value - halves[1].value
        error = math.hypot(*((one.high - one.low) / 3.92 for one in halves))
        if error > 0.0 and 2.0 * float(ndtr(-abs(apart) / error)) < 0.01:
            found.append(
                f"The factor is {halves[0].value:.2g} among the narrower half of the reference "
                f"forecasts and {halves[1].value:.2g} among the wider half: the expected CRPS is "
                "off if the widths changed."
            )
    return tuple(found)
