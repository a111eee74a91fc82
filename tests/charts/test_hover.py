"""Numbers under the pointer: one minus sign, powers of ten as on the axes, few decimals."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from charts.hover_numbers import faults

from kdcal_core.charts.chart import new_figure
from kdcal_core.charts.marks import hovered
from kdcal_core.text import MINUS


@pytest.mark.parametrize(
    ("marks", "fault"),
    [
        ({"hovertemplate": "%{y:.3f}<extra></extra>"}, "y in the format .3f is negative"),
        ({"hovertemplate": "%{x:.3g}"}, "the format .3g of x"),
        ({"hovertemplate": "%{x:+.1%}"}, "the format +.1% of x"),
        ({"hovertemplate": "%{x:.6f}"}, "the format .6f of x"),
        ({"hovertemplate": "%{text}", "text": ["-0.5", "0"]}, "a hyphen in -0.5"),
        ({"hovertemplate": "%{hovertext}", "hovertext": ["1e-07", ""]}, "an e in 1e-07"),
        ({"hovertemplate": "%{customdata[1]}", "customdata": [["", "(-1"]] * 2}, "a hyphen in (-1"),
        ({"hovertemplate": "%{customdata}", "customdata": [0.123, 2]}, "0.123 without a format"),
        ({"hovertemplate": "Floor 0.123456<extra></extra>"}, "many decimals in Floor 0.123456"),
    ],
)
def test_a_number_in_another_way_is_found(marks: dict[str, Any], fault: str) -> None:
    figure = go.Figure(go.Scatter(x=[0.5, 1.0], y=[0.5, -1.0], **marks))
    assert fault in next(iter(faults(figure)), "")


def test_numbers_in_the_house_s_way_are_not() -> None:
    marks = hovered("{}: {:+.3f}, {}", [1e-7, 14546.2], [-0.5, 0.5], ["class-1", "2-3"], name="A-1")
    figure = go.Figure(go.Scatter(x=[0.5, 1.0], y=[-0.5, 1.0], **marks))
    figure.add_scatter(x=[0.5], y=[-0.5], hovertemplate="%{x:.1%} %{x:,.0f} %{y}<extra>n-1</extra>")
    assert list(faults(figure)) == []
    assert figure.data[0].hovertext == (f"1 × 10⁻⁷: {MINUS}0.500, class-1", "14,546: +0.500, 2-3")


def test_a_column_too_short_is_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        hovered("{} {}", np.zeros(3), np.zeros(2))


def test_axes_write_numbers_in_the_same_way() -> None:
    template = new_figure(False, height=100).layout.template.layout
    for axis in (template.xaxis, template.yaxis):
        assert (axis.exponentformat, axis.minexponent) == ("power", 6)
        assert axis.separatethousands
