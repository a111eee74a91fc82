"""Measure how time and memory grow, and draw it: ``python -m tests.benchmarks.scaling``.

``rows``: against n, for a forest of 500 trees and a network of four layers of 1,000 nodes.
``nodes``: against the nodes of a layer at n = 10,000 (Dey et al., Fig. 6). Each case runs in a
process of its own; where the table already has it, the quicker run is kept.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts import BandLine
from tests.benchmarks.scaling.fits import Case, in_own_process
from tests.benchmarks.studies import picture
from tests.benchmarks.studies.bands import measure_figure

HERE = Path(__file__).parent
TREES, NODES, MODEST = 500, 1000, 10_000
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
WIDTHS = (10, 30, 100, 300, 1_000, 3_000)
KEYS = list(asdict(Case("forest", 1, 1)))
STYLES = {"forest": "model", "network": "geodesic"}
CASES = {
    "rows": [
        Case(kind, n, nodes)
        for n in SIZES
        for kind, nodes in (("forest", TREES), ("network", NODES))
    ],
    "nodes": [Case("network", MODEST, nodes) for nodes in WIDTHS],
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.scaling", description=__doc__.split("\n", 1)[0]
    )
    parser.add_argument("study", choices=tuple(CASES))
    parser.add_argument("--kinds", nargs="+", choices=tuple(STYLES), default=list(STYLES))
    parser.add_argument("--sizes", nargs="+", type=int, help="of rows, or of nodes; all otherwise")
    parser.add_argument("--draw", action="store_true", help="only draw what was measured")
    options = parser.parse_args()
    path = HERE / f"{options.study}.csv"
    if not options.draw:
        for case in CASES[options.study]:
            size = case.n if options.study == "rows" else case.nodes
            if case.kind in options.kinds and size in (options.sizes or [size]):
                _keep(path, case)
    picture.save(_figures(pd.read_csv(path), options.study), path.with_suffix(".png"))


def _keep(path: Path, case: Case) -> None:
    found = {**in_own_process(case), "load": round(os.getloadavg()[0], 1)}
    print(found, file=sys.stderr)
    table = pd.DataFrame([found])
    if path.exists():
        table = pd.concat([pd.read_csv(path), table])
    table = table.sort_values([*KEYS, "fit_cpu_seconds"]).drop_duplicates(KEYS)
    table.to_csv(path, index=False, float_format="%.4g")


def _figures(table: pd.DataFrame, study: str) -> list[go.Figure]:
    """Time and memory, each against rows or against nodes."""
    place, title = ("n", "Rows of the fit") if study == "rows" else ("nodes", "Nodes per layer")
    columns = {
        "fit_cpu_seconds": "Fit, s of processor",
        "predict_cpu_seconds": "Answer for 10,000 rows, s of processor",
        "peak_gb": "Peak memory, GB",
    }
    if study == "nodes":
        columns = {"polytopes": "Polytopes", **columns}
    return [
        measure_figure(
            [
                BandLine(
                    STYLES[kind],
                    f"Forest of {TREES} trees" if kind == "forest" else "Network, 4 layers",
                    mine[place].to_numpy(np.float64),
                    *[mine[column].to_numpy(np.float64)] * 3,
                )
                for kind, mine in table.groupby("kind")
            ],
            dark=False,
            x_title=title,
            y_title=what,
            log_y=study == "rows",
        )
        for column, what in columns.items()
    ]


if __name__ == "__main__":
    main()
