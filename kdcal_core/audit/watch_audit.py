"""The audit to which a watch holds a new table, and which of its limits a watch can use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from kdcal_core.audit.config import WatchLimits
from kdcal_core.audit.content import AuditContent, content_bytes
from kdcal_core.audit.events import Person
from kdcal_core.audit.project import Audit, Project
from kdcal_core.audit.record import Record
from kdcal_core.audit.signing import digest
from kdcal_core.audit.words import date_text
from kdcal_core.errors import InputError
from kdcal_core.review import Review, Which

Judging = tuple[Project, Audit]

_BY_DEFAULT = ("approved", "submitted")


@dataclass(frozen=True)
class ReferenceAudit:
    """An audit that judged the reference rows of a watch.

    Attributes
    ----------
    audit : str
        Its id; empty for a file that no record of this machine named.
    title, project : str
        Untrusted text; no project for a file.
    state : str
        When it was chosen; empty for a file.
    at : str
        When it was drafted, in ISO 8601; empty for a file.
    content : str
        SHA-256 of what it found.
    rows : str
        Digest of the rows that it judged.
    limits : dict of key to float
        Those of its limits that a watch can use, by the keys of the table ``[watch]``.
    chosen : str
        The calibrator that it chose for the model that it judged; empty without one. Untrusted
        text.
    """

    audit: str
    title: str
    project: str
    state: str
    at: str
    content: str
    rows: str
    limits: dict[str, float] = field(default_factory=dict)
    chosen: str = ""

    @property
    def words(self) -> str:
        """Its title, project, day and state. Untrusted text."""
        project = f" of {self.project[:80]}" if self.project else ""
        day = f" of {date_text(self.at)}" if self.at else ""
        state = f" ({self.state})" if self.state else ""
        return f"the audit {self.title[:80]!r}{project}{day}{state}"


def audits_of_rows(record: Record, rows: str, who: Person | None = None) -> tuple[Judging, ...]:
    """The audits that judged rows, by their digest, in all projects of a person; the latest first.

    Parameters
    ----------
    who : Person, optional
        As of `Record.projects`.
    """
    found = [
        (project, audit)
        for project in record.projects(who)
        for audit in project.audits.values()
        if audit.facts.rows == rows
    ]
    return tuple(sorted(found, key=lambda one: one[1].drafted.when.at, reverse=True))


def by_default(found: Sequence[Judging]) -> Judging | None:
    """The latest approved audit, else the latest submitted one, else none."""
    for state in _BY_DEFAULT:
        for one in found:
            if one[1].state == state:
                return one
    return None


def reference_audit(
    review: Review, content: AuditContent | None, judged: Judging | None = None
) -> ReferenceAudit:
    """What a watch of a review keeps of an audit.

    Parameters
    ----------
    content : AuditContent or None
        What it found; None where that was deleted, and then no limit of it can be used.
    judged : tuple of Project and Audit, optional
        Where it is in the record; by default it is the content of a file.

    Raises
    ------
    InputError
        Without either.

    Notes
    -----
    A limit is used where the audit held it against what the watch estimates too: KC001 against the
    expected calibration error, if the same event was asked, and KC101 against the AUROC, if there
    are two classes; of a regression KC021 against the PIT distance, and KC022 against the coverage
    of the intervals, if its limit is as far on both sides.
    """
    limits = {} if content is None else _usable(content, review)
    chosen = "" if content is None or content.calibrator is None else content.calibrator.title
    if content is not None and content.judged_calibrator:
        chosen = ""  # its output is what was judged
    if judged is not None:
        project, audit = judged
        facts, at = audit.facts, audit.drafted.when.at
        return ReferenceAudit(
            audit=audit.id,
            title=facts.title,
            project=project.name,
            state=audit.state,
            at=at,
            content=facts.content,
            rows=facts.rows,
            limits=limits,
            chosen=chosen,
        )
    if content is None:
        raise InputError("No audit is given", fix="Name one, or watch without an audit.")
    found = digest(content_bytes(content))
    return ReferenceAudit("", content.title, "", "", "", found, content.rows_digest, limits, chosen)


def reference_set(review: Review, made: bool = False) -> Which:
    """The set with which new rows are compared.

    Parameters
    ----------
    made : bool
        Whether the new table is made of the evaluation set.
    """
    return "evaluation" if review.has_evaluation and not made else "calibration"


def require_same_rows(audit: ReferenceAudit, review: Review, which: Which) -> None:
    """Refuse an audit that judged other rows than those of a set.

    Raises
    ------
    InputError
    """
    info = review.sets[which]
    if audit.rows != info.digest:
        raise InputError(
            f"{audit.words[:1].upper()}{audit.words[1:]} judged other predictions or outcomes than "
            f"those of the {info.n_rows:,} reference rows, the {which} set",
            fix="Name an audit of these rows, or name none.",
            file=review.tables[which].name,
        )


def added_limits(limits: WatchLimits, audit: ReferenceAudit | None) -> dict[str, float]:
    """The limits of the audit for which a watch has none of its own."""
    found = {} if audit is None else audit.limits
    return {key: one for key, one in found.items() if getattr(limits, key) is None}


def _usable(content: AuditContent, review: Review) -> dict[str, float]:
    """The audit's limits on what the watch of a review computes, by the watch's keys."""
    found: dict[str, float] = {}
    if review.task == "regression":
        found["calibration_error_at_most"] = _end(content, "KC021", "high")
        low, high = (_end(content, "KC022", one) for one in ("low", "high"))
        if low == -high:
            found["coverage_error_at_most"] = high
        return {key: one for key, one in found.items() if 0.0 <= one <= 1.0}
    asked = None if review.event is None else review.classes[review.event]
    if content.subject.event == asked:
        found["calibration_error_at_most"] = _end(content, "KC001", "high")
    if review.event_class is not None:
        found["auc_at_least"] = _end(content, "KC101", "low")
    return {key: one for key, one in found.items() if 0.0 <= one <= 1.0}


def _end(content: AuditContent, code: str, end: str) -> float:
    """An end of a check's limit on the value itself; infinite without one."""
    limit = content.limits.get(code)
    if limit is None or limit.against != "value":
        return math.inf
    return float(getattr(limit, end))
