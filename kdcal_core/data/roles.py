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
Pairs = tuple[tuple[str, str], ...]  # class and its output column

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
_SINGLE = ("proba", "prob", "probability", "score", "p", "y_prob", "y_proba", "y_score", "pd")
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
    outputs, kind = _outputs(frame, known, taken, target)
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
    return re.sub(r"(?:[^\w<>=+\-]|_)+", "_", str(name).strip().casefold()).strip("_")


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
    frame: pd.DataFrame, classes: tuple[str, ...], taken: set[str], target: str | None
) -> tuple[Pairs, Kind]:
    free = [
        str(name)
        for name in frame.columns
        if name not in taken and name != target and _mostly_numbers(frame[name])
    ]
    for prefix, choices in _groups(free, classes):
        for pairs in choices:
            if prefix not in _LOGIT_PREFIXES and _sum_to_one(frame, pairs):
                return pairs, "probability"
        kind = _kind_by_name(frame, prefix, choices[-1], classes)
        if kind is not None:
            return (choices[0] if kind == "logit" else choices[-1]), kind
    return _single(frame, free, classes, target), "probability"


def _groups(
    columns: Sequence[str], classes: tuple[str, ...]
) -> Iterator[tuple[str, tuple[Pairs, ...]]]:
    """Groups of two columns or more, one a class, that share a prefix or bear the class names.

    A prefix has two readings, likelier first: all its columns, or only those of known classes.
    """
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
            yield prefix, (_all_of(named, classes), _paired(named, classes))
    if len(exact) >= 2 and len(exact) == len(classes):
        yield "", (exact,)


def _all_of(named: dict[str, str], classes: tuple[str, ...]) -> Pairs:
    """All columns of a prefix where the classes are some of them.

    The model may know a class of which the table has no row; its probability counts all the same.
    """
    spelled = {_simple(name): name for name in classes}
    if not spelled.keys() < named.keys():
        return _paired(named, classes)
    return tuple((spelled.get(key, _suffix(named[key], key)), named[key]) for key in _sorted(named))


def _sorted(named: dict[str, str]) -> tuple[str, ...]:
    return classes_of(list(named))


def _suffix(column: str, key: str) -> str:
    """The end of the column's name that reads ``key``, as it is spelled."""
    ends = (column[at:] for at in range(len(column)))
    return next(end for end in ends if _simple(end) == key).lstrip(" _.").rstrip()


def _paired(named: dict[str, str], classes: tuple[str, ...]) -> Pairs:
    """Pair suffixes with class names, by name or by count; else the suffixes are the names."""
    if classes and all(_simple(name) in named for name in classes):
        return tuple((name, named[_simple(name)]) for name in classes)
    ordered = _sorted(named)
    for first in (0, 1):
        counted = tuple(str(first + position) for position in range(len(named)))
        if ordered == counted and len(classes) == len(named):
            return tuple(zip(classes, (named[key] for key in counted), strict=True))
    return tuple((_suffix(named[key], key), named[key]) for key in ordered)


def _sampled(frame: pd.DataFrame, columns: Sequence[str]) -> FloatArray:
    step = max(len(frame) // _SAMPLE, 1)
    sample = frame.iloc[::step][list(columns)].apply(pd.to_numeric, errors="coerce")
    values: FloatArray = sample.to_numpy(dtype=np.float64, na_value=np.nan)
    return values


def _sum_to_one(frame: pd.DataFrame, pairs: Pairs) -> bool:
    """Whether most rows do."""
    values = _sampled(frame, [column for _, column in pairs])
    inside = ((values >= 0) & (values <= 1)).all(axis=1)
    return bool(np.mean(inside & (np.abs(values.sum(axis=1) - 1.0) <= _TOLERANCE)) > 0.5)


def _kind_by_name(
    frame: pd.DataFrame, prefix: str, pairs: Pairs, classes: tuple[str, ...]
) -> Kind | None:
    """What columns hold whose rows do not sum to one; None where they are no outputs.

    Columns with a prefix and exactly the classes' names are outputs whatever they hold: the
    checks that follow tell what is wrong with them.
    """
    values = _sampled(frame, [column for _, column in pairs])
    inside = ((values >= 0) & (values <= 1)).all()
    if prefix in _LOGIT_PREFIXES or (prefix == "score" and not inside):
        return "logit"
    named = prefix != "" and {name for name, _ in pairs} == set(classes)
    return "probability" if named or prefix.startswith(("prob", "predict")) else None


def _single(
    frame: pd.DataFrame, columns: Sequence[str], classes: tuple[str, ...], target: str | None
) -> Pairs:
    """One column with the probability of one class of two: the class it names, or the second.

    A column that names the target, as "p_default" beside "default", speaks of the second too.
    Several columns that could be it are no guess.
    """
    if classes and len(classes) != 2:
        return ()
    positive = classes[1] if classes else "1"
    spelled = {"1": positive, "positive": positive, "true": positive}
    spelled |= {_simple(target): positive} if target else {}
    spelled |= {_simple(name): name for name in classes if _simple(name)}
    suffixes = "|".join(["[0-9]+", *map(re.escape, spelled)])
    pattern = re.compile(f"(?:{'|'.join(_PREFIXES)})_?({suffixes})")
    found = [(column, pattern.fullmatch(_simple(column))) for column in columns]
    pairs = [(spelled.get(match[1], ""), column) for column, match in found if match]
    if not pairs:
        pairs = [(positive, column) for column in columns if _simple(column) in _SINGLE][:1]
    if len(pairs) != 1 or not pairs[0][0]:
        return ()
    ((name, column),) = pairs
    values = _sampled(frame, [column])
    return ((name, column),) if np.mean((values >= 0) & (values <= 1)) > 0.5 else ()


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
    numeric = [
        name
        for name in free
        if pd.api.types.is_bool_dtype(frame[name].dtype) or _mostly_numbers(frame[name])
    ]
    if n_features is not None and len(numeric) > n_features:
        numeric = [name for name in numeric if _simple(name) not in _IDS]
    return tuple(numeric)
