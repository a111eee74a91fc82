"""A real server and its visitors: how long a click takes, what 200 sessions and large tables leave.

Every visitor is a websocket that asks for a page as a browser does and waits until the run has
ended.
"""

from __future__ import annotations

import asyncio
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

ROOT = Path(__file__).parents[2]
SAMPLE = "adult"
PAGES = ("load", "reliability", "confidence_by_class", "regions")
REPEATS = 7
SESSIONS = 200
AT_ONCE = 5  # of the 200
LARGE_ROWS, SEED = 10_000_000, 0
LARGE_PAGES = (("reliability", 3), ("decisions", 3), ("confidence_by_class", 3))  # and charts
FORECAST_PAGES = (("overview", 1), ("pit", 2))
PATIENCE = 900  # seconds for one of them


def run() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as home:
        os.environ["KDCAL_HOME"] = home
        review = _review()
        with server() as (port, process):
            seconds = asyncio.run(_clicks(port, review, process.pid))
            sizes = asyncio.run(_sessions(port, review, process.pid))
    rows: list[dict[str, Any]] = [
        {
            "name": "visitors",
            "what": what,
            "seconds": took,
            "goal": 0.25 if "alone" in what else None,
        }
        for what, took in seconds.items()
    ]
    words = ", ".join(f"after {n} {size:.0f}" for n, size in sizes.items())
    sessions = {"name": "visitors", "what": f"MB of the server by sessions: {words}"}
    return [*rows, sessions, *large()]


def large() -> list[dict[str, Any]]:
    """What pages about very many rows take in the server, and how long until they are whole."""
    rows = []
    for rows_of, pages in ((predictions, LARGE_PAGES), (forecasts, FORECAST_PAGES)):
        with tempfile.TemporaryDirectory() as home:
            os.environ["KDCAL_HOME"] = home
            review = rows_of(LARGE_ROWS)
            with server() as (port, process):
                rows += asyncio.run(_large(port, review, process.pid, pages))
    return rows


async def _large(
    port: int, review: str, pid: int, pages: Sequence[tuple[str, int]]
) -> list[dict[str, Any]]:
    rows = []
    async with Visitor(port, "load", review) as one:
        await one.run()
        await asyncio.sleep(30)
        await one.run()
        rows.append({"name": "large", "what": f"Load: {memory_in_words(pid)}"})
        for page, charts in pages:
            one.page = page
            start = time.perf_counter()
            while await one.run() and one.charts < charts:
                assert time.perf_counter() - start < PATIENCE, f"{page} has {one.charts} charts"
                await asyncio.sleep(0.5)
            whole = time.perf_counter() - start
            await asyncio.sleep(15)  # one collection in the quiet
            again = statistics.median([await one.run() for _ in range(REPEATS)])
            what = f"{page}: {memory_in_words(pid)}; a rerun {again:.2f} s"
            rows.append({"name": "large", "what": what, "n": LARGE_ROWS, "seconds": whole})
    return rows


def predictions(n: int) -> str:
    """A review of predictions of two classes, over-confident. Returns its id."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(SEED)
    logit = rng.normal(size=n) * 1.5
    stated = 1.0 / (1.0 + np.exp(-1.4 * logit))
    true = rng.random(n) < 1.0 / (1.0 + np.exp(-logit))
    return _reviewed(
        pd.DataFrame({"proba_0": 1.0 - stated, "proba_1": stated, "label": true.astype(int)})
    )


def forecasts(n: int) -> str:
    """A review of normal predictions, over-confident. Returns its id."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(SEED)
    mean = rng.normal(size=n)
    outcome = mean + 1.2 * rng.normal(size=n)
    return _reviewed(pd.DataFrame({"target": outcome, "mean": mean, "std": np.ones(n)}))


def _reviewed(frame: pd.DataFrame) -> str:
    from kdcal_core.review import Workspace, add_table, create_review, score

    workspace = Workspace()
    review = create_review(workspace)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "predictions.parquet"
        frame.to_parquet(path)
        add_table(workspace, review.id, "calibration", path, path.name)
    return score(workspace, review.id).id


def _review() -> str:
    from kdcal_core.review import Workspace, start_sample

    return start_sample(Workspace(), SAMPLE).id


