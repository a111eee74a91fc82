"""The simulation lab for classifications: what a finished run shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from app.shared import tiles
from app.shared.charts import dragged, drawn_once, is_dark, show
from app.shared.emphasis import quiet
from app.shared.one_of import one_of
from app.simulation_lab import lab_settings
from app.simulation_lab import lab_text as text
from app.simulation_lab.lab import Lab, Sizes, file_of, show_measures
from app.simulation_lab.lab_results import answers_of, measures_of
from kdcal_core.calibration import KernelDensityGraph
from kdcal_core.charts import (
    Chart,
    Compared,
    MapPoints,
    MeasuredMethod,
    PosteriorPanel,
    SizesPanel,
    cited_in,
    exponent_chart,
    feature_weight_chart,
    lab_blend_words,
    lab_distance_chart,
    lab_finding,
    lab_maps_chart,
    lab_measures_chart,
    sizes_chart,
    switch_words,
)
from kdcal_core.diagnostics import DistanceCurve, Estimate, value_text
from kdcal_core.evaluation import MEASURES
from kdcal_core.simulation import SIMULATIONS, auc_of_weight
from kdcal_core.tasks import (
    DISTANCES,
    FAR,
    METHODS,
    PAPER_LOG_FLOOR,
    PAPER_VARIANCE_FLOOR,
    PRINTED_LOG_FLOOR,
    GraphChoice,
    LabAnswers,
    LabRun,
    Method,
    SizesRun,
    data_box,
    distance_curves,
    fitted_position,
    simulate,
    sure_outside,
    switch_distances,
)
from kdcal_core.text import formatted

ALPHAS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
LOG_FLOORS = (
    *(-1e8, PAPER_LOG_FLOOR, -1e6, -1e5, -1e4, -1e3, -300.0, -100.0, -30.0, -10.0, -3.0, -1.0),
    PRINTED_LOG_FLOOR,
)
VARIANCES = (1e-8, 1e-7, PAPER_VARIANCE_FLOOR, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
PRIOR = 0.5  # both classes are equally frequent in every simulation
MAPPED: tuple[Method, ...] = ("model", "geodesic", "euclidean", "geodesic_paper")

Answers = dict[Method, LabAnswers]
Measures = dict[Method, dict[str, Estimate]]


def _answer(run: LabRun, key: str) -> dict[str, Callable[[], None]]:
    """The finding, the maps with the tiles beside them, and the settings that move both."""
    top = st.container()
    choice = _tune(run, f"lab_{key[:12]}")
    answers = answers_of(run, key, choice)
    measures = measures_of(run, key, choice, answers)
    with top:
        _finding(run, answers, measures)
    return {
        "Distance": partial(_distance, run, answers),
        "In numbers": partial(_measures, run, measures),
        "Exponent": partial(_selection, run, choice),
        "Over-confidence and order": _ignored_feature,
        "Errors in the papers": _flaws,
    }


def _flaws() -> None:
    """Contradictions in the papers' texts, and how kdcal resolves them."""
    with st.container(border=True):
        st.markdown(text.FLAWS)
        st.caption(cited_in("Dey et al. and the earlier version"))


def _ignored_feature() -> None:
    """Durfee et al., Fig. 2: an over-confident model gives a feature too little weight."""
    weights = np.linspace(0.0, 8.0, 161)
    curves = [auc_of_weight(weights, rows=rows) for rows in ("training", "held out")]
    with st.container(border=True):
        st.subheader("Why over-confidence costs order", anchor=False)
        show(
            drawn_once(feature_weight_chart, weights, *curves, dark=is_dark()),
            key="lab_feature_weight",
            of="toy network",
        )


def _finding(run: LabRun, answers: Answers, measures: Measures) -> None:
    """The finding, the maps, and four estimates beside those of the model."""
    model, graph = measures["model"], measures["geodesic"]
    compared = [
        Compared(each["confidence"], each["error"], each["hellinger"]) for each in (model, graph)
    ]
    sentence = lab_finding(_name(run), *compared, radius=FAR, prior=_prior(run))
    st.header(sentence, anchor=False)
    maps = _maps(run, answers)
    picture, beside = tiles.answer()
    with picture:
        show(maps, key="lab_maps", of=file_of(run.settings), finding=False)
    shown = ("confidence", "error", "hellinger", "ece")
    with beside:
        tiles.estimate_column(
            [graph[each] for each in shown],
            notes=[f"{value_text(model[each])} for the {_name(run)} itself" for each in shown],
        )
    st.markdown(maps.finding)
    record = run.record
    st.caption(
        f"{SIMULATIONS[run.settings.simulation].title} · {len(run.y):,} rows, "
        f"{record.n_fit:,} to fit and {record.n_holdout:,} held out · {record.model} · seed "
        f"{run.settings.seed} · estimates: the geodesic kernel density version"
    )


