"""The settings of the simulation lab: the simulation with a preview, the model, the seed."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

import streamlit as st

from app.shared.charts import drawn_once, is_dark
from app.simulation_lab.lab_results import glance_of
from kdcal_core.charts import glance_figure
from kdcal_core.data import Task
from kdcal_core.simulation import CODED, SIMULATIONS
from kdcal_core.tasks import LabSettings

ROWS = (100, 200, 500, 1000, 2000, 5000, 10_000)
DIMENSIONS = (2, 5, 10, 20, 50, 100)
TREES = (1, 10, 50, 100, 200, 500)
WIDTHS = (10, 20, 50, 100, 200, 500, 1000)
EPOCHS = (20, 50, 100, 200, 500)
TASKS: dict[Task, str] = {"classification": "Classes", "regression": "Numbers"}
MODELS = {"forest": "Random forest", "network": "ReLU network"}
OutputLayer = Literal["auto", "probability", "logit", "exclude"]
OUTPUT_LAYERS: dict[OutputLayer, str] = {
    "auto": "Automatic",
    "probability": "Counted: probability above 1/K",
    "logit": "Counted: logit above 0",
    "exclude": "Left out",
}
# in the session across pages, and in the address for a reload or a colleague
_KEPT: dict[str, Any] = {"bind": "query-params", "persist_state": "session"}


class _Shape(TypedDict, total=False):
    n_trees: int
    layers: int
    width: int
    epochs: int
    output_layer: OutputLayer


def task() -> Task:
    """Whether a classification or a regression is simulated."""
    chosen: Task | None = st.segmented_control(
        "Task",
        options=list(TASKS),
        default="classification",
        required=True,
        format_func=TASKS.__getitem__,
        key="lab_task",
        label_visibility="collapsed",
        **_KEPT,
    )
    return chosen or "classification"


def choose() -> LabSettings:
    """The settings in the card."""
    with st.container(border=True):
        simulation = st.segmented_control(
            "Simulation",
            options=list(SIMULATIONS),
            default="gaussian_xor",
            required=True,
            format_func=lambda name: SIMULATIONS[name].title,
            key="lab_simulation",
            **_KEPT,
        )
        assert simulation is not None
        picture, rows, model = st.columns([1, 1, 1], gap="large")
        with rows:
            st.markdown(SIMULATIONS[simulation].sentence)
            coded = simulation in CODED and _coded()
            n, n_features = _rows(simulation)
            seed: int = st.number_input(
                "Seed",
                min_value=0,
                max_value=2**31 - 1,
                value=0,
                key="lab_seed",
                help="For the rows, the training, the split and the spheres: the same seed gives "
                "the same result.",
                **_KEPT,
            )
        with model:
            kind = st.segmented_control(
                "Model",
                options=list(MODELS),
                default="forest",
                required=True,
                format_func=MODELS.__getitem__,
                key="lab_model",
                help="The model whose confidence is judged. It is trained when you press Run.",
                **_KEPT,
            )
            shape = _forest() if kind == "forest" else _network()
        with picture:
            _glance(LabSettings(simulation, n_features=n_features, coded=coded))
    return LabSettings(
        simulation=simulation,
        n=n,
        n_features=n_features,
        coded=coded,
        model="forest" if kind == "forest" else "network",
        seed=seed,
        **shape,
    )


def _coded() -> bool:
    return st.toggle(
        "As in the authors' code",
        key="lab_coded",
        help="Their code draws sinewaves of frequency 4, with the classes exchanged, and a spiral "
        "with noise 0.8, where the text has pi and 0.3.",
        **_KEPT,
    )


def _rows(simulation: str) -> tuple[int, int]:
    n: int = st.select_slider(
        "Rows",
        options=ROWS,
        value=1000,
        format_func="{:,}".format,
        key="lab_rows",
        help="The model is trained on seven tenths of them; the others are held out.",
        **_KEPT,
    )
    if simulation != "trunk":
        return n, 2
    n_features: int = st.select_slider(
        "Dimensions",
        options=DIMENSIONS,
        value=10,
        key="lab_dimensions",
        help="Each further dimension is less informative about the class.",
        **_KEPT,
    )
    return n, n_features


def _forest() -> _Shape:
    n_trees: int = st.select_slider(
        "Trees",
        options=TREES,
        value=500,
        key="lab_trees",
        help="Fully grown. The papers grow 500.",
        **_KEPT,
    )
    return {"n_trees": n_trees}


def _network() -> _Shape:
    layers: int = st.slider(
        "Hidden layers", min_value=1, max_value=6, value=4, key="lab_layers", **_KEPT
    )
    width: int = st.select_slider(
        "Units in each",
        options=WIDTHS,
        value=200,
        format_func="{:,}".format,
        key="lab_width",
        help="The papers have four layers of 1,000.",
        **_KEPT,
    )
    with st.popover("Training", icon=":material/tune:"):
        epochs: int = st.select_slider(
            "Epochs at most",
            options=EPOCHS,
            value=200,
            key="lab_epochs",
            help="Training ends earlier if the loss has not improved for ten epochs. Adam, "
            "learning rate 0.0003, 32 rows per step.",
            **_KEPT,
        )
        output_layer: OutputLayer = st.radio(
            "Output layer in the activation paths",
            options=tuple(OUTPUT_LAYERS),
            format_func=OUTPUT_LAYERS.__getitem__,
            key="lab_output_layer",
            help="Dey et al. let paths end in the output layer, whose units have no ReLU.",
            **_KEPT,
        )
    return {"layers": layers, "width": width, "epochs": epochs, "output_layer": output_layer}


def _glance(settings: LabSettings) -> None:
    drawn, which = glance_of(settings), SIMULATIONS[settings.simulation]
    st.plotly_chart(
        drawn_once(glance_figure, drawn.X, drawn.y, dark=is_dark()),
        key="lab_glance",
        theme=None,
        config={"displayModeBar": False},
        alt=f"{len(drawn.y)} rows of {which.title}. {which.sentence}",
    )
    flat = ", in their first two dimensions" if drawn.X.shape[1] > 2 else ""
    st.caption(f"Preview: {len(drawn.y)} rows{flat}, whatever the number above.")
