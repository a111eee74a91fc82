"""m samples a row: how often tests reject calibrated ones, what intervals hold before and after.

``python -m tests.benchmarks.bench_ensembles`` prints the tables of RESULTS_ensembles.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.diagnostics.regression import uniformity_tests
from kdcal_core.distributions import Empirical, Normal, PredictiveDistribution, randomised_pit
from kdcal_core.errors import InputWarning
from kdcal_core.regression import (
    RECALIBRATORS,
    IsotonicRecalibration,
    LocalRecalibration,
    Recalibrator,
)

SAMPLES = (5, 10, 20, 100)
LEVELS = (0.5, 0.8, 0.95)
METHODS = ("local", "where_needed", "global", "isotonic", "density")
Drawn = tuple[PredictiveDistribution, Any, Any]


def rejections(runs: int = 2000, n: int = 200) -> pd.DataFrame:
    """Share of runs in which each test rejects calibrated ensembles at 5%, in per cent."""
    found = []
    for m in SAMPLES:
        for kind in ("continuous", "counts"):
            rng = np.random.default_rng([m, kind == "counts"])
            shape = (runs * n, m + 1)
            if kind == "counts":
                drawn = rng.poisson(rng.gamma(2.0, 1.0, (runs * n, 1)), shape).astype(float)
            else:
                drawn = rng.normal(0.0, rng.gamma(3.0, 1.0, (runs * n, 1)), shape)
            pit = randomised_pit(Empirical(drawn[:, :m]), drawn[:, m], 0).reshape(runs, n)
            tests = [uniformity_tests(row) for row in pit]
            row: dict[str, Any] = {"m": m, "outcomes": kind}
            for at, title in enumerate(one.title for one in tests[0]):
                row[title] = 100 * np.mean([one[at].p_value < 0.05 for one in tests])
            found.append(row)
    return pd.DataFrame(found)


def ensembles(m: int, n: int, width: float, seed: int) -> Drawn:
    """Normal members around the outcomes' mean given x, with ``width`` times their spread."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    mean, spread = x[:, 0], np.exp(0.3 * x[:, 1])
    y = mean + spread * rng.normal(size=n)
    members = mean[:, None] + width * spread[:, None] * rng.normal(size=(n, m))
    return Empirical(members), y, x


def coverage_by_method(seeds: int = 2, n: int = 2000, new: int = 4000) -> pd.DataFrame:
    """Share of new outcomes inside central intervals, before and after every recalibration."""
    found = []
    for width in (1.0, 0.5):
        for m in SAMPLES:
            for key in ("", *METHODS):
                rows = [_judged(key, m, n, new, width, seed) for seed in range(seeds)]
                held = np.mean(rows, axis=0)
                row: dict[str, Any] = {"members' spread": width, "m": m, "method": key or "as is"}
                row |= {f"{100 * c:g}%": 100 * h for c, h in zip(LEVELS, held, strict=False)}
                found.append(row | {"CRPS": held[-1]})
    return pd.DataFrame(found)


def _judged(key: str, m: int, n: int, new: int, width: float, seed: int) -> list[float]:
    distribution, y, x = ensembles(m, n, width, seed)
    judged, new_y, new_x = ensembles(m, new, width, 1000 + seed)
    if key:
        judged = _fit(RECALIBRATORS[key].make(), distribution, y, x).predict(judged, new_x)
    return [*_held(judged, new_y), float(judged.crps(new_y).mean())]


def two_peaks(n: int, seed: int) -> Drawn:
    """Outcomes of two peaks under a normal of the right mean and spread."""
    rng = np.random.default_rng(seed)
    y = 2.5 * rng.choice([-1.0, 1.0], n) + 0.5 * rng.normal(size=n)
    return Normal(np.zeros(n), 2.55), y, rng.random((n, 2))


def one_peak(n: int, seed: int) -> Drawn:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    return Normal(np.ones(n), 1.7), x[:, 0] ** 2 + rng.normal(size=n), x


def smoothing(seeds: int = 4, new: int = 4000) -> pd.DataFrame:
    """Local recalibration by its bandwidth."""
    found = []
    draws: dict[str, Callable[[int, int], Drawn]] = {"two peaks": two_peaks, "one peak": one_peak}
    for name, draw in draws.items():
        for n in (500, 2000, 10_000):
            for how in ("auto", "kernel", "none"):
                rows, chosen = [], []
                for seed in range(seeds):
                    local = LocalRecalibration(smoothing=how).fit(*draw(n, seed))
                    base, y, x = draw(new, 100 + seed)
                    after = local.predict(base, x)
                    rows.append([*_held(after, y), after.crps(y).mean(), _log(after, y)])
                    chosen.append(local.bandwidth_)
                *held, crps, log = np.mean(rows, axis=0)
                row: dict[str, Any] = {"outcomes": name, "n": n, "smoothing": how}
                row |= {f"{100 * c:g}%": 100 * h for c, h in zip(LEVELS, held, strict=True)}
                row |= {"CRPS": crps, "log score": log, "bandwidth": np.mean(chosen)}
                found.append(row)
    return pd.DataFrame(found)


