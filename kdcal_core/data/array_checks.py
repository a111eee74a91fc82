"""Checks at the door: probabilities, labels and weights either pass or name their first fault."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.data.frames import as_pandas
from kdcal_core.data.schema import FloatArray, IntArray
from kdcal_core.errors import InputError
from kdcal_core.statistics import RowDesign
from kdcal_core.text import counted, formatted

SUM_TOLERANCE = 1e-3
_ROUNDING = 1e-6  # what float32 may leave above one
_MOST_ROUNDING = 0.05  # from there on a row lacks a class rather than decimals
_VAST = 1e60  # squares of sums of larger weights would overflow
_EXACT = 1e-12  # a row this close to one is left untouched, bit for bit


def check_proba(
    proba: Any,
    *,
    n_classes: int | None = None,
    tolerance: float = SUM_TOLERANCE,
    rounded: bool = False,
    columns: Sequence[str] | None = None,
    file: str | None = None,
) -> FloatArray:
    """Class probabilities as a C-contiguous (n, K) float64 array whose rows sum to one.

    Parameters
    ----------
    proba : (n, K) array-like
        Probabilities in [0, 1], n >= 1 and K >= 2. Never changed in place.
    n_classes : int, optional
        The K that is expected.
    tolerance : float
        How far a row's sum may lie from one. Rows inside it are scaled to sum to one; rows
        within 1e-12 stay as they are.
    rounded : bool
        Whether each number may have been rounded by itself, as in a table that people write. Where
        all of them have two to four decimals, a row's sum may be as far from one as that explains,
        0.05 at most.
    columns : sequence of str, optional
        Names of the K columns, for the errors. Without them columns are counted from 1.
    file : str, optional
        Name of the file, for the errors.

    Raises
    ------
    InputError
        For a wrong shape, and for a value that is missing, infinite, negative or above one, or
        a row that does not sum to one: the first such row is named. Logits and percentages are
        recognised and the message says how to turn them into probabilities.

    Examples
    --------
    >>> check_proba([[0.25, 0.75], [1, 0]]).tolist()
    [[0.25, 0.75], [1.0, 0.0]]
    >>> check_proba([[0.5, 0.5], [0.5, 0.4]])
    Traceback (most recent call last):
    ...
    kdcal_core.errors.InputError: The probabilities of a row sum to 0.9, not to 1 (row 2). ...
    """
    values = _as_float(proba, "probability", columns=columns, file=file)
    _check_matrix(values, n_classes, file)
    total = values @ np.ones(values.shape[1])
    distance = np.abs(total - 1.0)
    # Comparisons with NaN are false, so a missing value fails the fast test as well.
    inside = values.min() >= 0.0 and values.max() <= 1.0 + _ROUNDING
    if rounded and inside and distance.max() > tolerance:
        tolerance = max(tolerance, rounding_of(values))
    if not (inside and distance.max() <= tolerance):
        _raise_proba_fault(values, total, tolerance, columns, file)
    off = distance > _EXACT
    if off.any():
        # A copy made on the way in is scaled in place: fresh memory is most of the cost.
        copied = isinstance(proba, np.ndarray) and values.dtype != proba.dtype
        scale = np.where(off, total, 1.0)[:, None]
        values = np.divide(values, scale, out=values if copied else None)
    return np.ascontiguousarray(values)


def rounding_of(values: FloatArray) -> float:
    """How far a row's sum may be from one if all its numbers were rounded; 0 if they were not.

    Examples
    --------
    >>> round(rounding_of(np.array([[0.333, 0.333, 0.333]])), 4), rounding_of(np.array([[1 / 3]]))
    (0.0015, 0.0)
    """
    for decimals in (2, 3, 4):
        scaled = values * 10.0**decimals
        if np.abs(scaled - np.rint(scaled)).max() < _ROUNDING * 10.0**decimals:
            most: float = values.shape[1] * 0.5 * 10.0**-decimals
            return min(most, _MOST_ROUNDING) + _ROUNDING
    return 0.0


def check_values(proba: Any) -> FloatArray:
    """Numbers of any shape as float64, missing ones as NaN; probabilities in the error.

    Examples
    --------
    >>> check_values([1, None]).tolist()
    [1.0, nan]
    """
    return _as_float(proba, "probability")


def check_labels(y: Any, n_classes: int, *, n_rows: int | None = None) -> IntArray:
    """True classes as an (n,) int64 array of column indices, 0 to ``n_classes - 1``.

    Booleans and floats are accepted where they are exactly integers.

    Raises
    ------
    InputError
        For text, a missing or fractional label, a label out of range, no rows, or another
        number of rows than ``n_rows``; the first faulty row is named.

    Examples
    --------
    >>> check_labels([0, 2.0, True], 3).tolist()
    [0, 2, 1]
    """
    labels = _as_label_numbers(y)
    if labels.ndim != 1:
        raise InputError(
            f"The labels must be one column, but have shape {labels.shape}",
            fix="Give one integer a row; turn one-hot rows into labels with argmax.",
        )
    _check_length(labels, "labels", n_rows)
    if labels.dtype.kind == "f":
        refuse_rows(np.isnan(labels), "A label is missing", "Remove the row or fill it in.")
        fractional = labels != np.floor(labels)
        refuse_rows(
            fractional | np.isinf(labels),
            "A label is not a whole number",
            "Labels are the indices of the probability columns, counted from 0.",
        )
    low, high = labels.min(), labels.max()
    if low < 0 or high >= n_classes:
        _raise_label_range(labels, n_classes)
    return labels.astype(np.int64)


def one_column(values: Any, noun: str) -> FloatArray:
    """Numbers (n,), n >= 1, each a ``noun``; an error that says so if they have another shape."""
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1 or len(found) == 0:
        raise InputError(
            f"The {noun}s must be one column with rows, but have shape {found.shape}",
            fix=f"Give one {noun} for each row.",
        )
    return found


def unit_column(values: Any, noun: str, fix: str) -> FloatArray:
    """Numbers (n,) in [0, 1], as `one_column`; otherwise an error with ``fix`` names the row."""
    found = one_column(values, noun)
    bad = ~((found >= 0.0) & (found <= 1.0))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"A {noun} is {formatted(found[row], '.6g')}", fix=fix, row=row + 1)
    return found


def check_weight(weight: Any, n_rows: int) -> FloatArray:
    """Row weights as an (n_rows,) float64 array; ``None`` weighs every row one.

    Of a :class:`kdcal_core.statistics.RowDesign` its weights.

    Raises
    ------
    InputError
        For a weight that is missing, infinite, zero or negative, or outside 1e-60 to 1e60, or
        another number of rows.

    Examples
    --------
    >>> check_weight(None, 3).tolist()
    [1.0, 1.0, 1.0]
    """
    if isinstance(weight, RowDesign):
        _check_length(weight.dependence.unit, "clusters or times", n_rows)
        weight = weight.weight
    if weight is None:
        return np.ones(n_rows)
    values = _as_float(weight, "weight")
    if values.ndim != 1:
        raise InputError(
            f"The weights must be one column, but have shape {values.shape}",
            fix="Give one positive number a row.",
        )
    _check_length(values, "weights", n_rows)
    if not (values.min() > 0 and values.max() < np.inf):
        row = int(np.argmax(~((values > 0) & (values < np.inf))))
        raise InputError(
            f"A weight is {_show(values[row])}",
            fix="Weights must be finite and above zero; leave out rows that should not count.",
            row=row + 1,
        )
    vast = (values < 1.0 / _VAST) | (values > _VAST)
    if vast.any():
        row = int(np.argmax(vast))
        raise InputError(
            f"A weight is {_show(values[row])}, too small or too large to compute with",
            fix="Only ratios of weights count: divide all of them by their mean.",
            row=row + 1,
        )
    return np.ascontiguousarray(values)


def softmax_logits(
    logits: Any, *, columns: Sequence[str] | None = None, file: str | None = None
) -> FloatArray:
    """Probabilities of logits, each row ``exp(z - max z) / sum exp(z - max z)``.

    Parameters
    ----------
    logits : (n, K) array-like, K >= 2
        Minus infinity is allowed (the logarithm of zero) as long as the row has a finite value.
    columns, file : optional
        Names for the errors.

    Raises
    ------
    InputError
        For a missing value, plus infinity, or a row of minus infinities only.

    Examples
    --------
    >>> softmax_logits([[1000.0, 1000.0], [0.0, float("-inf")]]).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    values = _as_float(logits, "logit", columns=columns, file=file)
    _check_matrix(values, None, file)
    top = values.max(axis=1, keepdims=True)
    bad = ~np.isfinite(top[:, 0])
    if bad.any():
        row = int(np.argmax(bad))
        faulty = np.isnan(values[row]) | (values[row] == np.inf)
        column = int(np.argmax(faulty))
        raise InputError(
            f"A logit is {_show(values[row, column])}",
            fix="Remove the row or export the model's outputs again.",
            file=file,
            column=_column_name(columns, column),
            row=row + 1,
        )
    with np.errstate(over="ignore"):  # a difference beyond the range is minus infinity: zero odds
        odds = np.exp(values - top)
    odds /= odds.sum(axis=1, keepdims=True)
    return np.ascontiguousarray(odds)


