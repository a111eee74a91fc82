"""Which columns of a table are the pixels of a picture, and where each stands in it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from kdcal_core.data.schema import IntArray

FEWEST, MOST = 4, 64  # pixels of a side: smaller is no picture, larger is too much to send
_PLACE = re.compile(r"(.*?)(\d{1,4})[^\d]+(\d{1,4})$")


def pixel_places(names: Sequence[str]) -> IntArray | None:
    """For each place of a picture (R, C), the position of its column; None if there is no picture.

    The columns end in the row and the column of a pixel, such as ``pixel_0_13``, and together they
    fill a rectangle.

    Examples
    --------
    >>> names = [f"pixel_{row}_{column}" for row in range(4) for column in range(5)]
    >>> pixel_places(names)[1].tolist()
    [5, 6, 7, 8, 9]
    >>> pixel_places(["age", "income"]) is None
    True
    """
    found = [_PLACE.match(name) for name in names]
    if not found or any(one is None for one in found):
        return None
    parts = [one.groups() for one in found if one is not None]
    if len({stem for stem, _, _ in parts}) != 1:
        return None
    places = np.array([(int(row), int(column)) for _, row, column in parts])
    places -= places.min(axis=0)
    n_rows, n_columns = (int(size) for size in places.max(axis=0) + 1)
    flat = places[:, 0] * n_columns + places[:, 1]
    if min(n_rows, n_columns) < FEWEST or max(n_rows, n_columns) > MOST:
        return None
    if len(flat) != n_rows * n_columns or len(np.unique(flat)) != len(flat):
        return None
    return np.argsort(flat).reshape(n_rows, n_columns)
