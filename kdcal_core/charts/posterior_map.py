"""Posterior heat maps side by side over two axes (papers 000 Fig. 8, 001 Fig. 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kdcal_core.charts.palette import Palette, palette, posterior_scale
from kdcal_core.charts.template import panel, template
from kdcal_core.data.types import FloatArray, IntArray
from kdcal_core.text import escape_html

MAX_POINTS = 2000
_GAP = 0.035  # between panels, as a share of the width
_HEIGHTS = {2: 360, 3: 280}  # of a panel, by the panels in a row; 200 for more
_TOP, _BOTTOM = 64, 84  # around the panels: legend and titles; axis and colour bar
_BAR = 0.3  # of the width
_BETWEEN = 40  # pixels from a row of panels to the next
_STACKED = 262  # height of a panel where there are several rows of them
_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "x", "star", "hexagon")


@dataclass(frozen=True, eq=False)
class PosteriorPanel:
    """One heat map: its title and the posterior of the class shown, (n_y, n_x), 0 to 1."""

    title: str
    posterior: FloatArray


@dataclass(frozen=True, eq=False)
class MapPoints:
    """Rows drawn on the first panel: places (n,), (n,) and classes (n,)."""

    x: FloatArray
    y: FloatArray
    label: IntArray
    classes: tuple[str, ...]


def posterior_map_figure(
    x: FloatArray,
    y: FloatArray,
    panels: Sequence[PosteriorPanel],
    points: MapPoints,
    *,
    class_name: str,
    prior: float,
    x_title: str,
    y_title: str,
    dark: bool,
    equal: bool = False,
    data_box: tuple[float, float, float, float] | None = None,
    columns: int | None = None,
    scale_title: str = "",
) -> go.Figure:
    """The rows, then one heat map a panel, all on the same two axes.

    Parameters
    ----------
    x, y : (n_x,), (n_y,)
        The grid.
    panels : sequence of PosteriorPanel
    points : MapPoints
        At most 2,000 of them are drawn.
    class_name, x_title, y_title : str
        Untrusted text.
    prior : float
        Prior of the class shown: white.
    equal : bool
        One unit is as long on both axes; for axes of one kind, as those of the simulations.
    data_box : (x0, x1, y0, y1), optional
        Where the data lie; beyond it is out of distribution.
    columns : int, optional
        Panels in a row, the first among them the rows'; by default all.
    scale_title : str, optional
        What the colours show, where it is not the probability of one class. Our own text.
    """
    colours = palette(dark)
    n = len(panels) + 1
    names = [panel(at) for at in range(n)]
    aspect = float((y[-1] - y[0]) / (x[-1] - x[0])) if equal else 1.0
    places = list(_places(n, columns or n, aspect))
    figure = go.Figure(layout=_layout(places, x, y, dark, equal))
    figure.add_traces(_points(points, colours, names[0]))
    for at, shown in enumerate(panels):
        figure.add_trace(
            go.Heatmap(
                x=x,
                y=y,
                z=shown.posterior.astype(np.float32),
                zmin=0.0,
                zmax=1.0,
                colorscale=[list(stop) for stop in posterior_scale(colours, prior)],
                showscale=at == len(panels) - 1,
                colorbar=_colour_bar(colours),
                hovertemplate=(
                    f"{escape_html(shown.title)}<br>%{{x:.3g}}, %{{y:.3g}}: %{{z:.1%}}"
                    "<extra></extra>"
                ),
                **names[at + 1],
            )
        )
    figure.add_annotation(_bar_title(scale_title or _probability(class_name), colours))
    for at, title in enumerate(["Rows", *(shown.title for shown in panels)]):
        figure.add_annotation(_title(title, places[at], colours))
    if data_box is not None:
        ink = colours.surface if dark else colours.text  # the maps themselves are light
        for name in names:
            figure.add_shape(_box(data_box, name, colours.muted if name is names[0] else ink))
    for at, name in enumerate(names):
        axis = name["xaxis"].replace("x", "xaxis")
        if places[at].lowest:
            figure.update_layout({axis: {"title_text": escape_html(x_title, limit=24)}})
        if places[at].left == 0:
            axis = name["yaxis"].replace("y", "yaxis")
            figure.update_layout({axis: {"title_text": escape_html(y_title, limit=24)}})
    return figure


@dataclass(frozen=True)
class _Place:
    """Where a panel stands, in shares of the plot, and the layout's height in pixels."""

    left: float
    right: float
    bottom: float
    top: float
    lowest: bool
    height: int


