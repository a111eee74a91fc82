"""Partition codes: a row's leaf in every tree, or its ReLU activation bits in every layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

WORD_BITS = 64


@dataclass(frozen=True, eq=False)
class LeafCodes:
    """Codes of a forest.

    Attributes
    ----------
    leaves : (n, n_trees) int32
        Id of the leaf that each row falls into, one column a tree. Ids are unique inside a
        tree only.
    """

    leaves: NDArray[np.int32]

    def __len__(self) -> int:
        return int(self.leaves.shape[0])


@dataclass(frozen=True, eq=False)
class ActivationCodes:
    """Codes of a ReLU network, packed 64 bits to a word.

    Attributes
    ----------
    words : (n, n_words) uint64
        The layers one after the other, each starting on a fresh word; bit j of a layer is bit
        ``j % 64`` of its word ``j // 64``. Unused bits are zero.
    layer_widths : tuple of int
        Number of ReLU units in each layer.

    Notes
    -----
    A bit is 1 where the unit's output is positive (paper 000 section 2.4.2; decision D3).
    """

    words: NDArray[np.uint64]
    layer_widths: tuple[int, ...]

    def __len__(self) -> int:
        return int(self.words.shape[0])

    def layer_slices(self) -> tuple[slice, ...]:
        """Columns of ``words`` that belong to each layer."""
        slices, start = [], 0
        for width in self.layer_widths:
            stop = start + -(-width // WORD_BITS)
            slices.append(slice(start, stop))
            start = stop
        return tuple(slices)


Codes = LeafCodes | ActivationCodes


def pack_bits(layers: list[NDArray[Any]]) -> ActivationCodes:
    """Pack boolean activations, one (n, width) array a layer, into :class:`ActivationCodes`.

    Examples
    --------
    >>> import numpy as np
    >>> codes = pack_bits([np.array([[True, False, True]]), np.array([[False, True]])])
    >>> codes.words.tolist(), codes.layer_widths
    ([[5, 2]], (3, 2))
    """
    packed = []
    for layer in layers:
        bits = np.asarray(layer, dtype=bool)
        n_rows, width = bits.shape
        n_words = -(-width // WORD_BITS)
        padded = np.zeros((n_rows, n_words * WORD_BITS), dtype=bool)
        padded[:, :width] = bits
        as_bytes = np.packbits(padded, axis=1, bitorder="little")
        packed.append(as_bytes.view("<u8").astype(np.uint64))
    words = np.concatenate(packed, axis=1)
    return ActivationCodes(words, tuple(int(np.shape(layer)[1]) for layer in layers))
