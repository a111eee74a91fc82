"""Confidence against score, one predicted class at a time: the pictures of paper 002."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kdcal_core.calibration import CALIBRATORS
from kdcal_core.calibration.confidence_curve import ConfidenceCurve, HistogramAnchor
from kdcal_core.charts.methods import method_style
from kdcal_core.charts.palette import Palette, faded, palette
from kdcal_core.charts.parts import anchor_traces, boxes, identity, tiers
from kdcal_core.charts.template import new_figure, new_grid, panel, square, strip, unit_axis
from kdcal_core.data.types import FloatArray

MAX_CLOUD = 2000
_HOVER_ROWS = (
    "Score %{x:.3f}<br>confidence %{y:.1%}<br>%{customdata:,.1f} rows nearby"
    "<extra>%{fullData.name}</extra>"
)
_HOVER = "Score %{x:.3f}<br>confidence %{y:.1%}<extra>%{fullData.name}</extra>"


def confidence_curve_figure(
    curve: ConfidenceCurve,
    anchor: HistogramAnchor,
    *,
    dark: bool,
    others: Mapping[str, tuple[FloatArray, FloatArray]] | None = None,
    title: str | None = None,
) -> go.Figure:
    """Conf_KDE over its histogram, and below it the two densities it is the ratio of.

    In between a strip has the right and wrong rows of each of the histogram's bins. The densities
    are scaled by their row counts, so that their ratio can be seen: confidence is
    green over green plus orange (paper 002 Fig. 5, Eq. 9). ``others`` adds further methods as
    registry key -> (scores, confidences), sorted by score.

    Where the calibrator draws the ratio to a shared temperature, its answer is the full line and
    the ratio alone the dotted one; hovering says how many rows stand behind a score.
    """
    colours = palette(dark)
    figure = new_figure(dark, height=700, title=title)
    figure.add_trace(identity(colours))
    figure.add_traces(anchor_traces(anchor, colours))
    for key, (score, confidence) in (others or {}).items():
        figure.add_trace(_method_line(key, score, confidence, colours))
    if curve.safe is not None:
        figure.add_trace(_alone(curve, colours))
    figure.add_traces(_curve(curve, anchor, colours))
    figure.add_traces(_densities(curve, colours))
    most = _most([anchor])
    figure.add_traces(_rows_strip(anchor, colours, most, legend=False, yaxis="y3"))
    ticks = [n for n in _ROW_TICKS if n <= 1.2 * most]
    title_of_x = "Score: stated probability of the predicted class"
    unit_axis(figure, "xaxis", title_of_x, anchor="y2", showgrid=True)
    unit_axis(figure, "yaxis", "Confidence: how often it is right", domain=[0.36, 1.0])
    figure.update_layout(
        yaxis2={
            "domain": [0.0, 0.16],
            "title_text": "Rows per unit",
            "nticks": 3,
            "rangemode": "tozero",
        },
        yaxis3={
            "domain": [0.2, 0.32],
            "title_text": "Rows a bin",
            "range": [-0.02, 1.0],
            "tickvals": [float(_height(n, most)) for n in ticks],
            "ticktext": [f"{n:,}" for n in ticks],
        },
        margin={"t": 64 if title is None else 120},
    )
    square(figure)
    return figure


def _alone(curve: ConfidenceCurve, colours: Palette) -> go.Scatter:
    """The paper's ratio of densities, or Conf1, without the rows added to it."""
    return go.Scatter(
        x=curve.score,
        y=curve.confidence,
        mode="lines",
        line={"color": faded(colours.calibrated, 0.8), "width": 1.6, "dash": "2px,3px"},
        name="Conf1 alone" if curve.fallback else "Conf_KDE alone (paper)",
        hovertemplate=_HOVER,
    )


def _curve(curve: ConfidenceCurve, anchor: HistogramAnchor, colours: Palette) -> list[go.Scatter]:
    """The answer: a pale hairline throughout, drawn over in full where there are rows."""
    if curve.safe is None:
        name, answer = "Conf1 (no curve)" if curve.fallback else "Conf_KDE", curve.confidence
    else:
        name, answer = "Safe estimate", curve.safe
    colour = colours.calibrated
    rows_near = np.full(curve.score.size, np.nan) if curve.rows is None else curve.rows
    traces = [
        go.Scatter(
            x=curve.score,
            y=answer,
            mode="lines",
            line={"color": faded(colour, 0.5), "width": 1},
            name=name,
            legendgroup="curve",
            customdata=rows_near,
            hovertemplate=_HOVER if curve.rows is None else _HOVER_ROWS,
        )
    ]
    where = np.searchsorted(anchor.edges, curve.score, side="left") - 1
    rows = anchor.count[np.clip(where, 0, anchor.count.size - 1)]
    for inside, width, opacity in tiers(rows):
        traces.append(
            go.Scatter(
                x=curve.score,
                y=np.where(inside, answer, np.nan),
                mode="lines",
                line={"color": faded(colour, opacity), "width": 1.4 * width},
                name=name,
                legendgroup="curve",
                showlegend=False,
                hoverinfo="skip",
            )
        )
    if len(traces) > 1:
        traces[0].showlegend, traces[1].showlegend = False, True
    return traces


