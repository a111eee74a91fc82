"""Whether the scores of one summary are distributed like those of another."""

from __future__ import annotations

import numpy as np

from kdcal_core.data.binning import bin_index, bin_sums
from kdcal_core.diagnostics.pooled_cells import PooledCells
from kdcal_core.diagnostics.shift import BINS, CELLS, DRAWS, FrozenBins, ScoreShift, shift_of_cells
from kdcal_core.diagnostics.summaries.class_summary import ClassSummary
from kdcal_core.diagnostics.summaries.score_cells import ScoreCells, class_cells
from kdcal_core.diagnostics.summaries.score_grid import upper_ends
from kdcal_core.errors import InputError


def summary_shift(
    reference: ClassSummary,
    new: ClassSummary,
    event: int | None = None,
    *,
    level: float = 0.95,
    n_draws: int = DRAWS,
    seed: int = 0,
) -> ScoreShift:
    """PSI, Kolmogorov-Smirnov and Wasserstein-1 distances between two summaries' scores.

    As :func:`kdcal_core.diagnostics.score_shift`. The edges of the ten bins of equal mass lie at
    ends of cells. A Kolmogorov-Smirnov distance of the rows may be larger by the share of rows in
    a cell, and a Wasserstein-1 distance differ by the mean width of the rows' cells; intervals are
    widened by that.

    Parameters
    ----------
    reference, new : ClassSummary
        Each with rows, of the same classes.
    event : int, optional
        The class whose probability is compared; without it the confidence.
    level, n_draws, seed
        As for :func:`kdcal_core.diagnostics.score_shift`.

    Raises
    ------
    InputError
        For other classes, no rows, rows in clusters, or settings out of range.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> said = np.random.default_rng(0).random(1000)
    >>> one, two = (
    ...     summarise(np.column_stack([1 - p, p]), np.zeros(1000, int), ("no", "yes"))
    ...     for p in (said, said**2)
    ... )
    >>> [test.p_value < 0.01 for test in summary_shift(one, two, 1).tests]
    [True, True, True]
    """
    if reference.classes != new.classes:
        raise InputError(
            "Two summaries have different classes", fix="Compare summaries of one model."
        )
    if reference.clusters is not None or new.clusters is not None:
        raise InputError(
            "Distances between the scores of two summaries count rows as independent, and these "
            "are in clusters",
            fix="Compare the rows themselves.",
        )
    old, fresh = (_cells(one, event) for one in (reference, new))
    size = len(upper_ends())
    counts = [bin_sums(one.place, size, one.count) for one in (old, fresh)]
    both = counts[0] + counts[1]
    some = np.flatnonzero(both)
    total = [bin_sums(one.place, size, one.count * one.score) for one in (old, fresh)]
    place = (total[0] + total[1])[some] / both[some]
    rows = [one[some].astype(np.int64) for one in counts]
    exact = PooledCells(np.diff(place), *rows)
    own = np.arange(len(some)) * CELLS // len(some) if len(some) > CELLS else np.arange(len(some))
    merged_place = bin_sums(own, int(own[-1]) + 1, place) / bin_sums(own, int(own[-1]) + 1)
    merged = PooledCells(
        np.diff(merged_place),
        *(bin_sums(own, int(own[-1]) + 1, one.astype(float)).astype(np.int64) for one in rows),
    )
    table = old.table(BINS, "quantile")
    bins = FrozenBins(table.edges, table.count)
    in_bins = bin_sums(bin_index(fresh.ends, table.edges), len(table.edges) - 1, fresh.count)
    wide = [one.widths > 0.0 for one in (old, fresh)]
    hidden = (
        max(
            float((one.count[open_] / one.n).max(initial=0.0))
            for one, open_ in zip((old, fresh), wide, strict=True)
        ),
        sum(float(one.count @ one.widths) / one.n for one in (old, fresh)),
    )
    return shift_of_cells(exact, merged, bins, in_bins, level, n_draws, seed, hidden)


def _cells(summary: ClassSummary, event: int | None) -> ScoreCells:
    if summary.n < 1:
        raise InputError("The summary has no rows", fix="Add at least one row.")
    if event is None:
        return ScoreCells.of_confidence(summary)
    return class_cells(summary, event, "event")
