"""Picks on the map of local faults in a real browser: only there can a mark be clicked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import open_sample

pytestmark = pytest.mark.browser

MAP = ".st-key-pit_map .js-plotly-plot"
CENTRE = re.compile(r"row [\d,]+ and the 499 rows nearest to it")
BOX = re.compile(r"([\d,]+) rows in the box")


def picks(app) -> list[str]:
    """What stands below the map, of A and then of B."""
    text = app.page.locator('[data-testid="stMarkdown"]').all_inner_texts()
    return [line for line in text if CENTRE.search(line) or BOX.search(line)]


def until(app, fits) -> list[str]:
    """The picks once they fit: the page answers a moment later."""
    for _ in range(200):
        app.idle()
        if fits(found := picks(app)):
            return found
    raise AssertionError(picks(app))


def test_a_click_and_a_box_show_their_rows_beside_the_whole(app, home: Path):
    open_sample(app, home, "heteroscedastic", "pit")
    app.page.locator(f"{MAP} .nsewdrag").first.wait_for()
    first = until(app, lambda found: len(found) == 2)
    assert "too low here" in first[0]
    assert "too high here" in first[1]
    app.assert_healthy()

    mark = app.page.locator(f"{MAP} .scatterlayer .trace path.point").nth(40)
    mark.scroll_into_view_if_needed()
    place = mark.bounding_box()
    app.page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    app.page.wait_for_timeout(400)  # a click counts where the mouse has been seen to hover
    app.page.mouse.down()
    app.page.mouse.up()
    clicked = until(app, lambda found: len(found) == 1)
    assert CENTRE.search(clicked[0])

    app.page.locator(".st-key-pit_tool").get_by_text("Box", exact=True).click()
    app.idle()
    area = app.page.locator(f"{MAP} .nsewdrag").first.bounding_box()
    # high up, where hardly a row is: the outcome is on that axis, so the width alone counts
    x, y = area["x"] + 0.1 * area["width"], area["y"] + 0.05 * area["height"]
    app.page.mouse.move(x, y)
    app.page.mouse.down()
    app.page.mouse.move(x + 0.2 * area["width"], y + 20, steps=5)
    app.page.mouse.move(x + 0.4 * area["width"], y + 40, steps=5)
    app.page.mouse.up()
    both = until(app, lambda found: len(found) == 2)
    assert both[0] == clicked[0]
    assert int(BOX.search(both[1])[1].replace(",", "")) > 2000

    app.page.get_by_role("button", name="Back to the places furthest off").click()
    assert until(app, lambda found: found == first)
    app.assert_healthy()
