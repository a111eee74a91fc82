"""XGBoost models from ``.json`` and ``.ubj`` files and from memory.

XGBoost's files do not name the classes. A file may carry them as the attribute
``kdcal_classes``, a JSON list in the order of the class numbers::

    booster.set_attr(kdcal_classes='["<=50K", ">50K"]')
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from kdcal_core.data import check_proba, softmax_logits
from kdcal_core.data.types import FloatArray, Task
from kdcal_core.errors import InputError
from kdcal_core.models import ubjson
from kdcal_core.models.base import Features, Model, Regressor
from kdcal_core.models.categories import numbers_and_categories
from kdcal_core.models.features import TOO_LARGE, bad_value, column_names
from kdcal_core.models.outputs import check_feature_names, class_names, string_list
from kdcal_core.models.regression_outputs import (
    Outputs,
    check_outputs,
    check_task,
    resolve_outputs,
)
from kdcal_core.models.tree_checks import unsafe
from kdcal_core.models.xgboost_checks import (
    category_list,
    check_model,
    gradient_booster,
    quantile_levels,
)
from kdcal_core.partition import LeafCodes
from kdcal_core.store.claims import read_json

_MAX_BYTES = 2**30
# What each predicts is the mean, but for the absolute error (the median) and the quantiles.
_REGRESSIONS = (
    *("reg:squarederror", "reg:squaredlogerror", "reg:pseudohubererror", "reg:absoluteerror"),
    *("reg:logistic", "reg:gamma", "reg:tweedie", "count:poisson", "reg:quantileerror"),
)
_OBJECTIVES = ("binary:logistic", "binary:logitraw", "multi:softprob", "multi:softmax")


def load(path: Path, *, name: str, task: Task | None = None) -> Model | Regressor:
    """Load a ``.json`` or ``.ubj`` file; told apart by content.

    Raises
    ------
    InputError
        The file is broken, unsafe or of the other task.
    """
    if path.stat().st_size > _MAX_BYTES:
        raise InputError(f"The model is larger than {_MAX_BYTES:,} bytes", file=name)
    content = path.read_bytes()
    document = read_document(content)
    check_model(document)
    import xgboost

    booster = xgboost.Booster()
    try:
        booster.load_model(bytearray(content))
        booster.num_boosted_rounds()  # some faults are only told once it is used
    except (xgboost.core.XGBoostError, ValueError, TypeError) as error:
        raise InputError(
            f"XGBoost cannot load the model: {_last_words(error)}",
            fix="Save it again with a current version of XGBoost.",
            file=name,
        ) from error
    return _build(booster, document["learner"], task=task)


def read_document(content: bytes) -> Any:
    """The model document of a JSON or UBJSON file, without loading it.

    Raises
    ------
    InputError
        The content is broken, or names something twice in one object.
    """
    if content[:1] == b"{" and content[1:].lstrip()[:1] not in (b'"', b"}", b""):
        return ubjson.decode(content)
    try:
        return read_json(content, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"The JSON content is broken: {str(error)[:100]}",
            fix="The file may have been cut off on its way; copy or save it again.",
        ) from error


def wrap(
    model: Any,
    *,
    classes: Sequence[object] | None = None,
    feature_names: Sequence[str] | None = None,
    task: Task | None = None,
    said: Outputs | None = None,
) -> Model | Regressor:
    """Take an ``xgboost.Booster``, a fitted ``XGBClassifier`` or ``XGBRegressor`` as a model.

    Raises
    ------
    InputError
        It is not fitted or of the other task, or the names given do not fit.
    """
    booster = model
    if hasattr(model, "get_booster"):
        if not model.__sklearn_is_fitted__():
            raise InputError(f"The {type(model).__name__} is not fitted", fix="Fit it first.")
        booster = model.get_booster()
        if classes is None:
            classes = getattr(model, "classes_", None)
    learner = json.loads(booster.save_raw("json"))["learner"]
    return _build(
        booster, learner, classes=classes, feature_names=feature_names, task=task, said=said
    )


def _build(
    booster: Any,
    learner: Any,
    *,
    classes: Sequence[object] | None = None,
    feature_names: Sequence[str] | None = None,
    task: Task | None,
    said: Outputs | None = None,
) -> Model | Regressor:
    objective = str(learner["objective"]["name"])
    if objective in _REGRESSIONS:
        check_task("regression", task)
        return XGBoostRegressor(booster, learner, feature_names, said or Outputs())
    if objective in _OBJECTIVES:
        check_task("classification", task)
        return XGBoostClassifier(booster, learner, classes=classes, feature_names=feature_names)
    raise InputError(
        f"The model's objective {objective[:40]!r} gives neither class probabilities nor a number",
        fix=f"kdcal reviews {', '.join((*_OBJECTIVES, *_REGRESSIONS))}.",
    )


class XGBoostTrees:
    """Boosted trees of XGBoost; leaves through ``pred_leaf``.

    A model that was stopped early predicts with its best iterations, as ``XGBClassifier`` does.
    """

    def __init__(self, booster: Any, learner: Any, feature_names: Sequence[str] | None) -> None:
        self._objective = str(learner["objective"]["name"])
        self._booster = booster
        self.n_features = int(learner["learner_model_param"]["num_feature"])
        given = feature_names or learner.get("feature_names") or None
        self.feature_names = check_feature_names(given, self.n_features)
        self._types = list(learner.get("feature_types") or ["float"] * self.n_features)
        model = gradient_booster(learner)["model"]
        lists = [category_list(entry) for entry in model.get("cats", {}).get("enc", [])]
        self.categories = {j: entries for j, entries in enumerate(lists) if entries}
        self._rounds = _rounds(learner.get("attributes", {}), booster.num_boosted_rounds())
        n_trees = len(model["trees"])
        self.kind = f"Gradient-boosted trees (XGBoost), {n_trees:,} tree{'s'[: n_trees != 1]}"

    def codes(self, X: Features) -> LeafCodes:
        """Leaf of each row in each tree, (n, n_trees) int32; trees in the order of the file."""
        matrix = self._matrix(X)
        leaves = self._predict(matrix, pred_leaf=True)
        return LeafCodes(leaves.reshape(matrix.num_row(), -1).astype(np.int32))

    def _predict(self, matrix: Any, **options: bool) -> NDArray[Any]:
        try:
            raw = self._booster.predict(matrix, iteration_range=self._rounds, **options)
        except ValueError as error:  # the library's own error is one
            raise InputError(
                f"The model cannot work with this table: {_last_words(error)}",
                fix="Prepare the columns as they were prepared before training.",
            ) from error
        return np.asarray(raw)

    def _matrix(self, X: Features) -> Any:
        import xgboost

        rows = numbers_and_categories(
            X,
            n_features=self.n_features,
            feature_names=self.feature_names,
            categories=self.categories,
        )
        large = np.abs(rows) > np.finfo(np.float32).max
        if large.any():
            names = column_names(X, n_features=self.n_features, feature_names=self.feature_names)
            raise bad_value(rows, large, names, TOO_LARGE)
        # Categories are handed over as the numbers under which the model knows them.
        return xgboost.DMatrix(
            rows,
            feature_names=self._booster.feature_names,
            feature_types=self._types,
            enable_categorical=True,
        )


class XGBoostClassifier(XGBoostTrees):
    """A classifier of XGBoost."""

    def __init__(
        self,
        booster: Any,
        learner: Any,
        *,
        classes: Sequence[object] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(booster, learner, feature_names)
        attributes = learner.get("attributes", {})
        n_classes = max(int(learner["learner_model_param"]["num_class"]), 2)
        if classes is None and "kdcal_classes" in attributes:
            classes = string_list(str(attributes["kdcal_classes"]), "kdcal_classes")
        known = None if classes is None else [str(label) for label in classes]
        self.classes, self.named_classes = class_names(known, n_classes)

    def predict_proba(self, X: Features) -> FloatArray:
        """Probabilities, (n, K) float64, rows summing to one.

        Raises
        ------
        InputError
            Missing columns, text in a column of numbers, or a category that the model does not
            know. Missing values are taken, as XGBoost does.
        """
        as_margin = self._objective in ("multi:softmax", "binary:logitraw")
        raw = self._predict(self._matrix(X), output_margin=as_margin).astype(np.float64)
        if self._objective == "multi:softmax":
            return softmax_logits(raw)
        if self._objective == "binary:logitraw":
            raw = expit(raw)
        return check_proba(raw if raw.ndim == 2 else np.column_stack([1.0 - raw, raw]))


class XGBoostRegressor(XGBoostTrees):
    """A regressor of XGBoost: a point, or quantiles with the levels that it was trained for."""

    def __init__(
        self, booster: Any, learner: Any, feature_names: Sequence[str] | None, said: Outputs
    ) -> None:
        super().__init__(booster, learner, feature_names)
        levels = quantile_levels(learner)
        if levels:
            said = Outputs("quantiles", tuple(str(level) for level in levels))
        self.outputs, self.family = resolve_outputs(max(1, len(levels)), said)

    def predict(self, X: Features) -> FloatArray:
        """Parameters of each row's distribution, (n, len(outputs)) float64.

        Raises
        ------
        InputError
            As :meth:`XGBoostClassifier.predict_proba`, or output that is not finite.
        """
        matrix = self._matrix(X)
        return check_outputs(self._predict(matrix), matrix.num_row(), len(self.outputs))


def _rounds(attributes: Any, n_rounds: int) -> tuple[int, int]:
    """Iterations that predict: all, or up to the best where training was stopped early."""
    best = str(attributes.get("best_iteration", n_rounds - 1))
    if not best.isdecimal() or int(best) >= n_rounds:
        raise unsafe("The best iteration is none of the model's")
    return 0, int(best) + 1


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Two readers may disagree about which of two equal names counts.
    members = dict(pairs)
    if len(members) < len(pairs):
        raise unsafe("A JSON object of the model names something twice")
    return members


def _last_words(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip() and "Stack trace" not in line]
    return (lines or [type(error).__name__])[0][-200:]
