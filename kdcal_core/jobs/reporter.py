"""The ``progress`` that a function of the core gets: it reports, and tells it to stop."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

from kdcal_core.jobs.cancel import Cancelled
from kdcal_core.progress import Progress

EVERY = 0.1  # seconds between two reports; a function may call progress as often as it likes


class Reporter:
    """Callable ``(share, note)``. Passes on the newest call, at most ten times a second.

    A thread does the sending, so that the last word before a long silence is said too, and a
    slow listener never holds up the work.

    Parameters
    ----------
    send : callable
        Gets a share from 0 to 1 and a note.
    asked : callable
        Whether the work was asked to stop; then the next call raises `Cancelled`, inside the
        function, which may clean up.

    Examples
    --------
    >>> heard = []
    >>> with Reporter(lambda *news: heard.append(news), lambda: False) as progress:
    ...     progress(0.5, "halfway")
    >>> heard
    [(0.5, 'halfway')]
    """

    def __init__(self, send: Progress, asked: Callable[[], bool]) -> None:
        self._send = send
        self._asked = asked
        self._newest: tuple[float, str] | None = None
        self._news = threading.Condition()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._pass_on, daemon=True)

    def __enter__(self) -> Reporter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._news:
            self._closed.set()
            self._news.notify_all()
        self._thread.join()

    def __call__(self, share: float, note: str = "") -> None:
        if self._asked():
            raise Cancelled
        with self._news:
            self._newest = min(1.0, max(0.0, float(share))), str(note)
            self._news.notify_all()

    def _pass_on(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: self._newest is not None or self._closed.is_set())
                newest, self._newest = self._newest, None
            if newest is not None:
                with contextlib.suppress(OSError):  # nobody listens any more
                    self._send(*newest)
            elif self._closed.is_set():
                return
            self._closed.wait(EVERY)
