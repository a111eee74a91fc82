"""How much more frequent a row is in a new table than in a reference one: ratios of densities.

A classifier that tells the tables apart gives the ratio: its odds, divided by the numbers of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.polynomial import legendre
from scipy.special import expit

from kdcal_core.calibration.one_vs_rest import fit_logistic
from kdcal_core.data import FloatArray, IntArray, fit_and_held, stratified_folds
from kdcal_core.data.binning import bin_sums
from kdcal_core.data.equal_rows import are_fine, equal_rows, row_keys
from kdcal_core.diagnostics.targets import Target
from kdcal_core.errors import InputError
from kdcal_core.statistics import Dependence

CELLS = 256
DEGREES = 4
"""Degree of the polynomial of the score's rank behind the ratio of the scores' densities."""

FOLDS = 5
_STEPS = 60


@dataclass(frozen=True, eq=False)
class Grid:
    """Reference and new scores in cells of neighbouring scores, at most :data:`CELLS`.

    Attributes
    ----------
    hit, miss, new : (C,) array
        Reference rows with and without the event, and new rows, in each cell.
    reference_cell, new_cell : (n,), (m,) array of int
        Cell of each row.
    curve : (C, 2) array
        Logarithms of score and 1 - score, for beta calibration.
    ranks : (C, J) array
        Polynomials of the cell's rank.
    """

    hit: FloatArray
    miss: FloatArray
    new: FloatArray
    reference_cell: IntArray
    new_cell: IntArray
    curve: FloatArray
    ranks: FloatArray

    @property
    def size(self) -> int:
        """Number of cells C."""
        return len(self.new)


@dataclass(frozen=True, eq=False)
class RowRatios:
    """Density of the new rows over the reference one, at reference (n,) and new (m,) rows."""

    reference: FloatArray
    new: FloatArray


def score_grid(target: Target, new: FloatArray) -> Grid:
    """Cells of the pooled scores: one for each distinct score, or as many rows in each.

    Scores are drawn half a row towards one half, s -> (s n + 1/2) / (n + 1) with n reference rows,
    so that their logarithms are finite.
    """
    both = np.concatenate([target.score, new])
    distinct, cell = np.unique(both, return_inverse=True)
    if len(distinct) > CELLS:
        place = np.cumsum(bin_sums(cell, len(distinct))) - 1.0
        _, merged = np.unique((place * CELLS / len(both)).astype(np.int64), return_inverse=True)
        cell = merged[cell]
    size = int(cell.max()) + 1
    count = bin_sums(cell, size)
    n = len(target.score)
    middle = (bin_sums(cell, size, both) / count * n + 0.5) / (n + 1.0)
    curve = np.column_stack([np.log(middle), np.log1p(-middle)])
    rank = (np.cumsum(count) - 0.5 * count) / len(both) * 2.0 - 1.0
    old, fresh = cell[:n], cell[n:]
    return Grid(
        hit=bin_sums(old, size, target.hit),
        miss=bin_sums(old, size, 1.0 - target.hit),
        new=bin_sums(fresh, size),
        reference_cell=old,
        new_cell=fresh,
        curve=curve,
        ranks=legendre_columns(rank, min(DEGREES, size - 1)),
    )


def legendre_columns(rank: FloatArray, degrees: int) -> FloatArray:
    """Legendre polynomials of degree 1 to ``degrees`` at ranks (C,) in [-1, 1], (C, degrees)."""
    return np.asarray(legendre.legvander(rank, degrees)[:, 1:])


def score_ratios(grid: Grid, old: FloatArray, new: FloatArray) -> FloatArray:
    """Ratio of the densities in each cell for masses (C,) or (D, C) of the tables: (D, C).

    A logistic classifier on polynomials of the rank; half a row of each table is added, spread over
    all cells, so that tables without common scores still give finite ratios.
    """
    old, new = np.atleast_2d(old), np.atleast_2d(new)
    spread = old + new
    spread = spread / spread.sum(axis=1, keepdims=True)
    fitted = batched_logistic(grid.ranks, new + 0.5 * spread, old + 0.5 * spread)
    odds = fitted[:, :-1] @ grid.ranks.T + fitted[:, -1:]
    sizes = old.sum(axis=1, keepdims=True) / new.sum(axis=1, keepdims=True)
    return np.asarray(np.exp(np.minimum(odds, 50.0)) * sizes)


def batched_logistic(columns: FloatArray, yes: FloatArray, no: FloatArray) -> FloatArray:
    """Logistic regressions on the same columns (C, p), one for each row of masses (D, C).

    Newton's method with step halving on all D at once.

    Returns
    -------
    (D, p + 1) array
        Slopes, and the offset last.

    Examples
    --------
    >>> columns = np.array([[0.0], [1.0]])
    >>> batched_logistic(columns, np.array([[1.0, 3.0]]), np.array([[1.0, 1.0]])).round(3)
    array([[1.099, 0.   ]])
    """
    design = np.column_stack([columns, np.ones(len(columns))])
    mean, deviation = design[:, :-1].mean(axis=0), design[:, :-1].std(axis=0) + 1e-9
    design[:, :-1] = (design[:, :-1] - mean) / deviation
    total = yes + no
    p = design.shape[1]
    at = np.zeros((len(yes), p))
    at[:, -1] = np.log(yes.sum(axis=1) / no.sum(axis=1))
    outer = (design[:, :, None] * design[:, None, :]).reshape(len(design), p * p)

    def loss(at: FloatArray) -> FloatArray:
        odds = at @ design.T
        # log(1 + e^x) without numpy's logaddexp, which takes three times as long
        soft = np.log1p(np.exp(-np.abs(odds))) + np.maximum(odds, 0.0)
        return np.asarray((total * soft - yes * odds).sum(axis=1))

    value, rounding = loss(at), 1e-12 * total.sum(axis=1)
    for _ in range(_STEPS):
        fitted = expit(at @ design.T)
        gradient = (total * fitted - yes) @ design
        bend = (total * fitted * (1.0 - fitted)) @ outer
        bend = bend.reshape(-1, p, p) + 1e-9 * total.sum(axis=1)[:, None, None] * np.eye(p)
        step = np.linalg.solve(bend, gradient[:, :, None])[:, :, 0]
        size = np.ones(len(at))
        moved = loss(at - step)
        for _ in range(20):
            worse = ~(moved <= value + rounding)
            if not worse.any():
                break
            size[worse] *= 0.5
            moved = loss(at - size[:, None] * step)
        better = moved < value
        at = np.where(better[:, None], at - size[:, None] * step, at)
        gain = np.where(better, value - moved, 0.0)
        value = np.minimum(moved, value)
        if (gain < 100.0 * rounding).all():
            break
    at[:, :-1] /= deviation
    at[:, -1] -= at[:, :-1] @ mean
    return at


def feature_ratios(
    features: Any, new_features: Any, seed: int, dependence: Dependence | None = None
) -> RowRatios:
    """Ratio of the densities from features, by gradient boosted trees, cross-fitted in 5 folds.

    The log odds of rows that a fit has not seen are calibrated by Platt's scaling, because boosted
    trees exaggerate the difference of two tables that are alike. A row that is in both tables is
    held out of a fit with its copy, which would otherwise say that the row is of the other table.
    Where rows are of clusters, these are held out whole, because a cluster is known by its inputs.

    Parameters
    ----------
    features, new_features : (n, d), (m, d) array-like or DataFrame
        Numbers, booleans or categories; missing values are allowed.
    seed : int
    dependence : Dependence, optional
        Of the n + m rows, the reference rows first.

    Raises
    ------
    InputError
        If the columns differ, or a table has fewer rows than there are folds.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier  # slow to import

    old, new = pd.DataFrame(features), pd.DataFrame(new_features)
    if list(old.columns) != list(new.columns):
        raise InputError(
            "The two tables do not have the same columns of features",
            fix="Give the same columns in the same order.",
        )
    both = pd.concat([old, new], ignore_index=True)
    for name in both.columns:
        if not (pd.api.types.is_numeric_dtype(both[name].dtype)):
            both[name] = both[name].astype(str).astype("category").cat.codes
    fresh = (np.arange(len(both)) >= len(old)).astype(np.int64)
    odds = np.empty(len(both))
    clusters = dependence is not None and dependence.kind == "cluster"
    together = dependence if clusters else _copies(both, len(old))
    for fit, held in fit_and_held(stratified_folds(fresh, FOLDS, seed, together)):
        model = HistGradientBoostingClassifier(
            max_iter=60, max_leaf_nodes=15, l2_regularization=1.0, random_state=seed
        )
        model.fit(both.iloc[fit], fresh[fit])
        odds[held] = model.decision_function(both.iloc[held])
    mapped, _ = fit_logistic([odds], fresh.astype(np.float64), np.ones(len(both)))
    ratio = np.exp(np.clip(mapped[0] * odds + mapped[1], -50.0, 50.0)) * len(old) / len(new)
    return RowRatios(ratio[: len(old)], ratio[len(old) :])


def _copies(both: pd.DataFrame, n_old: int) -> Dependence | None:
    """Equal rows as clusters; None where the tables share no more rows than chance gives."""
    keys = row_keys(both)
    shared = equal_rows(keys[:n_old], keys[n_old:], fine=are_fine(both))
    return Dependence.of("cluster", keys) if shared.beyond_chance else None
