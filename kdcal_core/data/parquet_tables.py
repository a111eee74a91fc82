"""Reading a Parquet file: its claims are checked before a row is read.

A column of equal values takes a few bytes, however many rows it has, and a dictionary holds a long
text once that stands in every row. So no file may unpack to more than a thousand times its size
and a gigabyte: ordinary tables unpack to 1 to 25 times, sparse ones to some hundred times, and
sorted or constant columns of millions of rows to any multiple, but not to gigabytes.
"""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kdcal_core.data.arrow_frames import check_column_names, check_column_types, to_frame
from kdcal_core.errors import InputError
from kdcal_core.store import claims
from kdcal_core.store.claims import check_ratio
from kdcal_core.text import bytes_text

MOST_RATIO = 1000
FREE_BYTES = 1 << 30  # of a table; it takes some four times that while it is read
_CELL_BYTES = 64  # of it on average: numbers and labels, not long texts


def read_parquet(
    source: pa.NativeFile, file: str, max_bytes: int
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The frame and its notes.

    Raises
    ------
    InputError
        For a damaged file, columns that cannot be a table's, no rows, or a table that would
        take more than ``max_bytes`` in memory.
    """
    try:
        parquet = pq.ParquetFile(source)
        schema = parquet.schema_arrow
        check_column_names(schema.names, file)
        check_column_types(schema, file)
        check_claims(parquet.metadata, source.size(), file, max_bytes)
        frame, notes = to_frame(_read(source, parquet, max_bytes, file), file)
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            "The Parquet file is damaged or cut short",
            fix="Export or copy the file again.",
            file=file,
        ) from error
    return frame, ("Read as Parquet.", *notes)


def check_claims(
    metadata: pq.FileMetaData, stored: int, file: str, max_bytes: int | None = None
) -> None:
    """Refuse a file without rows, or one that says that it unpacks to too much.

    Parameters
    ----------
    stored : int
        Bytes of the file.
    max_bytes : int, optional
        What its table may take in memory; None where it is read block by block.
    """
    n_rows, n_columns = metadata.num_rows, metadata.num_columns
    if n_rows < 1 or n_columns < 1:
        raise InputError("The table has no rows", fix="Give at least one row.", file=file)
    groups = range(metadata.num_row_groups)
    stated = sum(metadata.row_group(group).total_byte_size for group in groups)
    unpacked = max(stated, n_rows * n_columns * 8)
    if max_bytes is not None:
        check_size(unpacked, file, max_bytes)
    check_ratio(stored, unpacked, MOST_RATIO, free=_free(n_rows * n_columns), file=file)


def _free(n_cells: int) -> int:
    """What a table of so many cells may unpack to, however small its file is."""
    return max(claims.FREE_BYTES, min(FREE_BYTES, n_cells * _CELL_BYTES))


def check_size(n_bytes: int, file: str, max_bytes: int) -> None:
    """Refuse a table that would take more memory than it may."""
    if n_bytes > max_bytes:
        raise InputError(
            f"The table would take {bytes_text(n_bytes)} in memory; "
            f"the limit is {bytes_text(max_bytes)}",
            fix="Keep fewer rows or only the columns the review needs.",
            file=file,
        )


def _read(source: pa.NativeFile, parquet: pq.ParquetFile, max_bytes: int, file: str) -> pa.Table:
    """Read text as dictionaries first: a few bytes on disk may stand for a huge text per row."""
    text = repeating(parquet.schema_arrow)
    source.seek(0)
    table = pq.ParquetFile(source, read_dictionary=text).read()
    table.validate(full=True)  # a damaged file may hold text that is no UTF-8
    decoded = sum(decoded_bytes(table[name]) for name in text if name in table.column_names)
    check_size(table.nbytes + decoded, file, max_bytes)
    free = _free(table.num_rows * table.num_columns)
    check_ratio(source.size(), table.nbytes + decoded, MOST_RATIO, free=free, file=file)
    return table.cast(parquet.schema_arrow) if text else table


def repeating(schema: pa.Schema) -> list[str]:
    """Columns of text, whose values a file may hold once for many rows."""
    return [field.name for field in schema if _may_repeat(field.type)]


def _may_repeat(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
    )


def decoded_bytes(column: pa.ChunkedArray) -> int:
    """What a column of dictionaries takes as plain text."""
    total = 0
    for chunk in column.chunks:
        if pa.types.is_dictionary(chunk.type):
            lengths = pc.binary_length(chunk.dictionary).cast(pa.int64())
            total += pc.sum(lengths.take(chunk.indices)).as_py() or 0
    return total
