"""Many tests at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def holm(p_values: Any) -> NDArray[np.float64]:
    """Holm's adjusted p values (1979): valid whatever the tests' dependence.

    Below ``a`` among them: at most a chance of ``a`` that any test so marked is a false alarm.

    Parameters
    ----------
    p_values : (m,) array-like
        From 0 to 1.

    Returns
    -------
    (m,) array
        In the same order, from 0 to 1.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted
