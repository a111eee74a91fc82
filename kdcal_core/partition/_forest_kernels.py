"""Compiled loops: the search for the nearest centre, and the forest's kernel, by runs or by bits.

Imported only when they are needed: numba is heavy. All stand in one file, because numba's cache of
compiled code follows the file of the compiled function only.

Where leaves are densely filled, matches are counted in bits. A tree's large leaves are numbered by
two digits, and of each digit's values a vector of bits says which of 512 polytopes have it. Two of
these vectors and-ed are a row's matches in one tree, and adding up trees is a network of full
adders on whole vectors (carry-save, as in Harley and Seal's count of bits): three or four
instructions a tree for 512 polytopes, where comparing bytes takes eight times as many. Numba knows
no such vectors, hence the intrinsic.

The same adders as plain loops over words of 64 bits give the same bytes and take 5.6 times as
long: 3.2 microseconds a row and chunk of 496 trees instead of 0.57 (one core with AVX-512, numba
0.68, November 2026). With 500 trees, 20 columns and 10,000 rows the whole of `class_masses` then
takes 1.6 times as long (1.12 s of processor time instead of 0.69), and `nearest_polytopes` 1.5
times (1.11 s instead of 0.72).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending, njit, types
from numba.core import cgutils as _cgutils

Array = np.ndarray[Any, Any]

compiled: Any = njit(nogil=True, cache=True)

TILE = 256
STRIDE = 16


@compiled
def squared_distance(x: Array, centres: Array, s: int) -> float:
    """Squared Euclidean distance, summed in the order of the coordinates."""
    distance = 0.0
    for j in range(len(x)):
        off = x[j] - centres[s, j]
        distance += off * off
    return distance


@compiled
def nearest_of(x: Array, centres: Array, among: Array) -> int:
    """The nearest of some centres, given in ascending order; the first of equals."""
    best, least = int(among[0]), np.inf
    if len(among) == 1:
        return best
    for s in among:
        distance = squared_distance(x, centres, s)
        if distance < least:
            best, least = int(s), distance
    return best


@compiled
def nearest_of_all(
    rows: Array, x: Array, centres: Array, index: Array, tied: Array, least: Array
) -> None:
    """The nearest of all centres for each of ``rows``; the first of equals.

    A distance is summed as :func:`squared_distance` does, for a tile of centres at once. ``least``
    is infinite at first.
    """
    n_centres, n_coordinates = centres.shape
    tile = np.empty((n_coordinates, TILE))
    distance = np.empty(TILE)
    for begin in range(0, n_centres, TILE):
        size = min(TILE, n_centres - begin)
        for s in range(size):
            for j in range(n_coordinates):
                tile[j, s] = centres[begin + s, j]
        for i in range(len(rows)):
            distance[:] = 0.0
            for coordinate in range(0, n_coordinates, STRIDE):
                for j in range(coordinate, min(coordinate + STRIDE, n_coordinates)):
                    value, column = x[rows[i], j], tile[j]
                    for s in range(TILE):
                        off = value - column[s]
                        distance[s] += off * off
                # Sums only grow: a tile that is beyond the nearest so far stays beyond it.
                if distance[:size].min() > least[i]:
                    break
            else:
                for s in range(size):
                    if distance[s] < least[i]:
                        least[i] = distance[s]
                        index[i] = begin + s
                        tied[i] = False
                    elif distance[s] == least[i] and begin + s != index[i]:
                        tied[i] = True


@compiled
def add_leaf(change: Array, sign: int, starts: Array, runs: Array, leaf: int) -> None:
    """Count one leaf's members in (sign 1) or out (sign -1) of the differences of the matches."""
    for run in range(starts[leaf], starts[leaf + 1]):
        change[runs[run, 0]] += sign
        change[runs[run, 1]] -= sign


@compiled
def move_to(leaf: Array, row: int, held: Array, change: Array, starts: Array, runs: Array) -> None:
    """Turn the differences of the matches into those of ``row``, the cheaper of two ways.

    ``held`` has the leaves that ``change`` stands for, -1 for none: next to each other in
    lexicographic order, rows share many of their leaves, and only the others are touched.
    """
    afresh, onward = len(change) // 16, 0
    for tree in range(len(held)):
        old, new = held[tree], leaf[tree, row]
        needed = starts[new + 1] - starts[new] if new >= 0 else 0
        afresh += needed
        if old != new:
            onward += needed + (starts[old + 1] - starts[old] if old >= 0 else 0)
    if afresh < onward:
        change[:] = 0
        held[:] = -1
    for tree in range(len(held)):
        old, new = held[tree], leaf[tree, row]
        if old == new:
            continue
        if old >= 0:
            add_leaf(change, -1, starts, runs, old)
        if new >= 0:
            add_leaf(change, 1, starts, runs, new)
        held[tree] = new


