"""Levels, power and coverage of the measures of Watch, simulated.

``python -m tests.benchmarks.studies.watch.levels [drift power sequential label_free
label_free_errors label_shift shares_fit]`` prints a table each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

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
from kdcal_core.diagnostics.label_free import Weighting
from kdcal_core.statistics import Dependence

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


WEIGHTED_BY: tuple[Weighting, ...] = ("nothing", "scores")
MOVED: dict[str, tuple[Callable[..., FloatArray], ...]] = {
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
"""True rates by score, and draws of the reference scores and of the new ones."""


def label_free_coverage() -> Iterator[str]:
    """Coverage of label-free intervals of the rate and of the AUROC of the new rows."""
    yield "| scores | weights | reference, new | rate | AUROC | rate of the population |"
    yield "|---|---|---|---|---|---|"
    for name, (true, old, new) in MOVED.items():
        for by in WEIGHTED_BY:
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
                        seed=run,
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


def label_free_errors() -> Iterator[str]:
    """Coverage of label-free intervals of the ECE: of all such rows, and of their labels."""
    yield "| scores | weights | reference, new | ECE | covered | ECE of the labels covered |"
    yield "|---|---|---|---|---|---|"
    calibrated = {"calibrated": (lambda s: s, *MOVED["over-confident"][1:])}
    for name, (true, old, new) in (calibrated | MOVED).items():
        for by in WEIGHTED_BY:
            for n, m in ((300, 300), (2000, 500)):
                rng, inside = np.random.default_rng([n, m]), np.zeros(2)
                many = new(rng, 1_000_000)
                ece = binned_error(many, true(many))
                for run in range(200):
                    score, fresh = old(rng, n), new(rng, m)
                    hit, happened = rng.random(n) < true(score), rng.random(m) < true(fresh)
                    found = label_free(
                        score,
                        hit,
                        fresh,
                        weighting=by,
                        n_draws=10,
                        seed=run,
                    ).calibration_error
                    seen = binned_error(fresh, happened)
                    inside += [found.low <= one <= found.high for one in (ece, seen)]
                cells = " | ".join(f"{one:.3f}" for one in (ece, *inside / 200))
                yield f"| {name} | {by} | {n:,}, {m:,} | {cells} |"


def binned_error(score: FloatArray, hit: FloatArray) -> float:
    """The ECE of 15 equal bins by its definition."""
    cell = np.minimum((15 * score).astype(int), 14)
    return float(np.abs(np.bincount(cell, hit - score, 15)).sum() / len(score))


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
            refused += _mean_test(new, proba, None, rng) <= 0.05
        yield f"| {n:,}, {m:,} | {refused / RUNS:.3f} |"


def shares_fit() -> Iterator[str]:
    """Share of the 5% tests of label shift that refuse, by what changed, 1,000 runs."""
    from kdcal_core.diagnostics.label_shift_fit import label_shift_fit

    def two(
        rng: Rng, n: int, share: float, slope: float = 1.0, noise: float = 1.0, of: int = 1
    ) -> tuple[FloatArray, IntArray, IntArray]:
        """Calibrated for a share of .1; in clusters of some rows with a correlation of .3."""
        unit = np.arange(n) // of
        y = (rng.random(n) < share).astype(int)
        together = rng.normal(size=unit[-1] + 1)[unit]
        x = together if of == 1 else np.sqrt(0.3) * together + np.sqrt(0.7) * rng.normal(size=n)
        p = expit(slope * (noise * x + y - 0.5 + logit(0.1)))
        return np.column_stack([1.0 - p, p]), y, unit

    def three(
        rng: Rng, n: int, share: tuple[float, ...], slope: float = 1.0
    ) -> tuple[FloatArray, IntArray, IntArray]:
        y = rng.choice(3, n, p=share)
        odds = rng.normal(size=(n, 3))
        odds[np.arange(n), y] += 1.5
        raised = np.exp(slope * odds)
        return raised / raised.sum(axis=1, keepdims=True), y, np.arange(n)

    some = (0.5, 0.3, 0.2)
    cases: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
        "2 classes, nothing": (partial(two, share=0.1), partial(two, share=0.1)),
        "2 classes, share .1 to .5": (partial(two, share=0.1), partial(two, share=0.5)),
        "2 classes, share .1 to 1": (partial(two, share=0.1), partial(two, share=1.0)),
        "2 classes, log odds times .7": (
            partial(two, share=0.1),
            partial(two, share=0.1, slope=0.7),
        ),
        "2 classes, noise times 1.3": (partial(two, share=0.1), partial(two, share=0.1, noise=1.3)),
        "3 classes, nothing": (partial(three, share=some), partial(three, share=some)),
        "3 classes, shares": (partial(three, share=some), partial(three, share=(0.1, 0.1, 0.8))),
        "3 classes, only one left": (
            partial(three, share=some),
            partial(three, share=(0.0, 0.0, 1.0)),
        ),
        "3 classes, log odds times .8": (
            partial(three, share=some),
            partial(three, share=some, slope=0.8),
        ),
        "clusters of 10, nothing": (
            partial(two, share=0.2, of=10),
            partial(two, share=0.2, of=10),
        ),
        "clusters of 10, share .2 to .5": (
            partial(two, share=0.2, of=10),
            partial(two, share=0.5, of=10),
        ),
        "clusters of 10, log odds times .7": (
            partial(two, share=0.2, of=10),
            partial(two, share=0.2, of=10, slope=0.7),
        ),
    }
    sizes = ((300, 100), (1000, 400), (5000, 1500))
    yield "| what changed | " + " | ".join(f"{n:,}, {m:,}" for n, m in sizes) + " |"
    yield "|---" * (1 + len(sizes)) + "|"
    for name, (before, after) in cases.items():
        cells = []
        for n, m in sizes:
            rng, refused = np.random.default_rng([n, m]), 0
            for run in range(1000):
                (proba, y, unit), (new, _, other) = before(rng, n), after(rng, m)
                both = np.concatenate([unit, n + other])
                together = Dependence.of("cluster", both) if len(np.unique(unit)) < n else None
                p_value = label_shift_fit(new, proba, y, dependence=together, seed=run)
                refused += p_value <= 0.05
            cells.append(f"{refused / 1000:.3f}")
        yield f"| {name} | " + " | ".join(cells) + " |"


PARTS = {
    "shares_fit": shares_fit,
    "mean_test": mean_test,
    "drift": drift,
    "power": power,
    "sequential": sequential,
    "label_free": label_free_coverage,
    "label_free_errors": label_free_errors,
    "label_shift": label_shift_coverage,
}


def main() -> None:
    for name in sys.argv[1:] or PARTS:
        print(f"\n{name}\n", flush=True)
        for line in PARTS[name]():
            print(line, flush=True)


if __name__ == "__main__":
    main()
