"""The inputs read once, as a table in order: every value becomes a code of one byte.

What is known of a column: its name, its kind, and what each of its codes stands for. A column is
read as numbers or as category names, whatever dtype it came in; its bins and the categories that
keep a code of their own are found from its values.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.blocks import cores
from kdcal_core.data.frames import as_pandas
from kdcal_core.data.splits import at_most
from kdcal_core.errors import InputError, warn
from kdcal_core.store import storable
from kdcal_core.text import and_more

MAX_BINS = 254  # one more code says missing, and all of them fit into a byte
CODES = 256
OTHER = "other"


def _none() -> NDArray[np.float64]:
    return np.empty(0)


@storable
@dataclass(frozen=True, eq=False)
class InputColumn:
    """A column of the inputs as a tree sees it.

    Attributes
    ----------
    name : str
        As in the table, hence untrusted: escape it before it reaches a screen.
    kind : "number" or "category"
        Booleans are categories.
    edges : (bins - 1,) float64
        Of a number: a value x has code i where ``edges[i - 1] < x <= edges[i]``.
    categories : tuple of str
        Of a category: the name behind each code, the most frequent first.
    pooled : bool
        Whether the last category stands for all that have no code of their own.
    has_missing : bool
        Whether a value was missing where the column was read first.
    binary : bool
        Of a number: whether 0 and 1 were its only values where the column was read first, so that
        words can say "is 0" in place of "is up to 0".

    Examples
    --------
    >>> age = InputColumn("age", "number", edges=np.array([28.0, 41.0]))
    >>> age.bins, age.missing_code
    (3, 3)
    """

    name: str
    kind: Literal["number", "category"]
    edges: NDArray[np.float64] = field(default_factory=_none)
    categories: tuple[str, ...] = ()
    pooled: bool = False
    has_missing: bool = False
    binary: bool = False

    @property
    def bins(self) -> int:
        """Number of codes that are not the missing one."""
        return len(self.edges) + 1 if self.kind == "number" else len(self.categories)

    @property
    def missing_code(self) -> int:
        """The code of a missing value, the last one."""
        return self.bins

    def same_as(self, other: InputColumn) -> bool:
        """Whether the codes of both mean the same."""
        return self is other or (
            (self.name, self.kind, self.categories, self.pooled)
            == (other.name, other.kind, other.categories, other.pooled)
            and np.array_equal(self.edges, other.edges)
        )

    def check(self) -> None:
        """Raise :class:`InputError` where the description contradicts itself."""
        if self.kind == "number":
            edges = self.edges
            sound = (
                isinstance(edges, np.ndarray)
                and edges.ndim == 1
                and edges.dtype == np.float64
                and len(edges) < MAX_BINS
                and bool(np.isfinite(edges).all())
                and bool((np.diff(edges) > 0).all())
                and not self.categories
                and not (self.binary and edges.tolist() != [0.0])
            )
        else:
            names = self.categories
            sound = (
                self.kind == "category"
                and len(self.edges) == 0
                and len(names) <= MAX_BINS
                and all(isinstance(name, str) for name in names)
                # a pooled "other" may bear the name of a category
                and len(set(names[:-1])) == len(names[:-1])
                and (self.pooled or len(set(names)) == len(names))
                and not (self.pooled and not names)
                and not self.binary
            )
        flags = all(isinstance(one, bool) for one in (self.pooled, self.has_missing, self.binary))
        if not (sound and flags and isinstance(self.name, str)):
            raise InputError(
                "The description of an input column contradicts itself",
                fix="Fit again from the data.",
                column=str(self.name),
            )


Kind = Literal["number", "category", "empty"]

NUMBERS = ("integer", "floating", "mixed-integer-float")


def kind_of(values: pd.Series[Any], name: str, file: str | None) -> Kind:
    """Number or category, and "empty" where a column of objects holds nothing at all."""
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(dtype):
        return "category"
    if pd.api.types.is_object_dtype(dtype):
        return _kind_of_objects(values, name, file)
    if pd.api.types.is_string_dtype(dtype):
        return "category"
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        return "number"
    raise _unusable(str(dtype), name, file)


def _kind_of_objects(values: pd.Series[Any], name: str, file: str | None) -> Kind:
    found = pd.api.types.infer_dtype(values, skipna=True)
    if found == "empty":
        return "empty"
    if found in ("string", "boolean"):
        return "category"
    if found in NUMBERS:
        return "number"
    raise _unusable(found, name, file)


def _unusable(found: str, name: str, file: str | None) -> InputError:
    dates = found.startswith(("date", "time", "period"))
    return InputError(
        "A column of the inputs holds dates or times"
        if dates
        else f"A column of the inputs holds neither numbers nor categories but {found} values",
        fix="Turn it into numbers, for example days since a date, or leave it out."
        if dates
        else "Turn it into numbers or text, or leave it out.",
        file=file,
        column=name,
    )


def numbers_of(values: pd.Series[Any], name: str, file: str | None) -> NDArray[np.float64]:
    """The values as contiguous float64, NaN where missing."""
    try:
        return np.ascontiguousarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    except OverflowError as error:
        raise InputError(
            "A column of the inputs holds whole numbers above 1e308",
            fix="Give smaller ones; where they only name things, give them as text.",
            file=file,
            column=name,
        ) from error


def categories_of(values: pd.Series[Any]) -> tuple[NDArray[np.int64], list[str]]:
    """Each row's index into the names, -1 where missing, and the names."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        codes, found = values.cat.codes.to_numpy(), values.cat.categories
    else:
        codes, found = pd.factorize(values)
    return np.asarray(codes, dtype=np.int64), [str(name) for name in found]


