"""The best calibrators known, against the packages that their authors or others publish."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from cir_model import CenteredIsotonicRegression
from probmetrics.calibrators import ETSCalibrator, get_calibrator, logistic
from scipy.optimize import minimize
from scipy.special import expit, softmax

from kdcal_core.calibration import (
    CentredIsotonic,
    EnsembleTemperature,
    QuadraticScaling,
    RecommendedCalibrator,
    SplineCalibration,
    StructuredMatrixScaling,
    StructuredVectorScaling,
    calibrator_entry,
)
from kdcal_core.calibration.calibrator_base import fit_effect
from kdcal_core.calibration.recommended import candidates
from kdcal_core.calibration.spline_map import natural_pieces, roughness
from kdcal_core.statistics import Dependence, RowDesign, log_losses

pytestmark = pytest.mark.filterwarnings("ignore")


def rows(n, k, seed=0, sharper=1.7, fault=0.5):
    """Rows of a model that is too sure, and wrong in a way that no temperature repairs."""
    rng = np.random.default_rng(seed)
    logits = 1.5 * rng.normal(size=(n, k))
    y = (rng.random((n, 1)) > softmax(logits, axis=1).cumsum(axis=1)).sum(axis=1)
    stated = sharper * logits + np.linspace(-fault, fault, k) * logits[:, [0]]
    return softmax(stated, axis=1), np.minimum(y, k - 1)


@pytest.fixture
def exact(monkeypatch):
    """probmetrics in double precision, searching to the end; by itself it stops at three digits."""
    monkeypatch.setattr(logistic, "multiclass_probs_to_logits", np.log)
    closer = partial(logistic.torchmin.minimize, options={"gtol": 1e-9, "xtol": 0.0})
    monkeypatch.setattr(logistic.torchmin, "minimize", closer)


@pytest.mark.parametrize(("n", "k"), [(100, 2), (100, 10), (1500, 2), (1500, 3)])
@pytest.mark.parametrize(
    ("ours", "key"), [(StructuredVectorScaling(), "svs"), (StructuredMatrixScaling(), "sms")]
)
def test_structured_scaling_is_probmetrics(ours, key, n, k, exact):
    proba, y = rows(n, k)
    new, _ = rows(300, k, seed=9)
    theirs = get_calibrator(key).fit(proba, y)
    said = ours.fit(proba, y).predict_proba(new)
    np.testing.assert_allclose(said, theirs.predict_proba(new), atol=1e-4)
    assert np.abs(said - new).max() > 0.05


@pytest.mark.parametrize("kind", [StructuredVectorScaling, StructuredMatrixScaling])
def test_structured_scaling_with_weights_is_the_minimum_by_force(kind):
    proba, y = rows(60, 3)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, 60)
    ours = kind(strength=0.3).fit(proba, y, weight)
    n = weight.sum() ** 2 / (weight @ weight)
    soft = softmax(np.log(proba) / ours.temperature_, axis=1)
    logs = np.log(soft * n / (n + 1) + 1 / (3 * (n + 1)))
    share = weight / weight.sum()
    at_zero = np.ones((3, 3)) - np.eye(3) if kind is StructuredVectorScaling else np.zeros((3, 3))

    def loss(t):
        W, b = t[:9].reshape(3, 3) * (1 - at_zero), t[9:]
        said = softmax(logs @ W.T + b, axis=1)
        far = W - np.eye(3)
        pull = 3 * ((np.diag(far) ** 2).sum() + b @ b)
        pull += 6 * (far**2).sum() - 6 * (np.diag(far) ** 2).sum()
        return n * share @ log_losses(said, y) + 0.3 * pull

    best = minimize(loss, np.append(np.eye(3), np.zeros(3)), options={"gtol": 1e-6})
    mine = ours.weights_ if ours.weights_.ndim == 2 else np.diag(ours.weights_)
    np.testing.assert_allclose(mine, best.x[:9].reshape(3, 3) * (1 - at_zero), atol=1e-4)
    np.testing.assert_allclose(ours.offsets_, best.x[9:], atol=1e-4)
    # only ratios of weights matter
    again = kind(strength=0.3).fit(proba, y, 1000 * weight)
    np.testing.assert_allclose(again.weights_, ours.weights_, atol=1e-6)


@pytest.mark.parametrize("kind", [StructuredVectorScaling, StructuredMatrixScaling])
def test_the_pull_is_strong_with_few_rows_and_weak_with_many(kind):
    def moved(n, strength):
        found = kind(strength).fit(*rows(n, 4, sharper=1.0, fault=0.9)).weights_
        return np.abs(found - (np.eye(4) if found.ndim == 2 else 1.0)).max()

    assert moved(40, 1.0) < 0.5 * moved(40, 1e-6)
    assert moved(8000, 1.0) > 0.8 * moved(8000, 1e-6)


@pytest.mark.parametrize("n", [100, 1500])
def test_quadratic_scaling_without_its_penalty_is_probmetrics(n):
    proba, y = rows(n, 2)
    new, _ = rows(300, 2, seed=9)
    second = np.clip(new[:, 1], proba[:, 1].min(), proba[:, 1].max())
    new = np.column_stack([1 - second, second])  # beyond the fit's scores ours stays level
    ours = QuadraticScaling(strength=1e-6, shrinkage=None).fit(proba, y)
    theirs = get_calibrator("quadratic-scaling").fit(proba, y)
    np.testing.assert_allclose(ours.predict_proba(new), theirs.predict_proba(new), atol=1e-4)
    assert abs(ours.bends_[0]) > 0.01


def test_quadratic_scaling_stays_level_beyond_the_fit():
    proba, y = rows(500, 2)
    ours = QuadraticScaling(shrinkage=None).fit(proba, y)
    edge, beyond = proba[:, 1].max(), np.nextafter(1.0, 0.0)
    said = ours.predict_proba([[1 - edge, edge], [1 - beyond, beyond], [0.0, 1.0]])
    np.testing.assert_allclose(said[1:], said[[0, 0]], atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_centred_isotonic_is_cir_model(weighted):
    proba, y = rows(400, 2)
    weight = np.random.default_rng(0).uniform(0.5, 2, 400) if weighted else None
    new, _ = rows(300, 2, seed=9)
    ours = CentredIsotonic(shrinkage=None).fit(proba, y, weight)
    theirs = CenteredIsotonicRegression(out_of_bounds="clip").fit(proba[:, 1], y, weight)
    said = ours.predict_proba(new)[:, 1]
    np.testing.assert_allclose(said, theirs.predict(new[:, 1]), atol=1e-12)
    assert (np.diff(said[np.argsort(new[:, 1])]) > 0).mean() > 0.7  # no flat steps inside


@pytest.mark.parametrize(("k", "sharper"), [(2, 1.7), (3, 1.7), (4, 3.0)])
def test_ensemble_temperature_is_probmetrics(k, sharper):
    proba, y = rows(3000, k, sharper=sharper)
    y[:600] = np.random.default_rng(3).integers(0, k, 600)  # labels that are chance
    new, _ = rows(300, k, seed=9, sharper=sharper)
    ours = EnsembleTemperature().fit(proba, y)
    theirs = ETSCalibrator(loss="ce").fit(proba, y)
    np.testing.assert_allclose(ours.predict_proba(new), theirs.predict_proba(new), atol=1e-4)
    assert ours.shares_[2] > 0.01


def test_ensemble_temperature_is_never_certain_and_keeps_the_prediction():
    proba = np.eye(3)[np.arange(30) % 3]
    ours = EnsembleTemperature().fit(proba, np.arange(30) % 3)
    assert ours.predict_proba(proba).min() > 0.99 / (31 * 3)
    stated, y = rows(200, 4)
    said = EnsembleTemperature().fit(stated, y).predict_proba(stated)
    np.testing.assert_array_equal(said.argmax(axis=1), stated.argmax(axis=1))


def test_the_spline_is_the_minimum_by_force():
    proba, y = rows(200, 2)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, 200)
    ours = SplineCalibration(n_corners=5, strength=0.02, shrinkage=None).fit(proba, y, weight)
    corners = ours.curves_[0].corners
    odds = np.log(proba[:, 1] / proba[:, 0])
    assert (corners[0], corners[-1]) == pytest.approx((odds.min(), odds.max()))
    from scipy.interpolate import CubicSpline

    fine = np.linspace(corners[0], corners[-1], 4001)
    width = corners[-1] - corners[0]

    line = np.polynomial.polynomial.polyfit

    def loss(values):
        spline = CubicSpline(corners, values, bc_type="natural")
        bend = np.trapezoid((spline(fine, 2) * width**2) ** 2, fine) / width
        said = expit(np.where(y == 1, 1, -1) * spline(odds))
        offset, slope = line(corners, values, 1)
        pull = (slope - 1) ** 2 + offset**2
        return -weight @ np.log(said) + 0.01 * bend + 0.5 * pull

    best = minimize(loss, corners, options={"gtol": 1e-7})
    np.testing.assert_allclose(ours.curves_[0].values, best.x, atol=2e-3)


def test_the_roughness_is_the_integral_of_the_squared_second_derivative():
    corners, values = np.array([-2.0, -1.0, 0.5, 3.0]), np.array([1.0, -1.0, 2.0, 0.0])
    from scipy.interpolate import CubicSpline

    unit = (corners + 2) / 5
    fine = np.linspace(0, 1, 20001)
    by_force = np.trapezoid(CubicSpline(unit, values, bc_type="natural")(fine, 2) ** 2, fine)
    assert values @ roughness(corners) @ values == pytest.approx(by_force, rel=1e-6)
    assert natural_pieces(corners, values)[3].tolist() == values[:-1].tolist()


def test_the_spline_is_straight_where_the_truth_is_and_bends_where_it_bends():
    rng = np.random.default_rng(0)
    odds = rng.normal(0, 2, 3000)
    proba = np.column_stack([expit(-odds), expit(odds)])
    straight = SplineCalibration().fit(proba, (rng.random(3000) < expit(0.6 * odds)).astype(int))
    bent = SplineCalibration().fit(proba, (rng.random(3000) < expit(3 * np.sin(odds))).astype(int))
    assert straight.strength_ > bent.strength_
    true = expit(3 * np.sin(odds))
    assert np.abs(bent.predict_proba(proba)[:, 1] - true).mean() < 0.05


@pytest.fixture(scope="module")
def recommended():
    """The fit and a table for each number of classes."""
    return {
        k: (RecommendedCalibrator().fit(*rows(600, k)), *rows(600, k), *rows(4000, k, seed=9))
        for k in (2, 3)
    }


@pytest.mark.parametrize("k", [2, 3])
def test_the_recommended_is_the_simplest_that_is_as_good_as_the_best(recommended, k):
    ours, *_ = recommended[k]
    assert ours.candidates_ == candidates(k)
    lost = ours.losses_ - ours.losses_.min()
    near = 600 * lost <= 1.0
    better = [loss <= ours.losses_[: at + 1].min() for at, loss in enumerate(ours.losses_)]
    assert ours.chosen_ == ours.candidates_[np.flatnonzero(near & better)[0]]
    assert f"{ours.losses_[ours.candidates_.index(ours.chosen_)]:.4f}" in ours.notes_[0]


@pytest.mark.parametrize("k", [2, 3])
def test_the_recommended_answers_as_the_one_that_it_names(recommended, k):
    ours, proba, y, new, new_y = recommended[k]
    made = calibrator_entry(ours.chosen_).factory()
    np.testing.assert_array_equal(ours.predict_proba(new), made.fit(proba, y).predict_proba(new))
    gain = log_losses(new, new_y).mean() - log_losses(ours.predict_proba(new), new_y).mean()
    assert gain > 0.02


def test_a_few_rows_with_huge_losses_do_not_keep_the_model():
    """Two in a hundred true classes get nothing: the standard error is as large as the loss."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, 150)
    y = (rng.random(150) < p).astype(int)
    p[:3], y[:3] = 0.0, 1
    ours = RecommendedCalibrator().fit(np.column_stack([1 - p, p]), y)
    assert ours.losses_[0] - ours.losses_.min() > 0.2
    assert ours.chosen_ != "uncalibrated"


