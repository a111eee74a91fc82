"""LightGBM models from ``.txt`` files and from memory. The files hold no class names.

The text is a header of ``key=value`` lines, a block of these lines for each tree, then the
parameters and the categories of the training table. The library finds the trees by byte counts in
the header and follows their indices unchecked, so both are checked here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.data import FloatArray, Task, as_pandas, check_proba
from kdcal_core.errors import InputError
from kdcal_core.models.features import numbers_and_categories
from kdcal_core.models.formats import Content, Format, Library
from kdcal_core.models.output_meaning import (
    Outputs,
    check_feature_names,
    check_outputs,
    check_task,
    class_names,
    resolve_outputs,
)
from kdcal_core.models.protocol import Features, Model, Regressor, ShownModel
from kdcal_core.models.upload_checks import (
    check_children,
    check_class_count,
    check_range,
    check_tree_nodes,
    unsafe,
)
from kdcal_core.partition import LeafCodes
from kdcal_core.store.claims import read_json


def load(path: Path, *, name: str, task: Task | None = None) -> Model | Regressor:
    """Load a ``.txt`` file.

    Raises
    ------
    InputError
        The file is broken, unsafe or of the other task.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            "The LightGBM model is not UTF-8 text", fix="Copy or save it again.", file=name
        ) from error
    parsed = parse(text)
    import lightgbm

    try:
        booster = lightgbm.Booster(model_str=parsed.model)
    except (lightgbm.basic.LightGBMError, ValueError, TypeError) as error:
        raise InputError(
            f"LightGBM cannot load the model: {str(error)[:200]}",
            fix="Save it again with a current version of LightGBM.",
            file=name,
        ) from error
    return _build(booster, parsed, task=task)


def wrap(
    model: Any,
    *,
    classes: Sequence[object] | None = None,
    feature_names: Sequence[str] | None = None,
    task: Task | None = None,
    said: Outputs | None = None,
) -> Model | Regressor:
    """Wrap a ``lightgbm.Booster`` or a fitted ``LGBMClassifier`` or ``LGBMRegressor``.

    Raises
    ------
    InputError
        The model is not fitted or of the other task, or the given names do not fit.
    """
    booster = model
    if hasattr(model, "booster_"):
        booster = model.booster_
        if classes is None:
            classes = getattr(model, "classes_", None)
    if not hasattr(booster, "model_to_string"):
        raise InputError(f"The {type(model).__name__} is not fitted", fix="Fit it first.")
    parsed = parse(booster.model_to_string())
    return _build(
        booster, parsed, classes=classes, feature_names=feature_names, task=task, said=said
    )


def _build(
    booster: Any,
    parsed: LightGBMText,
    *,
    classes: Sequence[object] | None = None,
    feature_names: Sequence[str] | None = None,
    task: Task | None,
    said: Outputs | None = None,
) -> Model | Regressor:
    check_task("regression" if parsed.regression else "classification", task)
    if parsed.regression:
        return LightGBMRegressor(booster, parsed, feature_names, said or Outputs())
    return LightGBMClassifier(booster, parsed, classes=classes, feature_names=feature_names)


