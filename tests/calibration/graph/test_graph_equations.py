"""The graph against the papers' equations, written out as loops."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neural_network import MLPClassifier

from kdcal_core.calibration import (
    KernelDensityForest,
    KernelDensityGraph,
    KernelDensityNetwork,
    Located,
)
from kdcal_core.errors import InputError
from kdcal_core.partition import LeafCodes


class Tree:
    """A model whose leaves are looked up: feature j is the leaf in tree j."""

    kind, named_classes, feature_names = "Made-up forest", True, None

    def __init__(self, n_trees, n_classes=2):
        self.n_features, self.classes = n_trees, tuple(str(k) for k in range(n_classes))

    def predict_proba(self, X):
        return np.full((len(X), len(self.classes)), 1.0 / len(self.classes))

    def codes(self, X):
        return LeafCodes(np.rint(np.asarray(X)).astype(np.int32) + 1000)


def made_up(n, n_trees=3, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, n_trees)) + rng.uniform(-0.4, 0.4, (n, n_trees))
    return X, rng.integers(0, n_classes, n)


def trees_in_common(one, other):
    """Eq. 11."""
    return np.mean([a == b for a, b in zip(one, other, strict=True)])


def paths_in_common(one, other):
    """Eq. 12, path by path; a code is a tuple of layers, each a tuple of bits."""
    paths = product(*[range(len(layer)) for layer in one])
    return np.mean([all(one[at][i] == other[at][i] for at, i in enumerate(p)) for p in paths])


def by_the_equations(
    codes,
    X,
    y,
    query_codes,
    queries,
    *,
    kernel,
    exponent,
    lam,
    log_c,
    prior,
    scale,
    euclidean=False,
):
    """log f~_y (Eq. 19), the posterior (Eqs. 8, 9) and ties, by loops over Eqs. 11 to 19."""
    X, queries = X / scale, queries / scale
    n_classes = len(prior)
    polytopes = sorted(set(codes))
    members = [[i for i in range(len(X)) if codes[i] == code] for code in polytopes]
    n_tilde = np.zeros((len(polytopes), n_classes))
    for r, code in enumerate(polytopes):
        for s, other in enumerate(polytopes):
            for i in members[s]:
                n_tilde[r, y[i]] += kernel(code, other) ** exponent  # Eqs. 16, 18
    log_f = np.zeros((len(queries), n_classes))
    posterior, ties = np.zeros_like(log_f), 0
    for q, (code, x) in enumerate(zip(query_codes, queries, strict=True)):
        centres = [X[rows].mean(axis=0) for rows in members]  # Eq. 14
        order = [
            (0.0 if euclidean else -kernel(code, other), ((x - c) ** 2).sum(), r)
            for r, (other, c) in enumerate(zip(polytopes, centres, strict=True))
        ]
        ties += sum(place[0] == min(order)[0] for place in order) > 1
        r = min(order)[2]  # Eqs. 6 and 13, ties by distance
        variance = X[members[r]].var(axis=0) + lam  # Eq. 15
        log_gaussian = sum(
            -0.5 * np.log(2 * np.pi * v) - (a - m) ** 2 / (2 * v)
            for a, m, v in zip(x, centres[r], variance, strict=True)
        )
        for k in range(n_classes):
            with np.errstate(divide="ignore"):
                log_f[q, k] = np.log(n_tilde[r, k]) - np.log(n_tilde[:, k].sum()) + log_gaussian
        with np.errstate(divide="ignore"):
            joint = np.logaddexp(log_f[q], log_c) + np.log(prior)
        posterior[q] = np.exp(joint - np.logaddexp.reduce(joint))
    return log_f, posterior, ties


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("distance", ["geodesic", "euclidean"])
@pytest.mark.parametrize("log_floor", [-np.inf, -1e7, -3.0, 2.0])
def test_densities_and_posterior_are_those_of_the_equations(scale, distance, log_floor):
    X, y = made_up(60)
    fresh, y_fresh = made_up(30, seed=1)
    model = Tree(3, 3)
    gamma, lam = 0.7, 1e-3
    fitted = KernelDensityForest(
        model,
        distance=distance,
        gamma=gamma,
        variance_floor=lam,
        log_floor=log_floor,
        scale=scale,
        inside="ratio",
    ).fit(X, y, fresh, y_fresh)
    log_f, posterior, ties = by_the_equations(
        [tuple(row) for row in model.codes(X).leaves],
        X,
        y,
        [tuple(row) for row in model.codes(fresh).leaves],
        fresh,
        kernel=trees_in_common,
        euclidean=distance == "euclidean",
        exponent=gamma * np.log(60),
        lam=lam,
        log_c=log_floor - np.log(np.log(60)),
        prior=np.bincount(y) / 60,
        scale=np.linalg.norm(X, axis=1).max() if scale else 1.0,
    )
    np.testing.assert_allclose(fitted.log_density(fresh), log_f, rtol=1e-11)
    np.testing.assert_allclose(fitted.predict_proba(fresh), posterior, rtol=1e-10, atol=1e-14)
    located = fitted.locate(fresh)
    np.testing.assert_allclose(
        fitted.graph_.log_marginal(located),
        np.logaddexp.reduce(log_f + np.log(fitted.prior_), axis=1),
        rtol=1e-11,
    )
    loss = -np.log(np.clip(posterior[np.arange(30), y_fresh], 1e-12, 1)).mean()
    assert fitted.selection_.log_loss == pytest.approx([loss])
    if distance == "geodesic":
        assert fitted.n_ties_ == ties > 0


@pytest.mark.parametrize("output_layer", ["exclude", "probability", "logit"])
def test_a_networks_densities_count_its_activation_paths(output_layer):
    rng = np.random.default_rng(3)
    X, fresh = rng.standard_normal((40, 2)), rng.standard_normal((15, 2))
    y, y_fresh = rng.integers(0, 3, 40), rng.integers(0, 3, 15)
    net = MLPClassifier((3, 2), random_state=1, max_iter=30, tol=1.0).fit(X, y)

    def codes(rows):
        first = np.maximum(rows @ net.coefs_[0] + net.intercepts_[0], 0)
        second = np.maximum(first @ net.coefs_[1] + net.intercepts_[1], 0)
        logits = second @ net.coefs_[2] + net.intercepts_[2]
        layers = [first > 0, second > 0]
        if output_layer == "logit":
            layers.append(logits > 0)
        if output_layer == "probability":
            exp = np.exp(logits)
            layers.append(exp / exp.sum(axis=1, keepdims=True) > 1 / 3)
        return [tuple(tuple(row.tolist()) for row in parts) for parts in zip(*layers, strict=True)]

    fitted = KernelDensityNetwork(
        net, gamma=1.3, log_floor=-20.0, output_layer=output_layer, inside="ratio"
    )
    fitted.fit(X, y, fresh, y_fresh)
    log_f, posterior, ties = by_the_equations(
        codes(X),
        X,
        y,
        codes(fresh),
        fresh,
        kernel=paths_in_common,
        exponent=1.3 * np.log(40),
        lam=1e-6,
        log_c=-20.0 - np.log(np.log(40)),
        prior=np.bincount(y) / 40,
        scale=np.linalg.norm(X, axis=1).max(),
    )
    np.testing.assert_allclose(fitted.log_density(fresh), log_f, rtol=1e-9)
    np.testing.assert_allclose(fitted.predict_proba(fresh), posterior, rtol=1e-9, atol=1e-14)
    assert fitted.n_ties_ == ties


def graph_of(centres, variances, masses, *, prior=None, log_floor=-np.inf, lam=1e-6, n=100):
    """A graph from its arrays, with one exponent."""
    masses = np.asarray(masses, dtype=float)
    n_classes = masses.shape[1]
    return KernelDensityGraph(
        classes=tuple("abcdefgh"[:n_classes]),
        n=n,
        centres=np.asarray(centres, dtype=float),
        variances=np.asarray(variances, dtype=float),
        counts=np.rint(masses).astype(np.int64),
        exponents=np.array([1.0]),
        class_masses=masses[None],
        prior=np.full(n_classes, 1 / n_classes) if prior is None else np.asarray(prior),
        gamma=1.0 / np.log(max(n, 3)),
        variance_floor=lam,
        log_floor=log_floor,
        floor_quantile=None,
        holdout=None,
        holdout_y=None,
    )


def at(x, index=0):
    x = np.atleast_2d(np.asarray(x, dtype=float))
    return Located(x, np.full(len(x), index), np.zeros(len(x), dtype=bool))


@pytest.mark.parametrize("d", [1, 2, 30, 1000])
def test_the_papers_floor_switches_at_radius_4_47_in_any_dimension(d):
    # A singleton's Gaussian, lambda 1e-6, log b = -1e7: M = c where r^2 / (2 lambda) = 1e7 + O(d).
    # A second polytope holds the other rows, or the ratios n~_ry / n~_y would all be one.
    masses = [[9.0, 1.0], [1.0, 9.0]]
    graph = graph_of(np.zeros((2, d)), np.zeros((2, d)), masses, log_floor=-1e7)
    inside, outside = graph.posterior(at(np.zeros(d)))[0, 0], 0.5
    assert inside == pytest.approx(0.9)
    low, high = 0.0, 100.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        x = np.zeros(d)
        x[0] = middle
        half = graph.posterior(at(x))[0, 0] > 0.5 * (inside + outside)
        low, high = (middle, high) if half else (low, middle)
    log_height = -0.5 * d * np.log(2 * np.pi * 1e-6)
    exact = np.sqrt(2e-6 * (1e7 + np.log(0.5) + log_height + np.log(np.log(100))))
    assert low == pytest.approx(exact, rel=1e-9)
    assert low == pytest.approx(np.sqrt(20.0), rel=1e-3)


@settings(deadline=None)
@given(
    st.lists(st.floats(0, 50), min_size=4, max_size=4),
    st.floats(0.01, 0.99),
    st.floats(-1e9, 1e3),
    st.floats(0, 1e6),
)
def test_the_posterior_is_a_distribution_at_any_radius(masses, share, log_floor, radius):
    prior = np.array([share, 1 - share])
    graph = graph_of(
        [[0.0], [1.0]], [[0.0], [0.5]], np.reshape(masses, (2, 2)), prior=prior, log_floor=log_floor
    )
    for index in (0, 1):
        posterior = graph.posterior(at([[radius], [-radius]], index))
        assert np.isfinite(posterior).all()
        assert (posterior >= 0).all()
        np.testing.assert_allclose(posterior.sum(axis=1), 1.0, rtol=1e-12)
        far = graph.posterior(at([[1e6 + 10 * np.sqrt(2 * (abs(log_floor) + 1e3))]], index))
        np.testing.assert_allclose(far[0], prior, atol=1e-12)


def test_no_floor_and_no_density_leaves_the_prior():
    graph = graph_of([[0.0]], [[0.0]], [[1.0, 0.0]], prior=[0.3, 0.7])
    np.testing.assert_array_equal(graph.posterior(at([[1e200]])), [[0.3, 0.7]])
    assert graph.log_marginal(at([[1e200]]))[0] == -np.inf
    assert not graph.unknown(at([[1e200]]))[0]


def test_equal_posteriors_are_decided_by_the_densities():
    graph = graph_of([[0.0]], [[0.0]], [[1.0, 9.0, 9.0]], log_floor=0.0)
    far = at([[5.0]])
    np.testing.assert_array_equal(graph.posterior(far)[0], np.full(3, 1 / 3))
    # n~_ry / n~_y is 1 for each class of a single polytope: a true tie goes to the first.
    assert graph.predict(far)[0] == 0
    two = graph_of([[0.0], [9.0]], [[0.0], [0.0]], [[1.0, 9.0], [9.0, 1.0]], log_floor=0.0)
    np.testing.assert_allclose(two.posterior(far)[0], [0.5, 0.5], rtol=0, atol=1e-12)
    assert two.posterior(far)[0].argmax() == two.predict(far)[0] == 1


def test_a_class_without_rows_has_no_density_and_no_share():
    graph = graph_of([[0.0]], [[0.0]], [[3.0, 0.0, 1.0]], prior=[0.75, 0.0, 0.25], log_floor=-50.0)
    here = at([[0.0], [1e-2], [1e6]])
    assert (graph.log_density(here)[:, 1] == -np.inf).all()
    posterior = graph.posterior(here)
    np.testing.assert_array_equal(posterior[:, 1], 0.0)
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 3))
def test_log_n_is_guarded(n):
    graph = graph_of([[0.0]], [[0.0]], [[1.0, 1.0]], n=n, log_floor=-7.0)
    assert graph.effective_log_floor == pytest.approx(-7.0 - np.log(np.log(3)))


def settled(seed=0, quantile=0.05, inside="blend"):
    X, y = made_up(200, seed=seed)
    fresh, y_fresh = made_up(120, seed=seed + 1)
    model = KernelDensityForest(
        Tree(3, 3), floor_quantile=quantile, variance_floor=1e-6, inside=inside
    )
    return model.fit(X, y, fresh, y_fresh)


def test_settings_change_as_a_fit_with_them_would():
    fitted = settled()
    X, y = made_up(200)
    fresh, y_fresh = made_up(120, seed=1)
    gamma = float(fitted.graph_.gammas[3])
    changed = fitted.graph_.with_settings(gamma=gamma, variance_floor=0.01, floor_quantile=0.2)
    refit = KernelDensityForest(Tree(3, 3), gamma=gamma, variance_floor=0.01, floor_quantile=0.2)
    refit.fit(X, y, fresh, y_fresh)
    rows = refit.locate(fresh)
    np.testing.assert_allclose(changed.posterior(rows), refit.graph_.posterior(rows), rtol=1e-12)
    assert changed.log_floor == pytest.approx(refit.log_floor_)
    # Each setting by itself, in another order, ends at the same place.
    steps = fitted.graph_.with_settings(floor_quantile=0.2).with_settings(variance_floor=0.01)
    assert steps.with_settings(gamma=gamma).log_floor == changed.log_floor
    assert changed.with_settings(log_floor=-5.0).with_settings(variance_floor=2.0).log_floor == -5.0


def test_the_selection_is_the_loss_that_each_gamma_would_have():
    graph = settled(inside="ratio").graph_
    selection = graph.selection()
    for g, gamma in enumerate(graph.gammas):
        other = graph.with_settings(gamma=float(gamma))
        proba = other.posterior(graph.holdout)[np.arange(120), graph.holdout_y]
        assert selection.log_loss[g] == pytest.approx(-np.log(proba).mean(), rel=1e-10)
    assert graph.gamma == pytest.approx(selection.best_gamma)
    assert selection.log_loss[selection.chosen] == selection.log_loss.min()


def test_equal_losses_choose_the_largest_exponent():
    X, y = np.zeros((20, 1)), np.tile([0, 1], 10)
    fitted = KernelDensityForest(Tree(1)).fit(X, y, X[:4] + 0.1, y[:4])
    assert fitted.selection_.best == 20


@pytest.mark.parametrize(
    "wrong",
    [
        {"gamma": 0.123},
        {"variance_floor": 0.0},
        {"variance_floor": np.inf},
        {"log_floor": np.nan},
        {"floor_quantile": 0.0},
        {"floor_quantile": 1.0},
        {"log_floor": -1.0, "floor_quantile": 0.1},
    ],
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(InputError):
        settled().graph_.with_settings(**wrong)


def test_a_quantile_without_held_out_rows_is_refused():
    with pytest.raises(InputError, match="held-out"):
        graph_of([[0.0]], [[0.0]], [[1.0, 1.0]]).with_settings(floor_quantile=0.1)
