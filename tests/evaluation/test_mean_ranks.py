"""Mean ranks over data sets: against scipy, the literature's constants, and by simulation."""

import numpy as np
import pytest
from scipy.stats import f as fisher
from scipy.stats import friedmanchisquare, rankdata, wilcoxon

from kdcal_core.errors import InputError
from kdcal_core.evaluation import critical_difference


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (4, 2.569), (6, 2.850), (10, 3.164)])
def test_the_critical_difference_has_demsars_constants(k, q):
    """Demšar 2006, Table 5(a)."""
    scores = np.random.default_rng(0).normal(size=(14, k))
    found = critical_difference(scores)
    assert found.critical_difference == pytest.approx(q * np.sqrt(k * (k + 1) / 84.0), rel=3e-4)


@pytest.mark.parametrize("ties", [False, True])
def test_friedman_is_scipys_in_its_f_form(ties):
    scores = np.random.default_rng(1).normal([0, 0.3, 0.6, 0.9], size=(12, 4))
    scores = scores.round(0) if ties else scores
    found = critical_difference(scores)
    chi = friedmanchisquare(*scores.T).statistic
    want = fisher.sf(11 * chi / (12 * 3 - chi), 3, 33)
    assert found.friedman_p == pytest.approx(want)
    np.testing.assert_allclose(found.mean_rank, rankdata(scores, axis=1).mean(axis=0))
    flipped = critical_difference(-scores, lower_is_better=False)
    np.testing.assert_allclose(flipped.mean_rank, found.mean_rank)


def test_pairs_are_wilcoxons_with_holms_correction():
    scores = np.random.default_rng(2).normal([0, 0.5, 1.5], size=(15, 3))
    found = critical_difference(scores)
    raw = {(i, j): wilcoxon(scores[:, i], scores[:, j]).pvalue for i, j in [(0, 1), (0, 2), (1, 2)]}
    largest = 0.0
    for step, (pair, p) in enumerate(sorted(raw.items(), key=lambda item: item[1])):
        largest = max(largest, min((3 - step) * p, 1.0))
        assert found.pair_p[pair] == pytest.approx(largest)


def test_groups_are_the_largest_runs_within_the_difference():
    rng = np.random.default_rng(3)
    base = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    scores = base + rng.normal(0, 0.4, size=(30, 6))
    found = critical_difference(scores)
    for group in found.groups:
        ranks = found.mean_rank[list(group)]
        assert np.ptp(ranks) <= found.critical_difference
    brute = {
        tuple(j for j in range(6) if r <= found.mean_rank[j] <= r + found.critical_difference)
        for r in found.mean_rank
    }
    largest = {a for a in brute if not any(set(a) < set(b) for b in brute)}
    assert {tuple(sorted(group)) for group in found.groups} == largest


def test_equal_methods_are_one_group_in_most_runs():
    apart = 0
    for seed in range(100):
        scores = np.random.default_rng(seed).normal(size=(15, 4))
        apart += len(critical_difference(scores).groups) > 1
    assert apart <= 12  # 5% of 100, four standard errors above


def test_methods_that_never_differ():
    found = critical_difference(np.ones((5, 3)), ("a", "b", "c"))
    assert found.friedman_p == 1.0
    assert found.groups == ((0, 1, 2),)
    np.testing.assert_array_equal(found.pair_p, np.ones((3, 3)))


def test_bad_scores_are_refused():
    with pytest.raises(InputError, match="missing") as error:
        critical_difference([[1.0, 2.0], [np.nan, 1.0]])
    assert error.value.row == 2
    with pytest.raises(InputError, match="shape"):
        critical_difference([[1.0, 2.0]])
    with pytest.raises(InputError, match="names"):
        critical_difference([[1.0, 2.0], [2.0, 1.0]], ("a",))
