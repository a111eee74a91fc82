"""The posterior map: its states, its settings, and the rows in a box."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from app_pages import healthy, launch, plain, settle, started, visit
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from streamlit.testing.v1 import AppTest
from texts.snapshot import Texts

from app.shared.box_selection import Box, dragged_box
from kdcal_core.data import ScoredSet
from kdcal_core.jobs import jobs
from kdcal_core.partition import geodesic_kernel, rows_of
from kdcal_core.review import (
    ReviewReader,
    Workspace,
    add_model,
    add_table,
    create_review,
    score,
    start_sample,
)
from kdcal_core.tasks.map_measures import in_box, worst_first

WHOLE = Box((-2.0, 2.0), (-1.0, 3.0))
pytestmark = pytest.mark.usefixtures("work_here", "workspace")


# --- a dragged box becomes rows ---------------------------------------------------------------


def test_the_box_dragged_last_counts_whichever_way_it_was_dragged() -> None:
    first = {"xref": "x", "yref": "y", "x": [-1.0, 0.0], "y": [0.0, 1.0]}
    last = {"xref": "x3", "yref": "y3", "x": [1.5, 0.5], "y": [2.0, 1.0]}
    assert dragged_box({"box": [first, last]}, WHOLE) == Box((0.5, 1.5), (1.0, 2.0))


def test_a_box_is_cut_to_the_map_and_a_cleared_one_is_the_whole_map() -> None:
    wide = {"x": [-9.0, 0.0], "y": [2.0, 9.0]}
    assert dragged_box({"box": [wide]}, WHOLE) == Box((-2.0, 0.0), (2.0, 3.0))
    assert dragged_box({"box": [], "points": []}, WHOLE) == WHOLE
    assert dragged_box(None, WHOLE) == WHOLE


anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["box", "x", "y", "a"]), inner, max_size=3)
    ),
    max_leaves=12,
)
ends = st.lists(st.floats(-3, 4) | st.floats(), min_size=2, max_size=2)


@given(anything | st.builds(lambda x, y: {"box": [{"x": x, "y": y}]}, ends, ends))
def test_whatever_the_browser_sends_is_a_box_within_the_map(selection: object) -> None:
    box = dragged_box(selection, WHOLE)
    assert WHOLE.x[0] <= box.x[0] < box.x[1] <= WHOLE.x[1]
    assert WHOLE.y[0] <= box.y[0] < box.y[1] <= WHOLE.y[1]


@given(st.integers(0, 40), st.integers(0, 10_000))
def test_rows_in_a_box_are_those_that_lie_inside(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.uniform(-2, 2, (n, 2)).round(1)
    points[rng.random((n, 2)) < 0.1] = np.nan
    expected = [at for at, (x, y) in enumerate(points) if -1 <= x <= 1 and 0 <= y <= 2]
    assert np.flatnonzero(in_box(points, (-1.0, 1.0), (0.0, 2.0))).tolist() == expected


def test_the_surest_errors_come_first() -> None:
    proba = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.3, 0.7]])
    scored = ScoredSet(proba, np.array([0, 1, 0, 1]), ("u", "v"), "d", "evaluation")
    assert worst_first(scored).tolist() == [2, 1, 0, 3]


# --- the page ---------------------------------------------------------------------------------


def coarse(review: str) -> AppTest:
    """The page with few places on its map."""
    at = started(review)
    at.session_state["map_resolution"] = 50
    return settled(visit(at, "posterior_map"))


def settled(at: AppTest) -> AppTest:
    return healthy(settle(at))


def maps(at: AppTest) -> dict[str, np.ndarray]:
    """The heat maps of the picture by their titles."""
    drawn = json.loads(at.get("plotly_chart")[0].proto.spec)
    titles = [one["text"] for one in drawn["layout"]["annotations"]]
    titles = [title for title in titles if not title.startswith("P(") and title != "Confidence"]
    heat = [trace for trace in drawn["data"] if trace["type"] == "heatmap"]
    values = [np.ravel(trace["z"]) for trace in heat]
    return dict(zip(titles[1:], values, strict=True))


@pytest.fixture(scope="module")
def network(workspace: Workspace) -> str:
    return start_sample(workspace, "xor_network").id


@pytest.fixture(scope="module")
def fitted(network: str) -> AppTest:
    """The page of the network once its kernel density version is fitted."""
    at = coarse(network)
    (fit,) = [one for one in at.main.button if one.label == "Fit the kernel density version"]
    return settled(fit.click().run())


@pytest.fixture
def page(fitted: AppTest, network: str) -> AppTest:
    return coarse(network)


def sentence(at: AppTest) -> str:
    return next(one.value for one in at.markdown if "in the box" in one.value and "of" in one.value)


def test_at_first_the_model_stands_alone_beside_the_truth(network: str, texts: Texts) -> None:
    at = coarse(network)
    assert set(maps(at)) >= {"Model", "True posterior"}
    texts(at)


def test_the_version_joins_and_its_settings_need_no_fit(page: AppTest, texts: Texts) -> None:
    before = maps(page)
    assert list(before) == ["Model", "Kernel density version", "True posterior"]
    texts(page)
    slider = page.select_slider(key="foreign_alpha")
    slider.set_value(0.2).run()
    assert not jobs().active()
    after = maps(page)
    assert (after["Model"] == before["Model"]).all()
    assert (after["True posterior"] == before["True posterior"]).all()
    # a higher floor lets the prior in nearer to the data
    near_prior = [
        np.mean(np.abs(m["Kernel density version"] - 0.5) < 0.01) for m in (before, after)
    ]
    assert near_prior[1] > near_prior[0]
    page.button(key="map_reset").click().run()
    assert (maps(page)["Kernel density version"] == before["Kernel density version"]).all()


def test_the_truth_is_that_of_the_simulation(page: AppTest) -> None:
    truth = maps(page)["True posterior"].reshape(50, 50)
    drawn = json.loads(page.get("plotly_chart")[0].proto.spec)
    heat = next(trace for trace in drawn["data"] if trace["type"] == "heatmap")
    x, y = (np.array(heat[axis]) for axis in ("x", "y"))
    for across, up, expected in ((0.5, 0.5, 1.0), (-0.5, 0.5, 0.0), (1.9, 0.0, 0.5)):
        at = np.abs(y - up).argmin(), np.abs(x - across).argmin()
        assert truth[at] == pytest.approx(expected, abs=0.02)


def test_the_rows_in_the_box_are_counted_and_listed(
    page: AppTest, workspace: Workspace, network: str, texts: Texts
) -> None:
    frame = ReviewReader(workspace, network).frame("evaluation")
    across, _ = page.slider
    across.set_range(0.0, across.max).run()
    page.slider[1].set_range(0.0, page.slider[1].max).run()
    low_x, low_y = page.slider[0].value[0], page.slider[1].value[0]
    inside = frame[(frame["x1"] >= low_x) & (frame["x2"] >= low_y)]
    assert sentence(page).startswith(f"{len(inside)} of 1,000 rows")
    texts([plain(sentence(page))])
    table = page.dataframe[0].value
    assert len(table) == 100
    assert set(table["Row"] - 1) <= set(inside.index)
    np.testing.assert_array_equal(table["x1"], frame.loc[table["Row"] - 1, "x1"])
    wrong = (table["True class"] != table["Model says"]).to_numpy()
    assert (np.diff(wrong.astype(int)) <= 0).all()
    assert len(page.metric) == 4
    assert len(page.get("plotly_chart")) == 2


def test_few_rows_and_none_are_not_judged(page: AppTest, texts: Texts) -> None:
    across = page.slider[0]
    across.set_range(0.95, across.max).run()
    texts([plain(sentence(page))], "few")
    assert len(page.get("plotly_chart")) == 1
    assert not page.metric
    page.slider[0].set_range(1.5, across.max).run()
    texts([plain(sentence(page))], "none")
    assert not page.dataframe


def test_a_review_of_predictions_alone_says_that_it_needs_the_model(
    workspace: Workspace, texts: Texts
) -> None:
    at = launch("posterior_map", start_sample(workspace, "digits_predictions").id)
    texts(at)
    assert not at.get("plotly_chart")
    assert not jobs().active()


def test_a_model_without_a_partition_is_mapped_alone(
    workspace: Workspace, tmp_path: Path, texts: Texts
) -> None:
    """Principal axes at first; then two features, the others held as in a row."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(60, 4)), columns=["a", "b", "c", "d"])
    rows["kind"] = np.where(rows["a"] + rows["b"] > 0, "u", "v")
    model = LogisticRegression().fit(rows[["a", "b", "c", "d"]], rows["kind"])
    skops.io.dump(model, tmp_path / "model.skops")
    table = io.BytesIO(rows.to_csv(index=False).encode())
    review = create_review(workspace).id
    add_model(workspace, review, tmp_path / "model.skops", "model.skops")
    add_table(workspace, review, "calibration", table, "rows.csv")
    score(workspace, review)
    at = coarse(review)
    assert list(maps(at)) == ["Model"]
    texts(at, "principal axes")
    assert len(at.info) == 1
    at.session_state["map_axes"] = "features"
    at.session_state[f"map_held_{review}"] = "row"
    at.session_state[f"map_row_{review}"] = 3
    at.session_state[f"map_x_{review}"] = "c"
    settled(at.run())
    texts(at, "two features")
    assert any("row 3" in one.value for one in at.caption)
    layout = json.loads(at.get("plotly_chart")[0].proto.spec)["layout"]
    assert layout["xaxis"]["title"]["text"] == "c"
    assert layout["yaxis"]["title"]["text"] == at.selectbox(key=f"map_y_{review}").value == "a"
    assert "c" not in at.selectbox(key=f"map_y_{review}").options


