"""Torres et al., section 4.3: two networks on twenty features, recalibrated at several layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.distributions import Normal
from kdcal_core.regression import (
    DensityRecalibration,
    GlobalRecalibration,
    IsotonicRecalibration,
    LocalRecalibration,
    NeighbourRegression,
    select_neighbours,
)
from kdcal_core.simulation import nonlinear20
from tests.benchmarks.studies.recalibration import measured
from tests.benchmarks.studies.recalibration.networks import Network

SIZES = {1_000: 5, 10_000: 5, 100_000: 2}  # rows, and repetitions
NETWORKS = {"small": (5, 5, 5, 5), "big": (200, 200, 200, 5)}
KS = (100, 500, 1000)
EPSILONS = (0.5, 1.0)
RATES = (1e-4, 1e-3, 1e-2)
MOST_EPOCHS, PATIENCE = 150, 10


def tasks(quick: bool) -> list[measured.Row]:
    """One task a size, network and seed."""
    sizes = {1_000: 1} if quick else SIZES
    return [
        {"n": n, "network": network, "seed": seed}
        for n, seeds in sizes.items()
        for seed in range(seeds)
        for network in NETWORKS
    ]


def run(task: measured.Row) -> list[measured.Row]:
    """One network on one draw: as it is, and by every method, layer, k and epsilon."""
    n, seed = task["n"], task["seed"]
    drawn = nonlinear20(n, seed=seed)
    train, held, test = measured.split(n, seed, (0.8, 0.1))
    rows: list[measured.Row] = []
    with measured.timed(_of(task, "network"), rows, "training seconds"):
        network = _trained(task, drawn.X[train], drawn.y[train], drawn.X[held], drawn.y[held])
    before, after = network.layers(drawn.X[held]), network.layers(drawn.X[test])
    sigma = float(np.sqrt(np.mean((drawn.y[held] - before[-1][:, 0]) ** 2)))
    base, new = Normal(before[-1][:, 0], sigma), Normal(after[-1][:, 0], sigma)
    spaces = {
        "inputs": (drawn.X[held], drawn.X[test]),
        "hidden 3": (before[2], after[2]),
        "hidden 4": (before[3], after[3]),
        "output": (before[4], after[4]),
    }
    y, scale = drawn.y[test], measured.scale_of(drawn.y[held])
    true_mean = drawn.distribution[test].mean()
    rows += measured.entries(_of(task, "network"), new, y, scale, true_mean=true_mean)
    for common, method, space in _methods(task, base, drawn.y[held], spaces):
        with measured.timed(common, rows, "fit seconds"):
            method.fit(base, drawn.y[held], spaces[space][0])
        with measured.timed(common, rows, "predict seconds"):
            repaired = method.predict(new, spaces[space][1])
            repaired.interval(0.95)
        rows += measured.entries(common, repaired, y, scale, true_mean=true_mean)
        if common["epsilon"]:
            rows.append({**common, "measure": "recall", "value": method.recall_})
    return rows


def write(rows: pd.DataFrame, out: Path) -> None:
    """`study.csv` with every cell; `study.md` with the methods at their best-known settings."""
    by = ["n", "network", "method", "space", "k", "epsilon"]
    table = measured.summarised(rows, by)
    table.to_csv(out / "study.csv", index=False, float_format="%.6g")
    shown = {
        "mse": lambda v: f"{v:.2f}",
        "coverage95": lambda v: f"{v:.1f}",
        "crps": lambda v: f"{v:.3f}",
        "smis95": lambda v: f"{v:.3f}",
        "recall": lambda v: f"{v:.3f}",
        "training seconds": lambda v: f"{v:.1f}",
        "fit seconds": lambda v: f"{v:.2f}",
        "predict seconds": lambda v: f"{v:.2f}",
    }
    (out / "study.md").write_text(measured.markdown(table, by, shown) + "\n", encoding="utf-8")


def _of(
    task: measured.Row, method: str, space: str = "", k: int = 0, epsilon: float = 0.0
) -> measured.Row:
    return {**task, "method": method, "space": space, "k": k, "epsilon": epsilon}


def _trained(task: measured.Row, *data: Any) -> Network:
    """The network with the learning rate whose held-out loss is lowest of three."""
    fitted = [
        Network(NETWORKS[task["network"]], task["seed"]).fit(
            *data,
            epochs=MOST_EPOCHS,
            batch=64 if task["n"] < 50_000 else 512,
            rate=rate,
            patience=PATIENCE,
        )
        for rate in RATES
    ]
    return min(fitted, key=lambda one: one.loss_)


def _methods(
    task: measured.Row, base: Normal, y: Any, spaces: dict[str, Any]
) -> list[tuple[measured.Row, Any, str]]:
    """Every method with its name and the space it looks for neighbours in."""
    n = len(base)
    ks = [k for k in KS if k <= n]
    found: list[tuple[measured.Row, Any, str]] = [
        (_of(task, "global"), GlobalRecalibration(), "inputs"),
        (_of(task, "isotonic"), IsotonicRecalibration(), "inputs"),
        (_of(task, "density"), DensityRecalibration(seed=task["seed"]), "inputs"),
    ]
    for k in ks:
        found += [
            (_of(task, "local", space, k), LocalRecalibration(k=k, smoothing="none"), space)
            for space in spaces
        ]
        if task["n"] <= 10_000:
            name = "neighbour regression"
            found.append((_of(task, name, "inputs", k), NeighbourRegression(k=k), "inputs"))
    for epsilon in EPSILONS:
        for space in ("inputs", "hidden 4"):
            method = LocalRecalibration(
                k=ks[-1], search="approximate", epsilon=epsilon, smoothing="none"
            )
            found.append((_of(task, "local", space, ks[-1], epsilon), method, space))
    chosen = select_neighbours(
        base,
        y,
        {name: both[0] for name, both in spaces.items()},
        sorted({25, 50, *KS, 2000}),
        seed=task["seed"],
    )
    method = LocalRecalibration(k=chosen.best_k)
    found.append((_of(task, "local, chosen and smoothed"), method, chosen.best_space))
    return found
