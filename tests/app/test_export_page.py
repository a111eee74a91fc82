"""The page Choose and export: its states, its files, and the very lines of code that it shows."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from app_pages import healthy, launch, plain, settle, specs, visit, words
from sklearn.linear_model import LogisticRegression
from streamlit.testing.v1 import AppTest
from texts.snapshot import Texts

from app.export.export_text import file_name
from kdcal_core import load_calibrator
from kdcal_core.calibration import CALIBRATORS
from kdcal_core.cli.main import main
from kdcal_core.evaluation import MEASURES
from kdcal_core.jobs import jobs
from kdcal_core.review import (
    ReviewReader,
    Workspace,
    add_model,
    add_table,
    create_review,
    read_review,
    review_data,
    score,
    set_question,
    start_sample,
)
from kdcal_core.store import load
from kdcal_core.tasks import ComparisonRun, ComparisonSettings, compare_calibrators
from kdcal_core.tasks.export import ExportRun, ExportSettings, export_calibrator

PAGE = "export"
HOSTILE = "z <b>*x*</b>"
pytestmark = pytest.mark.usefixtures("work_here", "workspace")


def table(n: int, seed: int) -> pd.DataFrame:
    """The model below is too sure of itself in one of the shops."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    shop = rng.choice(["north", "south"], n)
    chance = 1 / (1 + np.exp(-np.where(shop == "north", 3 * x, 0.5 * x - 1)))
    words = np.where(rng.random(n) < chance, HOSTILE, "no")
    return pd.DataFrame({"x": x, HOSTILE: rng.normal(size=n), "shop": shop, "answer": words})


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = table(500, 0)
    path = tmp_path_factory.mktemp("model") / "my model.skops"
    skops.io.dump(LogisticRegression(C=100).fit(rows[["x", HOSTILE]] * 4, rows["answer"]), path)
    return path


@pytest.fixture(scope="module")
def review(workspace: Workspace, model: Path) -> str:
    review_id = create_review(workspace).id
    add_model(workspace, review_id, model, model.name)
    for which, seed in (("calibration", 1), ("evaluation", 2)):
        content = io.BytesIO(table(600, seed).to_csv(index=False).encode())
        add_table(workspace, review_id, which, content, f"{which}.csv")
    return score(workspace, review_id).id


@pytest.fixture(scope="module")
def predictions(workspace: Workspace) -> str:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, 300)
    y = (rng.random(300) < p).astype(int)
    frame = pd.DataFrame({"proba_0": 1 - p, "proba_1": p, "y": y})
    review_id = create_review(workspace).id
    add_table(
        workspace, review_id, "calibration", io.BytesIO(frame.to_csv(index=False).encode()), "p.csv"
    )
    return score(workspace, review_id).id


def fitted(at: AppTest) -> AppTest:
    for button in [one for one in at.button if one.label.startswith("Fit, judge")]:
        settle(button.click().run())
    return healthy(at)


def run_of(workspace: Workspace, review: str, settings: ExportSettings) -> ExportRun:
    settings = dataclasses.replace(settings, event=read_review(workspace, review).event)
    job = jobs().find(export_calibrator.request(workspace, review, settings).key)
    assert job is not None
    return load(job.folder, ExportRun)


@pytest.fixture
def page(review: str) -> AppTest:
    return fitted(launch(PAGE, review))


def test_without_a_review_the_page_offers_a_sample() -> None:
    at = healthy(launch(PAGE))
    assert any(button.label == "Open a sample" for button in at.button)


def test_before_a_fit_there_is_one_button_and_what_it_will_show(review: str, texts: Texts) -> None:
    at = healthy(launch(PAGE, review, calibrator="cum"))
    assert at.selectbox[0].value == "cum"
    assert CALIBRATORS["cum"].description in words(at)
    texts(at)
    assert not at.get("plotly_chart")
    assert [one.label for one in at.button if one.label.startswith("Fit")]


def test_a_fit_shows_the_gain_the_diagrams_the_map_and_the_files(
    page: AppTest, texts: Texts
) -> None:
    texts(page)
    assert "600 rows" in words(page)
    shown = [plain(one.label) for one in page.metric]
    titles = [MEASURES[key].title for key in ("log_loss", "ece_debiased", "auc", "accuracy")]
    assert shown == [one.partition(" (")[0] for one in titles]  # a tile's help has the rest
    assert len(page.get("plotly_chart")) == 3
    labels = [one.proto.label for one in page.get("download_button")]
    assert any(one.startswith("Calibrator file (") for one in labels)
    assert not any("ONNX" in one for one in labels)
    assert "no ONNX file" in words(page)
    card = page.table[-1].value.set_index("")["Value"]
    assert plain(card["Model"]).startswith("my model.skops")
    assert "before" in card["Log loss"]
    assert card["Seed"] == "0"


