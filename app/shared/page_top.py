"""The top of every page: its title, what is reviewed, open doubts, and the empty state."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

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
from kdcal_core.text import counted, escape_label, escape_markdown, in_sentence

_DOUBT, _COPIES, _TOGETHER = ":material/help:", ":material/content_copy:", ":material/group_work:"
_BEGINNING = 60  # letters that stand beside what is reviewed on a laptop
_SHARED = 18  # of each of several
_LONGEST = 700


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
            header(review, together=_dependence(page_name, review))
            tour.show(page_name)
            return review
    else:
        header(review)
    empty_state(page_name, unfinished=review is not None)
    return None


def _dependence(page_name: str, review: Review) -> str:
    """How dependent rows are treated, and which numbers of the page do not know of it."""
    words = dependence_words(review)
    place = navigation.places()[page_name]
    alone = place.rows_alone if review.task == "classification" else place.forecasts_alone
    more = f" {alone} still treat rows as independent." if words and alone else ""
    return f"{words}{more}"


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


def header(review: Review | None, *, in_full: bool = False, together: str = "") -> None:
    """The slim line above every page: what is reviewed, and open doubts about it.

    Parameters
    ----------
    review : Review or None
        Nothing is shown of None, and of a review without tables.
    in_full : bool, default=False
        Whether doubts are left to the page, which settles each below its own question, and not
        opened by their beginning. The page's answer then stays where it is.
    together : str, optional
        How rows that depend on one another are treated. Untrusted text.
    """
    if review is None or not review.tables:
        return
    from app.shared.equal_notes import copies  # slow to import, not for the first page

    doubts, shared = open_doubts(review), copies(review)
    if in_full:
        st.caption(_reviewed(review))
        _whole(shared, _COPIES)
        return
    beginning = _BEGINNING if sum(map(bool, (doubts, shared, together))) == 1 else _SHARED
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(_reviewed(review), width="content")
        _doubts_to_open(doubts, "Open doubt", beginning)
        if shared:
            _to_open("Equal rows", shared, _COPIES, beginning)
        if together:
            with st.popover(_together_by(review), icon=_TOGETHER):
                st.markdown(escape_markdown(together, _LONGEST))


def _together_by(review: Review) -> str:
    """The column that says which rows depend on one another, in a few words."""
    roles = review.roles
    if roles is not None and roles.time is not None:
        return f"Ordered by {escape_label(roles.time, 24)}"
    return f"Clusters: {escape_label(roles.cluster or '', 24) if roles else ''}"


def doubts_alone(review: Review | None) -> None:
    """The open doubts above a page that is not about the review."""
    if review is not None:
        about = f"Open doubt about {escape_label(review.title, 40)}"
        _doubts_to_open(open_doubts(review), about, _BEGINNING)


def _reviewed(review: Review) -> str:
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
    return " · ".join([*parts, rows])


def doubt(sentence: str) -> None:
    """An open doubt in full, above what settles it."""
    _whole([sentence], _DOUBT)


def _doubts_to_open(doubts: tuple[str, ...], what: str, beginning: int) -> None:
    if doubts:
        with _to_open(what, doubts, _DOUBT, beginning):
            navigation.page_link("load", "Settle it on the Load page")


def _to_open(what: str, sentences: tuple[str, ...], icon: str, beginning: int) -> DeltaGenerator:
    """The beginning of the first sentence, which opens all of them."""
    more = f" (1 of {len(sentences)})" if len(sentences) > 1 else ""
    opened = st.popover(f"{what}{more}: {escape_label(sentences[0], beginning)}", icon=icon)
    with opened:
        _whole(sentences, icon)
    return opened


def _whole(sentences: Iterable[str], icon: str) -> None:
    for sentence in sentences:
        st.warning(escape_markdown(sentence, _LONGEST), icon=icon)


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
