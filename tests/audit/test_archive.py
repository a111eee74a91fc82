"""A record in one file: how large it may be, and what it may say."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from audit_people import ANN, ME

from kdcal_core.audit import (
    AuditContent,
    AuditSubmitted,
    Begun,
    Commented,
    FilesDeleted,
    FindingChanged,
    FindingOpened,
    LimitsLocked,
    MemberSet,
    Moment,
    Person,
    Record,
    RetentionSet,
    archive,
    export_project,
    import_project,
    verify,
)
from kdcal_core.audit.files import Files
from kdcal_core.audit.signing import ENTRY, digest, signer_of
from kdcal_core.errors import InputError
from kdcal_core.review import Limit


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(tmp_path / "audits")


@pytest.fixture
def exported(record: Record, content: AuditContent, tmp_path: Path) -> Path:
    """A record of two audits in a file."""
    project = record.create("Credit risk", ME).id
    for title in "AB":
        record.draft(project, replace(content, title=title), ME)
    path = tmp_path / "record.zip"
    export_project(record, project, path)
    return path


BOUNDS = {
    "MOST_FILES": (2, r"The record has 3 files, and one file may hold 2"),
    "MOST_FILE_BYTES": (1_000, r"files/[0-9a-f]{64} of the record has [\d,]+ bytes, and at most"),
    "MOST_LINES_BYTES": (1_000, r"lines.json of the record has [\d,]+ bytes, and at most 1,000"),
    "MOST_BYTES": (10_000, r"The record has [\d,]+ bytes, and one file may hold 10,000"),
}


@pytest.mark.parametrize(("name", "most", "said"), [(k, *v) for k, v in BOUNDS.items()])
def test_each_bound_is_named_by_import_and_export(
    exported: Path,
    record: Record,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    most: int,
    said: str,
) -> None:
    monkeypatch.setattr(archive, name, most)
    other = Record(tmp_path / "other")
    with pytest.raises(InputError, match=said):
        import_project(other, exported)
    assert other.projects() == ()
    assert not other.files.folder.exists()
    with pytest.raises(InputError, match=said):
        export_project(record, record.projects()[0].id, tmp_path / "again.zip")
    assert not (tmp_path / "again.zip").exists()


def test_a_list_of_names_without_end_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MOST_FILES", 100)
    made = tmp_path / "many.zip"
    with zipfile.ZipFile(made, "w") as many:
        for at in range(101):
            many.writestr(zipfile.ZipInfo(f"{at:0200}"), b"")

    def read(*_: object) -> None:
        pytest.fail("the list was read")

    with monkeypatch.context() as patch:
        patch.setattr(zipfile.ZipFile, "__init__", read)
        patch.setattr(zipfile.ZipFile, "__del__", lambda _: None)
        with pytest.raises(InputError, match="not a record"):
            import_project(Record(tmp_path / "other"), made)


def test_what_was_exported_before_is_still_imported(exported: Path, tmp_path: Path) -> None:
    other = Record(tmp_path / "other")
    project = import_project(other, exported)
    found = verify(other, project)
    assert (found.holds, found.n_entries, found.n_files) == (True, 3, 2)
    assert import_project(other, exported) == project


def test_a_backup_brings_no_deleted_file_back(exported: Path, record: Record) -> None:
    (project,) = record.projects()
    record.delete_files(project.id, tuple(project.audits), "asked by the owner of the data", ME)
    said = "older than what is here, which has 1 entry more: nothing to import"
    with pytest.raises(InputError, match=said):
        import_project(record, exported)
    assert [one for one in record.files.folder.rglob("*") if one.is_file()] == []


def test_another_course_of_the_same_length_or_shorter_is_none_that_is_older(
    record: Record, exported: Path, tmp_path: Path
) -> None:
    other = Record(tmp_path / "other")
    project = other.create("Credit risk", ME).id
    for _ in range(4):
        with pytest.raises(InputError, match="another course of this project"):
            import_project(other, exported)
        other.write(project, RetentionSet(30), ME)


def test_a_file_of_another_digest_is_not_kept(tmp_path: Path) -> None:
    files = Files(tmp_path / "files")
    with pytest.raises(InputError, match="was altered"):
        files.put_blocks(digest(b"what"), iter([b"what", b" else"]))
    assert [one for one in tmp_path.rglob("*") if one.is_file()] == []
    files.put_blocks(digest(b"what"), iter([b"wh", b"at"]))
    assert files.get(digest(b"what")) == b"what"


def test_an_export_of_an_altered_record_is_refused(record: Record, tmp_path: Path) -> None:
    project = record.create("Credit risk", ME).id
    with record.database.writing(project) as writing:
        line = writing.lines()[0][1]
        writing.append(2, line)
    with pytest.raises(InputError, match=r"altered: Entry 2.*restore the database"):
        export_project(record, project, tmp_path / "record.zip")


LONG = "x" * 10_001
ODD_EVENTS: dict[str, Any] = {
    "a note": lambda a: LimitsLocked({"KC001": Limit(high=0.1)}, LONG),
    "limits": lambda a: LimitsLocked({f"KC{at}": Limit(high=0.1) for at in range(1_001)}),
    "a check's code": lambda a: LimitsLocked({LONG: Limit(high=0.1)}),
    "the words of a finding": lambda a: FindingChanged(a.id, "f", "resolved", "low", words=LONG),
    "a finding's id": lambda a: FindingOpened(a.id, "f" * 129, "Drift", "low"),
    "a headline": lambda a: replace(a.facts, audit="b", headline=LONG),
    "an audit's id": lambda a: replace(a.facts, audit="b" * 129),
    "a file": lambda a: replace(a.facts, audit="b", content="../audits.sqlite"),
    "a verdict": lambda a: replace(a.facts, audit="b", verdict="perfect"),
    "rows": lambda a: replace(a.facts, audit="b", n=-1),
    "many rows": lambda a: replace(a.facts, audit="b", n=10**30),
    "since when": lambda a: replace(a.facts, audit="b", results_known=LONG),
    "a model": lambda a: replace(a.facts, audit="b", model="0" * 129),
    "a subject": lambda a: MemberSet("i", "s" * 2_001, "Ann", "administrator"),
    "an issuer": lambda a: MemberSet("i" * 2_001, "s", "Ann", "administrator"),
    "why files went": lambda a: FilesDeleted((a.id,), (a.facts.content,), LONG),
    "more files than audits": lambda a: FilesDeleted((a.id,), ("0" * 64,) * 2, "asked"),
    "an audit twice": lambda a: FilesDeleted((a.id, a.id), (), "asked"),
    "half a character": lambda a: Commented(a.id, "half \ud800"),
}


@pytest.mark.parametrize("event", ODD_EVENTS.values(), ids=ODD_EVENTS)
def test_what_is_too_long_or_odd_is_neither_written_nor_read(
    record: Record, content: AuditContent, event: Any
) -> None:
    project = record.create("Credit risk", ME).id
    audit = record.draft(project, content, ME)
    record.write(project, FindingOpened(audit.id, "f", "Drift", "low"), ME)
    asked = event(audit)
    with pytest.raises(InputError) as caught:
        record.write(project, asked, ME)
    assert len(str(caught.value)) < 500
    assert len(record.database.read(project)) == 3
    append(record, project, what=type(asked).__name__, body=asked)
    (said,) = verify(record, project).altered
    assert said.startswith("Entry 4 breaks a rule: ")


def append(record: Record, project: str, **more: Any) -> None:
    """A line without a look at the rules, as somebody with the key could write it."""
    from kdcal_core.store import encode

    with record.database.writing(project) as writing:
        last = writing.lines()[-1][1]
        entry = json.loads(last.payload)
        entry |= {"number": entry["number"] + 1, "previous": digest(last.payload)}
        entry |= {name: encode(value) for name, value in more.items()}
        signed = signer_of(record.root).sign(json.dumps(entry).encode(), ENTRY)
        writing.append(entry["number"], signed)


@pytest.mark.parametrize(
    "at",
    ["", "yesterday", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00", "2026-01-01T00:00:00Z" * 99],
)
def test_a_time_that_is_none_is_neither_written_nor_read(record: Record, at: str) -> None:
    project = record.create("Credit risk", ME).id
    record._clock = lambda: Moment(at, "a test")
    with pytest.raises(InputError, match="is no time of a record"):
        record.create("Fraud", ME)
    body = LimitsLocked({"KC001": Limit(high=0.1)})
    append(record, project, what="LimitsLocked", body=body, when=Moment(at, "a test"))
    (said,) = verify(record, project).altered
    assert "is no time of a record" in said


def test_what_the_app_itself_may_write_is_kept(record: Record, content: AuditContent) -> None:
    long = "x" * 10_000
    who = Person("n" * 200, "i" * 2_000, "s" * 2_000, f"signed in with {'i' * 200}")
    record._clock = lambda: Moment("2026-11-25T16:20:00.123456Z", f"clock of {'h' * 255}")
    project = record.create("x" * 200, who).id
    record.write(project, MemberSet(ANN.issuer, ANN.subject, "a" * 200, "reviewer"), who)
    record.write(project, LimitsLocked(content.limits, "n" * 500), who)
    audit = record.draft(
        project, replace(content, title="t" * 200), who, begun=Begun(None, "since, in the app")
    ).id
    record.write(project, AuditSubmitted(audit), who)
    record.write(project, FindingOpened(audit, "f" * 16, "t" * 200, "low", "o" * 200), who)
    record.write(
        project, FindingChanged(audit, "f" * 16, "accepted", "low", "o" * 200, "", long), who
    )
    record.write(project, Commented(audit, long), who)
    record.delete_files(project, (audit,), long, who)
    assert verify(record, project).holds
