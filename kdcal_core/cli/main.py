"""Run a command; report any error as one line and an exit code."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import NoReturn

from kdcal_core.cli.arguments import parser
from kdcal_core.cli.terminal import SHOWABLE, Report, for_stream, quieted
from kdcal_core.errors import InputError, missing_library
from kdcal_core.quotas import check_quotas
from kdcal_core.text import printable

BAD_INPUT = 2
UNFORESEEN = 70  # "internal software error" of sysexits.h
CLOSED_PIPE = 141  # what a shell reports for a program ended by SIGPIPE
CANCELLED = 130  # what a shell reports for a program ended by Ctrl-C


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``kdcal``.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after ``kdcal``; by default those of this process.

    Returns
    -------
    int
        Exit code: 0, or that of a gate; 2 for bad input and 70 for a fault of kdcal, each with one
        line on stderr; 130 after Ctrl-C; 141 if the reader of the report closed the pipe, after all
        files were written.

    Raises
    ------
    SystemExit
        With code 2 where the arguments are wrong, 0 for ``--help`` and ``--version``, 143
        where the process received SIGTERM.

    Examples
    --------
    >>> main(["convert", "no-such-file.pkl", "--out", "model.skops"])
    2
    """
    _open_standard_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=SHOWABLE)
    options = parser().parse_args(arguments)
    # Users do not need a library's deprecation warnings.
    warnings.simplefilter("ignore", category=FutureWarning)
    warnings.simplefilter("ignore", category=DeprecationWarning)
    quiet = getattr(options, "quiet", False)
    if quiet:
        warnings.simplefilter("ignore")
    try:
        check_quotas()
        with quieted(quiet), _unwound_when_terminated():
            said = import_module(f"kdcal_core.cli.{options.command}").run(options)
    except InputError as error:
        return _fail(str(error))
    except ModuleNotFoundError as error:
        return _fail(str(missing_library(error)))
    except OSError as error:
        return _fail(f"{error.filename or 'A file'}: {error.strerror or error}.")
    except KeyboardInterrupt:
        return CANCELLED
    except Exception as error:
        return _fail(f"Unexpected error: {type(error).__name__}: {error}", UNFORESEEN)
    report = said if isinstance(said, Report) else Report(said)
    if quiet and not report.asked:
        return report.code
    return _say(report.text) or report.code


def _open_standard_streams() -> None:
    """Open closed standard streams on the null device, as a daemon does.

    Python sets them to None, and prints what is meant for a closed stderr to stdout.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # opened in this order, each takes its own number, which no other file can then take
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115


def _say(text: str) -> int:
    """Print the report of a command, after all its files are written."""
    try:
        print(for_stream(text, sys.stdout))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as "head", closed the pipe; Python's flush at exit must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    except OSError as error:
        return _fail(f"The report cannot be printed: {error.strerror or error}.")
    return 0


@contextmanager
def _unwound_when_terminated() -> Iterator[None]:
    """End the body on SIGTERM as on Ctrl-C, so that no partial file is left."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _fail(what: str, code: int = BAD_INPUT) -> int:
    print(for_stream(f"kdcal: {printable(what)}", sys.stderr), file=sys.stderr)
    return code
