"""The parts of the Out of distribution page, from top to bottom."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from app.out_of_distribution import foreign_choice, foreign_details
from app.out_of_distribution import foreign_text as text
from app.shared import foreign_results, graph_results, job_results, session, waiting
from app.shared.charts import chart, drawn_once, estimate_row, is_dark
from app.shared.equal_notes import equal_notes
from app.shared.foreign_results import Method, View
from app.shared.graph_results import Fit, Foreign, Setting, Version
from app.shared.numbers import number
from kdcal_core.calibration import CALIBRATORS
from kdcal_core.charts import (
    BandLine,
    density_figure,
    distance_figure,
    foreign_words,
    map_words,
)
from kdcal_core.diagnostics import DistanceCurve
from kdcal_core.errors import InputError
from kdcal_core.review import Review
from kdcal_core.tasks import GraphSettings, foreign_request
from kdcal_core.text import escape_markdown

ALPHAS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
FACTORS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_OPTIONAL: tuple[Method, ...] = ("isotonic", "sigmoid", "kde_mon2", "euclidean")
_BANDED = ("parent", "geodesic")  # six bands over each other show nothing
_OWN_LABELS = {
    "parent": "Model",
    "geodesic": "Kernel density, geodesic",
    "euclidean": "Kernel density, Euclidean",
}


def has_model(review: Review) -> bool:
    """Whether there is a model to ask; else says what is missing."""
    if review.parent is not None:
        return True
    st.title(session.PLACES["foreign"].title)
    with st.container(border=True):
        st.markdown(text.WILL_SHOW)
        st.markdown(
            "It needs the model: this review holds its predictions only, and how confident a model "
            "is of rows that are in no table can be found out only by asking it. Add the model on "
            "the Load page, or open a sample that has one."
        )
        session.page_link("load", "Go to Load")
    return False


def uploads(review: Review) -> None:
    """How far a table is that was just uploaded, and what was wrong with it."""
    ended = waiting.show(review.id)
    if ended is not None and ended.error is not None:
        session.error_box(ended.error)


def kernel_density(review: Review) -> tuple[Fit | None, bool]:
    """The kernel density version, and whether the page can go on.

    It can without one where the model has no partition; the page then says why and what is left.
    """
    try:
        fit = graph_results.fitted(review, text.WILL_SHOW)
    except InputError as error:
        st.info(escape_markdown(f"{error.what}. {error.fix}", 1500), icon=":material/info:")
        return None, True
    return fit, fit is not None


def page(review: Review, fit: Fit | None, foreign: Foreign) -> None:
    """Everything below the header, once there are answers."""
    prior = foreign_results.prior_of(review, fit)
    if prior is None:
        return
    chosen = foreign_choice.choose(review, foreign, fit)
    if chosen is not None and chosen.one.kind == "uploaded":
        equal_notes(review, foreign=chosen.one.name)
    head, picture, densities = st.container(), st.container(), st.container()
    version = None
    if fit is not None:
        with densities.container(border=True):
            drawing, settings = st.columns([3, 1.3], gap="medium")
            with settings:
                version = Version(fit, _setting(fit))
    view = View(
        review=review,
        prior=prior,
        foreign=foreign,
        version=version,
        chosen=chosen,
    )
    with head:
        _finding(view)
    with picture.container(border=True):
        _distance(view)
    if version is not None:
        with drawing:
            _densities(view, version)
        foreign_details.fitted_on(version)
    if chosen is not None:
        foreign_details.surest(view, chosen)
    if version is not None:
        foreign_details.inside(view, version)
    foreign_details.advice()


def _setting(fit: Fit) -> Setting:
    """Alpha beside the densities, exponent and variance under it: all act at once."""
    graph = fit.run.graph
    alpha = st.select_slider(
        "Alpha: ordinary rows that may count as unknown",
        options=ALPHAS,
        value=graph.floor_quantile if graph.floor_quantile in ALPHAS else 0.01,
        format_func=lambda share: f"{share:.1%}",
        key="foreign_alpha",
        persist_state="session",
        help="It sets the floor from the held-out rows. Nothing is refitted.",
    )
    least = 1.0 / (graph.n_holdout + 1)
    if alpha < least:
        st.caption(f"{graph.n_holdout:,} held-out rows cannot guarantee less than {least:.1%}.")
    st.caption(map_words.floor_words(alpha, graph.n_holdout))
    with st.expander("Exponent and variance"):
        gammas = graph.gammas
        chosen = int(np.argmin(np.abs(gammas - graph.gamma)))
        at = st.select_slider(
            "Exponent of the kernel",
            options=range(len(gammas)),
            value=chosen,
            format_func=lambda at: f"{graph.exponents[at]:.3g}",
            key=f"foreign_exponent_{fit.key[:16]}",
            persist_state="session",
            help=f"Chosen by held-out log loss: {graph.exponents[chosen]:.3g}.",
        )
        factor = st.select_slider(
            "Variance floor, times its own",
            options=FACTORS,
            value=1.0,
            format_func=lambda times: f"{times:g}",
            key=f"foreign_variance_{fit.key[:16]}",
            persist_state="session",
            help="Added to the variance of every region's Gaussian, in squared coordinates.",
        )
        st.caption(
            f"Variance floor {graph.variance_floor * factor:.3g}, on average over the features"
        )
    return Setting(float(gammas[at]), factor, alpha)


def _finding(view: View) -> None:
    """The page's sentence and its tiles."""
    largest = float(view.prior.max())
    chosen = view.chosen
    tiles = None if chosen is None else foreign_results.tiles(view, chosen)
    about = None
    if chosen is not None and tiles is not None:
        about = foreign_words.set_finding(chosen.name, *tiles.confidence, largest, tiles.n_unknown)
    if view.foreign.run.sets("sphere"):
        graph, unknown = None, None
        if view.version is not None:
            graph = foreign_results.version_curve(view.version, view.foreign)
            unknown = foreign_results.unknown_by_radius(view.version, view.foreign)
        sentence = foreign_words.distance_finding(
            foreign_results.parent_curve(view.foreign), graph, largest, unknown
        )
        st.subheader(escape_markdown(sentence, 600), anchor=False)
        if about:
            st.markdown(escape_markdown(about, 600))
    elif about:
        st.subheader(escape_markdown(about, 600), anchor=False)
    if chosen is not None and chosen.one.kind in ("sphere", "shifted"):
        beyond = chosen.foreign.run.record.impossible.get(chosen.one.name)
        st.caption(escape_markdown(foreign_words.made_words(chosen.one.kind, beyond), 400))
    if tiles is None:
        return
    if tiles.graph is None or tiles.unknown is None or view.version is None:
        rows = f"{tiles.confidence[0].n:,} foreign rows"
        estimate_row(
            [*tiles.parent, tiles.confidence[0]],
            notes=["the model itself", "by its confidence", "by its confidence", rows],
        )
        st.caption(foreign_words.confidence_only_words(largest))
    else:
        alpha = view.version.setting.alpha
        estimate_row(
            [*tiles.graph, tiles.unknown],
            notes=[
                *(
                    f"{number(one)} for the model itself{', by its confidence' * (at > 0)}"
                    for at, one in enumerate(tiles.parent)
                ),
                f"of the ordinary rows; alpha asks for {alpha:.1%}",
            ],
        )
        assert tiles.by_confidence is not None
        st.caption(foreign_words.by_confidence_words(tiles.graph[1], tiles.by_confidence, largest))
    with st.popover("How to read this", type="tertiary", icon=":material/help:"):
        st.markdown(text.TILES)
        st.caption(text.PAPERS)


