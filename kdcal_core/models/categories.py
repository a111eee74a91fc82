"""Columns of categories, recoded to the numbers under which a boosted model knows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data.types import FloatArray
from kdcal_core.errors import InputError
from kdcal_core.models.base import Features
from kdcal_core.models.features import numeric_input, select_columns
from kdcal_core.text import listed

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
        known_ones = listed((repr(category_text(one)[:30]) for one in categories), _SHOWN)
        raise InputError(
            f"The model does not know the category {category_text(column.iloc[row])[:60]!r}",
            fix=f"It knows {known_ones}. Correct the value, or leave it empty where the model "
            "was trained with missing values.",
            column=name,
            row=row + 1,
        )
    return codes


def numbers_and_categories(
    X: Features,
    *,
    n_features: int,
    feature_names: Sequence[str] | None,
    categories: Mapping[int, Sequence[Any]],
) -> FloatArray:
    """The input of boosted trees: numbers as they are, categories by their position.

    Parameters
    ----------
    X : pandas.DataFrame or (n, n_features) array
    n_features, feature_names
        As in :func:`kdcal_core.models.features.numeric_input`.
    categories : mapping of int to sequence
        The model's categories by column index.

    Returns
    -------
    (n, n_features) float64, NaN where a value is missing

    Raises
    ------
    InputError
        As :func:`numeric_input` and :func:`category_codes`.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"colour": ["red", "blue"], "size": [1.5, None]})
    >>> numbers_and_categories(frame, n_features=2, feature_names=["size", "colour"],
    ...                        categories={1: ["blue", "red"]}).tolist()
    [[1.5, 1.0], [nan, 0.0]]
    """
    rows: Features = X
    if categories:
        is_frame = isinstance(X, pd.DataFrame)
        frame = select_columns(
            X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X)),
            n_features=n_features,
            feature_names=feature_names if is_frame else None,
        )
        rows = frame.copy(deep=False)
        rows.columns = pd.Index(feature_names or [str(j + 1) for j in range(n_features)])
        for j, known in categories.items():
            codes = category_codes(frame.iloc[:, j], known, name=str(rows.columns[j]))
            rows.isetitem(j, codes)
    return numeric_input(
        rows, n_features=n_features, feature_names=feature_names, allow_missing=True
    )
