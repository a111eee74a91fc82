"""Every page for everyone: axe-core finds nothing that the app causes, in both themes."""

from __future__ import annotations

from pathlib import Path

import axe_playwright_python
import pytest
from made_reviews import line, review_of, too_sure

from app.shared.navigation import places
from kdcal_core.review import Workspace

pytestmark = pytest.mark.browser

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")
# Streamlit's own markup, which the app cannot change
NOT_OURS = ("[data-testid='stSidebarNav']", "[data-testid='stFileUploaderDropzone']")
FAULTS = """async (left_out) => {
  const found = await axe.run({exclude: left_out.map(one => [one])}, {resultTypes: ["violations"]})
  const labels = [...document.querySelectorAll("[aria-label]")].map(one => one.ariaLabel)
  return found.violations.flatMap(
    rule => rule.nodes.map(node => `${rule.id}: ${node.html.slice(0, 200)}`)
  ).concat(labels.filter(label => /&#?\\w+;/.test(label)).map(label => `read aloud: ${label}`))
}"""


@pytest.fixture(scope="module")
def reviews(home: Path) -> dict[str, str]:
    workspace = Workspace(home)
    return {
        "classification": review_of(
            workspace, calibration=too_sure(300, 0), evaluation=too_sure(300, 1)
        ),
        "regression": review_of(workspace, calibration=line(300, 0), evaluation=line(300, 1)),
    }


def test_axe_finds_nothing_on_any_page(app, reviews: dict[str, str]) -> None:
    faults: dict[str, list[str]] = {}
    opened = None
    for name, place in sorted(places().items(), key=lambda one: one[1].tasks[0]):
        app.page.emulate_media(color_scheme="light", reduced_motion="reduce")
        if opened == place.tasks[0]:
            app.visit(place.title)
        else:
            opened = place.tasks[0]
            app.open(f"{name}?review={reviews[opened]}")
            app.page.add_script_tag(path=AXE)
        app.page.locator("h1").get_by_text(place.title, exact=True).wait_for(timeout=60_000)
        app.idle(120)
        for scheme in ("light", "dark"):
            if scheme == "dark":
                app.turn("dark")
            if found := app.page.evaluate(FAULTS, list(NOT_OURS)):
                faults[f"{name}, {scheme}"] = found
        assert app.page.title() == f"{place.title} - kdcal"
    assert not faults
    app.assert_healthy()
