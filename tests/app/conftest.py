"""The app without a browser: Streamlit's own test runner on the entry point."""

from __future__ import annotations

import functools
import pkgutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from traceback import walk_stack

import pytest
from app_pages import ENTRY
from streamlit import config
from streamlit.components.v2 import manifest_scanner
from streamlit.elements.lib.mutable_expander_container import ExpanderContainer
from streamlit.elements.lib.mutable_tab_container import TabContainer
from streamlit.testing.v1 import AppTest, local_script_runner
from workerless import run_here

from kdcal_core.review import Workspace

ROOT = Path(__file__).parents[2]
# `streamlit run app` adds the root itself; here the tests stand in for it
sys.path.insert(0, str(ROOT))


@pytest.fixture(scope="session", autouse=True)
def _packages_are_scanned_once() -> Iterator[None]:
    """Streamlit reads every installed package's description in each new test runner."""
    with pytest.MonkeyPatch.context() as patch:
        scan = functools.cache(manifest_scanner.scan_component_manifests)
        patch.setattr(manifest_scanner, "scan_component_manifests", scan)
        yield


@pytest.fixture(scope="session", autouse=True)
def _garbage_is_collected_as_in_any_process() -> Iterator[None]:
    """The app's own thread would walk again and again through what a test process has imported."""
    from app.shared import server_process

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server_process, "_EVERY", 1e6)
        yield


@pytest.fixture(scope="session", autouse=True)
def _scripts_run_as_on_the_server() -> Iterator[None]:
    """The test runner does not read `app/.streamlit/config.toml`, which turns all of these off.

    By default Streamlit measures every command, rewrites every script, and collects garbage, in
    each run.
    """
    names = ("browser.gatherUsageStats", "runner.magicEnabled", "runner.postScriptGC")
    before = {name: config.get_option(name) for name in names}
    for name in names:
        config.set_option(name, False)
    yield
    for name, value in before.items():
        config.set_option(name, value)


@pytest.fixture(scope="session", autouse=True)
def _runs_are_awaited() -> Iterator[None]:
    """Streamlit looks every millisecond whether a run has ended, among all messages of the run."""

    def wait(runner: local_script_runner.LocalScriptRunner, timeout: float = 3) -> None:
        runner._script_thread.join(timeout)
        if runner._script_thread.is_alive():
            runner.request_stop()
            runner.join()
            raise RuntimeError(f"AppTest script run timed out after {timeout}(s)")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_script_runner, "require_widgets_deltas", wait)
        yield


@pytest.fixture(autouse=True)
def _every_section_is_drawn(request: pytest.FixtureRequest) -> Iterator[None]:
    """A page's sections as if each were open, so that a test reads what all of them show."""
    with pytest.MonkeyPatch.context() as patch:
        if not request.node.get_closest_marker("one_section"):
            patch.setattr(TabContainer, "open", property(lambda tab: True, lambda tab, now: None))
        yield


@pytest.fixture
def unfolded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is folded at first as if somebody had unfolded it."""
    monkeypatch.setattr(
        ExpanderContainer, "open", property(lambda part: True, lambda part, now: None)
    )


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    """The app at its first page, with a workspace of its own."""
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path / "workspace"))
    return AppTest.from_file(ENTRY, default_timeout=90).run()


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A workspace for all tests of a file, which the app uses too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KDCAL_HOME", str(tmp_path_factory.mktemp("kdcal")))
        yield Workspace()


ROW_READERS = (  # what every way to rows goes through
    "pyarrow.feather.read_table",
    "kdcal_core.review.sealed_files.scored_arrays",
    "kdcal_core.review.sealed_files.regression_arrays",
    "kdcal_core.review.reader.scored_arrays",
    "kdcal_core.review.reader.regression_arrays",
    "kdcal_core.tasks.recalibrated_measures.load",
    "kdcal_core.tasks.graph.load",
    "kdcal_core.tasks.foreign_measures.load",
    "kdcal_core.tasks.map_measures.load",
)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Call it, and every review counts as large from then on: the server must not read its rows."""

    def guarded(reader: Callable[..., object]) -> Callable[..., object]:
        def read(*args: object, **kwargs: object) -> object:
            # jobs of the tests run in threads of this process
            if not any(frame.f_code is run_here.__code__ for frame, _ in walk_stack(None)):
                pytest.fail("the server reads rows")
            return reader(*args, **kwargs)

        return read

    def begin() -> None:
        from app.shared.kept import KEPT

        KEPT.clear()
        monkeypatch.setattr("kdcal_core.tasks.decorators.LARGE", 0)
        for path in ROW_READERS:
            module, _, name = path.rpartition(".")
            owner = pkgutil.resolve_name(module)
            monkeypatch.setattr(owner, name, guarded(getattr(owner, name)))

    return begin


@pytest.fixture
def stay_on_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scored review stays on the Load page, where otherwise the overview would open."""
    import streamlit as st

    from app.shared import navigation

    monkeypatch.setattr(navigation, "go_to", lambda name: st.rerun())
