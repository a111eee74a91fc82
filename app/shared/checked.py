"""What a review's checks found, and the other review that their limits compare with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.shared import reviews_here, session, set_results, waiting
from kdcal_core.checks import CHECKS, MeasuredChecks
from kdcal_core.errors import InputError
from kdcal_core.review import Review, Which, baseline_of
from kdcal_core.tasks import (
    ReviewTask,
    baseline_settings,
    checks_settings,
    quick_checks,
    thorough_checks,
)
from kdcal_core.text import counted, escape_markdown, in_sentence

_NOT_COMPARED = (
    "The review that limits compare with can no longer be compared with this one. Choose another "
    "review under Limits, or give these checks limits of their own."
)


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
    name : str
        What an audit calls it. Untrusted text.
    digest : str
        Of the rows that were measured.
    """

    measured: MeasuredChecks | None = None
    words: str = ""
    why_not: str = ""
    complete: bool = True
    name: str = ""
    digest: str = ""


def baseline(review: Review) -> Baseline:
    """The other review of this review's limits, measured; while a job does so, its progress."""
    compared = [code for code, one in review.question.limits.items() if one.against == "baseline"]
    if not compared:
        return Baseline()
    # whoever may open this review need not be allowed to open the other one
    named = reviews_here.may_be_named()
    try:
        other = baseline_of(session.workspace(), review)
        settings = baseline_settings(review, other)
    except InputError as error:
        chosen = review.question.baseline
        there = chosen is not None and session.workspace().exists(chosen)
        why = escape_markdown(str(error), 600) if named or not there else _NOT_COMPARED
        return Baseline(why_not=why)
    try:
        found = [_answer_of(other, review, quick_checks, settings)]
        if not all(CHECKS[code].quick for code in compared):
            found.append(_answer_of(other, review, thorough_checks, settings))
    except InputError as error:
        return Baseline(why_not=escape_markdown(str(waiting.of_another_review(error)), 600))
    words = (
        f"The baseline is the review {escape_markdown(other.title, 80)}: "
        f"{counted(other.sets[settings['which']].n_rows, 'row')} of its {settings['which']} set."
        if named
        else "The baseline is another review."
    )
    if named and other.event != settings["event"]:
        words += f" It is measured for {_asked(review)}, as this one, though it asks about another."
    reasons = [escape_markdown(one.why_none, 600) for one in found if one.why_none]
    return Baseline(
        together([one.measured for one in found]),
        words,
        " ".join(dict.fromkeys(reasons)),
        not any(one.running for one in found),
        other.title if named else "another review",
        other.sets[settings["which"]].digest,
    )


def _asked(review: Review) -> str:
    """What the review's probabilities are of. Escaped."""
    if review.event is None:
        return "the confidence in the predicted class"
    return f"the event {escape_markdown(repr(review.classes[review.event][:40]), 60)}"


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
    error = waiting.error_of(job)
    return Answer(None, f"The checks of {whose} could not be made: {in_sentence(str(error))}")


def together(found: Sequence[MeasuredChecks | None]) -> MeasuredChecks | None:
    """The checks that are there, as if one had measured them all."""
    there = [one for one in found if one is not None]
    checks = {one.code: one for each in there for one in each.checks}
    ordered = tuple(checks[code] for code in CHECKS if code in checks)
    return MeasuredChecks(ordered, there[0].n) if there else None
