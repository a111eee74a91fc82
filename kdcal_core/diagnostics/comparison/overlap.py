"""Rows that two sets have in common."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from kdcal_core.data import IntArray
from kdcal_core.review import ReviewData


@dataclass(frozen=True)
class Overlap:
    """How many rows of the evaluation set are in the calibration set too.

    Attributes
    ----------
    rows : int
        With the same features and true class; without features, with the same probabilities and
        class, and then 0 where chance explains the matches.
    expected : float
        Matching pairs that chance gives, by how often rows of the calibration set equal each
        other.
    pairs : int
        Matching pairs found.
    error : float
        Standard error of ``pairs - expected`` where the sets are drawn apart.
    """

    rows: int
    expected: float
    pairs: int
    error: float

    @property
    def beyond_chance(self) -> bool:
        """Whether there are more matches than equal rows by chance would give."""
        return bool(self.pairs > self.expected + 5.0 * self.error)


def overlap(review: ReviewData) -> Overlap | None:
    """Rows of the evaluation set that lie in the calibration set; None without one.

    Rows of few distinct values equal each other by chance. How often they do is read off the
    calibration set itself: with c pairs of equal rows among its n (n - 1) / 2, so many of the
    n m pairs across the sets would match were they drawn apart. Pairs that share a row are not
    drawn apart from each other: where a few values are frequent the count varies by more than
    its root, by n m sd(q) (1/n + 1/m)^(1/2) besides, q being the share of a row's value. Where no
    features match, as where a column numbers the rows, probabilities may tell.
    """
    evaluation = review.evaluation
    if evaluation is None:
        return None
    sets = review.calibration, evaluation
    frames = [review.inputs.get(name) for name in ("calibration", "evaluation")]
    found = Overlap(0, 0.0, 0, 0.0)
    if all(frame is not None and frame.shape[1] > 0 for frame in frames):
        keys = [_keys(f, rows.y) for f, rows in zip(frames, sets, strict=True) if f is not None]
        found = count_matches(keys[0], keys[1])
    if found.rows:
        return found
    keys = [_keys(pd.DataFrame(rows.proba), rows.y) for rows in sets]
    alike = count_matches(keys[0], keys[1], unseen=1.0)
    return alike if alike.beyond_chance else replace(alike, rows=0)


def count_matches(
    first: NDArray[np.uint64], second: NDArray[np.uint64], unseen: float = 0.0
) -> Overlap:
    """How many of ``second`` are in ``first``, and how many pairs match beside chance.

    ``unseen`` equal pairs are added to those within ``first``, where none may be chance too.

    Examples
    --------
    >>> found = count_matches(np.array([1, 2, 3], np.uint64), np.array([3, 3, 4], np.uint64))
    >>> found.rows, found.pairs, found.expected
    (2, 2, 0.0)
    """
    values, count = np.unique(first, return_counts=True)
    place = np.minimum(np.searchsorted(values, second), len(values) - 1)
    hit = values[place] == second
    n, m = len(first), len(second)
    equal = unseen + float((count * (count - 1.0) / 2.0).sum())
    expected = equal / max(n * (n - 1) / 2.0, 1.0) * n * m
    share = count / n
    uneven = float((share * (share - (share**2).sum()) ** 2).sum())
    error = (expected + (n * m) ** 2 * uneven * (1.0 / n + 1.0 / m)) ** 0.5
    return Overlap(int(hit.sum()), expected, int(count[place[hit]].sum()), error)


def _keys(frame: pd.DataFrame, y: IntArray) -> NDArray[np.uint64]:
    """One number a row, equal for equal rows whatever their columns' types."""
    plain = {
        str(at): _plain(frame.iloc[:, at]).reset_index(drop=True) for at in range(frame.shape[1])
    }
    whole = pd.DataFrame({**plain, "class": y})
    hashed = pd.util.hash_pandas_object(whole, index=False)
    return np.asarray(hashed.to_numpy(), dtype=np.uint64)


def _plain(column: pd.Series) -> pd.Series:
    if types.is_numeric_dtype(column.dtype):
        # zero is added, so that -0.0 becomes 0.0
        return pd.Series(column.to_numpy(dtype=np.float64, na_value=np.nan) + 0.0)
    return column.astype("string").fillna("").astype(object)
