"""A model and three tables given at once, beside the same four files one after the other."""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
import skops.io
from sklearn.ensemble import RandomForestClassifier

from kdcal_core.review import Arrival, Workspace, add_files, create_review

N, COLUMNS, TREES = 200_000, 20, 100
TABLES = ("calibration.csv", "evaluation.csv", "training.csv")
REPEATS = 3


def run() -> list[dict[str, Any]]:
    """Seconds until all four are part of the review; the least of three, in turn."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        files = _files(folder)
        workspace = Workspace(folder / "home")
        _seconds(workspace, [files])  # starts the workers
        pairs = [
            (_seconds(workspace, [files]), _seconds(workspace, [[one] for one in files]))
            for _ in range(REPEATS)
        ]
        ours, in_turn = (min(column) for column in zip(*pairs, strict=True))
        alone = {file.name: _seconds(workspace, [[file]]) for file in files[:3]}
    return [
        {
            "name": "arrivals",
            "what": f"forest of {TREES} trees (skops) and three CSV of {COLUMNS} columns at once",
            "n": 3 * N,
            "seconds": ours,
            "reference": "one after the other",
            "reference_seconds": in_turn,
            "ratio": in_turn / ours,
            "goal": None,
        },
        *(
            {"name": "arrivals", "what": f"{name} alone", "n": None, "seconds": seconds}
            for name, seconds in alone.items()
        ),
    ]


def _seconds(workspace: Workspace, together: list[list[Arrival]]) -> float:
    review = create_review(workspace)
    began = perf_counter()
    for files in together:
        add_files(workspace, review.id, files)
    return perf_counter() - began


def _files(folder: Path) -> list[Arrival]:
    rng = np.random.default_rng(0)
    files = []
    for name in TABLES:
        X = rng.normal(size=(N, COLUMNS))
        frame = pd.DataFrame(X, columns=[f"x{at}" for at in range(COLUMNS)])
        frame["y"] = (X[:, 0] + rng.normal(size=N) > 0).astype(int)
        frame.round(5).to_csv(folder / name, index=False)
        files.append(Arrival(folder / name, name))
    few = frame.head(N // 10)
    forest = RandomForestClassifier(TREES, random_state=0, n_jobs=2)
    skops.io.dump(forest.fit(few.drop(columns="y").to_numpy(), few["y"]), folder / "model.skops")
    return [Arrival(folder / "model.skops", "model.skops"), *files]
