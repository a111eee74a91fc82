"""Recalibrators are judged from arrays alone: no review, no file."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.distributions import Normal, RegressionSet
from kdcal_core.errors import InputError
from kdcal_core.evaluation import MODEL, Space, judge_recalibrators, recommended
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


def change(key, value, error):
    """A result whose CRPS differs from the model's by ``value``."""
    low, high = value - 2 * error, value + 2 * error
    estimate = Estimate("CRPS", "CRPS", value, low, high, n=100, level=0.95, interval="normal")
    return SimpleNamespace(key=key, differences={} if key == MODEL else {"crps": estimate})


@pytest.mark.parametrize(
    ("changes", "best"),
    [
        ({"local": -0.3, "where_needed": -0.2, "global": 0.0}, "local"),
        ({"local": -0.2, "where_needed": -0.3, "neighbours": -0.9}, "where_needed"),
        ({"local": 0.02, "where_needed": 0.0, "global": -0.001}, "where_needed"),
        ({"local": 0.02, "global": -0.001}, MODEL),
        ({}, MODEL),
    ],
)
def test_the_method_of_the_least_crps_is_recommended_if_it_gains_beyond_chance(changes, best):
    methods = [change(MODEL, 0.0, 0.0), *(change(key, v, 0.01) for key, v in changes.items())]
    assert recommended(methods) == best
