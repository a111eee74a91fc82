"""Limits that a server sets: one place, nonsense refused at the start, each one hit and named."""

from __future__ import annotations

import io
import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from lightgbm import LGBMClassifier
from onnx import TensorProto, helper
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from app.shared import server_process
from kdcal_core.cli.main import main
from kdcal_core.data import Roles, check_roles, read_table
from kdcal_core.data.parquet_folder import PartedTable, parquet_files
from kdcal_core.errors import InputError
from kdcal_core.jobs import JobManager, run_limited
from kdcal_core.models import load_model
from kdcal_core.quotas import QUOTAS, UPLOAD, Quota, check_quotas
from kdcal_core.review import Workspace, add_table, changes, create_review

ROOT = Path(__file__).parents[1]
PROBES = "job_probes:"
FRAME = pd.DataFrame({"a": np.arange(9.0), "b": 1.0, "c": list("xyz") * 3})


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, object], None]:
    return lambda name, value: monkeypatch.setenv(name, str(value))


def refusal(variable: str, function: Callable[..., Any], *args: Any, **more: Any) -> str:
    """What is wrong; the error says who can raise the limit."""
    with pytest.raises(InputError) as caught:
        function(*args, **more)
    assert f"Whoever runs kdcal can raise the limit with {variable}." in caught.value.fix
    return caught.value.what


@pytest.mark.parametrize("quota", QUOTAS, ids=lambda one: one.variable)
def test_nonsense_is_refused_and_names_its_variable(quota: Quota, limit: Any) -> None:
    for text in ("many", "-1", "nan", "inf", "1e99", "5 GiB", "9" * 5000):
        limit(quota.variable, text)
        with pytest.raises(InputError, match=f"^{quota.variable} is "):
            check_quotas()
    for text in ("", " ", str(quota.least), f" {quota.most} "):
        limit(quota.variable, text)
        check_quotas()
    assert quota.is_counted is (quota.unit not in ("MiB", "GiB", "minutes"))


def test_all_that_is_wrong_is_said_at_once_when_anything_starts(
    limit: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    limit("KDCAL_JOBS", "two")
    limit("KDCAL_MAX_ROWS", "1.5")
    assert main(["limits"]) == 2
    said = capsys.readouterr().err
    assert "KDCAL_JOBS is 'two'" in said
    assert "KDCAL_MAX_ROWS is '1.5'" in said
    assert said.count("\n") == 1
    with pytest.raises(SystemExit, match="KDCAL_JOBS is 'two'"):
        server_process.apply_quotas()


def test_the_command_prints_every_limit_with_its_present_value(
    limit: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    limit("KDCAL_MAX_ROWS", 1234)
    assert main(["limits"]) == 0
    said = capsys.readouterr().out
    assert all(one.variable in said for one in QUOTAS)
    assert re.search(r"KDCAL_MAX_ROWS .* 1,234 +environment\n", said)
    assert main(["limits", "--json"]) == 0
    found = {one["variable"]: one for one in json.loads(capsys.readouterr().out)["limits"]}
    assert found["KDCAL_MAX_ROWS"] == {
        "variable": "KDCAL_MAX_ROWS",
        "value": 1234,
        "unit": "row",
        "set": True,
    }
    assert found["KDCAL_WORKER_GIB"]["value"] >= 1


def test_the_guide_lists_every_limit_with_its_default() -> None:
    guide = (ROOT / "app" / "guides" / "deploying.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(KDCAL_\w+)` \| .* \| (.+) \|$", guide, re.MULTILINE))
    for quota in QUOTAS:
        expected = quota.default_words or f"{quota.default:,}"
        assert rows[quota.variable] == expected, quota.variable


def csv() -> io.BytesIO:
    return io.BytesIO(FRAME.to_csv(index=False).encode())


def parquet() -> io.BytesIO:
    made = io.BytesIO()
    FRAME.to_parquet(made)
    return made


@pytest.mark.parametrize("source", [csv, parquet])
def test_rows_and_columns_of_a_table(source: Callable[[], io.BytesIO], limit: Any) -> None:
    limit("KDCAL_MAX_ROWS", 9)
    limit("KDCAL_MAX_COLUMNS", 3)
    assert read_table(source()).n_rows == 9
    limit("KDCAL_MAX_ROWS", 8)
    what = refusal("KDCAL_MAX_ROWS", read_table, source())
    assert what == "The table has 9 rows; the limit is 8 rows"
    limit("KDCAL_MAX_COLUMNS", 2)
    what = refusal("KDCAL_MAX_COLUMNS", read_table, source())
    assert what == "The table has 3 columns; the limit is 2 columns"


def test_bytes_of_a_table(limit: Any) -> None:
    limit("KDCAL_MAX_TABLE_GIB", 0.001)
    text = io.BytesIO(b"a,b\n" + b"1,2\n" * 300_000)
    what = refusal("KDCAL_MAX_TABLE_GIB", read_table, text)
    assert what == "The file has 1.1 MiB; the limit is 1.0 MiB"
    made = io.BytesIO()
    pd.DataFrame({"x": np.zeros(200_000)}).to_parquet(made)
    what = refusal("KDCAL_MAX_TABLE_GIB", read_table, made)
    assert what == "The table would take 1.5 MiB in memory; the limit is 1.0 MiB"


def test_a_folder_that_is_put_together(tmp_path: Path, limit: Any) -> None:
    for name in ("a", "b"):
        FRAME.to_parquet(tmp_path / f"{name}.parquet")
    table = PartedTable(parquet_files(tmp_path))
    limit("KDCAL_MAX_ROWS", 17)
    what = refusal("KDCAL_MAX_ROWS", table.write, tmp_path / "whole")
    assert what == "The folder has 18 rows; the limit is 17 rows"


def test_equal_sizes_in_words_are_told_apart() -> None:
    with pytest.raises(InputError, match="has 1,073,741,825 bytes; the limit is 1,073,741,824"):
        Quota("KDCAL_MAX_X", "a thing", "GiB", 1).refuse_beyond(2**30 + 1, "It", fix="Cut it.")


def test_classes_of_a_target_and_of_a_model(tmp_path: Path, limit: Any) -> None:
    limit("KDCAL_MAX_CLASSES", 2)
    roles = Roles(target="c", features=("a", "b"))
    what = refusal(
        "KDCAL_MAX_CLASSES", check_roles, FRAME, roles, classes=list("xyz"), needs_outputs=False
    )
    assert what == "The target has 3 classes; the limit is 2 classes"
    for name in ("forest.skops", "boosted.json", "light.txt"):
        what = refusal("KDCAL_MAX_CLASSES", load_model, model(tmp_path, name))
        assert what == "The model has 3 classes; the limit is 2 classes"


def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(90, 2)), np.arange(90) % 3


