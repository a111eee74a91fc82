"""Distributions of several kinds or fits, put together as one: cross-fitted folds, for example."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kdcal_core.data.types import FloatArray, IntArray
from kdcal_core.distributions._shapes import checked_outcomes, table_of
from kdcal_core.distributions.base import Kernel, PredictiveDistribution, Rows
from kdcal_core.errors import InputError


class Concatenated(PredictiveDistribution):
    """Rows whose distributions come from several parts; made by :func:`concatenate`.

    Attributes
    ----------
    parts : tuple of PredictiveDistribution
        None of them empty.
    places : tuple of (n_i,) int arrays
        Which rows each part's rows are.
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

    def pit(self, y: ArrayLike, draw: ArrayLike) -> FloatArray:
        outcomes = np.broadcast_to(checked_outcomes(y, one_a_row=True), len(self))
        answer, draws = np.empty(len(self)), np.asarray(draw)
        for part, place in zip(self.parts, self.places, strict=True):
            answer[place] = part.pit(outcomes[place], draws[place])
        return answer

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
        # no blocks here: every part goes through its own
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
    """Several distributions as one, of whatever families they are.

    Parameters
    ----------
    parts : sequence of PredictiveDistribution
        With n rows together.
    order : (n,) array of int, optional
        Where each row of the parts, laid one after the other, goes: row i becomes row
        ``order[i]``. None: they stay one after the other.

    Raises
    ------
    InputError
        Where ``order`` does not name each of the n rows once.

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
            f"The order does not name each of the {n:,} rows once",
            fix="Give a permutation of 0 to the number of rows less one.",
        )
    return Concatenated(parts, np.split(where, np.cumsum(lengths)[:-1]))
