"""Recalibration methods compared: every measure before and after, and the choice of neighbours.

Measures have intervals and paired differences. Cross-fitted CRPS determines the number of
neighbours and their space.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import Chart, new_figure, panel
from kdcal_core.charts.marks import band, dot_panels, hovered, mark, strokes
from kdcal_core.charts.palette import Palette, faded, method_style, palette
from kdcal_core.data.schema import FloatArray
from kdcal_core.diagnostics import Estimate, estimate_text, interval_text, value_text
from kdcal_core.diagnostics.regression.distribution_scores import RegressionScores
from kdcal_core.evaluation import (
    MEASURES,
    MODEL,
    RecalibratorScores,
    RepairChoice,
    meanings,
    repairs,
)
from kdcal_core.regression import NeighbourSelection
from kdcal_core.text import counted, escape_html

_STATED = {"coverage95": 0.95}


HOW_TO_READ = r"""
Each panel is a measure, each line a method. Bars are 95% intervals; the pale band is that of the
model. **MSE** against the outcomes includes their noise and cannot fall to 0.
**MSE against the truth** needs a known truth (Torres et al., Tables 1 and 2, use one each).
**sMIS** is Torres et al., Eq. 5, as Gneiting and Raftery define the score.

Two methods judged on the same rows share most of their noise. The **changes** below are paired, row
by row, and show differences that the intervals above would hide. Recalibration does not aim to
lower the MSE (Torres et al., section 5).

"""
DIFFERENCES = r"""
Each panel is a measure, each line a method. Dots are the mean change from the model as it is, each
row compared with itself, and bars are 95% intervals. The dashed line is no change: a bar that does
not reach it is a change beyond chance. To the left of it the measure falls; lower is better for all
measures here. Recalibration does not aim to lower the squared error (Torres et al., section 5).

