from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logsumexp

from kdcal_core.calibration import EventCurve, TopLabelConfidence, TopLabelKDE, fit_calibrator
from kdcal_core.calibration.kernel_bandwidths import KernelSum, bandwidth_grid, sign_changes
from kdcal_core.data import ScoredSet
from kdcal_core.errors import InputError, InputWarning

# one class only is predicted in most of these tests, which rightly warns
# the rule of the paper, without what is added to it where rows are few
PaperKDE = partial(TopLabelKDE, shrinkage=None)
pytestmark = pytest.mark.filterwarnings("ignore::kdcal_core.errors.InputWarning")


def two_class(score, right):
    """Rows that all predict class 0 with this score, right or wrong as given."""
    score = np.asarray(score, dtype=float)
    return np.column_stack([score, 1 - score]), np.where(right, 0, 1)


def brute_confidence(at, right, wrong, b, w_right=None, w_wrong=None):
    """Eq. 9 in the log domain, every kernel against every score."""
    log_right = logsumexp(-((at[:, None] - right) ** 2) / (2 * b**2), b=w_right, axis=1)
    log_wrong = logsumexp(-((at[:, None] - wrong) ** 2) / (2 * b**2), b=w_wrong, axis=1)
    return expit(log_right - log_wrong)


def sample(n, seed=0, power=2):
    rng = np.random.default_rng(seed)
    score = rng.uniform(0.5, 1, n)
    return score, rng.random(n) < score**power


@pytest.mark.parametrize("n", [3, 60, 250, 3000])
@pytest.mark.parametrize("bandwidth", [0.0005, 0.01, 0.1, 5.0])
def test_confidence_is_equation_9(n, bandwidth):
    score, right = sample(n, seed=n)
    right[:2] = True, False
    weight = np.random.default_rng(1).uniform(0.5, 2, n)
    proba, y = two_class(score, right)
    kde = PaperKDE(bandwidth).fit(proba, y, weight)
    at = np.linspace(score.min(), 1, 1501)
    got = kde.predict_confidence(np.column_stack([at, 1 - at]))
    want = brute_confidence(
        at, score[right], score[~right], bandwidth, weight[right], weight[~right]
    )
    np.testing.assert_allclose(got, want, atol=1e-6)


def test_confidence_by_the_other_form_of_equation_21():
    score, right = sample(200)
    proba, y = two_class(score, right)
    kde = PaperKDE(0.03).fit(proba, y)
    curve = kde.curve(0, 300)
    n_tp, n_fp = curve.n_tp, curve.n_fp
    positives = (curve.density_tp * n_tp + curve.density_fp * n_fp) / (n_tp + n_fp)
    np.testing.assert_allclose(
        curve.confidence, curve.density_tp * n_tp / (positives * (n_tp + n_fp)), atol=1e-6
    )


@pytest.mark.parametrize("event", [0, 1])
def test_the_curve_of_an_event_is_what_the_calibrator_gives_for_it(event):
    rng = np.random.default_rng(7)
    p = rng.beta(1.5, 2.5, 900)
    proba, y = np.column_stack([1 - p, p]), (rng.random(900) < p**1.5).astype(int)
    kde = TopLabelKDE().fit(proba, y)
    curve = EventCurve.of(kde.curve(event), kde.curve(1 - event))
    known = np.isfinite(curve.score)
    assert (~known).sum() == 1
    assert (np.diff(curve.score[known]) > 0).all()
    stated = curve.score[known]
    mine = np.column_stack([stated, 1 - stated])[:, [event, 1 - event]]
    given = kde.predict_proba(mine)[:, event]
    np.testing.assert_allclose(curve.safe[known], given, atol=1e-6)
    hit, said = y == event, proba[:, event]
    assert (curve.n_tp, curve.n_fp) == (hit.sum(), (~hit).sum())
    with_event = curve.density_tp * curve.n_tp
    share = with_event / (with_event + curve.density_fp * curve.n_fp)
    np.testing.assert_allclose(curve.confidence, share, atol=1e-6)
    high = curve.score > 0.5
    rows, b = said[hit & (said > 0.5)], curve.bandwidth
    z = (curve.score[high][:, None] - rows) / b
    want = np.exp(-0.5 * z**2).sum(axis=1) / (np.sqrt(2 * np.pi) * b * hit.sum())
    np.testing.assert_allclose(curve.density_tp[high], want, rtol=1e-6)


