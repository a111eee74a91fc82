"""The parts of every chart: the chart object, and the template of its figure.

A figure without its own template uses plotly's global default, which holds placeholder colours in a
process that has imported Streamlit. Every figure therefore starts from :func:`new_figure` or
:func:`new_grid`.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.palette import TRANSPARENT, palette
from kdcal_core.shown import Shown
from kdcal_core.text import escape_html

_PANEL_WIDTH = 206


@dataclass(frozen=True, eq=False)
class Panels:
    """The panels of a figure one by one, for a screen that arranges them by its width.

    Attributes
    ----------
    figures : tuple of plotly.graph_objects.Figure
        One figure per panel, without a legend.
    titles : tuple of str
        Their titles as plain text, which may contain names from files.
    legend : plotly.graph_objects.Figure or None
        The legend of all panels alone.
    axes : str
        What both axes of every panel show, in our own words; empty if the panels say it.
    width : int
        The least width of a panel, in pixels.
    """

    figures: tuple[go.Figure, ...]
    titles: tuple[str, ...]
    legend: go.Figure | None
    axes: str
    width: int = _PANEL_WIDTH


@dataclass(frozen=True, eq=False, repr=False)
class Chart(Shown):
    """A figure and everything that a screen or a report shows with it.

    Every module of `kdcal_core.charts` has functions that make charts from a result, for the light
    or the dark theme.

    Attributes
    ----------
    figure : plotly.graph_objects.Figure
        Names in it are already escaped.
    finding : str
        One sentence with its numbers, empty if a headline already says it. Plain text that may
        contain names from uploaded files, so callers escape it.
    alt : str
        The alternative text. Plain text, like ``finding``.
    how_to_read : str
        Our own Markdown with the paper and the equation, without names from files.
    table : callable
        Returns the data of the figure. It is called only on demand, because it may hold every row.
    name : str
        What the figure shows, in a few words, for file names. Plain text.
    panels : Panels, optional
        The panels of the figure one by one, if it has several that need no common place.

    Examples
    --------
    >>> chart = Chart(
    ...     go.Figure(),
    ...     finding="All 20 predictions are right.",
    ...     alt="A square.",
    ...     how_to_read="**Across**: what the model states.",
    ...     table=lambda: pd.DataFrame({"rows": [20]}),
    ...     name="reliability",
    ... )
    >>> chart.table().to_dict("list")
    {'rows': [20]}
    """

    figure: go.Figure
    finding: str
    alt: str
    how_to_read: str
    table: Callable[[], pd.DataFrame]
    name: str
    panels: Panels | None = None

    def _shown(self) -> Iterator[tuple[str, str]]:
        yield "Chart", self.name
        if self.finding:
            yield "Finding", self.finding
        yield "Picture", self.alt


FONT = "Source Sans, Source Sans Pro, Helvetica Neue, Arial, sans-serif"
LEGEND_BELOW = {"yref": "container", "y": 0.0, "yanchor": "bottom"}
"""Under the axes, so that a laptop's first screen has the picture, and a phone its whole width."""
BUTTONS = 28
"""Pixels at the right of a figure, for plotly's buttons: they would cover marks and legend."""
UNIT_TICKS = (0, 0.2, 0.4, 0.6, 0.8, 1)
STRIP_HEIGHT = 44
PANEL_HEIGHT = 220
WIDE_PANEL_HEIGHT = 270
_COLUMNS = 4  # of a grid, at most
COLUMN_GAP, ROW_GAP = 0.12, 0.2  # as shares of a panel
LEGEND_LINE = 30


_BESIDE = 14  # pixels: the largest letters of a picture beside text


