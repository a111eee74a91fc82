"""Forests and networks: scikit-learn's manners, awkward input."""

import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import torch
from estimator_checks import CHECKS
from graph_models import network, xor
from scipy.sparse import csr_array
from sklearn.base import clone, is_classifier
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils._param_validation import InvalidParameterError

from kdcal_core import memory
from kdcal_core.calibration import KernelDensityForest, KernelDensityNetwork
from kdcal_core.calibration.graph import fit_graph
from kdcal_core.calibration.graph.fit_graph import neighbour_spacing
from kdcal_core.errors import InputError, InputWarning
from kdcal_core.memory import memory_limit
from kdcal_core.models import wrap_model
from kdcal_core.partition import pack_bits


@pytest.mark.filterwarnings("ignore:The rows of the fit have no row of class")
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_one_two_or_three_rows_suffice_where_a_hold_out_is_given(forest, rows):
    X, y = xor(20, seed=1)
    model = KernelDensityForest(forest).fit(X[:rows], y[:rows], X[10:], y[10:])
    proba = model.predict_proba(np.array([[0.5, 0.5], [1e6, -1e6]]))
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_allclose(proba[1], model.prior_)


@pytest.mark.filterwarnings("ignore:The rows of the fit have no row of class")
def test_a_single_row_cannot_be_held_out_so_the_papers_floor_stands_in(forest):
    with pytest.warns(InputWarning, match="too few rows"):
        model = KernelDensityForest(forest).fit(*[part[:1] for part in xor(20)])
    assert model.log_floor_ == -1e7
    assert np.isfinite(model.predict_proba([[0.0, 0.0], [1e6, 0.0]])).all()


def test_sparse_rows_are_refused_in_words(forest):
    X, y = xor(100)
    with pytest.raises(InputError, match=r"Sparse data are not read here.*toarray"):
        KernelDensityForest(forest).fit(csr_array(X), y)


@pytest.mark.filterwarnings("ignore:The rows of the fit have no row of class")
def test_a_class_without_rows_has_prior_zero_unless_it_is_given(forest):
    X, y = xor(100, seed=1)
    model = KernelDensityForest(forest, inside="ratio").fit(X[y == 1], y[y == 1])
    assert model.classes_.tolist() == [0, 1]
    np.testing.assert_array_equal(model.predict_proba(X)[:, 0], 0.0)
    assert (model.log_density(X)[:, 0] == -np.inf).all()
    given_prior = KernelDensityForest(forest, prior=[0.5, 0.5]).fit(X[y == 1], y[y == 1])
    np.testing.assert_allclose(given_prior.predict_proba([[1e6, 1e6]]), [[0.5, 0.5]])


@pytest.mark.parametrize("prior", [[0.5, 0.6], [1.5, -0.5], [1.0], ["a", "b"], [np.nan, 1.0]])
def test_a_prior_that_is_no_distribution_is_refused(forest, prior):
    with pytest.raises(InputError, match="prior"):
        KernelDensityForest(forest, prior=prior).fit(*xor(50))


@pytest.mark.parametrize(
    "trees",
    [
        DecisionTreeClassifier(random_state=0),
        RandomForestClassifier(1, random_state=0),
        GradientBoostingClassifier(n_estimators=5, random_state=0),
        HistGradientBoostingClassifier(max_iter=5, random_state=0),
    ],
)
def test_trees_of_any_kind(trees):
    X, y = xor(200)
    model = KernelDensityForest(trees.fit(X, y)).fit(*xor(200, seed=1))
    assert model.score(X, y) > 0.7
    np.testing.assert_allclose(model.predict_proba([[1e6, 1e6]])[0], model.prior_)


@pytest.mark.parametrize("widths", [(1,), (1, 1), (65,)])
@pytest.mark.parametrize("output_layer", ["probability", "logit", "exclude"])
def test_networks_of_one_unit_and_more(widths, output_layer):
    X, y = xor(150)
    model = KernelDensityNetwork(network(widths=widths), output_layer=output_layer).fit(X, y)
    proba = model.predict_proba(np.concatenate([X, [[1e6, -1e6]]]))
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_allclose(proba[-1], model.prior_)
    layers = model._placement.polytopes.layer_widths
    assert layers == (widths if output_layer == "exclude" else (*widths, 2))


