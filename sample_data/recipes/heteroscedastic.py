"""A straight line through a parabola whose noise widens (Torres et al., section 4.1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from recipes.files import split_rows, write_parquet
from recipes.onnx_files import graph_bytes

N_ROWS, SIZES = 100_000, (80_000, 10_000, 10_000)


def build(folder: Path) -> dict[str, Any]:
    x, y = sample(N_ROWS, seed=3)
    train, calibration, evaluation = split_rows(N_ROWS, SIZES, seed=4)
    line = np.polyfit(x[train].astype(np.float64), y[train].astype(np.float64), 1)
    slope, intercept = (round(float(c), 4) for c in line)
    (folder / "model.onnx").write_bytes(to_onnx(slope, intercept))
    for name, rows in (("calibration", calibration), ("evaluation", evaluation)):
        columns = {"x": x[rows], "y": y[rows], "true_mean": curve(x[rows])}
        write_parquet(folder / f"{name}.parquet", columns)
    residual = y[evaluation] - (intercept + slope * x[evaluation].astype(np.float64))
    return {
        "title": "A straight line through a curve",
        "summary": (
            "A straight line predicts outcomes that really follow a curve and scatter ever wider "
            "to the right. Look beyond the average: 94 of 100 outcomes lie inside the 95% "
            "intervals, yet the line is too low at both ends and too high in between, and its "
            "one width is far too wide on the left and too narrow on the right."
        ),
        "task": "regression",
        "family": "point",
        "model": "model.onnx",
        "target": "y",
        "source": (
            "Simulated: the heteroscedastic Gaussian of Torres et al. (section 4.1). x is "
            "uniform between 2 and 20; y is normal with mean 10 + 5x² and "
            f"standard deviation 30x. {N_ROWS:,} rows, of which a tenth calibrates and a tenth "
            "evaluates; the column true_mean holds 10 + 5x²."
        ),
        "licence": "Data and model: made for kdcal, CC BY 4.0.",
        "trained": (
            f"On {SIZES[0]:,} rows that are in neither table: least squares, "
            f"{intercept:,.1f} + {slope:,.1f} x. It states a mean alone; its standard deviation "
            "is taken from the calibration table."
        ),
        "rmse": float(np.sqrt(np.mean(residual**2))),
    }


def sample(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """x and y (n,) of equation 4, in single precision, which halves the tables."""
    random = np.random.RandomState(seed)
    x = random.uniform(2.0, 20.0, n).astype(np.float32)
    return x, (curve(x) + 30 * x * random.standard_normal(n)).astype(np.float32)


def curve(x: np.ndarray) -> np.ndarray:
    return np.asarray(10 + 5 * x**2)


def to_onnx(slope: float, intercept: float) -> bytes:
    from onnx import helper

    node = helper.make_node("Gemm", ["features", "slope", "intercept"], ["mean"], name="line")
    weights = {"slope": np.array([[slope]]), "intercept": np.array([intercept])}
    return graph_bytes("line", ["x"], ["mean"], [node], weights, "point")
