"""Platt's and the beta map of every region at once: logistic regressions on the score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from kdcal_core.calibration.heterogeneous._binomial import Binomial, BinomialLosses
from kdcal_core.calibration.heterogeneous._newton import minimise
from kdcal_core.calibration.heterogeneous.cells import Cells, logit_of
from kdcal_core.calibration.heterogeneous.hierarchy import Hierarchy
from kdcal_core.calibration.heterogeneous.pooling import pool
from kdcal_core.calibration.heterogeneous.scores import MapFit, Scores, normalised
from kdcal_core.calibration.state import check_array, demand
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_sums


def platt_features(logit: FloatArray) -> FloatArray:
    """(n, 2): the logit and one."""
    return np.column_stack([logit, np.ones(len(logit))])


def beta_features(logit: FloatArray) -> FloatArray:
    """(n, 3): log p, -log(1 - p) and one."""
    return np.column_stack(
        [-np.logaddexp(0.0, -logit), np.logaddexp(0.0, logit), np.ones(len(logit))]
    )


# Beyond it a score could leave the range of a double.
_LARGEST = 1e100
# Rows, times classes, that are fitted at once: so many classes that calls cost little beside sums.
_ROWS = 100_000

FEATURES = {2: platt_features, 3: beta_features}


@dataclass(frozen=True, eq=False)
class LinearMaps:
    """``sigmoid(features @ parameters)`` of every class and region.

    Attributes
    ----------
    parameters : (C, R, q) array
        C is 1 for two classes. With q = 2 they are Platt's slope and offset on the logit; with
        q = 3 the beta map's a, b and c: ``a log p - b log(1 - p) + c``.

    Examples
    --------
    >>> LinearMaps(np.array([[[1.0, 0.0], [0.0, 0.0]]])).predict(
    ...     np.array([[0.2, 0.8], [0.2, 0.8]]), np.array([0, 1])
    ... ).round(3).tolist()
    [[0.2, 0.8], [0.5, 0.5]]
    """

    parameters: FloatArray

    def predict(self, proba: FloatArray, leaf: IntArray) -> FloatArray:
        """Calibrated probabilities (n, K)."""
        n_maps, _, q = self.parameters.shape
        columns = [1] if n_maps == 1 else range(n_maps)
        mapped = np.empty((len(proba), n_maps))
        for i, label in enumerate(columns):
            features = FEATURES[q](logit_of(proba[:, label]))
            mapped[:, i] = expit(np.einsum("nq,nq->n", features, self.parameters[i][leaf]))
        return normalised(mapped)

    def check(self, n_classes: int, n_regions: int) -> None:
        """Refuse parameters that do not fit, as a damaged file may hold them."""
        shape = (1 if n_classes == 2 else n_classes, n_regions, None)
        check_array(self, "parameters", shape, low=-_LARGEST, high=_LARGEST)
        demand(self.parameters.shape[2] in FEATURES, "the number of parameters")


def fit_platt(scores: Scores, leaf: IntArray, hierarchy: Hierarchy, pooling: bool) -> MapFit:
    """Platt's sigmoid of the logit in every region (paper 004 Algorithm 1, decision D104)."""
    return _fit(scores, leaf, hierarchy, pooling, ("slope", "offset"))


def fit_beta(scores: Scores, leaf: IntArray, hierarchy: Hierarchy, pooling: bool) -> MapFit:
    """The beta map in every region: slopes a and b of log p and -log(1 - p), offset c."""
    return _fit(scores, leaf, hierarchy, pooling, ("a", "b", "c"))


