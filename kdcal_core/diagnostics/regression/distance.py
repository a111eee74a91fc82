"""How far the PIT values' distribution lies from the uniform one, with intervals and floors."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import numpy as np

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.regression.checks import checked_levels, checked_pit, effective_rows
from kdcal_core.diagnostics.regression.ecdf import LEVELS, share_below
from kdcal_core.diagnostics.targets import check_choice, check_level

_DRAWS = 1000
_FINE: tuple[float, ...] = tuple(i / 256 for i in range(1, 256))


def wasserstein(
    pit: Any, *, level: float = 0.95, seed: int = 0, sample_weight: Any = None
) -> Estimate:
    """Wasserstein-1 distance between the PIT values and the uniform distribution, in [0, 0.5].

    The area between their distribution function and the diagonal, exact. A perfectly calibrated
    model shows ``expected``, sqrt(pi/32) / sqrt(n) (the mean area under a Brownian bridge).

    Parameters
    ----------
    pit : (n,) array in [0, 1]
    level : float
        Level of the interval.
    seed : int
        Of the 1,000 bootstrap draws.
    sample_weight : (n,) array, optional
        Positive row weights; the interval then goes by Kish's effective number of rows.

    Raises
    ------
    InputError
        For values outside [0, 1] (the row is named), or a level outside (0, 1).

    Notes
    -----
    The interval reaches as far to both sides as the bootstrapped distribution function lies from
    the observed one (in the same distance) in all but 1 - level of the draws: by the triangle
    inequality it then holds the true distance. Simulated at 95%, perfect calibration lies inside
    in 90% of the cases with 20 rows, 92% with 50 and 93 to 97% from 200 on; miscalibrated PIT
    values' distance in 97% and more.

    Examples
    --------
    >>> round(wasserstein([0.5, 0.5, 0.5]).value, 4)
    0.25
    """
    check_level(level)
    values, weight = checked_pit(pit, sample_weight)
    order = np.argsort(values, kind="stable")
    value = _area(values[order], weight[order])
    n = effective_rows(weight)
    reach = _bootstrap_reach(values, weight, np.asarray(_FINE), "l1", level, seed)
    return Estimate(
        name="Wasserstein-1 distance of the PIT values from uniform",
        label="Wasserstein",
        value=value,
        low=max(value - reach, 0.0),
        high=min(value + reach, 0.5),
        n=len(values),
        level=level,
        interval=f"bootstrap of the distribution function, {_DRAWS:,} draws",
        expected=float(np.sqrt(np.pi / 32.0 / n)),
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

    "l2" is the root of the mean squared difference (its square, summed, is Kuleshov, Fenner and
    Ermon's calibration error, 2018); "l1" the mean absolute difference. ``expected`` is what
    uniform PIT values give on average for as many rows. Other arguments, the interval and errors
    as in :func:`wasserstein`.

    Examples
    --------
    >>> quantile_calibration_error([0.1, 0.1, 0.6, 0.6], levels=[0.25, 0.5], norm="l1").value
    0.125
    """
    check_level(level)
    check_choice("norm", norm, ("l1", "l2"))
    values, weight = checked_pit(pit, sample_weight)
    at = checked_levels(levels)
    value = float(_norm(share_below(values, weight, at) - at, norm))
    reach = _bootstrap_reach(values, weight, at, norm, level, seed)
    how = "root mean square" if norm == "l2" else "mean absolute difference"
    return Estimate(
        name=f"Quantile calibration error, {how}, {len(at)} levels",
        label="Quantile error",
        value=value,
        low=max(value - reach, 0.0),
        high=min(value + reach, 1.0),
        n=len(values),
        level=level,
        interval=f"bootstrap of the distribution function, {_DRAWS:,} draws",
        expected=_floor(max(round(effective_rows(weight)), 1), tuple(at), norm),
        percent=True,
    )


def _area(u: FloatArray, weight: FloatArray) -> float:
    """Integral over [0, 1] of |F - u| for ordered values: F is constant between them."""
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
    pit: FloatArray, weight: FloatArray, at: FloatArray, norm: str, level: float, seed: int
) -> float:
    """Distance from the observed distribution function that ``level`` of the draws keep."""
    share = share_below(pit, weight, at)
    cells = np.maximum(np.diff(share, prepend=0.0, append=1.0), 0.0)
    rows = max(round(effective_rows(weight)), 1)
    drawn = _drawn_shares(rows, cells / cells.sum(), seed)
    return float(np.quantile(_norm(drawn - share, norm), level))


@lru_cache(maxsize=256)
def _floor(rows: int, levels: tuple[float, ...], norm: str) -> float:
    """Mean error of uniform PIT values."""
    at = np.asarray(levels)
    drawn = _drawn_shares(rows, np.diff(at, prepend=0.0, append=1.0), 0)
    return float(_norm(drawn - at, norm).mean())


def _drawn_shares(rows: int, cells: FloatArray, seed: int) -> FloatArray:
    counts = np.random.default_rng(seed).multinomial(rows, cells, size=_DRAWS)
    return np.asarray(np.cumsum(counts, axis=1)[:, :-1] / rows)
