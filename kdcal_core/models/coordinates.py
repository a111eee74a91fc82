"""Coordinates from a table's inputs: numbers unchanged, categories one-hot, then one scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.data import FloatArray, IntArray, as_pandas
from kdcal_core.models.features import category_text, numeric_input, select_columns
from kdcal_core.models.protocol import Features

Scale = bool | Literal["standard"]

_MOST_CATEGORIES = 256
_BLOCK_CELLS = 1 << 16
_NUMBERS = ("integer", "floating", "mixed-integer-float", "boolean", "decimal", "empty")


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Turns feature columns into coordinates on one scale.

    Attributes
    ----------
    feature_names : tuple of str or None
        Columns used from a data frame, in order; None for all of them.
    n_features : int
    numeric : (q,) int64
        Positions of the numeric columns.
    fill : (q,) float64
        Replacement for a missing number: the median of the fit rows. If none was missing in them,
        the largest number plus the radius of the data, because a row with a missing value is then
        unlike all of them.
    indicators : (i,) int64
        Positions in ``numeric`` of the columns with missing values in the fit rows. Each adds a
        coordinate that is 1 where the value is missing.
    categories : mapping of int to tuple of str or None
        Up to 256 categories of each other column by its position, the most frequent first; None is
        the missing value. Any other value is encoded by zeros.
    centre, unit : (d,) float64
        Subtracted from the coordinates, and their divisor.
    """

    feature_names: tuple[str, ...] | None
    n_features: int
    numeric: IntArray
    fill: FloatArray
    indicators: IntArray
    categories: Mapping[int, tuple[str | None, ...]]
    centre: FloatArray
    unit: FloatArray

    @property
    def n_dimensions(self) -> int:
        encoded = sum(len(known) for known in self.categories.values())
        return len(self.numeric) + len(self.indicators) + encoded

    @property
    def category_blocks(self) -> tuple[slice, ...]:
        """Coordinates of each categorical column."""
        at, blocks = len(self.numeric) + len(self.indicators), []
        for known in self.categories.values():
            blocks.append(slice(at, at + len(known)))
            at += len(known)
        return tuple(blocks)

    def transform(self, X: Features) -> FloatArray:
        """Coordinates of rows, (n, d), finite.

        Raises
        ------
        InputError
            A column is missing, or a numeric column holds text or infinity.
        """
        numbers, others = self.columns(X)
        missing = np.isnan(numbers)
        if missing.any():
            np.copyto(numbers, self.fill, where=missing)
        encoded = [_one_hot(others[at], known) for at, known in self.categories.items()]
        if encoded or len(self.indicators):
            numbers = np.concatenate([numbers, missing[:, self.indicators], *encoded], axis=1)
        numbers -= self.centre
        numbers /= self.unit
        return numbers

    def columns(self, X: Features) -> tuple[FloatArray, dict[int, pd.Series[Any]]]:
        """A new array with the numbers (NaN where missing), and the categorical columns."""
        if not self.categories:
            numbers = numeric_input(
                X,
                n_features=self.n_features,
                feature_names=self.feature_names,
                allow_missing=True,
            )
            return numbers, {}
        frame = _frame(X, self.n_features, self.feature_names)
        numbers = numeric_input(
            frame.iloc[:, self.numeric], n_features=len(self.numeric), allow_missing=True
        )
        return numbers, {at: frame.iloc[:, at] for at in self.categories}


