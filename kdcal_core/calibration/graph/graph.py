"""The fitted kernel density graph: densities, posterior and floor as pure functions of arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from kdcal_core.calibration.calibrator_base import fit_effect
from kdcal_core.calibration.graph.gamma_floor_blend import (
    LARGEST_WEIGHT,
    Blend,
    Selection,
    checked_log_floor,
    checked_prior,
    checked_quantile,
    checked_variance,
    data_floor,
    fallback,
    fit_blend,
    log_n,
)
from kdcal_core.calibration.graph.gaussians import (
    Located,
    inside,
    log_gaussian,
    log_normaliser,
    ratio,
    safe_log,
)
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.errors import InputError
from kdcal_core.statistics import Dependence, DependenceKind, design_effect, kish, surprisal
from kdcal_core.store import decode, errors_name_file, read_archive, write_archive
from kdcal_core.text import formatted

PAPERS_LOG_FLOOR = -1e7
PAPERS_VARIANCE_FLOOR = 1e-6

CLOSE = 0.005
"""How much larger another class's prior may be, so that a row that falls back keeps its class."""
_HAIR = 1e-12
_SAME_GAMMA = 1e-6
# cached parts of a graph: those that depend on the variances, and all of the density
_OF_VARIANCE = ("_log_gaussian_held", "_log_gaussian_far", "_log_normaliser")
_OF_DENSITY = (*_OF_VARIANCE, "_shares", "_log_weight")
_KIND = "kernel density graph"
# Kind and shape of each array of a graph; equal letters mean equal lengths.
_ARRAYS: dict[str, tuple[str, tuple[str, ...]]] = {
    "centres": ("f", ("p", "d")),
    "variances": ("f", ("p", "d")),
    "counts": ("n", ("p", "K")),
    "exponents": ("f", ("G",)),
    "class_masses": ("f", ("G", "p", "K")),
    "prior": ("f", ("K",)),
    "holdout_x": ("f", ("h", "d")),
    "holdout_index": ("i", ("h",)),
    "holdout_tied": ("b", ("h",)),
    "holdout_y": ("i", ("h",)),
    "holdout_proba": ("f", ("h", "K")),
    "holdout_unit": ("i", ("h",)),
    "holdout_weight": ("f", ("h",)),
    "variance_shape": ("f", ("d",)),
    "far_x": ("f", ("q", "d")),
    "far_index": ("i", ("q",)),
}
_HELD = {name for name in _ARRAYS if name.startswith("holdout")}
_FAR = {name for name in _ARRAYS if name.startswith("far")}
_MAY_LACK = {"variance_shape", "holdout_proba", "holdout_unit", "holdout_weight", *_FAR}
_PROBA_SUM = 1e-3  # tolerance for a model in single precision
_DTYPES: dict[str, tuple[Any, ...]] = {
    "f": (np.float64,),
    "i": (np.int64,),
    "b": (np.bool_,),
    "n": (np.int64, np.float64),  # numbers of rows, or sums of their weights
}
_COUNTS_SUM = 1e-4  # tolerance for sums of weights, as a share of the rows


