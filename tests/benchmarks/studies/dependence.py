"""Do intervals and tests hold their level if rows depend on one another?

Rows of right models, whose outcomes and predictions are alike in clusters of ten rows, or follow an
autoregression in time. Every estimate is computed as if the rows were independent, and by clusters
or times. A right model's true values are known, so it is counted how often a 95% interval holds
them and how often a test at 5% calls the model wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, ndtr

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics import (
    accuracy,
    brier,
    confidence_calibration_error,
    coverage,
    decision_counts,
    decision_rates,
    ecdf_difference,
    event_gap,
    fault,
    log_loss,
    net_benefit,
    paired_difference,
    pit_histogram,
    quantile_calibration_error,
    standardised_bias,
    uniformity_tests,
    wasserstein,
)
from kdcal_core.diagnostics.auc import auc
from kdcal_core.diagnostics.calibration_line import target_intercept, target_slope
from kdcal_core.diagnostics.calibration_test import target_test
from kdcal_core.diagnostics.targets import targets
from kdcal_core.distributions import Normal
from kdcal_core.evaluation import regression_scores
from kdcal_core.statistics import Dependence, RowDesign, log_losses
from tests.benchmarks.studies.summary import markdown

SIZE = 10  # rows of a cluster
CLUSTERS, SHARED = (20, 40, 100), (0.0, 0.2, 0.5)
TIMES, AUTO = (200, 500), (0.0, 0.5, 0.8)
SPREAD = 1.5  # of the log odds
THRESHOLD = 0.3
DRAWS = 100  # behind the interval of a calibration error
RUNS, BLOCK = 200, 5

Found = Iterator[tuple[str, bool]]


def tasks(quick: bool) -> list[dict[str, Any]]:
    """Blocks of seeds of every design."""
    designs = [("cluster", n, shared) for n in CLUSTERS for shared in SHARED]
    designs += [("time", n, shared) for n in TIMES for shared in AUTO]
    blocks = 1 if quick else RUNS // BLOCK
    return [{"design": one, "block": block} for block in range(blocks) for one in designs]


def run(task: dict[str, Any]) -> list[dict[str, Any]]:
    """Whether each estimate of each seed holds the truth; tests, whether they are silent."""
    kind, n, shared = task["design"]
    rows = []
    for seed in range(BLOCK * task["block"], BLOCK * (task["block"] + 1)):
        rng = np.random.default_rng([seed, n, round(100 * shared), kind == "time"])
        draw, together = _drawing(rng, kind, n, shared)
        z, error = draw(), draw()
        for way, design in (("plain", None), ("together", RowDesign(None, together))):
            for task_name, measured in (("classes", _classes), ("outcomes", _outcomes)):
                for name, held in measured(z, error, design):
                    row = {"kind": kind, "n": n, "shared": shared, "seed": seed, "way": way}
                    rows.append({**row, "task": task_name, "estimate": name, "held": bool(held)})
    return rows


def _drawing(
    rng: np.random.Generator, kind: str, n: int, shared: float
) -> tuple[Callable[[], FloatArray], Dependence]:
    """What draws standard normal numbers of dependent rows, and their dependence."""
    if kind == "cluster":
        unit = np.repeat(np.arange(n), SIZE)

        def of_clusters() -> FloatArray:
            own = rng.normal(size=len(unit))
            return np.asarray(shared**0.5 * rng.normal(size=n)[unit] + (1 - shared) ** 0.5 * own)

        return of_clusters, Dependence.of("cluster", unit)

    def in_time() -> FloatArray:
        found = rng.normal(size=n)
        for at in range(1, n):
            found[at] = shared * found[at - 1] + (1 - shared**2) ** 0.5 * found[at]
        return found

    return in_time, Dependence.of("time", np.arange(n))


@cache
def _truth() -> dict[str, float]:
    """The true values of the classification's estimates, by a fine grid of log odds."""
    z = np.linspace(-8.0, 8.0, 200_001)
    mass = np.exp(-0.5 * z**2)
    mass /= mass.sum()
    p = expit(SPREAD * z)
    flagged = p >= THRESHOLD
    gained = np.where(flagged, p - (1 - p) * THRESHOLD / (1 - THRESHOLD), 0.0)
    below = np.cumsum(mass * (1 - p)) - mass * (1 - p) / 2.0
    events = float(mass @ p)
    return {
        "accuracy": float(mass @ np.maximum(p, 1 - p)),
        "log loss": float(-mass @ (p * np.log(p) + (1 - p) * np.log(1 - p))),
        "Brier": float(mass @ (2 * p * (1 - p))),
        "AUC": float((mass * p) @ below) / (events * (1 - events)),
        "net benefit": float(mass @ gained),
        "sensitivity": float(mass @ (p * flagged)) / events,
    }


