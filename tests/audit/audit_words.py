"""What `kdcal audit` prints, in the test's process."""

from __future__ import annotations

import pytest

from kdcal_core.cli import main


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """All that the command prints, which ends with this exit code."""
    capsys.readouterr()
    assert main(["audit", *words]) == code
    found = capsys.readouterr()
    return found.out + found.err
