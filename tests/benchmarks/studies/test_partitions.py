"""The table of the study of partitions, from runs that are written here."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from tests.benchmarks.studies.heterogeneous import partitions as study


def test_means_and_wins_are_those_of_the_runs(tmp_path: Path) -> None:
    losses = {"tree": (0.50, 0.40), "forest": (0.49, 0.42), "Platt": (0.50, 0.41)}
    rows = [
        {"table": "adult", "seed": seed, "model": "logistic", "rows": n, "method": method}
        | {"measure": measure, "value": value}
        for n in (study.FEW, 2_000)
        for method in study.METHODS
        for seed, loss in enumerate(losses.get(method, (0.60, 0.60)))
        for measure, value in (("log loss", loss), ("seconds", 2.0))
    ]
    study.write(pd.DataFrame(rows), tmp_path)
    few, many = (tmp_path / "partitions.md").read_text(encoding="utf-8").split("## ")[1:]
    assert few.startswith("300 calibration rows")
    assert few.split("\n", 1)[1].strip() == many.split("\n", 1)[1].strip()
    (forest,) = [line for line in few.splitlines() if line.startswith("| forest |")]
    cells = [cell.strip() for cell in forest.strip("|").split("|")]
    # the mean, less the tree's, wins, the largest loss to Platt and the seconds
    assert cells == ["forest", "0.455", "0.005", "1 of 2", "0.010", "2.000"]
