"""Platt's and the beta map of every region at once: logistic regressions on the score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from kdcal_core.calibration.calibrator_base import check_array, demand
from kdcal_core.calibration.regions._unpooled import NodeRows, fit_alone, fit_unpooled
from kdcal_core.calibration.regions.cells import Cells, logit_of
from kdcal_core.calibration.regions.hierarchy import Hierarchy
from kdcal_core.calibration.regions.pooling import order_evidence, pool
from kdcal_core.calibration.regions.scores import MapFit, Scores, normalised
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.store import storable


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
# Scores that differ by less differ by rounding.
_CONSTANT = 1e-9
# Rows, times classes, that are fitted at once: so many classes that calls cost little beside sums.
_ROWS = 100_000

FEATURES = {2: platt_features, 3: beta_features}


@storable
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
    """Platt's sigmoid of the logit in every region (Durfee et al., Algorithm 1, decision D104)."""
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
    """Parameters (C, R, q) and borrowed shares (C, R) of the maps of C classes."""
    features = [features_of(one.logit) for one in classes]
    # the offset is read at the middle of the scores, where it does not depend on the slopes, and
    # the slopes of scores that hardly differ are drawn together as if they differed by one
    pairs = zip(features, classes, strict=True)
    middle, scale = np.swapaxes([_standard(x[:, :-1], one.weight) for x, one in pairs], 0, 1)
    which = np.repeat(np.arange(len(classes)), [len(one.logit) for one in classes])
    centred = np.concatenate(features)
    centred[:, :-1] = (centred[:, :-1] - middle[which]) / scale[which]
    cells = Cells.joined(classes, hierarchy.n_regions)
    every = hierarchy.copies(len(classes))
    rows = NodeRows.of(cells, centred, every)
    unchanged = np.column_stack([scale, middle.sum(axis=1)])
    root = fit_alone(rows, every.levels[0], unchanged)
    if pooling:
        pooled = pool(rows.losses.of_nodes, root, every, order_evidence(rows.rarer))
        theta, borrowed = pooled.theta, pooled.borrowed
    else:
        theta, borrowed = fit_unpooled(rows, every, root)
    theta = theta[every.node].reshape(len(classes), hierarchy.n_regions, -1)
    theta[:, :, :-1] /= scale[:, None]
    theta[:, :, -1] -= np.einsum("crq,cq->cr", theta[:, :, :-1], middle)
    return theta, borrowed[every.node].reshape(theta.shape[:2])


def _standard(features: FloatArray, weight: FloatArray) -> FloatArray:
    """Means and deviations of features, (2, q): at most one, and one where they are constant.

    >>> _standard(np.array([[0.5, 3.0, 7.0], [-0.5, -3.0, 7.0]]), np.ones(2)).tolist()
    [[0.0, 0.0, 7.0], [0.5, 1.0, 1.0]]
    """
    middle = np.average(features, axis=0, weights=weight)
    deviation = np.sqrt(np.average((features - middle) ** 2, axis=0, weights=weight))
    return np.stack([middle, np.where(deviation > _CONSTANT, np.minimum(deviation, 1.0), 1.0)])
