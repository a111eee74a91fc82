"""What the runs on real tables say: methods, numbers of neighbours, spaces and smoothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

CASE = ["table", "n", "model"]
WAY = ["method", "space", "k"]
SHOWN = {  # title -> method, space and k
    "global": ("global", "", 0),
    "isotonic": ("isotonic", "", 0),
    "density": ("density", "", 0),
    "local, k = 1000": ("local", "inputs", 1000),
    "local, k = 100": ("local", "inputs", 100),
    "k chosen, inputs": ("local, k chosen", "inputs", 0),
    "k and space chosen": ("local, k and space chosen", "", 0),
    "chosen, if it helps": ("local, chosen, if it helps", "", 0),
    "chosen, where needed": ("where needed", "", 0),
    "neighbour regression, k = 25": ("neighbour regression", "inputs", 25),
}
RULES: dict[str, Callable[[float], float]] = {
    **{f"k = {k}": (lambda n, k=k: k) for k in (25, 50, 100, 200, 500, 1000)},
    "k = n / 10": lambda n: n / 10,
    "k = n / 20": lambda n: n / 20,
    "k = n / 40": lambda n: n / 40,
    "k = 2 sqrt(n)": lambda n: 2 * n**0.5,
    "k = sqrt(n)": lambda n: n**0.5,
}


def per_run(rows: pd.DataFrame) -> pd.DataFrame:
    """One line a run and way, with the CRPS in per cent off the model's on the same test rows.

    The way "where needed" and those that choose have no space and k of their own.
    """
    rows = rows.fillna({"space": ""})
    rows.loc[rows["method"] == "where needed", ["space", "k"]] = ["", 0]
    index = [*CASE, "seed", *WAY]
    runs = rows.pivot_table(index=index, columns="measure", values="value", sort=False)
    runs = runs.reset_index()
    model = runs.loc[runs["method"] == "model", [*CASE, "seed", "crps", "log_score"]]
    runs = runs.merge(model, on=[*CASE, "seed"], suffixes=("", " of the model"))
    runs["crps change"] = 100 * (runs["crps"] / runs.pop("crps of the model") - 1)
    runs["log score change"] = runs["log_score"] - runs.pop("log_score of the model")
    return runs


def summarised(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean of every measure over seeds, and the standard error of the change in CRPS."""
    found = runs.drop(columns="seed").groupby([*CASE, *WAY], sort=False)
    table = found.mean()
    table.insert(0, "seeds", found.size())
    table.insert(1, "standard error of the change", found["crps change"].sem())
    return table.reset_index()


def methods(runs: pd.DataFrame) -> str:
    """Change of CRPS by method, one line a case, and means over all runs below."""
    lines = [_line("table", "rows", "model", *SHOWN), _line(*["---"] * (3 + len(SHOWN)))]
    for case, part in runs.groupby(CASE, sort=False):
        lines.append(_line(*case, *(_change(_way(part, way)) for way in SHOWN.values())))
    found = [_way(runs, way) for way in SHOWN.values()]
    of_all = {
        "mean change of CRPS, %": [part["crps change"].mean() for part in found],
        "CRPS better than the model's, % of runs": [
            100 * (part["crps change"] < 0).mean() for part in found
        ],
        "log score, median change": [part["log score change"].median() for part in found],
    }
    for level in (95, 99):
        misses = [part[f"coverage{level}"] - level for part in found]
        of_all[f"coverage of {level}%, mean"] = [level + miss.mean() for miss in misses]
        of_all[f"coverage of {level}%, root mean square miss"] = [
            miss.pow(2).mean() ** 0.5 for miss in misses
        ]
    for title, values in of_all.items():
        lines.append(_line(title, "", "", *(f"{value:.2f}" for value in values)))
    return "\n".join(lines)


