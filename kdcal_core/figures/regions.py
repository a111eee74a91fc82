"""Regions side by side: stated against observed, the maps that would repair them, their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.data import FloatArray, escape_html
from kdcal_core.diagnostics import Region, RegionSearch
from kdcal_core.figures.palette import faded, palette
from kdcal_core.figures.parts import identity
from kdcal_core.figures.region_tree import RegionMark, region_colour
from kdcal_core.figures.region_words import region_caption, region_hover
from kdcal_core.figures.template import new_figure, square, unit_axis

MAX_LINES = 40
_LINE = 26


def region_marks(search: RegionSearch) -> list[RegionMark]:
    """How the regions of a search are shown in :func:`region_tree_figure`, in leaf order."""
    return [
        RegionMark(
            region_caption(region, regression=search.regression),
            region.fault,
            region.gap.value if region.n else 0.0,
            region_hover(region, regression=search.regression),
        )
        for region in search.regions
    ]


def shown_regions(search: RegionSearch) -> tuple[Region, ...]:
    """The regions that have rows, the strongest evidence first; at most 40."""
    judged = [region for region in search.regions if region.n > 0]
    return tuple(sorted(judged, key=lambda one: (one.p_value, -one.n))[:MAX_LINES])


def region_gaps_figure(search: RegionSearch, *, dark: bool, picked: int | None = None) -> go.Figure:
    """One line a region: a tick at what is stated, a mark at what is seen with its interval.

    For PIT values the tick stands at one half. The marks carry their region's number as the
    first value of ``customdata``.
    """
    colours = palette(dark)
    regions = shown_regions(search)
    where = np.arange(len(regions))
    stated = np.array([region.stated for region in regions])
    seen, low, high = (
        np.array([getattr(region.observed, part) for region in regions])
        for part in ("value", "low", "high")
    )
    figure = new_figure(dark, height=110 + _LINE * len(regions))
    figure.add_trace(
        go.Scatter(
            x=stated,
            y=where,
            mode="markers",
            marker={
                "symbol": "line-ns",
                "size": 15,
                "line": {"color": colours.truth, "width": 2},
            },
            name="One half" if search.regression else "Stated",
            hoverinfo="skip",
        )
    )
    figure.add_trace(
        go.Scatter(
            x=seen,
            y=where,
            mode="markers",
            error_x={
                "type": "data",
                "symmetric": False,
                "array": high - seen,
                "arrayminus": seen - low,
                "color": colours.muted,
                "thickness": 1.4,
                "width": 0,
            },
            marker={
                "size": [13 if one.leaf == picked else 10 for one in regions],
                "color": [region_colour(one.fault, one.gap.value, colours) for one in regions],
                "opacity": 1.0,
                "line": {
                    "color": [
                        colours.truth if one.leaf == picked else colours.muted for one in regions
                    ],
                    "width": [3.0 if one.leaf == picked else 1.2 for one in regions],
                },
            },
            selected={"marker": {"opacity": 1.0}},
            unselected={"marker": {"opacity": 1.0}},
            name="Mean PIT" if search.regression else "Observed, coloured where beyond chance",
            customdata=[
                [
                    one.leaf,
                    "<br>".join(
                        escape_html(line, limit=200)
                        for line in region_hover(one, regression=search.regression)
                    ),
                ]
                for one in regions
            ],
            hovertemplate="%{customdata[1]}<extra></extra>",
        )
    )
    figure.update_layout(
        xaxis={
            "title_text": "Mean PIT" if search.regression else "Stated and observed",
            "nticks": 8,
        },
        yaxis={
            "tickvals": where,
            "ticktext": [escape_html(one.words, limit=34) for one in regions],
            "range": [len(regions) - 0.4, -0.6],
            "showgrid": False,
        },
        dragmode=False,
        clickmode="event+select",
        hovermode="closest",
        margin={"t": 44},
    )
    return figure


@dataclass(frozen=True, eq=False)
class RegionMap:
    """What a region's map makes of a stated probability.

    Attributes
    ----------
    leaf : int
    words : str
        Untrusted.
    slope, offset : float
        Of Platt's map on the log odds.
    low, high : float
        Stated probabilities of the region's rows lie between these.
    n : int
    """

    leaf: int
    words: str
    slope: float
    offset: float
    low: float
    high: float
    n: int

    def curve(self, points: int = 160) -> tuple[FloatArray, FloatArray]:
        """Stated and calibrated probabilities, over the range of the region's rows."""
        low, high = np.clip([self.low, self.high], 1e-6, 1.0 - 1e-6).tolist()
        odds = np.linspace(np.log(low / (1.0 - low)), np.log(high / (1.0 - high)), points)
        stated = 1.0 / (1.0 + np.exp(-odds))
        mapped = 1.0 / (1.0 + np.exp(-(self.slope * odds + self.offset)))
        return stated, mapped


def region_maps_figure(
    maps: Sequence[RegionMap], *, dark: bool, picked: int | None = None
) -> go.Figure:
    """Platt's map of every region on the unit square; the picked one strong, the others pale.

    Each line runs over the stated probabilities that its region holds. A line on the diagonal
    leaves the model as it is; a flat one forgets it.
    """
    colours = palette(dark)
    figure = new_figure(dark, height=430)
    figure.add_trace(identity(colours))
    for one in sorted(maps, key=lambda each: each.leaf == picked):
        stated, mapped = one.curve()
        mine = one.leaf == picked
        figure.add_trace(
            go.Scatter(
                x=stated,
                y=mapped,
                mode="lines",
                line={
                    "color": colours.calibrated if mine else faded(colours.parent, 0.45),
                    "width": 3 if mine else 1.4,
                },
                name="This region" if mine else "Other regions",
                legendgroup="mine" if mine else "others",
                showlegend=mine or one is _first_other(maps, picked),
                hovertemplate=(
                    "%{x:.3f} becomes %{y:.3f}<extra>"
                    f"{escape_html(one.words, limit=60)}</extra>"
                ),
            )
        )
    unit_axis(figure, "xaxis", "Stated probability")
    unit_axis(figure, "yaxis", "Calibrated probability")
    figure.update_layout(margin={"t": 56})
    square(figure)
    return figure


def region_maps_table(maps: Sequence[RegionMap]) -> pd.DataFrame:
    """Slope and offset of every region."""
    return pd.DataFrame([vars(one) for one in maps])


def _first_other(maps: Sequence[RegionMap], picked: int | None) -> RegionMap | None:
    others = [
        one for one in sorted(maps, key=lambda each: each.leaf == picked) if one.leaf != picked
    ]
    return others[0] if others else None
