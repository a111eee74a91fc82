"""The partition of the input space that a model makes: codes, polytopes, the geodesic kernel.

The compiled kernels are imported when first called, so that importing this package stays light.
"""

from kdcal_core.partition.codes import (
    ActivationCodes,
    Codes,
    LeafCodes,
    Polytopes,
    find_polytopes,
    pack_bits,
    rows_of,
)
from kdcal_core.partition.kernel import (
    Nearest,
    class_masses,
    default_exponents,
    estimated_bytes,
    geodesic_kernel,
    nearest_centres,
    nearest_polytopes,
)
from kdcal_core.partition.pairs import RowPair, near_and_far, row_pair

__all__ = [
    "ActivationCodes",
    "Codes",
    "LeafCodes",
    "Nearest",
    "Polytopes",
    "RowPair",
    "class_masses",
    "default_exponents",
    "estimated_bytes",
    "find_polytopes",
    "geodesic_kernel",
    "near_and_far",
    "nearest_centres",
    "nearest_polytopes",
    "pack_bits",
    "row_pair",
    "rows_of",
]


def __dir__() -> list[str]:
    return sorted(__all__)