def fit_coordinates(
    X: Features, *, n_features: int, feature_names: tuple[str, ...] | None, scale: Scale
) -> Coordinates:
    """Fit the encoding to rows.

    Parameters
    ----------
    X : pandas.DataFrame or (n, n_features) array
    n_features : int
    feature_names : tuple of str or None
        The model's names for its columns.
    scale : bool or "standard"
        True: divide by the largest Euclidean norm of a row (the papers' protocol). "standard":
        first centre each coordinate and divide it by its standard deviation (by 1 where constant),
        so that no unit of measurement dominates. The categories of a column share the standard
        deviation of the whole column. If each used its own, a rare category would be farther from
        the others than any number.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"size": [3.0, None], "colour": ["red", "blue"]})
    >>> fitted = fit_coordinates(X, n_features=2, feature_names=None, scale=False)
    >>> fitted.transform(X).tolist()
    [[3.0, 0.0, 0.0, 1.0], [3.0, 1.0, 1.0, 0.0]]
    """
    X = as_pandas(X)
    categories: dict[int, tuple[str | None, ...]] = {}
    if isinstance(X, pd.DataFrame) or np.asarray(X).dtype.kind not in "biuf":
        frame = _frame(X, n_features, feature_names)
        categories = {
            at: _known(frame.iloc[:, at])
            for at in range(n_features)
            if not _is_numeric(frame.iloc[:, at])
        }
    names = feature_names if isinstance(X, pd.DataFrame) else None
    numeric = np.array([at for at in range(n_features) if at not in categories], dtype=np.int64)
    fitted = Coordinates(
        feature_names=names,
        n_features=n_features,
        numeric=numeric,
        fill=np.zeros(len(numeric)),
        indicators=np.zeros(0, dtype=np.int64),
        categories=categories,
        centre=np.zeros(1),
        unit=np.ones(1),
    )
    numbers, _ = fitted.columns(X)
    missing = np.asarray(np.isnan(numbers).any(axis=0))
    highest = np.fmax.reduce(numbers, axis=0)
    median = _medians(numbers, missing)
    fitted = replace(fitted, fill=median, indicators=np.flatnonzero(missing).astype(np.int64))
    values = fitted.transform(X)
    centre, spread = np.zeros(values.shape[1]), np.ones(values.shape[1])
    if scale == "standard":
        centre, spread = _standard(values)
        for block in fitted.category_blocks:
            varied = values[:, block].var(axis=0).sum()
            spread[block] = np.sqrt(varied) if varied > 0 else 1.0
        values = (values - centre) / spread
    radius = _largest_norm(values)
    return replace(
        fitted,
        fill=np.where(missing, median, highest + radius * spread[: len(numeric)]),
        centre=centre,
        unit=spread * radius if scale else spread,
    )


def _frame(X: Features, n_features: int, feature_names: tuple[str, ...] | None) -> pd.DataFrame:
    X = as_pandas(X)
    is_frame = isinstance(X, pd.DataFrame)
    return select_columns(
        X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X)),
        n_features=n_features,
        feature_names=feature_names if is_frame else None,
    )


def _is_numeric(column: pd.Series[Any]) -> bool:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return False
    if column.dtype == object:
        return pd.api.types.infer_dtype(column, skipna=True) in _NUMBERS
    # Dates and similar types count as numbers here; reading them then reports the error.
    return not pd.api.types.is_string_dtype(column.dtype)


def _texts(column: pd.Series[Any]) -> tuple[NDArray[Any], list[str | None]]:
    """Code of each value, and the distinct values as text, with None for the missing value."""
    codes, uniques = pd.factorize(column, use_na_sentinel=False)
    return codes, [None if pd.isna(value) else category_text(value) for value in uniques]


def _known(column: pd.Series[Any]) -> tuple[str | None, ...]:
    codes, texts = _texts(column)
    count: dict[str | None, int] = {}
    for text, n in zip(texts, np.bincount(codes, minlength=len(texts)), strict=True):
        count[text] = count.get(text, 0) + int(n)
    ranked = sorted(count, key=lambda text: (-count[text], text is None, text or ""))
    kept = ranked[:_MOST_CATEGORIES]
    return tuple(sorted(kept, key=lambda text: (text is None, text or "")))


def _one_hot(column: pd.Series[Any], known: tuple[str | None, ...]) -> FloatArray:
    codes, texts = _texts(column)
    position = {text: at for at, text in enumerate(known)}
    at = np.array([position.get(text, -1) for text in texts], dtype=np.int64)[codes]
    encoded = np.zeros((len(column), len(known)))
    rows = np.flatnonzero(at >= 0)
    encoded[rows, at[rows]] = 1.0
    return encoded


