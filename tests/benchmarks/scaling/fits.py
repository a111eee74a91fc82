"""One whole fit of a kernel density estimator, measured in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from kdcal_core.calibration import KernelDensityForest, KernelDensityNetwork
from kdcal_core.models import wrap_model
from kdcal_core.partition import (
    LeafCodes,
    class_masses,
    default_exponents,
    find_polytopes,
    nearest_polytopes,
)
from kdcal_core.simulation import Simulated, trunk

FEATURES, LAYERS, QUERIES, TREE_ROWS = 20, 4, 10_000, 10_000
SEED = 0
_MODULE = "tests.benchmarks.scaling.fits"


@dataclass(frozen=True)
class Case:
    """A fit to measure; ``nodes`` are the trees of a forest or the nodes of a network's layer."""

    kind: Literal["forest", "network"]
    n: int
    nodes: int

    @property
    def n_holdout(self) -> int:
        return min(self.n // 4, QUERIES)


@dataclass(frozen=True)
class Clock:
    """Seconds of wall clock and of all threads' processor time."""

    wall: float
    cpu: float

    @classmethod
    def now(cls) -> Clock:
        return cls(time.perf_counter(), time.process_time())

    def __sub__(self, other: Clock) -> Clock:
        return Clock(self.wall - other.wall, self.cpu - other.cpu)

    def __add__(self, other: Clock) -> Clock:
        return Clock(self.wall + other.wall, self.cpu + other.cpu)


def in_own_process(case: Case) -> dict[str, Any]:
    """What :func:`measure` finds, uncoloured by what this process has done before."""
    command = [sys.executable, "-m", _MODULE, json.dumps(asdict(case))]
    root = Path(__file__).parents[3]
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout.decode().splitlines()[-1])
    return found


def measure(case: Case) -> dict[str, Any]:
    """Seconds and bytes of a fit and of a prediction, the model's own time apart."""
    rows = sample(case)
    wrapped, spent = timed(wrap_model(model(case, rows)))
    maker = KernelDensityForest if case.kind == "forest" else KernelDensityNetwork
    _compile()
    few = slice(0, 200)
    maker(wrapped).fit(rows.X[few], rows.y[few]).predict_proba(rows.X[few])
    fit, held, queries = split(case)
    estimator = maker(wrapped)
    before = _status("VmRSS")
    _forget_peak()
    in_fit, asked = _seconds(
        lambda: estimator.fit(rows.X[fit], rows.y[fit], rows.X[held], rows.y[held]), spent
    )
    peak = _status("VmHWM")
    in_predict, asked_again = _seconds(lambda: estimator.predict_proba(rows.X[queries]), spent)
    return {
        **asdict(case),
        "polytopes": estimator.n_polytopes_,
        "fit_seconds": in_fit.wall,
        "fit_cpu_seconds": in_fit.cpu,
        "fit_model_seconds": asked.wall,
        "predict_seconds": in_predict.wall,
        "predict_cpu_seconds": in_predict.cpu,
        "predict_model_seconds": asked_again.wall,
        "peak_gb": peak / 1e9,
        "gb_before": before / 1e9,
    }


def _compile() -> None:
    """Compiling is done once a machine: of the kernels for few and for many shared leaves."""
    for n_leaves in (300, 4):
        leaves = np.random.default_rng(SEED).integers(0, n_leaves, (600, 30))
        codes = find_polytopes(LeafCodes(leaves.astype(np.int32))).codes
        n = len(codes)
        class_masses(codes, np.ones((n, 2), dtype=np.int64), default_exponents())
        nearest_polytopes(codes, codes, np.zeros((n, 1)), np.zeros((n, 1)))


def sample(case: Case) -> Simulated:
    """Two Gaussian classes in twenty dimensions: rows to fit on, to hold out, to ask about."""
    return trunk(case.n + case.n_holdout + QUERIES, seed=SEED, n_features=FEATURES)


def split(case: Case) -> tuple[slice, slice, slice]:
    known = case.n + case.n_holdout
    return slice(0, case.n), slice(case.n, known), slice(known, None)


def model(case: Case, rows: Simulated) -> Any:
    """A forest trained on the rows of the fit, or a ReLU network with random weights.

    A tree sees 10,000 rows at most: training takes longer than all that is measured here, and
    leaves that more rows share cost the kernel more, not less. What a network's weights are is
    all one to the kernel's speed; those of He keep all layers alive, so that rows differ in every
    layer.
    """
    if case.kind == "forest":
        from sklearn.ensemble import RandomForestClassifier

        forest = RandomForestClassifier(
            case.nodes, max_samples=min(case.n, TREE_ROWS), n_jobs=-1, random_state=SEED
        )
        return forest.fit(rows.X[: case.n], rows.y[: case.n])
    import torch

    torch.manual_seed(SEED)
    layers: list[torch.nn.Module] = []
    width = FEATURES
    for _ in range(LAYERS):
        layers += [torch.nn.Linear(width, case.nodes), torch.nn.ReLU()]
        torch.nn.init.kaiming_normal_(layers[-2].weight)
        width = case.nodes
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, 2))


def timed(model: Any) -> tuple[Any, list[Clock]]:
    """The model, and a list to which it adds the time of each of its answers."""
    spent: list[Clock] = []

    def watched(answer: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def call(X: Any) -> Any:
            start = Clock.now()
            try:
                return answer(X)
            finally:
                spent.append(Clock.now() - start)

        return call

    for name in ("codes", "predict_proba"):
        setattr(model, name, watched(getattr(model, name)))
    return model, spent


def _seconds(call: Callable[[], object], spent: list[Clock]) -> tuple[Clock, Clock]:
    """Time of a call without the model's, and the model's."""
    spent.clear()
    start = Clock.now()
    call()
    whole = Clock.now() - start
    asked = sum(spent, Clock(0.0, 0.0))
    return whole - asked, asked


def _forget_peak() -> None:
    """Linux counts the largest memory of this process again from here."""
    Path("/proc/self/clear_refs").write_text("5")


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"this system does not report {name}")


if __name__ == "__main__":
    print("\n" + json.dumps(measure(Case(**json.loads(sys.argv[1])))))