def test_an_event_that_is_never_predicted_has_one_half():
    p = np.linspace(0.01, 0.4, 200)
    proba = np.column_stack([1 - p, p])
    kde = TopLabelKDE().fit(proba, (np.random.default_rng(0).random(200) < p).astype(int))
    curve = EventCurve.of(kde.curve(1), kde.curve(0))
    assert np.isfinite(curve.score).all()
    assert curve.score.max() == pytest.approx(0.4)
    assert curve.fallback == "the class is never predicted"
    given = kde.predict_proba(np.column_stack([1 - curve.score, curve.score]))[:, 1]
    np.testing.assert_allclose(curve.safe, given, atol=1e-6)


def test_densities_are_equations_7_and_8():
    score, right = sample(150, seed=4)
    kde = PaperKDE(0.05).fit(*two_class(score, right))
    curve = kde.curve(0, 50)
    z = (curve.score[:, None] - score[right]) / 0.05
    want = np.exp(-0.5 * z**2).mean(axis=1) / (np.sqrt(2 * np.pi) * 0.05)
    np.testing.assert_allclose(curve.density_tp, want, rtol=1e-9)
    assert "score" in curve.table().columns


def test_far_from_all_data_the_nearest_scores_decide():
    """In plain doubles every kernel is zero in the middle: 0/0."""
    score = np.array([0.51, 0.52, 0.99, 1.0])
    proba, y = two_class(score, [True, False, False, True])
    kde = PaperKDE(0.001).fit(proba, y)
    at = np.linspace(0.51, 1, 5001)
    got = kde.predict_confidence(np.column_stack([at, 1 - at]))
    want = brute_confidence(at, score[[0, 3]], score[[1, 2]], 0.001)
    np.testing.assert_allclose(got, want, atol=1e-6)
    assert got[at < 0.514].max() > 0.99
    assert kde.predict_confidence([[0.7, 0.3]])[0] < 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_scores_that_saturate_in_float32(seed):
    rng = np.random.default_rng(seed)
    n = 4000
    logit = rng.normal(12, 4, n)
    score = expit(logit.astype(np.float32)).astype(np.float32).astype(float)
    score = np.clip(score, 0.5, 1)
    right = rng.random(n) < 0.5 + 0.5 * score**40
    weight = np.ones(n)
    kernels = KernelSum(score, weight)
    at = np.concatenate([np.linspace(0.5, 1, 200), 1 - np.geomspace(1e-7, 1e-2, 100)])
    for b in (1e-6, 1e-4, 1e-2):
        log_sum, slope = kernels(at, b)
        d = at[:, None] - score
        want = logsumexp(-(d**2) / (2 * b**2), axis=1)
        np.testing.assert_allclose(log_sum, want, rtol=1e-12, atol=2e-5)
        p = np.exp(-(d**2) / (2 * b**2) - want[:, None])
        np.testing.assert_allclose(slope * b, -(p * d).sum(axis=1) / b, rtol=1e-6, atol=1e-4)
    kde = PaperKDE().fit(*two_class(score, right))
    assert np.isfinite(kde.predict_confidence(two_class(score, right)[0])).all()


def brute_rules(score, right, *allowed):
    """The first bandwidth, upwards, at which the curve changes its direction that often or less."""
    grid, found = np.linspace(score.min(), 1, 1000), {}
    for b in bandwidth_grid(1 - score.min()):
        changes = sign_changes(brute_confidence(grid, score[right], score[~right], b))
        for most in allowed:
            if changes <= most:
                found.setdefault(most, b)
        if len(found) == len(allowed):
            return [found[most] for most in allowed]
    raise AssertionError


@pytest.mark.parametrize("seed", range(6))
def test_bandwidths_are_the_first_of_an_upward_search(seed):
    score, right = sample(120 + 40 * seed, seed)
    kde = PaperKDE().fit(*two_class(score, right))
    for rule, want in zip(("mon4", "mon2", "mon"), brute_rules(score, right, 4, 2, 0), strict=True):
        assert kde.rule_bandwidths_[rule][0] == pytest.approx(want, rel=1e-9)
    assert kde.bandwidths_[0] == kde.rule_bandwidths_["mon2"][0]


