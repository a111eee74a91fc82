"""The choice of space and number of neighbours, and cross-fitted distributions.

Space and number of neighbours are chosen by the cross-fitted CRPS of a whole grid in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.blocks import on_all_cores
from kdcal_core.data.schema import FloatArray, IntArray
from kdcal_core.data.splits import at_most, fit_and_held, random_folds
from kdcal_core.distributions import PredictiveDistribution
from kdcal_core.distributions.wrapped import concatenate
from kdcal_core.errors import InputError, quiet
from kdcal_core.progress import Progress, part_of
from kdcal_core.regression.neighbour_search import (
    Kernel,
    NeighbourSearch,
    Scaling,
    kernel_weights,
    sorting_keys,
)
from kdcal_core.regression.recalibrators import (
    PIT_EDGE,
    Recalibrator,
    check_outcomes,
    check_space,
    drawn_inside,
    fit_together,
    given_weight,
    pit_values,
    widened,
    widening_of,
)
from kdcal_core.statistics import Dependence, normal_quantile, small_sample_factor
from kdcal_core.text import number_text, range_text


def cross_fitted(
    recalibrator_factory: Callable[[], Recalibrator],
    distribution: PredictiveDistribution,
    y: Any,
    space: NDArray[Any] | None = None,
    *,
    folds: int = 5,
    seed: int = 0,
    dependence: Dependence | None = None,
    sample_weight: Any = None,
    progress: Progress | None = None,
) -> PredictiveDistribution:
    """Each row's distribution from a recalibrator fitted on the other folds, in row order.

    Parameters
    ----------
    recalibrator_factory : callable
        Makes an unfitted recalibrator for every fold.
    distribution : PredictiveDistribution of n rows
    y : (n,) array
        Outcomes, finite.
    space : (n, d) array, optional
        Space in which neighbours are searched.
    folds : int, default=5
        Number of random parts of equal size, 2 to n.
    seed : int, default=0
        Seed of the division into folds.
    dependence : Dependence, optional
        Of the rows; dependent ones are in one fold, and there are fewer folds where there are fewer
        clusters or times.
    sample_weight : (n,) array or RowDesign, optional
        Positive row weights of the fits.
    progress : callable, optional
        Called with the share done in [0, 1] and a sentence; may raise to cancel.

    Raises
    ------
    InputError
        If the outcomes or the space do not match the rows, or there are fewer rows than folds.

    Notes
    -----
    Warnings of single folds are suppressed: a fit on all rows gives them once.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.distributions import Normal
    >>> from kdcal_core.regression import IsotonicRecalibration
    >>> y = np.random.default_rng(0).normal(1.0, 1.0, 500)  # one higher than predicted
    >>> recalibrated = cross_fitted(IsotonicRecalibration, Normal(np.zeros(500), 1.0), y)
    >>> bool(abs(recalibrated.cdf(y).mean() - 0.5) < 0.02)
    True
    """
    y = check_outcomes(y, len(distribution))
    if space is not None:
        space = check_space(space, len(distribution))
    weight = given_weight(sample_weight, len(y))
    fold = random_folds(len(y), folds, seed, dependence, fewer=dependence is not None)
    report = part_of(progress, 0.0, 1.0)
    parts, places = [], []
    for i, (kept, held) in enumerate(fit_and_held(fold)):
        report(i / folds, f"Fold {i + 1} of {folds}")
        with quiet():
            fitted = fit_together(
                recalibrator_factory(),
                distribution[kept],
                y[kept],
                None if space is None else space[kept],
                None if dependence is None else dependence.only(kept),
                None if weight is None else weight[kept],
            )
            parts.append(fitted.predict(distribution[held], None if space is None else space[held]))
        places.append(held)
    report(1.0, "Cross-fitting done")
    return concatenate(parts, np.concatenate(places))


_BLOCK_FLOATS = 2**20
_COUNTS = (10, 25, 50, 100, 250, 500, 1000, 2000)


def numbers_to_try(n: int, folds: int, *more: int) -> list[int]:
    """Numbers of neighbours to compare on n rows: from 10 to 2,000, and those in ``more``.

    Each is at most the number of rows that a fold is fitted on.

    Examples
    --------
    >>> numbers_to_try(100, 5, 70)
    [10, 25, 50, 70, 80]
    """
    most = n - -(-n // folds)
    return sorted({min(one, most) for one in (*_COUNTS, *more)})


@dataclass(frozen=True, eq=False)
class NeighbourSelection:
    """Scores of each space and number of neighbours; see :func:`select_neighbours`.

    Attributes
    ----------
    spaces : tuple of s str
    ks : (g,) int
        Numbers of neighbours, ascending.
    crps : (s, g)
        Mean cross-fitted CRPS, in units of the outcome; lower is better.
    standard_error : (s, g)
        Standard error of the difference from the smallest CRPS of the grid, paired by row; 0 for
        the best.
    model_crps : float
        Mean CRPS of the model's distributions on the same rows.
    gain, gain_standard_error : float
        Decrease of the model's CRPS by the choice, paired by row.
    best_space, best_k
        The chosen space and number of neighbours.
    n : int
        Number of rows scored.
    folds, seed : int
    """

    spaces: tuple[str, ...]
    ks: IntArray
    crps: FloatArray
    standard_error: FloatArray
    model_crps: float
    gain: float
    gain_standard_error: float
    best_space: str
    best_k: int
    n: int
    folds: int
    seed: int

    @property
    def helps(self) -> bool:
        """Whether the choice is better than the model by more than two standard errors."""
        return self.gain > 2 * self.gain_standard_error

    @property
    def gain_interval(self) -> tuple[float, float]:
        """Ends of the gain's 95% normal interval."""
        reach = normal_quantile(0.95) * self.gain_standard_error
        return self.gain - reach, self.gain + reach

    def reach(self, space: str) -> FloatArray:
        """Half the 95% normal interval of each CRPS's difference from the smallest, (g,)."""
        return normal_quantile(0.95) * np.asarray(self.standard_error[self.spaces.index(space)])

    def words(self, titles: Mapping[str, str] | None = None) -> str:
        """The finding as a sentence.

        Parameters
        ----------
        titles : mapping of str to str, optional
            How the spaces are called in a sentence; by default their names, in quotation marks.
            Untrusted text.
        """
        whole = self.model_crps if self.model_crps > 0 else np.inf  # then no share is lost
        low, share, high = (one / whole for one in sorted((self.gain, *self.gain_interval)))
        if not self.helps:  # as a change, which may be a rise
            low, share, high = -high, -share, -low
        by = (
            f"the CRPS of {number_text(self.model_crps, np.nan)} by "
            f"{number_text(share, high - low, percent=True)} "
            f"({range_text(low, high, percent=True)}; {self.n:,} rows)"
        )
        where = repr(self.best_space) if titles is None else titles[self.best_space]
        chosen = f"{self.best_k:,} neighbours in the space {where}"
        if not self.helps:
            return (
                f"Even the best choice, {chosen}, is not better than the model as it is beyond "
                f"chance: it changes {by}."
            )
        return f"The best choice is {chosen}: it lowers {by}."


