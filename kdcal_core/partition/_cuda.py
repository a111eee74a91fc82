"""The network's blocks by torch, for a CUDA device; on "cpu" torch runs the same lines in tests.

Equal bits are counted by matrix products of the bits as -1 and 1, whose whole numbers half
precision holds exactly for layers of up to 2,048 units and single precision beyond; shares,
weights and sums are double. Takes what ``_network`` prepares.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kdcal_core.partition import _network
from kdcal_core.partition.codes import WORD_BITS

if TYPE_CHECKING:
    import torch

BLOCK_ROWS = 1024  # rows that the driver should hand over at once
COLUMNS = 8192  # polytopes compared at once: 64 MB for each double of all pairs
HALF_EXACT = 2048
WORTH_IMPORTING = 4 * 10**11  # pairs times words: half a minute on one core; torch takes two


def usable(device: str = "auto", n_pairs_times_words: int = WORTH_IMPORTING) -> bool:
    """Whether the work should go to a CUDA device: there is one, and it is wanted or pays."""
    if device == "cpu" or (device == "auto" and n_pairs_times_words < WORTH_IMPORTING):
        return False
    if find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


def masses_block(
    prepared: _network.PreparedMasses, start: int, stop: int, device: str = "cuda"
) -> NDArray[np.float64]:
    """As :func:`kdcal_core.partition._network.masses_block`, to 1e-12 of it."""
    import torch

    n_classes = prepared.n_classes
    counts = np.zeros((*prepared.tile_count.shape, n_classes))
    counts[np.arange(len(counts)), :, prepared.tile_class] = prepared.tile_count
    class_counts = torch.from_numpy(counts.reshape(-1, n_classes))
    out = torch.zeros(
        (len(prepared.exponents), stop - start, n_classes), dtype=torch.float64, device=device
    )
    for columns, layers in _equal_bits(prepared, start, stop, device):
        log_kernel = torch.zeros((), dtype=torch.float64, device=device)
        for width, equal in zip(prepared.widths.tolist(), layers, strict=True):
            log_kernel = log_kernel + torch.log(equal / width)
        added = class_counts[columns].to(device)
        for masses, exponent in zip(out, prepared.exponents.tolist(), strict=True):
            masses += torch.exp(exponent * log_kernel) @ added
    return np.asarray(out.cpu().numpy())


def nearest_block(
    prepared: _network.PreparedNearest, start: int, stop: int, device: str = "cuda"
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
    """As :func:`kdcal_core.partition._network.nearest_block`, number for number.

    The device tells which rows have one largest kernel beyond rounding; the few others, tied
    or nearly so, go through the exact comparison.
    """
    import torch

    units, total, slack = _network.share_units(prepared.widths)
    best = torch.full((stop - start,), -1.0, dtype=torch.float64, device=device)
    index = torch.zeros(stop - start, dtype=torch.int64, device=device)
    n_near = torch.zeros(stop - start, dtype=torch.int64, device=device)
    for columns, layers in _equal_bits(prepared, start, stop, device):
        kernel = torch.ones((), dtype=torch.float64, device=device)
        for unit, equal in zip(units.tolist(), layers, strict=True):
            kernel = kernel * (equal * unit)
        kernel = kernel[:, : prepared.n_polytopes - columns.start]
        top, place = kernel.max(dim=1)
        index = torch.where(top > best, columns.start + place, index)
        low = torch.maximum(top, best) * (1 - slack)
        n_near = torch.where(best >= low, n_near, 0) + (kernel >= low[:, None]).sum(dim=1)
        best = torch.maximum(top, best)
    kernel = torch.clamp(best / total, max=1.0)
    found = index.cpu().numpy(), kernel.cpu().numpy(), np.zeros(stop - start, dtype=np.bool_)
    unsure = np.flatnonzero(n_near.cpu().numpy() > 1)
    rows = start + unsure
    few = replace(prepared, rows=prepared.rows[rows], x=prepared.x[rows])
    for whole, part in zip(found, _network.nearest_block(few, 0, len(rows)), strict=True):
        whole[unsure] = part
    return found


def _equal_bits(
    prepared: _network.PreparedMasses | _network.PreparedNearest,
    start: int,
    stop: int,
    device: str,
) -> Iterator[tuple[slice, Iterator[torch.Tensor]]]:
    """Numbers of equal bits in each layer, (rows, columns) double, for runs of columns."""
    import torch

    rows = torch.from_numpy(prepared.rows[start:stop].view(np.int64)).to(device)
    lanes = prepared.tiles.shape[2]
    for first in range(0, len(prepared.tiles), COLUMNS // lanes):
        tiles = prepared.tiles[first : first + COLUMNS // lanes]
        words = np.ascontiguousarray(tiles.transpose(0, 2, 1)).view(np.int64)
        others = torch.from_numpy(words.reshape(-1, words.shape[2])).to(device)
        columns = slice(first * lanes, first * lanes + len(others))
        yield columns, _equal_in_layers(prepared, rows, others)


def _equal_in_layers(
    prepared: _network.PreparedMasses | _network.PreparedNearest,
    rows: torch.Tensor,
    others: torch.Tensor,
) -> Iterator[torch.Tensor]:
    for layer, width in enumerate(prepared.widths.tolist()):
        words = slice(*prepared.layer_starts[layer : layer + 2].tolist())
        one, other = (_signs(codes[:, words], width) for codes in (rows, others))
        yield ((one @ other.T).double() + width) / 2


def _signs(words: torch.Tensor, width: int) -> torch.Tensor:
    """Bits of one layer as -1 and 1, (n, width)."""
    import torch

    half = words.device.type == "cuda" and width <= HALF_EXACT
    shifts = torch.arange(WORD_BITS, device=words.device)
    bits = (words[:, :, None] >> shifts) & 1
    signs: torch.Tensor = 2 * bits.reshape(len(words), -1)[:, :width] - 1
    return signs.to(torch.float16 if half else torch.float32)