def isotonic(seeds: int = 5, new: int = 4000) -> pd.DataFrame:
    """Isotonic recalibration with joined corners and with the smooth map."""
    found = []
    for spread in (0.5, 1.0, 3.0):
        for n in (100, 1000, 10_000):
            for how in ("none", "auto"):
                rows = []
                for seed in range(seeds):
                    rng = np.random.default_rng([seed, n])
                    y, new_y = rng.normal(size=n), rng.normal(size=new)
                    fitted = IsotonicRecalibration(smoothing=how).fit(
                        Normal(np.zeros(n), spread), y
                    )
                    after = fitted.predict(Normal(np.zeros(new), spread))
                    rows.append(
                        [*_held(after, new_y), after.crps(new_y).mean(), _log(after, new_y)]
                    )
                *held, crps, log = np.mean(rows, axis=0)
                row: dict[str, Any] = {"stated spread": spread, "n": n, "smoothing": how}
                row |= {f"{100 * c:g}%": 100 * h for c, h in zip(LEVELS, held, strict=True)}
                found.append(row | {"CRPS": crps, "log score": log})
    return pd.DataFrame(found)


def faulty(kind: str, n: int, seed: int) -> Drawn:
    """A normal model that is calibrated, or wrong in a fifth, in its spread, or everywhere."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    mean, noise = x[:, 0], rng.normal(size=n)
    y = {
        "none": mean + noise,
        "mean of a fifth": mean + noise + (x[:, 1] > 0.84),
        "spread": mean + noise * np.exp(0.5 * x[:, 1]),
        "mean everywhere": mean + noise + 0.5 * np.sin(2 * x[:, 1]),
    }[kind]
    return Normal(mean, 1.0), y, x


def where_needed(seeds: int = 20, few: int = 6, new: int = 3000) -> pd.DataFrame:
    """Change of CRPS in per cent of the model's: local, and where needed by its k."""
    found = []
    for kind in ("none", "mean of a fifth", "spread", "mean everywhere"):
        for n in (500, 2000):
            changes = []
            for seed in range(seeds if kind == "none" else few):
                calibration = faulty(kind, n, seed)
                base, y, x = faulty(kind, new, 1000 + seed)
                before = base.crps(y)
                methods = (
                    LocalRecalibration(),
                    RECALIBRATORS["where_needed"].make(),
                    RECALIBRATORS["where_needed"].make(k=1000),
                )
                after = [_fit(one, *calibration).predict(base, x).crps(y) for one in methods]
                changes.append([100 * (one - before).mean() / before.mean() for one in after])
            mean, error = np.mean(changes, axis=0), np.std(changes, axis=0) / len(changes) ** 0.5
            titles = ("local", "where needed", "where needed, k = 1000")
            row: dict[str, Any] = {"fault": kind, "n": n, "seeds": len(changes)}
            text = zip(titles, mean, error, strict=True)
            found.append(row | {title: f"{m:+.2f} ± {e:.2f}" for title, m, e in text})
    return pd.DataFrame(found)


def _fit(
    method: Recalibrator, distribution: PredictiveDistribution, y: Any, x: Any
) -> Recalibrator:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        return method.fit(distribution, y, x)


def _held(distribution: PredictiveDistribution, y: Any) -> list[float]:
    ends = [distribution.interval(level) for level in LEVELS]
    return [float(np.mean((low <= y) & (y <= high))) for low, high in ends]


def _log(distribution: PredictiveDistribution, y: Any) -> float:
    return float(-distribution.log_density(y).mean())


def run() -> list[dict[str, Any]]:
    """Rows of the benchmark table: how long answers about many samples a row take."""
    samples = np.random.default_rng(0).normal(size=(10_000, 200))
    distribution, y = Empirical(samples), np.random.default_rng(1).normal(size=10_000)
    jobs: tuple[tuple[str, Callable[[], Any], float], ...] = (
        ("rank PIT values", lambda: randomised_pit(distribution, y, 0), 1.0),
        ("95% intervals", lambda: distribution.interval(0.95), 1.0),
        ("CRPS", lambda: distribution.crps(y), 2.0),
        ("log densities", lambda: distribution.log_density(y), 2.0),
    )
    rows = []
    for what, job, goal in jobs:
        start = perf_counter()
        job()
        rows.append(
            {
                "name": f"ensembles: {what}",
                "what": "200 samples a row",
                "n": len(y),
                "seconds": perf_counter() - start,
                "reference": None,
                "reference_seconds": None,
                "ratio": None,
                "goal": goal,
            }
        )
    return rows


def markdown(frame: pd.DataFrame) -> str:
    """A table as Markdown, numbers to three digits."""
    shown = [
        [f"{value:.3g}" if isinstance(value, float) else str(value) for value in row]
        for row in frame.itertuples(index=False)
    ]
    lines = [list(frame.columns), ["---"] * len(frame.columns), *shown]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    for measured in (rejections, coverage_by_method, smoothing, isotonic, where_needed):
        print(f"## {measured.__name__}\n\n{markdown(measured())}\n", flush=True)
