"""How far PIT values are from uniform: tests, with and without row weights, and distances.

The tests' p values come from the null distributions of their statistics. The distances have an
interval and the value expected by chance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from scipy.stats import chi2, cramervonmises, kstwo

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.regression.dependent_pit import gap_draws, n_units, wider
from kdcal_core.diagnostics.regression.pit_curves import (
    LEVELS,
    checked_levels,
    checked_pit,
    effective_rows,
    share_below,
)
from kdcal_core.diagnostics.targets import check_choice, check_level
from kdcal_core.errors import InputError
from kdcal_core.statistics import Dependence, RowDesign, dependence_of
from kdcal_core.text import counted

_TERMS = 400
_MANY = 100_000  # rows
_BOTH_SIDES = 2.2  # of n D^2, above which the p value is twice that of one side
_BLOCK = 2**22  # floats of a block of draws: 32 MB


def cramer_von_mises_tail(statistic: float) -> float:
    """Limit law: probability that n times the integral of (F - u)^2 du is larger.

    Examples
    --------
    >>> round(cramer_von_mises_tail(0.46136), 4)
    0.05
    """
    j = np.arange(1, _TERMS + 1)
    return _mixture_tail(statistic, tuple(1.0 / (np.pi * j) ** 2), 1.0 / 6.0, 2.0**0.5)


def anderson_darling_tail(statistic: float) -> float:
    """Limit law: probability that n times the integral of (F - u)^2 / (u (1 - u)) du is larger.

    Examples
    --------
    >>> round(anderson_darling_tail(2.492), 4)
    0.05
    """
    j = np.arange(1, _TERMS + 1)
    return _mixture_tail(statistic, tuple(1.0 / (j * (j + 1.0))), 1.0, 3.0**0.5)


@lru_cache(maxsize=64)
def frosini_law(n: int, draws: int, seed: int) -> FloatArray:
    """Sorted draws of Frosini's statistic for n uniform values, (draws,).

    Examples
    --------
    >>> law = frosini_law(50, 10_000, 0)
    >>> bool(abs(law[9_500] - 0.58) < 0.02)
    True
    """
    rng = np.random.default_rng(seed)
    middle = (np.arange(n) + 0.5) / n
    law = np.empty(draws)
    size = max(1, _BLOCK // (n + 1))
    for start in range(0, draws, size):
        # partial sums of exponential times over their total: uniform values already in order
        times = rng.standard_exponential((min(size, draws - start), n + 1))
        np.cumsum(times, axis=1, out=times)
        ordered = times[:, :-1] / times[:, -1:]
        law[start : start + size] = np.abs(ordered - middle).sum(axis=1) / n**0.5
    law.sort()
    law.flags.writeable = False
    return law


def _mixture_tail(x: float, weights: tuple[float, ...], mean: float, factor: float) -> float:
    """Probability that a weighted sum of independent chi-squares of one degree exceeds ``x``.

    Computed by Imhof's inversion (1961) of the first terms; the mean of the others is subtracted
    from x. If the result is below the inversion's accuracy, the largest weight alone decides:
    factor * P(chi2 > x / weight), where factor is the product of (1 - weight_j / weight_1)^(-1/2)
    over the others (Zolotarev 1961).
    """
    far = factor * float(chi2.sf(x / weights[0], 1))
    if far < 1e-5:
        return far
    u, angle, damping, step = _characteristic(weights)
    rest = mean - sum(weights)
    wave = np.sin(angle - (x - rest) * u / 2.0) * damping
    return float(np.clip(0.5 + step * wave.sum() / np.pi, 0.0, 1.0))


@lru_cache(maxsize=2)
def _characteristic(weights: tuple[float, ...]) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Arguments on a log scale; half the angle and 1 / modulus of the characteristic function."""
    step = 0.004
    u = np.exp(np.arange(-35.0, 8.5, step))
    angle, log_modulus = np.zeros(len(u)), np.zeros(len(u))
    for weight in weights:
        angle += np.arctan(weight * u) / 2.0
        log_modulus += np.log1p((weight * u) ** 2) / 4.0
    return u, angle, np.exp(-log_modulus), step


