"""Choosing neighbours, testing locally and the recalibrators for all rows, at 100,000 rows."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from kdcal_core.distributions import Gamma, Normal, Weighted
from kdcal_core.regression import (
    DensityRecalibration,
    GlobalRecalibration,
    IsotonicRecalibration,
    LocalRecalibration,
    Recalibrated,
    cross_fitted,
    local_uniformity,
    select_neighbours,
)
from kdcal_core.simulation import nonlinear20

ROWS, SCORED, FEW, NEW = 100_000, 5000, 20_000, 10_000
KS = (50, 100, 200, 500, 1000)


def run() -> list[dict[str, Any]]:
    """Rows of the benchmark table; a missing reference is None."""
    drawn = nonlinear20(ROWS, seed=0)
    model = Normal(drawn.distribution.mean(), 1.5)
    few, y, space = model[:FEW], drawn.y[:FEW], drawn.X[:FEW]
    pit = model.cdf(drawn.y)
    positive = np.abs(drawn.y) + 1
    shape = 50 + 50 * np.random.default_rng(0).random(ROWS)
    gamma = Gamma(shape, np.abs(drawn.distribution.mean()) + 1)
    repaired = GlobalRecalibration().fit(gamma, positive).predict(gamma[:NEW])
    assert isinstance(repaired, Recalibrated)
    every = np.ones(ROWS)
    # what choosing k takes without the shared search: a cross-fitted run for every k
    one_by_one = _seconds(lambda: [_cross_fitted_crps(few, y, space, k) for k in KS])
    jobs: list[tuple[str, Callable[[], Any], int, str | None, float | None, float]] = [
        (
            "select_neighbours, 5 folds, 5 numbers, all rows scored",
            lambda: select_neighbours(few, y, {"input": space}, KS, max_rows=FEW),
            FEW,
            "a cross-fitted run for each k",
            one_by_one,
            60.0,
        ),
        (
            "select_neighbours, 5 folds, 5 numbers, 5,000 rows scored",
            lambda: select_neighbours(model, drawn.y, {"input": drawn.X}, KS, max_rows=SCORED),
            ROWS,
            None,
            None,
            12.0,
        ),
        (
            "local_uniformity, 200 neighbourhoods of 500, 999 draws",
            lambda: local_uniformity(pit, drawn.X),
            ROWS,
            None,
            None,
            10.0,
        ),
        (
            "global: means and CRPS of 10,000 rows, gamma of a shape a row",
            lambda: [repaired.mean(), repaired.crps(positive[:NEW])],
            ROWS,
            "all quantiles of 20 rows, times 500",
            500
            * _seconds(lambda: Weighted(gamma[:20].ppf(repaired.pits), every).crps(positive[:20])),
            30.0,
        ),
        (
            "isotonic: fit and 95% intervals",
            lambda: IsotonicRecalibration().fit(model, drawn.y).predict(model).interval(0.95),
            ROWS,
            None,
            None,
            1.0,
        ),
        (
            "density: fit and 95% intervals",
            lambda: DensityRecalibration().fit(model, drawn.y).predict(model).interval(0.95),
            ROWS,
            None,
            None,
            60.0,
        ),
    ]
    return [
        {
            "name": f"regression: {what}",
            "what": f"{space.shape[1]} columns",
            "n": n,
            "seconds": (seconds := _seconds(job)),
            "reference": reference,
            "reference_seconds": reference_seconds,
            "ratio": None if reference_seconds is None else reference_seconds / seconds,
            "goal": goal,
        }
        for what, job, n, reference, reference_seconds, goal in jobs
    ]


def _cross_fitted_crps(model: Normal, y: Any, space: Any, k: int) -> float:
    repaired = cross_fitted(lambda: LocalRecalibration(k=k), model, y, space)
    return float(np.mean(repaired.crps(y)))


def _seconds(job: Callable[[], Any]) -> float:
    start = perf_counter()
    job()
    return perf_counter() - start
