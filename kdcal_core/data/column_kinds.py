"""What any table's columns hold, by their names and values: numbers, inputs, splits, features."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data.schema import FloatArray
from kdcal_core.data.splits import split_by_column
from kdcal_core.data.times import looks_like_dates
from kdcal_core.errors import InputError

_SAMPLE = 2_000


def is_number(column: pd.Series[Any]) -> bool:
    """Whether the column's type is numeric; booleans are not.

    Examples
    --------
    >>> is_number(pd.Series([1, 2])), is_number(pd.Series([True]))
    (True, False)
    """
    kind = column.dtype
    return bool(pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind))


def mostly_numbers(column: pd.Series[Any]) -> bool:
    """Whether a column was meant to hold numbers.

    One stray word turns a whole column into text. If such a column were skipped here, its class
    would silently lose its probability; the checks that follow name the stray word.

    Examples
    --------
    >>> mostly_numbers(pd.Series(["1", "2", "oops"])), mostly_numbers(pd.Series(["a", "b"]))
    (True, False)
    """
    if is_number(column):
        return True
    if not pd.api.types.is_string_dtype(column.dtype):
        return False
    sample = column.iloc[:: max(len(column) // _SAMPLE, 1)].dropna()
    return bool(len(sample)) and bool(pd.to_numeric(sample, errors="coerce").notna().mean() > 0.5)


def sampled(frame: pd.DataFrame, columns: Sequence[str]) -> FloatArray:
    """About 2,000 rows of the columns as numbers, evenly spread; other values become NaN.

    Examples
    --------
    >>> sampled(pd.DataFrame({"x": ["1", "no"]}), ["x"]).tolist()
    [[1.0], [nan]]
    """
    step = max(len(frame) // _SAMPLE, 1)
    sample = frame.iloc[::step][list(columns)].apply(pd.to_numeric, errors="coerce")
    values: FloatArray = sample.to_numpy(dtype=np.float64, na_value=np.nan)
    return values


_PERCENT = re.compile(r"\s*[+-]?\d*[.,]?\d+\s*%\s*")


def signed_shares(frame: pd.DataFrame, columns: Sequence[str]) -> dict[str, pd.Series[Any]]:
    """As shares, those of the columns that hold nothing but percentages with their sign.

    Examples
    --------
    >>> frame = pd.DataFrame({"p": ["12.5%", "7,5 %"], "q": ["50%", "0.5"], "x": [1, 2]})
    >>> {name: column.tolist() for name, column in signed_shares(frame, list(frame)).items()}
    {'p': [0.125, 0.075]}
    """
    found = {}
    for name in columns:
        known = frame[name].dropna()
        if len(known) == 0 or not _PERCENT.fullmatch(str(known.iloc[0])):
            continue  # most columns are known by their first value
        text = known.astype("string")
        if text.str.fullmatch(_PERCENT.pattern).all():
            plain = text.str.replace("%", "").str.replace(",", ".").str.strip()
            found[name] = pd.to_numeric(plain).astype(np.float64).reindex(frame.index) / 100.0
    return found


_LOOKED_AT = 10_000  # rows, evenly spread
_FEW = 20  # distinct values for which every table has enough rows
_MANY = 254  # categories that a tree over the inputs can distinguish
_REPEATED = 0.1  # share of rows that repeat an identifier
SEVERAL_ROWS = "it names what several rows belong to"
# of whom or what a row is; several rows may be of one
WHOSE: tuple[str, ...] = (
    *("patient", "customer", "client", "subject", "person", "participant", "member", "user"),
    *("household", "account", "company", "visit", "encounter", "admission", "case", "order"),
)
IDS = ("id", "index", "row", "row_id", "unnamed_0", "rowid", "uuid")


def why_no_input(name: str, column: pd.Series[Any]) -> str:
    """Why a column of this content says nothing about a row's region; empty where it does.

    Numbers, booleans and text with few distinct values do. Free text and names of single rows do
    not, nor do whole numbers that only count or name the rows.

    Parameters
    ----------
    name : str
        The column's name in its simple form, as :func:`simple` makes it.
    column : pandas.Series

    Examples
    --------
    >>> why_no_input("region", pd.Series(["north", "south"] * 50))
    ''
    >>> why_no_input("comment", pd.Series([f"call {i}" for i in range(100)]))
    'nearly every row has another value'
    >>> why_no_input("applied", pd.Series(["22.07.2026", "8.7.2026"] * 50))
    'dates or times'
    >>> why_no_input("customer_id", pd.Series(range(100)))
    'it numbers the rows'
    >>> why_no_input("customer_id", pd.Series([*range(300)] * 2)) == SEVERAL_ROWS
    True
    """
    if pd.api.types.is_bool_dtype(column.dtype):
        return ""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    if looks_like_dates(name, column):
        return "dates or times"
    looked = column.iloc[:: max(len(column) // _LOOKED_AT, 1)].dropna()
    named_id = names_rows(name)
    if mostly_numbers(column):
        return _why_no_number(column, looked) if named_id else ""
    if not pd.api.types.is_string_dtype(column.dtype):
        return "neither numbers nor text"
    n_distinct = looked.nunique()
    if named_id and n_distinct > _MANY and column.duplicated().mean() > _REPEATED:
        return SEVERAL_ROWS
    if n_distinct > max(_FEW, len(looked) / 2):
        return "nearly every row has another value"
    return f"more than {_MANY} different values" if n_distinct > _MANY else ""


def names_rows(name: str) -> bool:
    """Whether a simple name says that a column names rows, or of whom or what they are.

    Examples
    --------
    >>> names_rows("patient"), names_rows("loan_id"), names_rows("age")
    (True, True, False)
    """
    return name in (*IDS, *WHOSE) or name.endswith("_id")


def _why_no_number(column: pd.Series[Any], looked: pd.Series[Any]) -> str:
    """Why numbers that are named an identifier are no input."""
    values = pd.to_numeric(looked, errors="coerce").dropna()
    if len(values) <= _FEW or not (values % 1 == 0).all():
        return ""
    if values.nunique() > _MANY and column.duplicated().mean() > _REPEATED:
        return SEVERAL_ROWS
    return "it numbers the rows" if values.is_unique else ""


PREDICTED: tuple[str, ...] = (
    "predicted",
    "prediction",
    "pred",
    "y_pred",
    "y_hat",
    "yhat",
    "predicted_class",
)
PREDICTED += ("predict", "predicted_label", "pred_label", "pred_class", "prediction_label")
PREDICTED += ("scored_label", "scored_labels")
SPLITS = ("split", "set", "subset", "partition", "part", "fold", "dataset")
_WEIGHT_WORDS = frozenset(("weight", "weights", "wt", "wgt"))
_WEIGHED = frozenset(
    (
        *("sample", "samples", "sampling", "survey", "case", "row", "obs", "observation", "design"),
        *("frequency", "population", "expansion", "inverse", "probability", "analysis"),
    )
)


def simple(name: object) -> str:
    """Lower case, with every run of other characters as one underscore.

    Examples
    --------
    >>> simple("Sample Weight"), simple("q.05")
    ('sample_weight', 'q_05')
    """
    return re.sub(r"(?:[^\w<>=+\-]|_)+", "_", str(name).strip().casefold()).strip("_")


def says_weight(name: object) -> bool:
    """Whether a column's name says that it holds the weights of rows.

    Examples
    --------
    >>> says_weight("Sampling Weight"), says_weight("weights"), says_weight("survey_wgt")
    (True, True, True)
    >>> says_weight("weight"), says_weight("birth_weight")  # a body's, a car's
    (False, False)
    """
    words = {*simple(name).split("_")}
    of_rows = bool(words & _WEIGHED) and words <= _WEIGHED | _WEIGHT_WORDS
    return simple(name) == "weights" or (of_rows and bool(words & _WEIGHT_WORDS))


def weight_named(frame: pd.DataFrame, taken: set[str]) -> str | None:
    """The first free column whose name says that it holds the weights of rows."""
    free = (str(name) for name in frame.columns if name not in taken)
    return next((name for name in free if says_weight(name)), None)


def named(frame: pd.DataFrame, names: Sequence[str], taken: set[str]) -> str | None:
    """The first free column whose name is in the list, earlier names of the list first.

    Examples
    --------
    >>> named(pd.DataFrame({"Y": [1], "Target": [2]}), ("target", "y"), taken=set())
    'Target'
    """
    free = {simple(column): column for column in reversed(frame.columns) if column not in taken}
    return next((str(free[name]) for name in names if name in free), None)


def split_named(frame: pd.DataFrame, taken: set[str]) -> str | None:
    """The free column that is named like a split and holds names of sets.

    Examples
    --------
    >>> split_named(pd.DataFrame({"set": ["train", "calibration"]}), taken=set())
    'set'
    """
    column = named(frame, SPLITS, taken)
    if column is None:
        return None
    try:
        split_by_column(frame, column)
    except InputError:
        return None
    return column


def features_of(
    frame: pd.DataFrame,
    feature_names: Sequence[str] | None,
    n_features: int | None,
    taken: set[str],
) -> tuple[str, ...]:
    """The model's inputs: those it names, or else the free columns of numbers.

    Where nothing is known about the model, every column that describes the rows.

    Examples
    --------
    >>> frame = pd.DataFrame({"id": [1, 2], "x": [2.0, 0.5], "region": ["north", "south"]})
    >>> features_of(frame, None, 1, taken=set())
    ('x',)
    >>> features_of(frame, None, None, taken={"id"})
    ('x', 'region')
    """
    if feature_names:
        present = set(frame.columns)
        return tuple(name for name in feature_names if name in present)
    free = [str(name) for name in frame.columns if name not in taken]
    if n_features is None:
        return tuple(name for name in free if not why_no_input(simple(name), frame[name]))
    numeric = [
        name
        for name in free
        if pd.api.types.is_bool_dtype(frame[name].dtype) or mostly_numbers(frame[name])
    ]
    if len(numeric) > n_features:
        numeric = [name for name in numeric if simple(name) not in IDS]
    inputs = [name for name in numeric if not why_no_input(simple(name), frame[name])]
    return tuple(inputs if len(numeric) > n_features <= len(inputs) else numeric)
