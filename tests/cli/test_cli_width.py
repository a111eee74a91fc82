"""A terminal of 80 columns: help and tables fit."""

from __future__ import annotations

import re
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdcal_core.cli import main
from kdcal_core.cli.arguments import parser
from kdcal_core.cli.terminal import width

SAMPLES = Path(__file__).parents[2] / "sample_data"
pytestmark = pytest.mark.usefixtures("work_here")


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


@pytest.mark.parametrize(
    "words",
    [
        ("digits_predictions/calibration.parquet", "--target", "label"),
        ("diamonds_quantiles/calibration.parquet", "--target", "price", "--by", "carat,cut"),
    ],
)
def test_the_tables_of_diagnose_fit_80_columns(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    table, *more = words
    assert main(["diagnose", "--predictions", str(SAMPLES / table), *more]) == 0
    lines = [one for one in capsys.readouterr().out.splitlines() if re.search(r"\S  +\S", one)]
    assert len(lines) > 10
    assert [line for line in lines if width(line) > 80] == []
