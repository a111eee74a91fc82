"""The top of every page: its title, what is reviewed, open doubts, and the empty state."""

from __future__ import annotations

import streamlit as st

from app.shared import session
from app.shared.equal_notes import LONGEST_NOTE, copies
from kdcal_core.distributions import FAMILIES
from kdcal_core.errors import InputError
from kdcal_core.review import Review, check_scored, open_doubts, samples
from kdcal_core.text import escape_markdown


def scored_review(page_name: str) -> Review | None:
    """The open review with its header where it can be diagnosed; else the page's empty state.

    The page's title stands above either: the one heading of the first level.
    """
    st.title(session.PLACES[page_name].title, anchor=False)
    review = session.current_review()
    task = None if review is None else session.task_of(review)
    if review is not None and task is not None and task not in session.PLACES[page_name].tasks:
        header(review)
        _other_task(page_name, review)
        return None
    if review is not None and review.ready:
        try:
            check_scored(session.workspace(), review)
        except InputError as error:  # deleted behind the app's back
            session.error_box(error)
        else:
            header(review)
            return review
    empty_state(page_name, unfinished=review is not None)
    return None


def _other_task(page_name: str, review: Review) -> None:
    """What a page is for that does not suit the open review, and where to go instead."""
    place = session.PLACES[page_name]
    with st.container(border=True):
        st.markdown(
            f"This page is for a {' or a '.join(place.tasks)}: "
            f"{place.purpose[0].lower()}{place.purpose[1:]}. "
            f"The open review, **{escape_markdown(review.title)}**, is a {review.task}."
        )
        st.markdown("These pages suit it:")
        with st.container(horizontal=True):
            for name, other in session.PLACES.items():
                if review.task in other.tasks:
                    session.page_link(name, other.title)


def header(review: Review | None) -> None:
    """The slim line above every page: what is reviewed, and what is doubtful about it."""
    if review is None or not review.tables:
        return
    answers = review.roles and (review.roles.outputs or review.roles.parameters)
    alone = "Predictions only" if answers else "No model yet"
    kind = review.model.kind if review.model is not None else alone
    rows = ", ".join(
        f"{which} set {table.n_rows:,} rows" for which, table in sorted(review.tables.items())
    )
    parts = [f"**{escape_markdown(review.title)}**", escape_markdown(kind)]
    if review.classes:
        parts.append(f"{len(review.classes):,} classes")
    if review.task == "regression":
        family = review.roles.family if review.roles else None
        parts.append(f"regression ({FAMILIES[family].title.lower()})" if family else "regression")
    st.caption(" · ".join([*parts, rows]))
    for doubt in open_doubts(review):
        st.warning(escape_markdown(doubt, 700), icon=":material/help:")
    for sentence in copies(review):
        st.warning(escape_markdown(sentence, LONGEST_NOTE), icon=":material/content_copy:")


_WILL_SHOW = {
    "reliability": (
        "Here you will see what the model says against how often it is right: the reliability "
        "diagram with its row counts, the calibration errors with their intervals, and which "
        "classes are confused with which."
    ),
    "confidence": (
        "Here you will see, for each predicted class, how often it is right at every score: the "
        "two densities behind it, the histogram under it, and how the calibrators compare."
    ),
    "foreign": (
        "Here you will see how confident the model stays as rows leave its data: its confidence "
        "against distance beside that of a kernel density version, how well foreign rows are "
        "distinguished from ordinary ones, and which foreign rows it is surest about."
    ),
    "map": (
        "Here you will see what the model says all over a plane, out to twice the range of its "
        "data, beside a kernel density version of it that knows where the data end. Drag a box "
        "over any part of it to see the rows there and whether they support the model."
    ),
    "pit": (
        "Here you will see whether outcomes fall where the predicted distributions said they "
        "would: over all rows, and place by place on a map, because good coverage of all rows can "
        "hide predictions that are too low in one place and too high in another."
    ),
    "regions": (
        "Here you will see in which regions of the inputs the model is wrong beyond chance: the "
        "regions drawn as a tree and as a table, each with its rows and its reliability, and what "
        "a repair region by region does to the AUROC and the log loss."
    ),
    "compare": (
        "Here you will see whether any calibrator is better than the model as it is, beyond "
        "chance: every measure with its interval, paired differences on the same rows, a "
        "reliability diagram of each, and what each costs in time and size."
    ),
    "export": (
        "Here you will see what a calibrator gains over the model as it is, its reliability before "
        "and after and what it does to a score, and you can save it: as one file that scores "
        "new rows anywhere, and as part of the model's ONNX file where ONNX can express it."
    ),
    "recalibration": (
        "Here you will see the same predictions before and after a repair that needs no new "
        "training: which outcomes their intervals miss, whether stated quantiles hold, and what "
        "each method gained in every measure."
    ),
}


def empty_state(page_name: str, *, unfinished: bool = False) -> None:
    """What will appear on this page, what it needs, and one button that makes it appear."""
    place = session.PLACES[page_name]
    task = place.tasks[0]
    with st.container(border=True):
        st.markdown(_WILL_SHOW[page_name])
        if unfinished:
            st.markdown(
                "The open review is not finished: its rows have not been scored yet. Finish it "
                "on the Load page."
            )
        else:
            st.markdown(
                "It needs held-out rows with their outcome, and the model or its predictions."
                if task == "regression"
                else "It needs held-out rows with their true class, and the model or its "
                "probabilities."
            )
        with st.container(horizontal=True, vertical_alignment="center"):
            first = next(one for one in samples() if one.task == task)
            if st.button(
                "Open a sample",
                key=f"sample_for_{page_name}",
                type="secondary" if unfinished else "primary",
                icon=":material/play_arrow:",
                help=escape_markdown(first.title),
            ):
                session.open_sample(first.name)
            session.page_link("load", "Go to Load")
