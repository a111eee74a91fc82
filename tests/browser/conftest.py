"""A real Chromium against a real server, with every way out of the machine blocked."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit
from weakref import WeakSet

import axe_playwright_python
import pytest
from playwright.sync_api import Error, TimeoutError
from streamlit.proto.BackMsg_pb2 import BackMsg

from kdcal_core.review import Workspace, start_sample

ROOT = Path(__file__).parents[2]
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--metrics-recording-only",
    "--no-first-run",
    "--no-default-browser-check",
    # a dead proxy: whatever is not on this machine fails, and is recorded below
    "--proxy-server=127.0.0.1:9",
    "--proxy-bypass-list=127.0.0.1;localhost",
]
# a page opens in the process of the one before, which has compiled the scripts of both; what draws
# pages has no process of its own, and scripts no threads, nor a compiler for what runs for minutes
ONE_PROCESS = [
    "--renderer-process-limit=1",
    "--disable-site-isolation-trials",
    "--in-process-gpu",
    "--js-flags=--single-threaded --no-opt",
]
# Chromium without windows and what belongs to them: the same pages for less of the processor
SHELL = "chromium-headless-shell"
AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")
# Streamlit's own markup, which the app cannot change
NOT_OURS = ("[data-testid='stSidebarNav']", "[data-testid='stFileUploaderDropzone']")
# the names of their buttons, which every choice, number and figure has
THEIR_BUTTONS = {"Open", "Increment", "Decrement", "Fullscreen", "Reset axes", "Box Select"} | {
    "Download plot as a PNG"
}
BUTTON = re.compile(r"""^ *- '?button "((?:[^"\\]|\\.)*)\"""", re.MULTILINE)
# the rules that another theme of the same page can break
OF_COLOURS = ["color-contrast", "link-in-text-block"]
FAULTS = """async ([left_out, rules]) => {
  const options = {resultTypes: ["violations"], ...(rules ? {runOnly: rules} : {})}
  const found = await axe.run({exclude: left_out.map(one => [one])}, options)
  const labels = [...document.querySelectorAll("[aria-label]")].map(one => one.ariaLabel)
  return found.violations.flatMap(
    rule => rule.nodes.map(node => `${rule.id}: ${node.html.slice(0, 200)}`)
  ).concat(labels.filter(label => /&#?\\w+;/.test(label)).map(label => `read aloud: ${label}`))
}"""
TICK = ".js-plotly-plot .xtick text"
IDLE = (
    "[data-testid='stApp'][data-test-connection-state='CONNECTED']"
    "[data-test-script-state='notRunning']"
)


def _chromium() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((path for name in names if (path := shutil.which(name))), None)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(url: str, server: subprocess.Popen[bytes], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise RuntimeError(f"the server ended with exit code {server.returncode}")
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise RuntimeError("the server did not answer in time")


@pytest.fixture(scope="module", autouse=True)
def _reviews_are_made_here(work_here: None) -> None:
    """What a test lays into the server's home needs no worker processes; the server has its own."""


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server keeps its reviews, for tests that lay one there."""
    return tmp_path_factory.mktemp("workspace")


@contextmanager
def serving(home: Path, log: Path, *options: str) -> Iterator[str]:
    """Address of `streamlit run app`, started as the README says, with further options."""
    port = _free_port()
    command = [sys.executable, "-m", "streamlit", "run", "app", f"--server.port={port}", *options]
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*command, "--server.headless=true", "--server.fileWatcherType=none"],
            cwd=ROOT,
            env={**os.environ, "KDCAL_HOME": str(home)},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
        address = f"http://127.0.0.1:{port}"
        try:
            _wait_for(f"{address}/_stcore/health", process)
            yield address
        finally:
            process.terminate()
            process.wait(timeout=60)


@pytest.fixture(scope="session")
def server(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The server of all tests but those that need their own."""
    with serving(home, tmp_path_factory.mktemp("log") / "server.log") as address:
        yield address


@pytest.fixture(scope="session")
def chromium() -> Iterator[object]:
    """One Chromium for all tests; skipped where there is none, failed where one is required."""
    path = shutil.which(SHELL) or _chromium()
    if path is None:
        reason = "no Chromium or Chrome on the PATH (Debian: apt-get install chromium)"
        if os.environ.get("KDCAL_REQUIRE_BROWSER"):
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*FLAGS, *ONE_PROCESS])
        yield browser
        browser.close()


