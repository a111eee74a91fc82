"""Real tables: which repair is recommended, whose intervals are best, and is a second model better.

Every repair searches in the inputs with the prediction beside them, by the number of neighbours
with the smallest cross-fitted CRPS there; "space chosen" may take the inputs or the prediction
alone instead.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.distributions import PredictiveDistribution, concatenate
from kdcal_core.regression import (
    GlobalRecalibration,
    LocalRecalibration,
    PooledRecalibration,
    QuantileBoosting,
    RecommendedRecalibration,
    cross_fitted,
    numbers_to_try,
    select_neighbours,
)
from kdcal_core.regression.recommended import CANDIDATES
from tests.benchmarks.studies.recalibration import measured, real, real_models, real_tables

BOTH = "inputs and prediction"
GROUPS = 8
SEEDS, RECOMMENDED_SEEDS = 3, 1
"""The recommended recalibrator, whose many fits take minutes, has the first seed alone."""
Distributions = Iterator[tuple[str, PredictiveDistribution]]


def tasks(quick: bool, folder: Path | None = None) -> list[measured.Row]:
    """The runs of `real`, with fewer seeds."""
    return [task for task in real.tasks(quick, folder) if task["seed"] < SEEDS]


def run(task: measured.Row) -> list[measured.Row]:
    """One model on one draw: as it is, and by every repair."""
    folder, seed = task.pop("folder"), task["seed"]
    warnings.simplefilter("ignore")  # few rows for k; quantiles that touch
    X, y = real_tables.load(task["table"], folder)
    parts = real.split(len(y), task["n"], seed)
    ys = [y[rows] for rows in parts]
    logarithmic = task["table"] in real_tables.LOGARITHMIC
    model = real_models.stated(task["model"], [X[rows] for rows in parts], ys, logarithmic, seed)
    scale = measured.scale_of(ys[1])
    spaces = real.spaces_of(model, X[parts[1]], X[parts[2]])
    rows = measured.entries({**task, "method": "model"}, model.after, ys[2], scale)
    for name, repaired in _repaired(model.before, ys[1], model.after, spaces, seed):
        rows += measured.entries({**task, "method": name}, repaired, ys[2], scale)
    return rows


def _repaired(
    before: PredictiveDistribution,
    y: FloatArray,
    after: PredictiveDistribution,
    spaces: real.Spaces,
    seed: int,
) -> Distributions:
    old, new = spaces[BOTH]
    chosen = select_neighbours(
        before,
        y,
        {name: both[0] for name, both in spaces.items() if name != "last layer"},
        [k for k in numbers_to_try(len(y), 5) if 2 * k <= len(y)],
        seed=seed,
        max_rows=1000,
    )
    k = int(chosen.ks[chosen.crps[chosen.spaces.index(BOTH)].argmin()])
    yield "Mondrian", _mondrian(before, y, after)
    own = LocalRecalibration(k=chosen.best_k).fit(before, y, spaces[chosen.best_space][0])
    yield "local, k and space chosen", own.predict(after, spaces[chosen.best_space][1])
    twice = LocalRecalibration(k=min(2 * k, len(y))).fit(before, y, old)
    yield "local, twice as many", twice.predict(after, new)
    local = LocalRecalibration(k=k).fit(before, y, old).predict(after, new)
    yield "local, then one map", _one_map_more(before, y, old, local, k)
    for name, similar in (("near and wide", 0.0), ("all alike", 1.0)):
        fitted = PooledRecalibration(k=k, similar=similar, seed=seed).fit(before, y, old)
        yield f"pooled, {name}", fitted.predict(after, new)
    second = QuantileBoosting(seed=seed).fit(before, y, spaces["inputs"][0])
    yield "boosting", second.predict(after, spaces["inputs"][1])
    recommended = RecommendedRecalibration(k=k, seed=seed)
    recommended.k_ = k
    answers = {
        key: recommended._make(key).fit(before, y, old).predict(after, new)
        for key in CANDIDATES
        if key != "model"
    }
    yield from answers.items()
    if seed < RECOMMENDED_SEEDS:
        answers["model"] = after
        recommended.fit(before, y, old)
        least = recommended.candidates_[int(recommended.losses_.argmin())]
        yield "smallest loss", answers[least]
        yield "recommended", answers[recommended.chosen_]
        yield f"chosen: {recommended.chosen_}", after


def _one_map_more(
    before: PredictiveDistribution,
    y: FloatArray,
    old: FloatArray,
    local: PredictiveDistribution,
    k: int,
) -> PredictiveDistribution:
    """Global recalibration of the local distributions, from cross-fitted ones."""
    crossed = cross_fitted(lambda: LocalRecalibration(k=k), before, y, old)
    return GlobalRecalibration().fit(crossed, y).predict(local)


def _mondrian(
    before: PredictiveDistribution, y: FloatArray, after: PredictiveDistribution
) -> PredictiveDistribution:
    """Global recalibration in each eighth of the predicted means."""
    cuts = np.quantile(before.mean(), np.arange(1, GROUPS) / GROUPS)
    of_fit, of_new = (np.searchsorted(cuts, one.mean()) for one in (before, after))
    parts: list[PredictiveDistribution] = []
    places: list[IntArray] = []
    for group in np.unique(of_new):
        fit, new = np.flatnonzero(of_fit == group), np.flatnonzero(of_new == group)
        parts.append(GlobalRecalibration().fit(before[fit], y[fit]).predict(after[new]))
        places.append(new)
    return concatenate(parts, np.concatenate(places))


def write(rows: pd.DataFrame, out: Path) -> None:
    """`repairs.csv`, every run; `repairs.md`, changes by table, wins and losses."""
    index = ["table", "n", "model", "seed", "method"]
    runs = rows.pivot_table(index=index, columns="measure", values="value", sort=False)
    runs = runs.reset_index()
    runs.to_csv(out / "repairs.csv", index=False, float_format="%.5g")
    chosen = runs.loc[runs["method"].str.startswith("chosen: "), "method"].value_counts()
    runs = runs[~runs["method"].str.startswith("chosen: ")]
    picked = ", ".join(f"{name.removeprefix('chosen: ')} {n}" for name, n in chosen.items())
    texts = [
        by_table(runs),
        against(runs, "pooled"),
        against(runs, "recommended"),
        f"Recommended: {picked}.",
    ]
    (out / "repairs.md").write_text("\n\n".join(texts) + "\n", encoding="utf-8")


def by_table(runs: pd.DataFrame) -> str:
    """Change of CRPS and sMIS from the model in per cent by table, and mean coverage."""
    case = ["table", "n", "model", "seed"]
    model = runs[runs["method"] == "model"].set_index(case)
    runs = runs.set_index(case).sort_index(kind="stable")
    for name in ("crps", "smis95"):
        runs[f"{name} %"] = 100 * (runs[name] / model[name].reindex(runs.index) - 1)
    tables = list(dict.fromkeys(runs.index.droplevel(["model", "seed"])))
    head = ["method", *(f"{table} {n}" for table, n in tables), "mean", "95%, 99% held"]
    lines = [_line(*head), _line(*["---"] * len(head))]
    for method, part in runs.groupby("method", sort=False):
        cells = [_two(part.loc[table]) for table in tables]
        held = f"{part['coverage95'].mean():.1f}, {part['coverage99'].mean():.1f}"
        lines.append(_line(method, *cells, _two(part), held))
    return "\n".join(lines)


def against(runs: pd.DataFrame, ours: str) -> str:
    """What each method's CRPS and sMIS are above ours, resampled by case, with wins and losses."""
    case = ["table", "n", "model", "seed"]
    wide = {
        name: runs.pivot_table(index=case, columns="method", values=name, sort=False)
        for name in ("crps", "smis95")
    }
    lines = [
        _line(
            "method",
            "CRPS above ours, %",
            "ours wins, loses",
            "sMIS above ours, %",
            "ours wins, loses",
        ),
        _line(*["---"] * 5),
    ]
    for method in wide["crps"].columns.drop(ours):
        cells: list[str] = []
        for table in wide.values():
            above = (100 * (table[method] / table[ours] - 1)).dropna()
            low, high = _interval(above.groupby(level=["table", "n", "model"]).mean().to_numpy())
            wins, losses = int((above > 0).sum()), int((above < 0).sum())
            cells += [f"{above.mean():+.2f} ({low:+.2f} to {high:+.2f})", f"{wins}, {losses}"]
        lines.append(_line(method, *cells))
    return "\n".join(lines)


def _interval(values: FloatArray) -> tuple[float, float]:
    """95% interval of a mean by 2,000 resamples."""
    drawn = np.random.default_rng(0).integers(len(values), size=(2000, len(values)))
    low, high = np.quantile(values[drawn].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def _two(part: Any) -> str:
    return f"{part['crps %'].mean():+.1f}, {part['smis95 %'].mean():+.1f}"


def _line(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"
