"""Rows of one class's probability, gathered so that a million of them fit in milliseconds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_sums
from kdcal_core.statistics import CLIP

# Up to so many rows every row stands for itself, and fits are exact.
EXACT = 50_000
# Width of a cell on the logit. Within it the logit varies by 1/222 (standard deviation) around a
# mean that is kept, which moves a fitted slope by well below a hundredth of its standard error.
WIDTH = 1.0 / 64.0
_NARROWEST = 1e-9
_LARGEST_GRID = 20_000_000


@dataclass(frozen=True, eq=False)
class Cells:
    """Weighted points on the logit of one class's probability, each in one region.

    Attributes
    ----------
    region : (c,) int array
    logit : (c,) array
        log(p / (1 - p)), p clipped at 1e-12 (decision D104).
    weight, positive : (c,) arrays
        Weight of the rows, and of those that are of the class.
    """

    region: IntArray
    logit: FloatArray
    weight: FloatArray
    positive: FloatArray

    def take(self, which: IntArray) -> Cells:
        """Some of the cells."""
        return Cells(
            self.region[which],
            self.logit[which],
            self.weight[which],
            self.positive[which],
        )

    @classmethod
    def joined(cls, parts: list[Cells], n_regions: int) -> Cells:
        """The cells of several classes as one; the regions of part c start at c ``n_regions``."""
        return cls(
            np.concatenate([one.region + c * n_regions for c, one in enumerate(parts)]),
            np.concatenate([one.logit for one in parts]),
            np.concatenate([one.weight for one in parts]),
            np.concatenate([one.positive for one in parts]),
        )


def logit_of(p: FloatArray) -> FloatArray:
    """log(p / (1 - p)) with p clipped at 1e-12, to both sides alike.

    Examples
    --------
    >>> import numpy as np
    >>> logit_of(np.array([0.5, 0.0, 1.0])).round(2).tolist()
    [0.0, -27.63, 27.63]
    """
    kept = np.clip(p, CLIP, 1.0 - CLIP)
    value: FloatArray = np.log(kept) - np.log1p(-kept)
    return value


def lattice_of(logit: FloatArray) -> IntArray:
    """Cell of each row on a fixed lattice of the logit, counted from the lowest.

    Where all logits are nearly alike it is finer by their standard deviation.
    """
    width = WIDTH * min(1.0, max(float(logit.std()), _NARROWEST))
    cell = np.floor(logit / width).astype(np.int64)
    cell -= cell.min()
    return cell


def gather(
    logit: FloatArray,
    target: FloatArray,
    weight: FloatArray,
    region: IntArray,
    n_regions: int,
    lattice: IntArray | None = None,
) -> Cells:
    """Cells of the rows: the rows themselves up to 50,000 of them, else by region and logit.

    Parameters
    ----------
    logit, target, weight : (n,) arrays
        ``target`` is 1 for rows of the class and 0 for others.
    region : (n,) int array
        0 to ``n_regions`` - 1.
    lattice : (n,) int array, optional
        :func:`lattice_of` the logits, where many partitions of the same rows are gathered.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones(2)
    >>> gather(np.zeros(2), one, one, np.array([0, 1]), 2).positive.tolist()
    [1.0, 1.0]
    """
    if len(logit) <= EXACT:
        return Cells(region, logit, weight, weight * target)
    lattice = lattice_of(logit) if lattice is None else lattice
    width = int(lattice.max()) + 1
    if n_regions * width > _LARGEST_GRID:
        return Cells(region, logit, weight, weight * target)
    cell = region * width + lattice
    size = n_regions * width
    total = bin_sums(cell, size, weight)
    kept = np.flatnonzero(total > 0)
    return Cells(
        kept // width,
        bin_sums(cell, size, weight * logit)[kept] / total[kept],
        total[kept],
        bin_sums(cell, size, weight * target)[kept],
    )