@dataclass(frozen=True, eq=False)
class KernelDensityGraph:
    """Class-conditional densities on a model's polytopes (Dey et al., Eqs. 6 to 19).

    It holds only arrays and no model, so settings change without a fit. A row's density is that of
    the polytope that represents it, ``f~_y(x) = (n~_ry / n~_y) G(x; mu_r, var_r + lambda)`` (Eq.
    19), with n~ the class counts smoothed by the kernel to the power gamma * log n (Eqs. 16 and
    18), and the posterior adds a constant to each density (Eqs. 8 and 9): ``g_y = (f~_y + c) P_y /
    sum_k (f~_k + c) P_k``, c the floor. Inside a polytope that is a mix of a constant class ratio
    and the prior, weighted by the Gaussian. With a ``blend`` the model's probabilities for the row
    change that ratio, but not densities, floor and prior. Everything is computed in logarithms.

    A floor set from the data flags unknown rows, one in a hundred of the ordinary ones. Where rows
    were made far away, the posterior's constant is smaller than this floor
    (:func:`~kdcal_core.calibration.graph.gamma_floor_blend.fallback`), so that it returns to the
    prior far away but hardly on ordinary rows.

    Attributes
    ----------
    classes : tuple of K str
        Untrusted text.
    n : int
        Number of fit rows.
    centres, variances : (p, d) arrays
        Eqs. 14 and 15, the variances without the floor lambda.
    counts : (p, K) int64 or float64
        Number of fit rows by polytope and class, or the sum of their weights, which have mean 1.
    exponents : (G,) array
        Grid of gamma * log n, ascending.
    class_masses : (G, p, K) array
        n~_ry for each exponent of the grid.
    prior : (K,) array
    gamma : float
        One of ``gammas``.
    variance_floor : float
        Lambda, in squared coordinates.
    log_floor : float
        log b of Eq. 8; minus infinity for none.
    floor_quantile : float or None
        If given, the floor is this quantile of the held-out rows' log densities, which sets
        ``log_floor``.
    holdout : Located or None
    holdout_y : (h,) int64 or None
        Held-out rows and their classes.
    variance_shape : (d,) array or None
        The floor of each coordinate's variance as a multiple of ``variance_floor``, one on average;
        None for all ones, as in the papers.
    blend : Blend or None
        Weights of the model and of the class ratio inside the data; None for the ratio alone, as
        in the papers.
    far : Located or None
        Rows made far outside the data.
    together : Dependence or None
        Which held-out rows depend on one another; these count as the effective number of rows in
        floor, blend and standard error.
    holdout_weight : (h,) array or None
        Weights of the held-out rows with mean 1; None where all are equal.

    Notes
    -----
    Logarithms are natural; log n is log 3 for fewer than 3 rows, so that log log n stays positive.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from kdcal_core.calibration import KernelDensityForest
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(50, random_state=0).fit(X[::2], y[::2])
    >>> fitted = KernelDensityForest(forest).fit(X[1::2], y[1::2])
    >>> located = fitted.locate(X)
    >>> graph = fitted.graph_.with_settings(floor_quantile=0.2)
    >>> bool(graph.unknown(located).sum() > fitted.graph_.unknown(located).sum())
    True
    """

    classes: tuple[str, ...]
    n: int
    centres: FloatArray
    variances: FloatArray
    counts: NDArray[Any]
    exponents: FloatArray
    class_masses: FloatArray
    prior: FloatArray
    gamma: float
    variance_floor: float
    log_floor: float
    floor_quantile: float | None
    holdout: Located | None
    holdout_y: IntArray | None
    variance_shape: FloatArray | None = None
    blend: Blend | None = None
    far: Located | None = None
    together: Dependence | None = None
    holdout_weight: FloatArray | None = None

    @property
    def gammas(self) -> FloatArray:
        """The values of gamma for which the graph was fitted, (G,) ascending."""
        return self.exponents / log_n(self.n)

    @property
    def n_polytopes(self) -> int:
        return len(self.centres)

    @property
    def n_holdout(self) -> int:
        """Number of held-out rows."""
        return 0 if self.holdout is None else len(self.holdout)

    @property
    def effective_log_floor(self) -> float:
        """Log density b / log n below which a row is unknown."""
        return self.log_floor - float(np.log(log_n(self.n)))

    @cached_property
    def log_fallback(self) -> float:
        """Logarithm of the constant that the posterior adds to each density (Eq. 8).

        It is :attr:`effective_log_floor` if that is fixed, or if no rows were made far away.
        """
        floor = self.effective_log_floor
        if self.floor_quantile is None or self.far is None or self.holdout is None:
            return floor
        held = self._log_gaussian_held + self._log_weight[self.holdout.index]
        far = self._log_gaussian_far + self._log_weight[self.far.index]
        found = fallback(held, far, self.floor_quantile, *self._for_floor)
        return min(float(found), floor)

    @property
    def switch_radii(self) -> FloatArray:
        """Distance from each polytope's centre where it and the prior have equal weight, (p,).

        In standard deviations of the polytope's Gaussian; 0 where the prior has more weight
        everywhere, infinity without a floor.
        """
        height = self._log_normaliser + self._log_weight - self.log_fallback
        return np.sqrt(2.0 * np.maximum(height, 0.0))

    @property
    def added_variance(self) -> FloatArray:
        """The amount added to each polytope's variances, (d,): the floor times its shape."""
        ones = np.ones(self.centres.shape[1])
        return self.variance_floor * (ones if self.variance_shape is None else self.variance_shape)

    @property
    def chosen_masses(self) -> FloatArray:
        """n~_ry at the gamma in use, (p, K) (Eq. 16)."""
        masses: FloatArray = self.class_masses[self._position]
        return masses

    def log_density(self, located: Located) -> FloatArray:
        """Log class-conditional densities log f~_y(x) before the floor (Eq. 19), (m, K).

        Minus infinity for a class without rows.
        """
        density: FloatArray = safe_log(self._shares)[located.index]
        density += self._log_gaussian(located)[:, None]
        return density

    def log_marginal(self, located: Located) -> FloatArray:
        """Log density log sum_y P(y) f~_y(x) of each row, (m,)."""
        return self._log_gaussian(located) + self._log_weight[located.index]

    def posterior(self, located: Located) -> FloatArray:
        """Posterior with the floor (Eqs. 8 and 9), (m, K), rows summing to one.

        Far from all data, and where every density is zero, it is the prior (Prop. 2). With a
        blend the weight of the prior follows Eq. 9, and the blend replaces the densities' ratio.

        Far away the rounded posterior of equal priors is a tie, although the exact one is not: the
        class that the densities put first stays ahead by a hair. With a floor set from the data,
        it also stays ahead of classes whose prior is larger by at most 0.005, and the posterior
        then leaves the prior by at most as much. A larger prior decides a row that falls back.

        Raises
        ------
        InputError
            If the graph blends and the rows have no model probabilities.
        """
        local = self._inside(located)
        # Eqs. 8 and 9 rearranged: with M = sum_k f~_k P_k and c the constant, the posterior is
        # (M / (M + c)) times f~_y P_y / M, the polytope's own ratio, plus (c / (M + c)) P_y.
        share = inside(self.log_marginal(located), self.log_fallback)[:, None]
        mixed: FloatArray = share * local + (1.0 - share) * self.prior
        near = self.prior >= self.prior.max() - (0.0 if self.floor_quantile is None else CLOSE)
        return _kept_ahead(mixed, local, near)

    def predict(self, located: Located) -> IntArray:
        """Class of the largest posterior (Eq. 10), (m,) indices."""
        return np.asarray(self.posterior(located).argmax(axis=1))

    def unknown(self, located: Located) -> NDArray[np.bool_]:
        """Whether each row's log density lies below the floor, (m,)."""
        below: NDArray[np.bool_] = self.log_marginal(located) < self.effective_log_floor
        return below

    def with_settings(
        self,
        *,
        gamma: float | None = None,
        variance_floor: float | None = None,
        log_floor: float | None = None,
        floor_quantile: float | None = None,
        prior: Any = None,
    ) -> KernelDensityGraph:
        """The same graph with other settings, without a fit; omitted settings do not change.

        Another gamma changes the class ratios, so the blend is fitted again on the held-out rows,
        which takes milliseconds. Variance and floor do not affect it.

        Parameters
        ----------
        gamma : float
            One of ``gammas``.
        variance_floor : float
            Above zero.
        log_floor : float
            A fixed log b, instead of a floor set from the data; minus infinity for no floor.
        floor_quantile : float in (0, 1)
            Sets the floor from the data (:func:`data_floor`), now and whenever other settings
            change.
        prior : (K,) array
            Prior of the classes. Inside the data it is applied by Bayes' rule, because the fit
            rows have their own class shares; far away it is the posterior.

        Raises
        ------
        InputError
            If a value is out of range, both floors are given, no rows are held out for the
            quantile, or the prior is not a distribution over the classes.
        """
        if log_floor is not None and floor_quantile is not None:
            raise InputError(
                "A fixed floor and a quantile were both given", fix="Give one of the two."
            )
        quantile = self.floor_quantile
        if log_floor is not None:
            quantile = None
        elif floor_quantile is not None:
            quantile = checked_quantile(floor_quantile)
        other = replace(
            self,
            gamma=self.gamma if gamma is None else self._known_gamma(gamma),
            variance_floor=checked_variance(variance_floor, self.variance_floor),
            log_floor=self.log_floor if log_floor is None else checked_log_floor(log_floor),
            floor_quantile=quantile,
            prior=checked_prior(prior, self.prior),
        )
        if other.variance_floor == self.variance_floor:
            self._lend(other, *_OF_VARIANCE)
        if self.blend is not None and other.gamma != self.gamma:
            other = other.blended()
        return other if quantile is None else other._with_floor_at(quantile)

    def blended(self) -> KernelDensityGraph:
        """The same graph with the blend that has the smallest log loss on the held-out rows.

        Raises
        ------
        InputError
            If no rows are held out, or these have no model probabilities.
        """
        if self.holdout is None or self.holdout_y is None or not self.n_holdout:
            raise InputError(
                "A blend with the model needs held-out rows, and there are none",
                fix='Fit with a hold-out, or set inside to "ratio".',
            )
        local = self._local_as_fitted[self.holdout.index]
        models = _models(self.holdout)
        effect = self._unequal * fit_effect(models, self.holdout_y, self._mass, self.together)
        blend = fit_blend(
            models, local, self.holdout_y, self._fitted_prior, effect, self.holdout_weight
        )
        other = replace(self, blend=blend)
        self._lend(other, *_OF_DENSITY)
        return other

    def selection(self) -> Selection:
        """Held-out log loss of each exponent with the current settings, before any blend.

        A floor set from the data, and the posterior's constant, are computed for each exponent. The
        held-out rows are judged with the class shares of the fit rows, which are also theirs, and
        not with a given prior for new rows. Probabilities below 1e-12 count as 1e-12.
        """
        n_exponents = len(self.exponents)
        loss = error = np.full(n_exponents, np.nan)
        if self.holdout is not None and self.holdout_y is not None and self.n_holdout:
            held = self.holdout.index
            right = np.empty((n_exponents, len(held)))
            weight = np.empty((n_exponents, self.n_polytopes))
            for g in range(n_exponents):
                shares = self._shares_at(g)
                local = shares * self._fitted_prior
                right[g] = ratio(local[held, self.holdout_y], local.sum(axis=1)[held])
                weight[g] = safe_log(shares @ self.prior)
            marginal = weight[:, held] + self._log_gaussian_held
            constant = np.full(n_exponents, self.effective_log_floor)
            if self.floor_quantile is not None:
                constant = data_floor(marginal, self.floor_quantile, *self._for_floor)
                if self.far is not None:
                    far = weight[:, self.far.index] + self._log_gaussian_far
                    constant = fallback(marginal, far, self.floor_quantile, *self._for_floor)
            share = inside(marginal, constant[:, None])
            proba = share * right + (1.0 - share) * self._fitted_prior[self.holdout_y]
            each = surprisal(proba)
            loss = (self._mass * each).mean(axis=1)
            if self.n_holdout > 1:
                missed = each - loss[:, None]
                error = np.sqrt((self._mass * missed**2).sum(axis=1) / (self.n_holdout - 1))
                error /= np.sqrt(self.n_holdout / self._unequal)
                if self.together is not None:
                    error *= [
                        design_effect(one, self._mass, self.together) ** 0.5 for one in missed
                    ]
        return Selection(self.exponents, self.gammas, loss, error, self.n_holdout, self._position)

    def save(self, path: str | Path) -> None:
        """Write the graph to one versioned file of arrays and JSON, without pickle."""
        about, arrays = graph_parts(self)
        write_archive(path, _KIND, {"graph": asdict(about)}, arrays)

    @classmethod
    def load(cls, path: str | Path) -> KernelDensityGraph:
        """Read a file of :meth:`save`.

        Raises
        ------
        InputError
            If the file is of another kind, broken, or contradicts itself.
        """
        about, arrays = read_archive(path, _KIND)
        with errors_name_file(path):
            return graph_from_parts(decode(GraphRecord, about["graph"]), arrays)

    def _shares_at(self, position: int) -> FloatArray:
        """n~_ry / n~_y at one exponent of the grid (Eq. 16), (p, K); zero for absent classes."""
        masses = self.class_masses[position]
        return ratio(masses, masses.sum(axis=0))

    def _inside(self, located: Located) -> FloatArray:
        """Posterior of each row without a floor, (m, K)."""
        local: FloatArray = self._local[located.index]
        if self.blend is None:
            return local
        # Model and blend assume the class shares of the fit; another prior is applied afterwards by
        # Bayes' rule.
        mixed = self.blend.mix(
            _models(located), self._local_as_fitted[located.index], self._fitted_prior
        )
        known = self._fitted_prior > 0
        if known.all() and np.array_equal(self.prior, self._fitted_prior):
            return mixed
        # A class without fit rows keeps the model's ratio to the others, unless it is ruled out.
        unseen = np.where(self.prior > 0, self.prior[known].sum(), 0.0)
        mixed *= np.where(known, ratio(self.prior, self._fitted_prior), unseen)
        total = mixed.sum(axis=1, keepdims=True)
        return np.where(total > 0, ratio(mixed, total), self.prior)

    def _log_gaussian(self, located: Located) -> FloatArray:
        return log_gaussian(
            located, self.centres, self.variances, self.added_variance, self._log_normaliser
        )

    @property
    def _position(self) -> int:
        """The index of gamma in the grid."""
        return int(np.argmin(np.abs(self.gammas - self.gamma)))

    @cached_property
    def _log_normaliser(self) -> FloatArray:
        return log_normaliser(self.variances, self.added_variance)

    @cached_property
    def _log_gaussian_held(self) -> FloatArray:
        return np.zeros(0) if self.holdout is None else self._log_gaussian(self.holdout)

    @cached_property
    def _mass(self) -> FloatArray:
        """Weights of the held-out rows, (h,), with mean 1."""
        ones = np.ones(self.n_holdout)
        return ones if self.holdout_weight is None else self.holdout_weight

    @property
    def _unequal(self) -> float:
        """How many times fewer rows the held-out ones count for, because weights are unequal."""
        return self.n_holdout / kish(self._mass)

    @property
    def _for_floor(self) -> tuple[float, FloatArray | None]:
        """What `data_floor` and `fallback` take beside the densities of the held-out rows."""
        return self._floor_effect, self.holdout_weight

    @cached_property
    def _floor_effect(self) -> float:
        """How many times fewer held-out rows count for the floor: by the ranks of their densities.

        The Gaussian alone gives the ranks, because they should not depend on gamma.
        """
        if self.n_holdout < 2:
            return 1.0
        if self.together is None:
            return self._unequal
        ranks = rankdata(self._log_gaussian_held)
        away = ranks - np.average(ranks, weights=self._mass)
        return self._unequal * max(1.0, design_effect(away, self._mass, self.together))

    @cached_property
    def _log_gaussian_far(self) -> FloatArray:
        return np.zeros(0) if self.far is None else self._log_gaussian(self.far)

    @cached_property
    def _shares(self) -> FloatArray:
        return self._shares_at(self._position)

    @cached_property
    def _local(self) -> FloatArray:
        """Class ratio of each polytope, (p, K): the posterior without a floor."""
        joint = self._shares * self.prior
        return ratio(joint, joint.sum(axis=1, keepdims=True))

    @cached_property
    def _fitted_prior(self) -> FloatArray:
        """Class shares of the fit rows, (K,)."""
        counts = self.counts.sum(axis=0)
        share: FloatArray = counts / counts.sum()
        return share

    @cached_property
    def _local_as_fitted(self) -> FloatArray:
        """Class ratio of each polytope with the class shares of the fit rows, (p, K)."""
        joint = self._shares * self._fitted_prior
        return ratio(joint, joint.sum(axis=1, keepdims=True))

    @cached_property
    def _log_weight(self) -> FloatArray:
        """log sum_y P_y n~_ry / n~_y of each polytope, (p,)."""
        return safe_log(self._shares @ self.prior)

    def _known_gamma(self, gamma: float) -> float:
        gammas = self.gammas
        nearest = float(gammas[np.argmin(np.abs(gammas - gamma))])
        if not abs(nearest - gamma) <= _SAME_GAMMA * nearest:
            raise InputError(
                f"The graph was not fitted for gamma {formatted(gamma, 'g')}",
                fix=f"Choose one of its gammas, such as {nearest:.6g}, or fit with this one.",
            )
        return nearest

    def _with_floor_at(self, quantile: float) -> KernelDensityGraph:
        if self.holdout is None or not self.n_holdout:
            raise InputError(
                "A floor from the data needs held-out rows, and there are none",
                fix="Fit with a hold-out, or give log_floor as a number.",
            )
        marginal = self._log_gaussian_held + self._log_weight[self.holdout.index]
        floor = float(data_floor(marginal, quantile, *self._for_floor))
        log_log_n = float(np.log(log_n(self.n)))
        log_floor = floor + log_log_n
        while log_floor - log_log_n > floor:  # rounding must not flag the row that sets the floor
            log_floor = float(np.nextafter(log_floor, -np.inf))
        other = replace(self, log_floor=log_floor)
        self._lend(other, *_OF_DENSITY)
        return other

    def _lend(self, other: KernelDensityGraph, *names: str) -> None:
        """Pass to ``other`` the cached parts that its settings do not change."""
        other.__dict__.update({name: getattr(self, name) for name in names})


