"""Files gone, damaged or denied behind the app: one clear message, and every page stays up."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest
from app_pages import launch, settle, visit
from streamlit.testing.v1 import AppTest

from app.shared.kept import KEPT
from kdcal_core.review import Workspace, read_review, start_sample
from kdcal_core.text import escape_markdown

PAGES = ["reliability", "confidence_by_class", "out_of_distribution", "posterior_map"]
pytestmark = pytest.mark.usefixtures("work_here")


def words(at: AppTest, text: str) -> None:
    assert not at.exception, at.exception[0].message
    (error,) = at.error
    assert escape_markdown(text) in error.value


@pytest.mark.parametrize("page", ["load", *PAGES])
def test_a_home_that_cannot_be_used_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path / "file" / "home"))
    words(launch(page, "a" * 16), "could not read or write its files (Not a directory)")


def test_a_full_disk_is_reported_and_the_app_goes_on(
    app: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Workspace) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Workspace, "create", full)
        app.button(key="open_digits_predictions").click().run()
        words(app, "could not read or write its files (No space left on device)")
    app.button(key="open_digits_predictions").click().run()
    assert not app.exception
    assert not app.error


def test_damaged_rows_are_reported_on_every_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path))
    workspace = Workspace()
    review_id = start_sample(workspace, "digits_predictions").id
    info = read_review(workspace, review_id).sets["calibration"]
    path = workspace.folder(review_id) / info.folder / "proba.npy"
    whole = path.read_bytes()
    np.save(path, np.load(path)[:-1])
    at = launch("load", review_id)
    for page in PAGES:
        words(
            visit(at, page),
            f"The file {info.folder}/proba.npy of the review {review_id} is damaged",
        )
    path.write_bytes(whole)
    assert not at.run().error


def test_a_damaged_review_is_not_called_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path))
    review_id = Workspace().create()
    path = Workspace().folder(review_id) / "review.json"
    path.write_text('{"id": ')
    at = launch("load", review_id)
    words(at, f"The file review.json of the review {review_id} is damaged")
    assert not at.warning
    path.unlink()
    at = launch("load", review_id)
    assert "may have been deleted" in at.warning[0].value
    assert not at.error


def test_a_map_altered_behind_the_app_can_be_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path))
    review_id = start_sample(Workspace(), "xor_forest").id

    def settled(at: AppTest) -> AppTest:
        settle(at)
        assert not at.exception, at.exception[0].message
        return at

    at = settled(launch("posterior_map", review_id))
    assert not at.error
    path = next(tmp_path.glob("kdcal/jobs/results/*/files/*.npy"))
    content = bytearray(path.read_bytes())
    content[-8] ^= 3
    path.write_bytes(content)
    KEPT.clear()
    words(at.run(), "This result is no longer kept in full")
    (again,) = (button for button in at.button if button.label == "Compute again")
    assert not settled(again.click().run()).error
    assert at.get("plotly_chart")
