"""Compiled arithmetic of many small matrices. Imported only when needed: numba is heavy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = np.ndarray[Any, Any]

compiled = njit(nogil=True, cache=True)


@compiled
def invert(matrix: Array) -> None:
    """Invert a positive definite (q, q) matrix in place, by Gauss and Jordan."""
    q = len(matrix)
    for k in range(q):
        pivot = 1.0 / matrix[k, k]
        matrix[k, k] = 1.0
        for j in range(q):
            matrix[k, j] *= pivot
        for i in range(q):
            if i != k:
                share = matrix[i, k]
                matrix[i, k] = 0.0
                for j in range(q):
                    matrix[i, j] -= share * matrix[k, j]


@compiled
def quadratic(matrix: Array, vector: Array) -> float:
    """``vector' matrix vector``."""
    total = 0.0
    for i in range(len(vector)):
        for j in range(len(vector)):
            total += vector[i] * matrix[i, j] * vector[j]
    return total
