"""Growing a tree on binned inputs, split by split, by what a split is worth; and pruning it.

A criterion gives each row a cell and some values. The kernels sum the values at every code of
every column, cell by cell; the rest is plain numpy, so that a new criterion is a small class.
Losses measured on rows that the tree was not grown on decide what is pruned.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kdcal_core.blocks import cores
from kdcal_core.errors import InputError
from kdcal_core.partition.tree.binned import CODES, BinnedInputs
from kdcal_core.partition.tree.tree import PartitionTree, arranged

FloatArray = NDArray[np.float64]
LEAST_VARIANCE = 1e-6  # of a row: a certainty that fails counts for much, but not for everything


@dataclass(frozen=True, eq=False)
class RowStats:
    """What is summed over rows.

    Attributes
    ----------
    cells : (n,) uint8
        The cell that a row's values go to, for example its class, below ``n_cells``.
    n_cells : int
    values : (n, v) float64
    """

    cells: NDArray[np.uint8]
    n_cells: int
    values: FloatArray

    def __post_init__(self) -> None:
        # the kernels index by cell and check no bound
        cells, values = self.cells, self.values
        if (
            cells.dtype != np.uint8
            or cells.ndim != 1
            or values.dtype != np.float64
            or values.ndim != 2
            or len(values) != len(cells)
            or cells.max(initial=0) >= self.n_cells
        ):
            raise InputError(
                "What a criterion sums does not fit together",
                fix="Give each row a cell below the number of cells, and its values.",
            )

    def __len__(self) -> int:
        return len(self.cells)


class Criterion(Protocol):
    """What :func:`grow_tree` needs from a criterion. Sums are (..., n_cells, v)."""

    @property
    def stats(self) -> RowStats:
        """The cells and values of the n rows."""

    def gain(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Worth of splits with these sums on their two sides; not above zero: no worth.

        It is additive over nodes, so that best-first growth can compare them: a sum over rows,
        not a mean.
        """

    def order(self, sums: FloatArray) -> FloatArray:
        """A number for each category of a node, by which neighbours stay together in a split.

        ``sums`` are those of several columns at once, (columns, categories, n_cells, v), and each
        column is ordered by itself.
        """


class Gini:
    """Decrease of the Gini impurity, in rows: the squared difference of the sides' class shares.

    The gain of sides L and R is ``w_L w_R / w * sum_k (p_Lk - p_Rk)**2``, which is the sum of
    ``w_node * impurity`` before less that after the split.

    Parameters
    ----------
    y : (n,) classes 0 to K - 1, or (n, K) shares of each class, none below zero
    weight : (n,), optional
        Not below zero; scaled to a mean of 1.

    Examples
    --------
    >>> score = Gini(np.array([0, 0, 1, 1]))
    >>> float(score.gain(np.array([[2.0], [0.0]]), np.array([[0.0], [2.0]])))
    2.0
    """

    def __init__(self, y: NDArray[Any], weight: NDArray[Any] | None = None) -> None:
        y = np.asarray(y)
        weights = _weights(weight, len(y))[:, None]
        if y.ndim == 1:
            classes = _classes(y)
            n_classes = int(classes.max(initial=0)) + 1
            self._stats = RowStats(classes, max(n_classes, 2), weights)
        else:
            shares = _numbers(y, "The shares of the classes", least=0.0)
            if shares.ndim != 2:
                raise InputError(
                    f"The shares of the classes have shape (rows, classes), not {shares.shape}",
                    fix="Give one column a class.",
                )
            self._stats = RowStats(np.zeros(len(y), dtype=np.uint8), 1, shares * weights)

    @property
    def stats(self) -> RowStats:
        return self._stats

    def gain(self, left: FloatArray, right: FloatArray) -> FloatArray:
        a, b = _flat(left), _flat(right)
        weight_a, weight_b = a.sum(axis=-1), b.sum(axis=-1)
        between = _shares(a, weight_a) - _shares(b, weight_b)
        gain: FloatArray = _over(weight_a * weight_b, weight_a + weight_b) * (between**2).sum(-1)
        return gain

    def order(self, sums: FloatArray) -> FloatArray:
        """Share of the node's largest class: the best order there is where classes are two."""
        flat = _flat(sums)
        largest = flat.sum(axis=-2, keepdims=True).argmax(axis=-1, keepdims=True)
        return _over(np.take_along_axis(flat, largest, -1)[..., 0], flat.sum(axis=-1))


