"""Which columns can tell regions apart, by what they hold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdcal_core.data.column_kinds import why_no_input

N = 1000
SOME = np.arange(N)


@pytest.mark.parametrize(
    ("name", "values", "why"),
    [
        ("a", SOME / 3, ""),
        ("a", SOME, ""),  # whole numbers, all different, but no name of a row's number
        ("id", SOME, "numbers"),
        ("loan_id", SOME.astype(str), "numbers"),
        ("id", SOME % 500, "several rows"),
        ("patient_id", [f"P{i // 3}" for i in SOME], "several rows"),
        ("patient", [f"P{i // 3}" for i in SOME], "several rows"),
        ("visit", SOME, "numbers"),
        ("site_id", SOME % 7, ""),  # few values: a category
        ("dose", SOME % 500, ""),
        ("id", SOME / 3, ""),
        ("flag", SOME % 2 == 0, ""),
        ("text", [f"t{i % 254}" for i in SOME], ""),
        ("text", [f"t{i % 255}" for i in SOME], "254"),
        ("text", [f"t{i % 501}" for i in SOME], "another value"),
        ("text", pd.Categorical([f"t{i % 3}" for i in SOME]), ""),
        ("text", pd.Categorical([f"t{i}" for i in SOME]), "another value"),
        ("number", pd.Categorical(SOME % 7), ""),
        ("day", pd.date_range("2026-01-01", periods=N), "dates"),
        ("wait", pd.to_timedelta(SOME, unit="s"), "neither"),
        ("empty", [None] * N, ""),
    ],
)
def test_by_what_it_holds(name: str, values: object, why: str) -> None:
    found = why_no_input(name, pd.Series(values))
    assert why in found
    assert bool(why) == bool(found)


def test_missing_values_are_no_values_of_their_own() -> None:
    text = pd.Series([f"t{i}" if i % 20 == 0 else None for i in range(N)])
    assert why_no_input("remark", text) == "nearly every row has another value"


@given(st.lists(st.none() | st.text(max_size=3), max_size=20))
def test_few_rows_are_too_few_to_leave_a_column_out(values: list[str | None]) -> None:
    assert why_no_input("text", pd.Series(values, dtype=object)) == ""
