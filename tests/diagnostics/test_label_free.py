"""Estimates without labels: against brute force and scikit-learn, coverage, and refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from kdcal_core.diagnostics import label_free, label_free_performance
from kdcal_core.diagnostics.label_free import _areas, _expected_area
from kdcal_core.diagnostics.score_weights import batched_logistic, feature_ratios
from kdcal_core.errors import InputError


def over(score: np.ndarray) -> np.ndarray:
    return expit(0.7 * logit(np.clip(score, 1e-9, 1 - 1e-9)))


def tables(rng, n: int, m: int):
    old, new = rng.beta(1, 2, n), rng.beta(2, 2, m)
    return old, (rng.random(n) < over(old)).astype(int), new, rng.random(m) < over(new)


def test_the_expected_area_is_that_of_all_pairs() -> None:
    rng = np.random.default_rng(0)
    score, chance = rng.choice([0.1, 0.4, 0.6, 0.9], 30), rng.random(30)
    won = pairs = 0.0
    for i in range(30):
        for j in range(30):
            if i != j:
                both = chance[i] * (1 - chance[j])
                pairs += both
                won += both * ((score[i] > score[j]) + 0.5 * (score[i] == score[j]))
    assert _expected_area(score, chance) == pytest.approx(won / pairs, rel=1e-9)


def test_areas_of_cells_are_those_of_rows() -> None:
    hit, miss = np.array([[1.0, 0.0, 2.0]]), np.array([[2.0, 1.0, 1.0]])
    # hits at cells 0, 2, 2; misses at 0, 0, 1, 2
    won = (0.5 * 2) + 2 * (3 + 0.5)
    assert _areas(hit, miss)[0] == pytest.approx(won / 12)
    assert np.isnan(_areas(hit, 0 * miss)[0])


def test_logistic_fits_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(1)
    columns = rng.normal(size=(40, 2))
    yes, no = rng.random((2, 3, 40))
    found = batched_logistic(columns, yes, no)
    for row, a, b in zip(found, yes, no, strict=True):
        model = LogisticRegression(C=np.inf, tol=1e-10).fit(
            np.tile(columns, (2, 1)), np.repeat([1, 0], 40), np.concatenate([a, b])
        )
        np.testing.assert_allclose(row, [*model.coef_[0], model.intercept_[0]], atol=1e-4)


@pytest.mark.parametrize("weighting", ["nothing", "scores"])
def test_intervals_contain_what_the_labels_say(weighting) -> None:
    rng = np.random.default_rng(2)
    inside = np.zeros(2)
    for run in range(8):
        old, hit, new, happened = tables(rng, 400, 200)
        found = label_free(old, hit, new, weighting=weighting, n_draws=100, seed=run)
        area = _areas(
            *(
                np.bincount(np.argsort(np.argsort(new)), s)[None]
                for s in (happened.astype(float), 1.0 - happened)
            )
        )[0]
        rate, curve = found.rate.rows, found.auc.rows
        inside += [rate.low <= happened.mean() <= rate.high, curve.low <= area <= curve.high]
        assert found.rate.reference.value == hit.mean()
    assert (inside >= 6).all()


def test_the_reference_value_is_wrong_where_the_estimate_is_right() -> None:
    rng = np.random.default_rng(3)
    old, hit, new, _ = tables(rng, 4000, 4000)
    found = label_free(old, hit, new, n_draws=50)
    truth = float(over(new).mean())
    assert abs(found.rate.rows.value - truth) < 0.03
    assert abs(found.rate.reference.value - truth) > 0.08
    assert found.calibration_error.low <= found.calibration_error.value


def test_the_calibration_error_is_that_of_rows_like_the_new_ones() -> None:
    """A model that is wrong only above 0.5, where few reference rows and most new ones lie."""
    rng = np.random.default_rng(7)

    def chance(score: np.ndarray) -> np.ndarray:
        return np.where(score > 0.5, score - 0.2, score)

    many = rng.beta(4, 2, 200_000)
    truth = 0.2 * float((many > 0.5).mean())  # each bin lies on one side, but for the middle one
    inside = np.zeros(2)
    for run in range(8):
        old, new = rng.beta(2, 4, 1500), rng.beta(4, 2, 600)
        found = label_free(old, rng.random(1500) < chance(old), new, n_draws=10, seed=run)
        error, before = found.calibration_error, found.reference_error
        inside += [error.low <= truth <= error.high, before.low <= truth <= before.high]
        assert before.value < 0.1 < error.value
    assert inside[0] >= 7
    assert inside[1] == 0


def test_features_correct_what_scores_cannot_see() -> None:
    rng = np.random.default_rng(4)
    x = rng.integers(0, 2, 3000)
    hit = (rng.random(3000) < np.where(x == 1, 0.8, 0.2)).astype(int)
    score = np.full(3000, 0.5)  # a model that does not use x
    new_x = (rng.random(1500) < 0.9).astype(int)
    old, new = (pd.DataFrame({"x": one, "word": "same"}) for one in (x, new_x))
    by_score = label_free(score, hit, score[:1500], n_draws=50)
    by_x = label_free(score, hit, score[:1500], features=old, new_features=new, n_draws=50)
    assert by_x.weighted_by == "features"
    assert abs(by_x.rate.rows.value - 0.74) < 0.04
    assert abs(by_score.rate.rows.value - 0.74) > 0.15
    assert by_x.effective_rows < by_score.effective_rows
    assert "P(y|x)" in by_x.assumptions[0]


def test_equal_tables_have_ratios_near_one() -> None:
    rng = np.random.default_rng(5)
    found = feature_ratios(rng.normal(size=(400, 3)), rng.normal(size=(200, 3)), 0)
    assert np.abs(np.log(found.reference)).mean() < 0.15


@pytest.mark.parametrize(("shared", "digits"), [(200, 9), (150, 2)])
def test_rows_that_are_in_both_tables_are_as_frequent_in_both(shared: int, digits: int) -> None:
    """A copy in the fit would say that a row is of the other table, as in a table that grows."""
    rng = np.random.default_rng(6)
    old = rng.normal(size=(400, 3)).round(digits)
    new = np.concatenate([old[:shared], rng.normal(size=(200 - shared, 3)).round(digits)])
    found = feature_ratios(old, new, 0)
    assert np.abs(np.log(found.reference)).mean() < 0.3
    assert np.abs(np.log(found.new)).mean() < 0.3


def test_uncovered_rows_give_no_estimate() -> None:
    rng = np.random.default_rng(6)
    old = rng.uniform(0.0, 0.4, 500)
    found = label_free(old, (rng.random(500) < old).astype(int), rng.uniform(0.6, 1.0, 200))
    assert not found.covered
    assert np.isnan(found.rate.rows.value)
    assert np.isnan(found.calibration_error.value)
    assert "not given" in found.rate.rows.interval
    assert found.cautions
    assert found.outside.value == 1.0


def test_a_model_that_was_never_wrong_does_not_look_certain() -> None:
    found = label_free(np.full(60, 0.99), np.ones(60, int), np.full(500, 0.99))
    assert found.rate.population.low < 0.97


def test_accuracy_and_event_of_a_classifier() -> None:
    rng = np.random.default_rng(7)
    p = rng.dirichlet([1, 1, 1], 900)
    y = (p.cumsum(axis=1)[:, :-1] < rng.random((900, 1))).sum(axis=1)
    three = label_free_performance(p[:500], y[:500], p[500:], n_draws=50)
    assert three.event is None
    assert three.predictions.rate.rows.label == "Accuracy"
    one = label_free_performance(p[:500], y[:500], p[500:], event=2, n_draws=50).event
    assert one is not None
    assert one.rate.rows.low <= (y[500:] == 2).mean() <= one.rate.rows.high
    first, again = (label_free(p[:500, 0], y[:500] == 0, p[500:, 0], n_draws=30) for _ in range(2))
    assert first.rate == again.rate


def test_settings_are_checked() -> None:
    score, hit = np.linspace(0.1, 0.9, 50), np.arange(50) % 2
    for wrong in (
        {"features": np.zeros((50, 1))},
        {"weighting": "features"},
        {"weighting": "magic"},
        {"level": 1.0},
        {"n_draws": 0},
    ):
        with pytest.raises(InputError):
            label_free(score, hit, score, **wrong)
    with pytest.raises(InputError):
        label_free(score, hit, score, features=np.zeros((20, 1)), new_features=np.zeros((50, 1)))
