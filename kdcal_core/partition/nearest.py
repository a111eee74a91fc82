"""The polytope that represents a row: the one of the largest kernel, or of the nearest centre."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.errors import InputError
from kdcal_core.partition._blocks import Blocks, run_blocks
from kdcal_core.partition.codes import (
    Codes,
    check_same_partition,
    checked_points,
    checked_threads,
    lexicographic_order,
    rows_of,
)
from kdcal_core.partition.kernel import BLOCK_ROWS, blocks_of, kernels_of
from kdcal_core.progress import Progress


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
        """Rows that the kernel alone could not place (decision D7)."""
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

    Ties go to the centre nearest in Euclidean distance, then to the lowest index (decision D7).
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
    from kdcal_core.partition._centres import Centres, nearest_centre_block

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
