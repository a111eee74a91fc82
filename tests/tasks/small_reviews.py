"""How small scored reviews for the runs are made."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import skops.io
from workerless import working_here

from kdcal_core.data import Roles
from kdcal_core.review import (
    Review,
    Workspace,
    add_model,
    add_table,
    create_review,
    score,
    set_roles,
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


def made(
    folder: Path, model: object, tables: dict[str, pd.DataFrame], roles: Roles | None = None
) -> Made:
    workspace = Workspace(folder / "home")
    review_id = create_review(workspace).id
    skops.io.dump(model, folder / "model.skops")
    with working_here():  # reviews of the whole session are made before a file's own fixtures
        add_model(workspace, review_id, folder / "model.skops", "model.skops")
        for which, frame in tables.items():
            add_table(workspace, review_id, which, csv(frame), f"{which}.csv")
        if roles is not None:
            set_roles(workspace, review_id, roles)
        review = score(workspace, review_id)
    return Made(workspace, review, model, tables)
