"""Distributions made of others: recalibrated by a map of probabilities, or concatenated by rows.

Cross-fitted folds, for example, are concatenated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.distributions.distribution import (
    Kernel,
    PredictiveDistribution,
    Rows,
    numbers_of,
    table_of,
)
from kdcal_core.distributions.sampled import BELOW_ONE, SMALLEST, Weighted
from kdcal_core.errors import InputError

NODES = 512


class ThroughMap(PredictiveDistribution):
    """F~ = R(F^): a base's distribution function through maps R of probabilities.

    A subclass has the maps at ``knots`` and ``values``, in ``_map``, and weighted samples or
    quantiles that stand for the distribution, in ``_nodes``.
    """

    base: PredictiveDistribution
    knots: FloatArray
    values: FloatArray

    def __len__(self) -> int:
        return len(self.base)

    @property
    def continuous(self) -> bool:
        return self.base.continuous

    @property
    def has_density(self) -> bool:
        return self.base.has_density

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Knots and values, and the base's arrays under its family, such as "normal.mean"."""
        inner = {f"{self.base.family}.{name}": one for name, one in self.base.arrays().items()}
        return {"knots": self.knots, "values": self.values, **inner}

    def _map(self, probability: FloatArray) -> FloatArray:
        raise NotImplementedError

    def _nodes(self) -> Weighted:
        raise NotImplementedError

    def _cdf(self, y: FloatArray) -> FloatArray:
        return self._map(self.base._cdf(y))

    def _cdf_left(self, y: FloatArray) -> FloatArray:
        return self._map(self.base._cdf_left(y))

    def _crps(self, y: FloatArray) -> FloatArray:
        return self._nodes()._crps(y)

    def _mean(self) -> FloatArray:
        return self._nodes()._mean()


class Mapped(ThroughMap):
    """F~ = R o F^: the base's distribution function through one map R for all rows.

    This is isotonic recalibration (Torres et al., section 2).

    Parameters
    ----------
    base : PredictiveDistribution
        F^, n rows.
    knots, values : (g,) array
        R is linear between these points, from (0, 0) to (1, 1). Knots ascend strictly; values do
        not descend.

    Raises
    ------
    InputError
        If R is not such a map.

    Notes
    -----
    ``ppf`` inverts R exactly and is left-continuous. The density is R'(F^(y)) f^(y), at a knot with
    the slope to its right. Mean, standard deviation and CRPS are those of 512 weighted quantiles,
    which are denser towards levels 0 and 1 (tests measure their errors). The standard deviation of
    a Student t with less than about four degrees of freedom is too small. If the base consists of
    samples, these values are exact: they are those of its samples, weighted by R.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> wider = Mapped(Normal(0.0, 1.0), [0.0, 0.1, 0.9, 1.0], [0.0, 0.2, 0.8, 1.0])
    >>> wider.cdf(-1.2816).round(3).tolist(), wider.ppf(0.2).round(3).tolist()
    ([0.2], [-1.282])
    """

    family: ClassVar[str] = "mapped"

    def __init__(self, base: PredictiveDistribution, knots: ArrayLike, values: ArrayLike) -> None:
        self.base = base
        self.knots, self.values = numbers_of(knots, "Knots"), numbers_of(values, "Values")
        check_map(self.knots, self.values)

    def __getitem__(self, rows: Rows) -> Self:
        chosen = object.__new__(type(self))
        chosen.base, chosen.knots, chosen.values = self.base[rows], self.knots, self.values
        return chosen

    @property
    def _width(self) -> int:
        return self.base._width + NODES + int((np.diff(self.values) == 0).sum())

    def _map(self, probability: FloatArray) -> FloatArray:
        return np.interp(probability, self.knots, self.values)

    def _inverse(self, p: FloatArray) -> FloatArray:
        """The smallest base level whose image reaches p; for level 0 the largest with image 0."""
        after = np.maximum(np.searchsorted(self.values, p, side="left"), 1)
        low, high = self.values[after - 1], self.values[after]
        start, end = self.knots[after - 1], self.knots[after]
        rise = np.where(high > low, high - low, 1.0)
        answer = np.where(p == high, end, start + (p - low) / rise * (end - start))
        lowest = self.knots[np.searchsorted(self.values, 0.0, side="right") - 1]
        return np.where(p == 0, lowest, answer)

    def _ppf(self, p: FloatArray) -> FloatArray:
        return self.base._ppf(self._inverse(p))

    def _log_density(self, y: FloatArray) -> FloatArray:
        samples = self._samples()
        if samples is not None:
            return samples._log_density(y)
        place = np.searchsorted(self.knots, self.base._cdf(y), side="right") - 1
        slope = (np.diff(self.values) / np.diff(self.knots))[np.minimum(place, len(self.knots) - 2)]
        return np.log(slope) + self.base._log_density(y)

    def _std(self) -> FloatArray:
        reaches_the_ends = self.values[1] > 0 or self.values[-2] < 1
        endless = np.isinf(self.base._std()) & reaches_the_ends
        return np.where(endless, np.inf, self._nodes()._std())

    def _samples(self) -> Weighted | None:
        """If the base consists of samples: these samples with the map's weights."""
        base = self.base._samples() if isinstance(self.base, Mapped) else self.base
        if not isinstance(base, Weighted):
            return None
        return Weighted(base.samples, np.diff(self._map(base.cumulative()), axis=1, prepend=0.0))

    def _nodes(self) -> Weighted:
        """The distribution as weighted samples, or quantiles."""
        samples = self._samples()
        if samples is not None:
            return samples
        # levels are dense towards 0 and 1, where quantiles change fast; the quantile function jumps
        # where the map is flat, and no piece crosses a jump
        jumps = self.values[1:][np.diff(self.values) == 0]
        edges = np.union1d(betainc(5.0, 5.0, np.linspace(0, 1, NODES + 1)), jumps)
        levels = (edges[:-1] + edges[1:]) / 2
        inner = np.clip(self._inverse(levels[np.newaxis]), SMALLEST, BELOW_ONE)
        quantiles = np.broadcast_to(self.base._ppf(inner), (len(self), len(levels)))
        return Weighted(quantiles, np.diff(edges))


