"""Turns a data frame or an array into the numbers that a model takes; errors name the place.

Categorical columns are recoded to the numbers that a boosted model uses for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.data import FloatArray, as_pandas
from kdcal_core.errors import InputError
from kdcal_core.models.protocol import Features
from kdcal_core.text import counted, formatted, listed

# Longer lists of names are cut in messages.
_KINDS = {"m": "durations", "M": "dates", "c": "complex numbers"}
TOO_LARGE = "is too large for the model's number format"


def numeric_input(
    X: Features,
    *,
    n_features: int,
    feature_names: Sequence[str] | None = None,
    allow_missing: bool = False,
) -> FloatArray:
    """The model's input as numbers, with columns in the model's order.

    Parameters
    ----------
    X : pandas.DataFrame or (n, n_features) array
        Of a data frame, the columns named in ``feature_names`` are used and others ignored. Without
        names, and for arrays, the number of columns must match.
    n_features : int
        Number of columns the model takes.
    feature_names : sequence of str, optional
        Their names in order.
    allow_missing : bool, default=False
        Whether NaN is accepted. Infinity never is.

    Returns
    -------
    (n, n_features) float64, in C order

    Raises
    ------
    InputError
        Missing columns, a wrong number of columns, text, NaN or infinity; with the column and the
        row (from 1) where there is one.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"b": [1, 2], "unused": ["x", "y"], "a": [0.5, 1.5]})
    >>> numeric_input(frame, n_features=2, feature_names=["a", "b"]).tolist()
    [[0.5, 1.0], [1.5, 2.0]]
    """
    X = as_pandas(X)
    if isinstance(X, pd.DataFrame):
        frame = select_columns(X, n_features=n_features, feature_names=feature_names)
        names = [str(name) for name in frame.columns]
        matrix = np.empty(frame.shape, dtype=np.float64)
        for j, name in enumerate(names):
            matrix[:, j] = _numbers(frame.iloc[:, j], name)
    else:
        matrix = _matrix(X, n_features)
        names = list(feature_names) if feature_names else [str(j + 1) for j in range(n_features)]
    _check_finite(matrix, names, allow_missing=allow_missing)
    return matrix


def column_names(
    X: Features, *, n_features: int, feature_names: Sequence[str] | None
) -> tuple[str, ...]:
    """Names of the input columns in messages: the model's, the table's, or numbers."""
    if feature_names is not None:
        return tuple(feature_names)
    if isinstance(X, pd.DataFrame):
        return tuple(str(name) for name in X.columns)
    return tuple(str(j + 1) for j in range(n_features))


def bad_value(
    values: NDArray[Any], bad: NDArray[np.bool_], names: Sequence[str], what: str
) -> InputError:
    """The error for the first value that the model cannot take.

    Examples
    --------
    >>> values = np.array([[1.0, 1e300]])
    >>> error = bad_value(values, values > 1e38, ("a", "b"), "is too large")
    >>> error.what, error.column, error.row
    ('The value 1 × 10³⁰⁰ is too large', 'b', 1)
    """
    row, j = np.unravel_index(int(np.argmax(bad)), bad.shape)
    return InputError(
        f"The value {formatted(values[row, j], 'g')} {what}",
        fix="Prepare the column as it was done before training.",
        column=names[int(j)],
        row=int(row) + 1,
    )


def select_columns(
    frame: pd.DataFrame, *, n_features: int, feature_names: Sequence[str] | None = None
) -> pd.DataFrame:
    """The model's columns of a data frame, in the model's order.

    Raises
    ------
    InputError
        A named column is missing or occurs twice, or the number of columns is wrong.

    Examples
    --------
    >>> import pandas as pd
    >>> list(select_columns(pd.DataFrame({"b": [1], "a": [2]}), n_features=1, feature_names=["a"]))
    ['a']
    """
    if feature_names is None:
        _check_width(frame.shape[1], n_features)
        return frame
    present = [str(name) for name in frame.columns]
    positions = {name: j for j, name in reversed(list(enumerate(present)))}
    missing = [name for name in feature_names if name not in positions]
    if missing:
        raise InputError(
            f"The table lacks {counted(len(missing), 'column')} that the model takes: "
            f"{listed(map(repr, missing))}",
            fix=f"The model takes {counted(n_features, 'feature')}; name the table's columns as "
            "the model does.",
            column=missing[0],
        )
    wanted = set(feature_names)
    twice = [name for name in wanted if present.count(name) > 1]
    if twice:
        raise InputError(
            "The table holds a column that the model takes more than once",
            fix="Keep one column of that name.",
            column=min(twice),
        )
    return frame.iloc[:, [positions[name] for name in feature_names]]


def _matrix(X: Any, n_features: int) -> FloatArray:
    array = np.asarray(X)
    if array.ndim != 2:
        raise InputError(
            f"The features have {counted(array.ndim, 'dimension')}, expected 2",
            fix="Pass one row per example and one column per feature.",
        )
    _check_width(array.shape[1], n_features)
    if array.dtype.kind in "biuf":
        return np.array(array, dtype=np.float64, order="C")
    matrix = np.empty(array.shape, dtype=np.float64)
    for j in range(n_features):
        matrix[:, j] = _numbers(pd.Series(array[:, j]), str(j + 1))
    return matrix


def _check_width(got: int, expected: int) -> None:
    if got != expected:
        raise InputError(
            f"The model takes {counted(expected, 'feature')}, the table has "
            f"{counted(got, 'feature column')}",
            fix="Choose exactly the columns that the model was trained on, in the same order.",
        )


def _numbers(column: pd.Series[Any], name: str) -> NDArray[np.float64]:
    """One column as float64; missing values become NaN, text is an error."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
        return column.to_numpy(dtype=np.float64)
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "mMc":
        raise InputError(
            f"The column holds {_KINDS[column.dtype.kind]} where the model takes numbers",
            fix="Turn it into numbers as it was done before training.",
            column=name,
        )
    values = column.astype(object)
    numbers = pd.to_numeric(values, errors="coerce")
    bad = np.asarray(numbers.isna() & ~values.isna()) | _is_text(values)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"The column holds {_short(values.iloc[row])} where the model takes a number",
            fix="Turn text into numbers as it was done before training.",
            column=name,
            row=row + 1,
        )
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan)