def digest_arrays(*parts: NDArray[Any] | str | None) -> str:
    """SHA-256, in hexadecimal, of arrays (type, shape and content), texts and ``None``.

    Equal content gives an equal digest whatever the memory layout or byte order.

    Raises
    ------
    TypeError
        For an array of Python objects, whose bytes are addresses.

    Examples
    --------
    >>> import numpy as np
    >>> digest_arrays(np.arange(3.0), "a") == digest_arrays(np.arange(6.0)[:3], "a")
    True
    >>> digest_arrays("ab", "c") == digest_arrays("a", "bc")
    False
    """
    sha = hashlib.sha256()
    for part in parts:
        if part is None:
            sha.update(b"none;")
        elif isinstance(part, str):
            text = part.encode("utf-8", "surrogatepass")
            sha.update(b"text:%d;" % len(text))
            sha.update(text)
        else:
            _digest_array(sha, np.asarray(part))
    return sha.hexdigest()


def _digest_array(sha: Any, array: NDArray[Any]) -> None:
    if array.dtype.hasobject:
        raise TypeError("an array of Python objects has no content digest")
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    sha.update(f"array:{little.dtype.str}:{little.shape};".encode())
    sha.update(np.ascontiguousarray(little).reshape(-1).view(np.uint8).data)


