"""Heights of every page on every sample, in a real Chromium at 1366 x 768: pixels, not seconds.

A page should show its main picture, down to the axis, in the first screen, and be three screens
high at most, whichever of its sections is open. A page with a job is measured when its result is
there.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright
from playwright.sync_api import TimeoutError as NoAnswerError

from app.shared.navigation import places
from kdcal_core.review import Review, Workspace, samples, start_sample
from tests.benchmarks.bench_visitors import server
from tests.browser.conftest import DRAWN, FLAGS, HEIGHT, IDLE, PICTURE, SCREEN, _chromium

STARTED_BY = {
    "compare": "Compare",
    "export": "Fit, judge and write the file",
    "out_of_distribution": "Fit the kernel density version",
    "posterior_map": "Fit the kernel density version",
    "recalibration": "Recalibrate",
    "watch": "Watch a made table",
}
MOST, FIRST = 3 * SCREEN["height"], SCREEN["height"]


def run() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        os.environ["KDCAL_HOME"] = home
        with server() as (port, _), sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=_chromium(), args=FLAGS)
            page = browser.new_context(reduced_motion="reduce", viewport=SCREEN).new_page()
            for sample in samples():
                review = start_sample(Workspace(Path(home)), sample.name)
                page.goto(f"http://127.0.0.1:{port}/?review={review.id}")
                page.locator("h1").first.wait_for(timeout=60_000)
                _still(page)  # the links are those of the review's task
                for name, place in places().items():
                    if review.task in place.tasks:
                        rows.append(_measured(page, name, place.title, review))
                        print(rows[-1]["name"], rows[-1]["what"], flush=True)  # it takes long
            browser.close()
    return rows


def _measured(page: Page, name: str, title: str, review: Review) -> dict[str, Any]:
    links = page.locator("[data-testid='stSidebarNav']")
    links.get_by_text(title, exact=True).click()
    page.locator("h1").get_by_text(title, exact=True).wait_for(timeout=60_000)
    _still(page)
    button = page.get_by_role("button", name=STARTED_BY.get(name, "no such button"))
    if button.count() and button.first.is_enabled():
        button.first.click()
        _still(page)
    plot = page.locator("[data-testid='stMain'] .js-plotly-plot .main-svg").first
    drawn = plot.count() and plot.is_visible()
    picture = page.evaluate(PICTURE) if drawn else 0
    shown = f"picture down to {picture}" if picture > 0 else "no main picture"  # or no axis
    heights = {"": page.evaluate(HEIGHT)}
    for section in page.get_by_role("tab").all_inner_texts():
        page.get_by_role("tab", name=section, exact=True).click()
        page.wait_for_timeout(300)
        page.wait_for_selector(IDLE, timeout=120_000)
        page.wait_for_function(DRAWN)
        heights[section] = page.evaluate(HEIGHT)
    highest = max(heights, key=lambda one: heights[one])
    height = heights[highest]
    opened = f" with {highest!r}" if highest else ""
    words = f"{review.title}: {height} px high{opened}, {shown}"
    fits = height <= MOST and picture <= FIRST
    return {"name": f"screens: {name}", "what": words, "goal": "fits" if fits else "too high"}


def _still(page: Page) -> None:
    """Wait until no job of the page runs and nothing is drawn any more."""
    page.wait_for_timeout(800)
    page.wait_for_selector(IDLE, timeout=120_000)
    stop = page.locator("[data-testid='stMain']").get_by_role("button", name="Stop")
    if stop.count():
        stop.first.wait_for(state="detached", timeout=300_000)
        page.wait_for_timeout(800)
        page.wait_for_selector(IDLE, timeout=120_000)
    try:
        page.locator(".js-plotly-plot .main-svg").first.wait_for(timeout=5_000)
    except NoAnswerError:  # a page without a chart
        return
    page.wait_for_timeout(500)
