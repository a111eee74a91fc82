"""Parts of the app that hold without a browser: numbers, files, names."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from app.shared.charts import file_stem
from kdcal_core.data.csv_tables import to_csv
from kdcal_core.diagnostics import Estimate, interval_text, value_text


def test_numbers_have_the_decimals_of_their_interval() -> None:
    wide = Estimate("ECE", "ECE", 0.04312, 0.02, 0.06, 500, expected=0.0221)
    assert (value_text(wide), interval_text(wide), value_text(wide, wide.expected)) == (
        "0.043",
        "0.020 to 0.060",
        "0.022",
    )
    share = Estimate("Accuracy", "Accuracy", 0.93124, 0.921, 0.9402, 900, percent=True)
    assert (value_text(share), interval_text(share)) == ("93.1%", "92.1% to 94.0%")


@pytest.mark.parametrize("cell", ["=1+1", "+cmd", "@sum", "-x", "\t=1"])
def test_no_csv_cell_or_heading_is_a_formula(cell: str) -> None:
    written = to_csv(pd.DataFrame({cell: [cell], "n": [-1.5]})).decode()
    heading, row = written.splitlines()
    assert heading.strip('"').startswith("'")
    assert row.strip('"').startswith("'")
    assert row.endswith(",-1.5")


def test_ordinary_csv_cells_are_kept() -> None:
    table = pd.DataFrame({"name": ["<=50K", "-3", "a,b"], "n": [1, 2, 3]})
    read = pd.read_csv(io.BytesIO(to_csv(table)), dtype={"name": str})
    pd.testing.assert_frame_equal(read, table)


def test_file_names_hold_no_path() -> None:
    assert file_stem("../../etc <b>x</b> Größe") == "etc-b-x-b-gr-e"
    assert file_stem("***") == "data"