def _kept_ahead(proba: FloatArray, local: FloatArray, near: NDArray[np.bool_]) -> FloatArray:
    """Probabilities whose largest is also the largest local one among classes of near priors.

    Parameters
    ----------
    proba, local : (m, K) arrays
        With the prior and without it; the first is changed in place.
    near : (K,) array of bool
        Rows that put another class first stay as they are.

    Examples
    --------
    >>> near, local = np.array([True, True, False]), np.array([[0.7, 0.2, 0.1]])
    >>> _kept_ahead(np.array([[0.4, 0.402, 0.198]]), local, near).round(4).tolist()
    [[0.4012, 0.4012, 0.1976]]
    >>> _kept_ahead(np.array([[0.1, 0.2, 0.7]]), local, near).tolist()
    [[0.1, 0.2, 0.7]]
    """
    every = np.arange(len(proba))
    kept, ahead = np.where(near, local, -1.0).argmax(axis=1), proba.argmax(axis=1)
    rows = np.flatnonzero(near[ahead] & (local[every, kept] > local[every, ahead]))
    kept, ahead = kept[rows], ahead[rows]
    gap = proba[rows, ahead] - proba[rows, kept] + _HAIR
    share = gap / (1.0 + gap)
    proba[rows] *= 1.0 - share[:, None]
    proba[rows, kept] += share
    return proba


