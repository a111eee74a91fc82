"""Tables for a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from textwrap import wrap

from kdcal_core.text import printable

_WIDEST = 80
_NARROWEST = 12  # of a column of text


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: Sequence[int] = (0,),
    below: Sequence[str] = (),
) -> str:
    """Rows under a header in aligned columns: those in ``left`` to the left, others to the right.

    The table is at most 80 columns wide, the width of a plain terminal, unless its numbers are
    wider: the text of the widest columns in ``left`` is wrapped.

    Parameters
    ----------
    header : sequence of str
    rows : sequence of rows of as many cells
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
            wrap(cell, widths[j]) or [""] if j in left else [cell] for j, cell in enumerate(row)
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
    >>> width("ab"), width("表"), width("e\\u0301")
    (2, 2, 1)
    """
    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    return len(text) + wide - sum(unicodedata.combining(sign) > 0 for sign in text)
