"""Torres et al., Table 3: prices of diamonds by a GLM and a network, both with Gamma outcomes.

The paper does not give the GLM's terms: both one on the logarithm of the carats and one on the
columns as they are ("raw") are measured.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import GammaRegressor
from sklearn.preprocessing import StandardScaler

from kdcal_core.data import FloatArray
from kdcal_core.distributions import Gamma, PredictiveDistribution
from kdcal_core.regression import (
    DensityRecalibration,
    GlobalRecalibration,
    IsotonicRecalibration,
    LocalRecalibration,
    select_neighbours,
)
from tests.benchmarks.studies.recalibration import measured
from tests.benchmarks.studies.recalibration.gamma_network import EPOCHS, GammaNetwork

SAMPLE = Path(__file__).parents[4] / "sample_data" / "diamonds"
GRADES = ["cut", "colour", "clarity"]
K = 1_000
KS = (25, 50, 100, 200, 500, 1000)
PRINTED = {  # RMSE, and coverage of 90, 95 and 99% intervals
    "GLM": ("798.9", "95.5", "98.2", "99.7"),
    "GLM isotonic": ("789.3", "89.4", "94.9", "99.1"),
    "GLM density": ("796.0", "95.6", "98.2", "99.7"),
    "GLM local, k = 1000": ("751.2", "89.8", "94.6", "98.6"),
    "NN": ("557.8", "93.3", "96.6", "98.7"),
    "NN isotonic": ("557.8", "89.8", "94.7", "98.8"),
    "NN density": ("558.0", "93.4", "96.5", "98.7"),
    "NN local, k = 1000": ("542.8", "89.6", "94.4", "98.6"),
}
MEASURES = ("rmse", "coverage90", "coverage95", "coverage99")
PAPER = {name: dict(zip(MEASURES, told, strict=True)) for name, told in PRINTED.items()}


def tasks(quick: bool) -> list[measured.Row]:
    """One task a seed: another random 70, 20 and 10 per cent of the rows."""
    return [{"seed": seed, "quick": quick} for seed in range(1 if quick else 4)]


def run(task: measured.Row) -> list[measured.Row]:
    """Both models on one split: as they are, and by every method."""
    quick, seed = task.pop("quick"), task["seed"]
    table = diamonds()
    price = table.pop("price").to_numpy(dtype=np.float64)
    train, held, test = measured.split(len(price), seed, (0.7, 0.2))
    X = table.to_numpy(dtype=np.float64)
    rows: list[measured.Row] = []
    for name, stated in (("GLM", _glm), ("NN", _network), ("raw GLM", _raw_glm)):
        with measured.timed({**task, "method": name}, rows, "training seconds"):
            before, after = stated(table, price, train, (held, test), seed, quick)
        y, scale = price[test], measured.scale_of(price[held])
        rows += measured.entries({**task, "method": name}, after, y, scale)
        for title, method in _methods(before, price[held], X[held], seed).items():
            common = {**task, "method": f"{name} {title}"}
            with measured.timed(common, rows, "fit seconds"):
                method.fit(before, price[held], X[held])
            with measured.timed(common, rows, "predict seconds"):
                repaired = method.predict(after, X[test])
                repaired.interval(0.95)
            rows += measured.entries(common, repaired, y, scale)
            if "chosen" in title:
                rows.append({**common, "measure": "k", "value": method.k})
    return rows


def write(rows: pd.DataFrame, out: Path) -> None:
    """`table3.csv` with every measure, and `table3.md` beside the printed numbers.

    Medians over seeds: one impossible measure among the test rows can make an RMSE explode.
    """
    found = rows.groupby(["method", "measure"], sort=False)["value"]
    table = found.agg(["median", "min", "max", "count"]).reset_index()
    table.to_csv(out / "table3.csv", index=False, float_format="%.6g")
    middle = table.assign(mean=table["median"], std=0.0, count=1)
    shown = {
        "rmse": lambda v: f"{v:.1f}",
        "coverage90": lambda v: f"{v:.1f}",
        "coverage95": lambda v: f"{v:.1f}",
        "coverage99": lambda v: f"{v:.1f}",
        "crps": lambda v: f"{v:.1f}",
        "log_score": lambda v: f"{v:.3f}",
        "smis95": lambda v: f"{v:.3f}",
        "predict seconds": lambda v: f"{v:.1f}",
        "k": lambda v: f"{v:.0f}",
    }
    text = measured.markdown(middle, ["method"], shown, PAPER)
    (out / "table3.md").write_text(text + "\n", encoding="utf-8")


def diamonds() -> pd.DataFrame:
    """All 53,940 rows: the shipped sample's three tables again as one."""
    parts = ("training", "calibration", "evaluation")
    return pd.concat([pd.read_parquet(SAMPLE / f"{part}.parquet") for part in parts])


def _glm(
    table: pd.DataFrame, price: FloatArray, train: Any, wanted: Any, seed: int, quick: bool
) -> list[PredictiveDistribution]:
    """The Gamma GLM on the logarithm of the carats, whose RMSE is near the paper's."""
    table = table.assign(carat=np.log(table["carat"]))
    return _raw_glm(table, price, train, wanted, seed, quick)


def _raw_glm(
    table: pd.DataFrame, price: FloatArray, train: Any, wanted: Any, seed: int, quick: bool
) -> list[PredictiveDistribution]:
    """Gamma regression with a log link; the grades are categories, the shape Pearson's."""
    design = pd.get_dummies(table, columns=GRADES, drop_first=True).to_numpy(dtype=np.float64)
    design = StandardScaler().fit(design[train]).transform(design)
    model = GammaRegressor(alpha=0.0, solver="newton-cholesky", max_iter=1000)
    model.fit(design[train], price[train])
    relative = price[train] / model.predict(design[train]) - 1
    shape = (len(train) - design.shape[1] - 1) / float(np.sum(relative**2))
    return [Gamma(shape, model.predict(design[rows])) for rows in wanted]


def _network(
    table: pd.DataFrame, price: FloatArray, train: Any, wanted: Any, seed: int, quick: bool
) -> list[PredictiveDistribution]:
    X = table.to_numpy(dtype=np.float64)
    network = GammaNetwork(seed=seed).fit(X[train], price[train], 3 if quick else EPOCHS)
    return [network.predict(X[rows]) for rows in wanted]


def _methods(
    base: PredictiveDistribution, y: FloatArray, X: FloatArray, seed: int
) -> dict[str, Any]:
    """The paper's three, its local method as kdcal smooths it, and with k chosen."""
    chosen = select_neighbours(base, y, {"inputs": X}, KS, seed=seed)
    return {
        "global": GlobalRecalibration(),
        "isotonic": IsotonicRecalibration(),
        "density": DensityRecalibration(seed=seed),
        f"local, k = {K}": LocalRecalibration(k=K, smoothing="none"),
        f"local, k = {K}, smoothed": LocalRecalibration(k=K),
        "local, k chosen": LocalRecalibration(k=chosen.best_k),
    }
