"""Kernel density graphs of dependent rows: clusters stay whole and count as what they say."""

import numpy as np
import pytest
from graph_models import xor
from sklearn.ensemble import RandomForestClassifier

from kdcal_core.calibration import KernelDensityForest, KernelDensityGraph
from kdcal_core.calibration.graph.forest_and_network import KernelDensityCalibrator
from kdcal_core.calibration.graph.gamma_floor_blend import data_floor, fit_blend
from kdcal_core.calibration.graph.placement import split_off
from kdcal_core.statistics import Dependence, RowDesign


@pytest.fixture(scope="module")
def trees():
    return RandomForestClassifier(30, max_depth=4, random_state=0).fit(*xor(400, seed=1))


def patients(n, seed, rows=20, spread=0.02):
    """Rows of patients that hardly differ, their classes, and whose they are."""
    X, y = xor(n, seed=seed)
    many = np.repeat(np.arange(n), rows)
    noise = spread * np.random.default_rng(seed).standard_normal((len(many), X.shape[1]))
    return X[many] + noise, y[many], Dependence.of("cluster", many)


def test_clusters_of_one_row_are_rows(trees):
    X, y = xor(300, seed=2)
    alone = Dependence.of("cluster", np.arange(300))
    one, other = (
        KernelDensityForest(trees).fit(X, y, dependence=together) for together in (None, alone)
    )
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    assert one.log_floor_ == other.log_floor_
    assert one.blend_ == other.blend_
    proba = trees.predict_proba(X)
    one, other = (
        KernelDensityCalibrator().fit(proba, y, X, weight, model=trees).predict_proba(proba, X)
        for weight in (None, RowDesign(None, alone))
    )
    np.testing.assert_array_equal(one, other)


def test_equal_rows_of_a_cluster_fit_as_one_row(trees):
    X, y = xor(60, seed=3)
    many = np.repeat(np.arange(60), 20)
    design = RowDesign(None, Dependence.of("cluster", many))
    new, _ = xor(500, seed=4)
    stated, proba = trees.predict_proba(new), trees.predict_proba(X)
    one, together, apart = (
        KernelDensityCalibrator().fit(*given, model=trees)
        for given in (
            (proba, y, X),
            (proba[many], y[many], X[many], design),
            (proba[many], y[many], X[many]),
        )
    )
    held = [fit.estimator_.graph_.holdout_y for fit in (one, together)]
    np.testing.assert_array_equal(np.repeat(held[0], 20), held[1])
    said = [fit.predict_proba(stated, new) for fit in (one, together, apart)]
    assert np.abs(said[1] - said[0]).max() < 0.02
    assert np.abs(said[2] - said[0]).max() > 0.1
    floors = [fit.estimator_.graph_.effective_log_floor for fit in (one, together)]
    assert floors[1] == pytest.approx(floors[0])


def test_a_cluster_is_on_one_side_and_the_last_times_are_held_out():
    y = np.random.default_rng(0).integers(0, 3, 600)
    centres = Dependence.of("cluster", np.arange(600) % 40)
    held = split_off(y, 0.3, 0, centres)
    assert not set(centres.unit[held]) & set(centres.unit[~held])
    assert 0.2 < held.mean() < 0.4
    days = Dependence.of("time", np.arange(600) // 10)
    held = split_off(y, 0.3, 0, days)
    assert held.mean() == 0.3
    assert days.unit[held].min() > days.unit[~held].max()


def test_rows_of_new_patients_are_flagged_as_seldom_as_asked(trees):
    shares = []
    for seed in range(6):
        X, y, whose = patients(100, 10 + seed)
        fits = [KernelDensityForest(trees, floor_quantile=0.05) for _ in range(2)]
        fits[0].fit(X, y, dependence=whose)
        fits[1].fit(X, y)
        new, _, _ = patients(200, 50 + seed)
        shares.append([fit.is_unknown(new).mean() for fit in fits])
    whole, apart = np.mean(shares, axis=0)
    assert whole < 0.06
    assert apart > 2.0 * whole  # rows of held-out patients were in the fit


def test_the_floor_is_that_of_as_many_rows_as_they_count_for():
    rows = np.arange(60.0)
    for alpha in (0.01, 0.05, 0.2):
        assert data_floor(np.repeat(rows, 20), alpha, 20.0) == data_floor(rows, alpha)
    assert data_floor(rows, 0.2, 3.0) <= data_floor(rows, 0.2)


def test_the_blend_is_that_of_as_many_rows_as_they_count_for():
    rng = np.random.default_rng(0)
    proba, local = rng.dirichlet([1.0, 1.0], (2, 50))
    y, prior = (rng.random(50) < proba[:, 1] ** 2).astype(int), np.array([0.5, 0.5])
    one = fit_blend(proba, local, y, prior)
    many = np.repeat(np.arange(50), 20)
    together = fit_blend(proba[many], local[many], y[many], prior, 20.0)
    assert together.model == pytest.approx(one.model, rel=1e-4)
    assert together.graph == pytest.approx(one.graph, rel=1e-4)
    assert fit_blend(proba[many], local[many], y[many], prior) != together


def test_a_saved_graph_still_counts_its_rows_together(trees, tmp_path):
    X, y, whose = patients(60, 5)
    fitted = KernelDensityForest(trees).fit(X, y, dependence=whose)
    fitted.save(tmp_path / "graph.zip")
    again = KernelDensityForest.load(tmp_path / "graph.zip", trees).graph_
    for quantile in (0.02, 0.2):
        expected = fitted.graph_.with_settings(floor_quantile=quantile)
        assert again.with_settings(floor_quantile=quantile).log_floor == expected.log_floor
    assert again.blended().blend == fitted.blend_
    alone = KernelDensityForest(trees).fit(X, y).graph_
    assert (again.selection().standard_error > 2.0 * alone.selection().standard_error).all()
    fitted.graph_.save(tmp_path / "parts.zip")
    assert KernelDensityGraph.load(tmp_path / "parts.zip").together is not None
