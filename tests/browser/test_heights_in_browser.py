"""Every page answers within its first screen, and is at most three screens high."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from conftest import SCREEN

from app.help.guides import NAMES, cut, on_screen, read_guide
from app.shared.navigation import places
from kdcal_core.review import Workspace, start_sample

pytestmark = pytest.mark.browser

# the highest pages of each kind, and the samples on which they are highest
PAGES = {
    "adult": ("overview", "reliability", "decisions", "confidence_by_class", "regions", "watch"),
    "xor_forest": ("out_of_distribution", "posterior_map", "export"),
    "digits": ("overview",),
    "heteroscedastic": ("overview", "pit"),
    "diamonds_quantiles": ("pit",),
}
TABS = {"pit": ("Row by row", "Along a column")}  # the highest sections of a page, beside the first
STARTED_BY = {
    "out_of_distribution": "Fit the kernel density version",
    "export": "Fit, judge and write the file",
    "watch": "Watch a made table",
}


def test_the_longest_sections_of_help_have_at_most_three_screens(app) -> None:
    sections = {
        (name, heading): len(text)
        for name in NAMES
        for heading, text in cut(on_screen(read_guide(name).text))[1].items()
    }
    app.page.set_viewport_size(SCREEN)
    heights = {}
    for name, heading in sorted(sections, key=lambda one: -sections[one])[:4]:
        app.open(f"help?guide={quote(read_guide(name).title)}")
        tab = app.page.get_by_role("tab", name=heading, exact=True)
        tab.click(timeout=60_000)
        app.until(lambda tab=tab: tab.get_attribute("aria-selected") == "true")
        app.idle()
        heights[name, heading] = app.height()
    assert max(heights.values()) <= 3 * SCREEN["height"], heights
    app.assert_healthy()


@pytest.mark.parametrize("sample", PAGES)
def test_the_main_picture_is_in_the_first_of_three_screens(app, home: Path, sample: str) -> None:
    review = start_sample(Workspace(home), sample)
    app.page.set_viewport_size(SCREEN)
    heights, pictures = {}, {}
    for page in PAGES[sample]:
        if not heights:
            app.open(f"{page}?review={review.id}")
        else:
            app.visit(places()[page].title)
        app.idle(120)
        if page in STARTED_BY:
            start = app.page.get_by_role("button", name=STARTED_BY[page])
            start.click()
            start.wait_for(state="detached", timeout=120_000)
            app.page.get_by_role("tab").first.wait_for(timeout=120_000)
            app.idle(120)
        app.page.locator(".js-plotly-plot .main-svg").first.wait_for(timeout=60_000)
        heights[page], pictures[page] = app.height(), app.end_of_picture()
        assert app.page.locator("h2").first.inner_text(), page  # it has its finding
        for tab in TABS.get(page, ()):
            app.section(tab)
            heights[page, tab] = app.height()
        if page == "overview":
            folded = app.page.locator(".st-key-further_checks").bounding_box()
            assert folded["y"] + folded["height"] <= SCREEN["height"]
            assert heights[page] <= 1.2 * SCREEN["height"]  # two buttons, and Streamlit's margin
    assert max(heights.values()) <= 3 * SCREEN["height"], heights
    assert max(pictures.values()) <= SCREEN["height"], pictures
    app.assert_healthy()