def _models(located: Located) -> FloatArray:
    if located.proba is None:
        raise InputError(
            "The rows lack the model's probabilities, which the blend needs",
            fix="Locate them with the estimator's locate.",
        )
    return located.proba


@dataclass(frozen=True)
class GraphRecord:
    """The description of a graph in a file, without its arrays."""

    classes: tuple[str, ...]
    n: int
    gamma: float
    variance_floor: float
    log_floor: float
    floor_quantile: float | None = None
    blend: tuple[float, float] | None = None
    together: tuple[DependenceKind, int] | None = None  # with its lags
    weighted: bool = False  # whether the counts are sums of weights


def graph_parts(graph: KernelDensityGraph) -> tuple[GraphRecord, dict[str, NDArray[Any]]]:
    """The parts from which :func:`graph_from_parts` rebuilds the graph."""
    about = GraphRecord(
        graph.classes,
        graph.n,
        graph.gamma,
        graph.variance_floor,
        graph.log_floor,
        graph.floor_quantile,
        None if graph.blend is None else (graph.blend.model, graph.blend.graph),
        None if graph.together is None else (graph.together.kind, graph.together.lags),
        graph.counts.dtype == np.float64,
    )
    found = {name: getattr(graph, name) for name in _ARRAYS if name not in _HELD | _FAR}
    if graph.far is not None:
        found |= {"far_x": graph.far.x, "far_index": graph.far.index}
    held = graph.holdout
    if held is not None and graph.holdout_y is not None:
        found |= {"holdout_x": held.x, "holdout_index": held.index, "holdout_tied": held.tied}
        found |= {"holdout_y": graph.holdout_y, "holdout_proba": held.proba}
        found["holdout_weight"] = graph.holdout_weight
        if graph.together is not None:
            found["holdout_unit"] = graph.together.unit
    return about, {name: found[name] for name in _ARRAYS if found.get(name) is not None}


