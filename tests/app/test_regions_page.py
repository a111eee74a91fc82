"""The Regions page: its states, its settings, and what it says of planted faults."""

from __future__ import annotations

from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from app_pages import healthy, plain, settle, visit, words
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest
from texts.pages import said

from app.regions import regions_settings
from app.regions.regions_found import picked_leaf, region_table
from app.regions.regions_search import Looked
from app.regions.regions_text import rule_words
from kdcal_core.calibration import CALIBRATORS
from kdcal_core.charts.regions import shown_regions
from kdcal_core.diagnostics import describe_pit_regions, describe_regions, find_regions
from kdcal_core.diagnostics.targets import confidence_target
from kdcal_core.review import (
    Review,
    Workspace,
    add_table,
    create_review,
    score,
    set_roles,
    start_sample,
)
from kdcal_core.tasks import RegionColumns

HOSTILE = "job [x](http://a) $b$ <i>"
pytestmark = pytest.mark.usefixtures("work_here")


# --- what is picked in the picture ----------------------------------------------------------------


def test_a_click_picks_the_region_its_mark_carries() -> None:
    def event(carried: object) -> dict[str, object]:
        return {"selection": {"points": [{"customdata": carried}], "box": []}}

    assert picked_leaf(event([3, "hover"]), 8) == 3
    assert picked_leaf(event({"0": 2, "1": "hover"}), 8) == 2
    for carried in ([8], [-1], ["3"], [1.5], [True], [None], [], None, "age up to 3", {"1": 2}):
        assert picked_leaf(event(carried), 8) is None


anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["selection", "points", "customdata", "0"]), inner, max_size=3
        )
    ),
    max_leaves=12,
)


@given(anything)
def test_whatever_the_browser_sends_is_a_region_or_none(event: object) -> None:
    leaf = picked_leaf(event, 5)
    assert leaf is None or leaf in range(5)


def test_rows_of_other_classes_are_other_rows(tmp_path) -> None:
    review = start_sample(Workspace(tmp_path), "adult")
    known = RegionColumns(("age",), {}, ("age",))
    key = Looked(review, "calibration", known).key
    assert Looked(replace(review, title="Another"), "calibration", known).key == key
    swapped = replace(review, classes=review.classes[::-1])
    untrained = replace(review, training=None)
    assert len({key, *(Looked(one, "calibration", known).key for one in (swapped, untrained))}) == 3


# --- the page -------------------------------------------------------------------------------------


def opened(app: AppTest, review: Review) -> AppTest:
    app.session_state["review"] = review.id
    return healthy(visit(app, "regions"))


def rows(n: int, *, says_nothing: bool = False) -> pd.DataFrame:
    """Probabilities that hold, but for one job: there the event is half as likely as stated.

    Or there the probabilities say nothing, which overstates both classes alike.
    """
    rng = np.random.default_rng(1)
    p, job = rng.uniform(0.05, 0.95, n), rng.choice(["Sales", "*Tech*", "Clerk"], n)
    age = rng.integers(18, 80, n).astype(float)
    age[rng.random(n) < 0.1] = np.nan
    happens = np.where(job == "*Tech*", 0.5 if says_nothing else p / 2, p)
    return pd.DataFrame(
        {
            "age": age,
            HOSTILE: job,
            "shop": rng.choice([f"shop {i}" for i in range(50)], n),
            "p_no": 1 - p,
            "p_yes": p,
            "y": np.where(rng.random(n) < happens, "yes", "no"),
        }
    )


def review_of(frame: pd.DataFrame, folder: Path, features: tuple[str, ...]) -> Review:
    path = folder / "rows.parquet"
    frame.to_parquet(path)
    workspace = Workspace()
    review = create_review(workspace)
    review = add_table(workspace, review.id, "calibration", path, "rows.parquet")
    assert review.roles is not None
    outputs = (("no", "p_no"), ("yes", "p_yes"))
    roles = replace(review.roles, target="y", outputs=outputs, features=features)
    set_roles(workspace, review.id, roles)
    return score(workspace, review.id)


def test_without_a_review_the_page_offers_a_sample(app) -> None:
    healthy(visit(app, "regions"))
    assert app.button(key="sample_for_regions")


