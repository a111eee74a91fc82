"""How the four cells of a decision vary together, from sums of blocks of clusters."""

from __future__ import annotations

import numpy as np

from kdcal_core.data import IntArray
from kdcal_core.diagnostics.decisions import STEPS, CellProducts
from kdcal_core.diagnostics.summaries.score_cells import ScoreCells
from kdcal_core.statistics import small_sample_factor

_WIDTH = 500  # thresholds at a time, some 20 MB


def decision_products(cells: ScoreCells, last: IntArray) -> CellProducts | None:
    """As those of the rows, for each block the rows of a bin shared out as those of all blocks.

    Parameters
    ----------
    cells : ScoreCells
    last : (c,) int array
        How many thresholds the scores of each cell reach.

    Returns
    -------
    CellProducts or None
        None of independent rows.
    """
    blocks = cells.clusters
    if blocks is None:
        return None
    sides = ((cells.hits, blocks.hits), (cells.misses, blocks.count - blocks.hits))
    # share of each bin's rows that reach so many thresholds or more
    reach = [
        np.cumsum(cells.parts(rows, last, STEPS)[:, ::-1], axis=1)[:, ::-1] for rows, _ in sides
    ]
    product = np.zeros((4, 4, STEPS - 1))
    for start in range(1, STEPS, _WIDTH):
        held = []
        for (_, of_blocks), share in zip(sides, reach, strict=True):
            part = share[:, start : start + _WIDTH]
            whole, mass = of_blocks.sum(axis=1, keepdims=True), of_blocks.sum(axis=0)
            found = of_blocks @ part
            held.append((found, whole - found, mass @ part, mass @ np.square(part)))
        parts = np.stack([held[0][0], held[1][0], held[0][1], held[1][1]])  # as of `DecisionCounts`
        at = slice(start - 1, start - 1 + parts.shape[2])
        product[:, :, at] = np.einsum("ibt,jbt->ijt", parts, parts)
        for side, (_, _, first, square) in enumerate(held):
            # a row is in one of two cells, of which its bin's rows hold shares
            between = first - square
            for one in (side, side + 2):
                product[one, one, at] += between
                product[one, 2 * side + 2 - one, at] -= between
    n = blocks.present
    return CellProducts(product, blocks.units, small_sample_factor(n) if n > 1 else np.inf)
