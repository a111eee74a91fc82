"""Tests of uniformity of the PIT values, with and without row weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import cramervonmises, kstwo

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics.regression.checks import checked_pit, effective_rows
from kdcal_core.diagnostics.regression.null_laws import (
    anderson_darling_tail,
    cramer_von_mises_tail,
    frosini_law,
)
from kdcal_core.errors import InputError

LARGE = 200  # from here on the law of Frosini's statistic is that of this many rows
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
        Name that is shown.
    statistic, p_value : float
    n : int
    draws, seed : int or None
        Monte Carlo draws behind the p value, and their seed; None where it is computed.
    note : str
        What was done to the values, such as how many were clipped. May be empty.
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
    sample_weight : (n,) array, optional
        Positive row weights. The statistics are then those of the weighted distribution
        function, and their laws those of Kish's effective number of rows, which is approximate.

    Returns
    -------
    tuple of UniformityTest
        Kolmogorov-Smirnov (exact law); Cramer-von Mises (scipy's law; with weights its limit);
        Anderson-Darling (limit law, right to three decimals from 5 rows on); Frosini.

    Raises
    ------
    InputError
        For values outside [0, 1] (the row is named), or fewer than 10,000 draws.

    Notes
    -----
    Frosini's statistic is B = n^(-1/2) sum |u_(i) - (i - 1/2)/n| over the ordered values, large
    where they are not uniform (decision D74); p = (1 + draws at least as large) / (1 + draws).
    Above 200 rows its law is drawn with 200, where it no longer changes. Values of exactly 0 or 1
    would make the Anderson-Darling statistic infinite: they are clipped by 1e-12, and its
    ``note`` counts them.

    Examples
    --------
    >>> tests = uniformity_tests([0.125, 0.375, 0.625, 0.875])
    >>> [(test.name, round(test.statistic, 4)) for test in tests][-1]
    ('frosini', 0.0)
    """
    if draws < LEAST_DRAWS:
        raise InputError(
            f"{draws:,} draws do not resolve small p values", fix="Ask for at least 10,000 draws."
        )
    ordered = _ordered(*checked_pit(pit, sample_weight))
    plain = sample_weight is None
    return (
        _kolmogorov_smirnov(ordered),
        _cramer_von_mises(ordered, plain),
        _anderson_darling(ordered),
        _frosini(ordered, draws, seed),
    )


def kolmogorov_smirnov(pit: Any, *, sample_weight: Any = None) -> UniformityTest:
    """The first of :func:`uniformity_tests` alone.

    Examples
    --------
    >>> round(kolmogorov_smirnov([0.6, 0.7, 0.8, 0.9, 0.95]).p_value, 4)
    0.0301
    """
    return _kolmogorov_smirnov(_ordered(*checked_pit(pit, sample_weight)))


@dataclass(frozen=True, eq=False)
class _Ordered:
    """Sorted values, their weights, and the distribution function in the middle of each jump."""

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
    statistic = float(gap.max())
    rows = max(round(ordered.effective), 1)
    return UniformityTest(
        name="kolmogorov_smirnov",
        title="Kolmogorov-Smirnov",
        statistic=statistic,
        p_value=float(np.clip(kstwo.sf(statistic, rows), 0.0, 1.0)),
        n=len(ordered.u),
    )


def _cramer_von_mises(ordered: _Ordered, plain: bool) -> UniformityTest:
    if plain and len(ordered.u) > 1:
        found = cramervonmises(ordered.u, "uniform")
        statistic, p_value = float(found.statistic), float(found.pvalue)
    else:
        square = ordered.weight @ np.square(ordered.u - ordered.middle)
        square += (ordered.weight**3).sum() / 12.0
        statistic = float(ordered.effective * square)
        p_value = cramer_von_mises_tail(statistic)
    return UniformityTest(
        name="cramer_von_mises",
        title="Cramér-von Mises",
        statistic=statistic,
        p_value=float(np.clip(p_value, 0.0, 1.0)),
        n=len(ordered.u),
    )


def _anderson_darling(ordered: _Ordered) -> UniformityTest:
    clipped = int(np.count_nonzero((ordered.u < CLIP) | (ordered.u > 1.0 - CLIP)))
    u = np.clip(ordered.u, CLIP, 1.0 - CLIP)
    inside = ordered.middle * np.log(u) + (1.0 - ordered.middle) * np.log1p(-u)
    statistic = float(ordered.effective * (-1.0 - 2.0 * (ordered.weight @ inside)))
    return UniformityTest(
        name="anderson_darling",
        title="Anderson-Darling",
        statistic=statistic,
        p_value=anderson_darling_tail(statistic),
        n=len(ordered.u),
        note=f"{clipped:,} PIT values within {CLIP:g} of 0 or 1 clipped" if clipped else "",
    )


def _frosini(ordered: _Ordered, draws: int, seed: int) -> UniformityTest:
    distance = ordered.weight @ np.abs(ordered.u - ordered.middle)
    statistic = float(ordered.effective**0.5 * distance)
    law = frosini_law(min(max(round(ordered.effective), 1), LARGE), draws, seed)
    larger = draws - int(np.searchsorted(law, statistic * (1.0 - 1e-12)))
    return UniformityTest(
        name="frosini",
        title="Frosini",
        statistic=statistic,
        p_value=(1 + larger) / (1 + draws),
        n=len(ordered.u),
        draws=draws,
        seed=seed,
    )
