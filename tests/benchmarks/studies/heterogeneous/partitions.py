"""Which partition `HeterogeneousCalibrator` should have by default, depths and stages tuned.

A logistic regression and a network on tables with two classes, calibrated with few rows and with
many, by every kind of partition at its default depth and at the depth with the smallest log loss
on a fifth of the calibration rows. Boosted partitions choose their number of stages alike. Beside
them stands the second model of the Regions page, boosted trees on the model's logits.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.calibration import calibrator_entry
from kdcal_core.calibration.regions import PARTITIONS, HeterogeneousCalibrator
from kdcal_core.data import FloatArray, stratified_folds
from kdcal_core.evaluation.second_model import SecondModel
from tests.benchmarks.studies import measures, summary
from tests.benchmarks.studies.heterogeneous import tables
from tests.benchmarks.studies.heterogeneous.tables import Part

Row = dict[str, Any]
SIZES = (2_000, 0, 2_000, 4_000)
FEW = 300  # calibration rows
DEPTHS = {"tree": (2, 3, 5), "auc": (2, 3, 5), "forest": (4, 6, 8), "boosted": (1, 2, 3)}
METHODS = (
    "model",
    "Platt",
    *(f"{kind}{how}" for kind in DEPTHS for how in ("", ", depth tuned")),
    "tree, training rows",
    "forest, training rows",
    "second model",
)
_HELD_OUT = 5


def tasks(quick: bool, folder: Path | None) -> list[Row]:
    """One task a table, seed and model; without a folder the shipped census alone."""
    names = ("adult", "credit_default", "spambase", "wine_white") if folder else ("adult",)
    return [
        {"table": name, "seed": seed, "model": model, "folder": folder}
        for seed in range(1 if quick else 2)
        for name in names
        for model in ("logistic", "network")
    ]


def run(task: Row) -> list[Row]:
    """Log loss and AUC on test rows of one model, calibrated in every way."""
    warnings.simplefilter("ignore")  # regions with few rows are described at length
    folder = task["folder"] and str(task["folder"])
    parts = tables.split(*tables.load(task["table"], folder), task["seed"], SIZES)
    model = _model(task["model"], task["seed"]).fit(parts["training"].numbers, parts["training"].y)
    proba = {part: _stated(model, parts[part]) for part in ("calibration", "test")}
    rows: list[Row] = []
    for n in (FEW, len(parts["calibration"].y)):
        common = {name: task[name] for name in ("table", "seed", "model")} | {"rows": n}
        for method, answer, seconds in _answers(parts, proba, n):
            y = parts["test"].y
            found = {"log loss": measures.log_loss(answer, y), "seconds": seconds}
            rows += [
                common | {"method": method, "measure": m, "value": v} for m, v in found.items()
            ]
    return rows


def _model(kind: str, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    if kind == "logistic":
        return LogisticRegression(max_iter=1000)
    return MLPClassifier((32, 32), max_iter=40, random_state=seed)


def _stated(model: Any, part: Part) -> FloatArray:
    stated = np.asarray(model.predict_proba(part.numbers), dtype=np.float64)
    return stated / stated.sum(axis=1, keepdims=True)


def _answers(
    parts: dict[str, Part], proba: dict[str, FloatArray], n: int
) -> Iterator[tuple[str, FloatArray, float]]:
    """Each method's name, its probabilities of the test rows and its processor time."""
    known, test = parts["calibration"], parts["test"].frame
    p, y, X = proba["calibration"][:n], known.y[:n], known.frame.iloc[:n]
    training = parts["training"]
    grown = {"X_partition": training.frame, "y_partition": training.y}
    yield "model", proba["test"], 0.0
    platt = calibrator_entry("platt").factory().fit(p, y)
    yield "Platt", platt.predict_proba(proba["test"]), 0.0
    held_out = stratified_folds(y, _HELD_OUT, 0) == 0
    for kind, depths in DEPTHS.items():
        losses: dict[int, float] = {}
        began = time.process_time()
        for depth in depths:
            tried = HeterogeneousCalibrator(kind, max_depth=depth)
            tried.fit(p[~held_out], y[~held_out], X[~held_out])
            losses[depth] = measures.log_loss(
                tried.predict_proba(p[held_out], X[held_out]), y[held_out]
            )
        best = min(losses, key=losses.__getitem__)
        choosing = time.process_time() - began
        for how, depth, spent in (
            ("", PARTITIONS[kind].depth, 0.0),
            (", depth tuned", best, choosing),
        ):
            began = time.process_time()
            fitted = HeterogeneousCalibrator(kind, max_depth=depth).fit(p, y, X)
            answer = fitted.predict_proba(proba["test"], test)
            yield kind + how, answer, spent + time.process_time() - began
    for kind in ("tree", "forest"):
        began = time.process_time()
        fitted = HeterogeneousCalibrator(kind).fit(p, y, X, **grown)
        answer = fitted.predict_proba(proba["test"], test)
        yield f"{kind}, training rows", answer, time.process_time() - began
    began = time.process_time()
    answer = SecondModel().fit(p, y, X).predict_proba(proba["test"], test)
    yield "second model", answer, time.process_time() - began


def write(rows: pd.DataFrame, out: Path) -> None:
    """Every run in `partitions.csv`, and means and wins against the single tree as a table."""
    rows.to_csv(out / "partitions.csv", index=False, float_format="%.5g")
    keys = ["rows", "table", "seed", "model"]
    text = ["# Which partition by default"]
    losses, seconds = (
        rows[rows["measure"] == measure].pivot_table(index=keys, columns="method", values="value")
        for measure in ("log loss", "seconds")
    )
    sizes = losses.index.get_level_values("rows")
    parts = {f"{FEW:,} calibration rows": sizes == FEW, "All calibration rows": sizes != FEW}
    for title, chosen in parts.items():
        mine, spent = losses[chosen], seconds[chosen]
        by_table = mine.groupby("table").mean().T.reindex(METHODS).rename(columns=tables.TITLES)
        gain = mine.sub(mine["tree"], axis=0)[list(METHODS)]
        found = by_table.assign(
            **{
                "less the tree's": gain.mean(),
                "runs better than the tree": [
                    f"{(gain[m] < 0).sum()} of {len(gain)}" for m in gain
                ],
                "largest loss to Platt": mine.sub(mine["Platt"], axis=0).max(),
                "seconds": spent.mean(),
            }
        )
        text += [f"## {title}", summary.markdown(found.reset_index(names="method"))]
    (out / "partitions.md").write_text("\n\n".join(text) + "\n", encoding="utf-8")
