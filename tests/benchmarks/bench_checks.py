"""How often verdicts are wrong, and what the test of calibration finds beside older ones.

``python -m tests.benchmarks.bench_checks`` measures everything on all processors and writes
``RESULTS_checks.md``; ``run()`` times the checks among the other benchmarks.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy.special import expit, logit
from scipy.stats import chi2, norm

from kdcal_core.checks import CHECKS, Evidence, judge_checks, measure_checks
from kdcal_core.data import FloatArray, ScoredSet
from kdcal_core.diagnostics import calibration_test
from kdcal_core.distributions import Normal, RegressionSet

RESULTS = Path(__file__).parent / "RESULTS_checks.md"
RUNS, SIZES = 600, (200, 1_000, 5_000)
ECE_DRAWS = 200

Fault = Callable[[FloatArray], FloatArray]

FAULTS: dict[str, Fault] = {
    "calibrated": lambda p: p,
    "log odds 1.25 times too large": lambda p: expit(logit(p) / 1.25),
    "log odds 1.25 times too small": lambda p: expit(logit(p) * 1.25),
    "log odds shifted by 0.25": lambda p: expit(logit(p) - 0.25),
    "only above 0.8, by 0.08": lambda p: np.where(p > 0.8, p - 0.08, p),
    "a bump of 0.1 at 0.5": lambda p: p + 0.1 * np.exp(-(((p - 0.5) / 0.12) ** 2)),
    "a wave of 0.06": lambda p: np.clip(p + 0.06 * np.sin(4 * np.pi * p), 0.001, 0.999),
}
"""The true probability for a stated one."""


def spiegelhalter(score: FloatArray, hit: FloatArray) -> float:
    """p value of Spiegelhalter's z (1986)."""
    away = ((hit - score) * (1 - 2 * score)).sum()
    return float(2 * norm.sf(abs(away) / ((1 - 2 * score) ** 2 * score * (1 - score)).sum() ** 0.5))


def hosmer_lemeshow(score: FloatArray, hit: FloatArray) -> float:
    """p value of Hosmer and Lemeshow's test on ten groups, for rows that were not fitted on."""
    group = np.argsort(np.argsort(score)) * 10 // len(score)
    said, seen = (np.bincount(group, weights=one) for one in (score, hit))
    rows = np.bincount(group)
    return float(chi2.sf(((seen - said) ** 2 / (said * (1 - said / rows))).sum(), 10))


def plain_bootstrap(score: FloatArray, hit: FloatArray, rng: np.random.Generator) -> float:
    """0 where the percentile interval of the ECE lies above 0.01, else 1."""
    cell = np.minimum((score * 15).astype(int), 14)
    gap = hit - score
    n = len(score)
    drawn = [
        np.abs(np.bincount(cell[at], weights=gap[at], minlength=15)).sum() / n
        for at in rng.integers(0, n, (ECE_DRAWS, n))
    ]
    return float(np.quantile(drawn, 0.025) <= 0.01)


TESTS = {
    "adaptive Neyman (kdcal)": lambda score, hit, seed: calibration_test(score, hit, seed=seed),
    "Spiegelhalter": lambda score, hit, seed: spiegelhalter(score, hit),
    "Hosmer-Lemeshow": lambda score, hit, seed: hosmer_lemeshow(score, hit),
    "plain bootstrap of ECE, above 0.01": lambda score, hit, seed: plain_bootstrap(
        score, hit, np.random.default_rng(seed)
    ),
}


def refused(fault: str, n: int) -> dict[str, float]:
    """Share of runs in which each test refuses at 5%."""
    counts = dict.fromkeys(TESTS, 0)
    for seed in range(RUNS):
        rng = np.random.default_rng([seed, n])
        score = expit(rng.normal(size=n) * 1.5)
        hit = (rng.random(n) < FAULTS[fault](score)).astype(np.int64)
        for name, test in TESTS.items():
            counts[name] += test(score, hit, seed) <= 0.05
    return {name: count / RUNS for name, count in counts.items()}


# -- verdicts where the truth is on the limit: whichever verdict is wrong, 5% at most --


def _classes(n: int, rng: np.random.Generator, said: Fault) -> Evidence:
    """True probabilities from 0.05 to 0.9, and what a model says of them."""
    p = rng.uniform(0.05, 0.9, n)
    y = (rng.random(n) < p).astype(np.int64)
    stated = said(p)
    return Evidence(
        ScoredSet(np.column_stack([1 - stated, stated]), y, ("no", "yes"), "", "x"), event=1
    )


def _ranked(n: int, rng: np.random.Generator) -> Evidence:
    """Scores of two classes whose area is 0.7."""
    y = rng.integers(0, 2, n)
    score = rng.normal(size=n) + y * (2**0.5) * norm.ppf(0.7)
    p = expit(score)
    return Evidence(ScoredSet(np.column_stack([1 - p, p]), y, ("no", "yes"), "", "x"), event=1)


