"""Measures of predictive distributions, and a function that computes all of them for one method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from kdcal_core.data import FloatArray, check_weight
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.influence import pit_distance_influence, quantile_error_influence
from kdcal_core.diagnostics.regression import (
    RegressionScores,
    coverage,
    kl_divergence,
    log_scores,
    quantile_calibration_error,
    scaled_interval_scores,
    squared_errors,
    wasserstein,
)
from kdcal_core.diagnostics.regression.coverage import checked_outcome
from kdcal_core.diagnostics.regression.distribution_scores import (
    infinite_log_score,
    log_score_title,
)
from kdcal_core.diagnostics.summaries import RegressionSummary, summary_regression_estimates
from kdcal_core.diagnostics.targets import check_level
from kdcal_core.distributions import PredictiveDistribution, RegressionSet, randomised_pit
from kdcal_core.evaluation.measures import MEASURES, Measure, OfDistributions, PredictedRows
from kdcal_core.statistics import mean_interval


def row_measures() -> tuple[Measure, ...]:
    """Measures of predictive distributions that are means over the rows.

    Examples
    --------
    >>> [one.key for one in row_measures()]
    ['crps', 'log_score', 'mse', 'smis95']
    """
    found = (one for one in MEASURES.values() if one.family == "distribution")
    return tuple(one for one in found if one.by_row is not None)


def row_scores(
    distribution: PredictiveDistribution, y: Any, *, scale: float
) -> dict[str, FloatArray]:
    """Each row's part of every measure that has one, (n,) by key; lower is better.

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
    return {one.key: one.by_row(distribution, y, scale) for one in row_measures() if one.by_row}


