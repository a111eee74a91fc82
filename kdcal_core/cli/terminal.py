"""Input and output of every command: tables and progress on a terminal, standard input, files.

A table from standard input is stored in a file, because the readers need one. The output file is
checked before anything is computed.
"""

from __future__ import annotations

import argparse
import codecs
import secrets
import shutil
import sys
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple, TextIO

from kdcal_core.errors import InputError
from kdcal_core.progress import Progress
from kdcal_core.text import JOINER, MINUS, printable, typed

SHOWABLE = "kdcal.showable"
"""Error handling of a stream that cannot show every character: a class name must not stop the
command, and a minus sign, which few old terminals have, becomes a hyphen."""


def _showable(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return "".join("-" if sign == MINUS else "?" for sign in lost), error.end


codecs.register_error(SHOWABLE, _showable)


def for_stream(text: str, stream: TextIO) -> str:
    """The text, its numbers as one types them where the stream has no signs of powers of ten."""
    try:
        "⁻⁷".encode(getattr(stream, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return typed(text)
    return text


_WIDEST = 80
_NARROWEST = 12  # least width of a column of text


class Report(NamedTuple):
    """What a command prints, its exit code, and whether --quiet leaves the text.

    ``asked`` is for what the user named as the output: JSON, or a list.
    """

    text: str
    code: int = 0
    asked: bool = False


_QUIET = ContextVar("quiet", default=False)


@contextmanager
def quieted(quiet: bool) -> Iterator[None]:
    """Print neither progress nor warnings in the body, if so asked.

    Examples
    --------
    >>> with quieted(True):
    ...     warn("Nobody reads this.")
    """
    before = _QUIET.set(quiet)
    try:
        yield
    finally:
        _QUIET.reset(before)


def warn(what: str) -> None:
    """Print a warning on stderr, beside JSON on stdout, unless the command is quiet."""
    if not _QUIET.get():
        print(f"kdcal: warning: {what}", file=sys.stderr)


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: Sequence[int] = (0,),
    below: Sequence[str] = (),
) -> str:
    """Rows under a header in columns, aligned to the left for those in ``left``, else to the right.

    The table is at most 80 columns wide, the width of a plain terminal, unless its numbers are
    wider: the text of the widest columns in ``left`` is wrapped.

    Parameters
    ----------
    header : sequence of str
    rows : sequence of rows, each with as many cells as the header
    left : sequence of int
        Columns of text.
    below : sequence of str
        Text under each row, slightly indented; empty, or one for every row.

    Examples
    --------
    >>> print(table(("class", "rows"), [("ham", "1,200"), ("spam", "7")]))
    class   rows
    ham    1,200
    spam       7
    >>> print(table(("class", "rows"), [("ham", "1,200")], below=["What is wanted."]))
    class   rows
    ham    1,200
      What is wanted.
    """
    grid = [[printable(cell) for cell in row] for row in (header, *rows)]
    widths = [max(width(row[j]) for row in grid) for j in range(len(header))]
    while sum(widths) + 2 * (len(widths) - 1) > _WIDEST:
        widest = max(left, key=lambda j: widths[j])
        if widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
    lines: list[str] = []
    for at, row in enumerate(grid):
        cells = [
            # signs without a width are no reason to wrap, although ``wrap`` counts them
            wrap(cell, widths[j]) if j in left and width(cell) > widths[j] else [cell]
            for j, cell in enumerate(row)
        ]
        for i in range(max(map(len, cells))):
            part = [cell[i] if i < len(cell) else "" for cell in cells]
            lines.append("  ".join(_aligned(part, widths, left)).rstrip())
        if below and at:
            under = wrap(printable(below[at - 1]), _WIDEST - 2)
            lines += [f"  {line}" for line in under]
    return "\n".join(lines)


def _aligned(row: Sequence[str], widths: Sequence[int], left: Sequence[int]) -> list[str]:
    blanks = [" " * (wanted - width(cell)) for cell, wanted in zip(row, widths, strict=True)]
    return [
        cell + blank if j in left else blank + cell
        for j, (cell, blank) in enumerate(zip(row, blanks, strict=True))
    ]


def width(text: str) -> int:
    """The width of a text in a terminal.

    Examples
    --------
    >>> width("ab"), width("表"), width("e\\u0301"), width("👩\\u200d👩")
    (2, 2, 1, 4)
    """
    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    none = sum(unicodedata.combining(sign) > 0 or sign == JOINER for sign in text)
    return len(text) + wide - none


_WIDTH = 79  # a full line would wrap on some terminals


@contextmanager
def progress_line() -> Iterator[Progress | None]:
    """A function that shows progress on stderr if that is a terminal, and ends the line.

    None where nothing is to be shown, which holds for a quiet command too.
    """
    if _QUIET.get() or not sys.stderr.isatty():
        yield None
        return
    shown = False

    def show(share: float, note: str) -> None:
        nonlocal shown
        shown = True
        percent = f"{share:4.0%} " if share > 0.0 else ""
        line = printable(f"{percent}{note}", _WIDTH)
        print(f"\r{line:<{_WIDTH}}", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if shown:
            print(file=sys.stderr)


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
    with temporary_folder() as folder:
        path = folder / _FILE
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield argparse.Namespace(**{**vars(options), asked[0]: str(path)})


@contextmanager
def temporary_folder(where: Path | None = None) -> Iterator[Path]:
    """A folder of this user alone, which is deleted afterwards, whenever a signal ends the work.

    It lies in the folder ``where``, hidden, or among temporary files.

    `tempfile.TemporaryDirectory` leaves it behind if the signal comes between its making and the
    note that it must go.

    Examples
    --------
    >>> with temporary_folder() as folder:
    ...     folder.is_dir()
    True
    >>> folder.exists()
    False
    """
    name = f"kdcal-{secrets.token_hex(16)}"  # of its own
    folder = Path(tempfile.gettempdir()) / name if where is None else where / f".{name}"
    with ExitStack() as after:
        after.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        yield folder


def check_out(
    out: str, reads: Iterable[str | None], *, force: bool = False, makes_folder: bool = False
) -> None:
    """Refuse a file to write that exists, is not a regular file, or whose folder is missing.

    Parameters
    ----------
    out : str
        The file to write.
    reads : iterable of str or None
        The files that are read, or None where one is not given. They are never overwritten.
    force : bool
        Whether another existing file may be overwritten.
    makes_folder : bool
        Whether its folder will be made if it is missing.

    Raises
    ------
    InputError
        The file cannot be written, or would replace one that is read.

    Examples
    --------
    >>> check_out("no-such-folder/a.json", ["a.csv", None])
    Traceback (most recent call last):
    kdcal_core.errors.InputError: The folder to write into does not exist (file ...
    """
    path = Path(out)
    if not makes_folder and not path.absolute().parent.is_dir():
        raise InputError(
            "The folder to write into does not exist", fix="Create it first.", file=out
        )
    if path.is_dir():
        raise InputError("The file to write is a folder", fix="Name a file in it.", file=out)
    if path.exists() and not path.is_file():
        raise InputError(
            "The file to write is a pipe or a device", fix="Name a regular file.", file=out
        )
    keep_what_is_read(out, reads)
    if path.exists() and not force:
        raise InputError(
            "The file to write exists already",
            fix="Choose another name, or add --force to overwrite it.",
            file=out,
        )


def keep_what_is_read(out: str, reads: Iterable[str | None]) -> None:
    """Refuse a file to write that is one of those that are read, under whatever name or link.

    Raises
    ------
    InputError
        If it is.
    """
    path = Path(out)
    if path.exists() and any(Path(read).exists() and path.samefile(read) for read in reads if read):
        raise InputError(
            "The file to write is one of those that are read", fix="Choose another name.", file=out
        )


def check_new_folder(out: str) -> None:
    """Refuse a folder to write that exists, or that cannot be made.

    Raises
    ------
    InputError
    """
    path = Path(out)
    if path.exists() or path.is_symlink():
        raise InputError("The folder to write exists already", fix="Choose another name.", file=out)
    if not path.absolute().parent.is_dir():
        raise InputError(
            "The folder to write into does not exist", fix="Create it first.", file=out
        )


def out_folder(name: str) -> Path:
    """The folder to write into, made if need be.

    Raises
    ------
    InputError
        If there is a file of this name.
    """
    out = Path(name)
    if out.exists() and not out.is_dir():
        raise InputError("The folder to write into is a file", fix="Name a folder.", file=name)
    out.mkdir(parents=True, exist_ok=True)
    return out


def write_file(path: Path, content: bytes) -> None:
    """Write a file completely or not at all."""
    from kdcal_core.store import new_file

    with new_file(path) as made:
        made.write_bytes(content)
