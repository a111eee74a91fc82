"""Labels of every type reach the right class, or say why not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdcal_core.data import classes_of, encode_labels
from kdcal_core.errors import InputError

DIGITS = tuple("0123456789")


@pytest.mark.parametrize(
    ("labels", "classes", "expected"),
    [
        (["b", "a"], ("a", "b"), [1, 0]),
        ([1, 0], ("0", "1"), [1, 0]),
        ([1.0, 0.0], ("0", "1"), [1, 0]),
        (["1.0", "0.0"], ("0", "1"), [1, 0]),
        ([1, 0], ("0.0", "1.0"), [1, 0]),
        ([True, False], ("0", "1"), [1, 0]),
        ([True, False], ("False", "True"), [1, 0]),
        ([1, 0], ("False", "True"), [1, 0]),
        (["true", "FALSE"], ("False", "True"), [1, 0]),
        ([" Yes ", "no"], ("No", "Yes"), [1, 0]),
        (["A", "a"], ("a", "A"), [1, 0]),
        (pd.Series(["b", "a"], dtype="category"), ("a", "b"), [1, 0]),
        (pd.Series([1, 0], dtype="Int64"), ("0", "1"), [1, 0]),
        (pd.Series([True, False], dtype="boolean"), ("0", "1"), [1, 0]),
        (pd.Series(["b", "a"], dtype="string[pyarrow]"), ("a", "b"), [1, 0]),
        (pd.Series([1, 0], dtype="int64[pyarrow]"), ("0", "1"), [1, 0]),
        (np.array([0.5, 1.5], dtype=np.float32), ("1.5", "0.5"), [1, 0]),
        ([-1, 1], ("-1", "1"), [0, 1]),
    ],
)
def test_matching(labels: object, classes: tuple[str, ...], expected: list[int]) -> None:
    encoded = encode_labels(labels, classes)
    assert encoded.dtype == np.int64
    assert encoded.tolist() == expected


@given(st.lists(st.sampled_from(DIGITS), min_size=1, max_size=200), st.permutations(DIGITS))
def test_every_row_gets_its_own_class(labels: list[str], classes: list[str]) -> None:
    for form in (labels, [int(x) for x in labels], [float(x) for x in labels]):
        encoded = encode_labels(form, classes)
        assert [classes[index] for index in encoded] == labels


def fault(labels: object, classes: tuple[str, ...]) -> InputError:
    with pytest.raises(InputError) as caught:
        encode_labels(labels, classes, column="y", file="f.csv")
    assert caught.value.file == "f.csv" or "rows" in caught.value.what
    return caught.value


@pytest.mark.parametrize("missing", [None, np.nan, "", "  ", pd.NA])
def test_missing_label(missing: object) -> None:
    error = fault(["a", "b", missing], ("a", "b"))
    assert "missing" in error.what
    assert (error.row, error.column) == (3, "y")


@pytest.mark.parametrize("missing", [None, ""])
def test_further_missing_labels_are_counted(missing: object) -> None:
    error = fault([missing, "a", "b", missing, missing], ("a", "b"))
    assert error.what == "A label is missing"
    assert error.fix.startswith("At least 2 more rows have this fault.")
    assert error.row == 1


def test_unknown_label() -> None:
    error = fault(["0", "x", "y"], DIGITS)
    assert "'x'" in error.what
    assert error.row == 2
    assert "2 more" in error.fix
    assert "'7'" in error.fix
    assert "'8'" not in error.fix


def test_ambiguous_case_is_no_match() -> None:
    assert "'AA'" in fault(["AA"], ("aa", "Aa")).what


def test_counted_from_one() -> None:
    error = fault([1, 3, 2], ("0", "1", "2"))
    assert "counted from 1" in error.what
    assert error.row == 2
    assert "counted" not in fault([1, 4, 2], ("0", "1", "2")).what
    assert "counted" not in fault([0, 3, 2], ("0", "1", "2")).what


def test_no_rows_and_long_numbers() -> None:
    assert "no rows" in fault([], ("a", "b")).what
    assert "unknown" in fault(["9" * 6000], ("0", "1")).what


def test_classes_of() -> None:
    assert classes_of(["c10", "c9", None, "c9"]) == ("c9", "c10")
    assert classes_of([2.0, 10.0, 1.0, np.nan]) == ("1", "2", "10")
    assert classes_of([True, False]) == ("False", "True")
    assert classes_of([0.5, -1]) == ("-1", "0.5")
    assert classes_of(["nan-ish", "1", "9" * 5000])[0] == "1"


@given(st.lists(st.text(max_size=8), max_size=30))
def test_classes_of_then_encode(labels: list[str]) -> None:
    kept = [label for label in labels if label.strip()]
    classes = classes_of(labels)
    assert set(classes) == {label.strip() for label in kept}
    if kept:
        encoded = encode_labels([label.strip() for label in kept], classes)
        assert [classes[index] for index in encoded] == [label.strip() for label in kept]
