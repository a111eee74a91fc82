"""The simulation lab in a real browser: from the first click to a slider that acts at once."""

from __future__ import annotations

import re

import pytest
from conftest import SCREEN

pytestmark = pytest.mark.browser

SMALL = "simulation_lab?lab_rows=200&lab_trees=10"
NUMBERS = (
    "simulation_lab?lab_task=Numbers&lab_regression=Rosenbrock%27s+valley"
    "&lab_regressor=Random+forest&lab_regression_rows=1%2C000"
)


def finding(app):
    return app.page.locator("h2").first.inner_text()


def assert_uncovered(app, *sections: str) -> None:
    """Where a figure is pointed at, its buttons cover no text, on a laptop and on a phone."""
    for size in ({"width": 390, "height": 844}, SCREEN):
        app.page.set_viewport_size(size)
        app.idle()
        for section in sections:
            app.section(section)
            app.until(lambda: app.covered() == [])


def test_the_lab_is_the_first_page_of_a_newcomer(app):
    app.page.set_viewport_size(SCREEN)
    app.open(SMALL)
    app.page.get_by_role("button", name="Run", exact=True).click()
    app.wait_for_text("Outside the data the forest claims", seconds=180)
    app.page.locator(".js-plotly-plot .heatmaplayer").first.wait_for(timeout=60_000)
    app.idle()
    assert app.page.get_by_text("Simulation", exact=True).count() == 0  # the settings are folded
    app.assert_short(
        "In numbers",
        "Exponent",
        "Over-confidence and order",
        "Errors in the papers",
        "Training sizes",
        "Distance",
    )
    assert_uncovered(app, "In numbers")
    assert re.match(r"At radius 2 the forest (still )?says \d\d\.\d% \(\d\d\.\d% to", finding(app))
    app.assert_healthy()
    assert app.faults() == []
    app.turn("dark")  # for what follows
    app.assert_healthy()

    before = finding(app)
    app.page.reload()  # the folded settings are still in the address
    app.until(lambda: app.page.locator("h2").count() and finding(app) == before)
    app.idle()
    app.unfold("Settings of the kernel density version")
    assert app.height() <= 3 * SCREEN["height"]
    app.page.get_by_role("button", name="As printed").click()
    app.wait_for_text("log b = −1 × 10⁻⁷")
    app.until(lambda: finding(app) != before)
    app.idle()
    assert app.end_of_picture() <= SCREEN["height"]  # below the longest finding too
    app.page.get_by_role("button", name="Chosen by data").click()
    app.page.get_by_text("log b = −1 × 10⁻⁷").wait_for(state="detached")
    app.until(lambda: finding(app) == before)
    app.idle()

    slider = app.page.locator('[class*="_exponent"]')
    was = slider.inner_text()
    slider.locator("input[type=range]").press("ArrowRight")
    app.until(lambda: slider.inner_text() != was)
    app.idle()
    app.assert_healthy()


def test_a_regression_answers_within_the_first_screen(app):
    app.page.set_viewport_size(SCREEN)
    app.open(NUMBERS)
    app.page.get_by_role("button", name="Run", exact=True).click()
    app.wait_for_text("Root mean squared distance from the true mean", seconds=180)
    app.page.locator(".js-plotly-plot .xtick").first.wait_for(timeout=60_000)
    app.idle()
    assert app.page.get_by_text("Simulation", exact=True).count() == 0  # the settings are folded
    assert "mean squared error against the true mean" in finding(app)
    app.assert_short("Surfaces", "Missed outcomes", "In numbers", "Training sizes")
    assert_uncovered(app, "Missed outcomes", "In numbers")
    assert app.faults_in_both() == {}
    app.assert_healthy()


def test_settings_survive_a_reload_and_another_page(app):
    app.open("simulation_lab")
    app.page.get_by_text("Spiral", exact=True).click()
    app.wait_for_text("Two arms wind around each other")
    app.idle()
    assert "lab_simulation=Spiral" in app.page.url
    app.page.reload()
    app.idle()
    app.wait_for_text("Two arms wind around each other")
    app.visit("Load")
    app.visit("Simulation lab")
    app.wait_for_text("Two arms wind around each other")
    app.assert_healthy()


def test_a_long_run_can_be_stopped(app):
    app.open("simulation_lab?lab_rows=10%2C000&lab_seed=100")
    app.page.get_by_role("button", name="Run", exact=True).click()
    main = app.page.locator('[data-testid="stMain"]')
    main.get_by_role("button", name="Stop").click()
    app.wait_for_text("Stopped before it ended.")
    app.page.get_by_role("button", name="Start again").wait_for()
    app.assert_healthy()