@compiled
def tally(
    change: Array,
    blocks: Array,
    label: Array,
    entry_starts: Array,
    entry_class: Array,
    entry_count: Array,
    histogram: Array,
) -> int:
    """Rows of each class at each number of matches; returns the largest number of matches.

    ``blocks`` is ``change`` seen as words of 64 bits. ``label`` is the class of a polytope of one
    row, and -1 where its rows are in the entries.
    """
    running, largest, width = 0, 0, len(change) // len(blocks)
    for block in range(len(blocks)):
        if running == 0 and blocks[block] == 0:
            continue
        for s in range(width * block, min(width * block + width, len(label))):
            running += change[s]
            if running == 0:
                continue
            largest = max(largest, running)
            if label[s] >= 0:
                histogram[running, label[s]] += 1
            else:
                for entry in range(entry_starts[s], entry_starts[s + 1]):
                    histogram[running, entry_class[entry]] += entry_count[entry]
    return largest


@compiled
def smooth(histogram: Array, largest: int, table: Array, out: Array) -> None:
    """Turn a histogram of matches into class masses, and make it zero again.

    ``table`` is (matches, exponents) of the kernel's powers and ``out`` (exponents, classes).
    """
    n_classes, n_exponents = histogram.shape[1], table.shape[1]
    for shared in range(1, largest + 1):
        for label in range(n_classes):
            if histogram[shared, label]:
                rows = np.float64(histogram[shared, label])
                histogram[shared, label] = 0
                for g in range(n_exponents):
                    out[label, g] += table[shared, g] * rows


@compiled
def find_largest(change: Array, blocks: Array, ties: Array) -> tuple[int, int]:
    """The largest number of matches and how many polytopes have it, listed in ``ties``."""
    running, largest, n_ties, width = 0, 1, 0, len(change) // len(blocks)
    for block in range(len(blocks)):
        if running == 0 and blocks[block] == 0:
            continue
        for s in range(width * block, min(width * block + width, len(ties))):
            running += change[s]
            if running < largest:
                continue
            if running > largest:
                largest, n_ties = running, 0
            ties[n_ties] = s
            n_ties += 1
    return largest, n_ties


@compiled
def masses_rows(
    first: int,
    last: int,
    leaf: Array,
    starts: Array,
    runs: Array,
    label: Array,
    entry_starts: Array,
    entry_class: Array,
    entry_count: Array,
    table: Array,
    change: Array,
    out: Array,
) -> None:
    """Class masses of the polytopes ``first`` to ``last``, (rows, classes, exponents)."""
    n_trees, n_classes = leaf.shape[0], out.shape[1]
    held = np.full(n_trees, -1, dtype=np.int32)
    histogram = np.zeros((n_trees + 1, n_classes), dtype=np.int64)
    blocks = change.view(np.uint64)
    for row in range(first, last):
        move_to(leaf, row, held, change, starts, runs)
        largest = tally(
            change,
            blocks,
            label,
            entry_starts,
            entry_class,
            entry_count,
            histogram,
        )
        smooth(histogram, largest, table, out[row - first])


@compiled
def nearest_rows(
    first: int,
    last: int,
    leaf: Array,
    starts: Array,
    runs: Array,
    x: Array,
    centres: Array,
    change: Array,
    index: Array,
    shared: Array,
    tied: Array,
) -> None:
    """Nearest polytopes of the queries ``first`` to ``last`` that share a leaf with any."""
    held = np.full(leaf.shape[0], -1, dtype=np.int32)
    ties = np.empty(len(centres), dtype=np.int32)
    blocks = change.view(np.uint64)
    for row in range(first, last):
        move_to(leaf, row, held, change, starts, runs)
        largest, n_ties = find_largest(change, blocks, ties)
        at = row - first
        if n_ties == 0:
            continue
        shared[at] = largest
        tied[at] = n_ties > 1
        index[at] = nearest_of(x[row], centres, ties[:n_ties])


