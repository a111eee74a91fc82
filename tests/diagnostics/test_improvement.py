"""Relative improvement against its definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdcal_core.diagnostics import median_improvement, relative_improvement
from kdcal_core.errors import InputError


def test_improvement_is_equation_21():
    assert float(relative_improvement(0.4, 0.1)) == pytest.approx((0.4 - 0.1) / 0.4)
    assert float(relative_improvement(0.1, 0.4)) == pytest.approx(-3.0)
    grid = relative_improvement([[0.2], [0.4]], [0.1, 0.2])
    np.testing.assert_allclose(grid, [[0.5, 0.0], [0.75, 0.5]])


def test_a_parent_without_error_can_only_be_held_or_lost():
    change = relative_improvement([0.0, 0.0], [0.0, 1e-9])
    assert change.tolist() == [0.0, -np.inf]
    median = median_improvement([0.0, 0.0, 0.2], [0.0, 0.3, 0.1])
    assert median.value == 0.0
    assert median_improvement([0.0, 0.0], [0.3, 0.1]).value == -np.inf


@given(st.integers(1, 40), st.integers(0, 999))
@settings(max_examples=40, deadline=None)
def test_the_median_lies_in_its_interval(n, seed):
    rng = np.random.default_rng(seed)
    parent, method = rng.uniform(0.1, 1, n), rng.uniform(0, 1, n)
    e = median_improvement(parent, method)
    assert e.value == pytest.approx(np.median((parent - method) / parent))
    assert e.low <= e.value <= e.high <= 1.0
    assert e.n == n
    assert np.isinf(e.low) == (n <= 5)


def test_the_medians_interval_covers():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(1000):
        method = rng.exponential(1.0, 45)  # the papers' number of data sets
        e = median_improvement(np.ones(45), method)
        covered += e.low <= 1 - np.log(2) <= e.high
    assert 0.945 < covered / 1000 < 0.985


def test_values_that_are_none_are_refused():
    with pytest.raises(InputError) as caught:
        relative_improvement([0.1, -0.2], [0.1, 0.1])
    assert caught.value.row == 2
    with pytest.raises(InputError, match="method"):
        relative_improvement(0.1, np.nan)
    with pytest.raises(InputError, match="no data sets"):
        median_improvement([], [])
