"""A regression's estimates from a summary of its rows, named as those from the rows themselves.

What is exact: coverage, widths, scores and their intervals, counts of PIT values. Distances and
tests of PIT values follow from cells of at most 0.0001. Whatever needs two rows at a time, as the
spread of all outcomes, is measured in the rows that the summary keeps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kdcal_core.data import FloatArray
from kdcal_core.data.binning import uniform_edges
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.regression.coverage import STATED, Coverage, CoverageRow, row_of_means
from kdcal_core.diagnostics.regression.distribution_scores import (
    CRPS_SKILL,
    STANDARD_BIAS,
    climatology_crps,
    fieller_estimate,
    infinite_log_score,
    log_score_title,
    ratio_estimate,
)
from kdcal_core.diagnostics.regression.fault import Fault, named_fault, parts_of_sample
from kdcal_core.diagnostics.regression.pit_curves import (
    LEVELS,
    EcdfDifference,
    PitHistogram,
    QuantileReliability,
    ecdf_of_shares,
    histogram_of_counts,
    quantiles_of_shares,
)
from kdcal_core.diagnostics.regression.uniformity import (
    UniformityTest,
    quantile_error_of,
    quantile_error_of_draws,
    wasserstein_of,
    wasserstein_of_draws,
)
from kdcal_core.diagnostics.summaries.pit_cells import ClusteredPit, PitCells
from kdcal_core.diagnostics.summaries.regression_summary import RegressionSummary
from kdcal_core.diagnostics.summaries.score_grid import bins_of_cells
from kdcal_core.diagnostics.targets import check_level
from kdcal_core.distributions.distribution import nearest_intervals
from kdcal_core.errors import InputError
from kdcal_core.statistics import design_of, pooled, ratio_interval, small_sample_factor, t_quantile
from kdcal_core.statistics.means import interval_of_sums

_LEVELS: FloatArray = np.asarray(LEVELS)


def summary_pit_histogram(
    summary: RegressionSummary, bins: int = 20, level: float = 0.95
) -> PitHistogram:
    """Counts of PIT values, as :func:`kdcal_core.diagnostics.pit_histogram`.

    Parameters
    ----------
    bins : int
        1 to 50, or 100: these follow exactly.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise_regression
    >>> from kdcal_core.distributions import Normal
    >>> one = summarise_regression(Normal(np.zeros(2), 1.0), [-1.0, 3.0])
    >>> summary_pit_histogram(one, 2).counts.tolist()
    [1.0, 1.0]
    """
    check_level(level)
    counts = np.bincount(bins_of_cells(bins), summary.pit.astype(np.float64), bins)
    rows, cells = float(summary.n), summary.cells
    if isinstance(cells, ClusteredPit) and bins > 1:
        rows = cells.band_rows(uniform_edges(bins)[1:-1], level, bins=True)
    return histogram_of_counts(counts.astype(np.float64), summary.n, rows, level, "simultaneous")


def summary_ecdf(summary: RegressionSummary, *, level: float = 0.95) -> EcdfDifference:
    """As :func:`kdcal_core.diagnostics.ecdf_difference`, at its levels.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise_regression
    >>> from kdcal_core.distributions import Normal
    >>> one = summarise_regression(Normal(np.zeros(2), 1.0), [-1.0, 3.0])
    >>> float(summary_ecdf(one).difference[49])
    0.0
    """
    check_level(level)
    rows = _band_rows(summary, _LEVELS, level)
    return ecdf_of_shares(summary.cells.shares(_LEVELS), _LEVELS, summary.n, rows, level)


def _band_rows(summary: RegressionSummary, at: FloatArray, level: float) -> float:
    cells = summary.cells
    if not isinstance(cells, ClusteredPit):
        return float(summary.n)
    return cells.band_rows(at, level)


def summary_quantiles(
    summary: RegressionSummary, levels: Sequence[float], *, level: float = 0.95
) -> QuantileReliability:
    """As :func:`kdcal_core.diagnostics.quantile_reliability`, at stated levels or at ``levels``.

    Parameters
    ----------
    levels : sequence of float
        Multiples of 0.01, where the predictions state every quantile.
    """
    check_level(level)
    at = np.asarray(summary.stated or levels)
    observed = summary.below / summary.n if summary.stated else summary.cells.shares(at)
    cells, rows = summary.cells, np.full(len(at), float(summary.n))
    if isinstance(cells, ClusteredPit):
        effects = summary.level_effects() if summary.stated else cells.level_effects(at)
        rows = rows / effects
    band = _band_rows(summary, at, level)
    return quantiles_of_shares(observed, at, rows, summary.n, band, level)


def summary_uniformity(summary: RegressionSummary, seed: int = 0) -> tuple[UniformityTest, ...]:
    """As :func:`kdcal_core.diagnostics.uniformity_tests`.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise_regression
    >>> from kdcal_core.distributions import Normal
    >>> one = summarise_regression(Normal(np.zeros(50), 1.0), np.full(50, 2.0))
    >>> [round(test.p_value, 3) for test in summary_uniformity(one)]
    [0.0, 0.0, 0.0, 0.0]
    """
    return summary.cells.tests(seed)


def summary_fault(summary: RegressionSummary, *, level: float = 0.95) -> Fault:
    """As :func:`kdcal_core.diagnostics.fault`.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise_regression
    >>> from kdcal_core.distributions import Normal
    >>> one = summarise_regression(Normal(np.zeros(50), 1.0), np.full(50, 2.0))
    >>> summary_fault(one).kind
    'too low'
    """
    check_level(level)
    return named_fault(parts_of_sample(summary.cells, level, summary.stated))


def summary_wasserstein(
    summary: RegressionSummary, *, level: float = 0.95, seed: int = 0
) -> Estimate:
    """As :func:`kdcal_core.diagnostics.wasserstein`."""
    check_level(level)
    cells = summary.cells
    if isinstance(cells, ClusteredPit):
        return wasserstein_of_draws(cells.area, cells.drawn(level, seed), summary.n, level)
    return wasserstein_of(cells.area, cells.fine, float(summary.n), summary.n, level, seed)


def summary_coverage(
    summary: RegressionSummary,
    levels: Sequence[float] = STATED,
    *,
    scale: float | None = None,
    level: float = 0.95,
) -> Coverage:
    """Coverage, width and score of central intervals.

    As :func:`kdcal_core.diagnostics.coverage`; without a ``scale`` sMIS is left out.

    Parameters
    ----------
    levels : sequence of float
        Of 0.5, 0.8, 0.9, 0.95 and 0.99; the nearest ones that the predictions state.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise_regression
    >>> from kdcal_core.distributions import Normal
    >>> one = summarise_regression(Normal(np.zeros(4), 1.0), [0.0, 0.5, -0.5, 3.0])
    >>> summary_coverage(one).at(0.95).coverage.value
    0.75
    """
    check_level(level)
    if scale is not None and not 0.0 < scale < np.inf:
        raise InputError(f"The scale of the outcomes is {scale:g}", fix="Give one above zero.")
    asked = nearest_intervals(summary.stated, levels)
    rows = tuple(_coverage_row(summary, one, scale, level) for one in asked)
    return Coverage(rows, summary.n, scale)


def _coverage_row(
    summary: RegressionSummary, stated: float, scale: float | None, level: float
) -> CoverageRow:
    means = [summary_mean(summary, f"{what} {stated:g}", level) for what in ("width", "score")]
    if scale is not None:
        mean, low, high = (value / scale for value in means[1])
        means.append((mean, low, high))
    at = summary.intervals.index(stated)
    rows = summary.n / summary.share_effect(at, stated)
    share, student = float(summary.inside[at]) / summary.n, summary.clusters is not None
    return row_of_means(stated, share, rows, means, summary.n, level, student=student)


def summary_scale(summary: RegressionSummary) -> float | None:
    """Mean absolute outcome; None where all outcomes are zero."""
    return summary.moments("size")[0] / summary.n or None


def summary_regression_estimates(
    summary: RegressionSummary,
    *,
    scale: float | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> dict[str, Estimate]:
    """Every measure of the distributions by its key.

    As :func:`kdcal_core.evaluation.regression_scores`. Means are exact sums, rounded once, with
    normal intervals.

    Parameters
    ----------
    scale : float, optional
        The unit of sMIS; by default the mean absolute outcome of the rows.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise_regression
    >>> from kdcal_core.distributions import Normal
    >>> one = summarise_regression(Normal(np.zeros(4), 1.0), [0.0, 0.5, -0.5, 3.0])
    >>> found = summary_regression_estimates(one)
    >>> {key: round(found[key].value, 3) for key in ("crps", "mse", "coverage95")}
    {'crps': 0.833, 'mse': 2.375, 'coverage95': 0.75}
    """
    check_level(level)
    n, cells = summary.n, summary.cells
    central = _coverage_row(summary, 0.95, scale or summary_scale(summary) or 1.0, level)
    square = summary_mean(summary, "squared error", level)
    root = [max(value, 0.0) ** 0.5 for value in square]
    assert central.smis is not None

    def estimate(name: str, values: Sequence[float], interval: str = "normal") -> Estimate:
        value, low, high = values
        return Estimate(name, "", value, low, high, n, level, interval)

    truth = {}
    if summary.has_truth:
        away = summary_mean(summary, "squared distance from the truth", level)
        title = "Mean squared error against the true conditional mean"
        truth["mse_truth"] = estimate(title, away)
    return {
        "crps": estimate(
            "Continuous ranked probability score", summary_mean(summary, "CRPS", level)
        ),
        "log_score": _log_score(summary, level),
        "mse": estimate("Mean squared error against the outcomes", square),
        "rmse": estimate(
            "Root mean squared error against the outcomes",
            root,
            "root of the normal interval of the mean square",
        ),
        **truth,
        "qce": _quantile_error(cells, n, level, seed),
        "wasserstein": summary_wasserstein(summary, level=level, seed=seed),
        "smis95": central.smis,
        "coverage95": central.coverage,
        "width95": central.width,
    }


def _quantile_error(cells: PitCells, n: int, level: float, seed: int) -> Estimate:
    share = cells.shares(_LEVELS)
    if isinstance(cells, ClusteredPit):
        return quantile_error_of_draws(share, _LEVELS, cells.drawn(level, seed), n, level)
    return quantile_error_of(share, _LEVELS, float(n), n, "l2", level, seed)


def _log_score(summary: RegressionSummary, level: float) -> Estimate:
    """Minus the mean log density; infinite if a single outcome has almost no density."""
    n, zero = summary.n, summary.impossible
    title = log_score_title(summary.has_density)
    if not zero:
        values = summary_mean(summary, "log score", level)
        return Estimate(title, "", *values, n, level, "normal")
    inner = summary.moments("log score")[0] / (n - zero) if zero < n else None
    return infinite_log_score(title, zero, n, level, inner)


def summary_bias(summary: RegressionSummary, *, level: float = 0.95) -> Estimate:
    """As :func:`kdcal_core.diagnostics.standardised_bias`.

    The value is that of all rows. How the errors vary with the outcomes, for its interval, is
    measured in the rows that the summary keeps.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise_regression
    >>> from kdcal_core.distributions import Normal
    >>> one = summarise_regression(Normal([1.5, 2.5, 3.5], 1.0), [1.0, 2.0, 3.0])
    >>> round(summary_bias(one).value, 2)
    0.61
    """
    check_level(level)
    n = summary.n
    total, square = summary.exact_moments("outcome")
    square += summary.exact_moments("square's rest")[0]
    variance = float(square / n - (total / n) ** 2)
    deviation = variance**0.5
    errors, squares = summary.exact_moments("error")
    bias = float(errors / n)
    low, high = -np.inf, np.inf
    if n > 1:
        y, _, error = summary.drawn.T
        spread = 0.5 * (variance + np.square(y - float(total / n))) / deviation
        (_, covariance), (_, own) = _covariance(summary, error, spread) / n
        of_errors = float(squares / n - (errors / n) ** 2) / (n - 1) * summary.effect("error")
        reach = t_quantile(level, n - 1)
        low, high = ratio_interval(bias, deviation, of_errors, float(covariance), float(own), reach)
    value = bias / deviation
    return fieller_estimate((value, min(low, value), max(high, value)), n, level, *STANDARD_BIAS)


def _covariance(summary: RegressionSummary, error: FloatArray, spread: FloatArray) -> FloatArray:
    """Of the drawn rows' values, times what clusters add to the products of their sums, (2, 2)."""
    found = np.cov(error, spread)
    together = summary.drawn_dependence
    if together is None or len(error) < 2:
        return np.asarray(found)
    parts = np.stack([error - error.mean(), spread - spread.mean()])
    totals = pooled(parts, together)
    units = len(np.unique(together.unit))
    if units < 2:
        return np.asarray(found)
    # of drawn rows fewer are of one cluster than of all: pairs count as many times more
    pairs = totals @ totals.T - parts @ parts.T
    pairs[np.diag(pairs) < 0.0] = 0.0
    pairs[:, np.diag(pairs) == 0.0] = 0.0
    more = summary.n / len(error)
    factor = small_sample_factor(units, together.lags)
    return np.asarray((parts @ parts.T + pairs * more) / len(error) * factor)


