"""How confident a model is at growing distance from its data (Dey et al., section 3.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray, check_proba, numeric_matrix
from kdcal_core.diagnostics.foreign_results import DistanceCurve
from kdcal_core.errors import InputError
from kdcal_core.progress import Progress

BAND = (25.0, 75.0)
_BLOCK_ROWS = 16_384
_BLOCK_VALUES = 2**22


def sphere_points(n: int, n_features: int, radius: float, seed: int) -> FloatArray:
    """``n`` points uniform on the sphere of ``radius`` about the origin, (n, n_features).

    Normalised Gaussian vectors (decision D20: points of a normalised cube are not uniform). The
    directions depend on the seed alone, so that spheres of equal seeds lie on the same rays.

    Raises
    ------
    InputError
        For a count below 1, or a radius that is negative or not finite.

    Examples
    --------
    >>> np.linalg.norm(sphere_points(2, 5, 3.0, seed=0), axis=1).round(12).tolist()
    [3.0, 3.0]
    """
    for name, count in (("n", n), ("n_features", n_features)):
        if count < 1:
            raise InputError(f"{name} is {count!r}", fix="Choose a whole number from 1 on.")
    if not 0.0 <= radius < np.inf:
        raise InputError(f"The radius is {radius!r}", fix="Choose a finite number from 0 on.")
    directions = np.random.default_rng(seed).normal(size=(n, n_features))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return np.asarray(radius * directions)


def max_confidence_by_distance(
    predict_proba: Callable[[Any], Any],
    X: Any,
    radii: Any,
    n: int = 1000,
    seed: int = 0,
    *,
    centre: Any = None,
    q: tuple[float, float] = BAND,
    progress: Progress | None = None,
) -> DistanceCurve:
    """Mean max confidence against the distance from the data, in units of the data's radius.

    Dey et al., section 3.1.1: ``n`` points uniform on each sphere. Its radius of 1 is the largest
    norm of the data's rows, so that no data lie beyond 1.

    Parameters
    ----------
    predict_proba : callable
        Probabilities (m, K) of rows (m, d); of a frame with the columns of ``X`` where that is
        a frame. Called for at most 16,384 rows at once.
    X : (rows, d) array-like or DataFrame
        The data that the model knows: finite numbers.
    radii : (R,) array-like
        Finite radii from 0 on.
    n, seed : int
        Points on each sphere, and the seed of their directions, which all spheres share.
    centre : (d,) array-like, optional
        Centre of the spheres, from which the rows' distances are taken as well; by default the
        origin, as in the paper. For tables in their own units use their mean.
    q : tuple of two float
        Percentiles of the band over the points, in [0, 100].
    progress : callable, optional
        ``progress(share, note)`` after each block; may raise to cancel.

    Raises
    ------
    InputError
        For values out of range, a value of ``X`` that is not a finite number (with its column
        and row), rows that all lie in the centre, or outputs that are not probabilities.

    Examples
    --------
    >>> always = lambda X: np.tile([0.7, 0.3], (len(X), 1))
    >>> curve = max_confidence_by_distance(always, [[1.0, 2.0]], [0, 1, 5], n=10)
    >>> curve.mean.round(6).tolist()
    [0.7, 0.7, 0.7]
    """
    radii, q = _checked_radii(radii), _checked_band(q)
    matrix = _matrix(X)
    middle = _checked_centre(centre, matrix.shape[1])
    reach = float(np.linalg.norm(matrix - middle, axis=1).max())
    if reach == 0.0:
        raise InputError(
            "All rows lie in the centre, so that there is no distance to measure by",
            fix="Give rows that differ, or another centre.",
        )
    directions = sphere_points(n, matrix.shape[1], reach, seed)
    columns = X.columns if isinstance(X, pd.DataFrame) else None
    largest = np.empty(len(radii) * n)
    block = max(1, min(_BLOCK_ROWS, _BLOCK_VALUES // matrix.shape[1]))
    for start in range(0, len(largest), block):
        index = np.arange(start, min(start + block, len(largest)))
        points: Any = middle + radii[index // n, None] * directions[index % n]
        if columns is not None:
            points = pd.DataFrame(points, columns=columns)
        largest[index] = _largest(predict_proba(points), len(index))
        if progress is not None:
            progress((index[-1] + 1) / len(largest), "Confidence at a distance")
    return _curve(largest.reshape(len(radii), n), radii, q, seed)


def confidence_by_distance(
    proba_by_radius: Any, radii: Any, *, q: tuple[float, float] = BAND, seed: int = 0
) -> DistanceCurve:
    """:func:`max_confidence_by_distance` of computed probabilities (R, n, K).

    ``seed`` is recorded as that of the points.

    Examples
    --------
    >>> confidence_by_distance([[[0.9, 0.1], [0.5, 0.5]]], [2.0]).mean.tolist()
    [0.7]
    """
    radii, q = _checked_radii(radii), _checked_band(q)
    proba = np.asarray(proba_by_radius, dtype=np.float64)
    if proba.ndim != 3 or len(proba) != len(radii):
        raise InputError(
            f"The probabilities have shape {proba.shape}, not ({len(radii)}, n, K)",
            fix="Give one table of probabilities for each radius.",
        )
    largest = check_proba(proba.reshape(-1, proba.shape[2])).max(axis=1)
    return _curve(largest.reshape(proba.shape[:2]), radii, q, seed)


def _curve(
    largest: FloatArray, radii: FloatArray, q: tuple[float, float], seed: int
) -> DistanceCurve:
    low, high = np.percentile(largest, q, axis=1)
    return DistanceCurve(radii, largest.mean(axis=1), low, high, q, largest.shape[1], seed)


def _largest(proba: Any, n: int) -> FloatArray:
    checked = check_proba(proba)
    if len(checked) != n:
        raise InputError(
            f"The model gave {len(checked):,} rows of probabilities for {n:,} points",
            fix="Give a function that returns one row for each point.",
        )
    return np.asarray(checked.max(axis=1))


def _matrix(X: Any) -> FloatArray:
    frame = X if isinstance(X, pd.DataFrame) else _frame(np.asarray(X))
    if frame.empty:
        raise InputError("There are no rows", fix="Give at least one row and one column.")
    return numeric_matrix(frame, list(frame.columns), allow_missing=False)


def _frame(X: Any) -> pd.DataFrame:
    if X.ndim != 2:
        raise InputError(
            f"The rows have shape {X.shape}, not (rows, columns)",
            fix="Give one row a point and one column a feature.",
        )
    return pd.DataFrame(X, columns=[str(j + 1) for j in range(X.shape[1])])


def _checked_centre(centre: Any, n_features: int) -> FloatArray:
    if centre is None:
        return np.zeros(n_features)
    middle = np.asarray(centre, dtype=np.float64)
    if middle.shape != (n_features,) or not np.isfinite(middle).all():
        raise InputError(
            f"The centre is not a point of {n_features} finite coordinates",
            fix="Give one finite number for each feature.",
        )
    return middle


def _checked_radii(radii: Any) -> FloatArray:
    values = np.asarray(radii, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0 or not ((values >= 0) & (values < np.inf)).all():
        raise InputError(
            "The radii are not a list of finite numbers from 0 on",
            fix="Give at least one radius; 1 is the farthest row's.",
        )
    return values


def _checked_band(q: tuple[float, float]) -> tuple[float, float]:
    low, high = q
    if not 0.0 <= low <= high <= 100.0:
        raise InputError(
            f"The percentiles of the band are {low!r} and {high!r}",
            fix="Choose two numbers between 0 and 100, the smaller first.",
        )
    return float(low), float(high)
