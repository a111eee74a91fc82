"""What can happen to a project of audits: one small class for each kind of event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

from kdcal_core.review import Limit, PlaceInList

State = Literal["draft", "submitted", "approved", "rejected", "superseded"]
Severity = Literal["low", "medium", "high"]
FindingState = Literal["open", "accepted", "resolved"]
Role = Literal["viewer", "reviewer", "approver", "administrator"]

STATES: tuple[State, ...] = get_args(State)
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
FINDING_STATES: tuple[FindingState, ...] = get_args(FindingState)
ROLES: tuple[Role, ...] = get_args(Role)
"""Each may do what those before it may: look; write and submit; approve and reject; manage."""
KEY = "key"
"""Stands in place of a provider's address for a member that is a key, and not a person."""


@dataclass(frozen=True)
class Moment:
    """A time, and the clock that gave it.

    Attributes
    ----------
    at : str
        UTC, as "2026-11-25T16:20:00.123456Z".
    clock : str
        Which clock gave it, in words.
    """

    at: str
    clock: str


@dataclass(frozen=True)
class Person:
    """Who did something, and who says so.

    Attributes
    ----------
    name : str
        Untrusted text.
    issuer, subject : str or None
        The provider that identified the person and its identifier for them; None without sign-in.
        For a key that is a member they are `KEY` and the digest of the key.
    believed : str
        Why the name is believed, in words.
    """

    name: str
    issuer: str | None = None
    subject: str | None = None
    believed: str = "stated by the caller and not checked"

    @property
    def identity(self) -> tuple[str, str] | None:
        """What identifies the person; None where nobody checked."""
        if self.issuer is None or self.subject is None:
            return None
        return self.issuer, self.subject


Event = TypeVar("Event", bound=type)

EVENTS: dict[str, type[Any]] = {}
"""Every kind of event by its name in the record."""


def _event(cls: Event) -> Event:
    EVENTS[cls.__name__] = cls
    return cls


@_event
@dataclass(frozen=True)
class ProjectCreated:
    """A project begins. Its name is untrusted text."""

    name: str
    key: dict[str, Any]


@_event
@dataclass(frozen=True)
class KeyAdded:
    """Another machine may sign from here on; a machine that already could says so.

    Attributes
    ----------
    key : dict
        The public key.
    own_only : bool
        Whether it may sign only what it does itself, as a member, and nothing in the name of a
        person. A key that may sign more goes on to do so.
    """

    key: dict[str, Any]
    own_only: bool = False


@_event
@dataclass(frozen=True)
class MemberSet:
    """A person has a role in the project, or none any more; or a key, whose issuer is `KEY`."""

    issuer: str
    subject: str
    name: str
    role: Role | None


@_event
@dataclass(frozen=True)
class LimitsLocked:
    """Limits are fixed for the audits that follow.

    Attributes
    ----------
    limits : dict of code to Limit
    note : str
        Untrusted text.
    results : PlaceInList or None
        Of which results the machine knew. Those with a higher number in this list came later.
    """

    limits: dict[str, Limit]
    note: str = ""
    results: PlaceInList | None = None


@_event
@dataclass(frozen=True)
class AuditDrafted:
    """An audit has been computed.

    Attributes
    ----------
    audit : str
        Its identifier.
    title : str
        Untrusted text.
    content : str
        SHA-256 of the file of its content.
    verdict : str
    headline : str
        The verdict in a sentence. Untrusted text.
    model, rows : str
        Digests of what was judged: the model (or its predictions), and the judged rows.
    n : int
        Judged rows.
    limits : dict of code to Limit
        All that its checks were held against.
    locked : int or None
        Number of the entry that locked these limits.
    results_known : str
        Since when results of this model on these rows have been known to whoever chose the limits,
        in words; empty where none had been computed before.
    question : str
        Digest of what was asked of the rows: the set, the event and the groups.
    first_results : str
        Where no results were known before, what the machine that computed them says of that.
    calibrator : str
        Title of the calibrator whose output was judged; empty where the model's own was, and in
        entries of earlier versions. Untrusted text.
    """

    audit: str
    title: str
    content: str
    verdict: str
    headline: str
    model: str
    rows: str
    n: int
    limits: dict[str, Limit]
    locked: int | None = None
    results_known: str = ""
    question: str = ""
    first_results: str = ""
    calibrator: str = ""


@_event
@dataclass(frozen=True)
class AuditSubmitted:
    """From here on the audit does not change."""

    audit: str


@_event
@dataclass(frozen=True)
class AuditApproved:
    """A second person agrees, where sign-in is on."""

    audit: str
    words: str = ""


@_event
@dataclass(frozen=True)
class AuditRejected:
    """The audit is refused, with the reason."""

    audit: str
    words: str


@_event
@dataclass(frozen=True)
class AuditSuperseded:
    """Another audit of the project takes the place of an approved one."""

    audit: str
    by: str


@_event
@dataclass(frozen=True)
class FindingOpened:
    """Something that must be dealt with. Texts are untrusted.

    ``due`` is a date as "2026-12-31", or empty.
    """

    audit: str
    finding: str
    title: str
    severity: Severity
    owner: str = ""
    due: str = ""


@_event
@dataclass(frozen=True)
class FindingChanged:
    """A finding has another state, owner, date or severity."""

    audit: str
    finding: str
    state: FindingState
    severity: Severity
    owner: str = ""
    due: str = ""
    words: str = ""


@_event
@dataclass(frozen=True)
class Commented:
    """Words about an audit. Untrusted text."""

    audit: str
    words: str


@_event
@dataclass(frozen=True)
class RetentionSet:
    """For how long the project keeps the files of its audits; None is for ever."""

    days: int | None


@_event
@dataclass(frozen=True)
class FilesDeleted:
    """Files of audits are gone; their digests stay in the record."""

    audits: tuple[str, ...]
    files: tuple[str, ...]
    words: str


@dataclass(frozen=True)
class Entry:
    """One line of a project's record.

    Attributes
    ----------
    project : str
    number : int
        From 1.
    previous : str or None
        SHA-256 of the entry before.
    when : Moment
    who : Person
    what : str
        Of `EVENTS`.
    body : dict
        The event, as `kdcal_core.store.encode` writes it.
    """

    project: str
    number: int
    previous: str | None
    when: Moment
    who: Person
    what: str
    body: dict[str, Any]


@dataclass(frozen=True)
class Happened:
    """An event with who, when and its number."""

    number: int
    when: Moment
    who: Person
    event: Any
