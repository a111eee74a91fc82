"""The Python of README runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression

README = Path(__file__).parents[1] / "README.md"
pytestmark = pytest.mark.filterwarnings("ignore::kdcal_core.errors.InputWarning")


def example(word: str) -> str:
    (code,) = (
        code
        for code in re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
        if word in code
    )
    return str(code)


def rows(seed: int, n: int = 300) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)).astype(np.float32)
    return X, (rng.random(n) < 1 / (1 + np.exp(-2 * X[:, 0] - X[:, 1]))).astype(int)


@pytest.fixture
def names() -> dict[str, Any]:
    """What the examples take as there."""
    (X_train, y_train), (X, y), (X_new, y_new) = map(rows, range(3))
    model = LogisticRegression().fit(X_train, y_train)
    return {
        **{"X_train": X_train, "y_train": y_train, "X_heldout": X, "y_heldout": y},
        **{"X_new": X_new, "y_new": y_new, "y_calibration": y},
        "proba_calibration": model.predict_proba(X),
        "proba_heldout": model.predict_proba(X),
        "proba_new": model.predict_proba(X_new),
    }


def test_the_confidence_of_a_predicted_class(names: dict[str, Any]) -> None:
    exec(example("TopLabelKDE()"), names)
    assert names["confidence"].shape == (300,)


def test_a_forest_and_a_network_that_know_where_their_data_end(names: dict[str, Any]) -> None:
    torch.manual_seed(0)
    names["module"] = torch.nn.Sequential(
        torch.nn.Linear(2, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2)
    )
    exec(example("KernelDensityNetwork(module)"), names)
    for one in (names["graph"], names["network"]):
        assert one.is_unknown(1000 * names["X_new"]).all()
        assert one.is_unknown(names["X_new"]).mean() < 0.1


def test_regions(names: dict[str, Any]) -> None:
    frames = {k: pd.DataFrame(names[k], columns=["a", "b"]) for k in ("X_heldout", "X_new")}
    exec(example("find_regions"), names | frames)


def test_a_regression(names: dict[str, Any]) -> None:
    X, X_new = (np.random.default_rng(seed).normal(size=(n, 2)) for seed, n in ((0, 800), (1, 300)))
    names |= {"X_calibration": X, "X_new": X_new, "y_calibration": X[:, 0], "y_new": X_new[:, 0]}
    names |= {"mean_calibration": X[:, 0] + X[:, 1], "mean_new": X_new.sum(axis=1)}
    exec(
        example("LocalRecalibration"),
        names | {"std_calibration": np.ones(800), "std_new": np.ones(300)},
    )
