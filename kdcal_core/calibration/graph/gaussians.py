"""Rows located in the partition, and the centre and variances of each polytope's Gaussian.

Also the Gaussian's logarithm at a row, and quotients that are safe where densities are zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

from kdcal_core.data import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Located:
    """What a kernel density graph needs of rows: their coordinates and polytopes.

    Attributes
    ----------
    x : (m, d) float64
        Coordinates after encoding and scaling.
    index : (m,) int64
        The polytope that represents the row.
    tied : (m,) bool
        Whether the kernel was equal for another polytope, so that the nearer centre decided.
    proba : (m, K) float64 or None
        The model's probabilities, which a blend needs; None if they were not requested.
    """

    x: FloatArray
    index: IntArray
    tied: NDArray[np.bool_]
    proba: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.index)


_LOG_2PI = float(np.log(2 * np.pi))
_BLOCK_CELLS = 1 << 16


def fit_gaussians(
    x: FloatArray, index: IntArray, n_polytopes: int, weight: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Mean and mean squared deviation of each polytope's rows (Dey et al., Eqs. 14 and 15).

    The variance floor is not included. It is added when densities are computed, for polytopes of
    any size.

    Parameters
    ----------
    x : (n, d) array
    index : (n,) array of int
        Polytope of each row; each polytope must have a row.
    n_polytopes : int
    weight : (n,) array, optional
        Positive weights of the rows.

    Returns
    -------
    centres, variances : (p, d) arrays

    Examples
    --------
    >>> import numpy as np
    >>> fit_gaussians(np.array([[0.0], [2.0], [5.0]]), np.array([0, 0, 1]), 2)[1].tolist()
    [[1.0], [0.0]]
    """
    mass = np.ones(len(index)) if weight is None else weight
    sizes = np.bincount(index, weights=mass, minlength=n_polytopes)
    # Row r of the matrix selects the rows of polytope r: its product with x sums over them.
    members = sparse.csr_array(
        (mass, (index, np.arange(len(index)))), shape=(n_polytopes, len(index))
    )
    centres = np.asarray(members @ x) / sizes[:, None]
    variances = np.zeros_like(centres)
    width = max(1, _BLOCK_CELLS // max(1, len(x)))
    for start in range(0, x.shape[1], width):
        part = slice(start, start + width)
        deviations = x[:, part] - centres[index, part]
        variances[:, part] = np.asarray(members @ deviations**2) / sizes[:, None]
    return centres, variances


def log_normaliser(variances: FloatArray, added: FloatArray) -> FloatArray:
    """Logarithm of each Gaussian's height at its centre, (p,); ``added`` to the variances, (d,)."""
    n_polytopes, n_dimensions = variances.shape
    total = np.zeros(n_polytopes)
    rows = max(1, _BLOCK_CELLS // max(1, n_dimensions))
    for start in range(0, n_polytopes, rows):
        part = slice(start, start + rows)
        total[part] = np.log(variances[part] + added).sum(axis=1)
    height: FloatArray = -0.5 * (total + n_dimensions * _LOG_2PI)
    return height


def log_gaussian(
    located: Located,
    centres: FloatArray,
    variances: FloatArray,
    added: FloatArray,
    normaliser: FloatArray,
) -> FloatArray:
    """Logarithm of the Gaussian of each row's own polytope, (m,).

    Minus infinity if even the logarithm overflows.
    """
    m, n_dimensions = located.x.shape
    squares = np.zeros(m)
    rows = max(1, _BLOCK_CELLS // max(1, n_dimensions))
    for start in range(0, m, rows):
        part = slice(start, start + rows)
        index = located.index[part]
        with np.errstate(over="ignore"):
            deviations = located.x[part] - centres[index]
            deviations *= deviations
            deviations /= variances[index] + added
            squares[part] = deviations.sum(axis=1)
    log_density: FloatArray = normaliser[located.index] - 0.5 * squares
    return log_density


def inside(log_marginal: FloatArray, log_floor: Any) -> FloatArray:
    """M / (M + c), the weight of the polytope against the prior."""
    with np.errstate(invalid="ignore"):
        share = expit(log_marginal - log_floor)
    # Without density and floor the result is the prior.
    result: FloatArray = np.where(np.isneginf(log_marginal), 0.0, share)
    return result


def ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    """Quotient, zero where the whole is zero."""
    quotient: FloatArray = np.divide(part, whole, out=np.zeros(part.shape), where=whole > 0)
    return quotient


def safe_log(values: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        logarithm: FloatArray = np.log(values)
    return logarithm
