"""The inputs as a table whose columns stand in order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.errors import InputError
from kdcal_core.partition.tree.columns import InputColumn
from kdcal_core.text import and_more


def frame_of(
    X: pd.DataFrame | NDArray[Any], like: tuple[InputColumn, ...] | None, file: str | None
) -> pd.DataFrame:
    """The table with its columns in order."""
    frame = X if isinstance(X, pd.DataFrame) else _frame_of_array(X, like, file)
    if not len(frame) or not frame.shape[1]:
        raise InputError(
            f"The inputs have {len(frame):,} rows and {frame.shape[1]:,} columns",
            fix="Give at least one row and one column.",
            file=file,
        )
    names = [str(name) for name in frame.columns]
    twice = [name for name in names if names.count(name) > 1] if len({*names}) < len(names) else []
    if twice:
        raise InputError(
            "Two columns of the inputs have one name",
            fix="Rename one of them.",
            file=file,
            column=twice[0],
        )
    if like is None:
        return frame
    wanted = [column.name for column in like]
    _check_names(names, wanted, file)
    return frame if names == wanted else frame.iloc[:, [names.index(name) for name in wanted]]


def _frame_of_array(
    X: NDArray[Any], like: tuple[InputColumn, ...] | None, file: str | None
) -> pd.DataFrame:
    values = np.asarray(X)
    if values.ndim != 2 or values.dtype.kind not in "fiub":
        raise InputError(
            f"Inputs are a table, or numbers of shape (rows, columns), "
            f"not {values.dtype} of shape {values.shape}",
            fix="Give a data frame, or a two-dimensional array of numbers.",
            file=file,
        )
    if like is not None and values.shape[1] != len(like):
        raise InputError(
            f"The inputs have {values.shape[1]:,} columns and {len(like):,} are expected",
            fix="Give the columns that were there at fit.",
            file=file,
        )
    names = [f"column {at + 1}" for at in range(values.shape[1])]
    return pd.DataFrame(values, columns=[column.name for column in like] if like else names)


def _check_names(names: list[str], wanted: list[str], file: str | None) -> None:
    for what, some, others in (
        ("A column that was there at fit is missing", wanted, set(names)),
        ("There is a column that was not there at fit", names, set(wanted)),
    ):
        strange = [name for name in some if name not in others]
        if strange:
            raise InputError(
                f"{what}{and_more(len(strange) - 1)}",
                fix="Give the columns that were there at fit.",
                file=file,
                column=strange[0],
            )
