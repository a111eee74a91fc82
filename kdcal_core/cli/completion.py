"""``kdcal completion``: a script that completes the words of ``kdcal`` when Tab is pressed."""

from __future__ import annotations

import argparse
from typing import Any

import shtab

from kdcal_core.cli.arguments import parser

# As the arguments name what they take.
_PATHS = {"FILE": shtab.FILE, "TABLE": shtab.FILE, "SOURCE": shtab.FILE, "DIR": shtab.DIRECTORY}


def run(options: argparse.Namespace) -> str:
    """The completion script of a shell.

    Parameters
    ----------
    options : Namespace
        ``shell`` : {"bash", "zsh", "fish"}.

    Examples
    --------
    >>> script = run(argparse.Namespace(shell="bash"))
    >>> script.splitlines()[-1]
    'complete -o bashdefault -F _shtab_kdcal kdcal'
    """
    return shtab.complete(with_paths(parser()), options.shell).rstrip()


def with_paths(words: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The parser, whose arguments that take a file or a folder say so to a shell.

    Examples
    --------
    >>> one = with_paths(parser())
    >>> one.prog
    'kdcal'
    """
    for action in words._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                with_paths(command)
        elif isinstance(action.metavar, str) and action.metavar in _PATHS:
            asked: Any = action  # argparse does not know the attribute that shtab reads
            asked.complete = _PATHS[action.metavar]
    return words
