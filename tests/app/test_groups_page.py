"""The Groups page: declared columns, a finding, a line a group and a table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from app_pages import healthy, launch, plain, settle, specs, words
from made_reviews import HOSTILE_COLUMN, line, review_of, too_sure
from streamlit.testing.v1 import AppTest

from app.load.role_form import role_table, roles_from_table
from kdcal_core.review import (
    Question,
    Workspace,
    read_review,
    score,
    set_question,
    set_roles,
)

PAGE = "groups"
pytestmark = pytest.mark.usefixtures("work_here", "workspace")


def rows(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    table = too_sure(n, seed).drop(columns="feature")
    return table.assign(**{HOSTILE_COLUMN: rng.choice(["<b>a</b>", "b"], n), "age": rng.random(n)})


@pytest.fixture(scope="module")
def review_id(workspace: Workspace) -> str:
    return review_of(workspace, calibration=rows(400, 0), evaluation=rows(400, 1))


def shown(review_id: str) -> AppTest:
    return healthy(settle(launch(PAGE, review_id)))


def test_every_page_says_which_rows_are_kept_together(workspace: Workspace, review_id: str) -> None:
    assert "kept together" not in words(shown(review_id))
    table = rows(200, 2).assign(ward=np.arange(200) // 4)
    clustered = review_of(workspace, calibration=table)
    roles = workspace.read(clustered).roles
    assert roles is not None
    info = workspace.read(clustered).tables["calibration"]
    told = replace(roles, features=(), cluster="ward")
    assert roles_from_table(role_table(info.columns, told), told.output_kind, told) == told
    set_roles(workspace, clustered, told)
    score(workspace, clustered)
    kept = "Rows of one ward are kept together in folds and intervals: 50 clusters (calibration)."
    assert kept in words(shown(clustered))
    assert "as independent" not in words(shown(clustered))
    far = words(healthy(settle(launch("out_of_distribution", clustered))))
    alone = (
        "Measures of foreign rows whose table lacks that column still treat rows as independent."
    )
    assert f"{kept} {alone}" in far


def test_groups_are_asked_for_first(review_id: str) -> None:
    at = shown(review_id)
    assert "Declare them before you look" in words(at)
    assert not specs(at)
    assert list(map(plain, at.pills[0].options)) == [HOSTILE_COLUMN, "age"]


def test_one_click_declares_a_column_of_words(workspace: Workspace, review_id: str) -> None:
    at = shown(review_id)
    (offered,) = (one for one in at.button if one.label.startswith("Groups of"))
    assert "<b>" not in offered.label
    at = healthy(settle(offered.click().run()))
    assert at.pills[0].value == [HOSTILE_COLUMN]
    assert read_review(workspace, review_id).question.groups == (HOSTILE_COLUMN,)
    assert specs(at)
    at.pills[0].set_value([]).run()
    assert not read_review(workspace, review_id).question.groups


def test_columns_become_the_review_s_groups(workspace: Workspace, review_id: str) -> None:
    at = shown(review_id)
    at.pills[0].set_value([HOSTILE_COLUMN, "age"]).run()
    at = healthy(settle(at))
    assert read_review(workspace, review_id).question.groups == (HOSTILE_COLUMN, "age")
    assert "17 groups" in at.header[0].value
    (figure,) = specs(at)
    assert len(figure["data"]) == 4
    assert all(len(panel["x"]) == 17 for panel in figure["data"])
    assert "<b>" not in str(figure["layout"])
    table = at.dataframe[0].value
    assert table["Group"].iloc[-1] == "all rows"
    assert len(table) == 18
    # five columns with intervals are as many as a screen of 1,366 pixels holds
    assert list(table.columns) == [
        *("Group", "Rows", "Event rate", "Stated", "Observed minus stated", "ECE", "AUROC")
    ]
    # each column alone, then both together: every row lies in three groups
    assert table["Rows"].iloc[-1] == 400
    assert table["Rows"].iloc[:-1].sum() == 3 * 400
    assert list(table["Group"].str.startswith("age: ")) == [False] * 2 + [True] * 5 + [False] * 11


def test_with_three_columns_no_fourth_is_offered(workspace: Workspace) -> None:
    table = too_sure(200, 0).assign(**{name: np.resize(["u", "v"], 200) for name in "abcd"})
    at = shown(review_of(workspace, calibration=table))
    at = at.pills[0].set_value(["d", "a"]).run()
    assert at.pills[0].options == ["feature", "a", "b", "c", "d"]
    at = at.pills[0].set_value(["d", "a", "c"]).run()
    assert at.pills[0].options == ["a", "c", "d"]
    assert "at most 3" in at.pills[0].label
    at = healthy(settle(at.pills[0].set_value(["d", "c"]).run()))
    assert at.pills[0].options == ["feature", "a", "b", "c", "d"]
    assert at.pills[0].value == ["d", "c"]


def test_identifiers_and_dates_are_offered_as_groups_on_request_only(workspace: Workspace) -> None:
    number = np.arange(200)
    table = too_sure(200, 0).assign(
        customer_id=np.resize(["a", "b"], 200) + pd.Series(number).astype(str),
        contract=1_000 + number * 3,
        promo=number % 2,
        income=number * 1.37,
        admitted=pd.date_range("2026-01-01", periods=200).strftime("%Y-%m-%d"),
    )
    at = shown(review_of(workspace, calibration=table))
    assert at.pills[0].options == ["feature", "promo", "income"]
    assert not any("Groups of customer" in one.label for one in at.button)
    every = next(one for one in at.checkbox if "identifiers" in one.label)
    at = healthy(every.check().run())
    assert list(map(plain, at.pills[0].options)) == [
        *("feature", "customer_id", "contract", "promo", "income", "admitted")
    ]
    at = healthy(settle(at.pills[0].set_value(["contract"]).run()))
    at = healthy(settle(next(o for o in at.checkbox if "identif" in o.label).uncheck().run()))
    assert at.pills[0].value == ["contract"]


def test_columns_whose_long_names_begin_alike_are_told_apart(workspace: Workspace) -> None:
    """Of two options with one label Streamlit takes the last, whichever was chosen."""
    long = "a name that an export from a warehouse gives to each of its many columns, whatever it "
    parts = {f"{long}{end}": np.resize(["a", "b"], 300) for end in ("holds", "is")}
    review = review_of(workspace, calibration=rows(300, 5).assign(**parts))
    at = healthy(shown(review))
    labels = [one.label for one in at.button if one.label.startswith("Groups of a name")]
    assert len({*labels}) == len(labels) == 2
    (choice,) = at.get("button_group")
    options = [plain(one.content) for one in choice.proto.options]
    assert len({*options}) == len(options)


def test_without_columns_there_are_no_groups(workspace: Workspace) -> None:
    bare = too_sure(200, 0).drop(columns="feature")
    at = shown(review_of(workspace, calibration=bare))
    assert "no groups to declare" in words(at)


def test_groups_of_a_regression_show_place_and_spread(workspace: Workspace) -> None:
    table = line(600, 0)
    table = table.assign(site=np.where(table["x"] < 8, "<b>low</b>", "high"))
    made = review_of(workspace, calibration=table)
    set_question(workspace, made, Question(groups=("site",)))
    at = shown(made)
    assert "2 of 2 groups are off by more than chance" in at.header[0].value
    assert len(specs(at)) == 1
    assert "<b>" not in str(specs(at)[0])
    shown_table = at.dataframe[0].value
    assert set(shown_table["Rows"]) == set(table["site"].value_counts())
    assert {"Location", "Spread"} <= set(shown_table.columns)


def test_a_calibrated_version_stands_beside_the_model(workspace: Workspace) -> None:
    made = review_of(workspace, calibration=rows(600, 0), evaluation=rows(600, 1))
    set_question(workspace, made, Question(groups=(HOSTILE_COLUMN,)))
    at = shown(made)
    assert "With" not in at.header[0].value
    assert at.selectbox[0].options[:3] == ["Model only", "STS", "Platt"]
    at.selectbox[0].set_value("platt").run()
    at = healthy(settle(at))
    assert "With Platt" in at.header[0].value
    assert [one.label for one in at.tabs] == ["Measures", "Evidence", "With Platt"]
    _, evidence, after = (one.value for one in at.dataframe)
    assert list(evidence.columns[2:]) == [
        *("Verdict", "Smallest gap found", "Corrected p value", "Jeffreys p value")
    ]
    assert list(after.columns[2:]) == ["Verdict", "Observed minus stated", "ECE"]
    assert list(after["Group"]) == list(evidence["Group"])
    (figure,) = specs(at)
    assert [one["name"] for one in figure["data"] if one["showlegend"]] == [
        "Model as it is", "Platt",
    ]  # fmt: skip
    assert len(figure["data"]) == 8
    assert "<b>" not in str(figure["layout"])


def test_rows_in_order_of_time_stand_by_their_periods(workspace: Workspace) -> None:
    days = pd.date_range("2026-01-01", periods=150).strftime("%Y-%m-%d")
    for table in (rows(600, 3), line(600, 3)):
        made = review_of(workspace, calibration=table.assign(day=np.resize(days, 600)))
        roles = workspace.read(made).roles
        assert roles is not None
        set_roles(workspace, made, replace(roles, time="day"))
        score(workspace, made)
        at = shown(made)
        assert at.segmented_control[0].value == "time"
        assert not at.pills
        lines = [str(one) for one in specs(at)[0]["layout"]["yaxis"]["ticktext"]]
        assert [line.rpartition(" ")[2] for line in lines] == [f"2026-0{k}" for k in range(1, 6)]
        assert "5 periods" in at.header[0].value
        assert at.dataframe[0].value.columns[0] == "Period"
        assert "all periods" in words(at)
        at = healthy(settle(at.segmented_control[0].set_value("groups").run()))
        assert "Declare them before you look" in words(at)
        assert not read_review(workspace, made).question.groups


def test_periods_may_be_crossed_with_one_declared_column(workspace: Workspace) -> None:
    days = pd.date_range("2026-01-01", periods=150).strftime("%Y-%m-%d")
    channel = np.repeat(["<b>app</b>", "phone"], 300)
    for table in (rows(600, 3), line(600, 3)):
        more = {"day": np.resize(days, 600), "channel": channel}
        made = review_of(workspace, calibration=table.assign(**more))
        roles = workspace.read(made).roles
        assert roles is not None
        left = tuple(one for one in roles.features if one != "channel")
        set_roles(workspace, made, replace(roles, time="day", features=left))
        score(workspace, made)
        set_question(workspace, made, Question(groups=("channel",)))
        at = shown(made)
        control = at.segmented_control[0]
        assert control.value == "groups"
        at = healthy(settle(control.set_value("by channel").run()))
        lines = [str(one) for one in specs(at)[0]["layout"]["yaxis"]["ticktext"]]
        phone = sorted(line for line in lines if line.endswith(", phone"))
        assert phone == [f"2026-0{k}, phone" for k in range(1, 6)]
        assert not any("<b>app" in line for line in lines)
        assert read_review(workspace, made).question.groups == ("channel",)
