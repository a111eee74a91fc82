"""Results of runs on disk: whatever happens to a file behind the app, it is reported."""

from __future__ import annotations

import io
import json
import shutil

import numpy as np
import pytest

from kdcal_core.errors import InputError
from kdcal_core.store import load
from kdcal_core.tasks import ForeignSettings, GraphRun, GridSettings, LabSettings
from kdcal_core.tasks.decorators import carry_out
from kdcal_core.tasks.foreign import ForeignRun, score_foreign
from kdcal_core.tasks.graph import fit_graph
from kdcal_core.tasks.lab import LabRun, simulate
from kdcal_core.tasks.posterior_grid import GridRun, posterior_grid


def quiet(share, note):
    pass


@pytest.fixture(scope="module")
def folders(forest, tmp_path_factory):
    """What each run leaves, by the class that reads it."""
    base = tmp_path_factory.mktemp("runs")
    at = (forest.workspace, forest.review.id)
    found = {run: base / run.__name__ for run in (GraphRun, ForeignRun, GridRun, LabRun)}
    for folder in found.values():
        folder.mkdir()
    graph = found[GraphRun]
    carry_out(**fit_graph.request(*at).kwargs, folder=str(graph), progress=quiet)
    few = ForeignSettings(radii=(1.0,), n=5)
    asked = score_foreign.request(*at, few, graph_folder=graph).kwargs
    carry_out(**asked, folder=str(found[ForeignRun]), progress=quiet)
    asked = posterior_grid.request(*at, GridSettings(resolution=3), graph_folder=graph).kwargs
    carry_out(**asked, folder=str(found[GridRun]), progress=quiet)
    lab = LabSettings(n=60, n_trees=3, n_sphere=2, n_test=5, resolution=3, radii=(1.0,))
    asked = json.loads(json.dumps(simulate.request(lab).kwargs))
    carry_out(**asked, folder=str(found[LabRun]), progress=quiet)
    return found


def harms(path):
    """Contents that a file may have after an accident, or by somebody's hand."""
    whole = path.read_bytes()
    yield from (None, b"", whole[:-3], b"PK\x03\x04", b"[" * 200_000)
    if path.suffix != ".json":
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 1
        yield bytes(flipped)
    if path.suffix == ".npy":
        file = io.BytesIO()
        np.save(file, np.load(path)[:-1])
        yield file.getvalue()


@pytest.mark.parametrize("run", [GraphRun, ForeignRun, GridRun, LabRun])
def test_a_file_that_is_gone_or_was_changed_is_reported(folders, tmp_path, run):
    folder = shutil.copytree(folders[run], tmp_path / "run")
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        for harm in harms(path):
            if harm is None:
                path.unlink()
            else:
                path.write_bytes(harm)
            with pytest.raises(InputError, match="no longer kept in full"):
                load(folder, run)
            path.write_bytes(whole)
    load(folder, run)
