"""Frozen pictures of fitted calibrators, for figures and downloads."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from kdcal_core.data.types import FloatArray


@dataclass(frozen=True, eq=False)
class ConfidenceCurve:
    """Confidence against score for one predicted class, with the two densities behind it.

    Attributes
    ----------
    label : int
        The predicted class.
    score : (G,)
        Parent's top-label probability, from ``lower_limit`` to 1.
    confidence : (G,)
        Conf_KDE(score), paper 002 Eq. 9 (or Conf1 where the class fell back).
    density_tp, density_fp : (G,)
        Kernel densities of the scores of true and false positives, Eqs. 7 and 8.
    bandwidth : float
        In score units; NaN where the class fell back to Conf1.
    n_tp, n_fp : int
        True and false positives behind the curve.
    lower_limit : float
        Below it the curve is held constant (decision D42).
    fallback : str
        Why the class fell back to Conf1; empty where it did not.
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

    def table(self) -> pd.DataFrame:
        """The curve as a table, for download."""
        return pd.DataFrame(
            {
                "score": self.score,
                "confidence": self.confidence,
                "density_true_positive": self.density_tp,
                "density_false_positive": self.density_fp,
            }
        )


@dataclass(frozen=True, eq=False)
class HistogramAnchor:
    """The histogram that lies under every smooth curve ([002] R35): one predicted class.

    ``edges`` (B + 1,), ``confidence`` (B,) TP / (TP + FP) with NaN in empty bins, ``count``
    (B,) rows, ``low`` and ``high`` (B,) Clopper-Pearson.
    """

    label: int
    edges: FloatArray
    confidence: FloatArray
    count: FloatArray
    low: FloatArray
    high: FloatArray

    def table(self) -> pd.DataFrame:
        """One row a bin, for download."""
        return pd.DataFrame(
            {
                "bin_low": self.edges[:-1],
                "bin_high": self.edges[1:],
                "count": self.count,
                "confidence": self.confidence,
                "interval_low": self.low,
                "interval_high": self.high,
            }
        )
