"""The simulation lab for regressions: what a finished run shows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import streamlit as st

from app.shared import in_browser, tiles
from app.shared.charts import drawn_once, is_dark, show
from app.simulation_lab import lab_settings
from app.simulation_lab import lab_text as text
from app.simulation_lab.lab import Lab, Sizes, file_of, show_measures
from kdcal_core.charts import (
    Chart,
    MeasuredMethod,
    Moments,
    SizesPanel,
    misses_chart,
    regression_lab_finding,
    regression_measures_chart,
    sizes_chart,
    surfaces_chart,
    truth_chart,
)
from kdcal_core.data import FloatArray
from kdcal_core.diagnostics import Estimate, misses_of, value_text
from kdcal_core.evaluation import MEASURES
from kdcal_core.simulation import REGRESSION_SIMULATIONS
from kdcal_core.tasks import (
    REPAIRED,
    RegressionLabRun,
    Repaired,
    SizesRun,
    simulate_regression,
)

LABELS: dict[Repaired, str] = {
    "model": "Model",
    "global": "Global recalibration",
    "local": "Local recalibration",
    "truth": "Truth",
}
SHOWN = ("mse_truth", "kl", "crps", "smis95", "coverage95")
TILES = ("mse_truth", "coverage95", "smis95", "crps")


def _answer(run: RegressionLabRun, key: str) -> dict[str, Callable[[], None]]:
    """The finding, the true and estimated moments, and the tiles beside them."""
    scores = {key: found.scores.rows for key, found in run.methods.items()}
    st.header(regression_lab_finding(scores["model"], scores["local"]), anchor=False)
    truth = _truth(run)
    picture, beside = tiles.answer()
    with picture:
        show(truth, key="lab_truth", of=file_of(run.settings), finding=False)
    with beside:
        tiles.estimate_column(
            [scores["local"][each] for each in TILES],
            notes=[f"{value_text(scores['model'][each])} for the model itself" for each in TILES],
        )
    st.markdown(truth.finding)
    title = REGRESSION_SIMULATIONS[run.settings.simulation].title
    st.caption(
        f"{title} · {run.n_train:,} rows to train, {run.n_calibration:,} to calibrate, "
        f"{len(run.y):,} judged · {lab_settings.REGRESSORS[run.settings.model]} · {run.k:,} "
        f"neighbours · seed {run.settings.seed} · estimates: local recalibration"
    )
    surfaces = {} if run.axes is None else {"Surfaces": partial(_surfaces, run, run.axes)}
    return {
        **surfaces,
        "Missed outcomes": partial(_misses, run),
        "In numbers": partial(_measures, run, scores),
    }


def _truth(run: RegressionLabRun) -> Chart:
    """Torres et al., Fig. 2: true and estimated means and standard deviations."""
    moments = {
        key: Moments(key, LABELS[key], run.methods[key].mean, run.methods[key].std)
        for key in REPAIRED
    }
    repaired = [moments[key] for key in REPAIRED if key != "truth"]
    distances = [run.methods[key].scores.rows["mse_truth"].value ** 0.5 for key in REPAIRED[:-1]]
    drawn: Chart = drawn_once(truth_chart, moments["truth"], repaired, distances, dark=is_dark())
    return drawn


def _surfaces(run: RegressionLabRun, axes: FloatArray) -> None:
    """Torres et al., Fig. 3: the surface of means."""
    labels: dict[Repaired, str] = {"truth": "Truth", "model": "Model", "local": "Recalibrated"}
    found = {label: run.methods[key].surface for key, label in labels.items()}
    surfaces = {label: surface for label, surface in found.items() if surface is not None}
    with st.container(border=True):
        chart = drawn_once(surfaces_chart, axes, surfaces, dark=is_dark())
        show(chart, key="lab_surfaces", of=file_of(run.settings))


def _misses(run: RegressionLabRun) -> None:
    """Torres et al., Figs. 3e and 3f: where intervals miss."""
    up, y_title = (run.y, "Outcome") if run.axes is None else (run.X[:, 1], "x2")
    panels = [
        misses_of(LABELS[key], run.y, run.methods[key].low, run.methods[key].high)
        for key in ("model", "local")
    ]
    with st.container(border=True):
        chart = drawn_once(
            misses_chart,
            np.column_stack([run.X[:, 0], up]),
            panels,
            dark=is_dark(),
            x_title="x1",
            y_title=y_title,
            level=0.95,
            narrow=in_browser.is_narrow(),
        )
        show(chart, key="lab_misses", of=file_of(run.settings))


def _measures(run: RegressionLabRun, scores: dict[Repaired, dict[str, Estimate]]) -> None:
    """Torres et al., Tables 1 and 2."""
    titles = {each: MEASURES[each].title for each in SHOWN}
    methods = [
        MeasuredMethod(key, LABELS[key], tuple(scores[key][each] for each in SHOWN))
        for key in REPAIRED
    ]
    show_measures(regression_measures_chart, titles, methods, of=file_of(run.settings))


def _sizes(run: SizesRun) -> Chart:
    """Torres et al., Fig. 4: over training sizes and neighbours."""
    methods = run.settings.repeated.methods
    panels = [
        SizesPanel(MEASURES["mse_truth"].title, run.of("mse_truth"), log=True),
        SizesPanel(
            MEASURES["coverage95"].title,
            run.of("coverage95"),
            percent=True,
            target=(0.95, ""),
        ),
    ]
    drawn: Chart = drawn_once(
        sizes_chart,
        run.settings.sizes,
        methods,
        panels,
        run.table(),
        lead=tuple(methods),
        dark=is_dark(),
    )
    return drawn


LAB = Lab(
    text.REGRESSION_INTRODUCTION,
    text.REGRESSION_EMPTY,
    lab_settings.regression,
    simulate_regression,
    _answer,
    Sizes(
        sizes=(1000, 3000, 10_000, 30_000, 100_000),
        most=10_000,
        lasts=text.REGRESSION_SIZES_LAST,
        chart=_sizes,
        fewer={},
    ),
)
