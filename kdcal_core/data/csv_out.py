"""Tables out as CSV: no cell that a spreadsheet would run as a formula."""

from __future__ import annotations

import re

import pandas as pd

# What spreadsheets take for the start of a formula, in full width too; names may be crafted.
_STARTS = tuple("=+-@\t\r\n＝＋－＠")
_NUMBER = r"[+-]?[\d.,]*\d[\d.,]*(?:[eE][+-]?\d+)?%?"
_NUMBERS = re.compile(rf"{_NUMBER}(?: to {_NUMBER}| \({_NUMBER} to {_NUMBER}\))?")


def safe_cell(text: str) -> str:
    """The text, with an apostrophe before it where a spreadsheet would take it for a formula.

    Numbers and intervals stay as they are, negative ones too.

    Examples
    --------
    >>> safe_cell("=cmd|' /C calc'!A0"), safe_cell("-2+3+cmd|' /C calc'!A0")
    ("'=cmd|' /C calc'!A0", "'-2+3+cmd|' /C calc'!A0")
    >>> safe_cell("-0.5"), safe_cell("-0.5 to 0.1"), safe_cell("<=50K")
    ('-0.5', '-0.5 to 0.1', '<=50K')
    """
    return f"'{text}" if text.startswith(_STARTS) and not _NUMBERS.fullmatch(text) else text


def to_csv(table: pd.DataFrame) -> bytes:
    """CSV in UTF-8 whose text cells and headings no spreadsheet takes for formulas.

    Examples
    --------
    >>> to_csv(pd.DataFrame({"=a": ["@b", "c"], "d": [-1.5, 2.0]}))
    b"'=a,d\\n'@b,-1.5\\nc,2.0\\n"
    """
    safe = table.map(_safe)
    safe.columns = [_safe(column) for column in safe.columns]
    return safe.to_csv(index=False).encode()


def _safe(cell: object) -> object:
    return safe_cell(cell) if isinstance(cell, str) else cell