def rules(runs: pd.DataFrame) -> str:
    """What a rule for k loses, in per cent of CRPS, against the best k of the grid in hindsight."""
    local = runs[(runs["method"] == "local") & (runs["space"] == "inputs")]
    lost: dict[str, dict[int, list[float]]] = {}
    chosen = _way(runs, SHOWN["k chosen, inputs"])
    for (_, n, _), part in local.groupby(CASE, sort=False):
        means = part.groupby("k")["crps"].mean()
        ks = means.index.to_numpy(dtype=np.float64)
        for title, rule in RULES.items():
            k = means.index[int(np.abs(np.log(ks / rule(n))).argmin())]
            lost.setdefault(title, {}).setdefault(n, []).append(_apart(means[k], means.min()))
    for case, part in chosen.groupby(CASE, sort=False):
        at = local[(local[CASE] == list(case)).all(axis=1)].groupby("k")["crps"].mean().min()
        lost.setdefault("chosen by cross-fitted CRPS", {}).setdefault(case[1], []).append(
            _apart(part["crps"].mean(), at)
        )
    sizes = sorted({n for found in lost.values() for n in found})
    lines = [_line("rule", *(f"{n:,} rows" for n in sizes), "mean of cases", "worst case")]
    lines.append(_line(*["---"] * (3 + len(sizes))))
    for title, found in lost.items():
        every = np.concatenate([found[n] for n in sizes])
        cells = [*(np.mean(found[n]) for n in sizes), every.mean(), every.max()]
        lines.append(_line(title, *(f"{cell:.2f}" for cell in cells)))
    return "\n".join(lines)


def spaces(runs: pd.DataFrame) -> str:
    """Change of CRPS by space with k chosen in each, and how often a space was chosen."""
    found = runs[runs["method"] == "local, k chosen"]
    names = list(dict.fromkeys(found["space"]))
    lines = [_line(*CASE, *names, "k chosen in the inputs"), _line(*["---"] * (4 + len(names)))]
    for case, part in found.groupby(CASE, sort=False):
        ks = part.loc[part["space"] == "inputs", "chosen k"]
        cells = [_change(part[part["space"] == name]) for name in names]
        lines.append(_line(*case, *cells, f"{ks.median():.0f} ({ks.min():.0f} to {ks.max():.0f})"))
    return "\n".join(lines)


def smoothing(runs: pd.DataFrame) -> str:
    """Smoothed less the paper's weighted sample: CRPS in per cent, log score, 99% coverage."""
    on = [*CASE, "seed", "k"]
    smooth = runs[(runs["method"] == "local") & (runs["space"] == "inputs")]
    both = smooth.merge(runs[runs["method"] == "weighted sample"], on=on, suffixes=("", " sample"))
    both["crps apart"] = 100 * (both["crps"] / both["crps sample"] - 1)
    both["log score apart"] = both["log_score"] - both["log_score sample"]
    head = ("k", "runs", "CRPS, %", "log score", "better in log score, % of runs")
    lines = [_line(*head, "99% coverage, sample", "99% coverage, smoothed"), _line(*["---"] * 7)]
    for k, part in both.groupby("k"):
        lines.append(
            _line(
                *(k, len(part), _change(part, "crps apart"), _median(part["log score apart"])),
                f"{100 * (part['log score apart'] < 0).mean():.0f}",
                *(f"{part[name].mean():.1f}" for name in ("coverage99 sample", "coverage99")),
            )
        )
    return "\n".join(lines)


def _way(runs: pd.DataFrame, way: tuple[str, str, int]) -> pd.DataFrame:
    return runs[(runs[WAY] == list(way)).all(axis=1)]


def _apart(value: float, best: float) -> float:
    return 100 * (value / best - 1)


def _change(part: pd.DataFrame, measure: str = "crps change") -> str:
    values = part[measure]
    return f"{values.mean():+.2f} ± {values.sem():.2f}" if len(values) else ""


def _median(values: pd.Series) -> str:
    return f"{values.median():+.3f} (median)"


def _line(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"
