"""Real tables whose new rows are drawn by their inputs alone, so that P(y|x) is unchanged.

A model is trained on two fifths of a table: boosted trees, which use the inputs well, and a
logistic regression, which does not, so that rows of equal scores differ. Reference rows are drawn
at random from the rest, new rows with odds that rise with one input or the first principal
component of all. The labels of the new rows judge the estimates that did not see them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics import auc, label_free_performance
from kdcal_core.diagnostics.label_free import LabelFree, Weighting

TABLES = ("adult", "credit_default", "spambase", "letter", "diamonds", "wine_white", "satimage")
BUILT_IN = ("breast_cancer", "digits")
STRENGTHS = (0.0, 1.0, 2.0)
SEEDS = 8
REFERENCE, NEW = 1_500, 1_000
WEIGHTINGS: tuple[Weighting, ...] = ("nothing", "scores", "features")
_MOST_POOLED = 12_000
MODELS: dict[str, Callable[[], Any]] = {
    "boosted": lambda: HistGradientBoostingClassifier(
        max_iter=60, learning_rate=0.2, random_state=0
    ),
    "linear": lambda: make_pipeline(
        SimpleImputer(), StandardScaler(), LogisticRegression(max_iter=500)
    ),
}


def tasks(quick: bool, data: Path | None, cache: Path | None) -> list[dict[str, Any]]:
    """One task a table, strength of the shift and seed."""
    found = (*BUILT_IN, *(TABLES if data is not None else ()))
    return [
        {
            **{"table": name, "model": model, "strength": strength, "seed": seed},
            **{"data": data, "cache": cache},
        }
        for seed in range(2 if quick else SEEDS)
        for name in found
        for model in MODELS
        for strength in STRENGTHS
    ]


def run(task: dict[str, Any]) -> list[dict[str, Any]]:
    """Estimates and what the labels say, one row a measure and method."""
    X, y = _table(task["table"], task["data"])
    rng = np.random.default_rng([task["seed"], int(10 * task["strength"]), len(y)])
    order = rng.permutation(len(y))[:_MOST_POOLED]
    train, rest = np.split(order, [2 * len(order) // 5])
    model = MODELS[task["model"]]()
    model.fit(X.iloc[train], y[train])
    reference, new = drawn(X, rest, task["strength"], rng)
    proba, fresh = (model.predict_proba(X.iloc[rows]) for rows in (reference, new))
    if task["cache"] is not None:
        _keep(task, proba[:, 1], y[reference], fresh[:, 1], y[new])
    truth = {
        "accuracy": float((fresh.argmax(axis=1) == y[new]).mean()),
        "event rate": float(y[new].mean()),
        "auc": auc(fresh[:, 1], y[new]).value,
    }
    made = []
    for by in WEIGHTINGS:
        found = label_free_performance(
            proba,
            y[reference],
            fresh,
            weighting=by,
            features=X.iloc[reference] if by == "features" else None,
            new_features=X.iloc[new] if by == "features" else None,
            seed=task["seed"],
        )
        assert found.event is not None
        estimates = {
            "accuracy": (found.predictions, found.predictions.rate),
            "event rate": (found.event, found.event.rate),
            "auc": (found.event, found.event.auc),
        }
        for measure, (whole, one) in estimates.items():
            made.append(
                _row(task, measure, by, truth[measure], one.rows.value, whole)
                | {"low": one.rows.low, "high": one.rows.high}
            )
        if by == "nothing":
            reference_values = {
                "accuracy": found.predictions.rate.reference,
                "event rate": found.event.rate.reference,
                "auc": found.event.auc.reference,
            }
            made += [
                _row(task, measure, "reference value", truth[measure], one.value, None)
                | {"low": one.low, "high": one.high}
                for measure, one in reference_values.items()
            ]
    stated = {"accuracy": float(fresh.max(axis=1).mean()), "event rate": float(fresh[:, 1].mean())}
    made += [
        _row(task, measure, "stated", truth[measure], one, None) for measure, one in stated.items()
    ]
    return made


def _row(
    task: dict[str, Any],
    measure: str,
    method: str,
    truth: float,
    value: float,
    found: LabelFree | None,
) -> dict[str, Any]:
    return {
        **{name: task[name] for name in ("table", "model", "strength", "seed")},
        "measure": measure,
        "method": method,
        "truth": truth,
        "value": value,
        "effective": np.nan if found is None else found.effective_rows,
        "outside": np.nan if found is None else found.outside.value,
        "covered": True if found is None else found.covered,
    }


def drawn(
    X: pd.DataFrame, rest: IntArray, strength: float, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Reference rows at random, and new rows with odds exp(strength * z) among the others."""
    n = min(REFERENCE, len(rest) // 2)
    reference, others = rest[:n], rest[n:]
    z = _direction(X.iloc[others], rng)
    chance = np.exp(strength * z)
    m = min(NEW, len(others) // 2)
    return reference, others[_without_repeats(chance, m, rng)]


def _without_repeats(chance: FloatArray, m: int, rng: np.random.Generator) -> IntArray:
    return rng.choice(len(chance), m, replace=False, p=chance / chance.sum())


def _direction(X: pd.DataFrame, rng: np.random.Generator) -> FloatArray:
    """One numeric input, or for every other draw the first principal component, as normal ranks."""
    numeric = X.select_dtypes("number")
    scaled = ((numeric - numeric.mean()) / (numeric.std() + 1e-9)).fillna(0.0).to_numpy()
    if rng.random() < 0.5:
        z = PCA(1).fit_transform(scaled)[:, 0]
    else:
        varied = np.flatnonzero([len(np.unique(one)) > 5 for one in scaled.T])
        z = scaled[:, int(rng.choice(varied))]
    z = z * rng.choice([-1.0, 1.0])
    place = np.argsort(np.argsort(z + 1e-9 * rng.normal(size=len(z)))) + 0.5
    return np.asarray(2.0 * place / len(z) - 1.0)


def _table(name: str, data: Path | None) -> tuple[pd.DataFrame, IntArray]:
    """Inputs and a binary outcome."""
    if name == "breast_cancer":
        loaded = load_breast_cancer()
        return pd.DataFrame(loaded.data), loaded.target.astype(np.int64)
    if name == "digits":
        loaded = load_digits()
        return pd.DataFrame(loaded.data), (loaded.target >= 5).astype(np.int64)
    assert data is not None
    frame = pd.read_parquet(data / f"{name}.parquet")
    column, positive = {
        "adult": ("class", None),
        "credit_default": ("default-payment-next-month", None),
        "diamonds": ("price", 3000),
        "wine_white": ("quality", 7),
    }.get(name, ("y", None))
    target, X = frame[column], frame.drop(columns=column)
    for one in X.columns:
        if not pd.api.types.is_numeric_dtype(X[one].dtype):
            X[one] = X[one].astype(str).astype("category").cat.codes
    if positive is not None:
        return X, (target >= positive).to_numpy().astype(np.int64)
    codes = target.astype(str).astype("category").cat.codes.to_numpy()
    return X, (codes >= (codes.max() + 1) // 2).astype(np.int64)


def _keep(
    task: dict[str, Any], score: FloatArray, y: IntArray, new: FloatArray, y_new: IntArray
) -> None:
    """Scores and labels of both tables in a file, for another program to estimate from."""
    task["cache"].mkdir(parents=True, exist_ok=True)
    path = (
        task["cache"] / f"{task['table']}_{task['model']}_{task['strength']:g}_{task['seed']}.npz"
    )
    np.savez(path, score=score, y=y, new=new, y_new=y_new)
