"""Whole weights count as repeated rows; other weights agree with the estimates of weighted rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import (
    all_estimates,
    coverage,
    question_estimates,
    reliability,
    uniformity_tests,
)
from kdcal_core.diagnostics.summaries import (
    ClassTally,
    RegressionSummary,
    judged_rows,
    rows_of,
    summarise,
    summarise_regression,
    summary_bias,
    summary_coverage,
    summary_estimates,
    summary_question_estimates,
    summary_reliability,
    summary_scale,
    summary_skill,
    summary_test,
    summary_uniformity,
)
from kdcal_core.diagnostics.summaries.row_weights import RowWeights, times_of, unit_of_weights
from kdcal_core.distributions import Normal, randomised_pit
from kdcal_core.errors import InputError
from kdcal_core.evaluation import regression_scores, summary_scores
from kdcal_core.statistics import kish, whole_rows
from kdcal_core.store import load, save

CLASS_PARTS = ("cells", "joint", "sums")
FORECAST_PARTS = ("pit", "below", "inside", "sums")


def classes(k: int, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    rng = np.random.default_rng(seed)
    logit = rng.normal(size=(n, k)) * 1.5
    proba = np.exp(1.4 * logit)
    proba /= proba.sum(axis=1, keepdims=True)
    y = (logit + rng.gumbel(size=(n, k))).argmax(axis=1)
    return proba, y, tuple("abcd"[:k])


def forecasts(n: int, seed: int = 0) -> tuple[Normal, np.ndarray]:
    rng = np.random.default_rng(seed)
    mean = 1e6 + rng.normal(size=n)  # squares of such outcomes lose digits
    return Normal(mean, np.ones(n)), mean + 1.2 * rng.normal(size=n) + 0.1


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=40), st.integers(2, 4))
def test_whole_weights_are_repeated_rows(weight, k):
    times = np.array(weight)
    proba, y, names = classes(k, len(times))
    rows = np.repeat(np.arange(len(times)), times)
    one, other = summarise(proba, y, names, weight=times), summarise(proba[rows], y[rows], names)
    for part in CLASS_PARTS:
        np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
    assert (one.n, rows_of(one), one.weights.unit) == (other.n, len(times), 1.0)
    said, outcome = forecasts(len(times))
    one = summarise_regression(said, outcome, weight=times)
    other = summarise_regression(said[rows], outcome[rows])
    for part in FORECAST_PARTS:
        np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
    for what in ("outcome", "CRPS", "squared error"):
        assert one.exact_moments(what) == other.exact_moments(what)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 39), st.integers(0, 5))
def test_any_cut_and_order_gives_the_same_bytes(cut, seed):
    rng = np.random.default_rng(seed)
    weight, unit = rng.gamma(2.0, 1.0, 40), 2.0**-9
    proba, y, names = classes(3, 40)
    said, outcome = forecasts(40)

    def of_classes(rows: slice):
        tally = ClassTally(names)
        tally.add(proba[rows], y[rows], first=rows.start, weight=weight[rows], unit=unit)
        return tally.summary()

    def of_forecasts(rows: slice) -> RegressionSummary:
        return summarise_regression(
            said[rows], outcome[rows], first=rows.start, weight=weight[rows], unit=unit
        )

    for made in (of_classes, of_forecasts):
        whole, first, last = made(slice(0, 40)), made(slice(0, cut)), made(slice(cut, 40))
        assert (first + last).digest == (last + first).digest == whole.digest
        assert (first + last).weights == whole.weights


@pytest.mark.parametrize("k", [2, 3])
def test_estimates_agree_with_those_of_weighted_rows(k, tmp_path):
    n = 6000
    proba, y, names = classes(k, n)
    weight = np.random.default_rng(1).gamma(2.0, 1.0, n)
    made = summarise(proba, y, names, weight=weight)
    save(tmp_path, made)
    summary = judged_rows(load(tmp_path, type(made)))
    assert summary.n == pytest.approx(kish(weight), rel=1e-3)
    assert (summary.digest, summary.weights) == (made.digest, made.weights)
    event = 1 if k == 2 else None
    scored = ScoredSet(proba, y, names, "", "set", weight)
    asked = summary_estimates(summary), summary_question_estimates(summary, event)
    known = all_estimates(scored), question_estimates(scored, None, event)
    for mine, rows in zip((*asked[0], *asked[1]), (*known[0], *known[1]), strict=True):
        width = rows.high - rows.low
        assert mine.value == pytest.approx(rows.value, abs=0.05 * width + 2e-4), mine.name
        assert mine.high - mine.low == pytest.approx(width, rel=0.15, abs=2e-3), mine.name
    curve, other = (
        summary_reliability(summary, kind="confidence").curves[0],
        reliability(proba, y, kind="confidence", sample_weight=weight).curves[0],
    )
    np.testing.assert_allclose(curve.accuracy, other.accuracy, rtol=2e-3)


def test_a_calibrated_model_is_seldom_rejected_with_weights():
    """The tests take Kish's rows too: with the units of all rows they would reject it always."""
    low = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        p, weight = rng.uniform(0.05, 0.95, 800), rng.gamma(0.7, 1.0, 800)
        y = (rng.random(800) < p).astype(np.int64)
        made = summarise(np.column_stack([1 - p, p]), y, ("no", "yes"), weight=weight)
        low += summary_test(judged_rows(made), 1) < 0.05
    assert low <= 9  # 99.9% quantile of a binomial of 60 draws with chance 0.05


