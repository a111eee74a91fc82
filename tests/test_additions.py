"""What an addition costs: one file for a calibrator, a model format, a measure or a check.

A page is one file, one folder and one line of the navigation. The files below are written into a
copy of the tree in which nothing else is touched, and a process that imports the copy says what
the lists, the pages and the command line make of them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
NAVIGATION = "app/shared/navigation.py"
NEW_LINE = '        "rates",\n'

ADDED = {
    "kdcal_core/calibration/base_rates.py": '''
import numpy as np
from kdcal_core.calibration.calibrator_base import VectorCalibrator
from kdcal_core.store.estimators import check_array
from kdcal_core.calibration.calibrators import CalibratorEntry
from kdcal_core.store import storable

@storable
class BaseRates(VectorCalibrator):
    """Probabilities blended with the classes' shares on the calibration set."""

    _why_no_onnx = None

    def rows_needed(self, n_classes):
        return 10 * n_classes

    def _fit(self, proba, y, weight):
        counts = np.bincount(y, weights=weight, minlength=self.n_classes_)
        self.rates_ = counts / counts.sum()

    def check_state(self):
        super().check_state()
        check_array(self, "rates_", (self.n_classes_,), low=0.0, high=1.0)

    def _vectors(self, proba):
        return 0.75 * proba + 0.25 * self.rates_

    def onnx_nodes(self, nodes, proba):
        return nodes.add(nodes.mul(proba, 0.75), 0.25 * self.rates_[None, :])

