"""Adapter for scikit-learn models: forests with leaves, networks with activations.

A regression model predicts a point, or a normal distribution where it estimates its spread.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from kdcal_core.data import FloatArray, Task, as_pandas, check_proba
from kdcal_core.errors import InputError
from kdcal_core.models.features import numeric_input, select_columns
from kdcal_core.models.output_meaning import (
    Outputs,
    blocks,
    check_outputs,
    check_task,
    layer_names,
    one_a_class,
    pick_layer,
    resolve_outputs,
)
from kdcal_core.models.protocol import Features, Model, Regressor, ShownModel
from kdcal_core.partition import ActivationCodes, LeafCodes, pack_bits

_FOREST_NAMES = {
    "RandomForestClassifier": "Random forest",
    "ExtraTreesClassifier": "Extremely randomised trees",
    "RandomForestRegressor": "Random forest",
    "ExtraTreesRegressor": "Extremely randomised trees",
}
_HISTOGRAM = ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor")
_PLAIN_NAMES = {
    "LogisticRegression": "Logistic regression",
    "LinearRegression": "Linear regression",
    "BayesianRidge": "Bayesian ridge regression",
    "QuantileRegressor": "Linear quantile regression",
    "PoissonRegressor": "Poisson regression",
    "GammaRegressor": "Gamma regression",
    "TweedieRegressor": "Tweedie regression",
    "GaussianProcessRegressor": "Gaussian process",
}
# Maximum number of rows whose layers are in memory at a time.
_BLOCK_ROWS = 1 << 16
_ACTIVATION_NAMES = {"logistic": "sigmoid"}
_ACTIVATE: dict[str, Callable[[Any], Any]] = {
    "relu": lambda z: np.maximum(z, 0.0),
    "tanh": np.tanh,
    "logistic": expit,
    "identity": lambda z: z,
}


def wrap(
    model: Any,
    *,
    classes: Sequence[object] | None = None,
    feature_names: Sequence[str] | None = None,
    task: Task | None = None,
    said: Outputs | None = None,
) -> Model | Regressor:
    """Wrap a fitted scikit-learn model, or a pipeline that ends in one.

    A regressor becomes a :class:`~kdcal_core.models.sklearn_model.SklearnRegressor`. Among
    classifiers, decision trees, forests and boosted trees have codes (their leaves). MLPs have
    logits and, with ReLU, codes (activation bits) and an embedding (last hidden layer). Others have
    probabilities only.

    Raises
    ------
    InputError
        The model has no ``predict_proba``, is not fitted, has more than one output or is of the
        other task, or the given names do not fit.
    """
    if is_regressor(model):
        check_task("regression", task)
        return wrap_regressor(model, feature_names=feature_names, said=said or Outputs())
    if not hasattr(model, "predict_proba"):
        raise InputError(
            f"The {type(model).__name__} gives no probabilities",
            fix="kdcal reviews classifiers with predict_proba, and regressors.",
        )
    check_task("classification", task)
    if not hasattr(model, "classes_") or not hasattr(model, "n_features_in_"):
        raise InputError(f"The {type(model).__name__} is not fitted", fix="Fit it first.")
    if isinstance(model.classes_, list):
        raise InputError(
            "The model has more than one output",
            fix="kdcal reviews classifiers with one target; wrap each output separately.",
        )
    final = steps_of(model)[-1]
    kind: type[SklearnClassifier] = SklearnClassifier
    if is_trees(final):
        kind = SklearnTrees
    elif type(final).__name__ == "MLPClassifier":
        kind = SklearnNetwork if final.activation == "relu" else SklearnMlp
    return kind(model, classes, feature_names)


class SklearnModel(ShownModel):
    """A fitted scikit-learn model with its columns and its description."""

    def __init__(self, model: Any, feature_names: Sequence[str] | None) -> None:
        self._model = model
        self._final = steps_of(model)[-1]
        self.kind = _kind(self._final)
        if len(steps_of(model)) > 1:
            self.kind += ", with preprocessing"
        self.n_features = int(model.n_features_in_)
        names = getattr(model, "feature_names_in_", None)
        self._fitted_on_names = names is not None
        given = names if feature_names is None else feature_names
        self.feature_names = None if given is None else tuple(str(name) for name in given)
        if self.feature_names is not None:
            _check_count(len(self.feature_names), self.n_features, "feature")
        self.numeric = not any(_takes_text(step) for step in steps_of(model))
        self._allow_missing = _allows_missing(steps_of(model))

    def _prepare(self, X: Features) -> Any:
        """The input of the scikit-learn model: a frame where it was fitted on one."""
        rows: Any
        X = as_pandas(X)
        if self.numeric:
            rows = numeric_input(
                X,
                n_features=self.n_features,
                feature_names=self.feature_names,
                allow_missing=self._allow_missing,
            )
        elif isinstance(X, pd.DataFrame):
            rows = select_columns(X, n_features=self.n_features, feature_names=self.feature_names)
        else:
            rows = np.asarray(X)
        if self._fitted_on_names and not isinstance(rows, pd.DataFrame):
            rows = pd.DataFrame(rows, columns=list(self._model.feature_names_in_))
        if not self._fitted_on_names and self.numeric:
            rows = np.asarray(rows)
        return rows

    def _before_final(self, rows: Any) -> Any:
        """The input of the pipeline's last step for prepared rows."""
        with plain_errors():
            return rows if self._final is self._model else self._model[:-1].transform(rows)

    def _final_input(self, X: Features) -> Any:
        return self._before_final(self._prepare(X))


