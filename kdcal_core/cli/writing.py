"""Checks of the file to write, before anything is computed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kdcal_core.errors import InputError


def check_out(out: str, reads: Iterable[str | None], *, force: bool = False) -> None:
    """Refuse a file to write that exists, is not a regular file, or whose folder is missing.

    Parameters
    ----------
    out : str
        The file to write.
    reads : iterable of str or None
        The files that are read; those not given are None. None of them is ever overwritten.
    force : bool
        Whether another existing file may be overwritten.

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
    if not path.absolute().parent.is_dir():
        raise InputError(
            "The folder to write into does not exist", fix="Create it first.", file=out
        )
    if path.is_dir():
        raise InputError("The file to write is a folder", fix="Name a file in it.", file=out)
    if path.exists() and not path.is_file():
        raise InputError(
            "The file to write is a pipe or a device", fix="Name a regular file.", file=out
        )
    if path.exists() and any(Path(read).exists() and path.samefile(read) for read in reads if read):
        raise InputError(
            "The file to write is one of those that are read", fix="Choose another name.", file=out
        )
    if path.exists() and not force:
        raise InputError(
            "The file to write exists already",
            fix="Choose another name, or add --force to overwrite it.",
            file=out,
        )