def pair_said(at: AppTest) -> str:
    return next(one.value for one in at.markdown if "geodesic distance" in one.value)


def test_two_rows_share_the_units_of_their_codes(
    page: AppTest, workspace: Workspace, network: str, unfolded: None, texts: Texts
) -> None:
    settled(page.run())
    reader = ReviewReader(workspace, network)
    codes = reader.model().codes(reader.features("evaluation"))
    near = plain(pair_said(page))
    texts([near])

    def kernel(said: str) -> float:
        first, second = (int(row.replace(",", "")) - 1 for row in re.findall(r"[\d,]+", said)[:2])
        both = rows_of(codes, np.array([first, second]))
        value = float(geodesic_kernel(both)[0, 1])
        assert f"K = {value:.3f}" in said
        return value

    one_of = page.segmented_control(key=f"map_pair_{network}")
    settled(one_of.set_value("far").run())
    assert kernel(near) > kernel(plain(pair_said(page)))
    settled(page.segmented_control(key=f"map_pair_{network}").set_value("own").run())
    page.number_input(key=f"map_pair_row_2_{network}").set_value(1000).run()
    settled(page)
    assert plain(pair_said(page)).startswith("Rows 1 and 1,000 ")
    kernel(plain(pair_said(page)))


def test_of_a_large_review_the_server_reads_no_rows(page: AppTest, network: str, large) -> None:
    large()
    by_jobs = coarse(network)
    figures = [
        [json.loads(chart.proto.spec) for chart in at.get("plotly_chart")] for at in (by_jobs, page)
    ]
    assert len(figures[0]) == 2
    assert figures[0] == figures[1]
    assert [one.value for one in by_jobs.metric] == [one.value for one in page.metric]
    pd.testing.assert_frame_equal(by_jobs.dataframe[0].value, page.dataframe[0].value)
    for part in ("header", "caption", "markdown"):
        shown = [[one.value for one in at.main.get(part)] for at in (by_jobs, page)]
        assert shown[0] == shown[1]
    # another class and another box are asked for again
    by_jobs.selectbox(key=f"map_class_{network}").set_value(0).run()
    settled(by_jobs)
    by_jobs.slider[0].set_range(0.0, by_jobs.slider[0].max).run()
    assert "in the box" in sentence(settled(by_jobs))
