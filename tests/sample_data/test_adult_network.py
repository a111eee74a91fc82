"""The over-confident network of the samples: what its card says, and that regions correct it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.tree import DecisionTreeClassifier

from kdcal_core.calibration.regions import HeterogeneousCalibrator
from kdcal_core.diagnostics import paired_auc
from kdcal_core.models import load_model

ROOT = Path(__file__).resolve().parents[2] / "sample_data"
FOLDER = ROOT / "adult_network"
PARTS = ("training", "calibration", "evaluation")


@cache
def rows(part: str) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Columns, labels and the network's logits of class 1."""
    table = pd.read_parquet(FOLDER / f"{part}.parquet")
    y = (table.pop("income") == ">50K").to_numpy().astype(int)
    logits = load_model(FOLDER / "model.onnx").logits(table)
    return table, y, logits[:, 1] - logits[:, 0]


def both(logit: np.ndarray) -> np.ndarray:
    return np.column_stack([expit(-logit), expit(logit)])


def percent(share: float) -> int:
    return round(100 * float(share))


def test_the_tables_are_those_of_the_boosted_trees() -> None:
    for part in PARTS:
        same = (ROOT / name / f"{part}.parquet" for name in ("adult", "adult_network"))
        assert len({file.read_bytes() for file in same}) == 1


def test_the_numbers_of_the_summary() -> None:
    table, y, logit = rows("evaluation")
    sure, right = expit(np.abs(logit)), (logit > 0) == y
    assert (percent(sure.mean()), percent(right.mean())) == (89, 84)
    region = (table["marital-status"] == "Married-civ-spouse") & (table["education-num"] < 13)
    assert (percent(sure[region].mean()), percent(right[region].mean())) == (80, 72)
    assert region.sum() > 1_900


def test_the_network_knows_its_training_rows_by_heart() -> None:
    found = {part: roc_auc_score(rows(part)[1], rows(part)[2]) for part in PARTS}
    assert found["training"] > 0.96
    assert max(found["calibration"], found["evaluation"]) < 0.89


def test_a_partition_lifts_the_auc_beyond_chance() -> None:
    """Algorithm 1 of Durfee et al. by scikit-learn, and DeLong's paired interval written out."""
    table = pd.get_dummies(pd.concat([rows(part)[0] for part in PARTS], keys=PARTS))
    tree = DecisionTreeClassifier(max_depth=2, min_samples_leaf=100, random_state=0)
    tree.fit(table.loc["training"], rows("training")[1])
    logit = {part: rows(part)[2] for part in PARTS}
    fit, judge = (tree.apply(table.loc[part]) for part in PARTS[1:])
    y_fit, y = rows("calibration")[1], rows("evaluation")[1]
    repaired = np.empty(len(y))
    for leaf in np.unique(judge):
        platt = LogisticRegression(C=1e4).fit(
            logit["calibration"][fit == leaf, None], y_fit[fit == leaf]
        )
        repaired[judge == leaf] = platt.decision_function(logit["evaluation"][judge == leaf, None])
    gain = placements(repaired, y) - placements(logit["evaluation"], y)
    variance = sum(np.var(gain[y == k], ddof=1) / np.sum(y == k) for k in (0, 1))
    lift = gain[y == 1].mean()
    assert lift == pytest.approx(
        roc_auc_score(y, repaired) - roc_auc_score(y, logit["evaluation"]), abs=1e-12
    )
    assert lift - norm.ppf(0.975) * np.sqrt(variance) > 0.004


def test_kdcal_finds_that_lift_with_its_defaults() -> None:
    """Given probabilities; the regions come from the training rows."""
    (inputs, y, logit), (held, y_held, said) = rows("calibration"), rows("evaluation")
    table, label, _ = rows("training")
    calibrator = HeterogeneousCalibrator()
    calibrator.fit(both(logit), y, inputs, X_partition=table, y_partition=label)
    repaired = calibrator.predict_proba(both(said), held)
    found = paired_auc(said, repaired[:, 1], y_held)
    assert found.difference.low > 0.004
    assert log_loss(y_held, repaired) < 0.9 * log_loss(y_held, expit(said))


def placements(score: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Share of the other class on the right side of each row, ties one half."""
    found = np.empty(len(y))
    for label, sign in ((1, 1), (0, -1)):
        other, own = np.sort(sign * score[y != label]), sign * score[y == label]
        found[y == label] = (
            np.searchsorted(other, own) + np.searchsorted(other, own, side="right")
        ) / (2 * len(other))
    return found


def test_text_columns_go_in_as_they_are_and_an_unknown_one_shows_nothing() -> None:
    model = load_model(FOLDER / "model.onnx")
    table = rows("evaluation")[0].head(50)
    strange = model.predict_proba(table.assign(occupation="Astronaut"))
    assert np.isfinite(strange).all()
    assert np.abs(strange - model.predict_proba(table)).max() > 0.01


def test_its_hidden_layers_and_regions_can_be_read() -> None:
    model = load_model(FOLDER / "model.onnx")
    table = rows("evaluation")[0].head(20)
    assert model.kind == "ReLU network (ONNX), 3 hidden layers of 128"
    assert model.embed(table).shape == (20, 128)
    assert model.codes(table).layer_widths == (128, 128, 128)
