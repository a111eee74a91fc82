"""Dey et al., Table 1 in a size for two cores: MNIST against Fashion-MNIST and noise.

A small convolutional network with a dense head learns digits; beside it stand its kernel density
version, temperature scaling, and networks trained otherwise: with focal and dual focal loss, with
outlier exposure, and with adversarial noise (ACET). ODIN changes the score by which foreign images
are found, not the probabilities. Images are halved to 14 x 14 pixels.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.calibration import KernelDensityNetwork, TemperatureScaling
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics import fpr_at_95_tpr, ood_auroc
from tests.benchmarks.studies import measures
from tests.benchmarks.studies.summary import markdown, summarised

SIDE, CLASSES = 14, 10
N_ROWS, N_TEST, N_FOREIGN = 10_000, 2_000, 2_000
SHARE = 0.7  # of the rows are trained on, the others calibrate
EPOCHS, BATCH, RATE = 15, 64, 1e-3
FOCUS = 3.0  # exponent of the focal losses
OUTSIDE = 0.5  # weight of the outliers' loss
REACH, STEPS = 0.3, 5  # of the adversary, in intensities, and its steps
ODIN_HEAT, ODIN_STEP = 1000.0, 0.0014
METHODS = {
    "model": "Network",
    "temperature": "Temperature",
    "focal": "Focal loss",
    "dual_focal": "Dual focal loss",
    "outlier_exposure": "Outlier exposure",
    "acet": "ACET",
    "odin": "ODIN (score alone)",
    "kernel_density": "Kernel density network",
    "kernel_density_papers": "Kernel density network, papers' settings",
}

Task = dict[str, Any]
Row = dict[str, Any]
Loss = Callable[[Any, Any, Any], Any]


def tasks(quick: bool, data: Path) -> list[Task]:
    """One task a seed."""
    n = 2_000 if quick else N_ROWS
    return [{"repetition": seed, "n": n, "data": str(data)} for seed in range(1 if quick else 3)]


def run(task: Task) -> list[Row]:
    """Every measure of every method for one seed."""
    seed, data = task["repetition"], Path(task.pop("data"))
    X, y, test, y_test, foreign = drawn(data, task["n"], seed)
    fit = np.arange(len(y)) < SHARE * len(y)
    prior = np.bincount(y[fit], minlength=CLASSES) / fit.sum()
    rows: list[Row] = []
    note = partial(measures.entry, task)
    began = time.perf_counter()
    module = trained(X[fit], y[fit], seed, usual)
    rows.append(note("model", "seconds", time.perf_counter() - began))
    model = wrapped(module)
    said = [model.predict_proba(part) for part in (test, *foreign.values())]
    judged = partial(_judged, note, y_test, prior, tuple(foreign))
    rows += judged("model", said, [one.max(axis=1) for one in said])
    scaled = TemperatureScaling().fit(model.predict_proba(X[~fit]), y[~fit])
    cooled = [scaled.predict_proba(one) for one in said]
    rows += judged("temperature", cooled, [one.max(axis=1) for one in cooled])
    rows += judged("odin", said, [odin(module, part) for part in (test, *foreign.values())])[3:]
    for name, loss in LOSSES.items():
        began = time.perf_counter()
        other = wrapped(trained(X[fit], y[fit], seed, loss))
        rows.append(note(name, "seconds", time.perf_counter() - began))
        own = [other.predict_proba(part) for part in (test, *foreign.values())]
        rows += judged(name, own, [one.max(axis=1) for one in own])
    own_rows = X[fit], y[fit], X[~fit], y[~fit]
    began = time.perf_counter()
    graph = KernelDensityNetwork(model, scale="standard").fit(*own_rows)
    rows.append(note("kernel_density", "seconds", time.perf_counter() - began))
    for name, one in (
        ("kernel_density", graph),
        ("kernel_density_papers", graph.in_the_papers(*own_rows)),
    ):
        places = [one.locate(part) for part in (test, *foreign.values())]
        posterior = [one.graph_.posterior(at) for at in places]
        rows += judged(name, posterior, [one.graph_.log_marginal(at) for at in places])
    return rows


def drawn(
    data: Path, n: int, seed: int
) -> tuple[FloatArray, IntArray, FloatArray, IntArray, dict[str, FloatArray]]:
    """Digits to fit on and to judge, and foreign images: clothes and noise, (rows, 196) in [0, 1].

    Noise is uniform, as in Dey et al., section 3.2.2.
    """
    rng = np.random.default_rng(seed)
    with np.load(data / "mnist.npz") as arrays:
        taken = rng.choice(len(arrays["y_train"]), n, replace=False)
        X, y = halved(arrays["X_train"][taken]), arrays["y_train"][taken].astype(np.int64)
        test = rng.choice(len(arrays["y_test"]), N_TEST, replace=False)
        X_test, y_test = halved(arrays["X_test"][test]), arrays["y_test"][test].astype(np.int64)
    with np.load(data / "fashion_mnist.npz") as arrays:
        taken = rng.choice(len(arrays["y_test"]), N_FOREIGN, replace=False)
        clothes = halved(arrays["X_test"][taken])
    noise = rng.random((N_FOREIGN, SIDE * SIDE))
    return X, y, X_test, y_test, {"Fashion-MNIST": clothes, "noise": noise}


def halved(images: Any) -> FloatArray:
    """Means of four pixels, (n, 196) in [0, 1]."""
    squares = images.reshape(-1, SIDE, 2, SIDE, 2).mean(axis=(2, 4))
    return np.asarray(squares.reshape(len(images), -1) / 255.0, dtype=np.float64)


def usual(module: Any, rows: Any, labels: Any) -> Any:
    """Cross-entropy."""
    import torch

    return torch.nn.functional.cross_entropy(module(rows), labels)


def focal(module: Any, rows: Any, labels: Any) -> Any:
    """Cross-entropy times (1 - p)^3: rows that are already certain count little."""
    log_p = _log_of(module(rows), labels)
    return (-((1.0 - log_p.exp()) ** FOCUS) * log_p).mean()


def dual_focal(module: Any, rows: Any, labels: Any) -> Any:
    """The same with (1 - p + q)^3, q the next smaller probability."""
    import torch

    logits = module(rows)
    p = torch.softmax(logits, dim=1)
    own = p.gather(1, labels[:, None])
    below = torch.where(p < own, p, torch.zeros_like(p)).max(dim=1).values
    log_p = _log_of(logits, labels)
    return (-((1.0 - log_p.exp() + below) ** FOCUS) * log_p).mean()


def outlier_exposure(module: Any, rows: Any, labels: Any) -> Any:
    """Cross-entropy, and on outliers the cross-entropy to equal probabilities.

    The outliers are the digits of the batch with their pixels shuffled, so none of the foreign
    images that are judged is seen.
    """
    import torch

    outside = torch.log_softmax(module(_shuffled(rows)), dim=1)
    return usual(module, rows, labels) - OUTSIDE * outside.mean()


def acet(module: Any, rows: Any, labels: Any) -> Any:
    """Cross-entropy, and the largest log probability on noise that an adversary has sharpened."""
    import torch

    start = _shuffled(rows)
    found = start.clone()
    for _ in range(STEPS):
        found.requires_grad_(True)
        surest = torch.log_softmax(module(found), dim=1).max(dim=1).values.sum()
        (slope,) = torch.autograd.grad(surest, found)
        moved = found.detach() + 2.0 * REACH / STEPS * slope.sign()
        found = torch.clamp(torch.clamp(moved, start - REACH, start + REACH), 0.0, 1.0)
    sharpened = torch.log_softmax(module(found.detach()), dim=1).max(dim=1).values
    return usual(module, rows, labels) + sharpened.mean()


LOSSES: dict[str, Loss] = {
    "focal": focal,
    "dual_focal": dual_focal,
    "outlier_exposure": outlier_exposure,
    "acet": acet,
}


def _log_of(logits: Any, labels: Any) -> Any:
    import torch

    return torch.log_softmax(logits, dim=1).gather(1, labels[:, None])[:, 0]


def _shuffled(rows: Any) -> Any:
    import torch

    flat = rows.reshape(len(rows), -1)
    return flat.gather(1, torch.rand_like(flat).argsort(dim=1)).reshape(rows.shape)


def odin(module: Any, rows: FloatArray) -> FloatArray:
    """The largest probability at a high temperature, after a small step that increases it."""
    import torch

    given = torch.tensor(_images(rows), requires_grad=True)
    surest = torch.log_softmax(module(given) / ODIN_HEAT, dim=1).max(dim=1).values.sum()
    (slope,) = torch.autograd.grad(surest, given)
    with torch.no_grad():
        moved = module(given + ODIN_STEP * slope.sign()).double() / ODIN_HEAT
        return np.asarray(torch.softmax(moved, dim=1).max(dim=1).values)


def trained(X: FloatArray, y: IntArray, seed: int, loss: Loss) -> Any:
    """Two convolutions and a dense head of 64 and 32, Adam, a fixed number of epochs."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3, stride=2, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(8, 16, 3, stride=2, padding=1),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(256, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 32),
        torch.nn.ReLU(),
        torch.nn.Linear(32, CLASSES),
    )
    rows, labels = torch.tensor(_images(X)), torch.tensor(y)
    optimiser = torch.optim.Adam(module.parameters(), lr=RATE)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(labels)).split(BATCH):
            optimiser.zero_grad()
            loss(module, rows[batch], labels[batch]).backward()
            optimiser.step()
    return module.eval()