def colour(text) -> str:
    """The colour of a heading, or of a text in a figure."""
    return str(text.evaluate("one => [getComputedStyle(one).fill, getComputedStyle(one).color]"))


Scheme = Literal["light", "dark"]
APPS: WeakSet[App] = WeakSet()  # those that are open
SIZE = {"width": 1366, "height": 900}
SCREEN = {"width": 1366, "height": 768}  # a laptop's
HEIGHT = """() => Math.round(
  document.querySelector("[data-testid='stMainBlockContainer']").getBoundingClientRect().height)"""
# the lowest end of the main picture's axes, or of all its text where it has none, as it stands when
# the page is not scrolled
PICTURE = """() => {
  const page = document.querySelector("[data-testid='stMainBlockContainer']")
  const plot = document.querySelector(".js-plotly-plot")
  const ticks = plot.querySelectorAll("[class^='xaxislayer'] [class$='tick'] text")
  const texts = ticks.length ? ticks : plot.querySelectorAll(".textpoint text")
  return Math.round(Math.max(...[...texts].map(one => one.getBoundingClientRect().bottom))
    - page.getBoundingClientRect().top)
}"""

# the texts and the parts of legends that a figure's buttons would cover, if it were pointed at
COVERED = """() => [...document.querySelectorAll(".js-plotly-plot")].flatMap(plot => {
  const boxes = [...plot.querySelectorAll(".modebar-btn")].map(one => one.getBoundingClientRect())
  return [...plot.querySelectorAll("text, .legend .traces")].filter(one => {
    const part = one.getBoundingClientRect()
    return part.width && boxes.some(box => box.width && box.left < part.right
      && part.left < box.right && box.top < part.bottom && part.top < box.bottom)
  }).map(one => one.textContent)
})"""

# each click that reaches the page, and on what; told to the console, which survives a new document
CLICKS = """addEventListener("click", event => {
  const on = event.target.closest("button, [role], input, summary, a") ?? event.target
  console.debug(`clicked ${on.innerText?.slice(0, 40) || on.ariaLabel || on.tagName}`)
}, true)"""

# every chart in sight is drawn, none is still to be fetched
DRAWN = """() => [...document.querySelectorAll("[data-testid='stPlotlyChart']")].every(
    one => !one.checkVisibility() || one.querySelector(".main-svg"))
  && !document.querySelector("[data-testid='stMain'] [data-testid='stSkeleton']")"""


