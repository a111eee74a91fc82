"""The parts of the Out of distribution page, from top to bottom."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import streamlit as st

from app.out_of_distribution import foreign_choice, foreign_details
from app.shared import (
    foreign_results,
    graph_results,
    graph_settings,
    job_results,
    navigation,
    session,
    tiles,
    waiting,
)
from app.shared.charts import drawn_once, is_dark, show
from app.shared.emphasis import quiet
from app.shared.equal_notes import equal_notes
from app.shared.foreign_results import Method, View
from app.shared.graph_results import Fit, Foreign, Version
from app.shared.sections import sections
from app.shared.seen_charts import seen
from kdcal_core.charts import (
    by_confidence_words,
    cited_in,
    confidence_only_words,
    density_chart,
    distance_chart,
    distance_finding,
    distance_label,
    floor_words,
    give_way_words,
    made_words,
    set_finding,
    ties_words,
    version_words,
)
from kdcal_core.diagnostics import DistanceCurve, value_text
from kdcal_core.errors import InputError
from kdcal_core.review import Review
from kdcal_core.tasks import ByDistance, ForeignAnswers, GraphSettings, score_foreign
from kdcal_core.text import escape_markdown

FACTORS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_OPTIONAL: tuple[Method, ...] = ("isotonic", "sigmoid", "kde_mon2")
FIXED = "The floor is a fixed constant, so no share of ordinary rows is set."
WILL_SHOW = (
    "Here you will see how confident the model stays as rows leave its data, beside its **kernel "
    "density version**: the same model, as regions with a density in each. It keeps the model's "
    "predictions inside the data and falls back to the class frequencies far outside (Dey et al.)."
)
TILES = r"""
**OCE** is the mean distance between the largest probability of a foreign row and the largest class
prior (Dey et al., Eq. 20). It assumes that the true class frequencies are known; here they are
those of the rows of the fit ("empirical"), or those of your own prior ("given").

**AUROC** and **FPR at 95% TPR** measure something easier: whether ordinary rows score above foreign
ones. The score is the log density for the kernel density version, and the largest probability for
the model, which has no density. Confidence is the worse score: a row unlike any other gets the
class prior, and if 90% of the rows are of one class, the prior itself has a confidence of 90%, like
many ordinary rows. Calibration is harder than detection: a calibrated model detects foreign rows,
but one that detects them need not be calibrated (appendix A).

