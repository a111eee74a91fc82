"""The measurements of one scored regression set, for the printed tables and the JSON file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from kdcal_core.diagnostics import (
    Coverage,
    Fault,
    PitHistogram,
    RegionPit,
    RegressionScores,
    UniformityTest,
    coverage,
    fault,
    pit_by_column,
    pit_histogram,
    regions_finding,
    regression_findings,
    regression_scores,
    uniformity_tests,
)
from kdcal_core.distributions import RegressionSet, randomised_pit

#: What rows are grouped by where no column is given
PREDICTED_MEAN = "predicted mean"


@dataclass(frozen=True, eq=False)
class MeasuredRegression:
    """One set's results.

    ``notes`` are cautions for the reader; ``by_column`` holds the regions of each requested
    column.
    """

    scored: RegressionSet
    findings: tuple[str, ...]
    notes: tuple[str, ...]
    fault: Fault
    tests: tuple[UniformityTest, ...]
    scores: RegressionScores
    coverage: Coverage
    histogram: PitHistogram
    by_column: Mapping[str, tuple[RegionPit, ...]]


def measure_regression(
    scored: RegressionSet,
    columns: Mapping[str, pd.Series[Any]],
    *,
    notes: tuple[str, ...] = (),
    scale: float,
    n_bins: int,
    level: float,
    seed: int,
    fitted_spread: bool = False,
) -> MeasuredRegression:
    """Everything that ``kdcal diagnose`` reports about a regression's set.

    Parameters
    ----------
    scored : RegressionSet
    columns : mapping of name to (n,) column
        Each is divided into regions, which are judged; without columns, the predicted mean. The
        p values are corrected for the regions of a column (Holm).
    notes : tuple of str
        Cautions about the rows.
    scale : float
        Mean absolute outcome of the calibration set, which sMIS is divided by (decision D71).
    n_bins : int
        Bins of the PIT histogram.
    level : float
        Level of all intervals and bands, between 0 and 1.
    seed : int
        Of the randomised PIT values and of the Monte Carlo tests.
    fitted_spread : bool
        Whether the model gives single numbers, whose one spread was fitted to residuals.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.distributions import Normal
    >>> y = np.random.default_rng(0).normal(2.0, size=500)
    >>> scored = RegressionSet(Normal(np.zeros(500), 1.0), y, "digest", "evaluation")
    >>> result = measure_regression(scored, {}, scale=2.0, n_bins=20, level=0.95, seed=0)
    >>> result.fault.kind, list(result.by_column)
    ('too low', ['predicted mean'])
    """
    distribution, y, weight = scored.distribution, scored.y, scored.weight
    pit = randomised_pit(distribution, y, seed)
    held = coverage(distribution, y, scale=scale, weight=weight, level=level)
    found = fault(pit, level=level, sample_weight=weight)
    asked = columns or {PREDICTED_MEAN: pd.Series(distribution.mean())}
    by_column = {
        name: pit_by_column(
            pit,
            column,
            distribution=distribution,
            y=y,
            scale=scale,
            level=level,
            sample_weight=weight,
        )
        for name, column in asked.items()
    }
    local = (f"By {name}: {regions_finding(parts)}" for name, parts in by_column.items())
    return MeasuredRegression(
        scored=scored,
        findings=(*regression_findings(held, found, fitted_spread=fitted_spread), *local),
        notes=notes,
        fault=found,
        tests=uniformity_tests(pit, seed=seed, sample_weight=weight),
        scores=regression_scores(
            distribution,
            y,
            scale=scale,
            true_mean=scored.true_mean,
            pit=pit,
            weight=weight,
            level=level,
            seed=seed,
        ),
        coverage=held,
        histogram=pit_histogram(pit, bins=n_bins, level=level, sample_weight=weight),
        by_column=by_column,
    )
