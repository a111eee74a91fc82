"""Dey et al., Fig. 4 and earlier version, Fig. 2: real tables, as improvement over the model."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from kdcal_core.data.foreign_rows import sphere_points
from tests.benchmarks.studies import measures
from tests.benchmarks.studies.methods import Methods

TABLES = (
    *("letter", "penbased", "satimage", "segment", "spambase"),
    *("vehicle", "wdbc", "vowel", "pima", "texture"),
)
SIZES = (100, 300, 1000, 3000)
RADII = (1.0, 1.5, 2.0, 3.0, 5.0)
N_FAR = 300
MOST_TEST = 2000

Task = dict[str, Any]
Row = dict[str, Any]


def tasks(quick: bool, kinds: tuple[str, ...], data: Path) -> list[Task]:
    """One task a table, model, training size and repetition."""
    made = []
    for repetition in range(1 if quick else 5):
        for name in TABLES[-3:] if quick else TABLES:
            n_rows = len(pd.read_parquet(data / f"{name}.parquet", columns=["y"]))
            for n in SIZES[:2] if quick else SIZES:
                if n <= 0.8 * n_rows:
                    made += [
                        {"study": "table", "simulation": name, "kind": kind, "n": n, "d": 0}
                        | {"repetition": repetition, "data": str(data)}
                        for kind in kinds
                    ]
    return made


def run(task: Task) -> list[Row]:
    """Every measure of every method for one draw of training and test rows."""
    data = Path(task.pop("data"))
    seed = 1000 * task["repetition"] + task["n"]
    began = time.perf_counter()
    table = pd.read_parquet(data / f"{task['simulation']}.parquet")
    X = table.drop(columns="y").to_numpy(dtype=np.float64)
    y = pd.factorize(table["y"], sort=True)[0].astype(np.int64)
    train, test = train_test_split(
        np.arange(len(y)), train_size=task["n"], random_state=seed, stratify=y
    )
    test = test[:MOST_TEST]
    fitted = Methods(task["kind"], X[train], y[train], seed, standardise=True)
    rows = []
    note = partial(measures.entry, task)
    inside = fitted.coordinates(X[test])
    spheres = [sphere_points(N_FAR, X.shape[1], radius * fitted.radius, seed) for radius in RADII]
    for method, (near, *far) in fitted.outcome(inside, *spheres).items():
        rows += [
            note(method, "error", measures.error(near.predicted, y[test])),
            note(method, "flagged", float(near.unknown.mean())),
            note(method, "log loss", measures.log_loss(near.proba, y[test])),
            note(method, "ECE", measures.ece(near.proba, y[test])),
            note(method, "MCE", measures.mce(near.proba, y[test])),
        ]
        for radius, each in zip(RADII, far, strict=True):
            rows.append(note(method, "OCE", measures.oce(each.proba, fitted.prior), radius))
            rows.append(note(method, "MMC", measures.mmc(each.proba), radius))
    rows.append(note("prior", "MMC", float(fitted.prior.max())))
    rows.append(note("geodesic", "seconds", time.perf_counter() - began))
    return rows