_AT: FloatArray = np.arange(1, 64) / 64.0  # levels at which dependent rows are compared
LARGE = 200  # with more rows, the law of Frosini's statistic is that of this many
LEAST_DRAWS = 10_000
CLIP = 1e-12


@dataclass(frozen=True)
class UniformityTest:
    """One test of the hypothesis that the PIT values are uniform, that is, calibrated.

    Attributes
    ----------
    name : str
        Key: "kolmogorov_smirnov", "cramer_von_mises", "anderson_darling" or "frosini".
    title : str
        Name to show.
    statistic, p_value : float
    n : int
    draws, seed : int or None
        Monte Carlo draws behind the p value, and their seed; None if it needs no draws.
    note : str
        Changes to the values, such as how many were clipped. May be empty.
    """

    name: str
    title: str
    statistic: float
    p_value: float
    n: int
    draws: int | None = None
    seed: int | None = None
    note: str = ""


def uniformity_tests(
    pit: Any, draws: int = 10_000, seed: int = 0, *, sample_weight: Any = None
) -> tuple[UniformityTest, ...]:
    """Four tests of the hypothesis that the PIT values are independent and uniform.

    Parameters
    ----------
    pit : (n,) array in [0, 1]
    draws, seed : int
        Monte Carlo draws behind the p value of Frosini's test, at least 10,000, and their seed.
    sample_weight : (n,) array or RowDesign, optional
        Positive row weights. The statistics then use the weighted distribution function, and
        their laws Kish's effective number of rows, which is an approximation. With a
        :class:`kdcal_core.statistics.RowDesign` rows may depend on one another: the laws, which are
        those of independent rows, are then replaced by draws of whole clusters or neighbouring
        times, and each ``note`` says so.

    Returns
    -------
    tuple of UniformityTest
        Kolmogorov-Smirnov (exact law); Cramer-von Mises (scipy's law; with weights its limit);
        Anderson-Darling (limit law, correct to three decimals with 5 rows or more); Frosini.

    Raises
    ------
    InputError
        For values outside [0, 1] (the message names the row), or fewer than 10,000 draws.

    Notes
    -----
    Frosini's statistic is B = n^(-1/2) sum |u_(i) - (i - 1/2)/n| over the ordered values, large
    if they are not uniform; p = (1 + draws at least as large) / (1 + draws). Above 200 rows its
    law is that of 200 rows, because it no longer changes. Values of exactly 0 or 1 would make the
    Anderson-Darling statistic infinite: they are clipped by 1e-12, and its ``note`` counts them.

    Examples
    --------
    >>> tests = uniformity_tests([0.125, 0.375, 0.625, 0.875])
    >>> [(test.name, round(test.statistic, 4)) for test in tests][-1]
    ('frosini', 0.0)
    """
    if draws < LEAST_DRAWS:
        raise InputError(
            f"{draws:,} draws do not resolve small p values", fix="Choose at least 10,000 draws."
        )
    values, weight = checked_pit(pit, sample_weight)
    ordered = _ordered(values, weight)
    plain = sample_weight is None or (
        isinstance(sample_weight, RowDesign) and sample_weight.weight is None
    )
    together = dependence_of(sample_weight)
    found = (
        _kolmogorov_smirnov(ordered),
        _cramer_von_mises(ordered, plain),
        _anderson_darling(ordered),
        _frosini(ordered, draws if together is None else LEAST_DRAWS, seed),
    )
    if together is None:
        return found
    return _of_units(found, values, weight, together, draws, seed)


def kolmogorov_smirnov(pit: Any, *, sample_weight: Any = None) -> UniformityTest:
    """The first of :func:`uniformity_tests` alone.

    Examples
    --------
    >>> round(kolmogorov_smirnov([0.6, 0.7, 0.8, 0.9, 0.95]).p_value, 4)
    0.0301
    """
    values, weight = checked_pit(pit, sample_weight)
    found = _kolmogorov_smirnov(_ordered(values, weight))
    if (together := dependence_of(sample_weight)) is None:
        return found
    return _of_units((found,), values, weight, together, LEAST_DRAWS, 0)[0]


