"""Torres et al., Table 2: Rosenbrock with Gamma outcomes, WSIR and Monte Carlo dropout."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.distributions import Empirical, LogNormal, PredictiveDistribution
from kdcal_core.regression import LocalRecalibration
from kdcal_core.simulation import rosenbrock_gamma
from tests.benchmarks.studies.recalibration import measured
from tests.benchmarks.studies.recalibration.networks import Network

N, RADIUS, PASSES = 100_000, 0.5, 200
WIDTHS = (512, 512, 240, 240)  # the paper's first two layers have 6,400
EPOCHS, BATCH = 75, 500
PAPER = {
    "WSIR": {"mse": "71.25", "coverage95": "95.5", "smis95": "0.569"},
    "MC dropout": {"mse": "75.06", "coverage95": "99.0", "smis95": "0.874"},
    "WSIR, local": {"mse": "60.52", "coverage95": "94.3", "smis95": "0.500"},
    "MC dropout, local": {"mse": "60.44", "coverage95": "94.7", "smis95": "0.499"},
    "true model": {"mse": "59.64", "coverage95": "94.6", "smis95": "0.477"},
}


def tasks(quick: bool) -> list[measured.Row]:
    """One task a seed."""
    seeds = range(1 if quick else 3)
    return [{"seed": seed, "n": N // 20 if quick else N, "quick": quick} for seed in seeds]


def run(task: measured.Row) -> list[measured.Row]:
    """Both ways to read a dropout network, before and after, on one draw."""
    quick = task.pop("quick")
    seed = task["seed"]
    drawn = rosenbrock_gamma(task["n"], seed=seed)
    train, held, test = measured.split(task["n"], seed, (0.8, 0.1))
    logs = np.log(drawn.y)
    rows: list[measured.Row] = []
    widths = (32, 32, 16, 16) if quick else WIDTHS
    network = Network(widths, seed, dropout=0.5)
    with measured.timed({**task, "method": "WSIR"}, rows, "training seconds"):
        network.fit(
            drawn.X[train],
            logs[train],
            drawn.X[held],
            logs[held],
            epochs=5 if quick else EPOCHS,
            batch=BATCH,
            rate=1e-3,
        )
    spread = float(np.sqrt(np.mean((logs[held] - network.predict(drawn.X[held])) ** 2)))

    def wsir(at: IntArray) -> LogNormal:
        return LogNormal(network.predict(drawn.X[at]), spread)

    def dropout(at: IntArray) -> Empirical:
        return Empirical(np.exp(network.sample(drawn.X[at], PASSES, seed)))

    y, scale = drawn.y[test], measured.scale_of(drawn.y[held])
    truth = drawn.distribution[test]
    rows += measured.entries({**task, "method": "true model"}, truth, y, scale)
    for name, stated in (("WSIR", wsir), ("MC dropout", dropout)):
        before, after = stated(held), stated(test)
        rows += measured.entries({**task, "method": name}, after, y, scale, true_mean=truth.mean())
        common = {**task, "method": f"{name}, local"}
        # the paper's radius is in the units of the inputs
        local = LocalRecalibration(radius=RADIUS, standardise=False, smoothing="none")
        with measured.timed(common, rows, "predict seconds"):
            repaired = local.fit(before, drawn.y[held], drawn.X[held]).predict(after, drawn.X[test])
        rows += measured.entries(common, repaired, y, scale, true_mean=truth.mean())
        drawn_again = _unweighted(repaired, seed)
        rows += measured.entries(
            {**task, "method": f"{name}, local, resampled"}, drawn_again, y, scale
        )
        chosen = LocalRecalibration(k=100, smoothing="none").fit(
            before, drawn.y[held], drawn.X[held]
        )
        rows += measured.entries(
            {**task, "method": f"{name}, local, k = 100"},
            chosen.predict(after, drawn.X[test]),
            y,
            scale,
            true_mean=truth.mean(),
        )
    return rows


def write(rows: pd.DataFrame, out: Path) -> None:
    """`table2.csv` with every measure, and `table2.md` beside the printed numbers."""
    table = measured.summarised(rows, ["method"])
    table.to_csv(out / "table2.csv", index=False, float_format="%.6g")
    shown = {
        "mse": lambda v: f"{v:.2f}",
        "coverage95": lambda v: f"{v:.1f}",
        "smis95": lambda v: f"{v:.3f}",
        "crps": lambda v: f"{v:.3f}",
        "mse_truth": lambda v: f"{v:.2f}",
        "training seconds": lambda v: f"{v:.0f}",
        "predict seconds": lambda v: f"{v:.1f}",
    }
    text = measured.markdown(table, ["method"], shown, PAPER)
    (out / "table2.md").write_text(text + "\n", encoding="utf-8")


def _unweighted(repaired: PredictiveDistribution, seed: int) -> Empirical:
    """A thousand draws of each row by the weights, as the paper makes its samples."""
    samples: FloatArray = repaired.sample(1000, seed)
    return Empirical(samples)
