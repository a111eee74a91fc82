"""Prices of diamonds: the Gamma network of Torres et al. (section 4.4), with a forked output."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np

from recipes import gamma_network
from recipes.files import shipped, split_rows, write_parquet

PACKAGE = "plotnine==0.15.9"
MEMBER = "plotnine/data/diamonds.csv"
SHA256 = "9574730b03aba241d899c4a97511c5061b19358fab89510774fb6c24168345c4"

# Ordinal codes from 1 on, the worst first; the paper does not name its encoding.
GRADES = {
    "cut": ("Fair", "Good", "Very Good", "Premium", "Ideal"),
    "color": ("J", "I", "H", "G", "F", "E", "D"),
    "clarity": ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"),
}
# Our name of each feature, in the paper's order, and the name it has in the package.
FEATURES = {
    "carat": "carat",
    "cut": "cut",
    "colour": "color",
    "clarity": "clarity",
    "length": "x",
    "width": "y",
    "depth": "z",
    "table": "table",
}
PARTS = ("training", "calibration", "evaluation")
SIZES = (37_758, 10_788, 5_394)  # 70, 20 and 10 in a hundred of 53,940
SOURCE = (
    "Prices and measures of 53,940 round cut diamonds, as published with the R package ggplot2 "
    "(H. Wickham, 2016) and shipped with the Python package plotnine 0.15.9 (MIT). Cut, colour "
    "and clarity are grades from 1, the worst; length, width, depth in mm; table in per cent; "
    "price in US dollars. A few measures are 0 or plainly wrong, as published."
)
LICENCE = "Data: MIT. Model: made for kdcal, CC BY 4.0."

Columns = dict[str, np.ndarray]


def build(folder: Path) -> dict[str, Any]:
    columns = fetched()
    price = columns["price"]
    X = np.column_stack([columns[name] for name in FEATURES]).astype(np.float64)
    split = dict(zip(PARTS, split_rows(len(price), SIZES, seed=4), strict=True))
    network = gamma_network.train(X[split["training"]], price[split["training"]])
    (folder / "model.onnx").write_bytes(network.to_onnx(list(FEATURES)))
    for name, rows in split.items():
        write_parquet(folder / f"{name}.parquet", {key: v[rows] for key, v in columns.items()})
    held_out = split["evaluation"]
    residual = network.mean(X[held_out]) - price[held_out]
    return {
        "title": "Prices of diamonds, a network with a Gamma forecast",
        "summary": (
            "A neural network forecasts what a diamond costs, with one relative spread for all "
            "stones. Look beyond the average: 94 of 100 prices lie inside the 95% intervals, but "
            "only 82 of 100 for the poorest cut, and the prices of large stones are predicted "
            "too low."
        ),
        "task": "regression",
        "family": "gamma",
        "model": "model.onnx",
        "target": "price",
        "source": SOURCE,
        "licence": LICENCE,
        "trained": (
            f"On the {SIZES[0]:,} diamonds of the training table, which are in no other: ReLU "
            "layers of 100, 5 and 5, a forked exponential output for the mean and for a shape "
            f"that all rows share, Gamma log likelihood, Adam, {gamma_network.EPOCHS} epochs in "
            f"batches of {gamma_network.BATCH}, a learning rate that falls from "
            f"{gamma_network.RATE:g} to 0 (PyTorch, seed {gamma_network.SEED})."
        ),
        "rmse": float(np.sqrt(np.mean(residual**2))),
    }


def fetched() -> Columns:
    """The table of the package."""
    return parse(shipped(PACKAGE, MEMBER, SHA256))


def parse(content: bytes) -> Columns:
    """The features under their names here, grades as whole numbers, and the price."""
    rows = list(csv.DictReader(io.StringIO(content.decode("ascii"))))
    columns = {}
    for name, source in FEATURES.items():
        texts = [row[source] for row in rows]
        if grades := GRADES.get(source):
            columns[name] = np.array([1 + grades.index(text) for text in texts], dtype=np.int8)
        else:
            columns[name] = np.array(texts, dtype=np.float64)
    columns["price"] = np.array([int(row["price"]) for row in rows], dtype=np.int32)
    return columns