def _densities(curve: ConfidenceCurve, colours: Palette) -> list[go.Scatter]:
    sides = (
        (curve.density_tp, curve.n_tp, "True positives", colours.right),
        (curve.density_fp, curve.n_fp, "False positives", colours.wrong),
    )
    return [
        go.Scatter(
            x=curve.score,
            y=density * n,
            mode="lines",
            line={"color": colour, "width": 2},
            fill="tozeroy",
            fillcolor=faded(colour, 0.25),
            name=f"{name} ({n:,})",
            yaxis="y2",
            hovertemplate=f"Score %{{x:.3f}}<br>%{{y:,.0f}} rows per unit<extra>{name}</extra>",
        )
        for density, n, name, colour in sides
        if n and np.isfinite(density).all()
    ]


def _rows_strip(
    anchor: HistogramAnchor, colours: Palette, most: float, *, legend: bool, **axes: Any
) -> list[go.Bar]:
    """Right and wrong rows of each bin side by side, on a logarithmic scale of heights.

    One row is still seen beside thousands; ``most`` rows fill the strip.
    """
    left, right_end = anchor.edges[:-1], anchor.edges[1:]
    right = np.round(anchor.count * np.nan_to_num(anchor.confidence), 6)
    sides = (
        ("right", right, 0.1, colours.right),
        ("wrong", np.round(anchor.count - right, 6), 0.5, colours.wrong),
    )
    return [
        go.Bar(
            x=left,
            y=_height(count, most),
            offset=at * (right_end - left),
            width=0.4 * (right_end - left),
            marker={"color": colour, "line": {"width": 0}},
            name=f"Rows that are {side}",
            legendgroup=side,
            showlegend=legend,
            customdata=np.column_stack([left, right_end, count]),
            hovertemplate=(
                "Scores %{customdata[0]:.2f} to %{customdata[1]:.2f}<br>"
                f"%{{customdata[2]:,.0f}} rows {side}<extra></extra>"
            ),
            **axes,
        )
        for side, count, at, colour in sides
    ]


_ROW_TICKS = (1, 10, 100, 1000, 10_000, 100_000, 1_000_000)


def _most(anchors: Sequence[HistogramAnchor]) -> float:
    return max([1.0, *(float(one.count.max(initial=0.0)) for one in anchors)])


def _height(count: Any, most: float) -> Any:
    """Share of the strip's height: 0 for no row, 1 for the fullest bin."""
    return np.log1p(2.0 * np.asarray(count)) / np.log1p(2.0 * most)


def _method_line(
    key: str, score: FloatArray, confidence: FloatArray, colours: Palette
) -> go.Scatter:
    colour, dash, _ = method_style(key, colours)
    return go.Scatter(
        x=score,
        y=confidence,
        mode="lines",
        line={"width": 1.6, "color": colour, "dash": dash},
        name=CALIBRATORS[key].label,
        hovertemplate=_HOVER,
    )


def bandwidth_figure(
    recommended: Sequence[ConfidenceCurve],
    monotone: Sequence[ConfidenceCurve],
    anchors: Sequence[HistogramAnchor],
    class_names: Sequence[str],
    *,
    dark: bool,
) -> go.Figure:
    """b_mon2 against b_mon for every class over its histogram (paper 002 Fig. 14).

    A strip at the foot of each panel has the right and wrong rows of each bin, all on one scale.
    """
    colours = palette(dark)
    titles = [class_names[curve.label] for curve in recommended]
    figure = new_grid(titles, dark, x_title="Score", y_title="Confidence", strips=True)
    styles = (
        (monotone, "b_mon: never falls", faded(colours.calibrated, 0.85), 1.6, "2px,2px"),
        (recommended, "b_mon2: one dip allowed", colours.calibrated, 2.2, "solid"),
    )
    most = _most(anchors)
    for at, anchor in enumerate(anchors):
        first = at == 0
        figure.add_traces(
            _rows_strip(anchor, colours, most, legend=first, **strip(at, len(anchors)))
        )
        figure.add_trace(identity(colours, showlegend=first, **panel(at)))
        figure.add_traces(
            anchor_traces(anchor, colours, intervals=False, legend=first, **panel(at))
        )
        for curves, name, colour, width, dash in styles:
            curve = curves[at]
            figure.add_trace(
                go.Scatter(
                    x=curve.score[::5],
                    y=curve.confidence[::5],
                    mode="lines",
                    line={"color": colour, "width": width, "dash": dash},
                    name=name,
                    legendgroup=name,
                    showlegend=first,
                    hovertemplate=(
                        f"Score %{{x:.2f}}, confidence %{{y:.1%}}<br>{_bandwidth(curve)}"
                        f"<extra>{name}</extra>"
                    ),
                    **panel(at),
                )
            )
    return figure