def test_a_planted_fault_is_found_with_its_words(app, tmp_path, texts) -> None:
    opened(app, review_of(rows(3000), tmp_path, ("age", HOSTILE)))
    texts(app)
    assert f"{HOSTILE} is *Tech*" in words(app)
    tiles = [unescape(tile.label) for tile in app.metric]
    assert tiles == ["Regions beyond chance", "Rows in them", "AUROC", "Log loss"]
    table = next(frame.value for frame in app.dataframe if "Corrected p" in frame.value)
    assert table.iloc[0]["Rule"] == f"{HOSTILE} is *Tech*"
    assert table.iloc[0]["Fault"] == "Over-confident"
    assert sorted(table["No."]) == list(range(1, len(table) + 1))


def test_overconfidence_in_both_classes_shows_in_the_confidence(app, tmp_path) -> None:
    opened(app, review_of(rows(3000, says_nothing=True), tmp_path, ("age", HOSTILE)))
    assert f"{HOSTILE} is *Tech*" not in plain(app.header[0].value)
    assert "also look at the confidence" in words(app)
    next(one for one in app.selectbox if one.label == "Question").select_index(2)
    healthy(app.run())
    assert f"{HOSTILE} is *Tech*" in plain(app.header[0].value)
    assert "over-confident" in plain(app.header[0].value)


def test_names_never_become_markup(app, tmp_path) -> None:
    opened(app, review_of(rows(3000), tmp_path, ("age", HOSTILE)))
    raw = " ".join(text.value for text in (*app.header, *app.markdown, *app.caption))
    assert "[x](http://a)" not in raw
    assert "*Tech*" not in raw


def test_sliders_act_without_a_job(app, tmp_path, texts) -> None:
    opened(app, review_of(rows(3000), tmp_path, ("age", HOSTILE)))
    app.slider(key="regions_depth").set_value(1)
    healthy(app.run())
    assert app.metric[0].value.endswith("of 2")
    app.select_slider(key="regions_least").set_value(2000)
    healthy(app.run())
    assert "4,000 rows" in words(app)
    texts(said(app))


def test_a_column_that_is_no_input_can_be_looked_along(app, tmp_path, texts) -> None:
    opened(app, review_of(rows(3000), tmp_path, ("age", HOSTILE)))
    app.button_group(key="regions_purpose_classification").set_value("column")
    healthy(app.run())
    box = next(one for one in app.selectbox if one.label == "Column")
    assert list(box.options) == ["age", HOSTILE, "shop"]
    box.select("shop")
    healthy(app.run())
    texts(said(app))
    table = next(frame.value for frame in app.dataframe if "Corrected p" in frame.value)
    assert len(table) == 31  # thirty shops, and the rarest shops together
    assert table["Rows"].sum() == 3000


def test_a_region_can_be_picked_without_a_mouse(app, tmp_path, texts) -> None:
    opened(app, review_of(rows(3000), tmp_path, ("age", HOSTILE)))
    box = next(one for one in app.selectbox if one.label == "Region")
    other = next(leaf for leaf in range(len(box.options)) if leaf != box.value)
    box.select_index(other)
    healthy(app.run())
    texts(said(app))


def test_a_number_keeps_its_order_and_categories_stand_by_evidence(app, tmp_path, texts) -> None:
    opened(app, review_of(rows(3000), tmp_path, ("age", HOSTILE)))
    app.button_group(key="regions_purpose_classification").set_value("column")
    healthy(app.run())
    table = next(frame.value for frame in app.dataframe if "Corrected p" in frame.value)
    assert table["No."].tolist() == list(range(1, 12))
    assert table["Rule"].iloc[0].startswith("age is 18 to")
    assert table["Rule"].iloc[-1] == "age is missing"
    texts(app, "a number")
    next(one for one in app.selectbox if one.label == "Column").select(HOSTILE)
    healthy(app.run())
    table = next(frame.value for frame in app.dataframe if "Corrected p" in frame.value)
    worst = table["Rule"].iloc[0]
    assert worst == f"{HOSTILE} is *Tech*"
    assert worst in unescape(app.header[0].value).replace("\u200b", "").replace("\\", "")
    texts(said(app), "categories")


