"""How far two sets share rows, from sketches of both."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from kdcal_core.data.row_sketch import KEPT, RowSketch, row_overlap, row_sketch
from kdcal_core.store import decode, encode

KEY = b"a secret of 16 b"
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"age": RNG.normal(size=9000), "ward": RNG.choice(["a", "b"], 9000)})
Y = RNG.choice(["no", "yes"], 9000)


def sketch(rows: slice, key: bytes = KEY, table: pd.DataFrame = TABLE) -> RowSketch:
    found = row_sketch(table[rows], Y[rows], key)
    assert found is not None
    return found


def test_the_share_of_rows_judged_before_lies_in_the_interval() -> None:
    inside, runs = 0, 60
    for run in range(runs):
        key = run.to_bytes(16, "little")
        found = row_overlap(sketch(slice(0, 5000), key), sketch(slice(4000, 9000), key))
        assert 900 < found.seen <= KEPT
        inside += found.low <= 0.2 <= found.high
    assert inside >= 54
    assert found.chance == 0.0


def test_sets_within_each_other_without_common_rows_and_small_ones() -> None:
    whole, part, other = (
        sketch(slice(0, 6000)),
        sketch(slice(2000, 4000)),
        sketch(slice(6000, 9000)),
    )
    assert (row_overlap(whole, part).share, row_overlap(whole, other).share) == (1.0, 0.0)
    assert row_overlap(part, whole).low < 1 / 3 < row_overlap(part, whole).high
    few = row_overlap(sketch(slice(0, 300)), sketch(slice(200, 1000)))
    assert (few.share, few.low, few.high, few.seen) == (0.125, 0.125, 0.125, 800)


def test_order_kind_of_number_and_names_of_columns() -> None:
    turned = TABLE[["ward", "age"]].iloc[::-1]
    found = row_sketch(turned, Y[::-1], KEY)
    assert row_overlap(sketch(slice(None)), found).share == 1.0
    assert row_overlap(sketch(slice(None)), row_sketch(TABLE, Y[::-1], KEY)).share < 0.6
    named = sketch(slice(None), table=TABLE.rename(columns={"age": "years"}))
    assert row_overlap(sketch(slice(None)), named).why_not == "other columns describe the rows"
    assert row_sketch(TABLE[[]], Y, KEY) is None


def test_without_the_key_nothing_is_known() -> None:
    mine, theirs = sketch(slice(None)), sketch(slice(None), b"another of 16 by")
    assert not np.isin(mine.least, theirs.least).any()
    assert mine.key != theirs.key
    assert mine.columns != theirs.columns
    assert "two keys" in row_overlap(mine, theirs).why_not
    assert "no sketch" in row_overlap(None, mine).why_not


def test_rows_that_are_equal_by_chance_say_nothing() -> None:
    coarse = TABLE.assign(age=TABLE.age.round(2))
    one, two = (sketch(rows, table=coarse) for rows in (slice(0, 2000), slice(2000, 4000)))
    assert "equal by chance" in row_overlap(one, two).why_not
    finer = TABLE.assign(age=TABLE.age.round(4))
    one, two = (sketch(rows, table=finer) for rows in (slice(0, 2000), slice(2000, 4000)))
    found = row_overlap(one, two)
    assert 0.0 < found.chance < 0.05
    assert found.low <= found.chance
    tiny, large = sketch(slice(0, 40)), sketch(slice(None))
    assert row_overlap(tiny, large).why_not == ""
    assert "differ too much in size" in row_overlap(large, tiny).why_not


def test_a_file_keeps_it_and_refuses_what_is_none() -> None:
    mine = sketch(slice(None))
    again = decode(RowSketch, encode(mine))
    assert row_overlap(mine, again).share == 1.0
    for change in (
        {"least": mine.least[::-1]},
        {"least": mine.least[:5]},
        {"least": mine.least.astype(np.int64)},
        {"distinct": 9001},
        {"n": 0},
    ):
        with pytest.raises(ValueError, match="no sketch"):
            replace(mine, **change)


@pytest.mark.parametrize("right", [True, False])
def test_a_guess_at_one_row_stays_a_guess(right: bool) -> None:
    rows = [5, *range(3000, 3020)]
    outcomes = Y[rows] if right else np.where(Y[rows] == "no", "yes", "no")
    found = row_overlap(sketch(slice(0, 300)), row_sketch(TABLE.iloc[rows], outcomes, KEY))
    assert (found.share, found.low) == (0.0, 0.0)
    assert found.high > 0.9
