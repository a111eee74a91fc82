"""Small scored reviews for the runs, made once."""

from __future__ import annotations

import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from small_reviews import Made, made, rows


@pytest.fixture(scope="module", autouse=True)
def _work_here(work_here: None) -> None:
    """No worker processes, but where a test asks for `real_workers`."""


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
