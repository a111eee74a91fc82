"""Faults by neighbourhood, corrected for all of them, for a map of the rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chi2

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics.regression.fault import (
    UNIFORM_SPREAD,
    FaultKind,
    leading_fault,
    standard_location,
    standard_scale,
)
from kdcal_core.diagnostics.regression.pit_curves import checked_pit
from kdcal_core.diagnostics.targets import check_level
from kdcal_core.errors import InputError
from kdcal_core.progress import Progress
from kdcal_core.regression.local_test import local_uniformity
from kdcal_core.regression.neighbour_search import NeighbourSearch, Scaling
from kdcal_core.statistics import Dependence


@dataclass(frozen=True, eq=False)
class LocalPit:
    """Faults over neighbourhoods, for a map of the rows.

    Arrays of length C run over the neighbourhoods, each the ``k`` rows nearest to a centre.

    Attributes
    ----------
    xy : (C, 2)
        The centres' coordinates on the map.
    rows : (C,) int
        The centres' rows.
    bias, spread : (C,)
        As in :class:`Fault`, for the neighbourhood.
    coverage : (C,)
        Share of the neighbourhood inside its central intervals of probability ``interval``, from
        the PIT values.
    p_value, adjusted_p : (C,)
        Of uniformity in the neighbourhood, alone and corrected for all neighbourhoods.
    kind : (C,) array of str
        The fault, by ``adjusted_p`` at ``level``.
    k, n : int
        Rows in a neighbourhood, and in total.
    draws, seed : int
        Draws for the null distribution of the largest statistic; seed of these draws and of the
        choice of the centres.
    near : (C, k) int
        The rows of each neighbourhood, ascending; may be left out.
    interval : float
        Probability of the intervals of ``coverage``.
    """

    xy: FloatArray
    rows: IntArray
    bias: FloatArray
    spread: FloatArray
    coverage: FloatArray
    p_value: FloatArray
    adjusted_p: FloatArray
    kind: np.ndarray[tuple[int], np.dtype[np.str_]]
    k: int
    n: int
    level: float
    draws: int
    seed: int
    near: IntArray = field(default_factory=lambda: np.empty((0, 0), np.int64))
    interval: float = 0.95

    @property
    def severity(self) -> FloatArray:
        """How far each neighbourhood is off, (C,), beyond chance or not.

        Its bias, as a share of the largest one possible, and its error of spread together.
        """
        away: FloatArray = np.hypot(self.bias / 0.5, self.spread)
        return away

    @property
    def n_faulty(self) -> int:
        """Number of neighbourhoods with a fault beyond chance."""
        return int((self.kind != "none").sum())

    def around(self, row: int) -> IntArray:
        """The rows of the neighbourhood of a centre, ascending; empty if it is not a centre."""
        (at,) = np.nonzero(self.rows == row)
        return self.near[at[0]] if len(at) and len(self.near) else np.empty(0, np.int64)

    def share(self, kind: FaultKind) -> float:
        """Share of the neighbourhoods with this fault."""
        return float(np.mean(self.kind == kind))

    def table(self) -> pd.DataFrame:
        """One row per neighbourhood: the data of the map, for download."""
        return pd.DataFrame(
            {
                "row": self.rows + 1,
                "x": self.xy[:, 0],
                "y": self.xy[:, 1],
                "bias": self.bias,
                "spread": self.spread,
                "coverage": self.coverage,
                "p_value": self.p_value,
                "adjusted_p": self.adjusted_p,
                "fault": self.kind,
            }
        )


def local_pit(
    pit: Any,
    space: Any,
    xy: Any,
    k: int | None = None,
    *,
    centres: int = 400,
    level: float = 0.95,
    draws: int = 999,
    seed: int = 0,
    interval: float = 0.95,
    dependence: Dependence | None = None,
    progress: Progress | None = None,
) -> LocalPit:
    """Test and describe the PIT values of neighbourhoods spread over a space.

    Parameters
    ----------
    pit : (n,) array in [0, 1]
    space : (n, d) array
        The space that defines which rows are near: inputs, or a layer of the model. Its columns
        are standardised first.
    xy : (n, 2) array
        Coordinates of the rows on the map.
    k : int, optional
        Rows in a neighbourhood; by default a tenth of the rows, between 50 and 500.
    centres : int
        Number of neighbourhoods, at most n.
    level : float
        A fault is named if its corrected p value is below 1 - level.
    draws, seed : int
        Draws, and their seed, for the null distribution of the largest statistic over the
        neighbourhoods, which overlap.
    interval : float
        Probability of the central intervals whose coverage is counted.
    dependence : Dependence, optional
        Of the rows: draws then keep clusters, or neighbouring times, together.
    progress : callable, optional
        Called with the share done and the current step; may raise to cancel.

    Raises
    ------
    InputError
        For values outside [0, 1], arrays that do not match, or a ``k`` below 5 or above n.

    Notes
    -----
    The test is that of :func:`kdcal_core.regression.local_uniformity`: Neyman's smooth test with
    four components. The fault is named as in :func:`fault`. Row weights are not used: all rows of
    a neighbourhood count the same.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.random((1000, 1))
    >>> pit = np.where(x[:, 0] < 0.5, rng.random(1000) ** 3, 1 - rng.random(1000) ** 3)
    >>> found = local_pit(pit, x, np.column_stack([x, x]), centres=20)
    >>> low, high = found.xy[:, 0] < 0.4, found.xy[:, 0] > 0.6
    >>> set(found.kind[low].tolist()), set(found.kind[high].tolist())
    ({'too high'}, {'too low'})
    """
    check_level(level)
    values, _ = checked_pit(pit)
    place = np.asarray(xy, dtype=np.float64)
    if place.shape != (len(values), 2):
        raise InputError(
            f"The map's coordinates have shape {place.shape} for {len(values):,} rows",
            fix="Give two coordinates for each row.",
        )
    found = local_uniformity(
        values,
        space,
        k=k,
        centres=centres,
        level=1.0 - level,
        draws=draws,
        seed=seed,
        dependence=dependence,
        progress=progress,
    )
    near = values[found.near]
    bias, variance = near.mean(axis=1) - 0.5, near.var(axis=1)
    by_moments = 2.0 * chi2.sf(np.square(found.scores[:, :2]).sum(axis=1), 2) < 1.0 - level
    kind = np.array(
        [
            leading_fault(standard_location(b), standard_scale(v)) if plain else "other"
            for b, v, plain in zip(bias, variance, by_moments, strict=True)
        ],
        dtype=np.str_,
    )
    return LocalPit(
        xy=place[found.centres],
        rows=found.centres,
        bias=bias,
        spread=np.sqrt(variance) / UNIFORM_SPREAD - 1.0,
        coverage=(np.abs(near - 0.5) <= interval / 2.0).mean(axis=1),
        p_value=found.p_value,
        adjusted_p=found.adjusted_p,
        kind=np.where(found.needed, kind, "none"),
        k=found.k,
        n=len(values),
        level=level,
        draws=draws,
        seed=seed,
        near=np.sort(found.near, axis=1),
        interval=interval,
    )


def neighbourhoods(space: Any, rows: Any, k: int) -> IntArray:
    """The ``k`` rows nearest to each of the given ``rows``, which are included, (c, k).

    Distances as in :func:`local_pit`: every column of the space is divided by its standard
    deviation, and constant columns are left out. Ties go to the first row.

    Parameters
    ----------
    space : (n, d) or (n,) array, finite
    rows : (c,) array of int
    k : int
        At most n are returned.

    Examples
    --------
    >>> neighbourhoods(np.array([[0.0], [1.0], [5.0], [6.0]]), [0, 3], 2).tolist()
    [[0, 1], [3, 2]]
    """
    x = np.asarray(space, dtype=np.float64)
    x = x[:, np.newaxis] if x.ndim == 1 else x
    scaled = Scaling.of(x)(x)
    return NeighbourSearch(scaled).query(scaled[np.asarray(rows)], min(k, len(x))).index
