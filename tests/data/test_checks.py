"""Probabilities, labels and weights: what passes, what does not, and where the fault lies."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kdcal_core.data import (
    check_labels,
    check_proba,
    check_weight,
    digest_arrays,
    softmax_logits,
)
from kdcal_core.errors import InputError


def fault(call, *args, **options) -> InputError:
    with pytest.raises(InputError) as caught:
        call(*args, **options)
    return caught.value


@given(
    hnp.arrays(
        np.float64, st.tuples(st.integers(1, 20), st.integers(2, 6)), elements=st.floats(0, 1)
    )
)
def test_normalised_rows_pass_unchanged(raw: np.ndarray) -> None:
    raw = raw + 1e-3
    proba = raw / raw.sum(axis=1, keepdims=True)
    checked = check_proba(proba)
    assert checked.dtype == np.float64
    assert checked.flags.c_contiguous
    assert np.array_equal(checked, proba)


@given(st.integers(0, 10_000))
def test_float32_rounding_is_scaled_away(seed: int) -> None:
    proba = np.random.default_rng(seed).dirichlet(np.ones(7), 50).astype(np.float32)
    before = proba.copy()
    checked = check_proba(proba)
    assert np.abs(checked.sum(axis=1) - 1).max() < 1e-12
    assert np.allclose(checked, before, atol=1e-6)
    assert np.array_equal(proba, before)


def test_input_is_never_changed() -> None:
    proba = np.array([[0.5, 0.5005], [0.25, 0.75]])
    before = proba.copy()
    checked = check_proba(proba)
    assert np.array_equal(proba, before)
    assert checked[0].sum() == pytest.approx(1, abs=1e-15)
    assert np.array_equal(checked[1], before[1])


@pytest.mark.parametrize(
    ("row", "word"),
    [
        ([np.nan, 0.5, 0.5], "missing"),
        ([0.5, np.inf, 0.5], "infinite"),
        ([0.5, -0.1, 0.6], "negative"),
        ([0.1, 1.2, 0.1], "above 1"),
        ([0.5, 0.2, 0.2], "sum to 0.9"),
    ],
)
def test_first_bad_row_is_named(row: list[float], word: str) -> None:
    proba = np.full((5, 3), 1 / 3)
    proba[3] = row
    proba[4] = [9, 9, 9]
    error = fault(check_proba, proba, columns=["a", "b", "c"], file="f.csv")
    assert word in error.what
    assert error.row == 4
    assert error.file == "f.csv"
    expected = {"missing": "a", "infinite": "b", "negative": "b", "above 1": "b"}.get(word)
    assert error.column == expected


def test_tolerance_edges() -> None:
    assert check_proba([[0.5, 0.5009]]).sum() == pytest.approx(1, abs=1e-15)
    assert "sum to" in fault(check_proba, [[0.5, 0.502]]).what
    assert "above 1" in fault(check_proba, [[1.0005, 0.0], [1.0, 0.0]]).what
    assert check_proba([[1.0000001, 0.0]])[0, 0] == 1.0


def test_other_kinds_of_numbers_are_recognised() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 4, (50, 3))
    assert "look like logits" in fault(check_proba, logits).what
    assert "logits" in fault(check_proba, logits).fix
    percent = rng.dirichlet(np.ones(3), 50) * 100
    assert "look like percentages" in fault(check_proba, percent).what
    one_slip = rng.dirichlet(np.ones(3), 50)
    one_slip[7, 1] = -0.5
    assert "negative" in fault(check_proba, one_slip).what


@pytest.mark.parametrize(
    ("proba", "word"),
    [
        ([0.2, 0.8], "single column"),
        ([[0.2], [0.8]], "at least two classes"),
        (np.zeros((0, 2)), "no rows"),
        (np.zeros((2, 2, 2)), "shape"),
        ([["a", "b"]], "not a number"),
        (np.array([[0.5, "x"]], dtype=object), "not a number"),
        (np.array([[0.5, 0.5j]]), "not a number"),
    ],
)
def test_wrong_shapes_and_types(proba: object, word: str) -> None:
    assert word in fault(check_proba, proba).what


def test_class_count_and_frames() -> None:
    assert "3 classes" in fault(check_proba, [[0.5, 0.5]], n_classes=3).what
    frame = pd.DataFrame({"a": pd.array([0.25, None], dtype="Float64"), "b": [0.75, 1.0]})
    error = fault(check_proba, frame, columns=list(frame))
    assert (error.row, error.column) == (2, "a")
    masked = np.ma.masked_array([[0.5, 0.5], [0.5, 0.5]], mask=[[0, 0], [1, 0]])
    assert fault(check_proba, masked).row == 2
    assert fault(check_proba, np.array([[0.5, 0.5], [0.5, "x"]], dtype=object)).row == 2


@pytest.mark.parametrize(
    "y",
    [
        [0, 1, 2],
        [0.0, 1.0, 2.0],
        pd.Series([0, 1, 2], dtype="Int64"),
        pd.Series([0, 1, 2], dtype="category"),
        np.array([0, 1, 2], dtype=np.uint8),
        np.array([0, 1, 2], dtype=object),
    ],
)
def test_labels_of_every_type(y: object) -> None:
    checked = check_labels(y, 3, n_rows=3)
    assert checked.dtype == np.int64
    assert checked.tolist() == [0, 1, 2]


def test_boolean_labels() -> None:
    assert check_labels([True, False], 2).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("y", "word", "row"),
    [
        ([0, np.nan], "missing", 2),
        ([0, None], "missing", 2),
        (pd.Series([0, None], dtype="Int64"), "missing", 2),
        ([0.5, 1], "whole", 1),
        ([0, np.inf], "whole", 2),
        ([0, 1, 2], "out of range", 3),
        ([0, -1], "out of range", 2),
        (["a", "b"], "text", None),
        (pd.Series(["a", "b"], dtype="category"), "text", None),
        ([[0, 1]], "one column", None),
        ([], "no rows", None),
    ],
)
def test_bad_labels(y: object, word: str, row: int | None) -> None:
    error = fault(check_labels, y, 2)
    assert word in error.what
    assert error.row == row


def test_label_hints() -> None:
    assert "start at 1" in fault(check_labels, [1, 2, 3], 3).fix
    assert "start at 1" not in fault(check_labels, [2, 3], 3).fix
    assert "encode_labels" in fault(check_labels, ["x"], 2).fix
    assert "3" in fault(check_labels, [0, 1], 2, n_rows=3).what


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_bad_weights(bad: float) -> None:
    assert fault(check_weight, [1.0, bad], 2).row == 2


def test_weights() -> None:
    assert check_weight(None, 2).tolist() == [1, 1]
    assert check_weight([1, 2], 2).dtype == np.float64
    assert "rows" in fault(check_weight, [1.0], 2).what


@given(
    hnp.arrays(
        np.float64, st.tuples(st.integers(1, 10), st.integers(2, 5)), elements=st.floats(-500, 500)
    )
)
def test_softmax_against_definition(logits: np.ndarray) -> None:
    shifted = [[np.exp(z - max(row)) for z in row] for row in logits.tolist()]
    expected = [[value / sum(row) for value in row] for row in shifted]
    assert np.allclose(softmax_logits(logits), expected, atol=1e-15)


def test_softmax_extremes() -> None:
    assert softmax_logits([[1e308, -1e308]]).tolist() == [[1.0, 0.0]]
    assert fault(softmax_logits, [[0, 1], [np.inf, 1]]).row == 2
    assert fault(softmax_logits, [[0, 1], [np.nan, 1]], columns=["a", "b"]).column == "a"
    assert fault(softmax_logits, [[-np.inf, -np.inf]]).row == 1


def test_digest_depends_on_content_alone() -> None:
    array = np.arange(6.0).reshape(2, 3)
    digest = digest_arrays(array)
    assert digest == digest_arrays(np.asfortranarray(array)) == digest_arrays(array.astype(">f8"))
    others = [array.T, array.reshape(-1), array.astype(np.float32), array + 1, "x", None]
    assert len({digest, *map(digest_arrays, others)}) == 7
    assert digest_arrays(np.empty((0, 3))) != digest_arrays(np.empty((0, 4)))
    with pytest.raises(TypeError):
        digest_arrays(np.array(["a"], dtype=object))


@pytest.mark.parametrize("vast", [1e-300, 1e300])
def test_a_weight_beyond_computing_is_refused(vast):
    with pytest.raises(InputError, match="too small or too large") as caught:
        check_weight([1.0, vast, 1.0], 3)
    assert caught.value.row == 2
