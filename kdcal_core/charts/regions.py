"""Regions side by side: a line each with what is stated and what is seen."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from kdcal_core.charts.palette import palette
from kdcal_core.charts.region_tree import RegionMark, region_colour
from kdcal_core.charts.region_words import region_caption, region_hover
from kdcal_core.charts.template import new_figure
from kdcal_core.diagnostics import Region, RegionSearch
from kdcal_core.text import escape_html

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


def ordered_regions(search: RegionSearch, *, ranked: bool = True) -> tuple[Region, ...]:
    """The regions that have rows, the strongest evidence first as in ``search.faulty``.

    Where not ``ranked`` they stand as they are numbered: the stretches of a number from low to
    high.
    """
    judged = [region for region in search.regions if region.n > 0]
    return tuple(sorted(judged, key=evidence_first) if ranked else judged)


def shown_regions(search: RegionSearch, *, ranked: bool = True) -> tuple[Region, ...]:
    """The 40 regions that are drawn at most; as :func:`ordered_regions`."""
    return ordered_regions(search, ranked=ranked)[:MAX_LINES]


def evidence_first(region: Region) -> tuple[float, float]:
    """What regions are sorted by; small p values may all be 0, and then the gap decides."""
    return region.p_value, -abs(region.gap.value)


def region_gaps_figure(
    search: RegionSearch, *, dark: bool, picked: int | None = None, ranked: bool = True
) -> go.Figure:
    """One line a region: a tick at what is stated, a mark at what is seen with its interval.

    For PIT values the tick stands at one half. The marks carry their region's number as the
    first value of ``customdata``. Lines stand as in :func:`ordered_regions`.
    """
    colours = palette(dark)
    regions = shown_regions(search, ranked=ranked)
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
