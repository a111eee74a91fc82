"""A first tour: four pages of one sample, each with what to look for."""

from __future__ import annotations

import streamlit as st

from app.shared import navigation, session
from app.shared.emphasis import emphasis

SAMPLE = "adult"
"""The sample of the tour: two classes, over-confident, enough rows to show it."""

STEPS: dict[str, str] = {
    "overview": "The verdict stands first, and below it what to do next: this model fails. In the "
    "list, every check has a question, an estimate with its interval, and a limit; the link leads "
    "to the page that shows it.",
    "reliability": "Where is it wrong? Points below the diagonal state more than happens: red is "
    "over-confident, blue under-confident. Grey boxes show what chance alone explains.",
    "decisions": "What follows from it? Move the threshold: the table counts found events, false "
    "alarms and missed events, and net benefit says from which threshold on the model is worth "
    "using.",
    "compare": "What corrects it? One click fits the calibrators and judges them on other rows. "
    "Then choose one on the next page, and download it.",
}
_PLACE = "tour"  # the step that the session is at; absent where no tour is taken


def start() -> None:
    """Begin at the first step, with the sample open."""
    st.session_state[_PLACE] = 0


def show(page: str) -> None:
    """This page's step, if it is the tour's next one, with the way on and the way out."""
    at = st.session_state.get(_PLACE)
    if at is None or page != list(STEPS)[at]:
        return
    with st.container(border=True):
        st.markdown(f"**Tour, step {at + 1} of {len(STEPS)}.** {STEPS[page]}")
        with st.container(horizontal=True):
            last = at + 1 == len(STEPS)
            if st.button("End the tour" if last else "Next step", key="tour_next", type=emphasis()):
                _go_on(at)
            if not last and st.button("Skip the tour", key="tour_skip", type="tertiary"):
                _end()
                st.rerun()


def _go_on(at: int) -> None:
    if at + 1 == len(STEPS):
        _end()
        st.rerun()
    st.session_state[_PLACE] = at + 1
    navigation.go_to(list(STEPS)[at + 1])


def _end() -> None:
    st.session_state.pop(_PLACE, None)


def offer() -> None:
    """The button that opens the sample and begins the tour."""
    if st.button(
        "Take a tour of four steps",
        key="tour_start",
        type="tertiary",
        icon=":material/explore:",
    ):
        start()
        session.open_sample(SAMPLE, then=lambda: navigation.go_to(next(iter(STEPS))))
