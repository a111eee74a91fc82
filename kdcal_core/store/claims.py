"""Limits on the unpacked size of a file: a few stored bytes may expand to gigabytes."""

from __future__ import annotations

import json
from typing import Any

from kdcal_core.errors import InputError

#: Bytes that any file may unpack to, whatever its size, unless its reader gives another limit.
FREE_BYTES = 128 << 20
_MOST_ITEMS = 2_000_000  # lists and objects in a JSON text; each takes some 60 bytes, and two here
_HARM = "It is damaged or malicious. Write it again from its source."


def check_ratio(
    stored: int, unpacked: int, most: int, *, free: int = FREE_BYTES, file: str | None = None
) -> None:
    """Refuse a file that unpacks to more than ``most`` times its size.

    Raises
    ------
    InputError
        If it does, and to more than ``free`` bytes.

    Examples
    --------
    >>> check_ratio(1_000, 900_000, 100)
    >>> check_ratio(1_000, 900_000_000, 100)
    Traceback (most recent call last):
    kdcal_core.errors.InputError: The file of 1,000 bytes would unpack to 900,000,000 bytes, ...
    """
    if unpacked > max(free, most * stored):
        raise InputError(
            f"The file of {stored:,} bytes would unpack to {unpacked:,} bytes, more than {most:,} "
            "times its size",
            fix=_HARM,
            file=file,
        )


def read_json(text: bytes, *, most_values: int | None = None, **how: Any) -> Any:
    """``json.loads`` of a text, with a limit on its size in memory.

    Parameters
    ----------
    text : bytes
        UTF-8.
    most_values : int, optional
        Limit of the number of values of any kind; short texts take ten times their bytes.
    **how
        As for ``json.loads``.

    Raises
    ------
    InputError
        If it has more than two million lists and objects, or too many values.
    ValueError, RecursionError
        If the text is not JSON, or is nested too deeply.

    Examples
    --------
    >>> read_json(b'{"a": [1]}')
    {'a': [1]}
    """
    n_items = text.count(b"[") + text.count(b"{")
    if n_items > _MOST_ITEMS:
        raise InputError(
            f"The JSON content has {n_items:,} lists and objects; the limit is {_MOST_ITEMS:,}",
            fix=_HARM,
        )
    n_values = n_items + text.count(b",")
    if most_values is not None and n_values > most_values:
        raise InputError(
            f"The JSON content has {n_values:,} values; the limit is {most_values:,}", fix=_HARM
        )
    return json.loads(text, **how)
