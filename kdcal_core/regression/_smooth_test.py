"""Neyman's smooth test on many overlapping sets of PIT values, and its p values together."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from kdcal_core.data.schema import FloatArray
from kdcal_core.progress import Progress

ORDERS = 4
_BLOCK_FLOATS = 2**22


def legendre(pit: FloatArray) -> FloatArray:
    """The first normalised Legendre polynomials on [0, 1], (4, ...): mean 0, variance 1."""
    t = 2 * pit - 1
    square = t * t
    return np.stack(
        [
            np.sqrt(3) * t,
            np.sqrt(5) * (3 * square - 1) / 2,
            np.sqrt(7) * (5 * square - 3) * t / 2,
            3 * ((35 * square - 30) * square + 3) / 8,
        ]
    )


def null_statistics(sums: sparse.csr_matrix, draws: int, seed: int, report: Progress) -> FloatArray:
    """The statistics for uniform PIT values, (draws, c), a block of draws at a time."""
    c, n_used = sums.shape
    rng = np.random.default_rng([seed, 1])
    block = max(1, _BLOCK_FLOATS // (n_used * ORDERS))
    null = np.zeros((draws, c))
    for start in range(0, draws, block):
        report(0.1 + 0.9 * start / draws, f"Chance alone: draw {start + 1:,} of {draws:,}")
        size = min(block, draws - start)
        for polynomial in legendre(rng.random((n_used, size))):
            null[start : start + size] += np.square(sums @ polynomial).T
    return null


def step_down(statistic: FloatArray, null: FloatArray) -> FloatArray:
    """p values corrected by the step-down largest statistic (Westfall and Young 1993), (c,).

    Parameters
    ----------
    statistic : (c,) array
        Large where a hypothesis is doubtful.
    null : (B, c) array
        The same statistics in B draws with all hypotheses true.

    Examples
    --------
    >>> import numpy as np
    >>> null = np.array([[1.0, 5.0], [4.0, 1.0], [2.0, 2.0]])
    >>> step_down(np.array([4.5, 3.0]), null).tolist()
    [0.5, 0.5]
    """
    order = np.argsort(statistic, kind="stable")
    # the largest over a hypothesis and all that look less doubtful than it
    largest = np.maximum.accumulate(null[:, order], axis=1)
    p = (1 + (largest >= statistic[order]).sum(axis=0)) / (len(null) + 1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.maximum.accumulate(p[::-1])[::-1]
    return adjusted