def _tune(run: LabRun, prefix: str) -> GraphChoice:
    """The settings that need no new fit, with their presets."""
    graph = run.graphs["geodesic"]
    by_data = {
        f"{prefix}_exponent": fitted_position(graph),
        f"{prefix}_floor": "data",
        f"{prefix}_share": graph.floor_quantile,
        f"{prefix}_log_b": PAPER_LOG_FLOOR,
        f"{prefix}_variance": graph.variance_floor,
        f"{prefix}_inside": "ratio" if graph.blend is None else "blend",
    }
    for name, value in by_data.items():
        st.session_state.setdefault(name, value)
    with st.expander("Settings of the kernel density version", icon=":material/tune:"):
        _presets(prefix, by_data)
        left, middle, right = st.columns(3, gap="large")
        with left:
            position = _exponent(run, prefix)
        with middle:
            quantile, log_floor = _floor(graph, prefix)
        with right:
            variance = _variance(graph, prefix)
            ratio_only = _ratio_only(prefix)
        choice = GraphChoice(position, quantile, log_floor, variance, ratio_only)
        moved = choice.applied(run, "geodesic")
        if ratio_only and position is None:
            chosen = [choice.applied(run, each) for each in DISTANCES]
            two = [f"{graph.exponents[fitted_position(graph)]:.3g}" for graph in chosen]
            left.caption(
                f"With the class ratio alone, held-out rows choose it under this floor: {two[0]}, "
                f"and {two[1]} for the Euclidean version."
            )
        with right:
            st.caption(lab_blend_words(moved.blend))
        with middle:
            st.caption(f"log b = {_log_b(moved.log_floor)}")
        st.caption(f"{switch_words(switch_distances(moved))} {text.UNITS}")
    return choice


def _presets(prefix: str, by_data: dict[str, Any]) -> None:
    fixed = {
        f"{prefix}_floor": "fixed",
        f"{prefix}_variance": PAPER_VARIANCE_FLOOR,
        f"{prefix}_inside": "ratio",
    }
    presets = {
        "Chosen by data": (by_data, "restart_alt", "All settings as fitted."),
        "As the papers mean": (
            {**by_data, **fixed, f"{prefix}_log_b": PAPER_LOG_FLOOR},
            "vertical_align_bottom",
            "The papers' own fit: b = exp(−10,000,000), their variance floor, the class ratio "
            "alone, and the exponent that held-out rows choose under that floor.",
        ),
        "As printed": (
            {**by_data, **fixed, f"{prefix}_log_b": PRINTED_LOG_FLOOR},
            "vertical_align_top",
            "The same with b = exp(−0.0000001), as printed in their tables: confidence collapses "
            "inside the data.",
        ),
    }
    with st.container(horizontal=True):
        for at, (label, (values, icon, said)) in enumerate(presets.items()):
            st.button(
                label,
                key=f"{prefix}_preset_{at}",
                icon=f":material/{icon}:",
                help=said,
                on_click=st.session_state.update,
                args=(values,),
            )
        with st.popover("What these do", type=quiet(), icon=":material/help:"):
            st.markdown(text.SETTINGS)


def _exponent(run: LabRun, prefix: str) -> int | None:
    exponents = run.graphs["geodesic"].exponents
    position: int = _slider(
        "Exponent of the kernel",
        range(len(exponents)),
        f"{prefix}_exponent",
        lambda at: f"{exponents[at]:.3g}",
    )
    by_data = {name: fitted_position(graph) for name, graph in run.graphs.items()}
    st.caption(
        f"By data: {exponents[by_data['geodesic']]:.3g}, and "
        f"{exponents[by_data['euclidean']]:.3g} for the Euclidean version."
    )
    return None if position == by_data["geodesic"] else position


def _floor(graph: KernelDensityGraph, prefix: str) -> tuple[float | None, float | None]:
    """Share of the held-out rows, or log b; the other is None."""
    names = {"data": "From data", "fixed": "Fixed"}
    if one_of("Floor", names, None, key=f"{prefix}_floor", label_visibility="collapsed") == "fixed":
        return None, _slider("Floor, log b", LOG_FLOORS, f"{prefix}_log_b", _log_b)
    share: float = _slider(
        "Floor: ordinary rows below it",
        _with(ALPHAS, graph.floor_quantile),
        f"{prefix}_share",
        "{:.1%}".format,
        help=f"Share of ordinary rows that may count as unknown. {graph.n_holdout:,} held-out rows "
        f"cannot resolve a share below 1 in {graph.n_holdout + 1:,}.",
    )
    return share, None


def _variance(graph: KernelDensityGraph, prefix: str) -> float | None:
    variance: float = _slider(
        "Variance floor",
        _with(VARIANCES, graph.variance_floor),
        f"{prefix}_variance",
        partial(formatted, form=".2g"),
        help="In units in which the farthest row is at 1. The papers add 10⁻⁶.",
    )
    st.caption(f"By data: {formatted(graph.variance_floor, '.2g')}")
    return None if variance == graph.variance_floor else variance


