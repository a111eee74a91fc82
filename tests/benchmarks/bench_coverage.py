"""Coverage of the 95% intervals of every calibration error, where the truth is known.

Logits are N(0, 1.5^2), the model states their softmax, and the truth is their softmax at a
temperature: 1 (calibrated), 1.3 (the model is over-confident) or 0.75 (under-confident). The true
value of an error is that of 300,000 rows whose outcomes are replaced by their true probabilities,
with the bins or the kernel of the very estimator; of a largest gap, over the bins that hold rows.

``python -m tests.benchmarks.bench_coverage`` measures the grid on two processes and writes
``RESULTS_coverage.md``; ``run()`` prints one cell among the other benchmarks.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_index, bin_sums, quantile_edges, uniform_edges
from kdcal_core.diagnostics import Estimate, calibration_error, smooth_calibration_error
from kdcal_core.diagnostics.smooth_error import FINE, lattice, lattice_errors
from kdcal_core.diagnostics.targets import Target, targets

RESULTS = Path(__file__).parent / "RESULTS_coverage.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
TEMPERATURES = {"calibrated": 1.0, "over-confident": 1.3, "under-confident": 0.75}
CLASSES = (2, 4, 10)
RUNS = {100: 300, 300: 300, 1_000: 300, 10_000: 120}
MANY = 300_000
BINS, DRAWS, SMOOTH_DRAWS = 15, 300, 100

# what is measured: settings of calibration_error, or None for the smooth error
ESTIMATORS: dict[str, dict[str, Any] | None] = {
    "ECE": {},
    "ECE, debiased": {"debiased": True},
    "ECE, equal mass": {"strategy": "quantile"},
    "l2": {"norm": "l2"},
    "l2, debiased": {"norm": "l2", "debiased": True},
    "MCE": {"norm": "max"},
    "smooth ECE": None,
    "top-label ECE": {"kind": "top-label"},
    "classwise ECE": {"kind": "class"},
}


@dataclass
class Cell:
    """What came out of one cell for one estimator."""

    truth: float
    runs: int = 0
    below: int = 0
    above: int = 0
    widths: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    none: int = 0

    def add(self, found: Estimate, truth: float) -> None:
        """Count one run; ``truth`` lies below the interval, in it, or above it."""
        self.values.append(found.value)
        if not np.isfinite(found.low):
            self.none += 1
            return
        self.runs += 1
        self.below += truth < found.low - 1e-9
        self.above += truth > found.high + 1e-9
        self.widths.append(found.high - found.low)

    @property
    def coverage(self) -> float:
        return 1.0 - (self.below + self.above) / self.runs if self.runs else np.nan


def drawn(
    n: int, n_classes: int, temperature: float, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Stated and true probabilities (n, K) and outcomes (n,)."""
    odds = 1.5 * rng.normal(size=(n, n_classes))
    stated, true = (np.exp(z - z.max(axis=1, keepdims=True)) for z in (odds, odds / temperature))
    stated /= stated.sum(axis=1, keepdims=True)
    true /= true.sum(axis=1, keepdims=True)
    y = (true.cumsum(axis=1)[:, :-1] < rng.random((n, 1))).sum(axis=1)
    return stated, true, y


@dataclass(frozen=True, eq=False)
class Truth:
    """The population of one cell, and the true value of each estimator on it."""

    stated: FloatArray
    true: FloatArray

    def value(self, settings: dict[str, Any] | None, rows: FloatArray) -> float:
        """True value; a largest gap counts the bins that the stated ``rows`` fill."""
        if settings is None:
            target, chance = self._problems("confidence")[0]
            mass = bin_sums(lattice(target, FINE), FINE, (chance - target.score) / len(chance))
            return float(lattice_errors(mass[None, :], refine=2)[0])
        parts = [self._gaps(*one, settings) for one in self._problems(settings.get("kind"))]
        share, gap = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        if settings.get("norm") == "max":
            filled = bin_sums(bin_index(rows.max(axis=1), uniform_edges(BINS)), BINS) > 0
            return float(np.abs(gap[filled]).max())
        if settings.get("norm") == "l2":
            return float(np.sqrt(share @ gap**2))
        return float(share @ np.abs(gap))

    def _problems(self, kind: Any) -> list[tuple[Target, FloatArray]]:
        """The binary problems with each row's true chance."""
        found = targets(self.stated, np.zeros(len(self.stated), int), None, kind or "confidence")
        top = self.stated.argmax(axis=1)
        return [
            (one, self.true[one.rows, top[one.rows] if one.label is None else one.label])
            for one in found
        ]

    @staticmethod
    def _gaps(
        target: Target, chance: FloatArray, settings: dict[str, Any]
    ) -> tuple[FloatArray, FloatArray]:
        equal_mass = settings.get("strategy") == "quantile"
        edges = quantile_edges(target.score, BINS) if equal_mass else uniform_edges(BINS)
        place = bin_index(target.score, edges)
        count = bin_sums(place, len(edges) - 1)
        gap = bin_sums(place, len(edges) - 1, chance - target.score) / np.maximum(count, 1.0)
        return target.share * count / count.sum(), gap


