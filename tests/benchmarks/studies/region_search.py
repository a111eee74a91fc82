"""How often the search for regions finds a made-up fault, and calls a right model wrong.

Rows have standard normal columns and state 0.6 to 0.95; in the faulty part the event happens less
often than stated. Redraws are compared with the searches of 400 tables of a right model of the same
design, because what chance finds is the same in each of its tables. Slices are all cells of a grid
of one and of two columns, each tested and corrected by Holm.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr

from kdcal_core.diagnostics.regions import find_regions
from kdcal_core.diagnostics.regions.search import LEAST_ROWS, evidence, grower, reached, residuals
from kdcal_core.diagnostics.targets import confidence_target
from kdcal_core.partition.tree import BinnedInputs, bin_inputs
from kdcal_core.statistics import holm
from tests.benchmarks.studies.summary import markdown

ROWS, COLUMNS = 5000, 20
THREE = "three columns below 0, 0 and -0.25"
SHAPES = {
    "both columns below -0.57": lambda a, b, _: (a < -0.573) & (b < -0.573),
    "both columns within 0.36": lambda a, b, _: (abs(a) < 0.3622) & (abs(b) < 0.3622),
    "one column below -1.4": lambda a, *_: a < -1.405,
    "one column below -1.64": lambda a, *_: a < -1.645,
    THREE: lambda a, b, c: (a < 0.0) & (b < 0.0) & (c < -0.25),
}
FAULTS = (
    ("both columns below -0.57", 0.15),
    ("both columns below -0.57", 0.1),
    ("both columns within 0.36", 0.15),
    ("one column below -1.4", 0.1),
    ("one column below -1.64", 0.15),
    (THREE, 0.15),
    (THREE, 0.1),
)
SMALL = 300, 4  # rows and columns of searches of a right model
FEW_REDRAWS = 99  # of these


def made(
    n: int, d: int, shape: str | None, gap: float, seed: int
) -> tuple[pd.DataFrame, Any, Any, Any]:
    """A table, what is stated, what happened, and which rows are faulty."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, d)), columns=[f"x{i + 1}" for i in range(d)])
    score = rng.uniform(0.6, 0.95, n)
    faulty = SHAPES[shape](*X.to_numpy().T[:3]) if shape else np.zeros(n, dtype=bool)
    return X, score, (rng.random(n) < score - gap * faulty).astype(int), faulty


def tasks(quick: bool) -> list[dict[str, Any]]:
    """Seeds in tens: right models of both sizes, and every fault."""
    tens = 2 if quick else 10
    right = [("null", ROWS, COLUMNS, None, 0.0), ("alarms", *SMALL, None, 0.0)]
    wrong = [("found", ROWS, COLUMNS, *fault) for fault in FAULTS]
    return [{"task": (*one, ten)} for ten in range(tens) for one in wrong] + [
        {"task": (*one, ten)} for one in right for ten in range(4 * tens)
    ]


def run(task: dict[str, Any]) -> list[dict[str, Any]]:
    """Results of ten seeds."""
    kind, n, d, shape, gap, ten = task["task"]
    rows = []
    for seed in range(10 * ten, 10 * ten + 10):
        X, score, right, faulty = made(n, d, shape, gap, seed + 100_000 * (shape is None))
        binned, row = bin_inputs(X), {"kind": kind, "shape": shape, "gap": gap, "seed": seed}
        goal = confidence_target(score, right)
        if kind == "alarms":
            for name, redraws in (("redraws", FEW_REDRAWS), ("halves", 0)):
                search = find_regions(goal, binned, redraws=redraws, seed=seed)
                rows.append({**row, "method": name, "value": float(bool(search.faulty))})
            continue
        rows += [{**row, "method": "redraws", **one} for one in _leaves(goal, binned, faulty)]
        if kind == "null":
            continue
        search = find_regions(goal, binned, redraws=0, seed=seed)
        worst = search.leaf == (search.faulty[0].leaf if search.faulty else -1)
        rows.append(
            {**row, "method": "halves"}
            | {"value": float(worst.any()), "pure": faulty[worst].mean() if worst.any() else 0.0}
        )
        for cells in (4, 8):
            p, inside = _slices(X, score, right, cells)
            found = {"value": float(p < 0.05), "pure": faulty[inside].mean()}
            rows.append({**row, "method": f"slices, {cells} cells", **found})
    return rows


def _leaves(goal: Any, binned: BinnedInputs, faulty: Any) -> list[dict[str, float]]:
    """Of every region its evidence above its price and as it is, and its share of faulty rows."""
    criterion = residuals(goal, goal.hit)
    found = grower(binned, 3)(criterion)
    leaf = found.tree.apply(binned)
    seen = evidence(criterion, leaf)
    pure = np.bincount(leaf, weights=faulty) / np.bincount(leaf)
    return [
        {"above": above, "plain": plain, "pure": share}
        for above, plain, share in zip(seen - found.price, seen, pure, strict=True)
    ]


def _slices(X: pd.DataFrame, score: Any, right: Any, cells: int) -> tuple[float, Any]:
    """The smallest corrected p value of all slices, and the rows of that slice."""
    residual, variance = right - score, score * (1 - score)
    cell = [np.minimum((X[name].rank(pct=True) * cells).astype(int), cells - 1) for name in X]
    keys = [c.to_numpy() for c in cell]
    keys += [a * cells + b for at, a in enumerate(keys) for b in keys[at + 1 :]]
    p, where = [], []
    for key in keys:
        count, r, v = (np.bincount(key, weights=w) for w in (None, residual, variance))
        for one in np.flatnonzero(count >= LEAST_ROWS):
            p.append(2 * ndtr(-abs(r[one]) / v[one] ** 0.5))
            where.append((key, one))
    adjusted = holm(np.array(p))
    key, one = where[int(np.argmin(adjusted))]
    return float(adjusted.min()), key == one


def write(rows: pd.DataFrame, out: Path) -> None:
    """The shares as tables in ``region_search.md``."""
    alarms = rows[rows.kind == "alarms"].groupby("method").value.agg(["mean", "count"])
    ways = ["above", "plain"]
    largest = rows[rows.kind == "null"].groupby("seed")[ways].max().to_numpy()
    found = rows[rows.kind == "found"].copy()
    redrawn = found.method == "redraws"
    found.loc[redrawn, "p"] = reached(found.loc[redrawn, ways].to_numpy(), largest)
    found.loc[redrawn, "value"] = (found.p < 0.05).astype(float)
    # of a table the clearest region
    found = found.sort_values(["p", "plain"], ascending=[True, False])
    found = found.groupby(["shape", "gap", "method", "seed"], as_index=False).first()
    found["found"] = found.value > 0
    found["true"] = found.found & (found.pure > 0.5)
    share = found.groupby(["shape", "gap", "method"])[["found", "true"]].mean()
    words = share.found.map("{:.2f}".format) + ", " + share.true.map("{:.2f}".format)
    seeds = found.groupby(["shape", "gap", "method"]).size().min()
    text = [
        f"{ROWS:,} rows, {COLUMNS} columns, {seeds} tables of each fault: share of searches that "
        "find a fault, and that find a region mostly of faulty rows.",
        markdown(words.unstack("method").reset_index()),
        f"A right model, {SMALL[0]} rows and {SMALL[1]} columns: share of searches that call it "
        "wrong.",
        markdown(alarms.reset_index()),
    ]
    (out / "region_search.md").write_text("\n\n".join(text) + "\n", encoding="utf-8")