def _places(n: int, columns: int, aspect: float) -> Iterator[_Place]:
    rows = -(-n // columns)
    panel_height = _HEIGHTS.get(columns, 200) if rows == 1 else _STACKED
    panel_height = round(panel_height * min(max(aspect, 0.6), 1.3))
    inside = rows * panel_height + (rows - 1) * _BETWEEN
    gap = _BETWEEN / inside
    width, tall = (1 - _GAP * (columns - 1)) / columns, (1 - gap * (rows - 1)) / rows
    for at in range(n):
        down, across = divmod(at, columns)
        left, top = across * (width + _GAP), 1 - down * (tall + gap)
        bottom = 0.0 if down == rows - 1 else top - tall
        yield _Place(left, left + width, bottom, top, at + columns >= n, inside + _TOP + _BOTTOM)


def _layout(
    places: Sequence[_Place], x: FloatArray, y: FloatArray, dark: bool, equal: bool
) -> dict[str, Any]:
    height = places[0].height
    layout: dict[str, Any] = {
        "template": template(dark),
        "height": height,
        "margin": {"l": 58, "r": 10, "t": _TOP, "b": _BOTTOM},
        "dragmode": "select",
        "legend": {"y": 1 + 28 / (height - _TOP - _BOTTOM)},
    }
    for at, place in enumerate(places):
        name = panel(at)
        x_axis, y_axis = name["xaxis"].replace("x", "xaxis"), name["yaxis"].replace("y", "yaxis")
        layout[x_axis] = {
            "domain": [place.left, place.right],
            "anchor": name["yaxis"],
            "range": [x[0], x[-1]],
            "nticks": 4,
            "showgrid": False,
            "showticklabels": place.lowest,
            "constrain": "domain",
        }
        layout[y_axis] = {
            "domain": [place.bottom, place.top],
            "anchor": name["xaxis"],
            "range": [y[0], y[-1]],
            "nticks": 5,
            "showgrid": False,
            "showticklabels": place.left == 0,
            "constrain": "domain",
            "constraintoward": "top",
        }
        if equal:
            layout[y_axis] |= {"scaleanchor": name["xaxis"], "scaleratio": 1}
        if at:
            layout[x_axis]["matches"], layout[y_axis]["matches"] = "x", "y"
    return layout


def _points(points: MapPoints, colours: Palette, axes: dict[str, str]) -> list[go.Scatter]:
    shown = _sample(points.label)
    traces = []
    for label in np.unique(points.label[shown]):
        mine = shown[points.label[shown] == label]
        traces.append(
            go.Scatter(
                x=points.x[mine],
                y=points.y[mine],
                mode="markers",
                marker={
                    "size": 4,
                    "opacity": 0.7,
                    "color": colours.classes[label % len(colours.classes)],
                    "symbol": _SYMBOLS[(label // len(colours.classes)) % len(_SYMBOLS)],
                },
                name=escape_html(points.classes[label], limit=24),
                hovertemplate="%{x:.3g}, %{y:.3g}<extra>%{fullData.name}</extra>",
                **axes,
            )
        )
    return traces


def _sample(label: IntArray) -> NDArray[np.int64]:
    """At most 2,000 rows, evenly through each class."""
    order = np.argsort(label, kind="stable")
    if order.size <= MAX_POINTS:
        return order
    return order[np.linspace(0, order.size - 1, MAX_POINTS).astype(np.int64)]


def _probability(class_name: str) -> str:
    return f"P({escape_html(class_name, limit=24)})"


def _colour_bar(colours: Palette) -> dict[str, Any]:
    """The scale, lying below the panels so that it takes none of their width."""
    return {
        "orientation": "h",
        "tickvals": [0, 0.25, 0.5, 0.75, 1],
        "tickformat": ".0%",
        "tickfont": {"size": 11, "color": colours.muted},
        "thickness": 9,
        "len": _BAR,
        "x": 1.0,
        "xanchor": "right",
        "xpad": 12,
        "y": 0.0,
        "yref": "container",  # in the plot's own coordinates it would push the panels up
        "yanchor": "bottom",
        "ypad": 2,
        "outlinewidth": 0,
    }


def _bar_title(text: str, colours: Palette) -> dict[str, Any]:
    return {
        "text": text,
        "x": 1 - _BAR,
        "y": 0.0,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "right",
        "yanchor": "middle",
        "yshift": 24 - _BOTTOM,
        "showarrow": False,
        "font": {"size": 12, "color": colours.muted},
    }


def _title(text: str, place: _Place, colours: Palette) -> dict[str, Any]:
    return {
        "text": escape_html(text, limit=36),
        "x": (place.left + place.right) / 2,
        "y": place.top,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "center",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 13, "color": colours.text},
    }


def _box(
    box: tuple[float, float, float, float], axes: dict[str, str], colour: str
) -> dict[str, Any]:
    x0, x1, y0, y1 = box
    return {
        "type": "rect",
        "x0": x0,
        "x1": x1,
        "y0": y0,
        "y1": y1,
        "xref": axes["xaxis"],
        "yref": axes["yaxis"],
        "line": {"color": colour, "width": 1.2, "dash": "3px,3px"},
    }
