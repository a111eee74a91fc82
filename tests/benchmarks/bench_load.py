"""Fifty sessions on one server: nothing fails, and the server does not grow.

``python -m tests.benchmarks load`` takes some two minutes, in one of which the sessions click.
``python -m tests.benchmarks.bench_load 10 30`` has ten sessions, which click for thirty seconds.
Every session is a websocket of `bench_visitors`, and looks at one page after the other, with pauses
in which a person reads.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from typing import Any

from tests.benchmarks.bench_visitors import (
    PAGES,
    SAMPLE,
    Visitor,
    open_files,
    resident_mb,
    server,
)

SESSIONS, SECONDS = 50, 60.0
PAUSES = (1.0, 5.0)  # seconds between a page and the next click
COLLECTED = 15.0  # seconds in which garbage is collected
MOST_GROWTH_MB = 50.0
GOAL = 0.5


@dataclass
class Load:
    """What was seen: seconds of each rerun, errors, and MB and descriptors at three moments."""

    reruns: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)
    files: list[int] = field(default_factory=list)

    def look(self, pid: int) -> None:
        self.megabytes.append(resident_mb(pid))
        self.files.append(open_files(pid))

    @property
    def flat(self) -> bool:
        """Whether the server grew by no more than garbage that waits, and opened no more files."""
        start, *_, end = self.megabytes
        return end - start < MOST_GROWTH_MB and max(self.files) - self.files[0] <= 5


def run(sessions: int = SESSIONS, seconds: float = SECONDS) -> list[dict[str, Any]]:
    from kdcal_core.review import Workspace, start_sample

    with tempfile.TemporaryDirectory() as home:
        os.environ["KDCAL_HOME"] = home
        review = start_sample(Workspace(), SAMPLE).id
        with server() as (port, process):
            found = asyncio.run(_loaded(port, review, process.pid, sessions, seconds))
    mb, files = (
        ", ".join(f"{one:,.0f}" for one in several) for several in (found.megabytes, found.files)
    )
    slow = statistics.quantiles(found.reruns, n=20)[-1]
    about = f"{sessions} sessions, {seconds:.0f} s"
    return [
        {
            "name": "load",
            "what": f"{about}: a rerun (the slowest of 20: {slow:.2f} s)",
            "n": len(found.reruns),
            "seconds": statistics.median(found.reruns),
            "goal": GOAL,
        },
        {
            "name": "load",
            "what": f"{about}: errors: {'; '.join(found.errors[:3]) or 'none'}",
            "n": len(found.errors),
            "goal": "none",
        },
        {
            "name": "load",
            "what": f"{about}: MB {mb}; open files {files} (start, middle, end)",
            "goal": f"flat: {'yes' if found.flat else 'no'}",
        },
    ]


async def _loaded(port: int, review: str, pid: int, sessions: int, seconds: float) -> Load:
    """Sessions that stay for so long, each of which has seen every page once at the start."""
    found = Load()
    visitors = [Visitor(port, PAGES[0], review) for _ in range(sessions)]
    for one in visitors:
        await one.__aenter__()
    try:
        for page in PAGES:
            for one in visitors:
                one.page = page
            await asyncio.gather(*(_noted(one, found) for one in visitors))
        found.reruns.clear()  # the first run of a page loads what the others use
        await asyncio.sleep(COLLECTED)
        found.look(pid)
        until = time.monotonic() + seconds
        clicking = asyncio.gather(
            *(_clicks(one, found, until, random.Random(at)) for at, one in enumerate(visitors))
        )
        await asyncio.sleep(seconds / 2)
        found.look(pid)
        await clicking
        await asyncio.sleep(COLLECTED)
        found.look(pid)
    finally:
        for one in visitors:
            await one.__aexit__()
    return found


async def _clicks(one: Visitor, found: Load, until: float, rng: random.Random) -> None:
    while time.monotonic() < until:
        await asyncio.sleep(rng.uniform(*PAUSES))
        one.page = rng.choice(PAGES)
        await _noted(one, found)


async def _noted(one: Visitor, found: Load) -> None:
    try:
        found.reruns.append(await one.run())
        found.errors += [f"{one.page}: {error}" for error in one.errors]
    except Exception as error:
        found.errors.append(f"{one.page}: {type(error).__name__}: {error}")


if __name__ == "__main__":
    given = sys.argv[1:]
    for row in run(int(given[0]), float(given[1])) if given else run():
        print({key: value for key, value in row.items() if key != "name"})
