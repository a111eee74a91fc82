"""The geodesic kernel: its exponents, the class masses it smooths, its matrix, nearest polytopes.

The polytope that represents a row is the one of the largest kernel, or of the nearest centre. One
module of compiled kernels computes for each kind of codes; each is imported when first needed.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.blocks import Blocks, cores, run_blocks
from kdcal_core.errors import InputError
from kdcal_core.partition.codes import (
    Codes,
    LeafCodes,
    check_codes,
    check_same_partition,
    checked_counts,
    checked_exponents,
    checked_points,
    checked_threads,
    lexicographic_order,
    rows_of,
)
from kdcal_core.progress import Progress
from kdcal_core.text import bytes_text

STEPS_PER_DOUBLING = 3


def default_exponents() -> NDArray[np.float64]:
    """Exponents gamma * log n to choose from: 21, from 0.5 to 50.8, three a doubling.

    A forest needs about 1, a ReLU network 5 to 20 (Dey et al., Eq. 18 leaves the grid open).

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
    identically (Eq. 12), which is the product over the layers of the share of equal bits.

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


@dataclass(frozen=True, eq=False)
class Nearest:
    """The nearest polytope of each of m rows.

    Attributes
    ----------
    index : (m,) int64
        Polytope.
    kernel : (m,) float64 in [0, 1]
        K between the row and its polytope; NaN where centres alone decided.
    tied : (m,) bool
        More than one polytope has this largest kernel, so the distance to the centres decided.
    """

    index: NDArray[np.int64]
    kernel: NDArray[np.float64]
    tied: NDArray[np.bool_]

    @property
    def n_ties(self) -> int:
        """Rows that the kernel alone could not place."""
        return int(self.tied.sum())


def nearest_polytopes(
    queries: Codes,
    codes: Codes,
    x: NDArray[Any],
    centres: NDArray[Any],
    *,
    progress: Progress | None = None,
    executor: Executor | None = None,
    threads: int | None = None,
) -> Nearest:
    """The polytope of the largest geodesic kernel for each row (Dey et al., Eqs. 6 and 19).

    Ties go to the centre nearest in Euclidean distance, then to the lowest index.
    A row that shares nothing with any polytope has kernel 0 with all: a tie of all.

    Parameters
    ----------
    queries : codes of m rows
    codes : codes of the p >= 1 polytopes, of the same partition
    x : (m, d) array
        Coordinates of the rows, finite.
    centres : (p, d) array
        Centres of the polytopes in the same coordinates, finite.
    progress, executor, threads
        As in :func:`class_masses`.

    Returns
    -------
    Nearest

    Raises
    ------
    InputError
        If the codes are of two partitions, shapes do not fit, or a coordinate is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.partition import LeafCodes
    >>> polytopes = LeafCodes(np.array([[1, 2], [1, 3], [4, 3]], dtype=np.int32))
    >>> centres = np.array([[0.0], [1.0], [2.0]])
    >>> query = LeafCodes(np.array([[1, 9]], dtype=np.int32))
    >>> found = nearest_polytopes(query, polytopes, np.array([[0.8]]), centres)
    >>> found.index.tolist(), found.kernel.tolist(), found.n_ties
    ([1], [0.5], 1)
    """
    check_same_partition(queries, codes)
    x, centres = _checked_places(x, len(queries), centres, len(codes))
    # Neighbours in the order of the codes share most of the work.
    order = lexicographic_order(queries)
    queries, x = rows_of(queries, order), x[order]
    return _gather(
        blocks_of("nearest_block", codes),
        lambda: kernels_of(codes).prepare_nearest(queries, codes, x, centres),
        order,
        note=f"Nearest polytopes of {len(order):,} rows",
        progress=progress,
        executor=executor,
        threads=threads,
    )


def nearest_centres(
    x: NDArray[Any],
    centres: NDArray[Any],
    *,
    progress: Progress | None = None,
    threads: int | None = None,
) -> Nearest:
    """The polytope of the nearest centre in Euclidean distance, for the paper's comparison.

    Parameters
    ----------
    x : (m, d) array, finite
    centres : (p, d) array, finite, p >= 1
    progress, threads
        As in :func:`class_masses`.

    Returns
    -------
    Nearest
        With kernel NaN; ``tied`` where two centres are equally near, which the lowest index wins.

    Examples
    --------
    >>> import numpy as np
    >>> found = nearest_centres(np.array([[0.2], [0.9]]), np.array([[0.0], [1.0]]))
    >>> found.index.tolist(), found.n_ties
    ([0, 1], 0)
    """
    x, centres = _checked_places(x, len(x), centres, len(centres))
    from kdcal_core.partition._forest import Centres, nearest_centre_block

    return _gather(
        Blocks(nearest_centre_block, BLOCK_ROWS),
        lambda: Centres(x, centres),
        np.arange(len(x)),
        note=f"Nearest centres of {len(x):,} rows",
        progress=progress,
        executor=None,
        threads=threads,
    )


def _checked_places(
    x: NDArray[Any], n_rows: int, centres: NDArray[Any], n_polytopes: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if not n_polytopes:
        raise InputError("There is no polytope to be near to", fix="Give at least one.")
    x = checked_points(x, n_rows, "rows")
    centres = checked_points(centres, n_polytopes, "centres")
    if x.shape[1] != centres.shape[1]:
        raise InputError(
            f"The rows have {x.shape[1]} coordinates and the centres {centres.shape[1]}",
            fix="Give both in the same coordinates.",
        )
    return x, centres


def _gather(
    blocks: Blocks,
    prepare: Callable[[], Any],
    order: NDArray[np.int64],
    *,
    note: str,
    progress: Progress | None,
    executor: Executor | None,
    threads: int | None,
) -> Nearest:
    """Run the blocks, whose rows stand in ``order``, and put each row back in its place."""
    found = Nearest(
        np.zeros(len(order), dtype=np.int64), np.zeros(len(order)), np.zeros(len(order), dtype=bool)
    )

    def write(start: int, stop: int, block: tuple[NDArray[Any], ...]) -> None:
        rows = order[start:stop]
        found.index[rows], found.kernel[rows], found.tied[rows] = block

    run_blocks(
        blocks,
        prepare,
        len(order),
        write,
        note=note,
        progress=progress,
        executor=executor,
        threads=checked_threads(threads),
    )
    return found