"""


@dataclass(frozen=True, eq=False)
class MeasuredRecalibration:
    """A line of the figure.

    Attributes
    ----------
    key : str
        "model", "truth" or a key of `RECALIBRATORS`; it sets colour and symbol.
    label : str
        Untrusted.
    scores : RegressionScores
    differences : mapping of measure to Estimate
        Mean paired difference from the model, row by row.
    """

    key: str
    label: str
    scores: RegressionScores
    differences: Mapping[str, Estimate] = field(default_factory=dict)

    @classmethod
    def of(cls, found: RecalibratorScores) -> MeasuredRecalibration:
        """The line of a judged method, or of the model."""
        label = recalibrator_title(found.key, found.title)
        return cls(found.key, label, found.scores, found.differences)


def recalibration_measures_chart(
    methods: Sequence[MeasuredRecalibration], *, dark: bool = False, narrow: bool = False
) -> Chart:
    """Every measure of every method."""
    return Chart(
        recalibration_measures_figure(methods, dark=dark, narrow=narrow),
        finding=measures_words(methods),
        alt=measures_alt(methods, list(MEASURES)),
        how_to_read=HOW_TO_READ + meanings(_shown(methods)),
        table=lambda: recalibration_measures_table(methods),
        name="measures",
    )


def recalibration_measures_figure(
    methods: Sequence[MeasuredRecalibration], *, dark: bool, narrow: bool = False
) -> go.Figure:
    """One panel per measure, one line per method: the value as a dot, its interval as a bar.

    The model's interval is a pale band through all lines; a dashed line is the stated value, if
    there is one.
    """
    shown = _shown(methods)
    figure = dot_panels(
        [one.label for one in methods],
        [MEASURES[key].title for key in shown],
        dark,
        narrow=narrow,
    )
    colours = palette(dark)
    for at, key in enumerate(shown):
        estimates = [method.scores.rows.get(key) for method in methods]
        figure.add_trace(_dots(methods, estimates, colours, **panel(at)))
        if methods[0].key == "model":
            band(figure, estimates[0], colours.model, panel(at))
        if key in _STATED:
            mark(figure, _STATED[key], colours.truth, panel(at))
        if any(each is not None and each.percent for each in estimates):
            axis = panel(at)["xaxis"].replace("x", "xaxis")
            figure.update_layout({axis: {"tickformat": ".0%"}})
    return figure


def _shown(methods: Sequence[MeasuredRecalibration]) -> list[str]:
    """The measures that at least one method has."""
    return [key for key in MEASURES if any(key in method.scores.rows for method in methods)]


def recalibration_finding(model: RecalibratorScores, method: RecalibratorScores) -> str:
    """The gain of the method, or that it cannot be told apart from the model."""
    before, after = model.scores.rows["crps"], method.scores.rows["crps"]
    change = method.differences["crps"]
    paired = f"paired difference {value_text(change)}, {interval_text(change)}, {change.n:,} rows"
    if change.low <= 0.0 <= change.high:
        lead = (
            f"{method.title} and the model cannot be told apart by CRPS: "
            f"{value_text(before)} before, {value_text(after)} after ({paired})"
        )
    else:
        verb = "lowers" if change.value < 0 else "raises"
        lead = (
            f"{method.title} {verb} CRPS from {value_text(change, before.value)} to "
            f"{value_text(change, after.value)} ({paired})"
        )
    held, was = method.scores.rows["coverage95"], model.scores.rows["coverage95"]
    hold = f"{value_text(held)} of the outcomes, before {value_text(was)}"
    return f"{lead}; its 95% intervals hold {hold}."


def recalibration_advice(methods: Sequence[RecalibratorScores], choice: RepairChoice) -> str:
    """The recommended repair with the reason, and how each repair changes the CRPS."""
    model = next(one for one in methods if one.key == MODEL).scores.rows["crps"].value
    found = repairs(methods)
    if not found or model <= 0:
        return ""
    changes = ", ".join(
        f"{recalibrator_title(one.key, one.title)} {_share(one.differences['crps'], model)}"
        for one in found
    )
    return f"{choice.reason} Change of the CRPS: {changes}."


def better_model_words(methods: Sequence[RecalibratorScores], choice: RepairChoice) -> str:
    """That a better model is the answer, with numbers; "" where it is not."""
    if choice.better is None or choice.better_by is None:
        return ""
    second = {one.key: one for one in methods}[choice.better]
    crps, by = second.scores.rows["crps"], choice.better_by
    before = crps.value - by.value  # of the best of the others
    return (
        f"A better model, not a better calibration: {second.title} on the calibration rows has a "
        f"CRPS of {value_text(by, crps.value)}, {abs(by.value / before):.0%} less than the best of "
        f"the model and its repairs (paired difference {value_text(by)}, {interval_text(by)}, "
        f"{by.n:,} rows). The columns hold signal that the model does not use: train it again."
    )


def _share(change: Estimate, whole: float) -> str:
    """A change as a share of the model's CRPS, with its interval."""
    value, low, high = (one / whole for one in (change.value, change.low, change.high))
    share = replace(change, value=value, low=low, high=high, percent=True)
    return estimate_text(share, chance=False)


def recalibrator_title(key: str, title: str) -> str:
    """A method's name on a chart."""
    return "Model" if key == MODEL else title.replace(" recalibration", "")


def recalibration_differences_chart(
    methods: Sequence[MeasuredRecalibration], *, dark: bool = False, narrow: bool = False
) -> Chart:
    """The paired change of every measure of every method from the model."""
    keys = _changed(methods)
    return Chart(
        recalibration_differences_figure(methods, dark=dark, narrow=narrow),
        finding=differences_words(methods),
        alt=differences_alt(methods),
        how_to_read=DIFFERENCES + meanings(keys),
        table=lambda: recalibration_differences_table(methods),
        name="changes",
    )


def recalibration_differences_figure(
    methods: Sequence[MeasuredRecalibration], *, dark: bool, narrow: bool = False
) -> go.Figure:
    """Paired differences from the model on the same rows, with their intervals.

    An interval that excludes 0 shows a difference beyond noise. The model, at 0, is left out.
    """
    others = [method for method in methods if method.key != "model"]
    shown = _changed(methods)
    titles = [f"{MEASURES[key].title}: change" for key in shown]
    figure = dot_panels([one.label for one in others], titles, dark, narrow=narrow)
    colours = palette(dark)
    for at, key in enumerate(shown):
        estimates = [method.differences.get(key) for method in others]
        figure.add_trace(_dots(others, estimates, colours, **panel(at)))
        mark(figure, 0.0, colours.truth, panel(at))
    return figure


