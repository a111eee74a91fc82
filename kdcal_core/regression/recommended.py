"""The recommended recalibrator: the simplest whose cross-fitted CRPS is as good as the best."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from kdcal_core.data.schema import FloatArray
from kdcal_core.data.splits import at_most
from kdcal_core.distributions import PredictiveDistribution
from kdcal_core.errors import quiet
from kdcal_core.one_standard_error import SimplestChoice
from kdcal_core.progress import Progress, part_of
from kdcal_core.regression.choice_of_neighbours import (
    cross_fitted,
    numbers_to_try,
    select_neighbours,
)
from kdcal_core.regression.density import DensityRecalibration
from kdcal_core.regression.global_recalibration import IsotonicRecalibration
from kdcal_core.regression.local import LocalRecalibration
from kdcal_core.regression.local_test import WhereNeeded
from kdcal_core.regression.neighbour_recalibration import NEIGHBOUR_SETTINGS, Smoothing
from kdcal_core.regression.neighbour_search import Kernel
from kdcal_core.regression.pooled import PooledRecalibration
from kdcal_core.regression.recalibrators import (
    RECALIBRATORS,
    Recalibrator,
    RecalibratorSpec,
    StoredRecalibrator,
    check_count,
    check_inner,
    check_outcomes,
    check_space,
    fit_together,
    given_weight,
)
from kdcal_core.statistics import Dependence
from kdcal_core.store import storable
from kdcal_core.store.estimators import check_array, demand
from kdcal_core.text import in_sentence

AS_IT_IS = "model"
CANDIDATES = (AS_IT_IS, "isotonic", "where_needed", "density", "pooled", "local")
"""Keys of the candidates, the simplest first."""
SIMPLEST_FIRST = (AS_IT_IS, "isotonic", "global", *CANDIDATES[2:])
"""Keys of all repairs in the same order; global recalibration does what isotonic does."""
_FEWEST_ROWS = 50
_MOST_ROWS = 10_000
_LEAST_SHARE = 0.001  # of the model's CRPS: no further machinery is worth less


@storable
class ModelAsItIs(StoredRecalibrator):
    """Keeps the model's distributions, as the recalibrator where none is needed.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> model = Normal([0.0], 1.0)
    >>> ModelAsItIs().fit(model, [0.0]).predict(model) is model
    True
    """

    def fit(
        self,
        distribution: PredictiveDistribution,
        y: Any,
        space: NDArray[Any] | None = None,
        *,
        sample_weight: Any = None,
    ) -> Self:
        """Fit nothing to n rows, their outcomes (n,) and their weights."""
        return self

    def predict(
        self, distribution: PredictiveDistribution, space: NDArray[Any] | None = None
    ) -> PredictiveDistribution:
        """The same distributions."""
        return distribution

    def check_state(self) -> None:
        """Nothing is kept, so nothing can contradict itself."""


@storable
class RecommendedRecalibration(StoredRecalibrator):
    """The simplest recalibrator whose cross-fitted CRPS is as good as that of the best.

    The candidates are, from the simplest on: the model as it is, isotonic recalibration, local
    recalibration where needed, density estimation, and pooled and plain local recalibration of
    every row. Each is fitted on all folds but one and judged on that one. A simpler one is
    preferred if it loses to the best by no more than one standard error of their difference on the
    same rows (Breiman et al., Classification and regression trees, 1984), which counts as at least
    0.1% of the model's CRPS. So the model stays as it is where no recalibrator clearly improves
    it.

    Parameters
    ----------
    k : int or "auto", default="auto"
        Neighbours of the local candidates; "auto" takes the number with the smallest cross-fitted
        CRPS (:func:`select_neighbours`).
    kernel : {"epanechnikov", "uniform"}, default="epanechnikov"
    smoothing : {"auto", "kernel", "none"}, default="auto"
        As in :class:`LocalRecalibration`.
    folds : int, default=5
    tolerance : float, default=1.0
        Factor on the CRPS that counts as equal to the best; 0 takes the best one.
    seed : int, default=0

    Attributes
    ----------
    chosen_ : str
        Key of the choice: "model", or a key of :data:`RECALIBRATORS`.
    recalibrator_ : Recalibrator
        It, fitted on all rows.
    candidates_ : tuple of str
        Keys of the candidates that could be fitted, the simplest first.
    losses_, errors_ : (m,) array
        Cross-fitted mean CRPS of each candidate, and the standard error of its difference from the
        smallest.
    k_ : int
        Neighbours of the local candidates.
    n_judged_ : int
        Rows of the cross-fitting: all, or 10,000 drawn at random; 0 with fewer than 50 rows, where
        nothing is judged and the model stays as it is.
    reason_ : str
        Which candidate was chosen, and why, as sentences.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.distributions import Normal
    >>> x, noise = np.random.default_rng(0).normal(size=(2, 120))
    >>> fitted = RecommendedRecalibration(k=25).fit(Normal(x, 1.0), x + noise, x)
    >>> print(fitted.chosen_, "-", fitted.reason_)
    model - The model as it is was chosen: its CRPS is ...
    >>> RecommendedRecalibration(k=25).fit(Normal(x, 1.0), x + 2 + noise, x).chosen_
    'isotonic'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NEIGHBOUR_SETTINGS,
        "folds": [Interval(Integral, 2, 20, closed="both")],
        "tolerance": [Interval(Real, 0, 100, closed="both")],
    }

    def __init__(
        self,
        k: int | Literal["auto"] = "auto",
        kernel: Kernel = "epanechnikov",
        smoothing: Smoothing = "auto",
        folds: int = 5,
        tolerance: float = 1.0,
        seed: int = 0,
    ) -> None:
        self.k = k
        self.kernel = kernel
        self.smoothing = smoothing
        self.folds = folds
        self.tolerance = tolerance
        self.seed = seed

    groups_rows: ClassVar[bool] = True

    def fit(
        self,
        distribution: PredictiveDistribution,
        y: Any,
        space: Any = None,
        *,
        dependence: Dependence | None = None,
        sample_weight: Any = None,
        progress: Progress | None = None,
    ) -> Self:
        """Judge the candidates on n rows, and fit the chosen one on all of them.

        Parameters
        ----------
        distribution : PredictiveDistribution of n rows
        y : (n,) array
            Outcomes.
        space : (n, d) or (n,) array
            Space in which neighbours are searched.
        dependence : Dependence, optional
            Of the rows: dependent ones are in one fold, and errors are those of clusters or of
            stretches of times.
        sample_weight : (n,) array or RowDesign, optional
            Positive row weights, of the fits and of the means of CRPS.
        progress : callable, optional
            Called with the share done and a sentence; may raise to cancel.

        Raises
        ------
        InputError
            If outcomes or space do not match the rows or are not finite.
        """
        self._validate_params()
        y = check_outcomes(y, len(distribution))
        space = check_space(space, len(distribution))
        weight = given_weight(sample_weight, len(y))
        self.candidates_: tuple[str, ...] = ()
        rows = at_most(len(y), _MOST_ROWS, [self.seed, 5])
        if len(rows) < _FEWEST_ROWS:
            self.k_ = min(len(rows), _FEWEST_ROWS)
            self.n_judged_, self.chosen_ = 0, AS_IT_IS
            self.losses_, self.errors_ = np.zeros(0), np.zeros(0)
            self.reason_ = (
                f"{len(rows):,} rows are too few to judge recalibrators: the model stays as it is."
            )
        else:
            report = part_of(progress, 0.0, 0.9)
            together = None if dependence is None else dependence.only(rows)
            of_rows = None if weight is None else weight[rows]
            self._choose(distribution[rows], y[rows], space[rows], together, of_rows, report)
        with quiet():
            chosen = self._make(self.chosen_)
            self.recalibrator_: Recalibrator = fit_together(
                chosen, distribution, y, space, dependence, weight
            )
        return self

    def predict(
        self, distribution: PredictiveDistribution, space: Any = None
    ) -> PredictiveDistribution:
        """The distributions of m new rows by the chosen recalibrator; ``space`` is (m, d)."""
        check_is_fitted(self, "recalibrator_")
        return self.recalibrator_.predict(distribution, space)

    @property
    def needs_space(self) -> bool:
        """Whether the chosen recalibrator searches neighbours in a space."""
        check_is_fitted(self, "recalibrator_")
        chosen = self.recalibrator_
        return isinstance(chosen, StoredRecalibrator) and chosen.needs_space

    def check_state(self) -> None:
        super().check_state()
        demand(self.chosen_ in (AS_IT_IS, *RECALIBRATORS), "chosen_")
        demand(isinstance(self.reason_, str), "reason_")
        check_count(self, "k_", 1)
        check_count(self, "n_judged_")
        m = len(self.candidates_) if isinstance(self.candidates_, tuple) else -1
        check_array(self, "losses_", (m,))
        check_array(self, "errors_", (m,))
        check_inner(self.recalibrator_)

    def _choose(
        self,
        distribution: PredictiveDistribution,
        y: FloatArray,
        space: FloatArray,
        together: Dependence | None,
        weight: FloatArray | None,
        report: Progress,
    ) -> None:
        n = len(y)
        self.k_ = self._neighbours(distribution, y, space, together, weight)
        found: dict[str, FloatArray] = {AS_IT_IS: distribution.crps(y)}
        others = CANDIDATES[1:]
        for at, key in enumerate(others):
            cross = cross_fitted(
                partial(self._make, key),
                distribution,
                y,
                space,
                folds=int(self.folds),
                seed=int(self.seed),
                dependence=together,
                sample_weight=weight,
                progress=part_of(report, at / len(others), (at + 1) / len(others)),
            )
            found[key] = cross.crps(y)
        of_means = np.ones(n) if weight is None else weight
        choice = simplest_repair(found, of_means, float(self.tolerance), together)
        self.candidates_ = tuple(found)
        self.n_judged_, self.losses_, self.errors_ = n, choice.losses, choice.errors
        self.chosen_ = self.candidates_[choice.at]
        self.reason_ = repair_words(choice, self.candidates_, f"cross-fitted on {n:,} rows")

    def _neighbours(
        self,
        distribution: PredictiveDistribution,
        y: FloatArray,
        space: FloatArray,
        together: Dependence | None,
        weight: FloatArray | None,
    ) -> int:
        if self.k != "auto":
            return min(int(self.k), len(y))
        found = select_neighbours(
            distribution,
            y,
            {"": space},
            numbers_to_try(len(y), int(self.folds)),
            kernel=self.kernel,
            folds=int(self.folds),
            seed=int(self.seed),
            dependence=together,
            sample_weight=weight,
        )
        return found.best_k

    def _make(self, key: str) -> Recalibrator:
        local = LocalRecalibration(
            k=self.k_, kernel=self.kernel, smoothing=self.smoothing, seed=self.seed
        )
        made: dict[str, Callable[[], Recalibrator]] = {
            AS_IT_IS: ModelAsItIs,
            "isotonic": IsotonicRecalibration,
            "where_needed": partial(WhereNeeded, local, seed=self.seed),
            "density": partial(DensityRecalibration, seed=self.seed),
            "pooled": partial(PooledRecalibration, self.k_, self.kernel, seed=self.seed),
            "local": lambda: local,
        }
        return made[key]()


