"""The Watch page: empty, a made table, uploaded ones with and without labels, and refused ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from app_pages import healthy, launch, settle, specs, words
from made_reviews import HOSTILE_CLASS, review_of
from streamlit.testing.v1 import AppTest
from texts.pages import visible as plain

from kdcal_core.audit import (
    BEYOND_FORECASTS,
    BEYOND_SCORES,
    UNLIKE,
    AuditConfig,
    AuditDrafted,
    AuditSubmitted,
    Record,
    run_gate,
    system_user,
)
from kdcal_core.review import DIVIDED, Limit, NamedFiles, Workspace, read_review, start_sample
from kdcal_core.review.changes import change_review

PAGE = "watch"
SAMPLES = Path(__file__).parents[2] / "sample_data"
pytestmark = pytest.mark.usefixtures("work_here", "workspace")
HOSTILE_FILE = "new <b>*x*</b>.csv"


def rows(n: int, seed: int, sharpness: float = 1.0) -> pd.DataFrame:
    """Predictions whose log odds are too large by a factor, and outcomes."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(0.0, 1.5, n)
    happened = rng.random(n) < 1.0 / (1.0 + np.exp(-odds))
    stated = 1.0 / (1.0 + np.exp(-sharpness * odds))
    return pd.DataFrame(
        {
            HOSTILE_CLASS: 1.0 - stated,
            "yes": stated,
            "target": np.where(happened, "yes", HOSTILE_CLASS),
        }
    )


@pytest.fixture
def review_id(workspace: Workspace) -> str:
    """Calibrated predictions without a model, and one set."""
    return review_of(workspace, calibration=rows(1200, 0))


@pytest.fixture(scope="module")
def sample(workspace: Workspace) -> str:
    return start_sample(workspace, "breast_cancer").id


def given(at: AppTest, table: pd.DataFrame | bytes, name: str = HOSTILE_FILE) -> AppTest:
    """The page after the upload of a table."""
    content = table if isinstance(table, bytes) else table.to_csv(index=False).encode()
    (box,) = at.get("file_uploader")
    box.upload(name, content).run()
    return settle(at)


def finding(at: AppTest) -> str:
    return plain(at.header[0].value)


def tiles(at: AppTest) -> dict[str, str]:
    return {one.label: one.value for one in at.metric}


