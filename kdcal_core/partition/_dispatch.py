"""Which compiled kernels compute for which codes, and where; each is imported when first needed."""

from __future__ import annotations

from typing import Any, Literal

from kdcal_core.errors import InputError
from kdcal_core.partition._blocks import Blocks
from kdcal_core.partition.codes import ActivationCodes, Codes, LeafCodes

BLOCK_ROWS = 128

Device = Literal["auto", "cpu", "cuda"]


def kernels_of(codes: Codes) -> Any:
    """The module with the kernels for codes of this kind."""
    if isinstance(codes, LeafCodes):
        from kdcal_core.partition import _forest

        return _forest
    from kdcal_core.partition import _network

    return _network


def blocks_of(work: str, rows: Codes, codes: Codes, device: Device) -> Blocks:
    """How to compute ``work`` ("masses_block", "nearest_block") of ``rows`` against ``codes``."""
    if device not in ("auto", "cpu", "cuda"):
        raise InputError(
            f"There is no device {device!r}", fix='Give "auto", "cpu" or "cuda" as the device.'
        )
    if isinstance(codes, ActivationCodes) and device != "cpu":
        from kdcal_core.partition import _cuda

        if _cuda.usable(device, len(rows) * codes.words.size):
            return Blocks(getattr(_cuda, work), _cuda.BLOCK_ROWS, on_device=True)
        if device == "cuda":
            raise InputError(
                "No CUDA device is at hand", fix='Leave the device at "auto", or give "cpu".'
            )
    return Blocks(getattr(kernels_of(codes), work), BLOCK_ROWS)