def _as_float(
    values: Any, noun: str, *, columns: Sequence[str] | None = None, file: str | None = None
) -> FloatArray:
    """Float64 without a copy where possible; missing values of any kind become NaN."""
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    values = as_pandas(values)
    if isinstance(values, (pd.DataFrame, pd.Series, pd.Index)):
        values = _frame_values(values)
    array = np.asarray(values)
    if array.dtype.kind == "O":
        array = np.where(pd.isna(array), np.nan, array)
    if array.dtype.kind not in "biufO":
        raise InputError(f"A {noun} is not a number", fix=f"Give each {noun} as a number.")
    try:
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        place = _first_text(array)
        raise InputError(
            f"A {noun} is not a number",
            fix=f"Give each {noun} as a number.",
            file=file,
            row=place[0] + 1 if place else None,
            column=_column_name(columns, place[1]) if place and len(place) > 1 else None,
        ) from error


def _frame_values(values: Any) -> NDArray[Any]:
    try:
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        return np.asarray(values.to_numpy(dtype=object))


def _first_text(array: NDArray[Any]) -> tuple[int, ...] | None:
    """Index of the first entry that is not a number; only called to word an error."""
    for index, value in np.ndenumerate(array):
        try:
            float(value)
        except (TypeError, ValueError):
            return index
    return None


def _check_matrix(values: FloatArray, n_classes: int | None, file: str | None) -> None:
    if values.ndim == 1:
        raise InputError(
            "The probabilities are a single column; one column for each class is needed",
            fix="For p = P(class 1) of a two-class model, stack the columns: "
            "np.column_stack([1 - p, p]).",
            file=file,
        )
    if values.ndim != 2:
        raise InputError(
            f"The probabilities must be a table (rows by classes), but have shape {values.shape}",
            fix="Give one row for each case and one column for each class.",
            file=file,
        )
    n, k = values.shape
    if k < 2:
        raise InputError(
            f"The probabilities have {k} column; at least two classes are needed",
            fix="For p = P(class 1) of a two-class model, stack the columns: "
            "np.column_stack([1 - p, p]).",
            file=file,
        )
    if n_classes is not None and k != n_classes:
        raise InputError(
            f"The probabilities have {k} columns, but {n_classes} classes are expected",
            fix="Give one column for each class of the model, in the model's order.",
            file=file,
        )
    if n < 1:
        raise InputError("There are no rows", fix="Give at least one row.", file=file)


def _raise_proba_fault(
    values: FloatArray,
    total: FloatArray,
    tolerance: float,
    columns: Sequence[str] | None,
    file: str | None,
) -> NoReturn:
    cell = ~((values >= 0.0) & (values <= 1.0 + _ROUNDING))
    bad_row = cell.any(axis=1) | ~(np.abs(total - 1.0) <= tolerance)
    row = int(np.argmax(bad_row))
    column = int(np.argmax(cell[row])) if cell[row].any() else None
    value = values[row, column] if column is not None else None
    finite = bool(np.isfinite(values[row]).all())
    what, fix = _word_proba_fault(value, total[row])
    if finite:
        what, fix = _recognise(values, cell, total, tolerance) or (what, fix)
    raise InputError(
        what,
        fix=fix,
        file=file,
        column=_column_name(columns, column) if column is not None else None,
        row=row + 1,
    )


