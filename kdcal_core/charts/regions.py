"""Regions of a search, as a tree or as lines, with stated and observed values.

Names are not escaped in the sentences: escape them before they reach a screen.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import Chart, cut, new_figure
from kdcal_core.charts.palette import palette
from kdcal_core.charts.region_tree import RegionMark, region_colour, region_tree_figure
from kdcal_core.charts.reliability import (
    reliability_alt,
    reliability_titles,
    small_multiples,
)
from kdcal_core.diagnostics import (
    Estimate,
    Region,
    RegionSearch,
    ReliabilityCurve,
    estimate_text,
    search_finding,
    value_text,
)
from kdcal_core.text import (
    counted,
    escape_html,
    in_sentence,
    listed,
    number_text,
    p_text,
    share_text,
)

MAX_LINES = 40
_LINE = 26
FAULTS = {
    "none": "within chance",
    "over-confident": "over-confident",
    "under-confident": "under-confident",
    "too low": "predictions too low",
    "too high": "predictions too high",
    "too narrow": "spread too narrow",
    "too wide": "spread too wide",
    "other": "wrong in another way",
}
_SHORT = {"none": "within chance", "other": "wrong shape"}

_MARKS = r"""
**How to read the tree.** Every row starts at the left and follows the branches whose conditions it
meets, to one region. Beside each region are the model's mean stated probability, the observed rate
and the number of rows. Larger marks have more rows. **Red**: over-confident, the event is rarer
than stated. **Blue**: under-confident, the event is more frequent. Stronger colours mean larger
gaps. A hollow region differs by no more than chance explains.
"""
_LINES = r"""
**How to read the chart.** There is one line for each value of the column, or for each range of its
numbers. The vertical tick is the model's mean stated probability, the mark the observed rate with
its interval. **Red**: over-confident, the event is rarer than stated. **Blue**: under-confident,
the event is more frequent. A hollow mark differs from the tick by no more than chance explains. All
rows (500,000 drawn ones if there are a million or more) judge, because no outcome was used to
define the regions; p values are corrected for the number of regions (Holm).
"""
_LINES_OF_PIT = r"""
**How to read the chart.** There is one line for each value of the column, or for each range of its
numbers, with the mean PIT value and its interval. At one half, the tick, predictions are neither
too high nor too low. The colours show the fault, from the location and the spread of the PIT values
(Torres et al., section 2); a hollow mark differs by no more than chance explains. All rows
(500,000 drawn ones if there are a million or more) judge, because no outcome was used to define the
regions; p values are corrected for the number of regions (Holm).
"""
_HALVES = r"""
**Corrected for the search.** A long enough search always finds some region that looks wrong. One
half of the rows (of 500,000 drawn ones if there are a million or more) therefore finds the regions,
and the others, whose outcomes were not used, judge them; p values are corrected for the number of
regions (Holm). If the model is right everywhere, at most 5% of searches colour any
region. The **minimum detectable gap** of a region would be found in four of five searches of this
size; smaller faults may be missed.
"""
_REDRAWN = r"""
**Corrected for the search.** A long enough search always finds some region that looks wrong. This
search grows its tree on all rows, and then repeats this on outcomes drawn from the stated
probabilities, as if the model were right everywhere. Evidence is the squared sum of outcome minus
stated probability over its variance. It is compared with the largest of each of these searches in
two ways: as it is, and less what chance finds with so many conditions. A region is coloured if it
stands out, by the better of the two, more than all but 5% of the searches do; its p value is the
share of them that stand out as much. Intervals are widened to hold for all regions that could be
found (our addition).
"""
_PURPOSES = r"""
**Where it is wrong** grows the tree on outcome minus stated probability, the question of a review
(our addition). **Where classes differ** grows it on the classes, on the training rows if there are
any, as Durfee et al. do (section 5.1, Algorithm 1). **Along a column** uses its values, or ten
ranges of numbers.
"""
_TREE_OF_PIT = r"""
**How to read the tree.** Every row starts at the left and follows the branches whose conditions it
meets, to one region. Larger marks have more rows. The colours show the fault of the predicted
distributions there, from the location and the spread of the PIT values (Torres et al., section 2).
A hollow region differs by no more than chance explains.

