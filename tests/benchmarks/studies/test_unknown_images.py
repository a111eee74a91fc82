"""Every step of the study of unknown images, on images that are made here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.benchmarks.studies import unknown_images as study


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Digits are bright bars whose place is their class; clothes are bright squares."""
    rng = np.random.default_rng(0)

    def bars(n: int) -> dict[str, np.ndarray]:
        y = rng.integers(0, 10, n).astype(np.uint8)
        X = rng.integers(0, 60, (n, 28, 28)).astype(np.uint8)
        for at, label in enumerate(y):
            X[at, :, 2 * label + 4 : 2 * label + 7] = 250
        return {"X": X, "y": y}

    train, test = bars(700), bars(300)
    squares = np.zeros((200, 28, 28), dtype=np.uint8)
    squares[:, 6:22, 6:22] = 200
    np.savez(
        tmp_path / "mnist.npz",
        **{f"{name}_train": value for name, value in train.items()},
        **{f"{name}_test": value for name, value in test.items()},
    )
    np.savez(tmp_path / "fashion_mnist.npz", X_test=squares, y_test=np.zeros(200, dtype=np.uint8))
    return tmp_path


def test_a_seed_runs_through_every_method(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"N_TEST": 200, "N_FOREIGN": 100, "EPOCHS": 12}.items():
        monkeypatch.setattr(study, name, value)
    (task,) = study.tasks(True, data)
    rows = pd.DataFrame(study.run({**task, "n": 400}))
    wide = rows.pivot_table(index="method", columns="measure", values="value")
    assert set(wide.index) == set(study.METHODS)
    # a density separates noise that no training image resembles
    assert wide.loc["kernel_density", "AUROC, noise"] > 0.95
    assert wide.loc["kernel_density", "OCE, noise"] < wide.loc["model", "OCE, noise"]
    # what was trained on outliers doubts them more than what was not
    assert wide.loc["outlier_exposure", "OCE, noise"] < wide.loc["model", "OCE, noise"]
    assert wide.loc["acet", "OCE, noise"] < wide.loc["model", "OCE, noise"]
    assert wide.loc["odin"].isna()[["error", "ECE", "OCE, noise"]].all()
    study.write(rows, tmp_path)
    said = (tmp_path / "unknown_images.md").read_text(encoding="utf-8")
    assert all(f"| {name} |" in said for name in study.METHODS.values())


def test_the_adversary_stays_in_reach_and_makes_noise_surer() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    rows = torch.rand(20, 1, study.SIDE, study.SIDE)
    shuffled = study._shuffled(rows)
    assert shuffled.shape == rows.shape
    assert torch.equal(shuffled.reshape(20, -1).sort().values, rows.reshape(20, -1).sort().values)
    X = rows.reshape(20, -1).numpy().astype(np.float64)
    module = study.trained(X, np.arange(20) % 10, 0, study.usual)
    labels = torch.arange(20) % 10
    with torch.no_grad():
        usual = float(study.usual(module, rows, labels))
    assert float(study.acet(module, rows, labels).detach()) < usual
    # at equal probabilities focal losses fall below the cross-entropy by their factor
    flat = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(196, 10))
    for parameter in flat.parameters():
        torch.nn.init.zeros_(parameter)
    flat.requires_grad_(False)
    usual = float(study.usual(flat, rows, labels))
    assert float(study.focal(flat, rows, labels)) == pytest.approx(usual * 0.9**3, rel=1e-5)
    assert float(study.dual_focal(flat, rows, labels)) == pytest.approx(usual * 0.9**3, rel=1e-5)
