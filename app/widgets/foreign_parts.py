"""The parts of the Out of distribution page, from top to bottom."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from app.widgets import foreign_choice, foreign_results, graph_results, results, session, waiting
from app.widgets import foreign_text as text
from app.widgets.charts import chart, csv_button, estimate_row, is_dark
from app.widgets.foreign_results import Chosen, Method, View
from app.widgets.graph_results import Fit, Foreign, Setting, Version
from app.widgets.numbers import interval, number
from kdcal_core.calibration import CALIBRATORS
from kdcal_core.data import escape_markdown
from kdcal_core.diagnostics import DistanceCurve, Estimate
from kdcal_core.errors import InputError
from kdcal_core.figures import (
    BandLine,
    density_figure,
    distance_figure,
    foreign_words,
    selection_figure,
)
from kdcal_core.review import Review
from kdcal_core.runs import GraphSettings, foreign_request

ALPHAS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
FACTORS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
SUREST = 10
MAX_FEATURES = 20
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
            "is of rows that are in no table can be learnt only by asking it. Add the model on the "
            "Load page, or open a sample that has one."
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
        if review.parent is not None and review.parent.has_codes:
            session.error_box(error)
            return None, False
        st.info(escape_markdown(f"{error.what}. {error.fix}", 1500), icon=":material/info:")
        return None, True
    return fit, fit is not None


def page(review: Review, fit: Fit | None, foreign: Foreign) -> None:
    """Everything below the header, once there are answers."""
    calibration = results.scored_set(session.workspace(), review, "calibration")
    chosen = foreign_choice.choose(review, foreign, fit)
    head, picture, densities = st.container(), st.container(), st.container()
    version = None
    if fit is not None:
        with densities.container(border=True):
            drawing, settings = st.columns([3, 1.3], gap="medium")
            with settings:
                version = Version(fit, _setting(fit))
    view = View(
        review=review,
        calibration=calibration,
        ordinary=foreign_results.ordinary_of(review, fit),
        prior=foreign_results.prior_of(calibration, fit),
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
        _fitted_on(version)
    if chosen is not None:
        _surest(view, chosen)
    if version is not None:
        _inside(view, version)
    _advice()


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
        help="It sets the floor from the held-out rows. Nothing is fitted anew.",
    )
    least = 1.0 / (graph.n_holdout + 1)
    if alpha < least:
        st.caption(f"{graph.n_holdout:,} held-out rows cannot promise less than {least:.1%}.")
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
        st.caption(f"Variance floor {graph.variance_floor * factor:.3g}")
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
        graph = foreign_results.curve(view, "geodesic") if view.version else None
        sentence = foreign_words.distance_finding(
            foreign_results.curve(view, "parent"), graph, largest
        )
        st.subheader(escape_markdown(sentence, 600), anchor=False)
        if about:
            st.markdown(escape_markdown(about, 600))
    elif about:
        st.subheader(escape_markdown(about, 600), anchor=False)
    if tiles is None:
        return
    if tiles.graph is None or tiles.unknown is None or view.version is None:
        rows = f"{tiles.confidence[0].n:,} foreign rows"
        estimate_row(
            [*tiles.parent, tiles.confidence[0]],
            notes=["the model itself", "by its confidence", "by its confidence", rows],
        )
    else:
        alpha = view.version.setting.alpha
        estimate_row(
            [*tiles.graph, tiles.unknown],
            notes=[
                *(f"{number(one)} for the model itself" for one in tiles.parent),
                f"alpha asks for {alpha:.1%}; the model has no such answer",
            ],
        )
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
        distance_figure(lines, largest, dark=is_dark(), band_words="middle 80%"),
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
    curves: dict[Method, DistanceCurve] = {"parent": foreign_results.curve(view, "parent")}
    for key in shown:
        if key != "euclidean":
            curves[key] = foreign_results.curve(view, key)
    if view.version is not None:
        curves["geodesic"] = foreign_results.curve(view, "geodesic")
        if "euclidean" in shown and (other := _euclidean(view, view.version)) is not None:
            curves["euclidean"] = other
    return curves


def _euclidean(view: View, version: Version) -> DistanceCurve | None:
    """The version that goes by Euclidean distance: fitted when it is asked for."""
    fit = graph_results.fitted(view.review, settings=GraphSettings(distance="euclidean"))
    if fit is None:
        return None
    asked = foreign_request(session.workspace(), view.review.id, graph_folder=fit.folder)
    job = graph_results.finished(asked, view.review)
    if job is None:
        return None
    setting = Setting(fit.run.graph.gamma, 1.0, version.setting.alpha)
    return foreign_results.version_curve(Version(fit, setting), graph_results.foreign_of(job))


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
    assert tiles.unknown is not None
    assert tiles.n_unknown is not None
    chart(
        density_figure(ordinary, {chosen.name: foreign}, floor, dark=is_dark()),
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


def _fitted_on(version: Version) -> None:
    """Which rows the graph was fitted on, what that means, and how the exponent was chosen."""
    record, graph = version.fit.run.record, version.graph
    left, right = st.columns(2)
    with left.container(border=True, height="stretch"):
        st.markdown("**What it was fitted on**")
        source = {"training": "training set", "calibration": "calibration set"}[record.fitted_on]
        judged = {
            "evaluation": "the evaluation set",
            "holdout": "the same held-out rows, which flatters it a little",
        }[record.judged_on]
        st.markdown(
            f"{record.n_fit:,} rows of the {source}, in {graph.n_polytopes:,} regions; exponent "
            f"and floor from {record.n_holdout:,} held-out rows of the calibration set. Ordinary "
            f"rows on this page: {record.n_judged:,}, {judged}."
        )
        st.markdown(text.FITTED_ON[record.fitted_on])
        for note in record.notes:
            st.warning(escape_markdown(note, 600), icon=":material/visibility:")
    with right.container(border=True, height="stretch"):
        st.markdown("**How the exponent was chosen**")
        found = foreign_results.selection_of(version)
        chart(
            selection_figure(
                found.exponents,
                {"Held-out log loss": found.log_loss},
                float(found.exponents[found.chosen]),
                dark=is_dark(),
            ),
            key="foreign_selection",
            takeaway=foreign_words.selection_words(found),
            how_to_read=text.SELECTION,
            alt=foreign_words.selection_words(found),
            table=lambda: pd.DataFrame(
                {
                    "exponent": found.exponents,
                    "gamma": found.gammas,
                    "log_loss": found.log_loss,
                    "standard_error": found.standard_error,
                }
            ),
            name="kernel exponent",
        )


def _surest(view: View, chosen: Chosen) -> None:
    """The foreign rows that the model was surest about, with their features."""
    with st.container(border=True):
        st.markdown("**Foreign rows that the model is surest about**")
        answers = _answers(view, chosen)
        st.markdown(escape_markdown(_surest_words(answers, chosen.name), 600))
        try:
            features = foreign_results.frame_of(view, chosen)
        except InputError as error:
            session.error_box(error)
            return
        table = answers.join(
            features.rename(columns=lambda name: f"{name} (feature)" if name in answers else name)
        )
        st.dataframe(
            table.head(SUREST).iloc[:, : len(answers.columns) + MAX_FEATURES],
            hide_index=True,
            column_config={
                name: st.column_config.NumberColumn(format="percent")
                for name in ("Model says", "Kernel density version says")
            },
            alt=f"The {SUREST} foreign rows that the model is surest about",
            key="foreign_surest",
        )
        csv_button(
            lambda: table, key="foreign_surest_csv", name=f"{view.review.title} {chosen.name}"
        )


def _answers(view: View, chosen: Chosen) -> pd.DataFrame:
    """What is said of each row, surest first; the index is the row's place in its set."""
    proba = chosen.rows.proba
    said = pd.DataFrame(
        {
            "Row": np.arange(1, len(proba) + 1),
            "Predicted class": np.array(view.ordinary.classes, dtype=object)[proba.argmax(axis=1)],
            "Model says": proba.max(axis=1),
        }
    )
    if view.version is not None:
        density = foreign_results.densities(view.version, chosen)[1]
        posterior = foreign_results.foreign_posterior(view.version, chosen)
        said["Kernel density version says"] = posterior.max(axis=1)
        said["Unknown"] = density < view.version.graph.effective_log_floor
    return said.sort_values("Model says", ascending=False, kind="stable")


