"""Bad input: one error type, which says what is wrong, where and how to fix it, and warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

LONGEST_NAME = 200  # letters of a file's or column's name that are shown


class InputError(ValueError):
    """Bad input, described so that the person who sent it can fix it.

    Parameters
    ----------
    what : str
        What is wrong, as a sentence without its final full stop.
    fix : str
        How to fix it, as a full sentence. May be empty where nothing helps.
    file, column : str, optional
        Where it is. Names come from the user's files and are untrusted: escape them
        (``kdcal_core.data.escape_markdown``) before they reach a screen.
    row : int, optional
        Row of the table, counted from 1 at the first row of data (a CSV header is row 0).

    Examples
    --------
    >>> error = InputError("The value is missing", fix="Fill it in.", column="age", row=3)
    >>> str(error)
    "The value is missing (column 'age', row 3). Fill it in."
    """

    def __init__(
        self,
        what: str,
        *,
        fix: str = "",
        file: str | None = None,
        column: str | None = None,
        row: int | None = None,
    ) -> None:
        self.what = what.rstrip(". ")
        self.fix = fix
        self.file = file
        self.column = column
        self.row = row
        super().__init__(self._sentence())

    @property
    def where(self) -> str:
        """The place as text, for example ``file 'a.csv', column 'age', row 3``; may be empty."""
        parts = []
        if self.file is not None:
            parts.append(f"file {_short(self.file)!r}")
        if self.column is not None:
            parts.append(f"column {_short(self.column)!r}")
        if self.row is not None:
            parts.append(f"row {self.row:,}")
        return ", ".join(parts)

    def _sentence(self) -> str:
        where = f" ({self.where})" if self.where else ""
        fix = f" {self.fix}" if self.fix else ""
        return f"{self.what}{where}.{fix}"

    def at(
        self, *, file: str | None = None, column: str | None = None, row: int | None = None
    ) -> InputError:
        """The same error with the places filled in that it did not know yet."""
        return type(self)(
            self.what,
            fix=self.fix,
            file=self.file if self.file is not None else file,
            column=self.column if self.column is not None else column,
            row=self.row if self.row is not None else row,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions with keyword-only arguments do not pickle by themselves, and this one
        # has to cross from the worker process that parses a file.
        return _rebuild, (type(self), self.what, self.fix, self.file, self.column, self.row)


class NewerVersionError(InputError):
    """Input that a newer version of kdcal wrote: it may hold, and this version cannot say so."""


def _short(name: str) -> str:
    """A name of any length as a sentence can hold it; the error itself keeps it whole."""
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}..."


def _rebuild(
    kind: type[InputError],
    what: str,
    fix: str,
    file: str | None,
    column: str | None,
    row: int | None,
) -> InputError:
    return kind(what, fix=fix, file=file, column=column, row=row)


class InputWarning(UserWarning):
    """The input can be used, but the user should know what was done with it."""


_said: ContextVar[list[str] | None] = ContextVar("said", default=None)


def warn(sentence: str, *, stacklevel: int = 1) -> None:
    """Issue an :class:`InputWarning`, or say the sentence to whoever is :func:`quiet`.

    Parameters
    ----------
    sentence : str
    stacklevel : int
        As in ``warnings.warn``: 1 is the line that calls this.

    Examples
    --------
    >>> with quiet() as said:
    ...     warn("The quantiles cross.")
    >>> said
    ['The quantiles cross.']
    """
    said = _said.get()
    if said is None:
        warnings.warn(sentence, InputWarning, stacklevel=stacklevel + 1)
    else:
        said.append(sentence)


@contextmanager
def quiet() -> Iterator[list[str]]:
    """Issue no :class:`InputWarning` inside; their sentences are in the list.

    For this thread alone, unlike ``warnings.catch_warnings``, whose filters all threads share: two
    fits at once would switch each other's off.
    """
    said: list[str] = []
    token = _said.set(said)
    try:
        yield said
    finally:
        _said.reset(token)


_LIBRARIES = {"sklearn": "scikit-learn", "xgboost": "xgboost-cpu"}


def missing_library(error: ModuleNotFoundError) -> InputError:
    """The error for a library that is not installed, with the line that installs it.

    Examples
    --------
    >>> str(missing_library(ModuleNotFoundError("no", name="onnxruntime.capi")))
    "The library 'onnxruntime' is not installed. Install it: pip install onnxruntime"
    """
    package = (error.name or "").partition(".")[0]
    name = _LIBRARIES.get(package, package)
    return InputError(
        f"The library {name!r} is not installed", fix=f"Install it: pip install {name}"
    )
