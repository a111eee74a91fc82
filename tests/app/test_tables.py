"""Tables: numbers on the right, whatever they are to Streamlit."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from app.shared.tables import holds_numbers

ROOT = Path(__file__).parents[2]


def shown() -> None:
    import pandas as pd
    import streamlit as st

    from app.shared.tables import show_table

    show_table(
        pd.DataFrame(
            {
                "Group": ["18 to 30", "30 to 99"],
                "Gap": ["0.02 (−0.01 to 0.03)", "-0.1"],
                "p value": ["below 0.0001", ""],
                "Says": ["0.2", "nothing"],
                "Rows": [1, 2],
                "Change": ["+3%", "<1%"],
            }
        ),
        column_config={"Change": st.column_config.TextColumn(help="from before")},
    )


def all_alike() -> None:
    import pandas as pd

    from app.shared.tables import show_table

    show_table(pd.DataFrame({"Age": ["18", "30"]}), names_rows=False)


def test_numbers_stand_on_the_right() -> None:
    at = AppTest.from_function(shown).run()
    columns = json.loads(at.dataframe[0].proto.columns)
    right = {name for name, one in columns.items() if one.get("alignment") == "right"}
    assert right == {"Gap", "p value", "Change"}
    assert columns["Change"]["help"] == "from before"


@pytest.mark.parametrize("minus", ["\N{MINUS SIGN}", "-"])
def test_a_number_has_either_sign(minus: str) -> None:
    whole = (f"{minus}0.1", f"{minus}2.4 × 10⁻⁷", f"{minus}3% ({minus}1,200% to {minus}.5%)")
    assert holds_numbers(pd.Series(whole))
    for text in (f"{minus}x", f"1{minus}2", f"{minus}{minus}1"):
        assert not holds_numbers(pd.Series([text]))


def test_a_first_column_that_names_no_row_is_as_the_others() -> None:
    at = AppTest.from_function(all_alike).run()
    columns = json.loads(at.dataframe[0].proto.columns)
    assert columns["Age"]["alignment"] == "right"


def estimates() -> None:
    from app.shared.tables import show_estimates
    from kdcal_core.diagnostics import Estimate

    made = "normal, at least the model's own variance"
    one = Estimate("Confidence ECE: l1 norm", "ECE", 0.06, 0.05, 0.07, 90, interval=made)
    show_estimates([one], key="all", of="", what="estimates")


def test_what_an_interval_was_made_by_has_two_lines_beside_the_numbers() -> None:
    at = AppTest.from_function(estimates).run()
    proto = at.dataframe[0].proto
    columns = json.loads(proto.columns)
    assert proto.row_height > 4 * 15  # from there on Streamlit wraps text
    # the four columns of numbers between them take 360 of 905 pixels
    assert columns["Estimate"]["width"] + columns["Made by"]["width"] <= 545


def test_every_table_is_shown_in_this_way() -> None:
    sources = [*(ROOT / "app").rglob("*.py"), *(ROOT / "pages").glob("*.py")]
    direct = [one.name for one in sources if re.search(r"\.dataframe\(", one.read_text())]
    assert direct == ["tables.py"]


def test_titles_are_headings() -> None:
    """A paragraph in bold alone looks like a title, and is none to a screen reader."""
    sources = [*(ROOT / "app").rglob("*.py"), *(ROOT / "pages").glob("*.py")]
    bold = re.compile(r'markdown\(\s*f?"\*\*[^*"]+\*\*"[,)]')
    assert [one.name for one in sources if bold.search(one.read_text())] == []


def test_no_choice_is_written_in_white_on_the_accent_colour() -> None:
    """The chips of `st.multiselect` have a contrast of 2.9:1 in the dark theme."""
    sources = [*(ROOT / "app").rglob("*.py"), *(ROOT / "pages").glob("*.py")]
    assert [one.name for one in sources if "st.multiselect(" in one.read_text()] == []
