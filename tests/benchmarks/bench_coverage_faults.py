"""Coverage of calibration errors' intervals where the fault is no logistic map of the scores.

python -m tests.benchmarks.bench_coverage_faults [runs] prints a line for each fault and size, and
with "headline" in place of a number how often Reliability's names a fault of calibrated models;
results stand in RESULTS_coverage.md. Written from the definitions: nothing of the estimators but
their edges of equal mass is used for the truth.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from scipy.ndimage import gaussian_filter1d

from kdcal_core.data.binning import quantile_edges
from kdcal_core.diagnostics import (
    calibration_error,
    confidence_calibration_error,
    confidence_gap,
    confidence_smooth_calibration_error,
    headline_estimate,
    reliability,
    reliability_finding,
)
from tests.benchmarks.bench_coverage import drawn as softmax_drawn

SEED, MANY, LATTICE = 77, 200_000, 4096
GRADES = np.array([0.55, 0.65, 0.75, 0.9, 0.99])
GRADE_GAPS = np.array([0.0, 0.1, -0.1, 0.0, -0.05])


def _piled(rng: np.random.Generator, n: int) -> np.ndarray:
    score = rng.uniform(0.5, 1.0, n)
    return np.where(rng.random(n) < 0.8, 1.0 - 1e-7, score)


# what is stated, and what is true of it
FAULTS: dict[str, tuple[Callable, Callable]] = {
    "over-confident by .15 from .7 to .9": (
        lambda rng, n: rng.uniform(0.5, 1.0, n),
        lambda s: np.where((s > 0.7) & (s < 0.9), s - 0.15, s),
    ),
    "80% of rows say 1, 97% of them right": (_piled, lambda s: np.where(s > 0.9999, 0.97, s)),
    "five distinct scores": (
        lambda rng, n: rng.choice(GRADES, n, p=[0.1, 0.2, 0.3, 0.2, 0.2]),
        lambda s: s + GRADE_GAPS[np.searchsorted(GRADES, s)],
    ),
    "a rare event, 1.7 times as often as said": (
        lambda rng, n: rng.beta(1.0, 30.0, n),
        lambda s: np.minimum(1.7 * s, 1.0),
    ),
}


def binned(edges: np.ndarray, score: np.ndarray, true: np.ndarray, norm: str) -> float:
    """True error of these bins."""
    size = len(edges) - 1
    place = np.clip(np.searchsorted(edges, score) - 1, 0, size - 1)
    count = np.bincount(place, minlength=size)
    gap = np.bincount(place, true - score, size) / np.maximum(count, 1)
    share = count / count.sum()
    return float(share @ np.abs(gap) if norm == "l1" else (share @ gap**2) ** 0.5)


def smooth(score: np.ndarray, true: np.ndarray) -> float:
    """True smooth ECE: smoothed on a lattice with its ends reflected, and halved to the root."""
    place = np.minimum((score * LATTICE).astype(int), LATTICE - 1)
    gap = np.bincount(place, (true - score) / len(score), LATTICE)
    low, high = 1e-5, 1.0
    for _ in range(25):
        middle = (low * high) ** 0.5
        smoothed = gaussian_filter1d(gap, middle * LATTICE, mode="reflect", truncate=8)
        low, high = (middle, high) if np.abs(smoothed).sum() > middle else (low, middle)
    return low


def main(runs: int = 80) -> None:
    """One line for each fault and number of rows: coverage in percent of every estimator."""
    rng = np.random.default_rng(SEED)
    equal = np.linspace(0.0, 1.0, 16)
    for name, (draw, truth) in FAULTS.items():
        many = draw(rng, MANY)
        true = truth(many)
        of_smooth = smooth(many, true)
        for n in (300, 1_000, 10_000):
            held: dict[str, list[bool]] = {}
            for seed in range(runs):
                score = draw(rng, n)
                hit = (rng.random(n) < truth(score)).astype(int)
                mass = quantile_edges(score, 15, None)
                drawn = {"n_boot": 200, "seed": seed}
                found = (
                    ("ECE", {}, binned(equal, many, true, "l1")),
                    ("equal mass", {"strategy": "quantile"}, binned(mass, many, true, "l1")),
                    ("l2", {"norm": "l2"}, binned(equal, many, true, "l2")),
                )
                for label, settings, goal in found:
                    e = confidence_calibration_error(score, hit, **settings, **drawn)
                    held.setdefault(label, []).append(e.low <= goal <= e.high)
                if seed % 2 == 0:
                    e = confidence_smooth_calibration_error(score, hit, n_boot=60, seed=seed)
                    held.setdefault("smooth", []).append(e.low <= of_smooth <= e.high)
            shown = ", ".join(f"{k} {100 * np.mean(v):.1f}" for k, v in held.items())
            print(f"{name}, {n:,} rows: {shown}", flush=True)


def headline(runs: int = 350) -> None:
    """Share of calibrated models that Reliability's headline calls over- or under-confident."""
    every = []
    for classes in (2, 4):
        for n in (50, 200, 1_000):
            named = []
            for seed, run in np.ndindex(2, runs):
                rng = np.random.default_rng([seed + 1, classes, n, run])
                stated, _, y = softmax_drawn(n, classes, 1.0, rng)
                error = calibration_error(stated, y, n_boot=300, seed=run)
                estimate = headline_estimate([confidence_gap(stated, y), error])
                text = reliability_finding(reliability(stated, y, smooth=False), estimate)
                named.append(not text.startswith("Within"))
            print(f"{classes} classes, {n:,} rows: {100 * np.mean(named):.1f}%", flush=True)
            every += named
    print(f"all: {100 * np.mean(every):.1f}% of {len(every):,} runs")


if __name__ == "__main__":
    if sys.argv[1:] == ["headline"]:
        headline()
    else:
        main(*map(int, sys.argv[1:]))
