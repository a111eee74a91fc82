"""Boosted trees that start from a model's logits: what the columns hold beyond the model.

They read the columns again, as a further model does, so they are judged beside calibrators and
never offered as one. One Platt map for all rows comes first and the trees see no stated
probability, so that what they gain beyond it is due to the columns.
"""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.special import softmax
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from kdcal_core.calibration import Calibrator, calibrator_entry
from kdcal_core.calibration.calibrator_base import log_proba
from kdcal_core.data import FloatArray, IntArray, check_weight, random_folds
from kdcal_core.progress import Progress, silent
from kdcal_core.statistics import log_losses

if TYPE_CHECKING:
    from kdcal_core.partition.tree import BinnedInputs

RATE = 0.05
LEAVES = 15
LEAST_ROWS = 20  # of a leaf
PATIENCE = 30  # trees without a smaller held-out loss
FOLDS = 5  # one of them is held out


class SecondModel(Calibrator):
    """LightGBM's boosted trees from the logits of the model after one Platt map.

    The number of trees is that with the smallest log loss of a fifth of the rows; then all rows
    are used. No tree is grown where none lowers that loss.

    Parameters
    ----------
    max_trees : int, default=500
    random_state : int, default=0

    Attributes
    ----------
    n_trees_ : int
        Trees of each class, may be 0.

    Examples
    --------
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"age": rng.integers(18, 80, 2000)})
    >>> y = (rng.random(2000) < np.where(X["age"] < 40, 0.2, 0.8)).astype(int)
    >>> knows_nothing = np.full((2000, 2), 0.5)
    >>> second = SecondModel().fit(knows_nothing, y, X)
    >>> young, old = second.predict_proba(knows_nothing[:2], pd.DataFrame({"age": [30, 60]}))[:, 1]
    >>> bool(young < 0.3), bool(old > 0.7)
    (True, True)
    """

    needs_inputs: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_trees": [Interval(Integral, 1, None, closed="left")],
        "random_state": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(self, max_trees: int = 500, random_state: int = 0) -> None:
        self.max_trees = max_trees
        self.random_state = random_state

    def fit(
        self,
        proba: Any,
        y: Any,
        X: Any,
        sample_weight: Any = None,
        progress: Progress | None = None,
    ) -> Self:
        """Fit on rows that the model was not trained on; arrays as for other calibrators."""
        from kdcal_core.partition.tree import bin_inputs

        self._validate_params()
        report = progress or silent
        proba, y = self._learnt(proba, y)
        weight = check_weight(sample_weight, len(proba))
        self.n_classes_, self.notes_ = proba.shape[1], ()
        self.first_ = calibrator_entry("platt").factory().fit(proba, y, sample_weight=weight)
        binned = bin_inputs(X)
        self.columns_ = binned.columns
        start = log_proba(self.first_.predict_proba(proba))
        report(0.0, "Choosing the number of trees")
        self.n_trees_ = self._wanted(start, y, binned, weight)
        report(0.5, f"Growing {self.n_trees_:,} trees")
        every = np.arange(len(y))
        self._booster = self._grown(start, y, binned, weight, every, self.n_trees_)
        return self

    def predict_proba(self, proba: Any, X: Any) -> FloatArray:
        """Probabilities (n, K), rows summing to one."""
        from kdcal_core.partition.tree import bin_inputs

        check_is_fitted(self, "n_trees_")
        proba = self._checked(proba)
        logits = log_proba(self.first_.predict_proba(proba))
        if self._booster is not None:
            codes = _codes(bin_inputs(X, like=self.columns_))
            logits = logits + self._booster.predict(codes, raw_score=True)
        return _probabilities(logits)

    def _wanted(
        self, start: FloatArray, y: IntArray, binned: BinnedInputs, weight: FloatArray
    ) -> int:
        """The number of trees of each class with the smallest loss of the rows held out."""
        if len(y) < FOLDS:
            return 0
        held = random_folds(len(y), FOLDS, self.random_state) == 0
        fitted, judged = np.flatnonzero(~held), np.flatnonzero(held)
        booster = self._grown(start, y, binned, weight, fitted, self.max_trees, judged)
        wanted: int = booster.best_iteration
        raised = booster.predict(_codes(binned)[judged], raw_score=True, num_iteration=wanted)
        none, some = (
            float(weight[judged] @ log_losses(_probabilities(logits), y[judged]))
            for logits in (start[judged], start[judged] + raised)
        )
        return wanted if some < none else 0

    def _grown(
        self,
        start: FloatArray,
        y: IntArray,
        binned: BinnedInputs,
        weight: FloatArray,
        rows: IntArray,
        n_trees: int,
        judged: IntArray | None = None,
    ) -> Any:
        """A booster on some rows, None without trees; with rows to judge by it stops early."""
        if n_trees == 0:
            return None
        import lightgbm

        codes = _codes(binned)
        named = [at for at, one in enumerate(binned.columns) if one.kind == "category"]
        settings = {
            "objective": "multiclass",
            "num_class": self.n_classes_,
            "learning_rate": RATE,
            "num_leaves": LEAVES,
            "min_data_in_leaf": LEAST_ROWS,
            "boost_from_average": False,
            "seed": self.random_state,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": 1,
            "verbose": -1,
        }

        def data(of: IntArray) -> Any:
            return lightgbm.Dataset(
                codes[of],
                label=y[of],
                weight=weight[of],
                init_score=start[of],
                categorical_feature=named,
                params=settings,
            )

        if judged is None:
            return lightgbm.train(settings, data(rows), n_trees)
        return lightgbm.train(
            settings,
            data(rows),
            n_trees,
            valid_sets=[data(judged)],
            callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
        )


def _codes(binned: BinnedInputs) -> FloatArray:
    """The codes of the inputs as numbers, NaN where a value is missing."""
    codes = binned.codes.astype(np.float64)
    codes[binned.codes == [one.missing_code for one in binned.columns]] = np.nan
    return codes


def _probabilities(logits: FloatArray) -> FloatArray:
    return np.asarray(softmax(logits, axis=1))