def _forecast(n: int, rng: np.random.Generator, spread: float, shift: float) -> Evidence:
    mean = rng.normal(size=n)
    y = mean + rng.normal(size=n)
    return Evidence(RegressionSet(Normal(mean + shift, spread), y, "", "x"))


ON_THE_LIMIT: dict[str, Callable[[int, np.random.Generator], Evidence]] = {
    "KC001": lambda n, rng: _classes(n, rng, lambda p: p + 0.05),
    "KC002": lambda n, rng: _classes(n, rng, lambda p: p + 0.03),
    "KC003": lambda n, rng: _classes(n, rng, lambda p: expit(logit(p) - 0.3)),
    "KC004": lambda n, rng: _classes(n, rng, lambda p: expit(logit(p) / 0.8)),
    "KC101": _ranked,
    # 75% of the outcomes in the central 80%; 45.5% and 92.1% in those of 50 and 95%
    "KC022": lambda n, rng: _forecast(n, rng, norm.ppf(0.875) / norm.ppf(0.9), 0.0),
    "KC023": lambda n, rng: _forecast(n, rng, 1.0, 0.1 * 2**0.5),
}


def verdicts(code: str, n: int) -> dict[str, float]:
    """Share of runs with each verdict, where the truth is on the limit."""
    counts = {"pass": 0, "fail": 0, "not enough evidence": 0}
    for seed in range(RUNS):
        evidence = ON_THE_LIMIT[code](n, np.random.default_rng([seed, n, 1]))
        (found,) = judge_checks(measure_checks(evidence, [code])).results
        assert found.verdict is not None
        counts[found.verdict] += 1
    return {verdict: count / RUNS for verdict, count in counts.items()}


def run() -> list[dict[str, Any]]:
    """Seconds of all quick checks, of classes and of forecasts."""
    rng = np.random.default_rng(0)
    quick = [one.code for one in CHECKS.values() if one.quick]
    rows = []
    for what, evidence in (
        ("two classes", _classes(10_000, rng, lambda p: p)),
        ("normal forecasts", _forecast(10_000, rng, 1.0, 0.0)),
    ):
        start = perf_counter()
        measure_checks(evidence, quick)
        rows.append(
            {
                "name": "checks",
                "what": f"every quick check, {what}",
                "n": 10_000,
                "seconds": perf_counter() - start,
                "reference": None,
                "reference_seconds": None,
                "ratio": None,
                "goal": 2,
            }
        )
    return rows


def main() -> None:
    """Measure, and write the results."""
    with ProcessPoolExecutor() as pool:
        tested = {(fault, n): pool.submit(refused, fault, n) for fault in FAULTS for n in SIZES}
        judged = {(code, n): pool.submit(verdicts, code, n) for code in ON_THE_LIMIT for n in SIZES}
        tables = _tests_table({key: one.result() for key, one in tested.items()})
        limits = _limits_table({key: one.result() for key, one in judged.items()})
    RESULTS.write_text(TEXT.format(date=datetime.now(UTC).date(), tests=tables, limits=limits))


def _tests_table(found: dict[tuple[str, int], dict[str, float]]) -> str:
    sizes = ", ".join(f"{n:,}" for n in SIZES)
    lines = [
        f"| truth; {sizes} rows | " + " | ".join(TESTS) + " |",
        "|---" * (len(TESTS) + 1) + "|",
    ]
    for fault in FAULTS:
        cells = ["; ".join(f"{100 * found[fault, n][test]:.1f}" for n in SIZES) for test in TESTS]
        lines.append(f"| {fault} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _limits_table(found: dict[tuple[str, int], dict[str, float]]) -> str:
    sizes = ", ".join(f"{n:,}" for n in SIZES)
    lines = [f"| check; {sizes} rows | fail | pass |", "|---|---|---|"]
    for code in ON_THE_LIMIT:
        cells = [
            "; ".join(f"{100 * found[code, n][verdict]:.1f}" for n in SIZES)
            for verdict in ("fail", "pass")
        ]
        lines.append(f"| {code} {CHECKS[code].title} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


TEXT = """# How often are verdicts wrong?

Shares of 600 runs, in percent, seeds 0 to 599; a share of 5 has a standard error of 0.9 points.
Measured on {date}. To measure again: `python -m tests.benchmarks.bench_checks`.

## The test of calibration beside older ones

Stated log odds are N(0, 1.5^2); outcomes are drawn from the true probability. Share of runs in
which each test refuses calibration at 5%. The first line is the level, the others are power.

{tests}

The plain percentile interval of the ECE lies above 0 in every run, also where the model is
calibrated, so here it counts as a refusal only where it lies above 0.01; even so it is no test.

## Verdicts where the truth is on the limit

There any verdict but "not enough evidence" may be called wrong. A check that fails or passes in at
most 5% of the runs keeps its error rate; away from the limit it is lower. One check alone, so that
no correction for many checks helps.

{limits}
"""


if __name__ == "__main__":
    main()
