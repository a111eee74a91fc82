"""The inputs of a fit or a prediction, as a table in the columns of the fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data import IntArray, check_labels
from kdcal_core.errors import InputError


def input_table(X: Any, n: int, columns: tuple[str, ...] | None = None) -> pd.DataFrame:
    """The inputs as a table of n rows, in the columns of the fit.

    An array has no names: its columns are those of the fit in their order.
    """
    if isinstance(X, pd.DataFrame):
        frame = X
    else:
        values = np.asarray(X)
        if values.ndim != 2:
            raise InputError(
                f"The inputs must be a table (rows by columns), but have shape {values.shape}",
                fix="Give one row for each case and one column for each feature.",
            )
        width = values.shape[1]
        names = columns or tuple(f"column {i + 1}" for i in range(width))
        if len(names) != width:
            raise InputError(
                f"The inputs have {width:,} columns, and the calibrator was fitted with "
                f"{len(names):,}",
                fix="Give an array with the columns of the fit in their order, or a data frame.",
            )
        frame = pd.DataFrame(values, columns=list(names))
    if len(frame) != n:
        raise InputError(
            f"There are {len(frame):,} rows of inputs, but {n:,} rows of probabilities",
            fix="Give the inputs of the same rows in the same order.",
        )
    if columns is None or tuple(frame.columns) == columns:
        return frame
    places: dict[str, list[int]] = {}
    for place, name in enumerate(frame.columns):
        places.setdefault(str(name), []).append(place)
    for name in columns:
        found = len(places.get(name, ()))
        if found != 1:
            raise InputError(
                "Two columns of the inputs have one name"
                if found
                else "The inputs lack a column that the calibrator was fitted with",
                fix="Rename one of them." if found else "Give the same columns as at fit.",
                column=name,
            )
    return frame.iloc[:, [places[name][0] for name in columns]].set_axis(list(columns), axis=1)


def training_rows(
    X: Any, y: Any, like: pd.DataFrame, n_classes: int
) -> tuple[pd.DataFrame | None, IntArray | None]:
    """The rows that a partition is found on, in the columns of the others, or None."""
    if X is None and y is None:
        return None, None
    if X is None or y is None:
        raise InputError(
            "Of the rows that the partition is found on, only "
            + ("the labels are" if X is None else "the inputs are")
            + " given",
            fix="Give X_partition and y_partition together, or neither.",
        )
    labels = check_labels(y, n_classes)
    columns = tuple(str(name) for name in like.columns)
    return input_table(X, len(labels), columns), labels
