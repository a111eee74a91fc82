"""Every step of the study of ensembles, on images that are made here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.benchmarks.studies import mnist_ensembles as study


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Digits are bright bars whose place is their class, between other bars."""
    rng = np.random.default_rng(0)
    arrays = {}
    for name, n in (("train", 900), ("test", 300)):
        y = rng.integers(0, 10, n).astype(np.uint8)
        X = rng.integers(0, 60, (n, 28, 28)).astype(np.uint8)
        for at, label in enumerate(y):
            X[at, :6, 2 * label + 4 : 2 * label + 7] = 250
        arrays |= {f"X_{name}": X, f"y_{name}": y}
    np.savez(tmp_path / "mnist.npz", **arrays)
    return tmp_path


def test_the_sets_are_those_of_the_appendix(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "N_TEST_1", 300)
    train, first, second = study.split(data)
    assert [len(y) for _, y in (train, first, second)] == [600, 300, 300]
    with np.load(data / "mnist.npz") as arrays:
        whole = arrays["X_train"].reshape(900, -1) / 255.0
        np.testing.assert_array_equal(second[1], arrays["y_test"])
    both = np.concatenate([train[0], first[0]])
    assert np.sort(both.sum(axis=1)).tolist() == np.sort(whole.sum(axis=1)).tolist()


def test_a_product_is_the_softmax_of_summed_logarithms() -> None:
    rng = np.random.default_rng(0)
    members = [np.log(rng.dirichlet(np.ones(10), 5)) for _ in range(10)]
    product = np.exp(members).prod(axis=0)
    product /= product.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(study.combined(members, "product"), product)
    np.testing.assert_allclose(study.combined(members, "sum") * 10, np.exp(members).sum(axis=0))


@pytest.mark.filterwarnings("ignore::kdcal_core.errors.InputWarning")  # few rows of each class
def test_every_calibrator_is_judged_on_both_test_sets(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"N_TEST_1": 300, "BATCH": 100, "MEMBERS": 3}.items():
        monkeypatch.setattr(study, name, value)
    task, _ = study.tasks(True, data)
    rows = pd.DataFrame(study.run({**task, "steps": 60, "networks": 4, "ensembles": 2}))
    wide = rows.pivot_table(index=["score", "method"], columns="measure", values="value")
    for how in ("sum", "product"):
        assert set(wide.loc[how].index) == set(study.METHODS)
        found = wide.loc[(how, "uncalibrated")]
        assert 0.2 < found["accuracy 1"] <= 1
        # hardly trained: a mean of ten is too unsure, and one temperature repairs most of it
        assert wide.loc[(how, "sts"), "NLL 1"] <= found["NLL 1"] + 1e-6
    study.write(rows, tmp_path)
    assert "| sum | kde_mon2 |" in (tmp_path / "mnist_ensembles.md").read_text(encoding="utf-8")