def test_small_p_values_are_told_apart_by_the_gap() -> None:
    right = np.repeat([1, 0, 1, 0], [4000, 8000, 500, 4500])  # p values of 0, both of them
    goal = confidence_target(np.full(17_000, 0.99), right)
    found = describe_regions(goal, np.repeat([0, 1], [12_000, 5000]), ["x is 0", "x is 1"])
    assert [one.p_value for one in found.regions] == [0.0, 0.0]
    first = region_table(found).iloc[0]["Rule"]
    assert first == shown_regions(found)[0].words == found.faulty[0].words == "x is 1"


def test_the_table_of_pit_holds_what_was_tested() -> None:
    u = (np.arange(400) + 0.5) / 400
    found = describe_pit_regions(
        np.r_[0.25 + u / 2, u], np.repeat([0, 1], 400), ["a is 0", "a is 1"]
    )
    table = region_table(found)
    assert table.iloc[0]["Fault"] == "Spread too wide"
    assert table.iloc[0]["Spread"].startswith("−50% (−")
    assert table["Mean PIT"].str.fullmatch(r"0\.\d+ \(0\.\d+ to 0\.\d+\)").all()
    assert table["Spread"].str.fullmatch(r"\S+% \(\S+% to \S+%\)").all()
    assert "Gap" not in table
    assert "Smallest found" in table


def test_one_region_is_no_reason_for_regions(app, tmp_path, texts) -> None:
    rng = np.random.default_rng(5)
    frame = rows(900)
    frame["y"] = np.where(rng.random(900) < 0.5 + 0.2 * (frame["p_yes"] - 0.5), "yes", "no")
    opened(app, review_of(frame, tmp_path, ("age",)))
    texts(app)
    assert [app.metric[0].value, app.metric[1].value] == ["none", "none"]


@pytest.mark.usefixtures("real_workers")
def test_the_repair_is_judged_by_a_job(app, tmp_path, texts) -> None:
    opened(app, review_of(rows(1500), tmp_path, ("age", HOSTILE)))
    app.button(key="regions_start").click()
    healthy(app.run())
    healthy(settle(app))
    texts(app)
    tiles = {unescape(tile.label): tile for tile in app.metric}
    assert float(tiles["AUROC"].value) > 0.7
    table = next(frame.value for frame in app.dataframe if "AUROC lift" in frame.value)
    assert table["Calibrated by"].tolist()[2] == CALIBRATORS["heterogeneous_forest"].label
    for column in ("Log loss", "AUROC"):
        assert table[column].str.contains(r"\(0\.\d+ to 0\.\d+\)").all()
    assert (table.iloc[0][["Change", "AUROC lift"]] == "reference").all()


def hard(n: int) -> pd.DataFrame:
    """Scores that hold, but for the young among one job: a fault that takes two columns to name."""
    rng = np.random.default_rng(2)
    frame = rows(n)
    young = (frame["age"] < 40) & (frame[HOSTILE] == "Sales")
    happens = np.where(young, frame["p_yes"] / 5, frame["p_yes"])
    return frame.assign(y=np.where(rng.random(n) < happens, "yes", "no"))


def test_the_thorough_search_takes_the_place_of_the_quick_one(
    app, tmp_path, monkeypatch, texts
) -> None:
    monkeypatch.setattr(regions_settings, "REDRAWS", 40)
    monkeypatch.setattr("kdcal_core.diagnostics.regions.search.FAST", 0)
    opened(app, review_of(hard(900), tmp_path, ("age", HOSTILE)))
    texts(said(app), "quick")
    assert "450 rows" in words(app)
    app.button(key="regions_harder").click()
    healthy(settle(healthy(app.run())))
    text = words(app)
    assert app.button_group(key="regions_search").value == "thorough"
    texts(app, "thorough")
    assert "all 900 rows" in text
    assert "40 redraws" in text
    assert f"{HOSTILE} is Sales" in text
    assert app.metric[0].label == "Regions beyond chance"
    table = next(frame.value for frame in app.dataframe if "Corrected p" in frame.value)
    assert table["Rows"].sum() == 900
    assert table.iloc[0]["Corrected p"] == "0.024"
    assert not [one for one in app.button if one.key == "regions_harder"]  # it is there already
    app.button_group(key="regions_search").set_value("quick")
    healthy(app.run())
    assert "450 rows" in words(app)
    app.button_group(key="regions_search").set_value("thorough")
    app.slider(key="regions_depth").set_value(2)
    healthy(app.run())
    texts(said(app), "not yet with these settings")
    assert "450 rows" in words(app)
    assert app.button(key="regions_harder")


