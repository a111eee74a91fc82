"""Check a record against its signatures, its rules, its files, and receipts kept elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kdcal_core.audit.content import AuditContent, read_content
from kdcal_core.audit.events import AuditDrafted, Entry, KeyAdded, ProjectCreated
from kdcal_core.audit.project import Project, after, require_signer
from kdcal_core.audit.receipts import RECEIPT
from kdcal_core.audit.record import Record
from kdcal_core.audit.record_lines import happened_of, read_entry
from kdcal_core.audit.signing import Signed, check_key, digest, key_there, read_statement
from kdcal_core.errors import InputError, NewerVersionError
from kdcal_core.text import counted, listed

_NEWER = "was written by a newer version of kdcal: update kdcal"


@dataclass(frozen=True)
class Verified:
    """What a check of a project's record found.

    Attributes
    ----------
    project : str
        Its id.
    name : str
        Untrusted text; empty where not even that can be read.
    n_entries, n_files, n_receipts : int
        How many of each were checked.
    keys : tuple of str
        Digests of the keys that signed, in the order in which they appear.
    altered : tuple of str
        What was altered, each in a sentence. Empty where everything holds.
    newer : tuple of str
        What a newer version of kdcal wrote, so that this one cannot check it, each in a sentence.
    noticed : tuple of str
        What a reader should know and is no alteration.
    """

    project: str
    name: str
    n_entries: int
    n_files: int
    n_receipts: int
    keys: tuple[str, ...]
    altered: tuple[str, ...]
    noticed: tuple[str, ...]
    newer: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether everything was checked and nothing was altered."""
        return not self.altered and not self.newer


def verify(
    record: Record,
    project: str,
    *,
    receipts: Sequence[Any] = (),
    keys: Sequence[Mapping[str, Any]] = (),
) -> Verified:
    """Check everything that is kept of a project.

    Parameters
    ----------
    receipts : sequence of dict
        Receipts of this record, as `Record.receipt` gave them. From files: untrusted.
    keys : sequence of public keys
        The keys that may have signed; without any, those that the record names.

    Notes
    -----
    Each line must be signed by a key that the record names, follow the line before by digest,
    number and rule, and name files that are there and unchanged. That finds every change within
    the record by somebody without its key. A record that was shortened, that who has the key wrote
    anew, or that was replaced as a whole by one with another key, holds in itself. All three
    contradict what this machine knew when it last wrote to the project or imported it (its pin),
    and a receipt that was made before and is kept elsewhere. Who can write the folder of audits
    can change the pin too; then only a receipt, or the key that the reader expects, shows it.

    A line that a known key signed and this version cannot read is of a newer version. From there
    on, signatures and order are checked, and neither the rules nor the files.
    """
    lines = record.database.read(project, None)
    chain = check_lines(project, lines, keys)
    if lines:
        _check_pin(record, chain)
    files = _check_files(record, chain)
    for at, receipt in enumerate(receipts, 1):
        chain.check_receipt(at, receipt)
    return Verified(
        project=project,
        name=chain.name,
        n_entries=len(lines),
        n_files=files,
        n_receipts=len(receipts),
        keys=tuple(chain.signed_by),
        altered=tuple(chain.altered)
        if lines
        else ("There is no such project, or it was deleted.",),
        noticed=tuple(chain.noticed),
        newer=tuple(chain.newer),
    )


def check_lines(
    project: str,
    lines: Sequence[tuple[int, Signed]],
    keys: Sequence[Mapping[str, Any]] = (),
) -> CheckedLines:
    """Check lines of a record alone: their signatures, their chain and their rules."""
    chain = CheckedLines(project, keys)
    for number, signed in lines:
        chain.add(number, signed)
    return chain


