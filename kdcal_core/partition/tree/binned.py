"""The inputs read once, as a table in order: every value becomes a code of one byte."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.errors import InputError, InputWarning
from kdcal_core.partition._blocks import cores
from kdcal_core.partition.tree.input_columns import (
    CODES,
    MAX_BINS,
    InputColumn,
    Kind,
    categories_of,
    find_categories,
    find_edges,
    kind_of,
    numbers_of,
)
from kdcal_core.text import and_more

EDGE_VALUES = 4_000_000  # that the edges of all columns are found from
EDGE_ROWS = 20_000  # but at least so many rows, drawn with a fixed seed
SMALL = 200_000  # values that are coded faster than threads start


@dataclass(frozen=True, eq=False)
class BinnedInputs:
    """A table of inputs as codes.

    Attributes
    ----------
    codes : (n, d) uint8, in Fortran order
        A column's codes lie next to each other in memory.
    columns : tuple of d :class:`InputColumn`
        What the codes stand for.
    unknown : (d,) int64
        Rows of each column whose category was not known: they count as "other" where the
        column has it, else as missing.
    """

    codes: NDArray[np.uint8]
    columns: tuple[InputColumn, ...]
    unknown: NDArray[np.int64]

    def __post_init__(self) -> None:
        # the kernels index by code and check no bound
        codes, ends = self.codes, [column.missing_code for column in self.columns]
        if (
            codes.dtype != np.uint8
            or codes.ndim != 2
            or codes.shape[1] != len(ends)
            or not codes.flags.f_contiguous
            or (len(codes) and (codes.max(axis=0) > ends).any())
        ):
            raise InputError("The codes do not fit their columns", fix="Code with bin_inputs.")

    def __len__(self) -> int:
        return int(self.codes.shape[0])

    def take(self, rows: NDArray[Any]) -> BinnedInputs:
        """The same of some rows, given by index or by truth value.

        Examples
        --------
        >>> binned = bin_inputs(np.array([[1.0], [2.0], [3.0]]))
        >>> binned.take(np.array([2, 0])).codes.tolist()
        [[2], [0]]
        """
        return replace(self, codes=np.asfortranarray(self.codes[rows]))


def bin_inputs(
    X: pd.DataFrame | NDArray[Any],
    *,
    max_bins: int = MAX_BINS,
    like: tuple[InputColumn, ...] | None = None,
    file: str | None = None,
) -> BinnedInputs:
    """Code a table of inputs for trees.

    A number's bins end between its distinct values where there are at most ``max_bins`` of them,
    else at quantiles. In a large table both are those of rows drawn with a fixed seed: 4,000,000
    values in all, and at least 20,000 rows. Text,
    categories and truth values are coded as they are, the most frequent first; beyond ``max_bins``
    of them the rarest become one, "other", and an :class:`InputWarning` says so. A missing value
    has its own code.

    Parameters
    ----------
    X : (n, d) DataFrame, or array of numbers
        An array's columns are called "column 1" and so on.
    max_bins : int, 2 to 254
    like : the columns of an earlier reading, optional
        Codes mean what they meant there. A frame's columns are found by name, in any order.
    file : str, optional
        Name of the table, for errors.

    Returns
    -------
    BinnedInputs

    Raises
    ------
    InputError
        If there is no row or no column, a name comes twice, a column is missing, strange or of
        another kind than in ``like``, a value is infinite, or a column holds dates or objects.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [20.0, 30.0, None], "job": ["Sales", "Craft", "Sales"]})
    >>> binned = bin_inputs(frame)
    >>> binned.codes.tolist()
    [[0, 0], [1, 1], [2, 0]]
    >>> binned.columns[1].categories
    ('Sales', 'Craft')
    >>> bin_inputs(frame[["job", "age"]].head(1), like=binned.columns).codes.tolist()
    [[0, 0]]
    """
    if not 2 <= max_bins <= MAX_BINS:
        raise InputError(
            f"A column has 2 to {MAX_BINS} bins, not {max_bins}", fix="Change the number of bins."
        )
    frame = frame_of(X, like, file)
    columns = like if like is not None else (None,) * frame.shape[1]
    sample = _sampled_rows(*frame.shape) if like is None else None
    codes = np.empty(frame.shape, dtype=np.uint8, order="F")

    def code(position: int) -> tuple[InputColumn, int]:
        name, values = str(frame.columns[position]), frame.iloc[:, position]
        known, out = columns[position], codes[:, position]
        kind = _kind_like(kind_of(values, name, file), values, known, name, file)
        if kind == "category":
            return _code_categories(values, name, known, max_bins, out)
        return _code_numbers(values, name, known, max_bins, sample, out, file)

    found = list(_mapper(frame.size)(code, range(frame.shape[1])))
    result = BinnedInputs(
        codes,
        tuple(column for column, _ in found),
        np.array([unknown for _, unknown in found], dtype=np.int64),
    )
    if like is None:
        _warn_of_pooled(result.columns, frame, file)
    return result


def _mapper(n_values: int) -> Any:
    """Built-in map, or one with threads where there is much to do."""
    if n_values < SMALL or cores() == 1:
        return map

    def threaded(call: Any, items: Any) -> list[Any]:
        with ThreadPoolExecutor(cores(), thread_name_prefix="kdcal-bins") as pool:
            return list(pool.map(call, items))

    return threaded


def _kind_like(
    kind: Kind, values: pd.Series[Any], known: InputColumn | None, name: str, file: str | None
) -> Kind:
    """The kind to read a column as; where nothing is in it, whatever it was."""
    if known is None or kind == known.kind:
        return kind
    if kind == "empty" or values.isna().all():
        return known.kind
    kinds = {"number": "numbers", "category": "categories"}
    raise InputError(
        f"A column held {kinds[known.kind]} at fit and holds {kinds[kind]} now",
        fix="Give the column as it was.",
        file=file,
        column=name,
    )


def _sampled_rows(n: int, d: int) -> NDArray[np.int64] | None:
    """Rows to find the edges from; None: all."""
    wanted = max(EDGE_ROWS, EDGE_VALUES // d)
    if n <= wanted:
        return None
    return np.sort(np.random.default_rng(0).choice(n, wanted, replace=False))


def _code_numbers(
    values: pd.Series[Any],
    name: str,
    known: InputColumn | None,
    max_bins: int,
    sample: NDArray[np.int64] | None,
    out: NDArray[np.uint8],
    file: str | None,
) -> tuple[InputColumn, int]:
    from kdcal_core.partition.tree._kernels import code_numbers

    numbers = numbers_of(values, name, file)
    column = known or InputColumn(
        name, "number", edges=find_edges(numbers if sample is None else numbers[sample], max_bins)
    )
    edges = np.full(CODES - 1, np.inf)
    edges[: len(column.edges)] = column.edges
    infinite = code_numbers(numbers, edges, column.missing_code, out)
    if infinite >= 0:
        raise InputError(
            "A value of the inputs is infinite",
            fix="Give a number, or leave it empty where it is missing.",
            file=file,
            column=name,
            row=infinite + 1,
        )
    if known is None:
        column = replace(column, has_missing=bool((out == column.missing_code).any()))
    return column, 0


def _code_categories(
    values: pd.Series[Any],
    name: str,
    known: InputColumn | None,
    max_bins: int,
    out: NDArray[np.uint8],
) -> tuple[InputColumn, int]:
    at, names = categories_of(values)
    counts = np.bincount(at + 1, minlength=len(names) + 1)
    if known is None:
        kept, pooled = find_categories(counts[1:], names, max_bins)
        known = InputColumn(
            name, "category", categories=kept, pooled=pooled, has_missing=bool(counts[0])
        )
    own = known.categories[:-1] if known.pooled else known.categories
    code_of = {category: code for code, category in enumerate(own)}
    # rows without a value have index -1, hence the last entry
    codes = np.array([code_of.get(category, len(own)) for category in names], dtype=np.uint8)
    out[:] = np.append(codes, np.uint8(known.missing_code))[at]
    return known, int(counts[1:][codes == len(own)].sum())


def _warn_of_pooled(
    columns: tuple[InputColumn, ...], frame: pd.DataFrame, file: str | None
) -> None:
    for position, column in enumerate(columns):
        if column.pooled:
            place = f"file {file!r}, " if file is not None else ""
            n = frame.iloc[:, position].nunique()
            warnings.warn(
                f"A column of the inputs has {n:,} categories: the rarest "
                f'{n - column.bins + 1:,} of them are taken as one, "other" '
                f"({place}column {column.name!r})",
                InputWarning,
                stacklevel=3,
            )


def frame_of(
    X: pd.DataFrame | NDArray[Any], like: tuple[InputColumn, ...] | None, file: str | None
) -> pd.DataFrame:
    """The table with its columns in order."""
    frame = X if isinstance(X, pd.DataFrame) else _frame_of_array(X, like, file)
    if not len(frame) or not frame.shape[1]:
        raise InputError(
            f"The inputs have {len(frame):,} rows and {frame.shape[1]:,} columns",
            fix="Give at least one row and one column.",
            file=file,
        )
    names = [str(name) for name in frame.columns]
    twice = [name for name in names if names.count(name) > 1] if len({*names}) < len(names) else []
    if twice:
        raise InputError(
            "Two columns of the inputs have one name",
            fix="Rename one of them.",
            file=file,
            column=twice[0],
        )
    if like is None:
        return frame
    wanted = [column.name for column in like]
    _check_names(names, wanted, file)
    return frame if names == wanted else frame.iloc[:, [names.index(name) for name in wanted]]


def _frame_of_array(
    X: NDArray[Any], like: tuple[InputColumn, ...] | None, file: str | None
) -> pd.DataFrame:
    values = np.asarray(X)
    if values.ndim != 2 or values.dtype.kind not in "fiub":
        raise InputError(
            f"Inputs are a table, or numbers of shape (rows, columns), "
            f"not {values.dtype} of shape {values.shape}",
            fix="Give a data frame, or a two-dimensional array of numbers.",
            file=file,
        )
    if like is not None and values.shape[1] != len(like):
        raise InputError(
            f"The inputs have {values.shape[1]:,} columns and {len(like):,} are expected",
            fix="Give the columns that were there at fit.",
            file=file,
        )
    names = [f"column {at + 1}" for at in range(values.shape[1])]
    return pd.DataFrame(values, columns=[column.name for column in like] if like else names)


def _check_names(names: list[str], wanted: list[str], file: str | None) -> None:
    for what, some, others in (
        ("A column that was there at fit is missing", wanted, set(names)),
        ("There is a column that was not there at fit", names, set(wanted)),
    ):
        strange = [name for name in some if name not in others]
        if strange:
            raise InputError(
                f"{what}{and_more(len(strange) - 1)}",
                fix="Give the columns that were there at fit.",
                file=file,
                column=strange[0],
            )
