"""scikit-learn regressors as models: a point, a normal where the model knows its own spread."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data.types import FloatArray
from kdcal_core.errors import InputError
from kdcal_core.models.base import Features, Regressor
from kdcal_core.models.outputs import blocks
from kdcal_core.models.regression_outputs import Outputs, check_outputs, resolve_outputs
from kdcal_core.models.sklearn_model import (
    MlpLayers,
    SklearnModel,
    TreeLeaves,
    is_trees,
    plain_errors,
    rows_of,
    steps_of,
)
from kdcal_core.partition import ActivationCodes

_FORESTS = ("RandomForestRegressor", "ExtraTreesRegressor")
_BLOCK_ROWS = 1 << 16
# A Gaussian process holds a number for each row of the block and each row it was trained on.
_KERNEL_BLOCK_CELLS = 1 << 24


def wrap_regressor(model: Any, *, feature_names: Sequence[str] | None, said: Outputs) -> Regressor:
    """Take a fitted scikit-learn regressor, or a pipeline that ends in one, as a model.

    The family is "normal" where ``predict`` gives standard deviations (``return_std``: Gaussian
    processes, Bayesian linear models), "quantiles" with one level for a quantile loss, else
    "point". A forest stays a point prediction: its trees' predictions are samples of the
    estimated mean, not of the outcome, and are there for those who ask (``members``).

    Raises
    ------
    InputError
        The model is not fitted, has more than one target, or the names do not fit.
    """
    final = steps_of(model)[-1]
    if not hasattr(model, "predict") or not hasattr(model, "n_features_in_"):
        raise InputError(f"The {type(model).__name__} is not fitted", fix="Fit it first.")
    kind: type[SklearnRegressor] = SklearnRegressor
    if type(final).__name__ in _FORESTS:
        kind = SklearnForestRegressor
    elif is_trees(final):
        kind = SklearnTreesRegressor
    elif type(final).__name__ == "MLPRegressor":
        kind = SklearnMlpRegressor if final.activation != "relu" else SklearnReluRegressor
    return kind(model, feature_names, said)


class SklearnRegressor(SklearnModel):
    """A fitted scikit-learn regressor."""

    def __init__(self, model: Any, feature_names: Sequence[str] | None, said: Outputs) -> None:
        super().__init__(model, feature_names)
        self._with_std = (
            said.family in (None, "normal")
            and "return_std" in inspect.signature(self._final.predict).parameters
        )
        level = _quantile(self._final)
        if said == Outputs() and self._with_std:
            said = Outputs("normal")
        elif said == Outputs() and level is not None:
            said = Outputs("quantiles", (str(level),))
        self.outputs, self.family = resolve_outputs(2 if self._with_std else 1, said)

    def predict(self, X: Features) -> FloatArray:
        """Parameters of each row's distribution, (n, len(outputs)) float64.

        Raises
        ------
        InputError
            Missing columns, text or missing values where the model takes none, or output that
            is not finite.
        """
        rows = self._prepare(X)
        parts = []
        for block in blocks(len(rows), self._block_rows()):
            part = rows_of(rows, block)
            raw = self._answer(part) if len(part) else np.empty((0, len(self.outputs)))
            parts.append(check_outputs(raw, len(part), len(self.outputs), first_row=block.start))
        return np.concatenate(parts)

    def _answer(self, rows: Any) -> NDArray[Any]:
        if not self._with_std:
            with plain_errors():
                return np.asarray(self._model.predict(rows))
        prepared = self._before_final(rows)
        with plain_errors():
            return np.column_stack(self._final.predict(prepared, return_std=True))

    def _block_rows(self) -> int:
        trained_on = getattr(self._final, "X_train_", None)
        if trained_on is None:
            return _BLOCK_ROWS
        return max(1, _KERNEL_BLOCK_CELLS // max(1, len(trained_on)))


class SklearnTreesRegressor(SklearnRegressor, TreeLeaves):
    """A regressor that is a tree or boosted trees."""


class SklearnForestRegressor(SklearnTreesRegressor):
    """A forest, whose trees' predictions can be read as samples."""

    def members(self, X: Features) -> FloatArray:
        """Prediction of each tree, (n, n_trees) float64."""
        rows = np.asarray(self._final_input(X))
        with plain_errors():
            found = np.column_stack([tree.predict(rows) for tree in self._final.estimators_])
        return check_outputs(found, len(rows), found.shape[1])


class SklearnMlpRegressor(SklearnRegressor, MlpLayers):
    """A multi-layer perceptron that predicts a number."""

    def embed(self, X: Features, layer: str | None = None) -> FloatArray:
        """One hidden layer, (n, d) float64; the last by default."""
        return self._hidden(X, layer)


class SklearnReluRegressor(SklearnMlpRegressor):
    """A multi-layer perceptron with ReLU units that predicts a number."""

    def codes(self, X: Features) -> ActivationCodes:
        """Activation bits of each row, layer by layer."""
        return self._bits(X)


def _quantile(final: Any) -> float | None:
    """The level of a model that was trained with a quantile loss."""
    if type(final).__name__ == "QuantileRegressor":
        return float(final.quantile)
    if getattr(final, "loss", None) == "quantile":
        level = getattr(final, "quantile", None)
        return float(final.alpha if level is None else level)
    return None
