"""Confidence against score, one predicted class at a time, with the words beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.calibration import ConfidenceCurve, EventCurve
from kdcal_core.charts.chart import (
    LEGEND_BELOW,
    Chart,
    cut,
    new_figure,
    new_grid,
    panel,
    square,
    strip,
    unit_axis,
)
from kdcal_core.charts.marks import anchor_traces, boxes, identity, tiers
from kdcal_core.charts.methods import HOVER, axis_titles
from kdcal_core.charts.palette import Palette, faded, method_style, palette
from kdcal_core.diagnostics import HistogramAnchor
from kdcal_core.text import counted, formatted

CURVE = r"""
Only rows that were **predicted** to be this class count: the right ones are true positives, the
wrong ones false positives (Salamon et al., Eqs. 3 and 4).

**Below**: the two densities of scores, each row smoothed by a normal kernel of bandwidth $b$ and
each density scaled by its number of rows (Eqs. 7 and 8). **Above**: green as a share of green plus
orange,

$$\text{Conf}(S)=\frac{K_{TP}(S)\,|TP|}{K_{TP}(S)\,|TP|+K_{FP}(S)\,|FP|}=\frac{A}{A+B}
\qquad\text{(Eq. 9)}$$

This ratio is the **dotted** line. Where few rows are near a score it reaches 0 or 1 too easily. The
**full** line, the calibrator's output, therefore adds $m$ rows with a share $c$ of right ones, as
predicted by one temperature for all classes:

$$\text{Conf}=\frac{A+m\,c}{A+B+m}$$

$m$ is the largest number that predicts held-out rows nearly as well as the best one (within two
nats in total). Hover to see $A+B$, the number of nearby rows: a row at the score counts 1, a row
one bandwidth away 0.61. With more than two classes $c$ differs between rows of equal score; the
line uses its mean.

**In between**: the number of right and wrong rows in each bin of the histogram, on a logarithmic
scale, so that a single row is still visible beside thousands.

**Dashed lines** are the histogram of the same quantity, which assumes nothing (Eq. 5), pale where
rows are few. The boxes are its exact 95% intervals. The lowest bar is dotted: below the first rows
the curve would be only the kernels' tails, so it is held constant there (section XIII.D). The curve
is thin where rows are few, and a hairline where there are none.
**Where curve and boxes disagree, believe the boxes.**
"""

EVENT_CURVE = r"""
All rows count, at the stated probability of the event: those **with the event** and those
**without** it. The question is how often the event happens where it is given this probability.

**Left and right half.** To the right of 0.5 the model predicts the event, to the left it does not.
The kernel densities of Salamon et al. belong to one predicted class (Eqs. 7 to 9), so each half has
its own bandwidth. The left half shows one minus the confidence in the other class. The line is what
the calibrator gives for the event, and it may jump at 0.5.

**Below**: the two densities, each scaled by its number of rows. **Above**: green as a share of
green plus orange, the **dotted** line. Where few rows are near a score it reaches 0 or 1 too
easily. The **full** line, the calibrator's output, therefore adds $m$ rows as one temperature
predicts them. It is thin where rows are few. Hover to see the number of nearby rows.

**In between**: the rows of each bin with and without the event, on a logarithmic scale.

**Dashed lines** are the histogram of the same quantity, which assumes nothing, pale where rows are
few. The boxes are its exact 95% intervals. **Where curve and boxes disagree, believe the boxes.**
"""

BANDWIDTHS = r"""
Solid: $b_{mon2}$, the smallest bandwidth whose curve changes direction at most twice (Salamon et
al., Eq. 20). Dotted: $b_{mon}$, the smallest whose curve never falls (Eq. 19). Dashes: the
histogram. Both are the paper's curves (Eq. 9), without added rows. The bars under each panel are
the right and wrong rows of each bin, on one logarithmic scale for all classes.

