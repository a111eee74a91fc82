"""Rows that are pictures, drawn as pictures with what the model says of each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import Chart, Panels, new_figure
from kdcal_core.charts.palette import palette
from kdcal_core.data import FloatArray
from kdcal_core.text import escape_html

HEIGHT, PANEL_HEIGHT, PANEL_WIDTH = 330, 270, 300
ACROSS = 4  # pictures side by side in a panel
TITLES = ("Most sure", "Least sure")
GAP = 0.12  # between pictures, as a share of a picture
CAPTION = 0.34  # under each picture, likewise
PICTURES = """
Each picture is a row of the foreign table, drawn from its pixels: the larger a value, the more it
stands out from the page, on one scale for all pictures. First stand the rows of which the model is
**most sure**, then those of which it is **least sure**. Under each stand the predicted class with
the model's confidence and, where there is a kernel density version, its confidence. A picture that
belongs to no class should have about the confidence of the largest class prior.
"""


def pictures_chart(
    pixels: FloatArray,
    predicted: tuple[str, ...],
    confidence: FloatArray,
    version: FloatArray | None,
    n_surest: int,
    *,
    dark: bool = False,
) -> Chart:
    """A mosaic of rows: the ``n_surest`` first are the most confident, the others the least.

    Parameters
    ----------
    pixels : (m, R, C)
    predicted : tuple of m str
        Untrusted text.
    confidence : (m,)
    version : (m,) or None
        Confidence of the kernel density version.
    """
    said = [
        f"{name[:20]}: {sure:.0%}" + ("" if version is None else f", {version[at]:.0%}")
        for at, (name, sure) in enumerate(zip(predicted, confidence, strict=True))
    ]
    table = pd.DataFrame({"predicted": predicted, "confidence": confidence})
    if version is not None:
        table["kernel_density_confidence"] = version
    they = "the model makes" if version is None else "the model and its kernel density version make"
    return Chart(
        mosaic(pixels, said, [range(n_surest), range(n_surest, len(pixels))], dark=dark),
        finding=f"Under each picture: what {they} of it.",
        alt=_alt(said, n_surest),
        how_to_read=PICTURES,
        table=lambda: table,
        name="foreign pictures",
        panels=_panels(pixels, said, n_surest, dark),
    )


def _panels(pixels: FloatArray, said: list[str], n_surest: int, dark: bool) -> Panels:
    """The surest rows and the others, a few side by side, so that captions fit on a phone."""
    figures = []
    for title, places in zip(TITLES, (range(n_surest), range(n_surest, len(pixels))), strict=True):
        lines = [places[at : at + ACROSS] for at in range(0, len(places), ACROSS)]
        figure = mosaic(pixels, said, lines, dark=dark, height=PANEL_HEIGHT)
        figures.append(figure.update_layout(title_text=title, margin={"t": 30, "r": 0}))
    return Panels(tuple(figures), TITLES, legend=None, axes="", width=PANEL_WIDTH)


def mosaic(
    pixels: FloatArray, said: list[str], lines: Sequence[range], *, dark: bool, height: int = HEIGHT
) -> go.Figure:
    """Pictures (m, R, C) on one scale, each above what is ``said`` of it, in lines of places."""
    colours = palette(dark)
    _, n_rows, n_columns = pixels.shape
    shades = [(0.0, colours.sequential[0][1]), (1.0, colours.sequential[-1][1])]
    low, high = float(pixels.min()), float(pixels.max())
    figure = new_figure(dark, height=height)
    step, drop = 1.0 + GAP, 1.0 + CAPTION
    for line, places in enumerate(lines):
        for at, row in enumerate(places):
            left, top = at * step, -line * drop
            figure.add_trace(
                go.Heatmap(
                    z=np.round((pixels[row] - low) / max(high - low, 1e-12), 2),
                    x0=left + 0.5 / n_columns,
                    dx=1.0 / n_columns,
                    y0=top - 0.5 / n_rows,
                    dy=-1.0 / n_rows,
                    zmin=0.0,
                    zmax=1.0,
                    colorscale=shades,
                    showscale=False,
                    hoverinfo="text",
                    text=np.full((n_rows, n_columns), escape_html(said[row], 60)),
                )
            )
            figure.add_annotation(
                x=left + 0.5,
                y=top - 1.0,
                yanchor="top",
                text=escape_html(said[row], 60),
                showarrow=False,
                font={"size": 12, "color": colours.text},
            )
    across = max(len(places) for places in lines)
    hidden = {"visible": False, "fixedrange": True}
    figure.update_xaxes(**hidden, range=[-GAP, across * step])
    figure.update_yaxes(
        **hidden,
        range=[-drop * len(lines), GAP],
        scaleanchor="x",
        constrain="domain",
        constraintoward="top",
    )
    figure.update_layout(margin={"l": 0, "t": 4, "b": 4}, showlegend=False)
    return figure


def _alt(said: list[str], n_surest: int) -> str:
    return (
        f"Pictures of the rows of which the model is most sure ({'; '.join(said[:n_surest])}) and "
        f"least sure ({'; '.join(said[n_surest:])})."
    )