def _word_proba_fault(value: float | None, total: float) -> tuple[str, str]:
    if value is None:
        return (
            f"The probabilities of a row sum to {formatted(total, '.6g')}, not to 1",
            "Check that every class has its column and that no other column is among them.",
        )
    if np.isnan(value):
        return "A probability is missing", "Remove the row or export the model's outputs again."
    if np.isinf(value):
        return "A probability is infinite", "Remove the row or export the model's outputs again."
    side = "negative" if value < 0 else "above 1"
    return (
        f"A probability is {side} ({formatted(value, '.6g')})",
        "Probabilities lie between 0 and 1.",
    )


def _recognise(
    values: FloatArray, cell: NDArray[np.bool_], total: FloatArray, tolerance: float
) -> tuple[str, str] | None:
    """The sentence for whole tables of another kind of number, or None for a single slip."""
    n = len(values)
    hundred = np.abs(total - 100.0) <= max(100.0 * tolerance, 0.5)
    inside = (values >= 0.0).all(axis=1) & (values <= 100.0 + _ROUNDING).all(axis=1)
    if np.count_nonzero(hundred & inside) > 0.9 * n:
        return (
            "The values look like percentages: they lie between 0 and 100 and rows sum to 100",
            "Divide them by 100.",
        )
    foreign = cell.any(axis=1) & ~(np.abs(total - 1.0) <= tolerance)
    if np.count_nonzero(foreign) > 0.5 * n:
        return (
            "The values look like logits: many are negative or above 1 and rows do not sum to one",
            "Say that they are logits (on the Load page, or with --output-kind logit), or apply "
            "the softmax function to them first.",
        )
    return None


def _as_label_numbers(y: Any) -> NDArray[Any]:
    y = as_pandas(y)
    if isinstance(y, pd.Series | pd.Index) and not isinstance(y.dtype, np.dtype):
        y = y.to_numpy(dtype=object)  # nullable, categorical and Arrow columns
    if isinstance(y, np.ma.MaskedArray):
        y = np.ma.filled(y.astype(np.float64), np.nan)
    array = np.asarray(y)
    if array.dtype.kind == "O":
        missing = pd.isna(array)
        if any(isinstance(value, str | bytes) for value in array[~missing].ravel()):
            _raise_text_labels()
        try:
            array = np.where(missing, np.nan, array).astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(
                "The labels are not whole numbers",
                fix="Labels are the indices of the probability columns, counted from 0.",
            ) from error
    if array.dtype.kind not in "biuf":
        _raise_text_labels()
    return array.astype(np.int64) if array.dtype.kind == "b" else array


def _raise_text_labels() -> NoReturn:
    raise InputError(
        "The labels are text, but column indices are needed here",
        fix="Map names to indices first: kdcal_core.data.encode_labels(labels, classes).",
    )


def _raise_label_range(labels: NDArray[Any], n_classes: int) -> NoReturn:
    row = int(np.argmax((labels < 0) | (labels >= n_classes)))
    fix = f"Labels are the indices of the probability columns, 0 to {n_classes - 1}."
    if labels.min() == 1 and labels.max() == n_classes:
        fix += " Do the labels start at 1? Then subtract 1."
    raise InputError(
        f"Label {_show(labels[row])} is out of range for {n_classes} classes",
        fix=fix,
        row=row + 1,
    )


def _check_length(values: NDArray[Any], noun: str, n_rows: int | None) -> None:
    if n_rows is not None and len(values) != n_rows:
        raise InputError(
            f"There are {len(values):,} {noun}, but {n_rows:,} rows",
            fix="Give one for each row.",
        )
    if len(values) == 0:
        raise InputError("There are no rows", fix="Give at least one row.")


def refuse_rows(
    faulty: NDArray[np.bool_],
    what: str,
    fix: str,
    *,
    column: str | None = None,
    file: str | None = None,
) -> None:
    """Refuse rows if any is faulty: the error names the first, and says how many more there are.

    Parameters
    ----------
    faulty : (n,) array of bool
    what, fix, column, file : str
        As of `InputError`.

    Examples
    --------
    >>> refuse_rows(np.array([False, True, True]), "A value is missing", "Fill it in.", column="p")
    Traceback (most recent call last):
    kdcal_core.errors.InputError: A value is missing (column 'p', row 2). At least 1 more row \
has this fault. Fill it in.
    """
    if not faulty.any():
        return
    # tables may come block by block: others can have faulty rows too
    others = int(np.count_nonzero(faulty)) - 1
    if others:
        has = "has" if others == 1 else "have"
        fix = f"At least {counted(others, 'more row')} {has} this fault. {fix}"
    raise InputError(what, fix=fix, file=file, column=column, row=int(np.argmax(faulty)) + 1)


def _column_name(columns: Sequence[str] | None, index: int) -> str:
    if columns is not None and index < len(columns):
        return str(columns[index])
    return str(index + 1)


def _show(value: Any) -> str:
    number = float(value)
    if np.isnan(number):
        return "missing"
    return formatted(number, ".6g")