class Residual:
    """Evidence that residuals do not average zero, beyond that of the two sides taken as one.

    With r the sum of the residuals and v that of their variances, a side's evidence is
    ``r**2 / v``: a chi-square of one degree of freedom where the residuals have mean zero. The
    gain is ``r_L**2 / v_L + r_R**2 / v_R - r**2 / v``.

    Parameters
    ----------
    residual : (n,)
        For example y - p, or PIT - 1/2.
    variance : (n,)
        Of each residual where nothing is wrong, for example p (1 - p), or 1/12. Not below zero,
        taken as at least 1e-6.
    weight : (n,), optional
        Not below zero; scaled to a mean of 1.

    Examples
    --------
    >>> score = Residual(np.array([0.5, 0.5, -0.5, -0.5]), np.full(4, 0.25))
    >>> left, right = np.array([[1.0, 0.5]]), np.array([[-1.0, 0.5]])
    >>> float(score.gain(left, right))
    4.0
    """

    def __init__(
        self,
        residual: NDArray[Any],
        variance: NDArray[Any],
        weight: NDArray[Any] | None = None,
    ) -> None:
        r = _numbers(residual, "The residuals")
        v = _numbers(variance, "The variances of the residuals", least=0.0)
        if r.ndim != 1 or r.shape != v.shape:
            raise InputError(
                f"Residuals and variances are one number a row each, not {r.shape} and {v.shape}",
                fix="Compute both from the same rows.",
            )
        w = _weights(weight, len(r))
        values = np.stack([w * r, w**2 * np.maximum(v, LEAST_VARIANCE)], axis=1)
        self._stats = RowStats(np.zeros(len(r), dtype=np.uint8), 1, values)

    @property
    def stats(self) -> RowStats:
        return self._stats

    def gain(self, left: FloatArray, right: FloatArray) -> FloatArray:
        r_a, v_a = left[..., 0, 0], left[..., 0, 1]
        r_b, v_b = right[..., 0, 0], right[..., 0, 1]
        return _over(v_a * v_b, v_a + v_b) * (_over(r_a, v_a) - _over(r_b, v_b)) ** 2

    def order(self, sums: FloatArray) -> FloatArray:
        """Mean residual in units of its variance: some split along it is the best of all."""
        return _over(sums[..., 0, 0], sums[..., 0, 1])


def _flat(sums: FloatArray) -> FloatArray:
    """The classes as one axis, be they cells or values."""
    return sums.reshape(*sums.shape[:-2], -1)


def _shares(sums: FloatArray, weight: FloatArray) -> FloatArray:
    return _over(sums, weight[..., None])


def _over(a: FloatArray, b: FloatArray) -> FloatArray:
    """``a / b``, 0 where there is nothing to divide by."""
    out: FloatArray = np.zeros(a.shape)
    np.divide(a, b, out=out, where=b > 0)
    return out


def _classes(y: NDArray[Any]) -> NDArray[np.uint8]:
    whole = y.dtype.kind in "iub"
    if not whole or (len(y) and (y.min() < 0 or y.max() > 255)):
        raise InputError(
            "Classes are whole numbers from 0 to 255", fix="Number the classes from 0."
        )
    return y.astype(np.uint8)


def _weights(weight: NDArray[Any] | None, n: int) -> FloatArray:
    if weight is None:
        return np.ones(n)
    found = _numbers(weight, "The weights", least=0.0)
    if found.shape != (n,) or not found.sum():
        raise InputError(
            f"The weights are one number for each of {n:,} rows and not all zero",
            fix="Give one weight a row.",
        )
    scaled: FloatArray = found / found.mean()
    return scaled


