"""Regions in a real browser: only there can a mark of the tree be clicked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import open_sample

pytestmark = pytest.mark.browser

TREE = '[class*="st-key-regions_picture"] .js-plotly-plot'
FOUND = re.compile(r"^Where .*the model says .*rows\)")


def text(app) -> str:
    """What stands above the pictures of the region that is looked at closely."""
    lines = app.page.locator('[data-testid="stMarkdown"]').all_inner_texts()
    return next((line for line in lines if FOUND.search(line.replace("\u200b", ""))), "")


def until(app, fits) -> str:
    for _ in range(60):
        app.idle()
        if fits(found := text(app)):
            return found
    raise AssertionError(text(app))


def test_a_click_opens_a_region_and_a_slider_draws_the_tree_again(app, home: Path):
    open_sample(app, home, "adult_network", "regions")
    app.page.locator(f"{TREE} .nsewdrag").first.wait_for()
    first = until(app, bool)
    app.assert_healthy()
    assert app.faults_in_both() == {}

    marks = app.page.locator(f"{TREE} .scatterlayer .trace").last.locator("path.point")
    assert marks.count() >= 2
    captions = app.page.locator(f"{TREE} .scatterlayer .trace").last.locator("text")
    counts = [re.search(r"\(([\d,]+ rows)\)", one)[1] for one in captions.all_text_contents()]
    at, count = next((at, one) for at, one in enumerate(counts) if f"{one})" not in first)
    mark = marks.nth(at)
    mark.scroll_into_view_if_needed()
    place = mark.bounding_box()
    app.page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    app.page.wait_for_timeout(400)  # a click counts where the mouse has been seen to hover
    app.page.mouse.down()
    app.page.mouse.up()
    clicked = until(app, lambda line: line != first)
    assert f"{count})" in clicked

    app.page.get_by_role("button", name="Question and size").click()
    app.page.locator(".st-key-regions_depth input[type=range]").press("ArrowLeft")
    until(app, lambda line: line and line != clicked)
    assert marks.count() <= 4
    app.assert_healthy()


def test_few_rows_are_searched_with_redraws_at_once(app, home: Path):
    open_sample(app, home, "breast_cancer", "regions")
    app.wait_for_text("found on all 185 rows")
    assert app.page.locator(".st-key-regions_harder").count() == 0
    app.assert_healthy()
