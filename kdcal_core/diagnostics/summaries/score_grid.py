"""The grid of cells on [0, 1] by which summaries count scores.

Every binned number must follow exactly from the counts of the cells. The grid therefore holds, to
the last bit, the edges of each number of equal-width bins in `BINS`, and both sides of every
threshold of :func:`kdcal_core.diagnostics.decision_counts`. Near 0 and 1 its cells have equal
widths in log odds, about 3%, so that rare events and certain models are resolved too. All edges
are made by exact arithmetic, hence the same on every machine.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_index, uniform_edges
from kdcal_core.diagnostics.decisions import STEPS
from kdcal_core.errors import InputError
from kdcal_core.text import listed

GRID = 1
"""Increased when the grid changes: summaries of two grids cannot be added."""

BINS = (*range(1, 51), 100)
"""Numbers of equal-width bins that follow exactly from a summary."""

BUCKETS = 65_536
_OCTAVES = range(8, 41)  # 2^-8 to 2^-41: below 2^-8 a cell of 1e-4 is wide in log odds
_PARTS = 32


@lru_cache(maxsize=1)
def upper_ends() -> FloatArray:
    """Upper ends of the cells, increasing from 0 to 1, (C,); read-only.

    Cell 0 holds the score 0 alone, every other one the scores above the end before it. The last
    holds the score 1 alone.

    Examples
    --------
    >>> ends = upper_ends()
    >>> float(ends[0]), float(ends[-1]), bool(0.3 in ends)
    (0.0, 1.0, True)
    """
    below = np.nextafter(np.arange(1, STEPS) / STEPS, 0.0)
    octaves = np.array([2.0**-octave for octave in _OCTAVES]) / _PARTS
    tail = (octaves[:, None] * np.arange(_PARTS, 2 * _PARTS)).ravel()
    bins = [uniform_edges(n_bins) for n_bins in BINS]
    ends = np.unique(
        np.concatenate([[0.0], below, tail, 1.0 - tail, [np.nextafter(1.0, 0.0)], *bins])
    )
    ends.flags.writeable = False
    return ends


@lru_cache(maxsize=1)
def bucket_starts() -> NDArray[np.int16]:
    """Cell of each multiple of 1 / `BUCKETS`, (BUCKETS + 1,): where the search of a cell begins.

    Most multiples have one cell between them, and the small integers stay in the cache.
    """
    return bin_index(np.arange(BUCKETS + 1) / BUCKETS, _edges()).astype(np.int16)


def cell_index(score: FloatArray) -> IntArray:
    """Cell of each score in [0, 1].

    Examples
    --------
    >>> cell_index(np.array([0.0, 1.0])).tolist() == [0, len(upper_ends()) - 1]
    True
    """
    return bin_index(score, _edges())


@lru_cache(maxsize=64)
def bins_of_cells(n_bins: int) -> IntArray:
    """Equal-width bin of each cell, (C,).

    Raises
    ------
    InputError
        For a number of bins whose edges are not all ends of cells.

    Examples
    --------
    >>> bins_of_cells(2)[[0, 1, -1]].tolist()
    [0, 0, 1]
    """
    if n_bins not in BINS:
        raise InputError(
            f"A summary has no {n_bins!r} bins",
            fix=f"Choose 1 to {BINS[-2]} bins, or {listed([str(BINS[-1])])}.",
        )
    return bin_index(upper_ends(), uniform_edges(n_bins))


def _edges() -> FloatArray:
    """Edges for the binning kernel: cell 0 is (-inf, 0], the last ends at 1."""
    return np.concatenate([[-np.inf], upper_ends()])