def unusable_columns(frame: pd.DataFrame) -> dict[str, str]:
    """Columns that cannot partition the inputs, each with the reason in words.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [20, 30], "day": pd.to_datetime(["2026-01-01"] * 2)})
    >>> unusable_columns(frame)
    {'day': 'A column of the inputs holds dates or times'}
    """
    reasons = {}
    for position, name in enumerate(frame.columns):
        try:
            kind_of(frame.iloc[:, position], str(name), None)
        except InputError as error:
            reasons[str(name)] = error.what
    return reasons


DIGITS = 17  # a double needs no more
SLACK = 0.25  # of a bin, by which an edge may leave its quantile for a shorter number


def find_edges(values: NDArray[np.float64], max_bins: int) -> NDArray[np.float64]:
    """Edges between all distinct values, or between quantiles where there are too many.

    What is not finite is left out. An edge is the shortest decimal there is between the values on
    its two sides, or within a quarter of a bin of its quantile, so that a split's description is
    short and still exact.

    Examples
    --------
    >>> find_edges(np.array([1.0, 2.0, 2.0, 5.0]), 254).tolist()
    [1.0, 3.0]
    >>> find_edges(np.array([0.1234, 0.1299]), 254).tolist()
    [0.126]
    """
    distinct, counts = np.unique(values[np.isfinite(values)], return_counts=True)
    if len(distinct) < 2:
        return np.empty(0)
    if len(distinct) <= max_bins:
        return short_between(distinct[:-1], distinct[1:])
    # a value lies at the middle of its ranks, so that frequent ones fill bins alone
    place = (np.cumsum(counts) - counts / 2) * (max_bins / counts.sum())
    ends = np.arange(1, max_bins)
    low = np.searchsorted(place, ends - SLACK) - 1
    high = np.searchsorted(place, ends + SLACK)
    inside = (low >= 0) & (high < len(distinct))
    return np.unique(short_between(distinct[low[inside]], distinct[high[inside]]))


def short_between(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """The number of fewest digits near the middle that is at least ``low`` and below ``high``."""
    middle = low / 2 + high / 2
    edges = np.where((middle >= low) & (middle < high), middle, low)
    size = np.abs(np.where(middle == 0, 1.0, middle))
    exponent = np.floor(np.log10(size)).astype(np.int64)
    waiting = np.ones(len(low), dtype=bool)
    for digits in range(DIGITS):
        places = digits - 1 - exponent
        unit = 10.0 ** np.minimum(np.abs(places), 300)
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = np.where(
                places >= 0, np.floor(middle * unit) / unit, np.floor(middle / unit) * unit
            )
        # without a digit there is only zero, or minus one, for what is smaller than one
        found = waiting & (rounded >= low) & (rounded < high) & ((digits > 0) | (size < 1))
        edges[found] = rounded[found]
        waiting &= ~found
    return edges


def find_categories(
    counts: NDArray[np.int64], names: list[str], max_bins: int
) -> tuple[tuple[str, ...], bool]:
    """The names that occur, the most frequent first, and whether the rarest are one "other".

    Examples
    --------
    >>> find_categories(np.array([1, 3, 2, 0]), ["a", "b", "c", "d"], 2)
    (('b', 'other'), True)
    """
    seen = sorted(np.flatnonzero(counts), key=lambda at: (-counts[at], names[at]))
    kept = [names[at] for at in seen]
    if len(kept) <= max_bins:
        return tuple(kept), False
    return (*kept[: max_bins - 1], OTHER), True


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
        """The same for some rows, given by index or as booleans.

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
    return None if n <= wanted else at_most(n, wanted)


def _code_numbers(
    values: pd.Series[Any],
    name: str,
    known: InputColumn | None,
    max_bins: int,
    sample: NDArray[np.int64] | None,
    out: NDArray[np.uint8],
    file: str | None,
) -> tuple[InputColumn, int]:
    from kdcal_core.partition.tree._tree_kernels import code_numbers

    numbers = numbers_of(values, name, file)
    column = known or _number_column(name, numbers, sample, max_bins)
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


def _number_column(
    name: str, numbers: NDArray[np.float64], sample: NDArray[np.int64] | None, max_bins: int
) -> InputColumn:
    edges = find_edges(numbers if sample is None else numbers[sample], max_bins)
    binary = edges.tolist() == [0.0] and bool(
        ((numbers == 0.0) | (numbers == 1.0) | np.isnan(numbers)).all()
    )
    return InputColumn(name, "number", edges=edges, binary=binary)


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
            warn(
                f"A column of the inputs has {n:,} categories: the rarest "
                f'{n - column.bins + 1:,} of them are taken as one, "other" '
                f"({place}column {column.name!r})",
                stacklevel=3,
            )


def frame_of(
    X: pd.DataFrame | NDArray[Any], like: tuple[InputColumn, ...] | None, file: str | None
) -> pd.DataFrame:
    """The table with its columns in order."""
    X = as_pandas(X)
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
