"""Help in a browser: at every width, in both themes, by keyboard and by links."""

from __future__ import annotations

from pathlib import Path

import pytest

GUIDES = Path(__file__).parents[2] / "app" / "guides"
TITLES = [path.read_text().split("\n")[0].removeprefix("# ") for path in GUIDES.glob("*.md")]
READABLE = 800  # pixels of a line of text
PLACES = (("light", 2560), ("light", 390), ("dark", 390))  # themes and widths of the window
pytestmark = pytest.mark.browser


def choice(app, title: str):
    return app.page.locator('[data-testid="stButtonGroup"] button').filter(has_text=title)


def wait_for(app, title: str) -> None:
    app.until(lambda: app.page.locator("h2").first.inner_text() == title)
    app.idle()


def test_guides_fit_the_page(app) -> None:
    app.open("help")
    for title in TITLES:
        choice(app, title).click()
        wait_for(app, title)
        assert [app.page.locator(level).count() for level in ("h1", "h2")] == [1, 1]
        main = app.page.locator('[data-testid="stMain"]')
        text = main.locator('[data-testid="stMarkdownContainer"]:has(h2) > p').first
        # the next guide begins with the theme in which this one ends
        for scheme, width in PLACES if app.scheme == "light" else PLACES[::-1]:
            app.page.set_viewport_size({"width": width, "height": 900})
            if scheme != app.scheme:
                app.turn(scheme)
            app.idle()
            shown = title, scheme, width
            assert main.evaluate("one => one.scrollWidth <= one.clientWidth"), shown
            assert text.bounding_box()["width"] <= READABLE, shown
    app.assert_healthy()


def test_a_guide_is_chosen_by_keyboard_and_left_by_back(app) -> None:
    app.open("help?guide=Loading+a+model+and+tables")
    chosen = choice(app, "From Python")
    chosen.focus()
    app.page.keyboard.press("Enter")
    wait_for(app, "From Python")
    assert "guide=From" in app.page.url
    assert chosen.evaluate("one => one === document.activeElement")
    app.page.go_back()
    wait_for(app, "Loading a model and tables")
    app.assert_healthy()


def test_code_is_readable_in_both_themes(app) -> None:
    app.open("help?guide=Watching+new+tables")  # commands and settings, which are coloured most
    app.page.get_by_role("tab", name="A worked example").click()
    app.page.locator("[data-testid='stCode']").filter(visible=True).first.wait_for()
    assert app.faults_in_both() == {}


def test_a_link_opens_another_guide(app) -> None:
    app.open("help?guide=Loading+a+model+and+tables")
    with app.context.expect_page() as opened:
        app.page.get_by_role("tab", name="Formats").click()
        app.page.get_by_role("link", name="From Python").click()
    opened.value.locator("h2").get_by_text("From Python").wait_for(timeout=60_000)
    app.assert_healthy()
