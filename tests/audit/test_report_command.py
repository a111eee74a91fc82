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
