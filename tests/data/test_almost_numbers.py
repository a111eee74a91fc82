"""A column of numbers that became text is named, with where and what to change."""

import io
from pathlib import Path

import pandas as pd
import pytest
from texts.snapshot import Texts

from kdcal_core.data import numeric_matrix, read_table
from kdcal_core.data.tables import TableBlocks
from kdcal_core.errors import InputError


def noted(text: str) -> list[str]:
    table = read_table(io.BytesIO(text.encode()), name="t.csv")
    return [note for note in table.notes if "read as numbers" in note]


@pytest.mark.parametrize("first", ["0.05", "0,05"])
def test_both_ways_of_writing_are_shown_in_either_order(first: str, texts: Texts) -> None:
    other = "0,05" if "." in first else "0.05"
    rows = [first] * 3 + [other] + [first] * 20
    (note,) = noted("p;y\n" + "".join(f"{value};a\n" for value in rows))
    texts(note)
    names = {"0.05": "0.05 with a decimal point", "0,05": "0,05 with a decimal comma"}
    assert f"{names[first]} (first in row 1)" in note
    assert f"{names[other]} (first in row 4)" in note


@pytest.mark.parametrize(
    ("values", "said", "fix"),
    [
        (["5%", "12.5 %", "7%"], "5% with a percent sign (first in row 1)", "divide by 100"),
        (["1,234.5", "12", "7.001,25"], "1,234.5 with thousands separators", "separators out"),
        (["1.234,5", "12", "7,001.25"], "1.234,5 with thousands separators", "separators out"),
        (["12", "1 234 567", "5"], "1 234 567 with thousands separators (first in row 2)", "out"),
        (["0.5", "50%", "0.7"], "0.5 with a decimal point (first in row 1) and 50%", "by 100"),
    ],
)
def test_siblings_are_named_too(values: list[str], said: str, fix: str) -> None:
    (note,) = noted("p|y\n" + "".join(f"{value}|a\n" for value in values))
    assert said in note
    assert fix in note


@pytest.mark.parametrize(
    "values", [["a", "b", "1,5"], ["2020-01-01", "x", "y"], ["1.5", "2.5"], ["10-20", "20-30"]]
)
def test_other_columns_are_not(values: list[str]) -> None:
    assert noted("p|y\n" + "".join(f"{value}|a\n" for value in values)) == []


def test_a_value_that_stops_a_column_of_numbers_says_how_to_write_it() -> None:
    frame = pd.DataFrame({"p": ["0.1", "0,25", "0.5"]})
    with pytest.raises(InputError, match=r"'0,25' is text.*row 2.*write all of them with a deci"):
        numeric_matrix(frame, ["p"], allow_missing=False)
    with pytest.raises(InputError, match="Correct it"):
        numeric_matrix(pd.DataFrame({"p": ["0.1", "often"]}), ["p"], allow_missing=False)


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (["$1,234", "-$950", "($5)"], [1234.0, -950.0, -5.0]),
        (["$3.499", "$4.000"], [3.499, 4.0]),
        (["1.234,50 €", "7,00 €", "-2 €"], [1234.5, 7.0, -2.0]),
        (["1.234 €", "12.500 €", "3.000 €", "950 €"], [1234.0, 12500.0, 3000.0, 950.0]),
        (["CHF 1'234.50", "CHF 2"], [1234.5, 2.0]),
        (["1,234,567", "5", "NA"], [1234567.0, 5.0, None]),
        (["1,234.5", "7"], [1234.5, 7.0]),
    ],
)
def test_amounts_are_numbers_where_one_reading_fits(
    values: list[str], numbers: list[float | None]
) -> None:
    table = read_table(io.BytesIO(("p|y\n" + "|a\n".join([*values, ""])).encode()), name="t")
    assert table.frame["p"].astype(object).where(table.frame["p"].notna(), None).tolist() == numbers
    assert f"holds amounts: {values[0]} was read as" in table.notes[-1]


def test_blocks_read_amounts_too(tmp_path: Path) -> None:
    pd.DataFrame({"p": ["$1,234", "$5"], "y": "a"}).to_csv(tmp_path / "t.csv", index=False)
    blocks = TableBlocks(tmp_path / "t.csv")
    (block,) = blocks.read(["p"])
    assert block["p"].tolist() == [1234.0, 5.0]
    assert blocks.notes == {"p": "Column 'p' holds amounts: $1,234 was read as 1,234."}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["1.234 €", "2.345 €"], "1.234 € may be 1234 or 1.234"),
        (["1,234", "12,500"], "1,234 may be 1234 or 1.234"),
        (["$5", "€6"], "in several currencies ($ and €)"),
        (["$5", "n/a", *["$6"] * 10], None),  # a stray word: the checks name it
        (["<=50K", ">50K"], None),
        (["192.168.1.1", "10.0.0.1"], None),
        (["01,234", "02,345"], None),
        (["555 123 456", "555 123 457"], None),
    ],
)
def test_other_amounts_stay_text(values: list[str], said: str | None) -> None:
    table = read_table(
        io.BytesIO(pd.DataFrame({"p": values, "y": "a"}).to_csv(index=False).encode())
    )
    assert table.frame["p"].tolist()[0] == values[0]
    assert said is None or said in table.notes[-1]