def _distance(view: View) -> None:
    """Confidence against distance: the page's main picture."""
    run = view.foreign.run
    if not run.sets("sphere"):
        st.caption(escape_markdown(" ".join(run.record.notes), 600))
        return
    optional = [key for key in _OPTIONAL if view.version is not None or key != "euclidean"]
    shown = st.pills(
        "Compare with",
        options=optional,
        selection_mode="multi",
        default=[key for key in optional if key != "euclidean"],
        format_func=_label,
        key=f"foreign_methods_{view.version is not None}",
        persist_state="session",
        help="Calibrators are fitted on the calibration set.",
    )
    curves = _curves(view, list(shown or ()))
    lines = [
        BandLine(key, _label(key), curve.radii, curve.mean, curve.low, curve.high, key in _BANDED)
        for key, curve in curves.items()
    ]
    largest = float(view.prior.max())
    named = {_label(key): curve for key, curve in curves.items()}
    record = run.record
    words = (
        f"{record.settings.n:,} rows on each sphere. The spheres move the {record.n_numeric:,} "
        f"features that are numbers, of {record.n_features:,}; the others keep values of the data."
        if record.n_numeric < record.n_features
        else f"{record.settings.n:,} rows on each sphere."
    )
    chart(
        drawn_once(distance_figure, lines, largest, dark=is_dark(), band_words="middle 80%"),
        key="foreign_distance",
        takeaway=words,
        how_to_read=text.DISTANCE,
        alt=foreign_words.distance_alt(named, largest),
        table=lambda: pd.concat(
            [curve.table().assign(method=label) for label, curve in named.items()],
            ignore_index=True,
        ),
        name=f"{view.review.title} confidence by distance",
    )
    for note in record.notes:
        st.caption(escape_markdown(note, 400))


