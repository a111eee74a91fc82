"""LightGBM models from ``.txt`` files and from memory. The files do not name the classes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data import check_proba
from kdcal_core.data.types import FloatArray, Task
from kdcal_core.errors import InputError
from kdcal_core.models.base import Features, Model, Regressor
from kdcal_core.models.categories import numbers_and_categories
from kdcal_core.models.lightgbm_text import LightGBMText, parse
from kdcal_core.models.outputs import check_feature_names, class_names
from kdcal_core.models.regression_outputs import (
    Outputs,
    check_outputs,
    check_task,
    resolve_outputs,
)
from kdcal_core.partition import LeafCodes

_MAX_BYTES = 2**30


def load(path: Path, *, name: str, task: Task | None = None) -> Model | Regressor:
    """Load a ``.txt`` file.

    Raises
    ------
    InputError
        The file is broken, unsafe or of the other task.
    """
    if path.stat().st_size > _MAX_BYTES:
        raise InputError(f"The model is larger than {_MAX_BYTES:,} bytes", file=name)
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
    """Take a ``lightgbm.Booster``, a fitted ``LGBMClassifier`` or ``LGBMRegressor`` as a model.

    Raises
    ------
    InputError
        It is not fitted or of the other task, or the names given do not fit.
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


class LightGBMTrees:
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
        return numbers_and_categories(
            self._spelled(X) if isinstance(X, pd.DataFrame) else X,
            n_features=self.n_features,
            feature_names=self.feature_names,
            categories=self.categories,
        )

    def _spelled(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The frame with its columns spelled as LightGBM does, which writes "a b" as "a_b"."""
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
            know. Missing values are taken, as LightGBM does.
        """
        raw = np.asarray(self._booster.predict(self._rows(X)), dtype=np.float64)
        if raw.ndim == 1:
            raw = np.column_stack([1.0 - raw, raw])
        return check_proba(raw / raw.sum(axis=1, keepdims=True))


class LightGBMRegressor(LightGBMTrees):
    """A regressor of LightGBM: a point, or the quantile that it was trained for."""

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
            As :meth:`LightGBMClassifier.predict_proba`, or output that is not finite.
        """
        rows = self._rows(X)
        return check_outputs(self._booster.predict(rows), len(rows), 1)