def test_a_search_over_many_scores_agrees_with_the_exact_one():
    score, right = sample(1500, seed=11)
    kde = PaperKDE().fit(*two_class(score, right))
    (want,) = brute_rules(score, right, 2)
    assert kde.bandwidths_[0] == pytest.approx(want, rel=1e-9)


def test_sign_changes_on_hand_made_curves():
    assert sign_changes(np.array([0.1, 0.2, 0.3])) == 0
    assert sign_changes(np.array([0.3, 0.1, 0.3])) == 1
    assert sign_changes(np.array([0.1, 0.3, 0.2, 0.4])) == 2
    assert sign_changes(np.array([0.1, 0.3, 0.3, 0.3, 0.2])) == 1
    assert sign_changes(np.array([0.5, 0.5 + 1e-10, 0.5, 0.5 + 1e-10])) == 0
    assert sign_changes(np.array([0.5])) == 0


def test_a_coarse_grid_can_miss_wiggles():
    differing = 0
    for seed in range(12):
        rows = two_class(*sample(80, seed))
        coarse, fine = (PaperKDE(n_grid=g).fit(*rows).bandwidths_[0] for g in (25, 1000))
        assert coarse <= fine * 1.0001
        differing += coarse < fine * 0.99
    assert differing > 0


def test_separated_classes_get_the_smallest_bandwidth():
    score = np.concatenate([np.linspace(0.5, 0.6, 30), np.linspace(0.8, 1.0, 30)])
    kde = PaperKDE().fit(*two_class(score, score > 0.7))
    assert kde.bandwidths_[0] == pytest.approx(0.5 / 1000)
    got = kde.predict_confidence(two_class([0.55, 0.9], [1, 1])[0])
    np.testing.assert_allclose(got, [0, 1], atol=1e-12)


def test_a_falling_curve_is_reported():
    score, right = sample(2000, seed=3)
    with pytest.warns(InputWarning, match="falls as the score grows"):
        kde = PaperKDE("mon").fit(*two_class(score, ~right & (score > 0.5)))
    assert any("falls" in note for note in kde.notes_)


@given(
    right=st.lists(st.floats(0.5, 1), min_size=1, max_size=12),
    wrong=st.lists(st.floats(0.5, 1), min_size=1, max_size=12),
    more=st.floats(0.5, 1),
    bandwidth=st.floats(1e-3, 1),
)
@settings(max_examples=60, deadline=None)
def test_adding_true_positives_never_lowers_confidence(right, wrong, more, bandwidth):
    """Section XIII.B at a fixed bandwidth, log odds compared before any rounding to 0 or 1."""
    at = np.linspace(0.5, 1, 101)
    before = KernelSum(np.array(right), np.ones(len(right)))(at, bandwidth)[0]
    after = KernelSum(np.array([*right, more]), np.ones(len(right) + 1))(at, bandwidth)[0]
    assert (after >= before - 1e-9 * np.maximum(1, np.abs(before))).all()
    assert np.isfinite(after).all()
    assert np.isfinite(KernelSum(np.array(wrong), np.ones(len(wrong)))(at, bandwidth)[0]).all()


def test_wide_kernels_give_the_share_of_right_rows():
    score, right = sample(500)
    kde = PaperKDE(1e4).fit(*two_class(score, right))
    got = kde.predict_confidence(two_class([0.5, 1.0], [1, 1])[0])
    np.testing.assert_allclose(got, right.mean(), atol=1e-6)


def test_a_weight_of_two_is_a_row_twice():
    score, right = sample(100)
    weight = 1.0 + (np.arange(100) % 3 == 0)
    proba, y = two_class(score, right)
    twice = np.repeat(np.arange(100), weight.astype(int))
    a = PaperKDE().fit(proba, y, weight)
    b = PaperKDE().fit(proba[twice], y[twice])
    np.testing.assert_allclose(a.bandwidths_[0], b.bandwidths_[0])
    np.testing.assert_allclose(a.predict_confidence(proba), b.predict_confidence(proba), atol=1e-9)


