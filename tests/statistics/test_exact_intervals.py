"""Intervals and corrections against other ways to find the same."""

import numpy as np
import pytest
from scipy.stats import beta, false_discovery_control

from kdcal_core.statistics import clopper_pearson, holm


def test_clopper_pearson_at_the_ends():
    low, high = clopper_pearson(np.array([0.0, 1.0, np.nan]), np.array([7.0, 7.0, 0.0]), 0.95)
    assert low[0] == 0
    assert high[1] == 1
    assert np.isnan([low[2], high[2]]).all()


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_clopper_pearson_is_a_quantile_of_the_beta_distribution(level):
    n = np.array([1.0, 3.0, 12.0, 40.5, 1e6])
    hits = np.array([0.5, 1.0, 11.0, 20.25, 10.0])
    low, high = clopper_pearson(hits / n, n, level)
    tail = (1 - level) / 2
    np.testing.assert_allclose(low, beta.ppf(tail, hits, n - hits + 1), rtol=1e-9)
    np.testing.assert_allclose(high, beta.ppf(1 - tail, hits + 1, n - hits), rtol=1e-9)


def test_holm_lies_between_no_correction_and_bonferroni():
    p = np.random.default_rng(0).uniform(size=30) ** 3
    adjusted = holm(p)
    assert (adjusted >= p).all()
    assert (adjusted <= np.minimum(p * 30, 1.0) + 1e-15).all()
    assert (adjusted >= false_discovery_control(p)).all()
    assert (np.diff(adjusted[np.argsort(p)]) >= 0).all()
