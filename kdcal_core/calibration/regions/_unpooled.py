"""Logistic regressions of nodes on their own: the roots, and every node where nothing is pooled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kdcal_core.calibration.regions._binomial import Binomial, losses_of_nodes
from kdcal_core.calibration.regions._newton import minimise
from kdcal_core.calibration.regions.cells import Cells
from kdcal_core.calibration.regions.hierarchy import Hierarchy
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_sums

# A pull that no number of rows moves a slope against.
_HELD = 1e12


@dataclass(frozen=True, eq=False)
class NodeRows:
    """The losses of all nodes of a hierarchy, and their rows of the class and of the rest.

    Attributes
    ----------
    losses : Binomial
    yes, no : (m,) arrays
        Weight of each node's rows.
    """

    losses: Binomial
    yes: FloatArray
    no: FloatArray

    @classmethod
    def of(cls, cells: Cells, features: FloatArray, hierarchy: Hierarchy) -> NodeRows:
        """Those of cells in the regions of a hierarchy."""
        sides = (cells.positive, cells.weight - cells.positive)
        own = (bin_sums(cells.region, hierarchy.n_regions, side) for side in sides)
        yes, no = (hierarchy.totals(side) for side in own)
        return cls(losses_of_nodes(cells, features, hierarchy), yes, no)

    @property
    def rarer(self) -> FloatArray:
        """Rows of the rarer class in each node, (m,)."""
        return np.minimum(self.yes, self.no)


def fit_alone(rows: NodeRows, nodes: IntArray, above: FloatArray) -> FloatArray:
    """Parameters (k, q) of nodes without any pull: those ``above`` where they show one class.

    Nodes whose classes their scores part have Platt's targets, as their likelihood has no maximum.
    """
    theta = above.copy()
    both = rows.rarer[nodes] > 0
    theta[both] = _minimum(rows, nodes[both], above[both], 0.0, everywhere=False)
    return theta


def fit_unpooled(
    rows: NodeRows, hierarchy: Hierarchy, root: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Parameters (m, q) and borrowed shares (m,) of all nodes, each by its own rows.

    A node without rows has its ancestor's parameters. A node with one class has its ancestor's
    slopes, because its rows do not determine the order, and its own offset with Platt's targets: n
    rows without any of the class are calibrated to 1 / (n + 2), or less if the ancestor gives less
    (decision D105). On regions of one class among those that :mod:`.pooling` was measured on, that
    had a test log loss of 0.43 where the ancestor's whole map had 0.59 (10 rows in each region),
    0.054 against 0.175 (100) and 0.008 against 0.040 (1,000); where regions do not differ it is
    worse, 0.37 against 0.30 (30). On ten classes of digits it was 0.277 against 0.279.
    """
    q = root.shape[1]
    theta = root[hierarchy.copy]
    one_class = (rows.rarer <= 0) & (rows.yes + rows.no > 0)
    moved = np.zeros(len(theta), dtype=bool)
    for nodes in hierarchy.levels[1:]:
        theta[nodes] = fit_alone(rows, nodes, theta[hierarchy.parent[nodes]])
        some = nodes[one_class[nodes]]
        own = _minimum(rows, some, theta[some], _HELD, everywhere=True)
        # rows of one class are evidence for it, however confident the ancestor is
        towards = np.where(rows.yes[some] > 0, 1.0, -1.0)
        moved[some] = towards * (own - theta[some])[:, -1] > 0
        theta[some] = np.where(moved[some, None], own, theta[some])
    borrowed = np.where(rows.rarer > 0, 0.0, np.where(moved, (q - 1.0) / q, 1.0))
    return theta, borrowed


def _minimum(
    rows: NodeRows, nodes: IntArray, start: FloatArray, held: float, *, everywhere: bool
) -> FloatArray:
    """The smallest loss of some nodes with their slopes held, and Platt's targets as needed."""
    if not len(nodes):
        return start
    losses = rows.losses.of_nodes(nodes)
    sizes = losses.stop - losses.start
    first = np.cumsum(sizes) - sizes
    which = np.arange(sizes.sum()) + np.repeat(losses.start - first, sizes)
    cells = losses.cells.take(which)
    soft = np.repeat(np.full(len(nodes), True) if everywhere else parted(cells, first), sizes)
    if soft.any():
        yes, no = np.repeat(rows.yes[nodes], sizes), np.repeat(rows.no[nodes], sizes)
        targets = losses.cells.positive.copy()
        targets[which[soft]] = platt_targets(cells, yes, no)[soft]
        losses = losses.with_positive(targets)
    q = start.shape[1]
    pull = np.diag(np.append(np.full(q - 1, held), 0.0))
    theta, _ = minimise(losses, start, start, pull)
    return theta


def parted(cells: Cells, first: IntArray) -> NDArray[np.bool_]:
    """Nodes whose classes the score parts, (m,): their likelihood has no maximum.

    A node's cells are those from its ``first`` up to the next node's.

    The classes may meet at one score, but not if it is the only one.
    """
    lowest, highest = [], []
    for side in (cells.positive, cells.weight - cells.positive):
        lowest.append(np.minimum.reduceat(np.where(side > 0, cells.logit, np.inf), first))
        highest.append(np.maximum.reduceat(np.where(side > 0, cells.logit, -np.inf), first))
    apart: NDArray[np.bool_] = (lowest[0] >= highest[1]) | (lowest[1] >= highest[0])
    varied = np.minimum(*lowest) < np.maximum(*highest)
    both: NDArray[np.bool_] = apart & varied
    return both


def platt_targets(cells: Cells, yes: FloatArray, no: FloatArray) -> FloatArray:
    """Positive weight of each cell with targets (n1 + 1) / (n1 + 2) and 1 / (n0 + 2)."""
    soft: FloatArray = cells.positive * (yes + 1) / (yes + 2) + (cells.weight - cells.positive) / (
        no + 2
    )
    return soft
