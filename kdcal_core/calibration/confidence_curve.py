"""Confidence against score for one predicted class, or for an event, as arrays for a figure."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray


@dataclass(frozen=True, eq=False)
class ConfidenceCurve:
    """Confidence against score for one predicted class, with its two densities.

    Attributes
    ----------
    label : int
        The predicted class.
    score : (G,)
        Model's top-label probability, from ``lower_limit`` to 1.
    confidence : (G,)
        Conf_KDE(score), Salamon et al., Eq. 9 (or Conf1 as a fallback).
    density_tp, density_fp : (G,)
        Kernel densities of the scores of true and false positives, Eqs. 7 and 8.
    bandwidth : float
        In score units; NaN if the class falls back to Conf1.
    n_tp, n_fp : int
        Numbers of true and false positives of the curve.
    lower_limit : float
        The curve is constant below it.
    fallback : str
        Why the class falls back to Conf1; empty if it does not.
    rows : (G,)
        Kernel-weighted number of rows at each score, A + B: a row at the score counts 1, and one a
        bandwidth away 0.61.
    shrinkage : float or None
        Number m of rows added to them (infinite where only the shared temperature is used). None if
        ``confidence`` is used unchanged.
    safe : (G,)
        The calibrator's answer at a score, (A + m c) / (A + B + m). With more than two classes c
        differs between rows of equal score, so this uses its mean over the class's calibration rows
        near the score. NaN if there are none.
    """

    label: int
    score: FloatArray
    confidence: FloatArray
    density_tp: FloatArray
    density_fp: FloatArray
    bandwidth: float
    n_tp: int
    n_fp: int
    lower_limit: float
    fallback: str = ""
    rows: FloatArray | None = None
    shrinkage: float | None = None
    safe: FloatArray | None = None

    def thinned(self, points: int = 80) -> Self:
        """The curve at no more than so many of its scores, for where it must stay small.

        Examples
        --------
        >>> score = np.linspace(0.5, 1.0, 201)
        >>> curve = ConfidenceCurve(0, score, score, score, score, 0.1, 90, 10, 0.5)
        >>> thin = curve.thinned(3)
        >>> thin.score, thin.confidence, thin.n_tp
        (array([0.5 , 0.75, 1.  ]), array([0.5 , 0.75, 1.  ]), 90)
        """
        if len(self.score) <= points:
            return self
        evenly = np.linspace(0, len(self.score) - 1, points).round().astype(int)
        at = np.union1d(evenly, np.flatnonzero(np.isnan(self.score)))  # where the curve may jump
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        along = {name: one[at] for name, one in values.items() if isinstance(one, np.ndarray)}
        return replace(self, **along)

    def table(self) -> pd.DataFrame:
        """The curve as a table, for download."""
        columns = {
            "score": self.score,
            "confidence": self.confidence if self.safe is None else self.safe,
            "confidence_kernel_densities_alone": self.confidence,
            "rows_nearby": self.rows,
            "density_true_positive": self.density_tp,
            "density_false_positive": self.density_fp,
        }
        return pd.DataFrame({name: part for name, part in columns.items() if part is not None})


@dataclass(frozen=True, eq=False)
class EventCurve(ConfidenceCurve):
    """The curves of both of two classes as one curve of the probability of one of them, the event.

    To the right of 0.5, where the event is predicted, it is the event's curve; to the left it is
    one minus the other class's curve at one minus the score. It is what the calibrator gives for
    the event, and may jump at 0.5, because each predicted class has its own densities. There the
    arrays hold a NaN.

    ``density_tp`` and ``density_fp`` are the densities of all rows with and without the event, and
    ``n_tp`` and ``n_fp`` their numbers. ``bandwidth`` and ``lower_limit`` are those of the event's
    half.

    Attributes
    ----------
    other_bandwidth : float
        Bandwidth of the other half; NaN if it falls back to Conf1.
    other_fallback : str
        Why the other half falls back to Conf1; empty if it does not.
    """

    other_bandwidth: float = float("nan")
    other_fallback: str = ""

    @classmethod
    def of(cls, event: ConfidenceCurve, other: ConfidenceCurve) -> EventCurve:
        """The curve of the event from the curves of both classes, as `TopLabelKDE.curve` gives."""
        halves = [
            _of_event(half, half is event) for half in (other, event) if half.n_tp + half.n_fp
        ]

        def joined(name: str) -> FloatArray:
            parts = [part for half in halves for part in (half[name], [np.nan])][:-1]
            return np.concatenate(parts or [[]])

        def known(name: str) -> FloatArray | None:
            missing = any(half[name] is None for half in halves)
            return None if missing else joined(name)

        n_with, n_without = event.n_tp + other.n_fp, event.n_fp + other.n_tp
        return cls(
            label=event.label,
            score=joined("score"),
            confidence=joined("confidence"),
            density_tp=joined("with") / max(n_with, 1),
            density_fp=joined("without") / max(n_without, 1),
            bandwidth=event.bandwidth,
            n_tp=n_with,
            n_fp=n_without,
            lower_limit=event.lower_limit,
            fallback=event.fallback,
            rows=known("rows"),
            shrinkage=event.shrinkage,
            safe=known("safe"),
            other_bandwidth=other.bandwidth,
            other_fallback=other.fallback,
        )


def _of_event(half: ConfidenceCurve, event: bool) -> dict[str, Any]:
    """The arrays of one class's curve by rising probability of the event, this class or not."""
    right, wrong = half.n_tp * half.density_tp, half.n_fp * half.density_fp
    stated = {"score": half.score, "confidence": half.confidence, "safe": half.safe}
    if event:
        return {**stated, "with": right, "without": wrong, "rows": half.rows}
    mirrored = {
        name: None if values is None else 1.0 - values[::-1] for name, values in stated.items()
    }
    rows = None if half.rows is None else half.rows[::-1]
    return {**mirrored, "with": wrong[::-1], "without": right[::-1], "rows": rows}
