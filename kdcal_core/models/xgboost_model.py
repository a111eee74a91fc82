"""XGBoost models from ``.json`` and ``.ubj`` files and from memory, checked before they are used.

XGBoost's files hold no class names. A file may state them as the attribute ``kdcal_classes``, a
JSON list in the order of the class numbers::

    booster.set_attr(kdcal_classes='["<=50K", ">50K"]')

The checks work on the document read from JSON or UBJSON, before the library sees it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from kdcal_core.data import FloatArray, Task, check_proba, softmax_logits
from kdcal_core.errors import InputError
from kdcal_core.models.features import TOO_LARGE, bad_value, column_names, numbers_and_categories
from kdcal_core.models.formats import Content, Format, Library
from kdcal_core.models.output_meaning import (
    Outputs,
    check_feature_names,
    check_outputs,
    check_task,
    class_names,
    resolve_outputs,
    string_list,
)
from kdcal_core.models.protocol import Features, Model, Regressor, ShownModel
from kdcal_core.models.ubjson import decode_ubjson
from kdcal_core.models.upload_checks import (
    check_children,
    check_class_count,
    check_range,
    check_tree_nodes,
    unsafe,
)
from kdcal_core.partition import LeafCodes
from kdcal_core.store.claims import read_json

# Each predicts the mean, except the absolute error (the median) and the quantiles.
_REGRESSIONS = (
    *("reg:squarederror", "reg:squaredlogerror", "reg:pseudohubererror", "reg:absoluteerror"),
    *("reg:logistic", "reg:gamma", "reg:tweedie", "count:poisson", "reg:quantileerror"),
)
_OBJECTIVES = ("binary:logistic", "binary:logitraw", "multi:softprob", "multi:softmax")


def load(path: Path, *, name: str, task: Task | None = None) -> Model | Regressor:
    """Load a ``.json`` or ``.ubj`` file, recognised by its content.

    Raises
    ------
    InputError
        The file is broken, unsafe or of the other task.
    """
    content = path.read_bytes()
    document = read_document(content)
    check_model(document)
    import xgboost

    booster = xgboost.Booster()
    try:
        booster.load_model(bytearray(content))
        booster.num_boosted_rounds()  # some faults appear only when it is used
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
        If the content is broken or an object holds a name twice.
    """
    if content[:1] == b"{" and content[1:].lstrip()[:1] not in (b'"', b"}", b""):
        return decode_ubjson(content)
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
    """Wrap an ``xgboost.Booster`` or a fitted ``XGBClassifier`` or ``XGBRegressor``.

    Raises
    ------
    InputError
        If the model is not fitted or of the other task, or the given names do not fit.
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


class XGBoostTrees(ShownModel):
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
        except ValueError as error:  # the library's error is a subclass
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
        # Categories are passed as the model's numbers for them.
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
            know. Missing values are accepted, as in XGBoost.
        """
        as_margin = self._objective in ("multi:softmax", "binary:logitraw")
        raw = self._predict(self._matrix(X), output_margin=as_margin).astype(np.float64)
        if self._objective == "multi:softmax":
            return softmax_logits(raw)
        if self._objective == "binary:logitraw":
            raw = expit(raw)
        return check_proba(raw if raw.ndim == 2 else np.column_stack([1.0 - raw, raw]))


