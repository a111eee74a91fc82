"""The table of estimates without labels: error, coverage and width by method and shift."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd


def write(rows: pd.DataFrame, out: Path) -> None:
    """All estimates as CSV, and means over tables and seeds."""
    rows = rows.sort_values(["table", "model", "strength", "seed", "measure", "method"])
    rows.to_csv(out / "watch.csv", index=False, float_format="%.5g")
    (out / "watch.md").write_text(
        "\n\n".join([_table(rows, ["measure", "model", "strength", "method"]), _losses(rows)])
        + "\n",
        encoding="utf-8",
    )


def _table(rows: pd.DataFrame, keys: list[str]) -> str:
    rows = rows.assign(
        error=(rows["value"] - rows["truth"]).abs(),
        inside=np.where(
            rows["low"].notna(),
            (rows["low"] <= rows["truth"] + 1e-12) & (rows["truth"] <= rows["high"] + 1e-12),
            np.nan,
        ),
        width=rows["high"] - rows["low"],
    )
    grouped = rows.groupby(keys)
    made = pd.DataFrame(
        {
            "given": grouped["value"].count(),
            "mean error": grouped["error"].mean().round(4),
            "coverage": grouped["inside"].apply(lambda one: one.astype(float).mean()).round(3),
            "width": grouped["width"].mean().round(4),
            "effective": grouped["effective"].mean().round(0),
        }
    ).reset_index()
    lines = ["| " + " | ".join(made.columns) + " |", "| " + " | ".join("---" for _ in made) + " |"]
    lines += ["| " + " | ".join(str(v) for v in row) + " |" for row in made.to_numpy()]
    return "\n".join(lines)


def _losses(rows: pd.DataFrame) -> str:
    """Coverage by table, the worst first, for the shifted tables."""
    shifted = rows[(rows["strength"] > 0) & rows["method"].isin(["scores", "features"])]
    return _table(shifted, ["measure", "model", "method", "table"])
