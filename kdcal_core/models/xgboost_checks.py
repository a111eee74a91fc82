"""Is an uploaded XGBoost model one that its library can follow without leaving its memory?

Works on the document as read from JSON or UBJSON, before the library sees it.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.errors import InputError
from kdcal_core.models.tree_checks import check_children, check_range, unsafe

_MAX_FEATURES = 1_000_000
_MAX_CLASSES = 100_000
# XGBoost keeps the categories of a split as a set of bits up to the largest of them.
_MAX_CATEGORY_BITS = 2**31
_FEATURE_TYPES = frozenset(("int", "float", "i", "q", "c"))
_NODE_ARRAYS = ("left_children", "right_children", "parents", "split_indices", "split_conditions")


def check_model(document: Any) -> None:
    """Check a model document.

    Raises
    ------
    InputError
        It is no XGBoost model of trees, or an index, a size or a class is out of range.
    """
    try:
        _check_learner(document["learner"])
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise unsafe(
            f"This is no XGBoost model, or a part is missing ({type(error).__name__}: "
            f"{str(error)[:60]})"
        ) from error


def gradient_booster(learner: Any) -> Any:
    """The part with the trees, which a dart booster wraps once more."""
    booster = learner["gradient_booster"]
    return booster["gbtree"] if booster.get("name") == "dart" else booster


def quantile_levels(learner: Any) -> list[float]:
    """Levels of a quantile regression, empty for other models.

    Raises
    ------
    InputError
        A level is outside 0 and 1.
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
    check_range(np.array([n_classes]), 0, _MAX_CLASSES, what="The number of classes")
    n_targets = int(parameters.get("num_target", "1"))
    # A model of several quantiles counts them as targets.
    levels = quantile_levels(learner)
    if n_classes and learner["objective"]["name"].startswith(("reg:", "count:")):
        raise unsafe("A regression model has no classes, yet it counts some")
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
    _check_forest(model, len(trees), n_columns)
    if booster["name"] == "dart":
        _numbers(booster["weight_drop"], len(trees), "tree weights")
    # The library puts each tree at the place that its id says.
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
    # Nodes that pruning deleted keep no children either.
    if (inner != (right != -1)).any():
        raise unsafe(f"A node of {where} has one child only")
    check_children(left, right, inner, where=where)
    check_range(features[inner], 0, n_features, what=f"A feature index of {where}")
    at = np.flatnonzero(inner)
    if (parents[left[at]] != at).any() or (parents[right[at]] != at).any():
        raise unsafe(f"A node of {where} and its child disagree about it")
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
    """The names of categories that XGBoost 3.1 and later keep."""
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
            raise unsafe("The order of the categories is none")


def category_list(entry: Any) -> list[Any]:
    """Names of the categories of one feature; empty for a feature of numbers."""
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
        raise unsafe(f"The {what} are no list of numbers")
    if n is not None and array.size != n:
        raise unsafe(f"The {what} are {array.size:,}, expected {n:,}")
    return array


def _integers(values: Any, n: int | None, what: str) -> NDArray[np.int64]:
    array = _numbers(values, n, what)
    if array.dtype.kind == "f" and (array != np.floor(array)).any():
        raise unsafe(f"The {what} are no integers")
    return array.astype(np.int64)