class XGBoostRegressor(XGBoostTrees):
    """A regressor of XGBoost, which predicts a point or the quantiles it was trained for."""

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
            As for :meth:`XGBoostClassifier.predict_proba`, or output that is not finite.
        """
        matrix = self._matrix(X)
        return check_outputs(self._predict(matrix), matrix.num_row(), len(self.outputs))


def _rounds(attributes: Any, n_rounds: int) -> tuple[int, int]:
    """Iterations used to predict: all, or up to the best where training was stopped early."""
    best = str(attributes.get("best_iteration", n_rounds - 1))
    if not best.isdecimal() or int(best) >= n_rounds:
        raise unsafe("The model has no iteration with the number of its best one")
    return 0, int(best) + 1


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Readers may differ in which of two equal names they use.
    members = dict(pairs)
    if len(members) < len(pairs):
        raise unsafe("A JSON object of the model holds a name twice")
    return members


def _last_words(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip() and "Stack trace" not in line]
    return (lines or [type(error).__name__])[0][-200:]


_MAX_FEATURES = 1_000_000
# XGBoost stores the categories of a split as bits, up to the largest category.
_MAX_CATEGORY_BITS = 2**31
_FEATURE_TYPES = frozenset(("int", "float", "i", "q", "c"))
_NODE_ARRAYS = ("left_children", "right_children", "parents", "split_indices", "split_conditions")


def check_model(document: Any) -> None:
    """Check a model document.

    Raises
    ------
    InputError
        If it is not an XGBoost model of trees, or an index, a size or a class is out of range.
    """
    try:
        _check_learner(document["learner"])
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise unsafe(
            f"This is not an XGBoost model, or a part is missing ({type(error).__name__}: "
            f"{str(error)[:60]})"
        ) from error


def gradient_booster(learner: Any) -> Any:
    """The part with the trees, which a dart booster nests one level deeper."""
    booster = learner["gradient_booster"]
    return booster["gbtree"] if booster.get("name") == "dart" else booster


def quantile_levels(learner: Any) -> list[float]:
    """Levels of a quantile regression, empty for other models.

    Raises
    ------
    InputError
        If a level is not between 0 and 1.
    """
    if learner["objective"]["name"] != "reg:quantileerror":
        return []
    stated = json.loads(str(learner["objective"]["quantile_loss_param"]["quantile_alpha"]))
    levels = [float(level) for level in np.atleast_1d(np.asarray(stated, dtype=np.float64))]
    if not levels or not all(0 < level < 1 for level in levels):
        raise unsafe("A quantile level of the model is outside 0 and 1")
    return levels


def _check_learner(learner: Any) -> None:
    booster = learner["gradient_booster"]
    if booster["name"] not in ("gbtree", "dart"):
        raise InputError(
            f"The booster is of the kind {str(booster['name'])[:20]!r}",
            fix="kdcal opens XGBoost models of trees (gbtree and dart).",
        )
    parameters = learner["learner_model_param"]
    n_features, n_classes = int(parameters["num_feature"]), int(parameters["num_class"])
    check_range(np.array([n_features]), 1, _MAX_FEATURES, what="The number of features")
    check_range(np.array([n_classes]), 0, 2**31, what="The number of classes")
    check_class_count(n_classes)
    n_targets = int(parameters.get("num_target", "1"))
    # XGBoost counts the quantiles of a model as targets.
    levels = quantile_levels(learner)
    if n_classes and learner["objective"]["name"].startswith(("reg:", "count:")):
        raise unsafe("The regression model states a number of classes")
    if n_targets != max(1, len(levels)):
        raise InputError(
            "The model has more than one target", fix="kdcal reviews one target at a time."
        )
    n_columns = max(n_classes, n_targets)
    _check_base_score(parameters["base_score"], n_columns)
    stated = learner["objective"].get("softmax_multiclass_param", {}).get("num_class", n_classes)
    if int(stated) != n_classes:
        raise unsafe("The number of classes of the objective disagrees with the model's")
    for key in ("feature_names", "feature_types"):
        names = learner.get(key, [])
        if len(names) not in (0, n_features) or not all(isinstance(name, str) for name in names):
            raise unsafe(f"The {key.replace('_', ' ')} do not fit the number of features")
    if not _FEATURE_TYPES.issuperset(learner.get("feature_types", [])):
        raise unsafe("A feature is of a type that XGBoost does not know")
    model = gradient_booster(learner)["model"]
    trees = model["trees"]
    check_tree_nodes(sum(int(tree["tree_param"]["num_nodes"]) for tree in trees))
    _check_forest(model, len(trees), n_columns)
    if booster["name"] == "dart":
        _numbers(booster["weight_drop"], len(trees), "tree weights")
    # The library stores each tree at the position given by its id.
    if [tree["id"] for tree in trees] != list(range(len(trees))):
        raise unsafe("The trees are not in the order of their ids")
    for k, tree in enumerate(trees):
        _check_tree(tree, n_features, f"tree {k + 1:,}")
    _check_categories(model.get("cats", {}), n_features)


def _check_base_score(text: Any, n_classes: int) -> None:
    score = np.atleast_1d(np.asarray(json.loads(str(text)), dtype=np.float64))
    if score.shape not in ((1,), (n_classes,)) or not np.isfinite(score).all():
        raise unsafe("The base score does not fit the number of classes")


def _check_forest(model: Any, n_trees: int, n_classes: int) -> None:
    if int(model["gbtree_model_param"]["num_trees"]) != n_trees:
        raise unsafe("The number of trees disagrees with their list")
    classes = _integers(model["tree_info"], n_trees, "classes of the trees")
    check_range(classes, 0, n_classes, what="The class of a tree")
    if "iteration_indptr" in model:
        bounds = _integers(model["iteration_indptr"], None, "bounds of the iterations")
        if bounds.size and (bounds[0] != 0 or bounds[-1] != n_trees or (np.diff(bounds) < 0).any()):
            raise unsafe("The bounds of the iterations are out of range")


def _check_tree(tree: Any, n_features: int, where: str) -> None:
    parameters = tree["tree_param"]
    n_nodes = int(parameters["num_nodes"])
    if int(parameters.get("size_leaf_vector", "1")) > 1:
        raise InputError(
            "The trees have vectors in their leaves",
            fix="kdcal opens XGBoost models with one tree per class (multi_strategy).",
        )
    check_range(np.array([n_nodes]), 1, 2**31, what=f"The number of nodes of {where}")
    left, right, parents, features = (
        _integers(tree[key], n_nodes, f"{key} of {where}") for key in _NODE_ARRAYS[:-1]
    )
    for key in ("split_conditions", "base_weights", "loss_changes", "sum_hessian"):
        if np.isnan(_numbers(tree[key], n_nodes, f"{key} of {where}")).any():
            raise unsafe(f"The {key} of {where} are not numbers")
    _integers(tree["default_left"], n_nodes, f"default_left of {where}")
    inner = left != -1
    # Nodes deleted by pruning have no children either.
    if (inner != (right != -1)).any():
        raise unsafe(f"A node of {where} has one child only")
    check_children(left, right, inner, where=where)
    check_range(features[inner], 0, n_features, what=f"A feature index of {where}")
    at = np.flatnonzero(inner)
    if (parents[left[at]] != at).any() or (parents[right[at]] != at).any():
        raise unsafe(f"A node of {where} is not the parent that its child states")
    _check_category_splits(tree, n_nodes, where)


def _check_category_splits(tree: Any, n_nodes: int, where: str) -> None:
    if "split_type" not in tree:
        return
    kinds = _integers(tree["split_type"], n_nodes, f"split types of {where}")
    check_range(kinds, 0, 2, what=f"A split type of {where}")
    nodes = _integers(tree["categories_nodes"], None, f"category nodes of {where}")
    starts = _integers(tree["categories_segments"], nodes.size, f"category starts of {where}")
    sizes = _integers(tree["categories_sizes"], nodes.size, f"category sizes of {where}")
    values = _integers(tree["categories"], None, f"categories of {where}")
    if not np.array_equal(nodes, np.flatnonzero(kinds == 1)):
        raise unsafe(f"The category splits of {where} disagree with their list")
    check_range(sizes, 1, values.size + 1, what=f"A category size of {where}")
    check_range(starts, 0, values.size, what=f"A category start of {where}")
    check_range(starts + sizes, 0, values.size + 1, what=f"A category end of {where}")
    check_range(values, 0, _MAX_CATEGORY_BITS, what=f"A category of {where}")
    if nodes.size and nodes.size * (int(values.max()) + 1) > _MAX_CATEGORY_BITS:
        raise unsafe(f"The categories of {where} are too many to hold")


def _check_categories(cats: Any, n_features: int) -> None:
    """Check the names of categories, which XGBoost 3.1 and later store."""
    lists = cats.get("enc", [])
    if not len(lists):
        return
    bounds = _integers(cats["feature_segments"], n_features + 1, "bounds of the categories")
    order = _integers(cats["sorted_idx"], None, "order of the categories")
    sizes = [len(category_list(entry)) for entry in lists]
    if len(lists) != n_features or not np.array_equal(np.diff(bounds), sizes) or bounds[0] != 0:
        raise unsafe("The lists of categories do not fit the features")
    if order.size != bounds[-1]:
        raise unsafe("The order of the categories does not fit their number")
    for low, stop in pairwise(bounds.tolist()):
        if not np.array_equal(np.sort(order[low:stop]), np.arange(stop - low)):
            raise unsafe("The order of the categories is not a permutation")


def category_list(entry: Any) -> list[Any]:
    """Names of the categories of one feature; empty for a numeric feature."""
    values = np.asarray(entry["values"])
    if "offsets" not in entry:
        return list(values.tolist())
    offsets = _integers(entry["offsets"], None, "offsets of the categories")
    if not offsets.size:
        return []
    if offsets[0] != 0 or offsets[-1] != values.size or (np.diff(offsets) < 0).any():
        raise unsafe("The offsets of the categories are out of range")
    text = values.astype(np.int64).astype(np.uint8).tobytes()
    return [
        text[low:stop].decode("utf-8", errors="replace") for low, stop in pairwise(offsets.tolist())
    ]


def _numbers(values: Any, n: int | None, what: str) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "biuf"):
        raise unsafe(f"The {what} are not a list of numbers")
    if n is not None and array.size != n:
        raise unsafe(f"The {what} are {array.size:,}, expected {n:,}")
    return array


def _integers(values: Any, n: int | None, what: str) -> NDArray[np.int64]:
    array = _numbers(values, n, what)
    if array.dtype.kind == "f" and (array != np.floor(array)).any():
        raise unsafe(f"The {what} are not integers")
    return array.astype(np.int64)


def _save(model: Any, path: Path, n_features: int) -> str:
    booster = model
    if hasattr(model, "get_booster"):
        booster = model.get_booster().copy()
        if hasattr(model, "classes_"):
            names = [str(name) for name in np.asarray(model.classes_).tolist()]
            booster.set_attr(kdcal_classes=json.dumps(names))
    booster.save_model(path)
    return ""


# The byte after an opening brace in UBJSON: the type of the first name's length.
_UBJ_LENGTHS = (b"i", b"U", b"I", b"l", b"L", b"$", b"#")


def _is_json(content: Content) -> bool:
    text = content.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return text[:1] == b"{" and text[1:].lstrip()[:1] in (b'"', b"}", b"")


def _is_ubj(content: Content) -> bool:
    return content.head[:1] == b"{" and content.head[1:2] in _UBJ_LENGTHS


_LIBRARY = Library("xgboost", "XGBoost", "an XGBoost", wrap, _save)
Format(
    key="xgboost_json",
    title="XGBoost JSON model",
    suffixes=(".json",),
    is_content=_is_json,
    load=load,
    family="boosted trees",
    library=_LIBRARY,
).offer()
Format(
    key="xgboost_ubj",
    title="XGBoost UBJSON model",
    suffixes=(".ubj",),
    is_content=_is_ubj,
    load=load,
    family="boosted trees",
    library=_LIBRARY,
).offer()