def test_forecasts_agree_with_those_of_weighted_rows(tmp_path):
    said, outcome = forecasts(6000)
    outcome = outcome - 1e6
    said = Normal(said.mean() - 1e6, np.ones(6000))
    weight = np.random.default_rng(1).gamma(2.0, 1.0, 6000)
    made = summarise_regression(said, outcome, weight=weight)
    save(tmp_path, made)
    summary = judged_rows(load(tmp_path, RegressionSummary))
    assert summary.n == pytest.approx(kish(weight), rel=1e-3)
    scale = summary_scale(summary)
    mine = summary_scores(summary, scale=scale, seed=0).rows
    rows = regression_scores(said, outcome, scale=scale, weight=weight, seed=0).rows
    for key, one in mine.items():
        assert one.value == pytest.approx(rows[key].value, rel=2e-3), key
        assert one.high - one.low == pytest.approx(rows[key].high - rows[key].low, rel=0.1), key
    for one, two in zip(
        summary_coverage(summary).rows, coverage(said, outcome, weight=weight).rows, strict=True
    ):
        assert one.coverage.value == pytest.approx(two.coverage.value, abs=1e-3)
        assert one.coverage.low == pytest.approx(two.coverage.low, abs=1e-3)
    pit = randomised_pit(said, outcome, 0)
    for one, two in zip(
        summary_uniformity(summary, 0), uniformity_tests(pit, seed=0, sample_weight=weight),
        strict=True,
    ):  # fmt: skip
        assert one.statistic == pytest.approx(two.statistic, rel=0.01)
    times = times_of(weight, made.weights.unit)
    repeated = np.repeat(np.arange(6000), np.maximum(times // 64, 1))
    other = summarise_regression(said[repeated], outcome[repeated])
    for measure in (summary_bias, summary_skill):
        assert measure(summary).value == pytest.approx(measure(other).value, abs=0.02)


def test_units_of_weights():
    assert unit_of_weights(np.array([1.0, 7.0]), 100) == 1.0
    survey = np.random.default_rng(0).uniform(1e3, 9e4, 100)
    assert survey.mean() / unit_of_weights(survey, 1000) >= 1024
    assert survey.mean() / unit_of_weights(survey, 400_000_000) >= 5  # a tenth of it, rounded
    assert times_of(np.array([1e-9]), 1.0).tolist() == [1]
    with pytest.raises(InputError, match="thousands of times") as found:
        times_of(np.array([1.0, 1e9]), 1.0)
    assert found.value.row == 2
    both = RowWeights(1.0, 2, 5, 13) + RowWeights(1.0, 1, 1, 1)
    assert both == RowWeights(1.0, 3, 6, 14)
    with pytest.raises(InputError, match="different units"):
        both + RowWeights(0.5, 1, 1, 1)
    count = np.random.default_rng(0).gamma(1.0, 1.0, 500)
    assert np.abs(np.cumsum(whole_rows(count)) - np.cumsum(count)).max() <= 0.5


def test_weighted_and_other_rows_do_not_add():
    proba, y, names = classes(2, 10)
    said, outcome = forecasts(10)
    weight = np.ones(10)
    for one, other in (
        (summarise(proba, y, names), summarise(proba, y, names, weight=weight)),
        (summarise_regression(said, outcome), summarise_regression(said, outcome, weight=weight)),
    ):
        with pytest.raises(InputError, match="weighted rows and the other is not"):
            one + other
    tally = ClassTally(names)
    tally.add(proba, y, first=0)
    with pytest.raises(InputError, match="Only some batches"):
        tally.add(proba, y, first=10, weight=weight)
