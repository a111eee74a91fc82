"""Compile the kernels before somebody waits for them.

numba compiles a kernel when it is first called and keeps it on disk. Without this, the first user
of a new installation waits for it in the first job of each kind.
"""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd

import kdcal_core
from kdcal_core.calibration import (
    KernelDensityForest,
    KernelDensityNetwork,
    TopLabelKDE,
    VennAbers,
)
from kdcal_core.calibration.regions import HeterogeneousCalibrator
from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import find_regions
from kdcal_core.diagnostics.summaries import summarise, summarise_regression
from kdcal_core.diagnostics.summaries.group_summary import load_group_kernel
from kdcal_core.distributions import Normal
from kdcal_core.evaluation import compare_versions
from kdcal_core.progress import Progress, silent
from kdcal_core.regression import LocalRecalibration, select_neighbours

_ROWS = 300


# numba looks for a place to store code when a module of kernels is imported, which a process that
# may not write there must therefore do before it is limited
_ROOT = Path(kdcal_core.__file__).parent
for _path in sorted(_ROOT.rglob("_*kernels.py")):
    import_module(".".join((_ROOT.name, *_path.relative_to(_ROOT).with_suffix("").parts)))


def load_kernels() -> None:
    """Let numba load stored code, and store no more, in a process that may not write it.

    Its files are pickles, which every other process loads: a model that takes over the process of a
    job must not write them. What is compiled in this process from now on is lost with it.
    """
    from numba.core.caching import Cache

    Cache.save_overload = lambda self, sig, data: None  # type: ignore[method-assign]


def compile_kernels(progress: Progress = silent) -> None:
    """Call each kernel with a few rows, at the lowest priority that the system has."""
    with suppress(AttributeError, OSError):  # not a POSIX system
        os.nice(19)
    steps = (_graphs, _regions, _top_label, _local, _summaries)
    for number, step in enumerate(steps):
        progress(number / len(steps), "Compiling kernels")
        step()


def _rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(_ROWS, 2))
    return X, (X[:, 0] * X[:, 1] > 0).astype(np.int64)


def _graphs() -> None:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.neural_network import MLPClassifier

    X, y = _rows()
    deep, shallow = (
        RandomForestClassifier(5, random_state=0),
        RandomForestClassifier(50, max_depth=3, random_state=0),
    )
    network = MLPClassifier((8, 8), solver="lbfgs", max_iter=200, random_state=0)
    for graph in (
        KernelDensityForest(deep.fit(X, y)),
        KernelDensityForest(shallow.fit(X, y)),  # leaves of many rows have kernels of their own
        KernelDensityForest(shallow, distance="euclidean"),
        KernelDensityNetwork(network.fit(X, y)),
    ):
        graph.fit(X, y).predict_proba(X)


def _regions() -> None:
    X, y = _rows()
    frame = pd.DataFrame(
        {"a": X[:, 0], "b": np.where(X[:, 1] > 0, "high", "low"), "c": np.arange(_ROWS)}
    )
    p = np.clip(0.5 + X[:, 0] / 10, 0.05, 0.95)
    proba = np.column_stack([1 - p, p])
    find_regions(
        ScoredSet(proba, y, ("no", "yes"), digest="", name="rows"), frame, target=1, redraws=0
    )
    HeterogeneousCalibrator("tree").fit(proba, y, frame).predict_proba(proba, frame)


def _top_label() -> None:
    X, y = _rows()
    p = np.clip(0.5 + X[:, 0] / 10, 0.05, 0.95)
    proba = np.column_stack([1 - p, p])
    for calibrator in (TopLabelKDE(), VennAbers()):
        calibrator.fit(proba, y).predict_confidence(proba)


def _local() -> None:
    X = _rows()[0].round(1)  # with ties, which have a kernel too
    stated = Normal(X[:, 0], 1.0)
    for space in (X, X[:, :1], np.hstack([X] * 3)):  # one, few and many columns have own kernels
        LocalRecalibration(k=50).fit(stated, X[:, 1], space).predict(stated, space)
    select_neighbours(stated, X[:, 1], {"inputs": X}, [10, 50])


def _summaries() -> None:
    X, y = _rows()
    p = np.clip(0.5 + X[:, 0] / 10, 0.05, 0.95)
    proba, names = np.column_stack([1 - p, p]), ("no", "yes")
    summarise(proba, y, names, cluster=y)
    rows, one = ScoredSet(proba, y, names, digest="", name="rows"), summarise(proba, y, names)
    compare_versions(rows, rows, n_boot=100, summaries=(one, one))
    summarise_regression(Normal(X[:, 0], 1.0), X[:, 1])
    load_group_kernel()
