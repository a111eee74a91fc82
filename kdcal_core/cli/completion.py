"""``kdcal completion``: a script that completes the words of ``kdcal`` when Tab is pressed."""

from __future__ import annotations

import argparse
import json
from typing import Any

import shtab

from kdcal_core.cli.arguments import parser
from kdcal_core.cli.terminal import Report
from kdcal_core.offers import written_keys

# As the arguments name what they take.
_PATHS = {"FILE": shtab.FILE, "TABLE": shtab.FILE, "SOURCE": shtab.FILE, "DIR": shtab.DIRECTORY}


def calibrator_keys() -> tuple[str, ...]:
    """What --calibrator KEY takes; no library is loaded for it, as Tab must not wait."""
    return tuple(
        dict.fromkeys(
            (
                *written_keys("kdcal_core.calibration", "CalibratorEntry"),
                *written_keys("kdcal_core.regression", "RecalibratorSpec", without={"comparison"}),
            )
        )
    )


def run(options: argparse.Namespace) -> Report:
    """The completion script of a shell.

    Parameters
    ----------
    options : Namespace
        ``shell`` : {"bash", "zsh", "fish"}; ``json`` : bool.

    Examples
    --------
    >>> script = run(argparse.Namespace(shell="bash", json=False)).text
    >>> script.splitlines()[-1]
    'complete -o bashdefault -F _shtab_kdcal kdcal'
    """
    script = shtab.complete(with_values(parser()), options.shell).rstrip()
    if options.json:
        return Report(json.dumps({"shell": options.shell, "script": script}, indent=2), asked=True)
    return Report(script, asked=True)


def with_values(words: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The parser, whose arguments that take a file, a folder or a key say so to a shell.

    Examples
    --------
    >>> one = with_values(parser())
    >>> one.prog
    'kdcal'
    """
    for action in words._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                with_values(command)
        elif isinstance(action.metavar, str) and action.metavar in _PATHS:
            asked: Any = action  # argparse does not know the attribute that shtab reads
            asked.complete = _PATHS[action.metavar]
        elif action.metavar == "KEY":
            action.choices = calibrator_keys()
    return words
