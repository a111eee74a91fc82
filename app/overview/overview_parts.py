"""The parts of the Overview page: the verdict, the question, the picture and what to do next."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from app.overview.check_list import MARKS, check_list
from app.shared import navigation, pit_results, reviews_here, session, set_results, waiting
from app.shared.charts import drawn_once, is_dark, show
from app.shared.emphasis import emphasis, quiet
from app.shared.group_choice import choose_groups, declared
from kdcal_core.charts import pit_chart, reliability_chart
from kdcal_core.checks import (
    CHECKS,
    CheckedReview,
    MeasuredChecks,
    headline,
    judge_checks,
    next_step,
)
from kdcal_core.errors import InputError
from kdcal_core.review import Review, View, Which, baseline_of, note_verdict, set_question
from kdcal_core.tasks import (
    ReviewTask,
    baseline_settings,
    checks_settings,
    quick_checks,
    set_reliability,
    thorough_checks,
    verdict_edition,
)
from kdcal_core.text import counted, escape_markdown, in_sentence

PICTURE_WIDTH = 380
"""Pixels of the picture's card; the checks take the rest of the line, or stand above it."""

_NOT_COMPARED = (
    "The review that limits compare with can no longer be compared with this one. Choose another "
    "review under Limits, or give these checks limits of their own."
)

_VIEWS: dict[View, str] = {
    "event": "Probability of the event",
    "confidence": "Confidence in the prediction",
}


def quick(review: Review, which: Which) -> MeasuredChecks | None:
    """What the quick checks found; None while a job finds it."""
    return set_results.of(review, quick_checks, **checks_settings(review, which))


def thorough(review: Review, which: Which) -> Answer:
    """What the other checks found, by a job whose progress or end is shown."""
    return _answer_of(review, review, thorough_checks, checks_settings(review, which))


@dataclass(frozen=True, eq=False)
class Baseline:
    """The other review that limits compare with.

    Attributes
    ----------
    measured : MeasuredChecks or None
        What its checks found; None where nothing can be compared, or not yet.
    words : str
        Which review and which rows it is. Escaped.
    why_not : str
        Why nothing, or not all, can be compared. Escaped.
    complete : bool
        Whether no job is still measuring it.
    """

    measured: MeasuredChecks | None = None
    words: str = ""
    why_not: str = ""
    complete: bool = True


def baseline(review: Review) -> Baseline:
    """The other review of this review's limits, measured; while a job does so, its progress."""
    compared = [code for code, one in review.question.limits.items() if one.against == "baseline"]
    if not compared:
        return Baseline()
    # whoever may open this review need not be allowed to open the other one
    named = reviews_here.at_this_machine()
    try:
        other = baseline_of(session.workspace(), review)
        settings = baseline_settings(review, other)
        found = [_answer_of(other, review, quick_checks, settings)]
        if not all(CHECKS[code].quick for code in compared):
            found.append(_answer_of(other, review, thorough_checks, settings))
    except InputError as error:
        chosen = review.question.baseline
        there = chosen is not None and session.workspace().exists(chosen)
        why = escape_markdown(str(error), 600) if named or not there else _NOT_COMPARED
        return Baseline(why_not=why)
    words = (
        f"The baseline is the review {escape_markdown(other.title, 80)}: "
        f"{counted(other.sets[settings['which']].n_rows, 'row')} of its {settings['which']} set."
        if named
        else "The baseline is another review."
    )
    reasons = [escape_markdown(one.why_none, 600) for one in found if one.why_none]
    return Baseline(
        _together([one.measured for one in found]),
        words,
        " ".join(dict.fromkeys(reasons)),
        not any(one.running for one in found),
    )


@dataclass(frozen=True, eq=False)
class Answer:
    """What checks of a review found, or why they did not; neither while a job runs."""

    measured: MeasuredChecks | None
    why_none: str = ""

    @property
    def running(self) -> bool:
        return self.measured is None and not self.why_none


def _answer_of(
    other: Review, review: Review, task: ReviewTask[MeasuredChecks], settings: dict[str, Any]
) -> Answer:
    """The answer about this review or the baseline of its limits; a job belongs to this one."""
    get = set_results.of if task is quick_checks else set_results.in_job
    whose = "this review" if other.id == review.id else "the baseline"
    key = task.request(session.workspace(), other, **settings).key
    before = waiting.find(key)
    measured = get(other, task, owner=review.id, **settings)
    job = waiting.find(key)
    if measured is not None or job is None or not job.finished:
        return Answer(measured)
    if job.state == "done":  # and was before, with a result that cannot be read; or just now
        unread = before is not None and before.state == "done"
        return Answer(None, f"The stored results of {whose} are damaged." if unread else "")
    if job.error is None:
        return Answer(None, f"The checks of {whose} were stopped.")
    reason = f": {in_sentence(str(job.error))}" if reviews_here.at_this_machine() else "."
    return Answer(None, f"The checks of {whose} could not be made{reason}")


def _together(found: Sequence[MeasuredChecks | None]) -> MeasuredChecks | None:
    there = [one for one in found if one is not None]
    checks = {one.code: one for each in there for one in each.checks}
    ordered = tuple(checks[code] for code in CHECKS if code in checks)
    return MeasuredChecks(ordered, there[0].n) if there else None


def judged(review: Review, compared: Baseline, *found: MeasuredChecks | None) -> CheckedReview:
    """The checks that are there, held together against the review's limits."""
    measured = _together(found)
    assert measured is not None  # the quick checks, at least
    return judge_checks(measured, review.question.limits, baseline=compared.measured)


def keep_verdict(review: Review, which: Which, checked: CheckedReview) -> None:
    """Keep the verdict of all checks with the review, for the list of reviews on this machine."""
    judged_on: Which = "evaluation" if review.has_evaluation else "calibration"
    if which == judged_on:
        with contextlib.suppress(InputError, OSError):  # nothing here depends on it
            edition = verdict_edition(session.workspace(), review)
            note_verdict(session.workspace(), review, checked.verdict, edition)


def verdict(checked: CheckedReview) -> None:
    """The verdict in one sentence, with its mark."""
    mark = MARKS[checked.verdict]
    sentence = escape_markdown(headline(checked), 500)
    st.header(f":{mark.colour}[{mark.icon}] {sentence}", anchor=False)


def question(review: Review) -> None:
    """What is asked of the model: which of two classes is the event, and which groups count."""
    asked = review.question
    event = review.classes[review.event] if review.event is not None else None
    label = "Question" if event is None else f"Event: {event}"
    with st.popover(escape_markdown(label, 60), icon=":material/target:", type=quiet()):
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
        st.subheader("Checks", anchor=False)
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
            )


def what_next(checked: CheckedReview, further: Answer, compared: Baseline) -> None:
    """What to do, in a paragraph."""
    running = further.running or not compared.complete
    said = [next_step(checked, complete=not running and further.measured is not None)]
    if running:
        said.append("Further checks are running.")
    elif further.measured is None:
        said.append("Further checks have ended without a result: start them again below.")
    words = escape_markdown(" ".join(filter(None, said)), 800)
    st.markdown(f"**What to do next.** {words}")


def onward(review: Review) -> None:
    """Links to the pages that repair a model and find its faults."""
    with st.container(horizontal=True):
        if review.task == "regression":
            navigation.page_link("recalibration", "Repair it and compare")
            navigation.page_link("regions", "Find where it is wrong")
        else:
            navigation.page_link("compare", "Compare calibrators")
            navigation.page_link("regions", "Find where it is wrong")
            navigation.page_link("export", "Export a calibrator")