def test_the_outputs_bits_are_left_out_where_they_only_repeat_the_training_labels():
    X, y = xor(300, noise=0.5)
    learnt_by_heart = DecisionTreeClassifier(random_state=0).fit(X, y)

    class ByHeart:
        kind, named_classes, feature_names, n_features = "Network", True, None, 2
        classes = ("0", "1")

        def predict_proba(self, X):
            return learnt_by_heart.predict_proba(X)

        def codes(self, X):
            return pack_bits([np.asarray(X) > 0])

    fresh = xor(300, seed=1, noise=0.5)
    assert KernelDensityNetwork(ByHeart()).fit(X, y, *fresh).output_layer_ == "exclude"
    chosen = KernelDensityNetwork(ByHeart(), inside="ratio").fit(X, y, *fresh)
    assert chosen.output_layer_ == "exclude"
    losses = {
        layer: KernelDensityNetwork(ByHeart(), output_layer=layer).fit(X, y, *fresh).selection_
        for layer in ("probability", "exclude")
    }
    assert losses["exclude"].log_loss.min() < losses["probability"].log_loss.min() - 0.1
    # On rows that the model never saw, its answers show what the four cells cannot.
    fine = (X[:, 0] > 0.5).astype(int)
    learnt_by_heart.fit(X, fine)
    held = (fresh[0][150:, 0] > 0.5).astype(int)
    text = KernelDensityNetwork(ByHeart(), inside="ratio").fit(
        fresh[0][:150], (fresh[0][:150, 0] > 0.5).astype(int), fresh[0][150:], held
    )
    assert text.output_layer_ == "probability"


class Convolutional(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.convolution = torch.nn.Conv1d(1, 3, 3)
        self.first, self.second = torch.nn.Linear(18, 12), torch.nn.Linear(12, 3)

    def forward(self, x):
        hidden = torch.relu(self.convolution(x.unsqueeze(1))).flatten(1)
        return self.second(torch.relu(self.first(hidden)))


def test_an_encoder_with_a_dense_head_is_fitted_on_its_embedding():
    from kdcal_core.models.torch_model import wrap_module

    wrapped = wrap_module(Convolutional(), n_features=8)
    X = np.random.default_rng(0).standard_normal((80, 8))
    y = np.arange(80) % 3
    model = KernelDensityNetwork(wrapped, output_layer="exclude", scale=False).fit(X, y)
    assert model.centres_.shape[1] == 18
    assert model._placement.polytopes.layer_widths == (12,)
    kept = model.locate(X)
    np.testing.assert_allclose(kept.x, wrapped.head_input(X))


def test_many_dimensions_and_duplicated_and_constant_features():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 1000))
    X[:, 5] = 7.0
    X = np.concatenate([X, X[:20]])
    y = (X[:, 0] > 0).astype(int)
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    model = KernelDensityForest(forest).fit(X, y, *_fresh(rng))
    assert np.isfinite(model.log_density(X)[:, 0]).all()
    proba = model.predict_proba(np.concatenate([X, 1e6 * X]))
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_allclose(proba[80:], np.tile(model.prior_, (80, 1)))


def _fresh(rng):
    X = rng.standard_normal((40, 1000))
    X[:, 5] = 7.0
    return X, (X[:, 0] > 0).astype(int)


def test_scale_divides_by_the_largest_norm_of_the_fit(forest):
    X, y = xor(100, seed=1)
    held = xor(50, seed=2)
    norm = np.linalg.norm(X, axis=1).max()
    scaled = KernelDensityForest(forest, variance_floor=1e-4).fit(X, y, *held)
    plain = KernelDensityForest(forest, variance_floor=1e-4 * norm**2, scale=False)
    plain.fit(X, y, *held)
    np.testing.assert_allclose(scaled.centres_ * norm, plain.centres_)
    new = xor(100, seed=3)[0]
    np.testing.assert_allclose(scaled.predict_proba(new), plain.predict_proba(new), rtol=1e-8)