def _curves(view: View, shown: list[Method]) -> dict[Method, DistanceCurve]:
    curves: dict[Method, DistanceCurve] = {"parent": foreign_results.parent_curve(view.foreign)}
    for key in shown:
        if key != "euclidean" and (found := foreign_results.calibrated_curve(view, key)):
            curves[key] = found
    if view.version is not None:
        curves["geodesic"] = foreign_results.version_curve(view.version, view.foreign)
        if "euclidean" in shown and (other := _euclidean(view, view.version)) is not None:
            curves["euclidean"] = other
    return curves


def _euclidean(view: View, version: Version) -> DistanceCurve | None:
    """The version that goes by Euclidean distance: fitted when it is asked for."""
    fit = graph_results.fitted(view.review, settings=GraphSettings(distance="euclidean"))
    if fit is None:
        return None
    asked = foreign_request(session.workspace(), view.review.id, graph_folder=fit.folder)
    job = job_results.finished(asked, view.review)
    foreign = None if job is None else graph_results.foreign_of(job)
    if foreign is None:
        return None
    setting = Setting(fit.run.graph.gamma, 1.0, version.setting.alpha)
    return foreign_results.version_curve(Version(fit, setting), foreign)


def _label(key: str) -> str:
    return _OWN_LABELS.get(key) or CALIBRATORS[key].label


def _densities(view: View, version: Version) -> None:
    """Ordinary and foreign rows by their density, with the floor between them."""
    chosen = view.chosen
    if chosen is None:
        st.caption("The densities appear here when the chosen rows are answered.")
        return
    tiles = foreign_results.tiles(view, chosen)
    ordinary, foreign = foreign_results.densities(version, chosen)
    floor = version.graph.effective_log_floor
    assert tiles is not None  # only without a version does a job measure them
    assert tiles.unknown is not None
    assert tiles.n_unknown is not None
    chart(
        drawn_once(density_figure, ordinary, {chosen.name: foreign}, floor, dark=is_dark()),
        key="foreign_densities",
        takeaway=foreign_words.density_words(
            tiles.unknown, chosen.name, tiles.n_unknown, len(foreign), version.setting.alpha
        ),
        how_to_read=text.DENSITY,
        alt=foreign_words.density_alt(ordinary, foreign, chosen.name, floor),
        table=lambda: pd.DataFrame(
            {
                "rows": np.repeat(["ordinary", chosen.name], [len(ordinary), len(foreign)]),
                "log_density": np.concatenate([ordinary, foreign]),
                "unknown": np.concatenate([ordinary, foreign]) < floor,
            }
        ),
        name=f"{view.review.title} densities {chosen.name}",
    )
    places = (version.fit.run.rows.located, chosen.rows.located)
    if ties := foreign_words.ties_words(*(int(at.tied.sum()) for at in places if at is not None)):
        st.caption(ties)
