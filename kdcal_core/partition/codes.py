"""Partition codes: a row's leaf in every tree, or its ReLU activation bits in every layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.errors import InputError

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

    def with_layer(self, bits: NDArray[np.bool_]) -> ActivationCodes:
        """The same rows with one more layer of bits after the last, for example the output's.

        Parameters
        ----------
        bits : (n, width) array of bool

        Examples
        --------
        >>> import numpy as np
        >>> codes = pack_bits([np.array([[True, False]])])
        >>> codes.with_layer(np.array([[True, True, True]])).layer_widths
        (2, 3)
        """
        if np.shape(bits)[0] != len(self):
            raise InputError(
                f"The codes have {len(self):,} rows and the layer to add has {np.shape(bits)[0]:,}",
                fix="Compute both from the same rows.",
            )
        added = pack_bits([bits])
        words = np.concatenate([self.words, added.words], axis=1)
        return ActivationCodes(words, self.layer_widths + added.layer_widths)

    def layers(self, start: int) -> ActivationCodes:
        """The codes of the layers from ``start`` on; a negative start counts from the end.

        Examples
        --------
        >>> import numpy as np
        >>> codes = pack_bits([np.array([[True, False]]), np.array([[False, True, True]])])
        >>> codes.layers(-1).layer_widths
        (3,)
        """
        kept = self.layer_slices()[start:]
        if not kept:
            raise InputError(
                f"The codes have {len(self.layer_widths)} layers, none from layer {start} on",
                fix="Ask for a layer that is there; the first is layer 0.",
            )
        return ActivationCodes(
            np.ascontiguousarray(self.words[:, kept[0].start :]), self.layer_widths[start:]
        )


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