def test_only_many_rows_and_where_the_model_is_wrong_are_searched_harder(
    app, tmp_path, monkeypatch
) -> None:
    review = review_of(rows(900), tmp_path, ("age", HOSTILE))
    opened(app, review)
    assert "all 900 rows" in words(app)
    assert not [one for one in app.button if one.key == "regions_harder"]
    monkeypatch.setattr("kdcal_core.diagnostics.regions.search.FAST", 0)
    healthy(app.run())
    assert app.button(key="regions_harder")
    for purpose in ("classes", "column"):
        app.button_group(key="regions_purpose_classification").set_value(purpose)
        healthy(app.run())
        assert not [one for one in app.button if one.key == "regions_harder"]
        assert "quick search" not in words(app)


def test_of_two_classes_each_question_points_to_the_other(app, tmp_path, texts) -> None:
    rng = np.random.default_rng(3)
    right = rows(900).assign(y=lambda one: np.where(rng.random(900) < one["p_yes"], "yes", "no"))
    opened(app, review_of(right, tmp_path, ("age", HOSTILE)))
    question = next(one for one in app.selectbox if one.label == "Question")
    assert question.options == [
        "Probability of yes", "Probability of no", "Confidence in the prediction",
    ]  # fmt: skip
    assert plain(app.header[0].value).startswith("Probability of yes: ")
    texts(said(app), "probability")
    question.select_index(2)
    healthy(app.run())
    assert not plain(app.header[0].value).startswith("Probability")
    texts(said(app), "confidence")


def test_without_any_column_the_page_says_what_it_needs(app, tmp_path, texts) -> None:
    opened(app, review_of(rows(300)[["p_no", "p_yes", "y"]], tmp_path, ()))
    texts(app)
    assert app.button(key="regions_sample")


@pytest.mark.parametrize("n", [12, 60])
def test_few_rows_are_refused_with_the_number_that_would_do(app, tmp_path, n, texts) -> None:
    opened(app, review_of(rows(n), tmp_path, ("age", HOSTILE)))
    texts(said(app))
    assert not app.error


def test_a_date_is_left_out_with_a_notice(app, tmp_path, texts) -> None:
    frame = rows(2000).assign(day=pd.Timestamp("2026-01-01"))
    opened(app, review_of(frame, tmp_path, ("age", HOSTILE, "day")))
    texts(said(app))
    assert "day" in words(app)


def test_a_regression_shows_where_its_distributions_are_wrong(app, texts) -> None:
    opened(app, start_sample(Workspace(), "diamonds"))
    texts(app)
    tiles = [unescape(tile.label) for tile in app.metric]
    assert tiles == ["Regions beyond chance", "Rows in them", "Location", "CRPS"]
    assert not {"regions_start", "regions_harder"} & {button.key for button in app.button}


# --- words ----------------------------------------------------------------------------------------


def test_what_splits_a_region_off_comes_first_in_its_rule() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(0, 90, 4000), "job": rng.choice(["a", "b"], 4000)})
    fault = np.where(frame["age"] < 50, np.where(frame["job"] == "a", 0.5, 0.3), 0.0)
    fault = np.where((frame["job"] == "a") & (frame["age"] < 10), 0.0, fault)
    right = rng.random(4000) < 0.9 - fault
    search = find_regions(confidence_target(np.full(4000, 0.9), right), frame)
    assert search.tree is not None
    nodes = {one.leaf: one for one in search.tree.nodes() if one.leaf is not None}
    assert len(search.regions) >= 3
    assert any(one.words != rule_words(search, one) for one in search.regions)
    for one in search.regions:
        first = rule_words(search, one).split("; ")[0]
        last = nodes[one.leaf].condition
        assert last is not None
        assert first.split(" ")[0] == last.column.name
        assert sorted(rule_words(search, one).split("; ")) == sorted(one.words.split("; "))
