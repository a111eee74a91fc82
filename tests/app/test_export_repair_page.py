"""Choose and export for a regression: from the button to the file, and its very lines of code."""

from __future__ import annotations

import shlex

import pytest
from app_pages import healthy, launch, settle, words
from made_reviews import line, review_of
from streamlit.testing.v1 import AppTest
from texts.snapshot import Texts

from kdcal_core import load_recalibrator
from kdcal_core.distributions import Normal
from kdcal_core.jobs import jobs
from kdcal_core.regression import RECALIBRATORS
from kdcal_core.review import Workspace
from kdcal_core.tasks import RepairRun, RepairSettings, export_repair

PAGE = "export"
pytestmark = pytest.mark.usefixtures("work_here", "workspace")


@pytest.fixture(scope="module")
def both(workspace: Workspace) -> str:
    return review_of(workspace, calibration=line(300, 0), evaluation=line(200, 1))


def exported(at: AppTest) -> AppTest:
    (button,) = [one for one in at.button if one.label == "Fit, judge and write the file"]
    return healthy(settle(button.click().run()))


def run_of(workspace: Workspace, review: str, settings: RepairSettings) -> RepairRun:
    asked = export_repair.request(workspace, review, settings)
    (job,) = [one for one in jobs()._jobs.values() if one.key == asked.key]
    assert job.folder is not None
    return export_repair.read(job.folder)


def test_one_click_writes_a_file_that_the_shown_lines_apply(
    both: str, workspace: Workspace, texts: Texts, tmp_path, monkeypatch
) -> None:
    at = exported(healthy(launch(PAGE, both, calibrator="isotonic")))
    texts(at)
    run = run_of(workspace, both, RepairSettings("isotonic"))
    python, command = (code.value for code in at.code)
    name = shlex.split(command)[3]
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(run.file.read_bytes())
    new = line(50, 2)
    given = {"forecasts": Normal(new["mean"], new["std"]), "X": new}
    exec(python, given)
    expected = load_recalibrator(run.file).predict(given["forecasts"], new)
    assert given["found"].mean().tolist() == expected.mean().tolist()
    assert [one.label for one in at.metric] == ["CRPS", "Coverage 95%", "sMIS 95%", "RMSE"]


def test_the_repairs_that_a_file_can_hold_are_offered_and_neighbours_can_be_set(both: str) -> None:
    at = healthy(launch(PAGE, both, calibrator="local"))
    shown = at.selectbox[0].options
    assert len(shown) == sum(not one.comparison for one in RECALIBRATORS.values())
    assert not any("boosting" in one for one in shown)
    at.number_input[0].set_value(25).run()
    at = exported(at)
    assert "25 neighbours in the space" in words(at)
    assert "Share it as you would share the rows" in " ".join(one.value for one in at.markdown)


def test_what_recalibration_recommends_is_chosen_first(both: str) -> None:
    at = healthy(launch("recalibration", both))
    (button,) = [one for one in at.button if one.label == "Recalibrate"]
    settle(button.click().run())
    at = healthy(at.switch_page("../pages/export.py").run())
    assert "The page Recalibration recommends" in words(at)
    assert at.selectbox[0].value in {"isotonic", "global", "local", "where_needed"}
