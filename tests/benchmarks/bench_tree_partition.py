"""Speed of the trees that partition the inputs, against scikit-learn's histogram booster and tree.

The reference bins the same table and grows one tree of eight leaves; scikit-learn's exact tree
stands beside growing alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.tree import DecisionTreeClassifier

from kdcal_core.partition.tree import Gini, Residual, RowStats, bin_inputs, grow_tree

ROWS, FEWER, FEATURES, TREES, CELLS = 1_000_000, 100_000, 20, 100, 64
SEED = 0

Row = dict[str, Any]


class _Halves:
    """A criterion as wide as a histogram of scores by label: any gain will do."""

    def __init__(self, cells: np.ndarray) -> None:
        self.stats = RowStats(cells.astype(np.uint8), CELLS, np.ones((len(cells), 1)))

    def gain(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return np.abs(left[:, 0::2, 0].sum(axis=1) - right[:, 0::2, 0].sum(axis=1))

    def order(self, sums: np.ndarray) -> np.ndarray:
        return sums[..., 0, 0]


def run() -> list[Row]:
    x, y, p = _data(ROWS)
    grow_tree(bin_inputs(x[:1000]), Gini(y[:1000])).apply(x[:1000])  # compiles
    return [*_large(x, y, p), *_sliders(x[:FEWER], y[:FEWER]), _categories()]


def _large(x: np.ndarray, y: np.ndarray, p: np.ndarray) -> list[Row]:
    everything = _seconds(lambda: _partition(x, y))
    booster = HistGradientBoostingClassifier(max_iter=1, max_depth=3, early_stopping=False)
    reference = _seconds(lambda: booster.fit(x, y).predict(x))
    name = "HistGradientBoostingClassifier, one tree"
    what = "bin_inputs, grow_tree of depth 3, apply"
    rows = [_row("tree partition", what, ROWS, everything, name, reference, 3.0)]
    binned = bin_inputs(x)
    score, residual = Gini(y), Residual(y - p, p * (1 - p))
    exact = _seconds(lambda: DecisionTreeClassifier(max_depth=3).fit(x[:FEWER], y[:FEWER]))
    name = f"DecisionTreeClassifier, {FEWER:,} rows scaled"
    what = "grow_tree of depth 3, Gini"
    seconds = _seconds(lambda: grow_tree(binned, score))
    rows.append(_row("grow", what, ROWS, seconds, name, exact * ROWS / FEWER, None))
    seconds = _seconds(lambda: grow_tree(binned, residual, max_depth=5))
    rows.append(_row("grow", "grow_tree of depth 5, residuals", ROWS, seconds))
    wide = _Halves((p * CELLS / 2).astype(np.int64) * 2 + y)
    seconds = _seconds(lambda: grow_tree(binned, wide))
    rows.append(_row("grow", f"grow_tree of depth 3, {CELLS} cells a row", ROWS, seconds))
    rng = np.random.default_rng(SEED)

    def forest() -> None:
        for seed in range(TREES):
            drawn = rng.integers(0, ROWS, ROWS)
            grow_tree(binned, score, rows=drawn, features=5, seed=seed).apply(binned)

    what = f"{TREES} trees on bootstrap samples, and their leaves"
    rows.append(_row("forest", what, ROWS, _seconds(forest), goal=40.0))
    return rows


def _sliders(x: np.ndarray, y: np.ndarray) -> list[Row]:
    binned, score = bin_inputs(x), Gini(y)
    return [
        _row(
            "sliders",
            f"grow_tree of depth {depth} on binned rows",
            len(x),
            _seconds(lambda depth=depth: grow_tree(binned, score, max_depth=depth)),
            goal=0.05,
        )
        for depth in (3, 5)
    ]


def _categories() -> Row:
    rng = np.random.default_rng(SEED)
    names = np.array([f"category {i}" for i in range(100)])
    frame = pd.DataFrame({f"c{j}": names[rng.integers(0, 100, ROWS)] for j in range(5)})
    what = "bin_inputs of 5 columns of text, 100 categories each"
    return _row("text", what, ROWS, _seconds(lambda: bin_inputs(frame)))


def _partition(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    binned = bin_inputs(x)
    return grow_tree(binned, Gini(y)).apply(binned)


def _data(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(SEED)
    x = rng.normal(size=(n, FEATURES))
    p = 1 / (1 + np.exp(-x[:, 0] * x[:, 1] - x[:, 2]))
    return x, (rng.random(n) < p).astype(np.int64), p


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _row(
    name: str,
    what: str,
    n: int,
    seconds: float,
    reference: str | None = None,
    reference_seconds: float | None = None,
    goal: float | None = None,
) -> Row:
    return {
        "name": name,
        "what": what,
        "n": n,
        "seconds": seconds,
        "reference": reference,
        "reference_seconds": reference_seconds,
        "ratio": None if reference_seconds is None else reference_seconds / seconds,
        "goal": goal,
    }
