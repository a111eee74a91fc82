"""Nested calibrations: each stage against the formulas, and how many there are."""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from kdcal_core.calibration.regions import HeterogeneousCalibrator
from kdcal_core.calibration.regions.boosted import RATE, Damped, LineGain, OffsetGain
from kdcal_core.calibration.regions.parametric_maps import LinearMaps
from kdcal_core.errors import InputError
from kdcal_core.partition.tree import Residual


def rows(n=2000, seed=0):
    """A model that is over-confident, blind to one column and too steep in half of another."""
    rng = np.random.default_rng(seed)
    X, score = rng.normal(size=(n, 3)), rng.normal(size=n)
    y = rng.random(n) < expit(np.where(X[:, 1] > 0, 1.5, 0.3) * score + 2 * (X[:, 0] > 0) - 1)
    p = expit(2 * score)
    return np.c_[1 - p, p], y.astype(int), X


def test_a_stage_of_platts_map_is_affine_in_the_logit():
    """F + rate ((a - 1) F + b), the module's step 3 with two classes."""
    a, b = np.array([0.5, 2.0]), np.array([0.3, -1.0])
    maps = Damped(LinearMaps(np.stack([a, b], axis=1)[None]), 0.3)
    p, leaf = np.array([0.1, 0.4, 0.9, 0.6]), np.array([0, 1, 0, 1])
    found = maps.predict(np.c_[1 - p, p], leaf)
    score = logit(p)
    expected = expit(score + 0.3 * ((a[leaf] - 1) * score + b[leaf]))
    np.testing.assert_allclose(found[:, 1], expected, rtol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_the_whole_is_the_composition_of_its_stages():
    """Slopes multiply: the answer is affine in the model's logit inside each cell."""
    proba, y, X = rows()
    fitted = HeterogeneousCalibrator("boosted", n_trees=5).fit(proba, y, X)
    score = logit(proba[:, 1])
    for i, layer in enumerate(fitted.layers_):
        a, b = layer.maps.maps.parameters[0][layer.partition.apply(X)].T
        rate = 1.0 if i == 0 else RATE
        score = score + rate * ((a - 1) * score + b)
    np.testing.assert_allclose(fitted.predict_proba(proba, X)[:, 1], expit(score), rtol=1e-9)


def test_the_gain_of_one_class_is_that_of_residuals():
    rng = np.random.default_rng(0)
    p, y = rng.uniform(0.1, 0.9, 50), rng.random(50) < 0.4
    ours = OffsetGain(y.astype(float)[:, None], p[:, None], np.ones(50))
    theirs = Residual(y - p, p * (1 - p))
    np.testing.assert_allclose(ours.stats.values, theirs.stats.values)
    sums = rng.normal(size=(2, 7, 1, 2)) ** 2
    np.testing.assert_allclose(ours.gain(*sums), theirs.gain(*sums))


@pytest.mark.parametrize("gain", [OffsetGain, LineGain])
def test_a_row_of_weight_two_has_the_gain_of_the_row_twice(gain):
    rng = np.random.default_rng(0)
    p, y = rng.uniform(0.1, 0.9, (50, 3)), rng.random((50, 3)) < 0.4
    times = rng.integers(1, 4, 50)
    whole = np.repeat(np.arange(50), times)
    y = y.astype(float)
    once = gain(y, p, times.astype(float)).stats.values
    twice = gain(y[whole], p[whole], np.ones(len(whole))).stats.values
    np.testing.assert_allclose(once.sum(axis=0), twice.sum(axis=0), atol=1e-12)


def test_the_gain_is_what_a_step_saves():
    """r**2 / 2v of the docstring, against the log loss itself for a small common offset."""
    rng = np.random.default_rng(0)
    score = rng.normal(size=4000)
    p = expit(score)
    y = rng.random(4000) < expit(score + 0.1)
    r, v = (y - p).sum(), (p * (1 - p)).sum()
    saved = 4000 * (log_loss(y, p) - log_loss(y, expit(score + r / v)))
    np.testing.assert_allclose(saved, r**2 / (2 * v), rtol=0.05)


def test_the_gain_of_a_line_is_what_platts_map_saves():
    """The score statistic of the docstring, half of it, against the log loss of a fitted map."""
    rng = np.random.default_rng(0)
    score = rng.normal(0.5, 1, size=4000)
    p = expit(score)
    y = rng.random(4000) < expit(0.9 * score + 0.05)
    fitted = LogisticRegression(C=np.inf).fit(score[:, None], y).predict_proba(score[:, None])
    saved = 4000 * (log_loss(y, p) - log_loss(y, fitted))
    gain = LineGain(y.astype(float)[:, None], p[:, None], np.ones(4000))
    whole = gain.stats.values.sum(axis=0)[None, None]
    # the mirror image of its scores leaves nothing of both together
    other = whole * [-1.0, -1.0, 1.0, 1.0, 1.0]
    np.testing.assert_allclose(gain.gain(whole, other)[0] / 4, saved, rtol=0.05)


@pytest.mark.parametrize("slope", [-1.0, 0.3])
def test_a_fault_of_slope_alone_is_found(slope):
    """In half of the inputs the scores are reversed, or too steep: residuals average out."""

    def draw(n, seed):
        rng = np.random.default_rng(seed)
        X, score = rng.normal(size=(n, 4)), rng.normal(0, 1.5, n)
        truth = np.where(X[:, 1] > 0, 1, slope) * score
        p = expit(score)
        return np.c_[1 - p, p], (rng.random(n) < expit(truth)).astype(int), X, truth

    proba, y, X, _ = draw(2000, 0)
    fresh, labels, new, truth = draw(6000, 1)
    fitted = HeterogeneousCalibrator("boosted").fit(proba, y, X)
    assert "No partition" not in fitted.notes_[0]
    found = log_loss(labels, fitted.predict_proba(fresh, new))
    best = log_loss(labels, expit(truth))
    everywhere = HeterogeneousCalibrator("boosted", n_trees=1, min_rows=2000).fit(proba, y, X)
    one_map = log_loss(labels, everywhere.predict_proba(fresh, new))
    assert found - best < 0.4 * (one_map - best)


def test_it_beats_one_tree_and_one_map_on_new_rows():
    proba, y, X = rows(3000)
    fresh, truth, new = rows(6000, 1)
    loss = {
        kind: log_loss(
            truth, HeterogeneousCalibrator(kind).fit(proba, y, X).predict_proba(fresh, new)
        )
        for kind in ("tree", "boosted")
    }
    assert loss["boosted"] < loss["tree"] < log_loss(truth, fresh)


def test_without_anything_to_find_few_stages_are_kept_and_little_is_lost():
    rng = np.random.default_rng(0)
    X, score = rng.normal(size=(4000, 3)), rng.normal(size=4000)
    p = expit(score)
    y = (rng.random(4000) < p).astype(int)
    proba, train, test = np.c_[1 - p, p], slice(2000), slice(2000, None)
    fitted = HeterogeneousCalibrator("boosted").fit(proba[train], y[train], X[train])
    found = fitted.predict_proba(proba[test], X[test])
    assert len(fitted.layers_) <= 4
    assert log_loss(y[test], found) < log_loss(y[test], proba[test]) + 0.003


def test_several_classes():
    rng = np.random.default_rng(0)
    logits, X = rng.normal(size=(2000, 3)), rng.normal(size=(2000, 2))
    truth = logits + np.outer(X[:, 0] > 0, [0.0, 2.0, -1.0])
    truth -= np.log(np.exp(truth).sum(axis=1, keepdims=True))
    y = (rng.random((2000, 1)) > np.exp(truth).cumsum(axis=1)).sum(axis=1).clip(max=2)
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    found = HeterogeneousCalibrator("boosted", n_trees=10).fit(proba, y, X).predict_proba(proba, X)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert log_loss(y, found) < log_loss(y, proba) - 0.1


def test_few_rows_have_one_map():
    proba, y, X = rows(30)
    fitted = HeterogeneousCalibrator("boosted").fit(proba, y, X)
    assert len(fitted.layers_) == 1
    assert "one map for all rows" in fitted.notes_[0]


def test_progress_is_reported_and_cancels():
    proba, y, X = rows(600)
    text = []
    HeterogeneousCalibrator("boosted", n_trees=4).fit(
        proba, y, X, progress=lambda share, words: text.append(share)
    )
    assert text == sorted(text)
    assert 0 <= text[0] <= text[-1] <= 1

    def stop(share, words):
        raise InterruptedError

    with pytest.raises(InterruptedError):
        HeterogeneousCalibrator("boosted").fit(proba, y, X, progress=stop)


@pytest.mark.parametrize("rate", [1.5, -0.1, float("nan"), "0.3"])
def test_a_rate_that_is_none_is_refused(rate):
    maps = LinearMaps(np.ones((1, 1, 2)))
    Damped(maps, 0.5).check(2, 1)
    with pytest.raises(InputError, match="the rate"):
        Damped(maps, rate).check(2, 1)
