"""Sums of floating-point numbers that are exact, whatever their sizes and their order."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.errors import InputError

LARGEST = 1e150
"""Numbers above it are refused, so that their squares are numbers too."""

_LOWEST, _HIGHEST = -1074, 1024  # exponents of float64
SHAPE = (_HIGHEST - _LOWEST, 2)
_HALF = 27  # bits: as many rows as a summary takes do not overflow the sum of such halves


def exact_sum(values: FloatArray) -> IntArray:
    """The exact sum of numbers (n,), as integers by exponent, `SHAPE`.

    Every number is a mantissa of 53 bits times a power of two. Mantissas are added by exponent, in
    two halves, so nothing is ever rounded: such sums may be added in any order.

    Raises
    ------
    InputError
        For a number that is missing, infinite or above `LARGEST` (the row is named).

    Examples
    --------
    >>> float_of(exact_sum(np.array([1e100, 1.0, -1e100])))
    1.0
    >>> float_of(exact_sum(np.full(10, 0.1)))
    1.0
    """
    from kdcal_core.diagnostics.summaries._summary_kernels import add_exactly

    total = np.zeros(SHAPE, np.int64)
    plain = np.ascontiguousarray(values, dtype=np.float64)
    row = add_exactly(plain, plain.view(np.int64), LARGEST, _HALF, total)
    if row >= 0:
        raise InputError(
            f"A number is {values[row]:g}", fix=f"Numbers lie within {LARGEST:g}.", row=row + 1
        )
    return total


def float_of(total: IntArray) -> float:
    """The number nearest to an exact sum.

    Examples
    --------
    >>> float_of(exact_sum(np.array([5e-324, 5e-324])))
    1e-323
    """
    return float(exact_value(total))


def exact_value(total: IntArray) -> Fraction:
    """An exact sum as a number."""
    whole = sum(
        ((int(total[at, 0]) << _HALF) + int(total[at, 1])) << int(at)
        for at in np.flatnonzero(total.any(axis=1))
    )
    return Fraction(whole, 1 << (2 * _HALF - _LOWEST - 1))