class CheckedLines:
    """The lines of a record, one after the other, and what was found to be altered."""

    def __init__(self, project: str, keys: Sequence[Mapping[str, Any]]) -> None:
        self.project_id = project
        self.pinned = {check_key(one): one for one in keys}
        self.known: dict[str, Mapping[str, Any]] = {}
        self.signed_by: list[str] = []
        self.heads: dict[int, str] = {}
        self.project: Project | None = None
        self.followed = True  # whether the events can still be applied one to the other
        self.altered: list[str] = []
        self.noticed: list[str] = []
        self.newer: list[str] = []
        self._last: Entry | None = None

    def require_readable(self) -> None:
        """Refuse lines of a newer version.

        Raises
        ------
        NewerVersionError
        """
        if self.newer:
            what = self.newer[0].partition(":")[0]
            raise NewerVersionError(what, fix="Update kdcal.")

    @property
    def name(self) -> str:
        return self.project.name if self.project is not None else ""

    def add(self, number: int, signed: Signed) -> None:
        if type(number) is not int or number < 1:
            self.altered.append(f"A line has the number {str(number)[:20]!r}.")
            return
        expected = max(self.heads, default=0) + 1
        before = self.heads.get(number - 1)
        self.heads[number] = digest(signed.payload)
        if number != expected:
            self.altered.append(f"Entries {expected} to {number - 1} are missing.")
        try:
            entry = read_entry(signed.payload)
            happened = happened_of(entry)
        except InputError as error:
            self._unreadable(number, signed, before, error)
            return
        event = happened.event
        if number == 1 and isinstance(event, ProjectCreated):
            self._learn(number, event.key)
        self._check_signature(number, signed)
        if isinstance(event, KeyAdded):  # from here on: a key cannot admit itself
            self._learn(number, event.key, own_only=event.own_only)
        self._check_place(number, before, (entry.project, entry.number, entry.previous))
        self._check_clock(entry)
        self._last = entry
        if not self.followed:
            return
        try:
            if self.project is not None:
                require_signer(self.project, entry.who, signed.key)
            found = after(self.project, happened, self.project_id)
        except InputError as error:
            self.altered.append(f"Entry {number} breaks a rule: {error.what}.")
            self.followed = False
            return
        self.project = replace(found, number=number, head=self.heads[number])

    def _unreadable(
        self, number: int, signed: Signed, before: str | None, error: InputError
    ) -> None:
        """A line that this version cannot read: of a newer one if a known key signed it."""
        self.followed = False
        entry = _object(signed.payload)
        body = entry.get("body")
        brings = body.get("key") if isinstance(body, dict) else None
        if number == 1 and brings is not None:
            self._learn(number, brings)
        key = (self.pinned or self.known).get(signed.key)
        if not entry or key is None or not signed.is_by(key):
            self.altered.append(f"Entry {number}: {error.what}.")
            return
        if signed.key not in self.signed_by:
            self.signed_by.append(signed.key)
        if number > 1 and entry.get("what") == KeyAdded.__name__ and brings is not None:
            self._learn(number, brings)
        self._check_place(number, before, tuple(map(entry.get, ("project", "number", "previous"))))
        rest = (
            "" if self.newer else " The rules and the files were checked up to the entry before it."
        )
        self.newer.append(f"Entry {number} {_NEWER}.{rest}")

    def _check_place(self, number: int, before: str | None, said: tuple[Any, ...]) -> None:
        """Whether an entry says the project, number and entry before that it has here."""
        *place, previous = said
        if place != [self.project_id, number]:
            self.altered.append(f"Entry {number} was moved here from another place.")
        if number > 1 and before is not None and previous != before:
            self.altered.append(
                f"Entry {number} does not follow entry {number - 1} as that one is now."
            )

    def _learn(self, number: int, key: Mapping[str, Any], *, own_only: bool = False) -> None:
        try:
            name = check_key(key)
        except InputError as error:
            self.altered.append(f"Entry {number}: {error.what}.")
            return
        new = name not in self.known
        self.known[name] = key
        if self.pinned and name not in self.pinned:
            self.altered.append(
                f"Entry {number} brings the key {name[:12]}, which is none of yours."
            )
        elif number > 1:
            what = "what it does as a member" if own_only and new else "too"
            self.noticed.append(f"Since entry {number}, the key {name[:12]} may sign {what}.")

    def _check_signature(self, number: int, signed: Signed) -> None:
        key = (self.pinned or self.known).get(signed.key)
        if key is None and self.newer and not self.pinned:
            self.newer.append(
                f"Entry {number} is signed by the key {signed.key[:12]}, which only an entry of a "
                "newer version can have admitted: update kdcal."
            )
        elif key is None:
            self.altered.append(f"Entry {number} is signed by the unknown key {signed.key[:12]}.")
        elif not signed.is_by(key):
            self.altered.append(f"Entry {number} was altered: its signature does not fit.")
        elif signed.key not in self.signed_by:
            self.signed_by.append(signed.key)

    def _check_clock(self, entry: Entry) -> None:
        if self._last is not None and entry.when.at < self._last.when.at:
            self.noticed.append(
                f"The clock of entry {entry.number} ({entry.when.at}) is behind that of entry "
                f"{self._last.number} ({self._last.when.at}); their order is that of their numbers."
            )

    def check_receipt(self, at: int, receipt: Any) -> None:
        named = f"Receipt {at}"
        try:
            said = read_statement(receipt, RECEIPT, [*(self.pinned or self.known).values()])
            predicate = said["predicate"]
            number, project = predicate["number"], predicate["project"]
            digests = {one["name"]: one["digest"]["sha256"] for one in said["subject"]}
            head, audit = digests["record"], predicate.get("audit")
            if not isinstance(audit, str | None):
                raise TypeError("no id")
        except NewerVersionError:
            self.newer.append(f"{named} {_NEWER}.")
            return
        except InputError as error:
            self.altered.append(f"{named}: {error.what}.{self._of_another_key(receipt)}")
            return
        except (KeyError, TypeError):
            self.altered.append(f"{named} lacks what a receipt says.")
            return
        if project != self.project_id:
            self.altered.append(f"{named} is of another project.")
        elif type(number) is not int or number < 1 or not self.known:
            self.altered.append(f"{named} cannot be compared with this record.")
        elif number > max(self.heads, default=0):
            gone = number - max(self.heads, default=0)
            more = counted(gone, "entry", "entries")
            self.altered.append(f"The record was shortened: {named.lower()} knows {more} more.")
        elif self.heads.get(number) != head:
            self.altered.append(
                f"The record was replaced: its entry {number} is not that of {named.lower()}."
            )
        elif audit is not None and self.project is not None:
            found = self.project.audits.get(audit)
            if found is None and self.newer:
                return  # an entry that was not read may have drafted it
            if found is None or found.facts.content != digests.get("audit"):
                self.altered.append(f"{named} is of another content of its audit.")

    def _of_another_key(self, receipt: Any) -> str:
        """What a receipt whose key is not known here means; ids of projects follow their names."""
        try:
            signed = Signed.of(receipt)
        except InputError:
            return ""
        if signed.key in (self.pinned or self.known):
            return ""
        return (
            f" Its key {signed.key[:12]} signed nothing here: it is of another record with a "
            "project of this name, or this record was replaced as a whole."
        )


