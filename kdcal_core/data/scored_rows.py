"""Writes scored rows to a table block by block, as CSV or Parquet."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from kdcal_core.data.csv_tables import safe_cell
from kdcal_core.data.tables import TableBlocks
from kdcal_core.errors import InputError
from kdcal_core.progress import Progress

SUFFIXES = (".csv", ".parquet")


@dataclass(frozen=True)
class TablesToScore:
    """The parts of one table whose rows are scored, each with a file of its own to write.

    Attributes
    ----------
    tables : sequence of {"path", "name", "out"}
        The files, their names for errors, and the files to write.
    suffix : {".csv", ".parquet"}
        The format to write.
    keep : sequence of str
        Columns of the table that are written too, as text, behind "row" (1 is the first row of a
        file).
    """

    tables: Sequence[Mapping[str, str]]
    suffix: str
    keep: Sequence[str] = ()

    @classmethod
    def one(cls, data: str, out: str, suffix: str, keep: Sequence[str] = ()) -> TablesToScore:
        """A single CSV or Parquet table."""
        return cls([{"path": data, "name": Path(data).name, "out": out}], suffix, keep)

    @cached_property
    def parts(self) -> list[TableBlocks]:
        """The tables, open."""
        return [TableBlocks(one["path"], name=one["name"]) for one in self.tables]

    @property
    def first(self) -> TableBlocks:
        """The first table with rows, from which the columns' roles follow."""
        return next((one for one in self.parts if one.n_rows), self.parts[0])

    def write(
        self,
        reads: Sequence[str],
        columns: Sequence[tuple[str, pa.DataType]],
        answers: Callable[[pd.DataFrame, TableBlocks], Sequence[pa.Array]],
        progress: Progress,
    ) -> tuple[int, list[str]]:
        """Write the answers for all rows, block by block; the number of rows, and notes.

        Parameters
        ----------
        reads : sequence of str
            Columns of the tables.
        columns : sequence of (name, type)
            Of the answers.
        answers : callable
            ``(block, its table) -> arrays`` of those columns; its errors get the row of the file.

        Raises
        ------
        InputError
            If there are no rows, and as `scored_schema`.
        """
        keep = tuple(dict.fromkeys(self.keep))
        schema = scored_schema([("row", pa.int64())], keep, columns, self.first.file)
        notes: dict[str, str] = {}
        done = 0
        for part, one in zip(self.parts, self.tables, strict=True):
            n = 0
            with table_writer(one["out"], self.suffix, schema) as write:
                for frame in part.read(list(dict.fromkeys([*reads, *keep]))):
                    with row_after(n, part.file):
                        found = answers(frame, part)
                    kept = [text_of(frame[name], safe=self.suffix == ".csv") for name in keep]
                    rows = pa.array(np.arange(n + 1, n + len(frame) + 1))
                    write(pa.RecordBatch.from_arrays([rows, *kept, *found], schema=schema))
                    n += len(frame)
                    n_all = max(sum(each.n_rows for each in self.parts), done + n)
                    progress((done + n) / n_all, f"{done + n:,} of {n_all:,} rows scored")
            done += n
            notes |= part.notes
        if not done:
            raise InputError(
                "The table has no rows", fix="Give at least one row.", file=self.parts[0].file
            )
        return done, list(notes.values())


def scored_schema(
    first: Sequence[tuple[str, pa.DataType]],
    keep: Sequence[str],
    then: Sequence[tuple[str, pa.DataType]],
    file: str,
) -> pa.Schema:
    """The columns of the file to write: the first, those kept of the table as text, the others.

    Raises
    ------
    InputError
        A column to keep has the name of one that is written anyway.
    """
    own = {name for name, _ in (*first, *then)}
    taken = next((name for name in keep if name in own), None)
    if taken is not None:
        raise InputError(
            "The scored rows have a column of this name anyway, so the table's cannot be kept",
            fix="Rename it in the table.",
            file=file,
            column=taken,
        )
    return pa.schema([*first, *((name, pa.string()) for name in keep), *then])


def text_of(column: pd.Series[Any], *, safe: bool) -> pa.Array:
    """A column's values as text, in which no spreadsheet finds a formula where it is ``safe``."""
    known = column.notna().to_numpy(dtype=bool)
    said = column.astype(str).to_list()
    return pa.array(
        [
            (safe_cell(text) if safe else text) if there else None
            for text, there in zip(said, known, strict=True)
        ],
        pa.string(),
    )


@contextmanager
def table_writer(
    out: str, suffix: str, schema: pa.Schema
) -> Iterator[Callable[[pa.RecordBatch], None]]:
    """A function that writes one block of rows."""
    make = pq.ParquetWriter if suffix == ".parquet" else pa_csv.CSVWriter
    with _writing_errors():
        writer = make(out, schema)

    def write(rows: pa.RecordBatch) -> None:
        with _writing_errors():
            writer.write_batch(rows)

    yield write
    with _writing_errors():
        writer.close()


@contextmanager
def _writing_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise InputError(
            f"The scored rows cannot be written: {reason}",
            fix="Choose a place that can be written to and has room.",
        ) from error


@contextmanager
def row_after(before: int, file: str) -> Iterator[None]:
    """Let errors name the row of the file instead of the row of the block."""
    try:
        yield
    except InputError as error:
        if error.row is None:
            raise error.at(file=file) from error
        row = error.row + before
        raise InputError(
            error.what, fix=error.fix, file=error.file or file, column=error.column, row=row
        ) from error