def test_the_audit_that_judged_the_rows_is_named(
    review_id: str, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from app.shared import reviews_here

    at = given(launch(PAGE, review_id), rows(300, 5))
    assert "reference rows: the calibration set." in words(at)  # whoever visits may not ask
    monkeypatch.setattr(reviews_here, "at_this_machine", lambda: True)
    assert "the calibration set; no audit in the record has judged it." in words(at.run())
    monkeypatch.setattr(reviews_here, "at_this_machine", lambda: False)
    record, judged = Record(), read_review(workspace, review_id).sets["calibration"].digest
    project = record.create("Credit *risk*", system_user())
    event = AuditDrafted("a1", "March", "0" * 64, "pass", "Passes.", "m", judged, 1200, {})
    record.write(project.id, event, system_user())
    record.write(project.id, replace(event, audit="a2", rows="others"), system_user())
    assert "reference rows: the calibration set." in words(at.run())
    monkeypatch.setattr(reviews_here, "at_this_machine", lambda: True)
    at = healthy(at.run())
    assert "the calibration set; no audit is chosen." in words(at)  # a draft is offered alone
    record.write(project.id, AuditSubmitted("a1"), system_user())
    at = healthy(settle(at.run()))
    said = plain(words(at))
    assert "the calibration set; no audit is chosen." in said  # what was chosen stays
    (audits,) = (one for one in at.selectbox if one.label == "Audit of the reference rows")
    assert len(audits.options) == 2
    at = healthy(settle(audits.set_value("a1").run()))
    said = plain(words(at))
    assert "the calibration set, judged by the audit 'March' of Credit *risk* of " in said
    assert " (submitted)." in said
    assert "The audit has no limit that can be held" in said  # its file is not there
    rows(1200, 0).to_csv(tmp_path / "same.csv", index=False)
    columns = ((HOSTILE_CLASS, HOSTILE_CLASS), ("yes", "yes"))
    files = NamedFiles(
        target="target", predictions=str(tmp_path / "same.csv"), outputs=columns, event="yes"
    )
    limits = {"KC101": Limit(low=0.99)}
    config = AuditConfig("April", files, project.name, limits=limits, codes=("KC101",))
    april = run_gate(config).audit
    at.run()
    (audits,) = (one for one in at.selectbox if one.label == "Audit of the reference rows")
    at = healthy(settle(audits.set_value(april).run()))
    assert finding(at).endswith("Beyond a limit of the audit: AUROC of the event.")
    held = next(one.value for one in at.dataframe if "Verdict" in one.value)
    assert list(held["Verdict"]) == ["fail"]


def button(at: AppTest, label: str) -> Callable[[], AppTest]:
    (found,) = (one for one in at.button if one.label == label)
    return lambda: found.click().run()


def test_without_a_review_a_sample_is_offered() -> None:
    at = healthy(launch(PAGE))
    assert at.title[0].value == "Watch"
    assert [one.label for one in at.button] == ["Open a sample"]
    assert "when to recalibrate" in words(at)


def test_the_forecasts_of_a_regression_are_watched(workspace: Workspace) -> None:
    made = start_sample(workspace, "diamonds_quantiles").id
    at = healthy(launch(PAGE, made))
    assert "The column of the outcome may be missing" in words(at)
    at = healthy(settle(button(at, "Watch a made table")()))
    assert finding(at).startswith(("Recalibrate: the labels", "The predicted medians have moved"))
    found = tiles(at)
    assert list(found)[2:] == [BEYOND_FORECASTS, "PIT minus one half"]
    assert [tab.label for tab in at.tabs] == [
        "Without labels", "Labels that arrive late", "Forecasts", "Unknown rows",
    ]  # fmt: skip
    assert len(specs(at)) == 5 + 6  # picture, e-value, gap and frozen bins; panels of measures
    assert "Outcomes miss their forecasts by the same factor" in words(at)
    assert "All forecasts are as loaded, without a recalibrator." in words(at)
    assert not [one for one in at.selectbox if one.label.endswith("version in its place")]
    new = pd.read_parquet(SAMPLES / "diamonds_quantiles" / "evaluation.parquet")
    at = healthy(given(at, new.sample(800, random_state=0).drop(columns="price"), "new.csv"))
    assert finding(at).startswith("Nothing beyond chance has changed in 800 new rows: PSI")
    assert list(tiles(at))[:2] == ["Expected CRPS", "PSI of predicted medians"]
    assert "its column of the outcome" in words(at)
    measures = next(one.value for one in at.dataframe if "Measure" in one.value)
    assert list(measures["New, without labels"][2:]) == ["not given"] * 4
    assert "Coverage and PIT distance only labels show" in words(at)
    assert len(specs(at)) == 3 + 2  # measures of the reference rows alone are left out


def test_a_made_table_shows_a_shift_and_says_what_it_is(sample: str) -> None:
    at = healthy(launch(PAGE, sample))
    assert not specs(at)
    assert "made of the evaluation set" in words(at)
    at = healthy(settle(button(at, "Watch a made table")()))
    assert finding(at).startswith("The scores have moved beyond chance: PSI")
    assert list(tiles(at)) == ["Estimated accuracy", "PSI", BEYOND_SCORES, "Stated minus seen"]
    assert "The new rows are made of the evaluation set" in words(at)
    bars, steps = specs(at)[0]["data"][:2]
    assert (bars["type"], steps["type"]) == ("bar", "scatter")
    assert [tab.label for tab in at.tabs] == [
        "Without labels", "Labels that arrive late", "Scores", "Class shares", "Unknown rows",
    ]  # fmt: skip
    assert not at.get("download_button")[-1].label.startswith("State")  # of real tables only
    shares = words(at.tabs[3])
    assert "Rate of malignant in the new rows" in shares
    assert "covariate shift" in shares
    assert "label shift" in shares
    assert "the mean of their probabilities is 33%" in shares


def test_a_table_without_labels_of_predictions_alone(workspace: Workspace, review_id: str) -> None:
    at = healthy(launch(PAGE, review_id))
    assert not [one for one in at.button if one.label == "Watch a made table"]  # no further set
    at = healthy(given(at, rows(900, 1).drop(columns="target")))
    assert finding(at).startswith("Nothing beyond chance has changed in 900 new rows: PSI")
    assert list(tiles(at)) == ["Estimated accuracy", "PSI", BEYOND_SCORES, "Event rate"]
    assert "has no labels yet" in words(at)
    assert "without labels; reference" in words(at)
    assert "Rows with the same score have the same chance" in words(at)
    assert "<b>" not in json.dumps([one["layout"] for one in specs(at)])
    assert list(read_review(workspace, review_id).watched) == [HOSTILE_FILE]
    shares = next(one.value for one in at.dataframe if "Change" in one.value)
    assert list(shares["Class"]) == [HOSTILE_CLASS, "yes"]


def test_late_labels_say_when_to_recalibrate(review_id: str) -> None:
    at = given(launch(PAGE, review_id), rows(1500, 2, sharpness=2.5))
    at = healthy(at)
    assert finding(at).startswith("Recalibrate: the labels contradict the stated")
    assert "Accuracy" in tiles(at)  # from labels, because every row has one
    assert "choose a calibrator on recent labelled rows" in words(at)
    (path,) = (one for one in specs(at) if one["data"][0].get("name") == "e-value")
    line, cross = path["data"]
    assert len(line["x"]) > 100
    assert cross["name"] == "signal"
    assert any(one.label == "State for the command line" for one in at.get("download_button"))


def test_the_next_table_continues_the_test_or_begins_anew(
    workspace: Workspace, review_id: str
) -> None:
    whole = rows(800, 3)
    at = given(launch(PAGE, review_id), whole[:500], "october.csv")
    at = healthy(given(at, whole[500:], "november.csv"))
    assert "1 table came before" in words(at)
    review = read_review(workspace, review_id)
    assert list(review.watched) == ["october.csv", "november.csv"]
    assert "in 800 labelled rows" in words(at)
    at.toggle[0].set_value(False).run()
    at = healthy(settle(at))
    assert "in 300 labelled rows" in words(at)
    (first, _) = (one for one in at.button if one.label.startswith("Remove "))
    at = healthy(settle(first.click().run()))
    assert list(read_review(workspace, review_id).watched) == ["november.csv"]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (rows(60, 4)[["yes", "target"]], "lacks a column of the predictions"),
        (b"yes,target\n", "rows"),
        (rows(60, 4).assign(yes=1.5), "rows do not sum to one"),
        (rows(60, 4).assign(target="maybe"), "maybe"),
    ],
    ids=["columns", "empty", "no probabilities", "unknown label"],
)
def test_a_refused_table_is_one_clear_error(
    workspace: Workspace, review_id: str, table: pd.DataFrame | bytes, said: str
) -> None:
    at = given(launch(PAGE, review_id), table, "bad.csv")
    assert not at.exception
    (error,) = (plain(one.value) for one in at.error)
    assert "bad.csv" in error
    assert said in error
    assert at.get("file_uploader")
    at = healthy(given(at, rows(400, 5), "good.csv"))  # and the next one is taken
    assert finding(at).startswith("Nothing beyond chance")
    if read_review(workspace, review_id).watched.get("bad.csv"):
        assert "bad.csv before this one is not counted" in words(at)