def graph_from_parts(about: GraphRecord, arrays: Mapping[str, NDArray[Any]]) -> KernelDensityGraph:
    """The graph that the parts describe.

    Raises
    ------
    ValueError, TypeError, InputError
        If parts are missing or contradict each other.
    """
    found = {name: arrays[name] for name in _ARRAYS if name in arrays}
    lengths = _checked_shapes(found)
    counts = found["counts"]
    _demand(about.weighted == (counts.dtype == np.float64))
    slack = _COUNTS_SUM * about.n if about.weighted else 0.0
    _demand(len(about.classes) == lengths["K"] and abs(about.n - counts.sum()) <= slack)
    _demand(not np.isnan([about.gamma, about.variance_floor, about.log_floor]).any())
    _demand(about.floor_quantile is None or 0 < about.floor_quantile < 1)
    _checked_values(found, lengths)
    if about.blend is not None:
        _demand("holdout_proba" in found)
        _demand(all(0 <= one <= LARGEST_WEIGHT for one in about.blend))
    holdout = None
    if "holdout_index" in found:
        x, index, tied = (found[f"holdout_{name}"] for name in ("x", "index", "tied"))
        holdout = Located(x, index, tied, found.get("holdout_proba"))
    together = None
    _demand(("holdout_unit" in found) == (about.together is not None))
    if about.together is not None:
        kind, lags = about.together
        unit = found["holdout_unit"]
        together = Dependence(kind, unit, int(unit.max(initial=-1)) + 1, lags)
        _demand(bool((unit >= 0).all()) and 0 <= lags < together.n_units <= len(unit))
    far = None
    if "far_index" in found:
        index = found["far_index"]
        far = Located(found["far_x"], index, np.zeros(len(index), dtype=np.bool_))
    graph = KernelDensityGraph(
        **{name: found[name] for name in _ARRAYS if name not in _HELD | _MAY_LACK},
        classes=about.classes,
        n=about.n,
        gamma=about.gamma,
        variance_floor=about.variance_floor,
        log_floor=about.log_floor,
        floor_quantile=about.floor_quantile,
        holdout=holdout,
        holdout_y=found.get("holdout_y"),
        variance_shape=found.get("variance_shape"),
        blend=None if about.blend is None else Blend(*about.blend),
        far=far,
        together=together,
        holdout_weight=found.get("holdout_weight"),
    )
    _demand(bool((graph.added_variance > 0).all()))  # the product of two tiny numbers may be zero
    # This refuses a gamma outside the grid and a variance floor of zero.
    graph.with_settings(
        gamma=graph.gamma, variance_floor=graph.variance_floor, log_floor=graph.log_floor
    )
    return graph