@pytest.mark.parametrize("distance", ["geodesic", "euclidean"])
def test_the_variance_floor_follows_the_spacing_of_the_polytopes(distance):
    X, y = xor(150, seed=1)
    held, y_held = xor(80, seed=2)
    X, held = X * [1.0, 5.0], held * [1.0, 5.0]
    forest = RandomForestClassifier(20, random_state=0).fit(X, y)
    model = KernelDensityForest(forest, distance=distance, random_state=3)
    model.fit(X, y, held, y_held)
    codes = None if distance == "euclidean" else model._placement.polytopes
    added = neighbour_spacing(codes, model.centres_, seed=3) + 1e-6
    np.testing.assert_allclose(model.graph_.added_variance, added)
    if distance == "geodesic":
        assert added[1] > 5 * added[0]
    assert model.graph_.variance_floor == pytest.approx(added.mean())
    located = model.locate(held)
    deviations = located.x - model.centres_[located.index]
    variance = model.variances_[located.index] + added
    log_gaussian = -0.5 * (np.log(2 * np.pi * variance) + deviations**2 / variance).sum(axis=1)
    shares = model.class_masses_ / model.class_masses_.sum(axis=0)
    with np.errstate(divide="ignore"):
        expected = np.log(shares)[located.index] + log_gaussian[:, None]
    np.testing.assert_allclose(model.log_density(held), expected, rtol=1e-10)
    wider = model.graph_.with_settings(variance_floor=10.0)
    np.testing.assert_allclose(wider.added_variance, 10.0 * added / added.mean())
    assert (wider.log_marginal(located) < -1).all()


def test_the_papers_two_constants_go_together(forest):
    rows = *xor(150, seed=1), *xor(80, seed=2)
    fixed = KernelDensityForest(forest, log_floor=-1e7).fit(*rows).graph_
    np.testing.assert_array_equal(fixed.added_variance, [1e-6, 1e-6])
    assert KernelDensityForest(forest).fit(*rows).graph_.variance_floor > 1e-5
    asked = KernelDensityForest(forest, log_floor=-1e7, variance_floor="spacing").fit(*rows)
    assert asked.graph_.variance_floor > 1e-5
    stump = DecisionTreeClassifier(max_depth=1, random_state=0).fit([[0.0], [0.0]], [0, 1])
    alone = KernelDensityForest(stump).fit([[0.0], [1.0]] * 5, [0, 1] * 5)
    assert alone.n_polytopes_ == 1
    np.testing.assert_array_equal(alone.graph_.added_variance, [1e-6])


def test_standard_coordinates_see_a_shift_in_any_unit():
    rng = np.random.default_rng(0)

    def draw(n):
        X = rng.standard_normal((n, 3)) * [1e-3, 1.0, 1e3] + [0.0, 0.0, 5e3]
        return X, (X[:, 0] > 0).astype(int)

    X, y = draw(300)
    rows = X, y, *draw(300)
    forest = RandomForestClassifier(20, random_state=0).fit(X, y)
    shifted = draw(200)[0] + [0.02, 0.0, 0.0]
    seen = KernelDensityForest(forest, scale="standard").fit(*rows)
    blind = KernelDensityForest(forest).fit(*rows)
    assert seen.is_unknown(shifted).mean() > 0.95
    assert blind.is_unknown(shifted).mean() < 0.2
    # The papers' scale is a matter of units; this one is not.
    units = np.array([1e6, 1.0, 1e-6])

    class InOtherUnits:
        kind, named_classes, feature_names, n_features = "Forest", True, None, 3
        classes = ("0", "1")

        def predict_proba(self, X):
            return forest.predict_proba(X / units)

        def codes(self, X):
            return wrap_model(forest).codes(X / units)

    other = KernelDensityForest(InOtherUnits(), scale="standard")
    other.fit(rows[0] * units, y, rows[2] * units, rows[3])
    new = draw(50)[0]
    np.testing.assert_allclose(other.locate(new * units).x, seen.locate(new).x, atol=1e-9)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (lambda y: y, [0, 1]),
        (lambda y: y.astype(float), [0.0, 1.0]),
        (lambda y: y.astype(str), ["0", "1"]),
        (lambda y: y.astype(bool), [False, True]),
        (lambda y: pd.Series(y, dtype="Int64"), [0, 1]),
        (lambda y: pd.Series(y).astype("category"), [0, 1]),
    ],
)
def test_predictions_are_written_as_the_labels(forest, labels, expected):
    X, y = xor(100, seed=1)
    model = KernelDensityForest(forest).fit(X, labels(y))
    assert model.classes_.tolist() == expected
    assert (model.predict(X) == np.asarray(labels(y))).mean() > 0.8


