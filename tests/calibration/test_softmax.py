"""Vector and Dirichlet scaling against a plain minimiser and scikit-learn."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from kdcal_core.calibration import DirichletScaling, VectorScaling, softmax_maps
from kdcal_core.calibration import softmax_maps as fits


def rows(n=400, k=3, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(k, 0.8), n)
    honest = proba ** np.linspace(0.4, 1.2, k)
    honest /= honest.sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > honest.cumsum(axis=1)).sum(axis=1)
    return proba, y


def by_force(proba, y, weight, strength, whole):
    """The objective as the docstrings have it, minimised with slopes by differences."""
    k = proba.shape[1]
    z = np.log(proba)

    def parts(at):
        w = at[:-k].reshape(k, k) if whole else np.diag(at[:-k])
        return w, at[-k:]

    def loss(at):
        w, b = parts(at)
        log_p = log_softmax(z @ w.T + b, axis=1)
        off = w[~np.eye(k, dtype=bool)]
        pull = ((np.diag(w) - 1) ** 2).sum() + strength * ((off**2).sum() + (b**2).sum())
        return (-weight @ log_p[np.arange(len(y)), y] + pull / 2) / weight.sum()

    start = np.concatenate([np.eye(k).ravel() if whole else np.ones(k), np.zeros(k)])
    best = minimize(loss, start, method="BFGS", options={"gtol": 1e-7})
    w, b = parts(best.x)
    return z @ w.T + b


@pytest.mark.parametrize("strength", [0.1, 50.0])
def test_dirichlet_is_the_optimum_of_its_penalised_loss(strength):
    proba, y = rows()
    weight = np.random.default_rng(2).uniform(0.5, 2, len(y))
    ours = DirichletScaling(strength, shrinkage=None).fit(proba, y, weight).predict_proba(proba)
    want = np.exp(log_softmax(by_force(proba, y, weight, strength, True), axis=1))
    np.testing.assert_allclose(ours, want, atol=2e-4)


def test_vector_is_the_optimum_of_its_penalised_loss():
    proba, y = rows(k=4)
    weight = np.random.default_rng(2).uniform(0.5, 2, len(y))
    ours = VectorScaling(shrinkage=None).fit(proba, y, weight).predict_proba(proba)
    want = np.exp(log_softmax(by_force(proba, y, weight, 1.0, False), axis=1))
    np.testing.assert_allclose(ours, want, atol=2e-4)


def test_without_pull_dirichlet_is_multinomial_regression_on_log_probabilities():
    proba, y = rows(4000)
    theirs = LogisticRegression(C=1e6, tol=1e-8, max_iter=2000).fit(np.log(proba), y)
    ours = DirichletScaling(1e-6, shrinkage=None).fit(proba, y)
    np.testing.assert_allclose(
        ours.predict_proba(proba), theirs.predict_proba(np.log(proba)), atol=2e-3
    )


def test_many_rows_are_fitted_as_well_as_by_the_slow_way(monkeypatch):
    """The detour over a subsample and its bends changes the way, not the end."""
    proba, y = rows(3000, 5)
    want = DirichletScaling(3.0, shrinkage=None).fit(proba, y)
    monkeypatch.setattr(fits, "_SUBSAMPLE", 200)
    got = DirichletScaling(3.0, shrinkage=None).fit(proba, y)
    assert not np.array_equal(got.weights_, want.weights_)
    np.testing.assert_allclose(got.predict_proba(proba), want.predict_proba(proba), atol=1e-4)


def test_the_strength_is_the_best_of_the_grid_in_cross_validation():
    proba, y = rows(300, 4)
    chosen = DirichletScaling().fit(proba, y).strength_
    assert chosen in softmax_maps._STRENGTHS
    fold = softmax_maps.random_folds(len(y), 3)

    def loss(strength):
        total = 0.0
        for held in range(3):
            fit, judge = fold != held, fold == held
            said = (
                DirichletScaling(strength, shrinkage=None)
                .fit(proba[fit], y[fit])
                .predict_proba(proba[judge])
            )
            total -= np.log(said[np.arange(judge.sum()), y[judge]]).mean()
        return total

    losses = [loss(strength) for strength in softmax_maps._STRENGTHS]
    assert loss(chosen) == pytest.approx(min(losses), abs=1e-5)


def test_few_rows_get_the_strongest_pull_and_are_reported_how_many_would_do(texts):
    proba, y = rows(20)
    ours = DirichletScaling().fit(proba, y)
    assert ours.strength_ == 1e4
    texts(ours.notes_[-1])


@pytest.mark.parametrize("kind", [VectorScaling, DirichletScaling])
def test_a_calibrated_model_stays_as_it_is(kind):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(5), 40_000)
    y = (rng.random((40_000, 1)) > proba.cumsum(axis=1)).sum(axis=1)
    away = np.abs(kind().fit(proba, y).predict_proba(proba) - proba)
    assert away.mean() < 0.005
    assert away.max() < 0.05
