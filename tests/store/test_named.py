"""Values that say what they are: shared records, and classes that a file may name."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from kdcal_core.errors import InputError
from kdcal_core.store import Describer, Maker, is_storable, storable, storable_class


@storable
@dataclass(frozen=True, eq=False)
class Leaf:
    weight: float
    values: NDArray[np.float64]


@storable
@dataclass(frozen=True, eq=False)
class Branch:
    left: Leaf
    right: Leaf | None


@storable
class NoRecord:
    pass


def strange_leaf():
    @dataclass(frozen=True)
    class Leaf:
        pass

    return Leaf


def told_and_made(value):
    describer = Describer()
    text = json.loads(json.dumps([describer.value(value), describer.records], allow_nan=False))
    return Maker(describer.arrays, text[1]).value(text[0])


def test_a_record_in_two_places_comes_back_as_one():
    leaf = Leaf(float("inf"), np.arange(3.0))
    again = told_and_made((Branch(leaf, leaf), {"a": leaf}))
    branch, by_name = again
    assert branch.left is branch.right is by_name["a"]
    assert branch.left.weight == float("inf")
    assert branch.left.values.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    "text",
    [
        {"class": "Leaf", "fields": {"weight": "heavy", "values": {"array": 0}}},
        {"class": "Leaf", "fields": {"weight": 1.0, "values": {"tuple": [1.0]}}},
        {"class": "Leaf", "fields": {"weight": 1.0, "values": {"array": 7}}},
        {"class": "Leaf", "fields": {"weight": 1.0, "values": {"array": 0}, "more": 1}},
        {"class": "Leaf", "fields": {"weight": 1.0}},
        {"class": "Branch", "fields": {"left": {"record": 0}, "right": None}},
        {"class": "NoRecord", "fields": {}},
        {"class": "Path", "fields": {}},
        {"class": ["Leaf"], "fields": {}},
        {},
        3,
    ],
)
def test_a_record_of_other_parts_or_of_an_unknown_class_is_refused(text):
    with pytest.raises((LookupError, TypeError, ValueError)):
        Maker({"a0": np.zeros(2)}, [text])


def test_a_stranger_of_a_known_name_is_neither_marked_nor_written():
    stranger = strange_leaf()
    assert not is_storable(stranger)
    with pytest.raises(ValueError, match="two storable classes"):
        storable(stranger)
    with pytest.raises(TypeError, match="must not hold a Leaf"):
        Describer().value(stranger())
    assert storable_class("Leaf") is Leaf


def test_a_class_of_another_kind_is_refused():
    with pytest.raises(InputError, match="does not know"):
        storable_class("Leaf", NoRecord)
