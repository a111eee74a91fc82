"""From single runs to medians with quartiles, and to the verdict on the expected finding."""

from __future__ import annotations

import numpy as np
import pandas as pd

from kdcal_core.statistics import one_sided_wilcoxon

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


def improvements(rows: pd.DataFrame, measure: str, radius: float | None = None) -> pd.DataFrame:
    """Relative improvement over the model (Dey et al., Eq. 21), a row a table, size and method.

    The mean over the repetitions; of a measure by distance, that at ``radius``.
    """
    chosen = rows[rows["measure"] == measure]
    if radius is not None:
        chosen = chosen[chosen["radius"] == radius]
    keys = ["simulation", "n", "repetition"]
    wide = chosen.pivot_table(index=keys, columns="method", values="value")
    model = wide.pop("model")
    gain = wide.rsub(model, axis=0).div(model.where(model > 0), axis=0)
    found = gain.groupby(["simulation", "n"]).mean().stack().rename("value").reset_index()
    return found.set_axis(["simulation", "n", "method", "value"], axis=1)


IMPROVED = {"error": None, "ECE": None, "MCE": None, "OCE": 2.0}
"""Measures of improvement, and the radius of those by distance."""


def improvement_tests(rows: pd.DataFrame, method: str = "geodesic") -> pd.DataFrame:
    """Whether ``method`` improves more than each other one at the largest size of every table.

    One-sided p values of Wilcoxon's rank-sum test, which the earlier version of Dey et al. states,
    and of the signed-rank test, which pairs the values of a table.
    """
    lines = []
    for measure, radius in IMPROVED.items():
        found = improvements(rows, measure, radius)
        if found.empty:
            continue
        last = found[found["n"] == found.groupby("simulation")["n"].transform("max")]
        wide = last.pivot_table(index="simulation", columns="method", values="value")
        for other in wide.columns.drop(method):
            both = wide[[method, other]].dropna().to_numpy()
            tests = [one_sided_wilcoxon(both[:, 0], both[:, 1], paired) for paired in (False, True)]
            lines.append([measure, other, len(both), *tests])
    return pd.DataFrame(
        lines, columns=["measure", f"{method} against", "tables", "rank-sum p", "signed-rank p"]
    )


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
