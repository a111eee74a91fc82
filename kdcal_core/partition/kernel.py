"""The geodesic kernel: its exponents, the class masses that it smooths, and its matrix.

One module of compiled kernels computes for each kind of codes; each is imported when first needed.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.errors import InputError
from kdcal_core.partition._blocks import Blocks, cores, run_blocks
from kdcal_core.partition.codes import (
    Codes,
    LeafCodes,
    check_codes,
    check_same_partition,
    checked_counts,
    checked_exponents,
    checked_threads,
)
from kdcal_core.progress import Progress
from kdcal_core.text import bytes_text

STEPS_PER_DOUBLING = 3


def default_exponents() -> NDArray[np.float64]:
    """Exponents gamma * log n to choose from: 21, from 0.5 to 50.8, three a doubling.

    A forest wants about 1, a ReLU network 5 to 20 (Dey et al., Eq. 18 leaves the grid open,
    decision D10).

    Examples
    --------
    >>> default_exponents()[[0, 3, 6, 20]].round(1).tolist()
    [0.5, 1.0, 2.0, 50.8]
    """
    return np.asarray(0.5 * np.exp2(np.arange(21) / STEPS_PER_DOUBLING), dtype=np.float64)


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

    ``out[g, r, y] = sum_s K(r, s)**exponents[g] * counts[s, y]``, the n~_ry of Dey et al.,
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


LARGEST = 2**30


def geodesic_kernel(a: Codes, b: Codes | None = None) -> NDArray[np.float64]:
    """Kernel K between the rows of two codes; the geodesic distance is 1 - K.

    Forest: the share of trees in which both rows fall into one leaf (Dey et al., Eq. 11).
    Network: the share of activation paths, one unit a layer, on which both rows are activated
    identically (Eq. 12), which is the product over the layers of the share of equal bits
    (decision D5).

    Parameters
    ----------
    a : codes of n rows
    b : codes of m rows of the same partition, optional
        ``a`` itself where left out.

    Returns
    -------
    (n, m) array of float64 in [0, 1]

    Raises
    ------
    InputError
        If the codes are of two partitions, or the matrix would take more than 1 GiB.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.partition import LeafCodes, pack_bits
    >>> geodesic_kernel(LeafCodes(np.array([[1, 2], [1, 3]], dtype=np.int32))).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    >>> bits = np.array([[True, False], [True, True]])
    >>> geodesic_kernel(pack_bits([bits, bits])).tolist()
    [[1.0, 0.25], [0.25, 1.0]]
    """
    b = a if b is None else b
    check_same_partition(a, b)
    needed = 8 * len(a) * len(b)
    if needed > LARGEST:
        raise InputError(
            f"A kernel matrix of {len(a):,} by {len(b):,} rows would take {bytes_text(needed)}",
            fix="Give fewer rows; class_masses and nearest_polytopes never hold the matrix.",
        )
    kernel: NDArray[np.float64] = kernels_of(a).kernel_block(a, b)
    return kernel


BLOCK_ROWS = 128


def kernels_of(codes: Codes) -> Any:
    """The module with the kernels for codes of this kind."""
    if isinstance(codes, LeafCodes):
        from kdcal_core.partition import _forest

        return _forest
    from kdcal_core.partition import _network

    return _network


def blocks_of(work: str, codes: Codes) -> Blocks:
    """How to compute ``work`` ("masses_block", "nearest_block") against ``codes``."""
    return Blocks(getattr(kernels_of(codes), work), BLOCK_ROWS)
