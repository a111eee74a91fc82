"""Dey et al., Table 1: what networks of images say of images unlike their own, and of noise.

A network with an encoder and a dense head learns one set; beside it stand its kernel density
version, temperature scaling, and networks trained otherwise: with focal and dual focal loss, with
outlier exposure, and with adversarial noise (ACET). ODIN changes the score by which foreign images
are found, not the probabilities.

Protocols are data. "mnist" has a size for two cores: MNIST in 14 x 14 pixels against
Fashion-MNIST, a small convolutional encoder. "cifar" is the papers': CIFAR-10, CIFAR-100 and SVHN,
each against the other two, 70% of the rows to train on and 30% to calibrate, five seeds. Its
encoder is the earlier version's, a residual network (of 18 layers in place of 50) with a latent
space of 256 and a head of 200 units, trained by the supervised contrastive loss and then kept for
every head; the later version's vision transformer needs weights that were learned elsewhere. Of its
whole size it has not been run yet: it is meant for a graphics card.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.calibration import KernelDensityNetwork, TemperatureScaling
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics import fpr_at_95_tpr, ood_auroc
from tests.benchmarks.studies import image_sets, measures
from tests.benchmarks.studies.image_networks import (
    LOSSES,
    Loss,
    Training,
    contrastive,
    dense_head,
    learn,
    odin,
    residual,
    small_convolutions,
    usual,
)
from tests.benchmarks.studies.summary import markdown, summarised

SHARE = 0.7  # of the rows are trained on, the others calibrate
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


@dataclass(frozen=True)
class Images:
    """A set of images: how it is read, and whether its images mean the same when mirrored."""

    title: str
    read: image_sets.Reader
    mirrored: bool = False


SETS = {
    "mnist": Images("MNIST", image_sets.mnist),
    "fashion_mnist": Images("Fashion-MNIST", image_sets.fashion_mnist),
    "cifar10": Images("CIFAR-10", image_sets.cifar10, mirrored=True),
    "cifar100": Images("CIFAR-100", image_sets.cifar100, mirrored=True),
    "svhn": Images("SVHN", image_sets.svhn),
}


@dataclass(frozen=True)
class Protocol:
    """Who learns what, and what is foreign to it.

    Attributes
    ----------
    pairs : dict of str to tuple of str
        Sets to learn, each with its foreign sets, all keys of `SETS`. Noise is always foreign too.
    seeds : int
    n_rows : int or None
        Images to train and calibrate on; None for all.
    n_test, n_foreign : int
        Images of the own set and of each foreign set to judge, at most.
    encoder : callable
        (channels, side, side) -> module and the number of its outputs.
    hidden : tuple of int
        Units of the dense head's layers.
    training : Training
        Of each network, or of its head alone where the encoder is trained first.
    encoder_training : Training or None
        How the encoder learns by the contrastive loss; None for encoder and head together.
    halved : bool
        Whether images are reduced to half their sides.
    """

    pairs: dict[str, tuple[str, ...]]
    seeds: int
    n_rows: int | None
    n_test: int
    n_foreign: int
    encoder: Callable[[tuple[int, int, int]], tuple[Any, int]]
    hidden: tuple[int, ...]
    training: Training
    encoder_training: Training | None = None
    halved: bool = False


PROTOCOLS = {
    "mnist": Protocol(
        {"mnist": ("fashion_mnist",)},
        seeds=3,
        n_rows=10_000,
        n_test=2_000,
        n_foreign=2_000,
        encoder=small_convolutions,
        hidden=(64, 32),
        training=Training(epochs=15, batch=64, rate=1e-3),
        halved=True,
    ),
    "cifar": Protocol(
        {
            "cifar10": ("cifar100", "svhn"),
            "cifar100": ("cifar10", "svhn"),
            "svhn": ("cifar10", "cifar100"),
        },
        seeds=5,
        n_rows=None,
        n_test=10_000,
        n_foreign=10_000,
        encoder=residual,
        hidden=(200,),
        training=Training(epochs=20, batch=256, rate=1e-3),
        encoder_training=Training(epochs=200, batch=512, rate=1e-3),
    ),
}


def tasks(quick: bool, data: Path, protocol: str = "mnist") -> list[Task]:
    """One task a set and seed; quick: one seed, 2,000 images, a tenth of the encoder's epochs."""
    chosen = PROTOCOLS[protocol]
    return [
        {"protocol": protocol, "set": name, "repetition": seed, "quick": quick, "data": str(data)}
        for seed in range(1 if quick else chosen.seeds)
        for name in chosen.pairs
    ]


