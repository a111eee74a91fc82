"""Losses of each row, and areas under ROC curves with each row's part in their error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kdcal_core.calibration import Calibrated
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics.ranking import roc_area
from kdcal_core.diagnostics.scores import CLIP


def log_losses(found: Calibrated, y: IntArray) -> FloatArray:
    """-log of the true class's probability (decision D48), (n,)."""
    true = found.proba[np.arange(len(y)), y]
    return np.asarray(-np.log(np.clip(true, CLIP, 1.0)))


def brier_losses(found: Calibrated, y: IntArray) -> FloatArray:
    """Squared distance of the vector from the true class's indicator, (n,)."""
    true = found.proba[np.arange(len(y)), y]
    return np.asarray(np.maximum(np.square(found.proba).sum(axis=1) - 2.0 * true + 1.0, 0.0))


def hits(found: Calibrated, y: IntArray) -> FloatArray:
    """1 where the predicted class is the true one, else 0, (n,)."""
    return np.asarray(found.predicted == y, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Pairing:
    """Which rows are ranked against which: one curve for each class and fold with both sides.

    Scores of different folds come from different fits, and a row left out moves them against
    its own class; so rows are ranked inside their fold alone (Forman and Scholz 2010). A class
    counts by its weight, a fold by its pairs.
    """

    y: IntArray
    weight: FloatArray
    fold: IntArray
    curves: tuple[tuple[int, int, float], ...]

    @classmethod
    def of(cls, y: IntArray, weight: FloatArray, fold: IntArray, n_classes: int) -> Pairing:
        """Class 1 where there are two classes, else each class against the rest."""
        curves: list[tuple[int, int, float]] = []
        total = 0.0
        for k in [1] if n_classes == 2 else range(n_classes):
            pairs = {
                int(f): float(
                    weight[(fold == f) & (y == k)].sum() * weight[(fold == f) & (y != k)].sum()
                )
                for f in np.unique(fold)
            }
            whole = sum(pairs.values())
            if whole > 0:
                share = float(weight[y == k].sum())
                total += share
                curves += [(k, f, share * p / whole) for f, p in pairs.items() if p > 0]
        return cls(y, weight, fold, tuple((k, f, share / total) for k, f, share in curves))

    @property
    def lead(self) -> FloatArray:
        """The largest part that each row can have in an area's sampling error, (n,)."""
        lead = np.zeros(len(self.y))
        for k, f, share in self.curves:
            lead += share * self._shares(k, f)
        return lead

    def area(self, proba: FloatArray) -> tuple[float, FloatArray]:
        """Mean area, and each row's part of its sampling error (n,).

        Parts are centred on the class's area over all folds, not on the fold's own: a fold with
        one row of a class would show no variance of it.
        """
        value, part = 0.0, np.zeros(len(self.y))
        areas: dict[int, list[tuple[int, float, float]]] = {}
        for k, f, share in self.curves:
            rows = np.flatnonzero(self.fold == f)
            one, own = roc_area(proba[rows, k], self.y[rows] == k, self.weight[rows])
            value += share * one
            part[rows] += share * own
            areas.setdefault(k, []).append((f, share, one))
        for k, found in areas.items():
            mean = sum(share * one for _, share, one in found) / sum(s for _, s, _ in found)
            for f, share, one in found:
                part += share * (one - mean) * self._shares(k, f)
        return value, part

    def _shares(self, k: int, f: int) -> FloatArray:
        """Each row's share of its side of a curve, 0 outside the fold, (n,)."""
        shares = np.zeros(len(self.y))
        for side in (self.y == k, self.y != k):
            here = (self.fold == f) & side
            shares[here] = self.weight[here] / self.weight[here].sum()
        return shares
