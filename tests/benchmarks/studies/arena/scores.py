"""What seven kinds of models say of rows that they were not trained on, kept in a cache folder."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.benchmarks.studies.small_samples.tables import REAL, Scored, read_table

MODELS = ("logistic", "forest", "xgboost", "lightgbm", "network", "neighbours", "bayes")
_POOL = 12_000


def tables(folder: Path) -> list[str]:
    """Tables that are in the folder."""
    return [n for n in REAL if any((folder / f"{n}.{end}").exists() for end in ("parquet", "npz"))]


def scored(table: str, model: str, folder: Path, cache: Path | None) -> Scored:
    """Probabilities (n, K) and true classes (n,) of rows without a part in the training."""
    kept = None if cache is None else cache / "scores" / f"{table}-{model}.npz"
    if kept is not None and kept.exists():
        with np.load(kept) as found:
            return found["proba"], found["y"]
    target, _, n_train = REAL[table]
    X, y = read_table(table, target, folder)
    train, rest = train_test_split(
        np.arange(len(y)), train_size=min(n_train, len(y) // 2), random_state=0, stratify=y
    )
    rest = rest[:_POOL]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = make_pipeline(StandardScaler(), _made(model)).fit(X[train], y[train])
        proba = fitted.predict_proba(X[rest]).astype(np.float64)
    proba = np.maximum(proba, 0.0)
    proba /= proba.sum(axis=1, keepdims=True)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(kept, proba=proba, y=y[rest])
    return proba, y[rest]


def _made(model: str) -> Any:
    if model == "xgboost":
        from xgboost import XGBClassifier

        return XGBClassifier(n_estimators=100, n_jobs=1, random_state=0)
    if model == "lightgbm":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_estimators=100, n_jobs=1, random_state=0, verbose=-1)
    made: dict[str, Any] = {
        "logistic": LogisticRegression(max_iter=500),
        "forest": RandomForestClassifier(200, random_state=0),
        "network": MLPClassifier((100, 100), max_iter=150, random_state=0),
        "neighbours": KNeighborsClassifier(15),
        "bayes": GaussianNB(),
    }
    return made[model]
