"""Every measure of predictive distributions, row by row and as estimates with intervals.

In simulations, whose truth is known, the Kullback-Leibler divergence from it is one of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray, check_weight
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.regression.coverage import (
    checked_outcome,
    coverage,
    interval_scores,
    mean_estimate,
)
from kdcal_core.diagnostics.regression.uniformity import quantile_calibration_error, wasserstein
from kdcal_core.diagnostics.targets import check_level
from kdcal_core.distributions import PredictiveDistribution, randomised_pit
from kdcal_core.errors import InputError
from kdcal_core.statistics import mean_interval

NODES = 64


def kl_divergence(
    true: PredictiveDistribution,
    estimate: PredictiveDistribution,
    *,
    cells: int | None = None,
    level: float = 0.95,
) -> Estimate:
    """Mean over the rows of KL(true || estimate), in nats, from 0 on (decision D73).

    Parameters
    ----------
    true, estimate : PredictiveDistribution
        n rows each.
    cells : int, optional
        None: the integral of log(true density / estimated density) over the true distribution,
        by Gauss-Legendre quadrature in its quantile levels with 64 nodes. A number: the
        divergence of the probabilities of as many cells, equally likely under the truth. That
        needs no density, and is never larger than the divergence of the densities; distributions
        without one (samples) are measured so with 20 cells. Compare like with like.
    level : float
        Level of the interval.

    Raises
    ------
    InputError
        For different numbers of rows, or fewer than two cells.

    Notes
    -----
    The true density is taken as zero beyond the outermost nodes, 0.0003 and 0.9997 in level.
    An estimate that gives a cell or a node no probability has an infinite divergence; the mean
    is then infinite and ``interval`` counts such rows.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> truth, guess = Normal(np.zeros(3), 1.0), Normal(np.ones(3), 1.0)
    >>> round(kl_divergence(truth, guess).value, 3)
    0.5
    >>> kl_divergence(truth, guess, cells=20).value < 0.5
    True
    """
    check_level(level)
    if len(true) != len(estimate):
        raise InputError(
            f"There are {len(true):,} true and {len(estimate):,} estimated distributions",
            fix="Give both for the same rows.",
        )
    if cells is not None and cells < 2:
        raise InputError(f"{cells} cells cannot show a divergence", fix="Ask for at least 2.")
    if cells is None and not estimate.has_density:
        cells = 20
    if cells is None:
        rows, how = _of_densities(true, estimate), f"quadrature in {NODES} quantile levels"
    else:
        rows, how = _of_cells(true, estimate, cells), f"{cells} cells of equal true probability"
    return _mean(rows, f"KL divergence from the truth, {how}", level)


def _of_densities(true: PredictiveDistribution, estimate: PredictiveDistribution) -> FloatArray:
    node, mass = np.polynomial.legendre.leggauss(NODES)
    y = true.ppf(((node + 1.0) / 2.0)[np.newaxis])
    return np.asarray((true.log_density(y) - estimate.log_density(y)) @ (mass / 2.0))


def _of_cells(
    true: PredictiveDistribution, estimate: PredictiveDistribution, cells: int
) -> FloatArray:
    inner = np.arange(1, cells) / cells
    below = estimate.cdf(true.ppf(inner[np.newaxis]))
    share = np.diff(below, axis=1, prepend=0.0, append=1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(np.maximum(share, 0.0) * cells).mean(axis=1))


def _mean(rows: FloatArray, title: str, level: float) -> Estimate:
    finite = np.isfinite(rows)
    if finite.all():
        return mean_estimate(rows, np.ones(len(rows)), level, title, "KL")
    count = int(np.count_nonzero(~finite))
    return Estimate(
        name=title,
        label="KL",
        value=np.inf,
        low=np.inf,
        high=np.inf,
        n=len(rows),
        level=level,
        interval=f"infinite: in {count:,} of {len(rows):,} rows the estimate rules out true values",
    )


_LEAST_LOG_DENSITY = math.log(1e-300)


@dataclass(frozen=True)
class RegressionScores:
    """Every measure of one method's distributions.

    ``rows`` maps a key to its estimate, in the order shown: "crps", "log_score", "mse" (against
    the outcomes), "rmse", "mse_truth" (against the true mean, where known), "qce",
    "wasserstein", "smis95", "coverage95", "width95", "kl" (where the truth is known). What
    cannot be computed is absent.
    """

    name: str
    rows: dict[str, Estimate]
    n: int

    def table(self) -> pd.DataFrame:
        """One row a measure: name, value, interval, rows."""
        return pd.DataFrame(
            {
                "measure": list(self.rows),
                "name": [e.name for e in self.rows.values()],
                "value": [e.value for e in self.rows.values()],
                "low": [e.low for e in self.rows.values()],
                "high": [e.high for e in self.rows.values()],
                "expected_by_chance": [e.expected for e in self.rows.values()],
                "n": [e.n for e in self.rows.values()],
            }
        )


def regression_scores(
    distribution: PredictiveDistribution,
    y: Any,
    *,
    scale: float,
    true_mean: Any = None,
    true_distribution: PredictiveDistribution | None = None,
    pit: Any = None,
    weight: Any = None,
    level: float = 0.95,
    seed: int = 0,
    name: str = "",
) -> RegressionScores:
    """All measures of n distributions on their outcomes.

    Parameters
    ----------
    distribution : PredictiveDistribution
        n rows.
    y : (n,) array
        Outcomes, finite.
    scale : float
        Mean absolute outcome of the calibration set, for sMIS (decision D71).
    true_mean : (n,) array, optional
        The true conditional means, for "mse_truth": the MSE of Torres et al., Table 1; Table 2's is
        against the outcomes (decision D72).
    true_distribution : PredictiveDistribution, optional
        The true distributions, for "kl", and for "mse_truth" where ``true_mean`` is not given.
    pit : (n,) array, optional
        PIT values, where they are computed already; otherwise randomised ones with ``seed``.
    weight : (n,) array, optional
        Positive row weights; KL does not take them into account.
    level, seed, name
        Level of the intervals; seed of all that is drawn; the method's name.

    Raises
    ------
    InputError
        For outcomes, means, weights or a scale that do not fit; the row is named.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> found = regression_scores(Normal(np.zeros(4), 1.0), [0.0, 0.5, -0.5, 3.0], scale=1.0)
    >>> found.rows["mse"].value, found.rows["coverage95"].value
    (2.375, 0.75)
    """
    check_level(level)
    y = checked_outcome(y, len(distribution))
    weights = check_weight(weight, len(y))
    if true_mean is None and true_distribution is not None:
        true_mean = true_distribution.mean()
    values = row_scores(distribution, y, scale=scale, true_mean=true_mean)
    pit = randomised_pit(distribution, y, seed) if pit is None else pit
    given: dict[str, Any] = {"level": level, "seed": seed, "sample_weight": weight}
    central = coverage(distribution, y, (0.95,), scale=scale, weight=weight, level=level).rows[0]
    rows = {
        "crps": mean_estimate(
            values["crps"], weights, level, "Continuous ranked probability score", "CRPS"
        ),
        "log_score": _log_score(values["log_score"], weights, level, distribution.has_density),
        "mse": mean_estimate(
            values["mse"], weights, level, "Mean squared error against the outcomes", "MSE"
        ),
    }
    rows["rmse"] = _root(rows["mse"])
    if "mse_truth" in values:
        title = "Mean squared error against the true conditional mean"
        rows["mse_truth"] = mean_estimate(
            values["mse_truth"], weights, level, title, "MSE against the truth"
        )
    rows["qce"] = quantile_calibration_error(pit, **given)
    rows["wasserstein"] = wasserstein(pit, **given)
    assert central.smis is not None
    rows |= {"smis95": central.smis, "coverage95": central.coverage, "width95": central.width}
    if true_distribution is not None:
        rows["kl"] = kl_divergence(true_distribution, distribution, level=level)
    return RegressionScores(name=name, rows=rows, n=len(y))


def row_scores(
    distribution: PredictiveDistribution, y: Any, *, scale: float, true_mean: Any = None
) -> dict[str, FloatArray]:
    """Each row's scores, lower is better: what :func:`paired_difference` compares.

    Returns
    -------
    dict of (n,) arrays
        "crps", "log_score" (minus the log density: plus infinity where the density is below 1e-300,
        because one such outcome would determine the mean of all rows),
        "mse", "smis95", and "mse_truth" where ``true_mean`` is given.

    Raises
    ------
    InputError
        As :func:`regression_scores`.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> row_scores(Normal([0.0, 1.0], 1.0), [0.0, 3.0], scale=1.0)["mse"].tolist()
    [0.0, 4.0]
    """
    y = checked_outcome(y, len(distribution))
    if not 0.0 < scale < np.inf:
        raise InputError(
            f"The scale of the outcomes is {scale:g}",
            fix="Give the mean absolute outcome of the calibration set, above zero.",
        )
    mean, density = distribution.mean(), distribution.log_density(y)
    found = {
        "crps": distribution.crps(y),
        "log_score": np.where(density < _LEAST_LOG_DENSITY, np.inf, -density),
        "mse": np.square(y - mean),
        "smis95": interval_scores(*distribution.interval(0.95), y, 0.95) / scale,
    }
    if true_mean is not None:
        found["mse_truth"] = np.square(checked_outcome(true_mean, len(y), "true mean") - mean)
    return found


def paired_difference(
    a_rows: Any,
    b_rows: Any,
    *,
    weight: Any = None,
    level: float = 0.95,
    name: str = "",
    label: str = "",
) -> Estimate:
    """Mean of a - b over the same rows: for scores, below 0 says that a is better.

    The interval is normal with the rows' own spread of the difference, far narrower than the
    two means' intervals suggest, because the same rows are easy or hard for both. ``name`` and
    ``label`` name the score.

    Raises
    ------
    InputError
        For rows that are not as many, missing, or infinite in one of the two.

    Examples
    --------
    >>> found = paired_difference([1.0, 2.0, 3.0], [2.0, 3.0, 4.5], label="CRPS")
    >>> round(found.value, 3), found.high < 0
    (-1.167, True)
    """
    check_level(level)
    a = checked_outcome(a_rows, what="score")
    b = checked_outcome(b_rows, len(a), "score")
    what = name or label or "score"
    return mean_estimate(
        a - b,
        check_weight(weight, len(a)),
        level,
        f"Mean difference of {what} over the same rows",
        f"{label or 'Score'} difference",
        expected=0.0,
    )


def _root(mse: Estimate) -> Estimate:
    """RMSE with the interval of the MSE, rooted: monotone, so its coverage carries over."""
    value, low, high = (float(max(v, 0.0) ** 0.5) for v in (mse.value, mse.low, mse.high))
    return Estimate(
        name="Root mean squared error against the outcomes",
        label="RMSE",
        value=value,
        low=low,
        high=high,
        n=mse.n,
        level=mse.level,
        interval="root of the normal interval of the mean square",
    )


def _log_score(score: FloatArray, weight: FloatArray, level: float, has_density: bool) -> Estimate:
    """Minus the mean log density; infinite as soon as one outcome has almost no density."""
    title = "Log score, minus the mean log density"
    title += "" if has_density else " of a Gaussian kernel estimate"
    finite = np.isfinite(score)
    if finite.all():
        return mean_estimate(score, weight, level, title, "Log score")
    zero = int(np.count_nonzero(~finite))
    rest = ""
    if zero < len(score):
        inner = mean_interval(score[finite], weight[finite], level)[0]
        rest = f"; {inner:.4g} over the other rows"
    outcomes = "1 outcome has" if zero == 1 else f"{zero:,} outcomes have"
    return Estimate(
        name=title,
        label="Log score",
        value=np.inf,
        low=np.inf,
        high=np.inf,
        n=len(score),
        level=level,
        interval=f"infinite: {outcomes} a density below 1e-300{rest}",
    )
