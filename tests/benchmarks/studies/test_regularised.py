"""Penalties of PIT values against their definitions, and every step of the study."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from tests.benchmarks.studies.recalibration import real, regularised


def test_the_spacings_are_the_entropy_of_the_pit_values() -> None:
    even = torch.arange(1, 500) / 500
    assert float(regularised.spacings_penalty(even)) == pytest.approx(0.0, abs=1e-5)
    # half of the unit interval has entropy log(1/2)
    assert float(regularised.spacings_penalty(even / 2)) == pytest.approx(np.log(2), abs=0.1)
    by_hand, m = torch.tensor([0.3, 0.1, 0.8]), 4
    few = float(regularised.spacings_penalty(by_hand))
    assert few == pytest.approx(-np.log((1.0 - 0.0) * 4 / m))


def test_the_density_penalty_is_the_distance_from_the_diagonal() -> None:
    even = (torch.arange(2000) + 0.5) / 2000
    assert float(regularised.density_penalty(even)) == pytest.approx(0.0, abs=1e-3)
    # all values at 0.5: the distribution function is 0 below and 1 above
    levels = regularised.LEVELS.numpy()
    wanted = np.abs((levels > 0.5) + 0.5 * (np.abs(levels - 0.5) < 1e-6) - levels).mean()
    assert float(regularised.density_penalty(torch.full((50,), 0.5))) == pytest.approx(
        wanted, abs=0.01
    )


def test_every_training_is_judged_by_every_recalibration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 2))
    drawn = (X, X[:, 0] + rng.normal(size=700) * np.exp(0.5 * X[:, 1]))
    monkeypatch.setattr(regularised.real_tables, "load", lambda name, folder: drawn)
    monkeypatch.setattr(regularised, "MOST_EPOCHS", 20)
    monkeypatch.setattr(real, "SIZES", {"wine": (200,)})
    tasks = regularised.tasks(True, tmp_path)
    assert [task["training"] for task in tasks] == [*regularised.PENALTIES]
    rows = pd.DataFrame([row for task in tasks for row in regularised.run(task)])
    found = rows.pivot_table(index=["training", "method"], columns="measure", values="value")
    assert set(found.loc["quantile regularisation"]["strength"].dropna()) <= {0.1, 1.0, 10.0}
    assert (found["crps"].dropna() < 1.0).all()  # of outcomes with a spread of about 1.7
    scaled = found.xs("one factor", level="method")
    assert scaled["coverage90"].between(80, 97).all()
    regularised.write(rows, tmp_path)
    text = (tmp_path / "regularised.md").read_text(encoding="utf-8")
    assert text.count("| quantile regularisation |") == 4
    assert "| likelihood alone | as it is | +0.0 |" in text
