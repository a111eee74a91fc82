"""A table from standard input, kept in a file because every reader needs one."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kdcal_core.errors import InputError

_NAMES = ("data", "predictions", "evaluation", "training")
_FILE = "standard input"


@contextmanager
def with_standard_input(options: argparse.Namespace) -> Iterator[argparse.Namespace]:
    """The options with a temporary file in place of "-"; the file is deleted afterwards.

    Raises
    ------
    InputError
        Two tables are "-", or nothing is piped in.
    """
    asked = [name for name in _NAMES if getattr(options, name, None) == "-"]
    if not asked:
        yield options
        return
    if len(asked) > 1:
        raise InputError("Only one table can be standard input", fix="Give the other as a file.")
    if sys.stdin.isatty():
        raise InputError(
            f"--{asked[0]} - reads standard input, and nothing is piped in",
            fix="Pipe a table in, or name a file.",
        )
    with tempfile.TemporaryDirectory(prefix="kdcal-") as folder:
        path = Path(folder) / _FILE
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield argparse.Namespace(**{**vars(options), asked[0]: str(path)})
