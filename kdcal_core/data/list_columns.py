"""Columns that hold a list of numbers in every row, as one column for each place in the list.

Spark, pandas and Arrow write a model's probabilities so: as Parquet lists, as Spark's vectors, or
as text such as "[0.1, 0.9]" in a CSV file. Entry ``k`` of a column ``p`` is called ``p[k]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kdcal_core.data.schema import FloatArray
from kdcal_core.errors import InputError

MOST_ENTRIES = 1_000  # of a list
_ENTRY = re.compile(r"(.+)\[([0-9]+)\]", re.DOTALL)
_LOOKED_AT = 1_000
_FROM_ONE = 0.01
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_WRAPPED = rf"(?:{_NUMBER}|np\.float(?:32|64)\({_NUMBER}\))"  # as NumPy spells out a list of them
_LIST = rf"\[\s*{_WRAPPED}(?:\s*[,;\s]\s*{_WRAPPED})+\s*\]"
_TEXT = rf"^\s*(?:{_LIST}|(?:DenseVector|array)\(\s*{_LIST}\s*\))\s*$"
_WRAPPER = r"np\.float(?:32|64)\(|\)"
_AROUND = " \t\r\n[](DenseVctorary"  # what else stands around the numbers
_SPARK = frozenset(("type", "size", "indices", "values"))


def entry_of(name: str) -> tuple[str, int] | None:
    """The column and the place of the list that a column's name means; None for another name.

    Examples
    --------
    >>> entry_of("probability[1]"), entry_of("probability")
    (('probability', 1), None)
    """
    found = _ENTRY.fullmatch(name)
    return (found[1], int(found[2])) if found and len(found[2]) < 9 else None


def entry_names(name: str, width: int) -> list[str]:
    """The names of the columns that a list of so many numbers becomes; one number keeps its own.

    Examples
    --------
    >>> entry_names("p", 2), entry_names("p", 1)
    (['p[0]', 'p[1]'], ['p'])
    """
    return [name] if width == 1 else [f"{name}[{place}]" for place in range(width)]


def with_entries(names: Iterable[str], widths: Mapping[str, int]) -> tuple[str, ...]:
    """The names, with those of its entries in place of each column of lists.

    Examples
    --------
    >>> with_entries(["y", "p"], {"p": 2})
    ('y', 'p[0]', 'p[1]')
    """
    each = (entry_names(one, widths[one]) if one in widths else [one] for one in names)
    return tuple(name for some in each for name in some)


def stored_columns(columns: Sequence[str], widths: Mapping[str, int]) -> list[str]:
    """The columns of a file that hold these ones, each once.

    Examples
    --------
    >>> stored_columns(["p[1]", "y", "p[0]"], {"p": 2})
    ['p', 'y']
    """
    found = ((entry_of(one) or ("", 0))[0] for one in columns)
    both = zip(columns, found, strict=True)
    return list(dict.fromkeys(of if of in widths else one for one, of in both))


def may_hold_lists(kind: pa.DataType) -> bool:
    """Whether a column of this type holds lists of numbers, or vectors as Spark stores them.

    Examples
    --------
    >>> may_hold_lists(pa.list_(pa.float32())), may_hold_lists(pa.list_(pa.string()))
    (True, False)
    """
    types = pa.types
    if types.is_struct(kind):
        names = {kind.field(at).name for at in range(kind.num_fields)}
        return names == _SPARK and all(
            may_hold_lists(kind.field(name).type) for name in ("indices", "values")
        )
    lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(lists and (types.is_integer(kind.value_type) or types.is_floating(kind.value_type)))


def note_on_entries(name: str, width: int) -> str:
    """What a column of lists was read as."""
    if width == 1:
        return f"Column {name!r} holds lists of one number: read as this number."
    first, *_, last = entry_names(name, width)
    return (
        f"Column {name!r} holds lists of {width:,} numbers: read as the columns {first} to {last}."
    )


def columns_to_look_into(schema: pa.Schema) -> list[str]:
    """The columns whose first rows show whether they hold lists.

    Examples
    --------
    >>> schema = pa.schema({"p": pa.list_(pa.float64()), "q": pa.string(), "y": pa.int8()})
    >>> columns_to_look_into(schema)
    ['p', 'q']
    """
    return [one.name for one in schema if may_hold_lists(one.type) or is_text_type(one.type)]


def widths_of_lists(table: pa.Table, before: int = 0, file: str | None = None) -> dict[str, int]:
    """How many numbers each column of lists holds in a row, by its name.

    Text counts only where most rows of it are probabilities that sum to one: other lists in text
    may be categories ("[20, 30]").

    Raises
    ------
    InputError
        As :func:`entries_of`, of which each such column is one.

    Examples
    --------
    >>> text = ["[0.25, 0.75]", "[1.0, 0.0]"]
    >>> widths_of_lists(pa.table({"p": text, "q": [[1], [2]], "age": ["[20, 30]"] * 2}))
    {'p': 2, 'q': 1}
    """
    found = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if may_hold_lists(column.type):
            found[name] = entries_of(column, name, file=file, before=before).shape[1]
        elif is_text_type(column.type) and (width := _width_of_text(column)) > 0:
            found[name] = width
    return found


def entries_of(
    column: pa.ChunkedArray,
    name: str,
    width: int | None = None,
    *,
    file: str | None = None,
    before: int = 0,
) -> FloatArray:
    """A column's lists as (n, width) float64; a missing list or number is NaN.

    Parameters
    ----------
    width : int, optional
        By default that of the first list.
    before : int
        Rows of the file before these.

    Raises
    ------
    InputError
        For a list of another length, a text that is no list of numbers, lists without or with too
        many numbers, or no list at all; the first such row is named.

    Examples
    --------
    >>> entries_of(pa.chunked_array([[[1, 2], None]]), "p").tolist()
    [[1.0, 2.0], [nan, nan]]
    >>> entries_of(pa.chunked_array([[[1, 2], [3]]]), "p")
    Traceback (most recent call last):
    kdcal_core.errors.InputError: The list holds 1 number, but lists of 2 are expected (column \
'p', row 2). Give every row a list of the same length, or leave the column out.
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # as some versions of Arrow answer
        array = array.chunk(0) if array.num_chunks else pa.array([], column.type)
    where = {"file": file, "column": name}
    if pa.types.is_struct(array.type):
        lists, sizes = _of_spark(array, where, before)
    elif may_hold_lists(array.type):
        lists, sizes = array, _sizes(array)
    else:
        lists = _of_text(array, where, before)
        sizes = _sizes(lists)
    known = np.asarray(lists.is_valid())
    width = _common_width(sizes[known], np.flatnonzero(known), width, where, before)
    flat = pc.list_flatten(lists).cast(pa.float64())
    found = np.full((len(known), width), np.nan)
    found[known] = np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(-1, width)
    return found


