"""Figures follow when the reader changes between light and dark."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser

TICK = ".js-plotly-plot .xtick text"


@pytest.fixture
def scheme() -> str:
    return "light"


def test_figures_take_the_colours_of_the_theme_that_is_chosen(app) -> None:
    app.open()
    app.page.locator(".st-key-open_heteroscedastic button").click()
    app.wait_for_text("regression (a single number)")
    app.visit("PIT")
    tick = app.page.locator(TICK).first
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
