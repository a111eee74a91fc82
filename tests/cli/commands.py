"""Commands run in the test's process: exit code, and what was printed."""

from __future__ import annotations

import pytest

from kdcal_core.cli import main


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of ``kdcal`` with these words."""
    try:
        code = main([str(word) for word in words])
    except SystemExit as end:
        code = int(end.code or 0)
    said = capsys.readouterr()
    return code, said.out, said.err
