"""``kdcal audit report`` writes what the suffix names."""

from __future__ import annotations

from pathlib import Path

import pytest
from audit_people import ME

from kdcal_core.audit import AuditContent, Record
from kdcal_core.cli import main

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
