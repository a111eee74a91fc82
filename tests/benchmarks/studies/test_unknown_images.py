"""Every step of the study of unknown images, on files and images that are made here."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from kdcal_core.errors import InputError
from tests.benchmarks.studies import __main__ as command
from tests.benchmarks.studies import image_networks, image_sets
from tests.benchmarks.studies import unknown_images as study

torch = pytest.importorskip("torch")
MNIST = study.PROTOCOLS["mnist"]
CIFAR = study.PROTOCOLS["cifar"]


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
    small = replace(
        MNIST,
        n_rows=400,
        n_test=200,
        n_foreign=100,
        training=replace(MNIST.training, epochs=12),
    )
    monkeypatch.setitem(study.PROTOCOLS, "mnist", small)
    task = study.tasks(False, data)[0]
    rows = pd.DataFrame(study.run(task))
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


COLOURS = np.random.default_rng(3).integers(0, 200, (3, 10, 3))
"""Of each set's classes: an image of a class has its colour, with noise."""


def _coloured(which: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, which])
    y = np.arange(n) % 10
    X = rng.integers(0, 50, (n, 3, 32, 32)) + COLOURS[which][y][:, :, None, None]
    return X.astype(np.uint8), y


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """CIFAR-10, CIFAR-100 and SVHN as they are published, with few images."""
    from scipy.io import savemat

    ten, hundred = tmp_path / "cifar-10-batches-bin", tmp_path / "cifar-100-binary"
    ten.mkdir()
    hundred.mkdir()
    names = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]
    for seed, name in enumerate(names):
        X, y = _coloured(0, 20 if "test" in name else 12, seed)
        np.hstack([y[:, None], X.reshape(len(y), -1)]).astype(np.uint8).tofile(ten / name)
    for seed, (part, n) in enumerate((("train", 60), ("test", 20))):
        X, y = _coloured(1, n, seed)
        record = np.hstack([y[:, None] // 5, y[:, None], X.reshape(n, -1)])
        record.astype(np.uint8).tofile(hundred / f"{part}.bin")
        X, y = _coloured(2, n, seed)
        digits = np.where(y == 0, 10, y)[:, None].astype(np.uint8)
        savemat(tmp_path / f"{part}_32x32.mat", {"X": X.transpose(2, 3, 1, 0), "y": digits})
    return tmp_path


@pytest.mark.parametrize(
    ("which", "read"),
    [(0, image_sets.cifar10), (1, image_sets.cifar100), (2, image_sets.svhn)],
    ids=["cifar10", "cifar100", "svhn"],
)
def test_a_published_file_is_read_as_it_was_written(
    published: Path, which: int, read: image_sets.Reader
) -> None:
    X, y = read(published, "test")
    seed = 5 if which == 0 else 1
    expected, classes = _coloured(which, 20, seed)
    np.testing.assert_array_equal(X, expected)
    np.testing.assert_array_equal(y, classes)
    assert len(read(published, "train")[1]) == 60


def test_what_is_no_such_file_is_named(tmp_path: Path) -> None:
    from scipy.io import savemat

    with pytest.raises(InputError, match="no such file") as missing:
        image_sets.cifar100(tmp_path, "train")
    assert "cifar-100-binary" in str(missing.value)
    (tmp_path / "cifar-100-binary").mkdir()
    (tmp_path / "cifar-100-binary" / "test.bin").write_bytes(bytes(3_073))
    with pytest.raises(InputError, match="records of 3,074 bytes"):
        image_sets.cifar100(tmp_path, "test")
    savemat(tmp_path / "test_32x32.mat", {"X": np.zeros((32, 32, 3, 4)), "y": np.ones((3, 1))})
    with pytest.raises(InputError, match="does not hold images"):
        image_sets.svhn(tmp_path, "test")


def test_the_command_runs_the_papers_protocol_from_published_files(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = replace(
        CIFAR,
        seeds=1,
        n_foreign=20,
        encoder=partial(image_networks.residual, widths=(4, 8), blocks=1, latent=12),
        training=replace(CIFAR.training, epochs=1, batch=32),
        encoder_training=replace(CIFAR.encoder_training, epochs=1, batch=32),
    )
    monkeypatch.setitem(study.PROTOCOLS, "cifar", tiny)

    def here(tasks: list[Any], run: Any, *_: Any) -> pd.DataFrame:
        return pd.DataFrame([row for task in tasks for row in run(task)])

    monkeypatch.setattr(command, "_run_all", here)  # other processes would not be tiny
    words = ["studies", "unknown_images", "--protocol", "cifar"]
    words += ["--data", str(published), "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", words)
    command.main()
    said = (tmp_path / "unknown_images_cifar.md").read_text(encoding="utf-8")
    for own, first, second in (
        ("CIFAR-10", "CIFAR-100", "SVHN"),
        ("CIFAR-100", "CIFAR-10", "SVHN"),
        ("SVHN", "CIFAR-10", "CIFAR-100"),
    ):
        part = said.split(f"# {own} against {first}, {second} and noise")[1].split("\n# ")[0]
        assert "1 seeds, 60 images" in part
        assert all(f"| {name} |" in part for name in study.METHODS.values())
        assert all(f"AUROC, {other}" in part for other in (first, second, "noise"))
    table = pd.read_csv(tmp_path / "unknown_images_cifar.csv")
    assert table["median"].notna().groupby([table["set"], table["method"]]).any().all()


def test_an_encoder_learns_to_draw_a_class_together_and_is_kept_by_heads() -> None:
    small = replace(
        CIFAR,
        encoder=partial(image_networks.residual, widths=(4, 8), blocks=1, latent=12),
        training=replace(CIFAR.training, epochs=2, batch=32),
        encoder_training=replace(CIFAR.encoder_training, epochs=8, batch=30, rate=2e-2),
    )
    X, y = _coloured(0, 60, 0)
    images = X.astype(np.float32) / 255.0
    untrained = replace(small, encoder_training=replace(small.encoder_training, epochs=0))

    def closeness(protocol: study.Protocol) -> float:
        """Mean cosine of two images of a class, less that of two of different classes."""
        encoder, width = study.encoded(protocol, images, y, 0, mirrored=False)
        with torch.no_grad():
            z = encoder(torch.tensor(images)).numpy()
        assert z.shape == (60, width)
        np.testing.assert_allclose(np.linalg.norm(z, axis=1), 1.0, rtol=1e-4)
        same = y[:, None] == y[None]
        return float((z @ z.T)[same].mean() - (z @ z.T)[~same].mean())

    assert closeness(small) > closeness(untrained) + 0.2
    encoder = study.encoded(small, images, y, 0, mirrored=False)
    before = {name: value.clone() for name, value in encoder[0].state_dict().items()}
    module = study.trained(small, images, y, 1, image_networks.usual, encoder=encoder)
    after = module[0].state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    # the graph's Gaussians stand in the latent space, before the head
    model = study.wrapped(module, images.shape[1:])
    assert model.head_input(images[:5].reshape(5, -1)).shape == (5, 12)


def test_moved_images_are_their_own_pixels_elsewhere() -> None:
    torch.manual_seed(0)
    images = torch.arange(1.0, 2 * 8 * 9 + 1).reshape(1, 2, 8, 9).repeat(200, 1, 1, 1)
    views = image_networks.moved(images, mirrored=False)
    assert views.shape == images.shape
    shifts = set()
    for view in views:
        top, left = (int(found[0]) for found in torch.where(view[0] > 0))
        at = int(view[0][view[0] > 0][0]) - 1
        down, right = top - at // 9, left - at % 9
        moved = torch.zeros_like(view)
        rows, columns = (
            (slice(max(by, 0), size + min(by, 0)), slice(max(-by, 0), size + min(-by, 0)))
            for by, size in ((down, 8), (right, 9))
        )
        moved[:, rows[0], columns[0]] = images[0][:, rows[1], columns[1]]
        assert torch.equal(view, moved)
        shifts.add((down, right))
    assert {down for down, _ in shifts} == {right for _, right in shifts} == set(range(-4, 5))
    ordered = images[0, 0, 4, 4] < images[0, 0, 4, 5]
    mirrored = image_networks.moved(images, mirrored=True)[:, 0, 4, 3:6]
    turned = (mirrored[:, 0] > mirrored[:, 1]) & (mirrored[:, 1] > 0)
    assert ordered
    assert 0.3 < float(turned.float().mean()) < 0.7


def test_the_contrastive_loss_is_the_mean_over_fellows_by_hand() -> None:
    torch.manual_seed(0)
    rows, y = torch.rand(4, 1, 8, 8), torch.tensor([0, 0, 1, 2])
    z = torch.nn.functional.normalize(torch.randn(8, 5), dim=1)
    loss = float(image_networks.contrastive(False)(lambda _: z, rows, y))
    labels, by_hand = y.repeat(2), []
    for i in range(8):
        others = [j for j in range(8) if j != i]
        total = sum(float(torch.exp(z[i] @ z[j] / image_networks.HEAT)) for j in others)
        by_hand.append(
            np.mean(
                [
                    np.log(total) - float(z[i] @ z[j]) / image_networks.HEAT
                    for j in others
                    if labels[i] == labels[j]
                ]
            )
        )
    assert loss == pytest.approx(np.mean(by_hand), rel=1e-4)


def test_the_adversary_stays_in_reach_and_makes_noise_surer() -> None:
    torch.manual_seed(0)
    rows = torch.rand(20, 1, 14, 14)
    shuffled = image_networks.shuffled(rows)
    assert shuffled.shape == rows.shape
    assert torch.equal(shuffled.reshape(20, -1).sort().values, rows.reshape(20, -1).sort().values)
    module = study.trained(MNIST, rows.numpy(), np.arange(20) % 10, 0, image_networks.usual)
    labels = torch.arange(20) % 10
    with torch.no_grad():
        usual = float(image_networks.usual(module, rows, labels))
    assert float(image_networks.acet(module, rows, labels).detach()) < usual
    # at equal probabilities focal losses fall below the cross-entropy by their factor
    flat = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(196, 10))
    for parameter in flat.parameters():
        torch.nn.init.zeros_(parameter)
    flat.requires_grad_(False)
    usual = float(image_networks.usual(flat, rows, labels))
    for loss in (image_networks.focal, image_networks.dual_focal):
        assert float(loss(flat, rows, labels)) == pytest.approx(usual * 0.9**3, rel=1e-5)
