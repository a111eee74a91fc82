"""Columns of categories, recoded to the numbers under which a boosted model knows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data.types import FloatArray
from kdcal_core.errors import InputError

_SHOWN = 8


def category_text(value: Any) -> str:
    """A category as text: 1, 1.0 and "1" are the same category, for tables come as they come.

    Examples
    --------
    >>> category_text(1.0), category_text("a"), category_text(True)
    ('1', 'a', 'True')
    """
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def category_codes(column: pd.Series[Any], categories: Sequence[Any], *, name: str) -> FloatArray:
    """Position of each value in the model's list of categories.

    Parameters
    ----------
    column : (n,) pandas.Series
        Values of any type; compared as text.
    categories : sequence
        The model's categories in its order.
    name : str
        Name of the column, for messages.

    Returns
    -------
    (n,) float64, NaN where the value is missing

    Raises
    ------
    InputError
        A value is no category of the model; names the column and the first such row.

    Examples
    --------
    >>> import pandas as pd
    >>> category_codes(pd.Series(["b", None, "a"]), ["a", "b"], name="letter").tolist()
    [1.0, nan, 0.0]
    """
    positions = {category_text(category): k for k, category in enumerate(categories)}
    numbers, uniques = pd.factorize(column)
    known = np.array([positions.get(category_text(value), -1) for value in uniques], dtype=float)
    codes = np.where(numbers < 0, np.nan, np.append(known, 0.0)[numbers])
    unknown = codes == -1
    if unknown.any():
        row = int(np.argmax(unknown))
        shown = ", ".join(repr(category_text(category)[:30]) for category in categories[:_SHOWN])
        more = f" and {len(categories) - _SHOWN:,} more" if len(categories) > _SHOWN else ""
        raise InputError(
            f"The model does not know the category {category_text(column.iloc[row])[:60]!r}",
            fix=f"It knows {shown}{more}. Correct the value, or leave it empty where the model "
            "was trained with missing values.",
            column=name,
            row=row + 1,
        )
    return codes
