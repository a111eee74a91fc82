"""What an audit asks of a review, and what it is about: settings, limits, subject."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kdcal_core.audit.content import (
    Baseline,
    CalibratorFacts,
    ModelFacts,
    Subject,
    TableFacts,
)
from kdcal_core.calibration import CALIBRATORS
from kdcal_core.charts import (
    gain_finding,
)
from kdcal_core.checks import (
    CHECKS,
    MeasuredCheck,
)
from kdcal_core.data import Roles, Task
from kdcal_core.errors import InputError
from kdcal_core.regression import RECALIBRATORS
from kdcal_core.review import Decision, Limit, Review, Which, open_doubts
from kdcal_core.store.disk import digest_of
from kdcal_core.tasks import (
    ExportRun,
)
from kdcal_core.text import in_sentence


@dataclass(frozen=True)
class AuditSettings:
    """What an audit asks.

    Attributes
    ----------
    title : str
        Untrusted text.
    which : str
        The set whose rows are judged.
    event : int or None
        As of `kdcal_core.tasks.quick_checks`.
    groups : tuple of str
    decision : Decision
        Of the event.
    limits : dict of code to Limit
        In place of the checks' own.
    codes : tuple of str
        The checks that are made; all without any.
    required : tuple of str
        As of `kdcal_core.checks.CheckedReview`.
    baseline : Baseline or None
        What limits against a baseline compare with.
    calibrator : CalibratorFacts or None
    signature : str
        As of `ModelFacts`.
    rows_key : str
        The secret with which rows are hashed (`kdcal_core.audit.Record.rows_key`); without it the
        audit cannot say how far another one judged the same rows.
    measured : tuple of MeasuredCheck
        Checks that were measured on more than the review holds, in place of its own answers.
    """

    title: str
    which: Which
    event: int | None = None
    groups: tuple[str, ...] = ()
    decision: Decision = field(default_factory=Decision)
    limits: dict[str, Limit] = field(default_factory=dict)
    codes: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    baseline: Baseline | None = None
    calibrator: CalibratorFacts | None = None
    signature: str = ""
    measured: tuple[MeasuredCheck, ...] = ()
    rows_key: str = field(default="", repr=False)


def audit_settings(review: Review, title: str = "") -> AuditSettings:
    """The settings that ask a review's own question."""
    question = review.question
    return AuditSettings(
        title=title or review.title,
        which="evaluation" if review.has_evaluation else "calibration",
        event=review.event,
        groups=question.groups,
        decision=question.decision_of(review.classes, review.event),
        limits=question.limits,
        signature=review.signature.said if review.signature else "",
    )


def exported_facts(run: ExportRun) -> CalibratorFacts:
    """What an audit keeps of a calibrator whose file was written.

    The audit judges the model as it is, not the calibrator's output.
    """
    record = run.record
    finding = (
        f"It was not judged: {in_sentence(record.why_not_judged or 'no reason is known')}"
        if run.gain is None
        else gain_finding(record.title, run.gain)
    )
    file = digest_of(run.calibrator_file)
    return CalibratorFacts(record.settings.key, record.title, file, finding)


def named_facts(key: str) -> CalibratorFacts:
    """What an audit keeps of a calibrator, or of a recalibrator, without a file.

    Raises
    ------
    InputError
        If there is none with this key.

    Examples
    --------
    >>> named_facts("beta").title, named_facts("beta").digest
    ('Beta calibration, one class against the rest', '')
    """
    if key in CALIBRATORS:
        title = CALIBRATORS[key].name
    elif key in RECALIBRATORS:
        title = RECALIBRATORS[key].title
    else:
        raise InputError(f"There is no calibrator {key[:60]!r}", fix="Choose one of the list.")
    return CalibratorFacts(key, title, "", "No file of it was named.")


def limits_of(
    task: Task, codes: Sequence[str] = (), given: Mapping[str, Limit] | None = None
) -> dict[str, Limit]:
    """What an audit's checks are held against: the limits that are given, and the defaults.

    Parameters
    ----------
    codes : sequence of str, optional
        The checks that are made; all without any.
    """
    return {
        code: (given or {}).get(code, one.limit)
        for code, one in CHECKS.items()
        if task in one.tasks and (not codes or code in codes)
    }


def subject_of(review: Review, settings: AuditSettings) -> Subject:
    """What is audited, with digests in place of contents."""
    model = review.model
    tables = [
        TableFacts(
            which,
            one.name,
            one.digest,
            one.n_rows,
            one.column_names,
            review.sets[which].digest if which in review.sets else "",
        )
        for which, one in review.tables.items()
    ]
    others = [("training", review.training)] if review.training else []
    others += [("foreign", one) for one in review.foreign.values()]
    tables += [
        TableFacts(part, one.name, one.digest, one.n_rows, one.column_names)
        for part, one in others
        if one is not None
    ]
    return Subject(
        task=review.task,
        model=None
        if model is None
        else ModelFacts(model.name, model.kind, model.digest, settings.signature),
        tables=tuple(tables),
        roles=review.roles or Roles(),
        classes=review.classes,
        event=None if settings.event is None else review.classes[settings.event],
        groups=settings.groups,
        which=settings.which,
        decision=settings.decision,
        doubts=open_doubts(review),
    )
