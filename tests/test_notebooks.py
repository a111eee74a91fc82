"""The notebooks of the guides run, cell by cell, and each cell shows what a notebook can draw.

A kernel of Jupyter would bring dozens of packages more, whose installation takes longer than all
tests here. What a notebook asks of ours is Python in one namespace and, of the last expression of a
cell, its MIME bundle, its HTML or its repr: so it is here. What Jupyter adds itself, magics and
top-level await, is refused. Where `nbclient` and `ipykernel` are installed, a kernel runs the
notebooks too.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import plotly.io
import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted(
    one for one in ROOT.rglob("*.ipynb") if not any(part[0] == "." for part in one.parts)
)


def cells_of(notebook: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(notebook.read_text("utf-8"))["cells"]
    return cells


def shown(value: Any) -> dict[str, Any]:
    """What a notebook shows of a value: its bundle, or its HTML and its text."""
    if (bundle := getattr(value, "_repr_mimebundle_", None)) is not None:
        found = bundle()
        return dict(found[0] if isinstance(found, tuple) else found)
    html = getattr(value, "_repr_html_", lambda: None)()
    return {"text/plain": repr(value)} | ({} if html is None else {"text/html": html})


def run(source: str, names: dict[str, Any], where: str) -> dict[str, Any] | None:
    """What a cell shows after it has run; None for one that ends in a statement."""
    body = ast.parse(source, where).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), where, "exec"), names)
    if last is None:
        return None
    return shown(eval(compile(ast.Expression(last.value), where, "eval"), names))


def test_there_are_notebooks_and_a_guide_leads_to_each() -> None:
    assert NOTEBOOKS
    guides = "".join(one.read_text("utf-8") for one in (ROOT / "app" / "guides").glob("*.md"))
    for one in NOTEBOOKS:
        assert one.name in guides


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda one: one.stem)
def test_a_notebook_is_stored_without_results(notebook: Path) -> None:
    content = json.loads(notebook.read_text("utf-8"))
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    assert content["metadata"]["kernelspec"]["name"] == "python3"
    ids = [one["id"] for one in content["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-zA-Z0-9-_]{1,64}", one) for one in ids)
    for one in content["cells"]:
        plain = {"cell_type", "id", "metadata", "source"}
        code = one["cell_type"] == "code"
        assert set(one) == plain | ({"execution_count", "outputs"} if code else set())
        assert not one.get("outputs")
        assert one.get("execution_count") is None
        assert "".join(one["source"]).strip()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda one: one.stem)
def test_every_cell_runs_and_shows_its_result(
    notebook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # what plotly chooses by itself within IPython
    monkeypatch.setattr(plotly.io.renderers, "default", "plotly_mimetype")
    names: dict[str, Any] = {"__name__": "__main__"}
    drawn = 0
    for at, one in enumerate(cells_of(notebook)):
        if one["cell_type"] != "code":
            continue
        found = run("".join(one["source"]), names, f"{notebook.name}, cell {at}")
        if found is None:
            continue
        assert found["text/plain"], at
        drawn += any(kind.startswith("application/vnd.plotly") for kind in found)
        json.dumps(found)  # as it goes to the browser
    assert drawn >= 3


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda one: one.stem)
def test_a_kernel_runs_it_as_it_runs_here(
    notebook: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reason = "a kernel is not installed: pip install nbclient ipykernel"
    pytest.importorskip("ipykernel", reason=reason)
    client = pytest.importorskip("nbclient", reason=reason)
    read = pytest.importorskip("nbformat", reason=reason).read
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    played = read(notebook, 4)
    client.NotebookClient(played, timeout=300, kernel_name="python3").execute()
    outputs = [one for cell in played.cells for one in cell.get("outputs", ())]
    assert {one.output_type for one in outputs} <= {"execute_result", "display_data"}
    assert sum("application/vnd.plotly.v1+json" in one.data for one in outputs) >= 3


def test_a_cell_that_fails_is_named() -> None:
    with pytest.raises(NameError) as found:
        run("1\nunknown_name", {}, "some.ipynb, cell 3")
    assert "some.ipynb, cell 3" in str(found.traceback[-1].path)
    with pytest.raises(SyntaxError):
        run("%matplotlib inline", {}, "some.ipynb, cell 4")