def test_groups_begin_with_the_calibrator_that_was_chosen(
    workspace: Workspace, review: str, page: AppTest
) -> None:
    label = "See what it does to each declared group"
    assert not [one for one in page.button if one.label == label]
    asked = read_review(workspace, review).question
    set_question(workspace, review, dataclasses.replace(asked, groups=("shop",)))
    try:
        for chosen in ("beta", "recommended"):  # the second one is none of the quick ones
            at = fitted(launch(PAGE, review, calibrator=chosen))
            next(one for one in at.button if one.label == label).click().run()
            assert healthy(at).title[0].value == "Groups"
            assert at.selectbox[0].value == chosen
    finally:
        set_question(workspace, review, asked)


def test_hostile_class_and_column_names_stay_text(review: str, texts: Texts) -> None:
    at = launch(PAGE, review, calibrator="heterogeneous_tree")
    column = next(one for one in at.selectbox if one.label == "Regions of")
    assert any(HOSTILE in one for one in column.options)
    shop = next(one for one in column.options if "shop" in one)
    assert fitted(column.set_value(("column", "shop")).run())
    assert shop == "Column shop"
    texts(at)
    assert "<b>" not in json.dumps(specs(at)[-1]["layout"])
    assert "Region 1" in json.dumps(specs(at)[-1])
    regions = at.dataframe[0].value
    assert regions["Rows"].sum() == 600


@pytest.mark.parametrize("key", ["platt", "heterogeneous_tree"])
def test_the_python_shown_runs_as_it_stands(
    workspace: Workspace,
    review: str,
    model: Path,
    key: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at = fitted(launch(PAGE, review, calibrator=key))
    run = run_of(workspace, review, ExportSettings(key))
    python, command = (one.value for one in at.get("code"))
    name = shlex.split(command)[3]
    (tmp_path / name).write_bytes(run.calibrator_file.read_bytes())
    (tmp_path / model.name).write_bytes(model.read_bytes())
    monkeypatch.chdir(tmp_path)
    data = review_data(ReviewReader(workspace, review))
    space = {"X": data.inputs["evaluation"]}
    exec(python, space)
    expected = load_calibrator(run.calibrator_file, any_model=True).predict_proba(
        data.evaluation.proba, data.inputs["evaluation"]
    )
    assert np.allclose(space["scored"].proba, expected, rtol=0, atol=1e-6)

    table(600, 2).drop(columns="answer").to_csv("new_rows.csv", index=False)
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(shlex.split(command)[1:]) == 0
    scored = pd.read_csv("scored.csv")
    classes = workspace.read(review).classes
    assert np.allclose(scored[[f"proba_{one}" for one in classes]], expected)


def test_predictions_without_a_model_have_lines_of_their_own(
    workspace: Workspace,
    predictions: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    texts: Texts,
) -> None:
    at = fitted(launch(PAGE, predictions))
    texts(at)  # no calibrator is needed: it was right already
    assert "5 folds" in words(at)
    run = run_of(workspace, predictions, ExportSettings("recommended"))
    python, command = (one.value for one in at.get("code"))
    monkeypatch.chdir(tmp_path)
    Path(shlex.split(command)[3]).write_bytes(run.calibrator_file.read_bytes())
    rows = review_data(ReviewReader(workspace, predictions)).calibration
    space = {"proba": rows.proba}
    exec(python, space)
    frame = pd.DataFrame(rows.proba, columns=["proba_0", "proba_1"])
    frame.to_csv("new_predictions.csv", index=False)
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(shlex.split(command)[1:]) == 0
    assert np.allclose(pd.read_csv("scored.csv")[["proba_0", "proba_1"]], space["calibrated"])


def test_a_finished_comparison_preselects_its_best(
    workspace: Workspace, review: str, texts: Texts
) -> None:
    asked = compare_calibrators.request(
        workspace, review, ComparisonSettings(("sts", "confidence"))
    )
    done = jobs().submit(asked.target, asked.kwargs, key=asked.key, title="", owner=review)
    job = jobs().wait(done, 120)
    found = load(job.folder, ComparisonRun).comparison
    best = found.smallest_of_best("log_loss")
    assert best != "uncalibrated"
    at = launch("load", review)
    at.session_state["compare_last"] = {review: asked.key}
    healthy(visit(at, PAGE))
    assert at.selectbox[0].value == best
    texts(at, "before the fit")
    fitted(at)
    texts(at, "fitted")
    assert "among 2 calibrators" in words(at)
    at.selectbox[0].set_value("cum").run()  # which no other test fits
    texts(healthy(at), "another calibrator")


def test_other_settings_of_a_tree_are_another_fit(review: str) -> None:
    at = fitted(launch(PAGE, review, calibrator="heterogeneous_tree"))
    assert not [one for one in at.button if one.label.startswith("Fit")]
    next(one for one in at.number_input if one.label == "Depth").set_value(1).run()
    assert [one for one in at.button if one.label.startswith("Fit")]
    assert not at.get("plotly_chart")


def test_a_tree_may_be_cut_back_and_several_columns_divide_the_rows(
    review: str, texts: Texts
) -> None:
    at = launch(PAGE, review, calibrator="heterogeneous_tree")
    at.toggle[0].set_value(True)
    fitted(at.run())
    card = at.table[-1].value.set_index("")["Value"]
    assert "prune = cv" in plain(card["Settings"])
    of = next(one for one in at.selectbox if one.label == "Regions of")
    healthy(of.set_value(("several", "")).run())
    texts(at, "no column yet")
    assert not at.toggle
    assert all(one.disabled for one in at.number_input)
    fitted(at.pills[0].set_value(["shop", "x"]).run())
    assert "combination of shop, x" in words(at)


def test_a_network_offers_its_hidden_layers_and_what_is_shown_runs(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    review = start_sample(workspace, "xor_network")
    layer = review.model.layers[0]
    at = launch(PAGE, review.id, calibrator="heterogeneous_forest")
    of = next(one for one in at.selectbox if one.label == "Regions of")
    assert of.options == ["The inputs", *(f"Layer {name}" for name in review.model.layers)]
    next(one for one in at.number_input if one.label == "Depth").set_value(2)
    fitted(of.set_value(("layer", layer)).run())
    assert f"on the layer {layer}" in words(at)
    assert any("ONNX" in one.proto.label for one in at.get("download_button"))
    settings = ExportSettings("heterogeneous_forest", max_depth=2, layer=layer)
    run = run_of(workspace, review.id, settings)
    python, command = (one.value for one in at.get("code"))
    monkeypatch.chdir(tmp_path)
    Path(shlex.split(command)[3]).write_bytes(run.calibrator_file.read_bytes())
    model = workspace.folder(review.id) / review.model_file
    Path(run.card.model.name).write_bytes(model.read_bytes())
    data = review_data(ReviewReader(workspace, review.id), with_model=True)
    space = {"X": data.inputs["evaluation"]}
    exec(python, space)
    loaded = load_calibrator(run.calibrator_file, model=data.model, any_model=True)
    expected = loaded.predict_proba(data.evaluation.proba, data.inputs["evaluation"])
    assert np.allclose(space["scored"].proba, expected, rtol=0, atol=1e-6)


def test_slow_maps_in_many_regions_are_announced(review: str) -> None:
    at = launch(PAGE, review, calibrator="heterogeneous_forest")
    assert not any(one.label == "Regions of" for one in at.selectbox)  # there is nothing to choose
    assert "10 trees" not in words(at)
    next(one for one in at.selectbox if one.label == "In each region").set_value("kde").run()
    assert "10 trees" in words(healthy(at))
    assert "100" in words(at).replace("10 trees", "")


def test_a_file_is_called_by_whole_words(workspace: Workspace, review: str) -> None:
    found = workspace.read(review)
    long = dataclasses.replace(found, title="The random forest that trusts itself too much by far")
    assert (
        file_name(long, "platt", ".kdcal") == "the-random-forest-that-trusts-itself-too-platt.kdcal"
    )
    one_word = dataclasses.replace(found, title="a" * 90)
    assert file_name(one_word, "platt", ".kdcal") == f"{'a' * 40}-platt.kdcal"


def test_a_tried_file_shows_its_card_and_what_it_does(
    workspace: Workspace, review: str, page: AppTest, texts: Texts
) -> None:
    run = run_of(workspace, review, ExportSettings("recommended"))
    page.file_uploader[0].upload("mine.kdcal", run.calibrator_file.read_bytes())
    settle(page.run())
    healthy(page)
    texts(page)
    assert len(page.get("plotly_chart")) == 5
    assert page.file_uploader[0].value is None  # its bytes do not stay in memory


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b"<b>text</b>"])
def test_what_is_no_calibrator_file_is_one_clear_error(review: str, content: bytes) -> None:
    at = launch(PAGE, review)
    at.file_uploader[0].upload("mine.kdcal", content)
    settle(at.run())
    assert not at.exception
    assert len(at.error) == 1
    assert "mine.kdcal" in words(at)


