"""Panels and marks that several figures share.

Panels are side by side. Their axes are not shares (histograms, maps, densities, measures), or they
have one line per method, with a dot for its value and a bar for its interval. Marks are the
identity, steps, thin data drawn thin, and curves with bands: confidence against distance, and loss
against the kernel's exponent.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kdcal_core.charts.chart import BUTTONS, new_figure, panel, template
from kdcal_core.charts.palette import Palette, faded, method_style, palette
from kdcal_core.data.schema import FloatArray
from kdcal_core.diagnostics import Estimate, HistogramAnchor
from kdcal_core.text import escape_html, figures_text, formatted

MAX_MARKS = 2500
_TOP, _BOTTOM = 92, 58  # legend and the first titles; axis and its title
_TITLE = 46  # pixels between rows of panels for two lines of title
_TICKS = 26


@dataclass(frozen=True)
class PanelTitle:
    """The title of a panel: a name, possibly from a file, and our own text below it."""

    name: str
    words: str = ""
    colour: str | None = None


def new_panels(
    titles: Sequence[PanelTitle],
    dark: bool,
    *,
    columns: int,
    height: int,
    x_title: str = "",
    y_title: str = "",
    x_axis: dict[str, Any] | None = None,
    y_axis: dict[str, Any] | None = None,
    shared: str = "xy",
) -> go.Figure:
    """Empty panels in our template, ``columns`` in a row; :func:`panel` gives a trace its axes.

    Parameters
    ----------
    height : int
        Height of one panel, in pixels.
    x_title, y_title : str
        Untrusted text, below the lowest panels and beside the first of each row.
    x_axis, y_axis : dict, optional
        Settings of every panel's axes.
    shared : {"xy", "x", "y", ""}
        Axes shared by all panels; only the outer ones then have tick labels.

    Examples
    --------
    >>> figure = new_panels([PanelTitle("All"), PanelTitle("Some")], False, columns=2, height=200)
    >>> figure.layout.xaxis2.anchor, figure.layout.yaxis2.matches
    ('y2', 'y')
    """
    columns = min(columns, max(len(titles), 1))
    rows = max(-(-len(titles) // columns), 1)
    between = _TITLE + (0 if "x" in shared else _TICKS)
    inside = rows * height + (rows - 1) * between
    across_gap = (0.035 if "y" in shared else 0.09) * min(1.0, 3 / columns)
    width = (1 - across_gap * (columns - 1)) / columns
    layout: dict[str, Any] = {
        "template": template(dark),
        "height": inside + _TOP + _BOTTOM,
        "margin": {"l": 62, "t": _TOP, "b": _BOTTOM},
        "legend": {"y": 1 + 46 / inside},
        "annotations": [],
    }
    for at, title in enumerate(titles):
        down, across = divmod(at, columns)
        left, top = across * (width + across_gap), 1 - down * (height + between) / inside
        names = panel(at)
        lowest = at + columns >= len(titles)
        bottom = max(top - height / inside, 0.0)
        layout[names["xaxis"].replace("x", "xaxis")] = {
            "domain": [left, min(left + width, 1.0)],
            "anchor": names["yaxis"],
            "showticklabels": lowest or "x" not in shared,
            "title_text": escape_html(x_title, limit=60) if lowest else "",
            **({"matches": "x"} if at and "x" in shared else {}),
            **(x_axis or {}),
        }
        layout[names["yaxis"].replace("y", "yaxis")] = {
            "domain": [bottom, top],
            "anchor": names["xaxis"],
            "showticklabels": across == 0 or "y" not in shared,
            "title_text": escape_html(y_title, limit=60) if across == 0 else "",
            **({"matches": "y"} if at and "y" in shared else {}),
            **(y_axis or {}),
        }
        layout["annotations"].append(_title(title, left + width / 2, top, dark))
    return go.Figure(layout=layout)


def _title(title: PanelTitle, x: float, y: float, dark: bool) -> dict[str, Any]:
    colours = palette(dark)
    second = ""
    if title.words:
        ink = title.colour or colours.muted
        second = f'<br><span style="font-size:12px;color:{ink}">{title.words}</span>'
    return {
        "text": escape_html(title.name, limit=44) + second,
        "x": x,
        "y": y,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "center",
        "yanchor": "bottom",
        "yshift": 2,
        "showarrow": False,
        "font": {"size": 13, "color": colours.text},
    }


COLUMNS = 4
BESIDE_TITLES = BUTTONS + 16
"""Pixels at the right of axes whose numbers and titles, which are wider, are at the top."""
_LINE_HEIGHT, _DOT_TITLE = 26, 52
_DOT_TOP, _DOT_BOTTOM = 58, 12
_GAP = 0.045
TITLE_LETTERS, TITLE_LINE = 80, 17  # in one line over all columns; pixels of a further line


def dot_panels(
    names: Sequence[str], titles: Sequence[str], dark: bool, *, narrow: bool = False
) -> go.Figure:
    """Empty panels, one per title; the first panel of each row has the names of the lines.

    On a ``narrow`` page, a phone's, they stand one below the other.

    ``names`` are untrusted and escaped. A trace is drawn in panel ``at`` with the axes of
    :func:`kdcal_core.charts.chart.panel`; line ``i`` lies at y = i. A title that a narrow page
    would cut has two lines.
    """
    columns = 1 if narrow else min(COLUMNS, max(len(titles), 1))
    rows = max(-(-len(titles) // columns), 1)
    height = _LINE_HEIGHT * len(names) + 10
    titles = [in_two_lines(title, TITLE_LETTERS // columns) for title in titles]
    further = TITLE_LINE * max((title.count("<br>") for title in titles), default=0)
    between = _DOT_TITLE + further
    inside = rows * height + (rows - 1) * between
    width = (1 - _GAP * (columns - 1)) / columns
    layout: dict[str, Any] = {
        "template": template(dark),
        "height": inside + _DOT_TOP + further + _DOT_BOTTOM,
        "margin": {"l": 8, "r": BESIDE_TITLES, "t": _DOT_TOP + further, "b": _DOT_BOTTOM},
        "showlegend": False,
    }
    shown = [escape_html(name, limit=32) for name in names]
    for at, title in enumerate(titles):
        down, across = divmod(at, columns)
        left, top = across * (width + _GAP), 1 - down * (height + between) / inside
        axes = panel(at)
        layout[axes["xaxis"].replace("x", "xaxis")] = {
            "domain": [left, min(left + width, 1.0)],
            "anchor": axes["yaxis"],
            "side": "top",
            "title_text": title,
            "nticks": 4,
        }
        layout[axes["yaxis"].replace("y", "yaxis")] = {
            "domain": [max(top - height / inside, 0.0), top],
            "anchor": axes["xaxis"],
            "tickvals": np.arange(len(names)),
            "ticktext": shown,
            "range": [len(names) - 0.5, -0.5],
            "showticklabels": across == 0,
            "showgrid": False,
        }
    return go.Figure(layout=layout)


def in_two_lines(title: str, letters: int) -> str:
    """A title or a name in two lines of like length if it has more letters than these.

    Examples
    --------
    >>> in_two_lines("ECE", 20), in_two_lines("ECE, debiased (l1, 15 equal-width bins)", 20)
    ('ECE', 'ECE, debiased (l1, 15<br>equal-width bins)')
    """
    if len(title) <= letters:
        return title
    lines = textwrap.wrap(title, max(letters, len(title) // 2 + 3), break_long_words=False)
    return "<br>".join([lines[0], *([" ".join(lines[1:])] if lines[1:] else [])])


def strokes(estimates: Sequence[Estimate], colours: Palette) -> dict[str, Any]:
    """Intervals as plotly's ``error_x``; an end that is not finite is not drawn."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [_reach(one.high - one.value) for one in estimates],
        "arrayminus": [_reach(one.value - one.low) for one in estimates],
        "color": colours.muted,
        "thickness": 1.4,
        "width": 0,
    }


