"""Plain text for a terminal: untrusted names made harmless, rows lined up in columns."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


def printable(text: object, limit: int = 2000) -> str:
    """One line without control characters, which a terminal would obey.

    Examples
    --------
    >>> printable("red\\x1b[31m\\nnext")
    'red�[31m next'
    >>> printable("x" * 10, limit=5)
    'xxxx…'
    """
    line = " ".join(str(text)[: 10 * limit].split())
    shown = "".join(sign if sign.isprintable() else "\ufffd" for sign in line)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """Rows under a header, columns lined up: those in ``left`` to the left, others to the right.

    Examples
    --------
    >>> print(table(("class", "rows"), [("ham", "1,200"), ("spam", "7")]))
    class   rows
    ham    1,200
    spam       7
    """
    grid = [[printable(cell) for cell in row] for row in (header, *rows)]
    widths = [max(width(row[j]) for row in grid) for j in range(len(header))]
    return "\n".join("  ".join(_aligned(row, widths, left)).rstrip() for row in grid)


def _aligned(row: Sequence[str], widths: Sequence[int], left: Sequence[int]) -> list[str]:
    blanks = [" " * (wanted - width(cell)) for cell, wanted in zip(row, widths, strict=True)]
    return [
        cell + blank if j in left else blank + cell
        for j, (cell, blank) in enumerate(zip(row, blanks, strict=True))
    ]


def width(text: str) -> int:
    """Columns that a text takes in a terminal.

    Examples
    --------
    >>> width("ab"), width("表"), width("e\\u0301")
    (2, 2, 1)
    """
    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    return len(text) + wide - sum(unicodedata.combining(sign) > 0 for sign in text)
