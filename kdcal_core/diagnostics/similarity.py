"""How alike rows of one class are to the model, and rows of two classes (Dey et al., Fig. 2)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data import FloatArray, check_labels
from kdcal_core.diagnostics.foreign_results import KernelSimilarity
from kdcal_core.diagnostics.targets import check_level
from kdcal_core.errors import InputError
from kdcal_core.partition import ActivationCodes, Codes, LeafCodes, geodesic_kernel
from kdcal_core.statistics import clopper_pearson, normal_quantile


def kernel_similarity(
    codes: Codes, y: Any, *, n: int = 500, seed: int = 0, level: float = 0.95
) -> KernelSimilarity:
    """Mean geodesic kernel within and between classes, for a network at each depth.

    At depth l the kernel compares the activation paths through the first l layers, so that the
    curves can only fall; a forest gives the single value of all its trees.

    Parameters
    ----------
    codes : LeafCodes or ActivationCodes
        Codes of N rows.
    y : (N,) array-like
        Their classes, whole numbers from 0 on.
    n : int
        Rows that are compared, all with all: drawn without replacement where there are more.
    seed : int
        Of that draw.
    level : float
        Of the normal intervals. Pairs share rows, so their error is that of a U-statistic, cut
        to [0, 1]; where all pairs are alike, Clopper-Pearson's for half as many pairs as rows.

    Raises
    ------
    InputError
        For fewer than two rows, or labels that are not whole numbers from 0.

    Examples
    --------
    >>> from kdcal_core.partition import pack_bits
    >>> bits = np.array([[1, 1], [1, 0], [0, 0], [0, 0]])
    >>> result = kernel_similarity(pack_bits([bits]), [0, 0, 1, 1])
    >>> result.within.tolist(), result.between.tolist()
    ([0.75], [0.25])
    """
    check_level(level)
    if n < 2 or len(codes) < 2:
        raise InputError("Fewer than two rows form no pair", fix="Give at least two rows.")
    labels = check_labels(y, np.iinfo(np.int64).max, n_rows=len(codes))
    rows = np.arange(len(codes))
    if n < len(codes):
        rows = np.sort(np.random.default_rng(seed).choice(len(codes), n, replace=False))
    same = labels[rows][:, None] == labels[rows][None, :]
    other = ~same
    np.fill_diagonal(same, False)
    kernels = _by_depth(codes, rows)
    within = np.array([_pair_mean(kernel, same, level) for kernel in kernels]).T
    between = np.array([_pair_mean(kernel, other, level) for kernel in kernels]).T
    return KernelSimilarity(
        depth=np.arange(1, len(kernels) + 1),
        within=within[0],
        within_low=within[1],
        within_high=within[2],
        between=between[0],
        between_low=between[1],
        between_high=between[2],
        within_pairs=int(same.sum()) // 2,
        between_pairs=int(other.sum()) // 2,
        n=len(rows),
        seed=seed,
        level=level,
    )


def _by_depth(codes: Codes, rows: NDArray[np.int64]) -> list[FloatArray]:
    """Kernels (n, n) of the first layer, the first two, ...: products of the layers' shares."""
    if isinstance(codes, LeafCodes):
        return [geodesic_kernel(LeafCodes(codes.leaves[rows]))]
    words = codes.words[rows]
    layers = [
        geodesic_kernel(ActivationCodes(words[:, columns], (width,)))
        for columns, width in zip(codes.layer_slices(), codes.layer_widths, strict=True)
    ]
    return list(np.cumprod(layers, axis=0))


def _pair_mean(
    kernel: FloatArray, chosen: NDArray[np.bool_], level: float
) -> tuple[float, float, float]:
    """Mean over the chosen pairs, and its interval from each row's part in it."""
    pairs = chosen.sum(axis=1)
    if not pairs.any():
        return np.nan, np.nan, np.nan
    totals = np.where(chosen, kernel, 0.0).sum(axis=1)
    mean = float(totals.sum() / pairs.sum())
    n = len(pairs)
    # influence of one row's weight on the mean: each pair counts from both ends
    part = 2.0 * (totals - mean * pairs) / pairs.sum()
    variance = float(part @ part) * n / (n - 1)
    if variance < 1e-18:
        low, high = clopper_pearson(mean, np.count_nonzero(pairs) // 2, level)
        return mean, float(low), float(high)
    half = normal_quantile(level) * variance**0.5
    return mean, max(mean - half, 0.0), min(mean + half, 1.0)
