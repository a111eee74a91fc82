"""CRPS to expect of new forecasts without outcomes, and the test of outcomes that come late.

``python -m tests.benchmarks.studies.watch.forecasts [FOLDER]`` simulates, and with a folder of the
real tables measures these too: trees forecast a mean, and other trees the size of its error. New
rows are drawn by their inputs alone, as in `study`, so that P(y|x) is unchanged.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics import label_free_forecasts, sequential_uniformity
from kdcal_core.diagnostics.regression.label_free_forecasts import expected_crps
from kdcal_core.distributions import Normal
from tests.benchmarks.studies.watch.study import drawn

Rng = np.random.Generator
RUNS, SEEDS = 400, 8
STRENGTHS = (0.0, 1.0, 2.0)
TABLES = {
    "airfoil": "pressure_db",
    "wine_white": "quality",
    "diamonds": "price",
    "adult": "age",
    "credit_default": "LIMIT_BAL",
    "diabetes": "target",
}
_MOST = 8_000


def simulated() -> Iterator[str]:
    """Coverage of the expected CRPS; large spreads are more common among the new rows."""
    yield "| outcomes | reference, new | CRPS of the new rows | error, ours | error, reference |"
    yield "|---|---|---|---|---|"
    cases: dict[str, Callable[[Rng, int], FloatArray]] = {
        "as forecast": lambda rng, n: rng.normal(size=n),
        "1.4 times as wide": lambda rng, n: 1.4 * rng.normal(size=n),
        "0.3 higher": lambda rng, n: rng.normal(0.3, 1.0, n),
        "Student's t, 4 degrees": lambda rng, n: rng.standard_t(4, n) / 2.0**0.5,
    }
    for name, scores in cases.items():
        for n, m in ((100, 100), (400, 300), (2000, 500)):
            rng, inside, errors = np.random.default_rng([n, m, len(name)]), 0, np.zeros(2)
            for _ in range(RUNS):
                old, new = rng.uniform(1, 3, n), 1.0 + 2.0 * rng.beta(3.0, 1.5, m)
                y, fresh = old * scores(rng, n), new * scores(rng, m)
                reference, said = Normal(np.zeros(n), old), Normal(np.zeros(m), new)
                found = label_free_forecasts(reference, y, said).crps
                truth, before = said.crps(fresh).mean(), reference.crps(y).mean()
                inside += found.low <= truth <= found.high
                errors += abs(found.value - truth), abs(before - truth)
            ours, theirs = errors / RUNS
            yield f"| {name} | {n:,}, {m:,} | {inside / RUNS:.3f} | {ours:.3f} | {theirs:.3f} |"


def sequential() -> Iterator[str]:
    """Signals where one looks after each of 1,000 rows, or of 3,000 with a fault."""
    yield "| PIT values | runs | signalled | rows to the signal, median |\n|---|---|---|---|"
    cases: dict[str, Callable[[Rng, int], FloatArray]] = {
        "uniform": lambda rng, n: rng.random(n),
        "of outcomes 0.2 deviations higher": lambda rng, n: _pit(rng.normal(0.2, 1.0, n)),
        "of outcomes 1.2 times as wide": lambda rng, n: _pit(1.2 * rng.normal(size=n)),
    }
    for name, pit in cases.items():
        runs, n = (2_000, 1_000) if name == "uniform" else (200, 3_000)
        rng = np.random.default_rng(len(name))
        found = [sequential_uniformity(pit(rng, n), rng.random(n)) for _ in range(runs)]
        at = np.array([one.crossed_at or np.inf for one in found])
        middle = np.median(at)
        words = f"{middle:,.0f}" if np.isfinite(middle) else "none"
        yield f"| {name} | {runs:,} | {np.isfinite(at).mean():.3f} | {words} |"


def _pit(z: FloatArray) -> FloatArray:
    return Normal(np.zeros(len(z)), np.ones(len(z))).cdf(z)


def real(folder: Path) -> Iterator[str]:
    """Relative error and coverage of each method, by strength of the shift."""
    rows = pd.DataFrame(
        [
            one
            for name in TABLES
            for strength in STRENGTHS
            for seed in range(SEEDS)
            for one in _judged(name, folder, strength, seed)
        ]
    )
    yield "| table | method | " + " | ".join(f"strength {one:g}" for one in STRENGTHS) + " |"
    yield "|---|---|---|---|---|"
    for (name, method), some in rows.groupby(["table", "method"], sort=False):
        cells = [
            f"{one.error.mean():.3f}, {one.inside.mean():.2f}"
            for _, one in some.groupby("strength")
        ]
        yield f"| {name} | {method} | " + " | ".join(cells) + " |"


def _judged(name: str, folder: Path, strength: float, seed: int) -> Iterator[dict[str, object]]:
    X, y = _table(name, folder)
    rng = np.random.default_rng([seed, int(10 * strength), len(y)])
    order = rng.permutation(len(y))[:_MOST]
    train, rest = np.split(order, [2 * len(order) // 5])
    mean = _trees().fit(X.iloc[train], y[train])
    missed = np.abs(y[train] - mean.predict(X.iloc[train]))
    size = _trees().fit(X.iloc[train], missed)

    def said(at: object) -> Normal:
        spread = 1.25 * size.predict(X.iloc[at])  # of a normal, its mean absolute error
        return Normal(mean.predict(X.iloc[at]), np.maximum(spread, 0.1 * float(np.std(missed))))

    reference, new = drawn(X, rest, strength, rng)
    old, fresh = said(reference), said(new)
    truth, before = float(fresh.crps(y[new]).mean()), old.crps(y[reference])
    found = label_free_forecasts(old, y[reference], fresh)
    half = 1.96 * float(before.std(ddof=1)) / len(before) ** 0.5
    known, alone = float(before.mean()), float(expected_crps(fresh).mean())
    for method, value, low, high in (
        ("the reference value", known, known - half, known + half),
        ("as the forecasts expect", alone, np.nan, np.nan),
        ("ours", found.crps.value, found.crps.low, found.crps.high),
    ):
        yield {
            **{"table": name, "strength": strength, "method": method},
            **{"error": abs(value - truth) / truth, "inside": low <= truth <= high},
        }


def _trees() -> HistGradientBoostingRegressor:
    return HistGradientBoostingRegressor(max_iter=50, learning_rate=0.2, random_state=0)


def _table(name: str, folder: Path) -> tuple[pd.DataFrame, FloatArray]:
    if name == "diabetes":
        X, y = load_diabetes(return_X_y=True, as_frame=True)
        return X, y.to_numpy(dtype=float)
    frame = pd.read_parquet(folder / f"{name}.parquet")
    target = TABLES[name]
    X = frame.drop(columns=target)
    for one in X.columns:
        if not pd.api.types.is_numeric_dtype(X[one].dtype):
            X[one] = X[one].astype(str).astype("category").cat.codes
    return X, frame[target].to_numpy(dtype=float)


def main() -> None:
    parts = [simulated(), sequential()]
    if len(sys.argv) > 1:
        parts.append(real(Path(sys.argv[1])))
    for part in parts:
        for line in part:
            print(line, flush=True)
        print(flush=True)


if __name__ == "__main__":
    main()