@cache
def template(dark: bool) -> go.layout.Template:
    """The template of the theme: transparent background, light grid, our colour order."""
    colours = palette(dark)
    axis = {
        "gridcolor": colours.grid,
        "linecolor": colours.grid,
        "zeroline": False,
        "ticks": "",
        "automargin": True,
        # as `kdcal_core.text` writes numbers; plotly's own are 1000, 250n and 3M
        "exponentformat": "power",
        "minexponent": 6,
        "separatethousands": True,
        "title": {"font": {"size": 13, "color": colours.muted}, "standoff": 8},
        "tickfont": {"size": 12, "color": colours.muted},
    }
    scale = [list(stop) for stop in colours.sequential]
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": 13, "color": colours.text},
            "title": {
                "font": {"size": 15, "color": colours.text},
                "x": 0.0,
                "xanchor": "left",
                "yref": "container",
                "y": 0.98,
                "yanchor": "top",
            },
            "paper_bgcolor": TRANSPARENT,
            # on this ground, or on white without one, plotly writes a line's name beside its hover
            # box, in the line's colour
            "plot_bgcolor": colours.page if dark else TRANSPARENT,
            # plotly's own ground of these buttons is half black on a figure without one
            "modebar": {
                "orientation": "v",
                "bgcolor": TRANSPARENT,
                "color": colours.muted,
                "activecolor": colours.text,
            },
            "colorway": list(colours.classes),
            "colorscale": {
                "sequential": scale,
                "sequentialminus": scale,
                "diverging": [list(stop) for stop in colours.diverging],
            },
            "xaxis": axis,
            "yaxis": axis,
            "hovermode": "closest",
            "hoverlabel": {
                "bgcolor": colours.surface,
                "bordercolor": colours.grid,
                "font": {"family": FONT, "size": 13, "color": colours.text},
                "align": "left",
            },
            "legend": {
                "orientation": "h",
                "x": 0.0,
                "xanchor": "left",
                "y": 1.02,
                "yanchor": "bottom",
                "font": {"size": 12, "color": colours.text},
                "bgcolor": TRANSPARENT,
            },
            "margin": {"l": 64, "r": BUTTONS, "t": 40, "b": 48},
            "bargap": 0.0,
            "dragmode": "zoom",
        }
    )


def new_figure(dark: bool, *, height: int) -> go.Figure:
    """An empty figure in our look."""
    return go.Figure(layout={"template": template(dark), "height": height})


def unit_axis(figure: go.Figure, which: str, title: str = "", **more: object) -> None:
    """Make axis ``which`` ("xaxis", "yaxis2", ...) run from 0 to 1 with a little room."""
    figure.update_layout(
        {which: {"range": [-0.01, 1.02], "tickvals": UNIT_TICKS, "title_text": title, **more}}
    )


def square(figure: go.Figure, x: str = "x", y: str = "y") -> None:
    """Equal units on both axes at any width: the plot shrinks, but the scales do not change.

    ``x`` and ``y`` are axis references such as "x3". The square is placed at the bottom, close to
    what is below it.
    """
    x_axis, y_axis = x.replace("x", "xaxis"), y.replace("y", "yaxis")
    figure.update_layout(
        {
            x_axis: {"constrain": "domain"},
            y_axis: {
                "scaleanchor": x,
                "scaleratio": 1,
                "constrain": "domain",
                "constraintoward": "bottom",
            },
        }
    )


def beside_text(figure: go.Figure, height: int) -> go.Figure:
    """The figure lowered to ``height``, with smaller words and no legend, to stand beside text.

    It is changed in place.

    Examples
    --------
    >>> low = beside_text(new_figure(False, height=552), 330)
    >>> low.layout.height, low.layout.showlegend
    (330, False)
    """
    figure.update_layout(height=height, showlegend=False, margin={"t": 16, "b": 46, "l": 48})
    figure.update_xaxes(title_font_size=13, tickfont_size=12)
    figure.update_yaxes(title_font_size=13, tickfont_size=12)
    for one in figure.layout.annotations:
        one.font.size = min(one.font.size or _BESIDE, _BESIDE)
    return figure