def test_few_rows_say_what_cannot_be_computed(review_id: str) -> None:
    at = healthy(given(launch(PAGE, review_id), rows(20, 6)))
    assert "shares cannot be estimated" in words(at)


def test_a_review_of_three_classes_watches_the_confidence(workspace: Workspace) -> None:
    rng = np.random.default_rng(7)
    proba = rng.dirichlet(np.ones(3), 900)
    frame = pd.DataFrame(proba, columns=["a", "b", "c"])
    frame["target"] = [rng.choice(["a", "b", "c"], p=one) for one in proba]
    made = review_of(workspace, calibration=frame[:600])
    at = healthy(given(launch(PAGE, made), frame[600:].drop(columns="target")))
    assert list(tiles(at)) == ["Estimated accuracy", "PSI", BEYOND_SCORES, "ECE"]


def test_a_calibrated_version_is_watched_in_place_of_the_model(workspace: Workspace) -> None:
    """Over-confident predictions signal; a calibrator of the review would not have."""
    made = review_of(workspace, calibration=rows(1200, 8, 2.5), evaluation=rows(1200, 9, 2.5))
    at = healthy(given(launch(PAGE, made), rows(1200, 10, 2.5)))
    assert finding(at).startswith("Recalibrate")
    assert "it has signalled: log odds too extreme or too small" in words(at)
    versions = next(one for one in at.selectbox if one.label.endswith("version in its place"))
    assert versions.options == ["Model only", "STS", "Platt", "Beta", "Isotonic", "SVS"]
    at = healthy(settle(versions.set_value("platt").run()))
    assert finding(at).startswith("Nothing beyond chance has changed")
    assert "All scores are those of Platt" in words(at)
    assert "No signal in 1,200 labelled rows" in words(at)
    assert not [one for one in at.get("download_button") if one.label.startswith("State for")]
    assert "the calibrator was chosen here and has no file" in words(at)


