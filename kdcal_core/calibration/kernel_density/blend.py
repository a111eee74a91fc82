"""The parent's probabilities and the graph's class ratios, blended inside the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from kdcal_core.data import FloatArray, IntArray

_PRIOR_SHARE = 1e-3
_LEAST_RATIO = 1e-6
_LARGEST_WEIGHT = 20.0


@dataclass(frozen=True)
class Blend:
    """Softmax of ``parent log p' + graph log g'``: two opinions with a weight for each.

    ``p'`` is the parent's vector with a thousandth of the prior mixed in and ``g'`` the class
    ratio of the row's polytope, at least 1e-6, because a forest's votes and a polytope of one
    class say exactly zero. It replaces the class ratio, not the density: what the floor and the
    prior do outside the data stays as it was.

    Attributes
    ----------
    parent, graph : float in [0, 20]
        The weights. (1, 0) is the parent itself, (0, 1) the graph.
    prior : tuple of K float
    """

    parent: float
    graph: float
    prior: tuple[float, ...]

    def mix(self, parent_proba: FloatArray, local: FloatArray) -> FloatArray:
        """Blended probabilities, (m, K), rows summing to one.

        Parameters
        ----------
        parent_proba : (m, K) array
        local : (m, K) array
            Class ratio of each row's polytope.

        Examples
        --------
        >>> import numpy as np
        >>> sure, unsure = np.array([[0.9, 0.1]]), np.array([[0.5, 0.5]])
        >>> Blend(0.5, 1.0, (0.5, 0.5)).mix(sure, unsure).round(2).tolist()
        [[0.75, 0.25]]
        """
        mixed: FloatArray = softmax(
            self.parent * _parent_logs(parent_proba, np.asarray(self.prior))
            + self.graph * _graph_logs(local),
            axis=1,
        )
        return mixed


def fit_blend(parent_proba: FloatArray, local: FloatArray, y: IntArray, prior: FloatArray) -> Blend:
    """The weights of the smallest log loss on held-out rows.

    The log loss is convex in the two weights, so the minimum is the minimum.

    Parameters
    ----------
    parent_proba, local : (h, K) arrays
        As for :meth:`Blend.mix`, of h >= 1 rows that neither parent nor graph was fitted on.
    y : (h,) array of int
        Their classes.
    prior : (K,) array

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([0, 0, 0, 1])
    >>> parent = np.tile([0.75, 0.25], (4, 1))
    >>> blend = fit_blend(parent, np.full((4, 2), 0.5), y, np.array([0.5, 0.5]))
    >>> blend.mix(parent[:1], np.array([[0.5, 0.5]])).round(3).tolist()
    [[0.75, 0.25]]
    """
    logs = np.stack([_parent_logs(parent_proba, prior), _graph_logs(local)])
    rows = np.arange(len(y))

    def loss(weights: FloatArray) -> tuple[float, FloatArray]:
        log_proba = log_softmax(np.tensordot(weights, logs, axes=1), axis=1)
        expected = (np.exp(log_proba) * logs).sum(axis=2)
        slope = (expected - logs[:, rows, y]).mean(axis=1)
        return -float(log_proba[rows, y].mean()), slope

    found = minimize(
        loss, x0=[0.5, 0.5], jac=True, method="L-BFGS-B", bounds=[(0.0, _LARGEST_WEIGHT)] * 2
    )
    return Blend(float(found.x[0]), float(found.x[1]), tuple(prior.tolist()))


def _parent_logs(parent_proba: FloatArray, prior: FloatArray) -> FloatArray:
    # A class of prior 0 that the parent rules out stays finite.
    mixed = (1 - _PRIOR_SHARE) * parent_proba + _PRIOR_SHARE * prior
    logs: FloatArray = np.log(np.maximum(mixed, _LEAST_RATIO))
    return logs


def _graph_logs(local: FloatArray) -> FloatArray:
    logs: FloatArray = np.log(np.maximum(local, _LEAST_RATIO))
    return logs
