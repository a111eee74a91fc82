"""plotly is read ahead, and draws a figure once: columns are as wide as it reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import open_sample

from app.shared.in_browser import plotly_file

pytestmark = pytest.mark.browser

# shapes that plotly draws of a plot after the task in which the plot appeared
WATCH = """() => {
  window.drawn = {plots: 0, again: 0}
  const known = new Set()
  new MutationObserver(changes => {
    const redrawn = changes.filter(one => one.type === "attributes"
      && known.has(one.target.closest(".js-plotly-plot")))
    window.drawn.again += redrawn.length
    for (const plot of document.querySelectorAll(".js-plotly-plot:has(.main-svg)")) {
      if (!known.has(plot)) window.drawn.plots += 1
      known.add(plot)
    }
  }).observe(document.body, {subtree: true, childList: true, attributeFilter: ["d"]})
}"""


@pytest.mark.parametrize(
    ("sample", "page", "plots"),
    [
        ("adult", "reliability", 3),
        ("adult", "posterior_map", 1),
        ("adult", "decisions", 2),
        ("heteroscedastic", "pit", 2),
    ],
)
def test_figures_that_follow_a_switch_are_drawn_once(
    app, home: Path, sample: str, page: str, plots: int
):
    app.page.set_viewport_size({"width": 1366, "height": 768})
    open_sample(app, home, sample, page)
    app.page.locator(".nsewdrag").first.wait_for(timeout=60_000)
    app.idle()
    app.page.evaluate(WATCH)
    for _ in range(2):  # the first computes what the second only draws
        app.page.locator("[data-testid=stMain] button[aria-checked=false]").first.click()
        app.idle()
        app.page.wait_for_timeout(1000)
    drawn = app.page.evaluate("() => window.drawn")
    assert drawn["plots"] >= plots
    assert drawn["again"] == 0


def test_plotly_is_read_while_a_visitor_looks_at_the_first_page(app):
    assert plotly_file()
    app.open("")
    app.page.wait_for_function(
        "name => performance.getEntriesByType('resource').some(one => one.name.endsWith(name))",
        arg=plotly_file(),
        timeout=30_000,
    )
    app.assert_healthy()