def check_map(knots: FloatArray, values: FloatArray) -> None:
    fix = "It must go from (0, 0) to (1, 1), with rising knots and values that never fall."
    if knots.ndim != 1 or knots.shape != values.shape or knots.size < 2:
        raise InputError("The map's knots and values are not two lists of equal length", fix=fix)
    ends = (knots[0], values[0], knots[-1], values[-1])
    if ends != (0, 0, 1, 1):
        raise InputError("The map does not go from (0, 0) to (1, 1)", fix=fix)
    if not (np.diff(knots) > 0).all() or not (np.diff(values) >= 0).all():
        raise InputError("The map is not rising", fix=fix)


class Concatenated(PredictiveDistribution):
    """Rows whose distributions come from several parts; made by :func:`concatenate`.

    Attributes
    ----------
    parts : tuple of PredictiveDistribution
        None of them empty.
    places : tuple of (n_i,) int arrays
        The rows of each part.
    """

    family: ClassVar[str] = "concatenated"

    def __init__(
        self, parts: Sequence[PredictiveDistribution], places: Sequence[NDArray[Any]]
    ) -> None:
        kept = [(part, place) for part, place in zip(parts, places, strict=True) if len(part)]
        self.parts = tuple(part for part, _ in kept)
        self.places = tuple(np.asarray(place, dtype=np.int64) for _, place in kept)

    @property
    def continuous(self) -> bool:
        return all(part.continuous for part in self.parts)

    @property
    def has_density(self) -> bool:
        return all(part.has_density for part in self.parts)

    @property
    def resolved(self) -> float:
        return min((part.resolved for part in self.parts), default=1.0)

    @property
    def stated_levels(self) -> tuple[float, ...] | None:
        levels = {part.stated_levels for part in self.parts}
        return levels.pop() if len(levels) == 1 else None

    def _jump(self, y: FloatArray) -> tuple[FloatArray, FloatArray | float, FloatArray | float]:
        outcomes = np.broadcast_to(y, len(self))
        foot, step, unit = np.empty((3, len(self)))
        for part, place in zip(self.parts, self.places, strict=True):
            foot[place], step[place], unit[place] = part._jump(outcomes[place])
        return foot, step, unit

    def __len__(self) -> int:
        return sum(len(place) for place in self.places)

    def __getitem__(self, rows: Rows) -> Self:
        wanted = np.arange(len(self))[rows]
        owner, local = np.empty(len(self), dtype=np.int64), np.empty(len(self), dtype=np.int64)
        for i, place in enumerate(self.places):
            owner[place], local[place] = i, np.arange(len(place))
        places = [np.flatnonzero(owner[wanted] == i) for i in range(len(self.parts))]
        parts = [part[local[wanted[at]]] for part, at in zip(self.parts, places, strict=True)]
        return type(self)(parts, places)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Each part's arrays under its number, and the places of its rows."""
        named: dict[str, NDArray[Any]] = {}
        for i, (part, place) in enumerate(zip(self.parts, self.places, strict=True)):
            named[f"{i}.places"] = place
            named |= {f"{i}.{part.family}.{name}": array for name, array in part.arrays().items()}
        return named

    def _answer(self, kernel: Kernel, argument: FloatArray) -> FloatArray:
        # no blocks here, because each part uses its own
        answer = kernel(self, table_of(argument, len(self)))
        return answer if argument.ndim == 2 else answer[:, 0]

    def _summary(self, kernel: Callable[[Any], FloatArray]) -> FloatArray:
        return kernel(self)

    def _cdf(self, y: FloatArray) -> FloatArray:
        return self._each(lambda part, at: part.cdf(at), y)

    def _cdf_left(self, y: FloatArray) -> FloatArray:
        return self._each(lambda part, at: part.cdf_left(at), y)

    def _ppf(self, p: FloatArray) -> FloatArray:
        return self._each(lambda part, at: part.ppf(at), p)

    def _log_density(self, y: FloatArray) -> FloatArray:
        return self._each(lambda part, at: part.log_density(at), y)

    def _crps(self, y: FloatArray) -> FloatArray:
        return self._each(
            lambda part, at: part.crps(np.broadcast_to(at[:, 0], len(part)))[:, np.newaxis], y
        )

    def _mean(self) -> FloatArray:
        return self._one_a_row(lambda part: part.mean())

    def _std(self) -> FloatArray:
        return self._one_a_row(lambda part: part.std())

    def _each(
        self, kernel: Callable[[PredictiveDistribution, FloatArray], FloatArray], table: FloatArray
    ) -> FloatArray:
        answer = np.empty((len(self), table.shape[1]))
        for part, place in zip(self.parts, self.places, strict=True):
            answer[place] = kernel(part, table if len(table) == 1 else table[place])
        return answer

    def _one_a_row(self, kernel: Callable[[PredictiveDistribution], FloatArray]) -> FloatArray:
        answer = np.empty(len(self))
        for part, place in zip(self.parts, self.places, strict=True):
            answer[place] = kernel(part)
        return answer


def concatenate(
    parts: Sequence[PredictiveDistribution], order: ArrayLike | None = None
) -> PredictiveDistribution:
    """Several distributions, of any families, as one.

    Parameters
    ----------
    parts : sequence of PredictiveDistribution
        With n rows together.
    order : (n,) array of int, optional
        New position of each row of the concatenated parts: row i becomes row ``order[i]``. By
        default rows keep their order.

    Raises
    ------
    InputError
        If ``order`` does not contain each of the n rows once.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> both = concatenate([Normal([0.0, 2.0], 1.0), Normal(1.0, 3.0)], [0, 2, 1])
    >>> both.mean().tolist(), both.std().tolist()
    ([0.0, 1.0, 2.0], [1.0, 3.0, 1.0])
    """
    lengths = [len(part) for part in parts]
    n = sum(lengths)
    where: IntArray = np.arange(n) if order is None else np.asarray(order, dtype=np.int64)
    if where.shape != (n,) or not np.array_equal(np.sort(where), np.arange(n)):
        raise InputError(
            f"The order does not contain each of the {n:,} rows once",
            fix="Give a permutation of 0 to the number of rows minus one.",
        )
    return Concatenated(parts, np.split(where, np.cumsum(lengths)[:-1]))
