"""Compiled inner loops over pairs of activation codes: bits compared, weights summed.

Polytopes lie in tiles of ``LANES`` with their words transposed, so that one row is compared
with eight of them by each vector instruction. LLVM's own vectoriser does not find this form,
hence the intrinsics written with vector types, which LLVM lowers to whatever the processor has.
All stand in one file, because numba's cache of compiled code follows the file of the compiled
function only.

Plain loops whose only intrinsic is the popcount of one word give the same bytes in 4.5 to 11
times as long. Class masses of 128 to 512 rows against 10,000 polytopes of 4 x 1,000 bits,
alternating runs on one core with AVX-512 (numba 0.68, November 2026), in ns a pair:

===============================  ==========  ====================  ======================
exponents                        intrinsics  loops, lengths known  loops, lengths unknown
===============================  ==========  ====================  ======================
the usual grid, which is chained        4.5                    49                      23
20 others                               8.2                    67                      37
===============================  ==========  ====================  ======================

Lengths are those of a tile and of a vector of exponents. Counting unequal bits alone takes 1.9 to
2.5 ns by the intrinsic, 33 and 8 by the loops.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending, njit, types
from numba.core import cgutils as _cgutils

from kdcal_core.partition._network_sizes import LANES, LEVELS, SQUARINGS, WIDE

ROWS = 64  # rows that pass over a tile while it stays in the first cache (16 KB at 4 x 1000)
BYTES = 8
VECTOR = WIDE * BYTES

compiled: Any = njit(nogil=True, cache=True)
intrinsic: Any = extending.intrinsic
cgutils: Any = _cgutils

_INT = ir.IntType(64)
_INTS = ir.VectorType(_INT, WIDE)
_REALS = ir.VectorType(ir.DoubleType(), WIDE)
_INDEX = ir.IntType(32)


def _pointer(builder: Any, address: Any, pointee: Any) -> Any:
    return builder.inttoptr(address, pointee.as_pointer())


def _splat(builder: Any, value: Any) -> Any:
    """The vector that holds one value in every lane."""
    vector = ir.VectorType(value.type, WIDE)
    nothing = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(nothing, value, ir.Constant(_INDEX, 0))
    lanes = ir.Constant(ir.VectorType(_INDEX, WIDE), [0] * WIDE)
    return builder.shuffle_vector(first, nothing, lanes)


def _load(builder: Any, pointer: Any, index: Any) -> Any:
    return builder.load(builder.gep(pointer, [index]), align=BYTES)


def _variables(builder: Any, n: int, start: Any) -> list[Any]:
    """``n`` local vectors set to ``start``; LLVM keeps them in registers."""
    variables = [cgutils.alloca_once(builder, start.type) for _ in range(n)]
    for variable in variables:
        builder.store(start, variable)
    return variables


@intrinsic
def _count_unequal(context: Any, row: Any, tile: Any, n_words: Any, start: Any, out: Any) -> Any:
    """out[j] = start + bits in which ``row`` and polytope j of ``tile`` differ (addresses)."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        row, tile, n_words, start, out = args
        row = _pointer(builder, row, _INT)
        tile, out = (_pointer(builder, address, _INTS) for address in (tile, out))
        popcount = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_INTS, [_INTS]), f"llvm.ctpop.v{WIDE}i64"
        )
        n_vectors = LANES // WIDE
        counts = _variables(builder, n_vectors, _splat(builder, start))
        with cgutils.for_range(builder, n_words) as words:
            word = _splat(builder, _load(builder, row, words.index))
            first = builder.mul(words.index, _INT(n_vectors))
            for vector, count in enumerate(counts):
                other = _load(builder, tile, builder.add(first, _INT(vector)))
                unequal = builder.call(popcount, [builder.xor(word, other)])
                builder.store(builder.add(builder.load(count), unequal), count)
        for vector, count in enumerate(counts):
            target = builder.gep(out, [_INT(vector)])
            builder.store(builder.load(count), target, align=BYTES)
        return _context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp, types.int64, types.intp), generate