def _changed(methods: Sequence[MeasuredRecalibration]) -> list[str]:
    """The measures whose change at least one method has."""
    others = [method for method in methods if method.key != "model"]
    return [key for key in MEASURES if any(key in method.differences for method in others)]


def recalibration_measures_table(methods: Sequence[MeasuredRecalibration]) -> pd.DataFrame:
    """One row per method and measure, with its paired difference if there is one."""
    lines = []
    for method in methods:
        for key, estimate in method.scores.rows.items():
            change = method.differences.get(key)
            lines.append(
                {
                    "method": method.label,
                    "measure": key,
                    "name": estimate.name,
                    "value": estimate.value,
                    "low": estimate.low,
                    "high": estimate.high,
                    "rows": estimate.n,
                    "difference": np.nan if change is None else change.value,
                    "difference_low": np.nan if change is None else change.low,
                    "difference_high": np.nan if change is None else change.high,
                }
            )
    return pd.DataFrame(lines)


def recalibration_differences_table(methods: Sequence[MeasuredRecalibration]) -> pd.DataFrame:
    """One row per method and measure: the paired difference from the model."""
    return pd.DataFrame(
        [
            {
                "method": method.label,
                "measure": key,
                "name": change.name,
                "difference": change.value,
                "low": change.low,
                "high": change.high,
                "rows": change.n,
            }
            for method in methods
            if method.key != "model"
            for key, change in method.differences.items()
        ]
    )


def _dots(
    methods: Sequence[MeasuredRecalibration],
    estimates: Sequence[Estimate | None],
    colours: Palette,
    **axes: Any,
) -> go.Scatter:
    """The methods of one panel; a missing or infinite measure has no dot."""
    known = [
        (at, method, estimate)
        for at, (method, estimate) in enumerate(zip(methods, estimates, strict=True))
        if estimate is not None and np.isfinite(estimate.value)
    ]
    styles = [method_style(method.key, colours)[::2] for _, method, _ in known]
    return go.Scatter(
        x=[estimate.value for _, _, estimate in known],
        y=[at for at, _, _ in known],
        mode="markers",
        marker={
            "size": 9,
            "color": [colour for colour, _ in styles],
            "symbol": [symbol for _, symbol in styles],
            # this symbol is only a line, without a fill
            "line": {
                "width": [2 if symbol == "line-ns-open" else 0 for _, symbol in styles],
                "color": [colour for colour, _ in styles],
            },
        },
        error_x=strokes([estimate for _, _, estimate in known], colours),
        text=[
            f"{escape_html(method.label, limit=32)}<br>{estimate_text(estimate)}"
            f"<br>{estimate.n:,} rows"
            for _, method, estimate in known
        ],
        hovertemplate="%{text}<extra></extra>",
        **axes,
    )


def measures_words(methods: Sequence[MeasuredRecalibration], measure: str = "crps") -> str:
    """Which method has the lowest mean score, and whether it beats the model on the same rows."""
    known = [
        method
        for method in methods
        if method.key != "truth"
        and measure in method.scores.rows
        and np.isfinite(method.scores.rows[measure].value)
    ]
    title = MEASURES[measure].title
    if not known:
        return f"{title} is not defined for any method here."
    best = min(known, key=lambda method: method.scores.rows[measure].value)
    text = f"{best.label} has the lowest {title}: {estimate_text(best.scores.rows[measure])}"
    model = next((method for method in known if method.key == "model"), None)
    if model is None:
        return f"{text}."
    if model is best:
        return f"{text}. No repair improves on it."
    change = best.differences.get(measure)
    if change is None:
        return f"{text}, against {estimate_text(model.scores.rows[measure])} before."
    return f"{text}. {_change_words(change, model.scores.rows[measure].value)}"