def simplest_repair(
    crps: Mapping[str, FloatArray],
    weight: FloatArray,
    tolerance: float = 1.0,
    dependence: Dependence | None = None,
) -> SimplestChoice:
    """The simplest candidate with a CRPS as good as the best.

    Parameters
    ----------
    crps : mapping of key to (n,) array
        CRPS of every row by each candidate, in the order of simplicity, the model first.
    weight : (n,) array
        Positive row weights.
    tolerance : float
        Standard errors of the difference that count as equal.
    dependence : Dependence, optional
        Of the rows; see :class:`kdcal_core.one_standard_error.SimplestChoice`.

    Examples
    --------
    >>> rows = np.array([1.0, 2.0, 1.5])
    >>> simplest_repair({"model": rows, "isotonic": rows - 0.5}, np.ones(3)).at
    1
    """
    model = float(np.average(crps[AS_IT_IS], weights=weight))
    losses = np.column_stack(list(crps.values()))
    found = partial(SimplestChoice.of, losses, weight, dependence=dependence, tolerance=tolerance)
    # a limit of the standard error itself; `least` is one of sums over all rows
    return found(least=_LEAST_SHARE * model * found().rows)


def repair_words(choice: SimplestChoice, keys: Sequence[str], judged: str) -> str:
    """Which candidate was chosen, and why; ``judged`` says on which rows."""
    names = [candidate_name(key) for key in keys]
    return choice.words(names, judged, loss="CRPS", kind="recalibrator", form=".4g")


def candidate_name(key: str) -> str:
    """A candidate's name inside a sentence.

    Examples
    --------
    >>> candidate_name("model"), candidate_name("local")
    ('the model as it is', 'local recalibration')
    """
    if key == AS_IT_IS:
        return "the model as it is"
    return in_sentence(RECALIBRATORS[key].title)


RecalibratorSpec(
    "recommended",
    "Recommended recalibration",
    "kdcal fits several recalibrators on parts of the rows, judges them on the others by CRPS and "
    "takes the simplest of those that are as good as the best; it may keep the model as it is.",
    RecommendedRecalibration,
    family="recommended",
    needs_space=True,
    reference="Breiman et al. 1984, the one-standard-error rule",
    settings=("k", "kernel", "smoothing", "seed"),
).offer()
