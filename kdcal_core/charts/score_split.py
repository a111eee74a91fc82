"""The Brier score of every method in two parts: what calibration can correct, and the rest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import LEGEND_BELOW, Chart, new_figure
from kdcal_core.charts.comparison import method_name
from kdcal_core.charts.marks import hovered
from kdcal_core.charts.palette import Palette, method_style, palette
from kdcal_core.diagnostics import BrierSplit
from kdcal_core.evaluation import Comparison
from kdcal_core.text import escape_html, formatted

SPLIT = r"""
Each mark is a method. **Across** stands its miscalibration: the part of the Brier score that a
monotone correction of each class's probability could still remove from these rows (the isotonic
curve is fitted on them, so even a calibrated model shows a little). **Up** stands its
discrimination: how much its probabilities, once corrected, tell more than the class shares.

On a **dashed line** the Brier score is the same: it falls towards the upper left. A calibrator that
only moves a mark to the left corrects calibration. One that reads the columns and moves it **up**
beyond chance knows something that the model does not: a better model, not a better calibration. One
that reads only probabilities can move it up too, where those of other classes say more.

Brier = miscalibration - discrimination + uncertainty, exactly, summed over the classes (CORP,
[Dimitriadis, Gneiting and Jordan 2021](https://doi.org/10.1073/pnas.2016191118)).
"""
_HEIGHT = 420
_LINES = 6
_NEAR = 0.02  # of an axis
_SAME = 0.1  # of the model's miscalibration: smaller changes of discrimination are not named


def split_chart(found: Comparison, order: Sequence[str], *, dark: bool = False) -> Chart:
    """Miscalibration against discrimination of every method, on lines of equal Brier score."""
    words = split_words(found, order)
    return Chart(
        _figure(found, order, dark),
        finding=words,
        alt=f"{len(order)} methods by miscalibration and discrimination. {words}",
        how_to_read=SPLIT,
        table=lambda: split_table(found, order),
        name="score decomposition",
    )


def split_table(found: Comparison, order: Sequence[str]) -> pd.DataFrame:
    """One row a method: the Brier score and its parts."""
    splits = [found.method(key).split for key in order]
    return pd.DataFrame(
        {
            "method": [method_name(found, key) for key in order],
            "brier": [one.score for one in splits],
            "miscalibration": [one.miscalibration for one in splits],
            "discrimination": [one.discrimination for one in splits],
            "uncertainty": [one.uncertainty for one in splits],
        }
    )


def split_words(found: Comparison, order: Sequence[str]) -> str:
    """What the best method corrects, and whether it discriminates better than the model.

    Only of a method that reads more than probabilities, and beyond chance, is a gain of
    discrimination called a better model.
    """
    model = found.method(found.reference).split
    best = min(order, key=lambda key: found.method(key).split.score)
    split = found.method(best).split
    said = f"Of the model's Brier score, {_number(model.score)}, {_number(model.miscalibration)} "
    said += "is miscalibration"
    if best == found.reference:
        return f"{said}, and no method has a smaller score."
    said += f"; {method_name(found, best)} has {_number(split.miscalibration)}"
    gained = split.discrimination - model.discrimination
    if abs(gained) <= _SAME * model.miscalibration:
        return f"{said} and discriminates as the model does."
    low, high = found.method(best).discriminates or (-np.inf, np.inf)
    if low <= 0.0 <= high:
        return f"{said}, and its discrimination cannot be told apart from the model's."
    if gained < 0.0:
        return f"{said}, and discriminates less by {_number(-gained)}."
    said += f" and discriminates better by {_number(gained)} ({_number(low)} to {_number(high)})"
    if found.method(best).reads_inputs:
        return f"{said}: that part is a better model, not a better calibration."
    return f"{said}, from the model's probabilities alone."


def _number(value: float) -> str:
    return formatted(value, ".4f")


def _figure(found: Comparison, order: Sequence[str], dark: bool) -> go.Figure:
    colours = palette(dark)
    splits = {key: found.method(key).split for key in order}
    figure = new_figure(dark, height=_HEIGHT)
    low, high = _range([one.discrimination for one in splits.values()])
    left, right = _range([one.miscalibration for one in splits.values()])
    left = max(left, 0.0)
    figure.add_traces(_isolines(next(iter(splits.values())), (left, right), (low, high), colours))
    for key, one in splits.items():
        colour, _, symbol = method_style(key, colours)
        name = escape_html(method_name(found, key))
        figure.add_trace(
            go.Scatter(
                x=[one.miscalibration],
                y=[one.discrimination],
                mode="markers",
                marker={"color": colour, "symbol": symbol, "size": 11},
                name=name,
                **hovered(
                    "miscalibration {:.4f}, discrimination {:.4f}, Brier score {:.4f}",
                    [one.miscalibration],
                    [one.discrimination],
                    [one.score],
                    name=name,
                ),
            )
        )
    figure.add_traces(_names(found, order, (right - left, high - low), colours))
    figure.update_layout(
        xaxis={"title_text": "Miscalibration (less is better)", "range": [left, right]},
        yaxis={"title_text": "Discrimination (more is better)", "range": [low, high]},
        legend=LEGEND_BELOW,
        margin={"t": 16, "b": 120},
    )
    return figure


def _names(
    found: Comparison, order: Sequence[str], sizes: tuple[float, float], colours: Palette
) -> list[go.Scatter]:
    """A name at each mark, or the number of methods where several marks are one to the eye."""
    left, texts = list(order), []
    while left:
        first = found.method(left[0]).split
        here = [
            key
            for key in left
            if abs(found.method(key).split.miscalibration - first.miscalibration) < _NEAR * sizes[0]
            and abs(found.method(key).split.discrimination - first.discrimination)
            < _NEAR * sizes[1]
        ]
        left = [key for key in left if key not in here]
        name = method_name(found, here[0]) if len(here) == 1 else f"{len(here)} methods"
        texts.append((first.miscalibration, first.discrimination, f"{escape_html(name)}<br> "))
    across, up, said = zip(*texts, strict=True)
    return [
        go.Scatter(
            x=across,
            y=up,
            text=said,
            mode="text",
            textposition="top center",
            textfont={"size": 12, "color": colours.text},
            showlegend=False,
            hoverinfo="skip",
        )
    ]


def _range(values: Sequence[float]) -> tuple[float, float]:
    """The values with some room on both sides."""
    low, high = min(values), max(values)
    room = max(0.15 * (high - low), 1e-3)
    return low - room, high + room


def _isolines(
    split: BrierSplit,
    across: tuple[float, float],
    up: tuple[float, float],
    colours: Palette,
) -> list[go.Scatter]:
    """Lines of equal Brier score: miscalibration minus discrimination is constant."""
    ends = np.array(across)
    offsets = np.linspace(across[0] - up[1], across[1] - up[0], _LINES + 2)[1:-1]
    return [
        go.Scatter(
            x=ends,
            y=ends - offset,
            mode="lines",
            line={"color": colours.muted, "width": 1, "dash": "4px,4px"},
            showlegend=False,
            **hovered("Brier score {:.4f}", [offset + split.uncertainty] * 2),
        )
        for offset in offsets
    ]
