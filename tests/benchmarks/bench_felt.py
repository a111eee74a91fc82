"""Speed as felt: a visitor's waits in a real Chromium, and the server's times behind them.

The goals are for two cores with nothing else to do, so every row states the load average. Hosts
differ too: beside a page stands what Streamlit takes for a bare one with as many charts
(`plain_app`), minutes before.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright
from playwright.sync_api import TimeoutError as NoAnswerError

from app.shared.server_process import WORKERS_IMPORT
from kdcal_core.jobs import JobManager, prepare_workers
from kdcal_core.review import Review, Workspace, start_sample
from kdcal_core.tasks import (
    ComparisonSettings,
    RecalibrationSettings,
    Request,
    compare_calibrators,
    default_calibrators,
    recalibrate,
)
from tests.benchmarks import plain_app
from tests.benchmarks.bench_visitors import Visitor, processor_seconds, server
from tests.browser.conftest import FLAGS, IDLE, SIZE, _chromium

SAMPLES = ("digits", "breast_cancer", "adult", "heteroscedastic")
#: Default jobs: sample, page, button, and the seconds each took before.
JOBS = (
    ("digits", "compare", "Compare", 15.0),
    ("adult", "compare", "Compare", 16.0),
    ("digits", "posterior_map", "Fit the kernel density version", 18.0),
    ("heteroscedastic", "recalibration", "Recalibrate", 21.0),
)
REPEATS, CROWD = 3, 30
CROWDED = ("overview", "reliability", "confidence_by_class")
#: Notes the time of every click, and of the last change of the page after it that can be seen: a
#: table is drawn on a canvas, which holds its copy for screen readers .3 s later.
WATCH = """() => {
  window.felt = {begun: 0, ended: 0};
  document.addEventListener('click', () => {
    window.felt = {begun: performance.now(), ended: 0};
  }, true);
  // not the copy of a table for screen readers, whose text nodes have no `closest`
  const seen = ({target}) => !(target.closest ? target : target.parentElement)?.closest('canvas');
  new MutationObserver((changes) => {
    if (changes.some(seen)) window.felt.ended = performance.now();
  }).observe(document.body, {childList: true, characterData: true, subtree: true});
}"""
#: Whether the page has stood still for as long as nobody would wait for more.
STILL = """() => window.felt.ended > window.felt.begun
  && performance.now() - window.felt.ended > 400
  && document.querySelector('[data-testid=stApp]').dataset.testScriptState === 'notRunning'"""
LOOK = 4  # seconds for which a visitor looks at the first page before choosing a sample
CHOICES = (
    "[data-testid=stMain] [data-testid=stButtonGroup] button[aria-checked=false]",
    "[data-testid=stMain] [data-testid=stCheckbox] label",
    "[data-testid=stMain] [data-testid=stRadio] label:has(input:not(:checked))",
)


def run() -> list[dict[str, Any]]:
    plain = _plain()
    with tempfile.TemporaryDirectory() as home:
        os.environ["KDCAL_HOME"] = home
        with server() as (port, process):
            rows, adult = _in_browser(f"http://127.0.0.1:{port}/", plain)
            rows += asyncio.run(_server(port, adult, process.pid))
            seconds = asyncio.run(_crowd(port, CROWDED, adult))
            rows.append(_row("page", f"{CROWD} visitors at once", seconds, 1.0, plain.crowd))
        rows.append(_four_jobs(Workspace(Path(home))))
    return rows


@dataclass(frozen=True)
class Plain:
    """Seconds of a bare app; of its pages by their number of charts."""

    first: float
    pages: dict[int, float]
    widgets: dict[int, float]
    crowd: float


def _plain() -> Plain:
    with server(script=plain_app.__file__) as (port, _):
        address = f"http://127.0.0.1:{port}/"
        with _chromium_of_tests() as browser:
            first = _first(browser, address)
            pages, widgets = {}, {}
            with _tab(browser, address) as page:
                for n in plain_app.CHARTS:
                    pages[n], again = _page(page, plain_app.title(n), plain_app.title(int(n == 0)))
                    assert again is not None
                    widgets[n] = again
        crowd = asyncio.run(_crowd(port, tuple(f"page_{n}" for n in (1, 3, 3))))
    return Plain(first, pages, widgets, crowd)


@contextmanager
def _chromium_of_tests() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_chromium(), args=FLAGS)
        yield browser
        browser.close()


def _in_browser(address: str, plain: Plain) -> tuple[list[dict[str, Any]], str]:
    """All that is measured in a browser, and the review of the adult sample."""
    rows: list[dict[str, Any]] = []
    opened: dict[str, str] = {}
    with _chromium_of_tests() as browser:
        seconds = _first(browser, address)
        rows.append(_row("first page", "after the server's start", seconds, 3, plain.first))
        for sample in SAMPLES:
            with _tab(browser, address) as page:
                page.wait_for_timeout(1000 * LOOK)
                seconds, opened[sample] = _open(page, sample)
                rows.append(_row(f"sample {sample}", "click to quick checks", seconds, 2))
                _quiet(page)  # the slower checks of one sample would delay the next
        for sample in ("adult", "heteroscedastic"):
            with _tab(browser, f"{address}?review={opened[sample]}") as page:
                rows += _pages(page, sample, plain)
        for sample, where, button, before in JOBS:
            with _tab(browser, f"{address}{where}?review={opened[sample]}") as page:
                rows.append(_row(button, f"{sample}, defaults", _job(page, button), before / 2))
    return rows, opened["adult"]


def _four_jobs(workspace: Workspace) -> dict[str, Any]:
    """Four owners' jobs at once, against half the processor time that each needs alone."""
    prepare_workers(WORKERS_IMPORT)
    asked: list[list[Request]] = [[], []]
    for sample in SAMPLES:
        review = start_sample(workspace, sample)
        for seed in (1, 2):  # another seed is another job
            asked[seed - 1].append(_request(workspace, review, seed))
    manager = JobManager(grace=600)

    def wait_for(jobs: list[str]) -> tuple[float, float]:
        begun, busy = time.perf_counter(), _busy_seconds()
        assert all(manager.wait(job).state == "done" for job in jobs)
        return time.perf_counter() - begun, _busy_seconds() - busy

    alone = [wait_for([_submitted(manager, one, "one")])[1] for one in asked[0]]
    at_once, _ = wait_for([_submitted(manager, one, str(k)) for k, one in enumerate(asked[1])])
    what = f"four jobs at once, load {os.getloadavg()[0]:.1f}"
    least = sum(alone) / 2
    return {
        "name": "felt: visitors", "what": what, "seconds": at_once, "goal": 1.5 * least,
        "reference": "processor time alone / 2", "reference_seconds": least,
    }  # fmt: skip