class LightGBMTrees(ShownModel):
    """Boosted trees of LightGBM; leaves through ``pred_leaf``."""

    def __init__(
        self, booster: Any, parsed: LightGBMText, feature_names: Sequence[str] | None
    ) -> None:
        self._booster = booster
        self.categories = parsed.categories
        self.n_features = parsed.n_features
        given = feature_names or parsed.feature_names
        self.feature_names = check_feature_names(given, self.n_features)
        plural = "" if parsed.n_trees == 1 else "s"
        self.kind = f"Gradient-boosted trees (LightGBM), {parsed.n_trees:,} tree{plural}"

    def codes(self, X: Features) -> LeafCodes:
        """Leaf of each row in each tree, (n, n_trees) int32; trees in the order of the file."""
        rows = self._rows(X)
        leaves = np.asarray(self._booster.predict(rows, pred_leaf=True))
        return LeafCodes(leaves.reshape(len(rows), -1).astype(np.int32))

    def _rows(self, X: Features) -> FloatArray:
        X = as_pandas(X)
        return numbers_and_categories(
            self._spelled(X) if isinstance(X, pd.DataFrame) else X,
            n_features=self.n_features,
            feature_names=self.feature_names,
            categories=self.categories,
        )

    def _spelled(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The frame with column names spelled as in LightGBM, which writes "a b" as "a_b"."""
        known = set(self.feature_names or ())
        missing = known.difference(str(name) for name in frame.columns)
        names = {name: "_".join(str(name).split(" ")) for name in frame.columns}
        return frame.rename(columns={old: new for old, new in names.items() if new in missing})


class LightGBMClassifier(LightGBMTrees):
    """A classifier of LightGBM."""

    def __init__(
        self,
        booster: Any,
        parsed: LightGBMText,
        *,
        classes: Sequence[object] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(booster, parsed, feature_names)
        known = None if classes is None else [str(label) for label in classes]
        self.classes, self.named_classes = class_names(known, parsed.n_classes)

    def predict_proba(self, X: Features) -> FloatArray:
        """Probabilities, (n, K) float64, rows summing to one.

        The one-against-rest scores of ``multiclassova`` are divided by their sum.

        Raises
        ------
        InputError
            Missing columns, text in a column of numbers, or a category that the model does not
            know. Missing values are accepted, as in LightGBM.
        """
        raw = np.asarray(self._booster.predict(self._rows(X)), dtype=np.float64)
        if raw.ndim == 1:
            raw = np.column_stack([1.0 - raw, raw])
        return check_proba(raw / raw.sum(axis=1, keepdims=True))


class LightGBMRegressor(LightGBMTrees):
    """A regressor of LightGBM, which predicts a point or the quantile it was trained for."""

    def __init__(
        self,
        booster: Any,
        parsed: LightGBMText,
        feature_names: Sequence[str] | None,
        said: Outputs,
    ) -> None:
        super().__init__(booster, parsed, feature_names)
        if said == Outputs() and parsed.level is not None:
            said = Outputs("quantiles", (str(parsed.level),))
        self.outputs, self.family = resolve_outputs(1, said)

    def predict(self, X: Features) -> FloatArray:
        """The prediction of each row, (n, 1) float64.

        Raises
        ------
        InputError
            As for :meth:`LightGBMClassifier.predict_proba`, or output that is not finite.
        """
        rows = self._rows(X)
        return check_outputs(self._booster.predict(rows), len(rows), 1)


_MAX_FEATURES = 1_000_000
_NUMBER_CHARACTERS = frozenset("0123456789+-. eEinfa")
# Count of numbers under each key for a tree of n leaves: n, or n - 1 for its inner nodes.
_PER_LEAF = ("leaf_value", "leaf_weight", "leaf_count")
_PER_SPLIT = (
    *("split_feature", "split_gain", "threshold", "decision_type", "left_child"),
    *("right_child", "internal_value", "internal_weight", "internal_count"),
)
_NEEDED = ("split_feature", "threshold", "decision_type", "left_child", "right_child")
_OTHER_KEYS = ("Tree", "num_leaves", "num_cat", "cat_boundaries", "cat_threshold", "is_linear")
_KEYS = frozenset((*_PER_LEAF, *_PER_SPLIT, *_OTHER_KEYS, "shrinkage"))
_END = "end of trees"
_OBJECTIVES = ("binary", "multiclass", "multiclassova")
_REGRESSIONS = (
    *("regression", "regression_l1", "huber", "fair", "poisson", "quantile", "mape", "gamma"),
    *("tweedie", "cross_entropy"),
)


@dataclass(frozen=True)
class LightGBMText:
    """What kdcal reads from a text model.

    Attributes
    ----------
    model : str
        The header and the trees, which are all that predictions need.
    n_classes, n_features, n_trees : int
    feature_names : tuple of str or None
        None where LightGBM only numbered the features.
    categories : dict of int to list
        Categories of the training table by column index.
    regression : bool
        Whether the objective is one of regression.
    level : float or None
        Level of a quantile regression, where the parameters state it.
    """

    model: str
    n_classes: int
    n_features: int
    n_trees: int
    feature_names: tuple[str, ...] | None
    categories: dict[int, list[Any]]
    regression: bool = False
    level: float | None = None


def parse(text: str) -> LightGBMText:
    """Read a text model and check it.

    Raises
    ------
    InputError
        The text is not a LightGBM model of trees, is cut off, or an index or a size is out of
        range.
    """
    text = text.replace("\r\n", "\n")
    head, _, rest = text.partition("\nTree=")
    blocks, end, tail = f"Tree={rest}".partition(f"\n{_END}")
    if not rest or not end:
        raise InputError(
            "The LightGBM model has no trees or no end",
            fix="The file may have been cut off on its way; copy or save it again.",
        )
    try:
        return _parse(head, blocks, tail)
    except InputError:
        raise
    except (LookupError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise unsafe(
            f"This is not a LightGBM model, or a part is missing ({str(error)[:80]})"
        ) from error


def _parse(head: str, blocks: str, tail: str) -> LightGBMText:
    header = _key_values(head)
    n_features = _integer(header["max_feature_idx"]) + 1
    n_per_round = _integer(header["num_tree_per_iteration"])
    n_classes = _integer(header["num_class"])
    check_range(np.array([n_features]), 1, _MAX_FEATURES, what="The number of features")
    check_range(np.array([n_classes]), 1, 2**31, what="The number of classes")
    check_class_count(n_classes)
    if n_per_round != n_classes:
        raise unsafe("The number of trees of an iteration disagrees with the classes")
    objective = header.get("objective", "none")
    _check_objective(objective, n_classes)
    names = header["feature_names"].split()
    for key in ("feature_names", "feature_infos"):
        if len(header[key].split()) != n_features:
            raise unsafe(f"The {key.replace('_', ' ')} do not fit the number of features")
    trees = _split(header, blocks)
    if len(trees) % n_per_round:
        raise unsafe("The last iteration lacks a tree")
    n_nodes = 0
    for k, tree in enumerate(trees):
        values = _key_values(tree, _KEYS)
        n_nodes += 2 * _integer(values["num_leaves"]) - 1
        check_tree_nodes(n_nodes)
        _check_tree(values, n_features, f"tree {k + 1:,}")
    counted = names == [f"Column_{j}" for j in range(n_features)]
    return LightGBMText(
        model=f"{head}\n{blocks}\n{_END}\n",
        n_classes=max(n_classes, 2),
        n_features=n_features,
        n_trees=len(trees),
        feature_names=None if counted else tuple(names),
        categories=_categories(tail, n_features),
        regression=objective.split()[0] in _REGRESSIONS,
        level=_level(tail) if objective.split()[0] == "quantile" else None,
    )


def _check_objective(text: str, n_classes: int) -> None:
    objective, *options = text.split()
    if objective in _REGRESSIONS:
        if n_classes != 1:
            raise unsafe("The number of classes of the objective disagrees with the model's")
        return
    if objective not in _OBJECTIVES:
        raise InputError(
            f"The model's objective {objective[:40]!r} gives neither class probabilities nor a "
            "number",
            fix=f"kdcal reviews {', '.join((*_OBJECTIVES, *_REGRESSIONS))}.",
        )
    # The library writes this many probabilities into memory sized by the header's classes.
    stated = [option for option in options if option.startswith("num_class:")]
    expected = [] if objective == "binary" else [f"num_class:{n_classes}"]
    if stated != expected or (objective == "binary" and n_classes != 1):
        raise unsafe("The number of classes of the objective disagrees with the model's")


def _split(header: dict[str, str], blocks: str) -> list[str]:
    """The trees' texts, cut at the header's byte counts, which must match the trees."""
    content = blocks.encode() + b"\n"
    sizes = _integers(header["tree_sizes"], None, "sizes of the trees")
    # The library uses these counts without a check.
    check_range(sizes, 1, len(content) + 1, what="The size of a tree")
    ends = list(accumulate(sizes.tolist(), initial=0))
    trees = [content[low:stop].decode() for low, stop in pairwise(ends)]
    starts = [match.start() for match in re.finditer(rb"^Tree=", content, re.MULTILINE)]
    if starts != ends[:-1] or content[ends[-1] :].strip():
        raise unsafe("The sizes of the trees disagree with their texts")
    return trees


def _key_values(text: str, allowed: frozenset[str] | None = None) -> dict[str, str]:
    values: dict[str, str] = {}
    for line in text.strip("\n").split("\n"):
        key, _, value = line.partition("=")
        if key in values or (allowed is not None and key not in allowed):
            raise unsafe(f"The line {line[:40]!r} of the model is unknown or occurs twice")
        values[key] = value
    return values


def _check_tree(tree: dict[str, str], n_features: int, where: str) -> None:
    n_leaves = _integer(tree["num_leaves"])
    n_categorical = _integer(tree["num_cat"])
    if tree.get("is_linear", "0") != "0":
        raise InputError(
            "The model has linear functions in its leaves",
            fix="kdcal opens LightGBM models with constant leaves (linear_tree=false).",
        )
    check_range(np.array([n_leaves]), 1, 2**31, what=f"The number of leaves of {where}")
    values = {
        key: _numbers(tree[key], size, f"{key} of {where}")
        for keys, size in ((_PER_LEAF, n_leaves), (_PER_SPLIT, n_leaves - 1))
        for key in keys
        if key in tree and (tree[key].strip() or key == "leaf_value")
    }
    if not np.isfinite(values["leaf_value"]).all():
        raise unsafe(f"The values of {where} are not finite")
    if n_leaves == 1:
        return
    split, threshold, decision, left, right = (values[key] for key in _NEEDED)
    if np.isnan(threshold).any():
        raise unsafe(f"The thresholds of {where} are not numbers")
    for numbers in (split, decision, left, right):
        if (numbers != np.floor(numbers)).any():
            raise unsafe(f"An index of {where} is not an integer")
    check_range(split, 0, n_features, what=f"A feature index of {where}")
    check_range(decision, 0, 16, what=f"A decision type of {where}")
    _check_shape(left, right, n_leaves, where)
    _check_category_splits(tree, threshold[(decision.astype(int) & 1) == 1], n_categorical, where)


def _check_shape(left: NDArray[Any], right: NDArray[Any], n_leaves: int, where: str) -> None:
    """Children as LightGBM numbers them: an inner node's number, or -1 - a leaf's number."""
    n_inner = n_leaves - 1
    nodes = np.zeros((2, n_inner + n_leaves), dtype=np.int64)
    for side, children in enumerate((left, right)):
        check_range(children, -n_leaves, n_inner, what=f"A child index of {where}")
        nodes[side, :n_inner] = np.where(children < 0, n_inner - 1 - children, children)
    check_children(nodes[0], nodes[1], np.arange(nodes.shape[1]) < n_inner, where=where)


def _check_category_splits(
    tree: dict[str, str], thresholds: NDArray[Any], n_categorical: int, where: str
) -> None:
    if n_categorical == 0 and not thresholds.size:
        return
    bounds = _integers(tree["cat_boundaries"], n_categorical + 1, f"category bounds of {where}")
    words = _integers(tree["cat_threshold"], None, f"categories of {where}")
    check_range(words, 0, 2**32, what=f"A category of {where}")
    if bounds[0] != 0 or bounds[-1] != words.size or (np.diff(bounds) < 0).any():
        raise unsafe(f"The category bounds of {where} are out of range")
    if (thresholds != np.floor(thresholds)).any():
        raise unsafe(f"A category split of {where} is not an integer")
    check_range(thresholds, 0, n_categorical, what=f"A category split of {where}")


def _level(tail: str) -> float | None:
    """Level of a quantile regression: the parameter alpha after the trees."""
    found = re.search(r"^\[alpha: ([0-9.e+-]{1,30})\]$", tail, re.MULTILINE)
    level = float(found[1]) if found else None
    if level is not None and not 0 < level < 1:
        raise unsafe("The quantile level of the model is outside 0 and 1")
    return level


def _categories(tail: str, n_features: int) -> dict[int, list[Any]]:
    """Categories of the training table by column, from the parameters and the last line."""
    found = re.search(r"^pandas_categorical:(.*)$", tail, re.MULTILINE)
    lists = read_json(found[1].encode()) if found else None
    if not lists:
        return {}
    columns = re.search(r"^\[categorical_feature: ([0-9,]*)\]$", tail, re.MULTILINE)
    indices = [int(index) for index in columns[1].split(",") if index] if columns else []
    if not isinstance(lists, list) or not all(isinstance(entry, list) for entry in lists):
        raise unsafe("The categories of the model are not lists")
    check_range(np.array(indices), 0, n_features, what="The index of a categorical feature")
    if len(indices) != len(lists) or len(set(indices)) != len(indices):
        raise InputError(
            "The model does not say which of its features are categories",
            fix="Train it with unordered categories only, or encode them as numbers.",
        )
    return dict(zip(sorted(indices), lists, strict=True))


def _integer(text: str) -> int:
    return int(_integers(text, 1, "sizes of the model")[0])


def _integers(text: str, n: int | None, what: str) -> NDArray[np.int64]:
    return _values(text, n, what, int).astype(np.int64)


def _numbers(text: str, n: int, what: str) -> NDArray[np.float64]:
    return _values(text, n, what, float).astype(np.float64)


def _values(text: str, n: int | None, what: str, kind: type) -> NDArray[Any]:
    # Python reads some texts as numbers that the library does not, such as 1_0.
    if not _NUMBER_CHARACTERS.issuperset(text):
        raise unsafe(f"The {what} are not numbers")
    values: Sequence[Any] = [kind(word) for word in text.split()]
    if n is not None and len(values) != n:
        raise unsafe(f"The {what} are {len(values):,}, expected {n:,}")
    return np.array(values, dtype=kind)


def _save(model: Any, path: Path, n_features: int) -> str:
    booster = getattr(model, "booster_", model)
    booster.save_model(path)
    if not hasattr(model, "classes_"):
        return ""
    names = ", ".join(f"{k} = {name}" for k, name in enumerate(model.classes_))
    return f" LightGBM's files do not name the classes: {names}."


def _is_lightgbm(content: Content) -> bool:
    return content.head.replace(b"\r\n", b"\n").startswith(b"tree\nversion=")


Format(
    key="lightgbm",
    title="LightGBM text model",
    suffixes=(".txt",),
    is_content=_is_lightgbm,
    load=load,
    family="boosted trees",
    library=Library("lightgbm", "LightGBM", "a LightGBM", wrap, _save),
).offer()
