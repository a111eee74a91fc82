"""The charts in a notebook: what they compute, draw and say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kdcal_core
from kdcal_core import (
    ConfidenceDisplay,
    InputError,
    MMCDisplay,
    PITDisplay,
    RegionsDisplay,
    ReliabilityDisplay,
)
from kdcal_core.diagnostics import find_regions, reliability, search_finding
from kdcal_core.displays import Display


@pytest.fixture(scope="module")
def held_out():
    """A model that is right but for the rows of group "b", where it is far too sure."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(2000, 2)), columns=["age", "dose"])
    odds = X["age"] + np.where(X["dose"] > 0.8, -2.0, 0.0)
    y = np.where(rng.random(2000) < 1 / (1 + np.exp(-odds)), "sick", "healthy")
    model = LogisticRegression().fit(X[["age", "dose"]].head(200) * [1, 0], y[:200])
    return model, X, y


@pytest.fixture(scope="module")
def displays(held_out) -> list[Display]:
    model, X, y = held_out
    ridge = BayesianRidge().fit(X, X["age"] * 2)
    return [
        ReliabilityDisplay.from_estimator(model, X, y),
        ConfidenceDisplay.from_estimator(model, X, y, predicted="sick"),
        RegionsDisplay.from_estimator(model, X, y),
        PITDisplay.from_estimator(ridge, X, X["age"] * 2 + X["dose"]),
        MMCDisplay.from_estimator(model, X, y, n=20, radii=[0, 1, 2]),
    ]


def test_each_shows_its_chart_in_words_numbers_and_a_figure(displays):
    assert {type(one).__name__ for one in displays} == {
        name for name in kdcal_core.__all__ if name.endswith("Display")
    }
    for one in displays:
        assert repr(one) == f"{type(one).__name__}: {one.finding_}"
        assert len(one.frame()) > 0
        light = one.figure_.layout.template.layout.font.color
        assert one.plot(dark=True) is one
        assert one.figure_.layout.template.layout.font.color != light
        one.plot()


def test_a_notebook_gets_no_button_that_sends_the_figure_away(displays, monkeypatch):
    import plotly.io

    monkeypatch.setattr(plotly.io.renderers, "default", "plotly_mimetype")
    bundle = displays[0]._repr_mimebundle_()
    drawn = bundle["application/vnd.plotly.v1+json"]
    assert drawn["config"]["showSendToCloud"] is False
    assert bundle["text/plain"] == repr(displays[0])


def test_they_compute_what_the_core_computes(held_out, displays):
    model, X, y = held_out
    proba, truth = model.predict_proba(X), (y == "sick").astype(int)
    expected = reliability(proba, truth, kind="class", label=1)
    pd.testing.assert_frame_equal(displays[0].frame(), expected.curves[0].table())
    rows = kdcal_core.ScoredSet(proba, truth, ("healthy", "sick"), digest="", name="calibration")
    found = find_regions(rows, X, target=1)
    assert displays[2].finding_ == search_finding(found)
    assert "dose" in displays[2].finding_
    column = ReliabilityDisplay.from_predictions(y, proba[:, 1])
    pd.testing.assert_frame_equal(column.frame(), expected.curves[0].table())
    first = ReliabilityDisplay.from_predictions(y, proba, event="healthy")
    assert first.result_.curves[0].label == 0


def test_far_from_the_data_the_model_stays_sure(displays):
    curve = displays[4].result_["model"]
    assert curve.mean[2] > curve.mean[1] > displays[4].prior_


def test_columns_that_match_no_classes_are_refused(held_out):
    _, _, y = held_out
    with pytest.raises(InputError, match="3 columns of probabilities for 2 classes"):
        ReliabilityDisplay.from_predictions(y, np.full((len(y), 3), 1 / 3))
    with pytest.raises(InputError, match="no inputs to search"):
        RegionsDisplay.from_predictions(y, np.full(len(y), 0.5))


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_regressor_without_a_spread_is_refused_with_what_is_needed(held_out, wrapped):
    _, X, _ = held_out
    model = make_pipeline(StandardScaler(), LinearRegression()) if wrapped else LinearRegression()
    model.fit(X, X["age"])
    with pytest.raises(InputError, match=r"no standard deviation.*BayesianRidge"):
        PITDisplay.from_estimator(model, X, X["age"])


@pytest.mark.parametrize("display", [ReliabilityDisplay, RegionsDisplay])
def test_pos_label_is_answered_with_event(held_out, display):
    model, X, y = held_out
    with pytest.raises(InputError, match="event='sick'"):
        display.from_estimator(model, X, y, pos_label="sick")


def test_pos_label_is_answered_with_the_predicted_class(held_out):
    model, X, y = held_out
    with pytest.raises(InputError, match="pos_label") as found:
        ConfidenceDisplay.from_estimator(model, X, y, pos_label="sick")
    assert "predicted='sick'" in found.value.fix


def test_confidence_by_given_distances() -> None:
    rng = np.random.default_rng(0)
    distance = rng.uniform(0.0, 3.0, 1000)
    top = 0.95 - 0.15 * distance
    proba = np.column_stack([top, 1.0 - top])
    display = MMCDisplay.from_predictions(proba, distance, ["a"] * 3 + ["b"], groups=10)
    frame = display.frame()
    assert (len(frame), display.prior_) == (10, 0.75)
    np.testing.assert_allclose(frame["mean_max_confidence"], 0.95 - 0.15 * frame["radius"])
    assert "1,000 rows at their own distances" in display.chart_.finding
    assert "sphere" not in display.chart_.how_to_read
    spheres = MMCDisplay.from_predictions(proba, np.repeat([0.5, 2.0], 500), graph=proba).frame()
    assert spheres["radius"].tolist() == [0.5, 2.0] * 2
    for wrong in ([1.0] * 999, [-1.0] * 1000, [np.nan] * 1000):
        with pytest.raises(InputError, match="no number from 0"):
            MMCDisplay.from_predictions(proba, wrong)
