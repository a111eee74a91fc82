"""The app without a browser: Streamlit's own test runner on the entry point."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from app_pages import ENTRY
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

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
