"""A convolutional ONNX network of 214 classes: blocks found by a trial, beside one block of all."""

from __future__ import annotations

import tempfile
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

from kdcal_core.models import onnx_model
from kdcal_core.models.onnx_model import load

N, SIDE, CHANNELS, CLASSES = 1344, 96, (1, 32, 64, 128), 214
REPEATS = 3


def run() -> list[dict[str, Any]]:
    """Seconds of all rows, each in a process of its own, as a job has; the least of three."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "images.onnx"
        _write(path)
        ours, whole = [], []
        with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
            for _ in range(REPEATS):
                ours.append(pool.submit(_seconds, path, whole=False).result())
                whole.append(pool.submit(_seconds, path, whole=True).result())
    return [
        {
            "name": "blocks",
            "what": f"{CLASSES} classes, images of {SIDE} x {SIDE}, blocks by trial",
            "n": N,
            "seconds": min(ours),
            "reference": "one block",
            "reference_seconds": min(whole),
            "ratio": min(whole) / min(ours),
            "goal": None,
        }
    ]


def _seconds(path: Path, *, whole: bool) -> float:
    model = load(path, name=path.name)
    X = np.random.default_rng(0).normal(size=(N, SIDE * SIDE)).astype(np.float32)
    if whole:
        onnx_model.timed_blocks = lambda n, *_: iter([slice(0, n)])
    began = perf_counter()
    model.predict_proba(X)
    return perf_counter() - began


def _write(path: Path) -> None:
    """Three convolutions, each pooled by two, and a layer of all classes, of random weights."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(np.array([-1, 1, SIDE, SIDE]), "shape")]
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["a0"])]
    for at, (before, after) in enumerate(pairwise(CHANNELS)):
        given = 0.2 * rng.normal(size=(after, before, 3, 3)).astype(np.float32)
        weights.append(numpy_helper.from_array(given, f"w{at}"))
        nodes += [
            helper.make_node("Conv", [f"a{at}", f"w{at}"], [f"c{at}"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", [f"c{at}"], [f"r{at}"]),
            helper.make_node(
                "MaxPool", [f"r{at}"], [f"a{at + 1}"], kernel_shape=[2, 2], strides=[2, 2]
            ),
        ]
    last = 0.2 * rng.normal(size=(CHANNELS[-1], CLASSES)).astype(np.float32)
    weights.append(numpy_helper.from_array(last, "out"))
    nodes += [
        helper.make_node("GlobalAveragePool", [f"a{len(CHANNELS) - 1}"], ["mean"]),
        helper.make_node("Flatten", ["mean"], ["flat"]),
        helper.make_node("Gemm", ["flat", "out"], ["z"]),
        helper.make_node("Softmax", ["z"], ["p"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "images",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", SIDE * SIDE])],
        [helper.make_tensor_value_info("p", TensorProto.FLOAT, ["n", CLASSES])],
        weights,
    )
    opsets = [helper.make_opsetid("", 17)]
    save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
