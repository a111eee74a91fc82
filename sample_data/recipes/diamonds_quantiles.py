"""Prices of diamonds again, but only the quantiles that boosted trees predicted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from recipes import diamonds
from recipes.files import split_rows, write_parquet

LEVELS = (0.025, 0.05, 0.25, 0.5, 0.75, 0.95, 0.975)
N_KNOWN = 3_000


def build(folder: Path) -> dict[str, Any]:
    columns = diamonds.fetched()
    price = columns["price"].astype(np.float64)
    X = np.column_stack([columns[name] for name in diamonds.FEATURES]).astype(np.float64)
    train, calibration, evaluation = split_rows(len(price), diamonds.SIZES, seed=4)
    known = train[:: len(train) // N_KNOWN][:N_KNOWN]
    # Whole dollars, and in order: each level has trees of its own, which may cross.
    models = [
        HistGradientBoostingRegressor(
            loss="quantile", quantile=level, early_stopping=False, random_state=0
        ).fit(X[known], price[known])
        for level in LEVELS
    ]
    for name, rows in (("calibration", calibration), ("evaluation", evaluation)):
        stated = np.sort([model.predict(X[rows]).round() for model in models], axis=0)
        quantiles = {f"quantile_{level:g}": stated[k] for k, level in enumerate(LEVELS)}
        kept = {key: values[rows] for key, values in columns.items()}
        write_parquet(folder / f"{name}.parquet", {**kept, **quantiles})
    inside = (stated[0] <= price[evaluation]) & (price[evaluation] <= stated[-1])
    return {
        "title": "Prices of diamonds, quantiles only",
        "summary": (
            "No model file here, just a table of quantiles from boosted trees that were trained "
            f"on {N_KNOWN:,} diamonds. Look for over-confidence: of 100 prices only "
            f"{100 * inside.mean():.0f} lie between the quantiles that should hold 95."
        ),
        "task": "regression",
        "family": "quantiles",
        "model": None,
        "target": "price",
        "source": diamonds.SOURCE,
        "licence": "Data: MIT. Predictions: made for kdcal, CC BY 4.0.",
        "trained": (
            f"On {N_KNOWN:,} diamonds that are in neither table: gradient boosted trees "
            f"(scikit-learn), one model for each of {len(LEVELS)} quantiles, sorted where they "
            "cross and rounded to whole dollars."
        ),
    }