def wrapped(module: Any) -> Any:
    """The network as a model of flat rows."""
    from kdcal_core.models.torch_model import wrap_module

    return wrap_module(module, input_shape=(1, SIDE, SIDE))


def _images(rows: FloatArray) -> Any:
    return rows.reshape(-1, 1, SIDE, SIDE).astype(np.float32)


def _judged(
    note: Any,
    y: IntArray,
    prior: FloatArray,
    names: tuple[str, ...],
    method: str,
    said: list[FloatArray],
    score: list[FloatArray],
) -> list[Row]:
    """Measures inside first, then those of each foreign set."""
    inside = said[0]
    wrong = inside.argmax(axis=1) != y
    rows = [
        note(method, "error", float(wrong.mean())),
        note(method, "ECE", measures.ece(inside, y)),
        note(method, "MMC*", measures.mmc(inside[wrong]) if wrong.any() else np.nan),
    ]
    for name, proba, one in zip(names, said[1:], score[1:], strict=True):
        rows += [
            note(method, f"AUROC, {name}", ood_auroc(score[0], one).value),
            note(method, f"FPR@95, {name}", fpr_at_95_tpr(score[0], one).value),
        ]
        if method != "odin":
            rows.append(note(method, f"OCE, {name}", measures.oce(proba, prior)))
    return rows


def write(rows: pd.DataFrame, out: Path) -> None:
    """A line a method, a column a measure: the median over the seeds."""
    table = summarised(rows, ["method", "measure"])
    table.to_csv(out / "unknown_images.csv", index=False, float_format="%.5g")
    wide = table.pivot_table(index="method", columns="measure", values="median", sort=False)
    wide = wide.reindex(list(METHODS)).reset_index()
    wide["method"] = wide["method"].map(METHODS)
    first = rows.iloc[0]
    words = (
        f"# MNIST against Fashion-MNIST and noise\n\n{rows['repetition'].nunique()} seeds, "
        f"{first['n']:,} digits of {SIDE} x {SIDE} pixels, 70% to train on and 30% to calibrate; "
        f"{N_TEST:,} digits and {N_FOREIGN:,} images of each foreign set to judge. Medians over "
        "the seeds. Foreign images are found by the log density where there is one, by ODIN's "
        "score, or by the confidence.\n\n"
    )
    (out / "unknown_images.md").write_text(words + markdown(wide) + "\n", encoding="utf-8")
