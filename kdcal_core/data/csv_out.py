"""Tables out as CSV: no cell that a spreadsheet would run as a formula."""

from __future__ import annotations

import re
import unicodedata

import pandas as pd

# What spreadsheets take for the start of a formula, in any width and after signs that they skip:
# blanks, and characters that show nothing. Names may be crafted.
_STARTS = frozenset("=+-@\N{MINUS SIGN}")
_BREAKS = ("\t", "\r", "\n")
_CELL_NUMBER = r"[+\-−]?[\d.,]*\d[\d.,]*(?:[eE][+-]?\d+)?%?"
_NUMBERS = re.compile(
    rf"{_CELL_NUMBER}(?: to {_CELL_NUMBER}| \({_CELL_NUMBER} to {_CELL_NUMBER}\))?"
)

# A formula after what another language's spreadsheet takes for the end of a cell.
_INNER = re.compile(rf"([;\t\r\n][\s\"]*)(?=[=+@＝＋＠−-])(?!{_CELL_NUMBER}\s*(?:[;\t\r\n]|$))")


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
    if _NUMBERS.fullmatch(text.strip()):
        return text
    first = next((sign for sign in text if _shows(sign)), "")
    blank = len(text) - len(text.lstrip())
    inner = text[:blank] + _INNER.sub(r"\1'", text[blank:])
    starts = unicodedata.normalize("NFKC", first)[:1] in _STARTS or text.startswith(_BREAKS)
    return f"'{inner}" if starts else inner


def _shows(sign: str) -> bool:
    """Whether a sign is neither blank nor a control or format character."""
    return not sign.isspace() and unicodedata.category(sign) not in ("Cc", "Cf")


def to_csv(table: pd.DataFrame) -> bytes:
    """CSV in UTF-8 whose text cells and headings no spreadsheet takes for formulas.

    Examples
    --------
    >>> to_csv(pd.DataFrame({"=a": ["@b", "c"], "d": [-1.5, 2.0]}))
    b"'=a,d\\n'@b,-1.5\\nc,2.0\\n"
    """
    safe = table.map(_safe)
    safe.columns = [_safe(column) for column in safe.columns]
    return safe.to_csv(index=False, lineterminator="\n").encode()


def _safe(cell: object) -> object:
    # "\r" alone would end the row: it is written without quotes
    plain = cell.replace("\r\n", "\n").replace("\r", "\n") if isinstance(cell, str) else cell
    return safe_cell(plain) if isinstance(plain, str) else plain