_DISTANCES: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "kolmogorov_smirnov": lambda gap, at: np.abs(gap).max(axis=-1),
    "cramer_von_mises": lambda gap, at: np.square(gap).mean(axis=-1),
    "anderson_darling": lambda gap, at: (np.square(gap) / (at * (1.0 - at))).mean(axis=-1),
    "frosini": lambda gap, at: np.abs(gap).mean(axis=-1),
}
"""The tests' distances of a distribution function from the uniform one at some levels."""


def _of_units(
    found: tuple[UniformityTest, ...],
    pit: FloatArray,
    weight: FloatArray,
    together: Dependence,
    draws: int,
    seed: int,
) -> tuple[UniformityTest, ...]:
    """The tests with the p values of dependent rows, by draws of whole clusters or times."""
    gap = share_below(pit, weight, _AT) - _AT
    drawn = gap_draws(pit, weight, _AT, together, draws=draws, seed=seed)
    units = "clusters" if together.kind == "cluster" else "neighbouring times"
    return tests_of_draws(found, gap, drawn, _AT, units, seed)


def tests_of_draws(
    found: tuple[UniformityTest, ...],
    gap: FloatArray,
    drawn: FloatArray,
    at: FloatArray,
    units: str,
    seed: int,
) -> tuple[UniformityTest, ...]:
    """The tests with p values from draws (draws, g) of the gap (g,) at the levels ``at``."""
    draws = len(drawn)
    note = f"p value from {draws:,} draws of {units}, as the exact law is that of independent rows"
    tests = []
    for one in found:
        distance = _DISTANCES[one.name]
        reached = int((distance(drawn, at) >= distance(gap, at) * (1.0 - 1e-12)).sum())
        words = f"{note}; {one.note}" if one.note else note
        p = (1 + reached) / (1 + draws)
        tests.append(replace(one, p_value=p, draws=draws, seed=seed, note=words))
    return tuple(tests)


@dataclass(frozen=True, eq=False)
class _Ordered:
    """Sorted values, their weights, and the distribution function midway up each jump."""

    u: FloatArray
    weight: FloatArray
    middle: FloatArray
    effective: float


def _ordered(pit: FloatArray, weight: FloatArray) -> _Ordered:
    order = np.argsort(pit, kind="stable")
    u, weight = pit[order], weight[order]
    return _Ordered(u, weight, np.cumsum(weight) - weight / 2.0, effective_rows(weight))


def _kolmogorov_smirnov(ordered: _Ordered) -> UniformityTest:
    gap = np.abs(ordered.u - ordered.middle) + ordered.weight / 2.0
    return kolmogorov_smirnov_of(float(gap.max()), ordered.effective, len(ordered.u))


def kolmogorov_smirnov_of(statistic: float, effective: float, n: int) -> UniformityTest:
    """Kolmogorov and Smirnov's test of a statistic, for so many effective rows.

    The exact p value takes time in proportion to the rows. Of more than 100,000 rows, one below
    0.025 is twice that of one side by its limit law with the first correction (Maag and Dicaire
    1971), which differs from it by less than two parts in 10,000 down to 1e-5.
    """
    rows = max(round(effective), 1)
    if rows > _MANY and rows * statistic**2 >= _BOTH_SIDES:
        p_value = 2.0 * float(np.exp(-((6.0 * rows * statistic + 1.0) ** 2) / (18.0 * rows)))
    else:
        p_value = float(np.clip(kstwo.sf(statistic, rows), 0.0, 1.0))
    return UniformityTest(
        name="kolmogorov_smirnov",
        title="Kolmogorov-Smirnov",
        statistic=statistic,
        p_value=p_value,
        n=n,
    )


def _cramer_von_mises(ordered: _Ordered, plain: bool) -> UniformityTest:
    if plain and len(ordered.u) > 1:
        found = cramervonmises(ordered.u, "uniform")
        return cramer_von_mises_of(float(found.statistic), len(ordered.u), float(found.pvalue))
    square = ordered.weight @ np.square(ordered.u - ordered.middle)
    square += (ordered.weight**3).sum() / 12.0
    return cramer_von_mises_of(float(ordered.effective * square), len(ordered.u))


