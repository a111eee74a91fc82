"""Setup of the server process: garbage collection, threads, file descriptors, its log.

By default Streamlit collects all generations of objects after every run of a page. This process has
loaded torch, scikit-learn, onnx and plotly, and visiting their million objects took two thirds of
every run. ``runner.postScriptGC`` is therefore off (`app/.streamlit/config.toml`), and a thread
here collects instead. Objects from imports are frozen, that is, left out of every collection. The
rest is collected every few seconds while the app is in use.

Each page runs in its own thread, and products of vectors and matrices stay in that thread. With
many visitors the threads of BLAS wait for each other longer than they compute (24,000 products took
7 ms instead of .01 on two busy cores). Long work has its own process, forked from one that has
imported the libraries. Kernels are compiled in the background when the server starts, and what the
pages import is imported before the first visitor's browser has loaded its scripts.
"""

from __future__ import annotations

import gc
import logging
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from streamlit import config
from threadpoolctl import threadpool_limits

from kdcal_core.errors import InputError
from kdcal_core.jobs import confinement, prepare_workers, run_limited
from kdcal_core.quotas import UPLOAD, check_quotas

# what the workers of the app import: the core's tasks, what opens a scikit-learn model, and what
# runs compiled kernels
WORKERS_IMPORT = ("kdcal_core.tasks", "kdcal_core.skops_library", "kdcal_core.tasks.kernels")
# what the first page imports, and what all others do, which takes much longer
FIRST_IMPORT = ("kdcal_core.review", "app.load.load_parts", "app.load.kept_reviews")
OTHERS_IMPORT = ("kdcal_core.audit", "app.load.fitness_card", "app.overview.overview_parts")
_EVERY = 10.0  # seconds between collections
_WHOLE_EVERY = 600.0  # seconds after which the frozen objects are also collected
_ENOUGH = 65_536  # descriptors; with a far higher limit, new processes are slow on some systems
_FEW = 1024
_log = logging.getLogger(__name__)
_lock = threading.Lock()
_state = {"begun": False, "limited": False, "runs": 0}
_preparing: list[threading.Thread] = []
_imported = {"first": threading.Event(), "others": threading.Event()}


def apply_quotas() -> None:
    """Check the limits that the environment sets, and give Streamlit that of uploads.

    The process ends with one line where a value is nonsense.
    """
    try:
        check_quotas()
    except InputError as error:
        raise SystemExit(f"kdcal: {error}") from None
    if config.is_manually_set("server.maxUploadSize"):
        _log.warning("server.maxUploadSize is not used. Set %s instead.", UPLOAD.variable)
    config.set_option("server.maxUploadSize", UPLOAD.amount >> 20)


@asynccontextmanager
async def while_serving(app: Any) -> AsyncIterator[None]:
    """Prepare for the first visitor while the server starts; nothing to do when it ends."""
    _preparing.append(_started(_prepare_all, "kdcal-preparation"))
    yield


def begin() -> None:
    """Set up the process in its first run of a page; in later ones only record the run."""
    _wait_for("first")
    with _lock:
        _state["runs"] += 1
        if _state["begun"]:
            return
        _state["begun"] = True
    if not _preparing:  # another server than ours runs the script
        _started(_prepare, "kdcal-preparation")
    raise_descriptor_limit()
    logging.getLogger("streamlit.runtime.app_session").addFilter(not_a_late_poll)
    _started(_collect_for_ever, "kdcal-collector")


def ready_for_all_pages() -> None:
    """Wait until what pages import is there: all but the first one without a review do."""
    _wait_for("others")
    if not _state["limited"]:
        _state["limited"] = True
        threadpool_limits(1, user_api="blas")  # of the libraries that are loaded by now


def _wait_for(imports: str) -> None:
    """Let no page import beside the preparation: it could see a package half-made."""
    if _preparing:
        _imported[imports].wait()


def _started(work: Any, name: str) -> threading.Thread:
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread


def _prepare_all() -> None:
    """Import what pages need and, beside it on another core, what workers do."""
    prepare_workers(_installed())
    _note_confinement()
    for name, modules in (("first", FIRST_IMPORT), ("others", OTHERS_IMPORT)):
        try:
            for module in modules:
                import_module(module)
        except Exception:  # pages that import it meet the error as well, and show it
            _log.exception("An import failed while the server started")
        _imported[name].set()
    _prepare()


def _note_confinement() -> None:
    if (found := confinement()).why:
        _log.warning("%s", found.sentence)


def _installed() -> list[str]:
    """What workers import, without what a team that reviews only predictions leaves out."""
    return [one for one in WORKERS_IMPORT if "skops" not in one or find_spec("skops")]


def _prepare() -> None:
    """What the first user would otherwise wait for: imports of workers, and compiled kernels."""
    prepare_workers(_installed(), seconds=60)
    try:
        run_limited("kdcal_core.tasks.kernels:compile_kernels", {}, what="Compiling kernels")
    except InputError as error:
        _log.warning("Kernels will be compiled when they are first needed: %s", error)


class Collector:
    """Decides which objects a collection visits.

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
        """Collect once. Returns "whole" if frozen objects were visited, otherwise "rest".

        Freezing includes objects of open sessions. An unused one that is part of a cycle waits for
        the next whole collection, so there is one every ten minutes.
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
        if runs != seen:  # otherwise nobody used the app, and there is nothing to collect
            seen = runs
            collector.collect(n_modules=len(sys.modules), now=time.monotonic())


def raise_descriptor_limit() -> None:
    """Let this process open as many files as the system allows.

    Every open session uses three descriptors and a socket, so the usual limit of 1,024, or 256 on
    macOS, would limit the number of visitors.
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

    A job's progress is a fragment that the browser polls twice a second. When the job ends, the
    page runs again without it, and a poll on its way then finds no fragment. It is dropped, which
    is correct, so there is nothing to report.
    """
    return not str(record.msg).startswith("The fragment with id")
