"""Which exponent of the kernel: held-out log loss over the grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kdcal_core.data import FloatArray

_SAME = 1e-9


@dataclass(frozen=True, eq=False)
class Selection:
    """Held-out log loss for each exponent of the grid.

    Attributes
    ----------
    exponents : (G,) array
        Exponents gamma * log n of the kernel, ascending (Dey et al., Eq. 18).
    gammas : (G,) array
        The same as gamma.
    log_loss : (G,) array
        Mean over the held-out rows, in nats; NaN where no rows are held out.
    standard_error : (G,) array
        Of that mean; NaN for fewer than two rows.
    n : int
        Held-out rows.
    chosen : int
        Position of the exponent in force.
    """

    exponents: FloatArray
    gammas: FloatArray
    log_loss: FloatArray
    standard_error: FloatArray
    n: int
    chosen: int

    @property
    def best(self) -> int:
        """Position of the smallest loss; of equal ones the largest exponent (decision D10)."""
        if self.n == 0:
            return len(self.exponents) - 1
        equal = self.log_loss <= self.log_loss.min() + _SAME
        return int(np.flatnonzero(equal)[-1])

    @property
    def best_gamma(self) -> float:
        """Gamma of the smallest loss."""
        return float(self.gammas[self.best])


def data_floor(log_marginal: FloatArray, alpha: float) -> FloatArray:
    """The k-th smallest held-out log density, k = max(1, floor(alpha (h + 1))), per leading row.

    A fresh row like the held-out ones lies strictly below it with probability at most
    max(alpha, 1 / (h + 1)): the rank of one of h + 1 exchangeable rows is uniform.

    Parameters
    ----------
    log_marginal : (..., h) array, h >= 1
    alpha : float in (0, 1)

    Examples
    --------
    >>> float(data_floor(np.arange(99.0), 0.05))
    4.0
    """
    h = log_marginal.shape[-1]
    k = min(max(1, int(np.floor(alpha * (h + 1) + 1e-9))), h)
    floor: FloatArray = np.partition(log_marginal, k - 1, axis=-1)[..., k - 1]
    return floor
