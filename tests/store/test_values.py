"""Dataclasses to JSON and back: every kind of value, and refusal of what was not declared."""

from __future__ import annotations

import enum
import json
import math
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from kdcal_core.store import decode, encode
from kdcal_core.store.values import NumberedArrays


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Inner:
    low: float
    high: float = math.inf


@dataclass(frozen=True)
class Other:
    name: str


@dataclass(frozen=True, eq=False)
class Whole:
    n: int
    yes: bool
    share: float
    name: str
    side: Literal["left", 3]
    colour: Colour
    path: Path
    pair: tuple[int, str]
    several: tuple[float, ...]
    listed: list[Inner]
    by_name: dict[str, Inner]
    by_pair: dict[tuple[str, Literal["a", "b"]], tuple[int, ...]]
    maybe: Inner | None
    either: Inner | Other
    numbers: NDArray[np.float64]
    flags: NDArray[np.bool_]
    words: NDArray[np.str_]
    frame: pd.DataFrame
    anything: Any
    none: Other | None = None


WHOLE = Whole(
    n=3,
    yes=True,
    share=math.nan,
    name="nan",
    side=3,
    colour=Colour.BLUE,
    path=Path("a.kdcal"),
    pair=(1, "x"),
    several=(0.1, math.inf, -math.inf),
    listed=[Inner(-math.inf), Inner(0.0, 1.0)],
    by_name={"float": Inner(2.0)},
    by_pair={("m", "a"): (1, 2), ("n", "b"): ()},
    maybe=Inner(1.0),
    either=Other("o"),
    numbers=np.array([[1.5, np.nan], [-0.0, np.inf]]),
    flags=np.array([True, False]),
    words=np.array(["one", "three"]),
    frame=pd.DataFrame({"a": [1, 2], "b": ["x", None]}),
    anything={"a": [1, None, "x"]},
)


def there_and_back(value, arrays=None):
    return decode(
        type(value), json.loads(json.dumps(encode(value, arrays), allow_nan=False)), arrays
    )


def same(a, b):
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, pd.DataFrame):
        return a.equals(b)
    return type(a) is type(b) and (a == b or a != a)


@pytest.mark.parametrize("arrays", [None, NumberedArrays()])
def test_every_kind_of_value_comes_back_as_it_was(arrays):
    back = there_and_back(WHOLE, arrays)
    for one in fields(WHOLE):
        assert same(getattr(WHOLE, one.name), getattr(back, one.name)), one.name


def test_arrays_go_where_the_caller_says_and_equal_ones_once():
    @dataclass(frozen=True, eq=False)
    class Two:
        a: NDArray[np.float64]
        b: NDArray[np.float64]

    arrays = NumberedArrays()
    text = encode(Two(np.arange(3.0), np.arange(3.0)), arrays)
    assert text == {"a": {"array": 0}, "b": {"array": 0}}
    assert list(arrays.arrays) == ["a0"]
    assert "base64" in encode(Two(np.arange(3.0), np.arange(3.0)))["a"]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (int, True),
        (int, 1.0),
        (int, "1"),
        (float, True),
        (float, "0.5"),
        (float, {"float": "huge"}),
        (str, None),
        (bool, 1),
        (Literal["left", "right"], "up"),
        (tuple[int, str], [1]),
        (tuple[int, str], [1, 2]),
        (tuple[int, ...], "12"),
        (tuple[int, ...], {"tuple": [1]}),
        (dict[str, int], []),
        (dict[str, int], [["a", 1]]),
        (dict[tuple[str, str], int], [[["a", "b"], 1, 2]]),
        (Inner, {"low": 1.0, "more": 2}),
        (Inner, {"high": 1.0}),
        (Inner, [1.0, 2.0]),
        (Inner | Other, {"low": "x"}),
        (pd.DataFrame, {"arrow": 3}),
        (NDArray[np.float64], [1.0]),
        (NDArray[np.float64], {"array": 0}),
        (NDArray[np.float64], {"dtype": "|O", "shape": [1], "base64": "AAAAAAAAAAA="}),
        (NDArray[np.float64], {"dtype": "|b1", "shape": [1], "base64": "AQ=="}),
        (NDArray[np.int64], {"dtype": "<f8", "shape": [1], "base64": "AAAAAAAAAAA="}),
        (NDArray[np.float64], {"dtype": "<f8", "shape": [True], "base64": "AAAAAAAAAAA="}),
        (NDArray[np.str_], {"dtype": "<U99999", "shape": [0], "base64": ""}),
    ],
)
def test_what_is_not_of_the_declared_type_is_refused(kind, text):
    with pytest.raises(TypeError):
        decode(kind, text)


def test_an_array_shorter_than_it_says_is_refused():
    with pytest.raises(ValueError, match="reshape"):
        decode(NDArray[np.float64], {"dtype": "<f8", "shape": [9], "base64": "AAAAAAAAAAA="})


def test_arrays_that_come_back_cannot_be_written():
    assert not there_and_back(WHOLE).numbers.flags.writeable


def test_whole_numbers_count_as_numbers():
    assert type(decode(float, 3)) is float
    found = decode(NDArray[np.float64], encode(np.array([1, 2])))
    assert found.dtype == np.float64
    assert found.tolist() == [1.0, 2.0]


def test_infinities_as_earlier_versions_wrote_them_are_read():
    assert decode(tuple[float, ...], ["inf", "-inf", 1.0]) == (math.inf, -math.inf, 1.0)


@dataclass(frozen=True)
class Renamed:
    model: str = field(default="", metadata={"formerly": "parent"})


def test_a_field_is_found_under_the_name_that_it_had():
    assert decode(Renamed, {"parent": "forest"}) == Renamed("forest")
    assert decode(Renamed, {"model": "forest"}) == Renamed("forest")
    assert encode(Renamed("forest")) == {"model": "forest"}


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes", lambda: 0])
def test_what_has_no_spelling_is_not_written(value):
    with pytest.raises(TypeError, match="cannot be written"):
        encode({"a": (value,)})
