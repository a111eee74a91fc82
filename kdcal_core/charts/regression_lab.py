"""The simulation lab for regressions: surfaces, measures, and the finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import Chart, panel
from kdcal_core.charts.lab_measures import MeasuredMethod, measures_chart
from kdcal_core.charts.marks import PanelTitle, hovered, new_panels
from kdcal_core.charts.palette import palette
from kdcal_core.data.schema import FloatArray
from kdcal_core.diagnostics import Estimate, estimate_text, value_text
from kdcal_core.text import figures_text

SURFACES = r"""
The mean of the outcome over both inputs, on one scale of shades: the true one, the model's and the
recalibrated one (Torres et al., Fig. 3, draws the first as a surface in space). Recalibration is
not designed to repair means, but a local one does where all neighbours lie to one side.
"""
JUDGED = """
All rows are new to training and calibration. The line of the truth shows what no method can
improve.

"""


def surfaces_chart(
    axes: FloatArray, surfaces: Mapping[str, FloatArray], *, dark: bool = False
) -> Chart:
    """Heat maps of means (G, G) on two axes (2, G), by title, the truth first.

    The second axis varies slowest. Shades reach from the least to the largest true mean.
    """
    words = surfaces_words(surfaces)
    across, up = np.meshgrid(axes[0], axes[1])
    places = {"x1": across.ravel(), "x2": up.ravel()}
    means = {title: mean.ravel() for title, mean in surfaces.items()}
    return Chart(
        _surfaces_figure(axes, surfaces, dark),
        finding=words,
        alt=f"Heat maps of the mean over x1 and x2. {words}",
        how_to_read=SURFACES,
        table=lambda: pd.DataFrame(places | means),
        name="surfaces",
    )


def _surfaces_figure(axes: FloatArray, surfaces: Mapping[str, FloatArray], dark: bool) -> go.Figure:
    truth = next(iter(surfaces.values()))
    figure = new_panels(
        [PanelTitle(title) for title in surfaces],
        dark,
        columns=3,
        height=250,
        x_title="x1",
        y_title="x2",
    )
    x1, x2 = (places.ravel() for places in np.meshgrid(axes[0], axes[1]))
    for at, (title, mean) in enumerate(surfaces.items()):
        hover = hovered("{:.2f}, {:.2f}: {}", x1, x2, mean.ravel(), name=title)
        figure.add_trace(
            go.Heatmap(
                x=axes[0],
                y=axes[1],
                z=mean.astype(np.float32),
                zmin=float(truth.min()),
                zmax=float(truth.max()),
                colorscale=[list(stop) for stop in palette(dark).sequential],
                showscale=at == len(surfaces) - 1,
                colorbar={"title": {"text": "Mean"}, "thickness": 9},
                hovertext=np.reshape(hover["hovertext"], mean.shape).tolist(),
                hovertemplate=hover["hovertemplate"],
                **panel(at),
            )
        )
    return figure


def surfaces_words(surfaces: Mapping[str, FloatArray]) -> str:
    """Root mean squared distance of each surface from the first, the true one.

    Examples
    --------
    >>> surfaces_words({"Truth": np.zeros((2, 2)), "Model": np.full((2, 2), 2.0)})
    'Over the whole map the mean is off by 2 (Model), as a root mean square.'
    """
    (_, truth), *others = surfaces.items()
    off = [
        f"{figures_text(float(np.sqrt(np.mean(np.square(mean - truth)))))} ({title})"
        for title, mean in others
    ]
    return f"Over the whole map the mean is off by {', '.join(off)}, as a root mean square."


def regression_measures_chart(
    titles: Mapping[str, str],
    methods: Sequence[MeasuredMethod],
    *,
    dark: bool = False,
    narrow: bool = False,
) -> Chart:
    """Measures of the model, its recalibrations and the truth; ``titles`` by key."""
    return measures_chart(
        titles, methods, lead="crps", how_to_read=JUDGED, dark=dark, narrow=narrow
    )


def regression_lab_finding(model: Mapping[str, Estimate], local: Mapping[str, Estimate]) -> str:
    """How far the means are from the truth, and what coverage shows of it.

    Each mapping holds "mse_truth" and "coverage95".

    Examples
    --------
    >>> def found(mse, held):
    ...     return {"mse_truth": Estimate("", "", mse, mse - 1, mse + 1, 900),
    ...             "coverage95": Estimate("", "", held, held - 0.01, held + 0.01, 900,
    ...                                    percent=True)}
    >>> regression_lab_finding(found(50, 0.95), found(20, 0.95))
    'Local recalibration lowers the mean squared error against the true mean from 50.0 (49.0 to \
51.0) to 20.0 (19.0 to 21.0); the coverage of 95% intervals does not show it: 95.0% before, 95.0% \
after.'
    """
    one, other = model["mse_truth"], local["mse_truth"]
    before, after = (estimate_text(each, chance=False) for each in (one, other))
    held = [each["coverage95"] for each in (model, local)]
    covered = [value_text(each) for each in held]
    coverage = f"is {covered[0]} before and {covered[1]} after"
    if one.low <= other.high and other.low <= one.high:
        said = (
            f"The mean squared error against the true mean is {before} before local recalibration "
            f"and {after} after"
        )
    else:
        verb = "lowers" if other.value < one.value else "raises"
        said = (
            f"Local recalibration {verb} the mean squared error against the true mean from "
            f"{before} to {after}"
        )
        if all(each.low <= 0.95 <= each.high for each in held):
            coverage = f"does not show it: {covered[0]} before, {covered[1]} after"
    return f"{said}; the coverage of 95% intervals {coverage}."
