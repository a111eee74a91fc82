"""Multilayer perceptrons of Durfee et al.: three sizes, regularised or not, many learning rates."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data import FloatArray
from tests.benchmarks.studies.heterogeneous.tables import Part, joined

# Neurons in each of the three layers; the paper's widths are lost with its appendix.
SIZES = {"S": 16, "M": 64, "L": 256}
RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
EPOCHS, BATCH, DROPOUT = 30, 256, 0.3


@dataclass(frozen=True)
class Variant:
    """One network to train; ``all_rows`` adds the calibration rows to its training rows."""

    size: str
    regularised: bool
    rate: float
    all_rows: bool = False

    def __str__(self) -> str:
        kind = "regularised" if self.regularised else "plain"
        return f"{self.size}-{kind}-{self.rate:g}{'-all' if self.all_rows else ''}"


def variants() -> Iterator[Variant]:
    """Thirty-six: every size with and without batch norm and dropout at every learning rate."""
    yield from (Variant(*each) for each in product(SIZES, (False, True), RATES))


def logits(
    variant: Variant, parts: dict[str, Part], seed: int, cache: Path | None
) -> dict[str, FloatArray]:
    """The logit of class 1 of every row of every part; read from ``cache`` where it is there."""
    file = cache and cache / f"{variant}-{seed}.npz"
    if file is not None and file.exists():
        with np.load(file) as stored:
            return {part: stored[part].astype(np.float64) for part in parts}
    known = parts["training"]
    if variant.all_rows:
        known = joined(known, parts["calibration"])
    found = _trained(variant, known, parts, seed)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        # whole or not there: another process may look for it
        part = file.with_name(f"{os.getpid()}.npz")
        np.savez(part, **found)
        part.replace(file)
    return {part: values.astype(np.float64) for part, values in found.items()}


def _trained(
    variant: Variant, known: Part, parts: dict[str, Part], seed: int
) -> dict[str, NDArray[np.float32]]:
    """Adam for a fixed number of epochs; nothing stops it early, as nothing does in the paper."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    given = torch.from_numpy(known.numbers)
    wanted = torch.from_numpy(known.y.astype(np.float32))
    steps: list[torch.nn.Module] = []
    width = SIZES[variant.size]
    for inner, outer in pairwise((given.shape[1], width, width, width)):
        steps.append(torch.nn.Linear(inner, outer))
        if variant.regularised:
            steps.append(torch.nn.BatchNorm1d(outer))
        steps.append(torch.nn.ReLU())
        if variant.regularised:
            steps.append(torch.nn.Dropout(DROPOUT))
    network = torch.nn.Sequential(*steps, torch.nn.Linear(width, 1))
    optimiser = torch.optim.Adam(network.parameters(), lr=variant.rate)
    loss = torch.nn.BCEWithLogitsLoss()
    for _ in range(EPOCHS):
        order = torch.randperm(len(wanted))
        # batches of equal size: batch norm cannot do with a single row
        for rows in order[: len(order) // BATCH * BATCH].split(BATCH):
            optimiser.zero_grad()
            loss(network(given[rows])[:, 0], wanted[rows]).backward()
            optimiser.step()
    network.eval()
    with torch.no_grad():
        return {
            part: network(torch.from_numpy(rows.numbers))[:, 0].numpy()
            for part, rows in parts.items()
        }
