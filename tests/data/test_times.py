"""Which columns hold times, what they say, and their periods."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from kdcal_core.data import read_columns
from kdcal_core.data.times import dates_of, looks_like_dates, may_order_rows, periods

ON = pd.Timestamp("2026-03-31", tz="UTC")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x", "2026-03-31"),
        ("x", "2026-03-31 00:00:00"),
        ("x", "31.03.2026"),
        ("x", "31/03/2026"),
        ("x", "3/31/2026"),
        ("x", pd.Timestamp("2026-03-31")),
        ("date", 20260331),
        ("timestamp", 1_774_915_200),
        ("created_at", 1_774_915_200_000),
    ],
)
def test_dates_are_known_and_read(name: str, value: object) -> None:
    column = pd.Series([value, value])
    assert looks_like_dates(name, column)
    assert dates_of(column).tolist() == [ON, ON]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("amount", [202603, 202604]),
        ("customer_id", [1_774_915_200, 1_774_915_201]),
        ("time", [0.5, 3.25]),
        ("day", [1, 31]),
        ("flag_date", [True, False]),
        ("phone", ["1234-12", "5678-01"]),
        ("date", [np.nan, np.nan]),
    ],
)
def test_other_columns_are_no_dates(name: str, values: list[object]) -> None:
    assert not looks_like_dates(name, pd.Series(values))


def test_days_and_months_that_may_be_either_are_not_guessed() -> None:
    assert dates_of(pd.Series(["3/1/2026", "4/2/2026"])).isna().all()
    assert dates_of(pd.Series(["3/1/2026", "13/2/2026"])).dt.month.tolist() == [1, 2]


def test_a_year_of_days_is_divided_into_twelve_periods() -> None:
    days = pd.Series(pd.date_range("2025-03-15", periods=365))
    labels, names = periods(days)
    assert names[:2] == ["2025-03 to 2025-04", "2025-05"]
    assert (len(names), names[-1]) == (11, "2026-02 to 2026-03")  # of fewer than 30 days each
    assert (np.diff(labels) >= 0).all()
    many, _ = periods(days, np.full(365, 100))
    assert many.max() == 11


@pytest.mark.parametrize("name", ["date_of_birth", "card_expiry", "maturity_date"])
def test_dates_of_another_kind_are_not_asked_about(name: str) -> None:
    assert not may_order_rows(name)
    days = pd.date_range("2026-01-01", periods=60).strftime("%Y-%m-%d")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: days, "y": rng.integers(0, 2, 60), "p_1": rng.random(60)})
    assert read_columns(table).doubts == ()
    (doubt,) = read_columns(table.rename(columns={name: "day"})).doubts
    assert doubt.about == "time"


def test_one_of_both_orders_is_used() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "customer": [f"c{one}" for one in np.arange(600) // 2],
            "day": np.resize(pd.date_range("2026-01-01", periods=60).strftime("%Y-%m-%d"), 600),
            "y": rng.integers(0, 2, 600),
            "p_1": rng.random(600),
        }
    )
    assert [one.about for one in read_columns(table).doubts] == ["cluster", "time"]
    for answers, left in (
        ({"cluster": "customer"}, []),
        ({"time": "day"}, []),
        ({"cluster": ""}, ["time"]),
        ({"time": ""}, ["cluster"]),
        ({"time": "", "cluster": ""}, []),
    ):
        found = read_columns(table, answers=answers)
        assert [one.about for one in found.doubts] == left
        assert found.roles.cluster == (answers.get("cluster") or None)
        assert found.roles.time == (answers.get("time") or None)
