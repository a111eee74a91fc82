"""The protocol of predictive distributions: one per row, with results for all rows together.

Distributions and outcomes of rows form a set, and the outcomes have PIT values. Functions that
check shapes and ranges of arguments are at the end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kdcal_core.blocks import on_all_cores
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.errors import InputError
from kdcal_core.statistics import Dependence, DesignedRows
from kdcal_core.text import formatted

Rows = slice | NDArray[Any] | list[int]
Kernel = Callable[[Any, FloatArray], FloatArray]

BLOCK_FLOATS = 2**20
"""Floats of one temporary array of a block: 8 MB, so that several together stay below 64 MB."""


class PredictiveDistribution(ABC):
    """Predictive distributions of n rows.

    Every argument follows one rule of shapes. A scalar, or (n,) with one value for each row, gives
    (n,). (n, g) with g values for each row, or (1, g) with the same g values for all rows, gives
    (n, g). Many rows are computed in blocks.

    Attributes
    ----------
    family : str
        "normal", "lognormal", "gamma", "student_t", "samples", "quantiles", "weighted", "mapped".
    continuous : bool
        False if the distribution function has jumps, as for weighted samples.
    has_density : bool
        False if ``log_density`` is a kernel estimate, as for samples.
    resolved : float
        Probability of the widest central interval that the prediction itself states: 9 / 11 for
        ten samples, 0.9 for quantiles from 0.05 to 0.95, 1 for a family with parameters. Wider
        intervals come from tails that kdcal adds.
    stated_levels : tuple of float or None
        Levels of the quantiles that the prediction states, ascending; None where it states every
        quantile, as a family with parameters does.

    Notes
    -----
    A family implements the kernels ``_cdf``, ``_ppf``, ``_log_density``, ``_crps``, ``_mean`` and
    ``_std``. A kernel only gets (n, g) or (1, g) arguments, and its result broadcasts to (n, g).
    """

    family: ClassVar[str]

    @property
    def continuous(self) -> bool:
        return True

    @property
    def has_density(self) -> bool:
        return True

    @property
    def resolved(self) -> float:
        return 1.0

    @property
    def stated_levels(self) -> tuple[float, ...] | None:
        return None

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __getitem__(self, rows: Rows) -> Self:
        """The chosen rows: a slice, whole numbers, or one bool for each row."""

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The parameters by name: ``from_arrays`` builds the same distributions from them."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self):,} rows)"

    def cdf(self, y: ArrayLike) -> FloatArray:
        """P(Y <= y): the PIT values of Torres et al., section 2, where y are the outcomes.

        Raises
        ------
        InputError
            If ``y`` does not follow the rule of shapes, or has a missing value.

        Examples
        --------
        >>> from kdcal_core.distributions import Normal
        >>> Normal([0.0, 10.0], 1.0).cdf([0.0, 11.0]).round(4).tolist()
        [0.5, 0.8413]
        >>> Normal([0.0, 10.0], 1.0).cdf([[0.0, 10.0]]).round(4).tolist()
        [[0.5, 1.0], [0.0, 0.5]]
        """
        return self._answer(lambda part, at: part._cdf(at), checked_outcomes(y))

    def cdf_left(self, y: ArrayLike) -> FloatArray:
        """P(Y < y); the same as :meth:`cdf` if the distribution function has no jumps."""
        return self._answer(lambda part, at: part._cdf_left(at), checked_outcomes(y))

    def ppf(self, p: ArrayLike) -> FloatArray:
        """The quantile function inf{y : P(Y <= y) >= p}, left-continuous.

        Levels 0 and 1 give the ends of the support, which may be infinite.

        Raises
        ------
        InputError
            If a level lies outside [0, 1], or the shape does not follow the rule.

        Examples
        --------
        >>> from kdcal_core.distributions import Normal
        >>> Normal([0.0, 10.0], 1.0).ppf(0.975).round(2).tolist()
        [1.96, 11.96]
        """
        return self._answer(lambda part, at: part._ppf(at), checked_levels(p))

    def pit(self, y: ArrayLike, draw: ArrayLike) -> FloatArray:
        """PIT values of outcomes (n,), with a uniform draw for each row (n,) if there are jumps.

        See :func:`randomised_pit`, which makes the draws from a seed.
        """
        foot, step, unit = self._jump(checked_outcomes(y, one_a_row=True))
        pit: FloatArray = (foot + np.asarray(draw) * step) / unit
        return pit

    def jump(self, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Foot and top of the jump at each outcome (n,): the PIT values of the draws 0 and 1.

        Examples
        --------
        >>> from kdcal_core.distributions import Empirical
        >>> foot, top = Empirical([[1, 2, 3, 4]]).jump([1.5])
        >>> foot.tolist(), top.tolist()
        ([0.2], [0.4])
        """
        foot, step, unit = self._jump(checked_outcomes(y, one_a_row=True))
        top = foot + step
        foot /= unit
        top /= unit
        return foot, top

    def log_density(self, y: ArrayLike) -> FloatArray:
        """Logarithm of the density at y; minus infinity outside the support.

        Families without a density (samples, weighted samples) give a Gaussian kernel estimate, see
        :class:`Weighted`.
        """
        return self._answer(lambda part, at: part._log_density(at), checked_outcomes(y))

    def mean(self) -> FloatArray:
        """Mean of every row's distribution, (n,)."""
        return self._summary(lambda part: part._mean())

    def std(self) -> FloatArray:
        """Standard deviation of every row's distribution, (n,)."""
        return self._summary(lambda part: part._std())

    def interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        """The central interval of probability ``level``: low (n,) and high (n,).

        Examples
        --------
        >>> from kdcal_core.distributions import Normal
        >>> low, high = Normal(0.0, 1.0).interval(0.95)
        >>> low.round(2).tolist(), high.round(2).tolist()
        ([-1.96], [1.96])
        """
        low, high = central_levels(level)
        return self.ppf(low), self.ppf(high)

    def stated_intervals(self, wanted: Sequence[float]) -> tuple[float, ...]:
        """Probabilities of the central intervals that the prediction states, nearest to ``wanted``.

        ``wanted`` itself where every quantile is stated, or no central interval. Others would
        judge the line that kdcal draws between two quantiles, and not the prediction.

        Examples
        --------
        >>> from kdcal_core.distributions import Normal, Quantiles
        >>> Normal(0.0, 1.0).stated_intervals([0.5, 0.95])
        (0.5, 0.95)
        >>> Quantiles([0.05, 0.95], [[-1.0, 1.0]]).stated_intervals([0.5, 0.8, 0.95])
        (0.9,)
        """
        return nearest_intervals(self.stated_levels, wanted)

    def sample(self, m: int, seed: int) -> FloatArray:
        """``m`` random draws of every row, (n, m); the same seed gives the same draws."""
        uniform = np.random.default_rng(seed).random((len(self), m))
        # 0 would be the support's end, which may be infinite
        return self.ppf(np.maximum(uniform, 2.0**-54, out=uniform))

    def crps(self, y: ArrayLike) -> FloatArray:
        """Continuous ranked probability score, (n,): the integral of (F(t) - 1{t >= y})^2 over t.

        In the units of y; lower is better. It has a closed form, except for :class:`Mapped`.

        Examples
        --------
        >>> from kdcal_core.distributions import Normal
        >>> Normal(0.0, 1.0).crps(0.0).round(4).tolist()
        [0.2337]
        """
        outcomes = checked_outcomes(y, one_a_row=True)
        return self._answer(lambda part, at: part._crps(at), outcomes)

    # kernels

    @abstractmethod
    def _cdf(self, y: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _ppf(self, p: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _log_density(self, y: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _crps(self, y: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _mean(self) -> FloatArray: ...

    @abstractmethod
    def _std(self) -> FloatArray: ...

    def _cdf_left(self, y: FloatArray) -> FloatArray:
        return self._cdf(y)

    def _jump(self, y: FloatArray) -> tuple[FloatArray, FloatArray | float, FloatArray | float]:
        """Foot and height of the jump at each outcome, both in the same unit, and one in it."""
        top = self.cdf(y)
        if self.continuous:
            return top, 0.0, 1.0
        foot = self.cdf_left(y)
        return foot, top - foot, 1.0

    @property
    def _width(self) -> int:
        """Floats that a kernel needs for each row in addition to its argument."""
        return 1

    # blocks

    def _answer(self, kernel: Kernel, argument: FloatArray) -> FloatArray:
        table = table_of(argument, len(self))
        shared, g = len(table) == 1, table.shape[1]
        answer = np.empty((len(self), g))

        def compute(rows: slice, part: Self) -> None:
            with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
                answer[rows] = kernel(part, table if shared else table[rows])

        self._in_blocks(self._width + g, compute)
        return answer if argument.ndim == 2 else answer[:, 0]

    def _summary(self, kernel: Callable[[Any], FloatArray]) -> FloatArray:
        answer = np.empty(len(self))

        def compute(rows: slice, part: Self) -> None:
            with np.errstate(over="ignore"):
                answer[rows] = kernel(part)

        self._in_blocks(self._width, compute)
        return answer

    def _in_blocks(self, floats_a_row: int, compute: Callable[[slice, Self], None]) -> None:
        """Call ``compute`` for every block of rows, on all cores where there are several."""
        size = max(1, BLOCK_FLOATS // floats_a_row)
        if len(self) <= size:
            compute(slice(None), self)
            return
        blocks = [slice(start, start + size) for start in range(0, len(self), size)]
        on_all_cores(lambda rows: compute(rows, self[rows]), blocks, note=str)


@dataclass(frozen=True, eq=False)
class RegressionSet(DesignedRows):
    """The regression counterpart of :class:`kdcal_core.data.ScoredSet`.

    Attributes
    ----------
    distribution : PredictiveDistribution
        Of the n rows.
    y : (n,) float64
        Outcomes.
    digest : str
        SHA-256 of the arrays: the key of every cached result.
    name : str
        "calibration" or "evaluation".
    weight : (n,) float64 or None
        Positive row weights.
    true_mean : (n,) float64 or None
        The true conditional mean, if a simulation knows it.
    dependence : Dependence or None
        How the rows depend on one another; None for independent rows.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.distributions import Normal
    >>> RegressionSet(Normal([0.0, 1.0], 1.0), np.array([0.3, 0.8]), "", "calibration").n_rows
    2
    """

    distribution: PredictiveDistribution
    y: FloatArray
    digest: str
    name: str
    weight: FloatArray | None = None
    true_mean: FloatArray | None = None
    dependence: Dependence | None = None

    @property
    def n_rows(self) -> int:
        return int(self.y.shape[0])

    def only(self, rows: IntArray) -> RegressionSet:
        """The set of these rows alone, by position (m,); without a digest, so that none is cached.

        Examples
        --------
        >>> from kdcal_core.distributions import Normal
        >>> three = RegressionSet(Normal([0.0, 1.0, 2.0], 1.0), np.arange(3.0), "", "calibration")
        >>> three.only(np.array([0, 2])).y.tolist()
        [0.0, 2.0]
        """
        return replace(
            self,
            distribution=self.distribution[rows],
            y=self.y[rows],
            digest="",
            weight=None if self.weight is None else self.weight[rows],
            true_mean=None if self.true_mean is None else self.true_mean[rows],
            dependence=None if self.dependence is None else self.dependence.only(rows),
        )


_GOLDEN = (5.0**0.5 - 1.0) / 2.0
_SAMPLED, _FEW_JUMPS, _BLOCK = 10_000, 32, 2**17


def randomised_pit(distribution: PredictiveDistribution, y: ArrayLike, seed: int) -> FloatArray:
    """PIT values p_i = F^_i(y_i), (n,) in [0, 1] (Torres et al., section 2).

    If the distribution function jumps at the outcome, the value lies between the jump's foot and
    its top, so that a calibrated prediction still has uniform PIT values. Rows with the same jump,
    or similar ones, are spread evenly over it instead of drawn independently (:func:`even`). With
    any seed, the share of rows in a bin or in a stated interval is then its expected value, up to
    about one row per jump.

    For m samples the value is (r + U) / (m + 1), where r is the outcome's rank among them (Hamill
    2001; ties are broken at random) and U is uniform. It is exactly uniform if every rank of the
    outcome is equally likely, and never 0 or 1 for an outcome beyond all samples.

    Parameters
    ----------
    distribution : PredictiveDistribution of n rows
    y : (n,) array
    seed : int
        Determines the order of the rows with the same jump.

    Raises
    ------
    InputError
        If ``y`` does not have one number for each row.

    Examples
    --------
    >>> from kdcal_core.distributions import Empirical, Normal
    >>> randomised_pit(Normal([0.0, 0.0], 1.0), [0.0, -3.0], seed=0).round(4).tolist()
    [0.5, 0.0013]
    >>> bool(0.2 <= randomised_pit(Empirical([[1, 2, 3, 4]]), [1.5], seed=0)[0] <= 0.4)
    True
    """
    return even(*distribution.jump(y), seed)


def even(foot: FloatArray, top: FloatArray, seed: int) -> FloatArray:
    """Values between each row's ``foot`` and ``top``, spread evenly over rows with the same two.

    Rows are ordered by both, ties at random, and get multiples of the golden ratio modulo one. Any
    run of these is evenly spread.

    Parameters
    ----------
    foot, top : (n,) arrays
    seed : int

    Examples
    --------
    >>> even(np.full(4, 0.5), np.full(4, 0.6), seed=0).round(3).tolist()
    [0.512, 0.574, 0.55, 0.535]
    """
    jumps = top > foot
    values: FloatArray = foot.copy()
    if not jumps.any():
        return values
    rows = np.random.default_rng(seed).permutation(len(foot))
    resting = np.empty(0)  # rows without a jump have their places too, but no use for them
    if not jumps.all():
        rows, resting = rows[jumps[rows]], np.sort(foot[~jumps])
    known = _few_jumps(foot, top, rows)
    if known is None:
        order = rows[np.lexsort((top[rows], foot[rows]))]
        low = foot[order]
        before = np.arange(len(order)) + np.searchsorted(resting, low, side="right")
        values[order] = low + _evenly(before) * (top[order] - low)
        return values
    number, low, height = known
    count = np.bincount(number[jumps], minlength=len(low))
    following = np.cumsum(count) - count + np.searchsorted(resting, low, side="right")
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        first = np.argsort(number[block], kind="stable")
        block, mine = block[first], number[block][first]
        count = np.bincount(mine, minlength=len(low))
        before = np.arange(len(block)) + (following - np.cumsum(count) + count)[mine]
        values[block] = low[mine] + _evenly(before) * height[mine]
        following += count
    return values


def _evenly(place: IntArray) -> FloatArray:
    """Multiples of the golden ratio modulo one, from a half."""
    x = 0.5 + _GOLDEN * place
    return np.asarray(x - np.floor(x))


def _few_jumps(
    foot: FloatArray, top: FloatArray, rows: IntArray
) -> tuple[NDArray[np.uint16], FloatArray, FloatArray] | None:
    """Number of each row's jump, and foot and height of the jumps in order; None of very many.

    Quantiles and small samples have few, in which rows need not be sorted as a whole.
    """
    feet, tops = (np.unique(end[rows[:_SAMPLED]]) for end in (foot, top))
    if max(len(feet), len(tops)) > _FEW_JUMPS:
        return None
    found = np.empty(len(foot), np.uint16)

    def number(block: slice) -> bool:
        """Number the jumps of these rows; whether all of them are known."""
        low, high = np.zeros((2, len(foot[block])), np.uint16)
        for end, known, place in ((foot, feet, low), (top, tops, high)):
            for one in known[1:]:
                place += end[block] >= one
        found[block] = low * len(tops) + high
        right = (feet[low] == foot[block]) & (tops[high] == top[block])
        return bool((right | (foot[block] == top[block])).all())

    blocks = [slice(start, start + _BLOCK) for start in range(0, len(foot), _BLOCK)]
    if not all(on_all_cores(number, blocks, note=str)):
        return None
    low, high = np.repeat(feet, len(tops)), np.tile(tops, len(feet))
    return found, low, high - low


def numbers_of(values: ArrayLike, what: str) -> FloatArray:
    """``values`` as float64, from any kind of numbers."""
    given: NDArray[Any] = np.asarray(values)
    if given.dtype.kind not in "biuf":
        raise InputError(f"{what} must be numbers", fix="Give only numbers, without text.")
    return given.astype(np.float64, copy=False)


def checked_outcomes(y: ArrayLike, *, one_a_row: bool = False) -> FloatArray:
    """Outcomes, none missing; with ``one_a_row``, one finite value for each row (or for all)."""
    values = numbers_of(y, "Outcomes")
    if one_a_row and values.ndim > 1:
        raise InputError(
            f"Outcomes of {values.ndim} dimensions cannot be scored",
            fix="Give one outcome for each row.",
        )
    wrong = ~np.isfinite(values) if one_a_row else np.isnan(values)
    if wrong.any():
        raise InputError(
            f"An outcome is missing{' or infinite' if one_a_row else ''}",
            fix="Leave the row out.",
            row=_first_row(wrong),
        )
    return values


def checked_levels(p: ArrayLike, *, open_ended: bool = False) -> FloatArray:
    """Probability levels in [0, 1], or (0, 1) if ``open_ended``."""
    values = numbers_of(p, "Levels")
    good = (values > 0) & (values < 1) if open_ended else (values >= 0) & (values <= 1)
    if not good.all():
        wrong = np.ravel(values)[~np.ravel(good)][0]
        raise InputError(
            f"The level {formatted(wrong, 'g')} is not a probability",
            fix="Levels lie strictly between 0 and 1." if open_ended else "Levels lie in [0, 1].",
        )
    return values


def central_intervals(levels: Sequence[float] | None) -> tuple[float, ...]:
    """Probabilities of the central intervals between quantiles of these levels, ascending.

    Examples
    --------
    >>> central_intervals([0.05, 0.25, 0.5, 0.75, 0.95])
    (0.5, 0.9)
    """
    ends = {round(one, 9) for one in levels or ()}
    return tuple(sorted(round(1 - 2 * p, 9) for p in ends if p < 0.5 and round(1 - p, 9) in ends))


def nearest_intervals(levels: Sequence[float] | None, wanted: Sequence[float]) -> tuple[float, ...]:
    """As :meth:`PredictiveDistribution.stated_intervals`, of quantiles of these levels."""
    own = central_intervals(levels)
    if not own:
        return tuple(wanted)
    return tuple(sorted({min(own, key=lambda one: abs(one - at)) for at in wanted}))


def central_levels(level: float) -> tuple[float, float]:
    """Levels of the two ends of the central interval of probability ``level``, in (0, 1).

    Computed in decimal arithmetic: in binary (1 - 0.95) / 2 exceeds 0.025, and with 1,000 samples
    the 26th would be used instead of the 25th.

    Examples
    --------
    >>> central_levels(0.95)
    (0.025, 0.975)
    """
    checked_levels(level, open_ended=True)
    exact = Decimal(repr(float(level)))
    return float((1 - exact) / 2), float((1 + exact) / 2)


def table_of(argument: FloatArray, n_rows: int) -> FloatArray:
    """An argument as (n, g), or as (1, g) if all rows share it."""
    if argument.ndim == 0:
        return argument.reshape(1, 1)
    table = argument[:, np.newaxis] if argument.ndim == 1 else argument
    shared = argument.ndim == 2 and len(argument) == 1
    if argument.ndim > 2 or not (shared or len(table) == n_rows):
        raise InputError(
            f"An argument of shape {argument.shape} does not match {n_rows:,} rows",
            fix="Give one value, one for each row, or a table of one row for all or for each.",
        )
    return table


def checked_table(table: ArrayLike, name: str) -> FloatArray:
    """Samples or quantiles as (n, k) float64, all finite, k at least 1."""
    values = numbers_of(table, f"The {name}s")
    if values.ndim != 2 or values.shape[1] == 0:
        raise InputError(
            f"The {name}s have the shape {values.shape}",
            fix=f"Give a table with one row for each prediction and one column for each {name}.",
        )
    size = max(1, _BLOCK // values.shape[1])
    for start in range(0, len(values), size):
        finite = np.isfinite(values[start : start + size])
        if finite.all():
            continue
        row, column = np.argwhere(~finite)[0] + (start, 0)
        raise InputError(
            f"The {name} in place {column + 1:,} of the row is "
            f"{formatted(values[row, column], 'g')}",
            fix="Correct the prediction, or leave the row out.",
            row=int(row) + 1,
        )
    return values


def _first_row(wrong: NDArray[np.bool_]) -> int | None:
    return int(np.argwhere(wrong)[0][0]) + 1 if wrong.ndim else None


def moments(distribution: PredictiveDistribution) -> FloatArray:
    """Mean and standard deviation of every row's distribution, (n, 2), finite.

    An undefined standard deviation is replaced by the largest defined one.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> moments(Normal([1.0, 2.0], 3.0)).tolist()
    [[1.0, 3.0], [2.0, 3.0]]
    """
    both = np.column_stack([distribution.mean(), distribution.std()])
    finite = np.isfinite(both)
    if finite.all():
        return both
    largest = np.where(finite, both, 0.0).max(axis=0)
    return np.asarray(np.where(finite, both, largest))
