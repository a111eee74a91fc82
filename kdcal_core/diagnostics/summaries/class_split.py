"""The CORP split of a classifier's Brier score, from the cells of a summary.

An isotonic curve of cells fits less of the rows' noise than one of the rows themselves, so
miscalibration and discrimination are a little lower than those of rows. Of a calibrated model
miscalibration is noise alone, and was lower by 1.5, 4.4 and 7.0% of itself for 3,000, 100,000 and
1,000,000 rows; of one whose log odds are too large by half, by 0.3, 0.2 and 0.1%.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics.calibration_curves import fewer_cells, isotonic_values
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.scores import LIKELY_BINS, split_of
from kdcal_core.diagnostics.split_noise import (
    LikelyTruth,
    expected_miscalibration,
    interval_draws,
    split_intervals,
)
from kdcal_core.diagnostics.summaries.block_products import joint_variance, noise_of_blocks
from kdcal_core.diagnostics.summaries.class_summary import ClassSummary
from kdcal_core.diagnostics.summaries.score_cells import ScoreCells, cells_of_kind
from kdcal_core.statistics import normal_quantile


def summary_split(
    summary: ClassSummary, of: str, level: float, seed: int
) -> tuple[Estimate, Estimate, Estimate]:
    """The CORP split, with one isotonic frequency for each cell.

    Miscalibration and discrimination are at most :func:`split_bound` lower than those of rows, and
    never higher. The score that is split, the uncertainty and all intervals are as of rows.
    """
    what = "top-label Brier" if of == "top-label" else "Brier"
    cells = cells_of_kind(summary, "confidence" if of == "top-label" else "class")
    rng = np.random.default_rng(seed)
    n = summary.n
    values: list[float] = [0.0, 0.0, 0.0]
    parts: list[list[tuple[FloatArray, FloatArray]]] = [[], [], []]
    fine = [one.fine() for one in cells]
    effects = [one.gap_effect() for one in cells]
    in_time = summary.clusters is not None and summary.clusters.names.n_times > 0
    floor = 0.0
    if not in_time:
        floor = sum(expected_miscalibration(fewer_cells(one), rng) for one in fine)
    draws, truths = interval_draws(len(cells)), []
    for one, every, effect in zip(cells, fine, effects, strict=True):
        table, few = one.table(LIKELY_BINS, "quantile"), fewer_cells(every)
        noise = partial(noise_of_blocks, one, few) if in_time else None
        truths.append(LikelyTruth.of(few, table, draws, rng, effect, noise))
        floor += float(truths[-1].noise[0].mean()) if in_time else 0.0
        rate = np.full(len(one.score), float(one.hits.sum()) / n)
        stated, fitted, likely, base = (
            (np.square(1.0 - said), np.square(said))
            for said in (one.score, isotonic_values(every), truths[-1].at(one.score), rate)
        )
        parts[0].append((stated[0] - likely[0], stated[1] - likely[1]))
        parts[1].append((base[0] - likely[0], base[1] - likely[1]))
        parts[2].append(base)
        best, plain = (
            float(one.hits @ hit + one.misses @ miss) / n for hit, miss in (fitted, base)
        )
        values[0] -= best
        values[1] += plain - best
        values[2] += plain
    values[0] += summary.moments(what)[0] / n
    halves = [np.inf, np.inf, np.inf]
    if n > 1:
        variances = [joint_variance(summary, cells, part) / (n - 1.0) for part in parts]
        halves = [normal_quantile(level) * one**0.5 for one in variances]
    ends = split_intervals(truths, (halves[0], halves[1]), level, rng)
    ends.append((values[2] - halves[2], values[2] + halves[2]))
    bound = sum(map(split_bound, cells))
    return _with_bound(split_of(values, ends, n, level, of, floor, draws), bound)


def _with_bound(
    parts: tuple[Estimate, Estimate, Estimate], bound: float
) -> tuple[Estimate, Estimate, Estimate]:
    """The three parts, of which two say by how much those of rows may be higher."""
    if bound == 0.0:
        return parts
    miscalibration, discrimination = (
        replace(
            one,
            name=f"{one.name}, isotonic in cells of the summary",
            interval=f"{one.interval}; the value is at most {bound:.1g} lower than that of rows",
        )
        for one in parts[:2]
    )
    return miscalibration, discrimination, parts[2]


def split_bound(cells: ScoreCells) -> float:
    """By how much miscalibration and discrimination of the rows may be higher than of their cells.

    Notes
    -----
    Let a curve of rows rise by r within a cell of n rows with observed frequency f. Its score is
    then better than that of its mean there by at most 2 n r f (1 - f), which is reached if all hits
    come last. All rises together are at most 1, so the bound is that of the cell with the largest
    2 n f (1 - f), over all rows.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> one = summarise([[0.59001, 0.40999], [0.59002, 0.40998]] * 50, [0, 1] * 50, ("a", "b"))
    >>> split_bound(ScoreCells.of_class(one, 1))
    0.5
    """
    rows = np.where(cells.widths > 0.0, cells.hits * cells.misses / cells.count, 0.0)
    return float(2.0 * rows.max(initial=0.0) / max(cells.n, 1.0))