class TreeLeaves(SklearnModel):
    """The leaves of a tree, a forest or boosted trees."""

    def codes(self, X: Features) -> LeafCodes:
        """Leaf of each row in each tree, (n, n_trees) int32; boosted trees stage by stage."""
        rows = self._final_input(X)
        with plain_errors():
            if type(self._final).__name__ in _HISTOGRAM:
                leaves = _histogram_leaves(self._final, np.asarray(rows, dtype=np.float64))
            else:
                leaves = np.asarray(self._final.apply(rows))
        return LeafCodes(leaves.reshape(len(leaves), -1).astype(np.int32))


class MlpLayers(SklearnModel):
    """The layers of a multi-layer perceptron."""

    def __init__(self, model: Any, feature_names: Sequence[str] | None) -> None:
        super().__init__(model, feature_names)
        name = self._final.activation
        widths = [weights.shape[1] for weights in self._final.coefs_[:-1]]
        self.layers = layer_names(widths)
        self._width = self._final.coefs_[0].shape[0]
        self.other_activations: tuple[str, ...] = tuple(
            f"layer {place}: {_ACTIVATION_NAMES.get(name, name)}"
            for place in range(1, len(widths) + 1)
            if name != "relu"
        )

    def _kept(self, X: Features, keep: Callable[[list[FloatArray]], Any]) -> list[Any]:
        """The results of ``keep`` on the layers, for each block of rows."""
        rows = self._prepare(X)
        return [
            keep(self._layers(rows_of(rows, block))) for block in blocks(len(rows), _BLOCK_ROWS)
        ]

    def _layers(self, rows: Any) -> list[FloatArray]:
        """Output of each layer, for the last one before the softmax."""
        activate = _ACTIVATE[self._final.activation]
        signal = self._before_final(rows) if len(rows) else np.empty((0, self._width))
        layers = []
        for weights, offsets in zip(self._final.coefs_, self._final.intercepts_, strict=True):
            given = signal @ weights + offsets
            signal = activate(given)
            layers.append(np.asarray(signal, dtype=np.float64))
        layers[-1] = np.asarray(given, dtype=np.float64)
        return layers

    def _hidden(self, X: Features, layer: str | None) -> FloatArray:
        place = len(self.layers) - 1 if layer is None else pick_layer(self.layers, layer)
        return np.concatenate(self._kept(X, lambda layers: layers[place]))

    def _bits(self, X: Features) -> ActivationCodes:
        packed = self._kept(X, lambda layers: pack_bits([layer > 0 for layer in layers[:-1]]))
        words = np.concatenate([block.words for block in packed])
        return ActivationCodes(words, packed[0].layer_widths)


class SklearnClassifier(SklearnModel):
    """A fitted scikit-learn classifier with probabilities only."""

    def __init__(
        self, model: Any, classes: Sequence[object] | None, feature_names: Sequence[str] | None
    ) -> None:
        super().__init__(model, feature_names)
        own = tuple(_class_name(name) for name in model.classes_)
        self.classes = own if classes is None else tuple(str(name) for name in classes)
        self.named_classes = True
        _check_count(len(self.classes), len(own), "class")

    def predict_proba(self, X: Features) -> FloatArray:
        """Probabilities, (n, K) float64, rows summing to one.

        Raises
        ------
        InputError
            Missing columns, text or missing values where the model takes none.
        """
        prepared = self._prepare(X)
        with plain_errors():
            proba = self._model.predict_proba(prepared)
        return check_proba(proba)


class SklearnTrees(SklearnClassifier, TreeLeaves):
    """A classifier that is a tree, a forest or boosted trees."""


class SklearnMlp(SklearnClassifier, MlpLayers):
    """A multi-layer perceptron that classifies."""

    def logits(self, X: Features) -> FloatArray:
        """The argument of the softmax, (n, K) float64; (-z/2, z/2) for two classes."""
        return one_a_class(np.concatenate(self._kept(X, lambda layers: layers[-1])))


class SklearnNetwork(SklearnMlp):
    """A multi-layer perceptron with ReLU units."""

    def codes(self, X: Features) -> ActivationCodes:
        """Activation bits of each row, layer by layer."""
        return self._bits(X)

    def embed(self, X: Features, layer: str | None = None) -> FloatArray:
        """One hidden layer, (n, d) float64; the last by default."""
        return self._hidden(X, layer)


