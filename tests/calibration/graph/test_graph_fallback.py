"""The posterior's constant: it falls back far away, and hardly on ordinary rows."""

import numpy as np
import pandas as pd
import pytest
from graph_models import xor
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.ensemble import RandomForestClassifier

from kdcal_core.calibration import (
    KernelDensityCalibrator,
    KernelDensityForest,
    KernelDensityNetwork,
)
from kdcal_core.calibration import calibrated as applied
from kdcal_core.calibration.graph.gamma_floor_blend import FAR_WEIGHT, data_floor, fallback
from kdcal_core.calibration.graph.gaussians import inside
from kdcal_core.calibration.graph.graph import CLOSE
from kdcal_core.data.foreign_rows import extent, outward
from kdcal_core.errors import InputError
from kdcal_core.models import wrap_model


@given(
    st.lists(st.floats(-300, 300), min_size=1, max_size=60),
    st.lists(st.floats(-300, 300), min_size=1, max_size=60),
    st.sampled_from([0.01, 0.05, 0.3]),
)
def test_the_constant_is_the_least_that_is_needed_and_never_above_the_floor(held, far, alpha):
    held, far = np.array(held), np.array(far)
    high, constant = data_floor(held, alpha), fallback(held, far, alpha)
    upper = data_floor(held, min(10 * alpha, 0.5))
    low = high - (upper - high) / np.log10(min(10 * alpha, 0.5) / alpha)
    assert low - 1e-9 <= constant <= high
    if constant < high:  # rows far away have fallen back
        assert expit(far - constant).mean() <= FAR_WEIGHT
    if constant > low + 1e-9:  # a little less would keep more density there than is allowed
        assert np.exp(far - (constant - 0.1)).mean() > FAR_WEIGHT


def test_an_exponential_tail_has_a_tenth_of_the_flagged_rows_below_the_constant():
    rng = np.random.default_rng(3)
    shares = []
    for _ in range(200):
        held, new = -rng.exponential(size=(2, 2000))
        shares.append((new < fallback(held, np.full(5, -1e3), 0.01)).mean())
    assert np.mean(shares) == pytest.approx(0.001, abs=0.0003)


def test_several_exponents_are_as_one_by_one():
    rng = np.random.default_rng(0)
    held, far = rng.normal(size=(3, 500)), rng.normal(-20, 8, size=(3, 40))
    each = [fallback(one, other, 0.05) for one, other in zip(held, far, strict=True)]
    np.testing.assert_array_equal(fallback(held, far, 0.05), each)


