"""Columns found by their names: what the guesses of both tasks share."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pandas as pd

from kdcal_core.data.inputs import IDS, why_no_input
from kdcal_core.data.numbers import mostly_numbers
from kdcal_core.data.splits import split_by_column
from kdcal_core.errors import InputError

PREDICTED: tuple[str, ...] = (
    "predicted",
    "prediction",
    "pred",
    "y_pred",
    "y_hat",
    "yhat",
    "predicted_class",
)
PREDICTED += ("predicted_label", "pred_label", "pred_class", "prediction_label")
SPLITS = ("split", "set", "subset", "partition", "part", "fold", "dataset")
# A column named just "weight" may well be a feature: a body's, a car's.
WEIGHTS = ("sample_weight", "sample_weights", "case_weight", "row_weight", "obs_weight", "weights")


def simple(name: object) -> str:
    """Lower case, with every run of other signs as one underscore.

    Examples
    --------
    >>> simple("Sample Weight"), simple("q.05")
    ('sample_weight', 'q_05')
    """
    return re.sub(r"(?:[^\w<>=+\-]|_)+", "_", str(name).strip().casefold()).strip("_")


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

    Where nothing is known of the model, whatever describes the rows.

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
    return tuple(numeric)