def run(task: Task) -> list[Row]:
    """Every measure of every method for one seed."""
    protocol = PROTOCOLS[task["protocol"]]
    if task.pop("quick"):
        protocol = _quick(protocol)
    seed, data, own = task["repetition"], Path(task.pop("data")), SETS[task["set"]]
    X, y, test, y_test, foreign = drawn(protocol, task["set"], data, seed)
    fit = np.arange(len(y)) < SHARE * len(y)
    classes = int(y.max()) + 1
    prior = np.bincount(y[fit], minlength=classes) / fit.sum()
    rows: list[Row] = []
    note = partial(measures.entry, {**task, "n": len(y)})
    encoder = encoded(protocol, X[fit], y[fit], seed, mirrored=own.mirrored)
    networks = partial(
        trained, protocol, X[fit], y[fit], seed, encoder=encoder, mirrored=own.mirrored
    )
    began = time.perf_counter()
    module = networks(usual)
    rows.append(note("model", "seconds", time.perf_counter() - began))
    model = wrapped(module, X.shape[1:])
    seen = [_flat(part) for part in (test, *foreign.values())]
    said = [model.predict_proba(part) for part in seen]
    judged = partial(_judged, note, y_test, prior, tuple(foreign))
    rows += judged("model", said, [one.max(axis=1) for one in said])
    scaled = TemperatureScaling().fit(model.predict_proba(_flat(X[~fit])), y[~fit])
    cooled = [scaled.predict_proba(one) for one in said]
    rows += judged("temperature", cooled, [one.max(axis=1) for one in cooled])
    rows += judged("odin", said, [odin(module, part) for part in (test, *foreign.values())])[3:]
    for name, loss in LOSSES.items():
        began = time.perf_counter()
        other = wrapped(networks(loss), X.shape[1:])
        rows.append(note(name, "seconds", time.perf_counter() - began))
        answers = [other.predict_proba(part) for part in seen]
        rows += judged(name, answers, [one.max(axis=1) for one in answers])
    own_rows = _flat(X[fit]), y[fit], _flat(X[~fit]), y[~fit]
    began = time.perf_counter()
    graph = KernelDensityNetwork(model, scale="standard").fit(*own_rows)
    rows.append(note("kernel_density", "seconds", time.perf_counter() - began))
    for name, one in (
        ("kernel_density", graph),
        ("kernel_density_papers", graph.in_the_papers(*own_rows)),
    ):
        places = [one.locate(part) for part in seen]
        posterior = [one.graph_.posterior(at) for at in places]
        rows += judged(name, posterior, [one.graph_.log_marginal(at) for at in places])
    return rows


