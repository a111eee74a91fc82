"""The core stays light to import: nothing heavy until it is used."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import kdcal_core

ROOT = Path(__file__).parent.parent
HEAVY = ["torch", "onnxruntime", "onnx", "xgboost", "lightgbm", "skops", "streamlit", "plotly"]


def _loaded_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(' '.join(sys.modules))"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return set(answer.stdout.split())


@pytest.mark.parametrize(
    "statement",
    [
        "import kdcal_core",
        "import kdcal_core.cli",
        "from kdcal_core import read_table, load_model, reliability, TopLabelKDE",
    ],
)
def test_heavy_libraries_wait_until_they_are_used(statement):
    assert _loaded_after(statement).isdisjoint(HEAVY)


def test_a_worker_that_reads_files_imports_no_statistics():
    """They would take most of its start, and each file that is read starts one."""
    loaded = _loaded_after("import kdcal_core.jobs.worker, kdcal_core.review")
    assert loaded.isdisjoint({*HEAVY, "scipy.stats", "scipy.optimize", "sklearn", "numba"})


def test_a_job_starts_without_the_libraries_of_tables():
    assert _loaded_after("import kdcal_core.jobs.worker").isdisjoint(["numpy", "pandas", "pyarrow"])


@pytest.mark.parametrize("folder", ["app", "pages"])
def test_pages_reach_the_core_through_its_rooms(folder: str) -> None:
    """A file of a room may be joined or split without a change on any page."""
    found = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            asked = node.module if isinstance(node, ast.ImportFrom) else None
            if asked is not None and asked.startswith("kdcal_core."):
                place = ROOT.joinpath(*asked.split("."))
                if not place.is_dir() and asked.count(".") > 1:
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno} {asked}")
    assert found == []


def test_every_public_name_is_there():
    for name in kdcal_core.__all__:
        assert getattr(kdcal_core, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = kdcal_core.no_such_name


def _rooms() -> list[str]:
    found = [
        ".".join(path.parent.relative_to(ROOT).parts)
        for path in sorted((ROOT / "kdcal_core").rglob("__init__.py"))
        if "migrations" not in path.parts
    ]
    return [*found, "kdcal_core.displays"]


@pytest.mark.parametrize("room", _rooms())
def test_dir_of_a_room_shows_its_public_names_and_nothing_else(room):
    module = importlib.import_module(room)
    assert dir(module) == sorted(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)
