"""Tables, scored rows and reviews that tests draw, shared by pages, calibrators and engine."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
from scipy.special import expit

from kdcal_core.data import ScoredSet
from kdcal_core.review import Workspace, add_table, create_review, score

HOSTILE_CLASS = "no <b>*x*</b>"
HOSTILE_COLUMN = "z <b>*x*</b>"


def review_of(workspace: Workspace, **tables: pd.DataFrame) -> str:
    """The id of a new scored review of these tables, whose roles are guessed."""
    review_id = create_review(workspace).id
    for which, table in tables.items():
        content = io.BytesIO(table.to_csv(index=False).encode())
        add_table(workspace, review_id, which, content, f"{which}.csv")
    return score(workspace, review_id).id


def too_sure(n: int, seed: int) -> pd.DataFrame:
    """A model that states log odds three times too large, and a feature."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n) * 1.5
    p = expit(3.0 * z)
    return pd.DataFrame(
        {
            "feature": rng.normal(size=n),
            HOSTILE_CLASS: 1 - p,
            "yes": p,
            "target": np.where(rng.random(n) < expit(z), "yes", HOSTILE_CLASS),
        }
    )


def line(n: int, seed: int) -> pd.DataFrame:
    """A line through a curve whose spread grows, with its predictions.

    Section 4.1 of "Model-Free Local Recalibration of Neural Networks".
    """
    rng = np.random.default_rng(seed)
    x = rng.uniform(2, 20, n)
    return pd.DataFrame(
        {
            "x": x,
            HOSTILE_COLUMN: rng.normal(size=n),
            "y": 10 + 5 * x**2 + rng.normal(size=n) * 30 * x,
            "mean": 110 * x - 460,
            "std": 384.4,
            "true_mean": 10 + 5 * x**2,
        }
    )


def scored(n: int = 300, seed: int = 0, name: str = "calibration", sharp: float = 1.0) -> ScoredSet:
    """Rows of three classes; stated with more confidence than they deserve where ``sharp`` > 1."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(3), n)
    y = np.array([rng.choice(3, p=p) for p in proba])
    proba = proba**sharp
    proba /= proba.sum(axis=1, keepdims=True)
    return ScoredSet(proba, y, ("a", "b", "c"), "digest", name)
