"""What a spreadsheet would run is text in every CSV that is written; numbers stay numbers."""

import io

import pandas as pd
import pytest

from kdcal_core.data.csv_out import safe_cell, to_csv

RUN = ["=1+1", "+1+cmd|' /C calc'!A0", "-2+3", "-1|x", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1"]
LEFT = ["-0.5", "+3", "-1e-5", "-1,200.5", "-12%", "-0.5 to 0.1", "-1 (-2 to 0)", "<=50K", "a=b"]


@pytest.mark.parametrize("text", RUN)
def test_formulas_become_text(text: str) -> None:
    assert safe_cell(text) == f"'{text}"


@pytest.mark.parametrize("text", LEFT)
def test_numbers_and_other_text_stay(text: str) -> None:
    assert safe_cell(text) == text


def test_headings_are_cells_too_and_numbers_are_not_text() -> None:
    table = pd.DataFrame({"=x": ["=y", None], "n": [-0.5, 1.0]})
    back = pd.read_csv(io.BytesIO(to_csv(table)))
    assert list(back) == ["'=x", "n"]
    assert back["'=x"].iloc[0] == "'=y"
    assert back["n"].tolist() == [-0.5, 1.0]
