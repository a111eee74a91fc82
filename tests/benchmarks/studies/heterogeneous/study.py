"""Networks before and after calibration: what is run, and on what it is judged."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from kdcal_core.calibration import calibrator_entry
from kdcal_core.calibration.regions import HeterogeneousCalibrator
from kdcal_core.data import FloatArray
from kdcal_core.diagnostics import paired_auc
from tests.benchmarks.studies.heterogeneous import networks, tables
from tests.benchmarks.studies.heterogeneous.tables import Part

Row = dict[str, Any]
N_SEEDS = 5
DEPTHS = (2, 3, 4, 5, 6)
SLOW_SIZE, SLOW_RATES = "M", (1e-3, 1e-2)
"""Networks for which the slow partitions are measured too: an ordinary rate and a rash one."""
N_TREES = 50
_SMALLEST = 1e-12


def tasks(quick: bool, folder: Path | None, cache: Path | None) -> list[Row]:
    """One task a table and seed; without a folder the shipped table alone."""
    names = list(tables.TARGETS) if folder else ["adult"]
    return [
        {"table": name, "seed": seed, "folder": folder, "cache": cache, "quick": quick}
        for seed in range(1 if quick else N_SEEDS)
        for name in names
    ]


def run(task: Row) -> list[Row]:
    """All networks of one split, each as it is and by every calibrator; and the trees alone."""
    warnings.simplefilter("ignore")  # regions with few rows are described at length
    seed, folder = task["seed"], task["folder"] and str(task["folder"])
    parts = tables.split(*tables.load(task["table"], folder), seed)
    cache = task["cache"] and task["cache"] / task["table"]
    split = {"table": task["table"], "seed": seed}
    rows = [split | _NO_NETWORK | found for found in _without_network(parts)]
    for variant in networks.variants():
        if task["quick"] and variant.rate not in SLOW_RATES:
            continue
        common = split | {
            "size": variant.size,
            "regularised": variant.regularised,
            "rate": variant.rate,
        }
        logits = networks.logits(variant, parts, seed, cache)
        slow = variant.size == SLOW_SIZE and variant.rate in SLOW_RATES
        rows += [common | found for found in _measured(logits, parts, slow)]
        if slow:
            more = networks.logits(replace(variant, all_rows=True), parts, seed, cache)["test"]
            found = _scores("network of all rows", more, logits["test"], parts["test"].y)
            rows += [common | one for one in found]
    return rows


_NO_NETWORK = {"size": "", "regularised": False, "rate": 0.0}


def _without_network(parts: dict[str, Part]) -> Iterator[Row]:
    """Partitions of a network that knows nothing: what the trees can do alone (a = 0)."""
    nothing = {part: np.zeros(len(rows.y)) for part, rows in parts.items()}
    proba = {part: _both(logit) for part, logit in nothing.items()}
    alone = {
        "tree alone": HeterogeneousCalibrator("tree", max_depth=_best_depth(proba, parts)),
        "boosted alone": HeterogeneousCalibrator("boosted", n_trees=N_TREES),
    }
    for name, calibrator in alone.items():
        after = _predict(_fit(calibrator, proba, parts), proba["test"], parts["test"])
        yield from _scores(name, _logit(after), nothing["test"], parts["test"].y)


def _measured(logits: dict[str, FloatArray], parts: dict[str, Part], slow: bool) -> Iterator[Row]:
    """Everything about one network."""
    y, said = parts["test"].y, logits["test"]
    sure, right = expit(np.abs(said)), (said > 0) == y
    yield _row("network", "over-confidence", sure.mean() - right.mean())
    for part in ("training", "validation"):
        yield _row("network", f"AUC, {part}", _auc(logits[part], parts[part].y))
    yield from _scores("network", said, said, y)
    proba = {part: _both(values) for part, values in logits.items()}
    for name, calibrator in _calibrators(proba, parts, slow):
        began = time.perf_counter()
        after = _predict(_fit(calibrator, proba, parts), proba["test"], parts["test"])
        yield _row(name, "seconds", time.perf_counter() - began)
        yield from _scores(name, _logit(after), said, y)


def _calibrators(
    proba: dict[str, FloatArray], parts: dict[str, Part], slow: bool
) -> Iterator[tuple[str, Any]]:
    yield "Platt", calibrator_entry("platt").factory()
    yield "tree", HeterogeneousCalibrator("tree")
    yield "tree, not pooled", HeterogeneousCalibrator("tree", pooling=False)
    best = HeterogeneousCalibrator("tree", max_depth=_best_depth(proba, parts))
    yield "tree, depth tuned", best
    yield "auc", HeterogeneousCalibrator("auc")
    if slow:
        yield "forest", HeterogeneousCalibrator("forest", n_trees=N_TREES)
        yield "boosted", HeterogeneousCalibrator("boosted", n_trees=N_TREES)


def _best_depth(proba: dict[str, FloatArray], parts: dict[str, Part]) -> int:
    """The depth with the best AUC on the validation rows: the paper's light tuning."""
    rows = parts["validation"]
    found = {}
    for depth in DEPTHS:
        fitted = _fit(HeterogeneousCalibrator("tree", max_depth=depth), proba, parts)
        found[depth] = _auc(_logit(_predict(fitted, proba["validation"], rows)), rows.y)
    return max(found, key=found.__getitem__)


def _fit(calibrator: Any, proba: dict[str, FloatArray], parts: dict[str, Part]) -> Any:
    rows, known = parts["calibration"], parts["training"]
    if not calibrator.needs_inputs:
        return calibrator.fit(proba["calibration"], rows.y)
    grown = {"X_partition": known.frame, "y_partition": known.y}
    return calibrator.fit(proba["calibration"], rows.y, rows.frame, **grown)


def _predict(fitted: Any, proba: FloatArray, rows: Part) -> FloatArray:
    found: FloatArray = (
        fitted.predict_proba(proba, rows.frame)
        if fitted.needs_inputs
        else fitted.predict_proba(proba)
    )
    return found


def _scores(name: str, score: FloatArray, before: FloatArray, y: Any) -> Iterator[Row]:
    """AUC and log loss on the test rows, and whether the AUC is beyond doubt another."""
    yield _row(name, "AUC", _auc(score, y))
    yield _row(name, "log loss", np.logaddexp(0.0, np.where(y == 1, -score, score)).mean())
    if name != "network":
        change = paired_auc(before, score, y).difference
        verdict = int(change.low > 0.0) - int(change.high < 0.0)
        yield _row(name, "AUC better or worse", verdict)


def _row(method: str, measure: str, value: Any) -> Row:
    return {"method": method, "measure": measure, "value": float(value)}


def _auc(score: FloatArray, y: Any) -> float:
    return float(roc_auc_score(y, score))


def _both(logit: FloatArray) -> FloatArray:
    return np.column_stack([expit(-logit), expit(logit)])


def _logit(proba: FloatArray) -> FloatArray:
    kept = np.maximum(proba, _SMALLEST)
    return np.asarray(np.log(kept[:, 1]) - np.log(kept[:, 0]))