def _checked_shapes(found: Mapping[str, NDArray[Any]]) -> dict[str, int]:
    """The length for each letter."""
    held = _HELD - _MAY_LACK
    needed = set(_ARRAYS) - held - _MAY_LACK
    _demand(held <= set(found) or not _HELD & set(found))
    for some in (held, _FAR):
        _demand(some <= set(found) or not some & set(found))
    _demand(needed <= set(found))
    lengths: dict[str, int] = {}
    for name, array in found.items():
        kind, letters = _ARRAYS[name]
        _demand(array.dtype in _DTYPES[kind] and array.ndim == len(letters))
        for letter, length in zip(letters, array.shape, strict=True):
            _demand(lengths.setdefault(letter, length) == length)
    _demand(lengths["p"] > 0 and lengths["K"] > 1 and lengths["G"] > 0)
    return lengths


def _checked_values(found: Mapping[str, NDArray[Any]], lengths: Mapping[str, int]) -> None:
    for array in found.values():
        if array.dtype == np.float64:
            _demand(bool(np.isfinite(array).all()))
    for name in ("variances", "counts", "class_masses", "prior"):
        _demand(bool((found[name] >= 0).all()))
    for name in ("variance_shape", "holdout_weight"):
        _demand(bool((found.get(name, np.ones(1)) > 0).all()))
    proba = found.get("holdout_proba", np.ones((1, 1)))
    _demand(bool((proba >= 0).all() and (np.abs(proba.sum(axis=1) - 1) <= _PROBA_SUM).all()))
    exponents = found["exponents"]
    _demand(bool((exponents > 0).all() and (np.diff(exponents) > 0).all()))
    _demand(abs(float(found["prior"].sum()) - 1.0) <= 1e-9)
    for name, letter in (("holdout_index", "p"), ("holdout_y", "K"), ("far_index", "p")):
        index = found.get(name, np.zeros(0, dtype=np.int64))
        _demand(bool(((index >= 0) & (index < lengths[letter])).all()))


def _demand(holds: bool) -> None:
    if not holds:
        raise ValueError("parts that contradict each other")
