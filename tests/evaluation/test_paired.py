"""Differences on the same rows: against scipy and DeLong, and how often equals are told apart."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import ttest_rel

from kdcal_core.diagnostics import paired_auc
from kdcal_core.diagnostics.auc import Pairing
from kdcal_core.diagnostics.calibration_error import error_norm, row_draws
from kdcal_core.diagnostics.targets import confidence_target
from kdcal_core.evaluation.measures import MEASURES
from kdcal_core.evaluation.paired import _root, against_best, against_model, holm
from kdcal_core.evaluation.spread import (
    binned_spread,
    of_areas,
    of_means,
    resampled_bins,
    smooth_spread,
)

LOSS, AREA, ECE = MEASURES["log_loss"], MEASURES["auc"], MEASURES["ece"]


def model(spread, measure=LOSS, n=100):
    keys = [str(i) for i in range(len(spread.value))]
    return against_model(spread, measure, keys, 0, n, 0.95)


def best(spread, measure=LOSS, n=100):
    keys = [str(i) for i in range(len(spread.value))]
    at = np.argmin(spread.value) if measure.lower_is_better else np.argmax(spread.value)
    return against_best(spread, measure, keys, int(at), n, 0.95, 0)


def errors_of(scores, hit, seed=0, n_boot=300, strategy="uniform"):
    problems = [(confidence_target(score, hit),) for score in scores]
    draws = row_draws(len(hit), n_boot, np.random.default_rng(seed))
    return binned_spread(resampled_bins(problems, strategy, 15, draws, seed), "l1")


def test_means_are_compared_by_the_paired_t_test():
    rng = np.random.default_rng(0)
    losses = rng.gamma(1.0, size=(1, 60)) + rng.normal(0, 0.3, size=(3, 60)) + [[0], [0.1], [-0.1]]
    pairs = model(of_means(losses, np.ones(60)))
    for i in (1, 2):
        wanted = ttest_rel(losses[i], losses[0])
        assert pairs[i].p_value == pytest.approx(wanted.pvalue)
        low, high = wanted.confidence_interval(0.95)
        assert (pairs[i].difference.low, pairs[i].difference.high) == pytest.approx((low, high))
        assert pairs[i].difference.value == pytest.approx(losses[i].mean() - losses[0].mean())


def test_a_weight_of_two_counts_a_row_as_a_row_twice_in_the_value():
    losses = np.random.default_rng(0).normal(size=(2, 30))
    weight = np.r_[np.full(10, 2.0), np.ones(20)]
    twice = np.concatenate([losses, losses[:, :10]], axis=1)
    one = model(of_means(losses, weight))[1].difference
    two = model(of_means(twice, np.ones(40)))[1].difference
    assert one.value == pytest.approx(two.value)
    # the pairs of rows are not independent, so that the honest interval is the wider
    assert one.high - one.low > two.high - two.low


def test_areas_are_compared_by_delongs_covariances():
    rng = np.random.default_rng(1)
    n = 800
    y = rng.integers(0, 2, n)
    a = y + rng.normal(0, 1.5, n)
    b = a + rng.normal(0, 0.7, n)
    pairing = Pairing.of(y, np.ones(n), 2)
    scores = [np.column_stack([1 - s, s]) for s in (1 / (1 + np.exp(-a)), 1 / (1 + np.exp(-b)))]
    areas, parts = zip(*(pairing.area(one) for one in scores), strict=True)
    part = np.array(parts)
    got = model(of_areas(np.array(areas), part, pairing.lead, y, np.ones(n)), AREA)[1]
    want = paired_auc(a, b, y)
    assert got.difference.value == pytest.approx(want.difference.value)
    assert got.difference.low == pytest.approx(want.difference.low)
    assert got.p_value == pytest.approx(want.p_value)
    assert got.verdict == ("worse" if want.p_value < 0.05 else "cannot be told apart")


def test_equal_areas_are_told_apart_no_more_often_than_said_with_few_positives():
    y = np.r_[np.ones(10, dtype=int), np.zeros(190, dtype=int)]
    fold = np.arange(200) % 5  # two positives in each
    pairing = Pairing.of(y, np.ones(200), 2, fold)
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(300):
        shared = rng.normal(size=200) + 1.5 * y
        scores = 1 / (1 + np.exp(-shared - 0.7 * rng.normal(size=(2, 200))))
        areas, parts = zip(
            *(pairing.area(np.column_stack([1 - s, s])) for s in scores), strict=True
        )
        spread = of_areas(np.array(areas), np.array(parts), pairing.lead, y, np.ones(200))
        refused += model(spread, AREA)[1].p_value < 0.05
    assert refused <= 24  # 0.1% quantile of a binomial of 300 draws with chance 0.05


def test_a_class_of_one_row_shows_no_difference_of_areas():
    y = np.r_[1, np.zeros(50, dtype=int)]
    pairing = Pairing.of(y, np.ones(51), 2)
    rise = np.linspace(0.1, 0.9, 51)
    found = [pairing.area(np.column_stack([1 - s, s])) for s in (rise, rise[::-1])]
    areas, parts = (np.array(column) for column in zip(*found, strict=True))
    spread = of_areas(areas, parts, pairing.lead, y, np.ones(51))
    assert np.ptp(areas) == 1.0
    assert model(spread, AREA)[1].verdict == "cannot be told apart"


def test_rows_are_ranked_inside_their_fold_alone():
    """A score shifted from fold to fold ranks as it did, though not over all rows at once."""
    rng = np.random.default_rng(0)
    y, fold = rng.integers(0, 3, 300), np.arange(300) % 4
    proba = rng.dirichlet(np.ones(3), 300)
    shifted = proba * (1.0 + fold)[:, None]
    pairing = Pairing.of(y, np.ones(300), 3, fold)
    assert pairing.area(proba)[0] == pytest.approx(pairing.area(shifted)[0])
    brute, total = 0.0, 0.0
    for k in range(3):
        wins = pairs = 0.0
        for f in range(4):
            here = fold == f
            up, down = proba[here & (y == k), k], proba[here & (y != k), k]
            wins += (up[:, None] > down).sum() + 0.5 * (up[:, None] == down).sum()
            pairs += len(up) * len(down)
        brute += (y == k).sum() * wins / pairs
        total += (y == k).sum()
    assert pairing.area(proba)[0] == pytest.approx(brute / total)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_the_step_down_rule(p):
    """Reject the smallest while p <= alpha / (hypotheses left), for every alpha."""
    adjusted = holm(np.array(p))
    order = np.argsort(p, kind="stable")
    for alpha in (0.01, 0.05, 0.3):
        rejected = set()
        for step, i in enumerate(order):
            if p[i] * (len(p) - step) > alpha:
                break
            rejected.add(int(i))
        assert {i for i, a in enumerate(adjusted) if a <= alpha} == rejected


def test_alike_methods_are_corrected_for_as_one_and_seldom_found_by_chance():
    """Twelve methods that change the rows nearly alike; Holm finds .44 of the true changes."""
    n, found = 90, {0.0: 0, 0.25: 0}
    for shift in found:
        for seed in range(300):
            rng = np.random.default_rng(seed)
            base, common = rng.gamma(1.0, size=n), rng.normal(size=n)
            change = np.sqrt(0.95) * common + np.sqrt(0.05) * rng.normal(size=(12, n)) - shift
            pairs = model(of_means(np.vstack([base, base + 0.4 * change]), np.ones(n)))
            found[shift] += any(one.verdict != "cannot be told apart" for one in pairs)
    assert found[0.0] <= 0.05 * 300 + 2 * np.sqrt(0.05 * 0.95 * 300)
    assert found[0.25] >= 0.6 * 300


def test_methods_that_say_the_same_do_not_differ():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.5, 1.0, 200)
    hit = (rng.random(200) < p).astype(np.int64)
    losses = np.tile(rng.gamma(1.0, size=200), (2, 1))
    for spread in (errors_of([p, p], hit), of_means(losses, np.ones(200))):
        for pairs in (model(spread), best(spread)):
            for pair in pairs:
                assert pair.difference.value == 0.0
                assert pair.p_value >= 0.5
                assert pair.verdict == "cannot be told apart"


def test_accuracy_that_differs_on_no_row_is_not_certain():
    right = np.tile((np.arange(50) % 5 > 0) * 1.0, (2, 1))
    pair = model(of_means(right, np.ones(50), floor=1.0), MEASURES["accuracy"])[1]
    assert pair.difference.low < 0.0 < pair.difference.high
    assert pair.difference.high < 0.06


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_a_method_of_more_bins_is_not_called_worse_for_its_noise(strategy):
    """Both are calibrated, one says one number, the other fills fifteen bins.

    The plain bootstrap of the difference, for comparison, calls the second worse far too often.
    """
    text, naive, runs, n = 0, 0, 60, 300
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.5, 1.0, n)
        hit = (rng.random(n) < p).astype(np.int64)
        spread = errors_of([np.full(n, 0.75), p], hit, seed, 150, strategy)
        text += model(spread, ECE)[1].verdict != "cannot be told apart"
        gap = spread.value[1] - spread.value[0]
        c = spread.covariance[:, -1, :, -1]
        naive += gap > 1.96 * np.sqrt(c[0, 0] + c[1, 1] - 2 * c[0, 1])
    assert text <= 7  # 5% of 60, two and a half standard errors above
    if strategy == "quantile":
        assert naive > 12


@pytest.mark.parametrize("by", [0.05, -0.05])
def test_equal_errors_of_opposite_sign_are_not_told_apart(by):
    text, runs, n = 0, 60, 400
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.55, 0.9, n)
        hit = (rng.random(n) < p).astype(np.int64)
        text += model(errors_of([p + by, p - by], hit, seed, 150), ECE)[1].verdict != (
            "cannot be told apart"
        )
    assert text <= 7


def test_no_verdict_contradicts_the_difference_shown():
    """The test corrects for bias; where its direction is not that of the numbers, it is no test."""
    rng = np.random.default_rng(0)
    losses = rng.normal(size=(1, 400)) + 0.1 * rng.normal(size=(2, 400)) + [[0.0], [0.1]]
    spread = of_means(losses, np.ones(400))
    assert model(spread)[1].verdict == "worse"
    other_way = replace(spread, shown=-spread.value)
    (_, pair) = model(other_way)
    assert (pair.verdict, pair.p_value) == ("cannot be told apart", 1.0)
    assert pair.difference.low == pair.difference.value < 0.0 < pair.difference.high
    picked = against_best(other_way, LOSS, ["0", "1"], 1, 400, 0.95, 0)
    assert [one.verdict for one in picked] == ["cannot be told apart"] * 2


def test_a_larger_error_is_found_and_its_size_reported():
    inside = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.55, 0.85, 2000)
        hit = (rng.random(2000) < p).astype(np.int64)
        pair = model(errors_of([p + 0.1, p], hit, seed), ECE)[1]
        assert pair.verdict == "better"
        inside += pair.difference.low <= -0.1 <= pair.difference.high
    assert inside >= 17


def test_smooth_errors_likewise():
    text, found, runs, n = 0, 0, 10, 500
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.5, 0.75, n)
        hit = (rng.random(n) < p).astype(np.int64)
        scores = [np.full(n, p.mean()), p, p + 0.2]
        spread = smooth_spread([confidence_target(s, hit) for s in scores], 100, seed)
        pairs = model(spread, MEASURES["smooth_ece"])
        text += pairs[1].verdict != "cannot be told apart"
        found += pairs[2].verdict == "worse"
    assert text <= 2
    assert found >= 9


def test_binned_spreads_value_is_the_error_itself():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.5, 1.0, 500)
    hit = (rng.random(500) < 0.7).astype(np.int64)
    place = np.ceil(p * 15) - 1
    shares = np.array([(place == b).mean() for b in range(15)])
    gaps = np.array(
        [np.abs((hit - p)[place == b].mean()) if (place == b).any() else 0 for b in range(15)]
    )
    assert errors_of([p], hit).value[0] == pytest.approx(error_norm(shares, gaps, "l1"))


def test_the_best_of_equals_flatters_no_one():
    """Eight methods of equal mean: the one that leads by chance beats none of them."""
    wrong, runs = 0, 200
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        losses = rng.normal(size=(1, 80)) + 0.5 * rng.normal(size=(8, 80))
        wrong += any(pair.verdict == "worse" for pair in best(of_means(losses, np.ones(80))))
    assert wrong <= 20  # 5% of 200, three standard errors above


def test_the_truly_best_is_kept_and_the_bad_are_dropped():
    kept, runs = 0, 200
    means = np.array([0.0, 0.02, 0.05, 1.0])[:, None]
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        losses = rng.normal(size=(1, 80)) + 0.5 * rng.normal(size=(4, 80)) + means
        verdicts = [pair.verdict for pair in best(of_means(losses, np.ones(80)))]
        kept += verdicts[0] != "worse"
        assert verdicts[3] == "worse"
    assert kept >= 184
    higher = best(of_means(-losses, np.ones(80)), AREA)
    assert [pair.verdict for pair in higher] == verdicts


def test_alone_a_method_is_the_best():
    spread = of_means(np.random.default_rng(0).normal(size=(1, 20)), np.ones(20))
    assert best(spread)[0].verdict == model(spread)[0].verdict == "cannot be told apart"


def test_joint_draws_do_not_hang_on_the_basis_of_repeated_eigenvalues():
    """Another linear algebra library turns the eigenvectors of methods that agree on every row."""
    rng = np.random.default_rng(0)
    effect = rng.normal(size=(4, 6))
    effect[2] = effect[0]  # two methods that agree on every row
    covariance = effect @ effect.T
    root = _root(covariance)
    assert_allclose(root @ root, covariance, atol=1e-12)
    assert_allclose(root[0], root[2], atol=1e-12)
    order = np.array([2, 3, 0, 1])
    assert_allclose(_root(covariance[np.ix_(order, order)]), root[np.ix_(order, order)], atol=1e-12)
    assert_allclose(_root(np.eye(3)), np.eye(3), atol=1e-15)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_one_pair_needs_no_correction_where_errors_have_a_floor(seed: int) -> None:
    """Draws of the floor that repeat the joint draws would narrow or widen the differences."""
    rng = np.random.default_rng(seed)
    right = (rng.random((2, 2000)) < [[0.86], [0.87]]).astype(float)
    spread = of_means(right, np.ones(2000), floor=1.0)
    for stream in range(3):
        pair = against_model(spread, MEASURES["accuracy"], ["a", "b"], 0, 2000, 0.95, stream)[1]
        assert pair.p_value <= pair.adjusted_p < pair.p_value + 0.04