def test_unknown_rows_are_judged_by_all_features_once_there_is_a_fit(workspace: Workspace) -> None:
    made = start_sample(workspace, "xor_network").id
    far = pd.DataFrame({"x1": np.linspace(40, 60, 50), "x2": np.linspace(-60, -40, 50)})
    at = healthy(given(launch(PAGE, made), far, "far.csv"))
    assert "Here you will see how many of the new rows lie" in words(at)
    (fit,) = (one for one in at.button if one.label == "Fit the kernel density version")
    at = healthy(settle(fit.click().run()))
    assert any(
        plain(one.value).startswith("More new rows than reference rows") for one in at.subheader
    )
    table = next(one.value for one in at.dataframe if "Share of unknown rows" in one.value)
    assert table["Value"][0].startswith("100%")


def test_covariate_shift_is_corrected_by_features_also_for_a_calibrator(
    workspace: Workspace,
) -> None:
    made = start_sample(workspace, "breast_cancer").id
    new = pd.read_parquet(SAMPLES / "breast_cancer" / "calibration.parquet")
    at = healthy(given(launch(PAGE, made), new.drop(columns="diagnosis"), "new.csv"))
    assert BEYOND_SCORES in tiles(at)
    assert "Weighted by scores to resemble the new rows" in words(at)
    switch = next(one for one in at.toggle if one.label.startswith("Correct for covariate"))
    assert not switch.disabled
    at = healthy(settle(switch.set_value(True).run()))
    model = tiles(at)
    assert UNLIKE in model
    assert "by all features" in words(at)
    assert "Weighted by features to resemble the new rows" in words(at)
    assert "Rows with the same inputs have the same chance" in words(at)
    versions = next(one for one in at.selectbox if one.label.endswith("version in its place"))
    at = healthy(settle(versions.set_value("platt").run()))
    assert "All scores are those of Platt" in words(at)
    assert "Weighted by features to resemble the new rows" in words(at)
    platt = tiles(at)
    assert platt[UNLIKE] == model[UNLIKE]  # weights are of rows
    assert {*platt} == {*model}


def test_without_features_the_switch_is_off_and_says_why(
    workspace: Workspace, review_id: str
) -> None:
    at = healthy(given(launch(PAGE, review_id), rows(300, 13)))
    switch = next(one for one in at.toggle if one.label.startswith("Correct for covariate"))
    assert switch.disabled
    assert "because no column describes the rows of both tables" in words(at)


def test_no_state_is_offered_where_the_reference_rows_are_a_part_of_a_file(
    workspace: Workspace,
) -> None:
    made = review_of(workspace, calibration=rows(300, 11))
    note = f"{DIVIDED} Its 30 training rows are not used to calibrate."
    change_review(workspace, made, lambda review: replace(review, notes=(*review.notes, note)))
    at = healthy(given(launch(PAGE, made), rows(200, 12)))
    assert not [one for one in at.get("download_button") if one.label.startswith("State for")]
    assert "the reference rows are a part of a file" in words(at)
