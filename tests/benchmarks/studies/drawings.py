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
    for measure, radius in (("error", None), ("ECE", None), ("OCE", 2.0)):
        chosen = rows[(rows["kind"] == kind) & (rows["measure"] == measure)]
        if radius is not None:
            chosen = chosen[chosen["radius"] == radius]
        keys = ["simulation", "n", "repetition"]
        wide = chosen.pivot_table(index=keys, columns="method", values="value")
        model = wide.pop("model")
        gain = wide.rsub(model, axis=0).div(model.where(model > 0), axis=0)
        by_table = gain.groupby(["simulation", "n"]).mean().stack().rename("value").reset_index()
        by_table.columns = ["simulation", "n", "method", "value"]
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


def titled(figure: go.Figure, title: str) -> go.Figure:
    return figure.update_layout(title_text=title, margin_t=110, height=figure.layout.height + 40)