def regression_scores(
    distribution: PredictiveDistribution,
    y: Any,
    *,
    scale: float,
    true_mean: Any = None,
    true_distribution: PredictiveDistribution | None = None,
    pit: Any = None,
    rows: Mapping[str, FloatArray] | None = None,
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
        Mean absolute outcome of the calibration set, for sMIS.
    true_mean : (n,) array, optional
        The true conditional means, for "mse_truth". This is the MSE of Torres et al., Table 1; the
        MSE of Table 2 is against the outcomes.
    true_distribution : PredictiveDistribution, optional
        The true distributions, for "kl", and for "mse_truth" where ``true_mean`` is not given.
    pit : (n,) array, optional
        PIT values where they have been computed; otherwise they are randomised with ``seed``.
    rows : mapping of str to (n,) array, optional
        Result of :func:`row_scores` where it has been computed.
    weight : (n,) array or RowDesign, optional
        Positive row weights, with or without the dependence of the rows; KL takes neither into
        account.
    level, seed, name
        Level of the intervals, seed of all draws, and the method's name.

    Raises
    ------
    InputError
        For invalid outcomes, means, weights or scale; the row is named.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> found = regression_scores(Normal(np.zeros(4), 1.0), [0.0, 0.5, -0.5, 3.0], scale=1.0)
    >>> found.rows["mse"].value, found.rows["coverage95"].value
    (2.375, 0.75)
    """
    check_level(level)
    y = checked_outcome(y, len(distribution))
    check_weight(weight, len(y))
    if true_mean is None and true_distribution is not None:
        true_mean = true_distribution.mean()
    predicted = PredictedRows(
        distribution=distribution,
        y=y,
        scale=scale,
        pit=randomised_pit(distribution, y, seed) if pit is None else pit,
        rows=row_scores(distribution, y, scale=scale) if rows is None else rows,
        central=coverage(distribution, y, (0.95,), scale=scale, weight=weight, level=level).rows[0],
        weight=weight,
        true_mean=None if true_mean is None else checked_outcome(true_mean, len(y), "true mean"),
        true_distribution=true_distribution,
        level=level,
        seed=seed,
    )
    found = {
        measure.key: one
        for measure in MEASURES.values()
        if measure.family == "distribution" and (one := _estimate(measure, predicted)) is not None
    }
    return _scores_of(found, len(y), name)


def summary_scores(
    summary: RegressionSummary,
    *,
    scale: float | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> RegressionScores:
    """As :func:`regression_scores`, of a summary of the rows.

    Parameters
    ----------
    scale : float, optional
        The unit of sMIS; by default the mean absolute outcome of the rows.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise_regression
    >>> from kdcal_core.distributions import Normal
    >>> one = summarise_regression(Normal(np.zeros(4), 1.0), [0.0, 0.5, -0.5, 3.0])
    >>> summary_scores(one).rows["mse"].label
    'MSE'
    """
    found = summary_regression_estimates(summary, scale=scale, level=level, seed=seed)
    return _scores_of(found, summary.n)


def distribution_influences(
    rows: RegressionSet, *, scale: float, pit: FloatArray
) -> dict[str, FloatArray]:
    """Influence values of the rows (n,) on the measures of :func:`regression_scores`, by key.

    Without KL, which no rows of a review have.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> y = np.array([0.0, 0.5, -0.5, 3.0])
    >>> rows = RegressionSet(Normal(np.zeros(4), 1.0), y, "", "evaluation")
    >>> found = distribution_influences(rows, scale=1.0, pit=np.array([0.5, 0.7, 0.3, 0.99]))
    >>> found["coverage95"].tolist()
    [1.0, 1.0, 1.0, 0.0]
    """
    weight = check_weight(rows.weight, rows.n_rows)
    found = {**row_scores(rows.distribution, rows.y, scale=scale)}
    root = float(np.average(found["mse"], weights=weight)) ** 0.5
    found["rmse"] = found["mse"] / (2.0 * max(root, 1e-300))
    if rows.true_mean is not None:
        found["mse_truth"] = squared_errors(rows.distribution, rows.true_mean)
    found["qce"] = quantile_error_influence(pit, weight)
    found["wasserstein"] = pit_distance_influence(pit, weight)
    return found | interval_rows(rows.distribution, rows.y)


def interval_rows(distribution: PredictiveDistribution, y: FloatArray) -> dict[str, FloatArray]:
    """Whether each outcome lies in its central 95% interval, and the interval's width."""
    low, high = distribution.interval(0.95)
    inside = ((y >= low) & (y <= high)).astype(np.float64)
    return {"coverage95": inside, "width95": np.asarray(high - low, dtype=np.float64)}


def _scores_of(found: Mapping[str, Estimate], n: int, name: str = "") -> RegressionScores:
    rows = {
        key: replace(one, label=MEASURES[key].title, lower_is_better=MEASURES[key].lower_is_better)
        for key, one in found.items()
    }
    return RegressionScores(name=name, rows=rows, n=n)


def _estimate(measure: Measure, predicted: PredictedRows) -> Estimate | None:
    if measure.of_distributions is not None:
        return measure.of_distributions(predicted)
    if measure.by_row is not None:
        return predicted.mean(predicted.rows[measure.key], measure.title)
    return None


def _mean(key: str, name: str) -> OfDistributions:
    return lambda found: found.mean(found.rows[key], name)


def _log_score(found: PredictedRows) -> Estimate:
    """Minus the mean log density; infinite if a single outcome has almost no density."""
    score = found.rows["log_score"]
    title = log_score_title(found.distribution.has_density)
    finite = np.isfinite(score)
    if finite.all():
        return found.mean(score, title)
    zero = int(np.count_nonzero(~finite))
    inner = None
    if zero < len(score):
        weight = check_weight(found.weight, len(score))
        inner = mean_interval(score[finite], weight[finite], found.level)[0]
    return infinite_log_score(title, zero, len(score), found.level, inner)


def _root(found: PredictedRows) -> Estimate:
    """RMSE with the square root of the MSE's interval, which keeps its coverage (monotone)."""
    mse = found.mean(found.rows["mse"], "")
    value, low, high = (float(max(v, 0.0) ** 0.5) for v in (mse.value, mse.low, mse.high))
    return replace(
        mse,
        name="Root mean squared error against the outcomes",
        value=value,
        low=low,
        high=high,
        interval=f"root of the {mse.interval} interval of the mean square",
    )


def _against_truth(found: PredictedRows) -> Estimate | None:
    if found.true_mean is None:
        return None
    rows = squared_errors(found.distribution, found.true_mean)
    return found.mean(rows, "Mean squared error against the true conditional mean")


def _quantile_error(found: PredictedRows) -> Estimate:
    given: dict[str, Any] = {"level": found.level, "seed": found.seed}
    return quantile_calibration_error(found.pit, sample_weight=found.weight, **given)


def _wasserstein(found: PredictedRows) -> Estimate:
    return wasserstein(found.pit, level=found.level, seed=found.seed, sample_weight=found.weight)


def _divergence(found: PredictedRows) -> Estimate | None:
    if found.true_distribution is None:
        return None
    return kl_divergence(found.true_distribution, found.distribution, level=found.level)


_NORMAL = "normal interval of the mean difference over the same rows"
_OUTCOME = "the outcome's unit"

Measure(
    "crps",
    "CRPS",
    "Continuous ranked probability score: how far the whole predicted distribution lies "
    "from the outcome, in the outcome's own unit. Lower is better.",
    _OUTCOME,
    True,
    "distribution",
    test=_NORMAL,
    by_row=lambda distribution, y, scale: distribution.crps(y),
    of_distributions=_mean("crps", "Continuous ranked probability score"),
).offer()

Measure(
    "log_score",
    "Log score",
    "Minus the logarithm of the stated density at the outcome, on average. Lower is "
    "better: confident predictions that are wrong cost most.",
    "nats",
    True,
    "distribution",
    test=_NORMAL,
    by_row=lambda distribution, y, scale: log_scores(distribution, y),
    of_distributions=_log_score,
).offer()

Measure(
    "mse",
    "MSE",
    "Mean squared error of the predicted mean against the outcomes. Lower is better.",
    f"{_OUTCOME}, squared",
    True,
    "distribution",
    test=_NORMAL,
    by_row=lambda distribution, y, scale: squared_errors(distribution, y),
    of_distributions=_mean("mse", "Mean squared error against the outcomes"),
).offer()

Measure(
    "rmse",
    "RMSE",
    "Root mean squared error of the predicted mean: it ignores the rest of the distribution. Lower "
    "is better.",
    _OUTCOME,
    True,
    "distribution",
    of_distributions=_root,
).offer()

Measure(
    "mse_truth",
    "MSE against the truth",
    "Mean squared error of the predicted mean against the true one, which only simulated "
    "data know. Lower is better.",
    f"{_OUTCOME}, squared",
    True,
    "distribution",
    of_distributions=_against_truth,
).offer()

Measure(
    "qce",
    "Quantile error",
    "How far the stated quantiles lie from the share of outcomes below them, as a root "
    "mean square over the levels. 0 is best.",
    "share",
    True,
    "distribution",
    of_distributions=_quantile_error,
).offer()

Measure(
    "wasserstein",
    "Wasserstein",
    "Distance of the PIT values from the uniform distribution that right predictions "
    "give. 0 is best.",
    "share",
    True,
    "distribution",
    of_distributions=_wasserstein,
).offer()

Measure(
    "smis95",
    "sMIS 95%",
    "Scaled mean interval score: the width of the central 95% intervals plus a penalty for every "
    "outcome outside, over the mean absolute outcome. Lower is better.",
    "mean absolute outcomes",
    True,
    "distribution",
    test=_NORMAL,
    by_row=scaled_interval_scores,
    of_distributions=lambda found: found.central.smis,
).offer()

Measure(
    "coverage95",
    "Coverage 95%",
    "How often the outcome lies inside the stated central 95% interval.",
    "share",
    None,
    "distribution",
    of_distributions=lambda found: found.central.coverage,
).offer()

Measure(
    "width95",
    "Width 95%",
    "Mean width of the stated central 95% intervals. Of two methods that cover alike the "
    "narrower one says more.",
    _OUTCOME,
    None,
    "distribution",
    of_distributions=lambda found: found.central.width,
).offer()

Measure(
    "kl",
    "KL",
    "Kullback-Leibler divergence of the prediction from the true distribution, which only "
    "simulated data know. 0 is best.",
    "nats",
    True,
    "distribution",
    of_distributions=_divergence,
).offer()

Measure(
    "bias",
    "Location",
    "Mean PIT value minus 0.5. Above 0 the predictions are too low, below 0 too high.",
    "share",
    None,
    "fault",
).offer()
