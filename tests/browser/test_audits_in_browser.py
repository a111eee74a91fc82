"""An audit from a sample to its approval, by mouse and keyboard; what is kept outlives a reload."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.browser

SCREEN = {"width": 1366, "height": 768}
HEIGHT = """() => Math.round(
  document.querySelector("[data-testid='stMainBlockContainer']").getBoundingClientRect().height)"""
LOWEST_TICK = """() => Math.round(Math.max(
  ...[...document.querySelectorAll(".js-plotly-plot")][0].querySelectorAll(".xtick text")
     .values().map(one => one.getBoundingClientRect().bottom)))"""


def _button(app, name: str):
    return app.page.get_by_role("button", name=name, exact=True)


def _badge(app, word: str):
    """A badge, whose text begins with the name of its icon."""
    return app.page.get_by_text(re.compile(rf"{word}$")).first


def _faults(app) -> dict[str, list[str]]:
    """What axe finds in both themes, by theme; the light one is left on."""
    found = {"light": app.faults()}
    app.turn("dark")
    found["dark"] = app.faults()
    app.turn("light")
    return {theme: faults for theme, faults in found.items() if faults}


def test_an_audit_is_recorded_submitted_and_approved(app) -> None:
    app.page.set_viewport_size(SCREEN)
    app.open("audits")
    _button(app, "Open a sample").click()
    app.page.get_by_text("Record an audit").first.wait_for(timeout=120_000)
    app.idle(120)
    app.visit("Overview")
    app.wait_for_overview()
    _button(app, "Record an audit").click()
    name = app.page.get_by_label("Name of the new project")
    name.wait_for(timeout=60_000)
    app.idle()
    faults = {"form": _faults(app)}
    name.fill("Digits <b>team</b>")
    name.press("Enter")
    app.idle()
    begin = _button(app, "Record the audit")
    begin.focus()
    begin.press("Enter")
    _badge(app, "Draft").wait_for(timeout=300_000)
    app.idle(120)
    app.page.locator(".js-plotly-plot .main-svg").first.wait_for(timeout=60_000)
    faults["audit"] = _faults(app)
    heights = {"audit": app.page.evaluate(HEIGHT)}
    tick = app.page.evaluate(LOWEST_TICK)
    assert "Digits <b>team</b>" in app.page.locator("[data-testid='stMain']").inner_text()

    submit = _button(app, "Submit")
    submit.focus()
    submit.press("Enter")
    _button(app, "Submit it").click()
    _badge(app, "Submitted").wait_for(timeout=60_000)
    app.idle()
    _button(app, "Approve").click()
    _button(app, "Approve it").click()
    _badge(app, "Approved").wait_for(timeout=60_000)
    app.idle()
    app.page.reload()
    _badge(app, "Approved").wait_for(timeout=60_000)
    app.idle(120)
    _badge(app, "Read-only").wait_for(timeout=10_000)
    for tab in ("Findings", "Comments", "History", "Limits", "Estimates", "What was audited"):
        app.section(tab)
        heights[tab] = app.page.evaluate(HEIGHT)
    app.section("Verify")
    _button(app, "Verify this record").click()
    app.page.get_by_text("The record holds.").wait_for(timeout=60_000)
    faults["verified"] = _faults(app)
    _button(app, "All audits").click()
    app.page.locator("h2").get_by_text("1 audit in 1 project.").wait_for(timeout=60_000)
    app.idle()
    faults["list"] = _faults(app)
    heights["list"] = app.page.evaluate(HEIGHT)
    app.section("Projects")
    faults["projects"] = _faults(app)
    assert not {place: found for place, found in faults.items() if found}
    assert max(heights.values()) <= 3 * SCREEN["height"], heights
    assert tick <= SCREEN["height"]
    app.assert_healthy()