def _medians(numbers: FloatArray, with_missing: NDArray[np.bool_]) -> FloatArray:
    """Median of each column with missing values; zero for the others and for empty ones."""
    median = np.zeros(numbers.shape[1])
    for j in np.flatnonzero(with_missing):
        present = numbers[~np.isnan(numbers[:, j]), j]
        median[j] = np.median(present) if len(present) else 0.0
    return median


def _standard(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of each column, without overflow; 1 where it is constant."""
    high, low = values.max(axis=0), values.min(axis=0)
    largest = np.maximum(high, -low)
    largest[largest == 0.0] = 1.0
    relative = values / largest
    spread = np.where(high > low, relative.std(axis=0), 0.0) * largest
    return relative.mean(axis=0) * largest, np.where(spread > 0, spread, 1.0)


def _largest_norm(values: FloatArray) -> float:
    """Largest Euclidean norm of a row, without overflow; 1 where all are zero."""
    largest = float(max(values.max(initial=0.0), -values.min(initial=0.0)))
    if largest == 0.0:
        return 1.0
    rows = max(1, _BLOCK_CELLS // max(1, values.shape[1]))
    squares = (
        np.square(values[start : start + rows] / largest).sum(axis=1).max()
        for start in range(0, len(values), rows)
    )
    return largest * float(np.sqrt(max(squares)))


@dataclass(frozen=True)
class CoordinatesRecord:
    """The description of coordinates in a file, without their arrays."""

    feature_names: tuple[str, ...] | None
    n_features: int
    categories: tuple[tuple[int, tuple[str | None, ...]], ...]


def coordinates_parts(
    coordinates: Coordinates,
) -> tuple[CoordinatesRecord, dict[str, NDArray[Any]]]:
    """The parts from which :func:`coordinates_from_parts` rebuilds the coordinates."""
    about = CoordinatesRecord(
        coordinates.feature_names,
        coordinates.n_features,
        tuple((at, tuple(known)) for at, known in coordinates.categories.items()),
    )
    names = ("centre", "unit", "fill", "numeric", "indicators")
    return about, {name: getattr(coordinates, name) for name in names}


def coordinates_from_parts(
    columns: CoordinatesRecord, arrays: Mapping[str, NDArray[Any]]
) -> Coordinates:
    categories = dict(columns.categories)
    coordinates = Coordinates(
        feature_names=columns.feature_names,
        n_features=columns.n_features,
        numeric=_positions(arrays["numeric"], columns.n_features),
        fill=np.asarray(arrays["fill"], dtype=np.float64),
        indicators=_positions(arrays["indicators"], len(arrays["numeric"])),
        categories=categories,
        centre=np.asarray(arrays["centre"], dtype=np.float64),
        unit=np.asarray(arrays["unit"], dtype=np.float64),
    )
    width = (coordinates.n_dimensions,)
    covered = sorted([*coordinates.numeric.tolist(), *categories])
    if (
        len(covered) != coordinates.n_features  # first, because the file may state any number
        or covered != list(range(coordinates.n_features))
        or (columns.feature_names is not None and len(columns.feature_names) != len(covered))
        or coordinates.fill.shape != coordinates.numeric.shape
        or not coordinates.centre.shape == coordinates.unit.shape == width
        or not all(
            np.isfinite(part).all()
            for part in (coordinates.fill, coordinates.centre, coordinates.unit)
        )
        or not (coordinates.unit > 0).all()
    ):
        raise ValueError("the coordinates contradict themselves")
    return coordinates


def _positions(array: NDArray[Any], length: int) -> NDArray[np.int64]:
    if array.dtype != np.int64 or array.ndim != 1 or not ((array >= 0) & (array < length)).all():
        raise ValueError("positions are out of range")
    return array
