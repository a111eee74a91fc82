"""Levels, power and coverage of the measures of Watch, simulated.

``python -m tests.benchmarks.studies.watch.levels [drift power sequential label_free label_shift]``
prints a table each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import expit, logit

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics import (
    auc,
    label_free,
    label_shift,
    score_shift,
    sequential_calibration,
)

Rng = np.random.Generator
SIZES = ((20, 20), (30, 200), (200, 30), (300, 300))
RUNS, DRAWS = 2_000, 199

SCORES: dict[str, Callable[[Rng, int], FloatArray]] = {
    "continuous": lambda rng, n: rng.beta(2, 2, n),
    "ten values": lambda rng, n: rng.binomial(10, 0.1, n) / 10,
    "three values": lambda rng, n: rng.choice([0.1, 0.5, 0.9], n, p=[0.9, 0.08, 0.02]),
    "half are 1": lambda rng, n: np.where(rng.random(n) < 0.5, 1.0, rng.random(n)),
}


def drift() -> Iterator[str]:
    """Share of 5% tests that refuse two tables of one population."""
    yield "| scores | reference, new | PSI | KS | Wasserstein |\n|---|---|---|---|---|"
    for name, drawn in SCORES.items():
        for n, m in SIZES:
            rng = np.random.default_rng([n, m, len(name)])
            refused = np.zeros(3)
            for run in range(RUNS):
                found = score_shift(drawn(rng, n), drawn(rng, m), n_draws=DRAWS, seed=run)
                refused += [one.p_value <= 0.05 for one in found.tests]
            yield f"| {name} | {n}, {m} | " + " | ".join(f"{r:.3f}" for r in refused / RUNS) + " |"


def power() -> Iterator[str]:
    """The same for tables that differ."""
    yield "| new scores | reference, new | PSI | KS | Wasserstein |\n|---|---|---|---|---|"
    moved: dict[str, Callable[[Rng, int], FloatArray]] = {
        "beta(2, 2) to beta(2, 2.5)": lambda rng, n: rng.beta(2, 2.5, n),
        "to beta(3, 3)": lambda rng, n: rng.beta(3, 3, n),
        "5% at 1": lambda rng, n: np.where(rng.random(n) < 0.05, 1.0, rng.beta(2, 2, n)),
    }
    for name, drawn in moved.items():
        for n, m in ((300, 300), (1000, 500)):
            rng = np.random.default_rng([n, m, len(name)])
            refused = np.zeros(3)
            for run in range(300):
                old = SCORES["continuous"](rng, n)
                found = score_shift(old, drawn(rng, m), n_draws=DRAWS, seed=run)
                refused += [one.p_value <= 0.05 for one in found.tests]
            yield f"| {name} | {n}, {m} | " + " | ".join(f"{r:.2f}" for r in refused / 300) + " |"


def sequential() -> Iterator[str]:
    """Signals of a calibrated model that is looked at after each of 1,000 rows, and of others."""
    yield "| model | runs | signalled | rows to the signal, median | sequence missed |"
    yield "|---|---|---|---|---|"
    even = SCORES["continuous"]
    cases: dict[str, tuple[Callable[[Rng, int], FloatArray], Callable[..., FloatArray]]] = {
        "calibrated, beta(2, 2)": (even, lambda p: p),
        "calibrated, beta(0.5, 20)": (lambda rng, n: rng.beta(0.5, 20, n), lambda p: p),
        "calibrated, ties with 0 and 1": (
            lambda rng, n: rng.choice([0.0, 0.1, 0.9, 1.0], n),
            lambda p: p,
        ),
        "log odds 0.4 too low": (even, lambda p: expit(logit(p) + 0.4)),
        "log odds too extreme by 1 / 0.7": (even, lambda p: expit(0.7 * logit(p))),
        "0.2 too high between 0.6 and 0.7": (
            even,
            lambda p: np.where((p > 0.6) & (p < 0.7), p - 0.2, p),
        ),
    }
    for name, (drawn, fault) in cases.items():
        calibrated = name.startswith("calibrated")
        runs, n = (RUNS, 1_000) if calibrated else (200, 3_000)
        rng, at, missed = np.random.default_rng(len(name)), [], 0
        for _ in range(runs):
            p = drawn(rng, n)
            true = fault(p)
            found = sequential_calibration(p, rng.random(n) < true)
            at.append(found.crossed_at or np.inf)
            gap = np.cumsum(p - true) / np.arange(1, n + 1)
            missed += not ((found.gap_low <= gap) & (gap <= found.gap_high)).all()
        share, middle = np.isfinite(at).mean(), np.median(at)
        yield f"| {name} | {runs:,} | {share:.3f} | {middle:,.0f} | {missed / runs:.3f} |"


def over(score: FloatArray) -> FloatArray:
    """True rates of an over-confident model."""
    return np.asarray(expit(0.7 * logit(np.clip(score, 1e-9, 1 - 1e-9))))


def label_free_coverage() -> Iterator[str]:
    """Coverage of label-free intervals of the rate and of the AUROC of the new rows."""
    yield "| scores | weights | reference, new | rate | AUROC | rate of the population |"
    yield "|---|---|---|---|---|---|"
    cases: dict[str, tuple[Callable[..., FloatArray], ...]] = {
        "over-confident": (over, lambda r, n: r.beta(1, 2, n), lambda r, n: r.beta(2, 2, n)),
        "wavy": (
            lambda s: np.clip(s + 0.08 * np.sin(4 * np.pi * s), 0, 1),
            lambda r, n: r.beta(1, 2, n),
            lambda r, n: r.beta(2, 2, n),
        ),
        "rare": (
            lambda s: 0.8 * s,
            lambda r, n: r.beta(0.5, 20, n),
            lambda r, n: r.beta(0.8, 20, n),
        ),
        "21 values": (
            over,
            lambda r, n: r.binomial(20, r.beta(1, 2, n)) / 20,
            lambda r, n: r.binomial(20, r.beta(2, 2, n)) / 20,
        ),
    }
    for name, (true, old, new) in cases.items():
        for by in ("nothing", "scores"):
            for n, m in ((300, 300), (2000, 500)):
                rng, inside = np.random.default_rng([n, m]), np.zeros(3)
                mean = float(true(new(rng, 400_000)).mean())
                for run in range(200):
                    score, fresh = old(rng, n), new(rng, m)
                    hit, happened = rng.random(n) < true(score), rng.random(m) < true(fresh)
                    found = label_free(
                        score,
                        hit,
                        fresh,
                        weighting=by,
                        n_draws=150,
                        seed=run,  # type: ignore
                    )
                    area = auc(fresh, happened.astype(int)).value
                    rate, curve, whole = found.rate.rows, found.auc.rows, found.rate.population
                    inside += [
                        rate.low <= happened.mean() <= rate.high,
                        np.isnan(area) or curve.low <= area <= curve.high,
                        whole.low <= mean <= whole.high,
                    ]
                cells = " | ".join(f"{one:.3f}" for one in inside / 200)
                yield f"| {name} | {by} | {n:,}, {m:,} | {cells} |"


def label_shift_coverage() -> Iterator[str]:
    """Coverage of the intervals of a class's share, and refusals of the test, 100 runs."""
    yield "| classes, separation | true share, before | reference, new | coverage | refused |"
    yield "|---|---|---|---|---|"

    def table(
        rng: Rng, share: FloatArray, source: FloatArray, n: int, separation: float
    ) -> tuple[FloatArray, IntArray]:
        y = rng.choice(len(share), size=n, p=share)
        x = rng.normal(size=(n, len(share)))
        x[np.arange(n), y] += separation
        odds = separation * x + np.log(source)
        proba = np.exp(odds - odds.max(axis=1, keepdims=True))
        return proba / proba.sum(axis=1, keepdims=True), y

    rng = np.random.default_rng(0)
    for source, share, separation in (
        ((0.7, 0.3), (0.7, 0.3), 1.0),
        ((0.7, 0.3), (0.3, 0.7), 1.0),
        ((0.7, 0.3), (0.98, 0.02), 2.0),
        ((0.25,) * 4, (0.1, 0.2, 0.3, 0.4), 1.5),
    ):
        for n, m in ((300, 300), (1000, 300)):
            old, new, inside, refused = np.array(source), np.array(share), 0, 0
            for run in range(100):
                proba, y = table(rng, old, old, n, separation)
                fresh, _ = table(rng, new, old, m, separation)
                found = label_shift(fresh, proba, y, n_draws=100, seed=run)
                inside += found.shares[1].low <= new[1] <= found.shares[1].high
                refused += found.p_value <= 0.05
            yield (
                f"| {len(old)}, {separation:g} | {new[1]:.2f}, {old[1]:.2f} | {n:,}, {m:,} | "
                f"{inside / 100:.3f} | {refused / 100:.3f} |"
            )


def mean_test() -> Iterator[str]:
    """Share of the 5% tests of equal class shares that refuse two tables of one population."""
    from kdcal_core.diagnostics.label_shift import _mean_test

    yield "| reference, new | refused |\n|---|---|"
    for n, m in ((100, 60), (4000, 2000)):
        rng, refused = np.random.default_rng([n, m]), 0
        for _ in range(RUNS):
            new, proba = (rng.dirichlet([0.3, 0.5, 1.0], rows) for rows in (m, n))
            refused += _mean_test(new, proba, rng) <= 0.05
        yield f"| {n:,}, {m:,} | {refused / RUNS:.3f} |"


PARTS = {
    "mean_test": mean_test,
    "drift": drift,
    "power": power,
    "sequential": sequential,
    "label_free": label_free_coverage,
    "label_shift": label_shift_coverage,
}


def main() -> None:
    for name in sys.argv[1:] or PARTS:
        print(f"\n{name}\n", flush=True)
        for line in PARTS[name]():
            print(line, flush=True)


if __name__ == "__main__":
    main()
