"""The upper parts of the Posterior map page: the settings and the picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from app.posterior_map import map_results
from app.posterior_map.map_results import Map
from app.shared import (
    graph_results,
    graph_settings,
    in_browser,
    job_results,
    navigation,
    session,
)
from app.shared.charts import drawn_once, is_dark, show
from app.shared.emphasis import quiet
from app.shared.graph_results import Fit, Version
from app.shared.one_of import one_of
from app.shared.seen_charts import seen
from kdcal_core.charts import (
    MapPoints,
    PosteriorPanel,
    axes_words,
    blend_words,
    floor_words,
    held_words,
    map_finding,
    posterior_field_chart,
    posterior_map_chart,
    slice_words,
)
from kdcal_core.data import FloatArray
from kdcal_core.errors import InputError
from kdcal_core.review import Review, TableInfo
from kdcal_core.simulation import true_posterior
from kdcal_core.tasks import GraphRecord, GridRun, GridSettings, posterior_grid
from kdcal_core.text import escape_markdown

MODEL, VERSION, TRUTH = "Model", "Kernel density version", "True posterior"
TOP = -1  # in place of a class: the most probable one
AXES: dict[Literal["features", "principal"], str] = {
    "features": "Two features",
    "principal": "Principal axes",
}
RESOLUTIONS = {50: "Coarse", 100: "Fine", 200: "Finest"}
FACTORS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
ENOUGH_VALUES = 10
# samples drawn from a simulation, whose truth is known: its name and its features
SIMULATED = dict.fromkeys(("xor_forest", "xor_network"), ("gaussian_xor", ("x1", "x2")))

_BY = {"geodesic": "geodesic", "euclidean": "Euclidean"}
OFFER = (
    "**Where is this model's confidence justified?** A kernel density version of it keeps the "
    "model's regions and its predictions inside the data, and falls back to the class frequencies "
    "outside. The page shows both side by side."
)
SETTINGS = """
* **Alpha** sets the floor from held-out rows: the share of ordinary rows that may count as
  unknown. About a tenth of them also falls back to the prior, or more where rows made far away
  need it. With a larger alpha the prior begins closer to the data. (The constant that Dey et al.
  print would lower the accuracy inside.)
* **The exponent** of the kernel (Dey et al., Eq. 18: gamma times log n) determines how fast the
  rows of other polytopes stop counting: small exponents smooth, while with large ones each polytope
  only has its own rows. It was chosen by the log loss of held-out rows.
* **The variance floor** is the lambda that keeps a Gaussian from being infinitely narrow
  (Dey et al., Eq. 15), here as a multiple of the fitted value. A larger one extends the regions
  farther out.

