"""``kdcal audit report`` writes what the suffix names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from audit_people import ME
from audit_place import Place

from kdcal_core.audit import (
    AuditContent,
    AuditSubmitted,
    Commented,
    FindingOpened,
    Record,
    database,
)
from kdcal_core.audit.report import (
    print_recorded,
    printed_file,
    recorded,
    recorded_report,
    to_print,
)
from kdcal_core.cli import main
from kdcal_core.jobs import jobs

BROWSER = """#!/bin/sh
for one in "$@"; do
    case "$one" in
        --screenshot=*) printf 'a picture' > "${one#*=}" ;;
        --print-to-pdf=*) printf 'pages' > "${one#*=}" ;;
    esac
done
"""


def test_the_report_of_an_audit_whose_files_were_deleted_is_refused(
    content: AuditContent,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path / "home"))
    record = Record()
    project = record.create("P", ME).id
    audit = record.draft(project, content, ME).id
    record.delete_files(project, (audit,), "too old", ME)
    record.database.close()
    for name in ("r.html", "r.md", "r.pdf"):
        assert main(["audit", "report", audit, "--out", str(tmp_path / name)]) == 2
        said = capsys.readouterr().err
        assert "The files of this audit were deleted, as its history says" in said
        assert not (tmp_path / name).exists()
    assert main(["audit", "compare", audit, audit]) == 2
    assert main(["audit", "show", audit]) == 0
    assert "Its files were deleted. It said: " in capsys.readouterr().out


@pytest.mark.parametrize(("name", "made"), [("r.png", b"a picture"), ("R.PDF", b"pages")])
def test_a_browser_prints_what_the_suffix_names(
    content: AuditContent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, made: bytes
) -> None:
    browser = tmp_path / "browser"
    browser.write_text(BROWSER)
    browser.chmod(0o700)
    monkeypatch.setenv("KDCAL_CHROMIUM", str(browser))
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path / "home"))
    record = Record()
    audit = record.draft(record.create("P", ME).id, content, ME).id
    record.database.close()
    out = tmp_path / name
    assert main(["audit", "report", audit, "--out", str(out)]) == 0
    assert out.read_bytes() == made


def test_a_worker_prints_what_is_downloaded_and_reaches_no_database(
    place: Place, content: AuditContent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker's environment has no address of a database, which may hold a password."""
    record = place.open()
    project = record.create("P", ME).id
    record.lock(project, content.limits, ME)
    audit = record.draft(project, content, ME).id
    record.write(project, FindingOpened(audit, "f", "Drift", "high"), ME)
    record.write(project, AuditSubmitted(audit), ME)
    record.create("Q", ME)
    record.write(project, Commented(record.draft(project, content, ME).id, "Of another."), ME)
    known = record.project(project)
    given = to_print(record, known, known.audits[audit])
    downloaded = recorded_report(record, known, known.audits[audit])
    record.database.close()
    monkeypatch.setitem(recorded._PRINTERS, "pdf", bytes)
    monkeypatch.setattr(database, "_engine", None)
    print_recorded(**json.loads(json.dumps(given)), kind="pdf", folder=str(tmp_path))
    assert printed_file(tmp_path, "pdf").read_bytes() == downloaded


def test_a_job_prints_an_audit_of_either_database(
    place: Place, content: AuditContent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = tmp_path / "browser"
    browser.write_text(BROWSER)
    browser.chmod(0o700)
    monkeypatch.setenv("KDCAL_CHROMIUM", str(browser))
    if place.url is not None:
        monkeypatch.setenv("KDCAL_DATABASE_URL", place.url)
    record = place.open()
    project = record.create("P", ME)
    audit = record.draft(project.id, content, ME)
    given = to_print(record, record.project(project.id), audit)
    record.database.close()
    before = {one.name for one in place.root.iterdir()}
    target = "kdcal_core.audit.report.recorded:print_recorded"
    done = jobs().submit(
        target, {**given, "kind": "pdf"}, key=f"{audit.id}{place.url}", title="", owner=""
    )
    job = jobs().wait(done, 120)
    assert (job.state, job.error) == ("done", None)
    assert printed_file(job.folder, "pdf").read_bytes() == b"pages"
    assert {one.name for one in place.root.iterdir()} == before
