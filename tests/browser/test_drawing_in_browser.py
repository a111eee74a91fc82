"""What the browser draws, and how often."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import open_sample

pytestmark = pytest.mark.browser

#: Counts changes of axes that had been drawn before.
COUNT = """() => {
  const drawn = new Set()
  window.drawnAgain = 0
  new MutationObserver((changes) => {
    for (const {target} of changes)
      if (target.closest?.(".xaxislayer-above") && drawn.has(target.closest(".js-plotly-plot")))
        window.drawnAgain += 1
    const ticks = document.querySelectorAll(".js-plotly-plot .xtick")
    ticks.forEach((one) => drawn.add(one.closest(".js-plotly-plot")))
    window.charts = drawn.size
  }).observe(document.body, {childList: true, subtree: true})
}"""


def test_a_chart_is_drawn_once(app, home: Path):
    open_sample(app, home, "breast_cancer", "reliability")
    app.page.locator(".js-plotly-plot .xtick").first.wait_for()
    app.visit("Help")
    app.page.evaluate(COUNT)
    app.visit("Reliability")
    app.page.locator(".js-plotly-plot .xtick").first.wait_for()
    app.page.wait_for_timeout(1000)
    assert app.page.evaluate("() => window.charts") >= 2
    assert app.page.evaluate("() => window.drawnAgain") == 0
    app.assert_healthy()
