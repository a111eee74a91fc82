"""How much the shares of two tables' rows in cells differ by chance, if rows depend on others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.errors import InputError
from kdcal_core.statistics import Dependence, normal_quantile, small_sample_factor, t_quantile

_MOST_UNITS = 2_000


@dataclass(frozen=True, eq=False)
class UnitChanges:
    """What each cluster or time contributes to the shares of rows in C cells, in two tables.

    Attributes
    ----------
    reference, new : (U, C) array
        Of each unit: the deviation of its rows' counts from those that its table's shares give,
        over the table's rows, and scaled for few units.
    of_reference, of_new : Dependence
        Of the units. Those of clusters are the same in both tables, and a cluster may have rows in
        both. Times reach as far as the number of times in their own table allows.
    """

    reference: FloatArray
    new: FloatArray
    of_reference: Dependence
    of_new: Dependence

    @classmethod
    def of(cls, cell: IntArray, size: int, n: int, dependence: Dependence) -> UnitChanges:
        """Of the cells (n + m,), from 0 to ``size`` - 1, of ``n`` reference and then m new rows.

        Raises
        ------
        InputError
            If all rows of a table are of one cluster or time.

        Examples
        --------
        >>> wards = Dependence.of("cluster", np.repeat(np.arange(8), 5))
        >>> found = UnitChanges.of(np.tile([0, 0, 1, 1], 10), 2, 20, wards)
        >>> found.drawn(3, np.random.default_rng(0)).shape
        (3, 2)
        """

        def counted(own: Dependence, rows: slice) -> FloatArray:
            place, cells = own.unit * size + cell[rows], own.n_units * size
            return np.bincount(place, minlength=cells).reshape(own.n_units, size).astype(float)

        return cls._of_tables(counted, n, dependence)

    @classmethod
    def of_means(cls, values: FloatArray, n: int, dependence: Dependence) -> UnitChanges:
        """The same of the means of values (n + m, C) in place of the shares of cells.

        Raises
        ------
        InputError
            As for :meth:`of`.

        Examples
        --------
        >>> wards = Dependence.of("cluster", np.repeat(np.arange(8), 5))
        >>> found = UnitChanges.of_means(np.tile([[0.0], [1.0]], (20, 1)), 20, wards)
        >>> found.drawn(3, np.random.default_rng(0)).shape
        (3, 1)
        """

        def summed(own: Dependence, rows: slice) -> FloatArray:
            columns = [
                np.bincount(own.unit, weights=one[rows], minlength=own.n_units) for one in values.T
            ]
            return np.stack(columns, axis=1)

        return cls._of_tables(summed, n, dependence)

    @classmethod
    def _of_tables(
        cls, sums: Callable[[Dependence, slice], FloatArray], n: int, dependence: Dependence
    ) -> UnitChanges:
        """From the sums (U, C) over the rows of every unit in a table."""
        few = dependence.coarser(_MOST_UNITS)
        parts, depend = [], []
        for rows in (slice(None, n), slice(n, None)):
            own, units = few.only(rows), len(np.unique(dependence.unit[rows]))
            if units < 2:
                raise InputError(
                    f"All rows of a table are of one {few.kind}, so nothing says how much such "
                    "units differ",
                    fix="Count its rows as independent, or give rows of several.",
                )
            total = sums(own, rows)
            each = np.bincount(own.unit, minlength=few.n_units)[:, None]
            away = (total - each * (total.sum(axis=0) / each.sum())) / each.sum()
            wider = t_quantile(0.95, units - 1) / normal_quantile(0.95)
            parts.append(wider * small_sample_factor(units, own.lags) ** 0.5 * away)
            depend.append(replace(own, unit=np.arange(few.n_units)))
        return cls(parts[0], parts[1], depend[0], depend[1])

    @property
    def words(self) -> str:
        """What is counted."""
        return f"{self.of_new.kind}s"

    def drawn(self, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """New minus reference shares by chance, (n_draws, C)."""
        old = fresh = self.of_reference.alike(rng, n_draws)
        if not self._in_both:
            fresh = self.of_new.alike(rng, n_draws)
        return np.asarray(fresh.T @ self.new - old.T @ self.reference)

    def variance(self, reference: FloatArray, new: FloatArray) -> FloatArray:
        """Variances (k,) of the new shares times ``new`` (C, k) minus the reference rows' sum."""
        old = self.of_reference.near((self.reference @ reference).T)
        fresh = self.of_new.near((self.new @ new).T)
        if self._in_both:
            return np.asarray(np.square(fresh - old).sum(axis=1))
        return np.asarray(np.square(fresh).sum(axis=1) + np.square(old).sum(axis=1))

    @property
    def _in_both(self) -> bool:
        """Whether a unit is the same in both tables."""
        return self.of_new.kind == "cluster"
