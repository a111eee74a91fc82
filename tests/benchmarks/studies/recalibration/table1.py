"""Torres et al., Table 1 and the point of Fig. 1: the misspecified line on heteroscedastic rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression

from kdcal_core.distributions import Normal
from kdcal_core.regression import (
    DensityRecalibration,
    GlobalRecalibration,
    IsotonicRecalibration,
    LocalRecalibration,
    NeighbourRegression,
    select_neighbours,
)
from kdcal_core.simulation import heteroscedastic
from tests.benchmarks.studies.recalibration import measured

N, K = 100_000, 1_000
POINT = (17.68, 2146.22)
KS = (50, 100, 250, 500, 1000, 2000)
PAPER = {
    "linear": {"mse_truth": "14,546", "coverage95": "93.78", "smis95": "2.7475"},
    "global": {"mse_truth": "14,763", "coverage95": "94.65", "smis95": "2.7391"},
    "local, k = 1000": {"mse_truth": "304", "coverage95": "94.96", "smis95": "2.0947"},
}


def tasks(quick: bool) -> list[measured.Row]:
    """One task a seed."""
    return [{"seed": seed, "n": N // 10 if quick else N} for seed in range(2 if quick else 10)]


def run(task: measured.Row) -> list[measured.Row]:
    """Every method on one draw."""
    drawn = heteroscedastic(task["n"], seed=task["seed"])
    train, held, test = measured.split(task["n"], task["seed"], (0.8, 0.1))
    line = LinearRegression().fit(drawn.X[train], drawn.y[train])
    residual = drawn.y[held] - line.predict(drawn.X[held])
    sigma = float(np.sqrt(np.mean(residual**2)))

    def stated(rows: object) -> Normal:
        return Normal(line.predict(drawn.X[rows]), sigma)

    k = min(K, len(held) // 10)
    chosen = select_neighbours(
        stated(held), drawn.y[held], {"inputs": drawn.X[held]}, KS, seed=task["seed"]
    )
    methods = {
        "linear": None,
        "global": GlobalRecalibration(),
        f"local, k = {k}": LocalRecalibration(k=k, smoothing="none"),
        f"local, k = {k}, smoothed": LocalRecalibration(k=k),
        "local, k chosen, smoothed": LocalRecalibration(k=chosen.best_k),
        "isotonic": IsotonicRecalibration(),
        "density": DensityRecalibration(seed=task["seed"]),
        "neighbour regression": NeighbourRegression(k=k),
    }
    truth, y, scale = drawn.distribution[test], drawn.y[test], measured.scale_of(drawn.y[held])
    rows: list[measured.Row] = []
    for name, method in methods.items():
        common = {**task, "method": name}
        repaired = stated(test)
        if method is not None:
            with measured.timed(common, rows, "fit seconds"):
                method.fit(stated(held), drawn.y[held], drawn.X[held])
            with measured.timed(common, rows, "predict seconds"):
                repaired = method.predict(repaired, drawn.X[test])
                repaired.interval(0.95)
        rows += measured.entries(common, repaired, y, scale, truth)
    x, outcome = POINT
    pit = Normal(line.predict([[x]]), sigma).cdf([outcome])[0]
    at = {**task, "method": "linear"}
    rows.append({**at, "measure": "PIT of the point", "value": float(pit)})
    rows.append({**at, "measure": "sigma", "value": sigma})
    rows.append(
        {**task, "method": "local, k chosen, smoothed", "measure": "k", "value": chosen.best_k}
    )
    return rows


def write(rows: pd.DataFrame, out: Path) -> None:
    """`table1.csv` with every measure, and `table1.md` beside the printed numbers."""
    table = measured.summarised(rows, ["method"])
    table.to_csv(out / "table1.csv", index=False, float_format="%.6g")
    shown = {
        "mse_truth": lambda v: f"{v:,.0f}",
        "coverage95": lambda v: f"{v:.2f}",
        "smis95": lambda v: f"{v:.4f}",
        "crps": lambda v: f"{v:.1f}",
        "log_score": lambda v: f"{v:.3f}",
        "kl": lambda v: f"{v:.3f}",
        "predict seconds": lambda v: f"{v:.2f}",
        "PIT of the point": lambda v: f"{v:.4f}",
        "sigma": lambda v: f"{v:.1f}",
        "k": lambda v: f"{v:.0f}",
    }
    text = measured.markdown(table, ["method"], shown, PAPER)
    (out / "table1.md").write_text(text + "\n", encoding="utf-8")
