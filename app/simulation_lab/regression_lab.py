"""The simulation lab for regressions: its settings, a finished run, and runs over sizes."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from app.shared.charts import drawn_once, is_dark, show
from app.shared.emphasis import emphasis
from app.shared.tables import show_table
from app.shared.tiles import estimate_row
from app.simulation_lab import lab_text as text
from app.simulation_lab.lab_results import result_of
from kdcal_core.charts import (
    MeasuredMethod,
    Moments,
    SurfacePanel,
    misses_chart,
    neighbour_boxes_chart,
    regression_lab_finding,
    regression_measures_chart,
    surfaces_chart,
    truth_chart,
)
from kdcal_core.data import FloatArray
from kdcal_core.diagnostics import Estimate, estimate_text, misses_of, value_text
from kdcal_core.evaluation import MEASURES
from kdcal_core.simulation import REGRESSION_SIMULATIONS
from kdcal_core.tasks import (
    REPAIRED,
    RegressionLabRun,
    RegressionLabSettings,
    RegressionSizesSettings,
    Regressor,
    Repaired,
    repeat_regression,
    simulate_regression,
)

ROWS = (1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
SIZES = (1000, 3000, 10_000, 30_000, 100_000)
REPETITIONS = (3, 5, 10)
NEIGHBOURS = (None, 20, 50, 100, 200, 500, 1000)
MODELS: dict[Regressor, str] = {
    "line": "Straight line",
    "forest": "Random forest",
    "network": "ReLU network",
}
LABELS: dict[Repaired, str] = {
    "model": "Model",
    "global": "Global recalibration",
    "local": "Local recalibration",
    "truth": "Truth",
}
SHOWN = ("mse_truth", "kl", "crps", "smis95", "coverage95")
TILES = ("mse_truth", "coverage95", "smis95", "crps")
_KEPT: dict[str, Any] = {"bind": "query-params", "persist_state": "session"}


def page() -> None:
    """The settings, the run and what it found."""
    settings = _choose()
    run = result_of(simulate_regression.request(settings), simulate_regression, _offer)
    if run is not None:
        _results(run)
        _sizes(settings)


def _choose() -> RegressionLabSettings:
    with st.container(border=True):
        simulation = st.segmented_control(
            "Simulation",
            options=list(REGRESSION_SIMULATIONS),
            default="heteroscedastic",
            required=True,
            format_func=lambda name: REGRESSION_SIMULATIONS[name].title,
            key="lab_regression",
            **_KEPT,
        )
        assert simulation is not None
        chosen = REGRESSION_SIMULATIONS[simulation]
        st.markdown(chosen.sentence + (text.LOGARITHMS if chosen.positive else ""))
        left, middle, right = st.columns([1.6, 1, 0.8], gap="large")
        with left:
            model = st.segmented_control(
                "Model",
                options=list(MODELS),
                default="line",
                required=True,
                format_func=MODELS.__getitem__,
                key="lab_regressor",
                help="It states a mean, and one spread for all rows: that of its residuals on the "
                "calibration rows.",
                **_KEPT,
            )
            assert model is not None
        n: int = middle.select_slider(
            "Rows",
            options=ROWS,
            value=10_000,
            format_func="{:,}".format,
            key="lab_regression_rows",
            help="Eight tenths train the model, a tenth calibrates, a tenth is judged. Torres et "
            "al. draw 100,000.",
            **_KEPT,
        )
        k: int | None = middle.select_slider(
            "Neighbours",
            options=NEIGHBOURS,
            format_func=lambda one: "Automatic" if one is None else f"{one:,}",
            key="lab_k",
            help="Of a row, for local recalibration. Automatic is twice the root of the number of "
            "calibration rows.",
            persist_state="session",
        )
        seed: int = right.number_input(
            "Seed",
            min_value=0,
            max_value=2**31 - 1,
            value=0,
            key="lab_regression_seed",
            help="For the rows and the training: the same seed gives the same result.",
            **_KEPT,
        )
    return RegressionLabSettings(simulation, n, model, k, seed)


def _offer() -> bool:
    with st.container(border=True):
        run = st.button("Run", key="lab_run", type=emphasis(), icon=":material/play_arrow:")
        st.markdown(text.REGRESSION_EMPTY)
        return run


def _results(run: RegressionLabRun) -> None:
    scores = {key: found.scores.rows for key, found in run.methods.items()}
    st.header(
        regression_lab_finding(scores["model"], scores["global"], scores["local"]), anchor=False
    )
    settings = run.settings
    title = REGRESSION_SIMULATIONS[settings.simulation].title
    st.caption(
        f"{title} · {run.n_train:,} rows to train, {run.n_calibration:,} to calibrate, "
        f"{len(run.y):,} judged · {MODELS[settings.model].lower()} · {run.k:,} neighbours · seed "
        f"{settings.seed} · tiles: local recalibration"
    )
    estimate_row(
        [scores["local"][each] for each in TILES],
        notes=[f"{value_text(scores['model'][each])} for the model itself" for each in TILES],
    )
    of = f"{settings.simulation} {settings.n} {settings.model} seed {settings.seed}"
    _truth(run, of)
    if run.axes is not None:
        _surfaces(run, run.axes, of)
    _misses(run, of)
    _measures(scores, of)


def _truth(run: RegressionLabRun, of: str) -> None:
    """Torres et al., Fig. 2: true and estimated moments."""
    moments = {
        key: Moments(key, LABELS[key], run.methods[key].mean, run.methods[key].std)
        for key in REPAIRED
    }
    repaired = [moments[key] for key in REPAIRED if key != "truth"]
    distances = [run.methods[key].scores.rows["mse_truth"].value ** 0.5 for key in REPAIRED[:-1]]
    with st.container(border=True):
        st.subheader("True and estimated means and spreads", anchor=False)
        show(
            drawn_once(truth_chart, moments["truth"], repaired, distances, dark=is_dark()),
            key="lab_truth",
            of=of,
        )


def _surfaces(run: RegressionLabRun, axes: FloatArray, of: str) -> None:
    """Torres et al., Fig. 3: the surface of means."""
    panels = []
    for key in ("truth", "model", "local"):
        surface = run.methods[key].surface
        assert surface is not None
        panels.append(SurfacePanel(LABELS[key], surface))
    with st.container(border=True):
        st.subheader("The surface of means", anchor=False)
        show(drawn_once(surfaces_chart, axes, panels, dark=is_dark()), key="lab_surfaces", of=of)


def _misses(run: RegressionLabRun, of: str) -> None:
    """Torres et al., Figs. 3e and 3f: where intervals miss."""
    if run.axes is None:
        places, titles = pd.DataFrame({"x1": run.X[:, 0], "outcome": run.y}), ("x1", "Outcome")
    else:
        places, titles = pd.DataFrame({"x1": run.X[:, 0], "x2": run.X[:, 1]}), ("x1", "x2")
    panels = [
        misses_of(LABELS[key], run.y, run.methods[key].low, run.methods[key].high)
        for key in ("model", "local")
    ]
    with st.container(border=True):
        st.subheader("Where intervals miss", anchor=False)
        show(
            drawn_once(
                misses_chart,
                places.to_numpy(),
                panels,
                dark=is_dark(),
                x_title=titles[0],
                y_title=titles[1],
                level=0.95,
            ),
            key="lab_misses",
            of=of,
        )


def _measures(scores: dict[Repaired, dict[str, Estimate]], of: str) -> None:
    """Torres et al., Tables 1 and 2."""
    titles = {each: MEASURES[each].title for each in SHOWN}
    methods = [
        MeasuredMethod(key, LABELS[key], tuple(scores[key][each] for each in SHOWN))
        for key in REPAIRED
    ]
    with st.container(border=True):
        st.subheader("In numbers", anchor=False)
        show(
            drawn_once(regression_measures_chart, titles, methods, dark=is_dark()),
            key="lab_regression_measures",
            of=of,
        )
        with st.expander("As a table", icon=":material/table:"):
            cells = {
                title: [estimate_text(one.estimates[at], chance=False) for one in methods]
                for at, title in enumerate(titles.values())
            }
            show_table(
                pd.DataFrame({"Method": [one.label for one in methods], **cells}),
                alt="The measures of each method with their intervals",
            )


def _sizes(settings: RegressionLabSettings) -> None:
    """Torres et al., Fig. 4: a job of its own, over sizes and neighbours."""
    with st.container(border=True):
        st.subheader("Over training sizes and neighbours", anchor=False)
        largest, repetitions, _ = st.columns(3, gap="large")
        most = largest.select_slider(
            "Up to rows",
            options=SIZES[1:],
            value=10_000,
            format_func="{:,}".format,
            key="lab_regression_most",
            persist_state="session",
        )
        runs = repetitions.select_slider(
            "Runs of each size",
            options=REPETITIONS,
            value=5,
            key="lab_regression_repetitions",
            persist_state="session",
        )
        sizes = tuple(size for size in SIZES if size <= most)
        asked = RegressionSizesSettings(settings, sizes, runs)

        def offer() -> bool:
            st.caption(text.REGRESSION_SIZES_LAST.format(len(sizes) * runs))
            return st.button(
                "Run all sizes", key="lab_regression_run_sizes", icon=":material/play_arrow:"
            )

        found = result_of(repeat_regression.request(asked), repeat_regression, offer)
        if found is not None:
            show(
                drawn_once(
                    neighbour_boxes_chart,
                    sizes,
                    found.methods,
                    found.mse,
                    found.coverage,
                    found.table(),
                    dark=is_dark(),
                ),
                key="lab_boxes",
                of=f"{settings.simulation} {settings.model}",
            )