Where the curves agree, the choice does not matter. Where they differ, look at the histogram: a dip
that it does not show is noise, and $b_{mon}$ is the better choice.
"""


NOISE = """
The rows are split in half at random, with one histogram for each half (Salamon et al., Fig. 4).
Both halves come from the same model and the same source, so all differences between them are noise.
The noise of all rows together is smaller by a factor of about 1.4. A calibrator that follows
features of this size follows noise.
"""
_HOVER_ROWS = (
    "Score %{x:.3f}<br>confidence %{y:.1%}<br>%{customdata:,.1f} rows nearby"
    "<extra>%{fullData.name}</extra>"
)


def confidence_curve_chart(
    curve: ConfidenceCurve,
    anchor: HistogramAnchor,
    class_name: str,
    *,
    dark: bool = False,
    method: str = "kde_mon2",
) -> Chart:
    """The curve of one class over its histogram, with its densities.

    ``method`` is the calibrator's key, which sets the colour.
    """
    return Chart(
        confidence_curve_figure(curve, anchor, dark=dark, method=method),
        finding=confidence_words(curve, class_name),
        alt=confidence_alt(curve, class_name),
        how_to_read=EVENT_CURVE if isinstance(curve, EventCurve) else CURVE,
        table=curve.table,
        name=f"confidence {class_name}",
    )


def bandwidth_chart(
    recommended: Sequence[ConfidenceCurve],
    monotone: Sequence[ConfidenceCurve],
    anchors: Sequence[HistogramAnchor],
    class_names: Sequence[str],
    *,
    dark: bool = False,
) -> Chart:
    """Both bandwidth rules, class by class."""
    figure = bandwidth_figure(recommended, monotone, anchors, class_names, dark=dark)
    return Chart(
        figure,
        finding=bandwidth_words(recommended, monotone, class_names),
        alt=bandwidth_alt(recommended, monotone, anchors, class_names),
        how_to_read=BANDWIDTHS,
        table=lambda: pd.DataFrame(
            {
                "class": [class_names[one.label] for one in recommended],
                "b_mon2": [one.bandwidth for one in recommended],
                "b_mon": [one.bandwidth for one in monotone],
                "true_positives": [one.n_tp for one in recommended],
                "false_positives": [one.n_fp for one in recommended],
            }
        ),
        name="bandwidths",
        panels=cut(figure, dark),
    )


def noise_chart(
    halves: Sequence[tuple[HistogramAnchor, HistogramAnchor]],
    class_names: Sequence[str],
    *,
    dark: bool = False,
    seed: int,
) -> Chart:
    """Histograms of two random halves of the same rows; ``seed`` determines the halves."""
    words = noise_words(halves, class_names)
    figure = noise_figure(halves, class_names, dark=dark)
    return Chart(
        figure,
        finding=words,
        alt=words,
        how_to_read=NOISE,
        table=lambda: pd.concat(
            [
                half.table().assign(label=class_names[half.label], half=at + 1, seed=seed)
                for pair in halves
                for at, half in enumerate(pair)
            ],
            ignore_index=True,
        ),
        name="noise",
        panels=cut(figure, dark),
    )


def confidence_curve_figure(
    curve: ConfidenceCurve,
    anchor: HistogramAnchor,
    *,
    dark: bool,
    method: str = "kde_mon2",
) -> go.Figure:
    """Conf_KDE over its histogram, and below it the two densities that define it.

    A strip between them shows the right and wrong rows of each bin of the histogram. The densities
    are scaled by their row counts, so that their ratio is visible: confidence is green over green
    plus orange (Salamon et al., Fig. 5, Eq. 9).

    If the calibrator shrinks the ratio towards a shared temperature, its output is the full line
    and the ratio alone the dotted one. Hovering shows how many rows support a score.
    """
    colours = palette(dark)
    colour, _, _ = method_style(method, colours)
    figure = new_figure(dark, height=558)
    figure.add_trace(identity(colours))
    figure.add_traces(anchor_traces(anchor, colours))
    if curve.safe is not None:
        figure.add_trace(_alone(curve, colour))
    figure.add_traces(_curve(curve, anchor, colour))
    figure.add_traces(_densities(curve, colours))
    most = _most([anchor])
    figure.add_traces(_rows_strip(anchor, colours, most, legend=False, yaxis="y3"))
    ticks = _row_ticks(most)
    x_title, y_title = axis_titles(anchor)
    unit_axis(figure, "xaxis", x_title, anchor="y2", showgrid=True)
    unit_axis(figure, "yaxis", y_title, domain=[0.36, 1.0])
    figure.update_layout(
        yaxis2={
            "domain": [0.0, 0.14],
            "title_text": "Density",
            "nticks": 3,
            "rangemode": "tozero",
        },
        yaxis3={
            "domain": [0.2, 0.31],
            "title_text": "Rows",
            "range": [-0.02, 1.0],
            "tickvals": [float(_height(n, most)) for n in ticks],
            "ticktext": [f"{n:,}" for n in ticks],
        },
        legend=LEGEND_BELOW,
        margin={"t": 14, "b": 136, "l": 52},
    )
    square(figure)
    return figure


def _alone(curve: ConfidenceCurve, colour: str) -> go.Scatter:
    """The paper's ratio of densities, or Conf1, without the rows added to it."""
    return go.Scatter(
        x=curve.score,
        y=curve.confidence,
        mode="lines",
        line={"color": faded(colour, 0.7), "width": 1.2, "dash": "2px,3px"},
        name="Conf1 alone" if curve.fallback else "Conf_KDE alone (paper)",
        hovertemplate=HOVER,
    )


