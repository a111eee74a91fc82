"""Equally likely samples as predictive distribution."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kdcal_core.data.types import FloatArray
from kdcal_core.distributions import _rowwise
from kdcal_core.distributions._piecewise import Piecewise
from kdcal_core.distributions._shapes import checked_outcomes, checked_table
from kdcal_core.distributions._tails import ParetoTail, Tail
from kdcal_core.distributions.base import Rows
from kdcal_core.distributions.weighted import Weighted

FEWEST, MOST = 2, 8
"""Outermost samples that a tail is fitted to: the square root of their number, within these."""
STEP = 0.5
"""Least scale of the tails of whole numbers."""


class Empirical(Piecewise):
    """m equally likely samples a row: Monte Carlo dropout, ensembles (paper 003 section 4.2).

    Where outcome and samples are draws alike, the outcome is as likely to fall into any of the
    m + 1 gaps between and beyond the samples. So the distribution function is i / (m + 1) at the
    i-th smallest sample and runs linearly between them. Beyond the outermost samples lie tails,
    each of mass 1 / (m + 1).

    Parameters
    ----------
    samples : (n, m) array

    Attributes
    ----------
    samples : (n, m)
        Ascending in every row.

    Raises
    ------
    InputError
        Where a sample is not finite: named with its row.

    Notes
    -----
    A tail is generalised Pareto, 1 / (m + 1) (1 + e / (k s))^(-k) at distance e: the predictive
    distribution of one more excess where the tail is exponential and s is the mean excess of its
    outermost k = sqrt(m) samples, 2 to 8, over the next one. It follows skewed, heavy-tailed and
    two-peaked samples, and of normal ones the 95% intervals hold about 95% from five samples on
    (tests/benchmarks/RESULTS_ensembles.md). A row whose outermost k + 1 samples are equal has no
    tail at that end: its support ends there. Equal samples make an atom. In a row of whole numbers,
    counts mostly, ties do not say that there is no tail, since excesses are rounded: s is then half
    a step at least, unless m is 1. With five counts a row, recalibrated 95% intervals hold 93 to
    98% with this rule and 86 to 94% without it.

    ``mean`` and ``std`` are those of an ensemble: the mean of the samples, and the square root of
    (1 + 1/m) times their variance (with m - 1), which is the mean square of outcome minus mean
    where both are draws alike. Samples have no density: ``log_density`` is a Gaussian kernel
    estimate as that of :class:`Weighted`, with the tails' densities added.

    PIT values are those of the ranks, see :func:`randomised_pit`.

    Examples
    --------
    >>> ensemble = Empirical([[3.0, 1.0, 2.0, 4.0]])
    >>> ensemble.cdf([[1.0, 2.5, 4.0]]).tolist(), ensemble.ppf(0.3).tolist()
    ([[0.2, 0.5, 0.8]], [1.5])
    >>> bool(0.9 < ensemble.cdf(9.0)[0] < 1)
    True
    """

    family: ClassVar[str] = "samples"
    samples: FloatArray

    def __init__(self, samples: ArrayLike) -> None:
        values = checked_table(samples, "sample")
        self.samples = values if _rowwise.ascending(values) else np.sort(values, axis=1)

    def __getitem__(self, rows: Rows) -> Self:
        chosen = object.__new__(type(self))
        chosen.samples = self.samples[rows]
        return chosen

    @property
    def has_density(self) -> bool:
        return False

    @property
    def resolved(self) -> float:
        m = int(self.samples.shape[1])
        return (m - 1) / (m + 1)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"samples": self.samples}

    def pit(self, y: ArrayLike, draw: ArrayLike) -> FloatArray:
        outcomes = np.broadcast_to(checked_outcomes(y, one_a_row=True), len(self))[:, np.newaxis]
        ends = (_rowwise.count_up_to(self.samples, outcomes, side) for side in ("left", "right"))
        below, up_to = (end[:, 0] for end in ends)
        pit: FloatArray = below + np.asarray(draw) * (up_to - below + 1)
        share: FloatArray = pit / (self.samples.shape[1] + 1)
        return share

    @property
    def _levels(self) -> FloatArray:
        m = self.samples.shape[1]
        levels: FloatArray = np.arange(1, m + 1) / (m + 1)
        return levels

    @property
    def _points(self) -> FloatArray:
        return self.samples

    def _tails(self) -> tuple[Tail, Tail]:
        m = self.samples.shape[1]
        k = min(max(FEWEST, round(m**0.5)), MOST)
        used, mass = min(k, m - 1), 1 / (m + 1)
        # the mean of differences: that of equal samples is zero to the last digit
        lower = self.samples[:, [used]] - self.samples[:, : max(used, 1)]
        upper = self.samples[:, m - max(used, 1) :] - self.samples[:, [m - 1 - used]]
        ends = (excess.mean(axis=1, keepdims=True) for excess in (lower, upper))
        whole = (self.samples == np.rint(self.samples)).all(axis=1, keepdims=True)
        least = np.where(whole & (m > 1), STEP, 0.0)
        below, above = (ParetoTail(mass, np.maximum(scale, least), k) for scale in ends)
        return below, above

    def _mean(self) -> FloatArray:
        mean: FloatArray = self.samples.mean(axis=1)
        return mean

    def _std(self) -> FloatArray:
        m = self.samples.shape[1]
        spread: FloatArray = self.samples.std(axis=1)
        predictive: FloatArray = spread * ((m + 1) / max(m - 1, 1)) ** 0.5
        return predictive

    def _log_density(self, y: FloatArray) -> FloatArray:
        inside = object.__new__(Weighted)
        inside.samples, inside.weights = self.samples, np.ones((1, self.samples.shape[1]))
        density, kernels = np.full((len(self), y.shape[1]), -np.inf), np.ones((len(self), 1))
        ends = self.samples[:, :1] - y, y - self.samples[:, -1:]
        for distance, tail in zip(ends, self._tails(), strict=True):
            beyond = np.where(distance > 0, tail.log_density(np.maximum(distance, 0.0)), -np.inf)
            density = np.logaddexp(density, beyond)
            kernels = kernels - np.where(tail.scale > 0, tail.mass, 0.0)
        total: FloatArray = np.logaddexp(density, np.log(kernels) + inside._log_density(y))
        return total