def _bandwidth(curve: ConfidenceCurve) -> str:
    if curve.fallback:
        return "Conf1: no curve for this class"
    return f"bandwidth {curve.bandwidth:.3f}"


def noise_figure(
    halves: Sequence[tuple[HistogramAnchor, HistogramAnchor]],
    class_names: Sequence[str],
    *,
    dark: bool,
) -> go.Figure:
    """Two histograms of one class, each from half of the rows: all difference is noise.

    Paper 002 Fig. 4.
    """
    colours = palette(dark)
    titles = [class_names[first.label] for first, _ in halves]
    figure = new_grid(titles, dark, x_title="Score", y_title="Share right")
    for at, (one, two) in enumerate(halves):
        axes = {**panel(at), "showlegend": at == 0}
        low = np.minimum(one.confidence, two.confidence)
        high = np.maximum(one.confidence, two.confidence)
        noise = boxes(
            one.edges[:-1],
            one.edges[1:],
            low,
            high,
            faded(colours.truth, 0.14),
            name="Difference: noise alone",
            legendgroup="noise",
            **axes,
        )
        figure.add_trace(noise)
        figure.add_trace(_stairs(one, "First half", colours.truth, "solid", **axes))
        figure.add_trace(_stairs(two, "Second half", colours.muted, "4px,2px", **axes))
    return figure


def _stairs(anchor: HistogramAnchor, name: str, colour: str, dash: str, **more: Any) -> go.Scatter:
    """The histogram as a connected step line with a gap where a bin is empty."""
    x = np.repeat(anchor.edges, 2)[1:-1]
    return go.Scatter(
        x=x,
        y=np.repeat(anchor.confidence, 2),
        mode="lines",
        line={"color": colour, "width": 1.6, "dash": dash},
        connectgaps=False,
        name=name,
        legendgroup=name,
        customdata=np.repeat(anchor.count, 2),
        hovertemplate=f"right %{{y:.1%}}, %{{customdata:,.0f}} rows<extra>{name}</extra>",
        **more,
    )


def method_cloud(
    anchor: HistogramAnchor,
    clouds: Mapping[str, tuple[FloatArray, FloatArray]],
    *,
    dark: bool,
    n_rows: int,
    lines: Mapping[str, tuple[FloatArray, FloatArray]] | None = None,
) -> go.Figure:
    """Methods over the histogram they should follow (paper 002 Figs. 8 to 12).

    Methods that use the whole probability vector give no curve in the score but a cloud, one
    point a row. Both mappings go from a registry key to (scores, confidences), ``lines`` sorted
    by score. At most 2,000 points are drawn in all, evenly spaced over the rows given, and the
    figure says so; ``n_rows`` is the number of rows there are.
    """
    colours = palette(dark)
    share = MAX_CLOUD // max(len(clouds), 1)
    drawn = {key: _evenly(len(score), share) for key, (score, _) in clouds.items()}
    figure = new_figure(dark, height=560)
    figure.add_trace(identity(colours))
    figure.add_traces(anchor_traces(anchor, colours))
    for key, (score, confidence) in clouds.items():
        colour, _, symbol = method_style(key, colours)
        figure.add_trace(
            go.Scatter(
                x=score[drawn[key]],
                y=confidence[drawn[key]],
                mode="markers",
                marker={"size": 4, "opacity": 0.45, "color": colour, "symbol": symbol},
                name=CALIBRATORS[key].label,
                hovertemplate=_HOVER,
            )
        )
    for key, (score, confidence) in (lines or {}).items():
        figure.add_trace(_method_line(key, score, confidence, colours))
    if clouds:
        shown = max(len(rows) for rows in drawn.values())
        figure.add_annotation(
            text=f"Clouds: {shown:,} of {n_rows:,} rows drawn",
            font={"size": 12, "color": colours.muted},
            showarrow=False,
            x=1.0,
            y=0.02,
            xanchor="right",
            yanchor="bottom",
        )
    unit_axis(figure, "xaxis", "Score: stated probability of the predicted class")
    unit_axis(figure, "yaxis", "Confidence: how often it is right")
    square(figure)
    return figure


def _evenly(n: int, at_most: int) -> NDArray[np.int64]:
    """Positions of at most ``at_most`` of ``n`` rows, evenly spread."""
    return np.arange(n) if n <= at_most else np.linspace(0, n - 1, at_most).astype(np.int64)
