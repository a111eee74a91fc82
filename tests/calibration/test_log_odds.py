"""Platt scaling and beta calibration against scikit-learn, probcal and a plain minimiser."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.calibration import _SigmoidCalibration

from kdcal_core.calibration import BetaCalibration, PlattScaling
from kdcal_core.calibration.log_odds_maps import log_odds
from kdcal_core.errors import InputWarning


def binary(n=2000, seed=0, sharp=2.0, shift=0.3):
    rng = np.random.default_rng(seed)
    s = rng.normal(size=n)
    y = (rng.random(n) < expit(s)).astype(int)
    p = expit(sharp * s + shift)
    return np.column_stack([1 - p, p]), y


def several(n=3000, k=4, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(k, 0.7), n)
    return proba, np.array(
        [rng.choice(k, p=row) for row in proba**0.5 / (proba**0.5).sum(1)[:, None]]
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_platt_is_scikit_learns_sigmoid_on_the_logit(weighted):
    proba, y = binary()
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y)) if weighted else None
    ours = PlattScaling(shrinkage=None).fit(proba, y, weight)
    theirs = _SigmoidCalibration().fit(logit(proba[:, 1]), y, weight)
    new, _ = binary(300, 5)
    np.testing.assert_allclose(
        ours.predict_proba(new)[:, 1], theirs.predict(logit(new[:, 1])), atol=1e-5
    )


def test_platt_of_several_classes_is_each_against_the_rest_then_scaled():
    proba, y = several()
    ours = PlattScaling(shrinkage=None).fit(proba, y)
    one = np.column_stack(
        [
            _SigmoidCalibration().fit(logit(proba[:, j]), y == j).predict(logit(proba[:, j]))
            for j in range(4)
        ]
    )
    np.testing.assert_allclose(
        ours.predict_proba(proba), one / one.sum(axis=1, keepdims=True), atol=1e-4
    )


def test_platt_finds_a_calibrated_model_right():
    proba, y = binary(200_000, sharp=1.0, shift=0.0)
    ours = PlattScaling(shrinkage=None).fit(proba, y)
    assert ours.slopes_[0] == pytest.approx(1, abs=0.03)
    assert ours.offsets_[0] == pytest.approx(0, abs=0.03)
    np.testing.assert_allclose(ours.predict_proba(proba), proba, atol=0.01)


def test_a_falling_slope_is_kept_and_reported():
    proba, y = binary()
    with pytest.warns(InputWarning, match="Class 1: the slope is negative"):
        ours = PlattScaling(shrinkage=None).fit(proba, 1 - y)
    assert ours.slopes_[0] < 0


def beta_by_force(proba, y, weight):
    """The bounded optimum of the soft-target log loss, by a general minimiser."""
    p = proba[:, 1]
    n1, n0 = weight @ y, weight @ (1 - y)
    soft = np.where(y, (n1 + 1) / (n1 + 2), 1 / (n0 + 2))

    def loss(at):
        odds = at[0] * np.log(p) - at[1] * np.log1p(-p) + at[2]
        return weight @ (np.logaddexp(0, odds) - soft * odds) / weight.sum()

    bounds = [(0, None), (0, None), (None, None)]
    return minimize(loss, [1.0, 1.0, 0.0], bounds=bounds, options={"ftol": 1e-14, "gtol": 1e-9})


@pytest.mark.parametrize("bend", [(2.0, 0.5), (0.5, 2.0), (-1.0, 1.5), (1.5, -1.0), (-1.0, -0.5)])
def test_beta_is_the_bounded_optimum(bend):
    rng = np.random.default_rng(3)
    p = rng.uniform(0.01, 0.99, 1500)
    y = (rng.random(1500) < expit(bend[0] * np.log(p) - bend[1] * np.log1p(-p))).astype(int)
    weight = rng.uniform(0.5, 2, 1500)
    proba = np.column_stack([1 - p, p])
    with pytest.warns(InputWarning) if max(bend) < 0 else _silence():
        ours = BetaCalibration(shrinkage=None).fit(proba, y, weight)
    best = beta_by_force(proba, y, weight)
    np.testing.assert_allclose([ours.a_[0], ours.b_[0], ours.c_[0]], best.x, atol=2e-3)
    assert ours.a_[0] >= 0
    assert ours.b_[0] >= 0


def _silence():
    from contextlib import nullcontext

    return nullcontext()


def test_beta_agrees_with_probcal():
    from probcal import BetaCalibrator

    proba, y = binary(20_000)
    ours = BetaCalibration(shrinkage=None).fit(proba, y)
    theirs = BetaCalibrator().fit(proba[:, 1], y)
    np.testing.assert_allclose(
        [ours.a_[0], ours.b_[0], ours.c_[0]], [theirs.a_, theirs.b_, theirs.c_], atol=5e-3
    )


def test_log_odds_keep_what_a_difference_would_round_away():
    tiny = 1e-11
    odds = log_odds(np.array([[tiny, 1.0 - tiny], [0.0, 1.0], [0.25, 0.75]]))
    assert odds[0, 1] == pytest.approx(-np.log(tiny), rel=1e-12)
    assert odds[1, 1] == pytest.approx(-np.log(1e-12))
    assert odds[2].tolist() == pytest.approx([-np.log(3), np.log(3)])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), min_size=1, max_size=12),
    st.sampled_from([PlattScaling, BetaCalibration]),
)
@pytest.mark.filterwarnings("ignore::kdcal_core.errors.InputWarning")
def test_curves_keep_or_turn_the_order_of_scores(rows, kind):
    p = np.array([row[0] for row in rows])
    ours = kind(shrinkage=None).fit(np.column_stack([1 - p, p]), [row[1] for row in rows])
    grid = np.linspace(0, 1, 101)
    said = ours.predict_proba(np.column_stack([1 - grid, grid]))
    steps = np.diff(said[:, 1])
    if kind is BetaCalibration or ours.slopes_[0] >= 0:
        assert (steps >= -1e-12).all()
    else:
        assert (steps <= 1e-12).all()
    assert ((said >= 0) & (said <= 1)).all()


@pytest.mark.filterwarnings("ignore::kdcal_core.errors.InputWarning")
def test_a_class_without_rows_has_no_falling_slope():
    for seed in range(10):
        proba = np.random.default_rng(seed).dirichlet(np.ones(6), 8)
        fitted = PlattScaling(shrinkage=None).fit(proba, np.arange(8) % 3)
        assert np.abs(fitted.slopes_[3:]).max() < 1e-6
        text = [note for note in fitted.notes_ if "the slope is negative" in note]
        assert not any(note.startswith(("Class 3", "Class 4", "Class 5")) for note in text)
