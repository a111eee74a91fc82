"""Real tables and four kinds of model: which recalibrator, which space, how many neighbours."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray
from kdcal_core.distributions import PredictiveDistribution
from kdcal_core.regression import (
    DensityRecalibration,
    GlobalRecalibration,
    IsotonicRecalibration,
    LocalRecalibration,
    NeighbourRegression,
    NeighbourSelection,
    WhereNeeded,
    select_neighbours,
)
from tests.benchmarks.studies.recalibration import (
    measured,
    real_answers,
    real_models,
    real_tables,
)

KS = (10, 25, 50, 100, 200, 500, 1000, 2000)  # as far as half of the calibration rows
DEFAULT, COMMON = 1000, 100
N_TRAIN, N_TEST, SEEDS = 4_000, 600, 5
SIZES = {  # calibration rows; of the small tables 40% train, 40% calibrate, 20% test
    "diamonds": (500, 2000),
    "adult": (2000,),
    "airfoil": (601,),
    "wine": (1584,),
}
Spaces = dict[str, tuple[FloatArray, FloatArray]]


def tasks(quick: bool, folder: Path | None = None) -> list[measured.Row]:
    """One task a seed, table, size and model; without a folder the shipped tables alone."""
    names = [name for name in SIZES if folder or name not in real_tables.IN_FOLDER]
    return [
        {"table": name, "n": n, "model": model, "seed": seed, "folder": folder and str(folder)}
        for seed in range(1 if quick else SEEDS)
        for name in names
        for n in (SIZES[name][:1] if quick else SIZES[name])
        for model in real_models.MODELS
    ]


def run(task: measured.Row) -> list[measured.Row]:
    """One model on one draw: as it is, and by every method, space, k and smoothing."""
    folder, seed = task.pop("folder"), task["seed"]
    warnings.simplefilter("ignore")  # few rows for k; quantiles that touch
    X, y = real_tables.load(task["table"], folder)
    parts = split(len(y), task["n"], seed)
    ys = [y[rows] for rows in parts]
    model = real_models.stated(
        task["model"],
        [X[rows] for rows in parts],
        ys,
        task["table"] in real_tables.LOGARITHMIC,
        seed,
    )
    spaces = spaces_of(model, X[parts[1]], X[parts[2]])
    chosen = select_neighbours(
        model.before,
        ys[1],
        {name: both[0] for name, both in spaces.items()},
        [k for k in KS if 2 * k <= len(parts[1])],
        seed=seed,
        max_rows=1000,
    )
    scale = measured.scale_of(ys[1])
    rows = measured.entries(_of(task, "model"), model.after, ys[2], scale)
    for name, space, k, method in _methods(chosen, seed):
        common = _of(task, name, space, k)
        before, after = spaces[space or "inputs"]
        with measured.timed(common, rows, "seconds"):
            repaired = method.fit(model.before, ys[1], before).predict(model.after, after)
        rows += measured.entries(common, repaired, ys[2], scale)
        if name == "where needed":
            share = float(method.test_.needed_at(after).mean())
            rows.append({**common, "measure": "share mended", "value": share})
    return rows + list(_choices(rows, task, chosen))


def write(rows: pd.DataFrame, out: Path) -> None:
    """`real.csv`, means over seeds of every method; `real.md`, the questions answered."""
    runs = real_answers.per_run(rows)
    real_answers.summarised(runs).to_csv(out / "real.csv", index=False, float_format="%.5g")
    answers = [real_answers.methods(runs), real_answers.rules(runs)]
    answers += [real_answers.spaces(runs), real_answers.smoothing(runs)]
    (out / "real.md").write_text("\n\n".join(answers) + "\n", encoding="utf-8")


def _of(task: measured.Row, method: str, space: str = "", k: int = 0) -> measured.Row:
    return {**task, "method": method, "space": space, "k": k}


def split(n_rows: int, n: int, seed: int) -> tuple[Any, Any, Any]:
    """Training, calibration and test rows."""
    order = np.random.default_rng([seed, 11]).permutation(n_rows)
    train = min(N_TRAIN, round(0.4 * n_rows))
    return order[:train], order[train : train + n], order[train + n : train + n + N_TEST]


def spaces_of(model: real_models.Stated, before: FloatArray, after: FloatArray) -> Spaces:
    """Inputs, the prediction's mean and spread, both together, and the last hidden layer."""
    said = (_said(model.before), _said(model.after))
    found = {
        "inputs": (before, after),
        "prediction": said,
        "inputs and prediction": (np.hstack([before, said[0]]), np.hstack([after, said[1]])),
    }
    if model.layers is not None:
        found["last layer"] = model.layers
    return found


def _said(distribution: PredictiveDistribution) -> FloatArray:
    return np.column_stack([distribution.mean(), distribution.std()])


def _methods(chosen: NeighbourSelection, seed: int) -> Iterator[tuple[str, str, int, Any]]:
    """Name, space, number of neighbours and the recalibrator."""
    yield "global", "", 0, GlobalRecalibration()
    yield "isotonic", "", 0, IsotonicRecalibration()
    yield "density", "", 0, DensityRecalibration(seed=seed)
    for k in sorted({*chosen.ks.tolist(), DEFAULT}):
        yield "local", "inputs", k, LocalRecalibration(k=k)
        if k in (25, 50, 200, DEFAULT):
            yield "weighted sample", "inputs", k, LocalRecalibration(k=k, smoothing="none")
    for space, k in _best_of_each(chosen).items():
        for one in sorted({k, COMMON} if space != "inputs" else set()):
            yield "local", space, one, LocalRecalibration(k=one)
    for k in (25, COMMON):
        yield "neighbour regression", "inputs", k, NeighbourRegression(k=k)
    best = LocalRecalibration(k=chosen.best_k)
    yield "where needed", chosen.best_space, chosen.best_k, WhereNeeded(best, seed=seed)


def _best_of_each(chosen: NeighbourSelection) -> dict[str, int]:
    """The best number of neighbours in each space."""
    best = chosen.ks[chosen.crps.argmin(axis=1)].tolist()
    return dict(zip(chosen.spaces, best, strict=True))


def _choices(
    rows: list[measured.Row], task: measured.Row, chosen: NeighbourSelection
) -> Iterator[measured.Row]:
    """The runs of the grid again, under the names of the ways to choose among them."""
    picks = {("local, k chosen", space): (space, k) for space, k in _best_of_each(chosen).items()}
    best = (chosen.best_space, chosen.best_k)
    picks["local, k and space chosen", ""] = best
    picks["local, chosen, if it helps", ""] = best if chosen.helps else ("", 0)
    for (name, space), (where, k) in picks.items():
        source = "local" if k else "model"
        for row in rows:
            if (row["method"], row["space"], row["k"]) == (source, where, k):
                yield _of(task, name, space) | {key: row[key] for key in ("measure", "value")}
        yield _of(task, name, space) | {"measure": "chosen k", "value": k}
    yield _of(task, "local, chosen, if it helps") | {
        "measure": "helps",
        "value": float(chosen.helps),
    }