CalibratorEntry(
    "base_rates", "Base rates", "Base rates", BaseRates, "nowhere",
    "A quarter of every probability is the share of the class.", "standard", offered=True,
).offer()
''',
    "kdcal_core/models/logistic_file.py": """
from pathlib import Path
import numpy as np
from scipy.special import expit
from kdcal_core.models.formats import Content, Format

class Logistic:
    kind, classes, named_classes = "Logistic curve", ("no", "yes"), True
    n_features, feature_names = 1, ("x",)

    def __init__(self, slope):
        self.slope = slope

    def predict_proba(self, X):
        p = expit(self.slope * np.asarray(X, dtype=np.float64)[:, 0])
        return np.column_stack([1 - p, p])

def load(path, *, name, task=None):
    return Logistic(float(Path(path).read_text().split()[1]))

def is_logistic(content):
    return content.head.startswith(b"logistic ")

Format("logistic", "Logistic curve", (".logistic",), is_logistic, load, "any library").offer()
""",
    "kdcal_core/evaluation/absolute_loss.py": """
import numpy as np
from kdcal_core.evaluation.probability_measures import row_measure

def absolute_losses(proba, y):
    return 1.0 - np.asarray(proba)[np.arange(len(y)), y]

row_measure(
    "absolute", "Absolute loss", "The probability given to wrong classes.", "probability",
    absolute_losses, on_card=True,
).offer()
""",
    "kdcal_core/checks/sure_rows.py": """
from kdcal_core.checks.check import Check, Part, largest
from kdcal_core.review import Limit

def measured(evidence, level):
    sure = float((evidence.scored.proba.max(axis=1) > 0.99).mean())
    name = "Share of rows with a confidence above 0.99"
    return [Part(largest(name, "Sure rows", [sure], evidence.rows.n_rows, level))]

Check(
    code="KC299", title="Sure of many rows", question="Is the model nearly sure of most rows?",
    fault="it is nearly sure of most rows",
    family="data", tasks=("classification",), limit=Limit(high=0.07), measured=measured,
    remedy="Calibrate the model.", page="compare", method="A share with an exact interval.",
).offer()
""",
    "app/rates/__init__.py": """
from app.shared.navigation import Place

PLACE = Place("Rates", ":material/percent:", "How often each class occurs", "You will see shares.")
""",
    "pages/rates.py": """
import streamlit as st
from app.shared import page_top

review = page_top.scored_review("rates")
if review is not None:
    st.markdown(f"{len(review.classes)} shares")
""",
}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What :func:`look` says in a process that imports the copy."""
    copy = tmp_path_factory.mktemp("copy")
    for folder in ("kdcal_core", "app", "pages"):
        shutil.copytree(ROOT / folder, copy / folder)
    (copy / "sample_data").symlink_to(ROOT / "sample_data")
    for path, source in ADDED.items():
        (copy / path).parent.mkdir(exist_ok=True)
        (copy / path).write_text(source)
    before = '        "compare",\n'
    lines = (copy / NAVIGATION).read_text()
    assert lines.count(before) == 1
    (copy / NAVIGATION).write_text(lines.replace(before, before + NEW_LINE))
    paths = os.pathsep.join([str(copy), str(ROOT / "tests")])
    environment = {"PYTHONPATH": paths, "KDCAL_HOME": str(copy / "home")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "import test_additions; test_additions.look()"],
        cwd=tmp_path_factory.mktemp("work"),
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def look() -> None:
    """Use what was added by every way that the house has, and print what came of it."""
    from workerless import working_here

    with working_here():
        found = {**_from_python(), **_from_the_command_line(), **_on_pages()}
    print(json.dumps(found))


def _from_python() -> dict[str, Any]:
    import numpy as np
    from made_reviews import scored

    from kdcal_core import fit_calibrator, load_calibrator
    from kdcal_core.calibration.export import DataMark, export_onnx, make_card, save_calibrator
    from kdcal_core.checks import Evidence, judge_checks, measure_checks
    from kdcal_core.errors import InputError
    from kdcal_core.evaluation import compare
    from kdcal_core.models import load_model
    from kdcal_core.review import ReviewData

    rows = scored()
    calibrator = fit_calibrator("base_rates", rows)
    marks = {"calibration": DataMark("rows.csv", rows.digest, rows.n_rows)}
    card = make_card("base_rates", calibrator, classes=rows.classes, data=marks)
    save_calibrator(calibrator, "a.kdcal", card)
    again = load_calibrator("a.kdcal").predict_proba(rows.proba)
    Path("net.onnx").write_bytes(_softmax_of_three())
    logits = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    written = export_onnx(calibrator, "net.onnx", "calibrated.onnx", card, logits)
    review = ReviewData(rows, None, rows.classes, {})
    compared = compare(["base_rates"], review, folds=2, n_boot=100)
    Path("model.bin").write_bytes(b"logistic 1")
    try:
        load_model("model.bin")
        refused = ""
    except InputError as error:
        refused = str(error)
    (checked,) = judge_checks(measure_checks(Evidence(rows), ["KC299"])).results
    return {
        "checked": [checked.verdict, checked.parts[0].estimate.value],
        "kept": float(np.abs(again - calibrator.predict_proba(rows.proba)).max()),
        "onnx": [written.n_rows, written.max_difference],
        "compared": [one.name for one in compared.methods],
        "measures": list(compared.methods[0].scores),
        "refused": refused,
    }


def _softmax_of_three() -> bytes:
    from onnx import TensorProto, helper

    nodes = [helper.make_node("Softmax", ["x"], ["p"], axis=1)]
    (x, p) = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3]) for name in "xp")
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(
        helper.make_graph(nodes, "g", [x], [p]), opset_imports=opsets, ir_version=8
    )
    return bytes(model.SerializeToString())


def _from_the_command_line() -> dict[str, Any]:
    import numpy as np
    import pandas as pd

    from kdcal_core import load_calibrator

    x = np.random.default_rng(1).normal(size=200)
    truth = np.where(np.random.default_rng(2).random(200) < 1 / (1 + np.exp(-x)), "yes", "no")
    pd.DataFrame({"x": x, "y": truth}).to_csv("rows.csv", index=False)
    Path("model.logistic").write_text("logistic 3")
    rows = ("--model", "model.logistic", "--data", "rows.csv")
    record = json.loads(_said("diagnose", *rows, "--target", "y", "--json", "-"))
    _said("calibrate", "--calibrator", "base_rates", *rows, "--target", "y", "--out", "c.kdcal")
    _said("score", "--calibrator", "c.kdcal", *rows, "--out", "scored.csv")
    return {
        "listed": _said("calibrate", "--list"),
        "diagnosed": [one["label"] for one in record["sets"][0]["estimates"]],
        "scored": len(pd.read_csv("scored.csv")),
        "card": [one.label for one in load_calibrator("c.kdcal").card.estimates],
    }


def _said(*words: str) -> str:
    from kdcal_core.cli import main

    with redirect_stdout(StringIO()) as out:
        assert main(list(words)) == 0, words
    return out.getvalue()


def _on_pages() -> dict[str, Any]:
    from made_reviews import review_of, too_sure
    from streamlit.testing.v1 import AppTest

    import app
    from app.shared.navigation import SECTIONS
    from kdcal_core.review import Workspace

    at = AppTest.from_file(str(Path(app.__file__).with_name("main.py")), default_timeout=60)
    (files,) = (one.proto for one in at.run().get("file_uploader") if one.proto.multiple_files)
    at.query_params["guide"] = "Checks and their limits"
    at.query_params["review"] = review_of(Workspace(), calibration=too_sure(200, 0))
    shown = {
        name: [
            *(title.value for title in at.switch_page(f"../pages/{name}.py").run().title),
            *(text.value for text in at.markdown),
            *(choice for one in (*at.button_group, *at.selectbox) for choice in one.options),
            *(one.value for one in at.caption),
            *(str(error.message) for error in at.exception),
        ]
        for name in ("rates", "compare", "export", "overview", "help")
    }
    tabs = next(one for one in at.tabs if one.label == "The checks")  # opened by a reader
    at.session_state["guide_checks"] = tabs.label
    shown["help"] += [text.value for text in at.run().markdown]
    return {"sections": SECTIONS, "uploaded": [*files.type, files.help], **shown}


def test_a_calibrator_is_one_file(seen: dict[str, Any]) -> None:
    assert "base_rates " in seen["listed"]
    assert seen["kept"] == 0
    assert seen["onnx"][0] == 50
    assert seen["onnx"][1] < 1e-5
    assert "Base rates" in seen["compared"]
    assert seen["scored"] == 200
    assert any("Base rates" in choice for choice in seen["compare"])
    assert any("Base rates" in choice for choice in seen["export"])


def test_a_model_format_is_one_file(seen: dict[str, Any]) -> None:
    assert seen["scored"] == 200  # the rows went through its model
    assert ".logistic" in seen["uploaded"]
    assert "Logistic curve (.logistic)" in seen["uploaded"][-1]
    assert "its content looks like: Logistic curve" in seen["refused"]
    assert ".logistic" in seen["refused"]


def test_a_measure_is_one_file(seen: dict[str, Any]) -> None:
    assert "absolute" in seen["measures"]
    assert "Absolute loss" in seen["diagnosed"]
    assert "Absolute loss" in seen["card"]


def test_a_check_is_one_file(seen: dict[str, Any]) -> None:
    assert seen["checked"]
    assert any("Sure rows" in text for text in seen["overview"])
    row = "| KC299 | Sure of many rows | Is the model nearly sure of most rows? | at most 0.07 |"
    assert any(line.startswith(row) for text in seen["help"] for line in text.splitlines())


def test_a_page_is_a_file_a_folder_and_a_line(seen: dict[str, Any]) -> None:
    assert "rates" in seen["sections"]["Diagnose"]
    assert seen["rates"][0] == "Rates"
    assert "2 shares" in seen["rates"]
