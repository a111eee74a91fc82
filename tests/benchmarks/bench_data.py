"""Reading and checking a table of a million rows, beside plain pandas."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv

from kdcal_core.data import check_proba, digest_arrays, encode_labels, read_table

N_ROWS = 1_000_000
N_REPEATS = 3


def run() -> list[dict[str, Any]]:
    """Rows of name, what, n, seconds, reference, reference_seconds, ratio and goal (seconds)."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        return [*_reading(rng, Path(folder)), *_checking(rng)]


def _reading(rng: np.random.Generator, folder: Path) -> list[dict[str, Any]]:
    frame = pd.DataFrame({f"x{j}": rng.normal(size=N_ROWS).round(6) for j in range(17)})
    frame["count"] = rng.integers(0, 1000, N_ROWS)
    frame["word"] = pd.Series(np.array(["red", "green", "blue"])[rng.integers(0, 3, N_ROWS)])
    frame["label"] = rng.integers(0, 10, N_ROWS)
    parquet, csv = folder / "t.parquet", folder / "t.csv"
    frame.to_parquet(parquet)
    pa_csv.write_csv(pa.Table.from_pandas(frame, preserve_index=False), csv)
    what = "read_table, 20 columns"
    return [
        _row("parquet", what, lambda: read_table(parquet), lambda: pd.read_parquet(parquet), 1.0),
        _row("csv", what, lambda: read_table(csv), lambda: pd.read_csv(csv), 5.0),
    ]


def _checking(rng: np.random.Generator) -> list[dict[str, Any]]:
    proba = rng.dirichlet(np.ones(10), N_ROWS)
    single = proba.astype(np.float32)
    names = tuple(f"class {k}" for k in range(10))
    labels = pd.Series(np.array(names)[rng.integers(0, 10, N_ROWS)])
    return [
        _row("check_proba", "10 classes, float64", lambda: check_proba(proba), None, 0.3),
        _row("check_proba_f4", "10 classes, float32", lambda: check_proba(single), None, 0.3),
        _row("encode_labels", "10 names", lambda: encode_labels(labels, names), None, 0.5),
        _row("digest", "10 classes, float64", lambda: digest_arrays(proba), None, 0.5),
    ]


def _row(
    name: str,
    what: str,
    call: Callable[[], Any],
    reference: Callable[[], Any] | None,
    goal: float,
) -> dict[str, Any]:
    seconds = _best(call)
    reference_seconds = _best(reference) if reference else None
    return {
        "name": f"data/{name}",
        "what": what,
        "n": N_ROWS,
        "seconds": seconds,
        "reference": "pandas" if reference else None,
        "reference_seconds": reference_seconds,
        "ratio": reference_seconds / seconds if reference_seconds else None,
        "goal": goal,
    }


def _best(call: Callable[[], Any]) -> float:
    times = []
    for _ in range(N_REPEATS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)
