"""The height of every page of every sample, in a laptop's window, with all its sections.

``python -m tests.benchmarks.studies.page_heights [PAGE ...]`` prints a line for each, the worst
first: pixels of the page with its highest section, and where its main picture ends. DESIGN.md
allows three screens of 768 pixels, and the picture within the first. It takes some ten minutes.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from playwright.sync_api import TimeoutError as NoAnswerError
from playwright.sync_api import sync_playwright

from app.shared.navigation import places
from kdcal_core.review import Workspace, samples, start_sample
from tests.benchmarks.bench_visitors import server
from tests.browser.conftest import FLAGS, SCREEN, App, _chromium

STARTED_BY = {
    "out_of_distribution": "Fit the kernel density version",
    "export": "Fit, judge and write the file",
    "watch": "Watch a made table",
    "compare": "Compare",
    "recalibration": "Recalibrate",
}
WITHOUT_REVIEW = ("load", "help")
PLOT = ".js-plotly-plot .main-svg"


def start(app: App, name: str) -> None:
    """Run what the page is for, where it can for this sample."""
    button = app.page.get_by_role("button", name=name, exact=True)
    with suppress(NoAnswerError):
        button.wait_for(timeout=5000)
    if button.count() and button.is_enabled():
        button.click()
        button.wait_for(state="detached", timeout=180_000)
        app.page.get_by_role("tab").first.wait_for(timeout=400_000)
        app.idle(180)


def measured(app: App) -> tuple[int, int | None, str]:
    """Height with the highest section, end of the picture if there is one, and that section."""
    with suppress(NoAnswerError):  # some pages have no picture
        app.page.locator(PLOT).first.wait_for(timeout=5000)
    picture = app.end_of_picture() if app.page.locator(PLOT).count() else None
    heights = {"": app.height()}
    for title in app.page.get_by_role("tab").all_inner_texts():
        app.section(title)
        heights[title] = app.height()
    section = max(heights, key=lambda one: heights[one])
    return heights[section], picture, section


def main() -> None:
    lines = []
    with tempfile.TemporaryDirectory() as home:
        os.environ["KDCAL_HOME"] = home
        with server() as (port, _), sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=_chromium(), args=FLAGS)
            app = App(browser, f"http://127.0.0.1:{port}")
            app.page.set_viewport_size(SCREEN)
            for sample in samples():
                review = start_sample(Workspace(Path(home)), sample.name)
                for name, place in places().items():
                    asked = not sys.argv[1:] or name in sys.argv[1:]
                    if sample.task not in place.tasks or name in WITHOUT_REVIEW or not asked:
                        continue
                    app.open(f"{name}?review={review.id}")
                    app.idle(180)
                    if name in STARTED_BY:
                        start(app, STARTED_BY[name])
                    lines.append((*measured(app), sample.name, name))
                    app.assert_healthy()
                    print(lines[-1], flush=True)
            browser.close()
    print(
        "\n| sample | page | height, of its highest section | the picture ends at |"
        "\n|---|---|---|---|"
    )
    for height, picture, section, sample_name, page in sorted(
        lines, reverse=True, key=lambda one: one[0]
    ):
        told = f"{height}, {section}" if section else str(height)
        print(f"| {sample_name} | {page} | {told} | {picture or ''} |")


if __name__ == "__main__":
    main()
