"""Compiled ahead: what real jobs call afterwards is compiled already."""

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numba.core.dispatcher import Dispatcher

from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics.summaries import (
    class_groups,
    pit_groups,
    summarise,
    summarise_regression,
)
from kdcal_core.distributions import Normal
from kdcal_core.evaluation.counted_pair import CountedPair
from kdcal_core.progress import silent
from kdcal_core.review import Workspace, start_sample
from kdcal_core.tasks import fit_graph, kernels, search_regions


def compiled() -> dict[str, int]:
    """How many signatures each kernel has that Python calls."""
    return {
        f"{name}.{kernel.__name__}": len(kernel.signatures)
        for name, module in list(sys.modules.items())
        if name.startswith("kdcal_core.") and name.endswith("_kernels")
        for kernel in vars(module).values()
        if isinstance(kernel, Dispatcher)
    }


@pytest.mark.parametrize(
    ("sample", "task"),
    [("xor_forest", fit_graph), ("xor_network", fit_graph), ("adult", search_regions)],
)
def test_real_jobs_compile_nothing_more(work_here, tmp_path, monkeypatch, sample, task):
    monkeypatch.setattr(kernels.os, "nice", lambda step: 0)
    kernels.compile_kernels()
    before = compiled()
    assert sum(before.values()) >= 8
    review = start_sample(Workspace(tmp_path), sample)
    given = task.request(Workspace(tmp_path), review).kwargs["given"]
    task.run(given, tmp_path, silent)
    assert compiled() == before


def test_summaries_of_a_folder_compile_nothing_more(monkeypatch):
    monkeypatch.setattr(kernels.os, "nice", lambda step: 0)
    kernels.compile_kernels()
    before = compiled()
    ready = {name.rpartition(".")[2] for name, n in before.items() if n}
    assert ready >= {"add_rows", "add_blocks", "add_exactly", "rows_within", "add_groups"}
    assert ready >= {"add_pairs", "pairs_in_order"}
    summarise(np.full((4, 3), 1 / 3), np.arange(4) % 3, ("a", "b", "c"))
    many = np.linspace(0.0, 1.0, 50_000)
    assert pit_groups(pd.DataFrame({"ward": ["a"] * 50_000}), many).rows.tolist() == [50_000]
    summarise_regression(Normal(np.zeros(4), 1.0), np.arange(4.0))
    proba, y = np.full((50_000, 2), 0.5), np.zeros(50_000, dtype=np.int64)
    proba.flags.writeable = y.flags.writeable = False  # as a set is read
    rows = ScoredSet(proba, y, ("a", "b"), "", "")
    class_groups(pd.DataFrame({"ward": ["a"] * 50_000}), rows)
    kept = summarise(proba.copy(), y.copy(), rows.classes)
    CountedPair.of(rows, replace(rows, proba=proba.copy()), (kept, kept), 1, 0.95, 10, 0)
    assert compiled() == before