class App:
    """A page of the app in the browser, with what went wrong written down.

    One tab serves all tests, as new to the app at the start of each as a newcomer's. A tab of its
    own would compile the scripts of Streamlit and Plotly again, which takes longer than most tests.
    """

    def __init__(self, browser, address: str) -> None:
        self.address = address
        self.scheme: Scheme = "light"  # the system's, which the page follows
        # without motion, which only draws the same things many times while a page waits
        self.context = browser.new_context(reduced_motion="reduce")
        self.context.set_default_timeout(120_000)  # a busy machine opens a page in half a minute
        self.context.add_init_script(CLICKS)
        self.page = self.context.new_page()
        self.outside: list[str] = []
        self.errors: list[str] = []
        self.story: deque[str] = deque(maxlen=25)  # the last clicks, and what the server was asked
        self.context.on("request", self._note_request)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._note_said)
        self.page.on("websocket", lambda socket: socket.on("framesent", self._note_asked))
        APPS.add(self)

    def begin(self) -> None:
        """Forget whatever a test before has left."""
        for page in self.context.pages:
            if page is not self.page:
                page.close()
        if self.page.url.startswith(self.address):
            self.page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
        self.page.goto("about:blank")
        self.context.clear_cookies()
        self.page.set_viewport_size(SIZE)
        self.set_scheme("light")
        self.outside.clear()
        self.errors.clear()
        self.story.clear()

    def _note_request(self, request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.hostname != "127.0.0.1":
            self.outside.append(request.url)

    def _note_said(self, message) -> None:
        if "Content Security Policy" in message.text:
            self.errors.append(message.text)
        if message.text.startswith("clicked "):
            self._note(message.text)

    def _note_asked(self, frame: bytes) -> None:
        asked = BackMsg.FromString(frame)
        if asked.WhichOneof("type") == "rerun_script" and not asked.rerun_script.is_auto_rerun:
            states = asked.rerun_script.widget_states.widgets
            pressed = [one.id[-30:] for one in states if one.trigger_value]
            self._note(f"asked for a run {asked.rerun_script.fragment_id[:6]} {pressed or ''}")

    def _note(self, what: str) -> None:
        self.story.append(f"{time.strftime('%X')} {what}")

    def told(self) -> str:
        """What the page shows and what went before, for the report of a test that failed."""
        state = self.page.evaluate("() => ({...document.querySelector('.stApp')?.dataset})")
        main = self.page.locator("[data-testid='stMain']").aria_snapshot(timeout=5000)
        seen = [f"{time.strftime('%X')} {self.page.url} {state}", *self.errors, main[:2500]]
        return "\n".join([*self.story, *seen])

    def open(self, path: str = "") -> None:
        self.page.goto(f"{self.address}/{path}")
        self.idle()

    def idle(self, seconds: float = 60) -> None:
        self.page.wait_for_timeout(300)
        self.page.wait_for_selector(IDLE, timeout=seconds * 1000)

    def visit(self, title: str) -> None:
        """Change page by the navigation, as a user does."""
        self._choose(title)
        # the link is the current one when the server has begun the page: until then what is
        # waited for next might be found on the page before
        here = self.page.locator('[data-testid="stSidebarNavLink"][aria-current="page"]')
        here.get_by_text(title, exact=True).wait_for(timeout=60_000)
        self.idle()

    def _choose(self, title: str) -> None:
        """Click a page's link, which is drawn anew while the page before it still changes."""
        links = self.page.locator('[data-testid="stSidebarNav"]')
        for _ in range(3):
            # a click has been seen to wait for ever after its link was drawn anew
            with suppress(TimeoutError):
                links.get_by_text(title, exact=True).click(timeout=40_000)
                return
        raise AssertionError(f"no {title} at {self.page.url} among {links.all_inner_texts()}")

    def section(self, title: str) -> None:
        """Open a section below the main picture, by its tab."""
        self.page.get_by_role("tab", name=title, exact=True).click()
        self.idle()

    def unfold(self, title: str) -> None:
        """Open what is folded under this title."""
        self.page.locator("summary").get_by_text(title, exact=True).click()
        self.idle()

    def until(self, holds: Callable[[], bool], seconds: float = 60) -> None:
        """Wait for the page to answer: it may not have begun to when it is looked at first."""
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, "the page did not answer"
            self.page.wait_for_timeout(100)

    def wait_for_text(self, text: str, seconds: float = 60) -> None:
        self.page.get_by_text(text).first.wait_for(timeout=seconds * 1000)

    def wait_for_overview(self, seconds: float = 120) -> None:
        """Wait until a review that was opened or scored shows its verdict."""
        self.page.locator("h1").get_by_text("Overview").wait_for(timeout=seconds * 1000)

    def set_scheme(self, scheme: Scheme) -> None:
        self.scheme = scheme
        self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")

    def turn(self, scheme: Scheme) -> None:
        """Change the system's colour scheme, which the page and its figures follow."""
        heading = self.page.locator("h1").first
        ticks = self.page.locator(TICK)
        shown = [one for one in (heading, ticks.first) if one.count()]
        before = [colour(one) for one in shown]
        self.set_scheme(scheme)
        self.until(lambda: all(colour(one) != was for one, was in zip(shown, before, strict=True)))
        self.idle()

    def both_schemes(self) -> Iterator[Scheme]:
        """The page's scheme and then the other, which it keeps: a change draws all figures anew."""
        yield self.scheme
        self.turn("dark" if self.scheme == "light" else "light")
        yield self.scheme

    def faults(self, *, of_colours: bool = False) -> list[str]:
        """What axe-core finds wrong with the page as it is, and buttons that are named alike.

        Or what is wrong with its colours alone, of a page that was looked at in the other theme.
        """
        self.page.mouse.move(1, 1)  # off what has a tooltip, which is Streamlit's own markup
        if not self.page.evaluate("() => 'axe' in window"):
            self.page.evaluate(AXE.read_text("utf-8"))  # a script tag is refused, as it should be
        asked = [list(NOT_OURS), OF_COLOURS if of_colours else None]
        found: list[str] = self.page.evaluate(FAULTS, asked)
        if found:  # a busy machine may still be changing the colours: what stays is a fault
            self.page.wait_for_timeout(1000)
            found = self.page.evaluate(FAULTS, asked)
        if of_colours:
            return found
        tree = self.page.locator("[data-testid='stMain']").aria_snapshot()
        names = Counter(name for name in BUTTON.findall(tree) if name not in THEIR_BUTTONS)
        return found + [f"{n} buttons: {name}" for name, n in names.items() if n > 1]

    def faults_in_both(self) -> dict[str, list[str]]:
        """What is wrong with the page in either theme, by theme; it keeps the second one."""
        first = self.scheme
        found = {one: self.faults(of_colours=one != first) for one in self.both_schemes()}
        return {theme: faults for theme, faults in found.items() if faults}

    def height(self) -> int:
        """The height of the whole page; every test of it has the width of a laptop."""
        self.page.wait_for_function(DRAWN)
        found: int = self.page.evaluate(HEIGHT)
        return found

    def end_of_picture(self) -> int:
        """The lowest end of the main picture's axes, from the top of the page."""
        self.page.wait_for_function(DRAWN)
        found: int = self.page.evaluate(PICTURE)
        return found

    def assert_short(self, *titles: str) -> None:
        """The main picture is in the first of three screens, whichever of these tabs is open."""
        assert self.end_of_picture() <= SCREEN["height"]
        heights = {"": self.height()}
        for title in titles:
            self.section(title)
            heights[title] = self.height()
        assert max(heights.values()) <= 3 * SCREEN["height"], heights

    def covered(self) -> list[str]:
        """The texts and parts of legends that the buttons of a figure would cover."""
        self.page.wait_for_function(DRAWN)
        found: list[str] = self.page.evaluate(COVERED)
        return found

    def assert_healthy(self) -> None:
        """No exception on the page or in the console, and no request off this machine."""
        shown = self.page.locator('[data-testid="stException"]')
        assert shown.count() == 0, shown.first.inner_text()
        assert self.errors == []
        assert self.outside == []

    def close(self) -> None:
        self.context.close()


def open_sample(app: App, home: Path, sample: str, page: str) -> None:
    """A page of a sample, opened at its address: `test_in_the_browser.py` clicks on samples."""
    app.open(f"{page}?review={start_sample(Workspace(home), sample).id}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[Any]:
    """Beside a failure, what each browser showed: nobody can look at the page afterwards."""
    report = yield
    if report.when == "call" and report.failed:
        for app in [one for one in APPS if not one.page.is_closed()]:
            with suppress(Error):
                report.sections.append(("the page", app.told()))
    return report


@pytest.fixture(scope="session")
def tab(chromium, server: str) -> Iterator[App]:
    running = App(chromium, server)
    yield running
    running.close()


@pytest.fixture
def app(tab: App) -> App:
    """The app's tab, with nothing left of an earlier test."""
    tab.begin()
    return tab
