"""``kdcal score``: rows a minute with the model included, and memory that does not grow."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.calibration import fit_calibrator
from kdcal_core.calibration.export import make_card, save_calibrator
from kdcal_core.data import ScoredSet
from kdcal_core.models import load_model

N_FEATURES = 20
N_FIT = 20_000
TITLES = {"platt": "Platt", "heterogeneous_forest": "Regions of 100 trees"}
FEW, MANY = 100_000, 2_000_000
GOAL = 120.0  # seconds for MANY: a million rows a minute

_CHILD = """
import json, sys, time
from pathlib import Path
from kdcal_core.calibration.export.score_table import score_table
start = time.perf_counter()
found = score_table(*sys.argv[1:])
seconds = time.perf_counter() - start
# getrusage would count the model's memory from before the new program began
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
peak = int(status["VmHWM"].split()[0]) / 1024
print(json.dumps([found["rows"], seconds, peak]))
"""


def run() -> list[dict[str, Any]]:
    """Calibrators behind a light network; CSV and Parquet, few rows and many."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        _prepare(folder)
        platt = [
            _row(folder, "platt", n, suffix) for suffix in (".csv", ".parquet") for n in (FEW, MANY)
        ]
        forest = [_row(folder, "heterogeneous_forest", n, ".parquet") for n in (FEW, MANY)]
        return platt + forest


def _row(folder: Path, key: str, n: int, suffix: str) -> dict[str, Any]:
    table = _table(folder, n, suffix)
    words = [f"{key}.kdcal", table.name, f"out{suffix}", suffix, "model.onnx"]
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, *words], cwd=folder, capture_output=True, check=True
    )
    rows, seconds, peak = json.loads(done.stdout)
    table.unlink()
    assert rows == n
    return {
        "name": "score",
        "what": f"{TITLES[key]} behind a network, {N_FEATURES} columns, {suffix[1:]}, "
        f"{n / seconds * 60 / 1e6:.1f} million rows a minute, peak {peak:,.0f} MB",
        "n": n,
        "seconds": seconds,
        "reference": None,
        "reference_seconds": None,
        "ratio": None,
        "goal": GOAL * n / MANY,
    }


def _prepare(folder: Path) -> None:
    """A network of 64 hidden units as ONNX, and its calibrators."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    first = rng.normal(size=(N_FEATURES, 64)).astype(np.float32)
    second = rng.normal(size=(64, 2)).astype(np.float32) / 8
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["h"]),
            helper.make_node("Relu", ["h"], ["r"]),
            helper.make_node("MatMul", ["r", "v"], ["z"]),
            helper.make_node("Softmax", ["z"], ["probabilities"], axis=1),
        ],
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, N_FEATURES])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [None, 2])],
        [numpy_helper.from_array(first, "w"), numpy_helper.from_array(second, "v")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    names = model.metadata_props.add()
    names.key, names.value = "feature_names", json.dumps(_names())
    onnx.save(model, folder / "model.onnx")
    wrapped = load_model(folder / "model.onnx", task="classification")
    X = _rows(N_FIT, 0)
    proba = wrapped.predict_proba(X)
    # the first column shifts the truth, so that there are regions to be found
    odds = np.log(proba[:, 1] / proba[:, 0]) + np.sign(X["x0"].to_numpy())
    y = (rng.random(N_FIT) < 1 / (1 + np.exp(-odds))).astype(np.int64)
    rows = ScoredSet(proba, y, wrapped.classes, "digest", "calibration")
    for key in TITLES:
        calibrator = fit_calibrator(key, rows, X)
        card = make_card(key, calibrator, classes=wrapped.classes, data={}, features=_names())
        save_calibrator(calibrator, folder / f"{key}.kdcal", card)


def _names() -> list[str]:
    return [f"x{j}" for j in range(N_FEATURES)]


def _rows(n: int, seed: int) -> pd.DataFrame:
    values = np.random.default_rng(seed).normal(size=(n, N_FEATURES)).round(4)
    return pd.DataFrame(values, columns=_names())


def _table(folder: Path, n: int, suffix: str) -> Path:
    import pyarrow as pa
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

    path = folder / f"rows{suffix}"
    table = pa.Table.from_pandas(_rows(n, 1), preserve_index=False)
    if suffix == ".csv":
        pa_csv.write_csv(table, path)
    else:
        pq.write_table(table, path)
    return path