def _numbers(values: NDArray[Any], what: str, least: float = -np.inf) -> FloatArray:
    found = np.ascontiguousarray(values, dtype=np.float64)
    bad = ~(np.isfinite(found) & (found >= least))
    if bad.any():
        raise InputError(
            f"{what} must be finite" + (" and not below zero" if least == 0 else ""),
            fix="Fill or leave out such rows.",
            row=int(np.argwhere(bad)[0][0]) + 1,
        )
    return found


THREAD_WORK = 2_000_000  # codes of a node that are worth sharing among threads
MAX_DEPTH = 60

Map = Callable[..., Any]


def grow_tree(
    binned: BinnedInputs,
    score: Criterion,
    *,
    max_depth: int = 3,
    min_rows: int = 20,
    max_leaves: int | None = None,
    rows: NDArray[Any] | None = None,
    features: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    first: Sequence[Cut] = (),
) -> PartitionTree:
    """Grow a tree that splits the inputs where a criterion gains most.

    Numbers split between two of their bins; categories split into two subsets, cut along the
    criterion's order of the node's categories (the best of all subsets for :class:`Residual` and
    for :class:`Gini` with two classes, unless ``min_rows`` forbids it). Missing values go to the
    side of the larger gain; where a node has seen none, they and categories it has not seen go to
    the child with more rows. The same input gives the same tree, whatever the number of threads.

    Parameters
    ----------
    binned : BinnedInputs of n rows
    score : Criterion of the same n rows
        :class:`Gini`, :class:`Residual`, or another.
    max_depth : int, 0 to 60
    min_rows : int, at least 1
        Rows that every leaf keeps.
    max_leaves : int, optional
        The splits of largest gain are made first; without it, all.
    rows : (m,) int, optional
        Rows to grow on, with repetitions in a bootstrap sample; all where left out.
    features : int, optional
        Columns drawn again for every node, as in a random forest; all where left out.
    seed : int
        For the draws of columns.
    threads : int, optional
        All cores where left out; 1 where the caller grows several trees at once.
    first : sequence of Cut
        Cuts that are made first, each inside the one before, whatever they gain and however deep
        they lead. Each needs rows on both sides.

    Returns
    -------
    PartitionTree

    Raises
    ------
    InputError
        If the rows of both differ in number, or a setting is out of its range.

    Examples
    --------
    >>> from kdcal_core.partition.tree import Gini, bin_inputs
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [20, 30, 40, 50], "job": ["a", "b", "a", "b"]})
    >>> tree = grow_tree(bin_inputs(frame), Gini(np.array([0, 0, 1, 1])), min_rows=1)
    >>> [tree.words(leaf) for leaf in range(tree.n_leaves)]
    ['age is up to 30', 'age is above 30']
    """
    _check(binned, score, max_depth, min_rows, max_leaves, features, threads)
    with ExitStack() as stack:
        workers = min(threads or cores(), len(binned.columns))
        mapper: Map = map
        if workers > 1 and binned.codes.size >= THREAD_WORK:
            mapper = stack.enter_context(ThreadPoolExecutor(workers)).map
        growth = _Growth(
            binned,
            score,
            max_depth,
            min_rows,
            features,
            np.random.default_rng(seed),
            workers,
            mapper,
        )
        growth.grow(_rows_of(rows, len(binned)), max_leaves, first)
    return growth.tree()


