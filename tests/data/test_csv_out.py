"""What a spreadsheet would run is text in every CSV that is written; numbers stay numbers."""

import io

import pandas as pd
import pytest

from kdcal_core.data.csv_tables import safe_cell, to_csv
from kdcal_core.text import number_text, range_text, typed

HIDDEN = [" =1", "\u00a0@x", "\u200b=1", "\ufeff=1", "\x00=1", "\ufe66=1", "\u207c1", "\u22121+x"]
RUN = ["=1+1", "+1+cmd|' /C calc'!A0", "-2+3", "-1|x", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1"]
LEFT = [
    "-0.5",
    "+3",
    "-1e-5",
    "-1,200.5",
    "-12%",
    "-0.5 to 0.1",
    "-1 (-2 to 0)",
    "<=50K",
    "a=b",
    " -0.5",
    "\u22120.5",
    "a; -0.5; b",
]


@pytest.mark.parametrize("text", RUN + HIDDEN)
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


@pytest.mark.parametrize("own", ["\u22125", "x is above \u22122", "a\u2212b \u22123", "2 × 10⁻⁷"])
def test_a_text_of_the_user_keeps_its_signs(own: str) -> None:
    assert to_csv(pd.DataFrame({"n": [own]})).decode() == f"n\n{own}\n"


@pytest.mark.parametrize(
    ("shown", "written"),
    [
        (number_text(-0.5, 0.02), "-0.500"),
        (range_text(-1200.0, -0.1), '"-1,200 to 0"'),
        (number_text(-2.4e-7, 1e-8), "-2.4e-07"),
    ],
)
def test_numbers_for_people_are_written_for_programs(shown: str, written: str) -> None:
    assert to_csv(pd.DataFrame({"n": [shown]}).map(typed)).decode() == f"n\n{written}\n"


def test_a_formula_after_the_end_of_a_cell_elsewhere_is_text() -> None:
    assert safe_cell("x;=cmd|a") == "x;'=cmd|a"
    assert safe_cell("x\t -2+cmd|a") == "x\t '-2+cmd|a"


def test_a_carriage_return_ends_no_row() -> None:
    table = pd.DataFrame({"name": ["x\r=1+1", "y"], "b\r": [1, 2]})
    back = pd.read_csv(io.BytesIO(to_csv(table)))
    assert back.shape == (2, 2)
    assert back["name"].tolist() == ["x\n'=1+1", "y"]