All three take effect at once, without a new fit, and so do your own prior and a fixed log b.
"""


def numeric_features(review: Review) -> tuple[str, ...]:
    """The features that can be axes of the map, starting with those that vary."""
    assert review.roles is not None
    table = _reference(review)
    distinct = {c.name: c.n_distinct for c in table.columns if c.kind == "number"}
    names = [name for name in review.roles.features if name in distinct]
    return tuple(
        sorted(names, key=lambda name: (distinct[name] <= ENOUGH_VALUES, distinct[name] <= 1))
    )


def can_be_drawn(review: Review) -> bool:
    """Whether there is a model and a plane; otherwise the page says what is missing."""
    if review.model is None:
        with st.container(border=True):
            st.markdown(
                "A map needs the model's probabilities at points that are in no table, but this "
                "review has predictions without their model. Add the model on the Load page."
            )
            navigation.page_link("load", "Go to Load")
        return False
    if len(numeric_features(review)) < 2:
        st.info(
            "A map needs two numeric features, but these rows have fewer. The other pages show "
            "confidence without a map.",
            icon=":material/info:",
        )
        return False
    return True


def fitted_graph(review: Review) -> Fit | None:
    """The kernel density version; without one, the page says why, or offers to fit it."""
    try:
        return graph_results.fitted(review, OFFER)
    except InputError as error:
        session.info_box(error)
        return None


def controls(review: Review) -> tuple[GridSettings, int]:
    """The plane to draw, and the class whose posterior it shows (or TOP)."""
    names = numeric_features(review)
    n_features = _n_features(review)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        axes = _axes() if len(names) > 2 else "features"
        x, y, row = None, None, None
        if axes == "features":
            if len(names) > 2:
                x = _feature("Across", "x", review, names)
                y = _feature("Up", "y", review, tuple(name for name in names if name != x))
            if n_features > 2:
                row = _held_row(review)
        label = _class(review)
        resolution: int = st.selectbox(
            "Grid",
            options=list(RESOLUTIONS),
            index=1,
            format_func=lambda n: f"{RESOLUTIONS[n]}: {n} x {n}",
            key="map_resolution",
            persist_state="session",
            width=170,
            help="Number of points at which the model is evaluated.",
        )
    return GridSettings(axes=axes, x=x, y=y, row=row, resolution=resolution), label


def _axes() -> Literal["features", "principal"]:
    return one_of(
        "Axes",
        AXES,
        "principal",
        key="map_axes",
        width="content",
        help="Principal axes show most of how rows differ in two dimensions. Two features are "
        "easier to read, but the others have to be fixed.",
    )


def _feature(label: str, key: str, review: Review, names: tuple[str, ...]) -> str:
    name: str = st.selectbox(
        label,
        options=names,
        format_func=lambda name: name[:60],
        key=f"map_{key}_{review.id}",
        persist_state="session",
        width=190,
    )
    return name


def _n_features(review: Review) -> int:
    assert review.roles is not None
    return len(review.roles.features)


def _held_row(review: Review) -> int | None:
    held: str = st.selectbox(
        "Other features at",
        options=["typical", "row"],
        format_func={"typical": "Medians", "row": "A row's values"}.__getitem__,
        key=f"map_held_{review.id}",
        persist_state="session",
        width=150,
        help="Medians of numbers and most frequent values of all other features; or the values of "
        "one row, to see the model's probabilities if only these two features differed.",
    )
    if held == "typical":
        return None
    row: int = st.number_input(
        "Row",
        min_value=1,
        max_value=_judged(review).n_rows,
        value=1,
        key=f"map_row_{review.id}",
        persist_state="session",
        width=130,
        help="Its number in the table of rows below.",
    )
    return row - 1


def _class(review: Review) -> int:
    n = len(review.classes)
    label: int = st.selectbox(
        "Shown",
        options=[*range(n), TOP],
        index=n if review.event is None else review.event,
        format_func=lambda at: "Confidence" if at == TOP else f"P({review.classes[at][:40]})",
        key=f"map_class_{review.id}",
        persist_state="session",
        width=190,
        help="The probability of one class; or confidence, the largest probability of any class.",
    )
    return label


def grid(review: Review, settings: GridSettings, fit: Fit | None) -> Map | None:
    """The map for these axes; its job starts at once if there is no map yet."""
    folder = None if fit is None else fit.folder
    try:
        asked = posterior_grid.request(
            session.workspace(), review.id, settings, graph_folder=folder
        )
        job = job_results.finished(asked, review.id)
        return None if job is None else map_results.map_of(job)
    except InputError as error:
        session.error_box(error)
        return None


def set_again(review: Review, fit: Fit) -> Version:
    """The kernel density version at the chosen settings, without a new fit.

    The settings are shared with the Out of distribution page.
    """
    facts = fit.facts
    keys = (
        "foreign_alpha",
        f"foreign_exponent_{fit.key[:16]}",
        f"foreign_variance_{fit.key[:16]}",
    )
    chosen = facts.chosen
    columns = st.columns([1, 1, 1, 0.5], vertical_alignment="bottom", gap="medium")
    alpha: float = columns[0].select_slider(
        "Alpha: ordinary rows that may count as unknown",
        options=graph_settings.ALPHAS,
        value=facts.floor_quantile if facts.floor_quantile in graph_settings.ALPHAS else 0.01,
        format_func=lambda share: f"{share:.1%}",
        key=keys[0],
        persist_state="session",
        disabled=graph_settings.floor_is_fixed(review.id),
    )
    at: int = columns[1].select_slider(
        "Exponent of the kernel",
        options=range(len(facts.exponents)),
        value=chosen,
        format_func=lambda at: f"{facts.exponents[at]:.3g}" + " (chosen)" * (at == chosen),
        key=keys[1],
        persist_state="session",
    )
    factor: float = columns[2].select_slider(
        "Variance floor, relative to the fitted one",
        options=FACTORS,
        value=1.0,
        format_func=lambda times: f"{times:g}",
        key=keys[2],
        persist_state="session",
    )
    with columns[3].container(horizontal=True):
        st.button(
            "Reset",
            key="map_reset",
            icon=":material/restart_alt:",
            on_click=_forget,
            args=(*keys, *graph_settings.keys(review.id, len(review.classes))),
            help="Back to the settings chosen from the data.",
        )
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        with st.popover("What these settings do", type=quiet(), icon=":material/help:"):
            st.markdown(SETTINGS)
            if (blend := facts.blend) is not None:
                st.markdown(blend_words(blend.model, blend.graph))
        further = graph_settings.choose(review.id, review.classes, facts.prior)
        _about(fit.record, None if further.log_floor is not None else alpha)
    for note in fit.record.notes:
        st.caption(f":material/info: {escape_markdown(note, 400)}")
    return Version.of(fit, facts.gammas[at], factor, alpha, further)


def _about(record: GraphRecord, alpha: float | None) -> None:
    floor = "" if alpha is None else f" {floor_words(alpha, record.n_holdout)}"
    st.caption(
        f"Fitted on {record.n_fit:,} {record.fitted_on} rows in {record.facts.n_polytopes:,} "
        f"regions by {_BY[record.distance]} distance.{floor}",
        width="content",
    )


def _forget(*keys: str) -> None:
    for key in keys:
        st.session_state.pop(key, None)


@dataclass(frozen=True, eq=False)
class Maps:
    """The probabilities of each model on the grid, by title, (n_y, n_x) each.

    Attributes
    ----------
    confidence : dict
        The largest probability.
    shown : dict
        The values drawn: the same, or the probability of one class.
    unknown : (n_y, n_x) bool or None
        Points that the kernel density version counts as unknown, by their density.
    """

    confidence: dict[str, FloatArray]
    shown: dict[str, FloatArray]
    unknown: NDArray[np.bool_] | None


def maps(review: Review, drawn: Map, version: Version | None, label: int) -> Maps | None:
    """The maps of class ``label``, or of the confidence; None while a job computes the version."""
    run, answered = drawn.run, None
    if version is not None:
        asked = None if label == TOP else label
        answered = map_results.version_of(review, drawn, version, asked)
        if answered is None:
            return None
    confidence, shown = {}, {}

    def add(title: str, posterior: FloatArray) -> None:
        confidence[title] = posterior.max(axis=-1)
        shown[title] = confidence[title] if label == TOP else posterior[..., label]

    add(MODEL, run.as_map(run.rows.proba))
    if answered is not None:
        confidence[VERSION] = answered.confidence
        shown[VERSION] = answered.confidence if answered.shown is None else answered.shown
    truth = _truth(review, run)
    if truth is not None:
        add(TRUTH, truth)
    return Maps(confidence, shown, None if answered is None else answered.unknown)


def _truth(review: Review, run: GridRun) -> FloatArray | None:
    """The true posterior on the grid, for a sample drawn from a simulation."""
    simulation, names = SIMULATED.get(review.sample or "", ("", ()))
    axes = (run.record.x_name, run.record.y_name)
    if not simulation or sorted(axes) != sorted(names):
        return None
    across, up = np.meshgrid(run.x, run.y)
    places = dict(zip(axes, (across.ravel(), up.ravel()), strict=True))
    points = np.column_stack([places[name] for name in names])
    return run.as_map(true_posterior(simulation, points))


def finding(review: Review, run: GridRun, found: Maps, prior: FloatArray) -> str:
    """The page's finding, which is returned too, and what it leaves out if the map is a slice."""
    confidence = found.confidence
    outside = run.outside if found.unknown is None else found.unknown
    sentence = map_finding(confidence[MODEL], confidence.get(VERSION), outside, float(prior.max()))
    st.header(escape_markdown(sentence, 600), anchor=False)
    if found.unknown is not None and (
        words := slice_words(outside, run.outside, _n_features(review) - 2)
    ):
        st.caption(words)
    return sentence


