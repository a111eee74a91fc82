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
        Model's top-label probability, from ``lower_limit`` to 1.
    confidence : (G,)
        Conf_KDE(score), Salamon et al., Eq. 9 (or Conf1 where the class fell back).
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
    rows : (G,)
        Kernel-weighted rows behind each score, A + B: a row at the score counts 1, one a bandwidth
        away 0.61.
    shrinkage : float or None
        Rows m that were added to them (infinite where the shared temperature answers alone).
        None if ``confidence`` is used unchanged.
    safe : (G,)
        The calibrator's answer at a score, (A + m c) / (A + B + m). With more than two classes c
        differs between rows of equal score; here it is its mean over the class's calibration rows
        near the score. NaN where there are none.
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
class HistogramAnchor:
    """The histogram that lies under every smooth curve (Salamon et al.): one predicted class.

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
