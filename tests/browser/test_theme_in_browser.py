"""Figures follow when the reader changes between light and dark."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import open_sample

pytestmark = pytest.mark.browser


def test_figures_take_the_colours_of_the_theme_that_is_chosen(app, home: Path) -> None:
    open_sample(app, home, "breast_cancer", "reliability")
    tick = app.page.locator(".js-plotly-plot .xtick text").first
    tick.wait_for()
    app.idle()

    def colour() -> str:
        found: str = tick.evaluate("one => getComputedStyle(one).fill")
        return found

    light = colour()
    for name, fits in (("Dark", lambda: colour() != light), ("Light", lambda: colour() == light)):
        app.page.locator('[data-testid="stMainMenu"]').click()
        app.page.locator('[data-testid="stMainMenuPopover"]').get_by_text(name).last.click()
        app.until(fits, 20)
        app.page.keyboard.press("Escape")
        app.idle()
    app.assert_healthy()
