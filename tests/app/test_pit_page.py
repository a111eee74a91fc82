"""The PIT page: its states, its settings, and what is picked on its map."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from app_pages import healthy, settle, visit, words
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest
from texts.pages import said

from app.pit import pit_columns
from app.pit.pit_picks import Box, Centre, furthest_off, picked, suggested, with_pick
from app.shared import job_results, pit_results, row_tables
from app.shared.pit_results import Judged
from kdcal_core.diagnostics import LocalPit
from kdcal_core.review import (
    Review,
    Workspace,
    add_table,
    create_review,
    score,
    set_roles,
    start_sample,
)
from kdcal_core.tasks import MEAN, SPREAD, in_box

pytestmark = pytest.mark.usefixtures("work_here")


# --- what is picked on the map ------------------------------------------------------------------


def local(kinds: Sequence[str], bias: Sequence[float], spread: Sequence[float]) -> LocalPit:
    c = len(kinds)
    rows = 10 * np.arange(c)
    flat = np.full(c, 0.5)
    return LocalPit(
        np.column_stack([np.arange(c), flat]),
        rows,
        np.asarray(bias),
        np.asarray(spread),
        flat,
        flat,
        flat,
        np.array(kinds, dtype=np.str_),
        5,
        100,
        0.95,
        199,
        0,
    )


FOUR = local(["none", "too low", "too low", "too high"], [0.4, 0.1, 0.2, -0.1], [0, 0, 0, 0])


def test_a_click_picks_the_row_its_mark_carries() -> None:
    point = {"customdata": [20, 21, 0.7], "x": 2, "y": 0.5}
    assert picked({"points": [point], "box": []}, FOUR) == Centre(20)
    numbered = {"customdata": {"0": 30, "1": 31}}
    assert picked({"points": [point, numbered], "box": []}, FOUR) == Centre(30)


def test_places_to_choose_from_begin_with_the_fault_furthest_off() -> None:
    assert furthest_off(FOUR) == [2, 1, 3, 0]  # without a fault comes last, however far off


def test_a_mark_that_is_no_centre_picks_nothing() -> None:
    for carried in ([21], ["20"], [None], [], None, {"1": 20}):
        assert picked({"points": [{"customdata": carried}]}, FOUR) == "nothing"


def test_a_box_counts_before_the_marks_in_it_and_never_by_the_outcome() -> None:
    dragged = {"x": [2.0, 0.5], "y": [1.0, 0.0]}
    selection = {"box": [dragged], "points": [{"customdata": [20]}]}
    assert picked(selection, FOUR) == Box((0.5, 2.0), (0.0, 1.0))
    assert picked(selection, FOUR, only_across=True) == Box((0.5, 2.0), None)
    assert picked({"box": [], "points": []}, FOUR) == "cleared"


@given(
    xy=st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5) | st.just(np.nan)), min_size=1),
    x=st.tuples(st.floats(-5, 5), st.floats(-5, 5)).map(sorted),
    y=st.none() | st.tuples(st.floats(-5, 5), st.floats(-5, 5)).map(sorted),
)
def test_rows_in_a_box_are_those_between_its_sides(xy, x, y) -> None:
    box = Box(tuple(x), None if y is None else tuple(y))
    found = np.flatnonzero(in_box(np.array(xy), box.x, box.y))
    inside = [
        at
        for at, (across, up) in enumerate(xy)
        if x[0] <= across <= x[1] and (y is None or y[0] <= up <= y[1])
    ]
    assert found.tolist() == inside


anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["box", "points", "customdata", "x", "y", "0"]), inner, max_size=3
        )
    ),
    max_leaves=12,
)


@given(anything, st.booleans())
def test_whatever_the_browser_sends_is_a_pick_or_none(selection: object, across: bool) -> None:
    pick = picked(selection, FOUR, only_across=across)
    if isinstance(pick, Centre):
        assert pick.row in FOUR.rows
    elif isinstance(pick, Box):
        assert pick.x[0] <= pick.x[1]
    else:
        assert pick in ("nothing", "cleared")


def test_the_last_two_picks_are_kept() -> None:
    first, second, third = Centre(0), Box((0, 1), None), Centre(10)
    both = with_pick(with_pick((), first), second)
    assert both == (first, second)
    assert with_pick(both, third) == (second, third)
    assert with_pick(both, first) == (second, first)


def test_suggested_are_opposite_faults_the_worst_of_each() -> None:
    assert suggested(FOUR) == (Centre(20), Centre(30))
    lonely = local(["too wide", "too low", "too wide"], [0.0, 0.1, 0.0], [-0.1, 0.0, -0.3])
    assert suggested(lonely) == (Centre(20), Centre(10))
    assert suggested(local(["none"], [0.4], [0.0])) == ()


# --- the page -----------------------------------------------------------------------------------


def opened(app: AppTest, review: Review) -> AppTest:
    app.session_state["review"] = review.id
    return healthy(visit(app, "pit"))


def rows(n: int) -> pd.DataFrame:
    """Too low in one half, too high in the other; the total looks right."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=n)
    return pd.DataFrame(
        {"x": x, "mu": x, "sigma": 1.2, "y": np.where(x < 0, 0.7, -0.7) + x + rng.normal(size=n)}
    )


