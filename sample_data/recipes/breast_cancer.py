"""Breast cancer, Wisconsin: a forest of 500 trees as a skops file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from recipes.files import split_rows, write_parquet, write_skops

CLASSES = ["benign", "malignant"]


def build(folder: Path) -> dict[str, Any]:
    data = load_breast_cancer(as_frame=True)
    features = data.data
    diagnosis = np.asarray(data.target_names)[data.target].astype(str)
    train, calibration, evaluation = split_rows(len(features), (199, 185, 185), seed=0)
    model = RandomForestClassifier(n_estimators=500, random_state=0, n_jobs=1)
    model.fit(features.iloc[train], diagnosis[train])
    write_skops(folder / "model.skops", model)
    parts = {"training": train, "calibration": calibration, "evaluation": evaluation}
    for name, rows in parts.items():
        columns = {column: features[column].to_numpy()[rows] for column in features}
        write_parquet(folder / f"{name}.parquet", {**columns, "diagnosis": diagnosis[rows]})
    return {
        "title": "Breast cancer, a forest of 500 trees",
        "summary": (
            "A random forest reads thirty measurements of cell nuclei and classifies a tumour as "
            "benign or malignant. See how little 185 rows can prove: the forest is cautious, and "
            "the intervals are wide where rows are few."
        ),
        "task": "classification",
        "model": "model.skops",
        "target": "diagnosis",
        "source": (
            "Breast Cancer Wisconsin (Diagnostic), W. Wolberg, O. Mangasarian, N. Street and "
            "W. Street, UCI Machine Learning Repository (1993), as shipped with scikit-learn "
            "(load_breast_cancer): 569 tumours."
        ),
        "licence": "Data: CC BY 4.0. Model: made for kdcal, same terms.",
        "trained": (
            "On the 199 tumours of the training table, which are in no other: scikit-learn "
            "RandomForestClassifier, 500 fully grown trees, seed 0."
        ),
        "accuracy": float(model.score(features.iloc[evaluation], diagnosis[evaluation])),
        "class_names": CLASSES,
    }
