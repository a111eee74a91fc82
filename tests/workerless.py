"""What worker processes do, done in the test's own process.

A worker takes a second or more to start, before it does anything. That it is started, limited,
stopped and survived is tried in tests/jobs and, with hostile files and whole jobs, wherever a test
does without the fixture `work_here` or undoes it with `real_workers`. What is said and done is the
same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from kdcal_core.jobs import Cancelled
from kdcal_core.jobs.outcome import answer, value_of
from kdcal_core.jobs.runner import parse
from kdcal_core.progress import Progress

# where files and folders are read, where jobs of pages are carried out, commands, gates, watches
USERS = (
    "kdcal_core.review.changes",
    "kdcal_core.review.folder_summary",
    "kdcal_core.models.model_signature",
    "kdcal_core.review.samples",
    "kdcal_core.jobs.carrier",
    "kdcal_core.cli.calibrate",
    "kdcal_core.cli.calibrate_regression",
    "kdcal_core.cli.score",
    "kdcal_core.audit.gate_files",
    "kdcal_core.audit.watch_files",
)


def run_here(
    target: str,
    kwargs: Mapping[str, Any],
    *,
    folder: Path | None = None,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    what: str = "This step",
    **limits: float,
) -> Any:
    """As `kdcal_core.jobs.run_limited`, but in this process and without its limits."""

    def report(share: float, note: str = "") -> None:
        assert 0 <= share <= 1
        assert isinstance(note, str)
        if cancelled is not None and cancelled():
            raise Cancelled(what)
        if progress is not None:
            progress(share, note)

    place = None if folder is None else str(folder)
    sent = json.loads(json.dumps(dict(kwargs), allow_nan=False))
    return value_of(parse(answer(target, sent, place, report).encode()), what)


@contextmanager
def working_here(run: Callable[..., Any] = run_here) -> Iterator[None]:
    """Files are read and jobs are carried out by ``run``: in this process."""
    with pytest.MonkeyPatch.context() as patch:
        for name in USERS:
            patch.setattr(import_module(name), "run_limited", run)
        yield