def model(folder: Path, name: str) -> Path:
    """A small model of three classes in a file of this name."""
    X, y = rows()
    path = folder / name
    if name == "forest.skops":
        skops.io.dump(RandomForestClassifier(3, max_depth=2, random_state=0).fit(X, y), path)
    elif name == "histograms.skops":
        skops.io.dump(HistGradientBoostingClassifier(max_iter=2, max_depth=2).fit(X, y), path)
    elif name == "boosted.json":
        XGBClassifier(n_estimators=2, max_depth=2).fit(X, y).save_model(path)
    elif name == "light.txt":
        made = LGBMClassifier(n_estimators=2, num_leaves=3, verbose=-1).fit(X, y)
        made.booster_.save_model(path)
    elif name == "trees.onnx":
        path.write_bytes(onnx_trees().SerializeToString())
    else:
        path.write_bytes(onnx_network().SerializeToString())
    return path


def onnx_trees() -> Any:
    """One tree of three nodes."""
    node = helper.make_node(
        "TreeEnsembleClassifier",
        ["x"],
        ["label", "p"],
        domain="ai.onnx.ml",
        classlabels_int64s=[0, 1],
        nodes_treeids=[0, 0, 0],
        nodes_nodeids=[0, 1, 2],
        nodes_featureids=[0, 0, 0],
        nodes_values=[0.5, 0.0, 0.0],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_truenodeids=[1, 0, 0],
        nodes_falsenodeids=[2, 0, 0],
        class_treeids=[0, 0, 0, 0],
        class_nodeids=[1, 1, 2, 2],
        class_ids=[0, 1, 0, 1],
        class_weights=[0.9, 0.1, 0.2, 0.8],
    )
    return onnx_model([node], [helper.make_tensor_value_info("label", TensorProto.INT64, [None])])


def onnx_network() -> Any:
    nodes = [
        helper.make_node("Relu", ["x"], ["h"]),
        helper.make_node("Relu", ["h"], ["z"]),
        helper.make_node("Softmax", ["z"], ["p"]),
    ]
    return onnx_model(nodes, [])


def onnx_model(nodes: list[Any], first: list[Any]) -> Any:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 2])
    p = helper.make_tensor_value_info("p", TensorProto.FLOAT, [None, 2])
    graph = helper.make_graph(nodes, "g", [x], [*first, p])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


@pytest.mark.parametrize(
    ("name", "n_nodes"),
    [
        ("forest.skops", None),  # they are counted tree by tree, up to the limit
        ("histograms.skops", None),
        ("boosted.json", None),
        ("light.txt", None),
        ("trees.onnx", 3),
    ],
)
def test_nodes_of_trees(tmp_path: Path, limit: Any, name: str, n_nodes: int | None) -> None:
    path = model(tmp_path, name)
    limit("KDCAL_MAX_TREE_NODES", 2)
    what = refusal("KDCAL_MAX_TREE_NODES", load_model, path)
    found = re.fullmatch(r"The model's trees have (\d+) nodes; the limit is 2 nodes", what)
    assert found
    assert int(found[1]) == (n_nodes or int(found[1])) > 2
    limit("KDCAL_MAX_TREE_NODES", 100)
    load_model(path)


