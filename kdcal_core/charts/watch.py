"""A new table against the reference rows: scores, measures and class shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import LEGEND_BELOW, Chart, Panels, new_figure, panel
from kdcal_core.charts.marks import dot_panels, strokes
from kdcal_core.charts.palette import Palette, faded, palette
from kdcal_core.data.schema import FloatArray
from kdcal_core.diagnostics import (
    ComparedMeasure,
    Estimate,
    LabelShift,
    ScoreCounts,
    ScoreShift,
    estimate_text,
    value_text,
)
from kdcal_core.diagnostics.score_histograms import FAR
from kdcal_core.statistics import clopper_pearson, holm
from kdcal_core.text import counted, escape_html, formatted, p_text

SCORES = """
Across stands the watched score, on the scale of log odds, up the share of each table's rows. Grey
bars are the reference rows (teal those of a calibrated version), the blue steps the new ones. If
nothing has changed, the steps follow the bars up to chance. The outermost bins hold all scores
below 0.1% and above 99.9%.

The population stability index (PSI) counts both tables in ten bins that were fixed on the reference
rows, so that every new table is counted in the same bins. The familiar limits 0.1 and 0.25 ignore
the number of rows; compare it with the value that chance alone reaches
([Yurdakul and Naranjo 2020](https://doi.org/10.21314/JRMV.2020.227)).
"""
NUMBERS = """
Across stand the predicted medians or the widths of the intervals, in 40 bins of equal width, up the
share of each table's rows. Grey bars are the reference rows, the blue steps the new ones. If
nothing has changed, the steps follow the bars up to chance. The outermost bins hold the rows beyond
them too.

The population stability index (PSI) counts both tables in ten bins that were fixed on the reference
rows, so that every new table is counted in the same bins. The familiar limits 0.1 and 0.25 ignore
the number of rows; compare it with the value that chance alone reaches
([Yurdakul and Naranjo 2020](https://doi.org/10.21314/JRMV.2020.227)). The Wasserstein-1 distance is
in the units of the outcome.
"""
BINS = """
Each place across is one of the bins of the population stability index, from the lowest scores to
the highest. They were fixed on the reference rows with equally many rows in each, as far as equal
scores allow; hovering shows their edges. Grey bars are the reference
rows. Blue marks are the new rows, with exact 95% intervals (Clopper-Pearson) of one bin at a time:
among ten bins in which nothing changed, one mark in two tables misses its bar by chance. Rows that
depend on one another, by a column of clusters or times, count by their design effect.
"""
MEASURES = """
Each panel is a measure. The grey circle (teal for a calibrated version) is its value on the
reference rows, from their labels. The open blue diamond is the estimate for the new rows **without
their labels**, by the method of confidence-based performance estimation with a calibration fitted
for the new rows (CBPE and M-CBPE, [Białek et al.](https://arxiv.org/abs/2401.08348)): its interval
says where the measure will lie once the labels are known. Only that of the calibration error is for
many rows like the new ones: the error that few labels show is larger on average, because chance
adds to it. The filled blue diamond is the value from those labels that are known.

The estimates hold only if rows with the same score have the same chance of the event in both
tables. What the inputs mean may have changed without a trace in the scores; only labels show that.
"""
EXPECTED = """
Each panel is a measure. The grey circle is its value on the reference rows, from their outcomes.
The open blue diamond is what is expected of the new rows **without their outcomes**: of the CRPS,
what the forecasts themselves expect, times the factor by which the reference rows' CRPS differs
from that. Its interval says where the mean will lie once the outcomes are known. The filled blue
diamond is the value from those outcomes that are known. Coverage and PIT distance only outcomes
show.

The continuous ranked probability score (CRPS,
[Gneiting and Raftery 2007](https://doi.org/10.1198/016214506000001437)) is in the units of the
outcome; lower is better. What the inputs mean may have changed without a trace in the forecasts.
"""
SHARES = """
Each line is a class. The grey circle is its share of the reference rows, as the mean of their
probabilities, the blue diamond its share of the new rows without their labels, by the expectation
maximization of [Saerens, Latinne and Decaestecker (2002)](https://doi.org/10.1162/089976602753284446).
The interval allows for the rows of both tables and for the calibration of the probabilities. It
holds only if rows of one class look alike in both tables.
"""
_HEIGHT = 300
_SMALL = 260
_PICTURE = 380
_TICKS = (0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999)
_PERCENT_TICKS = {
    "tickvals": [math.log(one / (1.0 - one)) for one in _TICKS],
    "ticktext": [f"{one:.3g}%" for one in (100.0 * tick for tick in _TICKS)],
}
_APART = 0.16
_LEVEL = 0.05
_NEW = 4  # place of the new rows' colour among the classes' colours


def new_rows_ink(colours: Palette) -> str:
    """The one colour of new rows, beside the model's slate grey for the reference rows."""
    return colours.classes[_NEW]


def reference_ink(calibrated: bool, colours: Palette) -> str:
    """The colour of reference rows: that of the model, or of a calibrated version."""
    return colours.calibrated if calibrated else colours.model


def watched_scores_chart(
    counts: ScoreCounts,
    shift: ScoreShift,
    score: str,
    shares: LabelShift | ScoreShift | None = None,
    *,
    dark: bool = False,
    calibrated: bool = False,
) -> Chart:
    """Reference and new rows by their score, with the finding on their distributions.

    Parameters
    ----------
    score : str
        What the score is, such as "Probability of yes". Untrusted text.
    shares : LabelShift or ScoreShift, optional
        Whose tests are more in the correction.
    """
    words = shift_words(shift, shares)
    what = "the watched score" if shift.noun == "scores" else f"the {shift.noun}"
    return Chart(
        _scores_figure(counts, score, dark, reference_ink(calibrated, palette(dark))),
        finding=words,
        alt=f"Two histograms of {what}, of reference and of new rows. {words}",
        how_to_read=NUMBERS if counts.of_numbers else SCORES,
        table=lambda: _counts_table(counts.edges, counts.reference, counts.new),
        name="watched scores",
    )


def shift_words(shift: ScoreShift, shares: LabelShift | ScoreShift | None = None) -> str:
    """Whether the scores' distribution has changed beyond chance, and by what it is seen."""
    corrected = _corrected(shift, shares)[:3]
    moved = moved_beyond_chance(shift, shares)
    how = "have moved" if moved else "have not moved"
    at = int(np.argmin(corrected)) if moved and corrected[0] > _LEVEL else 0
    one = shift.tests[at].estimate
    chance = drift_words(shift, shares, at)
    said = f"{value_text(one)} ({chance})" if chance else value_text(one)
    return f"The {shift.noun} {how} beyond chance: {one.label} {said}."


def moved_beyond_chance(shift: ScoreShift, shares: LabelShift | ScoreShift | None = None) -> bool:
    """Whether a test of the scores refuses at 5%, by Holm over these and those beside them."""
    return bool((_corrected(shift, shares)[:3] <= _LEVEL).any())


def shares_beyond_chance(shares: LabelShift, shift: ScoreShift | None = None) -> bool:
    """Whether the classes' shares changed at 5%, by Holm over this test and those of the scores."""
    return bool(_corrected(shift, shares)[-1] <= _LEVEL)


def drift_words(
    shift: ScoreShift, shares: LabelShift | ScoreShift | None = None, at: int = 0
) -> str:
    """What chance gives for a distance; its p values if these differ about it. May be empty."""
    test, corrected = shift.tests[at], float(_corrected(shift, shares)[at])
    one = test.estimate
    if test.p_value <= _LEVEL < corrected:
        return _p_words(test.p_value, corrected)
    return "" if one.expected is None else f"by chance up to {value_text(one, one.expected)}"


def _corrected(shift: ScoreShift | None, beside: LabelShift | ScoreShift | None) -> FloatArray:
    """All p values of change, corrected by Holm: the scores' three, then those beside them."""
    found = [] if shift is None else [one.p_value for one in shift.tests]
    if isinstance(beside, ScoreShift):
        return holm([*found, *(one.p_value for one in beside.tests)])
    return holm(found if beside is None else [*found, beside.p_value])


def _p_words(p_value: float, corrected: float) -> str:
    """A p value, and the corrected one where it decides otherwise."""
    more = f", {p_text(corrected)} after Holm's correction" if p_value <= _LEVEL < corrected else ""
    return f"p value {p_text(p_value)}{more}"


def _scores_figure(counts: ScoreCounts, score: str, dark: bool, reference: str) -> go.Figure:
    colours, edges = palette(dark), counts.edges
    if counts.of_numbers:
        odds, ends = edges, [formatted(float(one), ",.4g") for one in edges]
    else:
        with np.errstate(divide="ignore"):
            odds = np.clip(np.log(edges) - np.log1p(-edges), -FAR, FAR)
        ends = [formatted(float(one), ".1%") for one in edges]
    hover = "%{customdata[0]}: %{y:.1%}, %{customdata[1]} rows<extra></extra>"
    middle, width = (odds[:-1] + odds[1:]) / 2, np.diff(odds)
    figure = new_figure(dark, height=_PICTURE)
    figure.add_trace(
        go.Bar(
            x=middle,
            y=_share(counts.reference),
            width=width,
            marker={"color": faded(reference, 0.5), "line": {"width": 0}},
            name=_of(counts.reference, "reference row"),
            customdata=_hovered(ends, counts.reference),
            hovertemplate=hover,
        )
    )
    figure.add_trace(
        go.Scatter(
            x=odds,
            y=_ended(_share(counts.new)),
            mode="lines",
            line={"color": new_rows_ink(colours), "width": 2.2, "shape": "hv"},
            name=_of(counts.new, "new row"),
            customdata=_hovered(ends, counts.new, ended=True),
            hovertemplate=hover,
        )
    )
    figure.update_layout(
        xaxis={
            "title_text": escape_html(score, limit=60),
            "range": _with_rows(counts, odds),
            **({} if counts.of_numbers else _PERCENT_TICKS),
        },
        yaxis={"title_text": "Share of rows", "tickformat": ".0%", "rangemode": "tozero"},
        legend=LEGEND_BELOW,
        margin={"t": 16, "b": 84},
    )
    return figure


def _with_rows(counts: ScoreCounts, odds: FloatArray) -> list[float]:
    """The ends of the axis: all bins with rows, and one more on each side if there is one."""
    some = np.flatnonzero(counts.reference + counts.new)
    return [float(odds[max(some[0] - 1, 0)]), float(odds[min(some[-1] + 2, len(odds) - 1)])]


def _ended(values: FloatArray) -> FloatArray:
    """Values of bins at the edges: a step from each edge to the next needs the last one twice."""
    return np.concatenate([values, values[-1:]])


def _share(count: FloatArray) -> FloatArray:
    return np.asarray(count / max(float(count.sum()), 1.0))


def _of(count: FloatArray, noun: str) -> str:
    return counted(int(count.sum()), noun)


def _hovered(ends: Sequence[str], count: FloatArray, *, ended: bool = False) -> list[list[str]]:
    """What each bin is and holds, in words; ``ended`` as `_ended`."""
    named = [
        [f"{low} to {high}", f"{rows:,.0f}"]
        for (low, high), rows in zip(pairwise(ends), count, strict=True)
    ]
    return [*named, named[-1]] if ended else named


def _counts_table(edges: FloatArray, reference: FloatArray, new: FloatArray) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "score_low": edges[:-1],
            "score_high": edges[1:],
            "reference_rows": reference.astype(int),
            "new_rows": new.astype(int),
        }
    )


def frozen_bins_chart(
    shift: ScoreShift,
    shares: LabelShift | ScoreShift | None = None,
    *,
    dark: bool = False,
    calibrated: bool = False,
) -> Chart:
    """Both tables in the bins of the population stability index."""
    words = shift_words(shift, shares)
    return Chart(
        _bins_figure(shift, dark, reference_ink(calibrated, palette(dark))),
        finding=words,
        alt=f"Shares of reference and of new rows in {len(shift.new_count)} bins. {words}",
        how_to_read=BINS,
        table=lambda: _counts_table(shift.bins.edges, shift.bins.count, shift.new_count),
        name="frozen bins",
    )


def _bins_figure(shift: ScoreShift, dark: bool, reference: str) -> go.Figure:
    colours, edges = palette(dark), shift.bins.edges
    names = [_bin_name(a, b) for a, b in pairwise(edges)]
    hover = f"{shift.noun} %{{customdata}}: %{{y:.1%}}"
    places = np.arange(1, len(edges))
    figure = new_figure(dark, height=_SMALL)
    figure.add_trace(
        go.Bar(
            x=places,
            y=_share(shift.bins.count),
            customdata=names,
            marker={"color": faded(reference, 0.5), "line": {"width": 0}},
            width=0.8,
            name=_of(shift.bins.count, "reference row"),
            hovertemplate=f"{hover} of the reference rows<extra></extra>",
        )
    )
    share = _share(shift.new_count)
    n = float(shift.new_count.sum())
    rows = np.full(len(share), n) if shift.new_rows is None else shift.new_rows
    low, high = clopper_pearson(share, rows, 0.95)
    figure.add_trace(
        go.Scatter(
            x=places,
            y=share,
            customdata=names,
            mode="markers",
            marker={"color": new_rows_ink(colours), "size": 9, "symbol": "diamond"},
            error_y={
                "type": "data",
                "symmetric": False,
                "array": high - share,
                "arrayminus": share - low,
                "color": new_rows_ink(colours),
                "thickness": 1.6,
                "width": 0,
            },
            name=_of(shift.new_count, "new row"),
            hovertemplate=f"{hover} of the new rows<extra></extra>",
        )
    )
    figure.update_layout(
        xaxis={
            "title_text": f"Bin, from the lowest {shift.noun} to the highest",
            "tickvals": places,
        },
        yaxis={"title_text": "Share of rows", "tickformat": ".0%", "rangemode": "tozero"},
        legend={"y": 1.02},
    )
    return figure


def _bin_name(low: float, high: float) -> str:
    if not math.isfinite(low):
        return f"up to {formatted(high, '.4g')}" if math.isfinite(high) else "of any size"
    if not math.isfinite(high):
        return f"above {formatted(low, '.4g')}"
    return f"{formatted(low, '.3g')} to {formatted(high, '.3g')}"


def measures_chart(
    measures: Sequence[ComparedMeasure],
    *,
    dark: bool = False,
    calibrated: bool = False,
    of_forecasts: bool = False,
) -> Chart:
    """Measures of the reference rows and of the new ones, without labels and from labels.

    Those that are known of the reference rows alone are left out, but for the first.
    """
    words, every = measures_words(measures), measures
    measures = [
        one
        for at, one in enumerate(every)
        if at == 0 or one.labels is not None or np.isfinite(one.new.value)
    ]
    reference = reference_ink(calibrated, palette(dark))
    return Chart(
        _measures_figure(measures, dark, reference),
        finding=words,
        alt=f"{counted(len(measures), 'measure')} of reference and of new rows. {words}",
        how_to_read=EXPECTED if of_forecasts else MEASURES,
        table=lambda: measures_table(every),
        name="estimates without labels",
        panels=Panels(
            tuple(_measures_figure([one], dark, reference) for one in measures),
            tuple(one.title for one in measures),
            legend=None,
            axes="",
        ),
    )


def measures_words(measures: Sequence[ComparedMeasure]) -> str:
    """The first measure on the reference rows and on the new ones. May hold untrusted text."""
    one = measures[0]
    known = ""
    if one.labels is not None:
        n = counted(one.labels.n, "label")
        known = f"; {n} give {estimate_text(one.labels, chance=False)}"
    reference = estimate_text(one.reference, chance=False)
    if not np.isfinite(one.new.value):
        return f"{one.title}: {reference} on the reference rows, {one.new.interval}{known}."
    return (
        f"{one.title}: {reference} on the reference rows, estimated at "
        f"{estimate_text(one.new, chance=False)} on the new ones{known}."
    )


def measures_table(measures: Sequence[ComparedMeasure]) -> pd.DataFrame:
    """A row for each measure and kind of rows; names as they are."""
    return pd.DataFrame(
        [
            {
                "measure": one.title,
                "rows": kind,
                "estimator": estimate.name,
                "value": estimate.value,
                "low": estimate.low,
                "high": estimate.high,
                "n": estimate.n,
                "interval": estimate.interval,
            }
            for one in measures
            for kind, estimate in zip(_KINDS, (one.reference, one.new, one.labels), strict=True)
            if estimate is not None
        ]
    )


_KINDS = ("reference", "new, without labels", "new, from labels")


def _measures_figure(measures: Sequence[ComparedMeasure], dark: bool, reference: str) -> go.Figure:
    colours = palette(dark)
    with_labels = any(one.labels is not None for one in measures)
    names = ["Reference", "Without labels", "From labels"][: 2 + with_labels]
    figure = dot_panels(names, [escape_html(one.title, limit=40) for one in measures], dark)
    ink = new_rows_ink(colours)
    looks = (
        {"color": reference, "symbol": "circle"},
        {"color": ink, "symbol": "diamond-open", "line": {"width": 2}},
        {"color": ink, "symbol": "diamond"},
    )
    for at, one in enumerate(measures):
        for line, estimate in enumerate((one.reference, one.new, one.labels)[: len(names)]):
            if estimate is not None and np.isfinite(estimate.value):
                figure.add_trace(_dot(estimate, line, looks[line], at, names[line], colours))
        axis = {"nticks": 3, **({"tickformat": ".0%"} if one.reference.percent else {})}
        figure.update_layout({panel(at)["xaxis"].replace("x", "xaxis"): axis})
    return figure


def _dot(
    estimate: Estimate,
    line: float,
    look: dict[str, Any],
    at: int,
    name: str,
    colours: Palette,
    **more: Any,
) -> go.Scatter:
    return go.Scatter(
        x=[estimate.value],
        y=[line],
        mode="markers",
        marker={"size": 10, **look},
        error_x=strokes([estimate], colours),
        hovertext=f"{name}: {estimate_text(estimate, chance=False)}, {estimate.n:,} rows",
        hovertemplate="%{hovertext}<extra></extra>",
        name=name,
        **{"showlegend": False, **more},
        **panel(at),
    )


MOST_CLASSES = 20
"""Classes that are drawn and listed; the table has all of them."""


def class_shares_chart(
    shares: LabelShift,
    classes: Sequence[str],
    shift: ScoreShift | None = None,
    *,
    dark: bool = False,
    calibrated: bool = False,
) -> Chart:
    """The share of each class in the reference rows and, without labels, in the new ones.

    Parameters
    ----------
    classes : sequence of str
        Names. Untrusted text.
    shift : ScoreShift, optional
        Whose tests are more in the correction.
    """
    words = shares_words(shares, classes, shift)
    return Chart(
        _shares_figure(shares, classes, dark, reference_ink(calibrated, palette(dark))),
        finding=words,
        alt=f"The share of {counted(len(classes), 'class', 'classes')} in both tables. {words}",
        how_to_read=SHARES,
        table=lambda: shares_table(shares, classes),
        name="class shares",
    )


def shares_words(
    shares: LabelShift, classes: Sequence[str], shift: ScoreShift | None = None
) -> str:
    """The class whose share changed most, and whether any did. Holds untrusted text."""
    if shares.misfit:
        return shares.misfit
    at = int(np.abs(shares.prior - shares.reference_prior).argmax())
    one = shares.shares[at]
    reference = value_text(one, float(shares.reference_prior[at]))
    changed = "changed" if shares_beyond_chance(shares, shift) else "did not change"
    p_words = _p_words(shares.p_value, float(_corrected(shift, shares)[-1]))
    return (
        f"The classes' shares {changed} beyond chance ({p_words}): "
        f"{classes[at][:60]} from {reference} to {estimate_text(one, chance=False)}."
    )


def shares_table(shares: LabelShift, classes: Sequence[str]) -> pd.DataFrame:
    """A row for each class; names as they are."""
    return pd.DataFrame(
        [
            {
                "class": name,
                "reference": shares.reference_prior[k],
                "new": share.value,
                "new_low": share.low,
                "new_high": share.high,
                "change": change.value,
                "change_low": change.low,
                "change_high": change.high,
                "calibration_p_value": shares.calibration_p_values[k],
            }
            for k, (name, share, change) in enumerate(
                zip(classes, shares.shares, shares.changes, strict=True)
            )
        ]
    )


def _shares_figure(
    shares: LabelShift, classes: Sequence[str], dark: bool, reference: str
) -> go.Figure:
    colours = palette(dark)
    shown = list(classes[:MOST_CLASSES])
    figure = dot_panels(shown, ["Share of rows"], dark)
    lines = np.arange(len(shown))
    figure.add_trace(
        go.Scatter(
            x=shares.reference_prior[: len(shown)],
            y=lines - _APART,
            mode="markers",
            marker={"size": 10, "color": reference, "symbol": "circle"},
            hovertemplate="%{x:.1%} of the reference rows<extra></extra>",
            name="Reference",
            **panel(0),
        )
    )
    new = shares.shares[: len(shown)]
    figure.add_trace(
        go.Scatter(
            x=[one.value for one in new],
            y=lines + _APART,
            mode="markers",
            marker={"size": 10, "color": new_rows_ink(colours), "symbol": "diamond-open"},
            error_x=strokes(new, colours),
            hovertext=[estimate_text(one, chance=False) for one in new],
            hovertemplate="%{hovertext} of the new rows<extra></extra>",
            name="New rows, without labels",
            **panel(0),
        )
    )
    legend = {"orientation": "h", "x": 0, "y": 0, "yanchor": "top", "yref": "paper"}
    figure.update_layout(
        showlegend=True, legend=legend, margin_b=40, xaxis={"tickformat": ".0%", "nticks": 6}
    )
    figure.update_layout(height=figure.layout.height + 30)
    return figure