def _request(workspace: Workspace, review: Review, seed: int) -> Request:
    if review.task == "regression":
        asked = RecalibrationSettings(choose=True, seed=seed)
        return recalibrate.request(workspace, review, asked)
    settings = ComparisonSettings(default_calibrators(review), "evaluation", seed=seed)
    return compare_calibrators.request(workspace, review, settings)


def _submitted(manager: JobManager, asked: Request, owner: str) -> str:
    return manager.submit(asked.target, asked.kwargs, title=asked.title, key=asked.key, owner=owner)


def _busy_seconds() -> float:
    """Processor seconds of the whole machine since its start, without idling."""
    ticks = [int(one) for one in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def _row(
    name: str, what: str, seconds: float, goal: float | None, plain: float | None = None
) -> dict[str, Any]:
    load = os.getloadavg()[0]
    words = f"{what}, load {load:.1f}"
    row = {"name": f"felt: {name}", "what": words, "seconds": seconds, "goal": goal}
    beside = {"reference": "a bare app's", "reference_seconds": plain}
    return row if plain is None else row | beside


@contextmanager
def _tab(browser: Browser, address: str) -> Iterator[Page]:
    context = browser.new_context(bypass_csp=True, reduced_motion="reduce", viewport=SIZE)
    page = context.new_page()
    page.goto(address)
    page.locator("h1").first.wait_for(timeout=60_000)
    page.wait_for_selector(IDLE)
    page.evaluate(WATCH)
    yield page
    context.close()


def _took(act: Callable[[], Any]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def _first(browser: Browser, address: str) -> float:
    page = browser.new_page(viewport=SIZE)
    seconds = _took(lambda: (page.goto(address), page.locator("h1").first.wait_for()))
    page.close()
    return seconds


def _open(page: Page, sample: str) -> tuple[float, str]:
    """Seconds from the click on a sample to its quick checks, and the review's id."""

    def act() -> None:
        page.locator(f".st-key-open_{sample} button").click()
        page.locator("h1").get_by_text("Overview").wait_for(timeout=120_000)
        page.locator('[class*="st-key-check_KC"]').first.wait_for(timeout=120_000)

    seconds = _took(act)
    page.wait_for_selector(IDLE)
    return seconds, page.url.partition("review=")[2].partition("&")[0]


def _ended(page: Page, patience: float = 60) -> float:
    """Seconds from the last click to the page's last change, by the browser's own clock."""
    page.wait_for_function(STILL, timeout=1000 * patience)
    felt = page.evaluate("() => window.felt")
    return float(felt["ended"] - felt["begun"]) / 1000


def _quiet(page: Page) -> None:
    """Wait until no job of the page runs, so that its results are stored."""
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        page.wait_for_timeout(800)
        page.wait_for_selector(IDLE)
        if not page.get_by_role("button", name="Stop").count():
            return


def _pages(page: Page, sample: str, plain: Plain) -> list[dict[str, Any]]:
    """Warm changes to every page, and one widget rerun on each that has a simple widget."""
    rows, links = [], page.locator('[data-testid="stSidebarNavLink"]')
    titles = [text.split("\n")[-1] for text in links.all_inner_texts()]
    for title in titles:
        _go(page, title)
        _quiet(page)
    for title in titles:
        seconds, again = _page(page, title, titles[titles[0] == title])
        n = min(page.locator(".js-plotly-plot:visible").count(), max(plain.pages))
        what = f"{sample}, {n} charts"
        rows.append(_row(f"page {title}", what, seconds, 0.4, plain.pages[n]))
        if again is not None:
            rows.append(_row(f"widget on {title}", what, again, 0.2, plain.widgets[n]))
    return rows


def _page(page: Page, title: str, other: str) -> tuple[float, float | None]:
    """Seconds of a change from another page to this one, and of a rerun by its first widget."""
    _go(page, other)
    seconds = []
    for _ in range(REPEATS):
        seconds.append(_go(page, title))
        _go(page, other)
    _go(page, title)
    return statistics.median(seconds), _rerun(page)


def _go(page: Page, title: str) -> float:
    """Seconds until the page of this title is whole; 0 where it is open already."""
    here = page.locator('[data-testid="stSidebarNavLink"][aria-current="page"]')
    if here.get_by_text(title, exact=True).count():
        return 0.0
    links = page.locator('[data-testid="stSidebarNav"] a')
    links.get_by_text(title, exact=True).click()
    seconds = _ended(page)
    here.get_by_text(title, exact=True).wait_for()
    return seconds


def _rerun(page: Page) -> float | None:
    """Seconds of a rerun after a click on the page's first switch, once its results are stored."""
    for choice in CHOICES:
        found = page.locator(choice)
        if not found.count() or not found.first.is_visible():
            continue
        times = []
        for _ in range(REPEATS):
            found.first.click()
            try:
                times.append(_ended(page, 10))
            except NoAnswerError:  # nothing on the page depends on it
                break
            _quiet(page)
        if times:
            return statistics.median(times)
    return None


def _job(page: Page, button: str) -> float:
    """Seconds from the click on a button to the page with the result."""

    def act() -> None:
        page.get_by_role("button", name=button, exact=False).first.click()
        stop = page.get_by_role("button", name="Stop")
        stop.first.wait_for(timeout=30_000)
        stop.first.wait_for(state="detached", timeout=300_000)
        page.wait_for_selector(IDLE)

    page.wait_for_timeout(2000)
    return _took(act)


async def _server(port: int, review: str, pid: int) -> list[dict[str, Any]]:
    """Processor time of the server for a rerun of a page, without the browser."""
    rows = []
    for name in ("load", "overview", "reliability", "confidence_by_class", "regions", "decisions"):
        async with Visitor(port, name, review) as one:
            for _ in range(3):
                await one.run()
                await asyncio.sleep(1)
            start = processor_seconds(pid)
            for _ in range(10):
                await one.run()
            seconds = (processor_seconds(pid) - start) / 10
        what = f"{one.charts} charts, processor time of the server"
        rows.append(_row(f"rerun of {name}", what, seconds, 0.08 if one.charts else 0.03))
    return rows


async def _crowd(port: int, pages: Sequence[str], review: str = "") -> float:
    """Seconds of a page for each of thirty visitors who ask for these without a pause."""
    asked = [pages[at % len(pages)] for at in range(CROWD)]
    crowd = [await Visitor(port, one, review).__aenter__() for one in asked]
    await asyncio.gather(*(one.run() for one in crowd))
    times: list[float] = []
    for _ in range(3):
        times += await asyncio.gather(*(one.run() for one in crowd))
    for one in crowd:
        await one.__aexit__()
    return statistics.median(times)