def band(figure: go.Figure, one: Estimate | None, colour: str, axes: dict[str, str]) -> None:
    """An interval through all lines of a panel, for comparison."""
    if one is None or not np.isfinite([one.low, one.high]).all():
        return
    figure.add_shape(
        type="rect",
        xref=axes["xaxis"],
        yref=f"{axes['yaxis']} domain",
        x0=one.low,
        x1=one.high,
        y0=0,
        y1=1,
        fillcolor=faded(colour, 0.16),
        line={"width": 0},
        layer="below",
    )


def mark(
    figure: go.Figure, value: float, colour: str, axes: dict[str, str], dash: str = "4px,4px"
) -> None:
    """A line through all lines of a panel."""
    figure.add_shape(
        type="line",
        xref=axes["xaxis"],
        yref=f"{axes['yaxis']} domain",
        x0=value,
        x1=value,
        y0=0,
        y1=1,
        line={"color": colour, "width": 1, "dash": dash},
        layer="below",
    )


def _reach(length: float) -> float:
    return max(length, 0.0) if np.isfinite(length) else 0.0


# (fewest rows, line width, opacity): marks from few rows are thin, and as pale as can still be seen
TIERS = ((100, 2.2, 1.0), (20, 1.5, 0.9), (1, 0.9, 0.8))


