"""The one binning kernel: every binned number of kdcal goes through these four functions."""

from __future__ import annotations

import numpy as np

from kdcal_core.data.schema import FloatArray, IntArray
from kdcal_core.errors import InputError


def uniform_edges(n_bins: int) -> FloatArray:
    """Edges of ``n_bins`` equal-width bins on [0, 1], shape (n_bins + 1,).

    An edge such as 3/10 has two spellings in floating point, 0.3 and 3 * 0.1, one unit in the
    last place apart. The larger one is taken, so that a score written either way lies in the
    bin that ends there.

    Raises
    ------
    InputError
        If ``n_bins`` is not a positive integer.

    Examples
    --------
    >>> uniform_edges(4)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    _check_n_bins(n_bins)
    step = np.arange(n_bins + 1)
    edges: FloatArray = np.maximum(step / n_bins, step * (1.0 / n_bins))
    edges[-1] = 1.0
    return edges


def quantile_edges(score: FloatArray, n_bins: int, weight: FloatArray | None = None) -> FloatArray:
    """Edges of at most ``n_bins`` bins of equal mass, from 0 to 1.

    Every inner edge is one of the scores: the smallest with at least k / n_bins of the mass at
    or below it. Equal scores are never parted, so ties merge bins and fewer may come out; none
    of them is empty.

    Parameters
    ----------
    score : (n,) array in [0, 1]
    n_bins : int
        Bins asked for.
    weight : (n,) array, optional
        Positive row weights; mass is their sum.

    Returns
    -------
    (B + 1,) array
        Strictly increasing, B <= n_bins.

    Raises
    ------
    InputError
        If ``n_bins`` is not a positive integer or there are no rows.

    Examples
    --------
    >>> quantile_edges(np.array([0.1, 0.2, 0.3, 0.9]), 2)
    array([0. , 0.2, 1. ])
    >>> quantile_edges(np.array([0.5, 0.5, 0.5, 0.9]), 4)
    array([0. , 0.5, 1. ])
    """
    _check_n_bins(n_bins)
    if len(score) == 0:
        raise InputError("There are no rows to bin", fix="Give at least one row.")
    share = np.arange(1, n_bins) / n_bins
    if weight is None:
        ordered = np.sort(score)
        # the tolerance keeps k / n_bins * n from landing a rounding error above an integer
        position = np.ceil(share * len(score) - 1e-9).astype(np.int64) - 1
    else:
        order = np.argsort(score, kind="stable")
        ordered = score[order]
        mass = np.cumsum(weight[order])
        position = np.searchsorted(mass, share * mass[-1] * (1.0 - 1e-12))
    inner = np.unique(ordered[np.clip(position, 0, len(score) - 1)])
    inner = inner[(inner > 0.0) & (inner < ordered[-1])]
    return np.concatenate(([0.0], inner, [1.0]))


def bin_index(score: FloatArray, edges: FloatArray) -> IntArray:
    """Bin of each score: bins are (a, b], the first closed at its left end, so all are counted.

    Salamon et al. (section IV, Eq. 5) have (a, b], which leaves a score of 0 without a bin; here
    the first bin is closed. The last one is closed at 1.

    Parameters
    ----------
    score : array in [edges[0], edges[-1]], any shape
    edges : (B + 1,) increasing array

    Returns
    -------
    array of int64, shape of ``score``, 0 to B - 1

    Examples
    --------
    >>> bin_index(np.array([0.0, 0.1, 0.2, 1.0]), uniform_edges(10))
    array([0, 0, 1, 9])
    """
    return np.searchsorted(edges[1:-1], score, side="left")


def bin_sums(index: IntArray, n_bins: int, values: FloatArray | None = None) -> FloatArray:
    """Sum of ``values`` per bin (the number of rows where they are not given), (n_bins,) float.

    Examples
    --------
    >>> bin_sums(np.array([0, 2, 2]), 3, np.array([1.0, 0.5, 0.25]))
    array([1.  , 0.  , 0.75])
    """
    return np.bincount(index, weights=values, minlength=n_bins).astype(np.float64)


def _check_n_bins(n_bins: int) -> None:
    if isinstance(n_bins, bool) or not isinstance(n_bins, int | np.integer) or n_bins < 1:
        raise InputError(
            f"The number of bins is {n_bins!r}", fix="Give a whole number of at least 1."
        )
