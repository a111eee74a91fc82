"""How a CSV file is written: encoding, separator, decimal sign and header, read off its start."""

from __future__ import annotations

import codecs
import csv
import io
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "<NA>")
_SEPARATORS = ("\t", ";", "|", ",")  # a decimal comma makes the comma the last to be tried
_MAX_SAMPLED = 500
_UTF_32_BYTES = 4096  # enough to tell it from numbers of four bytes
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)
_POINT = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")


@dataclass(frozen=True)
class CsvFormat:
    """What was detected.

    Attributes
    ----------
    names : tuple of str
        Column names, generated (``column_1``, ...) where the file has no header.
    skipped_lines : int
        Physical lines before the first row of data.
    n_sampled : int
        Rows of data among the sampled lines; zero means that none of them ends there.
    """

    separator: str
    decimal: str
    has_header: bool
    names: tuple[str, ...]
    skipped_lines: int
    n_sampled: int


def detect_encoding(head: bytes) -> str:
    """``utf-8``, UTF-16 or UTF-32 of either byte order or, where it is none of them, ``cp1252``.

    Examples
    --------
    >>> [detect_encoding("a,b".encode(name)) for name in ("utf-8", "utf-16-be", "utf-32-le")]
    ['utf-8', 'utf-16-be', 'utf-32-le']
    """
    if (found := _utf_32(head)) is not None:
        return found
    if head.startswith(codecs.BOM_UTF16_LE):
        return "utf-16-le"
    if head.startswith(codecs.BOM_UTF16_BE):
        return "utf-16-be"
    zeros_even, zeros_odd = head[0::2].count(0), head[1::2].count(0)
    half = max(len(head) // 2, 1)
    if zeros_odd > 0.4 * half and zeros_even < 0.05 * half:
        return "utf-16-le"
    if zeros_even > 0.4 * half and zeros_odd < 0.05 * half:
        return "utf-16-be"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # a cut last character is no fault
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def _utf_32(head: bytes) -> str | None:
    """UTF-32, of which each character takes four bytes and the highest of them is zero."""
    if head.startswith(codecs.BOM_UTF32_LE):  # before that of UTF-16, with which it begins
        return "utf-32-le"
    if head.startswith(codecs.BOM_UTF32_BE):
        return "utf-32-be"
    whole = head[: min(len(head), _UTF_32_BYTES) // 4 * 4]
    for encoding, highest in (("utf-32-le", 3), ("utf-32-be", 0)):
        if whole and not any(whole[highest::4]):
            try:
                text = whole.decode(encoding)
            except UnicodeDecodeError:
                continue
            if not any(character < " " and character not in "\t\r\n" for character in text):
                return encoding
    return None


def decode_text(content: bytes, encoding: str) -> str:
    """Text without its byte order mark; bytes that mean nothing become replacement signs."""
    return content.decode(encoding, "replace").removeprefix("\ufeff")


def detect_format(text: str, *, complete: bool) -> CsvFormat:
    """Read the format off the start of a file.

    Parameters
    ----------
    text : str
        The decoded start.
    complete : bool
        Whether ``text`` is the whole file; otherwise its last line is cut and not looked at.
    """
    separator = _detect_separator(text, complete)
    rows, first_line = _sample(text, separator, complete)
    decimal = _detect_decimal(rows) if separator != "," else "."
    has_header = _detect_header(rows)
    first = rows[0]
    names = [field.strip() for field in first]
    if not has_header:
        names = [f"column_{position}" for position in range(1, len(first) + 1)]
    skipped = first_line[1] if has_header else first_line[0]
    return CsvFormat(
        separator, decimal, has_header, tuple(names), skipped, len(rows) - int(has_header)
    )


def _sample(text: str, separator: str, complete: bool) -> tuple[list[list[str]], tuple[int, int]]:
    """Rows that are not blank, and the physical lines before and after the first of them."""
    csv.field_size_limit(sys.maxsize)  # the text is as long as it is; its fields are no longer
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    rows: list[list[str]] = []
    first_line = (0, 0)
    before = 0
    for row in reader:
        if row:
            if not rows:
                first_line = (before, reader.line_num)
            rows.append(row)
        before = reader.line_num
        if len(rows) > _MAX_SAMPLED:
            return rows, first_line
    if not complete and len(rows) > 1:
        rows.pop()
    return rows, first_line


def _detect_separator(text: str, complete: bool) -> str:
    """The separator that cuts most rows into as many fields as the first."""
    best, best_share = ",", 0.0
    for separator in _SEPARATORS:
        rows, _ = _sample(text, separator, complete)
        width = len(rows[0]) if rows else 0
        if width < 2:
            continue
        share = sum(len(row) == width for row in rows) / len(rows)
        if share > best_share:
            best, best_share = separator, share
    return best


def _detect_decimal(rows: Sequence[Sequence[str]]) -> str:
    fields = [field.strip() for row in rows for field in row]
    commas = sum(bool(_COMMA.fullmatch(field)) for field in fields)
    points = sum(bool(_POINT.fullmatch(field)) for field in fields)
    return "," if commas > points else "."


def _detect_header(rows: Sequence[Sequence[str]]) -> bool:
    """No header only where the first row is numeric in columns that stay numeric.

    A first row that counts 0, 1, ... or 1, 2, 3, ... is a header: it names classes or nameless
    columns.
    """
    first, rest = rows[0], rows[1:]
    starts_numeric = False
    for position, field in enumerate(first):
        below = [row[position].strip() for row in rest if len(row) > position]
        below = [value for value in below if value not in MISSING]
        numeric_below = bool(below) and all(_NUMBER.fullmatch(value) for value in below)
        if _NUMBER.fullmatch(field.strip()):
            starts_numeric = starts_numeric or numeric_below or not below
        elif numeric_below and field.strip() not in MISSING:
            return True
    return not starts_numeric or _counts_up(first)


def _counts_up(fields: Sequence[str]) -> bool:
    stripped = [field.strip() for field in fields]
    n = len(stripped)
    from_zero, from_one = [str(i) for i in range(n)], [str(i + 1) for i in range(n)]
    return (n >= 2 and stripped == from_zero) or (n >= 3 and stripped == from_one)
