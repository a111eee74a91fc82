"""The summary of a classifier's rows, of fixed size, to which batches are added in any order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from kdcal_core.data import (
    FloatArray,
    IntArray,
    Task,
    check_columns,
    check_labels,
    check_proba,
    check_rows,
    check_weight,
    is_text,
)
from kdcal_core.data.array_checks import SUM_TOLERANCE, digest_arrays
from kdcal_core.diagnostics.summaries.by_time import TimeTable
from kdcal_core.diagnostics.summaries.cluster_blocks import (
    LOSS_BITS,
    BlockCells,
    ClassBlocks,
    ClusterNames,
    RowClusters,
    blocks_for,
    cluster_numbers,
    coarse_ends,
    coarse_of_cells,
)
from kdcal_core.diagnostics.summaries.drawn_rows import DrawnRows, RowDraw
from kdcal_core.diagnostics.summaries.group_summary import GroupSummary
from kdcal_core.diagnostics.summaries.optional_parts import sum_of_parts
from kdcal_core.diagnostics.summaries.row_weights import RowWeights, times_of, unit_of_weights
from kdcal_core.diagnostics.summaries.score_grid import (
    GRID,
    bins_of_cells,
    bucket_starts,
    upper_ends,
)
from kdcal_core.errors import InputError

BLOCKS = 1024
BLOCK_BINS = 15
MOST_CLASSES = 100
MOST_ROWS = 2**33
"""More could overflow the integers of a block."""

SUMS = (
    "confidence",
    "confidence of errors",
    "top-label Brier",
    "top-label log loss",
    "Brier",
    "log loss",
)
"""Quantities of a row whose sum, and sum of squares, a summary holds."""

_LOW, _LOSS, _SCORE, _BLOCK = 26, 44, 53, 30  # bits, as in the compiled pass


@dataclass(frozen=True, eq=False)
class ClassSummary:
    """Integer counts and sums of a classifier's rows, from which estimates follow.

    Summaries add: ``a + b`` is that of both batches. All parts are integers, so every order and
    every cut of the same rows into batches give the same bytes. Size depends on the number of
    classes alone, about 1.3 MB a class.

    Attributes
    ----------
    classes : tuple of K str
        Names in the order of the probabilities. Untrusted text.
    n : int
        Rows.
    cells : (2, K, C, 4) int64
        By cell of the grid (:func:`~kdcal_core.diagnostics.summaries.score_grid.upper_ends`): rows,
        rows of which it is true, and the sum of their scores as two integers. First for the
        confidence of the rows predicted to be each class, then for each class's probability.
    joint : (K, K) int64
        Rows by true (first) and predicted class.
    sums : (12, 2) int64
        Sums of `SUMS` and of their squares, each as two integers.
    blocks : (1024, K, 15, 3) int64
        Rows, rows of the class and sum of scores in 15 bins of every class's probability, for 1,024
        random blocks of rows. A row's block follows from its position in the table, or from its
        cluster; rows in the order of time are in stretches of it.
    grid : int
        Version of the grid.
    groups : GroupSummary or None
        Counts by declared group, where groups are declared. The digest, which stands for the rows,
        leaves them out.
    drawn : DrawnRows or None
        Some rows as they are, drawn at random; None in a summary of before they were kept, and
        where rows have weights. The digest leaves them out too.
    weights : RowWeights or None
        Where rows have weights. All counts are then of its units, as if each row were there so
        many times, and estimates follow from `effective_rows`.
    clusters : ClassBlocks or None
        Where rows of one cluster, or of near times, depend on one another.
    by_time : TimeTable or None
        Where rows have an order in time: of the event or the predicted class, whichever is judged.

    Examples
    --------
    >>> one = summarise([[0.9, 0.1], [0.3, 0.7]], [0, 0], ("no", "yes"))
    >>> two = summarise([[0.2, 0.8]], [1], ("no", "yes"), first=2)
    >>> (one + two).n, (one + two).digest == (two + one).digest
    (3, True)
    """

    task: ClassVar[Task] = "classification"

    classes: tuple[str, ...]
    n: int
    cells: IntArray
    joint: IntArray
    sums: IntArray
    blocks: IntArray
    grid: int = GRID
    groups: GroupSummary | None = None
    drawn: DrawnRows | None = None
    weights: RowWeights | None = None
    clusters: ClassBlocks | None = None
    by_time: TimeTable | None = None

    def __post_init__(self) -> None:
        parts = (self.cells, self.joint, self.sums, self.blocks)
        shapes = _shapes(len(self.classes))
        if (
            self.grid != GRID
            or any(part.shape != shape for part, shape in zip(parts, shapes, strict=True))
            or any(part.dtype != np.int64 or part.min() < 0 for part in parts)
            or int(self.joint.sum()) != self.n
            or not (self.drawn is None or self.drawn.may_be_of(self.n, len(self.classes)))
            or not (self.clusters is None or self.clusters.cells.shape[2] == len(self.classes))
        ):
            raise InputError(
                "The summary is damaged, or of another version", fix="Summarise the rows again."
            )

    def __add__(self, other: ClassSummary) -> ClassSummary:
        """The summary of the rows of both.

        Raises
        ------
        InputError
            If the classes differ, or there are more rows than `MOST_ROWS`.
        """
        if not isinstance(other, ClassSummary):
            return NotImplemented
        if self.classes != other.classes:
            raise InputError(
                "Two summaries have different classes", fix="Summarise the rows of each alone."
            )
        _check_rows(self.n + other.n)
        return ClassSummary(
            self.classes,
            self.n + other.n,
            self.cells + other.cells,
            self.joint + other.joint,
            self.sums + other.sums,
            self.blocks + other.blocks,
            groups=sum_of_parts(self.groups, other.groups, "groups"),
            drawn=None if self.drawn is None or other.drawn is None else self.drawn + other.drawn,
            weights=sum_of_parts(self.weights, other.weights, "weights"),
            clusters=sum_of_parts(self.clusters, other.clusters, "clusters"),
            by_time=sum_of_parts(self.by_time, other.by_time, "times"),
        )

    @property
    def digest(self) -> str:
        """SHA-256 of classes and numbers."""
        names = "\n".join(f"{len(name)} {name}" for name in self.classes)
        if self.weights is not None:
            names = f"{names}\n{self.weights}"
        arrays = [self.cells, self.joint, self.sums, self.blocks]
        if self.clusters is not None:
            names = f"{names}\n{self.clusters.names.column}"
            arrays += [self.clusters.names.least, self.clusters.cells, self.clusters.sums]
        if self.by_time is not None:
            names = f"{names}\n{self.by_time.column}"
            arrays += self.by_time.arrays
        return digest_arrays(f"summary {self.grid}\n{names}", *arrays)

    def moments(self, what: str) -> tuple[float, float]:
        """Sum of a quantity of `SUMS` over the rows, and of its squares, each value to 2^-45."""
        at = 2 * SUMS.index(what)
        first, second = (_number(self.sums[at + one], _LOSS) for one in (0, 1))
        return first, second

    def block_cells(self, of: int, label: int | None) -> BlockCells | None:
        """Scores by block of clusters: of the confidence (0) or of a class's probability (1).

        ``label`` is the class, or None for the rows of all predicted classes.
        """
        if self.clusters is None:
            return None
        cells = self.clusters.cells[of]
        cells = cells.sum(axis=1) if label is None else cells[:, label]
        return BlockCells.of(cells, self.unit, n_times=self.clusters.names.n_times)

    def block_totals(self, what: str) -> FloatArray:
        """Sum of a quantity of `SUMS` over the rows of each block of clusters, (B,)."""
        assert self.clusters is not None
        sums = self.clusters.sums[:, SUMS.index(what)] * self.unit
        return np.asarray(np.ldexp(sums, -LOSS_BITS))

    @property
    def unit(self) -> float:
        """As how many rows a unit of the counts by cluster counts."""
        return 1.0

    @staticmethod
    def score_sums(cells: IntArray) -> FloatArray:
        """Sum of the scores in cells (..., 4), (...)."""
        high, low = cells[..., 2].astype(np.float64), cells[..., 3].astype(np.float64)
        return np.asarray(np.ldexp(high, _LOW - _SCORE) + np.ldexp(low, -_SCORE))

    def block_sums(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Rows, rows of the class and sums of scores of the blocks, each (B, K, 15)."""
        n, hits, score = (self.blocks[..., part].astype(np.float64) for part in range(3))
        return n, hits, np.ldexp(score, -_BLOCK)


