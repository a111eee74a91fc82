"""Post-hoc improvement of every method on one draw of calibration rows; kept, so it can go on."""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.statistics import log_losses
from tests.benchmarks.studies.arena import methods
from tests.benchmarks.studies.arena.scores import MODELS, scored, tables

ROWS = (300, 1000, 5000)
SEEDS = {300: 3, 1000: 2, 5000: 1}
MOST_JUDGED, FEWEST_JUDGED = 5000, 150
QUICK_TABLES = ("segment", "spambase", "wine_white")
QUICK_MODELS = ("logistic", "bayes")


def tasks(quick: bool, data: Path, cache: Path | None) -> list[dict[str, Any]]:
    """One task a table, model, number of rows and seed: few rows and the first seeds first."""
    found = [name for name in tables(data) if not quick or name in QUICK_TABLES]
    return [
        {"table": table, "model": model, "rows": rows, "seed": seed, "data": data, "cache": cache}
        for seed in range(1 if quick else max(SEEDS.values()))
        for rows in (ROWS[:1] if quick else ROWS)
        if seed < SEEDS[rows]
        for table in found
        for model in (QUICK_MODELS if quick else MODELS)
    ]


def run(task: dict[str, Any]) -> list[dict[str, Any]]:
    """Losses before and after of every method; none with too few rows."""
    cell = {name: task[name] for name in ("table", "model", "rows", "seed")}
    kept, known = None, {}
    if task["cache"] is not None:
        kept = task["cache"] / "cells" / f"{'-'.join(map(str, cell.values()))}.json"
        known = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
    wanted = methods.every()
    if not known.get("few") and any(key not in known for key in wanted):
        known = _measured(task, known)
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(known), "utf-8")
    return [
        cell | {"method": key} | found
        for key, found in known.items()
        if key in wanted and found is not None
    ]


def _measured(task: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    proba, y = scored(task["table"], task["model"], task["data"], task["cache"])
    n = task["rows"]
    if len(y) < n + FEWEST_JUDGED:
        return {"few": True}
    order = np.random.default_rng([task["seed"], n]).permutation(len(y))
    fit, judge = order[:n], order[n : n + MOST_JUDGED]
    before = _losses(proba[judge], y[judge])
    made = dict(known)
    for key in methods.every():
        if key in made:
            continue
        if not methods.takes(key, proba.shape[1]):
            made[key] = None
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            began = time.process_time()
            try:
                said = methods.fitted(key, proba[fit].copy(), y[fit].copy())
                seconds = time.process_time() - began
                after = _losses(np.asarray(said(proba[judge].copy()), float), y[judge])
            except Exception:  # another package's fit may fail; its answer is then the model's
                seconds, after = time.process_time() - began, before
        made[key] = {
            "n_classes": proba.shape[1],
            "seconds": seconds,
            "log_loss": after[0],
            "brier": after[1],
            "gain_log_loss": 1.0 - after[0] / max(before[0], 1e-9),
            "gain_brier": 1.0 - after[1] / max(before[1], 1e-9),
        }
    return made


def _losses(proba: FloatArray, y: IntArray) -> tuple[float, float]:
    """Log loss of the whole vector, and Brier score."""
    wrong = proba.copy()
    wrong[np.arange(len(y)), y] -= 1.0
    return float(log_losses(proba, y).mean()), float(np.square(wrong).sum(axis=1).mean())