def _clouds(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return 2.0 * np.eye(6)[y] + 0.2 * rng.standard_t(5, size=(n, 6)), y


@pytest.fixture(scope="module")
def trained():
    X, y = _clouds(600, 0)
    return RandomForestClassifier(60, random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def calibrated(trained):
    return KernelDensityForest(trained).fit(*_clouds(600, 0), *_clouds(600, 1))


def test_ordinary_rows_keep_their_confidence_and_far_rows_lose_it(calibrated):
    graph = calibrated.graph_
    X, _ = _clouds(4000, 2)
    located = calibrated.locate(X)
    weight = expit(graph.log_marginal(located) - graph.log_fallback)
    assert graph.log_fallback < graph.effective_log_floor
    assert 0.003 < graph.unknown(located).mean() < 0.025  # one in a hundred is flagged
    assert (weight < 0.5).mean() < 0.3 * graph.unknown(located).mean()
    reach = np.linalg.norm((X - X.mean(axis=0)) / X.std(axis=0), axis=1).max()
    rng = np.random.default_rng(3)
    away = rng.normal(size=(1000, 6))
    away *= 1.5 * reach / np.linalg.norm(away, axis=1, keepdims=True)
    posterior = calibrated.predict_proba(X.mean(axis=0) + X.std(axis=0) * away)
    assert np.abs(posterior.max(axis=1) - calibrated.prior_.max()).mean() < 0.003


def _far_away(calibrated):
    X, _ = _clouds(500, 4)
    far = X.mean(axis=0) + 30.0 * (X - X.mean(axis=0))
    return far, calibrated.locate(far)


@pytest.mark.parametrize("prior", [[1 / 3] * 3, [0.335, 0.334, 0.331], [0.3325, 0.3315, 0.336]])
def test_falling_back_changes_no_class_where_priors_are_close(calibrated, prior):
    graph = calibrated.graph_.with_settings(prior=prior)
    _, far = _far_away(calibrated)
    posterior = graph.posterior(far)
    assert np.abs(posterior - prior).max() <= CLOSE
    assert np.abs(posterior.max(axis=1) - max(prior)).max() < 0.002
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0, rtol=1e-12)
    kept = graph._inside(far).argmax(axis=1)
    np.testing.assert_array_equal(posterior.argmax(axis=1), kept)
    np.testing.assert_array_equal(graph.predict(far), kept)
    assert len(set(kept)) == 3


def test_a_larger_prior_decides_a_row_that_falls_back(calibrated):
    far, located = _far_away(calibrated)
    prior = calibrated.prior_
    assert np.sort(prior)[-1] - np.sort(prior)[-2] > CLOSE
    np.testing.assert_allclose(calibrated.predict_proba(far), np.tile(prior, (500, 1)))
    assert set(calibrated.predict(far)) == {prior.argmax()}
    # Of three classes the two with close priors keep their order, behind the third they do not.
    graph = calibrated.graph_.with_settings(prior=[0.4, 0.4, 0.2])
    local = graph._inside(located)
    np.testing.assert_array_equal(graph.predict(located), local[:, :2].argmax(axis=1))
    np.testing.assert_allclose(graph.posterior(located), np.tile([0.4, 0.4, 0.2], (500, 1)))


def test_ordinary_rows_have_the_posterior_of_the_equations(calibrated):
    graph = calibrated.graph_.with_settings(prior=[1 / 3] * 3)
    located = calibrated.locate(_clouds(2000, 6)[0])
    share = inside(graph.log_marginal(located), graph.log_fallback)[:, None]
    exact = share * graph._inside(located) + (1 - share) / 3
    np.testing.assert_allclose(graph.posterior(located), exact, rtol=0, atol=1e-12)


def test_a_fixed_floor_is_the_constant_as_in_the_papers(trained):
    papers = KernelDensityForest(trained).in_the_papers(*_clouds(300, 5))
    assert papers.graph_.far is None
    assert papers.graph_.log_fallback == papers.graph_.effective_log_floor
    fixed = KernelDensityForest(trained).fit(*_clouds(300, 5)).graph_.with_settings(log_floor=-9.0)
    assert fixed.log_fallback == fixed.effective_log_floor


def test_settings_move_the_constant_as_a_fit_with_them_would(calibrated):
    graph = calibrated.graph_
    for alpha in (0.002, 0.05, 0.2):
        fitted = KernelDensityForest(calibrated.model, floor_quantile=alpha)
        fitted.fit(*_clouds(600, 0), *_clouds(600, 1))
        moved = graph.with_settings(floor_quantile=alpha, gamma=fitted.gamma_)
        assert moved.log_fallback == fitted.graph_.log_fallback
    wide = graph.with_settings(variance_floor=4 * graph.variance_floor)
    held, far = (wide.log_marginal(rows) for rows in (wide.holdout, wide.far))
    assert wide.log_fallback == pytest.approx(float(fallback(held, far, 0.01)))


def test_a_table_without_numbers_falls_back_at_the_floor():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (400, 3)).astype(bool), rng.integers(0, 2, 400)
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    graph = KernelDensityForest(forest).fit(pd.DataFrame(X), y).graph_
    assert graph.far is None
    assert graph.log_fallback == graph.effective_log_floor


def _without_negatives(model):
    """A model that refuses what no row can be."""
    wrapped = wrap_model(model)

    class NoNegatives(type(wrapped)):
        def codes(self, X):
            if (np.asarray(X) < 0).any():
                raise InputError("A column is negative", fix="Give counts.")
            return super().codes(X)

    wrapped.__class__ = NoNegatives
    return wrapped


