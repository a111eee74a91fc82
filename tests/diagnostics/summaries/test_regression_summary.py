"""Exact sums do not depend on order, and estimates are those of the rows."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdcal_core.diagnostics import coverage, pit_histogram
from kdcal_core.diagnostics.summaries import (
    RegressionSummary,
    summarise_regression,
    summary_coverage,
    summary_pit_histogram,
    summary_regression_estimates,
)
from kdcal_core.diagnostics.summaries.exact_sums import LARGEST, exact_sum, float_of
from kdcal_core.distributions import Empirical, Normal, randomised_pit
from kdcal_core.errors import InputError
from kdcal_core.evaluation import regression_scores
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


@pytest.mark.parametrize("kind", ["normal", "samples"])
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
    found = {one.label: one for one in summary_regression_estimates(summary)}
    wanted = regression_scores(distribution, y, scale=2.0).rows
    for label, key in (("CRPS", "crps"), ("MSE", "mse"), ("RMSE", "rmse")):
        assert found[label].value == pytest.approx(wanted[key].value, rel=1e-12)
        assert found[label].low == pytest.approx(wanted[key].low, rel=0.01)
        assert found[label].high == pytest.approx(wanted[key].high, rel=0.01)
    pit = randomised_pit(distribution, y, 0)
    mine, other = summary_pit_histogram(summary), pit_histogram(pit)
    np.testing.assert_array_equal(mine.low, other.low)
    if kind == "normal":
        np.testing.assert_array_equal(mine.counts, other.counts)
    else:  # jumps are drawn row by row, not spread evenly
        assert np.abs(mine.counts - other.counts).max() < 40
    assert found["PIT bias"].value == pytest.approx(pit.mean() - 0.5, abs=2e-3)
    assert found["Bias"].value == pytest.approx((distribution.mean() - y).mean(), rel=1e-9)


def test_what_does_not_fit_is_refused(tmp_path):
    summary = summarise_regression(*rows("normal", 50))
    with pytest.raises(InputError, match="damaged"):
        replace(summary, n=49)
    with pytest.raises(InputError) as found:
        summarise_regression(Normal(np.zeros(2), 1.0), [0.0, np.nan])
    assert found.value.row == 2
    with pytest.raises(InputError, match="51"):
        summary_pit_histogram(summary, 51)
    save(tmp_path, summary)
    assert load(tmp_path, RegressionSummary).digest == summary.digest
    alone = summarise_regression(Normal([0.0], 1.0), [0.5])
    assert summary_regression_estimates(alone)[0].high == np.inf
