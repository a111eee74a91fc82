"""What happened to audits, in words: one way for the page, the report and the command line.

Names and texts pass through: callers escape them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from kdcal_core.audit.events import (
    KEY,
    AuditApproved,
    AuditDrafted,
    AuditSubmitted,
    FindingState,
    Happened,
    Person,
)
from kdcal_core.audit.project import Audit, Project
from kdcal_core.data import Task
from kdcal_core.text import counted, listed, printable

NOT_KEPT: dict[Task, str] = {
    "classification": "the rows on the posterior map, two rows beside each other, foreign rows and "
    "their pictures, methods with a point for each row, and sums that go on row by row",
    "regression": "the rows on maps (which are kept as means on a grid), intervals and densities "
    "of single rows, and true means beside estimated ones",
}
"""Pictures that pages show and audits never keep, because they hold single rows."""
FINDING_WORDS: dict[FindingState, str] = {
    "open": "Open",
    "accepted": "Risk accepted",
    "resolved": "Resolved",
}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_SHORT = 12  # digits of a digest that tell files apart
_DIGITS = 8  # of an audit's identifier
_LETTERS = 60


def date_text(at: str) -> str:
    """The day of a time of the record.

    Examples
    --------
    >>> date_text("2026-11-25T16:20:00.123456Z"), date_text("2026-12-01"), date_text("never")
    ('25 November 2026', '1 December 2026', 'never')
    """
    try:
        day = datetime.fromisoformat(at)
    except ValueError:
        return at[:40]
    return f"{day.day} {day:%B %Y}"


def moment_text(at: str) -> str:
    """A time of the record.

    Examples
    --------
    >>> moment_text("2026-11-25T16:20:00.123456Z")
    '25 November 2026, 16:20 UTC'
    """
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return at[:40]
    return f"{date_text(at)}, {moment:%H:%M} UTC"


def with_moments(words: str) -> str:
    """Words of the record in which times are written as for readers.

    Examples
    --------
    >>> with_moments("since 2026-11-25T16:20:00.123456Z, in the app")
    'since 25 November 2026, 16:20 UTC, in the app'
    """
    return _TIME.sub(lambda found: moment_text(found.group()), words)


def short(digest: str) -> str:
    """The digits of a digest that tell files apart."""
    return digest[:_SHORT]


def audit_title(audit: Audit) -> str:
    """An audit's title, with the calibrator whose output it judged. Untrusted text."""
    facts = audit.facts
    title = printable(facts.title, _LETTERS)
    return f"{title} with {printable(facts.calibrator, _LETTERS)}" if facts.calibrator else title


def audit_labels(audits: Iterable[Audit]) -> dict[str, str]:
    """What each audit of a project is called everywhere, by its id. Untrusted text.

    Its title, with the calibrator whose output it judged, and when it was drafted; where two are
    alike in that, also the first digits of their identifiers.

    Examples
    --------
    >>> from kdcal_core.audit.events import AuditDrafted, Moment
    >>> def audit(id_: str, at: str, calibrator: str = "") -> Audit:
    ...     facts = ("March", "", "pass", "Nothing fails.", "", "", 900, {})
    ...     event = AuditDrafted(id_, *facts, calibrator=calibrator)
    ...     return Audit(Happened(2, Moment(at, "a clock"), Person("Ann"), event))
    >>> first = audit("6ea98b95a", "2026-11-29T01:42:10Z")
    >>> second = audit("4465fc25a", "2026-11-29T01:42:50Z")
    >>> third = audit("1b03b9a5a", "2026-11-29T01:46:00Z", "Beta")
    >>> print(*audit_labels([first, second, third]).values(), sep="\\n")
    March (29 November 2026, 01:42 UTC, 6ea98b95)
    March (29 November 2026, 01:42 UTC, 4465fc25)
    March with Beta (29 November 2026, 01:46 UTC)
    """
    return {key: f"{title} ({drafted})" for key, title, drafted in _named(audits)}


def audit_choices(audits: Iterable[Audit]) -> dict[str, str]:
    """As `audit_labels`, for a list to choose from: when it was drafted comes first.

    A closed list shows the beginning of the chosen label, and titles may be long.

    Examples
    --------
    >>> from kdcal_core.audit.events import AuditDrafted, Moment
    >>> event = AuditDrafted("6e", "March", "", "pass", "Nothing fails.", "", "", 900, {})
    >>> moment = Moment("2026-11-29T01:42:10Z", "a clock")
    >>> audit_choices([Audit(Happened(2, moment, Person("Ann"), event))])
    {'6e': '29 November 2026, 01:42 UTC · March'}
    """
    return {key: f"{drafted} · {title}" for key, title, drafted in _named(audits)}


def _named(audits: Iterable[Audit]) -> list[tuple[str, str, str]]:
    """The id of each audit, its title, and when it was drafted, which together are its own."""
    found = [(one.id, audit_title(one), moment_text(one.drafted.when.at)) for one in audits]
    alike = Counter((title, drafted) for _, title, drafted in found)
    return [
        (key, title, drafted)
        if alike[title, drafted] == 1
        else (key, title, f"{drafted}, {printable(key[:_DIGITS])}")
        for key, title, drafted in found
    ]


