"""The box of one or two columns in which residuals differ most from zero: where a tree may begin.

A tree that takes one split at a time misses a region of two columns that neither shows alone. So
all boxes of a grid are tried: an interval of one column, or of two at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.partition.tree import BinnedInputs, Cut, InputColumn
from kdcal_core.partition.tree.binned import CODES

CELLS = 8  # of a column, and one more for missing values
MOST_COLUMNS = 32  # that are paired: those with the most evidence alone
SLACK = 4.0  # of the prices: boxes overlap, and few chi-squares reach twice a logarithm
COARSE = 1.5  # less for an interval of the coarser grid: with few boxes it costs the others little
PAIRED_ROWS = 40_000_000  # rows times pairs, at most; columns are left out beyond


@dataclass(frozen=True, eq=False)
class Box:
    """A box, as the cuts that lead to it from all rows.

    Attributes
    ----------
    cuts : tuple of Cut
        Each inside the one before.
    price : float
        What evidence such a box gains by chance: twice the logarithm of the number of boxes that
        are bounded as finely, by as many columns, less `SLACK` and, for each interval that is one
        cell in a grid of half as many, `COARSE`.
    worth : float
        Evidence of the box and of the other rows, less that of all rows and the price.
    """

    cuts: tuple[Cut, ...]
    price: float
    worth: float


class BoxGrid:
    """The rows of a search in a grid of coarse cells, about equally many rows in each.

    A category has a cell of its own if it is among the most frequent.

    Parameters
    ----------
    binned : BinnedInputs
    rows : (n,) int
        The rows of the search.

    Examples
    --------
    >>> from kdcal_core.partition.tree import bin_inputs
    >>> a, b = (np.repeat([0.0, 1.0], 50), np.tile([0.0, 1.0], 50))
    >>> grid = BoxGrid(bin_inputs(np.column_stack([a, b])), np.arange(100))
    >>> residual = np.where((a == 1) & (b == 1), -0.5, 0.0)
    >>> box = grid.best(np.column_stack([residual, np.full(100, 0.1)]), least=10, most=2)
    >>> [(cut.feature, cut.then_left) for cut in box.cuts], round(box.price, 1)
    ([(0, False), (1, False)], 0.4)
    """

    def __init__(self, binned: BinnedInputs, rows: IntArray) -> None:
        self._binned, self._rows = binned, rows
        self._cell_of = np.empty((len(binned.columns), CODES), dtype=np.uint8)
        self._cells = np.empty((len(binned.columns), len(rows)), dtype=np.uint8)
        for at, column in enumerate(binned.columns):
            codes = binned.codes[rows, at]
            self._cell_of[at] = _coarse(codes, column)
            self._cells[at] = self._cell_of[at][codes]
        self._sizes = self._cells.max(axis=1).astype(np.int64) + 1
        self._named = np.array([one.kind == "category" for one in binned.columns])

    def best(self, values: FloatArray, least: int, most: int) -> Box | None:
        """The box of the largest worth; None where none is above 0.

        Parameters
        ----------
        values : (n, 2 k) array
            k kinds of residuals of the rows, each beside its variance. Evidence is the sum over
            the kinds of the squared sum of residuals over that of their variances.
        least : int
            Fewest rows of the box and of the parts that its cuts leave over.
        most : int
            Largest number of columns that bound it, 1 or more; more than 2 are as 2.
        """
        from kdcal_core.diagnostics.regions._box_kernels import best_box

        kept = self._most_telling(values)
        d, sizes = len(kept), self._sizes[kept]
        intervals = np.stack([sizes * (sizes + 1) // 2, (sizes + 1) // 2], axis=1)
        intervals[self._named[kept]] = sizes[self._named[kept], None]
        pairs = d * (d - 1) / 2 if most > 1 else np.inf
        of_columns = np.array([0.0, 2.0 * np.log(d) - SLACK, 2.0 * np.log(pairs) - SLACK])
        of_interval = 2.0 * np.log(intervals) - [0.0, COARSE]
        found = np.zeros(6, dtype=np.int64)
        worth = best_box(
            self._cells[kept],
            sizes,
            self._named[kept],
            np.ascontiguousarray(values),
            least,
            of_columns,
            of_interval,
            found,
        )
        if worth <= 0.0:
            return None
        cuts, price, used = list[Cut](), 0.0, 0
        for at, low, high in found.reshape(2, 3).tolist():
            if (low, high) != (0, sizes[at] - 1):
                coarse = low % 2 == 0 and high == min(low + 1, sizes[at] - 1)
                price, used = price + of_interval[at, int(coarse)], used + 1
                cuts += self._cuts(int(kept[at]), low, high)
        return Box(self._with_rows_on_both_sides(cuts), float(price + of_columns[used]), worth)

    def _most_telling(self, values: FloatArray) -> IntArray:
        """The columns to pair, ascending: all, or those whose cells have the most evidence."""
        d, n = self._cells.shape
        most = min(d, MOST_COLUMNS, max(2, int(np.sqrt(2.0 * PAIRED_ROWS / n))))
        if most == d:
            return np.arange(d)
        evidence = np.empty(d)
        for at in range(d):
            sums = np.stack([np.bincount(self._cells[at], weights=v) for v in values.T], axis=1)
            r, v = sums[:, 0::2], sums[:, 1::2]
            evidence[at] = np.divide(r**2, v, out=np.zeros(r.shape), where=v > 0).sum()
        return np.sort(np.argsort(-evidence, kind="stable")[:most])

    def _cuts(self, column: int, low: int, high: int) -> list[Cut]:
        cell_of, last = self._cell_of[column], int(self._sizes[column]) - 1
        if self._named[column]:
            return [Cut(column, cell_of == low, True)]
        upper = [Cut(column, cell_of <= high, True)] if high < last else []
        return upper + ([Cut(column, cell_of < low, False)] if low > 0 else [])

    def _with_rows_on_both_sides(self, cuts: list[Cut]) -> tuple[Cut, ...]:
        inside = np.ones(len(self._rows), dtype=bool)
        kept = []
        for cut in cuts:
            goes = cut.goes_left[self._binned.codes[self._rows, cut.feature]] == cut.then_left
            if (inside & ~goes).any():
                kept.append(cut)
            inside &= goes
        return tuple(kept)


def _coarse(codes: NDArray[np.uint8], column: InputColumn) -> NDArray[np.uint8]:
    """The cell of every code: about equally many rows each, missing values in the last."""
    missing = column.missing_code
    counts = np.bincount(codes, minlength=CODES)[:missing]
    if column.kind == "category":
        ranks = np.argsort(np.argsort(-counts, kind="stable"), kind="stable")
        cells = np.minimum(ranks, CELLS - 1)
    else:
        middle = np.cumsum(counts) - counts / 2.0
        cells = np.floor(CELLS * middle / max(counts.sum(), 1)).astype(np.int64)
        cells = np.unique(np.minimum(cells, CELLS - 1), return_inverse=True)[1]
    found = np.full(CODES, cells.max() + 1, dtype=np.uint8)
    found[:missing] = cells
    return found
