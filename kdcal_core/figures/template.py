"""The look that every figure shares, set by an explicit plotly template.

A figure without a template of its own takes plotly's global default, and a process that has
imported Streamlit has placeholder colours there; hence every figure starts from
:func:`new_figure` or :func:`new_grid`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from kdcal_core.data import escape_html
from kdcal_core.figures.palette import TRANSPARENT, palette

FONT = "Source Sans, Source Sans Pro, Helvetica Neue, Arial, sans-serif"
UNIT_TICKS = (0, 0.2, 0.4, 0.6, 0.8, 1)
PANEL_HEIGHT = 190
WIDE_PANEL_HEIGHT = 270


@cache
def template(dark: bool) -> go.layout.Template:
    """The template of the mode: transparent ground, quiet grid, our colour order."""
    colours = palette(dark)
    axis = {
        "gridcolor": colours.grid,
        "linecolor": colours.grid,
        "zeroline": False,
        "ticks": "",
        "automargin": True,
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
            "plot_bgcolor": TRANSPARENT,
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
            "margin": {"l": 56, "r": 16, "t": 40, "b": 48},
            "bargap": 0.0,
            "dragmode": "zoom",
        }
    )


def new_figure(dark: bool, *, height: int, title: str | None = None) -> go.Figure:
    """An empty figure in our look. The title is untrusted text and is escaped."""
    figure = go.Figure(layout={"template": template(dark), "height": height})
    if title:
        figure.update_layout(title_text=escape_html(title))
    return figure


def unit_axis(figure: go.Figure, which: str, title: str = "", **more: object) -> None:
    """Make axis ``which`` ("xaxis", "yaxis2", ...) run from 0 to 1 with a hair of room."""
    figure.update_layout(
        {which: {"range": [-0.01, 1.02], "tickvals": UNIT_TICKS, "title_text": title, **more}}
    )


def square(figure: go.Figure, x: str = "x", y: str = "y") -> None:
    """Equal units on both axes at any width: the plot shrinks, the scales stay.

    ``x`` and ``y`` are axis references such as "x3"; the square stays at the bottom so that
    what stands under it stays near.
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


def new_grid(
    titles: Sequence[str], dark: bool, *, columns: int = 5, x_title: str = "", y_title: str = ""
) -> go.Figure:
    """Square unit panels, one a title, all on one scale; titles are untrusted and escaped.

    Panel ``at`` is reached by giving a trace the axes of :func:`panel`.
    """
    columns = min(columns, max(len(titles), 1))
    rows = max(-(-len(titles) // columns), 1)
    inside = rows * (PANEL_HEIGHT if columns > 3 else WIDE_PANEL_HEIGHT)
    cells = [
        [at * columns + across < len(titles) for across in range(columns)] for at in range(rows)
    ]
    figure = make_subplots(
        rows=rows,
        cols=columns,
        specs=[[{} if used else None for used in row] for row in cells],
        subplot_titles=[escape_html(title, limit=24) for title in titles],
        horizontal_spacing=0.12 / columns,
        vertical_spacing=0.26 / rows if rows > 1 else 0.0,
        x_title=x_title,
        y_title=y_title,
    )
    figure.layout.template = template(dark)
    figure.update_layout(
        height=inside + 122,
        margin={"l": 62, "r": 12, "t": 64, "b": 58},
        legend={"y": 1 + 28 / inside},
    )
    figure.update_annotations(font={"size": 13, "color": palette(dark).muted})
    for at in range(len(titles)):
        lowest = at + columns >= len(titles)
        axes = panel(at)
        shared = {"range": [-0.03, 1.04], "tickvals": (0, 0.5, 1), "constrain": "domain"}
        figure.update_layout(
            {
                axes["xaxis"].replace("x", "xaxis"): {**shared, "showticklabels": lowest},
                axes["yaxis"].replace("y", "yaxis"): {
                    **shared,
                    "showticklabels": at % columns == 0,
                    "scaleanchor": axes["xaxis"],
                    "scaleratio": 1,
                },
            }
        )
    return figure


def panel(at: int) -> dict[str, str]:
    """The axes of the ``at``-th panel of :func:`new_grid`, to be given to a trace."""
    number = "" if at == 0 else str(at + 1)
    return {"xaxis": f"x{number}", "yaxis": f"y{number}"}
