"""Frozen dataclasses to JSON and back, each value checked against its declared type.

The type of a value is declared where it is read, so JSON contains the bare value. Values that JSON
cannot express are objects::

    {"float": "nan"}                                a float that is not finite
    {"array": "a0"}                                 an array with its own file
    {"dtype": ..., "shape": ..., "base64": ...}     a small array, or one of texts
    {"arrow": ...}                                  a data frame

The input may have been edited on disk, sent by a worker that read a hostile file, or written by an
earlier version: a field with metadata ``{"formerly": "parent"}`` is also read from that name.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import io
import math
import re
import sys
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd
    from _typeshed import DataclassInstance

T = TypeVar("T")

_WORDS = re.compile(r"<U\d{1,4}")  # an array of short texts
NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
PLAIN = (types.NoneType, bool, int, float, str, np.generic)
NUMBERS = "biuf"  # kinds of arrays that may have their own file


class Arrays(Protocol):
    """Storage of arrays outside the JSON."""

    folder: Path
    """The folder to which stored paths are relative; it may be moved."""

    def put(self, array: NDArray[Any]) -> int | str | None:
        """Store an array of numbers; return its key, or None if it belongs in the JSON."""
        ...

    def get(self, at: Any) -> NDArray[Any]:
        """The array of this key; raises if there is no such array."""
        ...


class NumberedArrays:
    """Arrays in memory, "a0", "a1" and so on in order; equal arrays are stored once.

    Examples
    --------
    >>> kept = NumberedArrays()
    >>> kept.put(np.zeros(2)), kept.put(np.ones(2)), kept.put(np.zeros(2)), list(kept.arrays)
    (0, 1, 0, ['a0', 'a1'])
    """

    folder = Path()

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self._at: dict[tuple[Any, ...], int] = {}

    def put(self, array: NDArray[Any]) -> int:
        at = self._at.setdefault((array.dtype.str, array.shape, array.tobytes()), len(self._at))
        self.arrays.setdefault(f"a{at}", array)
        return at

    def get(self, at: Any) -> NDArray[Any]:
        return self.arrays[f"a{position(at)}"]


def position(value: Any) -> int:
    """A position in a list; ValueError for anything else."""
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a position")
    return value


_AS_IN_JSON = frozenset({str, int, bool})


@overload
def encode(value: DataclassInstance, arrays: Arrays | None = None) -> dict[str, Any]: ...
@overload
def encode(value: Any, arrays: Arrays | None = None) -> Any: ...
def encode(value: Any, arrays: Arrays | None = None) -> Any:
    """A dataclass, or any value of a declared type, as JSON values.

    Parameters
    ----------
    value
        None, bools, numbers, texts, enums, paths, arrays and frames; tuples, lists, dicts and
        dataclasses of them.
    arrays : Arrays, optional
        Where arrays are stored; without it they are written as base64.

    Raises
    ------
    TypeError
        For objects of any other class.

    Examples
    --------
    >>> @dataclasses.dataclass(frozen=True)
    ... class Limits:
    ...     names: tuple[str, ...]
    ...     most: float = math.inf
    >>> encode(Limits(("a",)))
    {'names': ['a'], 'most': {'float': 'inf'}}
    """
    if value is None or type(value) in _AS_IN_JSON:
        return value
    if dataclasses.is_dataclass(value):
        return {
            one.name: encode(getattr(value, one.name), arrays) for one in dataclasses.fields(value)
        }
    if isinstance(value, tuple | list):
        return [encode(item, arrays) for item in value]
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {key: encode(item, arrays) for key, item in value.items()}
        return [[encode(key, arrays), encode(item, arrays)] for key, item in value.items()]
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Path):
        return (value if arrays is None else value.relative_to(arrays.folder)).as_posix()
    if _is_frame(type(value)):
        return {"arrow": base64.b64encode(_arrow_of(value)).decode()}
    if isinstance(value, np.ndarray):
        at = None
        if arrays is not None and value.dtype.kind in NUMBERS:
            at = arrays.put(value)
        return _inline(value) if at is None else {"array": at}
    return encode_plain(value)


def encode_plain(value: Any) -> Any:
    """None, a bool, a number or a text as a JSON value.

    Raises
    ------
    TypeError
        For anything else.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) is float and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise TypeError(f"a {type(value).__name__} cannot be written")