def select_neighbours(
    distribution: PredictiveDistribution,
    y: Any,
    spaces: Mapping[str, NDArray[Any]],
    ks: Sequence[int],
    *,
    kernel: Kernel = "epanechnikov",
    folds: int = 5,
    seed: int = 0,
    max_rows: int = 5000,
    dependence: Dependence | None = None,
    sample_weight: Any = None,
    progress: Progress | None = None,
) -> NeighbourSelection:
    """Score local recalibration for every space and k by cross-fitted CRPS (Torres et al., Alg. 1).

    Each row is recalibrated by its neighbours in the other folds. Neighbours are searched once for
    each space and fold, with the largest k. Their PIT values are sorted once, and smaller values of
    k give the same list other weights.

    Parameters
    ----------
    distribution : PredictiveDistribution of n rows
        Distributions of the calibration set.
    y : (n,) array
        Outcomes.
    spaces : mapping of str to (n, d) array
        Inputs, hidden layers, ..., each of which is standardised by column.
    ks : sequence of int
        Numbers of neighbours to compare. Those above the number of rows in the other folds are left
        out.
    kernel : {"epanechnikov", "uniform"}, default="epanechnikov"
    folds : int, default=5
    seed : int, default=0
        Seed of the folds, the rows scored, and randomised PIT values.
    max_rows : int, default=5000
        Maximum number of rows to score, drawn at random from more. Neighbours come from all rows.
    dependence : Dependence, optional
        Of the rows; neighbours then come from other clusters, or other stretches of time, and
        standard errors are of these.
    sample_weight : (n,) array or RowDesign, optional
        Positive row weights: of neighbours, by which the kernel's are multiplied, and of means. The
        number of neighbours counts rows.
    progress : callable, optional

    Raises
    ------
    InputError
        If there is no space, or every k is below 1 or above the number of rows in the other folds.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.distributions import Normal
    >>> rng = np.random.default_rng(0)
    >>> x, noise = rng.normal(size=(2, 1000))
    >>> model = Normal(np.zeros(1000), np.full(1000, np.sqrt(2)))  # it does not know x
    >>> found = select_neighbours(model, x + noise, {"x": x, "noise": rng.random(1000)}, [50, 200])
    >>> found.best_space, found.helps
    ('x', True)
    """
    n = len(distribution)
    y = check_outcomes(y, n)
    if not spaces:
        raise InputError("There is no space to search for neighbours", fix="Give at least one.")
    checked = {name: check_space(space, n) for name, space in spaces.items()}
    weight = given_weight(sample_weight, n)
    fold = random_folds(n, folds, seed, dependence, fewer=dependence is not None)
    folds = int(fold.max()) + 1
    grid = _servable(ks, int(np.bincount(fold).max()), n)
    base = widened(distribution, widening_of(distribution, y))
    pit = drawn_inside(base, y, pit_values(base, y, seed), seed)
    pit = np.clip(pit, PIT_EDGE, 1 - PIT_EDGE)
    keys = sorting_keys(pit)
    scored = at_most(n, max_rows, [seed, 1])
    report = part_of(progress, 0.0, 1.0)
    rows = np.empty((len(checked), len(grid), len(scored)))
    named, many = list(checked.values()), len(checked)

    def fill(at: int) -> None:
        s, i = divmod(at, folds)
        held, kept = np.flatnonzero(fold[scored] == i), np.flatnonzero(fold != i)
        if len(held):
            rows[s][:, held] = _fold_crps(
                base, y, pit, keys, weight, named[s], kept, scored[held], grid, kernel
            )

    def note(at: int) -> str:
        return f"Space {at // folds + 1} of {many}, fold {at % folds + 1} of {folds}"

    on_all_cores(fill, range(many * folds), note=note, progress=report)
    report(1.0, "Neighbours compared")
    model = distribution[scored].crps(y[scored])
    together = None if dependence is None else dependence.only(scored)
    of_scored = None if weight is None else weight[scored]
    return _chosen(tuple(checked), grid, rows, model, folds, seed, together, of_scored)


