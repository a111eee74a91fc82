"""Kernel density graphs of weighted rows: a row counts by its weight, and for no more evidence."""

import numpy as np
import pytest
from graph_models import network, xor
from sklearn.ensemble import RandomForestClassifier

from kdcal_core.calibration import KernelDensityForest, KernelDensityNetwork
from kdcal_core.calibration.graph.forest_and_network import KernelDensityCalibrator
from kdcal_core.calibration.graph.gamma_floor_blend import data_floor, fit_blend
from kdcal_core.errors import InputError
from kdcal_core.statistics import Dependence, RowDesign


@pytest.fixture(scope="module")
def trees():
    return RandomForestClassifier(30, max_depth=4, random_state=0).fit(*xor(400, seed=1))


def estimators(trees):
    return KernelDensityForest(trees), KernelDensityNetwork(network())


def test_equal_weights_are_none(trees):
    X, y = xor(300, seed=2)
    for one, other in zip(estimators(trees), estimators(trees), strict=True):
        one.fit(X, y)
        other.fit(X, y, sample_weight=np.full(300, 7.0))
        assert one.predict_proba(X).tobytes() == other.predict_proba(X).tobytes()
        assert one.log_floor_ == other.log_floor_


def test_whole_weights_are_repeated_rows_in_the_densities(trees):
    X, y = xor(300, seed=3)
    held, y_held = xor(100, seed=4)
    times = np.random.default_rng(0).integers(1, 4, 300)
    many = np.repeat(np.arange(300), times)
    for one, other in zip(estimators(trees), estimators(trees), strict=True):
        one.fit(X, y, held, y_held, sample_weight=times)
        other.fit(X[many], y[many], held, y_held)
        weighted, repeated = one.graph_, other.graph_
        np.testing.assert_allclose(weighted.centres, repeated.centres, atol=1e-12)
        np.testing.assert_allclose(weighted.variances, repeated.variances, atol=1e-12)
        np.testing.assert_allclose(weighted.prior, repeated.prior, rtol=1e-8)
        scale = 300 / len(many)
        masses = (weighted.class_masses, repeated.class_masses * scale)
        np.testing.assert_allclose(*masses, rtol=1e-7)
        loss = [graph.selection().log_loss for graph in (weighted, repeated)]
        np.testing.assert_allclose(*loss, rtol=1e-3)  # with another constant far away


def test_the_blend_of_whole_weights_is_that_of_repeated_rows():
    rng = np.random.default_rng(0)
    proba, local = rng.dirichlet([1.0, 1.0], (2, 200))
    chance = (proba[:, 1] + local[:, 1]) / 2
    y, prior = (rng.random(200) < chance).astype(int), np.array([0.5, 0.5])
    times = rng.integers(1, 5, 200)
    many, per_row = np.repeat(np.arange(200), times), times.mean()
    one = fit_blend(proba, local, y, prior, 1.0, times.astype(float))
    other = fit_blend(proba[many], local[many], y[many], prior, per_row)
    assert (one.model, one.graph) == pytest.approx((other.model, other.graph), rel=1e-4)
    assert one != fit_blend(proba, local, y, prior)


@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.3])
def test_no_more_than_the_share_by_weight_lies_below_the_floor(alpha):
    rng = np.random.default_rng(1)
    density, weight = rng.normal(size=(3, 500)), rng.exponential(size=500)
    weight /= weight.mean()
    effect = float((weight**2).mean())
    floor = data_floor(density, alpha, effect, weight)
    for one, each in zip(density, floor, strict=True):
        below = weight[one < each].sum() / 500
        assert below <= alpha
        assert below >= alpha - (effect + 1) / 500 - weight.max() / 500
    np.testing.assert_array_equal(
        data_floor(density, alpha, 1.0, np.ones(500)), data_floor(density, alpha)
    )


def test_weights_undo_a_sample_with_more_of_one_class(trees):
    drawn, y = xor(4000, seed=5)
    kept = (y == 1) | (np.random.default_rng(2).random(4000) < 0.2)
    X, y = drawn[kept], y[kept]
    weight = np.where(y == 1, 1.0, 5.0)
    new, truth = xor(2000, seed=6)
    proba, stated = trees.predict_proba(X), trees.predict_proba(new)
    plain, weighted = (
        KernelDensityCalibrator().fit(proba, y, X, given, model=trees).predict_proba(stated, new)
        for given in (None, weight)
    )
    loss = [-np.log(one[np.arange(2000), truth]).mean() for one in (plain, weighted, stated)]
    assert loss[1] < loss[0] - 0.03
    assert loss[1] < loss[2] + 0.01
    assert abs(weighted[:, 1].mean() - 0.5) < 0.03 < plain[:, 1].mean() - 0.5


def test_unequal_weights_count_as_fewer_rows(trees):
    X, y = xor(400, seed=7)
    weight = np.where(np.arange(400) % 10 == 0, 50.0, 1.0)
    plain, weighted = (
        KernelDensityForest(trees).fit(X, y, sample_weight=given).graph_ for given in (None, weight)
    )
    error = [graph.selection().standard_error[0] for graph in (plain, weighted)]
    assert error[1] > 1.5 * error[0]
    share = np.average(weighted.unknown(weighted.holdout), weights=weighted.holdout_weight)
    assert share <= 0.01
    groups = Dependence.of("cluster", np.arange(400))
    alone = KernelDensityForest(trees).fit(X, y, sample_weight=weight, dependence=groups).graph_
    assert alone.log_floor == weighted.log_floor
    assert alone.blend == weighted.blend


def test_a_saved_graph_keeps_its_weights(trees, tmp_path):
    X, y = xor(300, seed=8)
    weight = np.random.default_rng(3).exponential(size=300)
    fitted = KernelDensityForest(trees).fit(X, y, sample_weight=weight)
    fitted.save(tmp_path / "graph.zip")
    again = KernelDensityForest.load(tmp_path / "graph.zip", trees)
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    for quantile in (0.02, 0.2):
        expected = fitted.graph_.with_settings(floor_quantile=quantile)
        assert again.graph_.with_settings(floor_quantile=quantile).log_floor == expected.log_floor
    assert again.graph_.blended().blend == fitted.blend_


def test_a_weight_that_is_none_is_refused_by_its_row(trees):
    X, y = xor(50, seed=9)
    with pytest.raises(InputError, match="row 4"):
        KernelDensityForest(trees).fit(X, y, sample_weight=np.where(np.arange(50) == 3, -1.0, 1.0))
    design = RowDesign(np.zeros(50), Dependence.of("cluster", np.arange(50)))
    with pytest.raises(InputError, match="A weight is 0"):
        KernelDensityCalibrator().fit(trees.predict_proba(X), y, X, design, model=trees)