def _classes(z: FloatArray, error: FloatArray, design: RowDesign | None) -> Found:
    """Of a model that states the true probabilities."""
    p = expit(SPREAD * z)
    y = (ndtr(error) < p).astype(np.int64)
    proba, truth = np.stack([1.0 - p, p], axis=1), _truth()
    (target,) = targets(proba, y, design, "class", 1)
    counts = decision_counts(p, y, sample_weight=design)
    at, band = counts.at(THRESHOLD), net_benefit(counts)
    estimates = {
        "accuracy": accuracy(proba, y, sample_weight=design),
        "log loss": log_loss(proba, y, sample_weight=design),
        "Brier": brier(proba, y, sample_weight=design),
        "AUC": auc(p, y, sample_weight=design),
        "sensitivity": decision_rates(counts, THRESHOLD)[0],
    }
    for name, one in estimates.items():
        yield name, one.low <= truth[name] <= one.high
    yield "net benefit", band.low[at] <= truth["net benefit"] <= band.high[at]
    gap, slope, offset = (
        event_gap(target, 0.95),
        target_slope(target, 0.95),
        target_intercept(target, 0.95),
    )
    yield "gap", gap.low <= 0.0 <= gap.high
    yield "slope", slope.low <= 1.0 <= slope.high
    yield "intercept", offset.low <= 0.0 <= offset.high
    ece = confidence_calibration_error(p, y, n_boot=DRAWS, sample_weight=design)
    yield "ECE", ece.low <= 0.0
    # two models that are wrong by as much, one to each side
    losses = []
    for moved in (-0.5, 0.5):
        said = expit(SPREAD * z + moved)
        losses.append(log_losses(np.stack([1.0 - said, said], axis=1), y))
    paired = paired_difference(*losses, weight=design)
    yield "paired log loss", paired.low <= 0.0 <= paired.high
    yield "test of calibration", target_test(target) >= 0.05


def _outcomes(z: FloatArray, error: FloatArray, design: RowDesign | None) -> Found:
    """Of a model that states the true distributions, normal ones with a spread of 1."""
    stated, y = Normal(z, 1.0), z + error
    pit = ndtr(error)
    found = regression_scores(stated, y, scale=1.0, pit=pit, weight=design).rows
    truth = {"crps": np.pi**-0.5, "log_score": 0.5 * np.log(2.0 * np.pi) + 0.5, "rmse": 1.0}
    for key, name in (("crps", "CRPS"), ("log_score", "log score"), ("rmse", "RMSE")):
        yield name, found[key].low <= truth[key] <= found[key].high
    for row in coverage(stated, y, (0.5, 0.95), weight=design).rows:
        yield f"coverage {row.level:.0%}", row.coverage.low <= row.level <= row.coverage.high
    bias = standardised_bias(z, y, weight=design)
    yield "bias", bias.low <= 0.0 <= bias.high
    whole = fault(pit, sample_weight=design)
    yield "mean PIT", whole.bias.low <= 0.0 <= whole.bias.high
    yield "spread of PIT", whole.spread.low <= 0.0 <= whole.spread.high
    yield "Wasserstein", wasserstein(pit, sample_weight=design).low <= 0.0
    yield "quantile error", quantile_calibration_error(pit, sample_weight=design).low <= 0.0
    scores = [Normal(z + moved, 1.0).crps(y) for moved in (-0.5, 0.5)]
    paired = paired_difference(*scores, weight=design)
    yield "paired CRPS", paired.low <= 0.0 <= paired.high
    for test in uniformity_tests(pit, sample_weight=design):
        yield test.title, test.p_value >= 0.05
    yield "fault named", whole.kind == "none"
    yield "ECDF band", not ecdf_difference(pit, sample_weight=design).outside.any()
    yield "histogram band", not pit_histogram(pit, 10, sample_weight=design).outside.any()


TESTS = ("test of calibration", "Kolmogorov-Smirnov", "Cramér-von Mises", "Anderson-Darling")
TESTS += ("Frosini", "fault named", "ECDF band", "histogram band")


