"""Which compiled kernels compute for which codes; each is imported when first needed."""

from __future__ import annotations

from typing import Any

from kdcal_core.partition._blocks import Blocks
from kdcal_core.partition.codes import Codes, LeafCodes

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
