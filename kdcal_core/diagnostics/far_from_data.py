"""A model far from its data: confidence at growing distance, and the most confident rows.

Also how similar rows of the same class and of different classes are to the model (Dey et al.,
section 3.1 and Fig. 2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.data import (
    FloatArray,
    IntArray,
    as_pandas,
    at_most,
    check_classes,
    check_columns,
    check_proba,
    numeric_matrix,
)
from kdcal_core.data.foreign_rows import sphere_points
from kdcal_core.diagnostics.targets import check_level
from kdcal_core.errors import InputError
from kdcal_core.partition import ActivationCodes, Codes, LeafCodes, geodesic_kernel
from kdcal_core.progress import Progress
from kdcal_core.statistics import clopper_pearson, normal_quantile

SURE = 0.9
"""Confidence above which a prediction counts as sure."""


@dataclass(frozen=True, eq=False)
class DistanceCurve:
    """Mean max confidence on spheres around the data (Dey et al., Fig. 3).

    Attributes
    ----------
    radii : (R,)
        Radii in units of the data's own radius: the row farthest from the centre lies at 1.
    mean : (R,)
        Mean of the largest probability over the points of each sphere.
    low, high : (R,)
        Percentiles ``q`` of the points' largest probabilities.
    q : tuple of two float
        The band's percentiles, in [0, 100].
    n, seed : int
        Points on each sphere, and the seed of their directions.
    """

    radii: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray
    q: tuple[float, float]
    n: int
    seed: int

    def table(self) -> pd.DataFrame:
        """One row per radius: the data of the figure, for download."""
        low, high = (f"percentile_{q:g}" for q in self.q)
        return pd.DataFrame(
            {
                "radius": self.radii,
                "mean_max_confidence": self.mean,
                low: self.low,
                high: self.high,
            }
        )


@dataclass(frozen=True, eq=False)
class KernelSimilarity:
    """Mean geodesic kernel of two rows of the same class, and of different classes.

    See Dey et al., Fig. 2. Arrays of length L run over depths. A kind of pair that does not occur
    gives NaN.

    Attributes
    ----------
    depth : (L,) int
        Layers counted from the input that the kernel compares; for a forest (1,).
    within, between : (L,)
        Mean kernel over the pairs of rows of the same class, and of different classes.
    within_low, within_high, between_low, between_high : (L,)
        Their intervals at ``level``, with the rows as a sample.
    within_pairs, between_pairs : int
        Number of pairs behind them.
    n : int
        Rows compared, each with every other.
    """

    depth: IntArray
    within: FloatArray
    within_low: FloatArray
    within_high: FloatArray
    between: FloatArray
    between_low: FloatArray
    between_high: FloatArray
    within_pairs: int
    between_pairs: int
    n: int
    seed: int
    level: float

    def table(self) -> pd.DataFrame:
        """One row per depth: the data of the figure, for download."""
        return pd.DataFrame(
            {
                "depth": self.depth,
                "within": self.within,
                "within_low": self.within_low,
                "within_high": self.within_high,
                "between": self.between,
                "between_low": self.between_low,
                "between_high": self.between_high,
            }
        )


@dataclass(frozen=True, eq=False)
class Surest:
    """How confident a model is about some rows, and the row it is most confident about.

    Attributes
    ----------
    n : int
        Rows, at least one.
    n_sure : int
        Rows with a confidence above `SURE`.
    row : int
        Index of the most confident row, from 0; the first of equal ones.
    said : float
        Its confidence.
    predicted : int
        The class predicted for it.
    n_version_sure : int or None
        Rows about which the kernel density version is sure; None without one.
    version_said : float or None
        The version's confidence in that row.
    """

    n: int
    n_sure: int
    row: int
    said: float
    predicted: int
    n_version_sure: int | None = None
    version_said: float | None = None

    @classmethod
    def of(cls, said: FloatArray, predicted: IntArray, version: FloatArray | None = None) -> Surest:
        """From confidences (m,), predicted classes (m,) and the version's confidences (m,).

        Examples
        --------
        >>> Surest.of(np.array([0.6, 0.95]), np.array([1, 0])).row
        1
        """
        row = int(np.argmax(said))
        found = cls(len(said), int((said > SURE).sum()), row, float(said[row]), int(predicted[row]))
        if version is None:
            return found
        as_sure = int((version > SURE).sum())
        return replace(found, n_version_sure=as_sure, version_said=float(version[row]))


BAND = (25.0, 75.0)
_BLOCK_ROWS = 16_384
_BLOCK_VALUES = 2**22


def max_confidence_of_rows(
    proba: Any, distance: Any, *, groups: int = 20, q: tuple[float, float] = BAND
) -> DistanceCurve:
    """Mean max confidence of rows whose distances from the data are known.

    Parameters
    ----------
    proba : (n, K) array-like
        Their probabilities.
    distance : (n,) array-like
        Finite, at least 0; 1 is the distance of the farthest row of the data. Rows at equal
        distances are one sphere, if there are at most ``groups`` of these; otherwise the rows are
        cut into so many groups of about equal size, each at its mean distance.
    groups : int
    q : tuple of two float
        Percentiles of the band, in [0, 100].

    Raises
    ------
    InputError
        For distances out of range or of another number, and probabilities that are none.

    Examples
    --------
    >>> stated = [[0.9, 0.1], [0.7, 0.3], [0.5, 0.5], [0.5, 0.5]]
    >>> curve = max_confidence_of_rows(stated, [0, 0, 2, 2])
    >>> curve.radii.tolist(), curve.mean.round(2).tolist(), curve.n
    ([0.0, 2.0], [0.8, 0.5], 4)
    """
    top = check_proba(proba).max(axis=1)
    away = np.asarray(distance, dtype=np.float64)
    if away.shape != top.shape or not np.isfinite(away).all() or (away < 0.0).any() or groups < 1:
        raise InputError(
            f"The distances of {len(top):,} rows have shape {away.shape}, or one is no number from "
            "0, or there are fewer than one group",
            fix="Give one finite distance, at least 0, for each row.",
        )
    place = np.unique(away, return_inverse=True)[1]
    if place.max(initial=0) >= groups:
        place = np.argsort(np.argsort(away, kind="stable"), kind="stable") * groups // len(away)
    parts = [np.flatnonzero(place == at) for at in np.unique(place)]
    band = np.array([np.percentile(top[rows], q) for rows in parts])
    return DistanceCurve(
        radii=np.array([away[rows].mean() for rows in parts]),
        mean=np.array([top[rows].mean() for rows in parts]),
        low=band[:, 0],
        high=band[:, 1],
        q=q,
        n=len(top),
        seed=0,
    )


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

    Dey et al., section 3.1.1: ``n`` points uniform on each sphere. Radius 1 is the largest norm of
    the data's rows, so no data lie beyond it.

    Parameters
    ----------
    predict_proba : callable
        Returns probabilities (m, K) for rows (m, d), given as a frame with the columns of ``X`` if
        ``X`` is a frame. Called for at most 16,384 rows at once.
    X : (rows, d) array-like or DataFrame
        The data that the model knows; finite numbers.
    radii : (R,) array-like
        Finite radii, at least 0.
    n, seed : int
        Points on each sphere, and the seed of their directions, which all spheres share.
    centre : (d,) array-like, optional
        Centre of the spheres and of the rows' distances; by default the origin, as in the paper.
        For tables in their own units use the mean.
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
    X = as_pandas(X)
    matrix = _matrix(X)
    middle = _checked_centre(centre, matrix.shape[1])
    reach = float(np.linalg.norm(matrix - middle, axis=1).max())
    if reach == 0.0:
        raise InputError(
            "All rows lie in the centre, so there is no distance to measure by",
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

    ``seed`` is recorded as the seed of the points.

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
    checked = check_columns(proba)
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
            fix="Give one row for each point and one column for each feature.",
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
            "The radii are not a list of finite numbers, at least 0",
            fix="Give at least one radius; the farthest row lies at 1.",
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


def kernel_similarity(
    codes: Codes, y: Any, *, n: int = 500, seed: int = 0, level: float = 0.95
) -> KernelSimilarity:
    """Mean geodesic kernel within and between classes, for a network at each depth.

    At depth l the kernel compares the activation paths through the first l layers, so the curves
    can only fall. A forest gives a single value, over all its trees.

    Parameters
    ----------
    codes : LeafCodes or ActivationCodes
        Codes of N rows.
    y : (N,) array-like
        Their classes: names, or whole numbers from 0.
    n : int
        Rows to compare, each with every other; drawn without replacement if there are more.
    seed : int
        Seed of that draw.
    level : float
        Level of the normal intervals, cut to [0, 1]. Pairs share rows, so the error is that of a
        U-statistic. If all pairs are alike, the interval is Clopper-Pearson's for half as many
        pairs as rows.

    Raises
    ------
    InputError
        For fewer than two rows, or labels that are not whole numbers from 0.

    Examples
    --------
    >>> from kdcal_core.partition import pack_bits
    >>> bits = np.array([[1, 1], [1, 0], [0, 0], [0, 0]])
    >>> result = kernel_similarity(pack_bits([bits]), [0, 0, 1, 1])
    >>> result.within.tolist(), result.between.tolist()
    ([0.75], [0.25])
    """
    check_level(level)
    if n < 2 or len(codes) < 2:
        raise InputError("Fewer than two rows form no pair", fix="Give at least two rows.")
    ((labels,), _) = check_classes(y)
    if len(labels) != len(codes):
        raise InputError(
            f"There are {len(labels):,} labels for {len(codes):,} rows",
            fix="Give one label for each row.",
        )
    rows = at_most(len(codes), n, seed)
    same = labels[rows][:, None] == labels[rows][None, :]
    other = ~same
    np.fill_diagonal(same, False)
    kernels = _by_depth(codes, rows)
    within = np.array([_pair_mean(kernel, same, level) for kernel in kernels]).T
    between = np.array([_pair_mean(kernel, other, level) for kernel in kernels]).T
    return KernelSimilarity(
        depth=np.arange(1, len(kernels) + 1),
        within=within[0],
        within_low=within[1],
        within_high=within[2],
        between=between[0],
        between_low=between[1],
        between_high=between[2],
        within_pairs=int(same.sum()) // 2,
        between_pairs=int(other.sum()) // 2,
        n=len(rows),
        seed=seed,
        level=level,
    )


def _by_depth(codes: Codes, rows: NDArray[np.int64]) -> list[FloatArray]:
    """Kernels (n, n) of the first layer, the first two, ...: products of the layers' shares."""
    if isinstance(codes, LeafCodes):
        return [geodesic_kernel(LeafCodes(codes.leaves[rows]))]
    words = codes.words[rows]
    layers = [
        geodesic_kernel(ActivationCodes(words[:, columns], (width,)))
        for columns, width in zip(codes.layer_slices(), codes.layer_widths, strict=True)
    ]
    return list(np.cumprod(layers, axis=0))


def _pair_mean(
    kernel: FloatArray, chosen: NDArray[np.bool_], level: float
) -> tuple[float, float, float]:
    """Mean over the chosen pairs, and its interval from each row's part in it."""
    pairs = chosen.sum(axis=1)
    if not pairs.any():
        return np.nan, np.nan, np.nan
    totals = np.where(chosen, kernel, 0.0).sum(axis=1)
    mean = float(totals.sum() / pairs.sum())
    n = len(pairs)
    # influence of one row's weight on the mean: each pair counts from both ends
    part = 2.0 * (totals - mean * pairs) / pairs.sum()
    variance = float(part @ part) * n / (n - 1)
    if variance < 1e-18:
        low, high = clopper_pearson(mean, np.count_nonzero(pairs) // 2, level)
        return mean, float(low), float(high)
    half = normal_quantile(level) * variance**0.5
    return mean, max(mean - half, 0.0), min(mean + half, 1.0)
