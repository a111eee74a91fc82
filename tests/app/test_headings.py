"""One heading of the first level a page, with a review and without."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app.shared.session import PLACES
from kdcal_core.review import Workspace, start_sample

ENTRY = str(Path(__file__).parents[2] / "app" / "streamlit_app.py")
pytestmark = pytest.mark.usefixtures("work_here", "workspace")


@pytest.fixture(scope="module")
def reviews(workspace: Workspace) -> dict[str, str]:
    names = {"classification": "adult", "regression": "diamonds", "none": ""}
    return {task: start_sample(workspace, name).id if name else "" for task, name in names.items()}


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("task", ["classification", "regression", "none"])
def test_a_page_has_one_title(reviews: dict[str, str], name: str, task: str) -> None:
    at = AppTest.from_file(ENTRY, default_timeout=120)
    if reviews[task]:
        at.query_params["review"] = reviews[task]
    at = at.run().switch_page(PLACES[name].path).run()
    assert not at.exception, at.exception[0].message
    assert [title.value for title in at.title] == [PLACES[name].title]
