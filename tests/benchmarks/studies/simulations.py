"""Dey et al., Figs. 3, 7 (earlier version 1): simulations over size, distance and dimension."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

from kdcal_core.data import FloatArray
from kdcal_core.data.foreign_rows import sphere_points
from kdcal_core.simulation import SIMULATIONS, trunk
from tests.benchmarks.studies import measures
from tests.benchmarks.studies.methods import Methods

RADII = (0.0, 0.5, 1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
N_FAR = 300
N_TEST = 2000
TRUNK_N, TRUNK_RADIUS = 5000, 20.0
PLANAR = tuple(name for name, each in SIMULATIONS.items() if each.in_box)

Task = dict[str, Any]
Row = dict[str, Any]


def tasks(quick: bool, kinds: tuple[str, ...]) -> list[Task]:
    """One task a simulation, model, size and repetition, whole repetitions first."""
    sizes = (316, 1000) if quick else (100, 316, 1000, 3162, 10_000)
    dimensions = (2, 10) if quick else (1, 3, 10, 32, 100)
    made: list[Task] = []
    for repetition in range(2 if quick else 10):
        for kind in kinds:
            common = {"kind": kind, "repetition": repetition}
            if kind == "network" and repetition >= 5:
                continue  # a minute each: half as many
            made += [
                {**common, "study": "size", "simulation": name, "n": n, "d": 2}
                for n in sizes
                for name in PLANAR
            ]
            made += [
                {**common, "study": "dimension", "simulation": "trunk", "n": TRUNK_N, "d": d}
                for d in dimensions
            ]
    return made


def run(task: Task) -> list[Row]:
    """Every measure of every method for one drawn training set."""
    seed = 1000 * task["repetition"] + task["n"] % 997 + task["d"]
    began = time.perf_counter()
    drawn = _draw(task, task["n"], seed)
    fitted = Methods(task["kind"], drawn.X, drawn.y, seed)
    rows = []
    note = partial(measures.entry, task)
    test = _draw(task, N_TEST, seed + 500_000)
    box, truth = _box(task)
    radii = RADII if task["study"] == "size" else (1.0, 1.25, 1.5, 2.0, TRUNK_RADIUS)
    spheres = [
        sphere_points(N_FAR, drawn.X.shape[1], radius * fitted.radius, seed) for radius in radii
    ]
    for method, (near, inside, *far) in fitted.outcome(test.X, box, *spheres).items():
        rows += [
            note(method, "error", measures.error(near.predicted, test.y)),
            note(method, "flagged", float(near.unknown.mean())),
            note(method, "log loss", measures.log_loss(near.proba, test.y)),
            note(method, "ECE", measures.ece(near.proba, test.y)),
            note(method, "Hellinger", measures.hellinger(near.proba, test.posterior)),
            note(method, "Hellinger, box", measures.hellinger(inside.proba, truth)),
        ]
        rows += [
            note(method, "MMC", measures.mmc(each.proba), radius)
            for radius, each in zip(radii, far, strict=True)
        ]
    rows.append(note("prior", "MMC", float(fitted.prior.max())))
    graph = fitted.graphs["geodesic"].graph_
    rows.append(note("geodesic", "exponent", float(graph.gamma * max(np.log(graph.n), 1.0))))
    rows.append(note("geodesic", "seconds", time.perf_counter() - began))
    return rows


def _draw(task: Task, n: int, seed: int) -> Any:
    if task["simulation"] == "trunk":
        return trunk(n, seed=seed, n_features=task["d"])
    return SIMULATIONS[task["simulation"]].function(n, seed=seed)


def _box(task: Task) -> tuple[FloatArray, FloatArray]:
    """Points all over the box [-1, 1]^2, empty parts included, and their true posteriors.

    The fallback to the prior costs there what it should: where no rows are, the truth by formula
    is sure and no method can know. Trunk has no box: two hundred rows stand in.
    """
    if task["simulation"] == "trunk":
        drawn = _draw(task, 200, 77)
        return drawn.X, drawn.posterior
    axis = np.linspace(-0.99, 0.99, 30)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    return grid, SIMULATIONS[task["simulation"]].posterior(grid)
