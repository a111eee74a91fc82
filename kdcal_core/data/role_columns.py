"""The columns of a table taken by their roles, each checked on the way out.

Those of any table and of a classification. The columns of a regression are in `forecast_columns`,
and those that say how rows depend on one another in `dependence_columns`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.data.array_checks import check_proba, check_weight, refuse_rows, softmax_logits
from kdcal_core.data.column_kinds import mostly_numbers, signed_shares
from kdcal_core.data.frames import as_pandas
from kdcal_core.data.labels import are_same, encode_labels
from kdcal_core.data.regression_columns import check_parameter_names
from kdcal_core.data.schema import (
    CONFIDENCES,
    MAJORITY_CLASSES,
    RIGHT_CLASSES,
    RIGHTS,
    UNITS,
    FloatArray,
    IntArray,
    Roles,
    Table,
)
from kdcal_core.data.written_numbers import plain_writing
from kdcal_core.errors import InputError
from kdcal_core.quotas import CLASSES
from kdcal_core.text import listed

_CHOOSE_OUTPUTS = (
    "Choose one probability (or logit) column for each class (on the Load page, or with --outputs)."
)


def check_roles(
    table: Table | pd.DataFrame,
    roles: Roles,
    *,
    classes: Sequence[str] | None = None,
    n_features: int | None = None,
    feature_names: Sequence[str] | None = None,
    needs_outputs: bool,
    file: str | None = None,
) -> None:
    """Check that the roles fit the table and the model; features may stand in any order.

    Parameters
    ----------
    classes, n_features, feature_names : optional
        What the model states about itself.
    needs_outputs : bool
        True for a table of predictions without a model: it needs output columns, no features.

    Raises
    ------
    InputError
        For a missing target, one with a single class or with too many, an unknown column, a column
        with two roles, features the model takes and the table lacks, a wrong number of features,
        text among the numbers of a feature, missing outputs or outputs that do not match the
        classes.
        In a regression, for an outcome that never varies and for parameters that make no
        distribution of the family.

    Examples
    --------
    >>> import pandas as pd
    >>> check_roles(pd.DataFrame({"x": [1]}), Roles(target="y"), needs_outputs=False)
    Traceback (most recent call last):
    ...
    kdcal_core.errors.InputError: The table has no column of this name (column 'y'). ...
    """
    frame, file = opened(table, file)
    regression = roles.task == "regression"
    if roles.target is None:
        of = "outcomes" if regression else "true classes"
        raise InputError("No column is the target", fix=f"Choose the column of {of}.", file=file)
    CLASSES.refuse_beyond(
        len(classes or ()),
        "The target",
        fix="Choose another target, or put rare classes together.",
        file=file,
        column=roles.target,
    )
    used = used_columns(roles)
    for column in used:
        known_column(frame, column, file)
    _check_used_once(used, file)
    if roles.cluster is not None and roles.time is not None:
        raise InputError(
            "Two columns say how rows depend on one another, one of clusters and one of times",
            fix="Keep one of these roles. Rows of one time are kept together, like a cluster.",
            file=file,
            column=roles.time,
        )
    # an outcome of words is recognised by `outcome_column`
    if not regression or mostly_numbers(frame[roles.target]):
        labels = true_labels(frame, roles, file)
        _check_varies(labels, roles.target, file, regression=regression)
    if needs_outputs and regression:
        check_parameter_names(
            roles.family,
            [name for name, _ in roles.parameters],
            columns=[column for _, column in roles.parameters],
            file=file,
        )
        return
    if needs_outputs:
        _check_outputs(roles, classes, file)
        return
    _check_features(roles, n_features, feature_names, file)
    for name in roles.features:
        _check_text_among_numbers(frame[name], name, file)


def target_labels(
    table: Table | pd.DataFrame, roles: Roles, classes: Sequence[str], file: str | None = None
) -> IntArray:
    """True classes as indices into ``classes``, (n,) int64.

    Raises
    ------
    InputError
        As :func:`true_labels` and :func:`encode_labels`.

    Examples
    --------
    >>> import pandas as pd
    >>> target_labels(pd.DataFrame({"y": ["b", "a"]}), Roles(target="y"), ("a", "b")).tolist()
    [1, 0]
    """
    frame, file = opened(table, file)
    labels = true_labels(frame, roles, file)
    return encode_labels(labels, classes, column=roles.target, file=file)


def true_labels(frame: pd.DataFrame, roles: Roles, file: str | None = None) -> pd.Series[Any]:
    """The true class of each row, as the target spells it; missing where the target is.

    Where the roles judge whether predictions are right, it is "right" or "wrong"; of shares it is
    "1" where at least half say so, else "0".

    Raises
    ------
    InputError
        Where no column is the target or, for the latter, no column the predicted class, or one is
        missing.

    Examples
    --------
    >>> roles = Roles("y", outputs=(("right", "p"),), output_kind="right", predicted="said")
    >>> frame = pd.DataFrame({"y": ["ant", "bee"], "said": ["ant", "cat"]})
    >>> true_labels(frame, roles).tolist()
    ['right', 'wrong']
    """
    if roles.target is None:
        raise InputError(
            "No column is the target", fix="Choose the column of true classes.", file=file
        )
    labels = known_column(frame, roles.target, file)
    if roles.majority:
        return _majority(frame, roles.target, file)
    known = labels.notna().to_numpy()
    if not roles.judges_right or not known.any():
        return labels
    predicted = _predicted(frame, roles, file)
    missing, fix = predicted.isna().to_numpy(), "Fill it in, or leave the row out."
    refuse_rows(missing, "The predicted class is missing", fix, column=roles.predicted, file=file)
    right = are_same(predicted[known], labels[known])
    names = pd.Series(index=labels.index, dtype=object)
    names[known] = np.array(RIGHT_CLASSES, dtype=object)[right.astype(int)]
    return names


def _majority(frame: pd.DataFrame, name: str, file: str | None) -> pd.Series[Any]:
    """The class that at least half say, by shares."""
    shares = numeric_matrix(frame, [name], allow_missing=True, allow_infinite=True, file=file)[:, 0]
    outside, fix = (shares < 0) | (shares > 1), "Shares lie between 0 and 1."
    refuse_rows(outside, "A share is below 0 or above 1", fix, column=name, file=file)
    names = np.array(MAJORITY_CLASSES, dtype=object)[(shares >= 0.5).astype(int)]
    return pd.Series(np.where(np.isnan(shares), None, names), index=frame.index)


def output_matrix(
    table: Table | pd.DataFrame, roles: Roles, classes: Sequence[str], file: str | None = None
) -> FloatArray:
    """The model's probabilities, (n, K) float64, columns in the order of ``classes``.

    Percentages are divided by 100, by a percent sign too, and thousandths by 1000; logits go
    through the softmax function, and log probabilities through the exponential function. Rows of
    rounded numbers are scaled to sum to one. A single output column of two classes is the
    probability (or the log odds) of its class; the other class has the complement. A confidence is
    the probability of the class in the column ``predicted``, or that it is right.

    Raises
    ------
    InputError
        Where a class has no output column or a column no class, for missing values, and as
        :func:`check_proba`.

    Examples
    --------
    >>> import pandas as pd
    >>> roles = Roles(outputs=(("yes", "p"),))
    >>> output_matrix(pd.DataFrame({"p": [0.25]}), roles, ("no", "yes")).tolist()
    [[0.75, 0.25]]
    """
    frame, file = opened(table, file)
    _check_outputs(roles, classes, file)
    if roles.output_kind == "log_probability":
        frame = _exponentiated(frame, [column for _, column in roles.outputs], file)
    elif roles.output_kind != "logit":
        unit = UNITS.get(roles.output_kind, 1.0)
        frame = _unsigned(frame, [column for _, column in roles.outputs], unit)
    if len(roles.outputs) == 1:
        return _from_single(frame, roles, classes, file)
    column_of = dict(roles.outputs)
    columns = [column_of[name] for name in classes]
    values = numeric_matrix(frame, columns, allow_missing=False, file=file, allow_infinite=True)
    if roles.output_kind == "logit":
        return softmax_logits(values, columns=columns, file=file)
    values = values / UNITS.get(roles.output_kind, 1.0)
    return check_proba(values, rounded=True, columns=columns, file=file)


def _exponentiated(frame: pd.DataFrame, columns: Sequence[str], file: str | None) -> pd.DataFrame:
    """The frame with probabilities in place of their natural logarithms."""
    values = numeric_matrix(frame, columns, allow_missing=False, file=file, allow_infinite=True)
    for at, name in enumerate(columns):
        fix = "Logarithms of probabilities are at most 0. Of log odds, say so."
        refuse_rows(
            values[:, at] > 0.0, "A log probability is above 0", fix, column=name, file=file
        )
    return frame.assign(**dict(zip(columns, np.exp(values).T, strict=True)))


def _unsigned(frame: pd.DataFrame, columns: Sequence[str], unit: float = 1.0) -> pd.DataFrame:
    """The frame with those of the columns as numbers that hold percentages with their sign."""
    signed = signed_shares(frame, [name for name in columns if name in frame.columns])
    return frame.assign(**{name: unit * column for name, column in signed.items()})


def weight_column(
    table: Table | pd.DataFrame, roles: Roles, file: str | None = None
) -> FloatArray | None:
    """Row weights, (n,) float64 above zero, or None where no column has that role.

    Raises
    ------
    InputError
        For text and for a weight that is missing, infinite, zero or negative.

    Examples
    --------
    >>> import pandas as pd
    >>> weight_column(pd.DataFrame({"w": [1, 2]}), Roles(weight="w")).tolist()
    [1.0, 2.0]
    """
    if roles.weight is None:
        return None
    frame, file = opened(table, file)
    values = numeric_matrix(frame, [roles.weight], allow_missing=False, file=file)
    try:
        return check_weight(values[:, 0], len(frame))
    except InputError as error:
        raise error.at(file=file, column=roles.weight) from error


def feature_frame(
    table: Table | pd.DataFrame, roles: Roles, file: str | None = None
) -> pd.DataFrame:
    """The feature columns in the order of the roles.

    Raises
    ------
    InputError
        Where the table lacks one of them, or there is none.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [1], "b": [2]})
    >>> list(feature_frame(frame, Roles(features=("b", "a"))))
    ['b', 'a']
    """
    frame, file = opened(table, file)
    if not roles.features:
        raise InputError(
            "No column is a feature", fix="Choose the columns that the model takes.", file=file
        )
    for column in roles.features:
        known_column(frame, column, file)
    return frame.loc[:, list(roles.features)]


def numeric_matrix(
    table: Table | pd.DataFrame,
    columns: Sequence[str],
    *,
    allow_missing: bool,
    allow_infinite: bool = False,
    file: str | None = None,
) -> FloatArray:
    """Columns as an (n, d) float64 array in C order; missing values become NaN where allowed.

    Raises
    ------
    InputError
        For text, dates, a missing value or infinity; the column and its first such row are
        named.

    Examples
    --------
    >>> import pandas as pd
    >>> numeric_matrix(pd.DataFrame({"x": [1, 2]}), ["x"], allow_missing=False).tolist()
    [[1.0], [2.0]]
    """
    frame, file = opened(table, file)
    matrix = np.empty((len(frame), len(columns)))
    for position, name in enumerate(columns):
        values = _numbers(known_column(frame, name, file), name, file)
        if not allow_missing:
            refuse_rows(
                np.isnan(values),
                "A value is missing",
                "Fill it in, or leave the row out.",
                column=name,
                file=file,
            )
        if not allow_infinite:
            refuse_rows(
                np.isinf(values), "A value is infinite", "Correct it.", column=name, file=file
            )
        matrix[:, position] = values
    return matrix


def used_columns(roles: Roles) -> list[str]:
    """Every column that has a role, one with two roles twice.

    Examples
    --------
    >>> used_columns(Roles(target="y", features=("a",), outputs=(("yes", "p"),)))
    ['y', 'p', 'a']
    """
    single = (
        *(roles.target, roles.predicted, roles.split, roles.weight),
        *(roles.cluster, roles.time, roles.true_mean),
    )
    named = [column for column in single if column is not None]
    answers = [column for _, column in (*roles.outputs, *roles.parameters)]
    return named + answers + list(roles.features)


def opened(table: Table | pd.DataFrame, file: str | None) -> tuple[pd.DataFrame, str | None]:
    """The frame of a table, and the name of its file for errors."""
    if isinstance(table, Table):
        return table.frame, file or table.name
    return as_pandas(table), file


def known_column(frame: pd.DataFrame, name: str, file: str | None) -> pd.Series[Any]:
    """A column of the frame; an error where there is none of this name."""
    if name not in frame.columns:
        raise InputError(
            "The table has no column of this name",
            fix="Choose the columns' roles again.",
            file=file,
            column=name,
        )
    return frame[name]


def _check_used_once(used: Sequence[str], file: str | None) -> None:
    seen: set[str] = set()
    for column in used:
        if column in seen:
            raise InputError(
                "The column has two roles", fix="Give it one.", file=file, column=column
            )
        seen.add(column)


def _check_varies(target: pd.Series[Any], name: str, file: str | None, *, regression: bool) -> None:
    values = target.dropna().unique()
    if len(values) >= 2:
        return
    if regression:
        held = f"only the value {str(values[0])[:60]!r}" if len(values) else "no value at all"
        fix = "Use rows whose outcomes vary as the model will meet them."
    else:
        held = f"only the class {str(values[0])[:60]!r}" if len(values) else "no label at all"
        fix = "Use rows of at least two classes, mixed as the model will meet them."
    raise InputError(f"The target holds {held}", fix=fix, file=file, column=name)


def _check_outputs(roles: Roles, classes: Sequence[str] | None, file: str | None) -> None:
    names = [name for name, _ in roles.outputs]
    if not names:
        raise InputError(
            "No column holds the model's outputs",
            fix=_CHOOSE_OUTPUTS,
            file=file,
        )
    if classes is None:
        return
    unknown = [(name, column) for name, column in roles.outputs if name not in set(classes)]
    if unknown:
        raise InputError(
            f"The output column belongs to a class {unknown[0][0][:60]!r} that is not among "
            f"the classes ({listed(map(repr, classes))})",
            fix="Name the column's class as the target spells it.",
            file=file,
            column=unknown[0][1],
        )
    absent = [name for name in classes if name not in set(names)]
    if absent and not (len(names) == 1 and len(classes) == 2):
        raise InputError(
            f"No output column belongs to {listed(map(repr, absent))}",
            fix=_CHOOSE_OUTPUTS,
            file=file,
        )


def _from_single(
    frame: pd.DataFrame, roles: Roles, classes: Sequence[str], file: str | None
) -> FloatArray:
    ((name, column),) = roles.outputs
    value = numeric_matrix(frame, [column], allow_missing=False, file=file)[:, 0]
    value = value / UNITS.get(roles.output_kind, 1.0)
    if roles.output_kind in CONFIDENCES and roles.output_kind not in RIGHTS:
        first = ~_is_second(frame, roles, classes, file)
        value, name = np.where(first, 1.0 - value, value), classes[1]
    if roles.output_kind == "logit":
        pair = softmax_logits(np.column_stack([np.zeros(len(value)), value]), file=file)
    else:
        outside = (value < 0) | (value > 1)
        fix = "Probabilities lie between 0 and 1. Of percentages or log odds, say so: on the Load "
        fix += "page, or with --output-kind percent or --output-kind logit."
        refuse_rows(outside, "A probability is below 0 or above 1", fix, column=column, file=file)
        pair = check_proba(np.column_stack([1.0 - value, value]), file=file)
    return pair if list(classes).index(name) == 1 else np.ascontiguousarray(pair[:, ::-1])


def _is_second(
    frame: pd.DataFrame, roles: Roles, classes: Sequence[str], file: str | None
) -> NDArray[np.bool_]:
    """Whether each row was predicted as the second class, (n,)."""
    predicted = _predicted(frame, roles, file)
    return np.asarray(encode_labels(predicted, classes, file=file, column=roles.predicted) == 1)


def _predicted(frame: pd.DataFrame, roles: Roles, file: str | None) -> pd.Series[Any]:
    """The predicted class of each row."""
    if roles.predicted is None:
        raise InputError(
            "A confidence says nothing without the predicted class that it belongs to",
            fix="Name the column of the predicted class, or give one column of probabilities.",
            file=file,
            column=roles.outputs[0][1],
        )
    return known_column(frame, roles.predicted, file)


def _check_features(
    roles: Roles,
    n_features: int | None,
    feature_names: Sequence[str] | None,
    file: str | None,
) -> None:
    if feature_names is not None:
        absent = [name for name in feature_names if name not in set(roles.features)]
        if absent:
            raise InputError(
                f"The model takes {len(absent):,} {_are(absent)} not chosen or not in the table: "
                f"{listed(map(repr, absent))}",
                fix="Name the table's columns as the model does and give them the role feature.",
                file=file,
                column=absent[0],
            )
    expected = len(feature_names) if feature_names is not None else n_features
    if expected is not None and len(roles.features) != expected:
        raise InputError(
            f"The model takes {expected:,} features, but {len(roles.features):,} are chosen",
            fix="Choose exactly the columns that the model was trained on, in the same order.",
            file=file,
        )


def _check_text_among_numbers(column: pd.Series[Any], name: str, file: str | None) -> None:
    """Text is a category to some models, but not where most of the column is numeric."""
    if pd.api.types.is_numeric_dtype(column.dtype) or isinstance(column.dtype, pd.CategoricalDtype):
        return
    text = column.astype("string")
    stray = text.notna() & pd.to_numeric(text, errors="coerce").isna()
    if 0 < stray.sum() < 0.5 * text.notna().sum():
        _raise_stray_text(column, stray.to_numpy(dtype=bool), name, file)


def _numbers(column: pd.Series[Any], name: str, file: str | None) -> NDArray[np.float64]:
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        raise InputError(
            "The column holds dates", fix="Turn them into numbers.", file=file, column=name
        )
    text = column.astype("string")
    numbers = pd.to_numeric(text, errors="coerce")
    stray = (text.notna() & numbers.isna()).to_numpy(dtype=bool)
    if stray.any():
        _raise_stray_text(column, stray, name, file)
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan)


def _raise_stray_text(
    column: pd.Series[Any],
    stray: NDArray[np.bool_],
    name: str,
    file: str | None,
) -> None:
    value = str(column.iloc[int(np.argmax(stray))])[:40]
    what = f"The value {value!r} is text, but a number is needed"
    fix = plain_writing(value)
    more = f"In this column, {fix}." if fix else "Correct it or choose another column."
    refuse_rows(stray, what, more, column=name, file=file)


def _are(features: Sequence[str]) -> str:
    return "feature that is" if len(features) == 1 else "features that are"