def test_indices_stand_for_classes_that_are_named_by_words():
    X, y = xor(100)
    forest = RandomForestClassifier(5, random_state=0).fit(X, np.array(["no", "yes"])[y])
    by_name = KernelDensityForest(forest).fit(X, np.array(["no", "yes"])[y])
    by_index = KernelDensityForest(forest).fit(X, y)
    np.testing.assert_array_equal(by_name.predict_proba(X), by_index.predict_proba(X))
    assert by_name.predict(X[:1])[0] in ("no", "yes")
    assert by_index.predict(X[:1])[0] in (0, 1)


@pytest.mark.parametrize("y", [[0, 1, 2], [0, np.nan, 1], [0, 1], [[0], [1], [0]]])
def test_labels_that_do_not_fit_are_refused(forest, y):
    with pytest.raises(InputError):
        KernelDensityForest(forest).fit(xor(3)[0], y)


@pytest.mark.parametrize("kind", [KernelDensityForest, KernelDensityNetwork])
@pytest.mark.parametrize("check", CHECKS)
def test_sklearns_own_checks(forest, kind, check):
    check(kind.__name__, kind(forest))


def test_a_clone_shares_the_fitted_model_and_scores_can_be_cross_validated(forest):
    model = KernelDensityForest(forest, gamma=2.0)
    copy = clone(model)
    assert copy.model is forest
    assert copy.gamma == 2.0
    assert is_classifier(model)
    assert cross_val_score(model, *xor(150, seed=1), cv=3).mean() > 0.7
    with pytest.raises(NotFittedError):
        copy.predict(xor(3)[0])
    with pytest.raises((NotFittedError, AttributeError)):
        _ = copy.gamma_


@pytest.mark.parametrize(
    "wrong",
    [
        {"distance": "manhattan"},
        {"gamma": 0.0},
        {"gamma": "best"},
        {"variance_floor": 0.0},
        {"log_floor": "none"},
        {"floor_quantile": 1.0},
        {"scale": 3},
        {"scale": "largest"},
        {"variance_floor": "holdout"},
        {"inside": "model"},
        {"holdout_share": 0.0},
    ],
)
def test_wrong_parameters_are_refused(forest, wrong):
    with pytest.raises(InvalidParameterError):
        KernelDensityForest(forest, **wrong).fit(*xor(20))


@pytest.mark.parametrize("gamma", [[], [1.0, -1.0], [np.inf], ["a"]])
def test_wrong_gammas_are_refused(forest, gamma):
    with pytest.raises(InputError, match="gamma"):
        KernelDensityForest(forest, gamma=gamma).fit(*xor(20))


def test_a_model_without_a_partition_is_reported_what_remains_possible():
    X, y = xor(50)
    with pytest.raises(InputError, match="can still be calibrated"):
        KernelDensityForest(LogisticRegression().fit(X, y)).fit(X, y)
    sigmoid = MLPClassifier((4, 4), activation="logistic", random_state=0, max_iter=20)
    with (
        pytest.raises(InputError, match=r"layer 1: .*layer 2: "),
        pytest.warns(Warning, match="converge"),
    ):
        KernelDensityNetwork(sigmoid.fit(X, y)).fit(X, y)


def test_other_activations_beside_relu_are_named():
    parts = [torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4), torch.nn.Tanh()]
    mixed = torch.nn.Sequential(*parts, torch.nn.Linear(4, 2))
    with pytest.warns(InputWarning, match="layer 2: tanh"):
        KernelDensityNetwork(mixed).fit(*xor(50))


def test_each_kind_of_model_names_the_other_estimator(forest, net):
    with pytest.raises(InputError, match="KernelDensityForest"):
        KernelDensityNetwork(forest).fit(*xor(20))
    with pytest.raises(InputError, match="KernelDensityNetwork"):
        KernelDensityForest(net).fit(*xor(20))


