"""The UBJSON reader takes what XGBoost writes and refuses everything else."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdcal_core import InputError
from kdcal_core.models import ubjson


def encode(value: Any) -> bytes:
    """UBJSON draft 12 of plain values, as its text describes it."""
    if value is None:
        return b"Z"
    if isinstance(value, bool):
        return b"T" if value else b"F"
    if isinstance(value, int):
        return b"L" + struct.pack(">q", value)
    if isinstance(value, float):
        return b"D" + struct.pack(">d", value)
    if isinstance(value, str):
        return b"S" + name(value)
    if isinstance(value, list):
        return b"[" + b"".join(encode(item) for item in value) + b"]"
    if isinstance(value, dict):
        return b"{" + b"".join(name(key) + encode(item) for key, item in value.items()) + b"}"
    raise TypeError(value)


def name(text: str) -> bytes:
    content = text.encode()
    return b"l" + struct.pack(">i", len(content)) + content


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_values_come_back(value: Any) -> None:
    assert ubjson.decode_ubjson(encode(value)) == value


@given(st.binary(max_size=60))
def test_random_bytes_are_read_or_refused(content: bytes) -> None:
    try:
        ubjson.decode_ubjson(content)
    except InputError:
        return
    assert content[:1] in b"iUIlLdDZTFS{["


@pytest.mark.parametrize(
    ("mark", "dtype"),
    [
        ("i", ">i1"),
        ("U", ">u1"),
        ("I", ">i2"),
        ("l", ">i4"),
        ("L", ">i8"),
        ("d", ">f4"),
        ("D", ">f8"),
    ],
)
def test_typed_arrays(mark: str, dtype: str) -> None:
    values = np.array([1, 2, 100], dtype=dtype)
    read = ubjson.decode_ubjson(b"[$" + mark.encode() + b"#U\x03" + values.tobytes())
    assert read.dtype == values.dtype.newbyteorder("=")
    np.testing.assert_array_equal(read, values)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "early end"),
        (b"{", "early end"),
        (b"SU\x05abc", "early end"),
        (b"SL" + b"\xff" * 8, "early end"),
        (b"SL" + b"\x7f" + b"\xff" * 7, "early end"),
        (b"[$L#L" + b"\x7f" + b"\xff" * 7, "early end"),
        (b"[$L#L" + b"\xff" * 8, "early end"),
        (b"[#L" + b"\x7f" + b"\xff" * 7, "early end"),
        (b"[$S#U\x01", "unknown type"),
        (b"[$L", "early end"),
        (b"N", "unknown type"),
        (b"Z" * 2, "after its end"),
        (b"[" * 100, "too many levels"),
        (b"SU\x01\xff", "not UTF-8"),
        (b"{SU\x01aZ}", "without a name"),
        (encode({"a": 1})[:-1] + encode({"a": 2})[1:], "twice"),
        (b"Sd\x00\x00\x00\x00", "not an integer"),
    ],
)
def test_faults_are_reported(content: bytes, words: str) -> None:
    with pytest.raises(InputError, match=words):
        ubjson.decode_ubjson(content)
