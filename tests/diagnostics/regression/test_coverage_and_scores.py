"""Coverage, interval scores and all other measures: by brute force, by scipy, by Torres et al.."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from kdcal_core.diagnostics import (
    coverage,
    estimate_text,
    kl_divergence,
    mean_scale,
    paired_difference,
    reference_text,
    squared_errors,
)
from kdcal_core.distributions import Empirical, Gamma, Normal
from kdcal_core.errors import InputError
from kdcal_core.evaluation import regression_scores, row_scores
from kdcal_core.simulation import heteroscedastic


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.integers(0, 10_000))
def test_coverage_by_brute_force(n, seed):
    rng = np.random.default_rng(seed)
    mean, std, y = rng.normal(size=n), rng.gamma(2.0, size=n), rng.normal(size=n)
    row = coverage(Normal(mean, std), y, (0.8,), scale=3.0).rows[0]
    hits, widths, scores = 0, [], []
    for m, s, outcome in zip(mean, std, y, strict=True):
        low, high = stats.norm.interval(0.8, m, s)
        hits += low <= outcome <= high
        widths.append(high - low)
        miss = max(low - outcome, 0.0) + max(outcome - high, 0.0)
        scores.append(high - low + 2 / 0.2 * miss)
    ends = stats.binomtest(int(hits), n).proportion_ci(0.95, "exact")
    assert row.coverage.value == pytest.approx(hits / n)
    assert (row.coverage.low, row.coverage.high) == pytest.approx((ends.low, ends.high))
    assert row.width.value == pytest.approx(np.mean(widths))
    assert row.interval_score.value == pytest.approx(np.mean(scores))
    assert row.smis is not None
    assert row.smis.value == pytest.approx(np.mean(scores) / 3.0)


def test_weighted_rows_count_by_their_weight():
    states, y = Normal(np.zeros(4), 1.0), np.array([0.0, 0.0, 0.0, 9.0])
    row = coverage(states, y, (0.95,), weight=[1.0, 1.0, 1.0, 3.0]).rows[0]
    assert row.coverage.value == pytest.approx(0.5)
    found = regression_scores(states, y, scale=1.0, weight=[1.0, 1.0, 1.0, 3.0])
    assert found.rows["mse"].value == pytest.approx(81 / 2)


def test_a_coverage_is_compared_with_its_stated_level_and_an_error_with_chance():
    y = stats.norm.rvs(size=200, random_state=1)
    found = regression_scores(Normal(np.zeros(200), 1.0), y, scale=1.0)
    held, error = found.rows["coverage95"], found.rows["qce"]
    assert estimate_text(held).endswith("; 95% stated)")
    assert reference_text(error).endswith("% expected by chance")
    assert reference_text(found.rows["crps"]) == ""
    by_key = found.table().set_index("measure").reference
    assert (by_key["coverage95"], by_key["crps"]) == ("95% stated", "")


def test_papers_misspecified_line():
    """Torres et al., section 4.1: the highlighted point, and Table 1's row of the linear model."""
    assert Normal(1484.01, 384.41).cdf(2146.22)[0] == pytest.approx(0.9575, abs=5e-5)
    # the best line's limit, -460 + 110 x with residual standard deviation 384.4
    calibration, evaluation = (heteroscedastic(10_000, seed=s) for s in (1, 2))
    line = Normal(-460.0 + 110.0 * evaluation.X[:, 0], 384.4)
    scale = mean_scale(calibration.y)
    found = regression_scores(
        line, evaluation.y, scale=scale, true_distribution=evaluation.distribution
    ).rows
    # printed: sMIS 2.7475, seeds spread by 0.05; coverage 93.78%; MSE against the truth 14,546
    assert found["smis95"].value == pytest.approx(2.72, abs=0.12)
    assert found["coverage95"].value == pytest.approx(0.9378, abs=0.008)
    assert found["mse_truth"].value == pytest.approx(14_500, rel=0.05)
    assert found["mse"].value == pytest.approx(384.4**2, rel=0.08)
    truth = regression_scores(evaluation.distribution, evaluation.y, scale=scale).rows
    assert truth["smis95"].value == pytest.approx(2.05, abs=0.1)
    assert truth["qce"].low == 0.0 < found["qce"].low


