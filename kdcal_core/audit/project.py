"""What a project and its audits are after all that happened.

A project is the sum of its events: `after` adds one to what was known, and refuses what the rules
do not allow. The same function decides what may be written and checks what is stored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

from kdcal_core.audit.bounds import require_bounded, require_given
from kdcal_core.audit.events import (
    KEY,
    ROLES,
    AuditApproved,
    AuditDrafted,
    AuditRejected,
    AuditSubmitted,
    AuditSuperseded,
    Commented,
    FilesDeleted,
    FindingChanged,
    FindingOpened,
    FindingState,
    Happened,
    KeyAdded,
    LimitsLocked,
    MemberSet,
    Person,
    ProjectCreated,
    RetentionSet,
    Role,
    Severity,
    State,
)
from kdcal_core.audit.signing import check_key
from kdcal_core.checks import VERDICTS
from kdcal_core.errors import InputError
from kdcal_core.review import Limit

_MOST_LIMITS = 1_000
_MOST_ROWS = 1 << 53  # beyond, no file of JSON keeps every whole number
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Finding:
    """A finding as it stands now."""

    id: str
    title: str
    severity: Severity
    owner: str
    due: str
    state: FindingState
    history: tuple[Happened, ...]

    def overdue(self, today: date) -> bool:
        """Whether it is open after its date."""
        return self.state == "open" and bool(self.due) and date.fromisoformat(self.due) < today


@dataclass(frozen=True)
class Audit:
    """An audit as it stands now: its first event, its state, and everything since.

    Attributes
    ----------
    drafted : Happened
        With an `AuditDrafted`.
    state : str
        Of `STATES`.
    history : tuple of Happened
        All events of this audit, in order.
    findings : dict of id to Finding
    superseded_by : str or None
    has_files : bool
        Whether its content has not been deleted.
    """

    drafted: Happened
    state: State = "draft"
    history: tuple[Happened, ...] = ()
    findings: dict[str, Finding] = field(default_factory=dict)
    superseded_by: str | None = None
    has_files: bool = True

    @property
    def facts(self) -> AuditDrafted:
        """What it found, in short."""
        facts: AuditDrafted = self.drafted.event
        return facts

    @property
    def id(self) -> str:
        """Its identifier."""
        return self.facts.audit

    def last(self, kind: type[Any]) -> Happened | None:
        """Its last event of a kind."""
        return next((one for one in reversed(self.history) if isinstance(one.event, kind)), None)


@dataclass(frozen=True)
class Project:
    """A project as it stands after its last entry.

    Attributes
    ----------
    id, name : str
        The name is untrusted text.
    number : int
        Of its last entry.
    head : str
        SHA-256 of its last entry.
    keys : dict of keyid to public key
    own_only : frozenset of keyid
        Those that sign only what they do themselves, as members.
    members : dict of (issuer, subject) to MemberSet
    locks : tuple of Happened
        With `LimitsLocked`.
    audits : dict of id to Audit
        In the order in which they were drafted.
    retention : int or None
        Days.
    history : tuple of Happened
        Events of the project itself, and of no audit.
    """

    id: str
    name: str
    number: int = 0
    head: str = ""
    keys: dict[str, dict[str, Any]] = field(default_factory=dict)
    own_only: frozenset[str] = frozenset()
    members: dict[tuple[str, str], MemberSet] = field(default_factory=dict)
    locks: tuple[Happened, ...] = ()
    audits: dict[str, Audit] = field(default_factory=dict)
    retention: int | None = None
    history: tuple[Happened, ...] = ()

    def role_of(self, who: Person) -> Role | None:
        """The role of a person who signed in; None for anybody else."""
        if who.identity is None or who.identity not in self.members:
            return None
        return self.members[who.identity].role

    def may(self, who: Person, least: Role) -> bool:
        """Whether a person has at least this role.

        A project without members is of a machine where nobody signs in. There it has no roles, and
        who signed in sees nothing of it.
        """
        if not self.members:
            return who.identity is None
        role = self.role_of(who)
        return role is not None and ROLES.index(role) >= ROLES.index(least)

    def lock_of(self, limits: Mapping[str, Limit]) -> Happened | None:
        """The first entry that locked these very limits."""
        return next((one for one in self.locks if one.event.limits == dict(limits)), None)


def after(project: Project | None, happened: Happened, project_id: str = "") -> Project:
    """The project after a further event.

    Parameters
    ----------
    project : Project or None
        None before the first event, which creates it.
    happened : Happened
    project_id : str
        Of a project that this event creates.

    Raises
    ------
    InputError
        If the event is not allowed now, or to this person.
    """
    require_bounded(happened)
    event = happened.event
    if project is None:
        if not isinstance(event, ProjectCreated):
            raise InputError("A project begins with its name and key", fix="Create it first.")
        require_given(event.name, "A project")
        if happened.who.issuer == KEY:
            raise InputError("A key creates no project", fix="Create it after signing in.")
        made = Project(project_id, event.name, keys=_keys(event.key))
        first = _first_member(happened)
        return replace(made, members=first, history=(happened,))
    if isinstance(event, ProjectCreated):
        raise name_taken(project.name)
    require_role(project, happened.who, type(event))
    changed = _CHANGES[type(event)](project, happened)
    for one in event.audits if isinstance(event, FilesDeleted) else ():
        audit = changed.audits[one]
        changed = _with(changed, replace(audit, history=(*audit.history, happened)))
    if hasattr(event, "audit"):
        audit = changed.audits[event.audit]
        kept = replace(audit, history=(*audit.history, happened))
        return replace(changed, audits={**changed.audits, event.audit: kept})
    return replace(changed, history=(*changed.history, happened))


def _keys(key: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {check_key(key): key}


def _first_member(happened: Happened) -> dict[tuple[str, str], MemberSet]:
    """Who creates a project after signing in manages it."""
    identity, who = happened.who.identity, happened.who
    if identity is None:
        return {}
    return {identity: MemberSet(*identity, who.name, "administrator")}


_LEAST: dict[type[Any], Role] = {
    AuditApproved: "approver",
    AuditRejected: "approver",
    AuditSuperseded: "approver",
    MemberSet: "administrator",
    KeyAdded: "administrator",
    RetentionSet: "administrator",
    FilesDeleted: "administrator",
}
_BY_PEOPLE = (AuditSubmitted, AuditApproved, AuditRejected, AuditSuperseded)
"""What no key does: with it one person could be two."""


def require_role(project: Project, who: Person, event: type[Any]) -> None:
    """Refuse an event of this kind to a person who lacks the role for it.

    Raises
    ------
    InputError
    """
    if who.issuer == KEY and event in _BY_PEOPLE:
        raise InputError(
            "A key records audits, and people decide about them",
            fix="Open the audit in the app, after signing in.",
        )
    least = _LEAST.get(event, "reviewer")
    if not project.may(who, least):
        raise InputError(
            f"This needs the role of {'an' if least[0] in 'aeiou' else 'a'} {least} in the project",
            fix="Ask an administrator of the project for it.",
        )


def require_reason(project: Project, event: Any) -> None:
    """Refuse an approval without a reason where the verdict is not pass.

    Only of what is added now: earlier versions allowed it, and their records stay valid.

    Raises
    ------
    InputError
    """
    if not isinstance(event, AuditApproved) or event.words.strip():
        return
    verdict = project.audits[event.audit].facts.verdict
    if verdict != "pass":
        raise InputError(
            f"An approval needs its reason where the verdict is {verdict!r}", fix="Write why."
        )


def require_signer(project: Project, who: Person, key: str) -> None:
    """Refuse a key that the project knows, if it may not sign what this person does.

    Raises
    ------
    InputError
        If the person is another key, or the key may sign only what it does itself.
    """
    if who.identity == (KEY, key):
        return
    if who.issuer == KEY:
        raise InputError(
            f"It is said to be by the key {str(who.subject)[:12]!r}, and another key signs it",
            fix="Sign it with the key that it is by.",
        )
    if key in project.own_only:
        raise InputError(
            f"The key {key[:12]} may sign what it does itself, and nothing in the name of others",
            fix="Make the key a member of the project, or admit it for all that its machine does.",
        )


def name_taken(name: str) -> InputError:
    """The error of a project that would have the name of another."""
    return InputError(f"There is a project named {name[:80]!r} already", fix="Choose another name.")


def _audit(project: Project, audit: str) -> Audit:
    found = project.audits.get(audit)
    if found is None:
        raise InputError("There is no such audit in the project", fix="Choose one of its audits.")
    return found


def _with(project: Project, audit: Audit) -> Project:
    return replace(project, audits={**project.audits, audit.id: audit})


def _in_state(audit: Audit, wanted: State, what: str) -> None:
    if audit.state != wanted:
        raise InputError(
            f"Only an audit that is {wanted} can be {what}, and this one is {audit.state}",
            fix="Draft a new audit of the same review, if it should be judged again."
            if audit.state in ("rejected", "superseded")
            else "Look at its history.",
        )


def _key_added(project: Project, happened: Happened) -> Project:
    added = _keys(happened.event.key)
    own_only = project.own_only.difference(added)
    if happened.event.own_only:
        own_only = project.own_only.union(set(added).difference(project.keys))
    return replace(project, keys={**project.keys, **added}, own_only=own_only)


def _member_set(project: Project, happened: Happened) -> Project:
    event: MemberSet = happened.event
    members = dict(project.members)
    if event.issuer == KEY:
        _require_key_member(project, event)
    elif not members and event.role != "administrator":
        raise InputError(
            "The first member of a project must be an administrator",
            fix="Add an administrator first.",
        )
    if event.role is None:
        members.pop((event.issuer, event.subject), None)
    else:
        members[event.issuer, event.subject] = event
    if not any(one.role == "administrator" and one.issuer != KEY for one in members.values()):
        raise InputError(
            "The project would be left without an administrator",
            fix="Make somebody else an administrator first.",
        )
    return replace(project, members=members)


def _require_key_member(project: Project, event: MemberSet) -> None:
    if event.subject not in project.keys:
        raise InputError("The project does not know this key", fix="Admit it first.")
    require_key_role(event.role)


def require_key_role(role: Role | None) -> None:
    """Refuse a role that no key can have."""
    if role == "approver":
        raise InputError(
            "A key cannot be an approver: people approve",
            fix="Make it a reviewer or an administrator.",
        )


def _limits_locked(project: Project, happened: Happened) -> Project:
    if not happened.event.limits:
        raise InputError("There are no limits to lock", fix="Give at least one.")
    _require_few(happened.event.limits)
    return replace(project, locks=(*project.locks, happened))


def _require_few(limits: Mapping[str, Limit]) -> None:
    if len(limits) > _MOST_LIMITS:
        raise InputError(
            f"There are {len(limits):,} limits, and at most {_MOST_LIMITS:,} are kept",
            fix="Give those of the checks that are made.",
        )


def _drafted(project: Project, happened: Happened) -> Project:
    event: AuditDrafted = happened.event
    if event.audit in project.audits:
        raise InputError("The project has this audit already", fix="Draft it under a new id.")
    require_given(event.title, "An audit")
    _require_few(event.limits)
    if (
        event.verdict not in VERDICTS
        or not 0 <= event.n <= _MOST_ROWS
        or _DIGEST.fullmatch(event.content) is None
    ):
        raise InputError(
            "The audit has no such verdict, number of rows or file as audits have",
            fix="Draft it of what kdcal computed.",
        )
    locked = {one.number: one for one in project.locks}
    if event.locked is not None and (
        event.locked not in locked or locked[event.locked].event.limits != event.limits
    ):
        raise InputError(
            f"Entry {event.locked} did not lock the limits of this audit",
            fix="Lock them first, or draft the audit without a lock.",
        )
    return _with(project, Audit(happened))


def _submitted(project: Project, happened: Happened) -> Project:
    audit = _audit(project, happened.event.audit)
    _in_state(audit, "draft", "submitted")
    return _with(project, replace(audit, state="submitted"))


def _approved(project: Project, happened: Happened) -> Project:
    audit = _audit(project, happened.event.audit)
    _in_state(audit, "submitted", "approved")
    identity = happened.who.identity
    for step in (AuditDrafted, AuditSubmitted):
        did = audit.last(step)
        if did is None or (identity is None and did.who.identity is None):
            continue  # nobody signed in: the record says whom it believes
        if identity is None or did.who.identity is None:
            raise InputError(
                "An audit needs the approval of a second person, and it is not known who "
                f"{'drafted it' if step is AuditDrafted else 'submitted it'} or who you are",
                fix="Draft, submit and approve it after signing in.",
            )
        if did.who.identity == identity:
            raise InputError(
                "An audit needs the approval of a second person, and you "
                f"{'drafted' if step is AuditDrafted else 'submitted'} this one",
                fix="Ask another approver of the project.",
            )
    return _with(project, replace(audit, state="approved"))


def _rejected(project: Project, happened: Happened) -> Project:
    audit = _audit(project, happened.event.audit)
    _in_state(audit, "submitted", "rejected")
    if not happened.event.words.strip():
        raise InputError("A rejection needs its reason", fix="Write why.")
    return _with(project, replace(audit, state="rejected"))


def _superseded(project: Project, happened: Happened) -> Project:
    audit, by = _audit(project, happened.event.audit), _audit(project, happened.event.by)
    _in_state(audit, "approved", "superseded")
    if by.id == audit.id or by.state != "approved":
        raise InputError(
            "Only another approved audit can take the place of an audit",
            fix="Have the new audit approved first.",
        )
    return _with(project, replace(audit, state="superseded", superseded_by=by.id))


def _finding_opened(project: Project, happened: Happened) -> Project:
    event: FindingOpened = happened.event
    audit = _audit(project, event.audit)
    if event.finding in audit.findings:
        raise InputError("The audit has this finding already", fix="Give it a new id.")
    require_given(event.title, "A finding")
    _require_known(event)
    made = Finding(
        *(event.finding, event.title, event.severity, event.owner, event.due, "open", (happened,))
    )
    return _with(project, replace(audit, findings={**audit.findings, event.finding: made}))


def _finding_changed(project: Project, happened: Happened) -> Project:
    event: FindingChanged = happened.event
    audit = _audit(project, event.audit)
    before = audit.findings.get(event.finding)
    if before is None:
        raise InputError("The audit has no such finding", fix="Choose one of its findings.")
    _require_known(event)
    if event.state != "open" and not event.words.strip():
        raise InputError(
            f"A finding is {event.state} for a reason", fix="Write what was done, or who decided."
        )
    changed = replace(
        before,
        severity=event.severity,
        owner=event.owner,
        due=event.due,
        state=event.state,
        history=(*before.history, happened),
    )
    return _with(project, replace(audit, findings={**audit.findings, event.finding: changed}))


def _require_known(event: FindingOpened | FindingChanged) -> None:
    if event.due:
        try:
            date.fromisoformat(event.due)
        except ValueError as error:
            raise InputError(
                f"{event.due[:40]!r} is no date", fix="Write it as 2026-12-31, or leave it out."
            ) from error


def _commented(project: Project, happened: Happened) -> Project:
    audit = _audit(project, happened.event.audit)
    if not happened.event.words.strip():
        raise InputError("The comment is empty", fix="Write something.")
    return _with(project, audit)


def _retention_set(project: Project, happened: Happened) -> Project:
    days = happened.event.days
    if days is not None and not 1 <= days <= 100 * 366:
        raise InputError(f"Files cannot be kept for {days:,} days", fix="Give 1 to 36,600 days.")
    return replace(project, retention=days)


def _files_deleted(project: Project, happened: Happened) -> Project:
    audits = dict(project.audits)
    event: FilesDeleted = happened.event
    if len(set(event.audits)) != len(event.audits) or len(event.files) > len(event.audits):
        raise InputError(
            "An audit is named twice, or there are more files than audits", fix="Name each once."
        )
    for one in event.audits:
        audits[one] = replace(_audit(project, one), has_files=False)
    return replace(project, audits=audits)


_CHANGES: dict[type[Any], Callable[[Project, Happened], Project]] = {
    KeyAdded: _key_added,
    MemberSet: _member_set,
    LimitsLocked: _limits_locked,
    AuditDrafted: _drafted,
    AuditSubmitted: _submitted,
    AuditApproved: _approved,
    AuditRejected: _rejected,
    AuditSuperseded: _superseded,
    FindingOpened: _finding_opened,
    FindingChanged: _finding_changed,
    Commented: _commented,
    RetentionSet: _retention_set,
    FilesDeleted: _files_deleted,
}


def expired(project: Project, now: str) -> tuple[Audit, ...]:
    """The audits whose files the project need not keep any more.

    Parameters
    ----------
    now : str
        As of `Moment`.
    """
    if project.retention is None:
        return ()
    return tuple(
        one
        for one in project.audits.values()
        if one.has_files and _days_between(one.drafted.when.at, now) > project.retention
    )


def _days_between(before: str, now: str) -> float:
    seconds = (datetime.fromisoformat(now) - datetime.fromisoformat(before)).total_seconds()
    return seconds / 86_400.0