def test_a_model_that_refuses_the_made_rows_falls_back_at_the_floor():
    rng = np.random.default_rng(1)
    X, y = rng.poisson(4.0, (400, 3)).astype(float), rng.integers(0, 2, 400)
    model = _without_negatives(RandomForestClassifier(10, random_state=0).fit(X, y))
    graph = KernelDensityForest(model).fit(X, y).graph_
    assert graph.far is None


@pytest.mark.parametrize("named", [True, False])
def test_columns_of_any_name_and_kind_have_far_rows(net, named):
    X, y = xor(300, seed=2)
    table = pd.DataFrame(X, columns=["b", 0]) if named else X.astype(np.float32)
    graph = KernelDensityNetwork(net).fit(table, y).graph_
    assert len(graph.far) == 500


def test_rows_are_moved_straight_outward():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=50), "b": 9 + 3 * rng.normal(size=50), "c": "x"})
    frame.loc[3, "a"] = None
    where = extent(frame)
    made = outward(frame, where, 2.0, 200, seed=1)
    away = (made[["a", "b"]].to_numpy() - where.centre) / where.spread
    own = (frame[["a", "b"]].to_numpy() - where.centre) / where.spread
    whole = ~np.isnan(away).any(axis=1)
    np.testing.assert_allclose(np.linalg.norm(away[whole], axis=1), 2.0 * where.reach)
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (away[whole], own)]
    nearest = np.nanmax(unit[0] @ np.nan_to_num(unit[1]).T, axis=1)
    np.testing.assert_allclose(nearest, 1.0)
    assert set(made["c"]) == {"x"}
    assert np.isnan(made["a"]).any()


@pytest.mark.parametrize("kind", [KernelDensityForest, KernelDensityNetwork])
def test_the_distance_with_the_smaller_held_out_loss_is_chosen(kind, forest, net, tmp_path):
    model = forest if kind is KernelDensityForest else net
    rows = *xor(150, seed=3), *xor(200, seed=4)
    by = {
        distance: kind(model, distance=distance).fit(*rows)
        for distance in ("geodesic", "euclidean", "auto")
    }

    def loss(fitted):
        proba = fitted.predict_proba(rows[2])
        return -np.log(proba[np.arange(200), rows[3]]).mean()

    losses = {distance: loss(fitted) for distance, fitted in by.items()}
    assert losses["geodesic"] != losses["euclidean"]
    best = min(("geodesic", "euclidean"), key=losses.get)
    assert by["auto"].distance_ == best
    new = xor(50, seed=5)[0]
    np.testing.assert_array_equal(by["auto"].predict_proba(new), by[best].predict_proba(new))
    by["auto"].save(tmp_path / "auto.kd")
    again = kind.load(tmp_path / "auto.kd", model)
    assert again.distance_ == best
    np.testing.assert_array_equal(again.predict_proba(new), by[best].predict_proba(new))


def test_every_way_to_ask_gives_the_class_of_the_largest_posterior(trained, tmp_path):
    """The classes of the digits are nearly balanced: rows that fell back moved to the largest."""
    X, y = _clouds(900, 7)
    fitted = KernelDensityCalibrator(prior=[0.3325, 0.3315, 0.336])
    fitted.fit(trained.predict_proba(X), y, X, model=trained)
    fitted.estimator_.save(tmp_path / "graph.kd")
    loaded = KernelDensityForest.load(tmp_path / "graph.kd", trained)
    new = _clouds(300, 8)[0]
    rows = np.concatenate([new, new.mean(axis=0) + 30.0 * (new - new.mean(axis=0))])
    found = applied(fitted, trained.predict_proba(rows), pd.DataFrame(rows))
    np.testing.assert_array_equal(found.predicted, found.proba.argmax(axis=1))
    np.testing.assert_array_equal(loaded.predict_proba(rows), found.proba)
    for estimator in (fitted.estimator_, loaded):
        np.testing.assert_array_equal(estimator.predict(rows).astype(int), found.predicted)
    inner = loaded.graph_._inside(loaded.locate(rows))
    np.testing.assert_array_equal(found.predicted, inner.argmax(axis=1))
    assert loaded.is_unknown(rows[300:]).all()
