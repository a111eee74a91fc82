"""The simulation lab over training sizes: measures of many runs, by the number of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import Chart, panel
from kdcal_core.charts.lab import LAB_BANDED
from kdcal_core.charts.marks import BandLine, PanelTitle, band_lines, new_panels
from kdcal_core.charts.palette import Palette, faded, method_style, palette
from kdcal_core.data.schema import FloatArray
from kdcal_core.text import formatted, listed

_FULLEST = 0.75  # opacity of a box
_SYMBOLS = ("circle", "square", "diamond", "cross")
_MOST_BOXES = 4  # methods: more boxes side by side are too narrow
REPEATED_RUNS = """
Each repetition draws new rows, trains a new model and judges it on fresh rows.

"""
CURVES = """
A point is the median over the repetitions; a band goes from the first to the third quartile (Dey et
al., Fig. 3; Fig. 1 of the earlier version). Curves without a band show it on hover. Exponent and
floor of the kernel density version are chosen from the data in each run.
"""
BOXES = """
A box holds the middle half of the repetitions with the median as its line; whiskers reach to the
outermost ones (Torres et al., Fig. 4). Boxes of more neighbours are filled more. Few neighbours
are less biased, more are less noisy; a number above that of the calibration rows cannot be run.
"""


@dataclass(frozen=True, eq=False)
class SizesPanel:
    """A measure of every run.

    Attributes
    ----------
    title : str
    values : (S, R, M)
        By size, repetition and method.
    percent, log : bool
        Whether it is written as a percentage, and drawn on a logarithmic axis.
    target : (float, str), optional
        A value to compare it with, and the name of its line, which may be empty.
    """

    title: str
    values: FloatArray
    percent: bool = False
    log: bool = False
    target: tuple[float, str] | None = None


def sizes_chart(
    sizes: Sequence[int],
    methods: Mapping[str, str],
    panels: Sequence[SizesPanel],
    table: pd.DataFrame,
    *,
    lead: Sequence[str],
    dark: bool = False,
) -> Chart:
    """Measures against the number of rows.

    Box plots of few methods, curves with the quartiles of more. The words name the methods
    ``lead``; ``methods`` holds all names by key, the model first.
    """
    words = sizes_words(sizes, methods, panels, lead)
    kind = BOXES if len(methods) <= _MOST_BOXES else CURVES
    return Chart(
        sizes_figure(sizes, methods, panels, dark=dark),
        finding=words,
        alt=f"{listed([one.title for one in panels])} by rows drawn. {words}",
        how_to_read=kind + REPEATED_RUNS,
        table=lambda: table,
        name="sizes",
    )


def sizes_figure(
    sizes: Sequence[int], methods: Mapping[str, str], panels: Sequence[SizesPanel], *, dark: bool
) -> go.Figure:
    """One panel per measure, with one legend for all."""
    colours = palette(dark)
    boxes = len(methods) <= _MOST_BOXES
    ticks = [f"{size:,}" for size in sizes]
    axis = {"type": "category"} if boxes else {"type": "log", "tickvals": sizes, "ticktext": ticks}
    titles = [PanelTitle(one.title) for one in panels]
    figure = new_panels(
        titles, dark, columns=3, height=290, x_title="Rows drawn", x_axis=axis, shared=""
    )
    for at, one in enumerate(panels):
        axes = panel(at)
        for trace in (_boxes if boxes else _curves)(sizes, methods, one, colours):
            named = at == 0 and trace.showlegend is not False
            figure.add_trace(trace.update(**axes, showlegend=named))
        how: dict[str, Any] = {"nticks": 6, "tickformat": ".0%" if one.percent else None}
        if one.log:
            how = {"type": "log", "dtick": "D2", "tickformat": ",~r"}
        figure.update_layout({axes["yaxis"].replace("y", "yaxis"): how})
        if one.target is not None:
            figure.add_shape(_target(*one.target, axes, colours))
    return figure.update_layout(boxmode="group")


def _boxes(
    sizes: Sequence[int], methods: Mapping[str, str], one: SizesPanel, colours: Palette
) -> Iterator[go.Box]:
    inks = [method_style(key, colours)[0] for key in methods]
    labels = np.repeat([f"{size:,}" for size in sizes], one.values.shape[1])
    for at, label in enumerate(methods.values()):
        mine = one.values[:, :, at].ravel()
        some = np.isfinite(mine)
        alike, before = inks.count(inks[at]), inks[:at].count(inks[at])
        yield go.Box(
            x=labels[some],
            y=mine[some],
            name=label,
            offsetgroup=label,
            legendgroup=label,
            marker={"color": inks[at], "size": 4, "symbol": _SYMBOLS[before % len(_SYMBOLS)]},
            line={"width": 1.5},
            # settings of one method differ by how full the box is
            fillcolor=faded(inks[at], _FULLEST * (before / (alike - 1) if alike > 1 else 0.5)),
            boxpoints="all",
            whiskerwidth=0.4,
        )


def _curves(
    sizes: Sequence[int], methods: Mapping[str, str], one: SizesPanel, colours: Palette
) -> list[go.Scatter]:
    x = np.array(sizes, dtype=np.float64)
    low, middle, high = np.percentile(one.values, [25, 50, 75], axis=1)
    lines = [
        BandLine(key, label, x, middle[:, at], low[:, at], high[:, at], filled=key in LAB_BANDED)
        for at, (key, label) in enumerate(methods.items())
    ]
    return band_lines(lines, colours, "{:,.0f} rows", one.title.lower(), "quartiles")


def sizes_words(
    sizes: Sequence[int],
    methods: Mapping[str, str],
    panels: Sequence[SizesPanel],
    lead: Sequence[str],
) -> str:
    """Medians of some methods at the largest size.

    Examples
    --------
    >>> methods = {"model": "Forest", "geodesic": "Kernel density"}
    >>> error = SizesPanel("Error", np.array([[[0.05, 0.051], [0.06, 0.061]]]))
    >>> held = SizesPanel("Coverage", np.array([[[0.9, np.nan], [0.92, np.nan]]]), percent=True)
    >>> sizes_words([1000], methods, [error, held], ["model", "geodesic"])
    'Medians of 2 runs with 1,000 rows. Error: 0.0550 (Forest) and 0.0560 (Kernel density). \
Coverage: 91.0% (Forest).'
    """
    said = f"Medians of {panels[0].values.shape[1]:,} runs with {sizes[-1]:,} rows."
    for one in panels:
        middle = dict(zip(methods, np.median(one.values[-1], axis=0), strict=True))
        known = [key for key in lead if np.isfinite(middle[key])]
        parts = [f"{_written(middle[key], one)} ({methods[key]})" for key in known]
        said += f" {one.title}: {listed(parts)}."
    return said


def _written(value: float, one: SizesPanel) -> str:
    if one.percent:
        return f"{value:.1%}"
    return formatted(value, ",.0f" if abs(value) >= 100 else "#.3g")


def _target(value: float, name: str, axes: dict[str, str], colours: Palette) -> dict[str, Any]:
    """A dashed line across a panel at the value to compare with, as a shape."""
    return {
        "type": "line",
        "xref": f"{axes['xaxis']} domain",
        "yref": axes["yaxis"],
        "x0": 0,
        "x1": 1,
        "y0": value,
        "y1": value,
        "line": {"color": colours.truth, "width": 1, "dash": "4px,4px"},
        "label": {
            "text": name,
            "textposition": "end",
            "font": {"size": 12, "color": colours.muted},
        },
    }
