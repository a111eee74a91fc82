"""The server process: collection of garbage, open files, and what its log says."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import re
import subprocess
import sys
import threading
import time
import tomllib
import weakref
from collections import defaultdict
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.shared import server_process
from kdcal_core.jobs import Confinement
from tests.benchmarks.bench_visitors import Visitor, open_files, server

resource = pytest.importorskip("resource")  # of open files, on all but Windows
ROOT = Path(__file__).parents[2]
CONFIG = tomllib.loads((ROOT / "app/.streamlit/config.toml").read_text(encoding="utf-8"))


class Cycle:
    """An object that only the garbage collector can free."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture
def frozen_no_more() -> Iterator[None]:
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("frozen_no_more")
def test_a_collector_of_our_own_stands_in_for_the_one_after_every_run() -> None:
    assert CONFIG["runner"]["postScriptGC"] is False
    collector = server_process.Collector()
    early = weakref.ref(Cycle())
    assert collector.collect(n_modules=10, now=0.0) == "whole"
    assert early() is None
    assert gc.get_freeze_count() > 10_000  # the imports' objects are walked through no more

    late = weakref.ref(Cycle())
    assert collector.collect(n_modules=10, now=10.0) == "rest"
    assert late() is None


@pytest.mark.usefixtures("frozen_no_more")
def test_what_was_in_use_when_objects_were_frozen_is_freed_later() -> None:
    collector = server_process.Collector()
    held = [Cycle()]  # as an open session's state
    reference = weakref.ref(held[0])
    collector.collect(n_modules=10, now=0.0)
    held.clear()
    assert collector.collect(n_modules=10, now=10.0) == "rest"
    assert reference() is not None  # frozen
    assert collector.collect(n_modules=10, now=700.0) == "whole"
    assert reference() is None


@pytest.mark.usefixtures("frozen_no_more")
def test_libraries_imported_later_are_frozen_too() -> None:
    collector = server_process.Collector()
    collector.collect(n_modules=10, now=0.0)
    assert collector.collect(n_modules=11, now=10.0) == "whole"


FIRST_PAGE = """
import sys
from streamlit.testing.v1 import AppTest
app = AppTest.from_file("app/main.py", default_timeout=60)
sys.path.insert(0, ".")
from app.shared import server_process
server_process._prepare = lambda: None
app.run()
assert not app.exception, app.exception
print(*(title.value for title in app.title), *sorted(SLOW & sys.modules.keys()))
"""
SLOW = {"sklearn", "scipy.stats", "sqlalchemy", "alembic", "torch", "kdcal_core.tasks"}


def test_the_first_page_imports_no_library_that_is_slow_to_load(tmp_path: Path) -> None:
    script = f"SLOW = {SLOW!r}\n{FIRST_PAGE}"
    found = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=ROOT,
        env={**os.environ, "KDCAL_HOME": str(tmp_path)},
    )
    assert found.stdout.split() == ["Load"], found.stderr