def person_text(who: Person) -> str:
    """A person, and whether anybody checked that it was them.

    Examples
    --------
    >>> person_text(Person("Ann"))
    'Ann (not signed in)'
    """
    if who.issuer == KEY:
        return f"{who.name} (by its key)"
    return who.name if who.identity is not None else f"{who.name} (not signed in)"


def limits_text(audit: Audit, project: Project | None) -> str:
    """Whether limits were locked, and whether results were known before.

    Parameters
    ----------
    project : Project or None
        With it, the text says who locked them and when.
    """
    facts = audit.facts
    locks = project.locks if project is not None else ()
    lock = next((one for one in locks if one.number == facts.locked), None)
    first = "The limits were not locked beforehand."
    if facts.locked is not None:
        by = f" by {person_text(lock.who)}, {moment_text(lock.when.at)}" if lock else ""
        first = f"The limits were locked in entry {facts.locked} of the record{by}."
    if facts.results_known:
        chosen = "chosen" if facts.locked is None else "locked"
        known = with_moments(facts.results_known)
        return (
            f"{first} Results of this model on these rows were known when they were {chosen}: "
            f"{known}."
        )
    more = f", and {with_moments(facts.first_results)}" if facts.first_results else ""
    return f"{first} The record holds no earlier result of this model on these rows{more}."


def approval_text(audit: Audit) -> str:
    """That one person drafted, submitted and approved the audit; empty where it is not so."""
    steps = [audit.last(one) for one in (AuditDrafted, AuditSubmitted, AuditApproved)]
    people = {one.who if one is not None else None for one in steps}
    if None in people or len(people) > 1:
        return ""
    return "The same person drafted, submitted and approved it; nobody else checked it."


def said_of(happened: Happened, project: Project | None, audit: Audit | None) -> tuple[str, str]:
    """What happened in a word or two, and its details, which may be empty.

    Parameters
    ----------
    project, audit
        In which it happened; they name other audits and findings.
    """
    event = happened.event
    return _SAID[type(event).__name__](event, project, audit)


def event_text(happened: Happened, project: Project | None, audit: Audit | None) -> str:
    """What happened, in a line without a full stop."""
    what, words = said_of(happened, project, audit)
    return f"{what}: {words}" if words.strip() else what


def _finding_changed(event: Any, _: Project | None, audit: Audit | None) -> tuple[str, str]:
    known = audit.findings.get(event.finding) if audit is not None else None
    named = known.title if known is not None else event.finding
    parts = [FINDING_WORDS[event.state].lower(), f"severity {event.severity}"]
    parts += [f"owner {event.owner}"] if event.owner else []
    parts += [f"due {date_text(event.due)}"] if event.due else []
    said = f": {event.words}" if event.words.strip() else ""
    return "Finding changed", f"{named!r} ({', '.join(parts)}){said}"


def _finding_opened(event: Any, *_: Any) -> tuple[str, str]:
    due = f", due {date_text(event.due)}" if event.due else ""
    owner = f", owner {event.owner}" if event.owner else ""
    return "Finding opened", f"{event.title!r} (severity {event.severity}{owner}{due})"


def _titled(audit: str, project: Project | None) -> str:
    labels = audit_labels(project.audits.values()) if project is not None else {}
    return labels.get(audit, audit)


def _member_set(event: Any, *_: Any) -> tuple[str, str]:
    if event.role is None:
        return "Member removed", event.name
    return "Role given", f"{event.role}, to {event.name}"


Said = Callable[[Any, Project | None, Audit | None], tuple[str, str]]

_SAID: dict[str, Said] = {
    "ProjectCreated": lambda event, *_: ("Project created", repr(event.name)),
    "KeyAdded": lambda event, *_: (
        "Key of a member admitted" if event.own_only else "Key admitted",
        short(str(event.key["keyid"])),
    ),
    "MemberSet": _member_set,
    "LimitsLocked": lambda event, *_: (
        "Limits locked",
        ": ".join(filter(None, (f"of {counted(len(event.limits), 'check')}", event.note))),
    ),
    "AuditDrafted": lambda event, *_: (
        "Drafted",
        f"{event.title!r}, verdict {event.verdict}, content {short(event.content)}",
    ),
    "AuditSubmitted": lambda event, *_: ("Submitted", ""),
    "AuditApproved": lambda event, *_: ("Approved", event.words),
    "AuditRejected": lambda event, *_: ("Rejected", event.words),
    "AuditSuperseded": lambda event, project, _: (
        "Superseded",
        f"by the audit {_titled(event.by, project)}",
    ),
    "FindingOpened": _finding_opened,
    "FindingChanged": _finding_changed,
    "Commented": lambda event, *_: ("Comment", event.words),
    "RetentionSet": lambda event, *_: (
        "Files are kept",
        "for ever" if event.days is None else f"for {counted(event.days, 'day')}",
    ),
    "FilesDeleted": lambda event, project, _: (
        "Files deleted",
        f"of {listed([_titled(one, project) for one in event.audits])}: {event.words}",
    ),
}