def _surest_words(answers: pd.DataFrame, name: str) -> str:
    first = answers.iloc[0]
    sure = int((answers["Model says"] > 0.9).sum())
    sentence = (
        f"{sure:,} of {len(answers):,} rows of “{name}” are answered with more than 90% "
        f"confidence; the surest is row {first['Row']:,}, with {first['Model says']:.1%} for class "
        f"{first['Predicted class']}"
    )
    if "Unknown" not in answers:
        return f"{sentence}."
    sure_too = int((answers["Kernel density version says"] > 0.9).sum())
    return f"{sentence}. The kernel density version is as sure of {sure_too:,}."


def _inside(view: View, version: Version) -> None:
    """Accuracy and calibration among the ordinary rows, when asked for."""
    with st.expander(
        "And among ordinary rows? Accuracy and calibration of both",
        key="foreign_inside",
        on_change="rerun",
    ) as shown:
        if not shown.open:
            return
        model = results.summary_of(view.ordinary)
        graph = results.summary_of(foreign_results.inside(version))
        st.markdown(escape_markdown(foreign_words.inside_words(model, graph), 600))
        st.dataframe(
            pd.DataFrame(
                {
                    "Estimate": [one.label for one in model],
                    "Model": [_told(one) for one in model],
                    "Kernel density version": [_told(one) for one in graph],
                    "Full name": [one.name for one in model],
                }
            ),
            hide_index=True,
            alt="Accuracy and calibration among ordinary rows",
        )
        st.caption(text.INSIDE)


def _told(estimate: Estimate) -> str:
    return f"{number(estimate)} ({interval(estimate)})"


def _advice() -> None:
    with st.expander("Before you rely on it", icon=":material/menu_book:"):
        st.markdown(text.ADVICE)
        st.caption(f"In our words. {text.PAPERS}")
