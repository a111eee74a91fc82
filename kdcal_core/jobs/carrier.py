"""One submitted function carried out: a folder to work in, a worker, the result put into store."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kdcal_core.jobs.elsewhere import run_on
from kdcal_core.jobs.outcome import not_kept
from kdcal_core.jobs.records import Records
from kdcal_core.jobs.results import Results
from kdcal_core.jobs.runner import run_limited
from kdcal_core.progress import Progress


@dataclass(frozen=True)
class Carrier:
    """Where work is done and where its results go.

    Attributes
    ----------
    records, results
        Folder of this process; store.
    executor : Executor or None
        Whose workers do it; None for a limited process of its own.
    """

    records: Records
    results: Results
    executor: Executor | None

    def carry_out(
        self,
        job_id: str,
        target: str,
        kwargs: Mapping[str, Any],
        *,
        what: str,
        key: str,
        seconds: float,
        memory_bytes: int | None,
        progress: Progress,
        cancelled: Callable[[], bool],
    ) -> Any:
        """The function's result, stored where there is a key.

        Raises
        ------
        InputError, Cancelled
            As `run_limited`, and where the disk does not take the files.
        """
        if self.executor is None and not key:  # needs no files, so no disk can hinder it
            return run_limited(
                target, kwargs, seconds=seconds, memory_bytes=memory_bytes, progress=progress,
                cancelled=cancelled, what=what,
            )  # fmt: skip
        with self._desk(job_id, what) as desk:
            draft = desk / "draft"
            folder = self.results.begin(draft) if key else None
            if self.executor is None:
                result = run_limited(
                    target, kwargs, seconds=seconds, memory_bytes=memory_bytes, folder=folder,
                    progress=progress, cancelled=cancelled, what=what,
                )  # fmt: skip
            else:
                result = run_on(
                    self.executor, target, kwargs, mailbox=desk / "mail", seconds=seconds,
                    folder=folder, progress=progress, cancelled=cancelled, what=what,
                )  # fmt: skip
            if key:
                self.results.keep(key, draft, result)
            return result

    @contextlib.contextmanager
    def _desk(self, job_id: str, what: str) -> Iterator[Path]:
        """A path for the files of a job at work; made by whoever needs it."""
        try:
            desk = self.records.folder() / "work" / job_id
            try:
                yield desk
            finally:
                shutil.rmtree(desk, ignore_errors=True)
        except OSError as error:
            raise not_kept(what, error.strerror or type(error).__name__) from error