def test_standard_errors_are_those_of_paired_differences(recommended):
    ours, proba, y, *_ = recommended[3]
    again = RecommendedCalibrator()
    again.n_classes_, again.notes_ = 3, ()
    losses, share = again._held_out_losses(proba, y, np.ones(len(y)))
    away = losses - losses[:, [losses.mean(axis=0).argmin()]]
    np.testing.assert_allclose(ours.losses_, losses.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(ours.errors_, away.std(axis=0) / np.sqrt(len(y)), rtol=1e-9)
    assert share.tolist() == [1 / 600] * 600
    assert ours.rows_ == pytest.approx(600)


def test_a_calibrated_model_stays_as_it_is():
    rng = np.random.default_rng(1)
    p = rng.uniform(0.02, 0.98, 500)
    y = (rng.random(500) < p).astype(int)
    ours = RecommendedCalibrator().fit(np.column_stack([1 - p, p]), y)
    assert ours.chosen_ == "uncalibrated"
    assert ours.notes_[0].startswith("The model as it is was chosen: its log loss is")


def test_the_tolerance_takes_the_best_at_zero_and_the_simplest_at_its_end():
    proba, y = rows(300, 3)
    best = RecommendedCalibrator(tolerance=0.0).fit(proba, y)
    assert best.chosen_ == best.candidates_[int(best.losses_.argmin())]
    assert "No other calibrator among the candidates has a smaller one" in best.notes_[0]
    assert RecommendedCalibrator(tolerance=100.0).fit(proba, y).chosen_ == "uncalibrated"


def test_too_few_rows_get_the_cautious_temperature():
    proba, y = rows(29, 3)
    ours = RecommendedCalibrator().fit(proba, y)
    assert (ours.chosen_, ours.candidates_) == ("sts", ())
    assert "29 rows are too few to judge calibrators" in ours.notes_[0]


def test_a_right_model_of_many_classes_stays_as_it_is():
    """Folds with equal class shares would let an offset of each class seem to gain."""
    chosen = []
    for seed in range(4):
        proba, y = rows(300, 26, seed, sharper=1.0, fault=0.0)
        chosen.append(RecommendedCalibrator().fit(proba, y).chosen_)
    assert chosen.count("uncalibrated") >= 3


def test_few_rows_choose_between_the_model_and_ensemble_temperature():
    odds = np.random.default_rng(2).normal(size=100)
    y = (np.random.default_rng(3).random(100) < expit(odds)).astype(int)
    for factor in (1.0, 3.0):
        p = expit(factor * odds)
        proba = np.column_stack([1 - p, p])
        ours, best = RecommendedCalibrator().fit(proba, y), RecommendedCalibrator(tolerance=0)
        assert ours.candidates_ == ("uncalibrated", "ets")
        lost = 100 * (ours.losses_[1] - ours.losses_[0])
        assert ours.chosen_ == ours.candidates_[int(lost <= 1.0)]
        assert best.fit(proba, y).chosen_ == ours.candidates_[int(lost <= 0.0)]
        assert "Fewer than 200 rows" in ours.notes_[0]
    assert lost < -5.0


@pytest.mark.parametrize(
    "key", ["recommended", "isotonic", "spline", "dirichlet", "svs", "kde_mon2"]
)
def test_equal_rows_of_a_cluster_fit_as_one_row(key):
    proba, y = rows(60, 3, 5, sharper=1.0, fault=0.0)
    many = np.repeat(np.arange(60), 20)
    design = RowDesign(None, Dependence.of("cluster", many))
    new, _ = rows(500, 3, 6)
    one, together, apart = (
        calibrator_entry(key).factory().fit(*given).predict_proba(new)
        for given in (
            (proba, y),
            (proba[many], y[many], design),
            (proba[many], y[many]),
        )
    )
    assert np.abs(together - one).max() < 0.05
    if key != "recommended":  # which may keep the model in all three
        assert np.abs(apart - one).max() > 0.05


def test_clusters_whose_rows_have_nothing_in_common_count_in_full():
    proba, y = rows(2000, 3, 7)
    centres = Dependence.of("cluster", np.arange(2000) % 100)
    assert fit_effect(proba, y, np.ones(2000), centres) < 1.2