async def _clicks(port: int, review: str, pid: int) -> dict[str, float]:
    """Seconds a rerun: of one visitor on each page, of ten and of thirty at once.

    Medians by the clock, and means of the server's processor time, which neighbours disturb less.
    """
    found = {}
    for page in PAGES:
        async with Visitor(port, page, review) as one:
            await one.run()
            await one.run()
            start = processor_seconds(pid)
            times = [await one.run() for _ in range(REPEATS)]
        found[f"a rerun of {page}, alone"] = statistics.median(times)
        spent = (processor_seconds(pid) - start) / REPEATS
        found[f"a rerun of {page}, alone, processor time"] = spent
    for crowd in (10, 30):
        visitors = [
            await Visitor(port, PAGES[1 + i % 3], review).__aenter__() for i in range(crowd)
        ]
        await asyncio.gather(*(one.run() for one in visitors))
        times, start = [], processor_seconds(pid)
        for _ in range(3):
            times += await asyncio.gather(*(one.run() for one in visitors))
        found[f"a rerun, {crowd} visitors at once"] = statistics.median(times)
        spent = (processor_seconds(pid) - start) / len(times)
        found[f"a rerun, {crowd} visitors at once, processor time"] = spent
        for one in visitors:
            await one.__aexit__()
    return found


async def _sessions(port: int, review: str, pid: int) -> dict[int, float]:
    """Resident MB of the server after so many sessions, each of which saw four pages and left."""
    sizes = {}

    async def visit() -> None:
        async with Visitor(port, "load", review) as one:
            for page in PAGES:
                one.page = page
                await one.run()

    for done in range(AT_ONCE, SESSIONS + 1, AT_ONCE):
        await asyncio.gather(*(visit() for _ in range(AT_ONCE)))
        if done % 50 == 0:
            sizes[done] = resident_mb(pid)
    await asyncio.sleep(30)  # one collection in the quiet
    sizes[SESSIONS] = resident_mb(pid)
    return sizes


class Visitor:
    """One browser's websocket."""

    def __init__(self, port: int, page: str, review: str = "") -> None:
        self.page = page
        self._address = f"ws://127.0.0.1:{port}/_stcore/stream"
        self._origin = f"http://127.0.0.1:{port}"
        self._query = f"review={review}" if review else ""
        self.charts = 0  # that the last run drew
        self.errors: list[str] = []  # that it showed

    async def __aenter__(self) -> Visitor:
        from websockets.asyncio.client import connect

        self._socket = await connect(
            self._address,
            origin=self._origin,
            subprotocols=["streamlit"],
            max_size=None,
            proxy=None,
            open_timeout=60,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._socket.close()

    async def run(self, page_name: str | None = None) -> float:
        """Ask for the page and wait for the end of the run. Returns the seconds it took."""
        from streamlit.proto.BackMsg_pb2 import BackMsg
        from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

        ask = BackMsg()
        ask.rerun_script.query_string = self._query
        ask.rerun_script.page_name = "" if self.page == "load" else page_name or self.page
        start = time.perf_counter()
        self.charts, self.errors = 0, []
        await self._socket.send(ask.SerializeToString())
        while True:
            message = ForwardMsg()
            message.ParseFromString(await asyncio.wait_for(self._socket.recv(), 600))
            drawn = message.delta.new_element
            self.charts += drawn.WhichOneof("type") == "plotly_chart"
            if drawn.WhichOneof("type") == "exception":
                self.errors.append(f"{drawn.exception.type}: {drawn.exception.message}")
            if drawn.WhichOneof("type") == "alert" and drawn.alert.format == drawn.alert.ERROR:
                self.errors.append(drawn.alert.body)
            if message.WhichOneof("type") == "script_finished":
                if message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY:
                    return time.perf_counter() - start
                if message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                    raise RuntimeError("the script did not run to its end")


@contextmanager
def server(
    *flags: str, script: str = "app", preexec: Any = None, log: Any = subprocess.DEVNULL
) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """`streamlit run app`, or of another script, on a free port, until the body ends."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "streamlit", "run", script, f"--server.port={port}"]
    process = subprocess.Popen(
        [*command, "--server.headless=true", "--server.fileWatcherType=none", *flags],
        cwd=ROOT,
        stdout=log,
        stderr=subprocess.STDOUT,
        preexec_fn=preexec,
    )
    try:
        _wait(port, process)
        yield port, process
    finally:
        process.terminate()
        process.wait(60)


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        if process.poll() is not None:
            raise RuntimeError("the server ended")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError("the server did not answer")


def processor_seconds(pid: int) -> float:
    """Processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float:
    """Resident memory of a process, in MB."""
    text = Path(f"/proc/{pid}/statm").read_text()
    return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def open_files(pid: int) -> int:
    """Descriptors that a process has open."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def memory_in_words(pid: int) -> str:
    """What a process holds itself, what files it has mapped, and the most it ever held, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    kb = {
        name: float(rest.split()[0])
        for name, _, rest in (x.partition(":") for x in lines)
        if rest.endswith(" kB")
    }
    own, files, peak = (kb[name] / 1024 for name in ("RssAnon", "RssFile", "VmHWM"))
    return f"{own:.0f} MB of its own, {files:.0f} of files, peak {peak:.0f}"
