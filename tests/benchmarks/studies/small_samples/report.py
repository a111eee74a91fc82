"""The table of small samples: differences to the model as it is and to one temperature, paired."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from kdcal_core.calibration import CALIBRATORS
from tests.benchmarks.studies.small_samples.study import KEYS

BETTER = 1e-3  # nats; less counts as equal
_DRAWS = 2000
_CELL = ["table", "rows", "seed"]


def write(rows: pd.DataFrame, out: Path) -> None:
    """All losses as CSV, and the tables in words and numbers."""
    rows = rows.sort_values([*_CELL, "method", "version"])
    rows.to_csv(out / "small_samples.csv", index=False, float_format="%.5g")
    parts = [
        _one(rows[rows["rows"] == n], int(n), loss)
        for loss in ("top_label", "full")
        for n in sorted(rows["rows"].unique())
    ]
    (out / "small_samples.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _one(rows: pd.DataFrame, n: int, loss: str) -> str:
    wide = rows.pivot_table(index=_CELL, columns=["method", "version"], values=loss)
    bases = {
        "the model as it is": wide[("uncalibrated", "default")],
        "one temperature": wide[("sts", "alone")],
    }
    title = "top-label log loss" if loss == "top_label" else "log loss of the whole vector"
    n_tables = rows["table"].nunique()
    head = [
        f"### {n:,} calibration rows, {title}, {n_tables} tables",
        "",
        "| method | against the model as it is | worst table | wins, losses | "
        "against one temperature | worst table | wins, losses |",
        "|---|---|---|---|---|---|---|",
    ]
    lines = []
    for key in KEYS:
        for version, words in (("default", ""), ("alone", ", without shrinkage")):
            if (key, version) not in wide or key == "uncalibrated":
                continue
            if key == "sts" and version == "alone":
                words = ", the best one (Guo et al.)"
            cells = [_cells(wide[(key, version)] - base) for base in bases.values()]
            lines.append(f"| {CALIBRATORS[key].label}{words} | {' | '.join(cells)} |")
    return "\n".join(head + lines)


def _cells(difference: pd.Series) -> str:
    """Mean with its interval, the worst table, and how many win and lose; tables count alike."""
    each = [group.to_numpy() for _, group in difference.dropna().groupby("table")]
    names = list(difference.dropna().groupby("table").groups)
    means = np.array([one.mean() for one in each])
    rng = np.random.default_rng(0)
    # seeds within each table, and tables
    of_table = np.column_stack(
        [one[rng.integers(0, len(one), (_DRAWS, len(one)))].mean(axis=1) for one in each]
    )
    picked = rng.integers(0, len(each), of_table.shape)
    drawn = np.take_along_axis(of_table, picked, axis=1).mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    worst = int(means.argmax())
    won, lost = int((means < -BETTER).sum()), int((means > BETTER).sum())
    return (
        f"{means.mean():+.4f} ({low:+.4f} to {high:+.4f}) | "
        f"{means[worst]:+.4f} {names[worst]} | {won}, {lost}"
    )
