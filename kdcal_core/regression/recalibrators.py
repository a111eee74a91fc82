"""The list of recalibrators that pages, reports and the command line offer, and what they share.

Each module adds its recalibrators to the list at its end (`RecalibratorSpec.offer`). They share
their protocol, the checks of their inputs, and PIT values that do not saturate: normal
distributions that are far too narrow are widened.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, Self, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import has_fit_parameter

from kdcal_core.data.array_checks import check_weight
from kdcal_core.data.frames import as_pandas
from kdcal_core.data.schema import FloatArray, IntArray
from kdcal_core.distributions import Normal, PredictiveDistribution, randomised_pit
from kdcal_core.errors import InputError, warn
from kdcal_core.offers import offer
from kdcal_core.statistics import Dependence, RowDesign
from kdcal_core.store.estimators import check_array, demand

Kind = Literal["recommended", "local", "global", "forecast", "comparison"]

PIT_EDGE = 2.0**-53
"""Least distance of PIT values from 0 and 1, where a quantile may be infinite."""
MANY_OUTSIDE = 0.01
LEAST_WEIGHT = 1e-60


@runtime_checkable
class Recalibrator(Protocol):
    """Estimates errors of predictive distributions on the calibration set and corrects new ones.

    Neighbours are searched in ``space``, which has one row of coordinates for each row: inputs, or
    a hidden layer of the model (Torres et al., section 3). Recalibrators without neighbours ignore
    it.
    """

    def fit(
        self, distribution: PredictiveDistribution, y: Any, space: NDArray[Any] | None = None
    ) -> Self:
        """Fit to n rows: their predictive distributions, outcomes (n,) and space (n, d).

        Those of kdcal take row weights too (`fit_together`): ``sample_weight``, (n,) or a
        RowDesign, a keyword.
        """
        ...

    def predict(
        self, distribution: PredictiveDistribution, space: NDArray[Any] | None = None
    ) -> PredictiveDistribution:
        """The recalibrated distributions of m new rows, in their order."""
        ...


def fit_together(
    recalibrator: Recalibrator,
    distribution: PredictiveDistribution,
    y: Any,
    space: NDArray[Any] | None = None,
    dependence: Dependence | None = None,
    weight: FloatArray | None = None,
) -> Recalibrator:
    """Fit a recalibrator with the rows' weights, and with their dependence if it takes that.

    Most fits do not take the latter: the dependence of rows changes how sure a fit is, and not what
    it estimates.
    """
    given: dict[str, Any] = {}
    if dependence is not None and getattr(recalibrator, "groups_rows", False):
        given["dependence"] = dependence
    if weight is not None and has_fit_parameter(recalibrator, "sample_weight"):
        given["sample_weight"] = weight
    fitting: Any = recalibrator
    fitted: Recalibrator = fitting.fit(distribution, y, space, **given)
    return fitted


def given_weight(sample_weight: Any, n_rows: int) -> FloatArray | None:
    """Checked weights (n,) of a ``sample_weight``; None where every row counts once.

    Raises
    ------
    InputError
        As of :func:`kdcal_core.data.check_weight`.
    """
    if isinstance(sample_weight, RowDesign):
        sample_weight = sample_weight.weight
    return None if sample_weight is None else check_weight(sample_weight, n_rows)


@dataclass(frozen=True)
class RecalibratorSpec:
    """A recalibrator's entry in the list.

    Attributes
    ----------
    key : str
        Stable identifier for records and the command line.
    title : str
        Full name.
    sentence : str
        What it does, in one sentence.
    make : callable
        Makes an unfitted recalibrator; keyword arguments are those of ``settings``.
    family : str
        What a row's correction is based on: "local" (the rows near it), "global" (all rows) or
        "forecast" (the model's forecast for it). "recommended" chooses among these. "comparison" is
        a method shown only for comparison, which predicts by itself and does not correct the model.
    needs_space : bool
        Whether it searches neighbours in a space, which must be given.
    reference : str
        Where it is described.
    settings : tuple of str
        Names of the settings that may be changed.
    reads_inputs : bool
        Whether its space is always the inputs, whatever the space of neighbours.
    """

    key: str
    title: str
    sentence: str
    make: Callable[..., Recalibrator]
    family: Kind
    needs_space: bool
    reference: str
    settings: tuple[str, ...] = ()
    reads_inputs: bool = False

    @property
    def comparison(self) -> bool:
        """Whether it is shown only for comparison."""
        return self.family == "comparison"

    def offer(self) -> None:
        """Add the recalibrator to the list.

        Raises
        ------
        ValueError
            If another recalibrator has its key.
        """
        offer(self, RECALIBRATORS, get_args(Kind))


RECALIBRATORS: dict[str, RecalibratorSpec] = {}
"""Every recalibrator by key, in the order shown: by family, then as added."""


def check_outcomes(y: Any, n_rows: int) -> FloatArray:
    """Outcomes as an (n,) float64 array of finite numbers, one for each of ``n_rows`` rows.

    Raises
    ------
    InputError
        For no rows, a wrong number of rows, text, or a missing or infinite value, whose first row
        is named.

    Examples
    --------
    >>> check_outcomes([1, 2], 2).tolist()
    [1.0, 2.0]
    >>> check_outcomes([1, float("nan")], 2)
    Traceback (most recent call last):
    ...
    kdcal_core.errors.InputError: An outcome is missing or infinite (row 2). ...
    """
    values = _as_float(y, "outcomes")
    if values.ndim != 1 or len(values) != n_rows or n_rows == 0:
        raise InputError(
            f"There are {n_rows:,} predictive distributions and outcomes of shape {values.shape}",
            fix="Give one outcome for each distribution, and at least one row.",
        )
    wrong = ~np.isfinite(values)
    if wrong.any():
        raise InputError(
            "An outcome is missing or infinite",
            fix="Leave the row out, or fill the value in.",
            row=int(np.argmax(wrong)) + 1,
        )
    return values


def check_space(space: Any, n_rows: int, n_columns: int | None = None) -> FloatArray:
    """Coordinates as an (n, d) float64 array of finite numbers; (n,) becomes one column.

    Parameters
    ----------
    space : array
    n_rows : int
        Expected number of rows.
    n_columns : int, optional
        Expected number of columns, that of the fit.

    Raises
    ------
    InputError
        If the space is missing or has another shape, or a value is missing or infinite, whose first
        row and column (counted from 1) are named.

    Examples
    --------
    >>> check_space([1, 2, 3], 3).shape
    (3, 1)
    """
    if space is None:
        raise InputError(
            "The space in which neighbours are searched is missing",
            fix="Give the inputs or a hidden layer of the model, one row for each row.",
        )
    values = _as_float(space, "space")
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or len(values) != n_rows or 0 in values.shape:
        raise InputError(
            f"The space has the shape {np.shape(space)} and {n_rows:,} rows are expected",
            fix="Give one row of coordinates for each distribution.",
        )
    if n_columns is not None and values.shape[1] != n_columns:
        raise InputError(
            f"The space has {values.shape[1]:,} columns and the fit had {n_columns:,}",
            fix="Give the same inputs, or the same hidden layer, as for the fit.",
        )
    wrong = ~np.isfinite(values)
    if wrong.any():
        row, column = np.unravel_index(int(np.argmax(wrong)), values.shape)
        raise InputError(
            "A coordinate of the space is missing or infinite",
            fix="Leave the row out, or fill the value in.",
            row=int(row) + 1,
            column=str(int(column) + 1),
        )
    return values


def pit_values(distribution: PredictiveDistribution, y: Any, seed: int = 0) -> FloatArray:
    """Values F^_i(y_i) of checked outcomes, (n,), which recalibration applies to other rows.

    If F^ jumps, the value is drawn within the jump. Unlike `randomised_pit`, which tests use, it
    depends on an outcome's position between or beyond the samples of an ensemble, because the tails
    of the recalibrated distributions depend on how far out outcomes lie.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.distributions import Normal
    >>> pit_values(Normal(np.zeros(2), np.ones(2)), [0.0, 1.0]).round(3).tolist()
    [0.5, 0.841]
    """
    outcomes = check_outcomes(y, len(distribution))
    top = distribution.cdf(outcomes)
    if distribution.continuous:
        return top
    foot = distribution.cdf_left(outcomes)
    drawn: FloatArray = foot + np.random.default_rng(seed).random(len(top)) * (top - foot)
    return drawn


def drawn_inside(
    distribution: PredictiveDistribution, y: FloatArray, pit: FloatArray, seed: int = 0
) -> FloatArray:
    """The same PIT values, but drawn from the outer gap instead of 0 or 1 beyond m samples.

    Equal samples, unless they are whole numbers, end their support. A PIT value of 0 or 1 would
    move other rows to the far end of their tails, and only the rank of the outcome is known.

    Examples
    --------
    >>> from kdcal_core.distributions import Empirical
    >>> samples, y = Empirical([[2.5, 2.5, 2.5, 2.5]]), np.array([3.0])
    >>> pit = pit_values(samples, y)
    >>> pit.tolist(), bool(0.8 < drawn_inside(samples, y, pit)[0] < 1)
    ([1.0], True)
    """
    outside = _is_outside(pit)
    if not outside.any():
        return pit
    ranked: FloatArray = np.where(outside, randomised_pit(distribution, y, seed), pit)
    return ranked


def _is_outside(pit: FloatArray) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (pit <= PIT_EDGE) | (pit >= 1 - PIT_EDGE)
    return found


def count_outside(pit: FloatArray, *, stacklevel: int = 3) -> int:
    """Number of outcomes so far out that their PIT value is within 1e-16 of 0 or 1.

    Warns
    -----
    InputWarning
        If there are more than 1%, because no recalibrated interval reaches them (for a normal
        distribution, those beyond 8.2 standard deviations).

    Examples
    --------
    >>> count_outside(np.array([0.0, *np.full(200, 0.5), 1e-300]))
    2
    """
    outside = int(_is_outside(pit).sum())
    if outside > MANY_OUTSIDE * len(pit):
        warn(
            f"{outside:,} of {len(pit):,} calibration outcomes lie outside the support of their "
            "distributions, and no recalibrated interval reaches them. Widen the "
            "stated spread first, or read the model's mean as a single number.",
            stacklevel=stacklevel,
        )
    return outside


def _as_float(values: Any, what: str) -> FloatArray:
    values = as_pandas(values)
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"The {what} are not all numbers", fix="Give numbers; encode text first."
        ) from None


FARTHEST = 8.0
"""Standard deviations from the mean slightly beyond which a PIT value rounds to 0 or 1."""
COMFORTABLE = 5.0
"""Standard deviations from the mean up to which a PIT value near 1 has ten digits of them."""


def widening_of(distribution: PredictiveDistribution, y: FloatArray) -> float:
    """The factor of the spread that gives every outcome a PIT value inside (0, 1).

    Algorithm 1 of Torres et al. maps the PIT values of some rows to others, F^_j^-1(F^_i(y_i)). For
    normal distributions this is mu_j + sigma_j (y_i - mu_i) / sigma_i, which a common factor of all
    sigmas does not change. The factor changes only the precision, which is lost 8.2 sigma from the
    mean, and a network's spread may be ten times too narrow.

    Parameters
    ----------
    distribution : PredictiveDistribution of n rows
    y : (n,) array
        Outcomes, finite.

    Returns
    -------
    float
        1 if no outcome lies so far out, and for all families except the normal one.

    Examples
    --------
    >>> widening_of(Normal([0.0, 0.0], 1.0), np.array([1.0, 40.0]))
    8.0
    """
    if not isinstance(distribution, Normal):
        return 1.0
    farthest = float(np.abs((y - distribution.mean()) / distribution.std()).max())
    return farthest / COMFORTABLE if farthest > FARTHEST else 1.0


def widened(distribution: PredictiveDistribution, factor: float) -> PredictiveDistribution:
    """The same normal distributions with ``factor`` times the spread; others unchanged.

    Examples
    --------
    >>> widened(Normal([1.0], 2.0), 3.0).std().tolist()
    [6.0]
    """
    if factor == 1.0 or not isinstance(distribution, Normal):
        return distribution
    return Normal(distribution.mean(), factor * distribution.std())


class StoredRecalibrator(BaseEstimator):
    """Base class of recalibrators that a file can hold.

    All state of a fitted one is in attributes whose names end with an underscore, as
    `kdcal_core.store.estimators` describes. Methods shown only for comparison are no recalibrators
    and have no file.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}
    groups_rows: ClassVar[bool] = False
    """Whether ``fit`` takes the dependence of the rows; see :func:`fit_together`."""
    of_last_predict: ClassVar[tuple[str, ...]] = ()
    """Attributes that ``predict`` sets, which no file holds."""

    @property
    def needs_space(self) -> bool:
        """Whether the fitted recalibrator searches neighbours in a space."""
        return False

    def check_state(self) -> None:
        """Refuse fitted state, from a file, that contradicts itself.

        Raises
        ------
        InputError
        """


