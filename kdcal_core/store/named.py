"""JSON values that name their own types, and the classes that a file may name.

The types of fitted state are not declared anywhere, so its JSON names them
(`kdcal_core.store.values` has the format of declared types). None, a bool, an int, a text and a
finite float are written directly; everything else is an object with one key that names its kind::

    {"float": "nan"}              a float that JSON cannot express
    {"array": 3}                  an array of the file
    {"tuple": [...]}              {"dict": {...}}
    {"record": 2}                 the dataclass number 2 of the file's records, shared if several
                                  places hold it, such as the columns of a forest's trees

A file may name only classes that are marked with `storable` where they are defined.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kdcal_core.errors import InputError
from kdcal_core.store.values import (
    NOT_FINITE,
    NUMBERS,
    PLAIN,
    NumberedArrays,
    decode,
    encode_plain,
    field_types,
    position,
)

C = TypeVar("C", bound=type)

_storable: dict[str, type[Any]] = {}


def storable(cls: C) -> C:
    """Let files name this class; a decorator.

    Raises
    ------
    ValueError
        If another class of this name is marked.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @storable
    ... @dataclass(frozen=True)
    ... class Interval:
    ...     low: float
    >>> storable_class("Interval") is Interval
    True
    """
    known = _storable.setdefault(cls.__name__, cls)
    if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ValueError(f"there are two storable classes of the name {cls.__name__}")
    _storable[cls.__name__] = cls
    return cls


def is_storable(cls: type[Any]) -> bool:
    """Whether files may name exactly this class, not just one of the same name."""
    return _storable.get(cls.__name__) is cls


def storable_class(name: Any, base: type[Any] = object, *homes: str) -> type[Any]:
    """The storable class of this name.

    Parameters
    ----------
    name : str
        From a file: untrusted.
    base : type, optional
        Required base class.
    *homes : str
        Modules of kdcal that mark classes and may not have been imported yet.

    Raises
    ------
    InputError
        If there is no such class, because another version of kdcal or another program wrote the
        file.
    """
    if isinstance(name, str):
        for home in homes if name not in _storable else ():
            import_module(home)
        found = _storable.get(name)
        if found is not None and issubclass(found, base):
            return found
    raise InputError(
        f"The file contains a {str(name)[:60]!r}, which this kdcal does not know",
        fix="It was saved by a newer kdcal: install that one, or fit the calibrator again.",
    )


class Describer:
    """Describes values and collects their arrays and records.

    Attributes
    ----------
    arrays : dict of str to array
    records : list of dict

    Examples
    --------
    >>> describer = Describer()
    >>> describer.value((1, float("inf"), np.zeros(2)))
    {'tuple': [1, {'float': 'inf'}, {'array': 0}]}
    >>> describer.arrays["a0"].tolist()
    [0.0, 0.0]
    """

    def __init__(self) -> None:
        self._numbered = NumberedArrays()
        self.arrays: dict[str, NDArray[Any]] = self._numbered.arrays
        self.records: list[dict[str, Any]] = []
        self._record_at: dict[str, int] = {}

    def value(self, value: Any) -> Any:
        """One value in JSON.

        Raises
        ------
        TypeError
            If it is of a kind that no file may contain.
        """
        if isinstance(value, tuple):
            return {"tuple": [self.value(one) for one in value]}
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                raise TypeError("a dict of fitted state has keys that are not texts")
            return {"dict": {key: self.value(one) for key, one in value.items()}}
        if isinstance(value, np.ndarray):
            return {"array": self.array(value)}
        return encode_plain(value) if isinstance(value, PLAIN) else self.other(value)

    def array(self, array: NDArray[Any]) -> int:
        """The number of an array, which is stored once."""
        if array.dtype.kind not in NUMBERS:
            raise TypeError(f"an array of {array.dtype} cannot be kept without pickle")
        return self._numbered.put(array)

    def other(self, value: Any) -> dict[str, Any]:
        """Any other value, here a record. Subclasses add their own objects."""
        return {"record": self._record(value)}

    def _record(self, value: Any) -> int:
        cls = type(value)
        if not is_dataclass(value) or not is_storable(cls):
            raise TypeError(f"fitted state must not hold a {cls.__name__}")
        parts = {field.name: self.value(getattr(value, field.name)) for field in fields(value)}
        record = {"class": cls.__name__, "fields": parts}
        key = json.dumps(record, sort_keys=True)
        if key not in self._record_at:
            self._record_at[key] = len(self.records)
            self.records.append(record)
        return self._record_at[key]


class Maker:
    """Rebuilds the values that a :class:`Describer` described.

    Parameters
    ----------
    arrays, records
        As from the describer.
    *homes : str
        As for `storable_class`.
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]], records: list[Any], *homes: str) -> None:
        self._arrays = arrays
        self.homes = homes
        self._records: list[Any] = []
        for record in records:  # each may only name earlier ones, so there is no cycle
            self._records.append(self._record(record))

    def value(self, encoded: Any) -> Any:
        """The value that was described.

        Raises
        ------
        InputError
            If a class is not known.
        LookupError, TypeError, ValueError, AttributeError
            If parts of the file are broken.
        """
        if encoded is None or type(encoded) in (bool, int, str, float):
            return encoded
        ((kind, content),) = encoded.items()
        if kind == "float":
            return NOT_FINITE[content]
        if kind == "array":
            return self.array(content)
        if kind == "tuple":
            return tuple(self.value(one) for one in content)
        if kind == "dict":
            return {name: self.value(one) for name, one in content.items()}
        if kind == "record":
            return self._records[position(content)]
        return self.other(kind, content)

    def array(self, at: Any) -> NDArray[Any]:
        """The array of this number."""
        return self._arrays[f"a{position(at)}"]

    def other(self, kind: str, content: Any) -> Any:
        """A value of another kind; this decoder knows no other kind."""
        raise ValueError(f"a value of the unknown kind {kind!r}")

    def _record(self, record: Mapping[str, Any]) -> Any:
        cls = storable_class(record["class"], object, *self.homes)
        if not is_dataclass(cls):
            raise ValueError(f"{cls.__name__} is not a record")
        types = field_types(cls)
        return cls(
            **{
                name: decode(types[name], self.value(value))
                for name, value in record["fields"].items()
            }
        )
