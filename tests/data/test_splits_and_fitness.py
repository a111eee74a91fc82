"""Folds spread every class, split columns are understood, and warnings come when due."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from texts.snapshot import Texts

from kdcal_core.data import fitness, split_by_column, stratified_folds
from kdcal_core.errors import InputError

LABELS = st.lists(st.integers(0, 4), min_size=2, max_size=80)


@given(LABELS, st.integers(2, 6), st.integers(0, 1000))
def test_folds_spread_every_class(labels: list[int], n_folds: int, seed: int) -> None:
    y = np.array(labels)
    if len(y) < n_folds:
        with pytest.raises(InputError):
            stratified_folds(y, n_folds, seed)
        return
    folds = stratified_folds(y, n_folds, seed)
    assert np.array_equal(folds, stratified_folds(y, n_folds, seed))
    assert np.ptp(np.bincount(folds, minlength=n_folds)) <= 1
    for k in np.unique(y):
        assert np.ptp(np.bincount(folds[y == k], minlength=n_folds)) <= 1


def test_seeds_differ() -> None:
    y = np.repeat([0, 1], 100)
    assert not np.array_equal(stratified_folds(y, 5, 0), stratified_folds(y, 5, 1))


@pytest.mark.parametrize(
    "cal", ["cal", "Calib", "calibration", "VALID", " val ", "validation", "dev"]
)
@pytest.mark.parametrize("held", ["eval", "Evaluation", "test", "holdout", "held-out", "hold_out"])
def test_split_words(cal: str, held: str) -> None:
    frame = pd.DataFrame({"part": [cal, "train", held, cal]})
    sets = split_by_column(frame, "part")
    assert {name: rows.tolist() for name, rows in sets.items()} == {
        "calibration": [0, 3],
        "evaluation": [2],
        "train": [1],
    }


@pytest.mark.parametrize(
    ("values", "row"), [(["cal", "what"], 2), (["cal", None], 2), (["train", "train"], None)]
)
def test_split_faults(values: list[str | None], row: int | None) -> None:
    with pytest.raises(InputError) as caught:
        split_by_column(pd.DataFrame({"part": values}), "part", file="f.csv")
    assert (caught.value.file, caught.value.column, caught.value.row) == ("f.csv", "part", row)


def scored(n: int, n_wrong: int) -> tuple[np.ndarray, np.ndarray]:
    y = np.arange(n) % 2
    predicted = np.where(np.arange(n) < n_wrong, 1 - y, y)
    return np.eye(2)[predicted] * 0.8 + 0.1, y


def test_counts() -> None:
    proba, y = scored(100, 10)
    result = fitness(proba, y, ("a", "b"))
    assert result.n_rows == 100
    assert result.accuracy == pytest.approx(0.9)
    assert result.rows_true.tolist() == [50, 50]
    assert result.rows_predicted.sum() == 100
    assert result.flags == ()


@pytest.mark.parametrize(
    ("n", "n_wrong", "due"), [(400, 1, True), (400, 4, False), (100, 0, False)]
)
def test_too_good(n: int, n_wrong: int, due: bool) -> None:
    flags = fitness(*scored(n, n_wrong), ("a", "b")).flags
    assert any("used to train" in flag for flag in flags) == due


def test_thin_absent_and_missing() -> None:
    proba = np.array([[0.8, 0.1, 0.1]] * 60 + [[0.1, 0.8, 0.1]] * 10)
    y = np.array([0] * 55 + [1] * 15)
    flags = fitness(proba, y, ("a", "b", "c"), {"age": 1200, "size": 0}).flags
    assert any("c" in flag and "nothing can be said" in flag for flag in flags)
    assert any("b (10)" in flag for flag in flags)
    assert any("age (1,200)" in flag for flag in flags)
    assert not any("size" in flag for flag in flags)


def test_worse_than_naming_the_commonest(texts: Texts) -> None:
    proba, y = scored(100, 90)
    flags = fitness(proba, y, ("bad", "good")).flags
    (text,) = [flag for flag in flags if "most frequent class" in flag]
    texts(text)


def test_rows_that_leave_the_class_open_are_counted() -> None:
    proba, y = np.tile([0.3, 0.7], (100, 1)), np.tile([0, 1], 50)
    proba[:3] = 0.5
    words = "In 3 of 100 rows more than one class has the largest probability"
    assert any(flag.startswith(words) for flag in fitness(proba, y, ("a", "b")).flags)
    none = fitness(proba[3:], y[3:], ("a", "b")).flags
    assert not any("more than one class" in flag for flag in none)
