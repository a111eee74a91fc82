"""Rows that two sets have in common."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from kdcal_core.data import IntArray
from kdcal_core.review import ReviewData

_ERRORS = 5.0  # standard errors beyond which matches are no chance
_COPIED = "in the calibration set too"


@dataclass(frozen=True)
class Overlap:
    """How many rows of the evaluation set are in the calibration set too.

    Attributes
    ----------
    rows : int
        With the same features and true class; without features, with the same probabilities and
        class. Where features number the rows, so that none match, 0 unless more probabilities do
        than by chance.
    n : int
        Rows of the evaluation set.
    expected : float
        Matching pairs that chance gives, by how often rows of the calibration set equal each
        other.
    pairs : int
        Matching pairs found.
    error : float
        Standard error of ``pairs - expected`` where the sets are drawn apart.
    by : str
        What is equal in them: "features" or "probabilities", and the class.
    """

    rows: int
    n: int
    expected: float
    pairs: int
    error: float
    by: Literal["features", "probabilities"] = "features"

    @property
    def beyond_chance(self) -> bool:
        """Whether there are more matches than equal rows by chance would give."""
        return bool(self.pairs > self.expected + _ERRORS * self.error)

    @property
    def words(self) -> str | None:
        """What is to be said of them, with the count and what chance gives; None where none match.

        Examples
        --------
        >>> Overlap(40, 140, 0.0, 40, 0.0).words.split(":")[0]
        '40 rows of the evaluation set are in the calibration set too (40 pairs, chance gives 0)'
        >>> Overlap(448, 6000, 427.0, 530, 21.0).words.split(";")[0]
        '448 of 6,000 evaluation rows equal a calibration row (530 pairs, chance gives 427)'
        """
        if not self.rows:
            return None
        pairs = "1 pair" if self.pairs == 1 else f"{self.pairs:,} pairs"
        counted = f"({pairs}, chance gives {_about(self.expected)})"
        if self.beyond_chance:
            told = "1 row" if self.rows == 1 else f"{self.rows:,} rows"
            return (
                f"{told} of the evaluation set {'is' if self.rows == 1 else 'are'} {_COPIED} "
                f"{counted}: what is judged there flatters every calibrator "
                "that was fitted on them."
            )
        many = self.rows > 1
        if self.by == "features":
            alike = "equal a calibration row" if many else "equals a calibration row"
        else:
            alike = f"{'have' if many else 'has'} the probabilities and class of a calibration row"
        return (
            f"{self.rows:,} of {self.n:,} evaluation rows {alike} {counted}; that is no sign that "
            f"the sets share rows, though up to about {_ERRORS * self.error:,.0f} shared ones "
            "would not stand out."
        )


def warns_of_copies(sentence: str) -> bool:
    """Whether this is what :attr:`Overlap.words` says of more equal rows than chance gives.

    Examples
    --------
    >>> [warns_of_copies(Overlap(40, 140, mean, 40, 3.0).words) for mean in (0.0, 39.0)]
    [True, False]
    """
    return f" {_COPIED} (" in sentence


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
    featured = all(frame is not None and frame.shape[1] > 0 for frame in frames)
    if featured:
        keys = [_keys(f, rows.y) for f, rows in zip(frames, sets, strict=True) if f is not None]
        found = count_matches(keys[0], keys[1])
        if found.rows:
            return found
    keys = [_keys(pd.DataFrame(rows.proba), rows.y) for rows in sets]
    alike = replace(count_matches(keys[0], keys[1], unseen=1.0), by="probabilities")
    return replace(alike, rows=0) if featured and not alike.beyond_chance else alike


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
    return Overlap(int(hit.sum()), m, expected, int(count[place[hit]].sum()), error)


def _about(expected: float) -> str:
    return f"{expected:,.0f}" if expected >= 10.0 else f"{expected:.2g}"


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
