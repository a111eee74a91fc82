"""Every page with a review and without: one heading of the first level, and its words."""

from __future__ import annotations

import io

import pytest
from app_pages import launch, plain
from made_reviews import line, review_of, too_sure
from texts.snapshot import Texts

from app.shared.navigation import places
from kdcal_core.review import Workspace, add_table, create_review, open_doubts, start_sample

pytestmark = pytest.mark.usefixtures("work_here", "workspace")


@pytest.fixture(scope="module")
def reviews(workspace: Workspace) -> dict[str, str | None]:
    return {
        "classification": start_sample(workspace, "xor_network").id,
        "regression": review_of(workspace, calibration=line(200, 0), evaluation=line(200, 1)),
        "none": None,
    }


@pytest.mark.parametrize("name", places())
@pytest.mark.parametrize("task", ["classification", "regression", "none"])
def test_a_page_has_one_title(
    reviews: dict[str, str | None], name: str, task: str, unfolded: None, texts: Texts
) -> None:
    at = launch(name, reviews[task])
    assert not at.exception, at.exception[0].message
    assert [title.value for title in at.title] == [places()[name].title]
    # the words of Help are the guides, those of Overview the checks', and a map of a model is
    # still being computed
    if name not in ("help", "overview") and (name, task) != ("posterior_map", "classification"):
        texts(at)


@pytest.mark.parametrize("name", ["out_of_distribution", "posterior_map"])
def test_a_page_that_lacks_the_model_has_one_title(workspace: Workspace, name: str) -> None:
    at = launch(name, start_sample(workspace, "digits_predictions").id)
    assert not at.exception, at.exception[0].message
    assert [title.value for title in at.title] == [places()[name].title]


@pytest.fixture(scope="module")
def doubtful(workspace: Workspace) -> dict[str, str]:
    """A scored review whose predictions are in reverse, and one that waits for an answer."""
    rows = too_sure(400, 0)
    no, yes = rows.columns[1:3]
    waiting = create_review(workspace).id
    percent = rows.drop(columns=no).assign(yes=100 * rows["yes"]).rename(columns={yes: "p_yes"})
    content = io.BytesIO(percent.to_csv(index=False).encode())
    add_table(workspace, waiting, "calibration", content, "percent.csv")
    reverse = review_of(workspace, calibration=rows.rename(columns={no: yes, yes: no}))
    return {"scored": reverse, "not scored": waiting}


@pytest.mark.parametrize("name", places())
@pytest.mark.parametrize("state", ["scored", "not scored"])
def test_every_open_doubt_stands_on_every_page(
    workspace: Workspace, doubtful: dict[str, str], name: str, state: str
) -> None:
    doubts = open_doubts(workspace.read(doubtful[state]))
    assert doubts
    at = launch(name, doubtful[state])
    assert not at.exception, at.exception[0].message
    said = [plain(one.value) for one in at.warning]
    for doubt in doubts:
        assert sum(plain(doubt) in one for one in said) == 1, (doubt, said)