class ClassTally:
    """Counts that grow by batches; :meth:`summary` gives them as a :class:`ClassSummary`.

    Parameters
    ----------
    classes : sequence of K str
        Names in the order of the probabilities, 2 to 100.

    Raises
    ------
    InputError
        For fewer than two or more than `MOST_CLASSES` classes.

    Examples
    --------
    >>> tally = ClassTally(("no", "yes"))
    >>> tally.add([[0.9, 0.1], [0.3, 0.7]], [0, 0], first=0)
    >>> tally.summary().joint.tolist()
    [[1, 1], [0, 0]]
    """

    def __init__(self, classes: Sequence[str]) -> None:
        self.classes = tuple(classes)
        if not 2 <= len(self.classes) <= MOST_CLASSES:
            raise InputError(
                f"There are {len(self.classes):,} classes",
                fix=f"A summary takes 2 to {MOST_CLASSES}.",
            )
        self.n = 0
        self._parts = tuple(np.zeros(one, np.int64) for one in _shapes(len(self.classes)))
        self._draw = RowDraw(len(self.classes))
        self._weights: RowWeights | None = None
        self._clusters: ClassBlocks | None = None
        self._spoilt = False

    def add(
        self,
        proba: Any,
        y: Any,
        *,
        first: int,
        weight: Any = None,
        unit: float = 1.0,
        cluster: RowClusters | None = None,
    ) -> None:
        """Add a batch of rows.

        Parameters
        ----------
        proba : (n, K) array or data frame, or (n,)
            Probabilities, as of :func:`kdcal_core.data.check_columns`.
        y : (n,) array of int or str
            True classes, 0 to K - 1, or by name.
        first : int
            Position of the batch's first row in the whole table, from 0.
        weight : (n,) array, optional
            Row weights above zero: of every batch or of none.
        unit : float
            In which they are counted
            (:func:`~kdcal_core.diagnostics.summaries.row_weights.unit_of_weights`).
        cluster : RowClusters, optional
            Which rows depend on one another: of every batch or of none.

        Raises
        ------
        InputError
            For arrays not of this form; the message names the row of the batch. The tally cannot be
            used any more.
        """
        from kdcal_core.diagnostics.summaries._summary_kernels import add_rows

        k = len(self.classes)
        if is_text(y):
            proba, y, _ = check_rows(proba, y, self.classes)
        elif not (isinstance(proba, np.ndarray) and proba.ndim == 2 and proba.shape[1] > 1):
            proba = check_columns(proba, self.classes, n_classes=k)
        values = np.ascontiguousarray(proba, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != k or first < 0:
            check_proba(values, n_classes=k)
            raise InputError(f"The first row's position is {first}", fix="Count rows from 0.")
        labels = np.asarray(y)
        if labels.dtype != np.int64 or labels.shape != (len(values),):
            labels = check_labels(labels, k, n_rows=len(values))
        if self._spoilt:
            raise InputError("A faulty batch was added before", fix="Begin a new tally.")
        times, counted = np.empty(0, np.int64), len(values)
        if (weight is None) != (self._weights is None) and self.n:
            raise InputError("Only some batches have weights", fix="Give them for all, or none.")
        if (cluster is None) != (self._clusters is None) and self.n:
            raise InputError("Only some batches have clusters", fix="Give them for all, or none.")
        if weight is not None:
            times = times_of(check_weight(weight, len(values)), unit)
            counted = int(times.sum())
        _check_rows(max(self.n, first) + counted)
        grid = upper_ends(), bucket_starts(), bins_of_cells(BLOCK_BINS)
        labels = np.ascontiguousarray(labels)
        block = np.empty(0, np.int64) if cluster is None else cluster.blocks(BLOCKS)
        row = add_rows(values, labels, times, first, block, *grid, SUM_TOLERANCE, *self._parts)
        if row >= 0:
            self._spoilt = True
            _raise_fault(values[row : row + 1], labels[row : row + 1], row)
        self.n += counted
        if cluster is not None and len(labels):
            self._add_clusters(values, labels, times, cluster)
        if weight is None:
            self._draw.add(values, labels, first)
            return
        mine = RowWeights.of(times, unit, np.bincount(labels, minlength=k).tolist())
        self._weights = mine if self._weights is None else self._weights + mine

    def _add_clusters(
        self, proba: FloatArray, y: IntArray, times: IntArray, cluster: RowClusters
    ) -> None:
        from kdcal_core.diagnostics.summaries._summary_kernels import add_blocks

        names = ClusterNames.of(cluster)
        known = self._clusters
        if known is None:
            k, blocks = len(self.classes), blocks_for(len(self.classes))
            cells = np.zeros((2, blocks, k, len(coarse_ends()), 3), np.int64)
            known = ClassBlocks(names, cells, np.zeros((blocks, len(SUMS)), np.int64))
        block = cluster.blocks(len(known.sums))
        grid = upper_ends(), bucket_starts(), coarse_of_cells()
        add_blocks(proba, y, times, block, *grid, known.cells, known.sums)
        self._clusters = replace(known, names=known.names + names)

    def summary(self) -> ClassSummary:
        """The rows so far."""
        cells, joint, sums, blocks = (part.copy() for part in self._parts)
        drawn = self._draw.rows() if self._weights is None else None
        parts = cells, joint, sums, blocks
        clusters = self._clusters
        if clusters is not None:
            clusters = replace(clusters, cells=clusters.cells.copy(), sums=clusters.sums.copy())
        return ClassSummary(
            self.classes, self.n, *parts, drawn=drawn, weights=self._weights, clusters=clusters
        )


@dataclass(frozen=True, eq=False)
class _EffectiveRows(ClassSummary):
    """A summary whose counts are fractions: of weighted rows, as of Kish's number of rows."""

    share: float = 1.0  # of a unit
    of: str = ""  # the digest of the summary as it was counted

    def __post_init__(self) -> None:
        pass

    @property
    def digest(self) -> str:
        return self.of

    @property
    def unit(self) -> float:
        return self.share

    def moments(self, what: str) -> tuple[float, float]:
        first, second = super().moments(what)
        return first * self.share, second * self.share


def effective_rows(summary: ClassSummary) -> ClassSummary:
    """The summary itself or, of weighted rows, one of Kish's number of rows that count alike.

    Rates and means are the weighted ones; estimates take ``n``, rounded, for their intervals. Its
    counts are fractions, and it cannot be added to.

    Examples
    --------
    >>> tally = ClassTally(("no", "yes"))
    >>> tally.add([[0.9, 0.1], [0.3, 0.7]], [0, 0], first=0, weight=[3.0, 1.0])
    >>> found = effective_rows(tally.summary())
    >>> found.n, found.joint.tolist()  # Kish: 16 / 10
    (2, [[1.5, 0.5], [0.0, 0.0]])
    """
    if summary.weights is None or isinstance(summary, _EffectiveRows):
        return summary
    n = max(round(summary.weights.effective), 1)
    share = n / summary.n
    fractions: Any = [part * share for part in (summary.cells, summary.joint, summary.blocks)]
    cells, joint, blocks = fractions
    return _EffectiveRows(
        summary.classes,
        n,
        cells,
        joint,
        summary.sums,
        blocks,
        weights=summary.weights,
        groups=summary.groups,
        clusters=summary.clusters,
        by_time=summary.by_time,
        share=share,
        of=summary.digest,
    )


def summarise(
    proba: Any,
    y: Any,
    classes: Sequence[str],
    *,
    first: int = 0,
    weight: Any = None,
    cluster: Any = None,
) -> ClassSummary:
    """The summary of one batch; arguments and errors as of :class:`ClassTally`.

    ``cluster`` (n,) are the names of the rows' clusters, for rows that depend on one another.

    Examples
    --------
    >>> round(summarise([[0.9, 0.1], [0.3, 0.7]], [0, 0], ("no", "yes")).moments("Brier")[0], 6)
    1.0
    """
    tally = ClassTally(classes)
    unit = 1.0 if weight is None else unit_of_weights(np.asarray(weight, np.float64), len(y))
    numbers = None if cluster is None else RowClusters(cluster_numbers(cluster), "cluster")
    tally.add(proba, y, first=first, weight=weight, unit=unit, cluster=numbers)
    return tally.summary()


def _shapes(k: int) -> tuple[tuple[int, ...], ...]:
    n_cells = len(upper_ends())
    return (2, k, n_cells, 4), (k, k), (2 * len(SUMS), 2), (BLOCKS, k, BLOCK_BINS, 3)


def _number(limbs: IntArray, bits: int) -> float:
    """A sum of two integers, divided by a power of two; rounded once."""
    return float(Fraction((int(limbs[0]) << _LOW) + int(limbs[1]), 1 << bits))


def _check_rows(n: int) -> None:
    if n > MOST_ROWS:
        raise InputError(f"There are {n:,} rows", fix=f"A summary takes at most {MOST_ROWS:,}.")


def _raise_fault(proba: FloatArray, y: IntArray, row: int) -> None:
    """Say what is wrong with a row, as everywhere."""
    try:
        check_proba(proba)
        check_labels(y, proba.shape[1])
    except InputError as error:
        raise InputError(error.what, fix=error.fix, column=error.column, row=row + 1) from None
    raise InputError("A row cannot be used", row=row + 1)
