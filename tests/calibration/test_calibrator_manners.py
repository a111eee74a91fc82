"""scikit-learn's manners, for every calibrator of the registry."""

import pickle
import warnings

import numpy as np
import pytest
from estimator_checks import CHECKS
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils._param_validation import InvalidParameterError
from threadpoolctl import threadpool_limits

from kdcal_core.calibration import (
    CALIBRATORS,
    CumulativeConfidence,
    IsotonicConfidence,
    SigmoidConfidence,
    TemperatureScaling,
    TopLabelCalibrator,
    TopLabelHistogram,
    TopLabelKDE,
    fit_calibrator,
)
from kdcal_core.data import ScoredSet

pytestmark = pytest.mark.filterwarnings("ignore::kdcal_core.errors.InputWarning")


def rows(n=200, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(n_classes), n)
    return proba, np.array([rng.choice(n_classes, p=p) for p in proba])


@pytest.fixture(params=[key for key, entry in CALIBRATORS.items() if not entry.needs])
def calibrator(request):
    return CALIBRATORS[request.param].factory()


@pytest.mark.parametrize("check", CHECKS)
def test_sklearns_own_checks(calibrator, check):
    check(type(calibrator).__name__, calibrator)


def test_clones_pickles_and_refits_alike(calibrator):
    proba, y = rows()
    first = calibrator.fit(proba, y)
    want = first.predict_proba(proba)
    np.testing.assert_array_equal(clone(first).fit(proba, y).predict_proba(proba), want)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(first)).predict_proba(proba), want)
    assert isinstance(first, TopLabelCalibrator)


def test_not_fitted(calibrator):
    with pytest.raises(NotFittedError):
        calibrator.predict_confidence([[0.5, 0.5]])
    with pytest.raises(NotFittedError):
        calibrator.predict_proba([[0.5, 0.5]])


@pytest.mark.parametrize(("n", "n_classes"), [(1, 20), (1, 2), (2, 5), (40, 2), (40, 7)])
def test_probabilities_at_every_size(calibrator, n_classes, n):
    proba, y = rows(n, n_classes)
    calibrator.fit(proba, y)
    new = np.concatenate([proba, rows(50, n_classes, 1)[0], np.eye(n_classes)])
    confidence, full = calibrator.predict_confidence(new), calibrator.predict_proba(new)
    assert confidence.shape == (len(new),)
    assert ((confidence >= 0) & (confidence <= 1)).all()
    assert full.shape == new.shape
    assert (full >= 0).all()
    np.testing.assert_allclose(full.sum(axis=1), 1, atol=1e-9)
    top = full[np.arange(len(new)), new.argmax(axis=1)]
    np.testing.assert_allclose(top, confidence, atol=1e-9)


def test_inputs_are_left_as_they_are(calibrator):
    proba, y = rows()
    weight = np.linspace(1, 2, len(y))
    kept = proba.copy(), y.copy(), weight.copy()
    calibrator.fit(proba, y, weight).predict_proba(proba)
    for now, before in zip((proba, y, weight), kept, strict=True):
        np.testing.assert_array_equal(now, before)


@pytest.mark.parametrize(
    "wrong",
    [
        TopLabelHistogram(n_bins=0),
        TopLabelHistogram(strategy="kmeans"),
        TopLabelKDE("silverman"),
        TopLabelKDE(0.0),
        TopLabelKDE(n_grid=1),
        CumulativeConfidence("mean"),
        CumulativeConfidence(1.5),
        TemperatureScaling("global"),
        TemperatureScaling(loss="hinge"),
    ],
)
def test_wrong_parameters(wrong):
    with pytest.raises(InvalidParameterError):
        wrong.fit(*rows())


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize(
    ("ours", "method"),
    [
        (IsotonicConfidence(shrinkage=None), "isotonic"),
        (SigmoidConfidence(shrinkage=None), "sigmoid"),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_baselines_are_sklearns(ours, method, n_classes, weighted):
    class Scores(LogisticRegression):
        """Hands its input on as probabilities, without a decision function."""

        decision_function = property()

        def predict_proba(self, X):
            return X

    proba, y = rows(400, n_classes)
    weight = np.random.default_rng(0).uniform(0.5, 2, 400) if weighted else None
    new, _ = rows(200, n_classes, 9)
    got = ours.fit(proba, y, weight).predict_proba(new)
    theirs = CalibratedClassifierCV(
        FrozenEstimator(Scores().fit(proba, y)), method=method, ensemble=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # weights do not reach the frozen estimator
        theirs.fit(proba, y, sample_weight=weight)
    np.testing.assert_allclose(got, theirs.predict_proba(new), atol=1e-4)


def test_the_registry_shows_all():
    assert next(iter(CALIBRATORS)) == "uncalibrated"
    assert [key for key in CALIBRATORS if key.startswith("kde")] == [
        "kde_mon",
        "kde_mon2",
        "kde_mon4",
        "kde_loo",
    ]
    for key, entry in CALIBRATORS.items():
        assert entry.key == key
        assert entry.name
        assert entry.label
        assert entry.reference
        assert entry.description.endswith(".")
        assert isinstance(entry.factory(), TopLabelCalibrator) == (not entry.needs)
    labels = [entry.label for entry in CALIBRATORS.values()]
    assert len(set(labels)) == len(labels)


@pytest.mark.parametrize("settings", [{}, {"shrinkage": None}])
def test_notes_name_the_classes(calibrator, settings):
    if settings and "shrinkage" not in calibrator.get_params():
        pytest.skip("has no shrinkage")
    proba, y = rows(60)
    proba[:, 2], y[y == 2] = 0.0, 0  # never predicted and never true
    y[proba[:, 0] > 0.8] = 1  # the surer, the more often wrong
    proba /= proba.sum(axis=1, keepdims=True)
    calibrator.set_params(**settings)
    scored = ScoredSet(proba, y, ("good", "bad", "ugly"), "digest", "calibration")
    notes = fit_calibrator(calibrator, scored).notes_
    assert not [note for note in notes if "Class 0" in note or "Class 1" in note]
    assert not [note for note in notes if "Class 2" in note]
    calibrator.fit(*rows(60, n_classes=4))  # the names are of that fit alone


def test_a_falling_slope_is_reported_of_the_class_by_its_name():
    p = np.linspace(0.05, 0.95, 60)
    scored = ScoredSet(
        np.c_[1 - p, p], (p < 0.5).astype(int), ("good", "bad"), "digest", "calibration"
    )
    assert any(n.startswith("Class bad: the slope") for n in fit_calibrator("platt", scored).notes_)


@pytest.mark.parametrize("key", ["platt", "beta", "svs"])
def test_a_fit_has_the_same_bytes_for_any_number_of_threads(key):
    rng = np.random.default_rng(0)
    p = rng.random(30_000)  # sums of fewer rows are never spread
    y = (rng.random(len(p)) < p**2).astype(int)
    scored = ScoredSet(np.column_stack([1 - p, p]), y, ("no", "yes"), "digest", "calibration")
    found = set()
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            found.add(fit_calibrator(key, scored).predict_proba(scored.proba).tobytes())
    assert len(found) == 1
