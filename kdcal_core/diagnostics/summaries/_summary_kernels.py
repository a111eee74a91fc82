"""The compiled pass over the rows of a batch.

Imported only when used, because numba loads slowly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = np.ndarray[Any, Any]

_LOW = (1 << 26) - 1
_CLIP = 1e-12


@njit(nogil=True, cache=True, inline="always")
def _put(sums: Array, at: int, value: float, m: int) -> None:
    """Add m times a number below 1,000, rounded to 44 bits behind the point, to two integers."""
    fixed = np.int64(value * 17592186044416.0 + 0.5)  # 2^44
    sums[at, 0] += (fixed >> 26) * m
    sums[at, 1] += (fixed & _LOW) * m


@njit(nogil=True, cache=True, inline="always")
def _number(row: int) -> Any:
    """A random number of a row by its position (SplitMix64), the same on every machine."""
    z = np.uint64(row) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(nogil=True, cache=True, inline="always")
def _block(row: int) -> Any:
    """The same without its last bit."""
    return np.int64(_number(row) >> np.uint64(1))


@njit(nogil=True, cache=True)
def rows_within(first: int, n: int, limit: Any, found: Array) -> int:
    """Which of n rows, of which the first has this position, have numbers up to the limit.

    They are written to the beginning of ``found`` (n,); the result is how many there are.
    """
    count = 0
    for i in range(n):
        if _number(first + i) <= limit:
            found[count] = i
            count += 1
    return count


@njit(nogil=True, cache=True, inline="always")
def _cell(score: float, ends: Array, starts: Array, buckets: float) -> Any:
    """The cell of a score in [0, 1]; ``buckets`` is one less than there are ``starts``."""
    bucket = np.int64(score * buckets)
    low = np.int64(starts[bucket])
    high = np.int64(starts[bucket + 1]) if bucket + 1 < len(starts) else low
    while high - low > 4:
        middle = (low + high) >> 1
        if ends[middle] < score:
            low = middle + 1
        else:
            high = middle
    while ends[low] < score:  # mostly one comparison, which is faster than halving
        low += 1
    return low


@njit(nogil=True, cache=True)
def add_groups(
    group: Array,
    proba: Array,
    y: Array,
    times: Array,
    labels: Array,
    ends: Array,
    starts: Array,
    counts: Array,
) -> None:
    """Add rows (n,) to the counts (g, t, C, 4) of their groups, as of `ClassSummary.cells`.

    They are those of the probabilities of the classes ``labels`` (t,), of which -1 stands for the
    largest one; ``times`` (n,) is how often each row counts, (0,) for once.
    """
    buckets = float(len(starts) - 1)
    k = proba.shape[1]
    cells, scores = np.empty(k, np.int64), np.empty(k)
    for i in range(len(group)):
        best = 0
        for j in range(k):
            if proba[i, j] > proba[i, best]:
                best = j
            scores[j] = min(proba[i, j], 1.0)
            cells[j] = _cell(scores[j], ends, starts, buckets)
        m = times[i] if len(times) else 1
        for t in range(len(labels)):
            label = labels[t] if labels[t] >= 0 else best
            at = counts[group[i], t, cells[label]]
            fixed = np.int64(scores[label] * 9007199254740992.0)  # 2^53, exact from 0.5
            at[0] += m
            at[1] += m if y[i] == label else 0
            at[2] += (fixed >> 26) * m
            at[3] += (fixed & _LOW) * m


@njit(nogil=True, cache=True)
def add_exactly(values: Array, bits: Array, largest: float, half: int, total: Array) -> int:
    """Add numbers (n,) to an exact sum; the first that is too large or no number, or -1.

    ``bits`` (n,) int64 are the same numbers' bits. ``total`` (exponents, 2) is changed: a mantissa
    of 53 bits, times two, is added in two halves to the place of its exponent. The number of
    ``half`` is that of the lower half's bits.
    """
    low_bits = (1 << half) - 1
    for i in range(len(values)):
        if not abs(values[i]) <= largest:
            return i
        field = (bits[i] >> 52) & 0x7FF
        mantissa = bits[i] & 0xFFFFFFFFFFFFF
        if field == 0:
            if mantissa == 0:
                continue
            while mantissa < (1 << 52):  # a subnormal number
                mantissa <<= 1
                field -= 1
            field += 1
        else:
            mantissa |= 1 << 52
        whole = mantissa << 1
        if bits[i] < 0:
            whole = -whole
        place = field + 51
        total[place, 0] += whole >> half
        total[place, 1] += whole & low_bits
    return -1


@njit(nogil=True, cache=True, error_model="numpy")
def add_rows(
    proba: Array,
    y: Array,
    times: Array,
    first: int,
    together: Array,
    ends: Array,
    starts: Array,
    bins: Array,
    tolerance: float,
    cells: Array,
    joint: Array,
    sums: Array,
    blocks: Array,
) -> int:
    """Add rows to the counts; the first faulty row, or -1.

    ``proba`` (n, K), ``y`` (n,); ``times`` (n,) how often each row counts, (0,) for once; ``first``
    the position of the first row; ``together`` (n,) the block of each row, (0,) where it follows
    from the position; ``ends`` and ``starts`` of the grid, ``bins`` (C,) the coarse bin of each
    cell. ``cells`` (2, K, C, 4), ``joint`` (K, K), ``sums`` (12, 2) and ``blocks``
    (B, K, bins, 3) are changed.
    """
    n, k = proba.shape
    buckets = float(len(starts) - 1)
    n_blocks = len(blocks)
    p = np.empty(k)
    for i in range(n):
        total, faulty = 0.0, False
        for j in range(k):
            value = proba[i, j]
            # a comparison with NaN is false
            if not (value >= 0.0 and value <= 1.000001):
                faulty = True
            total += value
        label = y[i]
        if faulty or not abs(total - 1.0) <= tolerance or label < 0 or label >= k:
            return i
        scale = total if abs(total - 1.0) > 1e-12 else 1.0
        best, square = 0, 0.0
        for j in range(k):
            p[j] = proba[i, j] / scale
            if p[j] > p[best]:
                best = j
        block = together[i] if len(together) else _block(first + i) % n_blocks
        m = times[i] if len(times) else 1
        for j in range(k):
            hit = 1 if label == j else 0
            square += (p[j] - hit) * (p[j] - hit)
            score = min(p[j], 1.0)
            low = _cell(score, ends, starts, buckets)
            fixed = np.int64(score * 9007199254740992.0)  # 2^53, exact from 0.5
            cells[1, j, low, 0] += m
            cells[1, j, low, 1] += hit * m
            cells[1, j, low, 2] += (fixed >> 26) * m
            cells[1, j, low, 3] += (fixed & _LOW) * m
            if j == best:
                cells[0, j, low, 0] += m
                cells[0, j, low, 1] += hit * m
                cells[0, j, low, 2] += (fixed >> 26) * m
                cells[0, j, low, 3] += (fixed & _LOW) * m
            bin_ = bins[low]
            blocks[block, j, bin_, 0] += m
            blocks[block, j, bin_, 1] += hit * m
            blocks[block, j, bin_, 2] += m * np.int64(score * 1073741824.0 + 0.5)  # 2^30
        joint[label, best] += m
        said = min(p[best], 1.0)
        right = label == best
        away = said - 1.0 if right else said
        loss = -np.log(max(said if right else 1.0 - said, _CLIP))
        full = -np.log(min(max(p[label], _CLIP), 1.0))
        _put(sums, 0, said, m)
        _put(sums, 1, said * said, m)
        if not right:
            _put(sums, 2, said, m)
            _put(sums, 3, said * said, m)
        _put(sums, 4, away * away, m)
        _put(sums, 5, away * away * away * away, m)
        _put(sums, 6, loss, m)
        _put(sums, 7, loss * loss, m)
        _put(sums, 8, square, m)
        _put(sums, 9, square * square, m)
        _put(sums, 10, full, m)
        _put(sums, 11, full * full, m)
    return -1


@njit(nogil=True, cache=True, error_model="numpy")
def add_blocks(
    proba: Array,
    y: Array,
    times: Array,
    block: Array,
    ends: Array,
    starts: Array,
    coarse: Array,
    cells: Array,
    sums: Array,
) -> None:
    """Add rows that were checked to the sums of their blocks, as of `ClassBlocks`.

    ``block`` (n,) of each row, ``coarse`` (C,) the bin of each cell. ``cells`` (2, B, K, U, 3) and
    ``sums`` (B, 6) are changed.
    """
    n, k = proba.shape
    buckets = float(len(starts) - 1)
    p = np.empty(k)
    for i in range(n):
        total = 0.0
        for j in range(k):
            total += proba[i, j]
        scale = total if abs(total - 1.0) > 1e-12 else 1.0
        best, square, label = 0, 0.0, y[i]
        for j in range(k):
            p[j] = proba[i, j] / scale
            if p[j] > p[best]:
                best = j
        m = times[i] if len(times) else 1
        at = block[i]
        for j in range(k):
            hit = 1 if label == j else 0
            square += (p[j] - hit) * (p[j] - hit)
            score = min(p[j], 1.0)
            place = coarse[_cell(score, ends, starts, buckets)]
            fixed = np.int64(score * 1073741824.0 + 0.5)  # 2^30
            for of in range(2 if j == best else 1):
                one = cells[1 - of, at, j, place]
                one[0] += m
                one[1] += hit * m
                one[2] += fixed * m
        said = min(p[best], 1.0)
        right = label == best
        away = said - 1.0 if right else said
        loss = -np.log(max(said if right else 1.0 - said, _CLIP))
        full = -np.log(min(max(p[label], _CLIP), 1.0))
        own = sums[at]
        own[0] += np.int64(said * 16777216.0 + 0.5) * m  # 2^24
        if not right:
            own[1] += np.int64(said * 16777216.0 + 0.5) * m
        own[2] += np.int64(away * away * 16777216.0 + 0.5) * m
        own[3] += np.int64(loss * 16777216.0 + 0.5) * m
        own[4] += np.int64(square * 16777216.0 + 0.5) * m
        own[5] += np.int64(full * 16777216.0 + 0.5) * m


@njit(nogil=True, cache=True, error_model="numpy")
def add_pairs(
    before: Array,
    after: Array,
    y: Array,
    first: int,
    event: int,
    ends: Array,
    starts: Array,
    bins: Array,
    means: Array,
    areas: Array,
    shifts: Array,
    products: Array,
    blocks: Array,
    noise: Array,
    together: Array,
) -> None:
    """Add rows that were checked, with two versions' probabilities (n, K), to what both share.

    ``event`` is the class that is judged, -1 for the confidence. ``means`` (2, 4) of each version's
    log loss, Brier score, right rows and confidence of errors; ``areas`` (2, K, 2, C) the part of a
    row in the error of the area by class, outcome and cell; ``shifts`` (2, C) what is added to a
    score for the chance of its outcome. ``products`` (4 + K, 2, 2) of the versions' values less
    their means, those of areas by true class; ``blocks`` (B, 2, bins, 3) and the variances
    ``noise`` (2, L) and covariances ``together`` (L, L) of outcomes on a lattice are changed.
    """
    n, k = before.shape
    buckets, size = float(len(starts) - 1), noise.shape[1]
    p, cells = np.empty(k), np.empty(k, np.int64)
    part, places, chances = np.empty((2, 5)), np.empty(2, np.int64), np.empty(2)
    for i in range(n):
        label = y[i]
        block = _block(first + i) % len(blocks)
        for v in range(2):
            proba = before if v == 0 else after
            total = 0.0
            for j in range(k):
                total += proba[i, j]
            scale = total if abs(total - 1.0) > 1e-12 else 1.0
            best, square, area = 0, 0.0, 0.0
            for j in range(k):
                p[j] = proba[i, j] / scale
                if p[j] > p[best]:
                    best = j
                hit = 1 if label == j else 0
                square += (p[j] - hit) * (p[j] - hit)
                cells[j] = _cell(min(p[j], 1.0), ends, starts, buckets)
                area += areas[v, j, hit, cells[j]]
            asked = event if event >= 0 else best
            score, cell = min(p[asked], 1.0), cells[asked]
            at = blocks[block, v, bins[cell]]
            at[0] += 1
            at[1] += 1 if label == asked else 0
            at[2] += np.int64(score * 1073741824.0 + 0.5)  # 2^30
            chance = min(max(score + shifts[v, cell], 0.0), 1.0)
            places[v], chances[v] = min(np.int64(score * size), size - 1), chance
            noise[v, places[v]] += chance * (1.0 - chance)
            right = label == best
            part[v, 0] = -np.log(min(max(p[label], _CLIP), 1.0)) - means[v, 0]
            part[v, 1] = square - means[v, 1]
            part[v, 2] = (1.0 if right else 0.0) - means[v, 2]
            part[v, 3] = 0.0 if right else min(p[best], 1.0) - means[v, 3]
            part[v, 4] = area
        # one uniform number decides both outcomes
        common = min(chances[0], chances[1]) - chances[0] * chances[1]
        together[places[0], places[1]] += common
        for q in range(5):
            found = products[q if q < 4 else 4 + label]
            for v in range(2):
                for w in range(2):
                    found[v, w] += part[v, q] * part[w, q]


@njit(nogil=True, cache=True)
def pairs_in_order(keys: Array) -> int:
    """Twice the pairs of a hit and a lower miss, ties counting half, of ascending keys (n,).

    A key is an integer that orders the score, times two, plus one for a hit.
    """
    twice, below, i = 0, 0, 0
    while i < len(keys):
        score, hits, misses = keys[i] >> 1, 0, 0
        while i < len(keys) and keys[i] >> 1 == score:
            if keys[i] & 1:
                hits += 1
            else:
                misses += 1
            i += 1
        twice += hits * (2 * below + misses)
        below += misses
    return twice
