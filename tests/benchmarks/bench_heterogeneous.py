"""Speed of calibration by regions at a million rows and twenty features."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.calibration.regions import (
    MAPS,
    HeterogeneousCalibrator,
    Hierarchy,
    Scores,
    fit_maps,
)

N_ROWS, N_NUMBERS, N_CATEGORIES = 1_000_000, 17, 3
GOAL = 5.0


def run() -> list[dict[str, Any]]:
    """A tree with Platt's maps on training rows and without, and every kind of map alone."""
    proba, y, frame = rows(N_ROWS)
    small = slice(0, 2_000)
    _fit(proba[small], y[small], frame[small])  # compiles the tree's kernels
    found = []
    for what, training in (("tree, training rows", (frame, y)), ("five trees, cross-fitted", None)):
        fitted: list[HeterogeneousCalibrator] = []
        fit = _seconds(lambda t=training, f=fitted: f.append(_fit(proba, y, frame, t)))
        predict = _seconds(lambda f=fitted: f[0].predict_proba(proba, frame))
        goal = GOAL if training else None
        reference = _by_hand(proba, y, frame) if training else None
        found.append(_row(f"{what}, Platt: fit and predict", fit + predict, goal, reference))
        found.append(_row(f"{what}, Platt: predict", predict, None, None))
    scores, leaf = Scores(proba, y, np.ones(N_ROWS)), np.arange(N_ROWS) % 8
    for kind in MAPS:
        seconds = _seconds(lambda k=kind: fit_maps(k, scores, leaf, Hierarchy.flat(8)))
        found.append(_row(f"{kind} maps of 8 regions: fit", seconds, None, None))
    return found


def rows(n: int) -> tuple[np.ndarray, np.ndarray, pd.DataFrame]:
    """An over-confident model that does not see a category and a threshold."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, N_NUMBERS)), columns=[f"x{i}" for i in range(17)])
    for i in range(N_CATEGORIES):
        frame[f"c{i}"] = pd.Categorical(rng.choice(list("abcdefgh"), n))
    score = rng.normal(size=n)
    odds = score + (frame["c0"] == "a") - (frame["x0"] > 0.5) + 0.5 * (frame["x1"] > 0)
    y = (rng.random(n) < 1 / (1 + np.exp(-odds.to_numpy()))).astype(int)
    p = 1 / (1 + np.exp(-2 * score))
    return np.column_stack([1 - p, p]), y, frame


def _fit(
    proba: np.ndarray, y: np.ndarray, frame: pd.DataFrame, training: Any = None
) -> HeterogeneousCalibrator:
    grown = {} if training is None else {"X_partition": training[0], "y_partition": training[1]}
    return HeterogeneousCalibrator("tree").fit(proba, y, frame, **grown)


def _by_hand(proba: np.ndarray, y: np.ndarray, frame: pd.DataFrame) -> tuple[str, float]:
    """scikit-learn's tree on the numbers alone, and a logistic regression in each leaf."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.tree import DecisionTreeClassifier

    def work() -> None:
        numbers = frame.iloc[:, :N_NUMBERS].to_numpy()
        tree = DecisionTreeClassifier(max_depth=3).fit(numbers, y)
        leaf = tree.apply(numbers)
        logit = np.log(proba[:, 1:] / proba[:, :1])
        for one in np.unique(leaf):
            own = leaf == one
            fitted = LogisticRegression(C=np.inf).fit(logit[own], y[own])
            fitted.predict_proba(logit[own])

    return "scikit-learn tree (numbers only) and regressions", _seconds(work)


def _seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _row(
    what: str, seconds: float, goal: float | None, reference: tuple[str, float] | None
) -> dict[str, Any]:
    name, other = reference or (None, None)
    return {
        "name": "heterogeneous",
        "what": what,
        "n": N_ROWS,
        "seconds": seconds,
        "reference": name,
        "reference_seconds": other,
        "ratio": None if other is None else other / seconds,
        "goal": goal,
    }