def write(rows: pd.DataFrame, out: Path) -> None:
    """The shares as tables in ``RESULTS_dependence.md``."""
    done = rows.groupby("seed")[["kind", "n", "shared"]].apply(
        lambda one: len(one.drop_duplicates())
    )
    rows = rows[rows.seed.isin(done.index[done == done.max()])]  # of every design
    share = rows.groupby(["kind", "n", "shared", "task", "estimate", "way"], sort=False).held.mean()
    tests = share.index.get_level_values("estimate").isin(TESTS)
    seeds = rows.seed.nunique()  # in blocks from 0
    error = 100.0 * (0.05 * 0.95 / seeds) ** 0.5
    text = [
        "# Do intervals hold the truth if rows depend on one another?",
        f"Shares of {seeds} runs, in percent, seeds 0 to {seeds - 1}; a share of 95, or of 5, has "
        f"a standard error of {error:.1f} points. To measure again, an hour of processor time:",
        "    python -m tests.benchmarks.studies dependence",
        "## How it was measured",
        _HOW,
        f"Measured on {datetime.now(UTC):%Y-%m-%d}.",
        "Each cell: as if rows were independent; by clusters or times.",
        "## All together",
        _finding(share, tests),
        _together(share, tests),
        "## 95% intervals that hold the true value: classification",
        _table(share[~tests], "classes", 1.0),
        "## 95% intervals that hold the true value: regression",
        _table(share[~tests], "outcomes", 1.0),
        "## Right models that a test at 5%, or a 95% band, calls wrong",
        _table(share[tests], None, -1.0),
    ]
    where = out.parents[1] if out.name == "results" else out
    (where / "RESULTS_dependence.md").write_text("\n\n".join(text) + "\n", encoding="utf-8")


def _finding(share: pd.Series, tests: np.ndarray[Any, Any]) -> str:
    """What the strongest dependence costs, in sentences."""
    sentences = []
    for kind, most in (("cluster", max(SHARED)), ("time", max(AUTO))):
        here = share.index.get_level_values("kind") == kind
        here &= share.index.get_level_values("shared") == most
        held = 100.0 * share[here & ~tests].groupby("way").mean()
        wrong = 100.0 - 100.0 * share[here & tests].groupby("way").mean()
        words = "clusters" if kind == "cluster" else "times"
        sentences.append(
            f"At a correlation of {most:g} in {words}, {held['plain']:.0f}% of the 95% intervals "
            f"hold the truth and {wrong['plain']:.0f}% of right models are called wrong as if rows "
            f"were independent; by {words} {held['together']:.0f}% and {wrong['together']:.0f}%."
        )
    return "\n".join(sentences)


def _together(share: pd.Series, tests: np.ndarray[Any, Any]) -> str:
    """Means over all estimates, and over all tests, of each design."""
    kinds = {
        "intervals that hold": 100.0 * share[~tests],
        "models called wrong": 100.0 - 100.0 * share[tests],
    }
    found = pd.DataFrame(
        {
            name: _cells(one.groupby(["kind", "n", "shared", "way"], sort=False).mean())
            for name, one in kinds.items()
        }
    )
    return markdown(_named(found.reset_index()))


def _cells(value: pd.Series) -> pd.Series:
    """Plain and together in one cell."""
    wide = value.unstack("way")
    return wide["plain"].map("{:.1f}".format) + "; " + wide["together"].map("{:.1f}".format)


def _named(table: pd.DataFrame) -> pd.DataFrame:
    """The table with its designs in words."""
    named = {"cluster": f"clusters of {SIZE}", "time": "times"}
    rows = [f"{n:,} {named[kind]}" for kind, n in zip(table["kind"], table["n"], strict=True)]
    table.insert(0, "rows", rows)
    table["shared"] = table["shared"].map("{:g}".format)
    return table.rename(columns={"shared": "correlation"}).drop(columns=["kind", "n"])


def _table(share: pd.Series, task: str | None, sign: float) -> str:
    """Estimates in columns, designs in rows; plain and together in one cell."""
    found = share if task is None else share.xs(task, level="task")
    value = 100.0 * found if sign > 0 else 100.0 * (1.0 - found)
    cells = _cells(value)
    drop = [] if task is not None else ["task"]
    table = cells.droplevel(drop).unstack("estimate") if drop else cells.unstack("estimate")
    order = list(dict.fromkeys(found.index.get_level_values("estimate")))
    return markdown(_named(table[order].reset_index()))


_HOW = f"""\
- **Rows.** Predictions and errors are standard normal numbers. In clusters of {SIZE} rows the
  correlation is that of two rows of a cluster; in time it is that of neighbouring times (a first
  autoregression).
- **Classification.** Log odds are {SPREAD:g} times the first number; the event happens where the
  normal distribution function of the second is below the stated probability. So the model is right,
  and outcomes of a cluster are alike. The true values come from a fine grid; decisions are at a
  threshold of {THRESHOLD:g}, and {DRAWS} draws are behind the interval of the ECE.
- **Regression.** The model states N(first number, 1), and the outcome is the sum of both.
- **Paired.** Losses of two models that are wrong by as much, one to each side: their true
  difference is 0.
- In time an interval is that of Diebold and Mariano's test with Harvey, Leybourne and Newbold's
  correction (means), or comes from Newey and West's variance with as many lags as
  `kdcal_core.statistics.lags_for` gives."""
