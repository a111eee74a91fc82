"""Where a CSV file cannot be read: the row and the column of an open quote, or of what is too long.

Looked for only where the reader gave up, or swallowed the end of the file, since it takes a pass
over all characters.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

from kdcal_core.data.csv_format import CsvFormat
from kdcal_core.errors import InputError
from kdcal_core.text import counted

ROW_BYTES = 4 << 20  # what one row may hold
_PIECE = 1 << 20
_QUOTED = re.compile(r'(?:[^"]++|"")*+')  # to the mark that closes it


class _Scan:
    """Where in the table a pass over its text stands.

    Attributes
    ----------
    row : int
        Row of data, from 1; 0 in the header.
    field : int
        Position of the field in its row, from 0.
    inside : bool
        Whether the field is quoted and not closed yet.
    opened : tuple of int
        Row and field where the last quotation mark was opened.
    length : int
        Characters of the row so far.
    longest : tuple of int
        Characters and position of the longest field of the row.
    """

    def __init__(self, separator: str, row: int) -> None:
        self._separator = separator
        self._token = re.compile(f'["{re.escape(separator)}]')
        self._fresh = True  # whether the next character begins a field
        self.row = row
        self._begin()
        self.inside = False
        self.opened = (row, 0)

    def _begin(self) -> None:
        self.field, self.length, self._field_length = 0, 0, 0
        self.longest = (0, 0)
        self._fresh = True

    def take(self, piece: str) -> bool:
        """Go on to the end of a piece, which is at most one line. Whether a row ended with it."""
        self.length += len(piece)
        if self.inside and '"' not in piece:
            self._field_length += len(piece)
            return False
        if '"' not in piece:
            parts = piece.split(self._separator)
            if len(parts) > 1:
                self._end_field(len(parts[0]))
            if len(parts) > 2:  # fields that begin and end here
                lengths = list(map(len, parts[1:-1]))
                most = max(lengths)
                last = len(lengths) - 1 - lengths[::-1].index(most)
                self.longest = max(self.longest, (most, self.field + last))
                self.field += len(lengths)
            self._field_length += len(parts[-1])
            self._fresh = not parts[-1] and (len(parts) > 1 or self._fresh)
        else:
            self._walk(piece)
        return not self.inside and piece.endswith(("\n", "\r"))

    def _walk(self, piece: str) -> None:
        begin = 0 if self._fresh else -1  # where a field begins
        after = at = 0
        while True:
            if self.inside:
                match = _QUOTED.match(piece, at)
                at = match.end() if match else at
                if at == len(piece):
                    break
                self.inside = False
                at += 1
            found = self._token.search(piece, at)
            if found is None:
                break
            at = found.end()
            if found[0] == self._separator:
                self._end_field(at - 1 - after)
                begin = after = at
            elif at - 1 == begin:
                self.inside, self.opened = True, (self.row, self.field)
        self._field_length += len(piece) - after
        self._fresh = begin == len(piece)

    def _end_field(self, more: int) -> None:
        self.longest = max(self.longest, (self._field_length + more, self.field))
        self.field += 1
        self._field_length = 0

    def end_row(self) -> None:
        """The next piece begins a new row."""
        self.row += 1
        self._begin()

    def row_ends(self) -> tuple[int, int]:
        """Fields of the row, and the position of the longest."""
        longest = max(self.longest, (self._field_length, self.field))
        return self.field + 1, longest[1]


def find_fault(stream: Any, encoding: str, form: CsvFormat, file: str) -> InputError | None:
    """The first thing in the file that no reader can take; None where there is none.

    Parameters
    ----------
    stream : binary file object
        Read from its start; left open.
    form : CsvFormat
        With the column names, and the lines before the data.

    Returns
    -------
    InputError or None
        An open quotation mark, a row longer than `ROW_BYTES`; with row and column.

    Examples
    --------
    >>> from kdcal_core.data.csv_format import detect_format
    >>> text = 'a,b\\n1,"x\\n2,y\\n'
    >>> form = detect_format(text, complete=True)
    >>> find_fault(io.BytesIO(text.encode()), "utf-8", form, "table.csv").what
    'The quotation mark is opened and never closed'
    """
    scan = _Scan(form.separator, 0 if form.has_header else 1)
    for piece in _pieces(stream, encoding):
        if not scan.length and not piece.strip("\r\n\ufeff"):
            continue  # a blank line is no row
        if not scan.take(piece):
            continue
        if scan.length > ROW_BYTES:
            return _too_long(scan, form, file)
        scan.end_row()
    if scan.inside:
        row, field = scan.opened
        return InputError(
            "The quotation mark is opened and never closed",
            fix="Close it, or take it away. Inside a quoted text, write a quotation mark twice.",
            file=file,
            row=row,
            column=_name(form, field),
        )
    return _too_long(scan, form, file) if scan.length > ROW_BYTES else None


def _too_long(scan: _Scan, form: CsvFormat, file: str) -> InputError:
    n_fields, longest = scan.row_ends()
    if scan.row and n_fields != len(form.names):
        return wrong_width(n_fields, len(form.names), file, scan.row)
    what = "The row" if scan.row else "The header"
    return InputError(
        f"{what} holds {scan.length:,} characters; the limit is {ROW_BYTES:,}",
        fix="Shorten the text or leave its column out. An open quotation mark may join rows.",
        file=file,
        row=scan.row,
        column=_name(form, longest),
    )


def wrong_width(n_fields: int, n_columns: int, file: str, row: int) -> InputError:
    """A row has another number of fields than the table has columns."""
    return InputError(
        f"The row has {counted(n_fields, 'field')}, but the table has {n_columns:,} columns",
        fix="Check the row for a missing or extra separator, or an open quotation mark.",
        file=file,
        row=row,
    )


def header_width(stream: Any, encoding: str, separator: str) -> int:
    """How many fields the first line has, however long it is."""
    scan = _Scan(separator, 0)
    for piece in _pieces(stream, encoding):
        if (scan.length or piece.strip("\r\n\ufeff")) and scan.take(piece):
            break
    return scan.row_ends()[0]


def _name(form: CsvFormat, field: int) -> str:
    name = form.names[field] if field < len(form.names) else ""
    return name if name and len(name) <= 80 and "\n" not in name else f"number {field + 1}"


def _pieces(stream: Any, encoding: str) -> Iterator[str]:
    """The text line by line, a long line in pieces."""
    stream.seek(0)
    text = io.TextIOWrapper(stream, encoding, "replace", newline="")
    try:
        while piece := text.readline(_PIECE):
            while piece.endswith('"'):  # two of them must not come apart
                if not (more := text.readline(_PIECE)):
                    break
                piece += more
            yield piece
    finally:
        text.detach()
