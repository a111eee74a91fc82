"""Durfee et al.'s tables and claims from the runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from tests.benchmarks.studies.heterogeneous.networks import SIZES
from tests.benchmarks.studies.heterogeneous.tables import TITLES

NETWORK = ["size", "regularised", "rate"]
TUNED = "tree, depth tuned"
SHOWN = ("tree", TUNED)
# AUC of the network and lift of heterogeneous calibration.
PRINTED = {
    ("adult", "top 3", "S"): "0.8976, +0.50%",
    ("adult", "top 3", "M"): "0.8978, +0.55%",
    ("adult", "top 3", "L"): "0.9007, +0.22%",
    ("adult", "top 50%", "S"): "0.8892, +1.27%",
    ("adult", "top 50%", "M"): "0.8858, +1.70%",
    ("adult", "top 50%", "L"): "0.8800, +2.38%",
    ("credit_default", "top 3", "S"): "0.7784, +0.18%",
    ("credit_default", "top 3", "M"): "0.7787, +0.09%",
    ("credit_default", "top 3", "L"): "0.7783, +0.14%",
    ("credit_default", "top 50%", "S"): "0.7771, +0.23%",
    ("credit_default", "top 50%", "M"): "0.7775, +0.20%",
    ("credit_default", "top 50%", "L"): "0.7772, +0.23%",
    ("adult", "S", "regularised"): "0.8976, +0.50%",
    ("adult", "S", "plain"): "0.8773, +2.42%",
    ("credit_default", "S", "regularised"): "0.7781, +0.16%",
    ("credit_default", "S", "plain"): "0.7768, +0.25%",
}


def wide(rows: pd.DataFrame, measure: str) -> pd.DataFrame:
    """One measure with a row a network and seed, a column a method."""
    chosen = rows[(rows["measure"] == measure) & (rows["size"] != "")]
    keys = ["table", *NETWORK, "seed"]
    return chosen.pivot_table(index=keys, columns="method", values="value")


def best(rows: pd.DataFrame, groups: Sequence[str], n: int) -> pd.DataFrame:
    """The AUC of the ``n`` networks of each group with the best mean AUC on validation rows."""
    judged = wide(rows, "AUC, validation")["network"].groupby(["table", *NETWORK]).mean()
    place = judged.groupby(list(groups)).rank(ascending=False, method="first")
    chosen = place[place <= n].index
    auc = wide(rows, "AUC")
    return auc[auc.index.droplevel("seed").isin(chosen)]


def lifts(auc: pd.DataFrame, groups: Sequence[str]) -> pd.DataFrame:
    """Mean AUC before, and the relative lift in per cent with its spread over seeds."""
    by_seed = auc.groupby([*groups, "seed"]).mean()
    lift = 100 * by_seed.div(by_seed["network"], axis=0).sub(1)
    found = by_seed[["network"]].groupby(list(groups)).mean()
    for name in SHOWN:
        grouped = lift[name].groupby(list(groups))
        found[name], found[f"{name} ±"] = grouped.mean(), grouped.std()
    return found


def table_1(rows: pd.DataFrame) -> pd.DataFrame:
    """Top three and top half of the variants of each size."""
    count = rows.loc[rows["size"] == "S", ["regularised", "rate"]].drop_duplicates().shape[0]
    parts = {
        "top 3": lifts(best(rows, ["table", "size"], 3), ["table", "size"]),
        "top 50%": lifts(best(rows, ["table", "size"], count // 2), ["table", "size"]),
    }
    return pd.concat(parts, names=["variants"]).reorder_levels(["table", "variants", "size"])


def table_2(rows: pd.DataFrame) -> pd.DataFrame:
    """Top three of the regularised and of the plain variants; medium and large: lost Table 3."""
    groups = ["table", "size", "regularised"]
    return lifts(best(rows, groups, 3), groups)


def claims(rows: pd.DataFrame) -> pd.DataFrame:
    """What the paper claims, in numbers of each table (a column)."""
    return pd.DataFrame({name: _claims_of(rows[rows["table"] == name]) for name in names(rows)})


def partitions(rows: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Kinds of partitions where all were measured: means by method, over tables and rates."""
    every = wide(rows, measure).dropna()
    found = every.groupby(["table", "rate"]).mean().T
    alone = rows[(rows["size"] == "") & (rows["measure"] == measure)]
    trees = alone.groupby(["method", "table"])["value"].mean().unstack()
    for table, rate in found.columns:
        for method in trees.index:
            found.loc[method, (table, rate)] = trees.loc[method, table]
    return found


def names(rows: pd.DataFrame) -> list[str]:
    """The tables that were run, in order."""
    return [name for name in TITLES if name in set(rows["table"])]


def _claims_of(rows: pd.DataFrame) -> dict[str, str]:
    name = rows["table"].iloc[0]
    auc, loss = wide(rows, "AUC"), wide(rows, "log loss")
    sign = wide(rows, "AUC better or worse")[TUNED]
    tops = table_1(rows)[TUNED]
    plain = table_2(rows)[TUNED].unstack("regularised")
    more = plain[False] > plain[True]
    grows = [np.diff(tops[name, group].reindex(list(SIZES))) for group in ("top 3", "top 50%")]
    ranges = auc.groupby(NETWORK).mean().groupby(NETWORK[:2])
    spread = (ranges.max() - ranges.min()).mean()
    over = wide(rows, "over-confidence")["network"]
    rank = (auc[TUNED] / auc["network"]).corr(over, method="spearman")
    moved = (auc["Platt"] - auc["network"]).abs().max()
    return {
        "networks": f"{len(auc)}",
        "AUC better, undecided, worse": ", ".join(
            str(found.sum()) for found in (sign > 0, sign == 0, sign < 0)
        ),
        "lift grows with size: top 3, top 50%": ", ".join(
            "yes" if (steps > 0).all() else "no" for steps in grows
        ),
        "sizes where plain networks gain more": f"{more.sum()} of {len(more)}",
        "range of AUC over learning rates": f"{spread['network']:.4f} to {spread[TUNED]:.4f}",
        "rank correlation of lift and over-confidence": f"{rank:.2f}",
        "most that global Platt moves the AUC": f"{moved:.1g}",
        "log loss: network, Platt, tree": ", ".join(
            f"{loss[one].mean():.3f}" for one in ("network", "Platt", TUNED)
        ),
    }
