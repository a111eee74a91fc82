"""The papers' figures from the summarised runs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts import BandLine
from kdcal_core.charts.marks import distance_figure
from kdcal_core.simulation import SIMULATIONS
from tests.benchmarks.studies.bands import measure_figure
from tests.benchmarks.studies.methods import METHODS
from tests.benchmarks.studies.summary import IMPROVED, improvements


def lines(table: pd.DataFrame, place: str) -> list[BandLine]:
    """One curve a method over the column ``place``."""
    made = []
    for key in METHODS:
        mine = table[table["method"] == key].sort_values(place)
        if len(mine):
            made.append(
                BandLine(
                    key,
                    METHODS[key],
                    mine[place].to_numpy(np.float64),
                    mine["median"].to_numpy(),
                    mine["q25"].to_numpy(),
                    mine["q75"].to_numpy(),
                )
            )
    return made


def simulation_figures(summary: pd.DataFrame, kind: str) -> dict[str, list[go.Figure]]:
    """One page of figures a simulation: error, Hellinger and ECE over n, MMC over distance."""
    pages: dict[str, list[go.Figure]] = {}
    mine = summary[summary["kind"] == kind]
    for name in mine.loc[mine["study"] == "size", "simulation"].unique():
        chosen = mine[(mine["simulation"] == name) & (mine["study"] == "size")]
        pages[name] = [
            titled(
                measure_figure(
                    lines(chosen[chosen["measure"] == measure], "n"),
                    dark=False,
                    x_title="Training rows",
                    y_title=measure[0].upper() + measure[1:],
                ),
                f"{SIMULATIONS[name].title}, {kind}",
            )
            for measure in ("error", "Hellinger", "Hellinger, box", "ECE")
        ]
        far = chosen[(chosen["measure"] == "MMC") & (chosen["n"] == chosen["n"].max())]
        pages[name].append(
            titled(
                distance_figure(
                    lines(far[far["radius"].notna()], "radius"),
                    0.5,
                    dark=False,
                    band_words="quartiles",
                ),
                f"{SIMULATIONS[name].title}, {kind}, n = {chosen['n'].max():,}",
            )
        )
    trunk = mine[mine["study"] == "dimension"]
    if len(trunk):
        pages["trunk"] = [
            titled(
                measure_figure(
                    lines(part, "d"),
                    dark=False,
                    x_title="Dimensions",
                    y_title=title,
                    target=(0.5, "Prior") if title.startswith("MMC") else None,
                ),
                f"Trunk, {kind}, n = {trunk['n'].max():,}",
            )
            for title, part in (
                ("Error", trunk[trunk["measure"] == "error"]),
                ("Hellinger", trunk[trunk["measure"] == "Hellinger"]),
                ("ECE", trunk[trunk["measure"] == "ECE"]),
                ("MMC at radius 20", trunk[(trunk["measure"] == "MMC") & (trunk["radius"] == 20)]),
            )
        ]
    return pages


def table_figures(rows: pd.DataFrame, kind: str) -> list[go.Figure]:
    """Relative improvement over the model against training size, over tables (Eq. 21)."""
    figures = []
    mine = rows[rows["kind"] == kind]
    for measure, radius in IMPROVED.items():
        by_table = improvements(mine, measure, radius)
        if by_table.empty:
            continue
        grouped = by_table.groupby(["n", "method"])["value"]
        spread = grouped.quantile([0.25, 0.5, 0.75]).unstack().reset_index()
        spread.columns = ["n", "method", "q25", "median", "q75"]
        figures.append(
            titled(
                measure_figure(
                    lines(spread, "n"),
                    dark=False,
                    x_title="Training rows",
                    y_title=f"Improvement of {measure}",
                    target=(0.0, "Model"),
                ),
                f"Real tables, {kind}: relative improvement of {measure} over the model",
            )
        )
    return figures


def pages_of_tables(summary: pd.DataFrame, kind: str) -> dict[str, list[go.Figure]]:
    """One page a table: its measures over n, and MMC over distance at the largest n."""
    pages: dict[str, list[go.Figure]] = {}
    mine = summary[summary["kind"] == kind]
    for name in mine["simulation"].unique():
        chosen = mine[mine["simulation"] == name]
        pages[name] = [
            titled(
                measure_figure(
                    lines(part, "n"), dark=False, x_title="Training rows", y_title=measure
                ),
                f"{name}, {kind}: {measure}",
            )
            for measure in ("error", "ECE", "MCE")
            if len(part := chosen[chosen["measure"] == measure])
        ]
        far = chosen[(chosen["measure"] == "MMC") & (chosen["n"] == chosen["n"].max())]
        prior = far.loc[far["method"] == "prior", "median"]
        pages[name].append(
            titled(
                distance_figure(
                    lines(far[far["radius"].notna()], "radius"),
                    float(prior.iloc[0]),
                    dark=False,
                    band_words="quartiles",
                ),
                f"{name}, {kind}, n = {chosen['n'].max():,}",
            )
        )
    return pages


def titled(figure: go.Figure, title: str) -> go.Figure:
    return figure.update_layout(title_text=title, margin_t=110, height=figure.layout.height + 40)
