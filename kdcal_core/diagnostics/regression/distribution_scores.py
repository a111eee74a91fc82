"""Scores of predictive distributions row by row, their paired differences, and divergences."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray, check_weight
from kdcal_core.diagnostics.estimate import Estimate, reference_text
from kdcal_core.diagnostics.regression.coverage import (
    checked_outcome,
    interval_scores,
    mean_estimate,
)
from kdcal_core.diagnostics.targets import check_level
from kdcal_core.distributions import PredictiveDistribution
from kdcal_core.errors import InputError
from kdcal_core.statistics import dependence_of, ratio_of_means
from kdcal_core.text import formatted

NODES = 64
STANDARD_BIAS = (
    "Predictive mean minus outcome, in standard deviations of the outcome",
    "Mean minus outcome (in standard deviations)",
)
CRPS_SKILL = (
    "CRPS gained over the distribution of all outcomes, as a share of its CRPS",
    "CRPS skill",
)


def kl_divergence(
    true: PredictiveDistribution,
    estimate: PredictiveDistribution,
    *,
    cells: int | None = None,
    level: float = 0.95,
) -> Estimate:
    """Mean over the rows of KL(true || estimate), in nats, at least 0.

    Parameters
    ----------
    true, estimate : PredictiveDistribution
        n rows each.
    cells : int, optional
        By default the divergence is the integral of log(true density / estimated density) over the
        true distribution, by Gauss-Legendre quadrature in its quantile levels with 64 nodes. With
        a number it is that of the probabilities of this many cells, equally likely under the
        truth. Cells need no density, and never give more than the densities do. Distributions
        without a density (samples) use 20 cells. Compare only results of the same kind.
    level : float
        Level of the interval.

    Raises
    ------
    InputError
        For different numbers of rows, or fewer than two cells.

    Notes
    -----
    The true density counts as zero beyond the outermost nodes, at levels 0.0003 and 0.9997. An
    estimate that gives a cell or a node no probability has an infinite divergence. The mean is
    then infinite, and ``interval`` counts these rows.

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
        raise InputError(f"{cells} cells cannot show a divergence", fix="Choose at least 2.")
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
    the outcomes), "rmse", "mse_truth" (against the true mean, if known), "qce", "wasserstein",
    "smis95", "coverage95", "width95", "kl" (if the truth is known). Measures that cannot be
    computed are absent.
    """

    name: str
    rows: dict[str, Estimate]
    n: int

    def table(self) -> pd.DataFrame:
        """One row per measure: name, value, interval, rows."""
        return pd.DataFrame(
            {
                "measure": list(self.rows),
                "name": [e.name for e in self.rows.values()],
                "value": [e.value for e in self.rows.values()],
                "low": [e.low for e in self.rows.values()],
                "high": [e.high for e in self.rows.values()],
                "expected": [e.expected for e in self.rows.values()],
                "reference": [reference_text(e) for e in self.rows.values()],
                "n": [e.n for e in self.rows.values()],
            }
        )


def log_scores(distribution: PredictiveDistribution, y: FloatArray) -> FloatArray:
    """Minus the log density at each outcome, (n,); lower is better.

    Plus infinity where the density is below 1e-300, because one such outcome would determine the
    mean of all rows.
    """
    density = distribution.log_density(y)
    return np.where(density < _LEAST_LOG_DENSITY, np.inf, -density)


def squared_errors(distribution: PredictiveDistribution, y: FloatArray) -> FloatArray:
    """Squared distance of each mean from the outcome, or from the true mean, (n,).

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> squared_errors(Normal([0.0, 1.0], 1.0), np.array([0.0, 3.0])).tolist()
    [0.0, 4.0]
    """
    return np.square(y - distribution.mean())


def scaled_interval_scores(
    distribution: PredictiveDistribution, y: FloatArray, scale: float
) -> FloatArray:
    """Interval score of each central 95% interval over the mean absolute outcome, (n,).

    Raises
    ------
    InputError
        If the scale is not a number above zero.
    """
    if not 0.0 < scale < np.inf:
        raise InputError(
            f"The scale of the outcomes is {formatted(scale, 'g')}",
            fix="Give the mean absolute outcome of the calibration set, above zero.",
        )
    return interval_scores(*distribution.interval(0.95), y, 0.95) / scale


def climatology_crps(outcomes: Any, y: Any, *, sample_weight: Any = None) -> FloatArray:
    """CRPS of each row (n,) if the forecast is always the same past outcomes (m,).

    The forecast is their empirical distribution, which uses nothing about the row. The CRPS is
    E|X - y| - E|X - X'| / 2 (Gneiting and Raftery 2007), by sorting, in O((n + m) log m).
    ``sample_weight`` (m,) are positive weights of the past outcomes.

    Raises
    ------
    InputError
        For outcomes that are missing or infinite, or if there are none, and for faulty weights.

    Examples
    --------
    >>> climatology_crps([0.0, 1.0], [0.5, 2.0]).tolist()
    [0.25, 1.25]
    """
    past = checked_outcome(outcomes, len(outcomes))
    weight = check_weight(sample_weight, len(past))
    now = checked_outcome(y, len(y))
    order = np.argsort(past, kind="stable")
    past, share = past[order], weight[order] / weight.sum()
    reached = np.concatenate([[0.0], np.cumsum(share)])
    total = np.concatenate([[0.0], np.cumsum(share * past)])
    below = np.searchsorted(past, now, side="right")
    away = now * (2.0 * reached[below] - reached[-1]) + total[-1] - 2.0 * total[below]
    among = 2.0 * float((reached[:-1] + reached[1:] - reached[-1]) @ (share * past))
    return np.asarray(away - 0.5 * among)


def paired_difference(
    a_rows: Any,
    b_rows: Any,
    *,
    weight: Any = None,
    level: float = 0.95,
    name: str = "",
    label: str = "",
) -> Estimate:
    """Mean of a - b over the same rows; for scores, below 0 means that a is better.

    The interval is Student's with the spread of the rows' differences. It is far narrower than
    the two means' intervals suggest, because the same rows are easy or hard for both. ``name`` and
    ``label`` name the score. With a :class:`kdcal_core.statistics.RowDesign` as ``weight`` it is
    that of clusters' totals or, in time, of the test of Diebold and Mariano.

    Raises
    ------
    InputError
        If the numbers of rows differ, or a value is missing, or infinite in one of the two.

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
        student=True,
        dependence=dependence_of(weight),
        expected=0.0,
    )


