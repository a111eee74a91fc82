"""What falling back outside costs inside: graphs beside the model with a temperature.

Half of each table trains model and graph, a quarter calibrates, a quarter is judged. Outside are
points on spheres around the data, and rows of the data moved straight outward to the same distance.
"""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from kdcal_core.calibration import KernelDensityForest, KernelDensityNetwork, TemperatureScaling
from kdcal_core.data.foreign_rows import extent, on_spheres, outward
from kdcal_core.errors import InputWarning
from kdcal_core.models import wrap_model
from tests.benchmarks.studies import measures
from tests.benchmarks.studies.summary import markdown
from tests.benchmarks.studies.tables import TABLES

MOST = 4000
RADII = (1.25, 1.5, 2.0)
N_FAR = 300
SLACK = 0.005
METHODS = {
    "model": "Model",
    "temperature": "Model with temperature",
    "geodesic": "Kernel density, geodesic",
    "euclidean": "Kernel density, Euclidean",
    "auto": "Kernel density, distance by held-out loss",
}

Task = dict[str, Any]
Row = dict[str, Any]


def tasks(quick: bool, kinds: tuple[str, ...], data: Path) -> list[Task]:
    """One task a table, model and seed."""
    names = TABLES[-4:] if quick else TABLES
    return [
        {"simulation": name, "kind": kind, "repetition": seed, "data": str(data)}
        for seed in range(2 if quick else 5)
        for name in names
        for kind in kinds
    ]


def run(task: Task) -> list[Row]:
    """Every measure of every method for one draw of the three parts."""
    seed = task["repetition"]
    table = pd.read_parquet(Path(task.pop("data")) / f"{task['simulation']}.parquet")
    table = table.sample(min(len(table), MOST), random_state=seed)
    X = table.drop(columns="y").to_numpy(dtype=np.float64)
    y = pd.factorize(table["y"], sort=True)[0].astype(np.int64)
    train, rest = train_test_split(np.arange(len(y)), train_size=0.5, random_state=seed, stratify=y)
    hold, test = train_test_split(rest, train_size=0.5, random_state=seed, stratify=y[rest])
    X = (X - X[train].mean(axis=0)) / np.maximum(X[train].std(axis=0), 1e-12)
    model, family = _model(task["kind"], X[train], y[train], seed)
    proba = model.predict_proba(X[test])
    note = partial(measures.entry, task)
    rows = _inside(note, "model", proba, y[test])
    scaled = TemperatureScaling().fit(model.predict_proba(X[hold]), y[hold]).predict_proba(proba)
    rows += _inside(note, "temperature", scaled, y[test])
    frame = pd.DataFrame(X[train], columns=[str(at) for at in range(X.shape[1])])
    where = extent(frame)
    outside = {
        (made.__name__, radius): made(frame, where, at, N_FAR, seed + 99).to_numpy()
        for radius in RADII
        for made, at in ((on_spheres, (radius,)), (outward, radius))
    }
    for distance in ("geodesic", "euclidean", "auto"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)
            graph = family(model, distance=distance).fit(X[train], y[train], X[hold], y[hold])
        located = graph.locate(X[test], proba=proba)
        posterior = graph.graph_.posterior(located)
        rows += _inside(note, distance, posterior, y[test])
        rows.append(note(distance, "flagged", float(graph.is_unknown(X[test]).mean())))
        for (kind, radius), far in outside.items():
            rows.append(
                note(distance, kind, measures.oce(graph.predict_proba(far), graph.prior_), radius)
            )
    return rows


def _inside(note: Any, method: str, proba: Any, y: Any) -> list[Row]:
    return [
        note(method, "error", measures.error(proba.argmax(axis=1), y)),
        note(method, "log loss", measures.log_loss(proba, y)),
        note(method, "ECE", measures.ece(proba, y)),
    ]


def _model(kind: str, X: Any, y: Any, seed: int) -> tuple[Any, Any]:
    if kind == "forest":
        fitted = RandomForestClassifier(200, random_state=seed, n_jobs=1).fit(X, y)
        return wrap_model(fitted), KernelDensityForest
    network = MLPClassifier((100,) * 4, max_iter=60, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return wrap_model(network.fit(X, y)), KernelDensityNetwork


def write(rows: pd.DataFrame, out: Path) -> None:
    """Means over tables and seeds, and the log loss of each table."""
    lines = []
    for kind, part in rows.groupby("kind"):
        named = part.assign(measure=part["measure"] + part["radius"].map(lambda r: f" {r:g}"))
        named["measure"] = named["measure"].str.replace(" nan", "")
        wide = named.pivot_table(
            index=["simulation", "repetition"], columns=["method", "measure"], values="value"
        )
        lines += [f"## {str(kind).title()}s, {len(wide)} runs", markdown(_means(wide))]
        loss = wide.xs("log loss", axis=1, level="measure").groupby("simulation").mean()
        lines += ["Log loss by table:", markdown(loss[list(METHODS)].reset_index())]
    (out / "inside_outside.md").write_text("\n\n".join(lines) + "\n", encoding="utf-8")


def _means(wide: pd.DataFrame) -> pd.DataFrame:
    """One line a method: means over all runs, and how often its error is above the model's."""
    lines = []
    for method, name in METHODS.items():
        own = wide[method]
        more = own["error"] - wide["model", "error"]
        less = own["log loss"] - wide["temperature", "log loss"]
        line: dict[str, Any] = {"method": name, "error": own["error"].mean()}
        line["largest excess"] = float(more.max())
        line[f"runs above {SLACK:g}"] = int((more > SLACK + 1e-9).sum())
        line |= {"log loss": own["log loss"].mean(), "ECE": own["ECE"].mean()}
        by_table = less.groupby("simulation").mean()
        half = 1.96 * by_table.std() / np.sqrt(len(by_table))
        line["log loss less temperature's"] = f"{by_table.mean():+.4f} (+- {half:.4f})"
        line |= {name: own[name].mean() for name in own if name not in line and name != "log loss"}
        lines.append(line)
    return pd.DataFrame(lines)
