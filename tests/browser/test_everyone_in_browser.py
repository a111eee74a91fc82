"""Every page for everyone: axe-core finds nothing that the app causes, in both themes.

On the first page several reviews are kept, some of one name, and no button is named as another.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from made_reviews import line, review_of, too_sure

from app.shared.navigation import places
from kdcal_core.review import Workspace, rename_review, start_sample

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def reviews(home: Path) -> dict[str, str]:
    workspace = Workspace(home)
    for title in ("March <b>audit</b>", "March <b>audit</b>", "log_income.csv"):
        rename_review(workspace, review_of(workspace, calibration=too_sure(100, 2)), title)
    start_sample(workspace, "digits_predictions")  # the gallery has a button of that title too
    return {
        "classification": review_of(
            workspace, calibration=too_sure(300, 0), evaluation=too_sure(300, 1)
        ),
        "regression": review_of(workspace, calibration=line(300, 0), evaluation=line(300, 1)),
    }


def test_axe_finds_nothing_on_any_page(app, reviews: dict[str, str]) -> None:
    faults: dict[str, object] = {}
    opened = None
    for name, place in sorted(places().items(), key=lambda one: one[1].tasks[0]):
        if opened == place.tasks[0]:
            app.visit(place.title)
        else:
            opened = place.tasks[0]
            app.open(f"{name}?review={reviews[opened]}")
        app.page.locator("h1").get_by_text(place.title, exact=True).wait_for(timeout=60_000)
        app.idle(120)
        if found := app.faults_in_both():
            faults[name] = found
        assert app.page.title() == f"{place.title} - kdcal"
    app.open()
    app.page.locator("h2").get_by_text("Reviews on this machine").wait_for(timeout=60_000)
    app.idle()
    app.page.get_by_role("button", name="Change March b audit b 2", exact=True).click()
    app.page.get_by_role("dialog").get_by_label("Title").wait_for()
    if found := app.faults():
        faults["reviews on this machine"] = found
    app.open(f"overview?review={reviews['classification']}")
    for scheme in app.both_schemes():
        app.page.get_by_role("button", name="Limits: all at their defaults").click(timeout=60_000)
        app.page.get_by_role("dialog").get_by_role("button", name="Save the limits").wait_for()
        app.idle(120)
        if found := app.faults():
            faults[f"limits, {scheme}"] = found
        app.page.keyboard.press("Escape")
    assert not faults
    app.assert_healthy()