def decode(kind: type[T], value: Any, arrays: Arrays | None = None) -> T:
    """Decode JSON values as ``kind``; missing fields of a dataclass take their defaults.

    Raises
    ------
    TypeError
        If a value is not of its field's type, or a field is unknown or missing.

    Examples
    --------
    >>> decode(tuple[int, ...], [1, 2])
    (1, 2)
    >>> decode(dict[str, float], {"a": 3, "b": {"float": "nan"}})
    {'a': 3.0, 'b': nan}
    >>> decode(str | None, 3)
    Traceback (most recent call last):
    TypeError: 3 is not of type str
    """
    return typing.cast(T, _decode(kind, value, arrays))


def _decode(kind: Any, value: Any, arrays: Arrays | None) -> Any:
    if type(value) is kind and (kind in _AS_IN_JSON or kind is float):  # most of all values
        return value
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return _decode_any(value)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return value if isinstance(value, kind) else _decode_dataclass(kind, value, arrays)
    if origin in (types.UnionType, typing.Union):
        return _decode_union(arguments, value, arrays)
    if origin in (tuple, list) and isinstance(value, list | tuple):
        several = origin is list or arguments[-1] is Ellipsis
        inner = [arguments[0]] * len(value) if several else arguments
        if len(inner) == len(value):
            pairs = zip(inner, value, strict=True)
            return origin(_decode(one, item, arrays) for one, item in pairs)
    if origin is dict:
        return {
            _decode(arguments[0], key, arrays): _decode(arguments[1], item, arrays)
            for key, item in _items(kind, value)
        }
    if origin is Mapping and isinstance(value, dict):
        return Later(arguments[1], value, arrays)
    if origin is typing.Literal and value in arguments:
        return value
    if _is_frame(kind):
        return _decode_frame(value)
    if origin is np.ndarray:
        return _decode_array(typing.get_args(arguments[1])[0], value, arrays)
    if kind is float:
        return _decode_float(value)
    if kind is Path and isinstance(value, str):
        return _decode_path(value, arrays)
    if isinstance(kind, enum.EnumType):
        return kind(value)
    if getattr(kind, "_is_protocol", False) and dataclasses.is_dataclass(value):
        return value  # its own check decides what is valid
    if isinstance(kind, type) and origin is None and _is_a(value, kind):
        return value
    raise _not_of(kind, value)


class Later(Mapping[str, Any]):
    """Values that are decoded on access and not kept.

    A field that is declared as a Mapping becomes this, so the arrays of a key are read only on
    access.
    """

    def __init__(self, kind: Any, encoded: dict[str, Any], arrays: Arrays | None) -> None:
        self._kind, self._encoded, self._arrays = kind, encoded, arrays

    def __getitem__(self, key: str) -> Any:
        return _decode(self._kind, self._encoded[key], self._arrays)

    def __iter__(self) -> Iterator[str]:
        return iter(self._encoded)

    def __len__(self) -> int:
        return len(self._encoded)


def _not_of(kind: Any, value: Any) -> TypeError:
    return TypeError(f"{value!r} is not of type {getattr(kind, '__name__', kind)}")


def _is_a(value: Any, kind: type) -> bool:
    """Exact match for JSON's own types, so that a bool is not an int."""
    return type(value) is kind or (
        kind not in (bool, int, str, tuple, list, dict) and isinstance(value, kind)
    )


def _items(kind: Any, value: Any) -> Iterable[tuple[Any, Any]]:
    """Keys with their values; in JSON they are pairs if the keys are not texts."""
    match value:
        case dict():
            return value.items()
        case [*pairs] if typing.get_origin(typing.get_args(kind)[0]) is tuple:
            if all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
                return pairs
    raise _not_of(kind, value)


def _decode_union(kinds: tuple[Any, ...], value: Any, arrays: Arrays | None) -> Any:
    *others, last = (one for one in kinds if one is not types.NoneType)
    if value is None and types.NoneType in kinds:
        return None
    for kind in others:
        try:
            return _decode(kind, value, arrays)
        except TypeError:
            continue
    return _decode(last, value, arrays)


