"""Speed and memory of kernel density forests and networks: whole fits, and answers for new rows.

Seconds are of the wall clock and leave out the model's own, which stands in a row of its own;
what all threads spent on processors stands beside, because it holds on a busy machine too. The
references compute the class masses alone, on all rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from kdcal_core.models import wrap_model
from kdcal_core.partition import ActivationCodes, LeafCodes, default_exponents
from tests.benchmarks.scaling.fits import LAYERS, Case, in_own_process, model, sample, split

Row = dict[str, Any]
TREES, NODES = 500, 1000
MODEST, MANY = 10_000, 100_000


def run() -> list[Row]:
    rows: list[Row] = []
    for case, goal, plain in (
        (Case("forest", MODEST, TREES), 3.0, plain_forest),
        (Case("network", MODEST, NODES), 10.0, plain_network),
        (Case("forest", MANY, TREES), 120.0, None),
        (Case("network", MANY, NODES), 300.0, None),
    ):
        found = in_own_process(case)
        seconds = None if plain is None else _plain_seconds(case, plain)
        rows += _rows(case, found, goal, seconds, plain)
    return rows


def plain_forest(codes: LeafCodes) -> np.ndarray:
    """dense numpy leaf comparison"""
    kernel = np.zeros((len(codes), len(codes)))
    for of_tree in codes.leaves.T:
        kernel += of_tree[:, None] == of_tree[None, :]
    return kernel / codes.leaves.shape[1]


def plain_network(codes: ActivationCodes) -> np.ndarray:
    """scipy's cdist hamming, layer by layer"""
    kernel = np.ones((len(codes), len(codes)))
    for words, width in zip(codes.layer_slices(), codes.layer_widths, strict=True):
        as_bytes = np.ascontiguousarray(codes.words[:, words]).view(np.uint8)
        bits = np.unpackbits(as_bytes, axis=1, count=width, bitorder="little").astype(bool)
        kernel *= 1 - cdist(bits, bits, "hamming")
    return kernel


def _plain_seconds(case: Case, plain_kernel: Callable[[Any], np.ndarray]) -> float:
    """Class masses for the usual grid of exponents from the whole kernel matrix."""
    rows = sample(case)
    fit, _, _ = split(case)
    wrapped: Any = wrap_model(model(case, rows))
    codes = wrapped.codes(rows.X[fit])
    counts = np.eye(2)[rows.y[fit]]
    start = time.perf_counter()
    kernel = plain_kernel(codes)
    for exponent in default_exponents():
        _ = kernel**exponent @ counts
    return time.perf_counter() - start


def _rows(
    case: Case,
    found: dict[str, Any],
    goal: float,
    plain_seconds: float | None,
    plain: Callable[[Any], np.ndarray] | None,
) -> list[Row]:
    name = f"{case.nodes} trees" if case.kind == "forest" else f"{LAYERS} x {case.nodes} network"
    return [
        {
            "name": name,
            "what": f"whole fit, 21 exponents, {case.n_holdout:,} rows held out; "
            f"{found['fit_cpu_seconds']:.3g} s of processor, peak {found['peak_gb']:.2g} GB "
            f"({found['gb_before']:.2g} GB before)",
            "n": case.n,
            "seconds": found["fit_seconds"],
            "reference": None if plain is None else f"{plain.__doc__}, 21 powers, product",
            "reference_seconds": plain_seconds,
            "ratio": None if plain_seconds is None else plain_seconds / found["fit_seconds"],
            "goal": goal,
        },
        {
            "name": name,
            "what": f"predict_proba, 10,000 rows against {found['polytopes']:,} polytopes; "
            f"{found['predict_cpu_seconds']:.3g} s of processor",
            "n": case.n,
            "seconds": found["predict_seconds"],
            "goal": 15.0,
        },
        {
            "name": name,
            "what": "the model's own time in that fit",
            "n": case.n,
            "seconds": found["fit_model_seconds"],
        },
    ]