def summary_skill(
    summary: RegressionSummary, known: RegressionSummary | None = None, *, level: float = 0.95
) -> Estimate:
    """CRPS gained over the distribution of all outcomes, of the rows that the summary keeps.

    The trivial forecast of a row needs every other outcome, so it is that of at most 65,536 rows
    drawn at random: of the rows of ``known``, or of those that are judged.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise_regression
    >>> from kdcal_core.distributions import Normal
    >>> y = np.array([0.0, 1.0, 2.0, 3.0])
    >>> round(summary_skill(summarise_regression(Normal(y, 0.1), y)).value, 2)
    0.96
    """
    y, own, _ = summary.drawn.T
    trivial = climatology_crps((known or summary).drawn[:, 0], y)
    return ratio_estimate(
        trivial - own,
        trivial,
        weight=design_of(None, summary.drawn_dependence),
        level=level,
        name=CRPS_SKILL[0],
        label=CRPS_SKILL[1],
        lower_is_better=False,
    )


def summary_mean(summary: RegressionSummary, what: str, level: float) -> tuple[float, float, float]:
    """Mean of a quantity of the rows, with its normal interval."""
    effect = summary.effect(what) if summary.n > 1 else 1.0
    return interval_of_sums(*summary.moments(what), summary.n, level, effect=effect)
