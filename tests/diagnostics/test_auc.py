"""The area under the ROC curve: its definition pair by pair, its interval, and pairs of scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from kdcal_core import InputError
from kdcal_core.diagnostics import auc, auroc, ood_auroc, paired_auc

SCORES = st.sampled_from([-np.inf, -2.0, 0.0, 0.25, 3.0, np.inf])
ROWS = st.lists(st.tuples(SCORES, SCORES, st.booleans(), st.floats(0.1, 5.0)), max_size=25)


def pair_table(score, y):
    """Durfee et al., Def. 2.1 with ties counting half: one entry a pair, positives down."""
    up, down = score[y == 1][:, None], score[y == 0][None, :]
    return (up > down) + 0.5 * (up == down)


def delong_covariance(a, b, y):
    """DeLong, DeLong and Clarke-Pearson (1988) from the table of pairs, no weights."""
    tables = [pair_table(s, y) for s in (a, b)]
    up, down = ([t.mean(axis=axis) for t in tables] for axis in (1, 0))
    return np.cov(up) / len(up[0]) + np.cov(down) / len(down[0])


@settings(max_examples=80, deadline=None)
@given(ROWS)
def test_area_is_the_weighted_share_of_ordered_pairs(rows):
    rows = [*rows, (0.25, 0.0, False, 1.0), (3.0, 0.0, True, 2.0)]
    a, b, y, w = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    both = np.outer(w[y == 1], w[y == 0])
    found = paired_auc(a, b, y, sample_weight=w)
    for e, score in ((found.a, a), (found.b, b)):
        assert e.value == pytest.approx(np.average(pair_table(score, y), weights=both))
        assert 0.0 <= e.low <= e.value <= e.high <= 1.0
        assert e.high - e.low > 0.005
        assert auc(score, y, sample_weight=w) == e
    gap = found.difference
    assert gap.value == pytest.approx(found.b.value - found.a.value)
    assert -1.0 <= gap.low <= gap.value <= gap.high <= 1.0
    assert 0.0 <= found.p_value <= 1.0


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 30), st.integers(3, 30))
def test_error_is_delongs(seed, n, m):
    rng = np.random.default_rng(seed)
    y = np.r_[np.zeros(n, int), np.ones(m, int)]
    a = (rng.normal(size=n + m) + y).round(1)
    b = (a + rng.normal(size=n + m)).round(1)
    covariance = delong_covariance(a, b, y)
    error = np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    found = paired_auc(a, b, y).difference
    if error > 1e-9 and abs(found.low) < 1 and abs(found.high) < 1:
        t = (found.high - found.low) / 2 / error
        assert norm.ppf(0.975) <= t <= 4.4  # between the normal's quantile and that of 2 rows' t


def test_scikit_learn_agrees_with_weights():
    rng = np.random.default_rng(1)
    y, w = rng.integers(0, 2, 2000), rng.uniform(0.2, 3, 2000)
    score = (rng.normal(size=2000) + y).round(1)
    theirs = roc_auc_score(y, score, sample_weight=w)
    assert auc(score, y, sample_weight=w).value == pytest.approx(theirs)


def test_the_three_areas_of_the_room_are_one():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 300)
    p = 1 / (1 + np.exp(-rng.normal(size=300) - y))
    e = auc(p, y)
    for other in (auroc(np.column_stack([1 - p, p]), y), ood_auroc(p[y == 1], p[y == 0])):
        assert (other.value, other.low, other.high) == pytest.approx((e.value, e.low, e.high))


@pytest.mark.parametrize(
    ("shift", "n", "m"), [(0.0, 20, 20), (1.2, 60, 60), (1.2, 8, 200), (3.0, 60, 60)]
)
def test_interval_covers(shift, n, m):
    rng = np.random.default_rng(n + m)
    y = np.r_[np.zeros(n, int), np.ones(m, int)]
    truth = norm.cdf(shift / np.sqrt(2))
    found = [auc(rng.normal(size=n + m) + shift * y, y) for _ in range(500)]
    assert np.mean([e.low <= truth <= e.high for e in found]) > 0.925


@pytest.mark.parametrize(("positives", "negatives", "shift"), [(5, 200, None), (20, 500, 3.29)])
def test_interval_covers_where_few_positives_are_nearly_all_on_top(positives, negatives, shift):
    rng = np.random.default_rng(12)
    y = np.repeat([1, 0], [positives, negatives])
    if shift is None:  # five grades, 88% of the positives in the best one
        of_positives, of_negatives = np.array([0, 0.01, 0.03, 0.08, 0.88]), np.full(5, 0.2)
        true = of_positives @ (np.cumsum(of_negatives) - 0.5 * of_negatives)
    else:
        true = norm.cdf(shift / np.sqrt(2.0))
    held = 0
    for _ in range(120):
        if shift is None:
            grades = [rng.choice(5, positives, p=of_positives), rng.choice(5, negatives)]
            score = np.concatenate(grades)
        else:
            score = rng.normal(size=len(y)) + shift * y
        estimate = auc(score, y)
        held += estimate.low <= true <= estimate.high
    assert held / 120 >= 0.93  # without the pseudo-row 70 and 76%


@pytest.mark.parametrize(("n", "m"), [(12, 12), (10, 150), (80, 80)])
def test_paired_test_keeps_its_size_and_its_interval_covers(n, m):
    """Two noisy readings of one score: equal areas in truth, strongly correlated."""
    rng = np.random.default_rng(n)
    y = np.r_[np.zeros(n, int), np.ones(m, int)]
    p_values, lifts = [], []
    for _ in range(600):
        common = rng.normal(size=n + m) + 1.2 * y
        a, b = (common + 0.7 * rng.normal(size=n + m) for _ in range(2))
        found = paired_auc(a, b, y)
        p_values.append(found.p_value)
        lifts.append(found.lift.low <= 0.0 <= found.lift.high)
        assert (found.p_value < 0.05) == (not found.difference.low <= 0 <= found.difference.high)
    assert np.mean(np.array(p_values) < 0.05) < 0.07
    assert np.mean(lifts) > 0.93


def test_weights_that_count_rows_twice_are_no_more_rows():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 200)
    score = rng.normal(size=200) + y
    plain, heavy = auc(score, y), auc(score, y, sample_weight=np.full(200, 7.0))
    assert (heavy.value, heavy.low) == pytest.approx((plain.value, plain.low))
    uneven = auc(score, y, sample_weight=np.where(np.arange(200) % 10 == 0, 50.0, 1.0))
    assert uneven.high - uneven.low > 1.5 * (plain.high - plain.low)


def test_lift_is_the_papers_and_agrees_with_the_test():
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 3000)
    a = rng.normal(size=3000) + y
    found = paired_auc(a, a + 0.5 * y, y)
    assert found.lift.value == pytest.approx((found.b.value - found.a.value) / found.a.value)
    assert 0.0 < found.lift.low < found.lift.value < found.lift.high
    assert found.p_value < 1e-6
    covariance = delong_covariance(a, a + 0.5 * y, y)
    for end in (found.lift.low, found.lift.high):  # Fieller: where b - r a is just told from 0
        r = np.array([-(1.0 + end), 1.0])
        distance = (r @ [found.a.value, found.b.value]) / np.sqrt(r @ covariance @ r)
        assert abs(distance) == pytest.approx(norm.ppf(0.975), rel=0.01)


def test_scores_that_order_alike_differ_by_nothing():
    score, y = np.array([0.1, 0.5, 0.5, 0.9]), [0, 0, 1, 1]
    found = paired_auc(score, np.exp(score), y)
    assert (found.difference.value, found.difference.low, found.difference.high) == (0, 0, 0)
    assert (found.lift.low, found.lift.high, found.p_value) == (0, 0, 1)


def test_two_perfect_scores_are_still_in_doubt():
    y = np.repeat([0, 1], 10)
    found = paired_auc(np.arange(20.0), np.r_[np.arange(10.0)[::-1], np.arange(10.0, 20)], y)
    assert found.a.value == found.b.value == 1.0
    assert found.difference.low == pytest.approx(-(1 - 0.025 ** (1 / 10)))
    assert found.p_value == 1.0


@pytest.mark.parametrize("first", [0.0, -1.0])
def test_from_no_or_a_reversed_order_to_a_perfect_one_is_a_sign_test_of_pairs(first):
    for m in (2, 5, 6, 20):
        y, score = np.repeat([0, 1], m), np.arange(2.0 * m)
        found = paired_auc(first * score, score, y)
        assert found.p_value == pytest.approx(min(2 * 0.5**m, 1.0))
        assert (found.difference.low > 0) == (found.p_value < 0.05)


def test_worst_and_best_areas_and_single_rows_keep_a_width():
    assert auc([1.0, 0.0], [0, 1]).high == pytest.approx(0.975)
    worst = auc(-np.arange(20.0), np.repeat([0, 1], 10))
    assert (worst.value, worst.low) == (0.0, 0.0)
    assert worst.high == pytest.approx(1 - 0.025 ** (1 / 10))
    one = auc(np.linspace(0, 1, 101), np.arange(101) == 50)
    assert one.low < 0.05 < 0.95 < one.high
    zero = paired_auc([1.0, 0.0], [0.0, 1.0], [0, 1])
    assert np.isnan(zero.lift.value)
    assert "not defined" in zero.lift.interval


def test_one_class_has_no_area():
    found = paired_auc([0.1, 0.2], [0.2, 0.1], [1, 1])
    assert np.isnan([found.a.value, found.lift.low, found.p_value]).all()
    assert "only one true class" in auc([0.1], [0]).interval


def test_faulty_scores_are_refused_by_row():
    with pytest.raises(InputError, match="score is missing") as caught:
        auc([0.1, np.nan], [0, 1])
    assert caught.value.row == 2
    with pytest.raises(InputError, match="second score has shape"):
        paired_auc([0.1, 0.2], [0.1], [0, 1])
    with pytest.raises(InputError, match="level"):
        auc([0.1, 0.2], [0, 1], level=2)
