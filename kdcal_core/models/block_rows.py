"""How many rows a network takes at once, found by a short trial on the rows themselves.

Large intermediate tensors leave the processor's caches. A convolutional network of 214 classes took
16 s for 1,344 rows in one block, and 5 to 6 s in blocks of 16 to 128. Which size is fastest depends
on the network, the runtime and the machine, so it is measured where that can matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter

from kdcal_core.models.output_meaning import blocks

#: Up to so many numbers in the largest tensor of all rows, blocks are not tried: 16 MB as float32.
FEW_CELLS = 1 << 22
#: Blocks have a multiple of so many rows; the first also takes what is left over. A runtime may add
#: up a block of less in another order, and the last bit would depend on the size that was fastest.
FEWEST = 16
GAIN = 1.05  # a block of twice the rows must be faster by this factor


def timed_blocks(
    n_rows: int, most: int, cells_a_row: int, clock: Callable[[], float] = perf_counter
) -> Iterator[slice]:
    """Consecutive blocks of rows of at most ``most``, in a size that suits the caller.

    The caller works on each block before it asks for the next. While that gets faster by the row,
    each block has twice the rows of the one before; then the best size stays. No row is worked on
    twice. Where all rows have few cells, or ``most`` leaves no choice, blocks have ``most`` rows.

    Parameters
    ----------
    n_rows, most : int
    cells_a_row : int
        Numbers of one row in the largest tensor.
    clock : callable
        Seconds.

    Examples
    --------
    >>> [block.stop for block in timed_blocks(100, 60, 1)]
    [60, 100]
    """
    if n_rows * cells_a_row <= FEW_CELLS or min(most, n_rows) < 2 * FEWEST:
        yield from blocks(n_rows, most)
        return
    # the first block also prepares the runtime, so its time does not count
    size, start, best, pace = FEWEST, FEWEST + n_rows % FEWEST, FEWEST, 0.0
    most -= most % FEWEST
    yield slice(0, start)
    while start < n_rows:
        stop = min(start + size, n_rows)
        began = clock()
        yield slice(start, stop)
        rows, start = stop - start, stop
        now = rows / max(clock() - began, 1e-9)
        if now < GAIN * pace:
            break
        best, pace = size, now
        if size == most:
            break
        size = min(2 * size, most)
    for block in blocks(n_rows - start, best) if start < n_rows else ():
        yield slice(start + block.start, start + block.stop)