def _ratio_only(prefix: str) -> bool:
    which = one_of(
        "Inside the data",
        {"blend": "With the model", "ratio": "Class ratio alone"},
        None,
        key=f"{prefix}_inside",
        help="Whether the class ratio of a polytope is blended with the model's own probability. "
        "The papers use the ratio alone.",
    )
    return which == "ratio"


def _slider(
    label: str, options: Sequence[Any], key: str, form: Callable[[Any], str], **more: Any
) -> Any:
    return st.select_slider(
        label, options=options, format_func=form, key=key, persist_state="session", **more
    )


def _with(options: tuple[float, ...], fitted: float | None) -> list[float]:
    """The options of a slider, including its initial value."""
    return sorted({*options, *([] if fitted is None else [fitted])})


def _maps(run: LabRun, answers: Answers) -> Chart:
    """The papers' Fig. 8: the rows, the truth, and the posterior of each method."""
    assert run.grid is not None  # of every simulation that can be chosen here
    maps = {"True posterior": run.grid.truth}
    for method in MAPPED:
        found = answers[method].grid
        assert found is not None
        maps[_title(run, method)] = found.proba
    methods: tuple[Method, ...] = ("model", "geodesic", "euclidean")
    drawn: Chart = drawn_once(
        dragged,
        lab_maps_chart,
        "zoom",
        run.axis,
        [PosteriorPanel(label, run.as_map(proba)[..., 1]) for label, proba in maps.items()],
        MapPoints(run.X[:, 0], run.X[:, 1], run.y, ("Class 0", "Class 1")),
        model=_name(run),
        title=SIMULATIONS[run.settings.simulation].title,
        sure=[sure_outside(run, answers[method]) for method in methods],
        prior=float(run.graphs["geodesic"].prior[1]),
        data_box=data_box(run),
        dark=is_dark(),
    )
    return drawn


def _distance(run: LabRun, answers: Answers) -> None:
    """The papers' Fig. 3: confidence against distance."""
    curves: dict[str, tuple[str, DistanceCurve]] = {
        method: (_title(run, method), curve)
        for method, curve in distance_curves(run, answers).items()
    }
    with st.container(border=True):
        show(
            drawn_once(
                lab_distance_chart,
                curves,
                model=_name(run),
                prior=_prior(run),
                dark=is_dark(),
            ),
            key="lab_distance",
            of=file_of(run.settings),
        )


def _measures(run: LabRun, measures: Measures) -> None:
    """All measures of all methods, as a picture and as a table."""
    boxed = SIMULATIONS[run.settings.simulation].in_box
    titles = {each: MEASURES[each].title for each in measures["model"] if boxed or each != "box"}
    methods = [
        MeasuredMethod(method, _title(run, method), tuple(found[each] for each in titles))
        for method, found in measures.items()
    ]
    show_measures(lab_measures_chart, titles, methods, of=file_of(run.settings))


def _selection(run: LabRun, choice: GraphChoice) -> None:
    """How the exponent was chosen."""
    with st.container(border=True):
        found = choice.applied(run, "geodesic").selection()
        show(
            drawn_once(exponent_chart, found, dark=is_dark()),
            key="lab_selection",
            of=file_of(run.settings),
        )


def _name(run: LabRun) -> str:
    return run.settings.model


def _title(run: LabRun, method: Method) -> str:
    """A method's name; the model by its own."""
    return _name(run).capitalize() if method == "model" else METHODS[method]


def _prior(run: LabRun) -> float:
    return float(run.graphs["geodesic"].prior.max())


def _log_b(value: float) -> str:
    """log b in a short form: −300, −1 × 10⁷, −1 × 10⁻⁷."""
    return formatted(value, ",.0f" if 1 <= abs(value) < 1e6 else ".3g")


def _sizes(run: SizesRun) -> Chart:
    """The papers' Fig. 3 over training sizes."""
    repeated, name = run.settings.repeated, run.settings.lab.model
    drawn: Chart = drawn_once(
        sizes_chart,
        run.settings.sizes,
        {**repeated.methods, "model": name.capitalize()},
        [
            SizesPanel("Error", run.of("error")),
            SizesPanel("Hellinger distance", run.of("hellinger")),
            SizesPanel(
                f"Confidence at radius {FAR:g}",
                run.of("confidence"),
                percent=True,
                target=(PRIOR, "prior"),
            ),
        ],
        run.table(),
        lead=("model", "geodesic"),
        dark=is_dark(),
    )
    return drawn


LAB = Lab(
    text.INTRODUCTION,
    text.EMPTY,
    lab_settings.classification,
    simulate,
    _answer,
    Sizes(
        sizes=(100, 316, 1000, 3162, 10_000),
        most=1000,
        lasts=text.SIZES_LAST,
        chart=_sizes,
        fewer={"n_sphere": 500, "resolution": 81},
    ),
)