No foreign row was used in any fit: the method needs none (section 1).
"""


def has_model(review: Review) -> bool:
    """Whether there is a model; otherwise the page says what is missing."""
    if review.model is not None:
        return True
    with st.container(border=True):
        st.markdown(WILL_SHOW)
        st.markdown(
            "This page needs the model. The review has only its predictions, but the confidence "
            "on rows outside the table can only come from the model itself. Add the model on "
            "the Load page, or open a sample that has one."
        )
        navigation.page_link("load", "Go to Load")
    return False


def uploads(review: Review) -> None:
    """The progress of reading an uploaded table, and its errors."""
    ended = waiting.show(review.id)
    if ended is not None and ended.error is not None:
        session.error_box(ended.error)


def kernel_density(review: Review) -> tuple[Fit | None, bool]:
    """The kernel density version, and whether the page can go on.

    If the model has no partition there is no version; the page then says so and shows the rest.
    """
    try:
        fit = graph_results.fitted(review, WILL_SHOW)
    except InputError as error:
        session.info_box(error)
        return None, True
    return fit, fit is not None


def page(review: Review, fit: Fit | None, foreign: Foreign) -> None:
    """Everything below the header, once the model has scored the rows."""
    prior = foreign_results.prior_of(review, fit)
    if prior is None:
        return
    chosen = foreign_choice.choose(review, foreign, fit)
    if chosen is not None and chosen.one.kind == "uploaded":
        equal_notes(review, foreign=chosen.one.name)
    head = st.container()
    picture, beside = tiles.answer()
    words, densities = st.container(), st.container()
    version = None
    if fit is not None:
        with densities.container(border=True):
            drawing, settings = st.columns([11, 5], gap="medium")
            with settings:
                version = _version(review, fit)
                prior = version.prior
    view = View(
        review=review,
        prior=prior,
        foreign=foreign,
        version=version,
        chosen=chosen,
    )
    with head:
        far = None
        if foreign.record.of_kind("sphere"):
            far = foreign_results.far_away(review, foreign, version)
        answers = None if chosen is None else foreign_results.answers(view, chosen)
        about = _finding(view, far, answers)
    with picture:
        _distance(view, far)
    if answers is not None:
        with beside:
            _tiles(view, answers)
    with words:
        _further_words(view, about, answers)
    if version is not None:
        with drawing:
            _densities(view, version, answers)
    sections("foreign_sections", _further(view, version, answers))


def _further(
    view: View, version: Version | None, answers: ForeignAnswers | None
) -> dict[str, Callable[[], None]]:
    """What stands below the pictures, by title."""
    further: dict[str, Callable[[], None]] = {}
    if view.chosen is not None and answers is not None:
        further["Most confident foreign rows"] = partial(
            foreign_details.surest, view, view.chosen, answers.surest
        )
    if version is not None:
        further["Rows of the fit"] = partial(foreign_details.fitted_on, view, version)
        further["Ordinary rows"] = partial(foreign_details.inside, view, version)
    return {**further, "Before you rely on it": foreign_details.advice}


def _version(review: Review, fit: Fit) -> Version:
    """Alpha, exponent and variance, prior and floor, which take effect at once; the distance."""
    facts, n_holdout = fit.facts, fit.record.n_holdout
    fixed = graph_settings.floor_is_fixed(review.id)
    alpha = st.select_slider(
        "Alpha: ordinary rows that may count as unknown",
        options=graph_settings.ALPHAS,
        value=facts.floor_quantile if facts.floor_quantile in graph_settings.ALPHAS else 0.01,
        format_func=lambda share: f"{share:.1%}",
        key="foreign_alpha",
        persist_state="session",
        help="It sets the floor from the held-out rows, without a new fit.",
        disabled=fixed,
    )
    least = 1.0 / (n_holdout + 1)
    if not fixed and alpha < least:
        st.caption(f"{n_holdout:,} held-out rows cannot guarantee less than {least:.1%}.")
    st.caption(FIXED if fixed else floor_words(alpha, n_holdout))
    further = graph_settings.choose(review.id, review.classes, facts.prior)
    with st.expander("Exponent and variance"):
        gammas, chosen = facts.gammas, facts.chosen
        at = st.select_slider(
            "Exponent of the kernel",
            options=range(len(gammas)),
            value=chosen,
            format_func=lambda at: f"{facts.exponents[at]:.3g}",
            key=f"foreign_exponent_{fit.key[:16]}",
            persist_state="session",
            help=f"Chosen by held-out log loss: {facts.exponents[chosen]:.3g}.",
        )
        factor = st.select_slider(
            "Variance floor, relative to the fitted one",
            options=FACTORS,
            value=1.0,
            format_func=lambda times: f"{times:g}",
            key=f"foreign_variance_{fit.key[:16]}",
            persist_state="session",
            help="Added to the variance of every region's Gaussian, in squared coordinates.",
        )
        st.caption(
            f"Variance floor {facts.variance_floor * factor:.3g}, on average over the features"
        )
    return Version.of(fit, gammas[at], factor, alpha, further)


def _finding(view: View, far: ByDistance | None, answers: ForeignAnswers | None) -> str:
    """The page's sentence; returns a further one about the chosen rows."""
    largest = float(view.prior.max())
    chosen, about = view.chosen, ""
    if chosen is not None and answers is not None:
        version = answers.version
        about = set_finding(
            chosen.name,
            answers.confidence,
            None if version is None else version.confidence,
            largest,
            None if version is None else version.n_unknown,
        )
    if far is None:
        if about:
            st.header(escape_markdown(about, 600), anchor=False)
        return ""
    sentence = distance_finding(far.model, far.version, largest, far.unknown)
    st.header(escape_markdown(sentence, 600), anchor=False)
    return about


def _tiles(view: View, answers: ForeignAnswers) -> None:
    if answers.version is None or view.version is None:
        rows = f"{answers.confidence.n:,} foreign rows"
        tiles.estimate_column(
            [*answers.model, answers.confidence],
            notes=["the model itself", "by its confidence", "by its confidence", rows],
        )
        return
    version_answers = answers.version
    tiles.estimate_column(
        [*version_answers.estimates, version_answers.unknown],
        notes=[
            *(
                f"{value_text(one)} for the model itself{', by its confidence' * (at > 0)}"
                for at, one in enumerate(answers.model)
            ),
            f"of the ordinary rows; {_floor(view.version)}",
        ],
    )


def _floor(version: Version) -> str:
    fixed = version.setting.log_floor
    return f"alpha is {version.setting.alpha:.1%}" if fixed is None else f"log b is {fixed:g}"


def _settings(view: View) -> str:
    if view.version is None:
        return "the model as it is"
    return graph_results.setting_words(view.version)


