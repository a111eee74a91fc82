from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kdcal_core.calibration import (
    CumulativeConfidence,
    TopLabelConfidence,
    TopLabelHistogram,
    UncalibratedConfidence,
)
from kdcal_core.errors import InputError, InputWarning

pytestmark = pytest.mark.filterwarnings("ignore::kdcal_core.errors.InputWarning")

# as printed: without what is added where rows are few
PaperConf1, PaperHistogram, PaperCumulative = (
    partial(one, shrinkage=None)
    for one in (TopLabelConfidence, TopLabelHistogram, CumulativeConfidence)
)


def rows(n, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    # hundredths, so that scores tie with each other and with bin edges
    proba = np.array([rng.multinomial(100, p) for p in rng.dirichlet(np.ones(n_classes), n)]) / 100
    y = np.array([rng.choice(n_classes, p=p / p.sum()) for p in proba])
    return proba, y, rng.uniform(0.5, 2, n)


def brute_hist(score, right, weight, keep):
    """Eq. 5 on the rows that ``keep`` marks."""
    return (weight * right)[keep].sum() / weight[keep].sum()


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_conf1_is_the_diagonal_of_the_reverse_confusion_matrix(n_classes):
    proba, y, weight = rows(900, n_classes)
    joint = np.zeros((n_classes, n_classes))
    np.add.at(joint, (y, proba.argmax(axis=1)), weight)
    got = PaperConf1().fit(proba, y, weight)
    np.testing.assert_allclose(got.confidence_, np.diag(joint) / joint.sum(axis=0))
    np.testing.assert_allclose(got.predict_confidence(proba), got.confidence_[proba.argmax(axis=1)])


def test_minor_capsid_of_figure_1():
    """63 of 875 predictions are right: 0.07."""
    proba = np.tile([0.9, 0.1], (875, 1))
    got = PaperConf1().fit(proba, np.arange(875) >= 63)
    assert got.predict_confidence(proba[:1])[0] == pytest.approx(0.072)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("make", [PaperConf1, PaperHistogram, PaperCumulative])
def test_a_class_never_predicted_gets_the_overall_accuracy(make):
    proba = np.array([[0.6, 0.3, 0.1], [0.7, 0.2, 0.1], [0.2, 0.7, 0.1]])
    with pytest.warns(InputWarning, match="Class 2 is never predicted"):
        got = make().fit(proba, [0, 1, 1])
    assert "Class 2" in got.notes_[0]
    assert got.predict_confidence([[0.1, 0.1, 0.8]])[0] == pytest.approx(2 / 3)


@pytest.mark.parametrize("seed", range(3))
def test_histogram_is_equations_5_and_6(seed):
    proba, y, weight = rows(400, seed=seed)
    predicted, score = proba.argmax(axis=1), proba.max(axis=1)
    got = PaperHistogram(n_bins=10).fit(proba, y, weight).predict_confidence(proba)
    for i in range(0, 400, 7):
        upper = next(b for b in range(1, 11) if score[i] <= b / 10 + 1e-12)
        same = (predicted == predicted[i]) & (score <= upper / 10 + 1e-12)
        same &= score > (upper - 1) / 10 + 1e-12
        assert got[i] == pytest.approx(brute_hist(score, y == predicted, weight, same))


def test_an_empty_bin_has_conf1_and_a_note(texts):
    proba = np.array([[0.95, 0.05]] * 4 + [[0.05, 0.95]] * 2)
    got = PaperHistogram().fit(proba, [0, 0, 0, 1, 1, 1])
    assert got.predict_confidence([[0.65, 0.35]])[0] == 0.75
    texts(got.notes_)
    assert any("4 of 10 bins" in note for note in got.notes_)


def test_equal_mass_bins_hold_equal_mass():
    score = np.linspace(0.5001, 1, 100)
    got = PaperHistogram(5, "quantile").fit(np.c_[score, 1 - score], np.arange(100) % 2)
    inside = (score[:, None] > got.edges_[0][:-1]) & (score[:, None] <= got.edges_[0][1:])
    assert inside.sum(axis=0).tolist() == [20] * 5


def brute_cum(score, right, weight, cutoff, at):
    """Eqs. 11 to 13 for one class at one score."""
    keep = score < cutoff if at < cutoff else score >= at
    if not keep.any():
        keep = score == score.max() if at >= cutoff else np.ones_like(keep)
    return brute_hist(score, right, weight, keep)


@pytest.mark.parametrize("cutoff", [None, "median", "optimal", 0.7])
@pytest.mark.parametrize("seed", range(3))
def test_cumulative_confidence_is_equations_11_to_13(cutoff, seed):
    proba, y, weight = rows(250, seed=seed)
    predicted, score = proba.argmax(axis=1), proba.max(axis=1)
    right = y == predicted
    fitted = PaperCumulative(cutoff).fit(proba, y, weight)
    got = fitted.predict_confidence(proba)
    for k in range(3):
        mine = predicted == k
        s, r, w = score[mine], right[mine], weight[mine]

        def loss(theta, s=s, r=r, w=w):
            p = np.array([brute_cum(s, r, w, theta, at) for at in s])
            p = np.clip(p, 1e-12, 1 - 1e-12)
            return -(w * np.where(r, np.log(p), np.log(1 - p))).sum()

        if cutoff == "optimal":
            losses = [loss(theta) for theta in np.unique(s)]
            assert loss(fitted.cutoffs_[k]) == pytest.approx(min(losses), rel=1e-9)
            assert fitted.cutoffs_[k] in s
        theta = fitted.cutoffs_[k]
        want = [brute_cum(s, r, w, theta, at) for at in s]
        np.testing.assert_allclose(got[mine], want)


def test_the_median_cutoff_is_the_median():
    score = np.array([0.55, 0.6, 0.7, 0.9])
    got = PaperCumulative("median").fit(np.c_[score, 1 - score], [0, 1, 0, 1])
    assert got.cutoffs_[0] == pytest.approx(0.65)
    got = PaperCumulative("median").fit(np.c_[score[:3], 1 - score[:3]], [0, 1, 0])
    assert got.cutoffs_[0] == 0.6


def test_equally_good_cutoffs_give_the_lowest():
    score = np.array([0.6, 0.7, 0.8, 0.9])
    got = PaperCumulative("optimal").fit(np.c_[score, 1 - score], [0, 0, 0, 0])
    assert got.cutoffs_[0] == 0.6


def test_uncalibrated_is_the_score():
    proba, y, _ = rows(50)
    got = UncalibratedConfidence().fit(proba, y)
    np.testing.assert_array_equal(got.predict_confidence(proba), proba.max(axis=1))
    np.testing.assert_array_equal(got.predict_proba(proba), proba)


ALL = [PaperHistogram, PaperConf1, PaperCumulative, UncalibratedConfidence]


@given(
    logits=hnp.arrays(
        np.float32,
        hnp.array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=20),
        elements=st.sampled_from([-90.0, -1.0, 0.0, 0.5, 1.0, 90.0]),
    ),
    seed=st.integers(0, 99),
)
@settings(max_examples=40, deadline=None)
def test_every_input_gives_probabilities(logits, seed):
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    proba = (odds / odds.sum(axis=1, keepdims=True)).astype(float)
    y = np.random.default_rng(seed).integers(0, proba.shape[1], len(proba))
    for make in [*ALL, lambda: PaperCumulative("optimal")]:
        calibrator = make().fit(proba, y)
        confidence, full = calibrator.predict_confidence(proba), calibrator.predict_proba(proba)
        assert ((confidence >= 0) & (confidence <= 1)).all()
        assert (full >= 0).all()
        np.testing.assert_allclose(full.sum(axis=1), 1, atol=1e-9)
        at_top = full[np.arange(len(full)), proba.argmax(axis=1)]
        np.testing.assert_allclose(at_top, confidence, atol=1e-9)


def test_bad_rows_are_named():
    with pytest.raises(InputError, match="row 2"):
        PaperHistogram().fit([[0.5, 0.5], [0.5, 0.9]], [0, 1])
    with pytest.raises(InputError, match="3 columns"):
        PaperHistogram().fit([[0.6, 0.4], [0.4, 0.6]], [0, 1]).predict_confidence([[0, 0, 1]])
