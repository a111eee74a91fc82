"""Two versions' measures on very many rows, from counts and sums that one pass over both makes.

What is shown of a version are the estimates of its summary, as on every page. How two versions vary
together comes from sums over all rows: products of losses and of the parts of areas, random blocks
of rows for binned errors, and for the smooth ECE the covariance of outcomes on its lattice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from kdcal_core.blocks import on_all_cores
from kdcal_core.data import FloatArray, IntArray, ScoredSet
from kdcal_core.data.binning import bin_index
from kdcal_core.diagnostics.calibration_error import pooled_bins, resampled_groups
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.summaries import (
    ClassSummary,
    summary_auroc,
    summary_brier,
    summary_calibration_error,
    summary_confidence_on_errors,
    summary_log_loss,
    summary_smooth_error,
)
from kdcal_core.diagnostics.summaries.class_areas import ClassArea
from kdcal_core.diagnostics.summaries.class_estimates import accuracy_of_cells
from kdcal_core.diagnostics.summaries.class_summary import BLOCK_BINS, BLOCKS
from kdcal_core.diagnostics.summaries.score_cells import ScoreCells, cells_asked, class_cells
from kdcal_core.diagnostics.summaries.score_grid import bins_of_cells, bucket_starts, upper_ends
from kdcal_core.diagnostics.targets import Norm
from kdcal_core.evaluation.spread import (
    CHANCE_BINS,
    COARSE,
    ResampledBins,
    Spread,
    binned_spread,
    of_area_products,
    of_lattices,
    unbiased,
)
from kdcal_core.once import Once

SMOOTH_DRAWS = 200
PARTS = 16
"""Parts of the rows, added in one order whatever the number of threads."""
_LOSS, _BRIER, _RIGHT, _ERRORS, _AREA = range(5)  # places in the products, the last by class
Result = tuple[list[Estimate], Spread]


@dataclass(frozen=True, eq=False)
class CountedPair:
    """Two versions of n independent rows that count alike, with what both share.

    Attributes
    ----------
    summaries : pair of ClassSummary
        Of the earlier version and of the later one.
    event : int or None
        The class whose probability is judged; None for the confidence.
    products : (4 + K, 2, 2) array
        Products of log losses, Brier scores, right rows and confidences of errors less their
        means, and of the parts of areas by true class, added up over the rows.
    blocks : (B, 2, 15, 3) int array
        Rows, hits and sum of scores of what is judged, by random block, version and bin.
    noise, together : (2, L) and (L, L) arrays
        Variances and covariances of outcomes on a lattice of each version's scores, if a row is
        right with its stated probability plus the gap of its bin of equal mass, by one uniform
        number for both.
    areas : (2,) array
        Areas under the ROC curve of the rows; NaN where all are of one class.
    """

    summaries: tuple[ClassSummary, ClassSummary]
    event: int | None
    products: FloatArray
    blocks: IntArray
    noise: FloatArray
    together: FloatArray
    areas: FloatArray
    level: float
    n_boot: int
    seed: int
    once: Once = field(default_factory=Once)

    @classmethod
    def of(
        cls,
        before: ScoredSet,
        after: ScoredSet,
        summaries: tuple[ClassSummary, ClassSummary],
        event: int | None,
        level: float,
        n_boot: int,
        seed: int,
    ) -> CountedPair:
        """Of the same rows, in the same order."""
        from kdcal_core.diagnostics.summaries._summary_kernels import add_pairs

        k, n = len(before.classes), before.n_rows
        cells = [cells_asked(one, event) for one in summaries]
        grid = upper_ends(), bucket_starts(), bins_of_cells(BLOCK_BINS)
        tables = (
            np.array([_means(one) for one in summaries]),
            np.array([_parts_of_area(one) for one in summaries]),
            np.array([_gaps(one) for one in cells]),
        )
        proba = [_kept(one.proba, np.float64) for one in (before, after)]
        y = _kept(before.y, np.int64)

        def count(rows: slice) -> tuple[Any, ...]:
            found = (
                np.zeros((4 + k, 2, 2)),
                np.zeros((BLOCKS, 2, BLOCK_BINS, 3), np.int64),
                np.zeros((2, COARSE)),
                np.zeros((COARSE, COARSE)),
            )
            asked = -1 if event is None else event
            mine = proba[0][rows], proba[1][rows], y[rows], rows.start, asked
            add_pairs(*mine, *grid, *tables, *found)
            return found

        def area(of: tuple[int, int]) -> float:
            return _area(proba[of[0]][:, of[1]], y == of[1])

        share = _class_shares(summaries[0])
        curves = [(version, int(one)) for version in (0, 1) for one in np.flatnonzero(share)]
        ends = np.linspace(0, n, PARTS + 1).astype(int).tolist()
        spans = [slice(*one) for one in pairwise(ends)]
        work: list[Callable[[], Any]] = [
            *(lambda one=one: area(one) for one in curves),
            *(lambda one=one: count(one) for one in spans),
        ]
        found = on_all_cores(lambda one: one(), work, note=lambda at: "Counting pairs of rows")
        parts = found[len(curves) :]
        products, blocks, noise, together = (
            np.sum([one[at] for one in parts], axis=0) for at in range(4)
        )
        areas = np.array(found[: len(curves)]).reshape(2, -1) @ share[share > 0.0]
        if not len(curves):
            areas = np.full(2, np.nan)
        shared = noise, together, areas
        return cls(summaries, event, products, blocks, *shared, level, n_boot, seed)

    @property
    def n(self) -> int:
        return self.summaries[0].n

    @property
    def cells(self) -> list[ScoreCells]:
        """What is judged of each version."""
        return [cells_asked(one, self.event) for one in self.summaries]

    def of_mean(self, shown: list[Estimate], quantity: int, floor: float = 0.0) -> Result:
        """A mean of row losses, as :func:`kdcal_core.evaluation.spread.of_means`."""
        n = self.n
        value = np.array([_means(one)[quantity] for one in self.summaries])
        covariance = self.products[quantity] / n / max(n - 1.0, 1.0)
        return shown, unbiased(value, covariance, max(n - 1.0, 1.0), floor / n)

    def log_loss(self) -> Result:
        shown = [summary_log_loss(one, level=self.level) for one in self.summaries]
        return self.of_mean(shown, _LOSS)

    def brier(self) -> Result:
        shown = [summary_brier(one, level=self.level) for one in self.summaries]
        return self.of_mean(shown, _BRIER)

    def accuracy(self) -> Result:
        tops = [ScoreCells.of_confidence(one) for one in self.summaries]
        shown = [accuracy_of_cells(one, self.n, self.level) for one in tops]
        return self.of_mean(shown, _RIGHT, 1.0)

    def confidence_on_errors(self) -> Result | None:
        """Means over each version's own wrong rows, so that they are ratios of sums."""
        wrong = np.array([one.n - np.trace(one.joint) for one in self.summaries], dtype=float)
        rows = float(wrong.min())
        if rows < 2.0:
            return None
        shown = [summary_confidence_on_errors(one, level=self.level) for one in self.summaries]
        value = np.array([one.value for one in shown])
        covariance = self.products[_ERRORS] / np.outer(wrong, wrong) * (rows / (rows - 1.0))
        least = 1.0 / len(self.summaries[0].classes)
        return shown, unbiased(value, covariance, rows - 1.0, (1.0 - least) / rows)

    def binned(self, norm: Norm, *, debiased: bool = False) -> Result:
        """A calibration error of what is judged, in 15 equal bins."""
        shown = [
            summary_calibration_error(
                one,
                self.event,
                norm=norm,
                debiased=debiased,
                level=self.level,
                n_boot=self.n_boot,
                seed=self.seed,
            )
            for one in self.summaries
        ]
        bins = self.once(
            "bins",
            lambda: [
                self._resampled([one], self.blocks[:, at, None])
                for at, one in enumerate(self.cells)
            ],
        )
        return shown, self.once(f"spread {norm}", lambda: binned_spread(bins, norm))

    def classwise(self) -> Result:
        """The calibration error of every class's probability."""
        shown = [
            summary_calibration_error(
                one, kind="class", level=self.level, n_boot=self.n_boot, seed=self.seed
            )
            for one in self.summaries
        ]
        bins = [
            self._resampled([class_cells(one, at) for at in range(len(one.classes))], one.blocks)
            for one in self.summaries
        ]
        return shown, binned_spread(bins, "l1")

    def _resampled(self, cells: list[ScoreCells], blocks: IntArray) -> ResampledBins:
        """The bins of targets, their blocks (B, J, 15, 3) drawn alike for both versions."""
        tables = tuple(one.table(BLOCK_BINS) for one in cells)
        share, gap, _ = pooled_bins([1.0 / len(cells)] * len(cells), tables)
        rng = np.random.default_rng(self.seed)
        times = rng.multinomial(BLOCKS, np.full(BLOCKS, 1.0 / BLOCKS), size=self.n_boot)
        count, hits = blocks[..., 0].astype(np.float64), blocks[..., 1].astype(np.float64)
        away = hits - np.ldexp(blocks[..., 2].astype(np.float64), -30)
        groups = [(count[:, at], away[:, at]) for at in range(len(cells))]
        drawn = resampled_groups(groups, tables, gap, times.astype(np.float64), rng)
        return ResampledBins(share, gap, *drawn)

    def smooth(self) -> Result:
        """Smooth ECE: the sums of very many outcomes are drawn as normal numbers."""
        few = min(self.n_boot, SMOOTH_DRAWS)
        shown = [
            summary_smooth_error(one, self.event, level=self.level, n_boot=few, seed=self.seed)
            for one in self.summaries
        ]
        rng = np.random.default_rng(self.seed)
        first, second = self.noise / self.n**2
        both = self.together / self.n**2
        one = rng.normal(size=(few, COARSE)) * np.sqrt(first)
        # the second given the first
        pull = np.divide(both, first[:, None], out=np.zeros_like(both), where=both > 0.0)
        values, vectors = np.linalg.eigh(np.diag(second) - both.T @ pull)
        rest = rng.normal(size=(few, COARSE)) * np.sqrt(np.maximum(values, 0.0))
        drawn = np.array([one, one @ pull + rest @ vectors.T])
        gaps = np.array([one.lattice_gaps(COARSE) for one in self.cells])
        return shown, of_lattices(gaps, drawn)

    def area(self) -> Result | None:
        """Areas under the ROC curve of the rows, and DeLong's covariances."""
        if np.isnan(self.areas[0]):
            return None
        shown = [
            replace(summary_auroc(one, level=self.level), value=float(area))
            for one, area in zip(self.summaries, self.areas, strict=True)
        ]
        true = self.summaries[0].joint.sum(axis=1).astype(np.float64)
        share, rows = _class_shares(self.summaries[0]), np.maximum(true, 1.0)
        others, some = share / np.maximum(self.n - true, 1.0), true > 0.0
        lead = share / rows + others.sum() - others  # the range of a row's part, by true class
        return shown, of_area_products(
            self.areas, self.products[_AREA:][some], true[some], (true * lead**2)[some]
        )