One half of the rows (of 500,000 drawn ones if there are a million or more) finds the regions, and
the others judge them; p values are corrected for the number of regions (Holm). If the model is
right everywhere, at most 5% of searches colour any region (our addition).
"""
BESIDE = r"""
On the left are the rows of the picked region, on the right all judged rows, on one scale. At points
on the dashed line, stated and observed agree. Grey boxes contain the points of a calibrated model
in 95% of all samples of that size. A model can be right over all rows and wrong in every region, if
faults of opposite sign cancel (Durfee et al., section 3, give an example).
"""


def regions_chart(
    search: RegionSearch,
    *,
    dark: bool = False,
    picked: int | None = None,
    ranked: bool = True,
    narrow: bool = False,
) -> Chart:
    """The regions of a search as a tree, or as the lines of a column; one region is picked.

    Lines of a column are ordered by :func:`ordered_regions`. A ``narrow`` tree fits a phone.
    """
    if search.tree is not None:
        marks = region_marks(search)
        figure = region_tree_figure(search.tree, marks, dark=dark, picked=picked, narrow=narrow)
    else:
        figure = region_gaps_figure(search, dark=dark, picked=picked, ranked=ranked)
    return Chart(
        figure,
        finding=tree_words(search),
        alt=tree_alt(search),
        how_to_read=_how_to_read(search),
        table=lambda: regions_table(search),
        name="regions",
    )


def region_reliability_chart(
    region: ReliabilityCurve | None,
    everything: ReliabilityCurve,
    number: int,
    *,
    of_class: bool,
    dark: bool = False,
) -> Chart:
    """Region ``number`` beside all judged rows; None if it contains all of them.

    ``of_class`` says whether the probability of one class is judged, not the confidence.
    """
    curves = [replace(everything, label=1)]  # as the second of two small diagrams
    if region is not None:
        curves.insert(0, replace(region, label=0))
    mine = everything if region is None else region
    x_title, y_title = reliability_titles(of_class)
    figure = small_multiples(
        curves, ["This region", "All judged rows"], dark=dark, x_title=x_title, y_title=y_title
    )
    return Chart(
        figure,
        finding="",
        alt=f"This region: {reliability_alt(mine)} All judged rows: {reliability_alt(everything)}",
        how_to_read=BESIDE,
        table=lambda: pd.concat(
            [
                mine.table().assign(rows="region"),
                everything.table().assign(rows="all judged rows"),
            ],
            ignore_index=True,
        ),
        name=f"reliability of region {number}",
        panels=cut(figure, dark),
    )


def region_marks(search: RegionSearch) -> list[RegionMark]:
    """The marks of a search's regions for :func:`region_tree_figure`, in leaf order."""
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
    """The regions with rows, the strongest evidence first as in ``search.faulty``.

    Without ``ranked`` they are in the order of their numbers, so that ranges of a column go from
    low to high.
    """
    judged = [region for region in search.regions if region.n > 0]
    return tuple(sorted(judged, key=evidence_first) if ranked else judged)


def shown_regions(search: RegionSearch, *, ranked: bool = True) -> tuple[Region, ...]:
    """At most 40 regions to draw, in the order of :func:`ordered_regions`."""
    return ordered_regions(search, ranked=ranked)[:MAX_LINES]


def evidence_first(region: Region) -> tuple[float, float]:
    """The sort key of regions: the p value, then the gap, because small p values may all be 0."""
    return region.p_value, -abs(region.gap.value)


def region_gaps_figure(
    search: RegionSearch, *, dark: bool, picked: int | None = None, ranked: bool = True
) -> go.Figure:
    """One line per region: a tick at the stated rate, a mark and interval at the observed one.

    For PIT values the tick is at one half. The first value of a mark's ``customdata`` is the number
    of its region. Lines are ordered by :func:`ordered_regions`.
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


def regions_table(search: RegionSearch) -> pd.DataFrame:
    """The regions for download, with their numbers on the page."""
    return search.table().assign(region=lambda table: table["region"] + 1)


def _how_to_read(search: RegionSearch) -> str:
    """How to read the picture of a search: its tree, or the regions of a column."""
    if search.tree is None:
        return _LINES_OF_PIT if search.regression else _LINES
    if search.regression:
        return _TREE_OF_PIT
    return _MARKS + (_REDRAWN if search.redraws else _HALVES + _PURPOSES)


def region_caption(region: Region, *, regression: bool = False) -> str:
    """The text beside a region in the drawing, with its number.

    Examples
    --------
    >>> from kdcal_core.diagnostics import describe_pit_regions, describe_regions
    >>> from kdcal_core.diagnostics.targets import confidence_target
    >>> one = describe_regions(confidence_target([0.9] * 200, [1] * 130 + [0] * 70), [0] * 200)
    >>> region_caption(one.regions[0])
    '1: says 0.90, rows show 0.65 (200 rows)'
    >>> import numpy as np
    >>> pit = describe_pit_regions(0.25 + np.linspace(0, 0.5, 200), [0] * 200)
    >>> region_caption(pit.regions[0], regression=True)
    '1: too wide, PIT spread −50% (200 rows)'
    """
    number = f"{region.leaf + 1}: "
    if region.n == 0:
        return f"{number}no rows to judge it by"
    rows = counted(region.n, "row")
    stated, seen = _values(region)
    if regression:
        return f"{number}{_SHORT.get(region.fault, region.fault)}, {_tested(region)} ({rows})"
    return f"{number}says {stated}, rows show {seen} ({rows})"


def _tested(region: Region) -> str:
    """The tested quantity of a fault of PIT values."""
    spread = region.spread
    if spread is None or region.fault not in ("too narrow", "too wide"):
        return f"mean PIT {_values(region)[1]}"
    return f"PIT spread {'+' if spread.value > 0 else ''}{value_text(spread)}"


def region_hover(region: Region, *, regression: bool = False) -> tuple[str, ...]:
    """The lines of a region's hover box."""
    words = f"{region.leaf + 1}: {region.words}"
    if region.n == 0:
        return (words, "no rows to judge it by")
    observed = f"{region.observed.label}: {estimate_text(region.observed, chance=False)}"
    stated = () if regression else (f"Stated: {_values(region)[0]}",)
    spread = () if region.spread is None else (f"Spread of PIT: {_spread_text(region.spread)}",)
    return (
        words,
        *stated,
        observed,
        *spread,
        f"{region.n:,} rows ({share_text(region.share)})",
        f"{FAULTS[region.fault]}, corrected p {p_text(region.adjusted_p)}",
    )


