"""A disk that is really full: nothing that was confirmed is lost, and one error says what to do.

A disk whose calls fail as told is tried in test_database; here the system refuses.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import postgres
import pytest
import sqlalchemy as sql
from audit_people import ME
from audit_place import Place
from small_disk import full, small_disk
from test_database import EARLIER, NEWEST, holds, old_place, revision_of
from workerless import working_here

from kdcal_core.audit import (
    AuditContent,
    AuditSubmitted,
    Commented,
    FindingOpened,
    Record,
    export_project,
    verify,
)
from kdcal_core.cli import main
from kdcal_core.errors import InputError
from kdcal_core.review import Workspace, read_review
from kdcal_core.review.added_files import add_table
from kdcal_core.review.steps import create_review

SAMPLE = Path(__file__).parents[2] / "sample_data" / "digits_predictions"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", 8) as mounted:
        yield mounted


def files_of(folder: Path) -> set[Path]:
    return {one for one in folder.rglob("*") if one.is_file()}


def test_submitting_and_drafting_on_a_full_disk(disk: Path, content: AuditContent) -> None:
    record = Record(disk / "audits", "")
    project = record.create("Credit risk", ME).id
    audit = record.draft(project, content, ME).id
    before, files = record.project(project), files_of(disk / "audits" / "files")
    with full(disk):
        for act in (
            lambda: record.write(project, AuditSubmitted(audit), ME),
            lambda: record.write(project, Commented(audit, "Why?"), ME),
            lambda: record.write(project, FindingOpened(audit, "f", "Drift", "low"), ME),
            lambda: record.draft(project, content, ME),
            lambda: record.create("Fraud", ME),
        ):
            with pytest.raises(InputError, match="Free space on its disk"):
                act()
        assert record.project(project) == before
        assert verify(record, project).holds
        again = Record(disk / "audits", "")  # kdcal is started on the full disk
        assert again.project(project) == before
        again.database.close()
    assert files_of(disk / "audits" / "files") == files
    record.write(project, AuditSubmitted(audit), ME)
    assert record.project(project).audits[audit].state == "submitted"
    assert verify(record, project).holds
    record.database.close()


def test_files_of_a_new_audit_on_a_full_disk(
    place: Place, disk: Path, content: AuditContent
) -> None:
    """Where the database lies elsewhere."""
    record = Record(disk / "audits", place.url) if place.url else place.open()
    record.files.folder = disk / "files"
    project = record.create("Credit risk", ME).id
    with (
        full(disk),
        pytest.raises(InputError, match=r"files of audits cannot be written.*Free space"),
    ):
        record.draft(project, content, ME)
    assert record.project(project).audits == {}
    assert files_of(disk / "files") == set()
    assert record.draft(project, content, ME).state == "draft"
    assert verify(record, project).holds
    record.database.close()


def test_reports_and_exports_on_a_full_disk(
    disk: Path,
    content: AuditContent,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path / "home"))
    record = Record()
    project = record.create("Credit risk", ME).id
    audit = record.draft(project, content, ME).id
    report, archive, receipt = (disk / one for one in ("r.html", "a.zip", "r.json"))
    report.write_text("the report of before")
    with full(disk):
        for words in (
            ["report", audit, "--out", str(report), "--force"],
            ["export", "--project", "Credit risk", "--out", str(archive)],
            ["backup", str(disk / "b.zip")],
            ["submit", audit, "--receipt", str(receipt)],
        ):
            assert main(["audit", *words]) == 2
            said = capsys.readouterr().err
            assert said.count("\n") == 1
            assert "No space left on device" in said
        assert "Entry 3 is kept, and the audit is submitted, but there is no receipt" in said
        assert report.read_text() == "the report of before"
        assert {one.name for one in disk.iterdir()} == {"r.html", ".filler"}
    assert record.project(project).audits[audit].state == "submitted"
    assert main(["audit", "report", audit, "--out", str(report), "--force"]) == 0
    assert export_project(record, project, archive) == 3
    assert verify(record, project).holds
    record.database.close()


def test_a_table_for_a_full_disk(disk: Path) -> None:
    workspace = Workspace(disk / "reviews")
    review = create_review(workspace).id
    with working_here():
        first, second = (SAMPLE / f"{one}.parquet" for one in ("calibration", "evaluation"))
        add_table(workspace, review, "calibration", first, "first.parquet", target="label")
        before, files = read_review(workspace, review), files_of(disk)
        with full(disk):
            with pytest.raises((InputError, OSError), match="No space left"):
                add_table(workspace, review, "calibration", second, "second.parquet")
            assert read_review(workspace, review) == before
        assert files_of(disk) == files
        add_table(workspace, review, "calibration", second, "second.parquet")
    assert read_review(workspace, review).tables["calibration"].name == "second.parquet"


def test_the_backup_of_an_upgrade_on_a_full_disk(
    place: Place, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDCAL_UPGRADE", "1")
    place = Place(disk / "audits", place.url)
    project = old_place(place, EARLIER[-1])
    with full(disk, but=1 << 14):
        with pytest.raises(InputError, match=r"backup .* cannot be written .*Free space"):
            place.open()
        assert revision_of(place) == EARLIER[-1]
        assert files_of(place.root / "backups") == set()
    record = place.open()
    assert revision_of(place) == NEWEST
    holds(record, project)
    record.database.close()


@pytest.fixture
def server_disk() -> Iterator[Path]:
    """A disk that PostgreSQL's own user reaches, and on which its files have room."""
    if postgres.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    outside = Path(tempfile.mkdtemp(prefix="kdcal-disk-"))
    outside.chmod(0o755)
    try:
        with small_disk(outside / "disk", 90) as mounted:
            mounted.chmod(0o755)
            yield mounted
    finally:
        shutil.rmtree(outside)