def cramer_von_mises_of(statistic: float, n: int, p_value: float | None = None) -> UniformityTest:
    """Cramér and von Mises's test of a statistic; by the limit law without a p value."""
    p = cramer_von_mises_tail(statistic) if p_value is None else p_value
    return UniformityTest(
        name="cramer_von_mises",
        title="Cramér-von Mises",
        statistic=statistic,
        p_value=float(np.clip(p, 0.0, 1.0)),
        n=n,
    )


def _anderson_darling(ordered: _Ordered) -> UniformityTest:
    clipped = int(np.count_nonzero((ordered.u < CLIP) | (ordered.u > 1.0 - CLIP)))
    u = np.clip(ordered.u, CLIP, 1.0 - CLIP)
    inside = ordered.middle * np.log(u) + (1.0 - ordered.middle) * np.log1p(-u)
    statistic = float(ordered.effective * (-1.0 - 2.0 * (ordered.weight @ inside)))
    return anderson_darling_of(statistic, clipped, len(ordered.u))


def anderson_darling_of(statistic: float, clipped: int, n: int) -> UniformityTest:
    """Anderson and Darling's test of a statistic; ``clipped`` values lay at the ends."""
    return UniformityTest(
        name="anderson_darling",
        title="Anderson-Darling",
        statistic=statistic,
        p_value=anderson_darling_tail(statistic),
        n=n,
        note=f"{counted(clipped, 'PIT value')} within {CLIP:g} of 0 or 1 clipped"
        if clipped
        else "",
    )


def _frosini(ordered: _Ordered, draws: int, seed: int) -> UniformityTest:
    distance = ordered.weight @ np.abs(ordered.u - ordered.middle)
    statistic = float(ordered.effective**0.5 * distance)
    return frosini_of(statistic, ordered.effective, len(ordered.u), draws, seed)


def frosini_of(statistic: float, effective: float, n: int, draws: int, seed: int) -> UniformityTest:
    """Frosini's test of a statistic, for so many effective rows."""
    law = frosini_law(min(max(round(effective), 1), LARGE), draws, seed)
    larger = draws - int(np.searchsorted(law, statistic * (1.0 - 1e-12)))
    return UniformityTest(
        name="frosini",
        title="Frosini",
        statistic=statistic,
        p_value=(1 + larger) / (1 + draws),
        n=n,
        draws=draws,
        seed=seed,
    )


DRAWS = 1000
_HOW = f"bootstrap of the distribution function, {DRAWS:,} draws"
FINE: FloatArray = np.arange(1, 256) / 256.0
"""Levels at which the distribution function is drawn again for the interval of a distance."""


def wasserstein(
    pit: Any, *, level: float = 0.95, seed: int = 0, sample_weight: Any = None
) -> Estimate:
    """Wasserstein-1 distance between the PIT values and the uniform distribution, in [0, 0.5].

    This is the exact area between their distribution function and the diagonal. ``expected`` is
    its mean for a calibrated model, sqrt(pi/32) / sqrt(n) (the mean area under a Brownian bridge).

    Parameters
    ----------
    pit : (n,) array in [0, 1]
    level : float
        Level of the interval.
    seed : int
        Seed of the 1,000 bootstrap draws.
    sample_weight : (n,) array or RowDesign, optional
        Positive row weights; the interval then uses Kish's effective number of rows. With the
        dependence of the rows it uses draws of whole clusters or neighbouring times.

    Raises
    ------
    InputError
        For values outside [0, 1] (the message names the row), or a level outside (0, 1).

    Notes
    -----
    The interval extends on both sides by the distance between the bootstrapped and the observed
    distribution function that a share ``level`` of the draws do not exceed. By the triangle
    inequality it then contains the true distance. In simulations, 95% intervals contained that of
    a calibrated model in 90% of the cases with 20 rows, 92% with 50 and 93 to 97% with 200 or
    more, and that of miscalibrated PIT values in at least 97%.

    Examples
    --------
    >>> round(wasserstein([0.5, 0.5, 0.5]).value, 4)
    0.25
    """
    check_level(level)
    values, weight = checked_pit(pit, sample_weight)
    order = np.argsort(values, kind="stable")
    value = _area(values[order], weight[order])
    if (together := dependence_of(sample_weight)) is None:
        share = share_below(values, weight, FINE)
        return wasserstein_of(value, share, effective_rows(weight), len(values), level, seed)
    reach, expected = _reach_of_units(values, weight, _AT, "l1", level, seed, together)
    how = _how_of_units(together)
    return _wasserstein(value, reach, expected, len(values), level, how)