def picture(
    review: Review,
    run: GridRun,
    found: Maps,
    label: int,
    prior: FloatArray,
    on_box: Any,
    *,
    version: Version | None,
    sentence: str,
) -> None:
    """The rows and the maps side by side; a box can be dragged on any of them.

    Without the rows, an audit keeps them with the finding and the version's settings.
    """
    shown = found.shown
    drawn = np.isfinite(run.shown_points).all(axis=1)
    x, y = run.shown_points[drawn].T
    record = run.record
    maps = run.x, run.y, [PosteriorPanel(title, values) for title, values in shown.items()]
    settings: dict[str, Any] = {
        "class_name": "" if label == TOP else record.classes[label],
        "prior": float(prior.max() if label == TOP else prior[label]),
        "x_title": record.x_name,
        "y_title": record.y_name,
        "outside": run.outside,
        "equal": TRUTH in shown or bool(record.explained),
        "data_box": run.data_box,
    }
    set_so = "the model as it is" if version is None else graph_results.setting_words(version)
    held = held_words(_n_features(review) - 2, record.settings.row).partition(" Rows are")[0]
    seen(
        *(review, "posterior_map", "Posterior map", "posterior_map", posterior_field_chart, *maps),
        settings=f"{set_so}, with fewer points and without the rows, of which an audit keeps none",
        finding=" ".join(filter(None, (sentence, "" if record.explained else held))),
        **settings,
    )
    show(
        drawn_once(
            posterior_map_chart,
            *maps,
            MapPoints(x, y, run.shown_labels[drawn], record.classes),
            dark=is_dark(),
            narrow=in_browser.is_narrow(),
            **settings,
        ),
        key="posterior_map",
        of=review.title,
        on_box=on_box,
    )
    _captions(review, run, int(drawn.sum()))


def _captions(review: Review, run: GridRun, n_drawn: int) -> None:
    record = run.record
    lines = [held_words(_n_features(review) - 2, record.settings.row)]
    if record.explained:
        lines = list(axes_words(record.explained, record.strongest))
    if n_drawn < record.n_rows:
        lines.append(f"{n_drawn:,} of {record.n_rows:,} rows are drawn, in proportion by class.")
    if text := " ".join(lines).strip():
        st.caption(escape_markdown(text, 1500))


def _reference(review: Review) -> TableInfo:
    return review.training or review.tables["calibration"]


def _judged(review: Review) -> TableInfo:
    return review.tables.get("evaluation") or review.tables["calibration"]