def test_operations_of_a_network(tmp_path: Path, limit: Any) -> None:
    """Those of PyTorch are counted in tests/models/test_torch_hostile.py."""
    path = model(tmp_path, "network.onnx")
    limit("KDCAL_MAX_GRAPH_NODES", 2)
    what = refusal("KDCAL_MAX_GRAPH_NODES", load_model, path)
    assert what == "The model has at least 3 operations; the limit is 2 operations"
    limit("KDCAL_MAX_GRAPH_NODES", 10)
    load_model(path)


def test_bytes_of_a_model_as_a_file_and_unpacked(tmp_path: Path, limit: Any) -> None:
    limit("KDCAL_MAX_MODEL_GIB", 0.001)
    path = model(tmp_path, "light.txt")
    path.write_text(path.read_text() + " " * (3 << 19))
    what = refusal("KDCAL_MAX_MODEL_GIB", load_model, path)
    assert what == "The model has 1.5 MiB; the limit is 1.0 MiB"
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 100, (20_000, 2)), rng.integers(0, 3, 20_000)
    large = DecisionTreeClassifier().fit(X, y)
    skops.io.dump(large, tmp_path / "large.skops", compression=8)
    assert (tmp_path / "large.skops").stat().st_size < 1 << 20
    what = refusal("KDCAL_MAX_MODEL_GIB", load_model, tmp_path / "large.skops")
    assert what.startswith("The model's archive has ")


def test_time_of_a_job_and_of_reading_a_file(
    tmp_path: Path, limit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit("KDCAL_MAX_JOB_MINUTES", 0.01)
    limit("KDCAL_MAX_READ_MINUTES", 0.02)
    slow = PROBES + "count", {"n": 600, "pause": 0.1}
    manager = JobManager()
    job = manager.wait(manager.submit(*slow, title="Fitting"), 60)
    assert job.error is not None
    assert job.error.what == "Fitting took longer than 1 second and was stopped"
    assert "KDCAL_MAX_JOB_MINUTES" in job.error.fix
    monkeypatch.setattr(
        changes,
        "run_limited",
        lambda target, kwargs, *, confined, **more: run_limited(*slow, **more),
    )
    workspace = Workspace(tmp_path)
    review = create_review(workspace)
    csv_file = tmp_path / "a.csv"
    FRAME.to_csv(csv_file)
    what = refusal(
        "KDCAL_MAX_READ_MINUTES",
        add_table,
        workspace,
        review.id,
        "calibration",
        csv_file,
        "a.csv",
    )
    assert what == "Reading the table took longer than 1 second and was stopped"


def test_memory_of_a_worker(limit: Any) -> None:
    limit("KDCAL_WORKER_GIB", 1)
    asked = PROBES + "allocate", {"n_bytes": 2 << 30}
    what = refusal("KDCAL_WORKER_GIB", run_limited, *asked, what="Fitting")
    assert what == "Fitting needed more memory than the 1.0 GiB it may use"


def test_jobs_of_one_user_that_wait_or_run(limit: Any) -> None:
    limit("KDCAL_MAX_JOBS_PER_USER", 2)
    manager, through = JobManager(concurrent=1), threading.Event()

    def wait(progress: Any, cancelled: Any) -> None:
        through.wait(60)

    ids = [manager.start(wait, title="Wait", user="ann", key=f"{at}") for at in range(2)]
    what = refusal("KDCAL_MAX_JOBS_PER_USER", manager.start, wait, title="Wait", user="ann")
    assert what == "With this one you have 3 jobs that wait or run; the limit is 2 jobs"
    assert manager.start(wait, title="Wait", user="ann", key="1") == ids[1]  # no further job
    ids += [manager.start(wait, title="Wait", user=user) for user in ("ben", "")]
    through.set()
    for job_id in ids:
        manager.wait(job_id, 60)
    manager.wait(manager.start(wait, title="Wait", user="ann"), 60)


def test_streamlit_gets_the_limit_of_uploads(
    limit: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    told: dict[str, object] = {}
    monkeypatch.setattr(server_process.config, "set_option", told.__setitem__)
    monkeypatch.setattr(server_process.config, "is_manually_set", lambda name: True)
    limit(UPLOAD.variable, 7)
    server_process.apply_quotas()
    assert told == {"server.maxUploadSize": 7}
    assert "server.maxUploadSize is not used. Set KDCAL_MAX_UPLOAD_MIB instead." in caplog.text
