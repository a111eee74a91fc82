"""A terminal of 80 columns: help and tables fit."""

from __future__ import annotations

from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator

import pytest

from kdcal_core.cli.arguments import parser
from kdcal_core.cli.terminal import width


def parsers(one: ArgumentParser) -> Iterator[ArgumentParser]:
    yield one
    for action in one._actions:
        if isinstance(action, _SubParsersAction):
            for command in action.choices.values():
                yield from parsers(command)


def test_every_help_fits_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    every = list(parsers(parser()))
    assert len(every) > 20
    for one in every:
        for line in one.format_help().splitlines():
            assert width(line) <= 80, (one.prog, line)
