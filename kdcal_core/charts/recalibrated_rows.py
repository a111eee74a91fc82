"""The effect of recalibration on single rows: intervals, misses and moments, before and after.

Misses are outcomes outside their intervals, on a map (Torres et al., Figs. 3e, 3f). If the truth is
known, true means and standard deviations are compared with the estimates (Fig. 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from kdcal_core.charts.chart import Chart, new_figure, panel, square
from kdcal_core.charts.marks import MAX_MARKS, PanelTitle, hovered, new_panels
from kdcal_core.charts.palette import Palette, faded, method_style, palette
from kdcal_core.data.schema import FloatArray, IntArray
from kdcal_core.data.splits import at_most
from kdcal_core.diagnostics import Misses
from kdcal_core.text import escape_html, figures_text

MAX_ROWS = 40
_ROW_HEIGHT = 30
_APART = 0.18


INTERVALS = r"""
For each chosen row the central interval of the model (slate) and after recalibration (the
method's colour); the tick is the median, the diamond the outcome. A few rows cannot show
coverage: on average over many rows, nineteen of twenty calibrated 95% intervals contain their
outcome.
"""


@dataclass(frozen=True, eq=False)
class RowIntervals:
    """Central intervals of some rows by one method, all (m,).

    ``key`` is "model" or a key of `RECALIBRATORS`; ``label`` is untrusted.
    """

    key: str
    label: str
    low: FloatArray
    middle: FloatArray
    high: FloatArray


def intervals_chart(
    names: Sequence[str],
    outcomes: FloatArray,
    methods: Sequence[RowIntervals],
    *,
    dark: bool = False,
    y_title: str,
    level: float,
    furthest_of: int | None = None,
) -> Chart:
    """Intervals of some rows; with ``furthest_of``, the rows furthest out among so many."""
    if furthest_of is None:
        words = intervals_words(outcomes, methods, level)
    else:
        (first, *_) = methods
        missed = int(((outcomes < first.low) | (outcomes > first.high)).sum())
        words = (
            f"The {len(names):,} rows of {furthest_of:,} whose outcome lies furthest out: "
            f"{missed:,} outside the stated {level:.0%} interval."
        )
    return Chart(
        intervals_figure(names, outcomes, methods, dark=dark, y_title=y_title, level=level),
        finding=words,
        alt=words,
        how_to_read=INTERVALS,
        table=lambda: intervals_table(names, outcomes, methods),
        name="intervals drawn",
    )


def intervals_figure(
    names: Sequence[str],
    outcomes: FloatArray,
    methods: Sequence[RowIntervals],
    *,
    dark: bool,
    y_title: str,
    level: float = 0.95,
) -> go.Figure:
    """One line per row: each method's interval with its median, and the outcome.

    The first 40 rows are drawn. Names and ``y_title``, the outcome's name, are untrusted.
    """
    colours = palette(dark)
    n = min(len(names), MAX_ROWS)
    figure = new_figure(dark, height=124 + _ROW_HEIGHT * max(n, 1))
    places = np.arange(n, dtype=np.float64)
    for at, shown in enumerate(methods):
        colour, _, _ = method_style(shown.key, colours)
        name = escape_html(shown.label, limit=40)
        low, middle, high = shown.low[:n], shown.middle[:n], shown.high[:n]
        inside = (outcomes[:n] >= low) & (outcomes[:n] <= high)
        figure.add_trace(
            go.Scatter(
                x=middle,
                y=places + _APART * (2 * at - len(methods) + 1),
                mode="markers",
                marker={"symbol": "line-ns-open", "size": 9, "color": colour, "line": {"width": 2}},
                error_x={
                    "type": "data",
                    "symmetric": False,
                    "array": high - middle,
                    "arrayminus": middle - low,
                    "color": faded(colour, 0.75),
                    "thickness": 4,
                    "width": 0,
                },
                name=f"{name}, {level:.0%}",
                **hovered(
                    "{} to {}, median {}<br>outcome {}",
                    low,
                    high,
                    middle,
                    ["inside" if hit else "missed" for hit in inside],
                    name=name,
                ),
            )
        )
    figure.add_trace(
        go.Scatter(
            x=outcomes[:n],
            y=places,
            mode="markers",
            marker={"symbol": "diamond", "size": 8, "color": colours.truth},
            name="Outcome",
            **hovered("Outcome {}", outcomes[:n]),
        )
    )
    figure.update_layout(
        xaxis={"title_text": escape_html(y_title, limit=60), "nticks": 8},
        yaxis={
            "tickvals": places,
            "ticktext": [escape_html(name, limit=24) for name in names[:n]],
            "range": [n - 0.5, -0.5],
            "showgrid": False,
        },
        margin={"t": 56},
    )
    return figure


def intervals_table(
    names: Sequence[str],
    outcomes: FloatArray,
    methods: Sequence[RowIntervals],
) -> pd.DataFrame:
    """One table row for each row, with every method's interval."""
    table = pd.DataFrame({"row": list(names), "outcome": outcomes})
    for shown in methods:
        table[f"{shown.label}: low"] = shown.low
        table[f"{shown.label}: median"] = shown.middle
        table[f"{shown.label}: high"] = shown.high
    return table


def intervals_words(
    outcomes: FloatArray, methods: Sequence[RowIntervals], level: float = 0.95
) -> str:
    """How many outcomes of the chosen rows each method's intervals contain, and their width.

    Examples
    --------
    >>> one = RowIntervals("model", "Model", np.zeros(2), np.ones(2), np.full(2, 2.0))
    >>> intervals_words(np.array([1.0, 5.0]), [one])
    'Outcomes of 2 chosen rows inside their 95% intervals: Model 1, mean width 2. A few rows say
     little about coverage; look at all rows.'
    """
    text = "; ".join(
        f"{shown.label} {int(((outcomes >= shown.low) & (outcomes <= shown.high)).sum()):,}, mean "
        f"width {figures_text(float(np.mean(shown.high - shown.low)))}"
        for shown in methods
    )
    return (
        f"Outcomes of {outcomes.size:,} chosen rows inside their {level:.0%} intervals: {text}. "
        "A few rows say little about coverage; look at all rows."
    )


_OTHERS = 10  # marks that are not rows, such as the ends of a line

MISSES = r"""
Every mark is a row at its place on the map. Light red marks are outcomes outside their interval
(Torres et al., Figs. 3e and 3f); the triangle points to the side on which they lie. If intervals
are right **everywhere**, misses are spread evenly over the rows. Clusters of misses, and regions
without any, are local faults even if the total is right. The same rows are drawn on both sides, a
uniform sample if there are too many; the counts above are those of all rows.
"""


def misses_chart(
    xy: FloatArray,
    panels: Sequence[Misses],
    *,
    dark: bool = False,
    x_title: str,
    y_title: str,
    level: float,
    rows: IntArray | None = None,
    narrow: bool = False,
) -> Chart:
    """Hits and misses on a map, before and after; the parameters are those of `misses_figure`."""
    return Chart(
        misses_figure(
            xy,
            panels,
            dark=dark,
            x_title=x_title,
            y_title=y_title,
            level=level,
            rows=rows,
            narrow=narrow,
        ),
        finding=misses_words(panels, level),
        alt=misses_alt(panels, x_title, y_title, level),
        how_to_read=MISSES,
        table=lambda: misses_table(xy, panels, x_title, y_title, rows),
        name="missed outcomes",
    )


def misses_figure(
    xy: FloatArray,
    panels: Sequence[Misses],
    *,
    dark: bool,
    x_title: str,
    y_title: str,
    level: float = 0.95,
    rows: IntArray | None = None,
    narrow: bool = False,
) -> go.Figure:
    """The same rows on the same axes for each panel: hits faint grey, misses light red.

    At most 2,500 marks are sent: a uniform sample of rows, the same in every panel. It does not
    depend on hits and misses, so the shares seen are unbiased. The counts in the titles are those
    of all rows. Triangles point to the side of the outcome.

    Parameters
    ----------
    xy : (m, 2)
        Places of the rows on the map.
    x_title, y_title : str
        Untrusted, like the panels' names.
    level : float
        Level of the intervals.
    rows : (m,) int array, optional
        Indices of these rows among all; by default they are all rows.
    narrow : bool, default=False
        Whether the page is, as a phone's: the panels then stand one below the other.
    """
    colours = palette(dark)
    kept = drawn_rows(len(xy), len(panels))
    titles = [PanelTitle(shown.name, _share_missed(shown, level)) for shown in panels]
    figure = new_panels(
        titles,
        dark,
        columns=1 if narrow else 2,
        height=240,
        x_title=x_title,
        y_title=y_title,
        y_axis={"nticks": 6},
    )
    named: set[str] = set()
    for at, shown in enumerate(panels):
        for trace in _marks(xy, shown, kept, rows, colours, **panel(at)):
            if trace.x.size:
                figure.add_trace(trace.update(showlegend=trace.name not in named))
                named.add(trace.name)
    figure.update_layout(legend={"itemsizing": "constant"})
    n = max((shown.n for shown in panels), default=len(xy))
    if kept.size < n:
        figure.add_annotation(_few(kept.size, n, colours))
    return figure


def drawn_rows(n: int, n_panels: int) -> NDArray[np.int64]:
    """Indices of the rows that are drawn, ascending: all, or a uniform sample of them.

    Examples
    --------
    >>> drawn_rows(3, 2), drawn_rows(1_000_000, 2).size
    (array([0, 1, 2]), 1245)
    """
    return at_most(n, (MAX_MARKS - _OTHERS) // max(n_panels, 1), 0)


def misses_table(
    xy: FloatArray,
    panels: Sequence[Misses],
    x_title: str,
    y_title: str,
    rows: IntArray | None = None,
) -> pd.DataFrame:
    """One table row for each row, from 1: its place, and "hit", "below" or "above" by panel."""
    numbers = (np.arange(len(xy)) if rows is None else rows) + 1
    table = pd.DataFrame({"row": numbers, f"x: {x_title}": xy[:, 0], f"y: {y_title}": xy[:, 1]})
    for shown in panels:
        table[shown.name] = np.where(shown.below, "below", np.where(shown.above, "above", "hit"))
    return table


def _share_missed(shown: Misses, level: float) -> str:
    return f"{shown.missed:,} of {shown.n:,} missed: {shown.share:.1%}, stated {1 - level:.0%}"


def _marks(
    xy: FloatArray,
    shown: Misses,
    kept: NDArray[np.int64],
    rows: IntArray | None,
    colours: Palette,
    **axes: Any,
) -> list[go.Scatter]:
    hits = ~(shown.below | shown.above)
    looks = (
        ("Inside the interval", hits, "circle", faded(colours.muted, 0.22), 4.0),
        ("Outcome above the interval", shown.above, "triangle-up", colours.miss, 7.5),
        ("Outcome below the interval", shown.below, "triangle-down", colours.miss, 7.5),
    )
    traces = []
    for name, mask, symbol, colour, size in looks:
        mine = kept[mask[kept]]
        traces.append(
            go.Scatter(
                x=xy[mine, 0],
                y=xy[mine, 1],
                mode="markers",
                marker={"symbol": symbol, "color": colour, "size": size, "line": {"width": 0}},
                name=name,
                legendgroup=name,
                customdata=(mine if rows is None else rows[mine]) + 1,
                hovertemplate=f"Row %{{customdata:,}}<extra>{name}</extra>",
                **axes,
            )
        )
    return traces


def _few(kept: int, n: int, colours: Palette) -> dict[str, Any]:
    return {
        "text": f"{kept:,} of {n:,} rows are drawn, the same in both panels",
        "x": 1,
        "y": 0,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "right",
        "yanchor": "top",
        "yshift": -38,
        "showarrow": False,
        "font": {"size": 12, "color": colours.muted},
    }


def misses_words(panels: Sequence[Misses], level: float = 0.95) -> str:
    """How many outcomes are outside their intervals before and after, and on which side."""
    text = "; ".join(f"{shown.name} {_missed(shown)}" for shown in panels)
    return f"Outcomes outside their {level:.0%} intervals: {text}. {1 - level:.0%} are expected."


def _missed(shown: Misses) -> str:
    return (
        f"{shown.missed:,} of {shown.n:,} ({shown.share:.1%}), {shown.n_above:,} above and "
        f"{shown.n_below:,} below"
    )


def misses_alt(panels: Sequence[Misses], x_title: str, y_title: str, level: float = 0.95) -> str:
    """Alternative text of the maps of misses."""
    return f"Maps of hits and misses over {x_title} and {y_title}. {misses_words(panels, level)}"


TRUTH = r"""
Each mark is a row, with its true mean or standard deviation on the horizontal axis and the estimate
on the vertical axis (Torres et al., Fig. 2). Correct estimates lie on the dashed diagonal. A global
repair changes all rows in the same way; a local one can change each row. The chart is shown only if
the truth is known, as in simulations.
"""


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and standard deviation of each row's distribution, both (n,).

    ``key`` is "truth", "model" or a key of `RECALIBRATORS`; ``label`` is untrusted. ``std`` is
    None if it is not known, for example if a table gives only the true mean.
    """

    key: str
    label: str
    mean: FloatArray
    std: FloatArray | None = None


def truth_chart(
    truth: Moments,
    estimates: Sequence[Moments],
    distances: Sequence[float],
    *,
    dark: bool = False,
    rows: IntArray | None = None,
) -> Chart:
    """True against estimated moments.

    ``distances`` are the root mean squared distances of the estimated means from the true ones.
    """
    labels = [one.label for one in estimates]
    words = truth_words(list(zip(labels, distances, strict=True)))
    return Chart(
        truth_figure(truth, estimates, dark=dark, rows=rows),
        finding=words,
        alt=words,
        how_to_read=TRUTH,
        table=lambda: truth_table(truth, estimates, rows),
        name="true means",
    )


def truth_figure(
    truth: Moments,
    estimates: Sequence[Moments],
    *,
    dark: bool,
    rows: IntArray | None = None,
) -> go.Figure:
    """Two squares, mean and standard deviation: correct estimates lie on the dashed diagonal.

    At most 2,500 marks: a uniform sample of rows, the same for every method.

    Parameters
    ----------
    rows : (m,) int array, optional
        Indices of these rows among all; by default they are all rows.
    narrow : bool, default=False
        Whether the page is, as a phone's: the panels then stand one below the other.
    """
    colours = palette(dark)
    quantities = ["mean"] + (["std"] if truth.std is not None else [])
    kept = drawn_rows(len(truth.mean), len(quantities) * max(len(estimates), 1))
    numbers = kept if rows is None else rows[kept]
    titles = [PanelTitle({"mean": "Mean", "std": "Standard deviation"}[key]) for key in quantities]
    figure = new_panels(
        titles, dark, columns=2, height=280, x_title="True", y_title="Estimated", shared=""
    )
    for at, quantity in enumerate(quantities):
        axes = panel(at)
        exact = np.asarray(getattr(truth, quantity))[kept]
        figure.add_trace(_diagonal(exact, colours, first=at == 0, **axes))
        for place, shown in enumerate(estimates):
            values = getattr(shown, quantity)
            if values is not None:
                trace = _points(exact, values[kept], numbers, shown, colours, first=at == 0, **axes)
                # larger below smaller, so that equal estimates do not hide each other
                trace.marker.size = 2.5 + 2 * (len(estimates) - place)
                figure.add_trace(trace)
        square(figure, axes["xaxis"], axes["yaxis"])
    # close to the titles, which are above, however narrow the page is
    figure.update_yaxes(constraintoward="top")
    figure.update_xaxes(nticks=5)
    figure.update_layout(legend={"itemsizing": "constant"})
    return figure


def truth_table(
    truth: Moments, estimates: Sequence[Moments], rows: IntArray | None = None
) -> pd.DataFrame:
    """One table row for each row, from 1, with the true and every estimated moment."""
    numbers = (np.arange(len(truth.mean)) if rows is None else rows) + 1
    table = pd.DataFrame({"row": numbers})
    for shown in (truth, *estimates):
        table[f"{shown.label}: mean"] = shown.mean
        if shown.std is not None:
            table[f"{shown.label}: std"] = shown.std
    return table


def _points(
    exact: FloatArray,
    values: FloatArray,
    rows: Any,
    shown: Moments,
    colours: Palette,
    *,
    first: bool,
    **axes: Any,
) -> go.Scatter:
    colour, _, symbol = method_style(shown.key, colours)
    name = escape_html(shown.label, limit=40)
    return go.Scatter(
        x=exact,
        y=values,
        mode="markers",
        marker={"color": faded(colour, 0.4), "symbol": symbol},
        name=name,
        legendgroup=name,
        showlegend=first,
        **hovered("Row {:,.0f}: true {}, estimated {}", rows + 1, exact, values, name=name),
        **axes,
    )


def _diagonal(exact: FloatArray, colours: Palette, *, first: bool, **axes: Any) -> go.Scatter:
    ends = [float(exact.min()), float(exact.max())] if exact.size else [0.0, 1.0]
    return go.Scatter(
        x=ends,
        y=ends,
        mode="lines",
        line={"color": colours.truth, "width": 1.2, "dash": "4px,4px"},
        name="Estimate equals truth",
        legendgroup="right",
        showlegend=first,
        hoverinfo="skip",
        **axes,
    )


def truth_words(distances: Sequence[tuple[str, float]]) -> str:
    """Root mean squared distance of each method's mean from the true mean.

    Examples
    --------
    >>> truth_words([("Model", 2**0.5)])
    'Root mean squared distance from the true mean: Model 1.414.'
    """
    text = ", ".join(f"{label} {figures_text(distance)}" for label, distance in distances)
    return f"Root mean squared distance from the true mean: {text}."
