"""The table of the papers' rows names places that exist, and says of each row how it stands."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parents[3]
STATES = {"works", "decided otherwise", "studies only", "partly", "missing", "not checked"}
ROWS = 338
TABLE = pd.read_csv(Path(__file__).with_name("CHECKLIST.csv"), keep_default_na=False)


def test_every_row_stands_once_with_a_state() -> None:
    assert TABLE["row"].is_unique
    assert len(TABLE) == ROWS
    assert set(TABLE["state"]) <= STATES
    assert (TABLE["words"] != "")[TABLE["state"] != "not checked"].all()


def test_what_works_names_a_place_that_has_it() -> None:
    placed = TABLE[TABLE["state"].isin(["works", "studies only"])]
    assert (placed["where"] != "").all()
    for row, where in zip(TABLE["row"], TABLE["where"], strict=True):
        for place in filter(None, where.split("; ")):
            file, words = place.split("::", 1)
            assert words in (ROOT / file).read_text(encoding="utf-8"), (row, place)