def _check(
    binned: BinnedInputs,
    score: Criterion,
    max_depth: int,
    min_rows: int,
    max_leaves: int | None,
    features: int | None,
    threads: int | None,
) -> None:
    if len(score.stats) != len(binned):
        raise InputError(
            f"There are {len(binned):,} rows of inputs and {len(score.stats):,} to split by",
            fix="Take both from the same rows.",
        )
    d = len(binned.columns)
    for value, low, high, what in (
        (max_depth, 0, MAX_DEPTH, "depth of a tree"),
        (min_rows, 1, None, "least number of rows in a leaf"),
        (max_leaves, 1, None, "largest number of leaves"),
        (features, 1, d, "number of columns drawn for a split"),
        (threads, 1, None, "number of threads"),
    ):
        if value is not None and not (low <= value and (high is None or value <= high)):
            span = f"{low} or more" if high is None else f"from {low} to {high}"
            raise InputError(f"The {what} is {span}, not {value}", fix="Change the setting.")


def _rows_of(rows: NDArray[Any] | None, n: int) -> NDArray[np.int64]:
    """Ascending, so that memory is read in order."""
    if rows is None:
        return np.arange(n)
    found = np.asarray(rows)
    if found.dtype.kind not in "iu" or found.ndim != 1 or not len(found):
        raise InputError(
            "Rows to grow on are a list of whole numbers, at least one", fix="Give row indices."
        )
    found = np.sort(found.astype(np.int64))
    if found[0] < 0 or found[-1] >= n:
        raise InputError(
            f"Rows to grow on are from 0 to {n - 1:,}", fix="Give indices of rows that are there."
        )
    return found


@dataclass(frozen=True, eq=False)
class Cut:
    """A split that the caller names: a column, the codes that go left, the side to cut next."""

    feature: int
    goes_left: NDArray[np.bool_]
    then_left: bool


@dataclass(eq=False)
class _Node:
    """A node while it may still be split."""

    rows: NDArray[np.int64]
    depth: int
    first: Sequence[Cut] = ()
    histogram: FloatArray | None = None
    split: Split | None = None


