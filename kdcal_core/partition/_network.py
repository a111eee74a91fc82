"""The geodesic kernel of a ReLU network in blocks of rows: class masses and nearest polytopes.

K is the product over the layers of the share of equal bits (Dey et al., Eq. 12).
A layer's share to every exponent stands in a table by the number of unequal bits, and a pair's
weights are the product of one row of it for each layer. A grid whose exponents quadruple again
and again, as the usual one does, needs one vector of them, raised to the fourth power by two
squarings for the next; any other needs all its exponents in the table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.partition._network_sizes import LANES, LEVELS, SQUARINGS, WIDE
from kdcal_core.partition.codes import WORD_BITS, ActivationCodes

CACHE_LINE = 64
EXACT = 2**53  # whole numbers up to here are exact in float64


@dataclass(frozen=True, eq=False)
class PreparedMasses:
    """What class masses need: entries are (polytope, class) pairs that hold rows, by class.

    Attributes
    ----------
    rows : (p, W) uint64, the polytopes' words
    layer_starts : (L + 1,) int64, first word of each layer
    widths : (L,) int64, units of each layer
    tiles : (t, W, LANES) uint64, the entries' words; a tile holds one class
    tile_class : (t,) int64
    tile_count : (t, LANES) float64, rows of each entry; 0 pads a class's last tile
    table : (sum of widths + 1, v, WIDE) float64, share of equal bits to each exponent of the
        grid, or to the first few of a chained grid
    table_starts : (L,) int64, row of ``table`` where each layer starts, with 0 unequal bits
    places : (G,) int64, where each exponent's sum stands among all vectors' lanes
    n_places : int, the number of these lanes
    n_classes : int
    """

    rows: NDArray[np.uint64]
    layer_starts: NDArray[np.int64]
    widths: NDArray[np.int64]
    tiles: NDArray[np.uint64]
    tile_class: NDArray[np.int64]
    tile_count: NDArray[np.float64]
    table: NDArray[np.float64]
    table_starts: NDArray[np.int64]
    places: NDArray[np.int64]
    n_places: int
    n_classes: int


@dataclass(frozen=True, eq=False)
class PreparedNearest:
    """What the search of the nearest polytopes needs.

    Attributes
    ----------
    rows : (m, W) uint64, the queries' words
    layer_starts, widths : as in :class:`PreparedMasses`
    tiles : (t, W, LANES) uint64, the polytopes' words
    n_polytopes : int
    x : (m, d) float64, centres : (p, d) float64
    """

    rows: NDArray[np.uint64]
    layer_starts: NDArray[np.int64]
    widths: NDArray[np.int64]
    tiles: NDArray[np.uint64]
    n_polytopes: int
    x: NDArray[np.float64]
    centres: NDArray[np.float64]


def prepare_masses(
    codes: ActivationCodes, counts: NDArray[np.int64], exponents: NDArray[np.float64]
) -> PreparedMasses:
    """Lay out the polytopes of ``codes`` with their ``counts`` (p, K) for :func:`masses_block`."""
    starts, widths = _layers(codes)
    members, tile_class, tile_count = _tiles_by_class(counts)
    tabled, places, n_places = _vectors(exponents)
    table, table_starts = _share_table(widths, tabled)
    return PreparedMasses(
        rows=_aligned(codes.words),
        layer_starts=starts,
        widths=widths,
        tiles=_transposed(codes.words, members),
        tile_class=tile_class,
        tile_count=tile_count,
        table=table,
        table_starts=table_starts,
        places=places,
        n_places=n_places,
        n_classes=counts.shape[1],
    )


def masses_block(prepared: PreparedMasses, start: int, stop: int) -> NDArray[np.float64]:
    """Class masses (G, stop - start, K) of the polytopes from ``start`` to ``stop``."""
    from kdcal_core.partition import _network_kernels

    shape = (stop - start, prepared.n_classes, prepared.n_places)
    out = np.zeros((*shape[:2], prepared.n_places // WIDE, WIDE))
    _network_kernels.sum_masses(
        prepared.rows[start:stop],
        prepared.layer_starts,
        prepared.tiles,
        prepared.tile_class,
        prepared.tile_count,
        prepared.table,
        prepared.table_starts,
        prepared.table.shape[1] < out.shape[2],
        out,
    )
    return np.moveaxis(out.reshape(shape)[..., prepared.places], -1, 0)


def prepare_nearest(
    queries: ActivationCodes,
    codes: ActivationCodes,
    x: NDArray[np.float64],
    centres: NDArray[np.float64],
) -> PreparedNearest:
    """Lay out ``queries`` at ``x`` and polytopes at ``centres`` for :func:`nearest_block`."""
    starts, widths = _layers(codes)
    members = np.arange(-(-len(codes) // LANES) * LANES).reshape(-1, LANES)
    return PreparedNearest(
        rows=_aligned(queries.words),
        layer_starts=starts,
        widths=widths,
        tiles=_transposed(codes.words, np.minimum(members, len(codes) - 1)),
        n_polytopes=len(codes),
        x=np.ascontiguousarray(x, dtype=np.float64),
        centres=np.ascontiguousarray(centres, dtype=np.float64),
    )


def nearest_block(
    prepared: PreparedNearest, start: int, stop: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
    """Nearest polytope, its kernel, and whether others have that kernel, for a block of rows."""
    from kdcal_core.partition import _network_kernels

    unit, total, slack = share_units(prepared.widths)
    largest = prepared.widths * unit
    rest = np.append(np.cumprod(largest[::-1])[::-1], 1.0)
    index = np.zeros(stop - start, dtype=np.int64)
    share = np.zeros(stop - start)
    tied = np.zeros(stop - start, dtype=np.bool_)
    _network_kernels.find_nearest(
        prepared.rows[start:stop],
        prepared.layer_starts,
        prepared.widths,
        unit,
        rest,
        slack,
        prepared.tiles,
        prepared.n_polytopes,
        prepared.x[start:stop],
        prepared.centres,
        index,
        share,
        tied,
    )
    return index, np.minimum(share / total, 1.0), tied


def share_units(widths: NDArray[np.int64]) -> tuple[NDArray[np.float64], float, float]:
    """What an equal bit of each layer counts, all the paths, and the roundings of a product.

    Numbers of equal paths compare exactly while they fit; a deeper network multiplies shares,
    and two products within the relative slack have to be compared in whole numbers.
    """
    n_paths = math.prod(widths.tolist())
    if n_paths <= EXACT:
        return np.ones(len(widths)), float(n_paths), 0.0
    return 1.0 / widths, 1.0, 8 * len(widths) * float(np.finfo(np.float64).eps)


def kernel_block(a: ActivationCodes, b: ActivationCodes) -> NDArray[np.float64]:
    """Kernel between all rows of two small sets of codes, (n, m)."""
    kernel = np.ones((len(a), len(b)))
    for words, width in zip(a.layer_slices(), a.layer_widths, strict=True):
        equal = np.full(kernel.shape, width, dtype=np.int64)
        for word in range(words.start, words.stop):
            equal -= np.bitwise_count(a.words[:, word, None] ^ b.words[None, :, word])
        kernel *= equal / width
    return kernel


def _layers(codes: ActivationCodes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    widths = np.array(codes.layer_widths, dtype=np.int64)
    return np.append(0, np.cumsum(-(-widths // WORD_BITS))), widths


def _tiles_by_class(
    counts: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Polytopes of each tile (t, LANES), the tiles' classes, and the rows that each entry has.

    A polytope of one class, as most are, stands in one tile only, so it is added once.
    """
    label, polytope = np.nonzero(counts.T)
    sizes = np.bincount(label, minlength=counts.shape[1])
    n_tiles = -(-sizes // LANES)
    # where each class's entries start: as they are, and in tiles of its own
    shift = (np.cumsum(n_tiles) - n_tiles) * LANES - (np.cumsum(sizes) - sizes)
    place = np.arange(len(label)) + shift[label]
    members = np.zeros(int(n_tiles.sum()) * LANES, dtype=np.int64)
    rows = np.zeros(len(members))
    members[place] = polytope
    rows[place] = counts[polytope, label]
    tile_class = np.repeat(np.arange(counts.shape[1]), n_tiles)
    return members.reshape(-1, LANES), tile_class, rows.reshape(-1, LANES)


def _transposed(words: NDArray[np.uint64], members: NDArray[np.int64]) -> NDArray[Any]:
    """Words of each tile's members, (t, W, LANES): one word of all members side by side."""
    tiles = _aligned_empty((len(members), words.shape[1], LANES), np.dtype(np.uint64))
    for word in range(words.shape[1]):
        tiles[:, word] = words[:, word][members]
    return tiles


def _vectors(
    exponents: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.int64], int]:
    """Exponents to tabulate, whole vectors of them; each exponent's place; number of places."""
    order = np.argsort(exponents, kind="stable")
    places = np.empty(len(exponents), dtype=np.int64)
    n_tabled = _chain(exponents[order])
    if n_tabled:
        level, lane = np.divmod(np.arange(len(exponents)), n_tabled)
        places[order] = level * WIDE + lane
        n_places = LEVELS * WIDE
    else:
        n_tabled = len(exponents)
        places[order] = np.arange(n_tabled)
        n_places = -(-n_tabled // WIDE) * WIDE
    tabled = np.ones(-(-n_tabled // WIDE) * WIDE)
    tabled[:n_tabled] = exponents[order][:n_tabled]
    return tabled, places, n_places


def _chain(ascending: NDArray[np.float64]) -> int:
    """How many exponents give all others by quadrupling, where that saves vectors; else 0."""
    if len(ascending) <= WIDE:
        return 0
    for n_first in range(WIDE, -(-len(ascending) // LEVELS) - 1, -1):
        quadrupled = 2**SQUARINGS * ascending[:-n_first]
        if np.allclose(ascending[n_first:], quadrupled, rtol=1e-15, atol=0):
            return n_first
    return 0


def _share_table(
    widths: NDArray[np.int64], exponents: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    share = np.concatenate([np.arange(width, -1, -1) / width for width in widths])
    table = _aligned((share[:, None] ** exponents).reshape(len(share), -1, WIDE))
    return table, np.cumsum(widths + 1) - (widths + 1)


def _aligned(array: NDArray[Any]) -> NDArray[Any]:
    copy = _aligned_empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def _aligned_empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array that starts on a cache line: vectors across two lines cost a third more time."""
    n_bytes = math.prod(shape) * dtype.itemsize
    raw = np.empty(n_bytes + CACHE_LINE, dtype=np.uint8)
    first = -raw.ctypes.data % CACHE_LINE
    return raw[first : first + n_bytes].view(dtype).reshape(shape)