def _weight_adder(levels: int) -> Any:
    """Make the intrinsic that adds up a tile's weights at ``levels`` scales of exponents.

    It does ``out[level] += sum of count * weight**(4**level)`` over the tile, where a weight is
    the product over the layers of ``table[entry * stride]``, a vector of WIDE exponents, and
    ``entry`` (n_layers, LANES) names each polytope's row. The levels stand in the code one
    after the other, since their sums have to stay in registers.
    """

    def add(
        context: Any, entry: Any, n_layers: Any, table: Any, stride: Any, count: Any, out: Any
    ) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            entry, n_layers, table, stride, count, out = args
            entry = _pointer(builder, entry, _INT)
            count = _pointer(builder, count, ir.DoubleType())
            table, out = (_pointer(builder, address, _REALS) for address in (table, out))
            weights = _variables(builder, WIDE, ir.Constant(_REALS, ir.Undefined))
            totals = _variables(builder, levels, ir.Constant(_REALS, [0.0] * WIDE))

            def factor(layer: Any, lane: Any) -> Any:
                place = builder.add(builder.mul(layer, _INT(LANES)), lane)
                return _load(builder, table, builder.mul(_load(builder, entry, place), stride))

            with cgutils.for_range(builder, _INT(LANES // WIDE)) as chunks:
                start = builder.mul(chunks.index, _INT(WIDE))
                lanes = [builder.add(start, _INT(lane)) for lane in range(WIDE)]
                for lane, weight in zip(lanes, weights, strict=True):
                    builder.store(factor(_INT(0), lane), weight)
                with cgutils.for_range_slice(builder, _INT(1), n_layers, _INT(1)) as (layer, _):
                    for lane, weight in zip(lanes, weights, strict=True):
                        product = builder.fmul(builder.load(weight), factor(layer, lane))
                        builder.store(product, weight)
                powers = [builder.load(weight) for weight in weights]
                counts = [_splat(builder, _load(builder, count, lane)) for lane in lanes]
                for level, total in enumerate(totals):
                    if level:
                        for _ in range(SQUARINGS):
                            powers = [builder.fmul(power, power) for power in powers]
                    terms = map(builder.fmul, powers, counts)
                    builder.store(builder.fadd(builder.load(total), _sum(builder, terms)), total)
            for level, total in enumerate(totals):
                target = builder.gep(out, [_INT(level)])
                updated = builder.fadd(builder.load(target, align=BYTES), builder.load(total))
                builder.store(updated, target, align=BYTES)
            return _context.get_dummy_value()

        return types.void(*[types.intp] * 6), generate

    return intrinsic(add)


def _sum(builder: Any, terms: Iterable[Any]) -> Any:
    """Sum of WIDE vectors in pairs, so that the order is fixed and the roundings are few."""
    terms = list(terms)
    while len(terms) > 1:
        pairs = zip(terms[::2], terms[1::2], strict=True)
        terms = [builder.fadd(one, other) for one, other in pairs]
    return terms[0]


_add_weights = _weight_adder(1)
_add_chained_weights = _weight_adder(LEVELS)


@intrinsic
def _multiply_shares(context: Any, unequal: Any, width: Any, unit: Any, shares: Any) -> Any:
    """shares[j] *= (width - unequal[j]) * unit over the tile; the largest of them comes back."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        unequal, width, unit, shares = args
        unequal = _pointer(builder, unequal, _INTS)
        shares = _pointer(builder, shares, _REALS)
        width, unit = _splat(builder, width), _splat(builder, unit)
        largest = _splat(builder, ir.DoubleType()(0.0))
        for vector in range(LANES // WIDE):
            equal = builder.sub(width, _load(builder, unequal, _INT(vector)))
            factor = builder.fmul(builder.sitofp(equal, _REALS), unit)
            share = builder.fmul(_load(builder, shares, _INT(vector)), factor)
            builder.store(share, builder.gep(shares, [_INT(vector)]), align=BYTES)
            larger = builder.fcmp_ordered(">", share, largest)
            largest = builder.select(larger, share, largest)
        top = builder.extract_element(largest, _INDEX(0))
        for lane in range(1, WIDE):
            other = builder.extract_element(largest, _INDEX(lane))
            top = builder.select(builder.fcmp_ordered(">", other, top), other, top)
        return top

    return types.float64(types.intp, types.int64, types.float64, types.intp), generate


@compiled
def sum_masses(
    rows: Any,
    layer_starts: Any,
    tiles: Any,
    tile_class: Any,
    tile_count: Any,
    table: Any,
    table_starts: Any,
    chained: bool,
    out: Any,
) -> None:
    """out[r, y] += the tiles' masses, tile after tile, whatever block row r stands in.

    rows (n, W) uint64; tiles (t, W, LANES) uint64; tile_class (t,); tile_count (t, LANES)
    float64; table (bits, v, WIDE); out (n, K, v, WIDE), or (n, K, LEVELS, WIDE) where one
    vector of ``chained`` exponents gives all.
    """
    n, n_words = rows.shape
    n_layers = len(layer_starts) - 1
    stride = table.shape[1]
    entry = np.empty((n_layers, LANES), dtype=np.int64)
    for start in range(0, n, ROWS):
        for t in range(len(tiles)):
            count = tile_count.ctypes.data + t * LANES * BYTES
            for r in range(start, min(start + ROWS, n)):
                for layer in range(n_layers):
                    first = layer_starts[layer]
                    _count_unequal(
                        rows.ctypes.data + (r * n_words + first) * BYTES,
                        tiles.ctypes.data + (t * n_words + first) * LANES * BYTES,
                        layer_starts[layer + 1] - first,
                        table_starts[layer],
                        entry.ctypes.data + layer * LANES * BYTES,
                    )
                place = (r * out.shape[1] + tile_class[t]) * out.shape[2]
                target = out.ctypes.data + place * VECTOR
                if chained:
                    _add_chained_weights(
                        entry.ctypes.data, n_layers, table.ctypes.data, stride, count, target
                    )
                else:
                    for v in range(stride):
                        _add_weights(
                            entry.ctypes.data,
                            n_layers,
                            table.ctypes.data + v * VECTOR,
                            stride,
                            count,
                            target + v * VECTOR,
                        )


@compiled
def find_nearest(
    rows: Any,
    layer_starts: Any,
    widths: Any,
    unit: Any,
    rest: Any,
    slack: float,
    tiles: Any,
    n_polytopes: int,
    x: Any,
    centres: Any,
    index: Any,
    share: Any,
    tied: Any,
) -> None:
    """The polytope of the largest product of shares for each row, and whether several have it.

    ``rest[layer]`` is the largest product that the layers from ``layer`` on can add. Products
    are exact where ``slack`` is 0; else two within the relative ``slack`` are compared in whole
    numbers.
    """
    n, n_words = rows.shape
    n_layers = len(widths)
    unequal = np.empty((n_layers, LANES), dtype=np.int64)
    shares = np.empty(LANES)
    best = np.empty((n, n_layers), dtype=np.int64)  # unequal bits of the best polytope so far
    distance = np.empty(n)
    share[:] = -1.0
    for start in range(0, n, ROWS):
        for t in range(len(tiles)):
            for r in range(start, min(start + ROWS, n)):
                shares[:] = 1.0
                low = share[r] * (1.0 - slack)
                behind = False
                for layer in range(n_layers):
                    first = layer_starts[layer]
                    _count_unequal(
                        rows.ctypes.data + (r * n_words + first) * BYTES,
                        tiles.ctypes.data + (t * n_words + first) * LANES * BYTES,
                        layer_starts[layer + 1] - first,
                        0,
                        unequal.ctypes.data + layer * LANES * BYTES,
                    )
                    top = _multiply_shares(
                        unequal.ctypes.data + layer * LANES * BYTES,
                        widths[layer],
                        unit[layer],
                        shares.ctypes.data,
                    )
                    behind = top * rest[layer + 1] < low
                    if behind:
                        break
                if behind:
                    continue
                for j in range(min(LANES, n_polytopes - t * LANES)):
                    s = t * LANES + j
                    order = _compare(shares[j], share[r], slack, widths, unequal, j, best, r)
                    if order > 0:
                        index[r], share[r], tied[r] = s, shares[j], False
                        best[r] = unequal[:, j]
                        distance[r] = -1.0
                    elif order == 0:
                        tied[r] = True
                        if distance[r] < 0.0:
                            distance[r] = _squared_distance(x, r, centres, index[r])
                        nearer = _squared_distance(x, r, centres, s)
                        if nearer < distance[r]:
                            index[r], distance[r] = s, nearer


@compiled
def _squared_distance(x: Any, r: int, centres: Any, s: int) -> Any:
    total = 0.0
    for k in range(x.shape[1]):
        total += (x[r, k] - centres[s, k]) ** 2
    return total


@compiled
def _compare(
    share: float,
    best_share: float,
    slack: float,
    widths: Any,
    unequal: Any,
    j: int,
    best: Any,
    r: int,
) -> int:
    """1 where the product of equal bits is larger than the best one, 0 where equal, else -1."""
    if share > best_share * (1.0 + slack):
        return 1
    if share < best_share * (1.0 - slack):
        return -1
    if slack == 0.0:
        return 0
    mine = _whole_product(widths - unequal[:, j])
    other = _whole_product(widths - best[r])
    for k in range(len(mine) - 1, -1, -1):
        if mine[k] != other[k]:
            return 1 if mine[k] > other[k] else -1
    return 0


@compiled
def _whole_product(factors: Any) -> Any:
    """Product of whole numbers below 2**31, in digits of 32 bits, lowest first."""
    digits = np.zeros(len(factors) + 1, dtype=np.uint64)
    digits[0] = 1
    for factor in factors:
        carry = np.uint64(0)
        for k in range(len(digits)):
            value = digits[k] * np.uint64(factor) + carry
            digits[k] = value & np.uint64(0xFFFFFFFF)
            carry = value >> np.uint64(32)
    return digits
