"""Fitted calibrators of every kind in the registry, for the tests of their files."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from kdcal_core.calibration import CALIBRATORS, fit_calibrator
from kdcal_core.calibration.export import DataMark, make_card
from kdcal_core.data import ScoredSet, digest_arrays
from kdcal_core.errors import InputWarning
from kdcal_core.models import wrap_model

N_ROWS = 400


@cache
def table(seed=0, n=N_ROWS):
    """Features of several kinds with gaps, and two or three classes that depend on them."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n).round(2),
            "colour": rng.choice(["red", "blue", "green"], n),
            "old": rng.choice([True, False], n),
            "=cmd": rng.integers(0, 4, n),
        }
    )
    frame.loc[::9, "size"] = np.nan
    return frame


@cache
def scored(n_classes, seed=0, n=N_ROWS):
    frame, rng = table(seed, n), np.random.default_rng(seed + 1)
    signal = np.nan_to_num(frame["size"].to_numpy()) + (frame["colour"] == "red")
    logit = np.outer(signal, np.linspace(-1, 1, n_classes)) + rng.gumbel(size=(n, n_classes))
    y = logit.argmax(axis=1)
    stated = 2 * (logit + rng.normal(size=logit.shape))
    proba = np.exp(stated - stated.max(axis=1, keepdims=True))
    proba /= proba.sum(axis=1, keepdims=True)
    names = tuple(f"class {k}" for k in range(n_classes))
    return ScoredSet(proba, y, names, digest_arrays(proba, y), "calibration")


@cache
def numeric_model(n_classes):
    rows = scored(n_classes)
    X = numbers(table())
    model = RandomForestClassifier(8, max_depth=5, random_state=0).fit(X, rows.y)
    return wrap_model(model, classes=rows.classes)


def numbers(frame):
    return frame[["size", "=cmd"]].fillna(0.0)


@cache
def fitted(key, n_classes=3):
    """The calibrator of this key with its rows' features and model, as far as it wants them."""
    entry = CALIBRATORS[key]
    rows = scored(n_classes)
    model, X = None, table()
    if "model" in entry.needs:
        model, X = numeric_model(n_classes), numbers(table())
        proba = model.predict_proba(X)
        rows = ScoredSet(proba, rows.y, rows.classes, "digest", "calibration")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        fresh = entry.factory()
        if hasattr(fresh, "n_trees"):
            fresh.set_params(n_trees=5)  # a hundred are no other state
        calibrator = fit_calibrator(fresh, rows, X, model=model)
    return calibrator, rows, X, model


def card(key, calibrator, rows, X):
    return make_card(
        key,
        calibrator,
        classes=rows.classes,
        data={"calibration": DataMark("rows.csv", rows.digest, rows.n_rows)},
        features=list(X.columns),
        seed=0,
        created="2026-01-31",
    )


@cache
def heterogeneous(n_classes=2, **settings):
    """A calibrator by region with the rows it was fitted on."""
    from kdcal_core.calibration.regions import HeterogeneousCalibrator

    rows = scored(n_classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        calibrator = HeterogeneousCalibrator(**{"partition": "tree", "min_rows": 20, **settings})
        calibrator.fit(rows.proba, rows.y, table())
    return calibrator, rows
