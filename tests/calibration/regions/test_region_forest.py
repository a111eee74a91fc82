"""Forests of partitions."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.metrics import log_loss

from kdcal_core.calibration import calibrator_entry
from kdcal_core.calibration.regions import HeterogeneousCalibrator
from kdcal_core.calibration.regions.heterogeneous import layer_frame
from kdcal_core.errors import InputError


def rows(n=1200, seed=0, n_classes=2):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "kind": rng.choice(["a", "b", "c"], n),
            "noise": rng.normal(size=n),
        }
    )
    logits = rng.normal(size=(n, n_classes))
    truth = logits.copy()
    truth[:, 1] += 2.0 * (frame["kind"] == "a") - 1.5 * (frame["size"] > 0.5)
    cumulated = np.exp(truth).cumsum(axis=1)
    y = (rng.random((n, 1)) * cumulated[:, -1:] > cumulated).sum(axis=1)
    frame.loc[rng.random(n) < 0.1, "size"] = np.nan
    proba = np.exp(2.5 * logits)
    return proba / proba.sum(axis=1, keepdims=True), y, frame


@pytest.mark.parametrize("n_classes", [2, 4])
def test_its_answer_is_the_mean_of_its_partitions(n_classes):
    proba, y, frame = rows(n_classes=n_classes)
    forest = HeterogeneousCalibrator("forest", n_trees=7).fit(proba, y, frame)
    found = forest.predict_proba(proba, frame)
    mean = np.mean([layer.predict(proba, frame) for layer in forest.layers_], axis=0)
    np.testing.assert_allclose(found, mean, atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert len(forest.trees_) == 7


def smooth(n, seed):
    """What the model does not see grows with every column: no few regions hold it."""
    rng = np.random.default_rng(seed)
    X, score = rng.normal(size=(n, 6)), rng.normal(size=n)
    p = expit(2 * score)
    return np.c_[1 - p, p], (rng.random(n) < expit(score + X.sum(axis=1))).astype(int), X


def test_it_is_better_than_one_tree_where_no_few_regions_show_all():
    proba, y, X = smooth(2000, 0)
    fresh, truth, new = smooth(6000, 1)
    loss = {
        kind: log_loss(
            truth,
            HeterogeneousCalibrator(kind, n_trees=30).fit(proba, y, X).predict_proba(fresh, new),
        )
        for kind in ("tree", "forest")
    }
    assert loss["forest"] < loss["tree"] - 0.02
    assert loss["tree"] < log_loss(truth, fresh) - 0.02


def test_it_is_what_the_calibrator_is_by_default():
    proba, y, frame = rows(400)
    usual = HeterogeneousCalibrator(n_trees=4).fit(proba, y, frame)
    named = HeterogeneousCalibrator("forest", n_trees=4).fit(proba, y, frame)
    np.testing.assert_array_equal(
        usual.predict_proba(proba, frame), named.predict_proba(proba, frame)
    )
    assert usual.depth == 6
    assert calibrator_entry("regions").key == "heterogeneous_forest"
    assert calibrator_entry("regions").factory().get_params() == (
        HeterogeneousCalibrator().get_params()
    )


@pytest.mark.parametrize("partition", ["forest", "boosted", "column", "groups"])
def test_what_would_not_be_cut_back_is_refused(partition):
    proba, y, frame = rows(100)
    with pytest.raises(InputError, match=f"'prune' does nothing .* is '{partition}'"):
        HeterogeneousCalibrator(partition, column="kind", prune="cv").fit(proba, y, frame)


def test_one_seed_gives_one_answer_whatever_the_number_of_threads(monkeypatch):
    from kdcal_core.calibration.regions import forest as module

    proba, y, frame = rows(400)

    def answer(seed):
        fitted = HeterogeneousCalibrator("forest", n_trees=6, random_state=seed)
        return fitted.fit(proba, y, frame).predict_proba(proba, frame).tobytes()

    first = answer(0)
    monkeypatch.setattr(module, "cores", lambda: 1)
    assert answer(0) == first
    assert answer(1) != first


def test_rows_are_answered_alike_in_any_block(monkeypatch):
    from kdcal_core.calibration.regions import forest as module

    proba, y, frame = rows(500)
    fitted = HeterogeneousCalibrator("forest", n_trees=5).fit(proba, y, frame)
    whole = fitted.predict_proba(proba, frame)
    monkeypatch.setattr(module, "_ROWS", 64)
    np.testing.assert_array_equal(fitted.predict_proba(proba, frame), whole)


def test_training_rows_grow_the_trees():
    proba, y, frame = rows(600)
    _, labels, training = rows(3000, 2)
    fitted = HeterogeneousCalibrator("forest", n_trees=4).fit(
        proba, y, frame, X_partition=training, y_partition=labels
    )
    assert all(tree.n[0] == 3000 for tree in fitted.trees_)


def test_progress_is_reported_and_cancels():
    proba, y, frame = rows(300)
    text = []
    HeterogeneousCalibrator("forest", n_trees=5).fit(
        proba, y, frame, progress=lambda share, words: text.append(share)
    )
    assert text == sorted(text)
    assert len(text) == 4

    def stop(share, words):
        raise InterruptedError

    with pytest.raises(InterruptedError):
        HeterogeneousCalibrator("forest", n_trees=50).fit(proba, y, frame, progress=stop)


class Network:
    layers = ("hidden 1 (2)", "hidden 2 (1)")

    def embed(self, X, layer=None):
        first = np.maximum(np.asarray(X) @ [[1.0, -1.0], [0.0, 1.0]], 0.0)
        return first if layer == self.layers[0] else first[:, :1]


def test_a_hidden_layer_partitions():
    rng = np.random.default_rng(0)
    X, score = rng.normal(size=(3000, 2)), rng.normal(size=3000)
    y = (rng.random(3000) < expit(score + 3 * (X[:, 0] > X[:, 1]) - 1.5)).astype(int)
    p = expit(2 * score)
    units = layer_frame(Network(), X, "hidden 1 (2)")
    assert list(units) == ["unit 1", "unit 2"]
    fitted = HeterogeneousCalibrator("tree").fit(np.c_[1 - p, p], y, units)
    found = fitted.predict_proba(np.c_[1 - p, p], units)[:, 1]
    assert log_loss(y, found) < log_loss(y, expit(score)) - 0.05
    assert list(layer_frame(Network(), X)) == ["unit 1"]


@pytest.mark.parametrize(
    ("model", "layer", "match"),
    [
        (Network(), "hidden 3", "no hidden layer 'hidden 3'"),
        (object(), None, "no hidden layer to partition by"),
        (object(), "hidden 1", "does not name its hidden layers"),
    ],
)
def test_layers_that_are_not_there(model, layer, match):
    with pytest.raises(InputError, match=match):
        layer_frame(model, np.zeros((2, 2)), layer)