def _decode_any(value: Any) -> Any:
    """JSON values as they are, except floats that are not finite."""
    match value:
        case [*items]:
            return type(value)(map(_decode_any, items))
        case {"float": str(text)} if len(value) == 1 and text in NOT_FINITE:
            return NOT_FINITE[text]
        case dict():
            return {key: _decode_any(item) for key, item in value.items()}
    return value


def _decode_float(value: Any) -> float:
    match value:
        case {"float": str(text)} | str(text) if text in NOT_FINITE:
            return NOT_FINITE[text]  # earlier versions wrote the bare text
        case float():
            return value
        case int() if type(value) is int and abs(value) <= sys.float_info.max:
            return float(value)
    raise _not_of(float, value)


def _decode_path(value: str, arrays: Arrays | None) -> Path:
    path = Path(value)
    if arrays is None:
        return path
    if path.is_absolute() or ".." in path.parts:
        raise TypeError("a path leaves the folder")
    return arrays.folder / path


def _decode_dataclass(kind: Any, value: Any, arrays: Arrays | None) -> Any:
    if not isinstance(value, dict):
        raise _not_of(kind, value)
    hints, former = field_types(kind), _former_names(kind)
    value = {former.get(name, name): item for name, item in value.items()}
    unknown = set(value) - set(hints)
    if unknown:
        raise TypeError(f"{kind.__name__} has no field {min(unknown)!r}")
    return kind(**{name: _decode(hints[name], item, arrays) for name, item in value.items()})


@cache
def field_types(kind: Any) -> dict[str, Any]:
    """The declared type of each field of a dataclass."""
    hints = typing.get_type_hints(kind)
    return {one.name: hints[one.name] for one in dataclasses.fields(kind)}


@cache
def _former_names(kind: Any) -> dict[str, str]:
    """The current name of each field by its earlier name."""
    fields = dataclasses.fields(kind)
    return {one.metadata["formerly"]: one.name for one in fields if "formerly" in one.metadata}


def _inline(array: NDArray[Any]) -> dict[str, Any]:
    content = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"dtype": array.dtype.str, "shape": list(array.shape), "base64": content}


def _decode_array(declared: Any, value: Any, arrays: Arrays | None) -> Any:
    """A read-only array of the declared kind; whole numbers count as numbers, as for scalars."""
    match value:
        case np.ndarray():
            return value
        case {"array": at} if arrays is not None:
            return arrays.get(at)
        case {"dtype": str(said), "shape": [*shape], "base64": str(content)}:
            kept = _known_dtype(said)
        case _:
            raise TypeError(f"this is not an array of {declared}")
    if not all(type(n) is int and n >= 0 for n in shape):
        raise TypeError(f"{shape} is not the shape of an array")
    array = np.frombuffer(base64.b64decode(content, validate=True), kept).reshape(shape)
    if declared is not Any:
        wanted = np.dtype(declared)
        if kept.kind in "iu" and wanted.kind == "f":
            array = array.astype(wanted)
        elif kept.kind != wanted.kind:
            raise TypeError(f"this is not an array of {wanted}")
    array.flags.writeable = False
    return array


def _known_dtype(said: str) -> np.dtype[Any]:
    """The dtype of an array, if kdcal writes it: numbers in this byte order, or texts."""
    kind = np.dtype(said) if re.fullmatch(r"[<|][biuf][1248]", said) else None
    if kind is None and _WORDS.fullmatch(said):
        kind = np.dtype(said)
    if kind is None:
        raise TypeError(f"arrays of {said[:20]!r} are never written")
    return kind


def _is_frame(kind: Any) -> bool:
    """Whether ``kind`` is a data frame; does not import pandas, so that jobs start faster."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and kind is pandas.DataFrame


def _arrow_of(frame: pd.DataFrame) -> bytes:
    import pyarrow as pa

    table = pa.Table.from_pandas(frame, preserve_index=False)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _decode_frame(value: Any) -> pd.DataFrame:
    import pyarrow as pa

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