def _fit(
    scores: Scores, leaf: IntArray, hierarchy: Hierarchy, pooling: bool, names: tuple[str, ...]
) -> MapFit:
    parameters, borrowed = [], []
    at_once = max(1, _ROWS // len(leaf))
    for start in range(0, len(scores.mapped), at_once):
        labels = scores.mapped[start : start + at_once]
        cells = [scores.cells(label, leaf, hierarchy.n_regions) for label in labels]
        found, share = _fit_classes(cells, FEATURES[len(names)], hierarchy, pooling)
        parameters.append(found)
        borrowed.append(share)
    stacked = np.concatenate(parameters)
    return MapFit(
        LinearMaps(stacked),
        np.concatenate(borrowed),
        {name: stacked[:, :, i] for i, name in enumerate(names)},
        np.asarray((stacked[:, :, :-1] < 0).any(axis=(0, 2))),
    )


def _fit_classes(
    classes: list[Cells],
    features_of: Callable[[FloatArray], FloatArray],
    hierarchy: Hierarchy,
    pooling: bool,
) -> tuple[FloatArray, FloatArray]:
    """Parameters (C, R, q) and borrowed shares (C, R) of the maps of C classes.

    Without pooling a region with one class or no rows has its nearest ancestor's parameters, and
    one whose classes its scores part has Platt's targets (decision D105).
    """
    features = [features_of(one.logit) for one in classes]
    # the offset is read at the middle of the scores, where it does not depend on the slopes
    pairs = zip(features, classes, strict=True)
    middle = np.stack([np.average(x[:, :-1], axis=0, weights=one.weight) for x, one in pairs])
    which = np.repeat(np.arange(len(classes)), [len(one.logit) for one in classes])
    centred = np.concatenate(features)
    centred[:, :-1] -= middle[which]
    cells = Cells.joined(classes, hierarchy.n_regions)
    every = hierarchy.copies(len(classes))
    unchanged = np.column_stack([np.ones_like(middle), middle.sum(axis=1)])
    if pooling:
        root = _alone(cells, centred, which, unchanged)
        pooled = pool(BinomialLosses(cells, centred, every), root, every)
        theta, borrowed = pooled.theta[every.node], pooled.borrowed[every.node]
    else:
        theta, borrowed = _unpooled(cells, centred, every, unchanged)
    theta = theta.reshape(len(classes), hierarchy.n_regions, -1)
    theta[:, :, -1] -= np.einsum("crq,cq->cr", theta[:, :, :-1], middle)
    return theta, borrowed.reshape(theta.shape[:2])


def _unpooled(
    cells: Cells, features: FloatArray, hierarchy: Hierarchy, unchanged: FloatArray
) -> tuple[FloatArray, FloatArray]:
    start = unchanged[hierarchy.copy]
    theta = start[hierarchy.node]
    both = np.zeros(hierarchy.n_regions, dtype=bool)
    for level in range(int(hierarchy.depth.max()) + 1):
        names, place = np.unique(hierarchy.above(level), return_inverse=True)
        node = place[cells.region]
        fitted = _alone(cells, features, node, start[names])
        both = _has_both(cells, node, len(names))[place]
        theta = np.where(both[:, None], fitted[place], theta)
    return theta, np.where(both, 0.0, 1.0)


def _has_both(cells: Cells, node: IntArray, m: int) -> NDArray[np.bool_]:
    yes = bin_sums(node, m, cells.positive)
    no = bin_sums(node, m, cells.weight - cells.positive)
    return (yes > 0) & (no > 0)


def _alone(cells: Cells, features: FloatArray, node: IntArray, start: FloatArray) -> FloatArray:
    """Parameters of nodes without any pull; the start where a node has one class only."""
    m = len(start)
    both = _has_both(cells, node, m)
    target = np.where(parted(cells, node, m)[node], platt_targets(cells, node, m), cells.positive)
    weight = np.where(both[node], cells.weight, 0.0)
    loss = Binomial(features, weight, np.where(both[node], target, 0.0), node, m)
    q = features.shape[1]
    theta, _, _ = minimise(loss, start, start, np.zeros((q, q)))
    return theta


def parted(cells: Cells, node: IntArray, m: int) -> NDArray[np.bool_]:
    """Nodes whose classes the score parts, (m,): their likelihood has no maximum.

    The classes may meet at one score, but not if it is the only one.
    """
    yes, no = cells.positive > 0, cells.weight - cells.positive > 0
    lowest = [np.full(m, np.inf) for _ in range(2)]
    highest = [np.full(m, -np.inf) for _ in range(2)]
    for i, here in enumerate((yes, no)):
        np.minimum.at(lowest[i], node[here], cells.logit[here])
        np.maximum.at(highest[i], node[here], cells.logit[here])
    apart: NDArray[np.bool_] = (lowest[0] >= highest[1]) | (lowest[1] >= highest[0])
    varied = np.minimum(*lowest) < np.maximum(*highest)
    both: NDArray[np.bool_] = apart & varied
    return both


def platt_targets(cells: Cells, node: IntArray, m: int) -> FloatArray:
    """Positive weight of each cell with targets (n1 + 1) / (n1 + 2) and 1 / (n0 + 2)."""
    yes = bin_sums(node, m, cells.positive)[node]
    no = bin_sums(node, m, cells.weight - cells.positive)[node]
    soft: FloatArray = cells.positive * (yes + 1) / (yes + 2) + (cells.weight - cells.positive) / (
        no + 2
    )
    return soft
