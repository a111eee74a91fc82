"""What the server process sets up once: garbage collection, threads, descriptors, its log.

Streamlit's own setting collects all generations of objects after every run of a page. This
process holds torch, scikit-learn, onnx and plotly, and walking through their million objects took
two thirds of every run. So ``runner.postScriptGC`` is off (`app/.streamlit/config.toml`), and a
thread here collects in its place: what the imports made is frozen, that is left out of every
collection, and the rest is walked through every few seconds while somebody uses the app.

Each page runs in a thread of its own. Products of vectors and matrices therefore stay in that
thread: where visitors are many, the threads of BLAS wait for each other longer than they compute
(24,000 products took 7 ms instead of .01 on two busy cores). Long work has its own process.
"""

from __future__ import annotations

import gc
import logging
import sys
import threading
import time

from threadpoolctl import threadpool_limits

_EVERY = 10.0  # seconds between collections
_WHOLE_EVERY = 600.0  # seconds after which the frozen objects are looked at too
_ENOUGH = 65_536  # descriptors; a limit far above costs some systems time at every new process
_FEW = 1024
_log = logging.getLogger(__name__)
_lock = threading.Lock()
_state = {"begun": False, "runs": 0}


def begin() -> None:
    """Set the process up at its first run of a page; at each later one only note the run."""
    with _lock:
        _state["runs"] += 1
        if _state["begun"]:
            return
        _state["begun"] = True
    threadpool_limits(1, user_api="blas")
    raise_descriptor_limit()
    logging.getLogger("streamlit.runtime.app_session").addFilter(not_a_late_poll)
    threading.Thread(target=_collect_for_ever, name="kdcal-collector", daemon=True).start()


class Collector:
    """Decides what a collection walks through.

    Examples
    --------
    >>> collector = Collector()
    >>> collector.collect(n_modules=100, now=0.0)  # the libraries' objects are frozen
    'whole'
    >>> collector.collect(n_modules=100, now=10.0)
    'rest'
    >>> collector.collect(n_modules=160, now=20.0)  # a page has imported another library
    'whole'
    >>> gc.unfreeze()
    """

    def __init__(self) -> None:
        self._n_modules = 0
        self._last_whole = 0.0

    def collect(self, *, n_modules: int, now: float) -> str:
        """Collect once. Returns "whole" where frozen objects were walked through, else "rest".

        Freezing catches the open sessions' objects as well. One that is used no longer and is
        part of a cycle waits for the next whole collection, so there is one every ten minutes.
        """
        if n_modules == self._n_modules and now - self._last_whole < _WHOLE_EVERY:
            gc.collect()
            return "rest"
        self._n_modules, self._last_whole = n_modules, now
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        return "whole"


def _collect_for_ever() -> None:
    collector, seen = Collector(), 0
    while True:
        time.sleep(_EVERY)
        runs = _state["runs"]
        if runs != seen:  # nobody used the app: nothing has been left behind
            seen = runs
            collector.collect(n_modules=len(sys.modules), now=time.monotonic())


def raise_descriptor_limit() -> None:
    """Let this process open as many files as the system allows.

    Every open session holds three descriptors and a socket, so that the usual limit of 1,024, or
    256 on macOS, is one of visitors.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < most:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        except (OSError, ValueError) as error:
            _log.warning("The limit of open files stays at %d: %s", soft, error)
            most = soft
    if most < _FEW:
        _log.warning(
            "The system lets this server open %d files, which is enough for about %d visitors at "
            "once. Raise the limit of open files (ulimit -n) if there are more.",
            most,
            max((most - 60) // 4, 1),
        )


def not_a_late_poll(record: logging.LogRecord) -> bool:
    """Whether a line of Streamlit's log reports more than one late poll of a browser.

    A job's progress is a fragment that the browser asks for twice a second. When the job ends the
    page runs again without it, and a poll that is under way by then finds no fragment. It is
    dropped, which is right, so there is nothing to report.
    """
    return not str(record.msg).startswith("The fragment with id")