def _servable(ks: Sequence[int], largest_fold: int, n: int) -> IntArray:
    """The numbers of neighbours for which every fold has enough rows, ascending."""
    grid = np.unique(np.asarray(ks, dtype=np.int64))
    grid = grid[(grid >= 1) & (grid <= n - largest_fold)]
    if not len(grid):
        raise InputError(
            f"None of the numbers of neighbours {list(ks)} fits {n - largest_fold:,} rows",
            fix="Give numbers from 1 to the number of rows in all folds but one.",
        )
    return grid


def _fold_crps(
    distribution: PredictiveDistribution,
    y: FloatArray,
    pit: FloatArray,
    keys: NDArray[Any],
    weight: FloatArray | None,
    space: FloatArray,
    kept: IntArray,
    scored: IntArray,
    ks: IntArray,
    kernel: Kernel,
) -> FloatArray:
    """CRPS of the rows ``scored`` by neighbours among ``kept``, (g, rows)."""
    scaling = Scaling.of(space[kept])
    search = NeighbourSearch(scaling(space[kept]))
    size = max(1, _BLOCK_FLOATS // int(ks[-1]))
    found = np.empty((len(ks), len(scored)))
    for first in range(0, len(scored), size):
        rows = scored[first : first + size]
        near = search.query(scaling(space[rows]), int(ks[-1]))
        found[:, first : first + size] = _crps_of_each_k(
            distribution[rows],
            y[rows],
            pit[kept][near.index],
            keys[kept][near.index],
            near.distance,
            None if weight is None else weight[kept][near.index],
            ks,
            kernel,
        )
    return found


def _crps_of_each_k(
    distribution: PredictiveDistribution,
    y: FloatArray,
    pit: FloatArray,
    keys: NDArray[Any],
    distance: FloatArray,
    weight: FloatArray | None,
    ks: IntArray,
    kernel: Kernel,
) -> FloatArray:
    """CRPS of the weighted sample of Torres et al. for every k, (g, rows).

    With sorted samples, ``CRPS = sum w (z - y) (sign(z - y) + 1 - F - F_left)``, where F and F_left
    are the weighted ECDF at a sample and just before it. One sort thus serves every k.

    Parameters
    ----------
    pit, keys, distance : (rows, largest k)
        PIT values of the neighbours, the nearest first, what sorts them, and distances.
    weight : (rows, largest k), optional
        Their weights.
    """
    from kdcal_core.regression import _nearest_kernels as kernels

    order = np.argsort(keys, axis=1, kind="stable")
    away = distribution.ppf(np.take_along_axis(pit, order, axis=1)) - y[:, np.newaxis]
    found = np.empty((len(ks), len(y)))
    for i, k in enumerate(ks):
        share = kernel_weights(distance[:, :k], kernel)
        if weight is not None:
            share *= weight[:, :k]
        share /= share.sum(axis=1, keepdims=True)
        kernels.weighted_crps(away, order, share, found[i])
    return found


def _chosen(
    spaces: tuple[str, ...],
    ks: IntArray,
    rows: FloatArray,
    model: FloatArray,
    folds: int,
    seed: int,
    together: Dependence | None,
    weight: FloatArray | None,
) -> NeighbourSelection:
    """The grid's means, and the choice."""
    n = len(model)
    crps = np.average(rows, axis=2, weights=weight)
    s, g = np.unravel_index(int(np.argmin(crps)), crps.shape)
    error = _errors(rows - rows[s, g], together, weight)
    gained = model - rows[s, g]
    return NeighbourSelection(
        spaces=spaces,
        ks=ks,
        crps=crps,
        standard_error=error,
        model_crps=float(np.average(model, weights=weight)),
        gain=float(np.average(gained, weights=weight)),
        gain_standard_error=float(_errors(gained, together, weight)),
        best_space=spaces[int(s)],
        best_k=int(ks[g]),
        n=n,
        folds=folds,
        seed=seed,
    )


def _errors(rows: FloatArray, together: Dependence | None, weight: FloatArray | None) -> FloatArray:
    """Standard errors of means over the last axis, those of dependent rows by their totals."""
    n = rows.shape[-1]
    alone = together is None or together.alone
    if alone and weight is None:
        return np.asarray(rows.std(axis=-1) / np.sqrt(n))
    mean = np.average(rows, axis=-1, weights=weight)
    share = 1.0 / n if weight is None else weight / weight.sum()
    away = ((rows - np.expand_dims(mean, -1)) * share).reshape(-1, n)
    if together is None or together.alone:
        return np.asarray(np.sqrt(np.square(away).sum(axis=-1)).reshape(rows.shape[:-1]))
    square = np.square(together.totals(away)).sum(axis=-1).reshape(rows.shape[:-1])
    n_units = len(np.unique(together.unit))
    return np.asarray(np.sqrt(square * small_sample_factor(n_units, together.lags)))