@pytest.mark.parametrize(
    ("score", "right", "reason"),
    [
        ([0.6, 0.7, 0.8], [True, True, True], "3 true and 0 false"),
        ([0.6, 0.7, 0.8], [False, False, False], "0 true and 3 false"),
        ([0.8, 0.8, 0.8], [True, False, True], "all its scores are equal"),
        ([1.0, 1.0, 1.0], [True, False, True], "all its scores are equal"),
        ([0.9], [True], "1 true and 0 false"),
    ],
)
def test_falls_back_to_conf1_with_a_warning(score, right, reason):
    proba, y = two_class(score, right)
    with pytest.warns(InputWarning):
        kde = PaperKDE().fit(proba, y)
    with pytest.warns(InputWarning, match="never predicted"):
        conf1 = TopLabelConfidence(shrinkage=None).fit(proba, y)
    assert reason in kde.fallback_[0]
    assert reason in kde.curve(0).fallback
    assert np.isnan(kde.bandwidths_[0])
    np.testing.assert_allclose(kde.predict_confidence(proba), conf1.predict_confidence(proba))
    np.testing.assert_allclose(kde.curve(0).confidence, np.mean(right))


def test_the_smallest_count_is_a_setting():
    score, right = sample(60)
    assert PaperKDE(min_count=59).fit(*two_class(score, right)).fallback_[0]
    assert not PaperKDE(min_count=5).fit(*two_class(score, right)).fallback_[0]


def test_sparse_classes_carry_the_advice():
    """The fully trained case of section XIII.D: 4 true positives below 0.99, 11 errors."""
    rng = np.random.default_rng(0)
    score = np.concatenate([[0.7, 0.8, 0.93, 0.97], rng.uniform(0.999, 1, 980)])
    score = np.concatenate([score, rng.uniform(0.6, 1, 11)])
    kde = PaperKDE().fit(*two_class(score, np.arange(995) < 984))
    assert any("only 11 false positives" in note for note in kde.notes_)
    assert np.isfinite(kde.curve(0).confidence).all()


def test_held_constant_below_the_lower_limit():
    score, right = sample(300)
    kde = PaperKDE(0.02, lower_limit=0.7).fit(*two_class(score, right))
    below = kde.predict_confidence(two_class([0.5, 0.6, 0.7], [1, 1, 1])[0])
    assert below[0] == below[1] == below[2]
    assert kde.curve(0).score[0] == kde.curve(0).lower_limit == 0.7
    assert PaperKDE(lower_limit=0.15).fit(*two_class(score, right)).lower_limits_[0] == (
        score.min()
    )


def brute_loo(score, right, grid):
    losses = []
    for b in grid:
        kernel = np.exp(-((score[:, None] - score) ** 2) / (2 * b**2))
        np.fill_diagonal(kernel, 0)
        confidence = kernel[:, right].sum(1) / kernel.sum(1)
        p = np.clip(np.where(right, confidence, 1 - confidence), 1e-12, 1)
        losses.append(-np.log(p).sum())
    return grid[int(np.argmin(losses))]


@pytest.mark.parametrize(("n", "steps"), [(40, 0), (150, 0), (900, 1)])
def test_leave_one_out_bandwidth(n, steps):
    score, right = sample(n, seed=n)
    kde = PaperKDE("loo").fit(*two_class(score, right))
    with np.errstate(invalid="ignore"):
        want = brute_loo(score, right, bandwidth_grid(1 - score.min())[60:])
    assert abs(np.log(kde.bandwidths_[0] / want)) <= (steps + 0.01) * np.log(1.05)


def test_another_rule_without_refitting():
    rows = two_class(*sample(300, seed=2))
    kde = PaperKDE().fit(*rows)
    for rule in ("mon", "mon4"):
        fresh = PaperKDE(rule).fit(*rows)
        np.testing.assert_array_equal(
            kde.with_rule(rule).predict_confidence(rows[0]), fresh.predict_confidence(rows[0])
        )
        assert kde.with_rule(rule).get_params() == fresh.get_params()
    assert kde.bandwidth == "mon2"
    with pytest.raises(InputError, match="loo"):
        kde.with_rule("loo")
    with pytest.raises(InputError, match="no class 7"):
        kde.curve(7)