def wasserstein_of(
    value: float, share: FloatArray, effective: float, n: int, level: float, seed: int
) -> Estimate:
    """:func:`wasserstein` of independent rows whose distance is known.

    ``share`` (255,) are their shares at or below the levels `FINE`.
    """
    reach = _bootstrap_reach(share, effective, "l1", level, seed)
    expected = float(np.sqrt(np.pi / 32.0 / effective))
    return _wasserstein(value, reach, expected, n, level, _HOW)


def wasserstein_of_draws(value: float, drawn: DrawnGaps, n: int, level: float) -> Estimate:
    """:func:`wasserstein` of rows that depend on one another, from draws of their gap."""
    return _wasserstein(value, *drawn.reach("l1", level), n, level, drawn.how)


def quantile_error_of_draws(
    share: FloatArray, at: FloatArray, drawn: DrawnGaps, n: int, level: float
) -> Estimate:
    """:func:`quantile_calibration_error` ("l2") of such rows by their shares at or below ``at``."""
    return _quantile_error(share, at, "l2", *drawn.reach("l2", level), n, level, drawn.how)


@dataclass(frozen=True, eq=False)
class DrawnGaps:
    """Draws (draws, g) of observed minus true distribution function, of dependent rows.

    ``wider`` is Student's quantile over the normal one, and ``units`` a word for what is drawn.
    """

    gaps: FloatArray
    wider: float
    units: str

    def reach(self, norm: str, level: float) -> tuple[float, float]:
        """Half the width of an interval, and the mean distance of uniform values."""
        size = _norm(self.gaps, norm)
        return float(np.quantile(size, level)) * self.wider, float(size.mean())

    @property
    def how(self) -> str:
        """How the interval is made."""
        return (
            f"{len(self.gaps):,} draws of the distribution function, rows of {self.units} together"
        )


def _wasserstein(
    value: float, reach: float, expected: float, n: int, level: float, how: str
) -> Estimate:
    return Estimate(
        name="Wasserstein-1 distance of the PIT values from uniform",
        label="Wasserstein",
        value=value,
        low=max(value - reach, 0.0),
        high=min(value + reach, 0.5),
        n=n,
        level=level,
        interval=how,
        expected=expected,
    )


def quantile_calibration_error(
    pit: Any,
    levels: Any = LEVELS,
    *,
    norm: Literal["l1", "l2"] = "l2",
    level: float = 0.95,
    seed: int = 0,
    sample_weight: Any = None,
) -> Estimate:
    """How far observed frequencies lie from stated quantile levels, over ``levels``.

    "l2" is the root of the mean squared difference (the sum of squares is Kuleshov, Fenner and
    Ermon's calibration error, 2018); "l1" is the mean absolute difference. ``expected`` is the
    mean for uniform PIT values with the same number of rows. Other arguments, the interval and
    errors as in :func:`wasserstein`.

    Examples
    --------
    >>> quantile_calibration_error([0.1, 0.1, 0.6, 0.6], levels=[0.25, 0.5], norm="l1").value
    0.125
    """
    check_level(level)
    check_choice("norm", norm, ("l1", "l2"))
    values, weight = checked_pit(pit, sample_weight)
    at = checked_levels(levels)
    share = share_below(values, weight, at)
    if (together := dependence_of(sample_weight)) is None:
        effective = effective_rows(weight)
        return quantile_error_of(share, at, effective, len(values), norm, level, seed)
    reach, expected = _reach_of_units(values, weight, at, norm, level, seed, together)
    how = _how_of_units(together)
    return _quantile_error(share, at, norm, reach, expected, len(values), level, how)


