"""What every standard calibrator must bear: few rows, absent classes, ties, zeros, weights."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdcal_core.calibration import (
    BetaCalibration,
    CentredIsotonic,
    ClasswiseHistogram,
    DirichletScaling,
    PlattScaling,
    QuadraticScaling,
    SplineCalibration,
    StructuredMatrixScaling,
    StructuredVectorScaling,
    VectorScaling,
    VennAbers,
    calibrated,
)
from kdcal_core.errors import InputError, InputWarning

KINDS = [
    BetaCalibration,
    CentredIsotonic,
    ClasswiseHistogram,
    DirichletScaling,
    PlattScaling,
    QuadraticScaling,
    SplineCalibration,
    StructuredMatrixScaling,
    StructuredVectorScaling,
    VectorScaling,
    VennAbers,
]
# their pull depends on the number of rows, so only ratios of weights count
BY_RATIO = (StructuredMatrixScaling, StructuredVectorScaling)
each = pytest.mark.parametrize("kind", KINDS)
pytestmark = pytest.mark.filterwarnings("ignore::kdcal_core.errors.InputWarning")


def rows(n, k, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(k, 0.5), n)
    return proba, rng.integers(0, k, n)


def check(said, shape):
    assert said.shape == shape
    assert np.isfinite(said).all()
    assert (said >= 0).all()
    np.testing.assert_allclose(said.sum(axis=1), 1, atol=1e-12)


@each
@pytest.mark.parametrize(
    ("n", "k"), [(1, 2), (1, 26), (2, 10), (3, 2), (3, 26), (5, 10), (300, 2), (300, 10)]
)
def test_any_number_of_rows_and_classes(kind, n, k):
    proba, y = rows(n, k)
    ours = kind().fit(proba, y)
    check(ours.predict_proba(np.concatenate([rows(40, k, 1)[0], np.eye(k)])), (40 + k, k))
    ours.check_state()


@each
def test_a_class_that_never_occurs_is_said_to_be_rare_and_reported(kind):
    proba, y = rows(400, 4)
    y[y == 2] = 0
    with pytest.warns(InputWarning, match="Class 2 does not occur"):
        ours = kind().fit(proba, y)
    said = ours.predict_proba(proba)
    check(said, (400, 4))
    assert said[:, 2].mean() < 0.05


@each
@pytest.mark.parametrize("label", [0, 1])
def test_one_class_alone(kind, label):
    proba, _ = rows(50, 2)
    said = kind().fit(proba, np.full(50, label)).predict_proba(proba)
    check(said, (50, 2))
    assert said[:, label].mean() > 0.85


@each
@pytest.mark.parametrize("k", [2, 3])
def test_zeros_and_ones_and_ties(kind, k):
    proba = np.eye(k)[np.arange(60) % k]
    y = np.where(np.arange(60) % 5 == 0, (np.arange(60) + 1) % k, np.arange(60) % k)
    ours = kind()
    if hasattr(ours, "shrinkage"):
        check(ours.fit(proba, y).predict_proba(proba), (60, k))
        ours.set_params(shrinkage=None)
    said = ours.fit(proba, y).predict_proba(proba)
    check(said, (60, k))
    # the rows of one kind get the share of each class among them, except for a little shrinkage
    first = np.bincount(y[::k], minlength=k) / len(y[::k])
    np.testing.assert_allclose(said[0], first, atol=0.12)
    even = np.full((60, k), 1 / k)
    check(kind().fit(even, y).predict_proba(even), (60, k))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in BY_RATIO])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_weight_counts_as_so_many_equal_rows(kind, data):
    n = data.draw(st.integers(2, 30))
    copies = np.array(data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)))
    proba, y = rows(n, 3, data.draw(st.integers(0, 99)))
    new, _ = rows(20, 3, 100)
    # under shrinkage only ratios of weights count
    found = set(kind().get_params())
    settings_ = {"strength": 2.0, "shrinkage": None}
    settings_ = {name: value for name, value in settings_.items() if name in found}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        by_weight = kind(**settings_).fit(proba, y, copies.astype(float))
        by_copies = kind(**settings_).fit(np.repeat(proba, copies, 0), np.repeat(y, copies))
    np.testing.assert_allclose(
        by_weight.predict_proba(new), by_copies.predict_proba(new), atol=2e-4
    )


@each
def test_the_largest_calibrated_probability_is_the_prediction(kind):
    proba, y = rows(300, 3)
    ours = kind().fit(proba, y)
    found = calibrated(ours, proba)
    np.testing.assert_array_equal(found.predicted, found.proba.argmax(axis=1))
    np.testing.assert_array_equal(found.confidence, found.proba.max(axis=1))


@each
def test_bad_rows_are_refused(kind):
    proba, y = rows(20, 3)
    with pytest.raises(InputError, match="row 3"):
        kind().fit(np.where(np.arange(20)[:, None] == 2, np.nan, proba), y)
    ours = kind().fit(proba, y)
    with pytest.raises(InputError):
        ours.predict_proba(proba[:, :2] / proba[:, :2].sum(axis=1, keepdims=True))
    with pytest.raises(InputError):
        kind().fit(proba, y, np.zeros(20))


@each
def test_it_repairs_an_overconfident_model(kind):
    rng = np.random.default_rng(0)
    honest = rng.dirichlet(np.ones(3), 6000)
    y = (rng.random((6000, 1)) > honest.cumsum(axis=1)).sum(axis=1)
    proba = honest**3 / (honest**3).sum(axis=1, keepdims=True)
    fit, judge = np.arange(6000) < 3000, np.arange(6000) >= 3000
    said = kind().fit(proba[fit], y[fit]).predict_proba(proba[judge])

    def loss(p):
        return -np.log(np.maximum(p[np.arange(3000), y[judge]], 1e-12)).mean()

    assert loss(said) < loss(proba[judge]) - 0.2
    assert loss(said) < loss(honest[judge]) + 0.05
