"""Checks of fitted state that was read from a file, so that predicting from it is safe."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.errors import InputError

# No fit leaves larger numbers; sums and products of smaller ones stay finite.
LARGEST = 1e100


def demand(holds: bool, what: str) -> None:
    """Refuse fitted state unless it ``holds``; ``what`` names the part that does not.

    Examples
    --------
    >>> demand(False, "edges_")
    Traceback (most recent call last):
    kdcal_core.errors.InputError: The fitted calibrator contradicts itself in edges_. ...
    """
    if not holds:
        raise InputError(
            f"The fitted calibrator contradicts itself in {what}",
            fix="Its file may be damaged; save the calibrator again.",
        )


def check_array(
    owner: Any,
    name: str,
    shape: tuple[int | None, ...],
    *,
    low: float = -LARGEST,
    high: float = LARGEST,
    dtype: Any = np.float64,
    nan: bool = False,
) -> NDArray[Any]:
    """The array in an attribute, of this shape and type, and all of it within [low, high].

    ``None`` in the shape stands for any length. Infinity is refused, and so is NaN unless it has
    a meaning there.
    """
    return _checked(getattr(owner, name, None), name, shape, low, high, dtype, nan)


def check_arrays(
    owner: Any,
    name: str,
    n: int,
    *,
    low: float = -LARGEST,
    high: float = LARGEST,
) -> tuple[NDArray[np.float64], ...]:
    """The tuple of ``n`` arrays of one dimension in an attribute, all within [low, high]."""
    value = getattr(owner, name, None)
    demand(isinstance(value, tuple) and len(value) == n, name)
    assert isinstance(value, tuple)
    return tuple(_checked(one, name, (None,), low, high, np.float64, False) for one in value)


def _checked(
    value: Any,
    name: str,
    shape: tuple[int | None, ...],
    low: float,
    high: float,
    dtype: Any,
    nan: bool,
) -> NDArray[Any]:
    demand(isinstance(value, np.ndarray) and value.dtype == np.dtype(dtype), name)
    array: NDArray[Any] = value
    demand(
        array.ndim == len(shape)
        and all(want in (None, got) for want, got in zip(shape, array.shape, strict=True)),
        name,
    )
    if array.dtype.kind == "b":
        return array
    known = array[~np.isnan(array)] if nan else array
    demand(bool(np.isfinite(known).all() and ((known >= low) & (known <= high)).all()), name)
    return array
