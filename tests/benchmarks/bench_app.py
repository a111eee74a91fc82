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
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).parents[2]
ROWS, CLASSES, REPEATS, SEED = 1_000_000, 10, 7, 0
REGION_ROWS, REGION_COLUMNS = 100_000, 20
# settings of the Regions page, none of them asked for before: each is a search of its own
STEPS = ((1, None), (2, None), (4, None), (5, None), (5, 2000), (4, 1000), (3, 500))


def run() -> list[dict[str, Any]]:
    from streamlit.testing.v1 import AppTest

    os.environ["KDCAL_HOME"] = tempfile.mkdtemp()
    sys.path.insert(0, str(ROOT))
    review_id = _review_of_a_million_rows()
    rows = []
    for page in ("load", "reliability", "confidence_by_class"):
        app = AppTest.from_file(str(ROOT / "app" / "main.py"), default_timeout=900)
        app.query_params["review"] = review_id
        start = time.perf_counter()
        app.run()
        if page != "load":
            start = time.perf_counter()
            _settled(app.switch_page(f"../pages/{page}.py").run())
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
    return [*rows, _regions()]


def _settled(app: AppTest) -> None:
    """Run the page until the jobs that compute its results have ended."""
    from kdcal_core.jobs import jobs

    while active := jobs().active():
        for job in active:
            jobs().wait(job.id, 900)
        app.run()


def _regions() -> dict[str, Any]:
    """A step of a slider of the Regions page, each with a search that was not made before.

    Processor time: the search uses both cores where there are two.
    """
    from streamlit.testing.v1 import AppTest

    app = AppTest.from_file(str(ROOT / "app" / "main.py"), default_timeout=900)
    app.query_params["review"] = _review_with_inputs()
    app.run()
    start = time.process_time()
    app.switch_page("../pages/regions.py").run()
    first = time.process_time() - start
    times = []
    for depth, least in STEPS:
        app.slider(key="regions_depth").set_value(depth)
        if least is not None:
            app.select_slider(key="regions_least").set_value(least)
        start = time.process_time()
        app.run()
        times.append(time.process_time() - start)
        assert not app.exception
    return {
        "name": "app: regions",
        "what": f"a step of a slider, {REGION_COLUMNS} columns, processor time",
        "n": REGION_ROWS,
        "seconds": float(np.median(times)),
        "reference": "the page's first run",
        "reference_seconds": first,
        "ratio": first / float(np.median(times)),
        "goal": 0.25,
    }


def _review_with_inputs() -> str:
    """Two classes, sixteen numbers and four columns of categories; a region where scores fail."""
    from dataclasses import replace

    from kdcal_core.review import Workspace, add_table, create_review, score, set_roles

    rng, n = np.random.default_rng(SEED), REGION_ROWS
    numbers = REGION_COLUMNS - 4
    frame = pd.DataFrame({f"x{i}": rng.normal(size=n) for i in range(numbers)})
    for i in range(4):
        frame[f"kind{i}"] = rng.choice([f"v{j}" for j in range(8 + 10 * i)], n)
    features = tuple(frame.columns)
    stated = 1.0 / (1.0 + np.exp(-2.0 * frame["x0"] - frame["x1"]))
    true = np.where(frame["x2"] > 0.8, 0.25 + 0.5 * stated, stated)
    frame = frame.assign(
        p_no=1.0 - stated, p_yes=stated, y=np.where(rng.random(n) < true, "yes", "no")
    )
    workspace = Workspace()
    review = create_review(workspace)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        frame.to_parquet(path)
        review = add_table(workspace, review.id, "calibration", path, path.name)
    assert review.roles is not None
    outputs = (("no", "p_no"), ("yes", "p_yes"))
    roles = replace(review.roles, target="y", outputs=outputs, features=features)
    set_roles(workspace, review.id, roles)
    return score(workspace, review.id).id


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
