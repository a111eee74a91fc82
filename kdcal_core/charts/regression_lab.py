"""The simulation lab for regressions: surfaces, measures, box plots, and findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import Chart, panel
from kdcal_core.charts.lab import (
    MeasuredMethod,
    interval_figure,
    measured_table,
    target_line,
)
from kdcal_core.charts.marks import PanelTitle, hovered, new_panels
from kdcal_core.charts.palette import method_style, palette
from kdcal_core.data.schema import FloatArray
from kdcal_core.diagnostics import Estimate, estimate_text
from kdcal_core.evaluation import meanings
from kdcal_core.text import figures_text, listed

SURFACES = r"""
The mean of the outcome over both inputs, on one scale of shades: the true one, the model's and the
recalibrated one (Torres et al., Fig. 3, draws the first as a surface in space). Recalibration is
not designed to repair means, but a local one does where all neighbours lie to one side.
"""
MEASURED = r"""
A dot is the value, its bar the 95% interval, and the pale band the model's interval, all on rows
that neither training nor calibration has seen. The line of the truth shows what no method can
improve.

"""
BOXES = r"""
Each box holds the middle half of the repetitions with the median as its line; whiskers reach to the
outermost ones (Torres et al., Fig. 4). Each repetition draws new rows and trains a new model. Few
neighbours are less biased, more are less noisy; a number above that of the calibration rows cannot
be run.
"""


@dataclass(frozen=True, eq=False)
class SurfacePanel:
    """Means over a map, (G, G), with the second axis varying slowest."""

    title: str
    mean: FloatArray


def surfaces_chart(axes: FloatArray, panels: Sequence[SurfacePanel], *, dark: bool) -> Chart:
    """Heat maps of means on two axes (2, G); the first panel is the truth."""
    words = surfaces_words(panels)
    return Chart(
        surfaces_figure(axes, panels, dark=dark),
        finding=words,
        alt=f"Heat maps of the mean over x1 and x2. {words}",
        how_to_read=SURFACES,
        table=lambda: _surfaces_table(axes, panels),
        name="surfaces",
    )


def surfaces_figure(axes: FloatArray, panels: Sequence[SurfacePanel], *, dark: bool) -> go.Figure:
    """One heat map per panel; shades reach from the least to the largest true mean."""
    colours = palette(dark)
    truth = panels[0].mean
    figure = new_panels(
        [PanelTitle(one.title) for one in panels],
        dark,
        columns=3,
        height=250,
        x_title="x1",
        y_title="x2",
    )
    for at, one in enumerate(panels):
        hover = hovered(
            "{:.2f}, {:.2f}: {}",
            np.tile(axes[0], len(axes[1])),
            np.repeat(axes[1], len(axes[0])),
            one.mean.ravel(),
            name=one.title,
        )
        figure.add_trace(
            go.Heatmap(
                x=axes[0],
                y=axes[1],
                z=one.mean.astype(np.float32),
                zmin=float(truth.min()),
                zmax=float(truth.max()),
                colorscale=[list(stop) for stop in colours.sequential],
                showscale=at == len(panels) - 1,
                colorbar={"title": {"text": "Mean"}, "thickness": 9},
                hovertext=np.reshape(hover["hovertext"], one.mean.shape).tolist(),
                hovertemplate=hover["hovertemplate"],
                **panel(at),
            )
        )
    return figure


def surfaces_words(panels: Sequence[SurfacePanel]) -> str:
    """Root mean squared distance of each surface from the first, the true one.

    Examples
    --------
    >>> flat = np.zeros((2, 2))
    >>> surfaces_words([SurfacePanel("Truth", flat), SurfacePanel("Model", flat + 2.0)])
    'Over the whole map the mean is off by 2 (Model), as a root mean square.'
    """
    truth = panels[0].mean
    off = [
        f"{figures_text(float(np.sqrt(np.mean(np.square(one.mean - truth)))))} ({one.title})"
        for one in panels[1:]
    ]
    return f"Over the whole map the mean is off by {', '.join(off)}, as a root mean square."


def _surfaces_table(axes: FloatArray, panels: Sequence[SurfacePanel]) -> pd.DataFrame:
    across, up = np.meshgrid(axes[0], axes[1])
    means = {one.title: one.mean.ravel() for one in panels}
    return pd.DataFrame({"x1": across.ravel(), "x2": up.ravel(), **means})


def regression_measures_chart(
    titles: Mapping[str, str], methods: Sequence[MeasuredMethod], *, dark: bool
) -> Chart:
    """Measures of the model, its recalibrations and the truth; ``titles`` by key.

    Measures that are infinite for a method are in the table only.
    """
    finite = [
        at
        for at in range(len(titles))
        if all(np.isfinite(one.estimates[at].value) for one in methods)
    ]
    names = list(titles.values())
    drawn = [
        MeasuredMethod(one.key, one.label, tuple(one.estimates[at] for at in finite))
        for one in methods
    ]
    words = regression_measures_words(titles, methods)
    return Chart(
        interval_figure([names[at] for at in finite], drawn, dark=dark),
        finding=words,
        alt=f"Measures of each method with their intervals. {words}",
        how_to_read=MEASURED + meanings(titles),
        table=lambda: measured_table(titles, methods),
        name="measures",
    )


def regression_measures_words(titles: Mapping[str, str], methods: Sequence[MeasuredMethod]) -> str:
    """The CRPS of every method, and which measures are infinite.

    Examples
    --------
    >>> crps, kl = Estimate("", "", 3.0, 2.9, 3.1, 9), Estimate("", "", np.inf, np.inf, np.inf, 9)
    >>> one = MeasuredMethod("global", "Global", (crps, kl))
    >>> regression_measures_words({"crps": "CRPS", "kl": "KL"}, [one])
    'CRPS: Global 3.00 (2.90 to 3.10). KL is infinite for Global: its samples leave out a range of \
outcomes that is possible.'
    """
    at = list(titles).index("crps")
    parts = [f"{one.label} {estimate_text(one.estimates[at], chance=False)}" for one in methods]
    said = f"{titles['crps']}: {', '.join(parts)}."
    for at, title in enumerate(titles.values()):
        names = [one.label for one in methods if not np.isfinite(one.estimates[at].value)]
        if names:
            said += (
                f" {title} is infinite for {listed(names)}: its samples leave out a range of "
                "outcomes that is possible."
            )
    return said


def regression_lab_finding(
    model: Mapping[str, Estimate], everywhere: Mapping[str, Estimate], local: Mapping[str, Estimate]
) -> str:
    """How far the means are from the truth, and what coverage shows of it.

    Each mapping holds "mse_truth" and "coverage95".

    Examples
    --------
    >>> def found(mse, held):
    ...     return {"mse_truth": Estimate("", "", mse, mse - 1, mse + 1, 900),
    ...             "coverage95": Estimate("", "", held, held - 0.01, held + 0.01, 900,
    ...                                    percent=True)}
    >>> regression_lab_finding(found(50, 0.95), found(50, 0.95), found(20, 0.95))
    'Mean squared error against the true mean: 50.0 (49.0 to 51.0), after global recalibration \
50.0 (49.0 to 51.0), after local 20.0 (19.0 to 21.0). The coverage of 95% intervals does not show \
it: 95.0% (94.0% to 96.0%) before, 95.0% (94.0% to 96.0%) after.'
    """
    errors = [estimate_text(one["mse_truth"], chance=False) for one in (model, everywhere, local)]
    held = [one["coverage95"] for one in (model, local)]
    hidden = all(one.low <= 0.95 <= one.high for one in held)
    changed = (
        local["mse_truth"].high < model["mse_truth"].low
        or model["mse_truth"].high < local["mse_truth"].low
    )
    says = "The coverage of 95% intervals"
    says += " does not show it" if hidden and changed else ""
    before, after = (estimate_text(one, chance=False) for one in held)
    return (
        f"Mean squared error against the true mean: {errors[0]}, after global recalibration "
        f"{errors[1]}, after local {errors[2]}. {says}: {before} before, {after} after."
    )


def neighbour_boxes_chart(
    sizes: Sequence[int],
    methods: Sequence[str],
    mse: FloatArray,
    coverage: FloatArray,
    table: pd.DataFrame,
    *,
    dark: bool,
) -> Chart:
    """Box plots over repetitions, by size and method (S, R, M); the first method is the model."""
    words = boxes_words(sizes, methods, mse)
    return Chart(
        neighbour_boxes_figure(sizes, methods, mse, coverage, dark=dark),
        finding=words,
        alt=f"Box plots of the error of the mean and of coverage by rows drawn. {words}",
        how_to_read=BOXES,
        table=lambda: table,
        name="neighbours over sizes",
    )


def neighbour_boxes_figure(
    sizes: Sequence[int],
    methods: Sequence[str],
    mse: FloatArray,
    coverage: FloatArray,
    *,
    dark: bool,
) -> go.Figure:
    """Two panels of boxes, the error against the true mean and the coverage."""
    colours = palette(dark)
    titles = [PanelTitle("Mean squared error, true mean"), PanelTitle("Coverage of 95% intervals")]
    figure = new_panels(titles, dark, columns=2, height=300, x_title="Rows drawn", shared="")
    inks = [method_style("model", colours)[0], *colours.classes]
    labels = np.repeat([f"{size:,}" for size in sizes], mse.shape[1])
    for at, values in enumerate((mse, coverage)):
        for place, name in enumerate(methods):
            mine = values[:, :, place].ravel()
            some = np.isfinite(mine)
            figure.add_trace(
                go.Box(
                    x=labels[some],
                    y=mine[some],
                    name=name,
                    offsetgroup=name,
                    legendgroup=name,
                    showlegend=at == 0,
                    marker={"color": inks[place], "size": 4},
                    line={"width": 1.5},
                    boxpoints="all",
                    whiskerwidth=0.4,
                    **panel(at),
                )
            )
    figure.update_layout(
        boxmode="group",
        xaxis={"type": "category"},
        xaxis2={"type": "category"},
        yaxis={"type": "log", "nticks": 5},
        yaxis2={"tickformat": ".0%", "nticks": 6},
    )
    figure.add_shape(target_line(0.95, panel(1), colours))
    return figure


def boxes_words(sizes: Sequence[int], methods: Sequence[str], mse: FloatArray) -> str:
    """The medians at the largest size.

    Examples
    --------
    >>> boxes_words([1000], ["Model", "Local, k = 100"], np.array([[[4.0, 1.0], [6.0, 3.0]]]))
    'With 1,000 rows (median of 2 runs) the mean squared error against the true mean is 5 (Model) \
and 2 (Local, k = 100).'
    """
    middle = np.median(mse[-1], axis=0)
    parts = [
        f"{figures_text(float(value))} ({name})"
        for name, value in zip(methods, middle, strict=True)
        if np.isfinite(value)
    ]
    return (
        f"With {sizes[-1]:,} rows (median of {mse.shape[1]:,} runs) the mean squared error against "
        f"the true mean is {listed(parts)}."
    )
