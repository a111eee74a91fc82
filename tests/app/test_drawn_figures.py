"""Figures in the form that a browser draws once: lists, and a layout without a template."""

from __future__ import annotations

import json

import numpy as np
import plotly.graph_objects as go
import plotly.io

from app.shared.drawn_figures import DrawnFigure
from kdcal_core.charts.chart import new_figure, template


def sent(figure: go.Figure) -> dict:
    return json.loads(plotly.io.to_json(DrawnFigure.of(figure), validate=False))


def test_arrays_are_sent_as_lists_of_the_same_numbers() -> None:
    whole = np.arange(6, dtype=np.int64)
    fine = np.arange(6) / 8
    coarse = np.array([[0.1, 0.2], [0.3, np.nan]], dtype=np.float32)
    figure = go.Figure(
        [
            go.Scatter(x=whole, y=fine, customdata=np.column_stack([whole, fine])),
            go.Heatmap(z=coarse),
        ]
    )
    line, heat = sent(figure)["data"]
    assert line["x"] == [0, 1, 2, 3, 4, 5]
    assert line["y"] == fine.tolist()
    assert line["customdata"] == np.column_stack([whole, fine]).tolist()
    assert heat["z"] == [[0.1, 0.2], [0.3, None]]


def test_numbers_are_as_short_as_a_screen_needs_them() -> None:
    exact = [0.0, -0.25, 12_345_678.0, 1e30, 3.3333333333e-25, np.nan]
    figure = go.Figure(go.Scatter(x=np.array([1 / 3, -2e5 / 3, *exact]), y=np.array([np.inf])))
    (line,) = sent(figure)["data"]
    assert line["x"] == [0.3333333, -66666.67, *exact[:-1], None]


def test_the_template_is_said_by_the_layout_itself() -> None:
    figure = new_figure(False, height=300)
    figure.add_bar(y=[1.0], xaxis="x3", yaxis="y2")
    figure.update_layout(
        title={"text": "A", "x": 0.5}, xaxis={"title_text": "score"}, margin={"l": 5}
    )
    layout, said = sent(figure)["layout"], template(False).layout.to_plotly_json()
    assert "template" not in layout
    assert layout["title"] == {**said["title"], "text": "A", "x": 0.5}
    assert layout["margin"] == {**said["margin"], "l": 5}
    assert layout["xaxis"]["title"] == {**said["xaxis"]["title"], "text": "score"}
    assert layout["xaxis"]["gridcolor"] == said["xaxis"]["gridcolor"]
    # axes that only a trace names, without lines that plotly would draw where a layout has colours
    assert layout["xaxis3"] == {**said["xaxis"], "showline": False, "showgrid": False}
    assert layout["yaxis2"] == {**said["yaxis"], "showline": False, "showgrid": True}
    assert layout["legend"] == said["legend"]


def test_grids_are_those_that_plotly_chooses_with_a_template() -> None:
    figure = new_figure(False, height=300)
    figure.add_scatter(y=[1.0, 2.0])
    figure.add_bar(x=[1.0], y=["a"], orientation="h", xaxis="x2", yaxis="y2")
    figure.add_box(y=[1.0, 2.0], xaxis="x3", yaxis="y3")
    figure.add_bar(y=[1.0], xaxis="x4", yaxis="y4")
    figure.update_layout(xaxis4={"showgrid": True, "showline": True})
    layout = sent(figure)["layout"]
    shown = {axis for axis in layout if axis[1:5] == "axis" and layout[axis]["showgrid"]}
    assert shown == {"xaxis", "yaxis", "xaxis2", "yaxis3", "xaxis4", "yaxis4"}
    assert [axis for axis in layout if axis[1:5] == "axis" and layout[axis]["showline"]] == [
        "xaxis4"
    ]


def test_a_figure_of_another_content_has_another_revision() -> None:
    def revision(last: float) -> str:
        return sent(go.Figure(go.Scatter(y=np.array([0.0, last]))))["layout"]["datarevision"]

    assert revision(1.0) == revision(1.0) != revision(2.0)
