"""Real tables with a number to predict: two shipped samples, and a folder's where one is given.

A folder holds ``airfoil.parquet`` and ``wine_white.parquet`` (UCI), all numbers. The wine table
holds 937 rows more than once: copies are dropped, since in the calibration set they would be
perfect neighbours.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray

SAMPLES = Path(__file__).parents[4] / "sample_data"
OUTCOMES = {"diamonds": "price", "adult": "age", "airfoil": "pressure_db", "wine": "quality"}
IN_FOLDER = {"airfoil": "airfoil", "wine": "wine_white"}
LOGARITHMIC = ("diamonds",)
"""Prices: point forecasts are made on the logarithmic scale."""


def load(name: str, folder: str | None) -> tuple[FloatArray, FloatArray]:
    """Features (n, d), categories as 0 and 1, and outcomes (n,)."""
    if name in IN_FOLDER:
        assert folder is not None
        table = pd.read_parquet(Path(folder) / f"{IN_FOLDER[name]}.parquet")
    else:
        parts = sorted((SAMPLES / name).glob("*.parquet"))
        table = pd.concat([pd.read_parquet(part) for part in parts])
    if name == "wine":
        table = table.drop_duplicates()
    table = table.drop(columns=["education", "occupation", "native-country"], errors="ignore")
    y = table.pop(OUTCOMES[name]).to_numpy(dtype=np.float64)
    X = pd.get_dummies(table).to_numpy(dtype=np.float64)
    return X[:, X.std(axis=0) > 0], y
