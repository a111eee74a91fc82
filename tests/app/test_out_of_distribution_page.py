"""The Out of distribution page: each of its states, and settings that act without a fit."""

from __future__ import annotations

import io
import json
from html import unescape
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from app_pages import healthy, launch, settle, specs
from sklearn.linear_model import LogisticRegression
from streamlit.testing.v1 import AppTest
from texts.pages import said
from texts.snapshot import Texts

from kdcal_core.jobs import jobs
from kdcal_core.review import (
    Workspace,
    add_foreign,
    add_model,
    add_table,
    create_review,
    remove_foreign,
    score,
    start_sample,
)
from kdcal_core.review.samples import samples_root

PAGE = "out_of_distribution"
HOSTILE = "far <b>*x*</b>.csv"
pytestmark = pytest.mark.usefixtures("work_here", "workspace")


def settled(at: AppTest) -> AppTest:
    return healthy(settle(at))


@pytest.fixture(scope="module")
def network(workspace: Workspace) -> str:
    return start_sample(workspace, "xor_network").id


@pytest.fixture(scope="module")
def linear(workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model without a partition."""
    frame = pd.DataFrame({"x": np.linspace(-3, 3, 200), "z": np.cos(np.arange(200))})
    frame["kind"] = np.where(frame["x"] + frame["z"] > 0, "yes", "no")
    model = LogisticRegression().fit(frame[["x", "z"]], frame["kind"])
    path = tmp_path_factory.mktemp("model") / "model.skops"
    skops.io.dump(model, path)
    review_id = create_review(workspace).id
    table = io.BytesIO(frame.to_csv(index=False).encode())
    add_model(workspace, review_id, path, "model.skops")
    add_table(workspace, review_id, "calibration", table, "calibration.csv")
    return score(workspace, review_id).id


def begun(review: str, label: str) -> AppTest:
    """The page with its pictures; the button of this label is clicked where there are none yet."""
    at = settled(launch(PAGE, review))
    if not at.get("plotly_chart"):
        (button,) = (one for one in at.button if one.label.startswith(label))
        settled(button.click().run())
    return healthy(at)


@pytest.fixture
def page(network: str) -> AppTest:
    """The page of the network, with its kernel density version fitted."""
    return begun(network, "Fit")


@pytest.fixture
def plain(linear: str) -> AppTest:
    """The page of the model without a partition, which was asked about spheres."""
    return begun(linear, "Score")


def lines(at: AppTest) -> list[str]:
    return [trace["name"] for trace in specs(at)[0]["data"] if trace.get("showlegend", True)]


def tiles(at: AppTest) -> list[str]:
    return [metric.value for metric in at.metric]


def choose(at: AppTest, kind: str) -> AppTest:
    """Choose a kind of foreign rows."""
    box = next(box for box in at.selectbox if box.label == "Foreign rows")
    return box.set_value((kind, "")).run()


def test_without_a_review_the_page_says_what_it_shows_and_opens_a_sample() -> None:
    at = healthy(launch(PAGE))
    assert at.title[0].value == "Out of distribution"
    assert not at.get("plotly_chart")
    assert any("Open a sample" in button.label for button in at.button)


def test_predictions_alone_are_not_enough(workspace: Workspace, texts: Texts) -> None:
    at = healthy(launch(PAGE, start_sample(workspace, "digits_predictions").id))
    texts(at)
    assert not at.button
    assert not at.get("plotly_chart")


def test_a_model_without_partition_is_asked_all_the_same(linear: str, texts: Texts) -> None:
    at = healthy(launch(PAGE, linear))
    texts(at, "before")
    assert len(at.info) == 1
    (ask,) = (button for button in at.button if button.label.startswith("Score"))
    at = settled(ask.click().run())
    assert lines(at)[0] == "Model"
    assert set(lines(at)[1:4]) == {"Isotonic", "Sigmoid", "KDE (b_mon2)"}
    assert [metric.label for metric in at.metric][-1] == "Mean confidence"
    assert len(at.get("plotly_chart")) == 1
    texts(at, "asked")


def test_the_offer_says_what_will_be_done_and_begins_nothing(
    workspace: Workspace, texts: Texts
) -> None:
    at = healthy(launch(PAGE, start_sample(workspace, "digits").id))
    offer = " ".join(text.value for text in at.markdown)
    texts(at)
    assert "597 rows" in offer
    assert "600 rows" in offer
    assert len(at.button) == 1
    assert not jobs().active()


def test_a_fitted_version_fills_the_page(page: AppTest, network: str, texts: Texts) -> None:
    assert len(page.get("plotly_chart")) == 3
    assert len(page.metric) == 4
    texts(page)
    assert "Kernel density, geodesic" in lines(page)
    assert "Kernel density, Euclidean" not in lines(page)
    for chart in page.get("plotly_chart"):
        assert chart.proto.alt
        assert "#00000" not in chart.proto.spec
    table = page.dataframe[0].value
    assert len(table) == 10
    assert table["Model says"].is_monotonic_decreasing
    assert {"x1", "x2"} <= set(table.columns)
    # asked for again, everything is there at once
    again = healthy(launch(PAGE, network))
    assert len(again.get("plotly_chart")) == 3


def test_alpha_exponent_and_variance_act_without_a_fit(page: AppTest) -> None:
    before, drawn = tiles(page), specs(page)
    page.select_slider(key="foreign_alpha").set_value(0.2).run()
    assert not jobs().active()
    after = tiles(healthy(page))
    assert after[1:3] == before[1:3]  # how well rows are told apart does not depend on the floor
    assert after[3] != before[3]
    assert specs(page)[1] != drawn[1]
    for name in ("foreign_exponent", "foreign_variance"):
        drawn = specs(page)
        slider = next(one for one in page.select_slider if one.key.startswith(name))
        slider.set_value(slider.options.index(slider.options[0]) if "exp" in name else 100.0)
        page.run()
        assert not jobs().active()
        assert specs(healthy(page))[1:] != drawn[1:]


def test_an_own_prior_and_a_fixed_floor_act_without_a_fit(page: AppTest) -> None:
    page.toggle(key=named(page.toggle, "_own_prior")).set_value(True).run()
    page.number_input(key=named(page.number_input, "_prior_0")).set_value(90.0).run()
    page.number_input(key=named(page.number_input, "_prior_1")).set_value(30.0).run()
    assert not jobs().active()
    healthy(page)
    words = [unescape(one.value) for one in page.caption]
    assert any(one.startswith("Scaled to a sum of 100%") for one in words)
    assert page.metric[0].label == "OCE, given prior"
    assert tiles(page)[0] == "0.0000"
    assert "75% here" in " ".join(words)  # what the version falls back to
    page.toggle(key=named(page.toggle, "_fixed_floor")).set_value(True).run()
    assert not jobs().active()
    assert page.select_slider(key="foreign_alpha").disabled
    assert tiles(healthy(page))[3] == "0.00%"  # the papers' constant calls no ordinary row unknown
    assert any("log b is -1e+07" in unescape(one.value) for one in page.caption)


def named(widgets: Any, ending: str) -> str:
    return next(one.key for one in widgets if one.key.endswith(ending))


def test_another_distance_is_fitted_at_once(page: AppTest) -> None:
    control = next(one for one in page.button_group if one.label == "Distance between regions")
    control.set_value("euclidean").run()
    settled(page)
    assert "Kernel density, Euclidean" in lines(healthy(page))
    assert "Kernel density, geodesic" not in lines(page)


def test_each_kind_of_foreign_rows_can_be_looked_at(page: AppTest) -> None:
    seen = [specs(page)[1]]
    for kind in ("sphere", "uniform", "shuffled"):
        choose(page, kind)
        assert not jobs().active()
        seen.append(specs(healthy(page))[1])
    choose(page, "sphere")
    page.select_slider(key="foreign_radius").set_value(1.0).run()
    seen.append(specs(healthy(page))[1])
    assert len({json.dumps(one, sort_keys=True) for one in seen}) == 5


def test_a_feature_is_shifted_by_a_job_and_then_at_once(page: AppTest) -> None:
    choose(page, "shifted")
    settled(page)
    far = tiles(page)
    page.select_slider(key="foreign_shift").set_value(-2.0).run()
    assert not jobs().active()
    assert tiles(healthy(page)) != far
    drawn = json.dumps(specs(page)[1], ensure_ascii=False)
    assert all(word in drawn for word in ("x1", "−2 standard deviations"))


def test_euclidean_distance_is_fitted_when_it_is_asked_for(page: AppTest) -> None:
    pills = next(one for one in page.button_group if one.label == "Compare with")
    pills.set_value(["euclidean"]).run()
    settled(page)
    assert lines(page)[:3] == ["Model", "Kernel density, geodesic", "Kernel density, Euclidean"]


def test_an_uploaded_table_is_looked_at_at_once_and_can_be_taken_out(page: AppTest) -> None:
    table = pd.DataFrame({"x2": [9.0, 8.0, 7.5], "x1": [-9.0, 8.0, 7.0], "else": [1, 2, 3]})
    page.file_uploader[0].upload(HOSTILE, table.to_csv(index=False).encode())
    page.run()
    settled(page)
    words = " ".join(text.value for text in page.markdown)
    assert "3 of 3 rows" in words
    assert "<b>" not in words
    assert "<b>" not in json.dumps(specs(page)[1])
    assert sorted(page.dataframe[0].value["x1"]) == [-9.0, 7.0, 8.0]
    removes = [button for button in page.button if button.label.startswith("Remove ")]
    removes[-1].click().run()
    settled(page)
    assert HOSTILE not in next(b for b in page.selectbox if b.label == "Foreign rows").options


def test_rows_of_the_data_among_foreign_ones_are_warned_of(page: AppTest, texts: Texts) -> None:
    own = pd.read_parquet(samples_root() / "xor_network" / "calibration.parquet")[["x1", "x2"]]
    table = pd.concat([own.iloc[:5], own.iloc[5:20] * 5])
    page.file_uploader[0].upload(HOSTILE, table.to_csv(index=False).encode())
    settled(page.run())
    words = [unescape(warning.value) for warning in page.warning]
    assert len(words) == 1
    texts(said(page))
    assert "(5 pairs" in words[0]
    assert "<b>" not in page.warning[0].value
    assert not healthy(choose(page, "sphere")).warning


def test_a_table_that_lacks_a_feature_is_refused_in_words(page: AppTest) -> None:
    page.file_uploader[0].upload("bad.csv", b"x1,z\n1,2\n")
    settle(page.run())
    assert not page.exception
    assert "x2" in page.error[0].value
    assert len(page.get("plotly_chart")) == 3


def test_the_dark_theme_draws_with_its_own_colours(page: AppTest, network: str) -> None:
    dark = launch(PAGE, network, dark=True)
    for one, other in zip(specs(page), specs(healthy(dark)), strict=True):
        assert one["layout"]["font"] != other["layout"]["font"]


def test_a_table_that_the_model_cannot_take_can_be_taken_out(
    linear: str, workspace: Workspace
) -> None:
    bad = pd.DataFrame({"x": [0.5, 1.0], "z": ["oops", "2"]})
    add_foreign(workspace, linear, io.BytesIO(bad.to_csv(index=False).encode()), HOSTILE)
    try:
        at = launch(PAGE, linear)
        for button in [one for one in at.button if one.label.startswith("Score")]:
            button.click().run()
        settle(at)
        assert "oops" in at.error[0].value
        at = launch(PAGE, linear)  # a reload knows no answers from before
        (remove,) = (button for button in at.button if button.label.startswith("Remove "))
        remove.click().run()
    finally:
        remove_foreign(workspace, linear, HOSTILE)
    assert not at.error
    assert not at.exception


@pytest.mark.parametrize("which", ["network", "linear"])
def test_of_a_large_review_the_server_reads_no_rows(
    which: str, request: pytest.FixtureRequest, large
) -> None:
    review: str = request.getfixturevalue(which)
    at_once: AppTest = request.getfixturevalue("page" if which == "network" else "plain")
    large()
    by_jobs = settled(launch(PAGE, review))
    assert by_jobs.get("plotly_chart")
    assert specs(by_jobs) == specs(at_once)
    assert tiles(by_jobs) == tiles(at_once)
    for mine, theirs in zip(by_jobs.dataframe, at_once.dataframe, strict=True):
        pd.testing.assert_frame_equal(mine.value, theirs.value)
    for part in ("header", "caption", "markdown"):
        shown = [[one.value for one in at.main.get(part)] for at in (by_jobs, at_once)]
        assert shown[0] == shown[1]
