"""Fits of softmax(W z + b) on log probabilities z, with W whole or diagonal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.statistics import CLIP

_BLOCK = 8192
_SUBSAMPLE = 20_000
_MOST_SCALED = 1000  # weights; with more the second derivatives take longer than the search
_EXACT: dict[str, Any] = {"ftol": 1e-12, "gtol": 1e-7, "maxiter": 1000, "maxcor": 30}
# With more weights than this, each step is too slow to search for the last digits.
_ROUGH: dict[str, Any] = {"ftol": 1e-7, "gtol": 1e-6, "maxiter": 60, "maxcor": 15}
_ROUGHEST: dict[str, Any] = {"ftol": 1e-5, "gtol": 1e-5, "maxiter": 25, "maxcor": 15}


def log_proba(proba: FloatArray) -> FloatArray:
    """Log probabilities, (n, K), those below 1e-12 as 1e-12 (decision D51)."""
    logs: FloatArray = np.log(np.maximum(proba, CLIP))
    return logs


def softmax_in_place(logits: FloatArray) -> FloatArray:
    """Rows that sum to one, in the memory of the logits."""
    logits -= logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
    return logits


@dataclass(frozen=True, eq=False)
class SoftmaxMap:
    """``weights`` W, (K, K) or its diagonal (K,), and ``offsets`` b, (K,)."""

    weights: FloatArray
    offsets: FloatArray

    @classmethod
    def identity(cls, n_classes: int, *, whole: bool) -> SoftmaxMap:
        """The map that leaves every row as it is."""
        return cls(np.eye(n_classes) if whole else np.ones(n_classes), np.zeros(n_classes))

    def logits(self, z: FloatArray) -> FloatArray:
        """W z + b of each row, (n, K)."""
        product = z @ self.weights.T if self.weights.ndim == 2 else z * self.weights
        product += self.offsets
        return product

    def vector(self) -> FloatArray:
        """All parameters in one array, the offsets last."""
        return np.concatenate([self.weights.ravel(), self.offsets])

    def like(self, parameters: FloatArray) -> SoftmaxMap:
        """The map of this shape with these parameters."""
        k = len(self.offsets)
        return SoftmaxMap(parameters[:-k].reshape(self.weights.shape), parameters[-k:])


@dataclass(frozen=True, eq=False)
class Pull:
    """Strength of the penalty towards the identity, in units of one row's log loss.

    Half the ``diagonal`` times each squared distance of a diagonal weight from one, and half the
    ``rest`` times each squared other weight and offset, is added to the sum of the rows' losses.
    """

    diagonal: float
    rest: float

    def strengths(self, shape: SoftmaxMap) -> FloatArray:
        """One strength for each parameter of a map of this shape."""
        k = len(shape.offsets)
        weights = np.full(shape.weights.shape, self.rest)
        if weights.ndim == 1:
            weights[:] = self.diagonal
        else:
            np.fill_diagonal(weights, self.diagonal)
        return np.concatenate([weights.ravel(), np.full(k, self.rest)])


@dataclass(frozen=True, eq=False)
class SoftmaxRows:
    """Log probabilities (n, K), true classes (n,) and weights (n,) of the rows of a fit."""

    z: FloatArray
    y: IntArray
    weight: FloatArray

    def take(self, rows: slice | FloatArray) -> SoftmaxRows:
        return SoftmaxRows(self.z[rows], self.y[rows], self.weight[rows])

    def log_loss(self, by: SoftmaxMap) -> float:
        """Mean log loss of a map."""
        value, _ = self._loss_and_slope(by)
        return value / float(self.weight.sum())

    def fit(self, start: SoftmaxMap, pull: Pull, *, trial: bool = False) -> SoftmaxMap:
        """The map of the smallest loss, found from an even subsample's where rows are many.

        A ``trial`` with very many weights stops at a rough minimum.
        """
        stride = len(self.y) // _SUBSAMPLE
        scale = None
        if stride > 1:
            few = self.take(slice(None, None, stride))
            share = float(few.weight.sum() / self.weight.sum())
            less = Pull(pull.diagonal * share, pull.rest * share)
            start = few.fit(start, less)
            scale = few._scale(start, less)
        elif start.weights.size > _MOST_SCALED:
            scale = self._diagonal_scale(start, pull)
        strengths = pull.strengths(start)
        centre = SoftmaxMap.identity(len(start.offsets), whole=start.weights.ndim == 2).vector()
        total = float(self.weight.sum())

        scale = np.ones_like(strengths) if scale is None else scale
        whole = scale.ndim == 2
        rough = _ROUGHEST if trial else _ROUGH

        def moved(steps: FloatArray) -> FloatArray:
            ahead: FloatArray = scale @ steps if whole else scale * steps
            return ahead

        def objective(steps: FloatArray) -> tuple[float, FloatArray]:
            parameters = start.vector() + moved(steps)
            value, slope = self._loss_and_slope(start.like(parameters))
            away = parameters - centre
            value += 0.5 * float(strengths @ away**2)
            slope += strengths * away
            return value / total, (slope @ scale if whole else slope * scale) / total

        options: Any = rough if start.weights.size > _MOST_SCALED else _EXACT
        found = minimize(
            objective,
            np.zeros_like(strengths),
            jac=True,
            method="L-BFGS-B",
            options=options,
        )
        return start.like(start.vector() + moved(found.x))

    def _scale(self, at: SoftmaxMap, pull: Pull) -> FloatArray | None:
        """Steps with the same curvature of the loss in all directions, as columns; (p, p).

        Log probabilities rise and fall together, so the curvature of the loss is a thousand times
        larger in some directions of W than in others, and the search would be slow. None for a
        diagonal map, which does not need it, and for too many parameters.
        """
        if at.weights.ndim == 1 or at.weights.size > _MOST_SCALED:
            return None
        proba = softmax_in_place(at.logits(self.z))
        share = proba * (self.weight / self.weight.sum())[:, None]
        with_one = np.column_stack([self.z, np.ones(len(self.z))])
        k = len(at.offsets)
        bends = np.empty((k, k + 1, k, k + 1))
        for a in range(k):
            for b in range(a, k):
                by = share[:, a] * ((a == b) - proba[:, b])
                bends[a, :, b] = with_one.T @ (with_one * by[:, None])
                bends[b, :, a] = bends[a, :, b].T
        # parameters are ordered row by row in W, followed by the offsets
        order = np.arange(k * (k + 1)).reshape(k, k + 1)
        place = np.concatenate([order[:, :k].ravel(), order[:, k]])
        matrix = bends.reshape(k * (k + 1), -1)[np.ix_(place, place)]
        matrix += np.diag(pull.strengths(at)) / float(self.weight.sum())
        return np.linalg.inv(np.linalg.cholesky(matrix)).T

    def _diagonal_scale(self, at: SoftmaxMap, pull: Pull) -> FloatArray:
        """Steps with the same curvature of the loss along every parameter, (p,)."""
        bends, of_offsets = np.zeros_like(at.weights), np.zeros_like(at.offsets)
        for start in range(0, len(self.y), _BLOCK):
            part = slice(start, start + _BLOCK)
            proba = softmax_in_place(at.logits(self.z[part]))
            bend = proba * (1.0 - proba) * self.weight[part][:, None]
            bends += bend.T @ self.z[part] ** 2
            of_offsets += bend.sum(axis=0)
        found = np.concatenate([bends.ravel(), of_offsets]) + pull.strengths(at)
        scale: FloatArray = np.sqrt(float(self.weight.sum()) / found)
        return scale

    def _loss_and_slope(self, by: SoftmaxMap) -> tuple[float, FloatArray]:
        """Sum of the weighted log losses, and its gradient by all parameters."""
        value = 0.0
        weights, offsets = np.zeros_like(by.weights), np.zeros_like(by.offsets)
        for at in range(0, len(self.y), _BLOCK):
            part = slice(at, at + _BLOCK)
            z, y, weight = self.z[part], self.y[part], self.weight[part]
            rows = np.arange(len(y))
            logits = by.logits(z)
            logits -= logits.max(axis=1, keepdims=True)
            true = logits[rows, y]
            np.exp(logits, out=logits)
            total = logits.sum(axis=1)
            value += float(weight @ (np.log(total) - true))
            logits *= (weight / total)[:, None]
            logits[rows, y] -= weight
            if weights.ndim == 2:
                weights += logits.T @ z
            else:
                weights += np.einsum("ij,ij->j", logits, z)
            offsets += logits.sum(axis=0)
        return value, np.concatenate([weights.ravel(), offsets])
