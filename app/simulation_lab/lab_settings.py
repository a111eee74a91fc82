"""The settings of the simulation lab: the simulation, its rows, the model, the seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypedDict, TypeVar

import numpy as np
import streamlit as st

from app.shared.charts import drawn_once, is_dark
from app.shared.one_of import one_of
from app.simulation_lab import lab_text as text
from app.simulation_lab.lab_results import glance_of
from kdcal_core.charts import glance_figure, glance_images_figure
from kdcal_core.simulation import CODED, IMAGE_SHIFTS, REGRESSION_SIMULATIONS, SIMULATIONS
from kdcal_core.tasks import ImageLabSettings, LabSettings, RegressionLabSettings, Regressor

ROWS = (100, 200, 500, 1000, 2000, 5000, 10_000)
REGRESSION_ROWS = (1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
DIMENSIONS = (2, 5, 10, 20, 50, 100)
TREES = (1, 10, 50, 100, 200, 500)
WIDTHS = (10, 20, 50, 100, 200, 500, 1000)
EPOCHS = (20, 50, 100, 200, 500)
NEIGHBOURS = (None, 20, 50, 100, 200, 500, 1000)
IMAGES = (200, 500, 1000, 2000, 4000)
PIXELS = (14, 20, 28, 40, 50)
LabTask = Literal["classification", "regression", "images"]
TASKS: dict[LabTask, str] = {
    "classification": "Classes",
    "regression": "Numbers",
    "images": "Images",
}
Classifier = Literal["forest", "network"]
MODELS: dict[Classifier, str] = {"forest": "Random forest", "network": "ReLU network"}
REGRESSORS: dict[Regressor, str] = {
    "line": "Straight line",
    "forest": MODELS["forest"],
    "network": MODELS["network"],
}
OutputLayer = Literal["auto", "probability", "logit", "exclude"]
OUTPUT_LAYERS: dict[OutputLayer, str] = {
    "auto": "Automatic",
    "probability": "Counted: probability above 1/K",
    "logit": "Counted: logit above 0",
    "exclude": "Left out",
}
# in the session across pages, and in the address for a reload or a colleague
_KEPT: dict[str, Any] = {"bind": "query-params", "persist_state": "session"}
_COLUMN = 240  # pixels: three columns on the page, two in a fold
K = TypeVar("K", bound=str)


class _Shape(TypedDict, total=False):
    n_trees: int
    layers: int
    width: int
    epochs: int
    output_layer: OutputLayer


def task() -> LabTask:
    """Whether a classification, a regression or images are simulated."""
    return _one_of("Task", TASKS, "lab_task", label_visibility="collapsed", width="content")


def classification() -> tuple[LabSettings, Any]:
    """The settings of a simulated classification, and the place of the button that starts it."""
    titles = {name: one.title for name, one in SIMULATIONS.items()}
    simulation = _one_of("Simulation", titles, "lab_simulation")
    with st.grid(3, min_column_width=_COLUMN) as cells:
        with cells.cell():
            st.markdown(SIMULATIONS[simulation].sentence)
            coded = simulation in CODED and _coded()
            n = _slide(
                "Rows",
                ROWS,
                1000,
                "lab_rows",
                "The model is trained on seven tenths of them; the others are held out.",
            )
            n_features = 2 if simulation != "trunk" else _dimensions()
            seed = _seed()
        with cells.cell():
            kind = _one_of(
                "Model",
                MODELS,
                "lab_model",
                help="The model whose confidence is judged. It is trained when you press Run.",
            )
            shape = _forest() if kind == "forest" else _network()
            button = st.empty()
        with cells.cell():
            _glance(LabSettings(simulation, n_features=n_features, coded=coded))
    settings = LabSettings(simulation, n, n_features, coded, kind, seed=seed, **shape)
    return settings, button


def regression() -> tuple[RegressionLabSettings, Any]:
    """The settings of a simulated regression, and the place of the button that starts it."""
    titles = {name: one.title for name, one in REGRESSION_SIMULATIONS.items()}
    simulation = _one_of("Simulation", titles, "lab_regression")
    chosen = REGRESSION_SIMULATIONS[simulation]
    st.markdown(chosen.sentence + (text.LOGARITHMS if chosen.positive else ""))
    with st.grid(2, min_column_width=_COLUMN) as cells:
        with cells.cell():
            n = _slide(
                "Rows",
                REGRESSION_ROWS,
                10_000,
                "lab_regression_rows",
                "Eight tenths train the model, a tenth calibrates, a tenth is judged. Torres et "
                "al. draw 100,000.",
            )
            k = _slide(
                "Neighbours",
                NEIGHBOURS,
                None,
                "lab_k",
                "Of a row, for local recalibration. Automatic is twice the root of the number of "
                "calibration rows.",
                lambda one: "Automatic" if one is None else f"{one:,}",
            )
        with cells.cell():
            model = _one_of(
                "Model",
                REGRESSORS,
                "lab_regressor",
                help="It states a mean, and one spread for all rows: that of its residuals on the "
                "calibration rows.",
            )
            seed, button = _seed(), st.empty()
    return RegressionLabSettings(simulation, n, model, k, seed), button


def images() -> tuple[ImageLabSettings, Any]:
    """The settings of simulated images, and the place of the button that starts the run."""
    with st.grid(3, min_column_width=_COLUMN) as cells:
        with cells.cell():
            n = _slide(
                "Images",
                IMAGES,
                1000,
                "lab_images",
                "Half show a circle, half a rectangle. The network is trained on seven tenths of "
                "them; the others are held out. Dey et al. draw 4,000.",
            )
            size = _slide("Pixels a side", PIXELS, 28, "lab_pixels", "Dey et al. have 100.")
        with cells.cell():
            colour = st.toggle(
                "Colour",
                key="lab_colour",
                help="Three equal channels, as in the earlier version of Dey et al.; a shift "
                "changes all of them alike.",
                **_KEPT,
            )
            seed, button = _seed(), st.empty()
        with cells.cell():
            _glance_images()
    return ImageLabSettings(n, size, colour, seed), button


def _one_of(label: str, options: Mapping[K, str], key: str, **more: Any) -> K:
    return one_of(label, options, next(iter(options)), key=key, bind="query-params", **more)


def _slide(
    label: str,
    options: tuple[Any, ...],
    value: int | None,
    key: str,
    help: str,
    format_func: Callable[[Any], str] = "{:,}".format,
) -> Any:
    return st.select_slider(
        label,
        options=options,
        value=value,
        format_func=format_func,
        key=key,
        help=help,
        **_KEPT,
    )


def _seed() -> int:
    seed: int = st.number_input(
        "Seed",
        min_value=0,
        max_value=2**31 - 1,
        value=0,
        key="lab_seed",
        help="For the rows and all that is random afterwards: the same seed gives the same result.",
        **_KEPT,
    )
    return seed


def _coded() -> bool:
    return st.toggle(
        "As in the authors' code",
        key="lab_coded",
        help="Their code draws sinewaves of frequency 4, with the classes exchanged, and a spiral "
        "with noise 0.8, where the text has pi and 0.3.",
        **_KEPT,
    )


def _dimensions() -> int:
    words = "Each further dimension is less informative about the class."
    n_features: int = _slide("Dimensions", DIMENSIONS, 10, "lab_dimensions", words)
    return n_features


def _forest() -> _Shape:
    return {
        "n_trees": _slide("Trees", TREES, 500, "lab_trees", "Fully grown. The papers grow 500.")
    }


def _network() -> _Shape:
    layers: int = st.slider(
        "Hidden layers", min_value=1, max_value=6, value=4, key="lab_layers", **_KEPT
    )
    four = "The papers have four layers of 1,000."
    width = _slide("Units in each", WIDTHS, 200, "lab_width", four)
    with st.popover("Training", icon=":material/tune:"):
        epochs = _slide(
            "Epochs at most",
            EPOCHS,
            200,
            "lab_epochs",
            "Training ends earlier if the loss has not improved for ten epochs. Adam, "
            "learning rate 0.0003, 32 rows per step.",
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
    st.caption(f"Preview: {len(drawn.y)} rows{flat}, whatever the number of rows chosen.")


def _glance_images() -> None:
    """Both shapes, and what is most foreign."""
    ordinary = [IMAGE_SHIFTS["ellipse"].draw, IMAGE_SHIFTS["mixture"].draw]
    size, seed = 28, 177  # a seed whose objects are not cut
    drawn = {
        "Circle": ordinary[0](1, 10.0, seed=seed, size=size),
        "Rectangle": ordinary[1](1, 0.0, seed=seed, size=size),
        "Half of each": ordinary[1](1, 0.5, seed=seed, size=size),
        "Long ellipse": ordinary[0](1, 40.0, seed=seed, size=size),
    }
    pixels = np.concatenate([one.X for one in drawn.values()]).reshape(-1, size, size)
    st.plotly_chart(
        drawn_once(glance_images_figure, pixels, [*drawn], dark=is_dark()),
        key="lab_glance",
        theme=None,
        config={"displayModeBar": False},
        alt="A circle, a rectangle, half of each, and a long ellipse.",
    )
    st.caption("Preview: the two classes, and two images that belong to neither.")
