"""Class masses of the polytopes, smoothed by powers of the geodesic kernel."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.partition._blocks import cores, run_blocks
from kdcal_core.partition._checks import (
    check_codes,
    checked_counts,
    checked_exponents,
    checked_threads,
)
from kdcal_core.partition._dispatch import BLOCK_ROWS, blocks_of, kernels_of
from kdcal_core.partition.codes import Codes, LeafCodes
from kdcal_core.progress import Progress


def class_masses(
    codes: Codes,
    counts: NDArray[Any],
    exponents: NDArray[Any],
    *,
    progress: Progress | None = None,
    executor: Executor | None = None,
    threads: int | None = None,
) -> NDArray[np.float64]:
    """Smoothed class counts of every polytope, for all exponents in one pass.

    ``out[g, r, y] = sum_s K(r, s)**exponents[g] * counts[s, y]``, the n~_ry of paper 000
    Eq. 16 with the weights of Eq. 18, where an exponent is gamma * log n. The kernel's matrix is
    never held.

    Parameters
    ----------
    codes : codes of the p polytopes
        From :func:`find_polytopes`; equal codes are allowed.
    counts : (p, K) array of int
        Rows of each class in each polytope, none below zero.
    exponents : (G,) array
        Finite and above zero, for example :func:`default_exponents`.
    progress : callable (share from 0 to 1, note), optional
        Called between blocks; what it raises stops the work.
    executor : concurrent.futures.Executor, optional
        Runs the blocks in place of threads, for example in processes.
    threads : int, optional
        Threads to use; all cores where left out.

    Returns
    -------
    (G, p, K) array of float64
        The same bytes for any number of threads, blocks or processes.

    Raises
    ------
    InputError
        If shapes do not fit, a count is negative or not whole, or an exponent is not above
        zero.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.partition import LeafCodes
    >>> codes = LeafCodes(np.array([[1, 2], [1, 3]], dtype=np.int32))
    >>> class_masses(codes, np.array([[4, 0], [0, 8]]), np.array([1.0, 2.0])).tolist()
    [[[4.0, 4.0], [2.0, 8.0]], [[4.0, 2.0], [1.0, 8.0]]]
    """
    check_codes(codes)
    n_polytopes = len(codes)
    counts = checked_counts(counts, n_polytopes)
    exponents = checked_exponents(exponents)
    out = np.zeros((len(exponents), n_polytopes, counts.shape[1]))

    def write(start: int, stop: int, block: NDArray[np.float64]) -> None:
        out[:, start:stop] = block

    run_blocks(
        blocks_of("masses_block", codes),
        lambda: kernels_of(codes).prepare_masses(codes, counts, exponents),
        n_polytopes,
        write,
        note=f"Class masses of {n_polytopes:,} polytopes",
        progress=progress,
        executor=executor,
        threads=checked_threads(threads),
    )
    return out


def estimated_bytes(
    codes: Codes | tuple[int, int | tuple[int, ...]], n_classes: int, n_exponents: int
) -> int:
    """Memory that :func:`class_masses` takes at its peak, the codes and its result included.

    Parameters
    ----------
    codes : codes of the polytopes, or their shape
        The shape is (polytopes, trees) for a forest and (polytopes, widths of the layers) for a
        network.
    n_classes, n_exponents : int

    Returns
    -------
    int
        Bytes, rounded up rather than down.

    Examples
    --------
    >>> estimated_bytes((100_000, 500), n_classes=2, n_exponents=21) < 4e9
    True
    """
    if isinstance(codes, tuple):
        n_polytopes, parts = codes
    elif isinstance(codes, LeafCodes):
        n_polytopes, parts = codes.leaves.shape
    else:
        n_polytopes, parts = len(codes), codes.layer_widths
    if isinstance(parts, int):
        # A tree: its leaf, the leaf's number, at worst a run of its own or sixteen bits; and the
        # matches of a block's rows in every thread.
        a_row = (4 + 4 + 8) * parts + 2 * BLOCK_ROWS * cores()
    else:
        a_row = 3 * 8 * sum(-(-width // 64) for width in parts)
    results = 8 * n_exponents * n_classes
    return n_polytopes * (a_row + results + 16 * n_classes + 64)
