"""A box dragged on the posterior map in a real browser: only there can anything be selected."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import open_sample

pytestmark = pytest.mark.browser

PANELS = ".st-key-posterior_map .js-plotly-plot .nsewdrag"
ROWS = re.compile(r"^([\d,]+) of 1,000 rows lie in the box")


def until_rows(app, fits) -> int:
    """The number of rows in the box once it fits: the page answers a drag a moment later."""
    for _ in range(100):
        app.idle()
        said = app.page.get_by_text(ROWS)
        if said.count() and fits(
            n := int(ROWS.search(said.first.inner_text())[1].replace(",", ""))
        ):
            return n
    raise AssertionError("the page never showed such a number of rows")


def seen(app, panel: int):
    """Where a panel is once the page is scrolled back to its top, under Streamlit's header."""
    app.page.locator('[data-testid="stMain"]').evaluate("one => one.scrollTo(0, 0)")
    return app.page.locator(PANELS).nth(panel).bounding_box()


def drag(app, panel: int, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Drag from one place to another, given in shares of the panel from its upper left."""
    area = seen(app, panel)
    x0, y0, x1, y1 = (
        area[edge] + share * area[size]
        for shares in (start, end)
        for share, edge, size in zip(shares, ("x", "y"), ("width", "height"), strict=True)
    )
    app.page.mouse.move(x0, y0)
    app.page.mouse.down()
    app.page.mouse.move((x0 + x1) / 2, (y0 + y1) / 2, steps=5)
    app.page.mouse.move(x1, y1, steps=5)
    app.page.mouse.up()


def test_a_dragged_box_shows_its_rows_and_outlives_a_slider(app, home: Path):
    open_sample(app, home, "xor_network", "posterior_map")
    # another test may have fitted the same sample in this home: then it is there at once
    fit = app.page.get_by_role("button", name="Fit the kernel density version")
    fitted = app.page.get_by_text("Settings of the kernel density version")
    fit.or_(fitted).first.wait_for()
    if fit.count():
        fit.click()
    fitted.wait_for(timeout=120_000)
    app.page.locator(PANELS).nth(3).wait_for(timeout=60_000)
    assert until_rows(app, lambda n: n > 900) == 1000
    # the middle half of the map holds all data, a quarter of that one cloud
    drag(app, 1, (0.5, 0.25), (0.77, 0.5))
    assert 150 < until_rows(app, lambda n: n < 900) < 350
    app.section("Rows")
    app.wait_for_text("the most confident on top")
    app.assert_healthy()
    assert app.faults_in_both() == {}
    app.assert_short("Rows")
    app.unfold("Settings of the kernel density version")
    # on another panel, where no row is: the box dragged last counts
    drag(app, 2, (0.02, 0.02), (0.15, 0.15))
    app.wait_for_text("None of the 1,000 rows lies in the box")
    drag(app, 0, (0.2, 0.5), (0.5, 0.8))
    chosen = until_rows(app, lambda n: n > 0)
    assert 150 < chosen < 350
    # another alpha draws the maps again, which takes the box off them, and keeps its rows
    app.page.locator(".st-key-foreign_alpha").get_by_role("slider").first.press("ArrowRight")
    app.page.locator(".st-key-foreign_alpha").get_by_text("2.0%").first.wait_for()
    assert until_rows(app, lambda n: n > 0) == chosen
    drag(app, 1, (0.5, 0.5), (0.8, 0.8))
    until_rows(app, lambda n: n not in (chosen, 1000))
    area = seen(app, 1)
    app.page.mouse.dblclick(area["x"] + 5, area["y"] + 5)
    until_rows(app, lambda n: n == 1000)
    app.assert_healthy()