def _change_words(change: Estimate, before: float) -> str:
    share = f", {abs(change.value / before):.0%} {_side(change.value)}" if before > 0 else ""
    clear = change.high < 0 or change.low > 0
    ending = "" if clear else "; that may be chance"
    return f"Row by row it changes by {estimate_text(change, chance=False)}{share}{ending}."


def _side(change: float) -> str:
    return "less" if change < 0 else "more"


def differences_words(methods: Sequence[MeasuredRecalibration]) -> str:
    """How many methods change the CRPS beyond chance, and the one that lowers it most."""
    title = MEASURES["crps"].title
    known = [
        (one, one.differences["crps"])
        for one in methods
        if one.key != "model" and "crps" in one.differences
    ]
    if not known:
        return f"No change of {title} is defined here."
    best, most = min(known, key=lambda pair: pair[1].value)
    lower = sum(change.high < 0 for _, change in known)
    higher = sum(change.low > 0 for _, change in known)
    beyond = [f"{lower or 'none'} {'lower' if lower > 1 else 'lowers'} {title} beyond chance"]
    if higher:
        beyond.append(f"{higher:,} {'raises' if higher == 1 else 'raise'} it")
    return (
        f"Of {counted(len(known), 'method')}, {' and '.join(beyond)}. The lowest change, row by "
        f"row, is that of {best.label}: {estimate_text(most, chance=False)}, "
        f"{counted(most.n, 'row')}."
    )


def differences_alt(methods: Sequence[MeasuredRecalibration]) -> str:
    """Alternative text of the changes: every value."""
    text = "; ".join(
        f"{method.label}: "
        + ", ".join(
            f"{MEASURES[key].title} {estimate_text(method.differences[key], chance=False)}"
            for key in _changed([method])
        )
        for method in methods
        if method.key != "model" and method.differences
    )
    return f"Paired changes of each method from the model with their intervals. {text}."


def measures_alt(methods: Sequence[MeasuredRecalibration], measures: Sequence[str]) -> str:
    """Alternative text of the measures: every value."""
    text = "; ".join(
        f"{method.label}: "
        + ", ".join(
            f"{MEASURES[key].title} {estimate_text(method.scores.rows[key])}"
            for key in measures
            if key in method.scores.rows
        )
        for method in methods
    )
    return f"Measures by method with their intervals. {text}."


_CURVE_SYMBOLS = ("circle", "square", "triangle-up", "pentagon", "star", "hexagon")
_APART = 0.012  # of the logarithmic axis, so that bars of two spaces do not overlap


SELECTION = r"""
Cross-fitted CRPS (lower is better) against the number of neighbours, with one curve for each space
in which neighbours are searched for. Few neighbours follow local faults closely but are noisy; many
are stable but blur local faults (Torres et al., section 3). The ring is the choice. Bars are 95%
intervals of the difference from it, row by row: choices whose bars reach its height are as good,
and a larger k is more stable. Slate is the model without any repair.
"""


@dataclass(frozen=True, eq=False)
class SelectionCurve:
    """A space, whose name may come from a file, and its CRPS (q,) for each k (q,).

    ``low`` and ``high`` are the CRPS with the interval of its difference from the chosen one.
    """

    space: str
    ks: FloatArray
    crps: FloatArray
    low: FloatArray
    high: FloatArray


def neighbour_selection_chart(
    selection: NeighbourSelection, titles: Mapping[str, str], *, dark: bool = False
) -> Chart:
    """How the neighbours were chosen; ``titles`` are those of the spaces, untrusted text."""
    words = selection.words({name: title.lower() for name, title in titles.items()})
    curves = selection_curves(selection, titles)
    chosen = (titles[selection.best_space], selection.best_k)
    value = selection.model_crps
    model = Estimate("CRPS of the model as it is", "CRPS", value, value, value, selection.n)
    return Chart(
        neighbour_selection_figure(curves, dark=dark, chosen=chosen, model=model),
        finding=words,
        alt=words,
        how_to_read=SELECTION,
        table=lambda: neighbour_selection_table(curves),
        name="neighbours",
    )


