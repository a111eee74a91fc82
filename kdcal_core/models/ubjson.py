"""A strict reader of UBJSON as XGBoost writes it.

Universal Binary JSON draft 12: one type byte before each value, big-endian numbers, typed arrays
``[$type#count``; anything else in the draft is refused.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.errors import InputError

_DTYPES = {
    b"i": ">i1",
    b"U": ">u1",
    b"I": ">i2",
    b"l": ">i4",
    b"L": ">i8",
    b"d": ">f4",
    b"D": ">f8",
}
_FORMATS = {b"i": ">b", b"U": ">B", b"I": ">h", b"l": ">i", b"L": ">q", b"d": ">f", b"D": ">d"}
_INTEGERS = frozenset((b"i", b"U", b"I", b"l", b"L"))
_CONSTANTS = {b"Z": None, b"T": True, b"F": False}
_MAX_DEPTH = 40
# XGBoost stores its numbers in typed arrays; a tree has about thirty other values.
_MAX_VALUES = 2_000_000


def decode_ubjson(data: bytes) -> Any:
    """Read one UBJSON value that fills ``data``.

    Returns
    -------
    dict, list, str, number, bool, None, or a numpy array for a typed array

    Raises
    ------
    InputError
        If the bytes are cut off, nested beyond 40 levels or followed by others, or have too many
        single values or a name twice in an object.

    Examples
    --------
    >>> decode_ubjson(b"{U\\x01a[$U#U\\x02\\x07\\x08U\\x01bSU\\x02hi}")
    {'a': array([7, 8], dtype=uint8), 'b': 'hi'}
    """
    reader = _Reader(data)
    value = reader.value(reader.take(1), 0)
    if reader.position != len(data):
        raise _broken("bytes after its end")
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0
        self._n_values = 0

    def take(self, n: int) -> bytes:
        taken = self._data[self.position : self.position + n]
        if n < 0 or len(taken) != n:
            raise _broken("an early end")
        self.position += n
        return taken

    def value(self, kind: bytes, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise _broken("too many levels")
        self._n_values += 1
        if self._n_values > _MAX_VALUES:
            raise _broken(f"more than {_MAX_VALUES:,} values outside of typed arrays")
        if kind in _FORMATS:
            return struct.unpack(_FORMATS[kind], self.take(struct.calcsize(_FORMATS[kind])))[0]
        if kind in _CONSTANTS:
            return _CONSTANTS[kind]
        if kind == b"S":
            return self._text()
        if kind == b"{":
            return self._object(depth)
        if kind == b"[":
            return self._array(depth)
        raise _broken(f"an unknown type mark {kind!r}")

    def _length(self) -> int:
        kind = self.take(1)
        if kind not in _INTEGERS:
            raise _broken("a length that is not an integer")
        return int(self.value(kind, 0))

    def _text(self) -> str:
        try:
            return self.take(self._length()).decode("utf-8")
        except UnicodeDecodeError as error:
            raise _broken("text that is not UTF-8") from error

    def _object(self, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        while (mark := self.take(1)) != b"}":
            self.position -= 1
            if mark not in _INTEGERS:
                raise _broken("an object member without a name")
            name = self._text()
            if name in members:
                raise _broken(f"the name {name[:40]!r} twice in one object")
            members[name] = self.value(self.take(1), depth + 1)
        return members

    def _array(self, depth: int) -> list[Any] | NDArray[Any]:
        items: list[Any] = []
        while (mark := self.take(1)) != b"]":
            if mark == b"$" and not items:
                return self._typed_array()
            if mark == b"#" and not items:
                return [self.value(self.take(1), depth + 1) for _ in range(self._count())]
            items.append(self.value(mark, depth + 1))
        return items

    def _typed_array(self) -> NDArray[Any]:
        kind = self.take(1)
        if kind not in _DTYPES or self.take(1) != b"#":
            raise _broken("a typed array of an unknown type")
        dtype = np.dtype(_DTYPES[kind])
        values = np.frombuffer(self.take(self._length() * dtype.itemsize), dtype=dtype)
        return values.astype(dtype.newbyteorder("="))

    def _count(self) -> int:
        # Every item takes at least one byte, so a larger count is wrong.
        count = self._length()
        if not 0 <= count <= len(self._data) - self.position:
            raise _broken("an early end")
        return count


def _broken(what: str) -> InputError:
    return InputError(
        f"The UBJSON content is broken: it has {what}",
        fix="The file may have been cut off on its way; copy or save it again.",
    )
