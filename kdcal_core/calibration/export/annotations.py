"""Whether the parts of a dataclass are of the kinds that it declares."""

from __future__ import annotations

import types
import typing
from collections.abc import Hashable
from dataclasses import is_dataclass
from functools import cache
from typing import Any

import numpy as np


def fits(record: Any) -> bool:
    """Whether each field of a dataclass holds what its annotation says; arrays of any shape.

    Examples
    --------
    >>> from kdcal_core.calibration._curve import Curve
    >>> fits(Curve(np.zeros(2), np.zeros(2), np.zeros(2))), fits(Curve("a", None, 3))
    (True, False)
    """
    return all(
        _fits(getattr(record, name), hint)
        for name, hint in _hints(typing.cast(Hashable, type(record))).items()
    )


@cache
def _hints(cls: Hashable) -> dict[str, Any]:
    names = getattr(cls, "__dataclass_fields__", {})
    return {
        name: hint
        for name, hint in typing.get_type_hints(typing.cast(type, cls)).items()
        if name in names
    }


def _fits(value: Any, hint: Any) -> bool:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin in (types.UnionType, typing.Union):
        return any(_fits(value, one) for one in arguments)
    if origin is typing.Literal:
        return value in arguments
    if origin is np.ndarray:
        return isinstance(value, np.ndarray)
    if origin is tuple:
        return isinstance(value, tuple) and _fits_tuple(value, arguments)
    if origin is dict:
        return isinstance(value, dict) and all(_fits(one, arguments[1]) for one in value.values())
    if hint is float:
        return type(value) in (float, int)
    if hint is None or hint is type(None):
        return value is None
    if getattr(hint, "_is_protocol", False):
        return is_dataclass(value)  # what it can do is found out by its check
    return isinstance(value, hint) and not (hint is int and isinstance(value, bool))


def _fits_tuple(value: tuple[Any, ...], arguments: tuple[Any, ...]) -> bool:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return all(_fits(one, arguments[0]) for one in value)
    return len(value) == len(arguments) and all(map(_fits, value, arguments))
