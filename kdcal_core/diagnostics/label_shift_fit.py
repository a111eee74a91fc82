"""Whether any shares of the classes explain new posteriors: a test of label shift itself."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls
from scipy.stats import f as f_distribution

from kdcal_core.data import FloatArray, IntArray, at_most
from kdcal_core.statistics import Dependence, pooled, small_sample_factor

_MOST_ROWS = 100_000  # of each table: more hardly add power
_CELLS, _ROWS_OF_CELL = (3, 10), 20
_ROUNDS = 3  # of weighing anew with the shares found
_SUM = 1e6  # weight of the equation that shares sum to one
_NULL = 1e-10  # of the largest eigenvalue: directions without variance


def label_shift_fit(
    new: FloatArray,
    proba: FloatArray,
    y: IntArray,
    *,
    dependence: Dependence | None = None,
    seed: int = 0,
) -> float:
    """p value of the hypothesis that only the shares of the classes changed.

    Parameters
    ----------
    new : (m, K) array
        Posteriors of the new rows. They need not be calibrated.
    proba : (n, K) array
        Those of the reference rows.
    y : (n,) array of int
        True classes of the reference rows.
    dependence : Dependence, optional
        Of the n + m rows, the reference rows first.
    seed : int
        Of the draw of rows from tables of more than 100,000.

    Returns
    -------
    float
        NaN where a class has too few reference rows, or clusters, for a test.

    Notes
    -----
    If rows of class k look as before, the mean of any function g of the posteriors in the new table
    is the sum over the classes of s_k E[g | k], with the new shares s. The means are compared with
    the best such sum by their Mahalanobis distance, which is Hansen's test of overidentifying
    restrictions (1982), by the F distribution for few rows. For two classes g are 3 to 10 cells
    with equally many rows of both tables, else the posteriors and their squares. A share that would
    be negative is 0 and then costs no degree of freedom.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def table(share, wider=1.0, n=2000):
    ...     y = (rng.random(n) < share).astype(int)
    ...     odds = 2.0 * (wider * rng.normal(size=n) + 2.0 * y - 1.0)
    ...     return np.column_stack([1 / (1 + np.exp(odds)), 1 / (1 + np.exp(-odds))]), y
    >>> proba, y = table(0.3)
    >>> label_shift_fit(table(0.7)[0], proba, y) > 0.05
    True
    >>> label_shift_fit(table(0.3, wider=2.0)[0], proba, y) < 0.001
    True
    """
    kept = [at_most(len(rows), _MOST_ROWS, seed) for rows in (proba, new)]
    together = None if dependence is None or dependence.alone else dependence
    if together is not None:
        together = together.only(np.concatenate([kept[0], len(proba) + kept[1]]))
    proba, y, new = proba[kept[0]], y[kept[0]], new[kept[1]]
    n, k = proba.shape
    fewest = _fewest(y, n, len(new), k, together)
    g = _functions(np.concatenate([proba, new]), fewest)
    if fewest < 2:
        return float("nan")
    count = np.bincount(y, minlength=k)
    of_class = np.stack([g[:n][y == one].mean(axis=0) for one in range(k)])
    seen = g[n:].mean(axis=0)
    shares = np.full(k, 1.0 / k)
    for _ in range(_ROUNDS):
        parts = np.concatenate(
            [(of_class[y] - g[:n]) * (shares / count)[y, None], (g[n:] - seen) / len(new)]
        )
        root = _whitening(_variance(parts, together))
        shares, _ = nnls(
            np.vstack([root @ of_class.T, np.full((1, k), _SUM)]), np.append(root @ seen, _SUM)
        )
        shares /= shares.sum()
    q, free = len(root), int((shares > 0.0).sum()) - 1
    if q <= free or fewest <= q:
        return float("nan")
    distance = float(np.square(root @ (seen - shares @ of_class)).sum())
    scaled = distance * (fewest - q) / ((fewest - 1) * (q - free))
    return float(f_distribution.sf(scaled, q - free, fewest - q))


def _fewest(y: IntArray, n: int, m: int, k: int, together: Dependence | None) -> int:
    """Rows, or clusters or times, of the class or table that has fewest: they bound what is known.

    A variance that mostly stems from them is known no better than they are many.
    """
    if together is None:
        return int(min(np.bincount(y, minlength=k).min(), m))
    unit = together.unit
    sets = [unit[:n][y == one] for one in range(k)]
    return min(len(np.unique(one)) for one in (*sets, unit[n:]))


def _functions(proba: FloatArray, fewest: int) -> FloatArray:
    """What is averaged of each row's posteriors, (n, q), without linear dependence by design."""
    if proba.shape[1] > 2:
        return np.column_stack([proba[:, :-1], np.square(proba)])
    cells = int(np.clip(fewest // _ROWS_OF_CELL, *_CELLS))
    ends = np.unique(np.quantile(proba[:, 1], np.linspace(0.0, 1.0, cells + 1)[1:-1]))
    return np.asarray(np.eye(len(ends) + 1)[np.searchsorted(ends, proba[:, 1])][:, :-1])


def _variance(parts: FloatArray, together: Dependence | None) -> FloatArray:
    """Variance (q, q) of the sum of each row's part (n, q)."""
    if together is None:
        return np.asarray(parts.T @ parts)
    sums = pooled(parts.T, together)
    factor = small_sample_factor(len(np.unique(together.unit)), together.lags)
    return np.asarray(factor * (sums @ sums.T))


def _whitening(variance: FloatArray) -> FloatArray:
    """R (r, q) with R V R' = 1, for the r directions that vary."""
    values, vectors = np.linalg.eigh(variance)
    kept = values > _NULL * max(float(values.max()), 1e-300)
    return np.asarray((vectors[:, kept] / np.sqrt(values[kept])).T)
