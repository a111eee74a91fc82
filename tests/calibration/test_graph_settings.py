"""Prior, fixed floor and distance of a kernel density version, chosen after or with the fit."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

from kdcal_core.calibration import KernelDensityCalibrator, KernelDensityForest, KernelDensityGraph
from kdcal_core.calibration.settings import configured, setting_from_text
from kdcal_core.data import FloatArray
from kdcal_core.errors import InputError

X, Y = load_iris(return_X_y=True)
FIT, NEW = slice(1, None, 2), slice(0, None, 2)
OWN = [0.1, 0.2, 0.7]
FAR = 1000.0 + X[:1]


@cache
def forest() -> RandomForestClassifier:
    return RandomForestClassifier(30, random_state=0).fit(X[NEW], Y[NEW])


def calibrator(settings: dict[str, Any]) -> KernelDensityCalibrator:
    made = configured("kernel_density", settings)
    assert isinstance(made, KernelDensityCalibrator)
    return made.fit(forest().predict_proba(X[FIT]), Y[FIT], X[FIT], model=forest())


def said(one: KernelDensityCalibrator, rows: FloatArray) -> FloatArray:
    return one.predict_proba(forest().predict_proba(rows), rows)


def test_an_own_prior_is_the_answer_far_away_and_bayes_rule_inside() -> None:
    usual, own = calibrator({}), calibrator({"prior": OWN})
    np.testing.assert_allclose(said(own, FAR)[0], OWN, atol=1e-9)
    graph = own.estimator_.graph_
    shares = graph.counts.sum(axis=0) / graph.n
    known = ~usual.estimator_.is_unknown(X[NEW])
    before, after = said(usual, X[NEW])[known], said(own, X[NEW])[known]
    odds = before * np.array(OWN) / shares
    moved = odds / odds.sum(axis=1, keepdims=True)
    # a little of the prior is mixed in near the floor
    assert np.median(np.abs(after - moved)) < 1e-3
    assert np.abs(after - before).max() > 0.01


def test_settings_after_the_fit_are_those_of_a_fit_with_them() -> None:
    fitted = KernelDensityForest(forest(), prior=OWN).fit(X[FIT], Y[FIT]).graph_
    later = KernelDensityForest(forest()).fit(X[FIT], Y[FIT])
    located = later.locate(X)
    graph = later.graph_.with_settings(prior=OWN)
    np.testing.assert_allclose(graph.posterior(located), fitted.posterior(located), atol=1e-12)
    assert graph.log_floor == pytest.approx(fitted.log_floor)
    with pytest.raises(InputError, match="not a distribution"):
        graph.with_settings(prior=[0.5, 0.6, 0.2])
    with pytest.raises(InputError, match="2 values"):
        graph.with_settings(prior=[0.5, 0.5])


@pytest.mark.parametrize("log_floor", [None, -100.0])
def test_at_the_switch_radius_region_and_prior_have_equal_weight(log_floor: float | None) -> None:
    fitted = KernelDensityForest(forest(), inside="ratio").fit(X[FIT], Y[FIT])
    graph: KernelDensityGraph = fitted.graph_
    if log_floor is not None:
        graph = graph.with_settings(log_floor=log_floor)
    located = fitted.locate(X[FIT][:20])
    steps = np.sqrt(graph.variances + graph.added_variance)[located.index]
    x = graph.centres[located.index].copy()
    x[:, 1] += graph.switch_radii[located.index] * steps[:, 1]
    moved = type(located)(x, located.index, located.tied)
    own = graph.posterior(type(located)(graph.centres[located.index], located.index, located.tied))
    far = graph.switch_radii[located.index] > 6.0  # where the centre itself is all the region's
    halfway = 0.5 * (own + graph.prior)
    assert far.any() or log_floor is None
    np.testing.assert_allclose(graph.posterior(moved)[far], halfway[far], atol=1e-6)
    assert np.isposinf(graph.with_settings(log_floor=-np.inf).switch_radii).all()


def test_a_fixed_floor_calls_nothing_unknown_nearby() -> None:
    fixed = calibrator({"log_floor": -1e7})
    assert fixed.estimator_.log_floor_ == -1e7
    assert not fixed.estimator_.is_unknown(X[NEW]).any()
    graph = fixed.estimator_.graph_
    same = calibrator({}).estimator_.graph_.with_settings(log_floor=-1e7)
    assert (graph.gamma, graph.variance_floor) == (same.gamma, same.variance_floor)
    assert said(calibrator({"distance": "auto"}), FAR).shape == (1, 3)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("prior", "0.1, 0.2,0.7", OWN),
        ("prior", "none", None),
        ("log_floor", "-1e7", -1e7),
        ("log_floor", "-1e200", -1e200),
        ("distance", "auto", "auto"),
    ],
)
def test_the_command_line_reads_them(name: str, text: str, value: Any) -> None:
    assert setting_from_text("kernel_density", name, text) == value
    configured("kernel_density", {name: value})


@pytest.mark.parametrize(
    ("name", "text"), [("prior", "a,b"), ("prior", ""), ("log_floor", "3"), ("distance", "far")]
)
def test_other_values_are_refused(name: str, text: str) -> None:
    with pytest.raises(InputError, match=name):
        setting_from_text("kernel_density", name, text)
