"""Writes scored rows to a table block by block, as CSV or Parquet."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from kdcal_core.data.csv_tables import safe_cell
from kdcal_core.errors import InputError

SUFFIXES = (".csv", ".parquet")


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