def _quick(protocol: Protocol) -> Protocol:
    first = protocol.encoder_training
    fewer = first and replace(first, epochs=max(1, first.epochs // 10))
    n = 2_000
    return replace(protocol, n_rows=n, n_test=n, n_foreign=n, encoder_training=fewer)


def drawn(
    protocol: Protocol, name: str, data: Path, seed: int
) -> tuple[Any, IntArray, Any, IntArray, dict[str, Any]]:
    """Images to fit on and to judge, and foreign ones, (n, channels, side, side) in [0, 1].

    Noise is uniform, as in Dey et al., section 3.2.2.
    """
    rng = np.random.default_rng(seed)
    X, y = _some(SETS[name].read(data, "train"), protocol.n_rows, rng, protocol.halved)
    X_test, y_test = _some(SETS[name].read(data, "test"), protocol.n_test, rng, protocol.halved)
    foreign = {
        SETS[other].title: _some(
            SETS[other].read(data, "test"), protocol.n_foreign, rng, protocol.halved
        )[0]
        for other in protocol.pairs[name]
    }
    noise = rng.random((protocol.n_foreign, *X.shape[1:])).astype(np.float32)
    return X, y, X_test, y_test, {**foreign, "noise": noise}


def _some(
    part: image_sets.Part, n: int | None, rng: np.random.Generator, halved: bool
) -> tuple[Any, IntArray]:
    """Some of the images in random order, as numbers from 0 to 1, and their classes."""
    images, y = part
    taken = rng.choice(len(y), min(n or len(y), len(y)), replace=False)
    found = images[taken]
    if halved:  # means of four pixels
        n_images, channels, height, width = found.shape
        squares = found.reshape(n_images, channels, height // 2, 2, width // 2, 2)
        return (squares.mean(axis=(3, 5)) / 255.0).astype(np.float32), y[taken]
    return found.astype(np.float32) / 255.0, y[taken]


def encoded(
    protocol: Protocol, X: Any, y: IntArray, seed: int, *, mirrored: bool
) -> tuple[Any, int] | None:
    """An encoder that has learned by itself, and its outputs; None where it learns with a head."""
    import torch

    if protocol.encoder_training is None:
        return None
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    encoder, width = protocol.encoder(X.shape[1:])
    return learn(encoder, X, y, protocol.encoder_training, contrastive(mirrored)), width


def trained(
    protocol: Protocol,
    X: Any,
    y: IntArray,
    seed: int,
    loss: Loss,
    *,
    encoder: tuple[Any, int] | None = None,
    mirrored: bool = False,
) -> Any:
    """A network of an encoder and a head; an encoder that is given is kept as it is."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    inner, width = encoder or protocol.encoder(X.shape[1:])
    head = dense_head(width, protocol.hidden, int(y.max()) + 1)
    module = torch.nn.Sequential(inner, head)
    if encoder is None:
        return learn(module, X, y, protocol.training, loss)
    training = replace(protocol.training, mirrored=mirrored)
    return learn(module, X, y, training, loss, frozen=inner)


def wrapped(module: Any, shape: tuple[int, ...]) -> Any:
    """The network as a model of flat rows."""
    from kdcal_core.models.torch_model import wrap_module

    return wrap_module(module, input_shape=shape)


def _flat(images: Any) -> Any:
    return images.reshape(len(images), -1)


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
    """A table for each set, with a line a method, a column a measure: the median over the seeds."""
    protocol = rows["protocol"].iloc[0]
    name = "unknown_images" if protocol == "mnist" else f"unknown_images_{protocol}"
    table = summarised(rows, ["set", "method", "measure"])
    table.to_csv(out / f"{name}.csv", index=False, float_format="%.5g")
    text = [
        _table(rows[rows["set"] == one], table[table["set"] == one]) for one in rows["set"].unique()
    ]
    (out / f"{name}.md").write_text("\n\n".join(text) + "\n", encoding="utf-8")


def _table(rows: pd.DataFrame, table: pd.DataFrame) -> str:
    first = rows.iloc[0]
    others = [SETS[one].title for one in PROTOCOLS[first["protocol"]].pairs[first["set"]]]
    wide = table.pivot_table(index="method", columns="measure", values="median", sort=False)
    wide = wide.reindex(list(METHODS)).reset_index()
    wide["method"] = wide["method"].map(METHODS)
    return (
        f"# {SETS[first['set']].title} against {', '.join(others)} and noise\n\n"
        f"{rows['repetition'].nunique()} seeds, {first['n']:,} images, 70% to train on and 30% to "
        "calibrate. Medians over the seeds. Foreign images are found by the log density where "
        "there is one, by ODIN's score, or by the confidence.\n\n" + markdown(wide)
    )
