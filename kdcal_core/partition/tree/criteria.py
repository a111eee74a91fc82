"""What a split is worth: sums over the rows of a node's two sides, and a gain computed from them.

A criterion gives each row a cell and some values. The kernels sum the values at every code of
every column, cell by cell; the rest is plain numpy, so that a new criterion is a small class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kdcal_core.errors import InputError

FloatArray = NDArray[np.float64]
LEAST_VARIANCE = 1e-6  # of a row: a certainty that fails counts for much, but not for everything


@dataclass(frozen=True, eq=False)
class RowStats:
    """What is summed over rows.

    Attributes
    ----------
    cells : (n,) uint8
        The cell that a row's values go to, for example its class, below ``n_cells``.
    n_cells : int
    values : (n, v) float64
    """

    cells: NDArray[np.uint8]
    n_cells: int
    values: FloatArray

    def __post_init__(self) -> None:
        # the kernels index by cell and check no bound
        cells, values = self.cells, self.values
        if (
            cells.dtype != np.uint8
            or cells.ndim != 1
            or values.dtype != np.float64
            or values.ndim != 2
            or len(values) != len(cells)
            or cells.max(initial=0) >= self.n_cells
        ):
            raise InputError(
                "What a criterion sums does not fit together",
                fix="Give each row a cell below the number of cells, and its values.",
            )

    def __len__(self) -> int:
        return len(self.cells)


class Criterion(Protocol):
    """What :func:`grow_tree` asks of a criterion. Sums are (..., n_cells, v)."""

    @property
    def stats(self) -> RowStats:
        """The cells and values of the n rows."""

    def gain(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Worth of splits with these sums on their two sides; not above zero: no worth.

        It is additive over nodes, so that best-first growth can compare them: a sum over rows,
        not a mean.
        """

    def order(self, sums: FloatArray) -> FloatArray:
        """A number for each category of a node, by which neighbours stay together in a split."""


class Gini:
    """Decrease of the Gini impurity, in rows: the squared difference of the sides' class shares.

    The gain of sides L and R is ``w_L w_R / w * sum_k (p_Lk - p_Rk)**2``, which is the sum of
    ``w_node * impurity`` before less that after the split.

    Parameters
    ----------
    y : (n,) classes 0 to K - 1, or (n, K) shares of each class, none below zero
    weight : (n,), optional
        Not below zero; scaled to a mean of 1.

    Examples
    --------
    >>> score = Gini(np.array([0, 0, 1, 1]))
    >>> float(score.gain(np.array([[2.0], [0.0]]), np.array([[0.0], [2.0]])))
    2.0
    """

    def __init__(self, y: NDArray[Any], weight: NDArray[Any] | None = None) -> None:
        y = np.asarray(y)
        weights = _weights(weight, len(y))[:, None]
        if y.ndim == 1:
            classes = _classes(y)
            n_classes = int(classes.max(initial=0)) + 1
            self._stats = RowStats(classes, max(n_classes, 2), weights)
        else:
            shares = _numbers(y, "The shares of the classes", least=0.0)
            if shares.ndim != 2:
                raise InputError(
                    f"The shares of the classes have shape (rows, classes), not {shares.shape}",
                    fix="Give one column a class.",
                )
            self._stats = RowStats(np.zeros(len(y), dtype=np.uint8), 1, shares * weights)

    @property
    def stats(self) -> RowStats:
        return self._stats

    def gain(self, left: FloatArray, right: FloatArray) -> FloatArray:
        a, b = _flat(left), _flat(right)
        weight_a, weight_b = a.sum(axis=-1), b.sum(axis=-1)
        between = _shares(a, weight_a) - _shares(b, weight_b)
        gain: FloatArray = _over(weight_a * weight_b, weight_a + weight_b) * (between**2).sum(-1)
        return gain

    def order(self, sums: FloatArray) -> FloatArray:
        """Share of the node's largest class: the best order there is where classes are two."""
        flat = _flat(sums)
        largest = flat.sum(axis=tuple(range(flat.ndim - 1))).argmax()
        return _over(flat[..., largest], flat.sum(axis=-1))