def test_a_file_for_another_model_is_refused_and_the_page_goes_on(
    workspace: Workspace, review: str, tmp_path: Path, model: Path
) -> None:
    other = create_review(workspace).id
    rows = table(300, 5)
    path = tmp_path / "other.skops"
    skops.io.dump(LogisticRegression().fit(rows[["x"]], rows["answer"]), path)
    add_model(workspace, other, path, "other.skops")
    content = io.BytesIO(rows.to_csv(index=False).encode())
    add_table(workspace, other, "calibration", content, "rows.csv")
    score(workspace, other)
    fitted(launch(PAGE, review))
    run = run_of(workspace, review, ExportSettings("recommended"))
    at = launch(PAGE, other)
    at.file_uploader[0].upload("mine.kdcal", run.calibrator_file.read_bytes())
    settle(at.run())
    assert "belongs to the model" in words(at)
    assert not [one for one in at.button if one.label == "Start again"]  # it would be refused again
    assert [one for one in at.button if one.label.startswith("Fit")]


def test_the_dark_theme_draws_with_its_own_colours(page: AppTest, review: str) -> None:
    dark = healthy(launch(PAGE, review, dark=True))
    for one, other in zip(specs(page), specs(dark), strict=True):
        assert one["layout"]["font"] != other["layout"]["font"]
