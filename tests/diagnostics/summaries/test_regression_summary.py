"""Exact sums do not depend on order, and estimates are those of the rows."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdcal_core.diagnostics import (
    climatology_crps,
    coverage,
    fault,
    mean_scale,
    pit_histogram,
    quantile_reliability,
    ratio_estimate,
    standardised_bias,
    uniformity_tests,
)
from kdcal_core.diagnostics.summaries import (
    RegressionSummary,
    regression_summary,
    summarise_regression,
    summary_bias,
    summary_coverage,
    summary_fault,
    summary_pit_histogram,
    summary_quantiles,
    summary_scale,
    summary_skill,
)
from kdcal_core.diagnostics.summaries.exact_sums import LARGEST, exact_sum, float_of
from kdcal_core.diagnostics.summaries.pit_cells import PitCells
from kdcal_core.diagnostics.summaries.score_grid import cell_index, upper_ends
from kdcal_core.distributions import (
    Empirical,
    Gamma,
    LogNormal,
    Normal,
    Quantiles,
    StudentT,
    randomised_pit,
)
from kdcal_core.errors import InputError
from kdcal_core.evaluation import regression_scores, summary_scores
from kdcal_core.store import load, save

number = st.floats(-LARGEST, LARGEST, allow_subnormal=True)


@settings(max_examples=60, deadline=None)
@given(st.lists(number, min_size=1, max_size=40), st.integers(0, 40))
def test_a_sum_is_exact(values, cut):
    given_values = np.array(values)
    parts = exact_sum(given_values[cut:]) + exact_sum(given_values[:cut][::-1])
    assert parts.tobytes() == exact_sum(given_values).tobytes()
    assert float_of(parts) == math.fsum(values)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e151])
def test_what_is_no_number_is_refused(bad):
    with pytest.raises(InputError) as found:
        exact_sum(np.array([1.0, bad]))
    assert found.value.row == 2


def rows(kind, n=2000):
    rng = np.random.default_rng(0)
    mean = rng.normal(size=n)
    y = mean + 1.3 * rng.standard_t(5, size=n)
    if kind == "normal":
        return Normal(mean, 1.0), y
    if kind == "student_t":
        return StudentT(mean, 1.0, 3.0), y
    if kind == "lognormal":
        return LogNormal(mean, 1.0), np.exp(0.9 * y)
    if kind == "gamma":
        return Gamma(mean=np.exp(mean), shape=1.5), np.exp(mean) * rng.gamma(2.0, 0.5, n)
    return Empirical(mean[:, None] + rng.normal(size=(n, 20))), np.round(y, 1)


@settings(max_examples=8, deadline=None)
@given(
    st.lists(st.integers(0, 300), max_size=3),
    st.sampled_from(["normal", "samples"]),
    st.randoms(use_true_random=False),
)
def test_any_cut_and_order_gives_the_same_bytes(cuts, kind, random):
    distribution, y = rows(kind, 300)
    ends = sorted({0, 300, *cuts})
    parts = [
        summarise_regression(distribution[slice(a, b)], y[a:b], first=a) for a, b in pairwise(ends)
    ]
    random.shuffle(parts)
    total = parts[0]
    for part in parts[1:]:
        total = part + total
    assert total.digest == summarise_regression(distribution, y).digest


@pytest.mark.parametrize("kind", ["normal", "student_t", "lognormal", "gamma", "samples"])
def test_estimates_are_those_of_rows(kind):
    distribution, y = rows(kind)
    summary = summarise_regression(distribution, y)
    ours, theirs = summary_coverage(summary, scale=2.0), coverage(distribution, y, scale=2.0)
    for a, b in zip(ours.rows, theirs.rows, strict=True):
        for part in ("coverage", "width", "interval_score", "smis"):
            mine, other = getattr(a, part), getattr(b, part)
            assert (mine.name, mine.label, mine.n) == (other.name, other.label, other.n)
            values = [(one.value, one.low, one.high) for one in (mine, other)]
            np.testing.assert_allclose(*values, rtol=1e-9)
    pit = randomised_pit(distribution, y, 0)
    scale = summary_scale(summary)
    assert scale == pytest.approx(mean_scale(y), rel=1e-12)
    found = summary_scores(summary).rows
    wanted = regression_scores(distribution, y, scale=scale, pit=pit).rows
    assert list(found) == list(wanted)
    for key, one in wanted.items():
        mine = found[key]
        assert (mine.name, mine.label, mine.n, mine.interval) == (
            one.name, one.label, one.n, one.interval,
        )  # fmt: skip
        assert (mine.lower_is_better, mine.percent) == (one.lower_is_better, one.percent)
        values = [(each.value, each.low, each.high) for each in (mine, one)]
        if key in ("qce", "wasserstein"):  # drawn again, of PIT values in cells
            np.testing.assert_allclose(*values, atol=0.2 * (one.high - one.low))
        else:
            np.testing.assert_allclose(*values, rtol=1e-9)
    mine, other = summary_pit_histogram(summary), pit_histogram(pit)
    np.testing.assert_array_equal(mine.low, other.low)
    if kind != "samples":
        np.testing.assert_array_equal(mine.counts, other.counts)
    else:  # jumps are drawn row by row, not spread evenly
        assert np.abs(mine.counts - other.counts).max() < 40
    for mine, other in (
        (summary_bias(summary), standardised_bias(distribution.mean(), y)),
        (summary_skill(summary), skill_of_rows(distribution, y)),
    ):
        values = [(one.value, one.low, one.high) for one in (mine, other)]
        np.testing.assert_allclose(*values, rtol=1e-9)
    mine, other = summary_fault(summary), fault(pit)
    assert mine.kind == other.kind
    if kind != "samples":
        assert mine.words == other.words
    assert mine.spread.value == pytest.approx(other.spread.value, abs=0.01)


def skill_of_rows(distribution, y):
    trivial = climatology_crps(y, y)
    top = trivial - distribution.crps(y)
    return ratio_estimate(top, trivial, name="", label="")


@pytest.mark.parametrize("n", [1, 7, 3000])
def test_tests_of_uniformity_are_those_of_the_values(n):
    rng = np.random.default_rng(n)
    pit = rng.beta(1.1, 0.9, n)
    pit[: n // 100] = 0.0
    pit[n // 100 : n // 50] = 1.0
    count = np.bincount(cell_index(pit), minlength=len(upper_ends()))
    ours, theirs = PitCells(count).tests(), uniformity_tests(pit)
    for mine, other in zip(ours, theirs, strict=True):
        assert (mine.name, mine.title, mine.n, mine.note) == (
            other.name, other.title, other.n, other.note,
        )  # fmt: skip
        assert mine.statistic == pytest.approx(other.statistic, rel=1e-3, abs=1e-3)
        if n > 7:  # the law of few rows needs the rows
            assert mine.p_value == pytest.approx(other.p_value, rel=0.02, abs=1e-6)
    levels = np.array([0.01, 0.25, 0.5, 0.99])
    shares = [(pit <= one).mean() for one in levels]
    np.testing.assert_array_equal(PitCells(count).shares(levels), shares)


def test_the_spread_of_outcomes_far_from_zero_is_exact():
    rng = np.random.default_rng(0)
    y = 1e9 + rng.normal(size=500)
    found = summary_bias(summarise_regression(Normal(y + 0.25, 1.0), y))
    assert found.value == pytest.approx(0.25 / y.std(), rel=1e-6)


def test_outcomes_without_a_density_make_the_log_score_infinite():
    distribution, y = Normal(np.zeros(4), 1.0), np.array([0.0, 1.0, -1.0, 60.0])
    summary = summarise_regression(distribution, y)
    ours = summary_scores(summary).rows["log_score"]
    theirs = regression_scores(distribution, y, scale=1.0).rows["log_score"]
    assert ours == theirs
    assert "1 outcome has" in ours.interval


def test_quantiles_are_judged_at_their_own_levels():
    rng = np.random.default_rng(0)
    y = np.round(rng.normal(size=900), 1)
    levels = (0.003, 0.1, 0.5, 0.9)
    said = Quantiles(levels, np.round(Normal(np.zeros(900), 1.0).ppf(np.array([levels])), 1))
    summary = summarise_regression(said, y)
    assert summary.stated == levels
    pit = randomised_pit(said, y, 0)
    ours, theirs = summary_quantiles(summary, ()), quantile_reliability(pit, levels)
    np.testing.assert_array_equal(ours.observed, theirs.observed)
    np.testing.assert_allclose(ours.low, theirs.low, rtol=1e-12)
    held = coverage(said, y)
    assert [one.level for one in summary_coverage(summary).rows] == [0.8]
    assert summary_coverage(summary).rows[0].coverage == held.rows[0].coverage


def test_rows_are_drawn_at_random_whatever_the_batches(monkeypatch):
    monkeypatch.setattr(regression_summary, "DRAWN", 40)
    distribution, y = rows("normal", 300)
    whole = summarise_regression(distribution, y)
    parts = [summarise_regression(distribution[a : a + 50], y[a : a + 50], first=a)
             for a in range(0, 300, 50)]  # fmt: skip
    total = parts[5]
    for part in parts[4::-1]:
        total = part + total
    assert total.digest == whole.digest
    assert len(np.unique(whole.drawn[:, 0])) == 40
    assert np.isin(whole.drawn[:, 0], y).all()
    assert summary_skill(whole).n == 40
    assert summary_bias(whole).value == pytest.approx(
        standardised_bias(distribution.mean(), y).value, rel=1e-9
    )


def test_what_does_not_fit_is_refused(tmp_path):
    summary = summarise_regression(*rows("normal", 50))
    with pytest.raises(InputError, match="damaged"):
        replace(summary, n=49)
    with pytest.raises(InputError) as found:
        summarise_regression(Normal(np.zeros(2), 1.0), [0.0, np.nan])
    assert found.value.row == 2
    with pytest.raises(InputError, match="different kinds"):
        summary + summarise_regression(Empirical(np.zeros((1, 3))), [0.0])
    with pytest.raises(InputError, match="CRPS of a row cannot be added up") as found:
        summarise_regression(Normal(np.zeros(2), [1.0, 1e200]), [1.0, 1.0])
    assert found.value.row == 2
    with pytest.raises(InputError, match="51"):
        summary_pit_histogram(summary, 51)
    save(tmp_path, summary)
    assert load(tmp_path, RegressionSummary).digest == summary.digest
    alone = summarise_regression(Normal([0.0], 1.0), [0.5])
    assert summary_scores(alone).rows["crps"].high == np.inf
    assert summary_bias(summarise_regression(Normal([0.0, 1.0], 1.0), [0.5, 0.7])).high < np.inf
