"""A first guess at what each column of a table is for; people correct it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from kdcal_core.data.labels import classes_of, encode_labels
from kdcal_core.data.splits import split_by_column
from kdcal_core.data.types import FloatArray, Roles, Table
from kdcal_core.errors import InputError

Kind = Literal["probability", "logit"]

_TARGETS = (
    *("target", "y", "y_true", "true_label", "true_class", "label", "labels", "class", "outcome"),
    *("actual", "truth", "ground_truth", "income", "diagnosis", "digit", "species", "category"),
    *("response", "default", "churn", "survived", "fraud"),
)
_PREDICTED: tuple[str, ...] = (
    "predicted",
    "prediction",
    "pred",
    "y_pred",
    "y_hat",
    "yhat",
    "predicted_class",
)
_PREDICTED += ("predicted_label", "pred_label", "pred_class", "prediction_label")
_SPLITS = ("split", "set", "subset", "partition", "part", "fold", "dataset")
# A column named just "weight" may well be a feature: a body's, a car's.
_WEIGHTS = ("sample_weight", "sample_weights", "case_weight", "row_weight", "obs_weight", "weights")
_IDS = ("id", "index", "row", "row_id", "unnamed_0", "rowid", "uuid")
_PREFIXES: tuple[str, ...] = (
    "predicted_proba",
    "predict_proba",
    "probability",
    "proba",
    "prob",
    "logits",
    "logit",
)
_PREFIXES += ("score", "margin", "pred", "p")
_LOGIT_PREFIXES = ("logits", "logit", "margin")
_SINGLE = ("proba", "prob", "probability", "score", "p", "y_prob", "y_proba", "y_score")
_MAX_TARGET_CLASSES = 50
_SAMPLE = 2_000
_TOLERANCE = 0.01


def guess_roles(
    table: Table | pd.DataFrame,
    *,
    classes: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    n_features: int | None = None,
) -> Roles:
    """Guess the role of each column from its name and content.

    Parameters
    ----------
    table : Table or pandas.DataFrame
    classes : sequence of str, optional
        The model's class names, where it names them.
    feature_names : sequence of str, optional
        The model's input columns. Those that the table has become the features, in the model's
        order; without names the numeric columns without another role do.
    n_features : int, optional
        Number of input columns; where there are more candidates, columns that look like row
        numbers are left out.

    Returns
    -------
    Roles
        ``outputs`` of length one pairs the positive class of two with its probability; the
        other class has the complement.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"y": [0, 1], "proba_0": [0.7, 0.2], "proba_1": [0.3, 0.8]})
    >>> roles = guess_roles(frame)
    >>> roles.target, roles.outputs
    ('y', (('0', 'proba_0'), ('1', 'proba_1')))
    """
    frame = table.frame if isinstance(table, Table) else table
    taken = set(feature_names or ()) & set(frame.columns)
    target = _named(frame, _TARGETS, taken)
    known = tuple(classes) if classes else _classes_in(frame, target)
    outputs, kind = _outputs(frame, known, taken | {target} if target else taken)
    taken |= {column for _, column in outputs}
    if target is None:
        target = _target_by_content(frame, classes, taken)
    taken |= {target} if target else set()
    predicted = _named(frame, _PREDICTED, taken)
    weight = _named(frame, _WEIGHTS, taken)
    taken |= {column for column in (predicted, weight) if column}
    split = _split(frame, taken)
    taken |= {split} if split else set()
    return Roles(
        target=target,
        features=_features(frame, feature_names, n_features, taken),
        outputs=outputs,
        output_kind=kind,
        predicted=predicted,
        split=split,
        weight=weight,
    )


def _simple(name: object) -> str:
    """Lower case, with every run of other signs as one underscore."""
    return re.sub(r"[^0-9a-z<>=+\-]+", "_", str(name).strip().casefold()).strip("_")


def _named(frame: pd.DataFrame, names: Sequence[str], taken: set[str]) -> str | None:
    """The first free column whose name is in the list, earlier names of the list first."""
    free = {_simple(column): column for column in reversed(frame.columns) if column not in taken}
    return next((str(free[name]) for name in names if name in free), None)


def _classes_in(frame: pd.DataFrame, target: str | None) -> tuple[str, ...]:
    if target is None or frame[target].nunique() > _MAX_TARGET_CLASSES:
        return ()
    return classes_of(frame[target])


def _is_number(column: pd.Series[Any]) -> bool:
    kind = column.dtype
    return bool(pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind))


def _mostly_numbers(column: pd.Series[Any]) -> bool:
    """Whether a column was meant to hold numbers.

    One stray word makes text of a whole column; were it passed over here, its class would lose
    its probability without a word. The checks that follow name the stray.
    """
    if _is_number(column):
        return True
    if not pd.api.types.is_string_dtype(column.dtype):
        return False
    sample = column.iloc[:: max(len(column) // _SAMPLE, 1)].dropna()
    return bool(len(sample)) and bool(pd.to_numeric(sample, errors="coerce").notna().mean() > 0.5)


def _outputs(
    frame: pd.DataFrame, classes: tuple[str, ...], taken: set[str]
) -> tuple[tuple[tuple[str, str], ...], Kind]:
    free = [
        str(name) for name in frame.columns if name not in taken and _mostly_numbers(frame[name])
    ]
    for prefix, pairs in _groups(free, classes):
        kind = _kind(_sampled(frame, [column for _, column in pairs]), prefix)
        if kind is not None:
            return pairs, kind
    return _single(frame, free, classes), "probability"


def _groups(
    columns: Sequence[str], classes: tuple[str, ...]
) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    """Groups of two columns or more, one a class, that share a prefix or bear the class names."""
    simple = {_simple(column): column for column in columns}
    exact = tuple((name, simple[_simple(name)]) for name in classes if _simple(name) in simple)
    for prefix in _PREFIXES:
        start = prefix + "_"
        named = {
            key.removeprefix(start): column
            for key, column in simple.items()
            if key.startswith(start) and len(key) > len(start)
        }
        if len(named) >= 2:
            yield prefix, _paired(named, classes)
    if len(exact) >= 2 and len(exact) == len(classes):
        yield "", exact


def _paired(named: dict[str, str], classes: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Pair suffixes with class names, by name or by count; else the suffixes are the names."""
    if classes and all(_simple(name) in named for name in classes):
        return tuple((name, named[_simple(name)]) for name in classes)
    ordered = classes_of(list(named))
    for first in (0, 1):
        counted = tuple(str(first + position) for position in range(len(named)))
        if ordered == counted and len(classes) == len(named):
            return tuple(zip(classes, (named[key] for key in counted), strict=True))
    originals = {key: column[len(column) - len(key) :] for key, column in named.items()}
    return tuple((originals[key], named[key]) for key in ordered)


