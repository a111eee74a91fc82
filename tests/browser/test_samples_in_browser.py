"""Pages of samples, each opened once and measured in windows of several sizes.

Every page answers within its first screen and is at most three screens high; where its figures are
pointed at, their buttons cover no text; and no label is cut on a narrow page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest
from conftest import SCREEN, App
from test_widths_in_browser import CUT, OVERLAID, SIDEWAYS, settle

from app.help.guides import NAMES, cut, on_screen, read_guide
from app.shared.navigation import places
from kdcal_core.review import Workspace, start_sample

pytestmark = pytest.mark.browser

# the highest pages of each kind, and the samples on which they are highest
PAGES = {
    "adult": ("overview", "reliability", "decisions", "confidence_by_class", "regions", "watch"),
    "xor_forest": ("out_of_distribution", "posterior_map", "export"),
    "digits": ("overview", "decisions"),
    "heteroscedastic": ("overview", "pit"),
    "diamonds_quantiles": ("pit",),
}
TABS = {"pit": ("Row by row", "Along a column")}  # the highest sections of a page, beside the first
STARTED_BY = {
    "out_of_distribution": "Fit the kernel density version",
    "export": "Fit, judge and write the file",
    "watch": "Watch a made table",
}
# the pages of which texts stand next to the buttons of a figure, and the section that holds it
POINTED_AT = {
    ("heteroscedastic", "pit"): "All rows together",
    ("adult", "decisions"): "",
    ("adult", "regions"): "",
    ("xor_forest", "posterior_map"): "",
}
WITH_LABELS = ("adult", "regions")  # of a tree, which stand close to each other


@dataclass
class Walked:
    """What the pages of a sample showed: pixels, and texts that nobody could read."""

    app: App
    heights: dict[tuple[str, ...], int] = field(default_factory=dict)
    pictures: dict[str, int] = field(default_factory=dict)
    findings: dict[str, str] = field(default_factory=dict)
    ends_of_checks: list[float] = field(default_factory=list)  # folded, of the overview
    covered: dict[tuple[str, int], list[object]] = field(default_factory=dict)
    cut: dict[tuple[str, int], list[object]] = field(default_factory=dict)
    sideways: dict[tuple[str, int], int] = field(default_factory=dict)


@pytest.fixture(scope="module", params=PAGES)
def walked(request: pytest.FixtureRequest, tab: App, home: Path) -> Walked:
    """A sample whose pages were opened one after the other."""
    tab.begin()
    tab.page.set_viewport_size(SCREEN)
    found, sample = Walked(tab), request.param
    review = start_sample(Workspace(home), sample)
    for page in PAGES[sample]:
        if not found.heights:
            tab.open(f"{page}?review={review.id}")
        else:
            tab.visit(places()[page].title)
        tab.idle(120)
        if page in STARTED_BY:
            start = tab.page.get_by_role("button", name=STARTED_BY[page])
            start.click()
            start.wait_for(state="detached", timeout=120_000)
            tab.page.get_by_role("tab").first.wait_for(timeout=120_000)
            tab.idle(120)
        tab.page.locator(".js-plotly-plot .main-svg").first.wait_for(timeout=60_000)
        _measure(found, page)
        if (sample, page) in POINTED_AT:
            if section := POINTED_AT[sample, page]:
                tab.section(section)
            _resize(found, page, with_labels=(sample, page) == WITH_LABELS)
    return found


def _measure(found: Walked, page: str) -> None:
    app = found.app
    found.heights[(page,)], found.pictures[page] = app.height(), app.end_of_picture()
    found.findings[page] = app.page.locator("h2").first.inner_text()
    if page == "overview":
        folded = app.page.locator(".st-key-further_checks").bounding_box()
        found.ends_of_checks.append(folded["y"] + folded["height"])
    for title in TABS.get(page, ()):
        app.section(title)
        found.heights[page, title] = app.height()


def _resize(found: Walked, page: str, *, with_labels: bool) -> None:
    """Look at a page in windows from a phone's to a wide one, and leave it in the laptop's."""
    app = found.app
    for width in (1366, 390, 768, 1920):
        settle(app, width)
        found.covered[page, width] = _left(app, app.covered)
        if with_labels and width < 1000:
            found.cut[page, width] = _left(app, lambda: app.page.evaluate(CUT))
        if with_labels and width == 390:
            found.cut[page, width] += _left(app, lambda: app.page.evaluate(OVERLAID))
        if with_labels and width == 768:
            found.sideways[page, width] = app.page.evaluate(SIDEWAYS)
    if with_labels:
        settle(app, 683, 384)  # a laptop's at a zoom of 200%
        found.cut[page, 683] = _left(app, lambda: app.page.evaluate(CUT))
        found.sideways[page, 683] = app.page.evaluate(SIDEWAYS)
    settle(app, SCREEN["width"], SCREEN["height"])


def _left(app: App, faults: Callable[[], Sequence[object]]) -> list[object]:
    """The faults of a page that do not go while it settles, which takes a busy machine a while."""
    with suppress(AssertionError):
        app.until(lambda: faults() == [], 30)
    return list(faults())


def test_the_main_picture_is_in_the_first_of_three_screens(walked: Walked) -> None:
    assert max(walked.heights.values()) <= 3 * SCREEN["height"], walked.heights
    assert max(walked.pictures.values()) <= SCREEN["height"], walked.pictures
    assert all(walked.findings.values()), walked.findings
    assert all(end <= SCREEN["height"] for end in walked.ends_of_checks), walked.ends_of_checks
    # two buttons, and Streamlit's margin
    assert walked.heights.get(("overview",), 0) <= 1.2 * SCREEN["height"], walked.heights
    walked.app.assert_healthy()


@pytest.mark.parametrize("walked", {sample: "" for sample, _ in POINTED_AT}, indirect=True)
def test_the_buttons_of_a_figure_cover_no_text(walked: Walked) -> None:
    assert not {place: texts for place, texts in walked.covered.items() if texts}


@pytest.mark.parametrize("walked", WITH_LABELS[:1], indirect=True)
def test_no_label_is_cut_on_a_narrow_page(walked: Walked) -> None:
    assert not {place: texts for place, texts in walked.cut.items() if texts}
    assert not {place: pixels for place, pixels in walked.sideways.items() if pixels}


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
