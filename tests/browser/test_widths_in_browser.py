"""From a phone to a wide screen: nothing scrolls sideways, and plots use their place."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import open_sample
from made_reviews import review_of, too_sure

from kdcal_core.review import Workspace, rename_review

pytestmark = pytest.mark.browser

LEAST_SHARE, LEAST_HEIGHT = 0.65, 180  # of the card, which has margins; pixels, on a phone
# what lies outside the window sideways, and of the main plot the width of its axes and its column
WIDTHS = (390, 600, 768, 1024, 1366, 1536, 1920, 2560)
HEIGHTS = {1920: 1080}  # of a window, where it is not a laptop's
MEASURE = """main => {
  const page = document.querySelector("[data-testid='stMain']")
  const plot = document.querySelector(main)
  const column = plot.closest("[data-testid='stVerticalBlock']").getBoundingClientRect().width
  const axes = plot.querySelector(".nsewdrag").getBoundingClientRect()
  return [page.scrollWidth - page.clientWidth, axes.width / column, axes.height]
}"""
SIDEWAYS = """() => {
  const page = document.querySelector("[data-testid='stMain']")
  return Math.max(0, page.scrollWidth - page.clientWidth)
}"""
PLACES = """() => [...document.querySelectorAll(".nsewdrag, [data-testid='stMain']")]
  .map(one => [one.getBoundingClientRect().x, one.getBoundingClientRect().width])"""
# the square of each panel, which may have a strip under it
PANELS = """key => [...document.querySelectorAll(`.st-key-${key} .js-plotly-plot`)]
  .map(one => one.querySelector(".nsewdrag")?.getBoundingClientRect()).filter(one => one)
  .map(one => [Math.round(one.x), Math.round(one.width), Math.round(one.height)])"""


# of every plot the texts that stand beyond its sides, or those of the window
CUT = """() => [...document.querySelectorAll(".js-plotly-plot")].flatMap(plot => {
  const {left, right, width} = plot.getBoundingClientRect()
  return [...plot.querySelectorAll("text")].filter(one => {
    const box = one.getBoundingClientRect()
    const beyond = box.left < left - 1 || box.right > Math.min(right, innerWidth) + 1
    return width && box.width && beyond
  }).map(one => one.textContent)
})"""

# pairs of texts of the tree that lie over each other
OVERLAID = """() => {
  const plot = document.querySelector('[class*="st-key-regions_picture"] .js-plotly-plot')
  const lines = [...plot.querySelectorAll(".textpoint text")].flatMap(one =>
    one.querySelector("tspan") ? [...one.querySelectorAll("tspan")] : [one])
  const boxes = lines.map(one => [one.textContent, one.getBoundingClientRect()])
  return boxes.flatMap(([a, one], at) => boxes.slice(at + 1).filter(([b, other]) =>
    one.left < other.right && other.left < one.right
    && one.top + 4 < other.bottom && other.top + 4 < one.bottom).map(([b]) => [a, b]))
}"""


def opened(app, home: Path, sample: str, page: str, plot: str) -> None:
    open_sample(app, home, sample, page)
    app.page.locator(f"{plot} .nsewdrag").first.wait_for(timeout=60_000)
    app.idle()


def settle(app, width: int, height: int = 768) -> None:
    """Give the window this size, and wait for the page and its plots, which follow."""
    app.page.set_viewport_size({"width": width, "height": height})
    app.idle()
    before: list[object] = []

    def settled() -> bool:
        """Whether the plots are where they were."""
        before.append(app.page.evaluate(PLACES))
        app.page.wait_for_timeout(150)
        return len(before) > 1 and before[-1] == before[-2]

    app.until(settled)


def panels_drawn(app, panels: str, least: int) -> list[list[int]]:
    """Where ten square panels stand, once they do: those of a wide window replace those before."""
    seen: list[list[list[int]]] = []

    def drawn() -> bool:
        seen.append(app.page.evaluate(PANELS, panels))
        squares = [abs(wide - high) <= 1 and wide >= least for _, wide, high in seen[-1]]
        return squares == [True] * 10

    app.until(drawn)
    return seen[-1]


def assert_filled(app, width: int, main: str, share: float = LEAST_SHARE) -> None:
    """At this width of the window nothing scrolls sideways, and the main plot has its column."""
    scrolled, filled, height = app.page.evaluate(MEASURE, main)
    assert scrolled == 0, width
    assert filled >= share, width
    assert height >= LEAST_HEIGHT, width


@pytest.mark.parametrize(
    ("page", "main", "panels", "side"),
    [
        ("reliability", "reliability_diagram", "reliability_multiples", 450),
        ("confidence_by_class", "confidence_curve", "bandwidths", 380),
    ],
)
def test_diagrams_fill_their_column_and_wrap_at_every_width(
    app, home: Path, page: str, main: str, panels: str, side: int
) -> None:
    opened(app, home, "digits_predictions", page, f".st-key-{panels}_9")
    axes = app.page.locator(f".st-key-{main} .nsewdrag").first
    across, sides = {}, {}
    # a square picture grows with the screen, and goes back to its size
    for width, height in (*((one, HEIGHTS.get(one, 768)) for one in WIDTHS), (1366, 768)):
        settle(app, width, height)
        places = panels_drawn(app, panels, 250 if width >= 1920 else 180)
        # a curve over two strips is narrower than it is high
        assert_filled(app, width, f".st-key-{main}", LEAST_SHARE - 0.1 * (panels == "bandwidths"))
        across[width] = len({x for x, _, _ in places})
        if width in (1366, 1920):
            sides[width] = axes.bounding_box()["width"]
            assert app.end_of_picture() <= height
            assert sides[1366] >= 250
    assert sides[1920] >= side
    assert across[390] == 1
    assert 3 <= across[1366] <= 4
    assert across[1366] <= across[1920] <= across[2560]
    app.assert_healthy()


def test_a_place_on_pit_is_picked_by_keyboard_alone(app, home: Path) -> None:
    opened(app, home, "heteroscedastic", "pit", ".st-key-pit_map")
    app.wait_for_text("Until you pick")
    choice = app.page.get_by_role("combobox", name="Pick from a list")
    for _ in range(40):
        if choice.evaluate("one => one === document.activeElement"):
            break
        app.page.keyboard.press("Tab")
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        app.page.keyboard.press(key)
    app.wait_for_text("Each is tested alone")
    for width in (390, 2560):
        settle(app, width)
        assert_filled(app, width, ".st-key-pit_map")
    app.assert_healthy()


def test_no_label_of_a_comparison_is_cut_on_a_narrow_page(app, home: Path) -> None:
    # rows that no other test compares: a finished comparison is shown without a button
    rows = {"calibration": too_sure(400, 40), "evaluation": too_sure(400, 41)}
    app.open(f"compare?review={review_of(Workspace(home), **rows)}")
    app.page.get_by_role("button", name="Compare", exact=True).click()
    app.page.locator(".st-key-compare_dots_inside .js-plotly-plot").wait_for(timeout=240_000)
    app.idle()
    assert_uncut(app)
    app.section("Paired differences")  # below the picture of the measure
    assert_uncovered(app)
    app.assert_healthy()


def assert_uncut(app) -> None:
    for width in (768, 683):  # the second is a laptop's at a zoom of 200%
        app.page.set_viewport_size({"width": width, "height": 384})
        app.until(lambda: app.page.evaluate(CUT) == [])
        assert app.page.evaluate(SIDEWAYS) == 0


def test_the_buttons_of_compared_versions_cover_no_text(app, home: Path) -> None:
    workspace = Workspace(home)
    rows = {"calibration": too_sure(300, 43), "evaluation": too_sure(300, 44)}
    first, second = review_of(workspace, **rows), review_of(workspace, **rows)
    rename_review(workspace, second, "The second of two")
    app.open(f"versions?review={first}")
    # audits that another test recorded here would come first
    if (reviews := app.page.get_by_role("tab", name="Reviews")).count():
        reviews.click()
        app.idle()
    app.page.get_by_role("combobox", name="Compared with").fill("The second of two")
    app.page.keyboard.press("Enter")
    app.page.locator(".st-key-versions_pair .js-plotly-plot").wait_for(timeout=60_000)
    app.idle()
    assert_uncovered(app)


def assert_uncovered(app) -> None:
    for width in (390, 768, 1366, 1920):
        settle(app, width)
        app.until(lambda: app.covered() == [])
