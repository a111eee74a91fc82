"""A comparison of calibrators as dots with intervals: every measure, and paired differences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.dot_panels import band, dot_panels, mark, strokes
from kdcal_core.charts.palette import Palette, palette
from kdcal_core.charts.template import panel
from kdcal_core.diagnostics import Estimate, estimate_text
from kdcal_core.evaluation import Comparison, MethodScores
from kdcal_core.evaluation.comparison import Against

MODEL_NAME = "The model as it is"


def method_name(found: Comparison, key: str) -> str:
    """What a method is called on charts. A user's own name is untrusted text."""
    return MODEL_NAME if key == found.reference else found.method(key).name


def ranked(found: Comparison, measure: str) -> tuple[str, ...]:
    """Keys of all methods, the best by this measure first; of equal ones the first in the list.

    Where the measure is of speed the model comes last: it has nothing to fit.
    """
    chosen = found.measure(measure)
    sign = 1.0 if chosen.lower_is_better else -1.0

    def place(one: MethodScores) -> tuple[bool, float]:
        idle = chosen.group == "speed" and one.key == found.reference
        return idle, sign * one.scores[measure].value

    return tuple(one.key for one in sorted(found.methods, key=place))


def comparison_figure(
    found: Comparison, measures: Sequence[str], order: Sequence[str], *, dark: bool
) -> go.Figure:
    """One panel a measure, one line a method, in the given order.

    The model is a grey circle and its interval a pale band through all lines. Calibrators are
    diamonds: full where they are the best of the measure or cannot be told apart from it.
    Measures of speed have logarithmic axes, what is 0 has no dot there, and all marks are full.
    """
    colours = palette(dark)
    titles = [found.measure(key).title for key in measures]
    figure = dot_panels([method_name(found, key) for key in order], titles, dark)
    reference = found.method(found.reference)
    for at, key in enumerate(measures):
        speed = found.measure(key).group == "speed"
        full = order if speed else found.close_to_best(key)
        estimates = [found.method(one).scores[key] for one in order]
        figure.add_trace(_dots(found, order, estimates, full, colours, at, above_zero=speed))
        x_axis = panel(at)["xaxis"].replace("x", "xaxis")
        if speed:
            figure.update_layout({x_axis: {"type": "log", "dtick": 1}})
            continue
        one = reference.scores[key]
        band(figure, one, colours.model, panel(at))
        mark(figure, one.value, colours.model, panel(at), dash="solid")
        if one.percent:
            figure.update_layout({x_axis: {"tickformat": ".0%"}})
    return figure


def paired_figure(
    found: Comparison,
    measures: Sequence[str],
    order: Sequence[str],
    against: Against,
    *,
    dark: bool,
) -> go.Figure:
    """Each method less the model, or less the best of the measure, on the same rows.

    Full marks are told apart from 0 once all methods are allowed for (Holm). The one that is held
    against has no mark.
    """
    colours = palette(dark)
    shown = [key for key in order if against == "best" or key != found.reference]
    titles = [found.measure(key).title for key in measures]
    figure = dot_panels([method_name(found, key) for key in shown], titles, dark)
    for at, key in enumerate(measures):
        pairs = {pair.key: pair for pair in found.paired[key, against]}
        other = found.best[key] if against == "best" else found.reference
        told = [one for one in shown if pairs[one].verdict != "cannot be told apart"]
        lines = [None if one == other else pairs[one].difference for one in shown]
        figure.add_trace(_dots(found, shown, lines, told, colours, at))
        mark(figure, 0.0, colours.truth, panel(at))
    return figure


def comparison_table(found: Comparison, measures: Sequence[str]) -> pd.DataFrame:
    """Data of the dots and the paired differences: a line for each method and measure."""
    table = found.table()
    named = table["method"].map(lambda key: method_name(found, key))
    return table.assign(name=named)[table["measure"].isin(list(measures))]


def _dots(
    found: Comparison,
    order: Sequence[str],
    estimates: Sequence[Estimate | None],
    full: Sequence[str],
    colours: Palette,
    at: int,
    *,
    above_zero: bool = False,
) -> go.Scatter:
    known = [
        (line, key, one)
        for line, (key, one) in enumerate(zip(order, estimates, strict=True))
        if one is not None and np.isfinite(one.value) and (one.value > 0 or not above_zero)
    ]
    model = [key == found.reference for _, key, _ in known]
    colour = [colours.model if one else colours.calibrated for one in model]
    names = {key: method_name(found, key) for _, key, _ in known}
    return go.Scatter(
        x=[one.value for _, _, one in known],
        y=[line for line, _, _ in known],
        mode="markers",
        marker={
            "size": 10,
            "color": colour,
            "symbol": [
                ("circle" if one else "diamond") + ("" if key in full else "-open")
                for one, (_, key, _) in zip(model, known, strict=True)
            ],
            "line": {"width": 1.5, "color": colour},
        },
        error_x=strokes([one for _, _, one in known], colours),
        text=[
            f"{names[key]}<br>{estimate_text(one)}<br>{one.n:,} {'fits' if above_zero else 'rows'}"
            for _, key, one in known
        ],
        hovertemplate="%{text}<extra></extra>",
        **panel(at),
    )