class PitRecalibrator(StoredRecalibrator):
    """Base class of recalibrators made of PIT values of the calibration set.

    Attributes
    ----------
    widening_ : float
        Factor of the spread of normal distributions. It is 1 unless an outcome lies so far out that
        its PIT value would be 0 or 1.
    n_outside_ : int
        Calibration rows whose outcome lies outside their distribution: PIT within 1e-16 of 0 or 1.
    weight_ : (n,) array
        Weights of the calibration rows, where they have some, in the order of ``pit_``.
    """

    seed: int
    weight_: FloatArray

    @property
    def _row_weight(self) -> FloatArray | None:
        """The rows' weights; None where every row counts once."""
        return getattr(self, "weight_", None)

    def _keep_weight(self, weight: FloatArray | None) -> None:
        self.__dict__.pop("weight_", None)  # of an earlier fit
        if weight is not None:  # files of rows without weights are as before
            self.weight_ = weight

    def _times_weight(self, share: FloatArray, index: IntArray) -> FloatArray:
        """Kernel weights of calibration rows (m, k), times the rows' own."""
        weight = self._row_weight
        return share if weight is None else share * weight[index]

    def _check_weight(self, n_rows: int) -> None:
        if self._row_weight is not None:
            check_array(self, "weight_", (n_rows,), low=LEAST_WEIGHT, high=1.0 / LEAST_WEIGHT)

    def _pit_of_fit(
        self, distribution: PredictiveDistribution, y: FloatArray
    ) -> tuple[PredictiveDistribution, FloatArray]:
        """The widened distributions and their PIT values of checked outcomes, (n,)."""
        self.widening_ = widening_of(distribution, y)
        base = widened(distribution, self.widening_)
        pit = pit_values(base, y, self.seed)
        self.n_outside_ = count_outside(pit, stacklevel=4)
        return base, drawn_inside(base, y, pit, self.seed)

    def _base(self, distribution: PredictiveDistribution) -> PredictiveDistribution:
        return widened(distribution, self.widening_)

    def check_state(self) -> None:
        super().check_state()
        demand(type(self.widening_) is float and 1.0 <= self.widening_ < np.inf, "widening_")
        check_count(self, "n_outside_")


def check_inner(recalibrator: Any) -> None:
    """Refuse a recalibrator inside another one that no file can hold, or contradicts itself."""
    demand(isinstance(recalibrator, StoredRecalibrator), "recalibrator_")
    recalibrator.check_state()


def check_count(owner: Any, name: str, least: int = 0, most: float = np.inf) -> None:
    """Refuse an attribute that is no whole number from ``least`` to ``most``."""
    value = getattr(owner, name, None)
    demand(type(value) is int and least <= value <= most, name)


def check_number(owner: Any, name: str, least: float, most: float) -> None:
    """Refuse an attribute that is no finite number from ``least`` to ``most``."""
    value = getattr(owner, name, None)
    demand(isinstance(value, int | float) and least <= value <= most, name)
