"""Row weights of a summary, as whole numbers of a unit, and Kish's rows of the same certainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import add

import numpy as np

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.errors import InputError

_MOST_UNITS = 2**32  # of all rows together, as far as is known before they are counted
_OF_A_ROW = 2**22
_FINE = 10  # bits of the mean weight, at most


@dataclass(frozen=True)
class RowWeights:
    """How rows that count unlike were counted: each as a whole number of units.

    They add, in any order. The effective number of rows is Kish's: as many rows that count alike
    have means of the same standard error, where weights have nothing to do with what is averaged.

    Attributes
    ----------
    unit : float
        The weight of a unit: a power of two.
    rows : int
    units : int
        Of all rows.
    squares : int
        Sum over the rows of their squared units.
    of_class : tuple of int
        Rows of each true class, each counted once; empty for a regression.

    Examples
    --------
    >>> one, two = (RowWeights(1.0, 2, 5, 13), RowWeights(1.0, 1, 1, 1))
    >>> (one + two).rows, round((one + two).effective, 2)
    (3, 2.57)
    """

    unit: float
    rows: int
    units: int
    squares: int
    of_class: tuple[int, ...] = ()

    @classmethod
    def of(cls, times: IntArray, unit: float, of_class: Sequence[int] = ()) -> RowWeights:
        """Of rows that count as so many units, (n,)."""
        squares = int(np.square(times).sum())  # each is below 2^44
        return cls(unit, len(times), int(times.sum()), squares, tuple(of_class))

    def __add__(self, other: RowWeights) -> RowWeights:
        if self.unit != other.unit:
            raise InputError(
                "Two summaries count weights in different units",
                fix="Summarise the rows of both with one unit.",
            )
        return RowWeights(
            self.unit,
            self.rows + other.rows,
            self.units + other.units,
            self.squares + other.squares,
            tuple(map(add, self.of_class, other.of_class)),
        )

    @property
    def effective(self) -> float:
        """Kish's effective number of rows."""
        return self.units**2 / self.squares

    @property
    def words(self) -> str:
        """How many rows there are, and as how many they count."""
        return (
            f"{self.rows:,} rows of different weight. Rates and means are weighted, and intervals "
            f"are those of {self.effective:,.0f} rows that count alike (Kish)."
        )


def unit_of_weights(weight: FloatArray, n_rows: int) -> float:
    """The unit in which the weights of ``n_rows`` rows are counted, from those of some rows.

    Whole weights are counted as they are. Others are rounded to at least 1/1024 of their mean, or
    less finely if there are more than four million rows: to a tenth of it at 400 million, which
    leaves means as they are because errors of rounding cancel.

    Parameters
    ----------
    weight : (n,) above zero

    Examples
    --------
    >>> unit_of_weights(np.array([1.0, 3.0]), 10), unit_of_weights(np.array([0.5, 1.5]), 10)
    (1.0, 0.0009765625)
    """
    mean = float(weight.mean())
    fits = mean * n_rows <= _MOST_UNITS and weight.max() < _OF_A_ROW
    if fits and not (weight % 1.0).any():
        return 1.0
    finest = np.log2(_MOST_UNITS / max(n_rows, 1))
    return float(2.0 ** np.floor(np.log2(mean) - min(finest, _FINE) + 1e-9))


def times_of(weight: FloatArray, unit: float) -> IntArray:
    """Units of each row, at least one, (n,).

    Raises
    ------
    InputError
        For a weight far above all others; the error names the row.

    Examples
    --------
    >>> times_of(np.array([0.1, 1.0, 2.6]), 0.5).tolist()
    [1, 2, 5]
    """
    units = np.maximum(np.rint(weight / unit), 1.0)
    beyond = np.flatnonzero(units >= _OF_A_ROW)
    if len(beyond):
        at = int(beyond[0])
        raise InputError(
            f"The weight {weight[at]:.6g} is thousands of times as large as others",
            fix="Correct it, or scale down such weights (trim them).",
            row=at + 1,
        )
    return units.astype(np.int64)
