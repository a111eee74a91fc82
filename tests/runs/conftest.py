"""Small scored reviews for the runs, made once."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from workerless import working_here

from kdcal_core.review import (
    Review,
    Workspace,
    add_model,
    add_table,
    create_review,
    score,
)


@dataclass
class Made:
    """A review in its workspace, with the model and the tables it was made of."""

    workspace: Workspace
    review: Review
    model: object
    tables: dict[str, pd.DataFrame]


def quiet(share: float, note: str) -> None:
    assert 0 <= share <= 1
    assert isinstance(note, str)


@pytest.fixture(scope="module", autouse=True)
def _work_here(work_here: None) -> None:
    """No worker processes, but where a test asks for `real_workers`."""


def csv(frame: pd.DataFrame) -> io.BytesIO:
    return io.BytesIO(frame.to_csv(index=False).encode())


def rows(n: int, seed: int, *, colour: bool = False) -> pd.DataFrame:
    """Two features in different units; the class says whether their signs agree."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    label = np.where((a > 0) == (b > 0), "same", "other")
    frame = pd.DataFrame({"a": a, "b": 100 * b + 7})
    if colour:
        frame["colour"] = rng.choice(["red", "green", "blue"], n)
    return frame.assign(kind=label)


def made(folder: Path, model: object, tables: dict[str, pd.DataFrame]) -> Made:
    workspace = Workspace(folder / "home")
    review_id = create_review(workspace).id
    skops.io.dump(model, folder / "model.skops")
    with working_here():  # reviews of the whole session are made before a file's own fixtures
        add_model(workspace, review_id, folder / "model.skops", "model.skops")
        for which, frame in tables.items():
            add_table(workspace, review_id, which, csv(frame), f"{which}.csv")
        review = score(workspace, review_id)
    return Made(workspace, review, model, tables)


@pytest.fixture(scope="session")
def forest(tmp_path_factory) -> Made:
    """A forest with a calibration and an evaluation set."""
    train = rows(200, 0)
    model = RandomForestClassifier(20, random_state=0).fit(train[["a", "b"]], train["kind"])
    tables = {"calibration": rows(150, 1), "evaluation": rows(80, 2)}
    return made(tmp_path_factory.mktemp("forest"), model, tables)


@pytest.fixture(scope="session")
def mixed(tmp_path_factory) -> Made:
    """A forest that reads words too, with a calibration set alone."""
    train = rows(200, 0, colour=True)
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["colour"]), remainder="passthrough"
    )
    model = make_pipeline(encoder, RandomForestClassifier(20, random_state=0))
    model.fit(train[["a", "b", "colour"]], train["kind"])
    return made(tmp_path_factory.mktemp("mixed"), model, {"calibration": rows(150, 1, colour=True)})


@pytest.fixture(scope="session")
def linear(tmp_path_factory) -> Made:
    """A model without a partition."""
    train = rows(100, 0)
    model = LogisticRegression().fit(train[["a", "b"]], train["kind"])
    return made(tmp_path_factory.mktemp("linear"), model, {"calibration": rows(60, 1)})
