"""The best split of a node, from the histograms of its columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kdcal_core.partition.tree.columns import CODES, InputColumn
from kdcal_core.partition.tree.criteria import Criterion, FloatArray

NO_WORTH = 1e-10  # gains below are rounding: criteria count in rows or in units of chi-square
TIE = 1e-12


@dataclass(frozen=True, eq=False)
class Split:
    """Which column is split, the codes that go left, and what it is worth."""

    feature: int
    goes_left: NDArray[np.bool_]
    gain: float


def best_split(
    histogram: FloatArray,
    tried: NDArray[np.int64],
    columns: tuple[InputColumn, ...],
    score: Criterion,
    min_rows: int,
) -> Split | None:
    """The best split that leaves ``min_rows`` on both sides, None where none has worth.

    Ties go to the first column and the lowest threshold, missing values to the right.

    Parameters
    ----------
    histogram : (t, codes, 1 + cells * values)
        Of the t columns tried, counts first; see the kernel.
    tried : (t,) columns, ascending
    """
    at = np.arange(len(tried))
    missing_code = np.array([columns[column].missing_code for column in tried])
    missing = histogram[at, missing_code]
    present = histogram.copy()
    present[at, missing_code] = 0
    order = _order(present, tried, columns, score)
    if order is not None:
        present = np.take_along_axis(present, order[..., None], axis=1)
    total = present[0].sum(axis=0) + missing[0]
    up_to = np.cumsum(present, axis=1)
    # (t, codes, missing right or left, ...): what goes left
    left = np.stack([up_to, up_to + missing[:, None]], axis=2)
    right = total - left
    rows_left, rows_right = left[..., 0], right[..., 0]
    valid = (rows_left >= min_rows) & (rows_right >= min_rows)
    valid &= (present[..., 0] > 0)[..., None]
    valid[..., 1] &= (missing[:, 0] > 0)[:, None]
    gains = np.full(valid.shape, -np.inf)
    if valid.any():
        cells = (score.stats.n_cells, score.stats.values.shape[1])
        gains[valid] = score.gain(
            left[valid][:, 1:].reshape(-1, *cells), right[valid][:, 1:].reshape(-1, *cells)
        )
    best = gains.max()
    if not best > NO_WORTH:
        return None
    position, last, side = np.unravel_index(
        np.flatnonzero(gains.ravel() >= best * (1 - TIE))[0], gains.shape
    )
    seen = present[position, :, 0] > 0
    larger_left = bool(rows_left[position, last, side] > rows_right[position, last, side])
    missing_left = bool(side) if missing[position, 0] else larger_left
    column = columns[tried[position]]
    goes_left = np.zeros(CODES, dtype=bool)
    if column.kind == "number":
        goes_left[: _threshold(seen, int(last), column) + 1] = True
    elif order is not None:
        # what this node has not seen goes where most rows go
        goes_left[: column.bins] = larger_left
        goes_left[order[position][seen]] = np.flatnonzero(seen) <= last
    goes_left[column.missing_code :] = missing_left
    return Split(int(tried[position]), goes_left, float(best))


def _order(
    present: FloatArray,
    tried: NDArray[np.int64],
    columns: tuple[InputColumn, ...],
    score: Criterion,
) -> NDArray[np.int64] | None:
    """The codes of each column in the order in which splits cut them; None: as they are."""
    named = np.flatnonzero([columns[column].kind == "category" for column in tried])
    if not len(named):
        return None
    order = np.tile(np.arange(present.shape[1]), (len(tried), 1))
    cells = (score.stats.n_cells, score.stats.values.shape[1])
    for at in named:
        sums = present[at]
        key = score.order(sums[:, 1:].reshape(-1, *cells))
        order[at] = np.argsort(np.where(sums[:, 0] > 0, key, np.inf), kind="stable")
    return order


def _threshold(seen: NDArray[np.bool_], last: int, column: InputColumn) -> int:
    """The last code that goes left: midway to the next one that the node has seen."""
    later = np.flatnonzero(seen[last + 1 :])
    if not len(later):
        return column.bins - 1
    return last + int(later[0]) // 2