def _curve(curve: ConfidenceCurve, anchor: HistogramAnchor, colour: str) -> list[go.Scatter]:
    """The calibrator's output: a pale hairline throughout, a full line where there are rows."""
    if curve.safe is None:
        name, answer = "Conf1 (no curve)" if curve.fallback else "Conf_KDE", curve.confidence
    else:
        name, answer = "Safe estimate", curve.safe
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
            hovertemplate=HOVER if curve.rows is None else _HOVER_ROWS,
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
                line={"color": faded(colour, opacity), "width": 1.6 + 0.8 * width},
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
    of_event = isinstance(curve, EventCurve)
    right, wrong = _SIDES if of_event else ("True positives", "False positives")
    sides = (
        (curve.density_tp, curve.n_tp, right, colours.right),
        (curve.density_fp, curve.n_fp, wrong, colours.wrong),
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
        if n and np.isfinite(density).any()
    ]


def _rows_strip(
    anchor: HistogramAnchor, colours: Palette, most: float, *, legend: bool, **axes: Any
) -> list[go.Bar]:
    """Right and wrong rows of each bin side by side, with heights on a logarithmic scale.

    A single row is still visible beside thousands; ``most`` rows fill the strip.
    """
    left, right_end = anchor.edges[:-1], anchor.edges[1:]
    right = np.round(anchor.count * np.nan_to_num(anchor.confidence), 6)
    names = ("Rows that are right", "Rows that are wrong")
    names = _SIDES if anchor.kind == "class" else names
    sides = (
        (names[0], right, 0.1, colours.right),
        (names[1], np.round(anchor.count - right, 6), 0.5, colours.wrong),
    )
    return [
        go.Bar(
            x=left,
            y=_height(count, most),
            offset=at * (right_end - left),
            width=0.4 * (right_end - left),
            marker={"color": colour, "line": {"width": 0}},
            name=side,
            legendgroup=side,
            showlegend=legend,
            customdata=np.column_stack([left, right_end, count]),
            hovertemplate=(
                "Scores %{customdata[0]:.2f} to %{customdata[1]:.2f}<br>"
                f"{side}: %{{customdata[2]:,.0f}}<extra></extra>"
            ),
            **axes,
        )
        for side, count, at, colour in sides
    ]


_SIDES = ("Rows with the event", "Rows without it")
_MOST_TICKS = 4  # of the strip


