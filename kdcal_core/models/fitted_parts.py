"""The sizes of a fitted scikit-learn model's parts, which must agree.

They reach compiled code from several places of a file: the width of a forest and of its trees, the
columns of an encoder and of the sparse matrix that it writes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kdcal_core.errors import InputError
from kdcal_core.models.upload_checks import (
    check_children,
    check_range,
    check_tree_nodes,
    unsafe,
)


def check_fitted(model: Any) -> None:
    """Check a model from a file, and remove what a review does not need.

    Raises
    ------
    InputError
        Sizes disagree, the model is not fitted, or a part cannot be checked.
    """
    try:
        _check_estimator(model)
    except InputError:
        raise
    except Exception as error:
        raise unsafe(
            f"The {type(model).__name__} is not fitted or lacks a part ({type(error).__name__})"
        ) from error


def _check_estimator(model: Any) -> None:
    check = _CHECKS.get(type(model).__name__)
    # The file must not set the number of threads or the verbosity.
    for name, quiet in (("n_jobs", None), ("verbose", 0)):
        if hasattr(model, name):
            setattr(model, name, quiet)
    if check is not None:
        check(model)


def _check_pipeline(model: Any) -> None:
    for _, step in model.steps:
        _check_step(step)


def _check_columns(model: Any) -> None:
    for _, step, _ in model.transformers_:
        _check_step(step)


def _check_step(step: Any) -> None:
    if step is not None and not (isinstance(step, str) and step in ("passthrough", "drop")):
        _check_estimator(step)


def _check_function(model: Any) -> None:
    if model.func is not None or model.inverse_func is not None:
        raise unsafe("A FunctionTransformer of the model carries a function")


def _check_target_transform(model: Any) -> None:
    _check_estimator(model.regressor_)
    _check_estimator(model.transformer_)


def _check_one_hot(model: Any) -> None:
    # The encoder writes into a sparse matrix whose width comes from these numbers.
    if model._infrequent_enabled:
        raise InputError(
            "A OneHotEncoder of the model groups infrequent categories, which kdcal does not open",
            fix="Save the model as ONNX, or write its probabilities into a table.",
        )
    widths = [len(categories) for categories in model.categories_]
    drops = model._drop_idx_after_grouping
    for j, drop in enumerate([None] * len(widths) if drops is None else list(drops)):
        if drop is not None:
            check_range(np.array([int(drop)]), 0, widths[j], what="A dropped category")
            widths[j] -= 1
    _same([int(width) for width in model._n_features_outs], widths, "columns of a OneHotEncoder")


def _check_fitted_tree(model: Any) -> None:
    _same(model.tree_.n_features, model.n_features_in_, "features of a tree")
    _same(model.n_outputs_, 1, "outputs of a tree")
    if hasattr(model, "classes_"):
        _same(int(model.n_classes_), len(model.classes_), "classes of a tree")
        _same(model.tree_.value.shape[2], len(model.classes_), "values of a tree")
    else:
        _same(model.tree_.value.shape[2], 1, "values of a tree")


def _check_forest(model: Any) -> None:
    trees = list(model.estimators_)
    _same(len(trees), model.n_estimators, "trees of the forest")
    classifies = hasattr(model, "classes_")
    if classifies:
        _same(len(model.classes_), model.n_classes_, "classes of the forest")
    else:
        _same(model.n_outputs_, 1, "outputs of the forest")
    kind = "Classifier" if classifies else "Regressor"
    for tree in trees:
        if type(tree).__name__ not in (f"DecisionTree{kind}", f"ExtraTree{kind}"):
            raise unsafe("A tree of the forest is not a tree")
        _check_fitted_tree(tree)
        _same(tree.n_features_in_, model.n_features_in_, "features of a tree of the forest")
        if classifies:
            _same(len(tree.classes_), len(model.classes_), "classes of a tree of the forest")


def _check_boosting(model: Any) -> None:
    stages = model.estimators_
    n_columns = _raw_columns(model)
    _same(np.shape(stages), (model.n_estimators_, n_columns), "stages of the model")
    for tree in stages.ravel():
        if type(tree).__name__ != "DecisionTreeRegressor":
            raise unsafe("A tree of the model is not a tree")
        _check_fitted_tree(tree)
        _same(tree.n_features_in_, model.n_features_in_, "features of a tree of the model")
    if not (isinstance(model.init_, str) and model.init_ == "zero"):
        expected = "DummyClassifier" if hasattr(model, "classes_") else "DummyRegressor"
        if type(model.init_).__name__ != expected:
            raise InputError(
                "The boosting starts from another model, which kdcal does not open",
                fix="Save the model as ONNX, or write its predictions into a table.",
            )
        if hasattr(model, "classes_"):
            _same(len(model.init_.classes_), len(model.classes_), "classes of the first guess")
        else:
            _same(np.size(model.init_.constant_), 1, "outputs of the first guess")


def _check_histogram_boosting(model: Any) -> None:
    n_features, n_columns = model.n_features_in_, _raw_columns(model)
    mapper = model._bin_mapper
    if model._preprocessor is not None or np.any(mapper.is_categorical_):
        raise InputError(
            f"The {type(model).__name__} splits on categories, which kdcal does not open",
            fix="Encode the categories before the model, or save it as ONNX.",
        )
    _same(len(mapper.bin_thresholds_), n_features, "features of the bins")
    _same(np.shape(mapper.is_categorical_), (n_features,), "features of the bins")
    first_guess = np.size(model._baseline_prediction)
    _same(first_guess, n_columns, "columns of the first guess")
    check_tree_nodes(sum(tree.nodes.size for stage in model._predictors for tree in stage))
    for stage in model._predictors:
        _same(len(stage), n_columns, "trees of a stage")
        for tree in stage:
            _check_predictor(tree, n_features)


def _check_predictor(tree: Any, n_features: int) -> None:
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE

    nodes = tree.nodes
    if nodes.dtype != PREDICTOR_RECORD_DTYPE or nodes.ndim != 1 or not nodes.size:
        raise unsafe("The nodes of a tree are not nodes")
    bitsets = tree.raw_left_cat_bitsets
    if bitsets.ndim != 2 or bitsets.dtype != np.uint32 or nodes["is_categorical"].any():
        raise unsafe("A tree of the model splits on categories that it does not have")
    if not np.isfinite(nodes["value"]).all():
        raise unsafe("The values of a tree are not finite")
    inner = nodes["is_leaf"] == 0
    check_children(nodes["left"], nodes["right"], inner, where="a tree")
    check_range(nodes["feature_idx"][inner], 0, n_features, what="A feature index of a tree")


def _raw_columns(model: Any) -> int:
    """Trees of a stage: one for a regression or two classes, else one for each class."""
    n_columns = 1
    if hasattr(model, "classes_"):
        _same(model._loss.n_classes, len(model.classes_), "classes of the loss")
        n_columns = 1 if len(model.classes_) == 2 else len(model.classes_)
    _same(model.n_trees_per_iteration_, n_columns, "trees of a stage")
    return n_columns


def _same(got: Any, expected: Any, what: str) -> None:
    if got != expected:
        raise unsafe(f"The number of {what} disagrees: {str(got)[:40]} and {str(expected)[:40]}")


_CHECKS = {
    "Pipeline": _check_pipeline,
    "ColumnTransformer": _check_columns,
    "FunctionTransformer": _check_function,
    "OneHotEncoder": _check_one_hot,
    "TransformedTargetRegressor": _check_target_transform,
    "DecisionTreeClassifier": _check_fitted_tree,
    "DecisionTreeRegressor": _check_fitted_tree,
    "ExtraTreeClassifier": _check_fitted_tree,
    "ExtraTreeRegressor": _check_fitted_tree,
    "RandomForestClassifier": _check_forest,
    "RandomForestRegressor": _check_forest,
    "ExtraTreesClassifier": _check_forest,
    "ExtraTreesRegressor": _check_forest,
    "GradientBoostingClassifier": _check_boosting,
    "GradientBoostingRegressor": _check_boosting,
    "HistGradientBoostingClassifier": _check_histogram_boosting,
    "HistGradientBoostingRegressor": _check_histogram_boosting,
}