def tiers(count: NDArray[Any]) -> Iterator[tuple[NDArray[np.bool_], float, float]]:
    """The bins of each non-empty tier, most rows first: mask, line width, opacity."""
    above = np.inf
    for fewest, width, opacity in TIERS:
        inside = (count >= fewest) & (count < above)
        above = fewest
        if inside.any():
            yield inside, width, opacity


def identity(colours: Palette, **axes: Any) -> go.Scatter:
    """The diagonal of perfect calibration."""
    return go.Scatter(
        x=[0, 1],
        y=[0, 1],
        mode="lines",
        line={"color": colours.truth, "width": 1, "dash": "4px,4px"},
        name="Perfect calibration",
        legendgroup="identity",
        hoverinfo="skip",
        **axes,
    )


def boxes(
    left: FloatArray, right: FloatArray, low: FloatArray, high: FloatArray, colour: str, **more: Any
) -> go.Scatter:
    """One filled rectangle per bin, in a single trace; bins with NaN are left out."""
    known = np.isfinite(low) & np.isfinite(high)
    left, right, low, high = left[known], right[known], low[known], high[known]
    gap = np.full(left.shape, np.nan)
    x = np.column_stack([left, right, right, left, left, gap]).ravel()
    y = np.column_stack([low, low, high, high, low, gap]).ravel()
    return go.Scatter(
        x=x,
        y=y,
        mode="lines",
        fill="toself",
        fillcolor=colour,
        line={"width": 0},
        hoverinfo="skip",
        **more,
    )


def ribbon(
    x: FloatArray, low: FloatArray, high: FloatArray, colour: str, **more: Any
) -> go.Scatter:
    """A filled band between two curves."""
    return go.Scatter(
        x=np.concatenate([x, x[::-1]]),
        y=np.concatenate([high, low[::-1]]),
        mode="lines",
        fill="toself",
        fillcolor=colour,
        line={"width": 0},
        hoverinfo="skip",
        **more,
    )


