"""Figures drawn once, and shared without being changed."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import plotly.io
import pytest

from app.shared import charts
from app.shared.charts import dragged, drawn_once
from kdcal_core.charts import Chart
from kdcal_core.charts.reliability import reliability_figure
from kdcal_core.diagnostics import reliability

TIMES: list[tuple[object, ...]] = []


def picture(values: np.ndarray, *, dark: bool) -> go.Figure:
    TIMES.append((values.sum(), dark))
    return go.Figure(go.Scatter(y=values), layout={"height": 300 if dark else 200})


def chart(values: np.ndarray, *, dark: bool) -> Chart:
    return Chart(picture(values, dark=dark), "Up.", "A line.", "Read it.", pd.DataFrame, "line")


def named(found: dict[str, Sequence[object]], *, dark: bool) -> go.Figure:
    return go.Figure(go.Bar(x=found["x"], y=found["y"][1]))


@pytest.fixture(autouse=True)
def nothing_drawn() -> None:
    charts._drawn.clear()
    TIMES.clear()


def test_equal_results_are_drawn_once_and_others_again() -> None:
    values = np.arange(200_000.0)
    first = drawn_once(picture, values, dark=False)
    assert drawn_once(picture, values.copy(), dark=False) is first
    assert len(TIMES) == 1
    values[123_456] += 1.0  # Streamlit's own digest of a large array would miss it
    assert drawn_once(picture, values, dark=False) is not first
    assert drawn_once(picture, values, dark=True).layout.height == 300
    assert len(TIMES) == 3


def test_a_copy_from_a_cache_is_not_drawn_again() -> None:
    name, values = "a name of a column", np.arange(3.0)
    computed = {"x": [name, name], "y": (values, values)}  # one object in two places
    first = drawn_once(named, computed, dark=False)
    copied = {"x": [name, "".join(list(name))], "y": (values, values.copy())}
    assert drawn_once(named, copied, dark=False) is first
    copied["y"][1][0] = 1.0
    assert drawn_once(named, copied, dark=False) is not first


def test_what_is_sent_is_what_was_drawn() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(size=500)
    found = reliability(np.column_stack([1 - p, p]), (rng.random(500) < p).astype(int))
    plain = reliability_figure(found.curves[0], dark=False)
    kept = drawn_once(reliability_figure, found.curves[0], dark=False)
    first, again = (json.loads(plotly.io.to_json(kept, validate=False)) for _ in range(2))
    assert first == again
    assert first["layout"]["datarevision"]
    for sent, trace in zip(go.Figure(first).data, plain.data, strict=True):
        assert sent.to_plotly_json().keys() == trace.to_plotly_json().keys()
        for name in ("x", "y", "name", "customdata", "text"):
            assert_equal_or_missing(sent[name], trace[name])


def assert_equal_or_missing(sent: object, drawn: object) -> None:
    """The same values to seven digits, where JSON has null for what is no number."""
    assert np.array_equal(pd.isna(np.array(sent)), pd.isna(np.array(drawn)))
    there = ~pd.isna(np.array(sent))
    shown, wanted = np.array(sent)[there], np.array(drawn)[there]
    if wanted.dtype.kind in "fO":
        np.testing.assert_allclose(shown.astype(float), wanted.astype(float), rtol=5e-7, atol=0.0)
    else:
        np.testing.assert_array_equal(shown, wanted)


def test_the_browser_draws_a_figure_again_only_if_it_is_another() -> None:
    revisions = []
    for last in (1.0, 1.0, 2.0):
        charts._drawn.clear()
        figure = drawn_once(picture, np.array([0.0, last]), dark=False)
        revisions.append(figure.to_dict()["layout"]["datarevision"])
    assert revisions[0] == revisions[1] != revisions[2]


def test_a_mode_of_dragging_does_not_change_the_shared_figure() -> None:
    values = np.arange(3.0)
    plain = drawn_once(picture, values, dark=False)
    boxes = drawn_once(dragged, chart, "select", values, dark=False)
    assert boxes.figure.to_dict()["layout"]["dragmode"] == "select"
    assert (boxes.finding, boxes.name) == ("Up.", "line")
    assert "dragmode" not in plain.to_dict()["layout"]


def test_a_chart_is_drawn_once_with_the_words_of_its_content() -> None:
    first = drawn_once(chart, np.arange(3.0), dark=False)
    assert drawn_once(chart, np.arange(3.0), dark=False) is first
    assert first.figure.to_dict() is first.figure.to_dict()
    assert drawn_once(chart, np.arange(3.0), dark=True) is not first
    assert len(TIMES) == 2
