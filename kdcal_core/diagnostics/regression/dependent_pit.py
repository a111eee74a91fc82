"""How the distribution function of PIT values varies if rows depend on one another.

Its error at many levels is drawn together, as normal numbers with the covariance that the totals
of clusters have, or Newey and West's in time (`Dependence.totals`). Exact laws, such as those of
Kolmogorov and Smirnov's test and of a binomial count, hold for independent rows only: tests take
these draws instead, and bands are those of as many independent rows as vary equally.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kdcal_core.data import FloatArray
from kdcal_core.statistics import (
    Dependence,
    design_effect,
    kish,
    normal_quantile,
    small_sample_factor,
    t_quantile,
)

MOST_UNITS = 2_000
"""Clusters or times from which the covariance is estimated; of more, groups of them."""
_BAND_DRAWS = 4_000
_SEED = 0  # of the bands' draws: part of their definition


def gap_draws(
    pit: FloatArray,
    weight: FloatArray,
    at: FloatArray,
    dependence: Dependence,
    *,
    draws: int,
    seed: int,
    centre: FloatArray | None = None,
) -> FloatArray:
    """Draws of observed minus true distribution function at increasing levels, (draws, g).

    Parameters
    ----------
    pit, weight : (n,) array
        The weights sum to one.
    at : (g,) array
        Levels in (0, 1).
    centre : (g,) array, optional
        The distribution function around which rows vary: by default ``at``, that of uniform values,
        which gives tests their level even with few clusters. With the observed one the covariance
        has the correction for few clusters or times.

    Notes
    -----
    In 2,000 runs of 20, 60 and 300 clusters of 10, or of 1 to 30, rows of a correlation of 0.2 to
    0.8, the tests of uniformity at 5% rejected uniform values in 4 to 6% of them
    (tests/benchmarks/RESULTS_dependence.md). In time, with 200 or 400 rows and an autocorrelation
    of up to 0.8, 400 runs rejected 2 to 8%.
    """
    few = dependence.coarser(MOST_UNITS)
    g = len(at)
    place = few.unit * (g + 1) + np.searchsorted(at, pit, side="left")
    mass = np.bincount(place, weights=weight, minlength=few.n_units * (g + 1)).reshape(-1, g + 1)
    middle = at if centre is None else centre
    sums = np.cumsum(mass, axis=1)[:, :-1] - mass.sum(axis=1)[:, np.newaxis] * middle
    totals = few.near(np.ascontiguousarray(sums.T))
    covariance = totals @ totals.T
    if centre is not None:
        covariance *= small_sample_factor(n_units(dependence), dependence.lags)
    # the symmetric root, which changes little if the covariance does
    values, vectors = np.linalg.eigh(covariance)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return np.asarray(np.random.default_rng(seed).normal(size=(draws, g)) @ root)


def wider(dependence: Dependence, level: float) -> float:
    """Student's quantile for the number of clusters or times over the normal one."""
    return t_quantile(level, max(n_units(dependence) - 1, 1)) / normal_quantile(level)


def share_rows(hit: Any, weight: FloatArray, rate: float, dependence: Dependence | None) -> float:
    """As how many independent rows dependent ones count for the share of ``hit`` (n,) in them.

    ``rate`` is the share around which they vary.
    """
    away = np.asarray(hit, dtype=np.float64) - rate
    return kish(weight) / design_effect(away, weight, dependence)


def band_rows(
    pit: FloatArray,
    weight: FloatArray,
    at: FloatArray,
    dependence: Dependence,
    level: float,
    *,
    bins: bool = False,
    rows: float | None = None,
) -> float:
    """As how many independent rows dependent ones count for a simultaneous band, at most all.

    ``rows`` are all, by default Kish's number of the weights.

    The largest deviation of the distribution function, in its standard errors for independent rows,
    or of the shares between its levels with ``bins``, then has the same quantile.
    """

    def largest(gaps: FloatArray) -> float:
        if bins:
            edges = np.concatenate([[0.0], at, [1.0]])
            share = np.diff(edges)
            gaps = np.diff(gaps, axis=1, prepend=0.0, append=0.0)
        else:
            share = at
        return float(np.quantile(np.abs(gaps / np.sqrt(share * (1.0 - share))).max(axis=1), level))

    rows = kish(weight) if rows is None else rows
    drawn = gap_draws(pit, weight, at, dependence, draws=_BAND_DRAWS, seed=_SEED)
    found = largest(drawn)
    return rows * min(_bridge_quantile(at, largest) ** 2 / rows / max(found**2, 1e-300), 1.0)


def _bridge_quantile(at: FloatArray, largest: Callable[[FloatArray], float]) -> float:
    """The quantile for one independent row, from a Brownian bridge at the levels."""
    steps = np.diff(at, prepend=0.0, append=1.0)
    drawn = np.random.default_rng(_SEED).normal(size=(_BAND_DRAWS, len(steps))) * np.sqrt(steps)
    path = np.cumsum(drawn, axis=1)
    return largest(path[:, :-1] - path[:, -1:] * at)


def n_units(dependence: Dependence) -> int:
    """Number of clusters, or times, that have rows."""
    return len(np.unique(dependence.unit))