@compiled
def number_leaves(leaf: Array, smallest: int, numbers: Array, table: Array) -> int:
    """Number the leaves of one tree 0, 1, ... by ascending id; ``table`` is zero at first.

    Writes the number of each row's leaf, and to ``table`` one more than the number of each id.
    """
    for row in range(len(leaf)):
        table[leaf[row] - smallest] = 1
    n_leaves = 0
    for at in range(len(table)):
        if table[at]:
            n_leaves += 1
            table[at] = n_leaves
    for row in range(len(leaf)):
        numbers[row] = table[leaf[row] - smallest] - 1
    return n_leaves


@compiled
def count_runs(numbers: Array, runs_of_leaf: Array) -> None:
    """Add the runs of consecutive rows in one leaf to each leaf's count."""
    before = -1
    for row in range(len(numbers)):
        now = numbers[row]
        if now != before:
            runs_of_leaf[now] += 1
        before = now


@compiled
def write_runs(numbers: Array, next_run: Array, runs: Array) -> None:
    """Write where the runs of each leaf begin and end, at the places ``next_run`` counts on."""
    n_rows = len(numbers)
    begin = 0
    for row in range(1, n_rows + 1):
        if row == n_rows or numbers[row] != numbers[begin]:
            at = next_run[numbers[begin]]
            runs[at, 0] = begin
            runs[at, 1] = row
            next_run[numbers[begin]] = at + 1
            begin = row


@compiled
def write_members(numbers: Array, large_of_leaf: Array, next_member: Array, listed: Array) -> None:
    """List the rows of each leaf that is not large, at the places ``next_member`` counts on."""
    for row in range(len(numbers)):
        at = numbers[row]
        if not large_of_leaf[at]:
            listed[next_member[at]] = row
            next_member[at] += 1


CHUNK = 512  # polytopes in a vector of bits
DIGIT = 8  # values of a digit: two of them number 64 leaves
VECTORS = 2 * DIGIT  # of a tree in a chunk
TOGETHER = 16  # trees that a round of the adders takes
HIGHER = 5  # bits of a sum beyond those that a round fills
COPIES = 4  # of the bins that polytopes are counted in
MOST = TOGETHER * (2**HIGHER - 1)  # trees that a sum can count

intrinsic: Any = extending.intrinsic
cgutils: Any = _cgutils

_SHORT, _WORD, _LONG = (ir.IntType(bits) for bits in (16, 32, 64))
_BITS = ir.VectorType(_LONG, CHUNK // 64)
_LANES = 32
_FLAGS = ir.VectorType(ir.IntType(1), _LANES)
_SHORTS = ir.VectorType(_SHORT, _LANES)


@intrinsic
def _sum_matches(context: Any, vectors: Any, pairs: Any, n_rounds: Any, out: Any) -> Any:
    """out[s] = trees in which both vectors of the pair have polytope s (addresses).

    ``vectors`` are a chunk's, ``pairs`` two int32 numbers of vectors for each of
    ``n_rounds * TOGETHER`` trees, at most MOST, and ``out`` is (CHUNK,) int16.
    """

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        vectors, pairs, n_rounds, out = args
        vectors = builder.inttoptr(vectors, _BITS.as_pointer())
        pairs = builder.inttoptr(pairs, _WORD.as_pointer())
        zero = ir.Constant(_BITS, [0] * _BITS.count)
        planes = [cgutils.alloca_once(builder, _BITS) for _ in range(4 + HIGHER)]
        for plane in planes:
            builder.store(zero, plane)

        def chosen(place: Any) -> Any:
            number = builder.zext(builder.load(builder.gep(pairs, [place])), _LONG)
            return builder.load(builder.gep(vectors, [number]), align=8)

        with cgutils.for_range(builder, n_rounds) as rounds:
            first = builder.mul(rounds.index, _LONG(2 * TOGETHER))
            matches = [
                builder.and_(*[chosen(builder.add(first, _LONG(2 * tree + d))) for d in (0, 1)])
                for tree in range(TOGETHER)
            ]
            for plane in planes[:4]:
                matches = _added(builder, plane, matches)
            (carry,) = matches
            for plane in planes[4:]:
                held = builder.load(plane)
                builder.store(builder.xor(held, carry), plane)
                carry = builder.and_(held, carry)
        _write(builder, planes, out)
        return _context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp, types.intp), generate


def _added(builder: Any, plane: Any, ones: list[Any]) -> list[Any]:
    """Add bits to a plane, two by two; what is carried to the next plane, half as many."""
    carried = []
    held = builder.load(plane)
    for one, other in zip(ones[::2], ones[1::2], strict=True):
        either = builder.xor(one, other)
        both = builder.and_(one, other)
        carried.append(builder.or_(both, builder.and_(either, held)))
        held = builder.xor(either, held)
    builder.store(held, plane)
    return carried