def _is_text(values: pd.Series[Any]) -> NDArray[np.bool_]:
    # "1.5" as text is an error too: converting it silently would hide a wrongly read table.
    return np.fromiter((isinstance(v, str | bytes) for v in values), dtype=bool, count=len(values))


def _check_finite(matrix: FloatArray, names: Sequence[str], *, allow_missing: bool) -> None:
    finite = np.isfinite(matrix)
    if finite.all():
        return
    bad = np.isinf(matrix) if allow_missing else ~finite
    if not bad.any():
        return
    row, j = np.unravel_index(int(np.argmax(bad)), bad.shape)
    what = "infinite value" if np.isinf(matrix[row, j]) else "missing value (NaN)"
    n_rows = int(bad.any(axis=1).sum())
    more = f", and {counted(n_rows - 1, 'more row')} like it" if n_rows > 1 else ""
    raise InputError(
        f"The model cannot take the {what}{more}",
        fix="Remove or fill such values before the review, as it was done before training.",
        column=names[int(j)],
        row=int(row) + 1,
    )


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


_SHOWN = 8


def category_text(value: Any) -> str:
    """A category as text; 1, 1.0 and "1" are one category, because tables mix these spellings.

    Examples
    --------
    >>> category_text(1.0), category_text("a"), category_text(True)
    ('1', 'a', 'True')
    """
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def category_codes(column: pd.Series[Any], categories: Sequence[Any], *, name: str) -> FloatArray:
    """Position of each value in the model's list of categories.

    Parameters
    ----------
    column : (n,) pandas.Series
        Values of any type, which are compared as text.
    categories : sequence
        The model's categories in its order.
    name : str
        Name of the column, for messages.

    Returns
    -------
    (n,) float64, NaN where the value is missing

    Raises
    ------
    InputError
        A value is not a category of the model; the column and the first such row are named.

    Examples
    --------
    >>> import pandas as pd
    >>> category_codes(pd.Series(["b", None, "a"]), ["a", "b"], name="letter").tolist()
    [1.0, nan, 0.0]
    """
    positions = {category_text(category): k for k, category in enumerate(categories)}
    numbers, uniques = pd.factorize(column)
    known = np.array([positions.get(category_text(value), -1) for value in uniques], dtype=float)
    codes = np.where(numbers < 0, np.nan, np.append(known, 0.0)[numbers])
    unknown = codes == -1
    if unknown.any():
        row = int(np.argmax(unknown))
        known_ones = listed((repr(category_text(one)[:30]) for one in categories), _SHOWN)
        raise InputError(
            f"The model does not know the category {category_text(column.iloc[row])[:60]!r}",
            fix=f"It knows {known_ones}. Correct the value, or leave it empty where the model "
            "was trained with missing values.",
            column=name,
            row=row + 1,
        )
    return codes


def numbers_and_categories(
    X: Features,
    *,
    n_features: int,
    feature_names: Sequence[str] | None,
    categories: Mapping[int, Sequence[Any]],
) -> FloatArray:
    """The input of boosted trees: numbers unchanged, categories by their position.

    Parameters
    ----------
    X : pandas.DataFrame or (n, n_features) array
    n_features, feature_names
        As in :func:`kdcal_core.models.features.numeric_input`.
    categories : mapping of int to sequence
        The model's categories by column index.

    Returns
    -------
    (n, n_features) float64, NaN where a value is missing

    Raises
    ------
    InputError
        As :func:`numeric_input` and :func:`category_codes`.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"colour": ["red", "blue"], "size": [1.5, None]})
    >>> numbers_and_categories(frame, n_features=2, feature_names=["size", "colour"],
    ...                        categories={1: ["blue", "red"]}).tolist()
    [[1.5, 1.0], [nan, 0.0]]
    """
    rows: Features = as_pandas(X)
    if categories:
        is_frame = isinstance(rows, pd.DataFrame)
        frame = select_columns(
            rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(np.asarray(rows)),
            n_features=n_features,
            feature_names=feature_names if is_frame else None,
        )
        rows = frame.copy(deep=False)
        rows.columns = pd.Index(feature_names or [str(j + 1) for j in range(n_features)])
        for j, known in categories.items():
            codes = category_codes(frame.iloc[:, j], known, name=str(rows.columns[j]))
            rows.isetitem(j, codes)
    return numeric_input(
        rows, n_features=n_features, feature_names=feature_names, allow_missing=True
    )