def segments(
    left: FloatArray, right: FloatArray, height: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """x and y of one horizontal stroke per bin, with gaps between the strokes."""
    gap = np.full(np.shape(left), np.nan)
    x = np.column_stack([left, right, gap]).ravel()
    y = np.column_stack([height, height, gap]).ravel()
    return x, y


def anchor_traces(
    anchor: HistogramAnchor,
    colours: Palette,
    *,
    intervals: bool = True,
    legend: bool = True,
    **axes: Any,
) -> list[go.Scatter]:
    """The histogram under a smooth curve: dashed strokes, with intervals as pale boxes.

    The lowest bar is dotted, because a kernel density says little below the first rows (Salamon et
    al., section XIII.D).
    """
    left, right = anchor.edges[:-1], anchor.edges[1:]
    traces = []
    if intervals:
        traces.append(
            boxes(
                left,
                right,
                anchor.low,
                anchor.high,
                faded(colours.truth, 0.07),
                name="Its intervals",
                legendgroup="anchor",
                showlegend=False,
                **axes,
            )
        )
    filled = np.flatnonzero(anchor.count > 0)
    rest = np.isin(np.arange(left.size), filled[1:])
    for inside, width, opacity in tiers(np.where(rest, anchor.count, 0)):
        traces.append(_anchor_strokes(anchor, inside, colours, width, opacity, "6px,3px", axes))
    if filled.size:
        lowest = np.arange(left.size) == filled[0]
        traces.append(_anchor_strokes(anchor, lowest, colours, 1.2, 0.8, "2px,3px", axes))
        traces[-1 if filled.size == 1 else int(intervals)].showlegend = legend
    return traces


def _anchor_strokes(
    anchor: HistogramAnchor,
    inside: NDArray[np.bool_],
    colours: Palette,
    width: float,
    opacity: float,
    dash: str,
    axes: dict[str, Any],
) -> go.Scatter:
    left, right = anchor.edges[:-1][inside], anchor.edges[1:][inside]
    x, y = segments(left, right, anchor.confidence[inside])
    facts = np.column_stack(
        [left, right, anchor.low[inside], anchor.high[inside], anchor.count[inside]]
    )
    return go.Scatter(
        x=x,
        y=y,
        mode="lines",
        line={"color": faded(colours.truth, opacity), "width": width, "dash": dash},
        name="Histogram",
        legendgroup="anchor",
        showlegend=False,
        customdata=np.repeat(facts, 3, axis=0),
        hovertemplate=(
            "Scores %{customdata[0]:.2f} to %{customdata[1]:.2f}<br>"
            "right %{y:.1%} (%{customdata[2]:.1%} to %{customdata[3]:.1%})<br>"
            "%{customdata[4]:,.0f} rows<extra>Histogram</extra>"
        ),
        **axes,
    )


class _Shown(float):
    """A number whose text is the house's, in any of Python's formats, or to four figures."""

    def __format__(self, form: str) -> str:
        return formatted(float(self), form) if form else figures_text(float(self))


def hovered(form: str, *columns: Iterable[Any], name: str = "") -> dict[str, Any]:
    """What every mark of a trace shows under the pointer, as arguments of the trace.

    Plotly writes a hyphen and "1e-7" where a template formats a number. Numbers that may be
    negative, very small or very large are therefore written here. Shares and counts may stay in a
    template.

    Parameters
    ----------
    form : str
        The text of a mark, with one field of `str.format` for each column. A field without a
        format has four figures. Names from files in it are escaped.
    columns : iterables
        Numbers or texts, one for each mark.
    name : str
        Beside the text: our own words, or an escaped name.

    Examples
    --------
    >>> hovered("at {:.1%}: {:+.3f}", [0.25], [-0.012], name="Model")
    {'hovertext': ['at 25.0%: −0.012'], 'hovertemplate': '%{hovertext}<extra>Model</extra>'}
    >>> hovered("Row {:,.0f}: {}", [1204], [-2.5e-7])["hovertext"]
    ['Row 1,204: −2.5 × 10⁻⁷']
    """
    shown = (
        (one if isinstance(one, str) else _Shown(one) for one in row)
        for row in zip(*columns, strict=True)
    )
    return {
        "hovertext": [form.format(*row) for row in shown],
        "hovertemplate": f"%{{hovertext}}<extra>{name}</extra>",
    }


@dataclass(frozen=True, eq=False)
class BandLine:
    """A curve and its band, ready to plot.

    Attributes
    ----------
    key : str
        Of `method_style`; it sets colour, dash and symbol.
    label : str
        Name in the legend; our own text.
    x, middle, low, high : (R,)
        Places, the curve, and its band.
    filled : bool
        Whether the band is drawn; otherwise it only shows on hover.
    """

    key: str
    label: str
    x: FloatArray
    middle: FloatArray
    low: FloatArray
    high: FloatArray
    filled: bool = True


def distance_figure(
    lines: Sequence[BandLine],
    prior: float,
    *,
    dark: bool,
    band_words: str = "middle 80%",
) -> go.Figure:
    """Mean max confidence against distance from the data (Dey et al., Fig. 3; Fig. 1 of the earlier
    version).

    ``x`` is the distance from the centre in units of the data's largest norm, so the data end at 1.
    ``prior`` is the largest class prior, to which confidence should fall.
    """
    colours = palette(dark)
    figure = new_figure(dark, height=330)
    figure.add_traces(band_lines(lines, colours, "Distance {:,.3g}", "confidence", band_words))
    last = max((float(line.x[-1]) for line in lines if line.x.size), default=1.0)
    figure.add_trace(
        go.Scatter(
            x=[0, last],
            y=[prior, prior],
            mode="lines",
            line={"color": colours.truth, "width": 1, "dash": "4px,4px"},
            name=f"Prior {prior:.0%}",
            hoverinfo="skip",
        )
    )
    figure.add_vrect(
        x0=0, x1=1.0, fillcolor=faded(colours.muted, 0.09), line_width=0, layer="below"
    )
    figure.add_annotation(
        x=1.0,
        y=1.0,
        yref="paper",
        text="data end here",
        showarrow=False,
        xanchor="left",
        yanchor="top",
        xshift=6,
        font={"size": 12, "color": colours.muted},
    )
    lowest = min([prior, *(float(np.nanmin(line.low)) for line in lines if line.x.size)])
    figure.update_layout(
        xaxis={
            "title_text": "Distance (1 = the farthest ordinary row)",
            "range": [0, last],
        },
        yaxis={
            "title_text": "Mean max confidence",
            "range": [max(lowest - 0.05, -0.01), 1.02],
            "tickformat": ".0%",
        },
        margin={"t": 64},
    )
    return figure


def selection_figure(
    exponents: FloatArray, losses: Mapping[str, FloatArray], chosen: float, *, dark: bool
) -> go.Figure:
    """Held-out log loss against the kernel's exponent, with the one in use marked.

    ``losses`` are curves by label; the exponent was chosen by the first.
    """
    colours = palette(dark)
    figure = new_figure(dark, height=260)
    for at, (label, loss) in enumerate(losses.items()):
        figure.add_trace(
            go.Scatter(
                x=exponents,
                y=loss,
                mode="lines+markers",
                line={
                    "color": colours.muted if at else method_style("kernel_density", colours)[0],
                    "width": 2,
                    "dash": "6px,2px" if at else "solid",
                },
                marker={"size": 5},
                name=label,
                **hovered("Exponent {:.3g}<br>log loss {:.4f}", exponents, loss),
            )
        )
    figure.add_vline(x=chosen, line={"color": colours.truth, "width": 1, "dash": "4px,4px"})
    figure.update_layout(
        xaxis={
            "type": "log",
            "title_text": "Exponent of the kernel, γ log n",
            "tickvals": [0.5, 1, 2, 5, 10, 20, 50],
        },
        yaxis={"title_text": "Held-out log loss"},
        showlegend=len(losses) > 1,
    )
    return figure


def band_lines(
    lines: Sequence[BandLine], colours: Palette, place: str, what: str, band_words: str
) -> list[go.Scatter]:
    """Traces of curves and bands, bands first so that no curve is covered."""
    bands, curves = [], []
    for line in lines:
        colour, dash, symbol = method_style(line.key, colours)
        if line.filled:
            known = np.isfinite(line.low) & np.isfinite(line.high)
            bands.append(
                ribbon(
                    line.x[known],
                    line.low[known],
                    line.high[known],
                    faded(colour, 0.16),
                    name=line.label,
                    legendgroup=line.key,
                    showlegend=False,
                )
            )
        curves.append(
            go.Scatter(
                x=line.x,
                y=line.middle,
                mode="lines+markers",
                line={"color": colour, "width": 2.2, "dash": dash},
                marker={"size": 5, "symbol": symbol},
                name=line.label,
                legendgroup=line.key,
                **hovered(
                    f"{place}: {what} {{:.3f}}<br>{band_words} {{:.3f}} to {{:.3f}}",
                    line.x,
                    line.middle,
                    line.low,
                    line.high,
                    name="%{fullData.name}",
                ),
            )
        )
    return [*bands, *curves]
