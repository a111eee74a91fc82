"""What people are told of an audit, and its words for a webhook and for a mail.

A notice holds no rows. Its texts come from users: each is one line without control characters and
has a greatest length, so that none can begin a header or hide in a terminal.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kdcal_core.audit.events import (
    AuditApproved,
    AuditDrafted,
    AuditRejected,
    AuditSubmitted,
    AuditSuperseded,
    FindingOpened,
)
from kdcal_core.audit.project import Project
from kdcal_core.audit.signing import canonical
from kdcal_core.errors import InputError
from kdcal_core.store import decode, encode
from kdcal_core.text import and_more, counted, printable

_KINDS: dict[type[Any], str] = {
    AuditDrafted: "audit.drafted",
    AuditSubmitted: "audit.submitted",
    AuditApproved: "audit.approved",
    AuditRejected: "audit.rejected",
    AuditSuperseded: "audit.superseded",
    FindingOpened: "finding.opened",
}
"""The events that people are told of."""
_TEST = "test"
_NAME, _SENTENCE, _SUBJECT = 200, 600, 150  # characters
_MOST_CHECKS = 100


@dataclass(frozen=True)
class Notice:
    """What people are told of one event.

    Attributes
    ----------
    kind : str
        Such as "audit.submitted".
    when : str
        UTC, as of `Moment`.
    project, title : str
        Names of the project and the audit.
    audit : str
        Identifier of the audit.
    number : int
        Of the entry in the project's record.
    state, verdict, headline : str
        Of the audit, after the event.
    checks : tuple of str
        A line for each check that fails or lacks evidence.
    finding, severity : str
        Of a finding that was opened; else empty.
    """

    kind: str
    when: str
    project: str
    title: str
    audit: str
    number: int
    state: str
    verdict: str
    headline: str
    checks: tuple[str, ...] = ()
    finding: str = ""
    severity: str = ""


def is_told(event: Any) -> bool:
    """Whether people are told of such an event.

    Examples
    --------
    >>> is_told(AuditSubmitted("a"))
    True
    """
    return type(event) in _KINDS


def notice_of(project: Project, event: Any, when: str, checks: Sequence[str] = ()) -> Notice:
    """The notice of an event, which is the last that happened to the project.

    Parameters
    ----------
    event
        One that `is_told`.
    checks : sequence of str
        A line for each check that fails or lacks evidence.
    """
    audit = project.audits[event.audit]
    opened = event if isinstance(event, FindingOpened) else None
    lines = [printable(one, _SENTENCE) for one in checks[:_MOST_CHECKS]]
    if len(checks) > _MOST_CHECKS:
        lines.append(f"{and_more(len(checks) - _MOST_CHECKS).strip()}.")
    return Notice(
        kind=_KINDS[type(event)],
        when=when,
        project=printable(project.name, _NAME),
        title=printable(audit.facts.title, _NAME),
        audit=audit.id,
        number=project.number,
        state=audit.state,
        verdict=audit.facts.verdict,
        headline=printable(audit.facts.headline, _SENTENCE),
        checks=tuple(lines),
        finding=printable(opened.title, _NAME) if opened else "",
        severity=opened.severity if opened else "",
    )


def trial_notice(when: str) -> Notice:
    """A notice that tries whether notices arrive."""
    return Notice(
        kind=_TEST,
        when=when,
        project="Test",
        title="A test message",
        audit="none",
        number=0,
        state="draft",
        verdict="pass",
        headline="kdcal can send messages here.",
    )


def notice_text(notice: Notice) -> str:
    """The notice as canonical JSON, to be kept."""
    return canonical(encode(notice)).decode()


def read_notice(text: str) -> Notice:
    """The notice that `notice_text` wrote.

    Raises
    ------
    InputError
        If it is none, or of a newer kdcal.
    """
    try:
        return decode(Notice, json.loads(text))
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(
            "The message cannot be read: a newer kdcal wrote it", fix="Install the newest kdcal."
        ) from error


def webhook_body(notice: Notice) -> bytes:
    """The notice as a webhook sends it: the same bytes at every try.

    Examples
    --------
    >>> json.loads(webhook_body(trial_notice("2026-11-25T16:20:00.000000Z")))["type"]
    'test'
    """
    finding = {"title": notice.finding, "severity": notice.severity} if notice.finding else None
    return canonical(
        {
            "type": notice.kind,
            "timestamp": notice.when,
            "data": {
                "project": notice.project,
                "audit": notice.audit,
                "title": notice.title,
                "state": notice.state,
                "verdict": notice.verdict,
                "headline": notice.headline,
                "checks": list(notice.checks),
                "finding": finding,
                "entry": notice.number,
            },
        }
    )


def mail_subject(notice: Notice) -> str:
    """The verdict, the audit and what happened, in one line.

    Examples
    --------
    >>> mail_subject(trial_notice("2026-11-25T16:20:00.000000Z"))
    'Pass: A test message (test message)'
    """
    happened = {_TEST: "test message", "finding.opened": "a finding was opened"}
    what = happened.get(notice.kind, notice.kind.rpartition(".")[2])
    verdict = notice.verdict[:1].upper() + notice.verdict[1:]
    return f"{printable(verdict, 40)}: {printable(notice.title, _SUBJECT)} ({what})"


def mail_text(notice: Notice) -> str:
    """The notice as a plain text.

    Examples
    --------
    >>> print(mail_text(trial_notice("2026-11-25T16:20:00.000000Z")))
    kdcal can send messages here.
    <BLANKLINE>
    Project: Test
    Audit: A test message (none)
    State: draft
    Verdict: pass
    <BLANKLINE>
    No check fails or lacks evidence.
    <BLANKLINE>
    2026-11-25 16:20 UTC, entry 0 of the project's record.
    """
    facts = [
        f"Project: {notice.project}",
        f"Audit: {notice.title} ({notice.audit})",
        f"State: {notice.state}",
        f"Verdict: {notice.verdict}",
    ]
    if notice.finding:
        facts.append(f"Finding ({notice.severity}): {notice.finding}")
    n = len(notice.checks)
    checks = "No check fails or lacks evidence."
    if notice.checks:
        verbs = "fails or lacks" if n == 1 else "fail or lack"
        checks = "\n".join(
            (f"{counted(n, 'check')} {verbs} evidence:", *(f"- {one}" for one in notice.checks))
        )
    when = f"{notice.when[:16].replace('T', ' ')} UTC"
    foot = f"{when}, entry {notice.number} of the project's record."
    return "\n\n".join((notice.headline, "\n".join(facts), checks, foot))