def _check_pin(record: Record, chain: CheckedLines) -> None:
    """Compare a record with what this machine knows of it."""
    began, pin = next(iter(chain.known), ""), record.pins.of(chain.project_id)
    if pin is not None:
        if said := pin.contradiction(began, chain.heads):
            chain.altered.append(said)
    elif began and began not in (*chain.pinned, key_there(record.root)):
        chain.noticed.append(
            f"The record was begun with a key that this machine does not know: {began}."
        )


def _check_files(record: Record, chain: CheckedLines) -> int:
    """Read the content of every audit; how many there are."""
    audits = chain.project.audits.values() if chain.project is not None else ()
    kept = [one for one in audits if one.has_files]
    for audit in kept:
        named = f"The audit {audit.facts.title[:80]!r}"
        if chain.newer and not record.files.has(audit.facts.content):
            chain.newer.append(f"{named}: its file is gone, which an entry not read may explain.")
            continue
        try:
            content = read_content(record.files.get(audit.facts.content))
        except NewerVersionError:
            chain.newer.append(f"{named} {_NEWER}.")
            continue
        except InputError as error:
            chain.altered.append(f"{named}: {error.what}.")
            continue
        if others := differing(audit.facts, content):
            are = "is" if len(others) == 1 else "are"
            chain.altered.append(
                f"{named}: {listed(others)} in its file {are} not what its entry says."
            )
    return len(kept)


def differing(facts: AuditDrafted, content: AuditContent) -> tuple[str, ...]:
    """What an audit's entry says otherwise than its content, in words."""
    pairs = {
        "the title": (facts.title, content.title),
        "the headline": (facts.headline, content.headline),
        "the verdict": (facts.verdict, content.checked.verdict),
        "the number of rows": (facts.n, content.checked.n),
        "the model": (facts.model, content.model_digest),
        "the rows": (facts.rows, content.rows_digest),
        "the limits": (facts.limits, content.limits),
    }
    later = {  # entries of earlier versions have neither
        "the question": (facts.question, content.question_digest),
        "the calibrator": (facts.calibrator, content.judged_calibrator),
    }
    pairs |= {what: pair for what, pair in later.items() if pair[0]}
    return tuple(what for what, (said, found) in pairs.items() if said != found)


def _object(payload: bytes) -> dict[str, Any]:
    """A line as JSON has it; empty where it is no object."""
    try:
        found = json.loads(payload)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
