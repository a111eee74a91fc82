"""The simulation lab without a browser: every state of the page, and what moves without a fit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from app_pages import healthy, launch, plain, settle, specs
from streamlit.testing.v1 import AppTest
from texts.pages import said
from texts.snapshot import Texts

from app.shared.kept import KEPT
from kdcal_core.charts.image_lab import INSIDE, PICTURES, SHIFTED
from kdcal_core.jobs import jobs

N_CHARTS = 6  # small picture, maps, distance, measures, exponent, weight of a feature
pytestmark = pytest.mark.usefixtures("work_here")


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("kdcal")
        patch.setenv("KDCAL_HOME", str(folder))
        yield folder


def lab(*, dark: bool = False, **chosen: Any) -> AppTest:
    """The page with a small forest, and other settings where they are given."""
    at = launch("simulation_lab", dark=dark)
    for name, value in {"rows": 1000, "model": "forest", "trees": 100, **chosen}.items():
        if value is None:
            continue
        key = "lab_model" if name == "model" else f"lab_{name}"
        kinds = (at.select_slider, at.segmented_control, at.number_input, at.slider)
        widget = next(w for kind in kinds for w in kind if w.key == key)
        at = widget.set_value(value).run()
    return healthy(at)


def finish(at: AppTest, label: str = "Run") -> AppTest:
    """Press Run where the result is not stored yet, and wait."""
    pressed = [button for button in at.button if button.label == label]
    if pressed:
        at = settle(pressed[0].click().run())
    return healthy(at)


@pytest.fixture
def done() -> AppTest:
    return finish(lab())


def setting(at: AppTest, kind: str, name: str) -> Any:
    return next(widget for widget in getattr(at, kind) if widget.key.endswith(f"_{name}"))


def press(at: AppTest, label: str) -> AppTest:
    return healthy(next(b for b in at.button if b.label == label).click().run())


def folded(at: AppTest) -> bool:
    """Whether the settings are behind a button, not open on the page."""
    return "Settings" in [one.proto.popover.label for one in at.get("popover")]


def captions(at: AppTest) -> str:
    return " ".join(caption.value for caption in at.caption)


def test_a_newcomer_finds_a_picture_what_will_come_and_one_button() -> None:
    at = lab(seed=99)
    assert at.title[0].value == "Simulation lab"
    assert [button.label for button in at.button] == ["Run"]
    (picture,) = at.get("plotly_chart")
    assert "Gaussian XOR" in picture.proto.alt
    assert not at.metric
    assert not folded(at)


def test_a_run_says_what_it_found_and_shows_all(done: AppTest, texts: Texts) -> None:
    texts(done)
    assert len(done.metric) == 4
    charts = done.get("plotly_chart")
    assert len(charts) == N_CHARTS
    for chart in charts:
        assert chart.proto.alt
        assert "#00000" not in chart.proto.spec
    maps = specs(done)[1]
    titles = [unescape(annotation["text"]) for annotation in maps["layout"]["annotations"]]
    texts([title for title in titles if not title.startswith("P(")], "titles of the maps")
    table = done.dataframe[0].value
    assert len(table) == 7
    assert " to " in table["Error"].iloc[0]


def test_what_is_stored_is_there_at_once(done: AppTest) -> None:
    del done
    again = lab()
    assert again.header
    assert not jobs().active()


def test_settings_fold_after_a_run_and_a_change_keeps_the_last_result(done: AppTest) -> None:
    assert folded(done)
    found = done.header[0].value
    changed = healthy(done.number_input(key="lab_seed").set_value(77).run())
    assert changed.header[0].value == found
    assert "those of the previous settings" in changed.info[0].value
    assert changed.button[0].label == "Run"


def test_each_task_keeps_its_own_result(done: AppTest) -> None:
    other = healthy(done.segmented_control(key="lab_task").set_value("regression").run())
    assert not other.header
    assert not folded(other)
    back = healthy(other.segmented_control(key="lab_task").set_value("classification").run())
    assert back.header
    assert folded(back)


def test_every_slider_moves_the_maps_without_a_job_and_one_button_takes_it_back(
    done: AppTest,
) -> None:
    before = specs(done)[1]
    for kind, name, value in (
        ("select_slider", "exponent", 20),
        ("select_slider", "share", 0.2),
        ("select_slider", "variance", 0.1),
        ("segmented_control", "floor", "fixed"),
        ("segmented_control", "inside", "ratio"),
    ):
        moved = healthy(setting(done, kind, name).set_value(value).run())
        assert specs(moved)[1] != before, name
        assert not jobs().active()
        back = press(moved, "Chosen by data")
        assert specs(back)[1] == before, name


def test_the_presets_show_what_the_papers_mean_and_what_they_print(
    done: AppTest, texts: Texts
) -> None:
    meant = press(done, "As the papers mean")
    assert "log b = −1 × 10⁷" in captions(meant)
    # about the root of 20, as no polytope has a variance worth speaking of
    (near,) = re.findall(r"within (\d\.\d+) of their centre", captions(meant))
    assert float(near) == pytest.approx(4.47, abs=0.15)
    texts(said(meant), "as the papers mean")
    printed = press(done, "As printed")
    assert "log b = −1 × 10⁻⁷" in captions(printed)
    texts(said(printed), "as printed")
    shown = setting(printed, "select_slider", "log_b")
    assert shown.value == -1e-7


@pytest.mark.parametrize(
    "chosen",
    [
        {"simulation": "trunk", "dimensions": 5},
        {"model": "network", "trees": None, "layers": 1, "width": 10, "rows": 100},
    ],
)
def test_other_simulations_and_models(chosen: dict[str, Any]) -> None:
    order = {"simulation": None, "rows": None, "model": None} | chosen
    at = finish(lab(**order))
    assert at.header[0].value.startswith("At radius 2 the ")
    assert len(at.get("plotly_chart")) == N_CHARTS


def test_the_dark_theme_draws_with_its_own_colours(done: AppTest) -> None:
    dark = finish(lab(dark=True))
    for one, other in zip(specs(done), specs(dark), strict=True):
        assert one["layout"]["font"]["color"] != other["layout"]["font"]["color"]


@pytest.mark.usefixtures("real_workers")
def test_a_run_that_is_stopped_says_so_and_starts_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at = lab(rows=10_000, trees=500, seed=5)
    at = next(b for b in at.button if b.label == "Run").click().run()
    (job,) = jobs().active()
    assert job.title == "Simulating Gaussian XOR"
    jobs().cancel(job.id)
    jobs().wait(job.id, 60)
    at = healthy(at.run())
    assert any("Stopped before it ended" in info.value for info in at.info)
    at = next(b for b in at.button if b.label == "Start again").click().run()
    (job,) = jobs().active()
    jobs().cancel(job.id)
    jobs().wait(job.id, 60)


def test_a_damaged_result_is_reported_and_computed_again(texts: Texts) -> None:
    at = finish(lab(rows=100, trees=1, seed=3))
    (stored,) = {Path(job.folder) for job in [jobs().last_ended([""])] if job and job.folder}
    record = stored / "record.json"
    record.write_bytes(b"x" * len(record.read_bytes()))  # of another length it counts as gone
    KEPT.clear()
    at = at.run()
    texts([plain(at.error[0].value)])
    at = next(b for b in at.button if b.label == "Compute again").click().run()
    for job in jobs().active():
        jobs().wait(job.id, 120)
    assert healthy(at.run()).header


def test_over_training_sizes(done: AppTest, texts: Texts) -> None:
    done.select_slider(key="lab_classification_most").set_value(316).run()
    done.select_slider(key="lab_repetitions").set_value(3).run()
    at = finish(done, "Run all sizes")
    section = at.tabs[-1]
    texts([each.value for each in (*section.markdown, *section.caption)])
    assert "316 rows" in " ".join(each.value for each in at.markdown)
    sizes = specs(at)[-1]
    assert list(sizes["layout"]["xaxis"]["ticktext"]) == ["100", "316"]
    names = {trace["name"] for trace in sizes["data"] if trace.get("showlegend")}
    assert len(names) == 7


def numbers(**chosen: Any) -> AppTest:
    """The page with a simulated regression."""
    at = launch("simulation_lab")
    at = at.segmented_control(key="lab_task").set_value("regression").run()
    for key, value in chosen.items():
        at = at.segmented_control(key=f"lab_{key}").set_value(value).run()
    return healthy(at.select_slider(key="lab_regression_rows").set_value(1000).run())


@pytest.mark.parametrize(
    ("chosen", "charts"),
    [
        pytest.param({}, ["true means", "missed outcomes", "measures"], id="one input"),
        pytest.param(
            {"regression": "rosenbrock_gamma", "regressor": "forest"},
            ["true means", "surfaces", "missed outcomes", "measures"],
            id="two inputs",
        ),
    ],
)
def test_a_simulated_regression_shows_the_truth_beside_what_is_stated(
    chosen: dict[str, Any], charts: list[str], texts: Texts
) -> None:
    at = numbers(**chosen)
    assert [button.label for button in at.button] == ["Run"]
    at = finish(at)
    assert "the mean squared error against the true mean" in at.header[0].value.lower()
    assert folded(at)
    assert len(at.metric) == 4
    assert len(at.get("plotly_chart")) == len(charts)
    assert at.dataframe[0].value["Method"].tolist()[-1] == "Truth"
    texts(at)


def test_a_simulated_regression_over_sizes() -> None:
    at = finish(numbers())
    at = at.select_slider(key="lab_regression_most").set_value(3000).run()
    at = at.select_slider(key="lab_repetitions").set_value(3).run()
    at = finish(at, "Run all sizes")
    boxes = specs(at)[-1]["data"]
    assert {box["type"] for box in boxes} == {"box"}
    assert {box["name"] for box in boxes} >= {"Model", "Local, k = 100"}


def test_images_that_shift(texts: Texts) -> None:
    at = launch("simulation_lab")
    at = at.segmented_control(key="lab_task").set_value("images").run()
    at = at.select_slider(key="lab_images").set_value(200).run()
    at = healthy(at.select_slider(key="lab_pixels").set_value(14).run())
    texts(at)
    texts([SHIFTED, PICTURES, INSIDE], "how to read it")
    at = finish(at)
    assert folded(at)
    assert len(at.metric) == 4
    assert at.header[0].value.startswith("At intensity 254 the network says ")
    assert len(at.get("plotly_chart")) == 7  # preview, curves, four lines of images, measures
    assert len(at.dataframe[0].value) == 7
    moved = healthy(at.segmented_control(key="lab_shift").set_value("ellipse").run())
    assert moved.header[0].value.startswith("At a half axis of 40 the network says ")
    assert not jobs().active()
