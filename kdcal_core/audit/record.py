"""The record: projects, their audits, and everything that happened to them, signed line by line."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from kdcal_core.audit.beginning import Begun, known_before
from kdcal_core.audit.bounds import require_name, require_visible_names
from kdcal_core.audit.content import AuditContent, content_bytes, failures
from kdcal_core.audit.database import as_input, folder_gone
from kdcal_core.audit.events import (
    KEY,
    AuditDrafted,
    Entry,
    FilesDeleted,
    Happened,
    KeyAdded,
    LimitsLocked,
    MemberSet,
    Moment,
    Person,
    ProjectCreated,
    Role,
)
from kdcal_core.audit.notices import is_told, notice_of
from kdcal_core.audit.notify import configured_channels, messages_of
from kdcal_core.audit.outbox import row_of
from kdcal_core.audit.pins import Pin
from kdcal_core.audit.project import (
    Audit,
    Project,
    after,
    expired,
    name_taken,
    require_key_role,
    require_reason,
    require_role,
    require_signer,
)
from kdcal_core.audit.receipts import made_receipt
from kdcal_core.audit.record_lines import followed, read_entry
from kdcal_core.audit.record_reading import RecordReader, id_of
from kdcal_core.audit.signing import (
    ENTRY,
    KEY_FILE,
    OWN_KEY,
    Signer,
    canonical,
    check_key,
    digest,
    signer_of,
)
from kdcal_core.audit.this_machine import now, system_user
from kdcal_core.errors import InputError
from kdcal_core.review import KnownResults, Limit
from kdcal_core.store import encode
from kdcal_core.store.disk import locked, make_folder


def new_id() -> str:
    """An identifier that cannot be guessed."""
    return secrets.token_hex(8)


class Record(RecordReader):
    """All projects of a database, with their files.

    Parameters
    ----------
    root : Path, optional
        Folder of files, our key and SQLite's database; by default `root_of_audits`.
    url : str, optional
        As of `Database`.
    clock : callable, optional
        Returns the time.

    Raises
    ------
    InputError
        If the database or the key cannot be used.
    """

    def __init__(
        self,
        root: Path | None = None,
        url: str | None = None,
        clock: Callable[[], Moment] = now,
    ) -> None:
        super().__init__(root, url)
        self._clock = clock
        self._had_key = (self.root / OWN_KEY).exists()

    def create(self, name: str, who: Person) -> Project:
        """A new project.

        Raises
        ------
        InputError
            If its name is empty, too long or taken.
        """
        if self.named(name) is not None:
            raise name_taken(name)
        project_id = id_of(name)
        self.write(project_id, ProjectCreated(name, self._signer().public), who)
        return self.project(project_id)

    def write(
        self, project_id: str, event: Any, who: Person, *, checks: Sequence[str] | None = None
    ) -> int:
        """Add an event to a project's record; its number.

        What is returned is kept: the line is written in one transaction, after the rules allowed
        it on the record as it is inside that transaction. Messages about it, where notifications
        are configured, are stored in the same transaction; `kdcal_core.audit.notify` sends them.

        Parameters
        ----------
        checks : sequence of str, optional
            For these messages, a line for each check that fails or lacks evidence; by default
            those of the audit's content.

        Raises
        ------
        InputError
            If the event is not allowed, or the database cannot be written.
        """
        signer = self._signer()
        tells = bool(configured_channels()) and is_told(event)
        if tells and checks is None:
            checks = self._failures(project_id, event.audit)
        with self.database.writing(project_id) as writing:
            with self._lock:
                known = self._known.get(project_id)
            project = followed(project_id, known, writing.lines)
            if project is not None and signer.public["keyid"] not in project.keys:
                raise _not_admitted(project)
            if project is not None:
                require_signer(project, who, signer.public["keyid"])
            project = self._append(writing, project, event, who, signer, project_id)
            if tells:
                when = project.audits[event.audit].history[-1].when.at
                notice = notice_of(project, event, when, checks or ())
                writing.post([row_of(one) for one in messages_of(project.id, notice)])
        with self._lock:
            self._known[project_id] = project
        self.keep_pin(project)
        return project.number

    def _append(
        self,
        writing: Any,
        project: Project | None,
        event: Any,
        who: Person,
        signer: Any,
        project_id: str = "",
    ) -> Project:
        number = 1 if project is None else project.number + 1
        when = self._clock()
        happened = Happened(number, when, who, event)
        changed = after(project, happened, project_id)
        require_reason(changed, event)
        require_visible_names(happened)
        entry = Entry(
            project=changed.id,
            number=number,
            previous=project.head if project is not None else None,
            when=when,
            who=who,
            what=type(event).__name__,
            body=encode(event),
        )
        try:
            payload = canonical(encode(entry))
        except ValueError as error:
            raise InputError(
                "A text holds characters that no file can keep", fix="Write it without them."
            ) from error
        writing.append(number, signer.sign(payload, ENTRY))
        return replace(changed, number=number, head=digest(payload))

    def _failures(self, project_id: str, audit: str) -> list[str]:
        """A line for each check of an audit that does not pass; none where its files are gone."""
        try:
            return failures(self.content(self.project(project_id).audits[audit]))
        except (InputError, KeyError, OSError):
            return []  # messages are no reason to refuse an event

    def _signer(self) -> Signer:
        """The signer of this machine; no new key is made in place of one that is gone."""
        self.database.require_there()
        if self._had_key and not os.environ.get(KEY_FILE) and not (self.root / OWN_KEY).exists():
            raise folder_gone(str(self.root))
        found = signer_of(self.root)
        self._had_key = (self.root / OWN_KEY).exists()
        return found

    def rows_key(self) -> str:
        """The secret with which audits of this machine hash rows, in hexadecimal digits.

        It follows from the key that signs, so that it is kept nowhere else; another key, of another
        machine or a later one, gives another secret.

        Raises
        ------
        InputError
            If the key cannot be used.
        """
        return self._signer().secret("hashes of rows").hex()

    def keep_pin(self, project: Project) -> None:
        """Keep that this machine knows a project's record up to here.

        A pin that the record contradicts stays, so that `verify` goes on to say so.
        """
        began, known = next(iter(project.keys)), self.pins.of(project.id)
        if known is not None:
            lines = self.database.read(project.id, known.number - 1)
            heads = {number: digest(signed.payload) for number, signed in lines}
            if known.contradiction(began, heads):
                return
        self.pins.put(project.id, Pin(began, project.number, project.head))

    def lock(
        self, project_id: str, limits: Mapping[str, Limit], who: Person, *, note: str = ""
    ) -> int:
        """Fix limits for the audits that follow; the number of the entry.

        It keeps of which results this machine knows, so that no clock says which came later.
        """
        results = None
        with suppress(OSError):
            results = KnownResults().note().place
        return self.write(project_id, LimitsLocked(dict(limits), note, results), who)

    def draft(
        self,
        project_id: str,
        content: AuditContent,
        who: Person,
        *,
        begun: Begun | None = None,
        audit: str = "",
    ) -> Audit:
        """Keep an audit's content and begin its history.

        Parameters
        ----------
        begun : Begun, optional
            What was known when its computation began; by default what the record says now.
        audit : str, optional
            Its identifier. An audit that is there under it already was drafted before, and is
            returned as it is.
        """
        with self.files_alone():
            return self._draft(project_id, content, who, begun, audit)

    def _draft(
        self,
        project_id: str,
        content: AuditContent,
        who: Person,
        begun: Begun | None,
        audit: str,
    ) -> Audit:
        project = self.project(project_id)
        if audit and audit in project.audits:
            return project.audits[audit]
        if begun is None:
            lock = project.lock_of(content.limits)
            begun = Begun(None if lock is None else lock.number)
        results_known = begun.results_known or known_before(self, project, begun, content)
        event = AuditDrafted(
            audit=audit or new_id(),
            title=content.title,
            content=self.files.put(content_bytes(content)),
            verdict=content.checked.verdict,
            headline=content.headline,
            model=content.model_digest,
            rows=content.rows_digest,
            n=content.checked.n,
            limits=content.limits,
            locked=begun.locked,
            results_known=results_known,
            question=content.question_digest,
            first_results="" if results_known else begun.first_results,
            calibrator=content.judged_calibrator,
        )
        self.write(project_id, event, who, checks=failures(content))
        return self.project(project_id).audits[event.audit]

    def require_draft(self, project: Project, who: Person) -> None:
        """Refuse at once what `draft` would refuse to this person or this machine.

        Raises
        ------
        InputError
            If the person has no role for it, this machine's key may not sign, or the record can
            only be read.
        """
        self.require_writable()
        if not self.may_sign(project):
            raise _not_admitted(project)
        require_role(project, who, AuditDrafted)

    def require_writable(self) -> None:
        """Refuse at once a database or a folder that can only be read.

        Raises
        ------
        InputError
        """
        self.database.require_writable()
        with self.files_alone():
            pass

    @contextmanager
    def files_alone(self) -> Iterator[None]:
        """Keep others of this folder from deleting a file that is about to be named, or adding.

        Raises
        ------
        InputError
            If the folder cannot be written.
        """
        with ExitStack() as held:
            with as_input(str(self.root)):
                make_folder(self.root)
                held.enter_context(locked(self.root / ".files.lock"))
            yield

    def delete_files(
        self, project_id: str, audits: tuple[str, ...], words: str, who: Person
    ) -> None:
        """Delete the content of audits; their lines stay, and one more says what was deleted."""
        project = self.project(project_id)
        gone = {one: project.audits[one].facts.content for one in audits if one in project.audits}
        with self.files_alone():
            self.write(project_id, FilesDeleted(audits, tuple(gone.values()), words), who)
            self._sweep()

    def expired(self, project_id: str) -> tuple[Audit, ...]:
        """The audits whose files the project's retention does not keep."""
        return expired(self.project(project_id), self._clock().at)

    def delete_expired(self, project_id: str, who: Person) -> tuple[Audit, ...]:
        """Delete the files that the project's retention does not keep; those audits."""
        found = self.expired(project_id)
        if found:
            words = "kept for as long as the project's retention says"
            self.delete_files(project_id, tuple(one.id for one in found), words, who)
        return found

    def _sweep(self) -> None:
        """Delete files that the record says are deleted, also those of an earlier, cut off time.

        Parts of files whose writing was cut off go too.

        None is deleted while a project cannot be read: it may need them.
        """
        self.files.delete_parts()
        if self.unreadable():
            return
        every = [one for project in self.readable() for one in project.audits.values()]
        used = {one.facts.content for one in every if one.has_files}
        for one in every:
            if one.facts.content not in used:
                self.files.delete(one.facts.content)

    def admit(self, project_id: str, key: dict[str, Any], who: Person) -> int:
        """Let another machine's key sign in a project; the number of the entry.

        Raises
        ------
        InputError
            If it is no public key, or this machine's own may not sign.
        """
        return self.write(project_id, KeyAdded(key), who)

    def add_key(self, project_id: str, key: Any, name: str, role: Role, who: Person) -> int:
        """Make a key a member of a project, such as that of a gate; the number of the entry.

        Whoever has the key then acts as this member. It signs nothing in the name of others, unless
        it could before.

        Raises
        ------
        InputError
            If it is no public key, the project has no members, or a key cannot have the role.
        """
        member = MemberSet(KEY, check_key(key), name.strip(), role)
        project = self.project(project_id)
        if not project.members:
            raise InputError(
                "A key can be a member of a project that has members, and this one has none",
                fix="Admit it without a role, or add an administrator on the page Audits first.",
            )
        require_name(name, "A member")
        require_key_role(role)
        if member.subject not in project.keys:
            self.write(project_id, KeyAdded(key, own_only=True), who)
        return self.write(project_id, member, who)

    def may_sign(self, project: Project) -> bool:
        """Whether this machine's key may sign in a project."""
        return self._signer().public["keyid"] in project.keys

    def acting(self, project: Project | None) -> Person:
        """Who acts where nobody signs in: this machine's key, where it is a member of the project.

        Elsewhere it is the user of the operating system, whom nobody checked.
        """
        user = system_user()
        key = None if project is None else self._signer().public["keyid"]
        if project is None or (KEY, key) not in project.members:
            return user
        member = project.members[KEY, str(key)]
        believed = f"has the key that signs this entry; {user.name}, {user.believed}"
        return Person(member.name, KEY, key, believed)

    def receipt(
        self, project_id: str, audit: str | None = None, *, as_of_audit: bool = False
    ) -> dict[str, Any]:
        """A signed statement of how far the record goes, to be kept elsewhere.

        With it, `verify` finds a record that was shortened or replaced by another. The same record
        gives the same bytes.

        Parameters
        ----------
        audit : str, optional
            The audit that it is for.
        as_of_audit : bool
            Whether it goes as far as the audit's own last entry, so that what happens to the rest
            of the project does not change it.
        """
        project = self.project(project_id)
        if not self.may_sign(project):
            raise _not_admitted(project)
        if audit is not None and as_of_audit:
            project = self.as_of(project, project.audits[audit])
        when = read_entry(self.line(project.id, project.number).payload).when
        return made_receipt(project, when, audit, self._signer())


def _not_admitted(project: Project) -> InputError:
    return InputError(
        f"The key of this machine may not sign in the project {project.name[:80]!r}",
        fix="Write it to a file with 'kdcal audit key', and admit it with 'kdcal audit admit' on a "
        "machine whose key may, or name that machine's key in KDCAL_SIGNING_KEY.",
    )