def _histogram_leaves(model: Any, rows: FloatArray) -> NDArray[np.int32]:
    """Leaves of histogram gradient boosting, which has no ``apply`` method."""
    trees = [tree for stage in model._predictors for tree in stage]
    leaves = np.zeros((len(rows), len(trees)), dtype=np.int32)
    for j, tree in enumerate(trees):
        nodes = tree.nodes
        if nodes["is_categorical"].any():
            raise InputError(
                f"The leaves of a {type(model).__name__} with categorical splits cannot be read",
                fix="Encode the categories before the model.",
            )
        at = leaves[:, j]
        walking = np.flatnonzero(nodes["is_leaf"][at] == 0)
        while walking.size:
            node = nodes[at[walking]]
            value = rows[walking, node["feature_idx"]]
            to_left = np.where(
                np.isnan(value), node["missing_go_to_left"] == 1, value <= node["num_threshold"]
            )
            at[walking] = np.where(to_left, node["left"], node["right"])
            walking = walking[nodes["is_leaf"][at[walking]] == 0]
    return leaves


def steps_of(model: Any) -> list[Any]:
    """The steps of a pipeline without "passthrough", or the model itself."""
    if type(model).__name__ != "Pipeline":
        return [model]
    steps = [step for _, step in model.steps if step is not None]
    return [step for step in steps if not isinstance(step, str)]


def is_trees(final: Any) -> bool:
    return hasattr(final, "apply") or type(final).__name__ in _HISTOGRAM


def rows_of(rows: Any, block: slice) -> Any:
    """Some rows of a frame or an array, by position."""
    return rows.iloc[block] if isinstance(rows, pd.DataFrame) else rows[block]


def is_regressor(model: Any) -> bool:
    """Whether a model, or the last step of a pipeline, is a regressor for scikit-learn."""
    from sklearn.base import is_regressor as says_so

    return bool(steps_of(model)) and bool(says_so(steps_of(model)[-1]))


def _takes_text(step: Any) -> bool:
    if type(step).__name__ in _HISTOGRAM:
        return getattr(step, "_preprocessor", None) is not None
    if type(step).__name__ == "TransformedTargetRegressor":
        return any(_takes_text(inner) for inner in steps_of(step.regressor_))
    return type(step).__name__ in (
        *("ColumnTransformer", "OneHotEncoder", "OrdinalEncoder", "TargetEncoder"),
        *("FeatureUnion", "FunctionTransformer", "Pipeline"),
    )


def _allows_missing(steps: list[Any]) -> bool:
    """Whether each step accepts missing values, up to the first that fills them in."""
    from sklearn.utils import get_tags

    for step in steps:
        if not get_tags(step).input_tags.allow_nan:
            return False
        if type(step).__name__.endswith("Imputer"):
            return True
    return True


def _kind(final: Any) -> str:
    name = type(final).__name__
    if name in ("DecisionTreeClassifier", "DecisionTreeRegressor"):
        return f"Decision tree, {_count(int(final.get_n_leaves()), 'leaf', 'leaves')}"
    if name in _FOREST_NAMES:
        return f"{_FOREST_NAMES[name]}, {_count(len(final.estimators_), 'tree')}"
    if name in ("GradientBoostingClassifier", "GradientBoostingRegressor"):
        return f"Gradient-boosted trees, {_count(final.estimators_.size, 'tree')}"
    if name in _HISTOGRAM:
        n_trees = sum(len(stage) for stage in final._predictors)
        return f"Gradient-boosted trees, {_count(n_trees, 'tree')}"
    if name in _PLAIN_NAMES:
        return _PLAIN_NAMES[name]
    if name in ("MLPClassifier", "MLPRegressor"):
        units = "ReLU network" if final.activation == "relu" else f"{final.activation} network"
        return f"{units}, {_count(len(final.coefs_) - 1, 'hidden layer')}"
    return name


def _count(n: int, one: str, many: str = "") -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def _check_count(got: int, expected: int, noun: str) -> None:
    if got != expected:
        raise InputError(
            f"{got:,} {noun} names were given, the model has {expected:,}",
            fix="Name each once, in the model's order.",
        )


def _class_name(label: Any) -> str:
    """A class label as text; 1.0 and 1 are the same class."""
    value = label.item() if isinstance(label, np.generic) else label
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn scikit-learn's errors about the rows into an :class:`InputError`."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            warnings.filterwarnings("ignore", message="Found unknown categories")
            yield
    except InputError:
        raise
    except Exception as error:  # a model from a file may raise any error
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"The model cannot work with this table: {line[:200]}",
            fix="Prepare the columns as they were prepared before training.",
        ) from error


_FORESTS = ("RandomForestRegressor", "ExtraTreesRegressor")
# A Gaussian process needs one number for each pair of a row of the block and a training row.
_KERNEL_BLOCK_CELLS = 1 << 24


def wrap_regressor(model: Any, *, feature_names: Sequence[str] | None, said: Outputs) -> Regressor:
    """Wrap a fitted scikit-learn regressor, or a pipeline that ends in one.

    The family is "normal" where ``predict`` can return standard deviations (``return_std``:
    Gaussian processes, Bayesian linear models), "quantiles" with one level for a quantile loss, and
    otherwise "point". A forest gives a point prediction: its trees' predictions, which ``members``
    returns, are samples of the estimated mean, not of the outcome.

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