def _spread_text(spread: Estimate) -> str:
    return estimate_text(spread, chance=False)


def _values(region: Region) -> tuple[str, str]:
    width = region.observed.high - region.observed.low
    return number_text(region.stated, width), number_text(region.observed.value, width)


def tree_words(search: RegionSearch) -> str:
    """How the regions were found, and which rows judge them."""
    if search.redraws:
        return _redrawn_words(search)
    if search.tree is None:
        how = (
            "The regions follow from the column alone, and are judged on all "
            f"{search.n_judge:,} rows"
        )
    elif search.n_grow:
        how = (
            f"The regions were found on {search.n_grow:,} rows and are judged on the outcomes of "
            f"{search.n_judge:,} others"
        )
    else:
        how = (
            "The regions were found on the training rows and are judged on "
            f"{search.n_judge:,} others"
        )
    if _judged(search) == 1:
        why = "All rows" if search.tree is None else "No split adds enough evidence, so all rows"
        return f"{how}. {why} are one region."
    every = "both" if _judged(search) == 2 else f"all {_judged(search):,}"
    return f"{how}; corrected p values hold for {every} of them together."


def _redrawn_words(search: RegionSearch) -> str:
    how = (
        f"The regions were found on all {search.n_judge:,} rows and are compared with the clearest "
        f"region that each of {search.redraws:,} searches found in outcomes redrawn as the model "
        "states them"
    )
    if _judged(search) == 1:
        return f"{how}. No split adds enough evidence, so all rows are one region."
    return f"{how}; p values hold for the search as a whole."


def tree_alt(search: RegionSearch) -> str:
    """Alternative text of the picture: at most twelve regions, with stated and observed values."""
    if search.tree is None:
        return f"A column's {lines_alt(search, 'region')}"
    return f"A tree of {lines_alt(search, 'region')}"


def lines_alt(search: RegionSearch, noun: str) -> str:
    """At most twelve of the regions, each called ``noun``, with stated and observed values."""
    text = []
    for one in search.regions:
        number, _, says = region_caption(one, regression=search.regression).partition(": ")
        fault = "" if search.regression else f", {FAULTS[one.fault]}"  # its caption has it
        text.append(f"{noun} {number} ({one.words}) {says}{fault}")
    return f"{counted(len(search.regions), noun)}: {listed(text, 12, between=';')}."


def _judged(search: RegionSearch) -> int:
    return sum(region.n > 0 for region in search.regions)


def standing_out_words(search: RegionSearch) -> tuple[str, str]:
    """How many regions stand out beyond chance, and the share of rows in them, for tiles."""
    if search.one_part:
        return "none", "none"
    some = sum(region.n > 0 for region in search.regions)
    share = sum(region.share for region in search.standing_out)
    return f"{len(search.standing_out):,} of {some:,}", f"{share:.0%}"


def regions_words(
    search: RegionSearch, *, event: str | None = None, before_repair: bool = False
) -> str:
    """What a search for regions found, and about what. Untrusted text: it names columns.

    Parameters
    ----------
    event : str, optional
        The class whose probability was searched; untrusted.
    before_repair : bool
        Whether a repair of these regions is shown too.
    """
    about = [] if event is None else [f"probability of {event[:60]}"]
    if before_repair:
        about.append("before the repair")
    words = search_finding(search)
    if not about:
        return words
    lead = ", ".join(about)
    return f"{lead[0].upper()}{lead[1:]}: {in_sentence(words)}"
