"""Keys as members: a gate records where people sign in, and decides nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from audit_people import ANN, BEN, EVE, ME
from audit_place import Place

from kdcal_core.audit import (
    KEY,
    KEY_FILE,
    AuditApproved,
    AuditConfig,
    AuditContent,
    AuditSubmitted,
    Commented,
    LimitsLocked,
    MemberSet,
    Person,
    Record,
    RetentionSet,
    export_project,
    import_project,
    person_text,
    run_gate,
    signer_of,
    verify,
)
from kdcal_core.audit.events import Entry, KeyAdded
from kdcal_core.audit.signing import ENTRY, canonical, digest
from kdcal_core.cli import main
from kdcal_core.errors import InputError
from kdcal_core.review import NamedFiles
from kdcal_core.store import encode

pytestmark = pytest.mark.usefixtures("work_here")


class Elsewhere:
    """A second machine that uses the same database and files, with a key of its own."""

    def __init__(self, place: Place, folder: Path) -> None:
        self.place, self.folder = place, folder
        self.key = signer_of(folder).public
        self.id = str(self.key["keyid"])

    @contextmanager
    def signing(self) -> Iterator[Record]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(KEY_FILE, str(self.folder / "audit-key.pem"))
            yield self.place.open()

    def write(self, project: str, event: Any, who: Person | None = None) -> int:
        with self.signing() as record:
            return record.write(project, event, who or record.acting(record.project(project)))


@pytest.fixture
def gate(place: Place, tmp_path: Path) -> Elsewhere:
    return Elsewhere(place, tmp_path / "elsewhere")


@pytest.fixture
def project(record: Record) -> str:
    """A project of people: Ann manages it, and Ben approves."""
    made = record.create("Credit risk", ANN).id
    record.write(made, MemberSet(BEN.issuer, BEN.subject, "Ben", "approver"), ANN)
    return made


def table(folder: Path) -> str:
    rows = "".join(f"{p},{1 - p:.2f},{'no' if at % 10 < 10 * p else 'yes'}\n"
                   for at in range(400) for p in (0.2, 0.8))  # fmt: skip
    (folder / "p.csv").write_text(f"proba_no,proba_yes,y\n{rows}")
    return str(folder / "p.csv")


def test_a_gate_records_into_a_project_with_members(
    record: Record, project: str, gate: Elsewhere, tmp_path: Path
) -> None:
    files = NamedFiles(target="y", predictions=table(tmp_path))
    asked = AuditConfig("A gate", files, event="yes", codes=("KC001",), project="Credit risk")
    with gate.signing() as there, pytest.raises(InputError, match="key of this machine may not"):
        run_gate(asked, record=there)
    record.add_key(project, gate.key, "CI", "reviewer", ANN)
    with gate.signing() as there:
        found = run_gate(asked, record=there)
        assert found.receipt is not None
    known = record.project(project)
    audit = known.audits[found.audit]
    by = audit.drafted.who
    assert (by.name, by.identity) == ("CI", (KEY, gate.id))
    assert by.believed.startswith("has the key that signs this entry")
    assert person_text(by) == "CI (by its key)"
    assert audit.facts.locked == known.locks[0].number
    assert known.locks[0].who.identity == by.identity
    checked = verify(record, project, receipts=[found.receipt])
    assert (checked.altered, checked.keys) == (
        (),
        (signer_of(record.root).public["keyid"], gate.id),
    )
    assert f"the key {gate.id[:12]} may sign what it does as a member." in checked.noticed[0]


def test_the_server_s_own_key_can_be_a_member_too(
    record: Record, project: str, content: AuditContent
) -> None:
    with pytest.raises(InputError, match="role of a reviewer"):
        record.draft(project, content, record.acting(record.project(project)))
    record.add_key(project, signer_of(record.root).public, "The server's gate", "reviewer", ANN)
    audit = record.draft(project, content, record.acting(record.project(project)))
    assert audit.drafted.who.name == "The server's gate"
    record.write(project, Commented(audit.id, "Signed for Ann as before."), ANN)
    assert verify(record, project).holds


def test_people_submit_and_approve_what_a_gate_recorded(
    record: Record, project: str, gate: Elsewhere, content: AuditContent
) -> None:
    record.add_key(project, gate.key, "CI", "administrator", ANN)
    with gate.signing() as there:
        audit = there.draft(project, content, there.acting(there.project(project))).id
    for event in (AuditSubmitted(audit), AuditApproved(audit, "Good enough.")):
        with pytest.raises(InputError, match="people decide"):
            gate.write(project, event)
    record.write(project, AuditSubmitted(audit), ANN)
    with pytest.raises(InputError, match="you submitted this one"):
        record.write(project, AuditApproved(audit, "Good enough."), ANN)
    record.write(project, AuditApproved(audit, "Good enough."), BEN)
    assert record.project(project).audits[audit].state == "approved"


def test_a_gate_s_key_signs_in_nobody_else_s_name(
    record: Record, project: str, gate: Elsewhere, content: AuditContent
) -> None:
    audit = record.draft(project, content, ANN).id
    record.add_key(project, gate.key, "CI", "reviewer", ANN)
    said = Commented(audit, "Mine.")
    assert gate.write(project, said)
    for who in (ANN, BEN, ME):
        with pytest.raises(InputError, match="nothing in the name of others"):
            gate.write(project, said, who)
    with pytest.raises(InputError, match="another key signs it"):
        record.write(project, said, Person("CI", KEY, gate.id))
    record.write(project, KeyAdded(gate.key, own_only=True), ANN)  # said twice
    with pytest.raises(InputError, match="nothing in the name of others"):
        gate.write(project, said, ANN)
    record.admit(project, gate.key, ANN)  # it is that of another server now
    assert gate.write(project, said, ANN)
    record.add_key(project, gate.key, "CI", "reviewer", ANN)
    assert gate.write(project, said, ANN)
    assert verify(record, project).holds


def test_a_line_that_a_gate_s_key_forged_is_found(
    record: Record, project: str, gate: Elsewhere, content: AuditContent
) -> None:
    audit = record.draft(project, content, ANN).id
    record.add_key(project, gate.key, "CI", "reviewer", ANN)
    submitted = AuditSubmitted(audit)
    with record.database.writing(project) as writing:
        number, last = writing.lines()[-1]
        entry = Entry(project, number + 1, digest(last.payload), record._clock(), ANN,
                      "AuditSubmitted", encode(submitted))  # fmt: skip
        signed = signer_of(gate.folder).sign(canonical(encode(entry)), ENTRY)
        writing.append(number + 1, signed)
    found = verify(record, project)
    assert not found.holds
    assert "nothing in the name of others" in found.altered[0]
    with pytest.raises(InputError, match="nothing in the name of others"):
        gate.place.open().project(project)


REFUSED: dict[str, tuple[Callable[[Elsewhere], tuple[Any, str, Any]], str]] = {
    "an approver": (lambda gate: (gate.key, "CI", "approver"), "people approve"),
    "without a name": (lambda gate: (gate.key, " ", "reviewer"), "needs a name"),
    "no key": (lambda gate: ({"keyid": gate.id}, "CI", "reviewer"), "not a public key"),
    "a text": (lambda gate: ("ssh-ed25519 AAAA", "CI", "reviewer"), "not a public key"),
    "another key's name": (
        lambda gate: ({**gate.key, "keyid": "0" * 64}, "CI", "reviewer"), "not a public key"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "said"), REFUSED.values(), ids=REFUSED)
def test_what_no_key_can_be(
    record: Record, project: str, gate: Elsewhere, given: Any, said: str
) -> None:
    before = record.project(project).number
    with pytest.raises(InputError, match=said):
        record.add_key(project, *given(gate), ANN)
    assert record.project(project).number == before


def test_only_an_administrator_adds_a_key(record: Record, project: str, gate: Elsewhere) -> None:
    for who in (BEN, EVE, ME):
        with pytest.raises(InputError, match="role of an administrator"):
            record.add_key(project, gate.key, "CI", "reviewer", who)
    with pytest.raises(InputError, match="does not know this key"):
        record.write(project, MemberSet(KEY, gate.id, "CI", "reviewer"), ANN)
    alone = record.create("Of this machine", ME).id
    with pytest.raises(InputError, match="has none"):
        record.add_key(alone, gate.key, "CI", "reviewer", ME)
    record.admit(alone, gate.key, ME)
    with pytest.raises(InputError, match="without an administrator"):
        record.write(alone, MemberSet(KEY, gate.id, "CI", "administrator"), ME)


def test_a_person_stays_the_administrator(record: Record, project: str, gate: Elsewhere) -> None:
    record.add_key(project, gate.key, "CI", "administrator", ANN)
    with pytest.raises(InputError, match="without an administrator"):
        gate.write(project, MemberSet(ANN.issuer, ANN.subject, "Ann", "viewer"))
    assert gate.write(project, RetentionSet(30))


def test_a_key_without_a_role_does_nothing_any_more(
    record: Record, project: str, gate: Elsewhere, content: AuditContent
) -> None:
    record.add_key(project, gate.key, "CI", "reviewer", ANN)
    limits = LimitsLocked(content.limits)
    assert gate.write(project, limits)
    record.write(project, MemberSet(KEY, gate.id, "CI", None), ANN)
    with pytest.raises(InputError):
        gate.write(project, limits)
    with pytest.raises(InputError, match="role of a reviewer"):
        gate.write(project, limits, Person("CI", KEY, gate.id))
    record.add_key(project, gate.key, "CI again", "reviewer", ANN)
    assert gate.write(project, limits)


def test_a_key_creates_no_project(record: Record) -> None:
    mine = signer_of(record.root).public
    with pytest.raises(InputError, match="A key creates no project"):
        record.create("Mine", Person("CI", KEY, mine["keyid"]))
    with pytest.raises(InputError, match="begins with its name and key"):
        record.write("0" * 16, KeyAdded(mine), ME)
    assert record.projects() == ()


def test_an_export_brings_its_keys_with_it(
    record: Record, project: str, gate: Elsewhere, content: AuditContent, tmp_path: Path
) -> None:
    record.add_key(project, gate.key, "CI", "reviewer", ANN)
    with gate.signing() as there:
        there.draft(project, content, there.acting(there.project(project)))
    export_project(record, project, tmp_path / "record.zip")
    other = Record(tmp_path / "restored")
    import_project(other, tmp_path / "record.zip")
    assert other.project(project) == record.project(project)
    assert other.project(project).own_only == {gate.id}


def test_the_command_makes_a_key_a_member(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path))
    place = Place(tmp_path / "kdcal" / "audits", None)
    record, gate = place.open(), Elsewhere(place, tmp_path / "elsewhere")
    project = record.create("Credit risk", ANN).id
    (tmp_path / "ci.json").write_text(json.dumps(gate.key))
    words = ["audit", "admit", "--project", "Credit risk", "--key", str(tmp_path / "ci.json")]
    assert main([*words, "--role", "reviewer"]) == 2
    assert "role of an administrator" in capsys.readouterr().err
    mine = signer_of(place.root).public
    record.add_key(project, mine, "The server", "administrator", ANN)
    assert main([*words, "--role", "reviewer", "--name", "CI"]) == 0
    assert "is a member of Credit risk, as its reviewer" in capsys.readouterr().out
    found = place.open().project(project)
    assert found.members[KEY, gate.id] == MemberSet(KEY, gate.id, "CI", "reviewer")
    assert found.own_only == {gate.id}
    capsys.readouterr()
    assert main([*words, "--role", "reviewer", "--json"]) == 0  # named by its file
    made = json.loads(capsys.readouterr().out)
    assert (made["project"], made["role"], made["name"]) == ("Credit risk", "reviewer", "ci")
    assert made["entry"] == place.open().project(project).number
    assert place.open().project(project).members[KEY, gate.id].name == "ci"
    with pytest.raises(SystemExit):
        main([*words, "--role", "approver"])
