"""Fixtures for all tests."""

# ruff: noqa: E402

from __future__ import annotations

import gc
import logging
import os
import secrets
from pathlib import Path

# Tests run side by side: threads of BLAS would wait for each other longer than they compute.
# Set before numpy is imported, and handed on to the processes that tests start.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

# Workers may run the functions of tests/jobs/job_probes.py, which they find by this path.
os.environ["KDCAL_TARGETS"] = "job_probes"
_probes = str(Path(__file__).parent.resolve() / "jobs")
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [_probes, os.environ.get("PYTHONPATH")]),
)

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from importlib import import_module
from typing import Any

import pytest
from hypothesis import settings
from texts.snapshot import texts
from workerless import working_here

from app.shared import server_process
from app.shared.server_process import WORKERS_IMPORT
from kdcal_core.jobs import run_limited, runner
from kdcal_core.models import model_formats
from kdcal_core.review import known_results
from kdcal_core.skops_library import skops

__all__ = [
    "skops",  # before a test imports it plainly, and with it dask and tests of scikit-learn
    "texts",  # a fixture
]

BROWSER = "tests/browser/"

# no modules of examples: several folders have a conftest.py, and modules of one name clash
collect_ignore_glob = ["*conftest.py"]

# an example that takes long on a loaded machine is no fault
settings.register_profile("kdcal", deadline=None)
settings.load_profile("kdcal")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Files to processes, the browser's first and in one process.

    xdist begins with the files of most tests and ends with those of one long test, of which the
    last keeps one process waiting for the other. The browser's tests wait a lot, which leaves the
    time to the other process, and one server and one Chromium serve them all.
    """
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class BrowserFirst(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return BROWSER if nodeid.startswith(BROWSER) else str(super()._split_scope(nodeid))

    config.option.loadscopereorder = False
    return BrowserFirst(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The browser's tests first, see above; the rest as it was found."""
    items.sort(key=lambda item: not item.nodeid.startswith(BROWSER))


def pytest_configure() -> None:
    """Imports and thousands of tests leave little garbage: do not look for it again and again."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What each test would pay for the libraries that have been imported.

    Garbage is looked for again, but seldom, and no more among what is there to stay. Streamlit lets
    none of its loggers propagate: six times a test, pytest would attach itself to a hundred.
    """
    for one in logging.root.manager.loggerDict.values():
        if isinstance(one, logging.Logger) and one.name.startswith("streamlit"):
            one.propagate = True
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _large_models_are_loaded_once() -> Iterator[None]:
    """Shipped forests take most of a second to load, and boosted trees a tenth."""
    formats, loaded = model_formats(), {}

    def once(load: Callable[..., Any]) -> Callable[..., Any]:
        def load_once(path: Path, *, name: str, task: Any = None, **given: Any) -> Any:
            if path.stat().st_size < 100_000:
                return load(path, name=name, task=task, **given)
            key = sha256(path.read_bytes()).digest(), task
            if key not in loaded:
                loaded[key] = load(path, name=name, task=task, **given)
            return loaded[key]

        return load_once

    with pytest.MonkeyPatch.context() as patch:
        for one in ("skops", "xgboost_json"):
            patch.setitem(formats, one, replace(formats[one], load=once(formats[one].load)))
        yield


@pytest.fixture(scope="session", autouse=True)
def _samples_are_opened_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Each file of tests has a workspace of its own, which would open its samples again."""
    with pytest.MonkeyPatch.context() as patch:
        place = str(tmp_path_factory.mktemp("samples"))
        patch.setattr(import_module("kdcal_core.review.samples"), "_KEPT", place)
        yield


@pytest.fixture
def opened_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """No sample is known from another test: it is kept in the workspace, as in the app."""
    monkeypatch.setattr(import_module("kdcal_core.review.samples"), "_KEPT", "samples")


@pytest.fixture(scope="session", autouse=True)
def _workers_are_forked() -> Iterator[None]:
    """As in the app, but prepared by the first worker: most tests need none.

    Those that start from nothing are tried in `tests/jobs/test_runner.py`.
    """
    start = runner._started

    def prepare_and_start(environment: Mapping[str, str]) -> Any:
        runner.prepare_workers(WORKERS_IMPORT)
        return start(environment)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "_started", prepare_and_start)
        patch.setattr(server_process, "_prepare", lambda: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _results_are_noted_elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what tests compute out of the user's own list of known results."""
    folder = tmp_path_factory.getbasetemp() / "known_results"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known_results, "root_of_audits", lambda: folder / "of_no_test")
        yield


@pytest.fixture(autouse=True)
def _no_test_knows_results_of_another(
    tmp_path_factory: pytest.TempPathFactory, _results_are_noted_elsewhere: None
) -> Iterator[None]:
    """Several tests compute results of the same rows."""
    folder = tmp_path_factory.getbasetemp() / "known_results" / secrets.token_hex(8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known_results, "root_of_audits", lambda: folder)
        yield


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Audits keep no charts, which take most of their time, in tests of something else."""
    for module in ("making", "gate_summary"):
        monkeypatch.setattr(f"kdcal_core.audit.{module}.kept_charts", lambda drawn: ())


@pytest.fixture(scope="module")
def work_here() -> Iterator[None]:
    """No worker processes in this file: see `workerless`."""
    with working_here():
        yield


@pytest.fixture
def real_workers(work_here: None) -> Iterator[None]:
    """Worker processes all the same, in one test of a file that has none."""
    with working_here(run_limited):
        yield
