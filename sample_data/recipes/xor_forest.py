"""Gaussian XOR: a forest of 500 trees as a skops file, two features to draw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from recipes import xor
from recipes.files import write_skops


def build(folder: Path) -> dict[str, Any]:
    parts = xor.write_tables(folder)
    points, label = parts["training"]
    model = RandomForestClassifier(n_estimators=500, random_state=0, n_jobs=1)
    model.fit(pd.DataFrame(xor.columns(points)), xor.words(label))
    write_skops(folder / "model.skops", model)
    points, label = parts["evaluation"]
    return {
        "title": "Four clouds in the plane, a forest of 500 trees",
        "summary": (
            "A random forest decides whether two numbers have the same sign: the smallest task "
            "in which every answer can be drawn. Look outside the square: where there are no "
            "points, the forest is nearly as confident as inside."
        ),
        "task": "classification",
        "model": "model.skops",
        "target": "class",
        "source": f"{xor.SOURCE} {xor.TABLES}",
        "licence": xor.LICENCE,
        "trained": (
            f"On the {xor.N_ROWS:,} points of the training table: scikit-learn "
            "RandomForestClassifier, 500 fully grown trees, seed 0."
        ),
        "accuracy": float(model.score(pd.DataFrame(xor.columns(points)), xor.words(label))),
        "class_names": xor.CLASSES,
    }
