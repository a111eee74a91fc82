"""Limits on what a file unpacks to: a few stored bytes may expand to gigabytes."""

from __future__ import annotations

import json
from typing import Any

from kdcal_core.errors import InputError

#: Bytes that any file may unpack to, however small it is, unless its reader gives another limit.
FREE_BYTES = 128 << 20
_MOST_ITEMS = 2_000_000  # lists and objects in a JSON text; each takes some 60 bytes, and two here
_HARM = "It is damaged, or built to fill the memory. Write it again from its source."


def check_ratio(
    stored: int, unpacked: int, most: int, *, free: int = FREE_BYTES, file: str | None = None
) -> None:
    """Refuse a file that unpacks to more than ``most`` times what it stores.

    Raises
    ------
    InputError
        It does, and to more than ``free`` bytes.

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
    """``json.loads`` of a text that does not unpack to a multiple of its size.

    Parameters
    ----------
    text : bytes
        UTF-8.
    most_values : int, optional
        How many values of any kind it may hold; short texts take ten times their bytes.
    **how
        As for ``json.loads``.

    Raises
    ------
    InputError
        It holds more than two million lists and objects, or too many values.
    ValueError, RecursionError
        The text is not JSON, or nested too deeply.

    Examples
    --------
    >>> read_json(b'{"a": [1]}')
    {'a': [1]}
    """
    n_items = text.count(b"[") + text.count(b"{")
    if n_items > _MOST_ITEMS:
        raise InputError(
            f"The JSON content holds {n_items:,} lists and objects; the limit is {_MOST_ITEMS:,}",
            fix=_HARM,
        )
    n_values = n_items + text.count(b",")
    if most_values is not None and n_values > most_values:
        raise InputError(
            f"The JSON content holds {n_values:,} values; the limit is {most_values:,}", fix=_HARM
        )
    return json.loads(text, **how)
