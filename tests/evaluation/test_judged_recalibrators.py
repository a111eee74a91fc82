"""Recalibrators are judged from arrays alone: no review, no file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kdcal_core.distributions import Normal, Quantiles, RegressionSet
from kdcal_core.errors import InputError
from kdcal_core.evaluation import MODEL, Space, judge_recalibrators
from kdcal_core.regression import RECALIBRATORS, cross_fitted

rng = np.random.default_rng(0)
X = rng.uniform(size=(300, 1))
ROWS = RegressionSet(Normal(np.zeros(300), 1.0), X[:, 0] + rng.normal(size=300), "", "calibration")
SPACE = Space("x", X, None)


def test_cross_fitted_answers_are_those_of_the_recalibrator_cross_fitted() -> None:
    found = judge_recalibrators(["local"], ROWS, None, SPACE, settings={"k": 60}, folds=4, seed=2)
    expected = cross_fitted(
        lambda: RECALIBRATORS["local"].make(k=60, seed=2),
        ROWS.distribution,
        ROWS.y,
        X,
        folds=4,
        seed=2,
    )
    assert found.judge == "cross-fitted"
    np.testing.assert_allclose(found.answers["local"].mean, expected.mean(), rtol=1e-9)
    difference = found.answers["local"].crps.mean() - found.answers[MODEL].crps.mean()
    assert found.methods[1].differences["crps"].value == pytest.approx(difference)


def test_the_evaluation_set_is_judged_by_one_fit() -> None:
    fresh = RegressionSet(ROWS.distribution[:100], ROWS.y[:100], "", "evaluation")
    found = judge_recalibrators(["global"], ROWS, fresh, replace(SPACE, evaluation=X[:100]))
    fitted = RECALIBRATORS["global"].make().fit(ROWS.distribution, ROWS.y)
    assert found.judge == "evaluation"
    np.testing.assert_allclose(
        found.answers["global"].mean, fitted.predict(fresh.distribution).mean()
    )


def test_what_cannot_be_fitted_is_left_out_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def fit(self, *_: object) -> Broken:
            raise ZeroDivisionError("nothing to divide by")

    broken = replace(RECALIBRATORS["global"], make=Broken, settings=())
    monkeypatch.setitem(RECALIBRATORS, "global", broken)
    found = judge_recalibrators(["global", "isotonic"], ROWS, None, SPACE)
    assert [one.key for one in found.methods] == [MODEL, "isotonic"]
    assert found.failed == {"global": "It cannot be fitted on these rows: nothing to divide by."}


def test_one_row_shows_the_model_and_why_the_others_are_left_out() -> None:
    one = RegressionSet(ROWS.distribution[:1], ROWS.y[:1], "", "calibration")
    found = judge_recalibrators(["local", "global"], one, None, Space("x", X[:1], None))
    assert [method.key for method in found.methods] == [MODEL]
    assert not any("density" in note for note in found.methods[0].notes)
    assert list(found.failed) == ["local", "global"]
    assert all("cannot be divided" in why for why in found.failed.values())


def test_intervals_that_the_model_does_not_state_are_said_to_end_in_added_tails() -> None:
    stated = Quantiles([0.05, 0.5, 0.95], np.tile([-1.6, 0.0, 1.6], (len(ROWS.y), 1)))
    rows = RegressionSet(stated, ROWS.y, "", "calibration")
    found = judge_recalibrators(["global"], rows, None, SPACE)
    (note,) = found.methods[0].notes
    assert "state central intervals up to 90%" in note
    assert "normal tails that kdcal adds" in note
    assert not judge_recalibrators(["global"], ROWS, None, SPACE).methods[0].notes


def test_every_array_is_kept_before_the_next_fit() -> None:
    kept: list[int] = []

    def keep(values: np.ndarray) -> np.ndarray:
        kept.append(len(values))
        return values

    judge_recalibrators(["global"], ROWS, None, SPACE, keep=keep)
    assert kept == [300] * 14


def test_an_unknown_recalibrator_is_refused() -> None:
    with pytest.raises(InputError, match="no method 'magic'"):
        judge_recalibrators(["magic"], ROWS, None, SPACE)


def judged(y, keys, inputs, weight=None):
    """Recalibrators of a model that always says 0 +- 1, judged by cross-fitting."""
    n = len(y)
    rows = RegressionSet(Normal(np.zeros(n), 1.0), y, "", "calibration", weight=weight)
    space = Space("prediction", np.zeros((n, 1)), None)
    given = Space("inputs", inputs, None)
    return judge_recalibrators(keys, rows, None, space, inputs=given, folds=3)


def test_the_simplest_repair_is_recommended_with_its_reason() -> None:
    y = np.random.default_rng(1).normal(0.0, 1.0, 300)
    x = np.random.default_rng(2).normal(size=(300, 1))
    right = judged(y, ["global", "isotonic"], x).choice
    assert (right.key, right.better, right.better_by) == (MODEL, None, None)
    assert right.reason.startswith("The model as it is was chosen")
    wrong = judged(y + 2, ["global", "isotonic"], x).choice
    assert wrong.key == "isotonic"  # as good as global, and simpler
    assert "on 300 held-out rows" in wrong.reason


def test_a_second_model_that_beats_every_repair_is_named_with_its_gain() -> None:
    x = np.random.default_rng(3).normal(size=(300, 1))
    y = 3 * x[:, 0] + np.random.default_rng(4).normal(0.0, 0.5, 300)
    found = judged(y, ["isotonic", "boosting"], x)
    assert found.choice.key == "isotonic"
    assert found.choice.better == "boosting"
    best, second = (found.answers[key].crps for key in ("isotonic", "boosting"))
    assert found.choice.better_by is not None
    assert found.choice.better_by.value == pytest.approx((second - best).mean())
    noise = np.random.default_rng(5).normal(size=(300, 1))
    assert judged(y, ["isotonic", "boosting"], noise).choice.better is None


def test_the_recommended_recalibrator_is_the_recommendation() -> None:
    keys = ["isotonic", "recommended"]
    y = np.random.default_rng(6).normal(2.0, 1.0, 60)
    found = judged(y, keys, np.zeros((60, 1)))
    assert found.choice.key == "recommended"
    assert found.choice.reason.startswith("In the first of 3 folds: ")
    assert found.choice.reason in found.methods[2].notes
