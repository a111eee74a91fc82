"""Forests and networks: the papers' guarantees, and that of the floor."""

import numpy as np
import pytest
from graph_models import xor
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.tree import DecisionTreeClassifier

from kdcal_core.calibration import KernelDensityForest, KernelDensityNetwork
from kdcal_core.models import wrap_model
from kdcal_core.partition import geodesic_kernel

KINDS = ["forest", "network", "euclidean"]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.floats(0, 2 * np.pi), st.floats(1e3, 1e12))
def test_far_away_the_posterior_is_the_prior_in_every_direction(fitted, kind, angle, radius):
    far = radius * np.array([[np.cos(angle), np.sin(angle)]])
    model = fitted[kind]
    np.testing.assert_allclose(model.predict_proba(far)[0], model.prior_, atol=1e-12)
    assert model.is_unknown(far)[0]


@pytest.mark.parametrize("kind", KINDS)
def test_it_keeps_the_models_accuracy_inside(fitted, forest, net, kind):
    X, y = xor(1000, seed=3)
    wrapped = net if kind == "network" else forest
    model = fitted[kind]
    assert model.score(X, y) >= wrapped.score(X, y) - 0.04
    assert model.is_unknown(X).mean() < 0.06
    assert model.selection_.n == 200


@pytest.mark.parametrize("kind", ["forest", "network"])
def test_without_floor_and_smoothing_it_counts_the_polytopes_own_rows(forest, net, kind):
    # With b -> 0 and gamma -> infinity the posterior is n_ry / n_r.
    X, y = xor(400, seed=4)
    coarse = np.round(X)  # rows that share polytopes
    if kind == "forest":
        model = KernelDensityForest(forest, inside="ratio", gamma=1e5, log_floor=-np.inf)
    else:
        model = KernelDensityNetwork(
            net, inside="ratio", gamma=1e5, log_floor=-np.inf, output_layer="exclude"
        )
    model.fit(coarse, y, X[:50], y[:50])
    codes = wrap_model(model.model).codes(coarse)
    same = (geodesic_kernel(codes) == 1.0).astype(float)
    assert same.sum(axis=1).max() > 10
    expected = np.stack([same @ (y == k) for k in (0, 1)], axis=1) / same.sum(axis=1)[:, None]
    np.testing.assert_allclose(model.predict_proba(coarse), expected, atol=1e-9)


def test_without_a_floor_it_is_constant_within_a_polytope(forest):
    X, y = xor(300, seed=5)
    model = KernelDensityForest(forest, inside="ratio", log_floor=-np.inf).fit(X, y)
    leaves = forest.apply(X)
    near = X + 1e-9
    same = (forest.apply(near) == leaves).all(axis=1)
    assert same.sum() > 250
    np.testing.assert_array_equal(model.predict_proba(near)[same], model.predict_proba(X)[same])


@pytest.mark.parametrize("kind", ["forest", "network"])
def test_the_order_of_rows_does_not_matter(forest, net, kind):
    X, y = xor(200, seed=6)
    held = xor(100, seed=7)
    order = np.random.default_rng(0).permutation(200)
    make = KernelDensityForest if kind == "forest" else KernelDensityNetwork
    model = forest if kind == "forest" else net
    one = make(model).fit(X, y, *held)
    other = make(model).fit(X[order], y[order], held[0][::-1], held[1][::-1])
    new = xor(200, seed=8)[0]
    np.testing.assert_allclose(one.predict_proba(new), other.predict_proba(new), rtol=1e-8)
    assert one.log_floor_ == pytest.approx(other.log_floor_)


def test_the_order_of_classes_does_not_matter(forest):
    class Turned:
        kind, named_classes, feature_names, n_features = "Forest", True, None, 2
        classes = ("1", "0")

        def predict_proba(self, X):
            return forest.predict_proba(X)[:, ::-1]

        def codes(self, X):
            return wrap_model(forest).codes(X)

    rows = *xor(200, seed=6), *xor(100, seed=7)
    one, other = (KernelDensityForest(model).fit(*rows) for model in (forest, Turned()))
    new = xor(200, seed=8)[0]
    assert other.classes_.tolist() == [1, 0]
    np.testing.assert_allclose(
        one.predict_proba(new), other.predict_proba(new)[:, ::-1], rtol=1e-10
    )
    np.testing.assert_array_equal(one.predict(new), other.predict(new))


@pytest.mark.parametrize(("alpha", "variance_floor"), [(0.01, "spacing"), (0.1, 1e-6)])
def test_at_most_alpha_of_ordinary_rows_are_flagged(alpha, variance_floor):
    # The data floor and the rank of an exchangeable row; gamma is chosen on the same hold-out.
    tree = DecisionTreeClassifier(max_leaf_nodes=6, random_state=0).fit(*xor(200, seed=99))
    seeds, fresh = 120, 50
    flagged = sum(
        KernelDensityForest(tree, floor_quantile=alpha, variance_floor=variance_floor)
        .fit(*xor(80, seed=3 * seed), *xor(60, seed=3 * seed + 1))
        .is_unknown(xor(fresh, seed=3 * seed + 2)[0])
        .sum()
        for seed in range(seeds)
    )
    bound = max(alpha, 1 / 61)
    # Rows of one seed share a floor: the variance of its level, about bound / 60, is added.
    slack = 3.3 * np.sqrt(bound / 60 / seeds + bound / (seeds * fresh))
    assert binom.pmf(0, seeds * fresh, bound) < 1e-9
    assert flagged / (seeds * fresh) <= bound + slack
