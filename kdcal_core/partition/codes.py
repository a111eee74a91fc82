"""Partition codes: a row's leaf in every tree, or its ReLU activation bits in every layer.

Rows that agree in every tree, or in every unit, share a polytope. The checks of arrays that every
function of this room makes first are at the end.
"""

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
    A bit is 1 where the unit's output is positive (Dey et al., section 2.4.2).
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


@dataclass(frozen=True, eq=False)
class Polytopes:
    """The polytopes of a partition that rows fall into.

    Attributes
    ----------
    codes : codes of p rows
        One code a polytope, in lexicographic order, so the order of the rows does not matter.
    index : (n,) int64
        Polytope of each row, 0 to p - 1.
    """

    codes: Codes
    index: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Rows in each polytope, (p,); at least 1."""
        return np.bincount(self.index, minlength=len(self.codes)).astype(np.int64)


def find_polytopes(codes: Codes) -> Polytopes:
    """Merge the rows whose kernel is 1, which are those of equal codes (Dey et al., Algorithm 2).

    Parameters
    ----------
    codes : LeafCodes or ActivationCodes of n >= 1 rows

    Returns
    -------
    Polytopes

    Raises
    ------
    InputError
        If there are no rows, no trees, or a layer has no unit.

    Examples
    --------
    >>> import numpy as np
    >>> found = find_polytopes(LeafCodes(np.array([[2, 1], [1, 3], [2, 1]], dtype=np.int32)))
    >>> found.codes.leaves.tolist(), found.index.tolist(), found.sizes.tolist()
    ([[1, 3], [2, 1]], [1, 0, 1], [1, 2])
    """
    check_codes(codes)
    if not len(codes):
        raise InputError("There are no rows to find polytopes of", fix="Give at least one row.")
    order = lexicographic_order(codes)
    ordered = _sort_keys(codes)[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    index = np.empty(len(codes), dtype=np.int64)
    index[order] = np.cumsum(first) - 1
    return Polytopes(rows_of(codes, order[first]), index)


def lexicographic_order(codes: Codes) -> NDArray[np.int64]:
    """The rows' numbers, (n,), ordered by their codes; equal codes keep their order."""
    return np.argsort(_sort_keys(codes), kind="stable")


