"""Small files built to take all time or memory: how long each is read, and what the worker holds.

The rows' ``what`` holds the largest resident memory of the worker in MB and how its error begins.
Results of the day they were fixed, before and after, are in RESULTS_hostile_files.md.
"""

from __future__ import annotations

import io
import json
import tempfile
import time
import zipfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.lib import format as npy
from onnx import TensorProto, helper, numpy_helper

from kdcal_core import memory
from kdcal_core.errors import InputError
from kdcal_core.jobs import run_limited, runner

GOAL = 10.0  # seconds
LIMIT = 100.0
_READERS: dict[str, tuple[str, dict[str, Any]]] = {
    ".onnx": ("kdcal_core.review.in_worker:inspect_model", {}),
    ".ubj": ("kdcal_core.review.in_worker:inspect_model", {}),
    ".json": ("kdcal_core.review.in_worker:inspect_model", {}),
    ".kdcal": ("kdcal_core.store.archive:read_archive", {"kind": "calibrator"}),
    ".parquet": ("kdcal_core.review.in_worker:import_table", {"model": None}),
    ".csv": ("kdcal_core.review.in_worker:import_table", {"model": None}),
}
node = helper.make_node


def run() -> list[dict[str, Any]]:
    """Rows of name, what, n (bytes of the file), seconds and goal."""
    rows = []
    for name, write in FILES.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name.replace(" ", "_")
            path.write_bytes(write())
            rows.append(_row(name, path))
    return rows


def _row(name: str, path: Path) -> dict[str, Any]:
    target, more = _READERS[path.suffix]
    kwargs: dict[str, Any] = {"path": str(path), **more}
    if "in_worker" in target:
        kwargs["name"] = path.name
    if target.endswith("import_table"):
        kwargs["frame_path"] = str(path.with_suffix(".arrow"))
    peaks = [0]
    looked = memory.peak_bytes

    def look(pid: int) -> int:
        peaks.append(looked(pid))
        return peaks[-1]

    start = time.perf_counter()
    said = "is read"
    with mock.patch.object(runner, "peak_bytes", look):
        try:
            run_limited(target, kwargs, seconds=LIMIT, what="Reading it")
        except InputError as error:
            said = error.what
    seconds = time.perf_counter() - start
    what = f"{max(peaks) / 1e6:,.0f} MB: {said[:70]}"
    return {
        "name": name, "what": what, "n": path.stat().st_size, "seconds": seconds,
        "reference": None, "reference_seconds": None, "ratio": None, "goal": GOAL,
    }  # fmt: skip


def _onnx(nodes: list[Any], inits: tuple[Any, ...] = (), last: str = "y") -> bytes:
    graph = helper.make_graph(
        [*nodes, node("Softmax", [last], ["p"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 4])],
        [helper.make_tensor_value_info("p", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in inits],
    )
    opsets = [helper.make_opsetid("", 17)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString())


def _loop() -> bytes:
    kinds = (TensorProto.INT64, TensorProto.BOOL, TensorProto.FLOAT)
    shapes: tuple[list[int] | None, ...] = ([], [], None)
    inner = [
        helper.make_tensor_value_info(name, kind, shape)
        for name, kind, shape in zip("igv", kinds, shapes, strict=True)
    ]
    outer = [
        helper.make_tensor_value_info("on", TensorProto.BOOL, []),
        helper.make_tensor_value_info("w", TensorProto.FLOAT, None),
    ]
    nodes = [node("Identity", ["g"], ["on"]), node("Tanh", ["v"], ["w"])]
    body = helper.make_graph(nodes, "b", inner, outer)
    return _onnx([node("Loop", ["", "yes", "x"], ["y"], body=body)], (("yes", True),))


def _doubling() -> bytes:
    names = ["x", *(f"d{i}" for i in range(26))]
    nodes = [node("Concat", [one, one], [two], axis=1) for one, two in pairwise(names)]
    return _onnx([*nodes, node("ReduceSum", [names[-1], "one"], ["y"])], (("one", [1]),))


def _chain(n: int) -> bytes:
    names = ["x", *(f"r{i}" for i in range(n - 1)), "y"]
    return _onnx([node("Relu", [one], [two]) for one, two in pairwise(names)])


def _hidden() -> bytes:
    nodes = [
        node("Cast", ["size"], ["shape"], to=TensorProto.INT64),
        node("ConstantOfShape", ["shape"], ["big"]),
        node("ReduceSum", ["big"], ["s"], keepdims=0),
        node("Add", ["x", "s"], ["y"]),
    ]
    return _onnx(nodes, (("size", [2.0**29]),))


def _parquet(text: str, n_rows: int) -> bytes:
    codes = pa.array(np.zeros(n_rows, dtype=np.int32))
    table = pa.table({"y": pa.DictionaryArray.from_arrays(codes, pa.array([text]))})
    sink = io.BytesIO()
    pq.write_table(
        table, sink, compression="zstd", store_schema=False, write_statistics=False,
        write_batch_size=n_rows, data_page_size=1 << 30, max_rows_per_page=n_rows,
        dictionary_pagesize_limit=1 << 30,
    )  # fmt: skip
    return sink.getvalue()


def _kdcal(members: dict[str, Callable[[Any], None]]) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, write in members.items():
            with archive.open(name, "w", force_zip64=True) as file:
                write(file)
    return sink.getvalue()


def _zeros(file: Any) -> None:
    header = {"descr": "|u1", "fortran_order": False, "shape": (1200 << 20,)}
    npy.write_array_header_1_0(file, header)
    for _ in range(1200):
        file.write(bytes(1 << 20))


def _about(more: str) -> Callable[[Any], None]:
    text = json.dumps({"kind": "calibrator", "version": 1})
    return lambda file: file.write((text[:-1] + more + "}").encode())


FILES: dict[str, Callable[[], bytes]] = {
    "endless loop.onnx": _loop,
    "doubling.onnx": _doubling,
    "20,000 nodes.onnx": lambda: _chain(20_000),
    "9,000 nodes.onnx": lambda: _chain(9000),
    "hidden size.onnx": _hidden,
    "one long text.parquet": lambda: _parquet("x" * (1 << 20), 3000),
    "many rows.parquet": lambda: _parquet("x" * 30, 100_000_000),
    "zeros.kdcal": lambda: _kdcal({"about.json": _about(""), "a.npy": _zeros}),
    "lists.kdcal": lambda: _kdcal({"about.json": _about(', "x": [' + "[]," * 21_000_000 + "1]")}),
    "lists.json": lambda: b'{"learner": [' + b"[]," * 30_000_000 + b"1]}",
    "lists.ubj": lambda: b"{U\x07learner[" + b"[]" * 30_000_000 + b"]}",
    "a million columns.csv": lambda: (",".join(f"c{i}" for i in range(10**6)) + "\n1\n").encode(),
    "open quote.csv": lambda: b'a,b\n1,"x\n' + b"2,y\n" * 2_000_000,
}
