"""Every page with a review and without: one heading of the first level, and its words."""

from __future__ import annotations

from pathlib import Path

import pytest
from app_pages import launch
from made_reviews import line, review_of
from texts.snapshot import Texts

from app.shared.session import PLACES
from kdcal_core.review import Workspace, start_sample

pytestmark = pytest.mark.usefixtures("work_here", "workspace")


@pytest.fixture(scope="module")
def reviews(workspace: Workspace) -> dict[str, str | None]:
    return {
        "classification": start_sample(workspace, "xor_network").id,
        "regression": review_of(workspace, calibration=line(200, 0), evaluation=line(200, 1)),
        "none": None,
    }


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("task", ["classification", "regression", "none"])
def test_a_page_has_one_title(
    reviews: dict[str, str | None], name: str, task: str, texts: Texts
) -> None:
    at = launch(Path(PLACES[name].path).stem, reviews[task])
    assert not at.exception, at.exception[0].message
    assert [title.value for title in at.title] == [PLACES[name].title]
    # the words of Help are the guides, and the map of a model is still being computed
    if name != "help" and (name, task) != ("map", "classification"):
        texts(at)
