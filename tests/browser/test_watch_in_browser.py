"""Watch in a real browser: two months one after the other, on a screen and on a phone."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_reviews import review_of, too_sure

from kdcal_core.review import Workspace

pytestmark = pytest.mark.browser

CHART = ".js-plotly-plot .main-svg"
FILE = '[data-testid="stFileUploader"] input[type=file]'
SIDEWAYS = """() => {
  const page = document.querySelector("[data-testid='stMain']")
  return page.scrollWidth - page.clientWidth
}"""


def test_two_months_are_watched_one_after_the_other(app, home: Path, tmp_path: Path) -> None:
    review = review_of(Workspace(home), calibration=too_sure(600, 0))
    first, second = tmp_path / "may <b>x.csv", tmp_path / "june.csv"
    too_sure(400, 1).to_csv(first, index=False)
    too_sure(300, 2).drop(columns="target").to_csv(second, index=False)
    app.open(f"watch?review={review}")
    app.page.get_by_text("It needs a new table").wait_for(timeout=60_000)
    app.idle()
    assert app.faults() == []
    app.page.locator(FILE).first.set_input_files(first)
    app.wait_for_text("Recalibrate: the labels contradict", 120)
    app.section("Labels that arrive late")
    app.page.locator(CHART).nth(2).wait_for(timeout=60_000)
    app.idle()
    assert app.faults() == []
    assert app.covered() == []
    app.assert_short("Without labels", "Scores", "Class shares", "Labels that arrive late")
    app.page.get_by_role("button", name="Your own tables").click()
    app.page.locator(FILE).first.set_input_files(second)
    app.wait_for_text("1 table came before", 120)
    app.idle()
    app.page.keyboard.press("Escape")
    app.page.set_viewport_size({"width": 390, "height": 844})
    app.turn("dark")
    for section in ("Without labels", "Scores", "Class shares"):
        app.section(section)
        app.page.locator(CHART).nth(1).wait_for(timeout=60_000)
        app.idle()
        assert app.page.evaluate(SIDEWAYS) == 0, section
        assert app.covered() == [], section
        assert app.faults() == [], section
    app.section("Unknown rows")
    app.wait_for_text("By their score,")
    assert app.page.evaluate(SIDEWAYS) == 0
    assert app.faults() == []
    app.page.reload()
    app.wait_for_text("1 table came before", 60)
    app.assert_healthy()
