"""Intervals, corrections and rank tests against their definitions, or other ways to find them."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import beta, false_discovery_control

from kdcal_core.errors import InputError
from kdcal_core.statistics import clopper_pearson, holm, one_sided_wilcoxon


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


def test_the_rank_sum_counts_arrangements():
    a, b = [0.3, 1.2, 2.1, -0.4], [0.1, -1.0, 0.9]
    statistic = sum(x > y for x in a for y in b)
    pooled = [*a, *b]
    larger = [
        sum(pooled[i] > pooled[j] for i in chosen for j in range(7) if j not in chosen) >= statistic
        for chosen in combinations(range(7), 4)
    ]
    assert one_sided_wilcoxon(a, b) == pytest.approx(np.mean(larger))


def test_the_signed_rank_counts_signs():
    a, b = np.array([1.0, 2.5, 0.3, 4.0, -1.0]), np.array([0.4, 2.0, 0.5, 1.0, 0.1])
    change = a - b
    rank = np.argsort(np.argsort(np.abs(change))) + 1
    statistic = rank[change > 0].sum()
    larger = [
        sum(r for r, sign in zip(rank, signs, strict=True) if sign) >= statistic
        for signs in product([0, 1], repeat=5)
    ]
    assert one_sided_wilcoxon(a, b, paired=True) == pytest.approx(np.mean(larger))


@pytest.mark.parametrize("paired", [False, True])
def test_the_direction_is_that_of_the_first(paired):
    rng = np.random.default_rng(2)
    low = rng.normal(size=30)
    high = low + 1.0 + 0.1 * rng.normal(size=30)
    assert one_sided_wilcoxon(high, low, paired) < 0.01
    assert one_sided_wilcoxon(low, high, paired) > 0.99
    lost = np.where(np.arange(30) < 3, -np.inf, high)
    assert 0.0 < one_sided_wilcoxon(lost, low, paired) < 0.1


@pytest.mark.parametrize("paired", [False, True])
def test_equal_methods_are_no_evidence(paired):
    both_lost = [0.1, 0.2, -np.inf]
    assert one_sided_wilcoxon(both_lost, both_lost, paired) >= 0.5
    rng = np.random.default_rng(3)
    found = [one_sided_wilcoxon(*rng.normal(size=(2, 20)), paired) < 0.05 for _ in range(400)]
    assert 0.02 < np.mean(found) < 0.085


def test_values_that_are_none_are_refused():
    with pytest.raises(InputError, match="second") as caught:
        one_sided_wilcoxon([1.0], [0.0, np.nan])
    assert caught.value.row == 2
    with pytest.raises(InputError, match="pairs"):
        one_sided_wilcoxon([1.0], [0.0, 2.0], paired=True)
    with pytest.raises(InputError, match="shape"):
        one_sided_wilcoxon([], [0.0])
