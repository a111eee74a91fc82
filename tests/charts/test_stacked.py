"""Panels of a kept figure on a narrow screen: each of them whole, and one below the other."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from plotly import graph_objects as go

from kdcal_core.charts import stacked
from kdcal_core.charts.chart import new_figure, new_grid, panel
from kdcal_core.charts.marks import PanelTitle, dot_panels, new_panels


def layout_of(figure: go.Figure) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(figure.to_json())["layout"]
    return found


def rectangles(layout: dict[str, Any]) -> list[tuple[float, ...]]:
    """Left, right, low and top of every panel."""
    found = []
    for x in (one for one in layout if one.startswith("xaxis")):
        ys = [
            one
            for name, one in layout.items()
            if name.startswith("yaxis") and one["anchor"] == x.replace("axis", "")
        ]
        low, top = min(one["domain"][0] for one in ys), max(one["domain"][1] for one in ys)
        found.append((*layout[x]["domain"], low, top))
    return found


@pytest.mark.parametrize(
    ("figure", "columns"),
    [
        (new_panels([PanelTitle(x) for x in "abc"], False, columns=3, height=240, y_title="y"), 1),
        (new_grid(list("abc"), False), 1),
        (new_grid(list("abcdefgh"), False, strips=True), 2),
    ],
)
def test_panels_stand_below_each_other_with_their_titles(figure: go.Figure, columns: int) -> None:
    wide = layout_of(figure)
    layout = {**wide, **stacked(wide)}
    found = rectangles(layout)
    assert len({round(left, 3) for left, *_ in found}) == columns
    assert all(right - left > 0.4 for left, right, *_ in found)
    for at, (left, right, low, top) in enumerate(found):
        assert 0.0 <= low < top <= 1.0
        for other in found[at + 1 :]:
            beside = other[0] >= right or other[1] <= left
            assert beside or other[3] < low or other[2] > top
    titles = [one for one in layout["annotations"] if one.get("name") not in ("across", "up")]
    for title in titles:
        assert any(
            left <= title["x"] <= right and title["y"] == top for left, right, _, top in found
        )
    assert len({(one["x"], one["y"]) for one in titles}) == len(found)
    assert all(layout[one].get("showticklabels", True) for one in layout if one.startswith("xaxis"))
    assert stacked(layout) == {}
    go.Figure(layout=layout)  # plotly takes it


def test_names_at_the_side_have_one_column() -> None:
    figure = dot_panels(["one", "two"], list("abcde"), False)
    layout = {**layout_of(figure), **stacked(layout_of(figure))}
    assert {tuple(one[:2]) for one in rectangles(layout)} == {(0.0, 1.0)}
    assert all(layout[one]["showticklabels"] for one in layout if one.startswith("yaxis"))


def test_one_plot_and_a_strip_below_it_stay_as_they_are() -> None:
    figure = new_figure(False, height=300)
    figure.add_traces([go.Scatter(y=np.arange(3)), go.Scatter(y=np.arange(3), yaxis="y2")])
    figure.update_layout(
        xaxis={"domain": [0, 1]},
        yaxis={"domain": [0.3, 1], "anchor": "x"},
        yaxis2={"domain": [0, 0.2], "anchor": "x"},
    )
    assert stacked(layout_of(figure)) == {}
    assert stacked({}) == {}


def test_what_belongs_to_the_figure_is_not_moved() -> None:
    figure = new_grid(list("abc"), False, x_title="across", y_title="up")
    figure.add_scatter(x=[0, 1], y=[0, 1], **panel(2))
    figure.add_annotation(text="scale", x=0.75, y=0, xref="paper", yref="paper", yshift=-30)
    wide = layout_of(figure)
    for before, after in zip(wide["annotations"], stacked(wide)["annotations"], strict=True):
        assert (before == after) == (before["text"] in ("across", "up", "scale"))