def _further_words(view: View, about: str, answers: ForeignAnswers | None) -> None:
    """What else was found about the chosen rows, and how to read the tiles."""
    largest, chosen = float(view.prior.max()), view.chosen
    if about:
        st.markdown(escape_markdown(about, 600))
    if chosen is not None and chosen.one.kind in ("sphere", "shifted"):
        beyond = chosen.foreign.record.impossible.get(chosen.one.name)
        st.caption(escape_markdown(made_words(chosen.one.kind, beyond), 400))
    if answers is None:
        return
    if answers.version is None or view.version is None:
        st.caption(confidence_only_words(largest))
    else:
        ranked = answers.version.estimates[1]
        st.caption(by_confidence_words(ranked, answers.version.by_confidence, largest))
    with st.popover("How to read the estimates", type=quiet(), icon=":material/help:"):
        st.markdown(TILES)
        st.caption(cited_in(TILES))


def _distance(view: View, far: ByDistance | None) -> None:
    """Confidence against distance: the page's main picture."""
    record = view.foreign.record
    if not record.of_kind("sphere"):
        st.caption(escape_markdown(" ".join(record.notes), 600))
        return
    optional = list(_OPTIONAL)
    if view.version is not None:
        optional.append(_other_distance(view.version))
    with st.popover("Compare with", icon=":material/tune:", type=quiet()):
        shown = st.pills(
            "Compare with",
            options=optional,
            selection_mode="multi",
            default=_OPTIONAL,
            format_func=distance_label,
            key=f"foreign_methods_{optional[-1]}",
            persist_state="session",
            help="Calibrators are fitted on the calibration set.",
        )
    if far is None:  # a job is measuring
        return
    curves, largest = _curves(view, far, list(shown or ())), float(view.prior.max())
    about: dict[str, Any] = {
        "n_rows": record.settings.n,
        "n_moved": record.n_numeric,
        "n_features": record.n_features,
    }
    seen(
        *(view.review, "far_away", "Confidence far from the data", "out_of_distribution"),
        *(distance_chart, curves, largest),
        settings=_settings(view),
        finding=distance_finding(far.model, far.version, largest, far.unknown),
        **about,
    )
    show(
        drawn_once(distance_chart, curves, largest, dark=is_dark(), **about),
        key="foreign_distance",
        of=view.review.title,
    )
    for note in record.notes:
        st.caption(escape_markdown(note, 400))


def _curves(view: View, far: ByDistance, shown: list[Method]) -> dict[str, DistanceCurve]:
    curves: dict[str, DistanceCurve] = {"model": far.model}
    for key in _OPTIONAL:
        if key in shown and (found := foreign_results.calibrated_curve(view, key)):
            curves[key] = found
    if view.version is not None:
        if far.version is not None:
            curves[view.version.fit.record.distance] = far.version
        distance = _other_distance(view.version)
        if distance in shown and (other := _by(distance, view, view.version)) is not None:
            curves[distance] = other
    return curves


def _other_distance(version: Version) -> Literal["geodesic", "euclidean"]:
    return "euclidean" if version.fit.record.distance == "geodesic" else "geodesic"


def _by(
    distance: Literal["geodesic", "euclidean"], view: View, version: Version
) -> DistanceCurve | None:
    """The version that uses the other distance: fitted on request."""
    fit = graph_results.fitted(view.review, settings=GraphSettings(distance=distance))
    if fit is None:
        return None
    asked = score_foreign.request(session.workspace(), view.review.id, graph_folder=fit.folder)
    job = job_results.finished(asked, view.review.id)
    foreign = None if job is None else graph_results.foreign_of(job)
    if foreign is None:
        return None
    same = version.setting
    further = graph_settings.Further(same.prior, same.log_floor)
    other = Version.of(fit, fit.facts.gamma, 1.0, same.alpha, further)
    found = foreign_results.far_away(view.review, foreign, other)
    return None if found is None else found.version


def _densities(view: View, version: Version, answers: ForeignAnswers | None) -> None:
    """Ordinary and foreign rows by density, with the floor."""
    chosen = view.chosen
    version_answers = None if answers is None else answers.version
    if chosen is None or answers is None or version_answers is None:
        st.caption("The densities appear here once the chosen rows are scored.")
        return
    alpha = version.setting.alpha if version.setting.log_floor is None else None
    drawn_of = version_answers.densities, version_answers.unknown, version_answers.n_unknown, alpha
    titled = "densities", "Ordinary and foreign rows by density", "out_of_distribution"
    seen(
        *(view.review, *titled, density_chart),
        *drawn_of,
        settings=f"{chosen.name}; {_settings(view)}",
        finding=version_words(version_answers.estimates, answers.model),
    )
    show(
        drawn_once(density_chart, *drawn_of, dark=is_dark()),
        key="foreign_densities",
        of=view.review.title,
    )
    st.caption(give_way_words(version_answers.switch_radius))
    if ties := ties_words(*version_answers.ties):
        st.caption(ties)
