"""Whoever alters, shortens, moves or replaces a record, or its files, is found."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql
from audit_people import ME
from audit_place import Place

from kdcal_core.audit import (
    AuditContent,
    AuditDrafted,
    AuditSubmitted,
    Commented,
    Moment,
    Record,
    RetentionSet,
    content_bytes,
    export_project,
    import_project,
    read_content,
    verify,
)
from kdcal_core.audit.events import KeyAdded
from kdcal_core.audit.pins import FOLDER, Pin
from kdcal_core.audit.receipts import RECEIPT
from kdcal_core.audit.signing import ENTRY, Signed, canonical, digest, signer_of, statement
from kdcal_core.cli import main
from kdcal_core.errors import InputError, NewerVersionError


@pytest.fixture
def filled(place: Place, content: AuditContent) -> tuple[Place, str]:
    """A record of six entries."""
    record = place.open()
    project = record.create("Credit risk", ME)
    audit = record.draft(project.id, content, ME)
    record.write(project.id, AuditSubmitted(audit.id), ME)
    for at in range(3):
        record.write(project.id, Commented(audit.id, f"Comment {at}"), ME)
    record.database.close()
    return place, project.id


def _change(place: Place, *statements: str) -> None:
    engine = place.engine()
    with engine.begin() as connection:
        for one in statements:
            connection.execute(sql.text(one))
    engine.dispose()


def _rewrite(place: Place, number: int, change: Callable[[dict[str, Any]], Any]) -> None:
    """Write a line anew, and sign it, as who has the key could."""
    engine = place.engine()
    with engine.begin() as connection:
        (text,) = connection.execute(
            sql.text(f"SELECT payload FROM kdcal_entry WHERE number = {number}")
        ).one()
        entry = json.loads(text)
        change(entry)
        signed = signer_of(place.root).sign(canonical(entry), ENTRY)
        connection.execute(
            sql.text("UPDATE kdcal_entry SET payload = :p, signature = :s WHERE number = :n"),
            {"p": signed.payload.decode(), "s": signed.signature, "n": number},
        )
    engine.dispose()
    _elsewhere(place)


def _elsewhere(place: Place) -> None:
    """Let verification know as little of the record as on a machine that never wrote to it."""
    shutil.rmtree(place.root / FOLDER, ignore_errors=True)


def test_an_untouched_record_holds(filled: tuple[Place, str]) -> None:
    place, project = filled
    record = place.open()
    found = verify(record, project, receipts=[record.receipt(project)])
    assert found.holds
    assert (found.n_entries, found.n_files, found.n_receipts) == (6, 1, 1)
    assert found.keys == (signer_of(place.root).public["keyid"],)
    assert found.noticed == ()


ATTACKS = {
    "a word of a comment": (
        "UPDATE kdcal_entry SET payload = replace(payload, 'Comment 1', 'Comment 9')",
        "Entry 5 was altered",
    ),
    "who did it": (
        """UPDATE kdcal_entry SET payload = replace(payload, '"Me"', '"Eve"') WHERE number = 3""",
        "Entry 3 was altered",
    ),
    "a line in the middle": (
        "DELETE FROM kdcal_entry WHERE number = 4",
        "Entries 4 to 4 are missing",
    ),
    "the first line": ("DELETE FROM kdcal_entry WHERE number = 1", "Entries 1 to 1 are missing"),
    "a signature": (
        "UPDATE kdcal_entry SET signature = '00' WHERE number = 2",
        "Entry 2 was altered",
    ),
    "another key": (
        "UPDATE kdcal_entry SET key = 'ff' WHERE number = 2",
        "Entry 2 is signed by the unknown key",
    ),
    "no JSON": ("UPDATE kdcal_entry SET payload = '{' WHERE number = 6", "Entry 6: "),
    "two lines exchanged": (
        "UPDATE kdcal_entry SET number = CASE number WHEN 5 THEN 106 ELSE 105 END "
        "WHERE number IN (5, 6); UPDATE kdcal_entry SET number = number - 100 WHERE number > 100",
        "was moved here",
    ),
    "a line before the first": (
        "UPDATE kdcal_entry SET number = 0 WHERE number = 6",
        "A line has the number '0'.",
    ),
    "everything": ("DELETE FROM kdcal_entry", "There is no such project"),
}


@pytest.mark.parametrize(("statement", "said"), ATTACKS.values(), ids=ATTACKS)
def test_a_change_in_the_database_is_named(
    filled: tuple[Place, str], statement: str, said: str
) -> None:
    place, project = filled
    _change(place, *statement.split("; "))
    found = verify(place.open(), project)
    assert not found.holds
    assert any(said in one for one in found.altered), found.altered


def test_with_the_key_a_changed_line_breaks_the_chain(filled: tuple[Place, str]) -> None:
    place, project = filled

    def change(entry: dict[str, Any]) -> None:
        entry["body"]["words"] = "Never said."

    _rewrite(place, 5, change)
    found = verify(place.open(), project)
    assert found.altered == ("Entry 6 does not follow entry 5 as that one is now.",)


def test_with_the_key_the_last_line_contradicts_its_receipt(filled: tuple[Place, str]) -> None:
    place, project = filled
    receipt = place.open().receipt(project)

    def change(entry: dict[str, Any]) -> None:
        entry["body"]["words"] = "Never said."

    pins = shutil.copytree(place.root / FOLDER, place.root / "copy")
    _rewrite(place, 6, change)
    assert verify(place.open(), project).holds  # which is why receipts are kept elsewhere
    found = verify(place.open(), project, receipts=[receipt])
    assert found.altered == ("The record was replaced: its entry 6 is not that of receipt 1.",)
    pins.rename(place.root / FOLDER)
    (said,) = verify(place.open(), project).altered
    assert said == "The record was replaced: its entry 6 is not the one that this machine knows."


def test_a_shortened_record_contradicts_its_receipt(filled: tuple[Place, str]) -> None:
    place, project = filled
    receipt = place.open().receipt(project)
    _change(place, "DELETE FROM kdcal_entry WHERE number > 4")
    (said,) = verify(place.open(), project).altered
    assert said == "The record was shortened: this machine knows 2 entries more."
    _elsewhere(place)
    assert verify(place.open(), project).holds
    found = verify(place.open(), project, receipts=[receipt])
    assert found.altered == ("The record was shortened: receipt 1 knows 2 entries more.",)


def test_a_line_that_breaks_a_rule_is_named_though_it_is_signed(
    filled: tuple[Place, str],
) -> None:
    place, project = filled

    def change(entry: dict[str, Any]) -> None:
        entry["what"], entry["body"] = "AuditSubmitted", {"audit": entry["body"]["audit"]}

    _rewrite(place, 6, change)
    (said,) = verify(place.open(), project).altered
    assert said.startswith("Entry 6 breaks a rule: Only an audit that is draft can be submitted")


def test_a_receipt_of_another_record_is_refused(filled: tuple[Place, str]) -> None:
    place, project = filled
    record = place.open()
    other = record.create("Fraud", ME)
    found = verify(record, project, receipts=[record.receipt(other.id)])
    assert found.altered == ("Receipt 1 is of another project.",)


def test_a_receipt_of_another_key_is_refused(filled: tuple[Place, str], tmp_path: Any) -> None:
    place, project = filled
    receipt = place.open().receipt(project)
    forged = signer_of(tmp_path / "other").sign(Signed.of(receipt).payload, Signed.of(receipt).kind)
    (said,) = verify(place.open(), project, receipts=[forged.envelope()]).altered
    assert "None of the known keys made the signature. Its key" in said
    assert "another record with a project of this name, or this record was replaced" in said
    forged = replace(Signed.of(receipt), signature="00" * 64)
    (said,) = verify(place.open(), project, receipts=[forged.envelope()]).altered
    assert said == "Receipt 1: None of the known keys made the signature."


@pytest.mark.parametrize("receipt", [{}, [], "text", {"payload": "e30=", "payloadType": "x"}])
def test_what_is_no_receipt_is_said_to_be_none(filled: tuple[Place, str], receipt: Any) -> None:
    place, project = filled
    found = verify(place.open(), project, receipts=[receipt])
    assert len(found.altered) == 1


def test_a_pinned_key_finds_a_record_that_was_written_anew(
    filled: tuple[Place, str], content: AuditContent
) -> None:
    place, _ = filled
    known = signer_of(place.root).public
    shutil.rmtree(place.root / "files")
    (place.root / "audit-key.pem").unlink()
    record = place.open()
    project = record.create("Forged", ME)
    assert verify(record, project.id).holds
    found = verify(record, project.id, keys=[known])
    assert any("none of yours" in one for one in found.altered)


def _forge(place: Place, folder: Path, name: str) -> str:
    """Put another whole record of this name, signed with a fresh key, in place of the record."""
    forger = Record(folder)
    project = forger.create(name, ME).id
    # so that the app of this machine goes on to write to it
    forger.write(project, KeyAdded(signer_of(place.root).public), ME)
    for _ in range(5):
        forger.write(project, RetentionSet(1), ME)
    lines = forger.database.read(project)
    _change(place, "DELETE FROM kdcal_entry", "DELETE FROM kdcal_project")
    record = place.open()
    with record.database.writing(project) as writing:
        for number, signed in lines:
            writing.append(number, signed)
    record.database.close()
    return signer_of(folder).public["keyid"]


def test_a_whole_record_with_another_key_contradicts_what_this_machine_knows(
    filled: tuple[Place, str], tmp_path: Path
) -> None:
    place, project = filled
    mine, other = (
        signer_of(place.root).public["keyid"],
        _forge(place, tmp_path / "f", "Credit risk"),
    )
    said = (
        f"The record was replaced: it begins with the key {other[:12]}, and this machine knows it "
        f"with the key {mine[:12]}."
    )
    record = place.open()
    assert verify(record, project).altered == (said,)
    record.write(project, RetentionSet(2), ME)
    assert verify(record, project).altered == (said,)  # a further entry does not make it known
    _elsewhere(place)
    found = verify(record, project)
    assert found.holds
    assert found.noticed[-1] == (
        f"The record was begun with a key that this machine does not know: {other}."
    )


def test_others_may_have_written_and_an_import_makes_a_record_known(
    filled: tuple[Place, str], tmp_path: Path
) -> None:
    place, project = filled
    pins = shutil.copytree(place.root / FOLDER, tmp_path / "pins")
    place.open().write(project, RetentionSet(2), ME)
    _elsewhere(place)
    pins.rename(place.root / FOLDER)
    record = place.open()
    assert verify(record, project).holds
    export_project(record, project, tmp_path / "record.zip")
    other = Record(tmp_path / "other")
    import_project(other, tmp_path / "record.zip")
    assert verify(other, project).noticed == ()
    mine = signer_of(place.root).public["keyid"]
    assert other.pins.of(project) == Pin(mine, 7, record.project(project).head)
    (path,) = other.pins.folder.glob("*.json")
    path.write_text("{")
    assert verify(other, project).altered == (
        "What this machine knows of the record (its pin) cannot be read.",
    )


def test_a_second_machine_signs_with_its_own_key(filled: tuple[Place, str]) -> None:
    place, project = filled
    key = place.root / "audit-key.pem"
    first, kept = signer_of(place.root).public["keyid"], key.read_bytes()
    key.unlink()
    second, other = signer_of(place.root).public, key.read_bytes()
    comment = Commented(_audit(place, project), "From elsewhere.")
    with pytest.raises(InputError, match="may not sign"):
        place.open().write(project, comment, ME)
    with pytest.raises(InputError, match="may not sign"):
        place.open().receipt(project)
    key.write_bytes(kept)
    place.open().admit(project, second, ME)
    key.write_bytes(other)
    place.open().write(project, comment, ME)
    found = verify(place.open(), project)
    assert found.holds
    assert found.keys == (first, signer_of(place.root).public["keyid"])
    assert found.noticed[0].startswith("Since entry 7, the key")


def test_a_key_cannot_admit_itself(filled: tuple[Place, str], tmp_path: Path) -> None:
    place, project = filled
    mine = signer_of(tmp_path / "attacker")
    victim = signer_of(place.root).public
    for key in (mine.public, {**mine.public, "keyid": victim["keyid"]}):
        record = place.open()
        with record.database.writing(project) as writing:
            last = writing.lines()[-1]
            entry = json.loads(last[1].payload)
            entry |= {"number": 7, "previous": digest(last[1].payload)}
            entry |= {"what": "KeyAdded", "body": {"key": key}}
            writing.append(7, mine.sign(canonical(entry), ENTRY))
        found = verify(record, project)
        assert any("unknown key" in one for one in found.altered)
        with pytest.raises(InputError, match="nobody admitted"):
            place.open().project(project)
        _change(place, "DELETE FROM kdcal_entry WHERE number = 7")


def test_a_restored_backup_is_read_anew(filled: tuple[Place, str]) -> None:
    place, project = filled
    record = place.open()
    assert record.project(project).number == 6
    _change(place, "DELETE FROM kdcal_entry WHERE number > 4")
    _elsewhere(place)  # the folder was restored too
    assert record.project(project).number == 4
    record.write(project, Commented(_audit(place, project), "Anew."), ME)
    assert verify(record, project).holds


def test_one_altered_project_does_not_hide_the_others(filled: tuple[Place, str]) -> None:
    place, project = filled
    other = place.open().create("Fraud", ME).id
    _change(place, f"UPDATE kdcal_entry SET payload = '{{' WHERE project = '{project}'")
    record = place.open()
    assert [one.id for one in record.projects()] == [other]
    assert record.unreadable() == (project,)
    assert record.named("Fraud") is not None
    assert not verify(record, project).holds


def test_a_column_of_another_kind_is_an_alteration(filled: tuple[Place, str]) -> None:
    place, project = filled
    if place.url is not None:
        pytest.skip("PostgreSQL keeps only text in a column of text")
    _change(place, "UPDATE kdcal_entry SET payload = x'ff00' WHERE number = 3")
    _change(place, "UPDATE kdcal_entry SET number = 'abc' WHERE number = 6")
    found = verify(place.open(), project)
    assert any("'abc'" in one for one in found.altered)
    assert any(one.startswith("Entry 3: ") for one in found.altered)


def test_a_line_far_away_costs_nothing(filled: tuple[Place, str]) -> None:
    place, project = filled
    _change(place, "UPDATE kdcal_entry SET number = 2000000000 WHERE number = 6")
    found = verify(place.open(), project)
    assert "Entries 6 to 1999999999 are missing." in found.altered


def _audit(place: Place, project: str) -> str:
    return next(iter(place.open().project(project).audits))


def test_a_changed_or_lost_file_is_named(filled: tuple[Place, str]) -> None:
    place, project = filled
    (path,) = (one for one in (place.root / "files").rglob("*") if one.is_file())
    path.write_bytes(path.read_bytes() + b" ")
    (said,) = verify(place.open(), project).altered
    assert "was altered after it was written" in said
    path.unlink()
    (said,) = verify(place.open(), project).altered
    assert "is gone" in said


def test_a_clock_that_went_back_is_noticed_and_no_alteration(
    place: Place, content: AuditContent
) -> None:
    at = ["2026-02-01T00:00:00.000000Z"]
    record = Record(place.root, place.url, clock=lambda: Moment(at[0], "a test"))
    project = record.create("Credit risk", ME)
    at[0] = "2026-01-01T00:00:00.000000Z"
    record.draft(project.id, content, ME)
    found = verify(record, project.id)
    assert found.holds
    assert "is behind that of entry 1" in found.noticed[0]


OTHERWISE = {
    "title": ("Another", "the title"),
    "headline": ("The model passes all checks.", "the headline"),
    "n": (7, "the number of rows"),
    "model": ("0" * 64, "the model"),
    "rows": ("0" * 64, "the rows"),
    "verdict": ("pass", "the verdict"),
    "limits": ({}, "the limits"),
    "question": ("0" * 64, "the question"),
    "calibrator": ("another.kdcal", "the calibrator"),
}


def test_what_an_entry_says_of_its_file_is_compared(place: Place, content: AuditContent) -> None:
    record = place.open()
    project = record.create("Credit risk", ME).id
    assert record.draft(project, content, ME).facts.verdict != OTHERWISE["verdict"][0]
    assert verify(record, project).holds
    before = json.loads(record.database.read(project)[1][1].payload)["body"]
    for name, (value, words) in OTHERWISE.items():
        _rewrite(place, 2, lambda entry, n=name, v=value: entry.update(body={**before, n: v}))
        (said,) = verify(record, project).altered
        assert said.endswith(f": {words} in its file is not what its entry says.")
    several = {**before, "title": "Another", "n": 7}
    _rewrite(place, 2, lambda entry: entry.update(body=several))
    (said,) = verify(record, project).altered
    assert said.endswith(": the title and the number of rows in its file are not what its entry "
                         "says.")  # fmt: skip


NEWER: dict[str, Callable[[dict[str, Any]], Any]] = {
    "another event": lambda entry: entry.update(what="AuditWitnessed", body={"audit": "a"}),
    "another field of the event": lambda entry: entry["body"].update(mood="good"),
    "another field of every entry": lambda entry: entry.update(witness="Ann"),
    "another role": lambda entry: entry.update(what="MemberSet", body={"role": "owner"}),
}


@pytest.mark.parametrize("change", NEWER.values(), ids=NEWER)
def test_a_newer_version_is_no_alteration_and_no_proof(
    filled: tuple[Place, str], change: Callable[[dict[str, Any]], Any], tmp_path: Path
) -> None:
    place, project = filled
    _rewrite(place, 6, change)
    record = place.open()
    found = verify(record, project)
    assert (found.altered, found.holds) == ((), False)
    assert found.newer == (
        "Entry 6 was written by a newer version of kdcal: update kdcal. The rules and the files "
        "were checked up to the entry before it.",
    )
    with pytest.raises(NewerVersionError, match=r"newer version of kdcal.*Update kdcal"):
        export_project(record, project, tmp_path / "record.zip")
    assert not (tmp_path / "record.zip").exists()


def test_what_only_looks_newer_was_altered(filled: tuple[Place, str]) -> None:
    place, project = filled
    _change(
        place,
        """UPDATE kdcal_entry SET payload = replace(payload, '"Commented"', '"AuditWitnessed"')
        WHERE number = 6""",
    )
    _elsewhere(place)
    found = verify(place.open(), project)
    assert found.newer == ()
    assert found.altered == ("Entry 6: Entry 6 says 'AuditWitnessed', which this kdcal does not "
                             "know.",)  # fmt: skip


def test_entries_after_one_of_a_newer_version_are_still_checked(
    filled: tuple[Place, str], tmp_path: Path
) -> None:
    place, project = filled
    _rewrite(place, 6, NEWER["another event"])
    record, other = place.open(), signer_of(tmp_path / "other")
    with record.database.writing(project) as writing:
        last = writing.lines()[-1][1]
        entry = json.loads(writing.lines()[-2][1].payload)
        entry |= {"number": 7, "previous": digest(last.payload)}
        writing.append(7, other.sign(canonical(entry), ENTRY))
        writing.append(8, other.sign(canonical(entry), ENTRY))
    found = verify(record, project)
    assert found.altered == (
        "Entry 8 was moved here from another place.",
        "Entry 8 does not follow entry 7 as that one is now.",
    )
    assert "only an entry of a newer version can have admitted" in found.newer[1]


def test_a_file_or_receipt_of_a_newer_version_is_no_alteration(
    place: Place, content: AuditContent
) -> None:
    record = place.open()
    project = record.create("Credit risk", ME).id
    facts = record.draft(project, content, ME).facts
    values = json.loads(content_bytes(content))
    later = {**values, "format": 2}
    more = {**values, "mood": "good", "code": {**values["code"], "kdcal": "99.0.0"}}
    for at, one in enumerate((later, more)):
        stored = canonical(one)
        with pytest.raises(NewerVersionError, match="newer version of kdcal"):
            read_content(stored)
        event = {**vars(facts), "audit": f"later-{at}", "content": record.files.put(stored)}
        record.write(project, AuditDrafted(**event), ME)
    kind = RECEIPT.replace("/v1", "/v2")
    receipt = statement({"record": "0" * 64}, kind, {}, signer_of(place.root))
    found = verify(record, project, receipts=[receipt])
    assert (found.altered, found.holds, len(found.newer)) == ((), False, 3)
    assert all("newer version of kdcal" in one for one in found.newer)


def test_the_command_names_the_keys_and_a_project_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path))
    place = Place(tmp_path / "kdcal" / "audits", None)
    project = place.open().create("Credit risk", ME).id
    assert main(["audit", "verify"]) == 0
    assert (
        f"Key {signer_of(place.root).public['keyid']} (of this machine)" in capsys.readouterr().out
    )
    _change(place, "DELETE FROM kdcal_entry", "DELETE FROM kdcal_project")
    assert main(["audit", "verify"]) == 1
    assert f"{project}: was altered" in capsys.readouterr().out


def test_the_command_claims_nothing_of_what_a_newer_version_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path))
    place = Place(tmp_path / "kdcal" / "audits", None)
    place.open().create("Credit risk", ME)
    place.open().write(place.open().projects()[0].id, RetentionSet(30), ME)
    _rewrite(place, 2, NEWER["another event"])
    assert main(["audit", "verify"]) == 1
    said = capsys.readouterr().out
    assert "Credit risk: cannot be checked whole (2 entries" in said
    assert "Entry 2 was written by a newer version of kdcal: update kdcal." in said
    assert "altered" not in said


def test_a_receipt_of_another_project_does_not_call_the_record_altered(
    tmp_path: Path,
    content: AuditContent,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path))
    record = Record()
    projects = [record.create(name, ME).id for name in ("Credit risk", "Fraud")]
    audit = record.draft(projects[1], content, ME).id
    path = tmp_path / "receipt.json"
    path.write_text(json.dumps(record.receipt(projects[1], audit)))
    assert main(["audit", "verify", "--receipt", str(path)]) == 0
    assert main(["audit", "verify", "--project", "Credit risk", "--receipt", str(path)]) == 1
    said = capsys.readouterr().out
    assert "Credit risk: holds (1 entry, 0 files, 0 receipts)" in said
    assert "A receipt is of the project Fraud, which was not asked for." in said
    assert "altered" not in said
    path.write_text("[]")
    assert main(["audit", "verify", "--receipt", str(path)]) == 2
    assert "(file '" in capsys.readouterr().err