def mostly_sum_to_one(values: FloatArray) -> bool:
    """Whether more than half of the rows (n, K) hold shares that sum to one, within 0.01.

    Examples
    --------
    >>> mostly_sum_to_one(np.array([[0.2, 0.8], [0.5, 0.5], [2.0, -1.0]]))
    True
    """
    inside = ((values >= 0) & (values <= 1)).all(axis=1)
    near = np.abs(values.sum(axis=1) - 1.0) <= _FROM_ONE
    return bool(len(values) and np.mean(inside & near) > 0.5)


def is_text_type(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _sizes(lists: pa.Array) -> NDArray[np.int64]:
    return np.asarray(pc.fill_null(pc.list_value_length(lists), 0)).astype(np.int64)


def _common_width(
    sizes: NDArray[np.int64],
    rows: NDArray[np.int64],
    width: int | None,
    where: Mapping[str, Any],
    before: int,
) -> int:
    """How many numbers every list holds."""
    fix = "Give every row a list of the same length, or leave the column out."
    if width is None and not len(sizes):
        raise InputError("The column holds no list", fix="Leave it out.", **where)
    width = int(sizes[0]) if width is None else width
    if width == 0:
        raise InputError("The list is empty", fix=fix, row=before + int(rows[0]) + 1, **where)
    if width > MOST_ENTRIES:
        raise InputError(
            f"The column holds lists of {width:,} numbers; at most {MOST_ENTRIES:,} are read as "
            "columns",
            fix="Leave it out, or keep only the numbers that the review needs.",
            **where,
        )
    if (other := sizes != width).any():
        at = int(np.argmax(other))
        numbers = "1 number" if sizes[at] == 1 else f"{sizes[at]:,} numbers"
        raise InputError(
            f"The list holds {numbers}, but lists of {width:,} are expected",
            fix=fix,
            row=before + int(rows[at]) + 1,
            **where,
        )
    return width


def _of_text(text: pa.Array, where: Mapping[str, Any], before: int) -> pa.Array:
    """The lists that texts spell out."""
    if pa.types.is_null(text.type):  # a block of missing lists
        return text.cast(pa.list_(pa.float64()))
    wrong = pc.fill_null(pc.invert(pc.match_substring_regex(text, _TEXT)), False)
    if (at := pc.index(wrong, True).as_py()) >= 0:
        raise InputError(
            f"The value {str(text[at])[:40]!r} is no list of numbers, as others of the column are",
            fix="Write it as they are, or leave the column out.",
            row=before + at + 1,
            **where,
        )
    bare = pc.utf8_trim(pc.replace_substring_regex(text, _WRAPPER, ""), _AROUND)
    commas = pc.replace_substring_regex(bare, r"\s*[,;\s]\s*", ",")
    return pc.split_pattern(commas, ",").cast(pa.list_(pa.float64()))


def _width_of_text(column: pa.ChunkedArray) -> int:
    """How many probabilities texts list, by the first rows; 0 where they do not."""
    known = column.slice(0, _LOOKED_AT).drop_null()
    fits = pc.match_substring_regex(known, _TEXT)
    if not len(known) or pc.mean(fits.cast(pa.int8())).as_py() <= 0.5:
        return 0
    lists = _of_text(known.filter(fits).combine_chunks(), {}, 0)
    width = int(np.median(_sizes(lists)))
    same = pc.equal(pc.list_value_length(lists), width)
    flat = np.asarray(pc.list_flatten(lists.filter(same)))
    values = flat.reshape(-1, width) if len(flat) else np.zeros((0, 1))
    return width if mostly_sum_to_one(values) else 0


def _of_spark(
    vectors: pa.Array, where: Mapping[str, Any], before: int
) -> tuple[pa.Array, NDArray[np.int64]]:
    """Spark's vectors as lists, those that hold only what is not zero too."""
    kinds, stated = (
        np.asarray(pc.fill_null(pc.struct_field(vectors, name), 0)).astype(np.int64)
        for name in ("type", "size")
    )
    valid = np.asarray(vectors.is_valid())
    lists = pc.struct_field(vectors, "values")
    lists = pc.if_else(vectors.is_valid(), lists, pa.scalar(None, lists.type))
    sparse = valid & (kinds == 0)
    if not sparse.any():
        return lists, _sizes(lists)
    places = pc.struct_field(vectors, "indices")
    n_values, n_places = _sizes(lists), np.where(sparse, _sizes(places), 0)
    sizes = np.where(sparse, stated, n_values)
    width = _common_width(sizes[valid], np.flatnonzero(valid), None, where, before)
    at = np.arange(n_values.sum()) - np.repeat(np.cumsum(n_values) - n_values, n_values)
    of_sparse = np.repeat(sparse, n_values)
    held = pc.if_else(pa.array(sparse), places, pa.scalar(None, places.type))
    flat = np.asarray(pc.fill_null(pc.list_flatten(held), -1)).astype(np.int64)
    faulty = (n_values != n_places) & sparse
    if not faulty.any():
        at[of_sparse] = flat
        outside = (at < 0) | (at >= width)
        faulty = np.bincount(np.repeat(np.arange(len(sizes)), n_values)[outside], minlength=1) > 0
    if faulty.any():
        row = before + int(np.argmax(faulty)) + 1
        raise InputError("The vector is damaged", fix="Write the file again.", row=row, **where)
    dense = np.zeros((len(sizes), width))
    values = np.asarray(pc.list_flatten(lists).cast(pa.float64()).to_numpy(zero_copy_only=False))
    dense[np.repeat(np.arange(len(sizes)), n_values), at] = values
    starts = np.concatenate([[0], np.cumsum(np.where(valid, width, 0))])
    ends = pa.array(starts, pa.int32(), mask=np.append(~valid, False))
    return pa.ListArray.from_arrays(ends, dense[valid].ravel()), sizes
