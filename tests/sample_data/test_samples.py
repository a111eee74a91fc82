"""The shipped samples are what their cards say, small, and rebuilt byte for byte."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2] / "sample_data"
NAMES = ("digits", "breast_cancer", "adult", "digits_predictions")
WITH_MODEL = NAMES[:3]
# Every sample but "adult", whose recipe fetches its data over the network.
REBUILT = ("digits", "breast_cancer", "digits_predictions")
WORDS = ("title", "summary", "task", "target", "source", "licence", "trained")


def card_of(name: str, root: Path = ROOT) -> dict[str, Any]:
    card: dict[str, Any] = json.loads((root / name / "card.json").read_text(encoding="utf-8"))
    return card


def table(name: str, role: str) -> pd.DataFrame:
    return pd.read_parquet(ROOT / name / card_of(name)[role])


def test_every_folder_is_a_sample() -> None:
    assert {card.parent.name for card in ROOT.glob("*/card.json")} == set(NAMES)


def test_all_samples_together_are_small() -> None:
    sizes = [file.stat().st_size for name in NAMES for file in (ROOT / name).iterdir()]
    assert sum(sizes) < 8e6


@pytest.mark.parametrize("name", NAMES)
def test_card_agrees_with_the_tables(name: str) -> None:
    card = card_of(name)
    assert card["name"] == name
    assert all(card[word].strip() for word in WORDS)
    assert card["n_classes"] == len(card["class_names"]) == len(set(card["class_names"]))
    for role in ("calibration", "evaluation"):
        rows = table(name, role)
        assert len(rows) == card["rows"][role]
        assert not rows.isna().any().any()
        assert set(rows[card["target"]].astype(str)) == set(card["class_names"])


@pytest.mark.parametrize("name", NAMES)
def test_no_row_lies_in_both_tables(name: str) -> None:
    # Census rows may truly repeat (two people, one form), so they are counted, not forbidden.
    both = pd.concat([table(name, "calibration"), table(name, "evaluation")])
    repeated = both.duplicated().mean()
    assert repeated < 0.1 if name == "adult" else repeated == 0


@pytest.mark.parametrize("name", WITH_MODEL)
def test_accuracy_on_the_card_is_the_model_files_own(name: str) -> None:
    from kdcal_core.parents import load_parent

    card = card_of(name)
    parent = load_parent(ROOT / name / card["model"])
    rows = table(name, "evaluation")
    truth = rows.pop(card["target"]).astype(str).to_numpy()
    proba = parent.predict_proba(rows)
    predicted = np.asarray(parent.classes)[proba.argmax(axis=1)]
    assert list(parent.classes) == card["class_names"]
    assert parent.named_classes
    assert tuple(parent.feature_names or ()) == tuple(rows.columns)
    assert np.mean(predicted == truth) == pytest.approx(card["accuracy"], abs=1e-12)


def test_predictions_only_states_probabilities() -> None:
    card = card_of("digits_predictions")
    assert card["model"] is None
    for role in ("calibration", "evaluation"):
        rows = table("digits_predictions", role)
        proba = rows[[f"proba_{k}" for k in range(10)]].to_numpy()
        assert np.all((proba >= 0) & (proba <= 1))
        np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-5)
        # No row says that the truth is impossible, so the log loss is finite.
        assert proba[np.arange(len(rows)), rows["label"]].min() > 0
    accuracy = np.mean(proba.argmax(axis=1) == rows["label"])
    assert accuracy == pytest.approx(card["accuracy"], abs=1e-12)


@pytest.mark.parametrize("role", ["calibration", "evaluation"])
def test_digits_network_is_wrong_at_least_once_in_every_class(role: str) -> None:
    """The page on confidence by class has something to show for each of the ten digits."""
    from kdcal_core.parents import load_parent

    rows = table("digits", role)
    truth = rows.pop("digit").to_numpy()
    predicted = load_parent(ROOT / "digits" / "model.onnx").predict_proba(rows).argmax(axis=1)
    assert set(predicted[predicted != truth]) == set(range(10))


def test_digits_ensemble_is_the_mean_of_its_members_not_their_sum() -> None:
    import onnx

    graph = onnx.load(ROOT / "digits" / "model.onnx").graph
    assert graph.node[-1].op_type == "Mean"
    assert len(graph.node[-1].input) == sum(node.op_type == "Softmax" for node in graph.node) == 10


@pytest.mark.parametrize("name", REBUILT)
def test_rebuild_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    for folder in ("first", "second"):
        command = [sys.executable, str(ROOT / "build.py"), "--only", name, "--out", folder]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    first = contents(tmp_path / "first" / name)
    assert first == contents(tmp_path / "second" / name)
    assert same_numbers(card_of(name), card_of(name, tmp_path / "first"))
    if built_with_these_versions(name):
        assert first == contents(ROOT / name)


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def same_numbers(shipped: dict[str, Any], rebuilt: dict[str, Any]) -> bool:
    return {k: v for k, v in shipped.items() if k != "built_with"} == {
        k: v for k, v in rebuilt.items() if k != "built_with"
    }


def built_with_these_versions(name: str) -> bool:
    versions = dict(card_of(name)["built_with"])
    python = versions.pop("python")
    return python == f"{sys.version_info.major}.{sys.version_info.minor}" and all(
        metadata.version(package) == version for package, version in versions.items()
    )
