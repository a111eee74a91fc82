"""From which files of a folder the rows of a table were gathered, and which columns were not.

This travels with the table: in the metadata of its Parquet file, and then as an attribute of its
frame, which pandas and Arrow keep.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import orjson
import pandas as pd

from kdcal_core.errors import InputError
from kdcal_core.store import decode, encode
from kdcal_core.text import listed

_KEY = "kdcal folder"


@dataclass(frozen=True)
class PartialColumn:
    """A column that only some files of a folder have.

    Attributes
    ----------
    name, file : str
        The column, and the first file that lacks it. Untrusted text.
    lacking, files : int
        Number of files that lack it, and of all files with rows.
    """

    name: str
    file: str
    lacking: int
    files: int

    @property
    def where(self) -> str:
        """The files that lack it, in words; untrusted text."""
        if self.lacking == 1:
            return f"not in {self.file[:80]!r}"
        return f"not in {self.lacking:,} of {self.files:,} files, the first {self.file[:80]!r}"

    def error(self) -> InputError:
        """What is raised where the column is asked for."""
        return InputError(
            "The file lacks this column, which other files of the table have",
            fix=f"Write it into every file ({self.lacking:,} of {self.files:,} lack it).",
            file=self.file,
            column=self.name,
        )


@dataclass(frozen=True)
class FilePart:
    """Rows of one file: its name (untrusted text), the place of the first from 0, their number."""

    file: str
    first: int
    rows: int


@dataclass(frozen=True)
class FolderParts:
    """The files of a table's rows, in their order, and the columns that only some files have.

    Examples
    --------
    >>> parts = FolderParts((FilePart("a.parquet", 0, 2), FilePart("b.parquet", 7, 3)))
    >>> parts.place(2), parts.place(3)
    (('a.parquet', 2), ('b.parquet', 8))
    """

    parts: tuple[FilePart, ...] = ()
    partial: tuple[PartialColumn, ...] = ()

    @cached_property
    def _before(self) -> list[int]:
        return [0, *accumulate(one.rows for one in self.parts)]

    def place(self, row: int) -> tuple[str, int] | None:
        """The file of a row, and its row there, both counted from 1; None for one beyond them."""
        if not 1 <= row <= self._before[-1]:
            return None
        at = bisect_right(self._before, row - 1) - 1
        part = self.parts[at]
        return part.file, part.first + row - self._before[at]

    def metadata(self) -> dict[str, str]:
        """The entry of a Parquet file's metadata."""
        return {_KEY: orjson.dumps(encode(self)).decode()}


def note_parts(frame: pd.DataFrame, metadata: dict[bytes, bytes] | None) -> None:
    """Give a frame the attribute that its Parquet file's metadata hold; no others."""
    found = (metadata or {}).get(_KEY.encode())
    if found is not None and _decoded(found) is not None:
        frame.attrs[_KEY] = found.decode()


def parts_of(frame: pd.DataFrame) -> FolderParts | None:
    """What is known of the folder of these rows; None where they came as one file."""
    return _decoded(frame.attrs.get(_KEY))


def _decoded(text: Any) -> FolderParts | None:
    if text is None:
        return None
    try:
        return decode(FolderParts, orjson.loads(text))
    except (ValueError, TypeError):  # somebody else's
        return None


def doubt_of_partial(columns: Sequence[PartialColumn]) -> str:
    """Why these columns are not read; untrusted text.

    Examples
    --------
    >>> doubt_of_partial([PartialColumn("age", "b.parquet", 1, 2)])
    "Only some files of the table have the column 'age' (not in 'b.parquet'): it is not used."
    """
    named = listed([f"{one.name[:60]!r} ({one.where})" for one in columns])
    columns_are = "column {}: it is" if len(columns) == 1 else "columns {}: they are"
    return f"Only some files of the table have the {columns_are.format(named)} not used."