def _write(builder: Any, planes: list[Any], out: Any) -> None:
    """Planes of bits as numbers."""
    out = builder.inttoptr(out, _SHORTS.as_pointer())
    zero = ir.Constant(_SHORTS, [0] * _LANES)
    flags = [builder.bitcast(plane, _WORD.as_pointer()) for plane in planes]
    with cgutils.for_range(builder, _LONG(CHUNK // _LANES)) as parts:
        total = zero
        for bit, words in enumerate(flags):
            word = builder.load(builder.gep(words, [parts.index]))
            worth = ir.Constant(_SHORTS, [1 << bit] * _LANES)
            there = builder.bitcast(word, _FLAGS)
            total = builder.add(total, builder.select(there, worth, zero))
        builder.store(total, builder.gep(out, [parts.index]), align=2)


@compiled
def write_vectors(numbers: Any, large_of_leaf: Any, vectors: Any) -> None:
    """Set the bits of each polytope's large leaves.

    numbers (trees, p) int32, leaves; large_of_leaf (leaves,) uint8, a large leaf's number in its
    tree from 1, else 0; vectors (chunks, VECTORS * trees + 1, CHUNK / 64) uint64, zero at first.
    The last vector of a chunk stays zero.
    """
    for tree in range(len(numbers)):
        for s in range(numbers.shape[1]):
            large = large_of_leaf[numbers[tree, s]]
            if large:
                high, low = _digits(large)
                word, bit = s % CHUNK // 64, np.uint64(1) << np.uint64(s % 64)
                vectors[s // CHUNK, VECTORS * tree + high, word] |= bit
                vectors[s // CHUNK, VECTORS * tree + low, word] |= bit


@compiled
def _digits(large: int) -> Any:
    """The two vectors of a large leaf among those of its tree."""
    number = np.int64(large) - 1
    return number // DIGIT, DIGIT + number % DIGIT


@compiled
def _find_pairs(
    leaf: Any, first: int, last: int, large_of_leaf: Any, nothing: int
) -> tuple[Any, Any]:
    """Each row's vectors, in the trees where it is in a large leaf, filled up with ``nothing``."""
    n_trees, n_rows = len(leaf), last - first
    pairs = np.full((n_rows, n_trees + TOGETHER, 2), nothing, dtype=np.int32)
    n_wanted = np.zeros(n_rows, dtype=np.int64)
    for tree in range(n_trees):
        for row in range(n_rows):
            at = leaf[tree, first + row]
            if at >= 0 and large_of_leaf[at]:
                high, low = _digits(large_of_leaf[at])
                pairs[row, n_wanted[row], 0] = VECTORS * tree + high
                pairs[row, n_wanted[row], 1] = VECTORS * tree + low
                n_wanted[row] += 1
    return pairs, n_wanted


@compiled
def _copy(numbers: Any, to: Any) -> None:
    """As ``to[:] = numbers``, which takes seconds to compile for the errors that it may raise."""
    for at in range(len(to)):
        to[at] = numbers[at]


@compiled
def _count_all_small(leaf: Any, first: int, starts: Any, listed: Any, matches: Any) -> None:
    """Matches in small leaves, of as many rows from ``first`` on as ``matches`` (rows, .) has."""
    one = np.empty(matches.shape[1], dtype=matches.dtype)  # stays in the cache
    for row in range(len(matches)):
        one[:] = 0
        for tree in range(len(leaf)):
            at = leaf[tree, first + row]
            if at >= 0:
                for s in listed[starts[at] : starts[at + 1]]:
                    one[s] += 1
        _copy(one, matches[row])


@compiled
def _add_large(vectors: Any, pairs: Any, n_wanted: int, total: Any) -> None:
    """Add a row's matches in large leaves to its ``total`` (CHUNK,) in a chunk."""
    counted = np.empty(CHUNK, dtype=np.int16)
    for at in range(0, n_wanted, MOST):
        rounds = (min(MOST, n_wanted - at) + TOGETHER - 1) // TOGETHER
        _sum_matches(vectors.ctypes.data, pairs[at:].ctypes.data, rounds, counted.ctypes.data)
        for s in range(CHUNK):
            total[s] += counted[s]


@compiled
def _aligned(like: Any) -> Any:
    """Room for the vectors of a chunk that starts on a cache line."""
    words = np.empty(like.size + CHUNK // 64, dtype=like.dtype)
    first = -words.ctypes.data % (CHUNK // 8) // 8
    return words[first : first + like.size].reshape(like.shape)


@compiled
def dense_masses_rows(
    first: int,
    last: int,
    leaf: Any,
    starts: Any,
    listed: Any,
    large_of_leaf: Any,
    vectors: Any,
    label: Any,
    mixed: Any,
    entry_starts: Any,
    entry_class: Any,
    entry_count: Any,
    table: Any,
    matches: Any,
    out: Any,
) -> None:
    """Class masses of the polytopes ``first`` to ``last``, (rows, classes, exponents).

    label (whole chunks,) int32, the class of a polytope of one row, else the number of classes;
    mixed, the polytopes of several rows, ascending; matches (rows, whole chunks).
    """
    n_rows, n_classes, n_bins = last - first, out.shape[1], len(leaf) + 1
    _count_all_small(leaf, first, starts, listed, matches)
    pairs, n_wanted = _find_pairs(leaf, first, last, large_of_leaf, vectors.shape[1] - 1)
    singles = np.zeros((n_rows, COPIES, n_bins * (n_classes + 1)), dtype=np.int32)
    several = np.zeros((n_rows, n_bins, n_classes), dtype=np.int64)
    held, total = _aligned(vectors[0]), np.empty(CHUNK, dtype=np.int32)
    end_mixed = 0
    for chunk in range(len(vectors)):
        begin, begin_mixed = chunk * CHUNK, end_mixed
        while end_mixed < len(mixed) and mixed[end_mixed] < begin + CHUNK:
            end_mixed += 1
        for at in range(len(held)):
            _copy(vectors[chunk, at], held[at])
        for row in range(n_rows):
            _copy(matches[row, begin : begin + CHUNK], total)
            _add_large(held, pairs[row], n_wanted[row], total)
            for s in mixed[begin_mixed:end_mixed]:
                for entry in range(entry_starts[s], entry_starts[s + 1]):
                    several[row, total[s - begin], entry_class[entry]] += entry_count[entry]
            _tally(total, label[begin : begin + CHUNK], n_classes + 1, singles[row])
    for row in range(n_rows):
        for copy in range(COPIES):
            of_copy = singles[row, copy].reshape(n_bins, n_classes + 1)
            for shared in range(n_bins):
                for of_class in range(n_classes):
                    several[row, shared, of_class] += of_copy[shared, of_class]
        smooth(several[row], len(leaf), table, out[row])


@compiled
def _tally(total: Any, label: Any, n_classes: int, bins: Any) -> None:
    """Count each polytope of a chunk in its bin, in one of several copies of the bins.

    Neighbours are often in one bin, and a number that was just written is slow to read again.
    """
    for s in range(CHUNK):
        total[s] = total[s] * n_classes + label[s]
    for s in range(0, CHUNK, COPIES):
        for copy in range(COPIES):
            bins[copy, np.uint32(total[s + copy])] += 1


@compiled
def dense_nearest_rows(
    first: int,
    last: int,
    leaf: Any,
    starts: Any,
    listed: Any,
    large_of_leaf: Any,
    vectors: Any,
    x: Any,
    centres: Any,
    matches: Any,
    index: Any,
    shared: Any,
    tied: Any,
) -> None:
    """Nearest polytopes of the queries ``first`` to ``last`` that share a leaf with any.

    ``shared`` is zero at first.
    """
    n_rows, n_polytopes = last - first, len(centres)
    _count_all_small(leaf, first, starts, listed, matches)
    pairs, n_wanted = _find_pairs(leaf, first, last, large_of_leaf, vectors.shape[1] - 1)
    held, total = _aligned(vectors[0]), np.empty(CHUNK, dtype=np.int32)
    least = np.empty(n_rows)
    for chunk in range(len(vectors)):
        begin = chunk * CHUNK
        size = min(CHUNK, n_polytopes - begin)
        for at in range(len(held)):
            _copy(vectors[chunk, at], held[at])
        for row in range(n_rows):
            _copy(matches[row, begin : begin + CHUNK], total)
            _add_large(held, pairs[row], n_wanted[row], total)
            largest = total[:size].max()
            if largest == 0 or largest < shared[row]:
                continue
            for s in range(size):
                if total[s] < largest:
                    continue
                distance = squared_distance(x[first + row], centres, begin + s)
                if largest > shared[row]:
                    index[row], shared[row], tied[row] = begin + s, largest, False
                    least[row] = distance
                else:
                    tied[row] = True
                    if distance < least[row]:
                        index[row], least[row] = begin + s, distance
