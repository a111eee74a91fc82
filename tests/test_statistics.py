"""Intervals, corrections and rank tests against their definitions, or other ways to find them."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import beta, false_discovery_control, norm

from kdcal_core.errors import InputError
from kdcal_core.statistics import (
    Dependence,
    binomial_draws,
    clopper_pearson,
    holm,
    one_sided_wilcoxon,
    quantile_interval,
    weighted_quantile,
)


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


def test_quantiles_of_clusters_are_those_of_their_number() -> None:
    one = np.random.default_rng(0).normal(size=400)
    copies = Dependence.of("cluster", np.repeat(np.arange(400), 5))
    repeated = np.repeat(one, 5)
    for share in (0.02, 0.5, 0.9):
        alone = quantile_interval(one, share, 0.95)
        together = quantile_interval(repeated, share, 0.95, dependence=copies)
        ranks = [np.searchsorted(np.sort(one), end) for end in (*alone, *together)]
        assert abs(ranks[0] - ranks[2]) <= 1
        assert abs(ranks[1] - ranks[3]) <= 1
        assert quantile_interval(repeated, share, 0.95) != together


def test_quantiles_count_weights() -> None:
    rng = np.random.default_rng(1)
    values, weight = rng.normal(size=300), rng.integers(1, 6, 300).astype(float)
    repeated = np.repeat(values, weight.astype(int))
    for share in (0.01, 0.3, 0.99):
        expected = np.quantile(repeated, share, method="inverted_cdf")
        assert weighted_quantile(values, share, weight) == expected
        low, high = quantile_interval(values, share, 0.95, weight)
        assert low <= expected <= high
        assert quantile_interval(values, share, 0.95, np.full(300, 2.0)) == quantile_interval(
            values, share, 0.95
        )


@pytest.mark.parametrize("correlation", [0.0, 0.7])
def test_the_quantile_of_clusters_lies_in_its_interval_as_often_as_stated(
    correlation: float,
) -> None:
    rng, clusters = np.random.default_rng(2), Dependence.of("cluster", np.repeat(np.arange(60), 5))
    held = []
    for _ in range(300):
        shared = np.repeat(rng.normal(size=60), 5)
        own = rng.normal(size=300)
        values = correlation**0.5 * shared + (1.0 - correlation) ** 0.5 * own
        low, high = quantile_interval(values, 0.8, 0.95, dependence=clusters)
        held.append(low <= norm.ppf(0.8) <= high)
    assert np.mean(held) > 0.92  # 2.4 standard errors below the level


@pytest.mark.parametrize("most", [1, 5, 60, 5000])
def test_binomial_draws_are_numpys_to_the_bit(most):
    rng = np.random.default_rng(most)
    p = np.concatenate([[0.0, 1.0, 0.5, 1e-12, 1.0 - 1e-12], rng.random(60), rng.random(60) ** 9])
    n = rng.integers(0, most + 1, len(p))
    p = np.where(n * np.minimum(p, 1.0 - p) > 30.0, 25.0 / np.maximum(n, 50), p)
    ours, numpys = np.random.default_rng(1), np.random.default_rng(1)
    np.testing.assert_array_equal(
        binomial_draws(ours, n, p, 2000), numpys.binomial(n, p, (2000, len(p)))
    )
    assert ours.random() == numpys.random()


def test_binomial_draws_of_large_means_are_numpys_and_wrong_chances_are_refused():
    ours, numpys = np.random.default_rng(1), np.random.default_rng(1)
    drawn = binomial_draws(ours, [3, 900], [0.5, 0.4], 100)
    np.testing.assert_array_equal(drawn, numpys.binomial([3, 900], [0.5, 0.4], (100, 2)))
    assert binomial_draws(ours, [], [], 7).shape == (7, 0)
    for n, p in (([3], [np.nan]), ([3], [1.1]), ([3], [-0.1]), ([-3], [0.5])):
        with pytest.raises(ValueError, match=r"p|n"):
            binomial_draws(ours, n, p, 10)
