"""Gaussian XOR, the plainest task that no straight line solves (Dey et al.)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from recipes.files import write_parquet

NAMES = ("x1", "x2")
CLASSES = ["opposite signs", "same sign"]
CENTRES = np.array([[[-0.5, 0.5], [0.5, -0.5]], [[0.5, 0.5], [-0.5, -0.5]]])
SPREAD = 0.25
N_ROWS, N_RING, RADIUS = 1000, 500, 2.0
SOURCE = (
    "Simulated: Gaussian XOR of Dey et al. (appendix D). Four round "
    "clouds of standard deviation 0.25 at (±0.5, ±0.5), cut off at ±1; a class is a pair of "
    "opposite clouds, both equally frequent."
)
LICENCE = "Data and model: made for kdcal, CC BY 4.0."
TABLES = (
    f"Training, calibration and evaluation hold {N_ROWS:,} points each. The foreign rows lie "
    f"all around at radius {RADIUS:g}, twice as far out as any other."
)


def sample(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, 2) inside the square and their classes, half of each."""
    random = np.random.RandomState(seed)
    label = random.permutation(n) % 2
    points = np.full((n, 2), np.inf)
    while (outside := (np.abs(points) >= 1).any(axis=1)).any():
        centres = CENTRES[label[outside], random.randint(2, size=outside.sum())]
        points[outside] = centres + SPREAD * random.standard_normal(centres.shape)
    return points, label


def ring(seed: int) -> np.ndarray:
    """Points (N_RING, 2) all around, in no class."""
    directions = np.random.RandomState(seed).standard_normal((N_RING, 2))
    return RADIUS * directions / np.linalg.norm(directions, axis=1, keepdims=True)


def write_tables(folder: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Write all tables; return points and classes of those that have classes."""
    parts = {}
    for seed, name in enumerate(("training", "calibration", "evaluation")):
        points, label = parts[name] = sample(N_ROWS, seed)
        write_parquet(folder / f"{name}.parquet", {**columns(points), "class": words(label)})
    write_parquet(folder / "foreign_ring_at_radius_2.parquet", columns(ring(seed=3)))
    return parts


def columns(points: np.ndarray) -> dict[str, Any]:
    return {name: points[:, j] for j, name in enumerate(NAMES)}


def words(label: np.ndarray) -> np.ndarray:
    return np.asarray(CLASSES)[label]
