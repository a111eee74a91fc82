"""What happened to an audit, in words. Names and texts pass through: callers escape them."""

from __future__ import annotations

from dataclasses import dataclass

from kdcal_core.audit.events import (
    SEVERITIES,
    AuditApproved,
    AuditDrafted,
    AuditRejected,
    AuditSubmitted,
    AuditSuperseded,
    Happened,
)
from kdcal_core.audit.project import Audit, Finding, Project
from kdcal_core.audit.words import moment_text, said_of

SIGNED = (AuditDrafted, AuditSubmitted, AuditApproved, AuditRejected, AuditSuperseded)
"""The steps of an audit's state."""


@dataclass(frozen=True)
class Happening:
    """One line of the history.

    Attributes
    ----------
    number : int
        Of the entry in the record.
    when, clock : str
    who, believed : str
        Untrusted text, and why the name is believed.
    what : str
    words : str
        Untrusted text; may be empty.
    """

    number: int
    when: str
    clock: str
    who: str
    believed: str
    what: str
    words: str


def happening(happened: Happened, project: Project | None, audit: Audit) -> Happening:
    """An event of an audit in words."""
    what, words = said_of(happened, project, audit)
    return Happening(
        happened.number,
        moment_text(happened.when.at),
        happened.when.clock,
        happened.who.name,
        happened.who.believed,
        what,
        words,
    )


def history(project: Project | None, audit: Audit) -> tuple[Happening, ...]:
    """Everything that happened to an audit, in order."""
    return tuple(happening(one, project, audit) for one in audit.history)


def signatures(project: Project | None, audit: Audit) -> tuple[Happening, ...]:
    """The steps that brought the audit into its state."""
    steps = (one for one in audit.history if isinstance(one.event, SIGNED))
    return tuple(happening(one, project, audit) for one in steps)


def ordered_findings(audit: Audit) -> tuple[Finding, ...]:
    """Open findings before accepted and resolved ones, and severe ones first."""
    states = ("open", "accepted", "resolved")
    return tuple(
        sorted(
            audit.findings.values(),
            key=lambda one: (states.index(one.state), -SEVERITIES.index(one.severity)),
        )
    )


def last_words(finding: Finding) -> str:
    """What was said of a finding last; untrusted text, may be empty."""
    said = (getattr(one.event, "words", "") for one in reversed(finding.history))
    return next(filter(None, said), "")