def review_of(frame: pd.DataFrame, folder: Path, **roles: object) -> Review:
    path = folder / "rows.csv"
    frame.to_csv(path, index=False)
    workspace = Workspace()
    review = create_review(workspace)
    review = add_table(workspace, review.id, "calibration", path, "rows.csv")
    if roles:
        assert review.roles is not None
        review = set_roles(workspace, review.id, replace(review.roles, **roles))
    return score(workspace, review.id)


def test_without_a_review_the_page_says_what_will_appear(app) -> None:
    healthy(visit(app, "pit"))
    app.button(key="sample_for_pit").click()
    healthy(app.run())
    assert "regression (" in words(app)


def test_good_coverage_hides_opposite_local_faults(app, tmp_path, texts) -> None:
    opened(app, review_of(rows(600), tmp_path))
    texts(app)
    assert "600 outcomes" in words(app)
    tiles = {unescape(tile.label): tile for tile in app.metric}
    assert list(tiles) == ["Coverage 95%", "CRPS", "Location", "Places that differ"]
    assert tiles["Places that differ"].value.endswith(" of 300")
    table = next(frame for frame in app.dataframe if "Corrected p" in frame.value)
    low, high = table.value.iloc[0], table.value.iloc[-1]
    assert (low["Fault"], high["Fault"]) == ("Predictions too low", "Predictions too high")
    app.select_slider(key="pit_k").set_value(100)
    healthy(app.run())
    assert "99 rows" in words(app)
    app.toggle(key="pit_rows_missed").set_value(True)
    healthy(app.run())
    shown = next(frame.value for frame in app.dataframe if "PIT" in frame.value)
    assert len(shown) > 10
    assert not shown["Inside"].any()


def test_a_place_chosen_from_the_list_is_picked_as_by_a_click(app, tmp_path) -> None:
    opened(app, review_of(rows(600), tmp_path))
    places = next(box for box in app.selectbox if box.label == "Pick from a list")
    assert places.options[0].startswith("Row ")
    assert "Each is tested alone" not in words(app)
    row = places.options[5].split(":")[0].lower()
    places.select_index(5)
    healthy(app.run())
    assert "Each is tested alone" in words(app)
    assert f"{row} and the " in words(app)
    assert next(box for box in app.selectbox if box.label == "Pick from a list").value is None


def test_without_features_prediction_against_outcome_is_the_map(app, tmp_path, texts) -> None:
    opened(app, review_of(rows(120)[["mu", "sigma", "y"]], tmp_path))
    kind = next(box for box in app.selectbox if box.label == "Map")
    assert kind.value == "prediction"
    texts(app)


def test_categories_are_mapped_along_a_column_of_many_values(app, tmp_path) -> None:
    frame, day = rows(120), pd.Series(list("abcdef") * 20)
    mixed = frame.assign(promo=np.arange(120) % 2, day=day, shop=frame["x"].round(1))
    opened(app, review_of(mixed.drop(columns="x"), tmp_path))
    chosen = {box.label: box.value for box in app.selectbox}
    assert (chosen["Map"], chosen["Across"], chosen["Up"]) == ("columns", "shop", MEAN)


@pytest.mark.parametrize("n", [3, 12])
def test_a_few_rows_are_called_few(app, tmp_path, n, texts) -> None:
    opened(app, review_of(rows(n), tmp_path))
    texts(said(app))
    assert app.metric[3].value == ("not tested" if n == 3 else "0 of 12")


def test_rows_that_are_all_alike_have_no_places(app, tmp_path, texts) -> None:
    opened(app, review_of(rows(60).assign(x=1.0), tmp_path, features=("x",)))
    texts(said(app), "one place")
    next(box for box in app.selectbox if box.label == "Rows are near in").select("prediction")
    healthy(app.run())
    texts(said(app), "by prediction")


def test_a_hidden_layer_is_read_by_a_job(app, monkeypatch) -> None:
    monkeypatch.setattr(job_results, "_SHORT", 0.0)  # the page does not wait for its end
    opened(app, start_sample(Workspace(), "diamonds"))
    space = next(box for box in app.selectbox if box.label == "Rows are near in")
    space.select("layer:hidden 2 (5)")
    healthy(app.run())
    assert app.metric[3].value == "not tested"
    healthy(settle(app))
    assert app.metric[3].value.endswith(" of 300")


# --- what can be chosen and taken along ---------------------------------------------------------


def test_the_outcome_is_no_column_to_look_along(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path / "home"))
    frame = rows(40).assign(seller=["a", "=b"] * 20)
    judged = Judged(review_of(frame, tmp_path, features=("x",)), "calibration")
    assert pit_columns.columns_of(judged) == ["x", MEAN, SPREAD, "seller"]
    picked = pit_results.rows_of(judged, level=0.9, among=[3, 0])
    assert picked is not None
    found, at = row_tables.pit_answers(picked, 0.9), picked.rows
    assert sorted(found["Row"]) == [1, 4]
    np.testing.assert_allclose(found["Outcome"], frame["y"].iloc[at])
    np.testing.assert_allclose(found["90% low"], frame["mu"].iloc[at] - 1.644854 * 1.2, 1e-5)
    assert found["seller"].tolist() == frame["seller"].iloc[at].tolist()
    assert "y" not in found
    every = pit_results.rows_of(judged, level=0.9)
    assert every is not None
    assert sorted(every.rows) == list(range(40))
    assert (np.diff(np.abs(every.pit - 0.5)) <= 0).all()
    assert len(pd.read_csv(io.StringIO(found.to_csv(index=False)))) == 2