def new_grid(
    titles: Sequence[str],
    dark: bool,
    *,
    x_title: str = "",
    y_title: str = "",
    strips: bool = False,
) -> go.Figure:
    """Square unit panels, one per title, all on one scale; titles are untrusted and escaped.

    With ``strips`` each panel has a low panel under it, on the same score axis (:func:`strip`).
    A trace with the axes of :func:`panel` is drawn in panel ``at``. The whole layout is set at
    once, because plotly checks it again at every change.
    """
    columns = min(_COLUMNS, max(len(titles), 1))
    rows = max(-(-len(titles) // columns), 1)
    high = PANEL_HEIGHT if columns > 3 else WIDE_PANEL_HEIGHT
    inside = rows * (high + STRIP_HEIGHT * strips)
    layout: dict[str, Any] = {
        "template": template(dark),
        "height": inside + 122,
        "margin": {"l": 62, "t": 64, "b": 58},
        "legend": {"y": 1 + 28 / inside},
        "annotations": [
            edge_title(x_title, dark, name=ACROSS, x=0.5, y=0, yshift=-54, yanchor="bottom"),
            edge_title(
                y_title, dark, name=UP, x=0, y=0.5, xshift=-60, xanchor="left", textangle=-90
            ),
        ],
    }
    gap = ROW_GAP / rows
    tall = (1 - gap * (rows - 1)) / rows
    for at, title in enumerate(titles):
        down, across = divmod(at, columns)
        left, right = (across + COLUMN_GAP / 2) / columns, (across + 1 - COLUMN_GAP / 2) / columns
        top = 1 - down * (tall + gap)
        names, foot = panel(at), STRIP_HEIGHT * strips / inside
        axis = {"range": [-0.03, 1.04], "tickvals": (0, 0.5, 1), "constrain": "domain"}
        layout[names["xaxis"].replace("x", "xaxis")] = {
            **axis,
            "domain": [left, right],
            "showgrid": True,  # bars in a strip would hide it
            "anchor": strip(at, len(titles))["yaxis"] if strips else names["yaxis"],
            "showticklabels": at + columns >= len(titles),
        }
        layout[names["yaxis"].replace("y", "yaxis")] = {
            **axis,
            "domain": [max(top - tall + foot, 0.0), top],
            "anchor": names["xaxis"],
            "scaleanchor": names["xaxis"],
            "scaleratio": 1,
            "showticklabels": across == 0,
        }
        if strips:
            layout[names["yaxis"].replace("y", "yaxis")]["constraintoward"] = "bottom"
            layout[strip(at, len(titles))["yaxis"].replace("y", "yaxis")] = {
                "domain": [max(top - tall, 0.0), max(top - tall + 0.8 * foot, 0.0)],
                "anchor": names["xaxis"],
                "range": [-0.02, 1.02],
                "showticklabels": False,
                "showgrid": False,
            }
        middle = (left + right) / 2
        layout["annotations"].append(
            edge_title(
                escape_html(title, limit=26),
                dark,
                name=names["xaxis"],
                x=middle,
                y=top,
                yanchor="bottom",
            )
        )
    return go.Figure(layout=layout)


ACROSS, UP = "across", "up"


def edge_title(text: str, dark: bool, *, name: str, **place: Any) -> dict[str, Any]:
    """Muted text beside a panel, in paper coordinates.

    ``name`` says what it is the title of, for `cut`: the x axis of a panel, `ACROSS` or `UP`.
    """
    return {
        "text": text,
        "name": name,
        "xref": "paper",
        "yref": "paper",
        "showarrow": False,
        "xanchor": "center",
        "font": {"size": 13, "color": palette(dark).muted},
        **place,
    }


def panel(at: int) -> dict[str, str]:
    """The axes for a trace in the ``at``-th panel of :func:`new_grid`."""
    number = "" if at == 0 else str(at + 1)
    return {"xaxis": f"x{number}", "yaxis": f"y{number}"}


def strip(at: int, n_panels: int) -> dict[str, str]:
    """The axes for a trace in the strip under the ``at``-th of ``n_panels`` panels."""
    return {"xaxis": panel(at)["xaxis"], "yaxis": f"y{n_panels + at + 1}"}


FEW_PANELS = 3
_FEW_SQUARE, _SQUARE = 250, 186  # few panels are larger
_TOP, _BOTTOM = 30, 26


def cut(figure: go.Figure, dark: bool = False) -> Panels:
    """The panels of a figure one by one, and its legend.

    A panel is an x axis with the y axes that are anchored to it. Its title is the annotation with
    the name of the x axis (:func:`edge_title`). All axes must have a range, because axes of
    different figures cannot match.

    Examples
    --------
    >>> figure = new_grid(["one", "two"], False)
    >>> figure = figure.add_scatter(x=[0, 1], y=[0, 1], name="line", **panel(1))
    >>> alone = cut(figure, False)
    >>> alone.titles, len(alone.figures[1].data), alone.figures[1].layout.xaxis.range
    (('one', 'two'), 1, (-0.03, 1.04))
    """
    whole = figure.to_dict()
    layout, traces = whole["layout"], whole["data"]
    said = {one.get("name"): one["text"] for one in layout["annotations"]}
    places = [one.replace("axis", "") for one in layout if one.startswith("xaxis")]
    across, up = (said.get(name, "") for name in (ACROSS, UP))
    few = len(places) <= FEW_PANELS
    return Panels(
        tuple(_panel_alone(traces, layout, x, said.get(x, ""), dark, few) for x in places),
        tuple(html.unescape(said.get(x, "")) for x in places),
        _legend(traces, layout, dark),
        f"Across: {_lowered(across)}. Up: {_lowered(up)}." if across and up else "",
    )


def _panel_alone(
    traces: Sequence[dict[str, Any]],
    layout: dict[str, Any],
    x: str,
    title: str,
    dark: bool,
    few: bool,
) -> go.Figure:
    ys = [
        one.replace("axis", "")
        for one in layout
        if one.startswith("yaxis") and layout[one].get("anchor") == x
    ]
    new = {x: "x"} | {y: f"y{at + 1}" if at else "y" for at, y in enumerate(ys)}
    domains = [layout[_axis(y)]["domain"] for y in ys]
    low, high = min(one[0] for one in domains), max(one[1] for one in domains)
    squared = next((at for at, y in enumerate(ys) if "scaleanchor" in layout[_axis(y)]), 0)
    share = (domains[squared][1] - domains[squared][0]) / (high - low)
    side = _FEW_SQUARE if few else _SQUARE
    axes = {_axis(new[one]): _axis_alone(layout[_axis(one)], new, low, high) for one in (x, *ys)}
    place = {"x": 0.5, "y": 1, "yanchor": "bottom", "yshift": 4}
    words = edge_title(title, dark, name="x", **place)
    return go.Figure(
        [
            {**one, "xaxis": "x", "yaxis": new[one.get("yaxis", "y")]}
            for one in traces
            if one.get("xaxis", "x") == x
        ],
        {
            "template": template(dark),
            "height": round(_TOP + side / share + _BOTTOM),
            "margin": {"l": 28, "r": 6, "t": _TOP, "b": _BOTTOM},
            "annotations": [words | {"font": {"size": 14, "color": palette(dark).text}}],
            "showlegend": False,
            **axes,
        },
    )


def _axis(reference: str) -> str:
    """The axis of a reference in the layout: "y2" is "yaxis2"."""
    return f"{reference[0]}axis{reference[1:]}"


def _axis_alone(
    axis: dict[str, Any], new: dict[str, str], low: float, high: float
) -> dict[str, Any]:
    """The axis in a figure of its own, with the domain of its panel stretched over the figure."""
    moved = {**axis, "showticklabels": "tickvals" in axis}
    moved |= {link: new[axis[link]] for link in ("anchor", "scaleanchor") if link in axis}
    is_x = moved["anchor"].startswith("y")
    moved["domain"] = [0, 1] if is_x else [(at - low) / (high - low) for at in axis["domain"]]
    return moved


def _lowered(title: str) -> str:
    return title[:1].lower() + title[1:]


_LOOKS = ("type", "mode", "line", "marker", "fill", "fillcolor", "name", "legendgroup")


def _legend(
    traces: Sequence[dict[str, Any]], layout: dict[str, Any], dark: bool
) -> go.Figure | None:
    """The legend of these traces, which have no data in it."""
    named = [
        {**{look: one[look] for look in _LOOKS if look in one}, "x": [None], "y": [None]}
        for one in traces
        if one.get("name") and one.get("showlegend") is not False
    ]
    if not named or layout.get("showlegend") is False:
        return None
    hidden = {"visible": False, "fixedrange": True}
    second = sum(one["name"].count("<br>") for one in named)  # lines of names of two
    return go.Figure(
        named,
        {
            "template": template(dark),
            "height": LEGEND_LINE * (len(named) + second) + 8,
            "margin": {"l": 0, "r": 0, "t": 0, "b": 0},
            "legend": {
                "orientation": "v",
                "y": 1,
                "yanchor": "top",
                "itemclick": False,
                "itemdoubleclick": False,
            },
            "showlegend": True,
            "xaxis": hidden,
            "yaxis": hidden,
        },
    )
