"""Frozen dataclasses to JSON and back, each value checked against its declared type.

Small arrays are carried as their bytes, frames as Arrow's, numbers that are not finite as text,
because JSON has none of these. What comes back may have been edited on disk or sent by a worker
that read a hostile file.
"""

from __future__ import annotations

import base64
import dataclasses
import io
import math
import re
import types
import typing
from functools import cache
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa

T = TypeVar("T")

_WORDS = re.compile(r"<U\d{1,4}")  # an array of short texts
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def encode(value: Any) -> dict[str, Any]:
    """A dataclass as JSON values.

    Examples
    --------
    >>> from kdcal_core.data.types import Roles
    >>> encode(Roles(target="y", features=("a",)))["features"]
    ('a',)
    """
    encoded: dict[str, Any] = _encode(value)
    return encoded


def _encode(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {one.name: _encode(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, np.ndarray):
        content = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {"dtype": value.dtype.str, "shape": value.shape, "base64": content}
    if isinstance(value, pd.DataFrame):
        return {"arrow": base64.b64encode(_arrow_of(value)).decode()}
    if isinstance(value, np.generic):
        return _encode(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, tuple | list):
        return type(value)(map(_encode, value))
    if isinstance(value, dict):
        return {key: _encode(item) for key, item in value.items()}
    return value


def decode(kind: type[T], value: Any) -> T:
    """JSON values as the dataclass ``kind``; fields that are not there take their defaults.

    Raises
    ------
    TypeError
        Where a value is not of its field's type, or a field is unknown or missing.

    Examples
    --------
    >>> from kdcal_core.data.types import Roles
    >>> decode(Roles, {"target": "y", "features": ["a"]}).features
    ('a',)
    >>> decode(Roles, {"target": 3})
    Traceback (most recent call last):
    TypeError: 3 is not of type str
    """
    return typing.cast(T, _decode(kind, value))


def _decode(kind: Any, value: Any) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _decode_dataclass(kind, value)
    if origin in (types.UnionType, typing.Union):  # only "something or None" occurs
        if value is None:
            return None
        kind = next(one for one in arguments if one is not type(None))
        return _decode(kind, value)
    if origin is tuple and isinstance(value, list | tuple):
        inner = [arguments[0]] * len(value) if arguments[-1] is Ellipsis else arguments
        if len(inner) == len(value):
            return tuple(_decode(one, item) for one, item in zip(inner, value, strict=True))
    if origin is dict and isinstance(value, dict):
        return {str(key): _decode(arguments[1], item) for key, item in value.items()}
    if origin is typing.Literal and value in arguments:
        return value
    if kind is pd.DataFrame:
        return _decode_frame(value)
    if origin is np.ndarray:
        return _decode_array(np.dtype(typing.get_args(arguments[1])[0]), value)
    if kind is float and type(value) is int:
        return float(value)
    if kind is float and isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    if isinstance(kind, type) and origin is None and type(value) is kind:
        return value
    raise TypeError(f"{value!r} is not of type {getattr(kind, '__name__', kind)}")


def _decode_array(dtype: np.dtype[Any], value: Any) -> Any:
    """A read-only array of the declared type; whole numbers count as numbers, as with scalars."""
    whole = np.dtype(np.int64)
    match value:
        case {"dtype": str(kept), "shape": [*shape], "base64": str(content)} if (
            kept == dtype.str
            or (kept == whole.str and dtype == np.float64)
            or (dtype.kind == "U" and _WORDS.fullmatch(kept))
        ):
            dtype = np.dtype(kept) if dtype.kind == "U" else dtype
        case _:
            raise TypeError(f"this is not an array of {dtype}")
    if not all(type(n) is int and n >= 0 for n in shape):
        raise TypeError(f"{shape} is not the shape of an array")
    array = np.frombuffer(base64.b64decode(content, validate=True), np.dtype(kept)).reshape(shape)
    array = array.astype(dtype, copy=False)
    array.flags.writeable = False
    return array


def _arrow_of(frame: pd.DataFrame) -> bytes:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _decode_frame(value: Any) -> pd.DataFrame:
    match value:
        case {"arrow": str(content)}:
            stream = base64.b64decode(content, validate=True)
        case _:
            raise TypeError("this is not a frame")
    with pa.ipc.open_stream(stream) as reader:
        table = reader.read_all()
    table.validate(full=True)
    frame: pd.DataFrame = table.to_pandas()
    return frame


def _decode_dataclass(kind: Any, value: Any) -> Any:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is not of type {kind.__name__}")
    hints = _hints(kind)
    unknown = set(value) - set(hints)
    if unknown:
        raise TypeError(f"{kind.__name__} has no field {min(unknown)!r}")
    return kind(**{name: _decode(hints[name], item) for name, item in value.items()})


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)