def _sampled(frame: pd.DataFrame, columns: Sequence[str]) -> FloatArray:
    step = max(len(frame) // _SAMPLE, 1)
    sample = frame.iloc[::step][list(columns)].apply(pd.to_numeric, errors="coerce")
    values: FloatArray = sample.to_numpy(dtype=np.float64, na_value=np.nan)
    return values


def _kind(values: FloatArray, prefix: str) -> Kind | None:
    """Probability where most rows sum to one; logit by name or by content; else no outputs."""
    inside = ((values >= 0) & (values <= 1)).all(axis=1)
    sums = np.abs(values.sum(axis=1) - 1.0) <= _TOLERANCE
    if np.mean(inside & sums) > 0.5 and prefix not in _LOGIT_PREFIXES:
        return "probability"
    if prefix in _LOGIT_PREFIXES or (prefix == "score" and not inside.all()):
        return "logit"
    return "probability" if prefix.startswith(("prob", "predict")) else None


def _single(
    frame: pd.DataFrame, columns: Sequence[str], classes: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """One column with the probability of the positive class of two."""
    if classes and len(classes) != 2:
        return ()
    positive = classes[1] if classes else "1"
    wanted = set(_SINGLE)
    for name in ("1", _simple(positive), "positive", "true"):
        wanted |= {f"{prefix}{join}{name}" for prefix in _PREFIXES for join in ("_", "")}
    for column in columns:
        values = _sampled(frame, [column])
        if _simple(column) in wanted and np.mean((values >= 0) & (values <= 1)) > 0.5:
            return ((positive, column),)
    return ()


def _target_by_content(
    frame: pd.DataFrame, classes: Sequence[str] | None, taken: set[str]
) -> str | None:
    """The last column of few classes; of the model's classes where these are known."""
    free = [str(name) for name in frame.columns if name not in taken]
    few = [name for name in reversed(free) if _has_few_classes(frame[name])]
    if classes:
        fitting = [name for name in few if _fits(frame[name], classes)]
        return fitting[0] if fitting else None
    few = [name for name in few if _simple(name) not in (*_PREDICTED, *_SPLITS, *_WEIGHTS)]
    return few[0] if few else None


def _has_few_classes(column: pd.Series[Any]) -> bool:
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return False
    if pd.api.types.is_float_dtype(column.dtype) and (column.dropna() % 1 != 0).any():
        return False
    return 2 <= column.nunique() <= min(_MAX_TARGET_CLASSES, max(2, len(column) // 2))


def _fits(column: pd.Series[Any], classes: Sequence[str]) -> bool:
    try:
        encode_labels(column.dropna().drop_duplicates(), classes)
    except InputError:
        return False
    return True


def _split(frame: pd.DataFrame, taken: set[str]) -> str | None:
    column = _named(frame, _SPLITS, taken)
    if column is None:
        return None
    try:
        split_by_column(frame, column)
    except InputError:
        return None
    return column


def _features(
    frame: pd.DataFrame,
    feature_names: Sequence[str] | None,
    n_features: int | None,
    taken: set[str],
) -> tuple[str, ...]:
    if feature_names:
        present = set(frame.columns)
        return tuple(name for name in feature_names if name in present)
    free = [str(name) for name in frame.columns if name not in taken]
    numeric = [name for name in free if pd.api.types.is_numeric_dtype(frame[name].dtype)]
    if n_features is not None and len(numeric) > n_features:
        numeric = [name for name in numeric if _simple(name) not in _IDS]
    return tuple(numeric)
