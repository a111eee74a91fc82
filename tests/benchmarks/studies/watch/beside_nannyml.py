"""CBPE of nannyml on the tables that the study kept: ``python beside_nannyml.py CACHE``.

Runs in an environment of its own that has nannyml; nothing of kdcal is imported.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd


def estimated(path: Path) -> list[dict[str, object]]:
    """nannyml's estimates of one pair of tables, and what the labels say."""
    from nannyml import CBPE
    from sklearn.metrics import roc_auc_score

    kept = np.load(path)

    def frame(score: np.ndarray, y: np.ndarray) -> pd.DataFrame:
        return pd.DataFrame({"p": score, "pred": (score > 0.5).astype(int), "y": y})

    old, new = frame(kept["score"], kept["y"]), frame(kept["new"], kept["y_new"])
    estimator = CBPE(
        y_pred_proba="p",
        y_pred="pred",
        y_true="y",
        problem_type="classification_binary",
        metrics=["roc_auc", "accuracy"],
        chunk_number=1,
    )
    estimator.fit(old)
    found = estimator.estimate(new.drop(columns="y")).filter(period="analysis").to_df()
    truth = {"roc_auc": roc_auc_score(new.y, new.p), "accuracy": float((new.pred == new.y).mean())}
    table, strength, seed = path.stem.rsplit("_", 2)
    return [
        {
            "table": table,
            "strength": float(strength),
            "seed": int(seed),
            "measure": measure,
            "truth": true,
            "value": float(found[(measure, "value")].iloc[0]),
            "low": float(found[(measure, "lower_confidence_boundary")].iloc[0]),
            "high": float(found[(measure, "upper_confidence_boundary")].iloc[0]),
        }
        for measure, true in truth.items()
    ]


def main() -> None:
    rows = pd.DataFrame(
        [row for path in sorted(Path(sys.argv[1]).glob("*.npz")) for row in estimated(path)]
    )
    rows["error"] = (rows["value"] - rows["truth"]).abs()
    rows["inside"] = (rows["low"] <= rows["truth"]) & (rows["truth"] <= rows["high"])
    rows["width"] = rows["high"] - rows["low"]
    print(rows.groupby(["measure", "strength"])[["error", "inside", "width"]].mean().round(4))


if __name__ == "__main__":
    main()
