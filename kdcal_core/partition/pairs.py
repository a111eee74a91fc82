"""Two rows in a partition: in which trees or units they agree, and the kernel that follows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kdcal_core.errors import InputError
from kdcal_core.partition.codes import (
    WORD_BITS,
    ActivationCodes,
    Codes,
    LeafCodes,
    check_codes,
    rows_of,
)
from kdcal_core.partition.kernel import geodesic_kernel


@dataclass(frozen=True, eq=False)
class RowPair:
    """The codes of two rows, side by side.

    Attributes
    ----------
    first, second : (m,) int64
        The leaf of each row in every tree; or 1 where a ReLU unit is on and 0 where it is off, the
        layers one after the other.
    layer_widths : tuple of int
        Number of units in each layer; empty for a forest.
    kernel : float
        K of the two rows, as :func:`geodesic_kernel` computes it.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    layer_widths: tuple[int, ...]
    kernel: float

    @property
    def same(self) -> NDArray[np.bool_]:
        """The trees in which both rows share a leaf, or the units that are equal for both, (m,)."""
        equal: NDArray[np.bool_] = self.first == self.second
        return equal

    def layers(self) -> tuple[slice, ...]:
        """The units of each layer."""
        ends = np.cumsum((0, *self.layer_widths)).tolist()
        return tuple(slice(*both) for both in pairwise(ends))


def row_pair(codes: Codes, first: int, second: int) -> RowPair:
    """Two rows by their positions among the rows of the codes.

    Raises
    ------
    InputError
        If a row does not exist.

    Examples
    --------
    >>> import numpy as np
    >>> pair = row_pair(LeafCodes(np.array([[4, 2], [4, 3]], dtype=np.int32)), 0, 1)
    >>> pair.same.tolist(), pair.kernel
    ([True, False], 0.5)
    >>> from kdcal_core.partition import pack_bits
    >>> bits = np.array([[True, False], [True, True]])
    >>> pair = row_pair(pack_bits([bits, ~bits]), 0, 1)
    >>> pair.same.tolist(), pair.kernel
    ([True, False, True, False], 0.25)
    """
    check_codes(codes)
    for row in (first, second):
        if not 0 <= row < len(codes):
            raise InputError(
                f"There is no row {row + 1:,} among the {len(codes):,} rows",
                fix="Choose another row.",
            )
    both = rows_of(codes, np.array([first, second]))
    kernel = float(geodesic_kernel(both)[0, 1])
    if isinstance(both, LeafCodes):
        one, other = both.leaves.astype(np.int64)
        return RowPair(one, other, (), kernel)
    one, other = _bits(both)
    return RowPair(one, other, both.layer_widths, kernel)


def _bits(codes: ActivationCodes) -> NDArray[np.int64]:
    """The bits of all units, (n, units)."""
    shifts = np.arange(WORD_BITS, dtype=np.uint64)
    spread = (codes.words[:, :, None] >> shifts) & np.uint64(1)
    layers = [
        spread[:, part].reshape(len(codes), -1)[:, :width]
        for part, width in zip(codes.layer_slices(), codes.layer_widths, strict=True)
    ]
    return np.concatenate(layers, axis=1).astype(np.int64)


def near_and_far(codes: Codes) -> tuple[int, int, int]:
    """An ordinary row, the nearest one in another polytope, and the farthest one.

    The ordinary row is that whose mean kernel with the others is the median.

    Parameters
    ----------
    codes : codes of n >= 2 rows

    Returns
    -------
    tuple of three positions; the second and third are the same if there is no other row.

    Raises
    ------
    InputError
        For fewer than two rows.

    Examples
    --------
    >>> import numpy as np
    >>> leaves = np.array([[1, 1, 1], [1, 1, 2], [3, 3, 2]], dtype=np.int32)
    >>> near_and_far(LeafCodes(leaves))
    (0, 1, 2)
    """
    if len(codes) < 2:
        raise InputError("Fewer than two rows form no pair", fix="Give at least two rows.")
    kernel = geodesic_kernel(codes)
    middle = int(np.argsort(kernel.sum(axis=1), kind="stable")[len(codes) // 2])
    near, far = kernel[middle].copy(), kernel[middle].copy()
    near[near >= 1.0] -= 2.0  # a row of the same polytope shows no difference
    near[middle], far[middle] = -np.inf, np.inf
    return middle, int(near.argmax()), int(far.argmin())
