"""A job in a real browser: it outlives its page, its tab and its server, and stops on request."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

HERE = Path(__file__).parent
SIDEBAR = '[data-testid="stSidebar"]'


class Server:
    """The small app of this test, which can be killed and started again at the same place."""

    def __init__(self, home: Path, port: int) -> None:
        self.home = home
        self.port = port
        self.address = f"http://127.0.0.1:{self.port}"

    def start(self, **more: str) -> None:
        command = [sys.executable, "-m", "streamlit", "run", str(HERE / "jobs_app.py")]
        self.process = subprocess.Popen(
            [*command, f"--server.port={self.port}", "--server.address=127.0.0.1",
             "--server.headless=true", "--server.fileWatcherType=none",
             "--browser.gatherUsageStats=false"],
            env={**os.environ, "KDCAL_HOME": str(self.home), **more},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until(self.answers, 60)

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.address}/_stcore/health", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture(scope="module")
def port() -> int:
    """One for all servers, whose scripts Chromium then compiles once."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, port: int) -> Iterator[Server]:
    """A minute a job, unless it is told to hurry: not over before it is looked at."""
    started = Server(tmp_path_factory.mktemp("jobs"), port)
    started.start(STEPS="600")
    yield started
    started.kill()


@pytest.fixture
def server(running: Server, request: pytest.FixtureRequest) -> Server:
    """The server of all tests, each with a job of its own, in a place that knows no job of it."""
    (running.home / "hurry").unlink(missing_ok=True)
    (running.home / "name").write_text(request.node.name)
    return running


@pytest.fixture(scope="module")
def window(chromium):
    """The window of all tests, with a tab that stays and keeps what is compiled."""
    size = {"width": 1200, "height": 800}
    opened = chromium.new_context(viewport=size, reduced_motion="reduce")
    opened.set_default_timeout(60_000)
    opened.new_page()
    yield opened
    opened.close()


@pytest.fixture
def context(window, server: Server):
    """The window with no tab of the app, as a newcomer has it."""
    yield window
    (server.home / "hurry").touch()
    for page in window.pages[1:]:
        badge(page).wait_for(state="detached")  # the next test's job is the only one
        page.close()
    window.clear_cookies()


def tab(context, server: Server, path: str = ""):
    page = context.new_page()
    page.goto(f"{server.address}/{path}")
    return page


def badge(page):
    """The badge's text while the job runs."""
    return page.locator(SIDEBAR).get_by_text(re.compile(r"Counting \(step \d+\)"))


def step(page) -> int:
    found = re.search(r"step (\d+)", badge(page).inner_text())
    assert found
    return int(found.group(1))


def visit(page, title: str) -> None:
    page.locator('[data-testid="stSidebarNav"]').get_by_text(title, exact=True).click()


def test_a_job_outlives_its_page_and_its_tab_and_its_end_is_seen_once(context, server):
    page = tab(context, server)
    page.get_by_role("button", name="Begin").click()
    badge(page).wait_for()
    visit(page, "Other")
    page.get_by_text("Elsewhere").wait_for()
    seen = step(page)
    page.reload()
    badge(page).wait_for()
    assert step(page) >= seen
    second = tab(context, server)  # shows where the result will be
    badge(second).wait_for()
    page.close()
    (server.home / "hurry").touch()
    second.get_by_text("Counted to 600").wait_for()
    second.locator(SIDEBAR).get_by_text("Counting: done").wait_for()
    # the page ran to begin with and once more when the job had ended
    second.get_by_text("Run 2", exact=True).wait_for()
    second.wait_for_timeout(1500)
    second.get_by_text("Run 2", exact=True).wait_for()
    again = tab(context, server)
    again.get_by_text("Counted to 600").wait_for()
    again.get_by_text("Run 1", exact=True).wait_for()


def test_the_error_of_a_click_stays_when_a_job_ends(context, server):
    page = tab(context, server)
    page.get_by_role("button", name="Begin").click()
    badge(page).wait_for()
    visit(page, "Other")
    page.get_by_role("button", name="Act").click()
    error = page.get_by_text("It cannot be done")
    error.wait_for()
    (server.home / "hurry").touch()
    page.locator(SIDEBAR).get_by_text("Counting: done").wait_for()  # by another run of the page
    page.wait_for_timeout(1500)
    assert error.count() == 1
    page.get_by_role("slider").press("ArrowRight")  # whoever goes on has read it
    error.wait_for(state="detached")


def test_a_second_tab_stops_the_job_from_another_page(context, server):
    first = tab(context, server)
    first.get_by_role("button", name="Begin").click()
    badge(first).wait_for()
    second = tab(context, server, "other")
    badge(second).wait_for()
    second.locator(SIDEBAR).get_by_role("button", name="Stop").click()
    for page in (first, second):
        page.locator(SIDEBAR).get_by_text("Counting: stopped").wait_for()
    first.get_by_text("Stopped before it ended.").wait_for()
    first.get_by_role("button", name="Start again").click()
    badge(first).wait_for()


def test_after_the_server_was_killed_the_job_is_called_interrupted(context, server):
    page = tab(context, server)
    page.get_by_role("button", name="Begin").click()
    badge(page).wait_for()
    server.kill()
    server.start(STEPS="60")
    page.goto(server.address)
    page.get_by_text("Counting was interrupted").first.wait_for()
    page.get_by_role("button", name="Start again").click()
    badge(page).wait_for()
    page.get_by_text("Counted to 60").wait_for()
    page.locator(SIDEBAR).get_by_text("Counting: done").wait_for()
    assert page.get_by_text("interrupted").count() == 0


def test_a_job_goes_on_while_a_tab_is_open_and_stops_when_none_is(context, server):
    server.kill()
    server.start(KDCAL_GRACE_MINUTES="0.05", STEPS="300")  # 3 seconds, of 30 that it takes
    page = tab(context, server)
    page.get_by_role("button", name="Begin").click()
    badge(page).wait_for()
    page.wait_for_timeout(5000)
    page.reload()
    badge(page).wait_for()
    assert step(page) > 30
    page.close()
    time.sleep(5)
    page = tab(context, server)
    why = "Counting was stopped, because nobody had its page open for 3 seconds"
    page.locator(SIDEBAR).get_by_text(why).wait_for()
    page.get_by_role("button", name="Start again").click()
    badge(page).wait_for()
