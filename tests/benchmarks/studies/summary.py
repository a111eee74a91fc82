"""From single runs to medians with quartiles, and to the verdict on the expected finding."""

from __future__ import annotations

import numpy as np
import pandas as pd

KEYS = ["study", "simulation", "kind", "n", "d", "method", "measure", "radius"]
ERROR_SLACK, MMC_SLACK, FIRST_RADIUS = 0.01, 0.02, 1.5


def summarised(rows: pd.DataFrame, keys: list[str] = KEYS) -> pd.DataFrame:
    """Median and quartiles over the repetitions."""
    grouped = rows.groupby(keys, dropna=False)["value"]
    table = grouped.agg(
        runs="count",
        median="median",
        q25=lambda values: values.quantile(0.25),
        q75=lambda values: values.quantile(0.75),
    )
    return table.reset_index()


def against_model(rows: pd.DataFrame, method: str, measure: str) -> pd.DataFrame:
    """Paired difference method - model over the repetitions: mean and 95% interval."""
    keys = ["study", "simulation", "kind", "n", "d"]
    one = rows[rows["measure"] == measure]
    wide = one.pivot_table(index=[*keys, "repetition"], columns="method", values="value")
    gap = (wide[method] - wide["model"]).groupby(keys)
    table = gap.agg(["mean", "std", "count"])
    half = 1.96 * table["std"].fillna(0) / np.sqrt(table["count"])
    return table.assign(low=table["mean"] - half, high=table["mean"] + half).reset_index()


def worst_confidence_gap(rows: pd.DataFrame, method: str) -> pd.DataFrame:
    """Largest |MMC - prior| over the radii from 1.5 on, its median over the repetitions."""
    keys = ["study", "simulation", "kind", "n", "d"]
    mmc = rows[rows["measure"] == "MMC"]
    prior = mmc[mmc["method"] == "prior"].set_index([*keys, "repetition"])["value"]
    mine = mmc[(mmc["method"] == method) & (mmc["radius"] >= FIRST_RADIUS)]
    worst = mine.set_index([*keys, "repetition"])["value"].sub(prior).abs()
    by_run = worst.groupby([*keys, "repetition"]).max()
    return by_run.groupby(keys).median().rename("gap").reset_index()


def verdict(rows: pd.DataFrame, method: str = "geodesic") -> pd.DataFrame:
    """The expected finding, one line a simulation and model: does it hold at one setting?

    Error within 0.01 of the model's, Hellinger distance and ECE at or below the model's
    (the interval of the paired difference does not lie above 0), and MMC within 0.02 of the
    prior from radius 1.5 on.
    """
    keys = ["study", "simulation", "kind", "n", "d"]
    table = worst_confidence_gap(rows, method).set_index(keys)
    for measure in ("error", "Hellinger", "ECE", "log loss"):
        if (rows["measure"] == measure).any():
            gap = against_model(rows, method, measure).set_index(keys)
            table[f"{measure} - model"] = gap["mean"]
            table[f"{measure} low"] = gap["low"]
            table[f"{measure} high"] = gap["high"]
            table["runs"] = gap["count"]
    holds = (table["error - model"] <= ERROR_SLACK) & (table["gap"] <= MMC_SLACK)
    holds &= table["ECE low"] <= 0
    if "Hellinger low" in table:
        holds &= table["Hellinger low"].isna() | (table["Hellinger low"] <= 0)
    return table.assign(holds=holds).reset_index()


def markdown(table: pd.DataFrame) -> str:
    """A table of numbers with three decimals."""
    head = [str(column) for column in table.columns]
    body = [[_cell(value) for value in values] for values in table.itertuples(index=False)]
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(value: object) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.3f}"
    return str(value)
