"""An audit from a sample to its approval, by mouse and keyboard; what is kept outlives a reload."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import SCREEN

from kdcal_core.audit import FindingOpened, Record, new_id, system_user

pytestmark = pytest.mark.browser


def _further_audits(home: Path) -> None:
    """Two further audits of the same name, the newest with findings of one name."""
    record, who = Record(home / "kdcal" / "audits"), system_user()
    (project,) = record.projects(who)
    (first,) = project.audits.values()
    record.draft(project.id, record.content(first), who)
    audit = record.draft(project.id, record.content(first), who)
    for title in ("Groups differ", "Groups differ", "Repair it before release"):
        record.write(project.id, FindingOpened(audit.id, new_id(), title, "high"), who)
    record.database.close()


def _button(app, name: str):
    return app.page.get_by_role("button", name=name, exact=True)


def _badge(app, word: str):
    """A badge, whose text begins with the name of its icon."""
    return app.page.get_by_text(re.compile(rf"{word}$")).first


def test_an_audit_is_recorded_submitted_approved_and_compared(app, home: Path) -> None:
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
    faults = {"form": app.faults_in_both()}
    name.fill("Digits <b>team</b>")
    name.press("Enter")
    app.idle()
    begin = _button(app, "Record the audit")
    begin.focus()
    begin.press("Enter")
    _badge(app, "Draft").wait_for(timeout=300_000)
    app.idle(120)
    app.page.locator(".js-plotly-plot .main-svg").first.wait_for(timeout=60_000)
    faults["audit"] = app.faults_in_both()
    heights = {"audit": app.height()}
    tick = app.end_of_picture()
    assert "Digits <b>team</b>" in app.page.locator("[data-testid='stMain']").inner_text()

    submit = _button(app, "Submit")
    submit.focus()
    submit.press("Enter")
    _button(app, "Submit it").click()
    _badge(app, "Submitted").wait_for(timeout=60_000)
    app.idle()
    _button(app, "Approve").click()
    app.page.get_by_label("Reason").fill("Right, whatever its verdict is.")
    _button(app, "Approve it").click()
    _badge(app, "Approved").wait_for(timeout=60_000)
    app.idle()
    _button(app, "Link").click()
    link = app.page.locator("[data-testid='stCode']").inner_text().strip()
    app.page.goto(link)
    _badge(app, "Approved").wait_for(timeout=60_000)
    app.idle(120)
    _badge(app, "Read-only").wait_for(timeout=10_000)
    for tab in ("Findings", "Comments", "History", "Limits", "Estimates", "What was audited"):
        app.section(tab)
        heights[tab] = app.height()
    app.section("Verify")
    _button(app, "Verify this record").click()
    app.page.get_by_text("The record holds.").wait_for(timeout=60_000)
    faults["verified"] = app.faults_in_both()
    _button(app, "All audits").click()
    app.page.locator("h2").get_by_text("1 audit in 1 project.").wait_for(timeout=60_000)
    app.idle()
    faults["list"] = app.faults_in_both()
    heights["list"] = app.height()
    app.section("Projects")
    faults["projects"] = app.faults_in_both()

    _further_audits(home)
    app.section("All audits")
    newest = app.page.get_by_role("button", name=re.compile(r" UTC, \w{8}\)$")).first
    newest.wait_for(timeout=60_000)
    app.idle()
    faults["all audits"] = app.faults_in_both()
    newest.click()
    _badge(app, "Draft").wait_for(timeout=60_000)
    app.section("Findings")
    _button(app, "Change Groups differ (2)").wait_for()
    faults["findings"] = app.faults_in_both()
    heights["findings"] = app.height()
    app.visit("Versions")
    app.page.locator("h2").first.wait_for(timeout=60_000)
    app.idle()
    for tab in ("What changed", "All verdicts", "All estimates", "Charts", "Over time"):
        app.section(tab)
        faults[tab] = app.faults_in_both()
        heights[tab] = app.height()
    app.section("Audits")  # "Over time" hides it and its choices
    further = app.page.get_by_role("combobox", name="And with")
    further.focus()
    further.press("ArrowDown")
    app.page.get_by_role("option").first.wait_for()
    further.press("Enter")
    app.wait_for_text("Differences of")
    app.idle()
    sentences = app.page.locator("[data-testid='stMain'] li:visible").all_inner_texts()
    assert len(sentences) == 2
    assert all("cannot be told apart" in one for one in sentences)
    faults["several versions"] = app.faults_in_both()
    heights["several versions"] = app.height()
    assert not {place: found for place, found in faults.items() if found}
    assert max(heights.values()) <= 3 * SCREEN["height"], heights
    assert tick <= SCREEN["height"]
    app.assert_healthy()