@dataclass(eq=False)
class _Growth:
    binned: BinnedInputs
    score: Criterion
    max_depth: int
    min_rows: int
    features: int | None
    rng: np.random.Generator
    workers: int
    mapper: Map
    best_first: bool = False
    feature: list[int] = field(default_factory=list)
    goes_left: list[NDArray[np.bool_]] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    n: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        columns = self.binned.columns
        self.missing_code = np.array([one.missing_code for one in columns])
        self.is_named = np.array([one.kind == "category" for one in columns])

    def grow(
        self, rows: NDArray[np.int64], max_leaves: int | None, first: Sequence[Cut] = ()
    ) -> None:
        """Split nodes until none is left or the tree has ``max_leaves``.

        With ``max_leaves`` the node with the largest gain is split first. Otherwise it is the
        newest node, which keeps few histograms in memory.
        """
        self.best_first = max_leaves is not None
        waiting: list[tuple[float, int, _Node]] = []
        self._open(_Node(rows, 0, first), None, waiting)
        n_leaves = 1
        while waiting and (max_leaves is None or n_leaves < max_leaves):
            _, number, node = heapq.heappop(waiting)
            self._divide(number, node, waiting)
            n_leaves += 1

    def tree(self) -> PartitionTree:
        arrays = arranged(
            self.binned.columns,
            np.array(self.feature),
            np.array(self.goes_left),
            np.array(self.left),
            np.array(self.right),
            np.array(self.n),
        )
        return PartitionTree(self.binned.columns, **arrays)

    def _open(
        self, node: _Node, histogram: FloatArray | None, waiting: list[tuple[float, int, _Node]]
    ) -> int:
        """Add a node as a leaf, and queue it where a split has worth."""
        number = len(self.n)
        self.n.append(len(node.rows))
        self.feature.append(-1)
        self.left.append(-1)
        self.right.append(-1)
        self.goes_left.append(np.zeros(CODES, dtype=bool))
        if self._may_split(node):
            tried = self._tried()
            node.histogram = self._histogram(node.rows, tried) if histogram is None else histogram
            of_columns = self.missing_code[tried], self.is_named[tried]
            if node.first:
                node.split = Split(node.first[0].feature, node.first[0].goes_left, np.inf)
            else:
                node.split = best_split(
                    node.histogram, tried, *of_columns, self.score, self.min_rows
                )
            if node.split is not None:
                first = -node.split.gain if self.best_first else -number
                heapq.heappush(waiting, (first, number, node))
        return number

    def _may_split(self, node: _Node) -> bool:
        return bool(node.first) or (
            node.depth < self.max_depth and len(node.rows) >= 2 * self.min_rows
        )

    def _divide(self, number: int, node: _Node, waiting: list[tuple[float, int, _Node]]) -> None:
        split = node.split
        assert split is not None
        goes = split.goes_left[self.binned.codes[:, split.feature][node.rows]]
        children = [_Node(node.rows[side], node.depth + 1) for side in (goes, ~goes)]
        if node.first:
            children[0 if node.first[0].then_left else 1].first = node.first[1:]
        histograms = self._of_children(node, children)
        self.feature[number], self.goes_left[number] = split.feature, split.goes_left
        self.left[number], self.right[number] = (
            self._open(child, histogram, waiting)
            for child, histogram in zip(children, histograms, strict=True)
        )

    def _of_children(self, node: _Node, children: list[_Node]) -> list[FloatArray | None]:
        """Count the smaller child's rows; the larger one's are what is left of the parent's."""
        if self.features is not None or not any(map(self._may_split, children)):
            return [None, None]
        smaller = int(len(children[1].rows) < len(children[0].rows))
        counted = self._histogram(children[smaller].rows, self._tried())
        assert node.histogram is not None
        node.histogram -= counted
        rest = node.histogram
        return [counted, rest] if smaller == 0 else [rest, counted]

    def _tried(self) -> NDArray[np.int64]:
        d = len(self.binned.columns)
        if self.features is None:
            return np.arange(d)
        return np.sort(self.rng.choice(d, self.features, replace=False))

    def _histogram(self, rows: NDArray[np.int64], tried: NDArray[np.int64]) -> FloatArray:
        from kdcal_core.partition.tree._tree_kernels import histograms

        stats = self.score.stats
        cells, values = stats.cells[rows], stats.values[rows]
        codes = int(self.missing_code[tried].max()) + 1
        out = np.zeros((len(tried), codes, 1 + stats.n_cells * values.shape[1]))
        step = -(-len(tried) // self.workers)

        def fill(first: int) -> None:
            span = slice(first, first + step)
            histograms(self.binned.codes.T, tried[span], rows, cells, values, out[span])

        list(self.mapper(fill, range(0, len(tried), step)))
        return out


NO_WORTH = 1e-10  # gains below are rounding: criteria count in rows or in units of chi-square
TIE = 1e-12


@dataclass(frozen=True, eq=False)
class Split:
    """Which column is split, the codes that go left, and what it is worth."""

    feature: int
    goes_left: NDArray[np.bool_]
    gain: float


def best_split(
    histogram: FloatArray,
    tried: NDArray[np.int64],
    missing_code: NDArray[np.int64],
    is_named: NDArray[np.bool_],
    score: Criterion,
    min_rows: int,
) -> Split | None:
    """The best split that leaves ``min_rows`` on both sides, None where none has worth.

    Ties go to the first column and the lowest threshold, missing values to the right.

    Parameters
    ----------
    histogram : (t, codes, 1 + cells * values)
        Of the t columns tried, counts first; see the kernel.
    tried : (t,) columns, ascending
    missing_code, is_named : (t,)
        Of each column tried: its last code, and whether its codes are categories.
    """
    from kdcal_core.partition.tree._tree_kernels import write_cuts

    order = _order(histogram, missing_code, is_named, score)
    cells = (score.stats.n_cells, score.stats.values.shape[1])
    sides = np.empty((2, 2 * np.count_nonzero(histogram[..., 0]), *cells))
    cuts = np.empty((sides.shape[1], 4), dtype=np.int64)
    n = write_cuts(histogram, order, missing_code, min_rows, sides.reshape(2, len(cuts), -1), cuts)
    gains = score.gain(sides[0, :n], sides[1, :n]) if n else np.empty(0)
    best = gains.max(initial=-np.inf)
    if not best > NO_WORTH:
        return None
    position, last, side, larger_left = cuts[np.flatnonzero(gains >= best * (1 - TIE))[0]].tolist()
    codes, bins = order[position], missing_code[position]
    seen = (histogram[position, codes, 0] > 0) & (codes != bins)
    goes_left = np.zeros(CODES, dtype=bool)
    if is_named[position]:
        # what this node has not seen goes where most rows go
        goes_left[:bins] = larger_left
        goes_left[codes[seen]] = np.flatnonzero(seen) <= last
    else:
        goes_left[: _threshold(seen, last, bins) + 1] = True
    goes_left[bins:] = side if histogram[position, bins, 0] > 0 else larger_left
    return Split(int(tried[position]), goes_left, float(best))


def _order(
    histogram: FloatArray,
    missing_code: NDArray[np.int64],
    is_named: NDArray[np.bool_],
    score: Criterion,
) -> NDArray[np.int64]:
    """The codes of each column in the order in which splits cut them, (t, codes)."""
    order = np.empty(histogram.shape[:2], dtype=np.int64)
    order[:] = np.arange(histogram.shape[1])
    named = np.flatnonzero(is_named)
    if len(named):
        present = histogram[named]
        present[np.arange(len(named)), missing_code[named]] = 0
        cells = (score.stats.n_cells, score.stats.values.shape[1])
        key = score.order(present[..., 1:].reshape(*present.shape[:2], *cells))
        order[named] = np.where(present[..., 0] > 0, key, np.inf).argsort(axis=1, kind="stable")
    return order


def _threshold(seen: NDArray[np.bool_], last: int, bins: int) -> int:
    """The last code that goes left: midway to the next one that the node has seen."""
    later = np.flatnonzero(seen[last + 1 :])
    if not len(later):
        return bins - 1
    return last + int(later[0]) // 2


def prune_tree(tree: PartitionTree, loss: NDArray[Any], *, penalty: float = 0.0) -> PartitionTree:
    """The subtree whose leaves have the smallest sum of losses.

    Parameters
    ----------
    tree : PartitionTree of m nodes
    loss : (m,)
        Sum, over the rows of each node that were held out, of their losses if the node were a
        leaf. A cross-validated loss is the sum over the folds.
    penalty : float, not below zero
        Added for every leaf.

    Returns
    -------
    PartitionTree
        On ties the smaller tree.

    Raises
    ------
    InputError
        If there is not one finite loss for each node.

    Examples
    --------
    >>> from kdcal_core.partition.tree import Gini, bin_inputs, grow_tree
    >>> binned = bin_inputs(np.arange(4.0)[:, None])
    >>> tree = grow_tree(binned, Gini(np.array([0, 0, 1, 1])), min_rows=1)
    >>> prune_tree(tree, np.array([2.0, 1.5, 0.5])).n_leaves
    1
    >>> prune_tree(tree, np.array([2.0, 1.0, 0.5])).n_leaves
    2
    """
    losses = np.asarray(loss, dtype=np.float64)
    if losses.shape != (tree.n_nodes,) or not np.isfinite(losses).all() or not penalty >= 0:
        raise InputError(
            f"Pruning needs a finite loss for each of {tree.n_nodes} nodes and a penalty of 0 "
            f"or more",
            fix="Compute the loss of every node as if it were a leaf.",
        )
    best = losses + penalty
    split = np.zeros(tree.n_nodes, dtype=bool)
    for node in np.flatnonzero(tree.feature >= 0)[::-1]:
        below = best[tree.left[node]] + best[tree.right[node]]
        if below < best[node]:
            best[node], split[node] = below, True
    stays = np.ones(tree.n_nodes, dtype=bool)
    for node in range(1, tree.n_nodes):
        stays[node] = stays[tree.parent[node]] and split[tree.parent[node]]
    return tree.pruned(np.flatnonzero(stays))
