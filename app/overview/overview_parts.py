"""The parts of the Overview page: the verdict, the question, the picture and what to do next."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import streamlit as st

from app.shared import navigation, pit_results, session, set_results
from app.shared.charts import drawn_once, is_dark, show
from app.shared.check_list import MARKS, check_list
from app.shared.checked import Answer, Baseline, together
from app.shared.emphasis import emphasis, quiet
from app.shared.group_choice import choose_groups, declared
from kdcal_core.audit import date_text
from kdcal_core.charts import pit_chart, reliability_chart
from kdcal_core.checks import (
    CheckedReview,
    MeasuredChecks,
    headline,
    judge_checks,
    next_step,
)
from kdcal_core.errors import InputError
from kdcal_core.review import (
    Review,
    View,
    Which,
    note_verdict,
    open_questions,
    set_question,
    undeclared_groups,
)
from kdcal_core.tasks import set_reliability, verdict_edition
from kdcal_core.text import escape_label, escape_markdown, in_sentence, listed

PICTURE_WIDTH = 380
"""Pixels of the picture's card; the checks take the rest of the line, or stand above it."""

_VIEWS: dict[View, str] = {
    "event": "Probability of the event",
    "confidence": "Confidence in the prediction",
}


def judged(review: Review, compared: Baseline, *found: MeasuredChecks | None) -> CheckedReview:
    """The checks that are there, held together against the review's limits."""
    measured = together(found)
    assert measured is not None  # the quick checks, at least
    return judge_checks(measured, review.question.limits, baseline=compared.measured)


def keep_verdict(review: Review, which: Which, checked: CheckedReview) -> None:
    """Keep the verdict of all checks with the review, for the list of reviews on this machine."""
    judged_on: Which = "evaluation" if review.has_evaluation else "calibration"
    if which == judged_on:
        with contextlib.suppress(InputError, OSError):  # nothing here depends on it
            edition = verdict_edition(session.workspace(), review)
            note_verdict(session.workspace(), review, checked.verdict, edition)


def verdict(checked: CheckedReview, further: Answer, compared: Baseline) -> None:
    """The verdict in one sentence, with its mark; as a first one while further checks run."""
    mark = MARKS[checked.verdict]
    said = headline(checked)
    if further.running or not compared.complete:
        said = f"So far, {in_sentence(said)}"
    sentence = escape_markdown(said, 500)
    st.header(f":{mark.colour}[{mark.icon}] {sentence}", anchor=False)


def question(review: Review) -> None:
    """What is asked of the model: which of two classes is the event, and which groups count."""
    asked = review.question
    event = review.classes[review.event] if review.event is not None else None
    if event is not None:
        label, icon = f"Event: {event}", ":material/target:"
    elif len(review.classes) == 2:
        label, icon = "Question: the prediction", ":material/target:"
    else:
        named = listed(declared(review)) or "none declared"
        label, icon = f"Groups: {named}", ":material/groups:"
    with st.popover(escape_label(label, 60), icon=icon, type=quiet()):
        groups = choose_groups(
            review,
            f"question_groups_{review.id}",
            "Groups to judge one by one",
            default=declared(review),
        )
        changed = replace(asked, groups=groups)
        if len(review.classes) == 2:
            changed = replace(changed, **_event(review, event))
        same = (asked, replace(asked, event=event))
        if st.button("Use this question", type=emphasis(), disabled=changed in same):
            set_question(session.workspace(), review.id, changed)
            st.rerun()


def _event(review: Review, event: str | None) -> dict[str, Any]:
    view = st.radio(
        "What is looked at",
        options=list(_VIEWS),
        format_func=_VIEWS.__getitem__,
        index=list(_VIEWS).index(review.question.view),
        key=f"question_view_{review.id}",
    )
    chosen = st.radio(
        "Which class is the event",
        options=list(review.classes),
        format_func=lambda name: name[:80],
        index=review.classes.index(event) if event is not None else 1,
        key=f"question_event_{review.id}",
        disabled=view == "confidence",
    )
    return {"view": view, "event": chosen}


def checks(checked: CheckedReview, compared: Baseline) -> None:
    """The list of checks, and which review limits compare with."""
    with st.container(border=True):
        if compared.why_not:
            st.warning(compared.why_not, icon=":material/link_off:")
        if compared.words:
            st.caption(compared.words)
        check_list(checked)


def picture(review: Review, which: Which) -> None:
    """The reliability diagram of what is looked at, or the PIT histogram."""
    with st.container(border=True):
        if review.task == "regression":
            found = pit_results.histogram_of(pit_results.Judged(review, which), 20)
            if found is not None:
                show(
                    drawn_once(pit_chart, found, kind="none", dark=is_dark()),
                    key="overview_pit",
                    of=f"{review.title} {which}",
                    alone=True,
                )
            return
        kind = "confidence" if review.event is None else "class"
        curves = set_results.of(
            review, set_reliability,
            which=which, kind=kind, n_bins=15, strategy="uniform", label=review.event,
        )  # fmt: skip
        if curves is not None:
            show(
                drawn_once(reliability_chart, curves, review.classes, dark=is_dark(), small=True),
                key="overview_reliability",
                of=f"{review.title} {which}",
                alone=True,
            )


def what_next(review: Review, checked: CheckedReview, further: Answer, compared: Baseline) -> None:
    """What to do, in a paragraph."""
    running = further.running or not compared.complete
    complete = not running and further.measured is not None
    undeclared = undeclared_groups(review, declared(review))
    questions = open_questions(review)
    said = [next_step(checked, complete=complete, undeclared=undeclared, questions=questions)]
    # that they run says the job's card: here it would often take a line more, for a while
    if not running and further.measured is None:
        said.append("Further checks have ended without a result: start them again below.")
    words = " ".join(filter(None, said)) or "That depends on the checks that still run."
    st.markdown(f"**What to do next.** {escape_markdown(words, 800)}")


def later(review: Review, which: Which) -> None:
    """That the judged rows come after those that calibrators are fitted on; nothing otherwise."""
    spans = {one: info.span for one, info in review.sets.items() if info.span}
    if which != "evaluation" or len(spans) < 2:
        return
    end, begin = spans["calibration"][1], spans["evaluation"][0]
    if begin > end:  # days in ISO 8601
        st.caption(
            f"The evaluation set is later (from {date_text(begin)}) than the calibration set "
            f"(until {date_text(end)})."
        )


def onward(review: Review, checked: CheckedReview) -> None:
    """A link to the page that finds where the model is wrong, or repairs it; none if it passes."""
    failed = checked.of("fail")
    if any(one.check.place and one.worst.is_place for one in failed):
        navigation.page_link("regions", "Find where it is wrong")
    elif failed and review.task == "regression":
        navigation.page_link("recalibration", "Repair it and compare")
    elif failed:
        navigation.page_link("compare", "Compare calibrators")