class Residual:
    """Evidence that residuals do not average zero, beyond that of the two sides taken as one.

    With r the sum of the residuals and v that of their variances, a side's evidence is
    ``r**2 / v``: a chi-square of one degree of freedom where the residuals have mean zero. The
    gain is ``r_L**2 / v_L + r_R**2 / v_R - r**2 / v``.

    Parameters
    ----------
    residual : (n,)
        For example y - p, or PIT - 1/2.
    variance : (n,)
        Of each residual where nothing is wrong, for example p (1 - p), or 1/12. Not below zero,
        taken as at least 1e-6.
    weight : (n,), optional
        Not below zero; scaled to a mean of 1.

    Examples
    --------
    >>> score = Residual(np.array([0.5, 0.5, -0.5, -0.5]), np.full(4, 0.25))
    >>> left, right = np.array([[1.0, 0.5]]), np.array([[-1.0, 0.5]])
    >>> float(score.gain(left, right))
    4.0
    """

    def __init__(
        self,
        residual: NDArray[Any],
        variance: NDArray[Any],
        weight: NDArray[Any] | None = None,
    ) -> None:
        r = _numbers(residual, "The residuals")
        v = _numbers(variance, "The variances of the residuals", least=0.0)
        if r.ndim != 1 or r.shape != v.shape:
            raise InputError(
                f"Residuals and variances are one number a row each, not {r.shape} and {v.shape}",
                fix="Compute both from the same rows.",
            )
        w = _weights(weight, len(r))
        values = np.stack([w * r, w**2 * np.maximum(v, LEAST_VARIANCE)], axis=1)
        self._stats = RowStats(np.zeros(len(r), dtype=np.uint8), 1, values)

    @property
    def stats(self) -> RowStats:
        return self._stats

    def gain(self, left: FloatArray, right: FloatArray) -> FloatArray:
        r_a, v_a = left[..., 0, 0], left[..., 0, 1]
        r_b, v_b = right[..., 0, 0], right[..., 0, 1]
        return _over(v_a * v_b, v_a + v_b) * (_over(r_a, v_a) - _over(r_b, v_b)) ** 2

    def order(self, sums: FloatArray) -> FloatArray:
        """Mean residual in units of its variance: some split along it is the best of all."""
        return _over(sums[..., 0, 0], sums[..., 0, 1])


def _flat(sums: FloatArray) -> FloatArray:
    """The classes as one axis, be they cells or values."""
    return sums.reshape(*sums.shape[:-2], -1)


def _shares(sums: FloatArray, weight: FloatArray) -> FloatArray:
    return _over(sums, weight[..., None])


def _over(a: FloatArray, b: FloatArray) -> FloatArray:
    """``a / b``, 0 where there is nothing to divide by."""
    out: FloatArray = np.zeros(np.broadcast_shapes(a.shape, b.shape))
    np.divide(a, b, out=out, where=b > 0)
    return out


def _classes(y: NDArray[Any]) -> NDArray[np.uint8]:
    whole = y.dtype.kind in "iub"
    if not whole or (len(y) and (y.min() < 0 or y.max() > 255)):
        raise InputError(
            "Classes are whole numbers from 0 to 255", fix="Number the classes from 0."
        )
    return y.astype(np.uint8)


def _weights(weight: NDArray[Any] | None, n: int) -> FloatArray:
    if weight is None:
        return np.ones(n)
    found = _numbers(weight, "The weights", least=0.0)
    if found.shape != (n,) or not found.sum():
        raise InputError(
            f"The weights are one number for each of {n:,} rows and not all zero",
            fix="Give one weight a row.",
        )
    scaled: FloatArray = found / found.mean()
    return scaled


def _numbers(values: NDArray[Any], what: str, least: float = -np.inf) -> FloatArray:
    found = np.ascontiguousarray(values, dtype=np.float64)
    bad = ~(np.isfinite(found) & (found >= least))
    if bad.any():
        raise InputError(
            f"{what} must be finite" + (" and not below zero" if least == 0 else ""),
            fix="Fill or leave out such rows.",
            row=int(np.argwhere(bad)[0][0]) + 1,
        )
    return found