def ratio_estimate(
    top_rows: Any,
    bottom_rows: Any,
    *,
    weight: Any = None,
    level: float = 0.95,
    name: str,
    label: str,
    percent: bool = False,
    lower_is_better: bool | None = None,
) -> Estimate:
    """Mean of one value over the mean of another of the same rows, with Fieller's interval.

    As in :func:`kdcal_core.statistics.ratio_of_means`: both means are uncertain, and the interval
    excludes 0 exactly where that of the first mean does.

    Raises
    ------
    InputError
        As in :func:`paired_difference`.

    Examples
    --------
    >>> own, trivial = np.array([1.0, 2.0, 1.5]), np.array([2.0, 4.0, 2.5])
    >>> round(ratio_estimate(trivial - own, trivial, name="Skill", label="Skill").value, 2)
    0.47
    """
    check_level(level)
    top = checked_outcome(top_rows, what="score")
    bottom = checked_outcome(bottom_rows, len(top), "score")
    value, low, high = ratio_of_means(
        top, bottom, check_weight(weight, len(top)), level, dependence_of(weight)
    )
    found = fieller_estimate((value, low, high), len(top), level, name, label, percent=percent)
    return replace(found, lower_is_better=lower_is_better)


def fieller_estimate(
    values: tuple[float, float, float],
    n: int,
    level: float,
    name: str,
    label: str,
    *,
    percent: bool = False,
) -> Estimate:
    """A ratio of means of ``n`` rows, from its value and the ends of Fieller's interval."""
    value, low, high = values
    how = "Fieller, t quantile"
    return Estimate(
        name, label, value, low, high, n, level, how, percent=percent, lower_is_better=None
    )


def standardised_bias(mean: Any, y: Any, *, weight: Any = None, level: float = 0.95) -> Estimate:
    """Mean error of predictive means (n,) over the standard deviation of the outcomes y (n,).

    Both are uncertain, so the interval is Fieller's. A limit in standard deviations suits outcomes
    of every unit. Outcomes must differ.

    Raises
    ------
    InputError
        As in :func:`paired_difference`.

    Examples
    --------
    >>> round(standardised_bias([1.5, 2.5, 3.5], [1.0, 2.0, 3.0]).value, 2)
    0.61
    """
    outcome = checked_outcome(y)
    weights = check_weight(weight, len(outcome))
    centred = outcome - np.average(outcome, weights=weights)
    variance = float(np.average(np.square(centred), weights=weights))
    # each row's share in the standard deviation, to first order; their mean is that deviation
    spread = 0.5 * (variance + np.square(centred)) / variance**0.5
    return ratio_estimate(
        np.asarray(mean, dtype=np.float64) - outcome,
        spread,
        weight=weight,
        level=level,
        name=STANDARD_BIAS[0],
        label=STANDARD_BIAS[1],
    )


def log_score_title(has_density: bool) -> str:
    """The name of the mean log score of distributions with a density, or without."""
    title = "Log score, minus the mean log density"
    return title + ("" if has_density else " of a Gaussian kernel estimate")


def infinite_log_score(
    title: str, impossible: int, n: int, level: float, rest: float | None
) -> Estimate:
    """The log score of rows of which some outcomes have almost no density.

    ``rest`` is the mean over the other rows; None where there is none.
    """
    outcomes = "1 outcome has" if impossible == 1 else f"{impossible:,} outcomes have"
    more = "" if rest is None else f"; {rest:.4g} over the other rows"
    return Estimate(
        name=title,
        label="",
        value=np.inf,
        low=np.inf,
        high=np.inf,
        n=n,
        level=level,
        interval=f"infinite: {outcomes} a density below 1e-300{more}",
    )
