"""All offered calibrators over the shipped samples and, with a folder, further real tables.

Each data set counts once: of samples made from one table the one with more rows is taken, and a
folder's copies of a sample are left out. Tables get a forest or a network as their model, in turn,
so that models that trust themselves too little and too much both take part.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from kdcal_core.calibration import CALIBRATORS
from kdcal_core.data import IntArray, ScoredSet
from kdcal_core.errors import InputWarning
from kdcal_core.evaluation import Comparison, compare
from kdcal_core.models import wrap_model
from kdcal_core.review import ReviewData, ReviewReader, Workspace, review_data, start_sample

SAMPLES = ("adult_network", "digits", "breast_cancer", "xor_forest")
TABLES = {
    "letter": "y",
    "penbased": "y",
    "satimage": "y",
    "segment": "y",
    "spambase": "y",
    "vehicle": "y",
    "vowel": "y",
    "pima": "y",
    "texture": "y",
    "credit_default": "default-payment-next-month",
    "wine_white": "quality",
}
MEASURES = ("log_loss", "brier", "ece_debiased", "classwise_ece", "auc", "accuracy")
SEED = 0
MOST = (4000, 2000, 4000)  # rows that train, calibrate and judge
SHARES = (0.4, 0.25, 0.35)
FEWEST = 20  # rows of a class, below which it is left out

Task = dict[str, Any]


def tasks(quick: bool, data: Path | None) -> list[Task]:
    """One task a data set."""
    made: list[Task] = [{"data_set": name, "data": None} for name in SAMPLES]
    if data is not None:
        made += [
            {"data_set": name, "data": str(data), "kind": ("forest", "network")[at % 2]}
            for at, name in enumerate(TABLES)
        ]
    return made[-3:] if quick else made


def run(task: Task) -> list[dict[str, Any]]:
    """Every measure of every calibrator on one data set."""
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore", InputWarning)
        if task["data"] is None:
            model, review = _sample(task["data_set"], Path(folder))
        else:
            model = task["kind"]
            review = _table(task["data_set"], Path(task["data"]), model)
        keys = [key for key, entry in CALIBRATORS.items() if entry.offered]
        found = compare(keys, review, seed=SEED, n_boot=100, far=False)
    return _rows(task["data_set"], model, review, found)


def _rows(name: str, model: str, review: ReviewData, found: Comparison) -> list[dict[str, Any]]:
    return [
        {
            "data_set": name,
            "model": model,
            "n_fit": review.calibration.n_rows,
            "n_judged": found.n,
            "n_classes": len(review.classes),
            "method": method.key,
            "measure": measure,
            "value": method.scores[measure].value,
        }
        for measure in MEASURES
        for method in found.methods
    ]


def _sample(name: str, folder: Path) -> tuple[str, ReviewData]:
    workspace = Workspace(folder)
    review = start_sample(workspace, name)
    assert review.model is not None
    return review.model.kind, review_data(ReviewReader(workspace, review.id), with_model=True)


def _table(name: str, folder: Path, kind: str) -> ReviewData:
    X, y, classes = _read(name, folder)
    train, calibrate, judge = _parts(y)
    scale = StandardScaler().fit(X.iloc[train])
    X = pd.DataFrame(scale.transform(X), columns=X.columns)
    model: Any = (
        RandomForestClassifier(300, random_state=SEED)
        if kind == "forest"
        else MLPClassifier((100, 100), max_iter=300, random_state=SEED)
    )
    wrapped = wrap_model(model.fit(X.iloc[train].to_numpy(), y[train]))

    def scored(rows: IntArray, which: str) -> ScoredSet:
        proba = wrapped.predict_proba(X.iloc[rows].to_numpy())
        return ScoredSet(proba, y[rows], classes, f"{name} {which}", which)

    parts = {"calibration": calibrate, "evaluation": judge, "training": train}
    return ReviewData(
        scored(calibrate, "calibration"),
        scored(judge, "evaluation"),
        classes,
        {which: X.iloc[rows].reset_index(drop=True) for which, rows in parts.items()},
        training_y=y[train],
        model=wrapped,
    )


def _read(name: str, folder: Path) -> tuple[pd.DataFrame, IntArray, tuple[str, ...]]:
    """Distinct rows as numbers, and classes that have enough of them."""
    table = pd.read_parquet(folder / f"{name}.parquet").drop(columns="ID", errors="ignore")
    table = table.drop_duplicates()
    target = table.pop(TABLES[name]).astype(str)
    kept = target.map(target.value_counts()) >= FEWEST
    y, classes = pd.factorize(target[kept], sort=True)
    X = pd.get_dummies(table[kept], dtype=np.float64).astype(np.float64).reset_index(drop=True)
    return X, y.astype(np.int64), tuple(classes)


def _parts(y: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Rows that train, calibrate and judge, stratified."""
    sizes = [min(int(share * len(y)), most) for share, most in zip(SHARES, MOST, strict=True)]
    train, rest = train_test_split(
        np.arange(len(y)), train_size=sizes[0], random_state=SEED, stratify=y
    )
    calibrate, rest = train_test_split(
        rest, train_size=sizes[1], random_state=SEED, stratify=y[rest]
    )
    return train, calibrate, rest[: sizes[2]]