def _kept(values: Any, kind: type) -> Any:
    """An array as those of a set that is read, so that one compiled pass does for all."""
    found: np.ndarray[Any, Any] = np.ascontiguousarray(values, dtype=kind).view()
    found.flags.writeable = False
    return found


def _means(summary: ClassSummary) -> FloatArray:
    """Mean log loss, Brier score, share of right rows and confidence of errors."""
    wrong = summary.n - float(np.trace(summary.joint))
    return np.array(
        [
            summary.moments("log loss")[0] / summary.n,
            summary.moments("Brier")[0] / summary.n,
            1.0 - wrong / summary.n,
            summary.moments("confidence of errors")[0] / max(wrong, 1.0),
        ]
    )


def _class_shares(summary: ClassSummary) -> FloatArray:
    """The weight of each class's area in the mean, as of `Pairing`, (K,)."""
    true = summary.joint.sum(axis=1).astype(np.float64)
    share = np.where(true < summary.n, true, 0.0)
    if len(true) == 2:
        share[0] = 0.0
    return np.asarray(share / max(share.sum(), 1.0))


def _parts_of_area(summary: ClassSummary) -> FloatArray:
    """The part of a row in the area's error by class, outcome and cell, (K, 2, C)."""
    share = _class_shares(summary)
    found = np.zeros((len(share), 2, len(upper_ends())))
    for label in np.flatnonzero(share):
        one = ClassArea.of(class_cells(summary, int(label)))
        found[label][:, one.cells.place] = share[label] * np.array([one.miss, one.hit])
    return found


def _gaps(cells: ScoreCells) -> FloatArray:
    """What is added to a score for the chance of its outcome, by cell of the grid, (C,)."""
    table = cells.table(CHANCE_BINS, "quantile")
    gap = np.nan_to_num(table.rate - table.score)
    return np.asarray(gap[bin_index(upper_ends(), table.edges)])


def _area(score: FloatArray, hit: Any) -> float:
    """The area under one ROC curve, of rows of both classes; sorted as integers, which is fast."""
    from kdcal_core.diagnostics.summaries._summary_kernels import pairs_in_order

    key = (score + 0.0).view(np.int64)  # a score of -0 becomes 0
    key <<= 1
    key |= hit
    key.sort()
    positives = int(np.count_nonzero(hit))
    return float(pairs_in_order(key)) / (2.0 * positives * (len(key) - positives))
