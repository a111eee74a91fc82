"""OCE, AUROC, FPR@95, MMC and Hellinger against brute force, scikit-learn and simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, norm
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score, roc_curve

from kdcal_core.calibration import KernelDensityForest
from kdcal_core.data.foreign_rows import sphere_points
from kdcal_core.diagnostics import (
    fpr_at_95_tpr,
    hellinger_distance,
    hellinger_distances,
    mean_max_confidence,
    ood_auroc,
    ood_calibration_error,
    unknown_share,
)
from kdcal_core.errors import InputError


def draw(n, n_classes, seed):
    odds = np.exp(2.0 * np.random.default_rng(seed).normal(size=(n, n_classes)))
    return odds / odds.sum(axis=1, keepdims=True)


score_lists = st.lists(
    st.one_of(st.sampled_from([0.0, 1.0, -np.inf, np.inf]), st.floats(-5, 5)),
    min_size=1,
    max_size=25,
)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_oce_is_equation_20(n_classes):
    proba = draw(80, n_classes, 1)
    prior = draw(1, n_classes, 2)[0]
    wanted = sum(abs(max(row) - max(prior)) for row in proba) / 80
    given_prior = ood_calibration_error(proba, prior)
    assert given_prior.value == pytest.approx(wanted)
    assert given_prior.low < wanted < given_prior.high
    assert "given" in given_prior.label
    counted = ood_calibration_error(proba, prior, prior_kind="empirical")
    assert counted.value == given_prior.value
    assert "empirical" in counted.label
    assert "empirical" in counted.name


def test_an_oce_of_nothing_is_not_certain():
    exact = ood_calibration_error(np.full((1000, 2), 0.5), [0.5, 0.5])
    assert (exact.value, exact.low) == (0.0, 0.0)
    assert 0.0005 < exact.high < 0.005
    sure = ood_calibration_error(np.tile([1.0, 0.0], (1000, 1)), [0.5, 0.5])
    assert (sure.value, sure.high) == (0.5, 0.5)
    assert 0.49 < sure.low < 0.5
    one = ood_calibration_error([[0.7, 0.3]], [0.5, 0.5])
    assert 0.0 <= one.low < 0.2 < one.high <= 0.5


@pytest.mark.parametrize("rare", [0.02, 0.1, 0.5, 0.97])
def test_oces_interval_covers_also_where_few_rows_are_off(rare):
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(600):
        off = rng.random(120) < rare
        top = 0.5 + 0.4 * off
        e = ood_calibration_error(np.column_stack([top, 1 - top]), [0.5, 0.5])
        covered += e.low <= 0.4 * rare <= e.high
    assert covered / 600 > 0.925


@given(score_lists, score_lists)
@settings(max_examples=80, deadline=None)
def test_auroc_is_the_share_of_ordered_pairs(ordinary, foreign):
    pairs = [(a > b) + 0.5 * (a == b) for a in ordinary for b in foreign]
    e = ood_auroc(ordinary, foreign)
    assert e.value == pytest.approx(np.mean(pairs))
    assert 0.0 <= e.low <= e.value <= e.high <= 1.0
    assert e.high - e.low > 0.005
    mirrored = ood_auroc(foreign, ordinary)
    assert mirrored.value == pytest.approx(1 - e.value)
    assert mirrored.low == pytest.approx(1 - e.high)


def test_scikit_learn_agrees():
    rng = np.random.default_rng(3)
    ordinary, foreign = rng.normal(1.5, 1, 400).round(1), rng.normal(size=300).round(1)
    y = np.r_[np.ones(400), np.zeros(300)]
    score = np.r_[ordinary, foreign]
    assert ood_auroc(ordinary, foreign).value == pytest.approx(roc_auc_score(y, score))
    fpr, tpr, _ = roc_curve(y, score, drop_intermediate=False)
    assert fpr_at_95_tpr(ordinary, foreign).value == pytest.approx(fpr[tpr >= 0.95 - 1e-12].min())


@pytest.mark.parametrize(("shift", "n", "m"), [(0.5, 40, 40), (2.3, 40, 80), (3.3, 100, 100)])
def test_aurocs_interval_covers_also_near_one(shift, n, m):
    rng = np.random.default_rng(n)
    truth = norm.cdf(shift / np.sqrt(2))
    covered = 0
    for _ in range(400):
        e = ood_auroc(rng.normal(shift, 1, n), rng.normal(size=m))
        covered += e.low <= truth <= e.high
    assert 0.925 < covered / 400 < 0.995


@pytest.mark.parametrize(("n", "m"), [(5, 500), (500, 5)])
def test_aurocs_interval_covers_with_few_rows_on_one_side(n, m):
    """A normal quantile covers 86% to 88% here: five rows do not show their own variance."""
    rng = np.random.default_rng(n)
    truth = norm.cdf(1.0 / np.sqrt(2))
    found = [ood_auroc(rng.normal(1.0, 1, n), rng.normal(size=m)) for _ in range(600)]
    assert np.mean([e.low <= truth <= e.high for e in found]) > 0.91


def test_wholly_parted_rows_leave_auroc_in_doubt():
    e = ood_auroc(np.arange(10.0), np.arange(-20.0, 0.0))
    assert (e.value, e.high) == (1.0, 1.0)
    assert e.low == pytest.approx(0.025 ** (1 / 10))
    tied = ood_auroc(np.ones(30), np.ones(40))
    assert tied.value == 0.5
    assert tied.low < 0.4 < 0.6 < tied.high
    assert ood_auroc([1.0], [0.0]).low == pytest.approx(0.025)
    assert ood_auroc([0.5], np.linspace(0, 1, 101)).low < 0.05


@given(score_lists, score_lists)
@settings(max_examples=80, deadline=None)
def test_fpr_is_the_best_share_at_a_threshold_that_keeps_95_percent(ordinary, foreign):
    def kept(scores, t):
        return sum(s >= t for s in scores) / len(scores)

    good = [t for t in ordinary if kept(ordinary, t) >= 0.95 - 1e-12]
    e = fpr_at_95_tpr(ordinary, foreign)
    assert e.value == pytest.approx(min(kept(foreign, t) for t in good))
    assert 0.0 <= e.low <= e.value <= e.high <= 1.0
    assert e.high - e.low > 0.005


@pytest.mark.parametrize(
    ("shift", "n", "m"), [(0.0, 60, 60), (2.0, 100, 50), (2.0, 50, 400), (3.0, 300, 300)]
)
def test_fprs_interval_covers_the_doubt_of_both_samples(shift, n, m):
    rng = np.random.default_rng(m)
    truth = norm.cdf(norm.ppf(0.95) - shift)
    covered, alone = 0, 0
    for _ in range(400):
        e = fpr_at_95_tpr(rng.normal(shift, 1, n), rng.normal(size=m))
        covered += e.low <= truth <= e.high
        half = 1.96 * np.sqrt(max(e.value * (1 - e.value), 1 / m) / m)
        alone += abs(e.value - truth) <= half
    assert 0.93 < covered / 400 < 0.998
    assert alone <= covered  # an interval of the foreign sample alone covers no more often


def test_fpr_keeps_a_width_at_its_bounds():
    e = fpr_at_95_tpr(np.arange(100.0), np.arange(-100.0, 0.0))
    assert (e.value, e.low) == (0.0, 0.0)
    assert 0.01 < e.high < 0.1
    e = fpr_at_95_tpr(np.zeros(50), np.zeros(50))
    assert (e.value, e.high) == (1.0, 1.0)
    assert e.low < 0.99
    one = fpr_at_95_tpr([1.0], [0.0])
    assert (one.value, one.low) == (0.0, 0.0)
    assert one.high > 0.9


@pytest.mark.parametrize("measure", [ood_auroc, fpr_at_95_tpr])
def test_scores_that_cannot_be_ranked_are_refused_by_row(measure):
    with pytest.raises(InputError, match="foreign") as caught:
        measure([1.0, 2.0], [0.0, 1.0, np.nan])
    assert caught.value.row == 3
    with pytest.raises(InputError, match="ordinary"):
        measure([], [0.0])
    with pytest.raises(InputError, match="level"):
        measure([1.0], [0.0], level=1.0)


def test_a_prior_that_is_none_is_refused():
    with pytest.raises(InputError, match="2 classes"):
        ood_calibration_error([[0.5, 0.5]], [0.2, 0.3, 0.5])
    with pytest.raises(InputError, match="In the prior"):
        ood_calibration_error([[0.5, 0.5]], [0.5, 0.6])
    with pytest.raises(InputError, match="prior_kind"):
        ood_calibration_error([[0.5, 0.5]], [0.5, 0.5], prior_kind="true")
    with pytest.raises(InputError) as caught:
        ood_calibration_error([[0.5, 0.5], [np.nan, 0.5]], [0.5, 0.5])
    assert caught.value.row == 2


def test_mmc_needs_no_classes_and_its_star_does():
    proba = draw(60, 3, 4)
    y = np.random.default_rng(4).integers(0, 3, 60)
    assert mean_max_confidence(proba).value == pytest.approx(proba.max(axis=1).mean())
    assert mean_max_confidence(proba) == mean_max_confidence(proba, y)
    wrong = proba.argmax(axis=1) != y
    star = mean_max_confidence(proba, y, of="errors")
    assert star.value == pytest.approx(proba[wrong].max(axis=1).mean())
    assert star.n == wrong.sum()
    assert np.isnan(mean_max_confidence(proba, proba.argmax(axis=1), of="errors").value)
    with pytest.raises(InputError, match="true classes"):
        mean_max_confidence(proba, of="errors")


def test_rows_of_one_confidence_keep_an_interval():
    sure = mean_max_confidence(np.tile([1.0, 0.0], (500, 1)))
    assert sure.value == sure.high == 1.0
    assert 0.99 < sure.low < 1.0
    at_prior = mean_max_confidence(np.full((500, 2), 0.5))
    assert at_prior.low == at_prior.value == 0.5
    assert 0.5 < at_prior.high < 0.51


@given(st.integers(1, 20), st.integers(2, 6), st.integers(0, 999))
@settings(max_examples=40, deadline=None)
def test_hellinger_is_its_formula_and_a_metric(n, n_classes, seed):
    p, q, r = (draw(n, n_classes, 3 * seed + i) for i in range(3))
    wanted = [
        sum((a**0.5 - b**0.5) ** 2 for a, b in zip(one, other, strict=True)) ** 0.5 / 2**0.5
        for one, other in zip(p, q, strict=True)
    ]
    distances = hellinger_distances(p, q)
    np.testing.assert_allclose(distances, wanted, atol=1e-12)
    np.testing.assert_array_equal(distances, hellinger_distances(q, p))
    assert (distances <= hellinger_distances(p, r) + hellinger_distances(r, q) + 1e-12).all()
    assert (hellinger_distances(p, p) == 0).all()
    e = hellinger_distance(p, q)
    assert e.value == pytest.approx(np.mean(wanted))
    assert 0.0 <= e.low <= e.value <= e.high <= 1.0
    assert e.high > e.low


def test_hellinger_refuses_rows_that_do_not_match():
    with pytest.raises(InputError, match="shapes"):
        hellinger_distances([[0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(InputError) as caught:
        hellinger_distance([[0.5, 0.5], [0.5, np.nan]], [[0.5, 0.5], [0.5, 0.5]])
    assert caught.value.row == 2


def test_the_share_of_unknown_rows_is_counted_with_its_exact_interval():
    flags = np.arange(200) < 3
    share = unknown_share(flags)
    assert share.value == 0.015
    exact = binomtest(3, 200).proportion_ci(0.95, method="exact")
    assert (share.low, share.high) == pytest.approx((exact.low, exact.high))
    assert unknown_share(np.zeros(9, dtype=bool)).low == 0.0
    with pytest.raises(InputError, match="shape"):
        unknown_share([])


def test_with_nine_tenths_in_one_class_the_density_shows_and_confidence_does_not():
    """The prior that a foreign row falls back to is 90% sure itself."""
    rng = np.random.default_rng(0)

    def rows_of(n, share):
        y = (rng.random(n) < share).astype(int)
        return rng.normal(size=(n, 3)) + 1.2 * y[:, None], y

    def areas(share):
        X, y = rows_of(600, share)
        forest = RandomForestClassifier(50, min_samples_leaf=3, random_state=0).fit(X, y)
        graph = KernelDensityForest(forest, scale="standard").fit(X, y, *rows_of(300, share))
        reach = np.linalg.norm(X - X.mean(axis=0), axis=1).max()
        foreign = X.mean(axis=0) + sphere_points(300, 3, 3 * reach, seed=0)
        assert graph.is_unknown(foreign).all()
        sides = rows_of(300, share)[0], foreign
        density = [graph.graph_.log_marginal(graph.locate(side)) for side in sides]
        confidence = [graph.predict_proba(side).max(axis=1) for side in sides]
        return ood_auroc(*density), ood_auroc(*confidence, by="confidence")

    for share, least, most in ((0.5, 0.9, 1.0), (0.9, 0.5, 0.85)):
        density, confidence = areas(share)
        assert density.value > 0.99
        assert least < confidence.value < most
        assert density.name.endswith("by density")
        assert confidence.name.endswith("by confidence")


@pytest.mark.parametrize("measure", [ood_auroc, fpr_at_95_tpr])
def test_a_score_is_a_density_or_a_confidence(measure):
    with pytest.raises(InputError, match="by"):
        measure([0.9, 0.8], [0.1], by="taste")
