"""Do the intervals of a folder whose rows have an order in time agree with those of one table?

Scores and outcomes of near times are alike. Every estimate of a folder comes from a summary of the
rows, that of one table from the rows themselves. It is counted how often a 95% interval of either
holds the true value, and how wide the one is beside the other.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, logit, ndtr

from kdcal_core import diagnostics as of_rows
from kdcal_core.data import FloatArray, IntArray, ScoredSet
from kdcal_core.diagnostics import Estimate
from kdcal_core.diagnostics import summaries as of_folder
from kdcal_core.diagnostics.summaries.by_time import TimeTable
from kdcal_core.diagnostics.summaries.class_summary import ClassTally
from kdcal_core.diagnostics.summaries.cluster_blocks import RowClusters
from kdcal_core.distributions import Normal
from kdcal_core.statistics import Dependence, RowDesign
from tests.benchmarks.studies.summary import markdown

SIZES = {20_000: 240, 200_000: 200}  # tables of each number of rows
TIMES, AUTO, BLOCK = (365, 1_460), (0.5, 0.9), 20
LATENT = (0.5, 0.2)  # shares of the latent variance of scores and outcomes that a time's rows share
STEEP, MOVED, NARROW, HIGH = 1.4, 0.3, 0.85, 0.1  # how far the wrong model is off
LEVEL, TAIL = 0.95, 1.959964
CLASSES = ("no", "yes")

Estimates = dict[str, Estimate]


def tasks(quick: bool) -> list[dict[str, Any]]:
    """Blocks of seeds of every design."""
    sizes = {20_000: BLOCK} if quick else SIZES
    return [
        {"n": n, "times": times, "auto": auto, "wrong": wrong, "block": block}
        for n, runs in sizes.items()
        for block in range(runs // BLOCK)
        for times in TIMES
        for auto in AUTO
        for wrong in (False, True)
    ]


def run(task: dict[str, Any]) -> list[dict[str, Any]]:
    """Of each estimate of each seed, whether both intervals hold the truth, and their widths."""
    design = {key: task[key] for key in ("n", "times", "auto", "wrong")}
    rows = []
    for seed in range(BLOCK * task["block"], BLOCK * (task["block"] + 1)):
        folder, table = _both(*_drawn(np.random.default_rng(seed), **design))
        for name, value in _truth(task["wrong"]).items():
            row = {**design, "seed": seed, "estimate": name}
            for where, found in (("folder", folder[name]), ("table", table[name])):
                row[f"{where} holds"] = bool(found.low <= value <= found.high)
                row[f"{where} width"] = found.high - found.low
            rows.append(row)
    return rows


def _drawn(
    rng: np.random.Generator, n: int, times: int, auto: float, wrong: bool
) -> tuple[IntArray, FloatArray, IntArray, Normal, FloatArray]:
    """Times, stated probabilities, events, forecasts and outcomes."""
    day = rng.integers(0, times, n)
    of_outcomes, of_scores = (_series(rng, times, auto)[day] for _ in range(2))
    latent = [
        share**0.5 * shared + (1 - share) ** 0.5 * rng.normal(size=n)
        for share, shared in zip(LATENT, (of_scores, of_outcomes), strict=True)
    ]
    z, error = latent
    p = expit(1.2 * z - 0.5)
    y = (ndtr(error) < p).astype(np.int64)
    said = expit(STEEP * logit(p) + MOVED) if wrong else p
    forecasts = Normal(z + HIGH, np.full(n, NARROW)) if wrong else Normal(z, np.ones(n))
    return day, said, y, forecasts, z + error


def _series(rng: np.random.Generator, n: int, auto: float) -> FloatArray:
    """A first autoregression of variance 1."""
    found = rng.normal(size=n)
    for at in range(1, n):
        found[at] = auto * found[at - 1] + (1 - auto**2) ** 0.5 * found[at]
    return found


@cache
def _truth(wrong: bool) -> dict[str, float]:
    """The true values, given the probabilities of four million rows."""
    p = expit(1.2 * np.random.default_rng(10**6).normal(size=4_000_000) - 0.5)
    said = expit(STEEP * logit(p) + MOVED) if wrong else p
    order = np.argsort(said)
    events, others = p[order], 1.0 - p[order]
    auc = events @ (np.cumsum(others) - 0.5 * others) / (events.sum() * others.sum())
    spread, moved = (NARROW, HIGH) if wrong else (1.0, 0.0)
    ends = ndtr(TAIL * spread + moved) - ndtr(-TAIL * spread + moved)
    confidence, right = np.maximum(said, 1.0 - said), np.where(said > 0.5, p, 1.0 - p)
    return {
        "ECE of the event": _calibration_error(said, p),
        "ECE of the confidence": _calibration_error(confidence, right),
        "log loss": float(-np.mean(p * np.log(said) + (1.0 - p) * np.log1p(-said))),
        "AUC": float(auc),
        "Brier": float(2.0 * np.mean(p * (1.0 - said) ** 2 + (1.0 - p) * said**2)),
        "gap": float(np.mean(said - p)),
        "coverage of 95%": float(ends),
        "bias": moved / 2.0**0.5,  # in standard deviations of the outcome
    }


def _calibration_error(said: FloatArray, p: FloatArray) -> float:
    place = np.minimum((15 * said).astype(np.int64), 14)
    return float(np.abs(np.bincount(place, said - p)).sum() / len(p))


def _both(
    day: IntArray, said: FloatArray, y: IntArray, forecasts: Normal, outcomes: FloatArray
) -> tuple[Estimates, Estimates]:
    """The estimates of a folder, and those of the same rows in one table."""
    proba = np.column_stack([1.0 - said, said])
    found, place = np.unique(day, return_inverse=True)
    unit = RowClusters(place.astype(np.int64), "day", len(found))
    tally = ClassTally(CLASSES)
    tally.add(proba, y, first=0, cluster=unit)
    asked = [(y.astype(np.float64), said, said * (1.0 - said))]
    by_time = TimeTable.of(day.astype(np.float64), "day", asked, event=1)
    classes = of_folder.judged_rows(replace(tally.summary(), by_time=by_time))
    forecast = of_folder.judged_rows(
        of_folder.summarise_regression(forecasts, outcomes, cluster=unit)
    )
    folder = {
        "ECE of the event": of_folder.summary_calibration_error(classes, 1),
        "ECE of the confidence": of_folder.summary_calibration_error(classes),
        "log loss": of_folder.summary_log_loss(classes),
        "AUC": of_folder.summary_auroc(classes),
        "Brier": of_folder.summary_brier(classes),
        "gap": of_folder.summary_gap(classes, 1),
        "coverage of 95%": of_folder.summary_coverage(forecast, [LEVEL]).rows[0].coverage,
        "bias": of_folder.summary_bias(forecast),
    }
    together = Dependence.of("time", day)
    design = RowDesign(None, together)
    scored = replace(ScoredSet(proba, y, CLASSES, "", "evaluation"), dependence=together)
    auc, gap, error, *_ = of_rows.event_summary(scored, 1)
    levels = of_rows.coverage(forecasts, outcomes, [LEVEL], weight=design)
    bias = of_rows.standardised_bias(forecasts.mean(), outcomes, weight=design)
    table = {
        "ECE of the event": error,
        "ECE of the confidence": of_rows.calibration_error(proba, y, sample_weight=design),
        "log loss": of_rows.log_loss(proba, y, sample_weight=design),
        "AUC": auc,
        "Brier": of_rows.brier(proba, y, sample_weight=design),
        "gap": gap,
        "coverage of 95%": levels.rows[0].coverage,
        "bias": bias,
    }
    return folder, table


def write(rows: pd.DataFrame, out: Path) -> None:
    """The shares and widths as tables in ``RESULTS_folder_times.md``."""
    rows = rows.assign(width=rows["folder width"] / rows["table width"])
    text = [
        "# Do intervals of folders in time agree with those of one table?",
        "To measure again, a quarter of an hour on two cores:",
        "    python -m tests.benchmarks.studies folder_times",
        _HOW,
        f"Measured on {datetime.now(UTC):%Y-%m-%d}.",
    ]
    for n, some in rows.groupby("n", sort=False):
        seeds = some["seed"].nunique()
        text += [
            f"## {seeds} tables of {n:,} rows (seeds 0 to {seeds - 1})",
            "Share of 95% intervals of a folder that hold the truth; in brackets that of the same "
            "rows in one table, where it differs:",
            _cells(some, ("folder holds", "table holds"), _held),
            "Widths of a folder's over those of one table: mean and standard deviation.",
            _cells(some, ("width",), _width),
        ]
    where = out.parents[1] if out.name == "results" else out
    (where / "RESULTS_folder_times.md").write_text("\n\n".join(text) + "\n", encoding="utf-8")


def _held(values: pd.DataFrame) -> str:
    folder, table = (f"{share:.3f}" for share in values.mean())
    return folder if folder == table else f"{folder} ({table})"


def _width(values: pd.DataFrame) -> str:
    width = values["width"]
    return f"{width.mean():.3f}, {width.std():.3f}"


def _cells(rows: pd.DataFrame, columns: tuple[str, ...], said: Any) -> str:
    """Designs in rows, estimates in columns."""
    table = []
    for (times, auto, wrong), some in rows.groupby(["times", "auto", "wrong"], sort=True):
        cells = {
            name: said(each[list(columns)]) for name, each in some.groupby("estimate", sort=False)
        }
        words = f"{times:,}; {auto:g}{', wrong' if wrong else ''}"
        table.append({"times; autocorrelation": words, **cells})
    return markdown(pd.DataFrame(table))


_HOW = f"""\
Every time has a random number of rows. {LATENT[0]:g} of the latent variance of the scores and
{LATENT[1]:g} of that of the outcomes are first autoregressions of the times. The right model states
the true probabilities and distributions. The wrong one states log odds {STEEP:g} times too far from
0 plus {MOVED:g}, and normal distributions with means {HIGH:g} too high and deviations of {NARROW:g}
times the true ones. The true values come from four million rows."""
