"""Figures follow when the reader changes between light and dark."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser


def test_figures_take_the_colours_of_the_theme_that_is_chosen(app) -> None:
    app.open()
    app.page.locator(".st-key-open_breast_cancer button").click()
    app.wait_for_text("evaluation set 185 rows")
    app.visit("Reliability")
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