def selection_curves(
    selection: NeighbourSelection, titles: Mapping[str, str]
) -> list[SelectionCurve]:
    """Cross-fitted CRPS by number of neighbours, with intervals of the difference from the best."""
    curves = []
    for name, crps in zip(selection.spaces, selection.crps, strict=True):
        reach, ks = selection.reach(name), np.asarray(selection.ks, dtype=np.float64)
        curves.append(SelectionCurve(titles[name], ks, crps, crps - reach, crps + reach))
    return curves


def neighbour_selection_figure(
    curves: Sequence[SelectionCurve],
    *,
    dark: bool,
    chosen: tuple[str, int],
    model: Estimate | None = None,
) -> go.Figure:
    """One curve per space against the number of neighbours; the choice has a ring.

    ``chosen`` is the space and its number of neighbours, ``model`` the CRPS without any repair.
    """
    colours = palette(dark)
    figure = new_figure(dark, height=340)
    if model is not None:
        _model(figure, model, curves, dark)
    for at, curve in enumerate(curves):
        ours = curve.space == chosen[0]
        colour = colours.calibrated if ours else colours.classes[at % len(colours.classes)]
        name = escape_html(curve.space, limit=40)
        shift = 1.0 + _APART * (2 * at - len(curves) + 1)
        figure.add_trace(
            go.Scatter(
                x=curve.ks * shift,
                y=curve.crps,
                mode="lines+markers",
                line={"color": colour, "width": 2.2 if ours else 1.4},
                marker={
                    "symbol": _CURVE_SYMBOLS[at % len(_CURVE_SYMBOLS)],
                    "size": 7,
                    "color": colour,
                },
                error_y={
                    "type": "data",
                    "symmetric": False,
                    "array": curve.high - curve.crps,
                    "arrayminus": curve.crps - curve.low,
                    "color": faded(colour, 0.6),
                    "thickness": 1.2,
                    "width": 0,
                },
                name=name,
                **hovered(
                    "k = {:,.0f}: CRPS {}<br>{} to {}",
                    curve.ks,
                    curve.crps,
                    curve.low,
                    curve.high,
                    name="%{fullData.name}",
                ),
            )
        )
        place = np.flatnonzero(curve.ks == chosen[1])
        if ours and place.size:
            figure.add_trace(
                go.Scatter(
                    x=curve.ks[place] * shift,
                    y=curve.crps[place],
                    mode="markers",
                    marker={
                        "symbol": "circle-open",
                        "size": 17,
                        "color": colours.truth,
                        "line": {"width": 2},
                    },
                    name=f"Chosen: {name}, k = {chosen[1]:,}",
                    hoverinfo="skip",
                )
            )
    ticks = sorted({int(k) for curve in curves for k in curve.ks})
    figure.update_layout(
        xaxis={
            "type": "log",
            "title_text": "Neighbours, k",
            "tickvals": ticks,
            "ticktext": [f"{tick:,}" for tick in ticks],
        },
        yaxis={"title_text": "Cross-fitted CRPS", "nticks": 6},
        margin={"t": 64},
    )
    return figure


def neighbour_selection_table(curves: Sequence[SelectionCurve]) -> pd.DataFrame:
    """One row per space and number of neighbours."""
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "space": curve.space,
                    "k": curve.ks,
                    "crps": curve.crps,
                    "low": curve.low,
                    "high": curve.high,
                }
            )
            for curve in curves
        ],
        ignore_index=True,
    )


def _model(
    figure: go.Figure, model: Estimate, curves: Sequence[SelectionCurve], dark: bool
) -> None:
    """The model's own CRPS as a grey horizontal line, with its interval."""
    colour = palette(dark).model
    ks = np.concatenate([curve.ks for curve in curves]) if curves else np.ones(1)
    figure.add_hrect(
        y0=model.low, y1=model.high, fillcolor=faded(colour, 0.12), line_width=0, layer="below"
    )
    figure.add_trace(
        go.Scatter(
            x=[ks.min(), ks.max()],
            y=[model.value, model.value],
            mode="lines",
            line={"color": colour, "width": 2},
            name="Model as it is",
            **hovered("Model as it is: {}", [model.value] * 2),
        )
    )
