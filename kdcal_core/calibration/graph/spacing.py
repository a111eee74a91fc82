"""How far apart neighbouring polytopes lie: the variance that a single row cannot show."""

from __future__ import annotations

from concurrent.futures import Executor

import numpy as np

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.partition import Codes, nearest_centres, nearest_polytopes
from kdcal_core.partition.codes import rows_of

_ASKED = 1000
_FEWEST_IN_A_FOLD = 100
_LEFT_OUT = 1 / 20


def neighbour_spacing(
    codes: Codes | None,
    centres: FloatArray,
    *,
    seed: int = 0,
    executor: Executor | None = None,
) -> FloatArray:
    """Mean squared gap between a polytope's centre and that of its nearest other polytope.

    Most polytopes of a large forest or network hold one row, whose variance Eq. 15 of Dey et al.
    gives as zero. A fresh row lies about as far from the centre of its nearest polytope as that
    centre lies from its own nearest other, so the mean gap, added to the variances of all
    polytopes, puts their densities on one scale. No held-out row is needed, so a floor taken
    from held-out densities keeps its guarantee.

    Parameters
    ----------
    codes : codes of the p polytopes, or None
        None: nearest in Euclidean distance; else in the geodesic distance, ties by the Euclidean.
    centres : (p, d) array, finite
    seed : int
        Of the sample of up to 1,000 polytopes whose neighbours are searched, in up to ten folds,
        each among all polytopes outside the fold: below 1,000 polytopes a tenth of the others is
        left out with it, and the gap is slightly too wide.
    executor : optional
        As in :func:`kdcal_core.partition.nearest_polytopes`.

    Returns
    -------
    (d,) array
        In squared coordinates, at least 0; all 0 for a single polytope.

    Examples
    --------
    >>> import numpy as np
    >>> neighbour_spacing(None, np.array([[0.0, 5.0], [1.0, 5.0], [4.0, 5.0]])).round(2).tolist()
    [3.67, 0.0]
    """
    p, d = centres.shape
    if p < 2:
        return np.zeros(d)
    order = np.random.default_rng(seed).permutation(p)
    total, asked = np.zeros(d), 0
    # Laying out the others costs as much as many queries: the larger p, the larger the folds.
    in_a_fold = min(max(int(_LEFT_OUT * p), _FEWEST_IN_A_FOLD), _ASKED)
    for fold in np.array_split(order, min(p, _ASKED // in_a_fold)):
        fold = np.sort(fold[:in_a_fold])
        others = np.setdiff1d(order, fold)
        nearest = others[_nearest(codes, centres, fold, others, executor)]
        total += ((centres[fold] - centres[nearest]) ** 2).sum(axis=0)
        asked += len(fold)
    return total / asked


def _nearest(
    codes: Codes | None,
    centres: FloatArray,
    fold: IntArray,
    others: IntArray,
    executor: Executor | None,
) -> IntArray:
    """Position among the others of the one nearest to each polytope of the fold."""
    if codes is None:
        return nearest_centres(centres[fold], centres[others]).index
    return nearest_polytopes(
        rows_of(codes, fold),
        rows_of(codes, others),
        centres[fold],
        centres[others],
        executor=executor,
    ).index