def test_scores_of_normals_against_integration():
    states, y = Normal([0.0, 2.0], [1.0, 0.5]), np.array([0.7, 1.0])
    rows = row_scores(states, y, scale=2.0)
    for i, (m, s) in enumerate([(0.0, 1.0), (2.0, 0.5)]):
        state, end = stats.norm(m, s), 12 * s
        below = integrate.quad(lambda t, f=state: f.cdf(t) ** 2, m - end, y[i])[0]
        above = integrate.quad(lambda t, f=state: f.sf(t) ** 2, y[i], m + end)[0]
        assert rows["crps"][i] == pytest.approx(below + above, rel=1e-6)
        assert rows["log_score"][i] == pytest.approx(-stats.norm.logpdf(y[i], m, s))
    assert squared_errors(states, np.array([0.5, 2.5])) == pytest.approx([0.25, 0.25])


def test_mean_squared_errors_are_told_apart():
    states, y = Normal(np.zeros(50), 1.0), np.ones(50) + np.tile([-0.5, 0.5], 25)
    found = regression_scores(states, y, scale=1.0, true_mean=np.full(50, 2.0)).rows
    assert found["mse"].value == pytest.approx(1.25)
    assert found["mse_truth"].value == pytest.approx(4.0)
    assert found["rmse"].value == pytest.approx(1.25**0.5)
    assert found["rmse"].low == pytest.approx(found["mse"].low ** 0.5)
    assert "mse_truth" not in regression_scores(states, y, scale=1.0).rows


def test_zero_density_is_counted_never_hidden(texts):
    found = regression_scores(Gamma(2.0, np.ones(5)), [1.0, 1.0, 1.0, -1.0, -2.0], scale=1.0)
    score = found.rows["log_score"]
    assert score.value == np.inf
    texts(score.interval)


def test_paired_difference_is_the_t_like_interval_of_the_difference():
    rng = np.random.default_rng(0)
    hard = rng.gamma(2.0, size=2000)
    a, b = hard + rng.normal(0.0, 0.1, 2000), hard + 0.02 + rng.normal(0.0, 0.1, 2000)
    found = paired_difference(a, b, label="CRPS")
    interval = stats.ttest_rel(a, b).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), rel=1e-2)
    assert found.high < 0.0
    with pytest.raises(InputError):
        paired_difference(a, b[:-1])
    with pytest.raises(InputError, match=r"scores is inf .*row 3"):
        paired_difference([1.0, 2.0, np.inf], [1.0, 2.0, 3.0])


def test_kl_of_normals_is_the_closed_form():
    true, guess = Normal([0.0, 1.0], [1.0, 2.0]), Normal([0.5, 0.0], [1.5, 2.5])
    m0, s0, m1, s1 = np.array([0.0, 1.0]), np.array([1.0, 2.0]), np.array([0.5, 0.0]), [1.5, 2.5]
    s1 = np.array(s1)
    exact = np.log(s1 / s0) + (s0**2 + (m0 - m1) ** 2) / (2 * s1**2) - 0.5
    assert kl_divergence(true, guess).value == pytest.approx(exact.mean(), abs=2e-3)
    coarse, fine = (kl_divergence(true, guess, cells=c).value for c in (10, 200))
    assert 0.0 < coarse < fine < exact.mean()
    assert kl_divergence(true, true).value == pytest.approx(0.0, abs=1e-12)


def test_kl_of_the_papers_line_is_the_computed_one():
    """KL(true || line) is 0.30 on average, not the printed 0.8455."""
    drawn = heteroscedastic(20_000, seed=3)
    line = Normal(-460.0 + 110.0 * drawn.X[:, 0], 384.4)
    assert kl_divergence(drawn.distribution, line).value == pytest.approx(0.30, abs=0.01)


def test_kl_of_samples_goes_by_cells_and_counts_what_they_rule_out(texts):
    true = Normal(np.zeros(3), 1.0)
    drawn = Empirical(true.sample(20_000, seed=0))
    found = kl_divergence(true, drawn)
    assert "20 cells" in found.name
    # expected for m independent samples: (cells - 1) / (2 m)
    assert found.value == pytest.approx(19 / 40_000, abs=1e-3)
    narrow = kl_divergence(true, Empirical(np.zeros((3, 10))))
    assert narrow.value == np.inf
    texts(narrow.interval)


def test_bad_input_is_refused():
    states = Normal(np.zeros(2), 1.0)
    with pytest.raises(InputError, match="row 2"):
        coverage(states, [0.0, np.nan])
    with pytest.raises(InputError, match="3 outcomes for 2 rows"):
        coverage(states, [0.0, 1.0, 2.0])
    for scale in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(InputError, match="scale"):
            coverage(states, [0.0, 1.0], scale=scale)
    with pytest.raises(InputError):
        coverage(states, [0.0, 1.0], (1.0,))
    with pytest.raises(InputError):
        kl_divergence(states, Normal(np.zeros(3), 1.0))