@pytest.fixture
def server_starts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a server does while it starts, in order; its imports take a while."""
    done: list[str] = []

    def slowly(module: str) -> None:
        time.sleep(0.05)
        done.append(module)

    monkeypatch.setattr(server_process, "import_module", slowly)
    monkeypatch.setattr(server_process, "_prepare", lambda: done.append("workers"))
    monkeypatch.setattr(server_process, "_preparing", [])
    events = {name: threading.Event() for name in ("first", "others")}
    monkeypatch.setattr(server_process, "_imported", events)
    return done


async def _serve() -> None:
    async with server_process.while_serving(None):
        pass


def test_a_page_waits_for_its_imports_and_workers_come_last(server_starts: list[str]) -> None:
    asyncio.run(_serve())
    server_process.begin()
    assert server_starts[:3] == list(server_process.FIRST_IMPORT)
    server_process.ready_for_all_pages()
    assert server_starts[3:6] == list(server_process.OTHERS_IMPORT)
    server_process._preparing[0].join()
    assert server_starts[6:] == ["workers"]


def test_a_page_is_shown_even_where_an_import_fails(
    server_starts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(module: str) -> None:
        raise ImportError(module)

    monkeypatch.setattr(server_process, "import_module", fail)
    asyncio.run(_serve())
    server_process.begin()
    server_process.ready_for_all_pages()
    server_process._preparing[0].join()
    assert server_starts == ["workers"]


def test_the_soft_limit_of_open_files_is_raised_to_the_hard_one() -> None:
    script = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (80, 300));"
        "from app.shared.server_process import raise_descriptor_limit as f; f();"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "(300, 300)"
    assert re.search(r"\b300 files\b.*\b60 visitors\b", done.stderr)


def _in_a_thread(work: Coroutine[None, None, None]) -> None:
    """Run a coroutine elsewhere: this thread may have a loop already, of the browser's tests."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, work).result()


def _visits(port: int, n: int, pause: float = 0.0) -> None:
    """Visitors who open the app one after the other and leave."""

    async def visit() -> None:
        for _ in range(n):
            async with Visitor(port, "load") as one:
                await one.run()
            await asyncio.sleep(pause)

    _in_a_thread(visit())


def test_the_visitors_beyond_the_soft_limit_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path / "home"))

    def lowered() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 4096))

    with server(preexec=lowered) as (port, _):
        _visits(port, 45)  # three descriptors each


def test_sessions_that_were_left_free_their_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below a hard limit that is low, visitors who come later find a place again."""
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path / "home"))
    assert CONFIG["server"]["disconnectedSessionTTL"] <= 300

    def lowered() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))

    with server("--server.disconnectedSessionTTL=1", preexec=lowered) as (port, process):
        _visits(port, 45, pause=0.05)
        before = _files_at_rest(port, process.pid)
        _in_a_thread(_come_and_go(port, 20))
        assert _files_at_rest(port, process.pid) <= before


async def _come_and_go(port: int, n: int) -> None:
    """Visitors who are there at once."""
    visitors = [await Visitor(port, "load").__aenter__() for _ in range(n)]
    await asyncio.gather(*(one.run() for one in visitors))
    for one in visitors:
        await one.__aexit__()


def _files_at_rest(port: int, pid: int) -> int:
    """Open files when all sessions but one have expired, which a new visit makes them do.

    A busy server may still be closing some: the number counts once a visit leaves it as it is.
    """
    found = [-1]
    while found[-1] != (now := _files_after_a_visit(port, pid)):
        found.append(now)
        assert len(found) < 20, found
    return now


def _files_after_a_visit(port: int, pid: int) -> int:
    time.sleep(1.2)
    _visits(port, 1)
    time.sleep(0.3)
    return open_files(pid)


def test_a_poll_that_comes_too_late_is_not_logged() -> None:
    source = Path(sys.modules["streamlit"].__file__ or "").parent / "runtime/app_session.py"
    words = "The fragment with id %s does not exist anymore"
    assert words in source.read_text(encoding="utf-8")  # this version's words

    def kept(message: str) -> bool:
        record = logging.LogRecord("streamlit", logging.INFO, "", 0, message, ("a",), None)
        return server_process.not_a_late_poll(record)

    assert not kept(words)
    assert kept("Something else %s")


@pytest.mark.parametrize("why", ["", "only Linux has Landlock"])
def test_the_log_says_where_processes_cannot_be_limited(
    why: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("prepare_workers", "import_module"):
        monkeypatch.setattr(server_process, name, lambda *given: None)
    monkeypatch.setattr(server_process, "confinement", lambda: Confinement(not why, not why, why))
    monkeypatch.setattr(server_process, "_imported", defaultdict(threading.Event))
    server_process._prepare_all()
    assert [why in one for one in caplog.messages] == [True] * bool(why)
