"""How the scores of both labels are spread, on the scale of log odds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kdcal_core.data import FloatArray

FAR = 7.0  # log odds that the scale ends at: 0.09% and 99.91%
_BINS = 28
EDGES = np.linspace(-FAR, FAR, _BINS + 1)
"""Edges of the bins, in log odds, (29,)."""


@dataclass(frozen=True, eq=False)
class ScoreSpread:
    """Stated probabilities of some rows by label.

    Durfee et al., Heterogeneous Calibration, draw them in Figure 1.

    Attributes
    ----------
    n : int
        Rows.
    other, mine : (28,) float64
        Share of the other rows, and of the class's rows, between the `EDGES`; the outermost bins
        include everything beyond.
    certain : (float, float)
        Share of other rows stated below 0.01, and of the class's rows stated above 0.99.

    Examples
    --------
    >>> spread = ScoreSpread.of(np.array([0.001, 0.5, 0.999]), np.array([0.0, 0.0, 1.0]))
    >>> spread.n, spread.certain, float(spread.other.sum())
    (3, (0.5, 1.0), 1.0)
    """

    n: int
    other: FloatArray
    mine: FloatArray
    certain: tuple[float, float]

    @classmethod
    def of(cls, score: FloatArray, hit: FloatArray) -> ScoreSpread:
        """Of stated probabilities (n,) in [0, 1], and 1.0 where a row is of the class, (n,)."""
        ends = np.clip(score, 1e-12, 1.0 - 1e-12)
        odds = np.clip(np.log(ends) - np.log1p(-ends), -FAR, FAR)
        other, mine = hit == 0, hit == 1
        return cls(
            len(score),
            _shares(odds[other]),
            _shares(odds[mine]),
            (_share(score[other] < 0.01), _share(score[mine] > 0.99)),
        )


def _shares(odds: FloatArray) -> FloatArray:
    counts = np.histogram(odds, bins=EDGES)[0].astype(np.float64)
    return np.asarray(counts / max(counts.sum(), 1.0))


def _share(mask: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float:
    return float(mask.mean()) if len(mask) else 0.0
