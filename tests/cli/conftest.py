"""What the tests of several commands use."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import commands
import pytest


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command by its words: exit code, standard output and standard error."""
    return partial(commands.run, capsys)