def test_a_server_on_a_full_disk(server_disk: Path, tmp_path: Path, content: AuditContent) -> None:
    with postgres.server(server_disk / "server") as url:
        record = Place(tmp_path / "audits", url).open()
        project = record.create("Credit risk", ME).id
        audit = record.draft(project, content, ME).id

        # no room for another page of a table: the server refuses, and goes on
        with full(server_disk):
            confirmed, fix = write_until_refused(record, project, audit)
            assert fix == "Free space on its disk. Nothing of this was written."
            assert record.project(project).number == confirmed
            assert verify(record, project).holds
        confirmed = record.write(project, Commented(audit, "There is room."), ME)

        # no room for its log: the server ends in the middle of a transaction
        with full(server_disk):
            for _ in range(50):
                try:
                    begin_a_new_log(url)
                    confirmed = record.write(project, Commented(audit, "More."), ME)
                except (InputError, sql.exc.DBAPIError):
                    if said_if_down(record, project):
                        break
            said = said_if_down(record, project)
            assert "The database of audits cannot be used" in said
            assert "What was confirmed before is kept." in said
        postgres.stop(server_disk / "server")
        postgres.start(server_disk / "server", url)
        assert record.project(project).number == confirmed
        assert verify(record, project).holds
        record.write(project, AuditSubmitted(audit), ME)
        assert record.project(project).audits[audit].state == "submitted"
        record.database.close()


def begin_a_new_log(url: str) -> None:
    """Have the server write what follows into another file of its log."""
    engine = sql.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql("SELECT pg_switch_wal()")
    finally:
        engine.dispose()


def write_until_refused(record: Record, project: str, audit: str) -> tuple[int, str | None]:
    """The last entry that was confirmed, and how to mend what refused the next one."""
    confirmed = record.project(project).number
    for _ in range(1_000):
        try:
            confirmed = record.write(project, Commented(audit, "x" * 9_000), ME)
        except InputError as error:
            return confirmed, error.fix
    raise AssertionError("the disk is not full")


def said_if_down(record: Record, project: str) -> str:
    """The error where the server does not answer; empty where it does."""
    try:
        record.project(project)
    except InputError as error:
        return str(error)
    return ""
