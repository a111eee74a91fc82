"""Probabilities and true classes of models on rows that they were not trained on.

Made-up tables need nothing. Real ones are Parquet files of a folder; each has one model, trained
on half of its rows, at most 4,000, and some on fewer, so that models that trust themselves too
little and too much both take part. A cache folder keeps what the models said.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kdcal_core.data import FloatArray, IntArray

Scored = tuple[FloatArray, IntArray]

# table: target, model, rows that train it
REAL: dict[str, tuple[str, str, int]] = {
    "adult": ("class", "boosting", 4000),
    "credit_default": ("default-payment-next-month", "forest", 4000),
    "spambase": ("y", "network", 2000),
    "pima": ("y", "boosting", 384),
    "wdbc": ("y", "logistic", 200),
    "letter": ("y", "network", 4000),
    "penbased": ("y", "forest", 2000),
    "satimage": ("y", "network", 2500),
    "segment": ("y", "boosting", 600),
    "texture": ("y", "logistic", 600),
    "vehicle": ("y", "network", 400),
    "vowel": ("y", "forest", 400),
    "fashion_mnist": ("y", "network", 3000),
    "mnist": ("y", "forest", 1500),
    "wine_white": ("quality", "network", 2000),
}
MADE = (
    *("made_over", "made_under", "made_right", "made_separated", "made_ninety"),
    *("made_sparse", "made_class_faults", "made_two_sharp"),
)
_ROWS = 30_000
_LARGEST_POOL = 20_000
FEWEST = 20


def names(folder: Path | None) -> list[str]:
    """Tables that there are."""
    if folder is None:
        return list(MADE)
    real = [n for n in REAL if any((folder / f"{n}.{end}").exists() for end in ("parquet", "npz"))]
    return [*MADE, *real]


def scored(name: str, folder: Path | None, cache: Path | None) -> Scored:
    """Probabilities (n, K) and true classes (n,) of rows without a part in the training."""
    if name in MADE:
        return made(name)
    kept = None if cache is None else cache / f"{name}.npz"
    if kept is not None and kept.exists():
        with np.load(kept) as found:
            return found["proba"], found["y"]
    assert folder is not None
    proba, y = _trained(name, folder)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(kept, proba=proba, y=y)
    return proba, y


def made(name: str) -> Scored:
    """Rows drawn where the truth is known: classes from the true probabilities of each row."""
    rng = np.random.default_rng([7, MADE.index(name)])
    if name in ("made_over", "made_under", "made_right"):
        logits = 1.5 * rng.normal(size=(_ROWS, 4))
        return _stated(logits, {"made_over": 2.0, "made_under": 0.6, "made_right": 1.0}[name], rng)
    if name == "made_separated":  # ten classes of digits, say: hardly an error
        return _stated(_lifted(rng, np.full(10, 0.1), 7.0), 1.3, rng)
    if name == "made_ninety":
        return _stated(_lifted(rng, np.array([0.9, *[0.1 / 9] * 9]), 4.0), 1.2, rng)
    if name == "made_sparse":
        return _stated(_lifted(rng, np.full(15, 1 / 15), 4.5), 1.1, rng)
    if name == "made_two_sharp":  # two classes, few errors, and a model that is right
        return _stated(_lifted(rng, np.array([0.6, 0.4]), 4.0), 1.0, rng)
    # each class has a fault of its own, which no shared temperature repairs
    logits = _lifted(rng, np.full(6, 1 / 6), 3.0)
    faults = np.array([2.5, 1.6, 1.0, 0.8, 0.6, 0.5])
    proba, y = _stated(logits, 1.0, rng)
    scaled = np.log(proba) * faults[proba.argmax(axis=1)][:, None]
    return _softmax(scaled), y


def many_classes(n: int, n_classes: int = 214, seed: int = 0) -> Scored:
    """Rows of very many classes, with an over-confident model."""
    rng = np.random.default_rng([8, seed])
    share = rng.dirichlet(np.full(n_classes, 0.7))
    return _stated(_lifted(rng, share, 5.0, n), 1.6, rng)


def _lifted(rng: np.random.Generator, share: FloatArray, lift: float, n: int = _ROWS) -> FloatArray:
    """Logits of noise, in which one class, drawn by its share, stands above."""
    k = len(share)
    logits = rng.normal(size=(n, k)) + np.log(np.maximum(share, 1e-6))
    logits[np.arange(n), rng.choice(k, size=n, p=share)] += lift
    return logits


def _stated(logits: FloatArray, sharper: float, rng: np.random.Generator) -> Scored:
    """Classes from softmax(logits), stated as softmax(sharper * logits)."""
    honest = _softmax(logits)
    y = (rng.random((len(logits), 1)) > honest.cumsum(axis=1)).sum(axis=1)
    return _softmax(sharper * logits), np.minimum(y, logits.shape[1] - 1)


def _softmax(logits: FloatArray) -> FloatArray:
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    found: FloatArray = shares / shares.sum(axis=1, keepdims=True)
    return found


def _trained(name: str, folder: Path) -> Scored:
    target, kind, n_train = REAL[name]
    X, y = read_table(name, target, folder)
    train, rest = train_test_split(
        np.arange(len(y)), train_size=min(n_train, len(y) // 2), random_state=0, stratify=y
    )
    model = _model(kind).fit(X[train], y[train])
    rest = rest[:_LARGEST_POOL]
    return model.predict_proba(X[rest]).astype(np.float64), y[rest]


def read_table(name: str, target: str, folder: Path) -> Scored:
    """Features (n, d) and classes (n,) of a table; images as rows of pixels."""
    if (folder / f"{name}.npz").exists():
        with np.load(folder / f"{name}.npz") as found:
            arrays = {key: found[key] for key in found.files}
        images = next(a for key, a in arrays.items() if a.ndim == 3 or a.shape[-1] == 784)
        y = next(a for a in arrays.values() if a.ndim == 1 and len(a) == len(images))
        kept = np.random.default_rng(0).permutation(len(y))[:16_000]
        return images[kept].reshape(len(kept), -1) / 255.0, y[kept].astype(np.int64)
    table = pd.read_parquet(folder / f"{name}.parquet").drop(columns="ID", errors="ignore")
    table = table.drop_duplicates().reset_index(drop=True)
    values = table.pop(target).astype(str)
    kept_rows = values.map(values.value_counts()) >= FEWEST
    y, _ = pd.factorize(values[kept_rows], sort=True)
    X = pd.get_dummies(table[kept_rows], dtype=np.float64)
    return X.to_numpy(np.float64), y.astype(np.int64)


def _model(kind: str) -> Any:
    made: dict[str, Any] = {
        "boosting": GradientBoostingClassifier(random_state=0),
        "forest": RandomForestClassifier(200, random_state=0),
        "network": MLPClassifier((100, 100), max_iter=150, random_state=0),
        "logistic": LogisticRegression(C=100.0, max_iter=500),
    }
    return make_pipeline(StandardScaler(), made[kind])