def quantile_error_of(
    share: FloatArray,
    at: FloatArray,
    effective: float,
    n: int,
    norm: Literal["l1", "l2"],
    level: float,
    seed: int,
) -> Estimate:
    """:func:`quantile_calibration_error` of independent rows by their shares at or below ``at``."""
    reach = _bootstrap_reach(share, effective, norm, level, seed)
    expected = _floor(max(round(effective), 1), tuple(at), norm)
    return _quantile_error(share, at, norm, reach, expected, n, level, _HOW)


def _quantile_error(
    share: FloatArray,
    at: FloatArray,
    norm: Literal["l1", "l2"],
    reach: float,
    expected: float,
    n: int,
    level: float,
    drawn: str,
) -> Estimate:
    value = float(_norm(share - at, norm))
    how = "root mean square" if norm == "l2" else "mean absolute difference"
    return Estimate(
        name=f"Quantile calibration error, {how}, {len(at)} levels",
        label="Quantile error",
        value=value,
        low=max(value - reach, 0.0),
        high=min(value + reach, 1.0),
        n=n,
        level=level,
        interval=drawn,
        expected=expected,
        percent=True,
    )


def _area(u: FloatArray, weight: FloatArray) -> float:
    """Integral over [0, 1] of |F - u| for ordered values; F is constant between them."""
    left = np.concatenate([[0.0], u])
    right = np.concatenate([u, [1.0]])
    share = np.concatenate([[0.0], np.cumsum(weight)])
    a, b = left - share, right - share
    same_side = np.abs(a + b) * (b - a) / 2.0
    crossing = (np.square(a) + np.square(b)) / 2.0
    return float(np.where(a * b >= 0.0, same_side, crossing).sum())


def _norm(difference: FloatArray, norm: str) -> FloatArray:
    """Mean size of differences over the last axis."""
    if norm == "l1":
        return np.asarray(np.abs(difference).mean(axis=-1))
    return np.asarray(np.sqrt(np.square(difference).mean(axis=-1)))


def _bootstrap_reach(
    share: FloatArray, effective: float, norm: str, level: float, seed: int
) -> float:
    """Distance from the observed function that a share ``level`` of the draws do not exceed."""
    cells = np.maximum(np.diff(share, prepend=0.0, append=1.0), 0.0)
    rows = max(round(effective), 1)
    drawn = _drawn_shares(rows, cells / cells.sum(), seed)
    return float(np.quantile(_norm(drawn - share, norm), level))


def _reach_of_units(
    pit: FloatArray,
    weight: FloatArray,
    at: FloatArray,
    norm: str,
    level: float,
    seed: int,
    together: Dependence,
) -> tuple[float, float]:
    """As `_bootstrap_reach` and `_floor`, for rows that depend on one another."""
    share = share_below(pit, weight, at)
    if n_units(together) < 2:  # nothing says how much clusters differ
        drawn = gap_draws(pit, weight, at, together, draws=DRAWS, seed=seed)
        return np.inf, float(_norm(drawn, norm).mean())
    drawn = gap_draws(pit, weight, at, together, draws=DRAWS, seed=seed, centre=share)
    return DrawnGaps(drawn, wider(together, level), "").reach(norm, level)


def _how_of_units(together: Dependence) -> str:
    units = "clusters" if together.kind == "cluster" else "neighbouring times"
    return f"{DRAWS:,} draws of the distribution function, rows of {units} together"


@lru_cache(maxsize=256)
def _floor(rows: int, levels: tuple[float, ...], norm: str) -> float:
    """Mean error of uniform PIT values."""
    at = np.asarray(levels)
    drawn = _drawn_shares(rows, np.diff(at, prepend=0.0, append=1.0), 0)
    return float(_norm(drawn - at, norm).mean())


def _drawn_shares(rows: int, cells: FloatArray, seed: int) -> FloatArray:
    counts = np.random.default_rng(seed).multinomial(rows, cells, size=DRAWS)
    return np.asarray(np.cumsum(counts, axis=1)[:, :-1] / rows)