def test_copies_of_fit_rows_among_the_held_out_are_counted(forest):
    X, y = xor(60, seed=1)
    more, labels = xor(20, seed=2)
    held, y_held = np.concatenate([X[:7], more]), np.concatenate([y[:7], labels])
    with pytest.warns(InputWarning, match="7 rows of the held-out set are in the fit set too"):
        KernelDensityForest(forest).fit(X, y, held, y_held)


def test_held_out_rows_that_equal_fit_rows_by_chance_are_no_warning(forest):
    """The rule of Compare: columns of few values match by chance, which says nothing."""
    rng = np.random.default_rng(0)
    X, held = rng.integers(0, 3, (300, 2)) * 0.5, rng.integers(0, 3, (200, 2)) * 0.5
    y, y_held = rng.integers(0, 2, 300), rng.integers(0, 2, 200)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        KernelDensityForest(forest).fit(X, y, held, y_held)
    assert not [one for one in caught if "fit set too" in str(one.message)]


def test_hold_out_rows_without_labels_are_refused(forest):
    X, y = xor(20)
    with pytest.raises(InputError, match="need labels"):
        KernelDensityForest(forest).fit(X, y, X)
    with pytest.raises(InputError, match="need labels"):
        KernelDensityForest(forest).fit(X, y, y_holdout=y)


def test_a_fit_beyond_memory_is_refused_beforehand(forest, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1000)
    monkeypatch.setattr(fit_graph, "class_masses", None)  # never reached
    with pytest.raises(InputError, match=r"GB of memory.*fewer rows"):
        KernelDensityForest(forest).fit(*xor(50))


def test_the_limit_of_a_worker_counts():
    resource = pytest.importorskip("resource")
    limit = 2 * 1024**3
    text = "from kdcal_core import memory; "
    text += f"import resource; resource.setrlimit(memory.memory_limit(), ({limit}, {limit})); "
    text += "print(memory.available_bytes())"
    assert resource.getrlimit(memory_limit())[0] != limit
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, check=True)
    assert 0 < int(found.stdout) < limit


def test_memory_is_read_as_less_than_the_machine_has():
    import os

    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < memory.available_bytes() <= total


def test_progress_runs_from_nothing_to_all_and_may_stop_the_fit(forest):
    seen = []
    KernelDensityForest(forest).fit(
        *xor(300, seed=1), progress=lambda share, note: seen.append((share, note))
    )
    shares = [share for share, _ in seen]
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert shares[-1] == pytest.approx(1.0)
    assert all(note for _, note in seen)

    def stop(share, note):
        if share > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        KernelDensityForest(forest).fit(*xor(300, seed=1), progress=stop)


def test_an_executor_changes_no_byte(net):
    rows = *xor(200, seed=1), *xor(100, seed=2)
    alone = KernelDensityNetwork(net).fit(*rows)
    with ThreadPoolExecutor(2) as executor:
        spread = KernelDensityNetwork(net).fit(*rows, executor=executor)
        located = spread.locate(rows[2], executor=executor)
    np.testing.assert_array_equal(spread.class_masses_, alone.class_masses_)
    np.testing.assert_array_equal(spread.graph_.posterior(located), alone.predict_proba(rows[2]))


def test_the_split_is_seeded_and_keeps_a_row_of_each_class(forest):
    X, y = xor(100, seed=1)
    one, again, other = (KernelDensityForest(forest, random_state=s).fit(X, y) for s in (0, 0, 1))
    np.testing.assert_array_equal(one.graph_.holdout.x, again.graph_.holdout.x)
    assert not np.array_equal(one.graph_.holdout.x, other.graph_.holdout.x)
    assert one.graph_.n_holdout == 30
    rare = np.zeros(50, dtype=int)
    rare[7] = 1
    assert KernelDensityForest(forest).fit(X[:50], rare).prior_[1] == pytest.approx(1 / 35)


def test_importing_the_estimators_compiles_nothing():
    code = "import sys, kdcal_core.calibration.graph as _; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert {"numba", "torch", "onnxruntime"}.isdisjoint(loaded.stdout.split())
