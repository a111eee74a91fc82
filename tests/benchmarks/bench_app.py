"""How long the server takes to answer a click on each page, with a million rows loaded.

Measured with Streamlit's test runner, which adds the cost of reading the page back. The
reference is the first run of the page, before its results are stored.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[2]
ROWS, CLASSES, REPEATS, SEED = 1_000_000, 10, 7, 0


def run() -> list[dict[str, Any]]:
    from streamlit.testing.v1 import AppTest

    os.environ["KDCAL_HOME"] = tempfile.mkdtemp()
    sys.path.insert(0, str(ROOT))
    review_id = _review_of_a_million_rows()
    rows = []
    for page in ("load", "reliability", "confidence_by_class"):
        app = AppTest.from_file(str(ROOT / "app" / "streamlit_app.py"), default_timeout=900)
        app.query_params["review"] = review_id
        start = time.perf_counter()
        app.run()
        if page != "load":
            start = time.perf_counter()
            app.switch_page(f"../pages/{page}.py").run()
        first = time.perf_counter() - start
        times = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            app.run()
            times.append(time.perf_counter() - start)
        assert not app.exception
        rows.append(
            {
                "name": f"app: {page}",
                "what": f"a rerun, {CLASSES} classes",
                "n": ROWS,
                "seconds": float(np.median(times)),
                "reference": "the page's first run",
                "reference_seconds": first,
                "ratio": first / float(np.median(times)),
                "goal": 0.25,
            }
        )
    return rows


def _review_of_a_million_rows() -> str:
    from kdcal_core.review import Workspace, add_table, create_review, score

    rng = np.random.default_rng(SEED)
    logits = rng.normal(size=(ROWS, CLASSES)) * 1.5
    true = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    label = (true.cumsum(axis=1) > rng.random(ROWS)[:, None]).argmax(axis=1)
    stated = np.exp(1.4 * logits)
    stated /= stated.sum(axis=1, keepdims=True)
    frame = pd.DataFrame(stated, columns=[f"proba_{k}" for k in range(CLASSES)])
    frame["label"] = label
    workspace = Workspace()
    review = create_review(workspace)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "predictions.parquet"
        frame.to_parquet(path)
        add_table(workspace, review.id, "calibration", path, path.name)
    score(workspace, review.id)
    return review.id
