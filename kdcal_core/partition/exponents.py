"""The grid of exponents that the kernel is raised to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

STEPS_PER_DOUBLING = 3


def default_exponents() -> NDArray[np.float64]:
    """Exponents gamma * log n to choose from: 21, from 0.5 to 50.8, three a doubling.

    A forest wants about 1, a ReLU network 5 to 20 (paper 000 Eq. 18 leaves the grid open,
    decision D10).

    Examples
    --------
    >>> default_exponents()[[0, 3, 6, 20]].round(1).tolist()
    [0.5, 1.0, 2.0, 50.8]
    """
    return np.asarray(0.5 * np.exp2(np.arange(21) / STEPS_PER_DOUBLING), dtype=np.float64)
