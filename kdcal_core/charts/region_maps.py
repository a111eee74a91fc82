"""Platt's map of each region: what becomes of a stated probability, as lines on the unit square."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.calibration.regions import RegionMap
from kdcal_core.calibration.regions.region_map import CURVE_POINTS
from kdcal_core.charts.palette import faded, palette
from kdcal_core.charts.parts import identity
from kdcal_core.charts.template import new_figure, square, unit_axis
from kdcal_core.text import escape_html


def region_maps_figure(
    maps: Sequence[RegionMap], *, dark: bool, picked: int | None = None
) -> go.Figure:
    """Platt's map of every region on the unit square; the picked one strong, the others pale.

    Each line runs over the stated probabilities that its region holds. A line on the diagonal
    leaves the model as it is; a flat one forgets it.
    """
    colours = palette(dark)
    figure = new_figure(dark, height=400)
    figure.add_trace(identity(colours))
    others = [one for one in maps if one.leaf != picked]
    if others:
        line = {"color": faded(colours.model, 0.45), "width": 1.4}
        figure.add_trace(_lines(others, "Other regions", line))
    if len(others) < len(maps):
        mine = [one for one in maps if one.leaf == picked]
        figure.add_trace(_lines(mine, "This region", {"color": colours.calibrated, "width": 3}))
    unit_axis(figure, "xaxis", "Stated probability")
    unit_axis(figure, "yaxis", "Calibrated probability")
    figure.update_layout(margin={"t": 56})
    square(figure)
    return figure


def region_maps_table(maps: Sequence[RegionMap]) -> pd.DataFrame:
    """Slope and offset of every region."""
    return pd.DataFrame([vars(one) for one in maps])


def _lines(maps: Sequence[RegionMap], name: str, line: dict[str, object]) -> go.Scatter:
    """Several maps as one trace, with a gap between them: a trace each is slow to make."""
    curves = [one.curve() for one in maps]
    names = [f"{one.leaf + 1}: {escape_html(one.words, limit=40)}" for one in maps]
    gap = np.array([np.nan])
    return go.Scatter(
        x=np.concatenate([part for stated, _ in curves for part in (stated, gap)]),
        y=np.concatenate([part for _, mapped in curves for part in (mapped, gap)]),
        text=np.repeat(names, CURVE_POINTS + 1),
        mode="lines",
        line=line,
        name=name,
        hovertemplate="%{x:.3f} becomes %{y:.3f}<extra>%{text}</extra>",
    )