def measure(
    cell: tuple[int, str, int, int, int], names: tuple[str, ...], many: int = MANY
) -> dict[str, Cell]:
    """Coverage of the named estimators in one cell: (classes, fault, rows, runs, seed)."""
    n_classes, fault, n, runs, seed = cell
    temperature = TEMPERATURES[fault]
    whole = Truth(*drawn(many, n_classes, temperature, np.random.default_rng(99))[:2])
    fixed = {
        name: whole.value(ESTIMATORS[name], whole.stated) if fault != "calibrated" else 0.0
        for name in names
    }
    found = {name: Cell(fixed[name]) for name in names}
    for run_ in range(runs):
        stated, _, y = drawn(n, n_classes, temperature, np.random.default_rng([seed, n, run_]))
        for name in names:
            settings = ESTIMATORS[name]
            if settings is None:
                estimate = smooth_calibration_error(stated, y, n_boot=SMOOTH_DRAWS, seed=run_)
            else:
                estimate = calibration_error(stated, y, n_boot=DRAWS, seed=run_, **settings)
            truth = fixed[name]
            if name == "MCE" and truth and np.isfinite(estimate.low):
                truth = whole.value(settings, stated)
            found[name].add(estimate, truth)
    return found


def run() -> list[dict[str, Any]]:
    """One cell among the other benchmarks: its time and its coverage."""
    names = ("ECE", "l2", "smooth ECE")
    start = perf_counter()
    found = measure((4, "over-confident", 300, 100, 0), names)
    seconds = perf_counter() - start
    covered = ", ".join(f"{name} {found[name].coverage:.0%}" for name in names)
    return [
        {
            "name": "coverage",
            "what": f"100 runs, 4 classes, over-confident: {covered}",
            "n": 300,
            "seconds": seconds,
            "reference": None,
            "reference_seconds": None,
            "ratio": None,
            "goal": "93 to 97%",
        }
    ]


def table(found: dict[tuple[int, str, int], dict[str, Cell]], names: tuple[str, ...]) -> str:
    """The grid as a Markdown table: coverage in percent, and why where there is none."""
    head = ("classes", "model", "rows", *names)
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for (n_classes, fault, n), cells in found.items():
        shown = [_shown(cells[name]) for name in names]
        lines.append(f"| {n_classes} | {fault} | {n:,} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _shown(cell: Cell) -> str:
    if cell.runs < 0.2 * (cell.runs + cell.none):
        return "none"
    part = f" ({cell.runs} runs)" if cell.none else ""
    return f"{100 * cell.coverage:.1f}{part}"


def sides(found: dict[tuple[int, str, int], dict[str, Cell]], names: tuple[str, ...]) -> str:
    """For each estimator: coverage pooled and by rows, both sides' misses, and mean widths."""
    sizes = ", ".join(f"{n:,}" for n in RUNS)
    lines = [
        f"| estimator | calibrated; {sizes} rows | faulty; {sizes} rows | faulty: least, most cell "
        f"| truth below, above | width, faulty; {sizes} rows |",
        "|---|---|---|---|---|---|",
    ]
    for name in names:
        texts = []
        for faulty in (False, True):
            picks = [
                (n, cells[name])
                for (_, fault, n), cells in found.items()
                if (fault != "calibrated") == faulty and cells[name].runs >= 30
            ]
            by_size = [[one for n, one in picks if n == size] for size in RUNS]
            texts.append("; ".join([_pooled(one for _, one in picks), *map(_pooled, by_size)]))
        each = sorted(100 * one.coverage for _, one in picks)
        total = sum(one.runs for _, one in picks)
        texts.append(f"{each[0]:.1f}, {each[-1]:.1f}")
        missed = (sum(getattr(one, side) for _, one in picks) for side in ("below", "above"))
        texts.append(", ".join(f"{100 * part / total:.1f}" for part in missed))
        texts.append(", ".join(map(_width, by_size)))
        lines.append(f"| {name} | {' | '.join(texts)} |")
    return "\n".join(lines)


def _pooled(cells: Iterable[Cell]) -> str:
    """Coverage of cells together, in percent."""
    cells = list(cells)
    runs = sum(one.runs for one in cells)
    missed = sum(one.below + one.above for one in cells)
    return f"{100 * (1 - missed / runs):.1f}" if runs else "none"


def _width(cells: list[Cell]) -> str:
    widths = [width for one in cells for width in one.widths]
    return f"{np.mean(widths):.3f}" if widths else "none"


def _cells(share: float, seed: int) -> list[tuple[int, str, int, int, int]]:
    return [
        (n_classes, fault, n, max(int(runs * share), 1), seed)
        for n_classes in CLASSES
        for fault in TEMPERATURES
        for n, runs in RUNS.items()
    ]


def main() -> None:
    """Measure the grid and write it between the marks of the results file."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of the runs of each cell")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=list(ESTIMATORS), choices=list(ESTIMATORS))
    parser.add_argument("--write", action="store_true", help="into RESULTS_coverage.md")
    args = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    names = tuple(args.only)
    cells = _cells(args.share, args.seed)
    start = perf_counter()
    task: Callable[..., Any] = measure
    with ProcessPoolExecutor(2) as pool:
        done = pool.map(task, cells, [names] * len(cells))
        found = {cell[:3]: one for cell, one in zip(cells, done, strict=True)}
    text = (
        f"{sides(found, names)}\n\n{table(found, names)}\n\n"
        f"Seed {args.seed}, runs a cell "
        + ", ".join(f"{n:,} rows: {int(runs * args.share)}" for n, runs in RUNS.items())
        + f", {(perf_counter() - start) / 60:.1f} minutes on two processes."
    )
    print(text)
    if args.write:
        before, rest = RESULTS.read_text().split(BEGIN)
        after = rest.split(END)[1]
        RESULTS.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


if __name__ == "__main__":
    main()
