"""The top of every page: its title, what is reviewed, open doubts, and the empty state."""

from __future__ import annotations

import streamlit as st

from app.shared import navigation, session, tour
from app.shared.emphasis import emphasis
from kdcal_core.distributions import FAMILIES
from kdcal_core.errors import InputError
from kdcal_core.review import (
    Review,
    check_scored,
    dependence_words,
    note_results,
    open_doubts,
    samples,
)
from kdcal_core.text import counted, escape_markdown, in_sentence


def scored_review(page_name: str) -> Review | None:
    """The open review with its header, if it can be diagnosed; otherwise the empty state.

    The page's title, its only heading of the first level, is above either.
    """
    st.title(navigation.places()[page_name].title, anchor=False)
    review = session.current_review()
    task = None if review is None else session.task_of(review)
    if review is not None and task is not None and task not in navigation.places()[page_name].tasks:
        header(review)
        _other_task(page_name, review)
        return None
    if review is not None and review.ready:
        try:
            check_scored(session.workspace(), review)
        except InputError as error:  # deleted outside the app
            session.error_box(error)
        else:
            note_results(review)
            header(review)
            _dependence(page_name, review)
            if open_doubts(review):
                _settle_link()
            tour.show(page_name)
            return review
    else:
        header(review)
    empty_state(page_name, unfinished=review is not None)
    return None


def _dependence(page_name: str, review: Review) -> None:
    """How dependent rows are treated, and which numbers of the page do not know of it."""
    if words := dependence_words(review):
        place = navigation.places()[page_name]
        alone = place.rows_alone if review.task == "classification" else place.forecasts_alone
        more = f" {alone} still treat rows as independent." if alone else ""
        st.caption(f"{escape_markdown(words, 400)}{more}")


def _other_task(page_name: str, review: Review) -> None:
    """The purpose of a page that does not support the open review, and links to others."""
    place = navigation.places()[page_name]
    with st.container(border=True):
        st.markdown(
            f"This page is for a {' or a '.join(place.tasks)}: "
            f"{in_sentence(place.purpose)}. "
            f"The open review, **{escape_markdown(review.title)}**, is a {review.task}."
        )
        st.markdown("These pages support it:")
        with st.container(horizontal=True):
            for name, other in navigation.places().items():
                if review.task in other.tasks:
                    navigation.page_link(name, other.title)


def header(review: Review | None) -> None:
    """The slim line above every page: what is reviewed, and open doubts about it."""
    if review is None or not review.tables:
        return
    answers = review.roles and (review.roles.outputs or review.roles.parameters)
    alone = "Predictions only" if answers else "No model yet"
    kind = review.model.kind if review.model is not None else alone
    rows = ", ".join(
        f"{which} set {table.n_rows:,} rows" for which, table in sorted(review.tables.items())
    )
    parts = [f"**{escape_markdown(review.title)}**", escape_markdown(kind)]
    if review.model is None and review.roles and review.roles.judges_right:
        parts.append("whether predictions are right")
    elif review.classes:
        parts.append(counted(len(review.classes), "class", "classes"))
    if review.task == "regression":
        family = review.roles.family if review.roles else None
        parts.append(f"regression ({FAMILIES[family].title.lower()})" if family else "regression")
    st.caption(" · ".join([*parts, rows]))
    for doubt in open_doubts(review):
        _doubt(escape_markdown(doubt, 700))
    from app.shared.equal_notes import (
        LONGEST_NOTE,
        copies,
    )  # slow to import, not for the first page

    for sentence in copies(review):
        st.warning(escape_markdown(sentence, LONGEST_NOTE), icon=":material/content_copy:")


def doubts_alone(review: Review | None) -> None:
    """The open doubts above a page that is not about the review, with its title before each."""
    if review is None or not (found := open_doubts(review)):
        return
    for doubt in found:
        _doubt(f"Open review **{escape_markdown(review.title)}**. {escape_markdown(doubt, 700)}")
    _settle_link()


def _doubt(words: str) -> None:
    st.warning(words, icon=":material/help:")


def _settle_link() -> None:
    navigation.page_link("load", "Settle it on the Load page")


def empty_state(page_name: str, *, unfinished: bool = False) -> None:
    """What will appear on this page, what it needs, and a button to open a sample."""
    place = navigation.places()[page_name]
    task = place.tasks[0]
    with st.container(border=True):
        st.markdown(place.will_show)
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
                type=emphasis(wanted=not unfinished),
                icon=":material/play_arrow:",
                help=escape_markdown(first.title),
            ):
                session.open_sample(first.name)
            navigation.page_link("load", "Go to Load")
