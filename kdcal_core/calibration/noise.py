"""Histogram anchors, and the picture of noise from two halves (Salamon et al., Fig. 4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from kdcal_core.calibration.base import top_label
from kdcal_core.calibration.confidence_curve import HistogramAnchor
from kdcal_core.data import check_labels, check_proba, check_weight
from kdcal_core.data.binning import bin_index, bin_sums, uniform_edges
from kdcal_core.data.splits import stratified_folds
from kdcal_core.errors import InputError
from kdcal_core.statistics import clopper_pearson


def histogram_anchor(
    proba: Any,
    y: Any,
    *,
    label: int,
    n_bins: int = 10,
    sample_weight: Any = None,
    level: float = 0.95,
) -> HistogramAnchor:
    """Share of right predictions by score bin for one predicted class (Salamon et al., Eq. 5).

    Parameters
    ----------
    proba : (n, K) array
    y : (n,) array of int
    label : int
        The predicted class, 0 to K - 1.
    n_bins : int, default=10
        Bins (a, b] of equal width on [0, 1], the first closed at 0.
    sample_weight : (n,) array, optional
        Weighted bins get a Clopper-Pearson interval at their effective number of rows,
        (sum w)^2 / sum w^2.
    level : float, default=0.95

    Returns
    -------
    HistogramAnchor
        NaN where a bin holds no row.

    Raises
    ------
    InputError
        Where the arrays are not of this form or there is no such class.

    Examples
    --------
    >>> proba = [[0.6, 0.4], [0.7, 0.3], [0.9, 0.1], [0.1, 0.9]]
    >>> anchor = histogram_anchor(proba, [0, 1, 0, 1], label=0, n_bins=5)
    >>> anchor.confidence.tolist(), anchor.count.tolist()
    ([nan, nan, 1.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0, 1.0])
    """
    proba = check_proba(proba)
    y = check_labels(y, proba.shape[1], n_rows=len(proba))
    weight = check_weight(sample_weight, len(proba))
    if not 0 <= label < proba.shape[1]:
        raise InputError(
            f"There is no class {label}", fix=f"Classes are 0 to {proba.shape[1] - 1}."
        )
    if not 0 < level < 1:
        raise InputError(f"The level is {level}", fix="Give a number between 0 and 1, as 0.95.")
    predicted, score = top_label(proba)
    rows = predicted == label
    edges = uniform_edges(n_bins)
    index = bin_index(score[rows], edges)
    count = bin_sums(index, n_bins)
    mass = bin_sums(index, n_bins, weight[rows])
    right = bin_sums(index, n_bins, weight[rows] * (y[rows] == label))
    square = bin_sums(index, n_bins, weight[rows] ** 2)
    some = count > 0
    share = np.divide(right, mass, out=np.full(n_bins, np.nan), where=some)
    effective = np.divide(mass**2, square, out=np.zeros(n_bins), where=some)
    low, high = clopper_pearson(share, effective, level)
    return HistogramAnchor(label, edges, share, count, low, high)


def two_halves(
    proba: Any,
    y: Any,
    *,
    label: int,
    n_bins: int = 10,
    seed: int = 0,
    sample_weight: Any = None,
) -> tuple[HistogramAnchor, HistogramAnchor]:
    """Anchors of two random halves of the rows: what differs between them is noise.

    Halves are stratified by true class. Each shows the noise of half the rows, which is
    larger than that of all of them by about the square root of two.

    Examples
    --------
    >>> import numpy as np
    >>> score = np.linspace(0.55, 0.95, 40)
    >>> first, second = two_halves(np.c_[score, 1 - score], np.arange(40) % 2, label=0)
    >>> first.count.sum() + second.count.sum()
    np.float64(40.0)
    """
    proba = check_proba(proba)
    y = check_labels(y, proba.shape[1], n_rows=len(proba))
    weight = check_weight(sample_weight, len(proba))
    if len(proba) < 2:
        raise InputError("One row cannot be halved", fix="Give at least two rows.")
    half = stratified_folds(y, 2, seed)
    first, second = (
        histogram_anchor(
            proba[half == i],
            y[half == i],
            label=label,
            n_bins=n_bins,
            sample_weight=weight[half == i],
        )
        for i in (0, 1)
    )
    return first, second
