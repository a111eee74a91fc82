"""Columns of text whose values read as numbers: in which ways they are written, and where."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_DIGITS = r"[+-]?\d+"
# RE2 patterns, each with what it is called and how its numbers are written plainly. A value is of
# the first kind that it fits.
_KINDS: tuple[tuple[str, str, str], ...] = (
    (rf"^\s*{_DIGITS}\s*$", "", ""),
    (rf"^\s*(?:{_DIGITS}\.?\d*|[+-]?\.\d+)(?:[eE][+-]?\d+)?\s*$", "a decimal point", ""),
    (
        r"^\s*[+-]?\d{1,3}(?:(?:,\d{3})+\.\d+|(?:,\d{3}){2,}|(?:\.\d{3})+,\d+|(?:\.\d{3}){2,}"
        r"|(?:['’ \x{A0}\x{202F}]\d{3})+(?:[.,]\d+)?)\s*$",
        "thousands separators",
        "leave the thousands separators out",
    ),
    (
        rf"^\s*(?:{_DIGITS},\d*|[+-]?,\d+)(?:[eE][+-]?\d+)?\s*$",
        "a decimal comma",
        "write all of them with a decimal point",
    ),
    (
        r"^\s*[+-]?\d*[.,]?\d+\s*%\s*$",
        "a percent sign",
        "leave the percent signs out and divide by 100",
    ),
)
_LOOKED_AT = 1_000
_MOST = 0.9  # of the values read as numbers


def almost_numbers_note(values: pa.ChunkedArray, name: str, before: int = 0) -> str | None:
    """Say so where a column of text holds numbers, written in ways that are not read as such.

    The ways are named with the first value and its row, counted from 1, and with what to change.
    ``before`` is the number of rows of the file before these.

    Examples
    --------
    >>> almost_numbers_note(pa.chunked_array([["0.05", "0,05", "0.2"]]), "p").split(":")[0]
    "Column 'p' was kept as text, though its values read as numbers"
    >>> almost_numbers_note(pa.chunked_array([["a", "b"]]), "p") is None
    True
    """
    if _share_of_numbers(values.slice(0, _LOOKED_AT)) < _MOST:
        return None
    found, fixes, left = [], [], pc.is_valid(values)
    for pattern, what, fix in _KINDS:
        of_kind = pc.and_(left, pc.fill_null(pc.match_substring_regex(values, pattern), False))
        left = pc.and_not(left, of_kind)
        row = pc.index(of_kind, True).as_py()
        if row >= 0 and what:
            value, at = values[row].as_py().strip()[:40], before + row + 1
            found.append(f"{value} with {what} (first in row {at:,})")
            fixes += [fix] if fix else []
    if not fixes:
        return None
    return (
        f"Column {name!r} was kept as text, though its values read as numbers: "
        f"{' and '.join(found)}. To have it read as numbers, {' and '.join(fixes)}."
    )


def plain_writing(value: str) -> str:
    """What to change in a column whose value reads as a number and is not one; "" for other text.

    Examples
    --------
    >>> plain_writing("0,05"), plain_writing("5%"), plain_writing("often")
    ('write all of them with a decimal point', 'leave the percent signs out and divide by 100', '')
    """
    for pattern, _, fix in _KINDS:
        if pc.match_substring_regex(pa.array([value]), pattern)[0].as_py():
            return fix
    return ""


def _share_of_numbers(values: pa.ChunkedArray) -> float:
    known = values.drop_null()
    if not len(known):
        return 0.0
    every = "|".join(pattern for pattern, _, _ in _KINDS)
    return float(pc.mean(pc.match_substring_regex(known, every).cast(pa.int8())).as_py())
