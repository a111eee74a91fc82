"""Canonical JSON is RFC 8785, as another implementation writes it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np
import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from kdcal_core.audit.signing import canonical

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53) + 1, 2**53 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
)
VALUES = st.recursive(
    SCALARS, lambda one: st.lists(one) | st.tuples(one) | st.dictionaries(st.text(), one)
)


class Word(StrEnum):
    YES = 'y"es'


@given(VALUES)
@example([Word.YES, {Word.YES: np.float64(1e-7)}, 1e21, -0.0, "".join(map(chr, range(0x120)))])
@example({"\ufb33": 1, "\U0001f600": 2, "\u20ac": 3, "": {}})
def test_it_is_written_as_another_implementation_does(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@pytest.mark.parametrize(
    "value", [float("nan"), [float("inf")], 2**53, "\ud800", {"\ud800": 1}, {1: 2}, {"a": {3}}]
)
def test_what_json_cannot_express_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        canonical(value)
