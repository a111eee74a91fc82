"""The choice of the question that a page's finding, tiles and picture answer.

For two classes it starts from the probability of the event, unless the review asks about the
confidence; the other questions are one click away. Each page keeps its own choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from app.shared.emphasis import quiet
from kdcal_core.diagnostics import Kind
from kdcal_core.review import Review
from kdcal_core.text import escape_label

KINDS: dict[Kind, str] = {
    "class": "Probability of a class",
    "confidence": "Confidence in the prediction",
    "top-label": "Predicted class by class",
}
KIND_QUESTIONS: dict[Kind, str] = {
    "class": "When the model gives the class this probability, how often is the row of that class?",
    "confidence": "When the model is this sure of its prediction, how often is it right?",
    "top-label": "The same question for the rows that were predicted to be one class. Salamon et "
    "al. advise this one: a model can be right overall and wrong class by class.",
}


@dataclass(frozen=True)
class Asked:
    """A question: which probability is compared with how often what happens.

    Attributes
    ----------
    kind : {"class", "confidence", "top-label"}
    label : int or None
        The class; None for all rows.
    """

    kind: Kind
    label: int | None

    @property
    def event(self) -> int | None:
        """The class whose probability is asked about; None for a question about predictions."""
        return self.label if self.kind == "class" else None


def choose_question(
    review: Review,
    page: str,
    asked: Sequence[Asked],
    help: str | None = None,
    *,
    width: int | None = None,
) -> Asked:
    """One of these questions, the review's own one first; without a choice, no control.

    Parameters
    ----------
    review : Review
    page : str
        Distinguishes the choice of this page.
    asked : sequence of Asked
        At least one.
    help : str, optional
        Our own text.
    width : int, optional
        In a row of controls: the width in pixels, without a label.
    """
    of_event = review.event is not None
    options = sorted(
        asked, key=lambda one: (one.event != review.event, (one.event is not None) != of_event)
    )
    if len(options) == 1:
        return options[0]
    chosen: int = st.selectbox(
        "Question",
        options=range(len(options)),
        format_func=lambda at: question_words(review, options[at]),
        key=f"{page}_question_{review.id}_{review.event}",
        persist_state="session",
        help=help,
        width="stretch" if width is None else width,
        label_visibility="visible" if width is None else "collapsed",
    )
    return options[chosen]


def question_fold(review: Review, page: str) -> Any:
    """A fold for the question and how it is answered, named by the question that is asked."""
    kind: Kind = st.session_state.get(_kind_key(review, page), _kinds(review)[0])
    label: int = st.session_state.get(_label_key(review, page), review.event or 0)
    words = question_words(review, Asked(kind, label))
    return st.popover(escape_label(words, 80), icon=":material/target:", type=quiet())


def _kinds(review: Review) -> list[Kind]:
    first: Kind = "class" if review.event is not None else "confidence"
    return sorted(KINDS, key=lambda kind: kind != first)


def _kind_key(review: Review, page: str) -> str:
    return f"{page}_kind_{'event' if review.event is not None else 'confidence'}"


def _label_key(review: Review, page: str) -> str:
    return f"{page}_label_{review.id}_{review.event}"


def choose_kind(review: Review, page: str) -> Kind:
    """What is asked: of an event first its probability, otherwise first the confidence."""
    kind: Kind = st.radio(
        "Question",
        options=_kinds(review),
        format_func=KINDS.__getitem__,
        key=_kind_key(review, page),
        persist_state="session",
    )
    st.caption(KIND_QUESTIONS[kind])
    return kind


def choose_label(review: Review, page: str) -> int:
    """The class that a question is about, the event first."""
    label: int = st.selectbox(
        "Class",
        options=range(len(review.classes)),
        index=review.event or 0,
        format_func=lambda at: review.classes[at][:80],
        key=_label_key(review, page),
        persist_state="session",
    )
    return label


def question_words(review: Review, asked: Asked) -> str:
    """The question in a few words. Untrusted text."""
    if asked.event is not None:
        return f"Probability of {review.classes[asked.event][:60]}"
    if asked.kind == "top-label" and asked.label is not None:
        return f"{KINDS[asked.kind]}: {review.classes[asked.label]}"
    return KINDS[asked.kind]
