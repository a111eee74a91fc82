"""The geodesic kernel as a matrix, for small inputs: tests, teaching, pictures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kdcal_core.errors import InputError
from kdcal_core.partition._checks import check_same_partition
from kdcal_core.partition._dispatch import kernels_of
from kdcal_core.partition.codes import Codes
from kdcal_core.text import bytes_text

LARGEST = 2**30


def geodesic_kernel(a: Codes, b: Codes | None = None) -> NDArray[np.float64]:
    """Kernel K between the rows of two codes; the geodesic distance is 1 - K.

    Forest: the share of trees in which both rows fall into one leaf (paper 000 Eq. 11).
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
