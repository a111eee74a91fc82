"""Do the intervals of the CORP split of the Brier score hold the truth?

    python -m tests.benchmarks.studies.score_split [RUNS]

prints the tables of RESULTS_coverage.md, "The parts of the Brier score".
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
from scipy.special import softmax

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics import brier_decomposition
from kdcal_core.diagnostics.scores import split_rows
from kdcal_core.diagnostics.targets import targets
from kdcal_core.statistics import Dependence, RowDesign, mean_interval

MODELS = {"right": 1.0, "twice too sure": 2.0, "slope 0.7": 0.7}
OF = ("vector", "top-label")
MANY = 400_000


def logits(n: int, n_classes: int, rng: np.random.Generator) -> FloatArray:
    """Of two classes the second's is N(0, 1.5^2) and the first's 0; of more, all N(0, 1.5^2)."""
    drawn = 1.5 * rng.normal(size=(n, n_classes))
    if n_classes == 2:
        drawn[:, 0] = 0.0
    return np.asarray(drawn)


def truth(n_classes: int, slope: float, of: str) -> tuple[float, float]:
    """Miscalibration and discrimination of the population, of two classes or a right model."""
    odds = logits(MANY, n_classes, np.random.default_rng(99))
    true, said = softmax(odds, axis=1), softmax(slope * odds, axis=1)
    if of == "top-label":
        top = said.argmax(axis=1)[:, None]
        true, said = (np.take_along_axis(one, top, axis=1) for one in (true, said))
    off = float(np.square(true - said).sum(axis=1).mean())
    return off, float(np.square(true - true.mean(axis=0)).sum(axis=1).mean())


def drawn(
    n: int, n_classes: int, slope: float, seed: int
) -> tuple[FloatArray, IntArray, np.random.Generator]:
    """Stated probabilities and outcomes."""
    rng = np.random.default_rng(seed)
    odds = logits(n, n_classes, rng)
    chance = np.cumsum(softmax(odds, axis=1), axis=1)
    y = np.minimum((rng.random((n, 1)) > chance).sum(axis=1), n_classes - 1)
    return softmax(slope * odds, axis=1), y, rng


def before(proba: FloatArray, y: IntArray, of: str) -> list[tuple[float, float]]:
    """The intervals with the isotonic curve held fixed."""
    found = targets(proba, y, None, "confidence" if of == "top-label" else "class")
    parts = np.sum([split_rows(one) for one in found], axis=0)[:2]
    ends = [mean_interval(one, found[0].weight, 0.95) for one in parts]
    return [(max(low, 0.0), high) for _, low, high in ends]


def measured(runs: int) -> Iterator[str]:
    """Rows of the table."""
    for n_classes, of in ((2, "vector"), (2, "top-label"), (4, "vector")):
        for name, slope in MODELS.items():
            if n_classes > 2 and name != "right":
                continue
            true = truth(n_classes, slope, of)
            for n in (200, 2_000):
                old, new, width = np.zeros(2), np.zeros(2), np.zeros(2)
                for seed in range(runs):
                    proba, y, _ = drawn(n, n_classes, slope, seed)
                    parts = brier_decomposition(proba, y, of=of)[:2]  # type: ignore[arg-type]
                    ends = [(one.low, one.high) for one in parts]
                    for into, those in ((old, before(proba, y, of)), (new, ends)):
                        into += [
                            low - 1e-12 <= t <= high + 1e-12
                            for (low, high), t in zip(those, true, strict=True)
                        ]
                    width += [high - low for low, high in ends]
                cells = [f"{100 * old[at] / runs:.1f}; {100 * new[at] / runs:.1f}" for at in (0, 1)]
                widths = "; ".join(f"{one / runs:.4f}" for one in width)
                yield f"| {n_classes} | {of} | {name} | {n:,} | {' | '.join(cells)} | {widths} |"


def designed(runs: int) -> Iterator[str]:
    """Rows of the table of weighted and of dependent rows, of a right model and one too sure."""
    for name in ("right", "twice too sure"):
        true = truth(2, MODELS[name], "vector")
        for design in ("weights, exponential", "100 clusters of 10"):
            covered = np.zeros(2)
            for seed in range(runs):
                proba, y, rng = drawn(1_000, 2, MODELS[name], seed)
                weight = rng.exponential(size=1_000) + 0.01
                given: FloatArray | RowDesign = weight
                if design.startswith("100"):
                    cluster = np.repeat(np.arange(100), 10)
                    proba, y = proba[::10][cluster], y[::10][cluster]
                    given = RowDesign(None, Dependence.of("cluster", cluster))
                parts = brier_decomposition(proba, y, of="vector", sample_weight=given)[:2]
                covered += [
                    one.low - 1e-12 <= t <= one.high + 1e-12
                    for one, t in zip(parts, true, strict=True)
                ]
            first, second = 100.0 * covered / runs
            yield f"| {design} | {name} | {first:.1f} | {second:.1f} |"


if __name__ == "__main__":
    given = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    for line in (*measured(given), *designed(given)):
        print(line, flush=True)
