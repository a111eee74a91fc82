"""What was understood before the rows are scored: the event, its rate, what is predicted of it."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from app.shared import session
from app.shared.kept import by_digest
from app.shared.labels import unique_labels
from kdcal_core.data import Roles
from kdcal_core.errors import InputError
from kdcal_core.review import FirstLook, Review, first_look, set_question
from kdcal_core.text import escape_markdown, in_sentence

_LONGEST = 40  # characters of a class name on the control


def event_choice(review: Review) -> None:
    """One line about the target; for two classes the event can be chosen in it."""
    table = review.tables.get("calibration")
    if table is None or review.roles is None or review.task == "regression":
        return
    try:
        known = review.model is None, review.has_evaluation
        look = _look(table.digest, review.roles, review.classes, known, of=review)
    except InputError:  # scoring the rows reports it
        return
    if look is None or not look.shows:
        return
    if look.odd and not review.scored:
        st.warning(f"Before you score: {escape_markdown(in_sentence(look.odd), 400)}")
    if look.event is None:
        st.markdown(escape_markdown(look.shows[0].upper() + look.shows[1:], 240))
        return
    chosen = review.question.event
    event = chosen if chosen in look.of_event else look.event
    names = [escape_markdown(name, _LONGEST) for name in look.of_event]
    labels = dict(zip(look.of_event, unique_labels(names), strict=True))
    shows = escape_markdown(look.of_event[event], 240)
    key = f"event_{review.id}_{event}"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"Event: {labels[event]}, {shows}", width="content")
        st.segmented_control(
            "Which class is the event",
            list(look.of_event),
            default=event,
            required=True,
            format_func=labels.__getitem__,
            key=key,
            label_visibility="collapsed",
            on_change=_choose,
            args=(review, key),
            width="content",
        )


@by_digest
def _look(
    digest: str, roles: Roles, classes: tuple[str, ...], known: tuple[bool, ...], *, of: Review
) -> FirstLook | None:
    return first_look(session.workspace(), of)


def _choose(review: Review, key: str) -> None:
    event = st.session_state[key]
    with session.reporting_errors():  # the review may have been deleted in another tab
        set_question(session.workspace(), review.id, replace(review.question, event=event))
