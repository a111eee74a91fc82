"""The shipped samples of a regression say what their cards say, and hide what they are to teach."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from kdcal_core.models import load_model

ROOT = Path(__file__).resolve().parents[2] / "sample_data"
NAMES = ("heteroscedastic", "diamonds", "diamonds_quantiles")
WITH_MODEL = NAMES[:2]
FAMILIES = {"heteroscedastic": "point", "diamonds": "gamma", "diamonds_quantiles": "quantiles"}
WORDS = ("title", "summary", "target", "source", "licence", "trained")
FEATURES = ["carat", "cut", "colour", "clarity", "length", "width", "depth", "table"]


def card_of(name: str) -> dict[str, Any]:
    card: dict[str, Any] = json.loads((ROOT / name / "card.json").read_text(encoding="utf-8"))
    return card


@cache
def table(name: str, role: str) -> pd.DataFrame:
    return pd.read_parquet(ROOT / name / f"{role}.parquet")


@cache
def predicted(name: str, role: str) -> np.ndarray:
    return load_model(ROOT / name / "model.onnx", task="regression").predict(table(name, role))


@cache
def diamond_pit() -> np.ndarray:
    mean, shape = predicted("diamonds", "evaluation").T
    price = table("diamonds", "evaluation")["price"]
    return np.asarray(stats.gamma.cdf(price, shape, scale=mean / shape))


def inside(pit: np.ndarray) -> float:
    return float(np.mean((pit > 0.025) & (pit < 0.975)))


@pytest.mark.parametrize("name", NAMES)
def test_card_agrees_with_the_tables(name: str) -> None:
    card = card_of(name)
    assert (card["name"], card["task"], card["family"]) == (name, "regression", FAMILIES[name])
    assert all(card[word].strip() for word in WORDS)
    assert (card["model"] is not None) == (name in WITH_MODEL)
    tables = {file.stem: file.name for file in (ROOT / name).glob("*.parquet")}
    assert {role: len(table(name, role)) for role in tables} == card["rows"]
    for role in ("calibration", "evaluation"):
        assert card[role] == tables[role]
        rows = table(name, role)
        assert np.isfinite(rows.to_numpy(dtype=float)).all()
        assert rows[card["target"]].nunique() > 1000


@pytest.mark.parametrize("name", NAMES)
def test_sample_is_small(name: str) -> None:
    assert sum(file.stat().st_size for file in (ROOT / name).iterdir()) < 1.5e6


@pytest.mark.parametrize("name", WITH_MODEL)
def test_model_file_says_what_it_predicts_and_errs_as_its_card_says(name: str) -> None:
    card, model = card_of(name), load_model(ROOT / name / "model.onnx")
    rows = table(name, "evaluation")
    assert model.family == card["family"]
    assert set(model.feature_names) <= set(rows.columns) - {card["target"]}
    error = predicted(name, "evaluation")[:, 0] - rows[card["target"]].to_numpy(dtype=float)
    assert np.sqrt(np.mean(error**2)) == pytest.approx(card["rmse"], rel=1e-5)


def test_line_is_the_papers_and_its_true_mean_is_equation_4() -> None:
    """Table 1 prints 14,546 and 93.78 for the line."""
    rows = table("heteroscedastic", "evaluation")
    x, y, truth = (rows[key].to_numpy(dtype=float) for key in ("x", "y", "true_mean"))
    np.testing.assert_allclose(truth, 10 + 5 * x**2, rtol=1e-6)
    assert stats.kstest((y - truth) / (30 * x), "norm").pvalue > 1e-3
    mean = predicted("heteroscedastic", "evaluation")[:, 0]
    known = table("heteroscedastic", "calibration")["y"]
    spread = np.sqrt(np.mean((known - predicted("heteroscedastic", "calibration")[:, 0]) ** 2))
    assert np.mean((mean - truth) ** 2) == pytest.approx(14_546, rel=0.03)
    pit = stats.norm.cdf((y - mean) / spread)
    assert inside(pit) == pytest.approx(0.9378, abs=0.01)
    # what the whole hides: too low at both ends, too high between; too wide, then too narrow
    ends, middle = (x < 4) | (x > 18), (x > 8) & (x < 14)
    assert pit[ends].mean() > 0.55
    assert pit[middle].mean() < 0.45
    assert inside(pit[x < 4]) > 0.99
    assert inside(pit[x > 18]) < 0.85


def test_network_is_the_papers_and_errs_about_as_much() -> None:
    """Section 4.4 prints layers of 100, 5 and 5, and Table 3 an RMSE of 557.8."""
    model = load_model(ROOT / "diamonds" / "model.onnx")
    assert list(model.feature_names) == FEATURES
    assert model.outputs == ("mean", "shape")
    assert model.layers == ("hidden 1 (100)", "hidden 2 (5)", "hidden 3 (5)")
    shape = predicted("diamonds", "evaluation")[:, 1]
    assert shape.min() == shape.max() > 50
    assert card_of("diamonds")["rmse"] == pytest.approx(557.8, rel=0.03)


def test_diamonds_look_well_as_a_whole_and_badly_in_places() -> None:
    rows, pit = table("diamonds", "evaluation"), diamond_pit()
    poorest, large = rows["cut"] == 1, rows["carat"] > 1.6
    assert inside(pit) == pytest.approx(0.94, abs=0.005)
    assert inside(pit[poorest]) == pytest.approx(0.82, abs=0.005)
    assert pit[large].mean() > 0.55


def test_diamonds_parts_are_the_papers_shares_of_all_53_940() -> None:
    sizes = card_of("diamonds")["rows"]
    assert sizes == {"training": 37_758, "calibration": 10_788, "evaluation": 5_394}
    rows = pd.concat([table("diamonds", role) for role in sizes])
    # 143 stones are listed twice as published; each row went to one part alone
    assert len(rows) == 53_940
    assert rows.duplicated().sum() < 200
    assert rows[["cut", "colour", "clarity"]].agg(["min", "max"]).to_numpy().tolist() == [
        [1, 1, 1],
        [5, 7, 8],
    ]


def test_stated_quantiles_do_not_cross_and_promise_too_much() -> None:
    card = card_of("diamonds_quantiles")
    rows = table("diamonds_quantiles", "evaluation")
    stated = rows[[name for name in rows if name.startswith("quantile_")]].to_numpy()
    assert (np.diff(stated, axis=1) >= 0).all()
    share = np.mean((stated[:, 0] <= rows["price"]) & (rows["price"] <= stated[:, -1]))
    assert f"only {100 * share:.0f} lie" in card["summary"]
    assert share < 0.93
    pd.testing.assert_frame_equal(
        rows[[*FEATURES, "price"]], table("diamonds", "evaluation")[[*FEATURES, "price"]]
    )