def test_a_row_gets_the_same_answer_alone_and_in_company():
    proba, y = two_class(*sample(3000))
    kde = PaperKDE().fit(proba, y)
    together = kde.predict_confidence(proba)
    alone = np.concatenate([kde.predict_confidence(proba[i : i + 1]) for i in range(20)])
    np.testing.assert_array_equal(alone, together[:20])


def test_notes_are_kept_by_class_whatever_the_classes_are_called():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 400)
    proba[:, 2] = 0.0
    proba /= proba.sum(axis=1, keepdims=True)
    y = np.where(rng.random(400) < 0.97, proba.argmax(axis=1), 2)
    names = ("Class 1: a", "b", "Class 0 falls")
    named = fit_calibrator(TopLabelKDE(), ScoredSet(proba, y, names, "digest", "calibration"))
    of_class = [named.notes_of(label) for label in range(3)]
    assert all(of_class)
    assert [
        any(note == f"Class {name}{words}" for note in named.notes_)
        for name, notes in zip(names, of_class, strict=True)
        for words in notes
    ] == [True] * sum(map(len, of_class))
    assert of_class[2][0].startswith(" is never predicted")
    assert [TopLabelKDE().fit(proba, y).notes_of(label) for label in range(3)] == of_class
    assert [named.with_rule("mon").notes_of(label) for label in range(3)] == of_class
    named.fit(np.tile([0.5, 0.3, 0.2], (9, 1)), np.zeros(9, dtype=int))
    assert "never predicted" in named.notes_of(1)[0]


@pytest.mark.parametrize("bandwidth", ["mon2", "loo", 0.05])
def test_counted_rows_are_rows_one_by_one(bandwidth):
    rng = np.random.default_rng(0)
    score = np.clip(np.round(rng.beta(2, 2, 3000), 2), 0.01, 0.99)
    y = (rng.random(3000) < score**1.3).astype(int)
    distinct, count = np.unique(np.column_stack([score, y]), axis=0, return_counts=True)
    proba, true = np.column_stack([1 - distinct[:, 0], distinct[:, 0]]), distinct[:, 1].astype(int)
    each = np.repeat(np.arange(len(count)), count)
    one_by_one = TopLabelKDE(bandwidth).fit(proba[each], true[each])
    counted = TopLabelKDE(bandwidth).fit_counts(proba, true, count)
    np.testing.assert_array_equal(counted.predict_proba(proba), one_by_one.predict_proba(proba))
    assert counted.notes_ == one_by_one.notes_
    for label in (0, 1):
        ours, theirs = counted.curve(label), one_by_one.curve(label)
        assert (ours.n_tp, ours.n_fp, ours.bandwidth) == (
            theirs.n_tp,
            theirs.n_fp,
            theirs.bandwidth,
        )
        np.testing.assert_array_equal(ours.rows, theirs.rows)
    again = counted.fit(proba[each], true[each])  # a count does not outlive its fit
    np.testing.assert_array_equal(again.predict_proba(proba), one_by_one.predict_proba(proba))


def test_many_counted_rows_choose_their_shrinkage_by_a_draw():
    rng = np.random.default_rng(1)
    score = np.clip(np.round(rng.beta(2, 2, 200_000), 2), 0.01, 0.99)
    y = (rng.random(len(score)) < score**1.3).astype(int)
    distinct, count = np.unique(np.column_stack([score, y]), axis=0, return_counts=True)
    proba, true = np.column_stack([1 - distinct[:, 0], distinct[:, 0]]), distinct[:, 1].astype(int)
    one_by_one = TopLabelKDE().fit(np.column_stack([1 - score, score]), y)
    counted = TopLabelKDE().fit_counts(proba, true, count)
    assert counted.bandwidths_ == pytest.approx(one_by_one.bandwidths_)
    difference = counted.predict_proba(proba) - one_by_one.predict_proba(proba)
    assert np.abs(difference).max() < 1e-3


def test_a_part_of_a_row_is_no_count():
    with pytest.raises(InputError, match="Row 1 stands for a part of a row"):
        TopLabelKDE().fit_counts([[0.8, 0.2], [0.4, 0.6]], [0, 1], [3, 2.5])