def rows_of(codes: Codes, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Codes:
    """The codes of some rows, by position or mask."""
    if isinstance(codes, LeafCodes):
        return LeafCodes(codes.leaves[rows])
    return ActivationCodes(codes.words[rows], codes.layer_widths)


def _sort_keys(codes: Codes) -> NDArray[np.void]:
    """Rows as strings of bytes that sort as the codes do: big-endian, sign bit turned."""
    if isinstance(codes, ActivationCodes):
        values = codes.words.astype(">u8")
    elif codes.leaves.dtype == np.int32:
        values = (np.ascontiguousarray(codes.leaves).view(np.uint32) ^ 2**31).astype(">u4")
    else:
        values = (codes.leaves.astype(np.int64).view(np.uint64) ^ 2**63).astype(">u8")
    width = values.shape[1] * values.dtype.itemsize
    return values.view(np.dtype((np.void, width)))[:, 0]


def check_codes(codes: Codes) -> None:
    """Codes of at least one tree or unit, with as many words as their layers need."""
    if isinstance(codes, LeafCodes):
        _check_leaves(codes)
    elif isinstance(codes, ActivationCodes):
        _check_words(codes)
    else:
        raise InputError(
            f"Codes of a partition are expected, not {type(codes).__name__}",
            fix="Take the codes from the model.",
        )


def _check_leaves(codes: LeafCodes) -> None:
    leaves = codes.leaves
    if leaves.ndim != 2 or leaves.shape[1] == 0 or leaves.dtype.kind != "i":
        raise InputError(
            f"Leaf codes are integers of shape (rows, trees) with at least one tree, "
            f"not {leaves.dtype} of shape {leaves.shape}",
            fix="Give one leaf id a row and tree.",
        )


def _check_words(codes: ActivationCodes) -> None:
    if not codes.layer_widths or min(codes.layer_widths) < 1:
        raise InputError(
            f"Every layer of a network's codes needs a unit; the widths are {codes.layer_widths}",
            fix="Leave out the layers without units.",
        )
    expected = sum(-(-width // WORD_BITS) for width in codes.layer_widths)
    words = codes.words
    if words.ndim != 2 or words.shape[1] != expected or words.dtype != np.uint64:
        raise InputError(
            f"Layers of {codes.layer_widths} units pack into {expected} words of 64 bits a row, "
            f"not {words.dtype} of shape {words.shape}",
            fix="Pack the activations with pack_bits.",
        )
    last = [part.stop - 1 for part in codes.layer_slices()]
    spare = np.array([-width % WORD_BITS for width in codes.layer_widths], dtype=np.uint64)
    # a full word has none to spare, and no shift by 64 bits is defined
    beyond = words[:, last] >> (WORD_BITS - np.maximum(spare, 1))
    if (beyond[:, spare > 0] != 0).any():
        raise InputError(
            "Bits are set beyond the units of a layer", fix="Pack the activations with pack_bits."
        )


def check_same_partition(a: Codes, b: Codes) -> None:
    """Both codes are of one kind and of one number of trees, or of the same layers."""
    check_codes(a)
    check_codes(b)
    if isinstance(a, LeafCodes) and isinstance(b, LeafCodes):
        one, other = f"{a.leaves.shape[1]:,} trees", f"{b.leaves.shape[1]:,} trees"
    elif isinstance(a, ActivationCodes) and isinstance(b, ActivationCodes):
        one, other = f"layers of {a.layer_widths} units", f"layers of {b.layer_widths} units"
    else:
        one, other = _kind(a), _kind(b)
    if one != other:
        raise InputError(
            f"The codes come from two different partitions: {one} and {other}",
            fix="Compute both from the same model.",
        )


def _kind(codes: Codes) -> str:
    return "leaves of a forest" if isinstance(codes, LeafCodes) else "activations of a network"


def checked_counts(counts: NDArray[Any], n_polytopes: int) -> NDArray[np.int64]:
    """Counts of rows, (p, K), as integers that are not negative."""
    counts = np.asarray(counts)
    if counts.ndim != 2 or counts.shape[0] != n_polytopes or counts.shape[1] == 0:
        raise InputError(
            f"Counts have shape ({n_polytopes}, classes), one row a polytope, not {counts.shape}",
            fix="Count the rows of each class in each polytope.",
        )
    if counts.dtype.kind not in "iu" or (counts.size and counts.min() < 0):
        raise InputError(
            "Counts are whole numbers, none below zero",
            fix="Count the rows of each class in each polytope.",
        )
    return np.ascontiguousarray(counts, dtype=np.int64)


def checked_exponents(exponents: NDArray[Any]) -> NDArray[np.float64]:
    """Exponents of the kernel, (G,), finite and above zero."""
    exponents = np.ascontiguousarray(exponents, dtype=np.float64)
    if exponents.ndim != 1 or not len(exponents):
        raise InputError(
            f"Exponents are a list of numbers, not of shape {exponents.shape}",
            fix="Give at least one exponent.",
        )
    if not (np.isfinite(exponents) & (exponents > 0)).all():
        raise InputError("Exponents are finite and above zero", fix="The usual grid is 0.5 to 51.")
    return exponents


def checked_points(points: NDArray[Any], n_rows: int, name: str) -> NDArray[np.float64]:
    """Coordinates, (n_rows, d), finite."""
    points = np.ascontiguousarray(points, dtype=np.float64)
    if points.ndim != 2 or len(points) != n_rows:
        raise InputError(
            f"The {name} have shape ({n_rows}, coordinates), not {points.shape}",
            fix="Give one row of coordinates for each row of codes.",
        )
    bad = ~np.isfinite(points).all(axis=1)
    if bad.any():
        raise InputError(
            f"The {name} hold a value that is missing or infinite",
            fix="Fill or remove such rows.",
            row=int(bad.argmax()) + 1,
        )
    return points


def checked_threads(threads: int | None) -> int | None:
    if threads is not None and threads < 1:
        raise InputError(f"At least one thread is needed, not {threads}", fix="Give 1 or more.")
    return threads