def _row_ticks(most: float) -> list[int]:
    """Powers of ten up to the fullest bin, few enough to be read one above the other.

    >>> _row_ticks(2500), _row_ticks(110_000)
    ([1, 10, 100, 1000], [10, 1000, 100000])
    """
    powers = [10**k for k in range(10) if 10**k <= 1.2 * most]
    every = -(-len(powers) // _MOST_TICKS)
    return powers[::-every][::-1]


def _most(anchors: Sequence[HistogramAnchor]) -> float:
    return max([1.0, *(float(one.count.max(initial=0.0)) for one in anchors)])


def _height(count: Any, most: float) -> Any:
    """Share of the strip's height: 0 for no row, 1 for the fullest bin."""
    return np.log1p(2.0 * np.asarray(count)) / np.log1p(2.0 * most)


def bandwidth_figure(
    recommended: Sequence[ConfidenceCurve],
    monotone: Sequence[ConfidenceCurve],
    anchors: Sequence[HistogramAnchor],
    class_names: Sequence[str],
    *,
    dark: bool,
) -> go.Figure:
    """b_mon2 against b_mon for every class over its histogram (Salamon et al., Fig. 14).

    A strip at the foot of each panel shows the right and wrong rows of each bin, on one scale.
    """
    colours = palette(dark)
    titles = [class_names[curve.label] for curve in recommended]
    of_event = bool(anchors) and anchors[0].kind == "class"
    x_title, y_title = ("Stated probability", "How often") if of_event else ("Score", "Confidence")
    figure = new_grid(titles, dark, x_title=x_title, y_title=y_title, strips=True)
    styles = (
        (monotone, "b_mon: never falls", method_style("kde_mon", colours)[0], "2px,2px"),
        (recommended, "b_mon2: one dip allowed", method_style("kde_mon2", colours)[0], "solid"),
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
        for curves, name, colour, dash in styles:
            curve = curves[at]
            figure.add_trace(
                go.Scatter(
                    x=curve.score[::5],
                    y=curve.confidence[::5],
                    mode="lines",
                    line={"color": colour, "width": 2.2, "dash": dash},
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
    if isinstance(curve, EventCurve):
        return bandwidth_text(curve).lower() or "Conf1: no curve"
    if curve.fallback:
        return "Conf1: no curve for this class"
    return f"bandwidth {curve.bandwidth:.3f}"


def noise_figure(
    halves: Sequence[tuple[HistogramAnchor, HistogramAnchor]],
    class_names: Sequence[str],
    *,
    dark: bool,
) -> go.Figure:
    """Two histograms of one class, each from half of the rows: all differences are noise.

    Salamon et al., Fig. 4.
    """
    colours = palette(dark)
    titles = [class_names[first.label] for first, _ in halves]
    of_event = bool(halves) and halves[0][0].kind == "class"
    x_title, y_title = ("Stated probability", "How often") if of_event else ("Score", "Share right")
    figure = new_grid(titles, dark, x_title=x_title, y_title=y_title)
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
    """The histogram as a connected step line with gaps at empty bins."""
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
        hovertemplate=f"%{{y:.1%}} of %{{customdata:,.0f}} rows<extra>{name}</extra>",
        **more,
    )


def confidence_words(curve: ConfidenceCurve, name: str) -> str:
    """How often the predicted class is right, and why it has no curve if it has none.

    Of an event: how often it happens, and where it has no curve.
    """
    n = curve.n_tp + curve.n_fp
    if isinstance(curve, EventCurve):
        share = f"{curve.n_tp:,} of {n:,} rows are {name} ({curve.n_tp / n:.0%})."
        for where, why in (("Above", curve.fallback), ("Below", curve.other_fallback)):
            if why:
                share += f" {where} 0.5 there is no curve, because {why}: Conf1 is used instead."
        return share
    if n == 0:
        return f"No row was predicted as class {name}: nothing can be said about this class."
    share = (
        f"{curve.n_tp:,} of {n:,} rows predicted as class {name} are right ({curve.n_tp / n:.0%})."
    )
    if curve.fallback:
        return f"{share} There is no curve, because {curve.fallback}: Conf1 is used instead."
    return share


def shrinkage_words(curve: ConfidenceCurve) -> str:
    """How far the curve is shrunk towards one temperature for all classes; empty if it is not.

    Examples
    --------
    >>> nothing = np.zeros(2)
    >>> shrinkage_words(
    ...     ConfidenceCurve(0, *[nothing] * 4, 0.1, 3, 1, 0.5, rows=nothing + 4, shrinkage=20.0)
    ... )
    'At every score 20 rows are added, as one temperature for all classes predicts them. At ...'
    """
    if curve.shrinkage is None or curve.rows is None:
        return ""
    if np.isinf(curve.shrinkage):
        return (
            "The curves of single classes do not predict held-out rows better than one "
            "temperature for all classes, so that temperature is used."
        )
    amount = f"{curve.shrinkage:,.0f}" if curve.shrinkage >= 1 else formatted(curve.shrinkage, "g")
    rows = "row is" if curve.shrinkage == 1 else "rows are"
    near = "rows" if isinstance(curve, EventCurve) else "rows of the class itself"
    return (
        f"At every score {amount} {rows} added, as one temperature for all classes predicts them. "
        f"At most {np.nanmax(curve.rows):,.0f} {near} are near a score."
    )


def bandwidth_text(curve: ConfidenceCurve) -> str:
    """The bandwidth of a curve, or of both halves of an event's; empty without one.

    Examples
    --------
    >>> nothing = np.zeros(2)
    >>> bandwidth_text(ConfidenceCurve(0, *[nothing] * 4, 0.1, 3, 1, 0.5))
    'Bandwidth of this class: 0.1000.'
    """
    if not isinstance(curve, EventCurve):
        known = np.isfinite(curve.bandwidth)
        return f"Bandwidth of this class: {curve.bandwidth:.4f}." if known else ""
    halves = (("below", curve.other_bandwidth), ("above", curve.bandwidth))
    known = [f"{one:.4f} {where} 0.5" for where, one in halves if np.isfinite(one)]
    return f"Bandwidth: {', '.join(known)}." if known else ""


def confidence_alt(curve: ConfidenceCurve, name: str) -> str:
    """Alternative text of the confidence curve."""
    of_event = isinstance(curve, EventCurve)
    if not curve.score.size or (curve.fallback and not of_event):
        return f"Confidence of predictions of {name}: {curve.fallback or 'no rows'}"
    at = np.linspace(0, curve.score.size - 1, 4).astype(int)
    answer = curve.confidence if curve.safe is None else curve.safe
    if of_event:
        points = ", ".join(f"{answer[i]:.0%} at {curve.score[i]:.2f}" for i in at)
        return (
            f"How often {name} happens against its stated probability: {points}. Below it the rows "
            f"of each bin and the densities of {curve.n_tp:,} rows with and {curve.n_fp:,} without "
            "the event."
        )
    points = ", ".join(f"{answer[i]:.0%} at score {curve.score[i]:.2f}" for i in at)
    return (
        f"Confidence against score for predictions of {name}: {points}. Below it the rows of each "
        f"bin and the densities of {curve.n_tp:,} true and {curve.n_fp:,} false positives."
    )


def bandwidth_words(
    recommended: Sequence[ConfidenceCurve],
    monotone: Sequence[ConfidenceCurve],
    class_names: Sequence[str],
) -> str:
    """How much forbidding every dip widens the bandwidths."""
    pairs = [
        (mon / mon2, mon2, mon, label)
        for one, other in zip(recommended, monotone, strict=True)
        for (label, mon2), (_, mon) in zip(_bandwidths(one), _bandwidths(other), strict=True)
        if np.isfinite(mon) and np.isfinite(mon2) and mon2 > 0
    ]
    if not pairs:
        return "No class has both right and wrong predictions, so there is no curve to compare."
    ratio, mon2, mon, label = max(pairs, key=lambda pair: pair[0])
    if ratio < 1.01:
        return "Both rules choose the same bandwidths: no curve has a dip to remove."
    decimals = max(1 - math.floor(math.log10(mon2)), 0)  # two figures of the smaller
    form = f".{decimals}f" if ratio < 10.0 else ".2g"
    wide, narrow = (formatted(one, form) for one in (mon, mon2))
    return (
        f"Removing every dip costs most for class {class_names[label]}: a bandwidth of {wide} "
        f"instead of {narrow}."
    )


def _bandwidths(curve: ConfidenceCurve) -> list[tuple[int, float]]:
    """The predicted classes that a curve shows, with the bandwidth of each."""
    own = [(curve.label, curve.bandwidth)]
    if isinstance(curve, EventCurve):
        own.append((1 - curve.label, curve.other_bandwidth))
    return own


def bandwidth_alt(
    recommended: Sequence[ConfidenceCurve],
    monotone: Sequence[ConfidenceCurve],
    anchors: Sequence[HistogramAnchor],
    class_names: Sequence[str],
) -> str:
    """Alternative text of the grid of bandwidths: its panels, and the strips of rows at their feet.

    Examples
    --------
    >>> bandwidth_alt([], [], [], [])
    'No class has a panel.'
    """
    if not anchors:
        return "No class has a panel."
    rows = [int(anchor.count.sum()) for anchor in anchors]
    least, most = int(np.argmin(rows)), int(np.argmax(rows))
    between = (
        f"from {rows[least]:,} for class {class_names[anchors[least].label]} to {rows[most]:,} for "
        f"class {class_names[anchors[most].label]}"
        if len(rows) > 1
        else f"{rows[0]:,} in all"
    )
    return (
        f"{counted(len(rows), 'panel')}, one for each class: two curves of confidence against "
        f"score over a histogram. {bandwidth_words(recommended, monotone, class_names)} A strip at "
        f"the foot of each panel shows the right and wrong rows of each bin: {between}."
    )


def noise_words(
    halves: Sequence[tuple[HistogramAnchor, HistogramAnchor]], class_names: Sequence[str]
) -> str:
    """How much two halves of the same rows differ, on average and at most."""
    gaps, weights, places = [], [], []
    for one, two in halves:
        gap = np.abs(one.confidence - two.confidence)
        known = np.flatnonzero(np.isfinite(gap))
        gaps.append(gap[known])
        weights.append((one.count + two.count)[known])
        places += [(one.label, one.edges[at], one.edges[at + 1]) for at in known]
    gap, weight = np.concatenate(gaps), np.concatenate(weights)
    if gap.size == 0:
        return "No bin has rows in both halves, so their noise cannot be shown."
    if gap.max() < 0.005:
        return (
            "Two halves of the same rows agree in every bin to within half a point "
            f"({counted(round(weight.sum()), 'row')})."
        )
    worst = int(np.argmax(gap))
    label, low, high = places[worst]
    return (
        f"Two halves of the same rows differ by {100 * np.average(gap, weights=weight):.1f} points "
        f"on average ({counted(round(weight.sum()), 'row')}), and by {100 * gap.max():.0f} points "
        f"for class {class_names[label]} at scores {low:.1f} to {high:.1f} "
        f"({counted(round(weight[worst]), 'row')}). A difference of this size between two curves "
        "proves nothing."
    )
