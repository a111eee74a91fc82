"""ONNX files of a few bytes that would run for ever or fill the memory: refused before they run."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from kdcal_core.errors import InputError
from kdcal_core.jobs import run_limited
from kdcal_core.models import block_rows, onnx_model
from kdcal_core.models.onnx_model import load

FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64
node = helper.make_node


def const(name: str, value: Any) -> Any:
    return numpy_helper.from_array(np.asarray(value), name)


def value(name: str, shape: Any, kind: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def saved(
    path: Path,
    nodes: Any,
    inits: Any = (),
    *,
    rows: Any = "n",
    functions: Any = (),
    last: str = "y",
) -> Path:
    """A classifier of four columns whose scores are a softmax of the tensor ``last``."""
    nodes = [*nodes, node("Softmax", [last], ["p"])]
    graph = helper.make_graph(nodes, "g", [value("x", [rows, 4])], [value("p", None)], list(inits))
    opsets = [helper.make_opsetid("", 17), *[helper.make_opsetid("own", 1)] * bool(functions)]
    model = helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=9)
    path = path / "model.onnx"
    onnx.save(model, path)
    return path


def body(inner: Any = None) -> Any:
    """The body of a loop: one Tanh, or the nodes given, of what it carries."""
    nodes = [node("Identity", ["go"], ["on"])]
    nodes += inner if inner is not None else [node("Tanh", ["v"], ["w"])]
    return helper.make_graph(
        nodes,
        "body",
        [value("i", [], INT), value("go", [], TensorProto.BOOL), value("v", None)],
        [value("on", [], TensorProto.BOOL), value("w", None)],
    )


YES = const("yes", True)


def loop(rounds: str, **more: Any) -> Any:
    return node("Loop", [rounds, "yes", "x"], ["y"], body=body(**more))


def refused(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        load(path, name="model.onnx")
    assert caught.value.file == "model.onnx"
    return caught.value.what


def test_a_loop_without_end_is_refused_wherever_it_hides(tmp_path: Path) -> None:
    endless = "loop (Loop) and does not say how often"
    assert endless in refused(saved(tmp_path, [loop("")], [YES]))
    from_rows = [
        node("ReduceMax", ["x"], ["top"], keepdims=0),
        node("Cast", ["top"], ["m"], to=INT),
        loop("m"),
    ]
    assert endless in refused(saved(tmp_path, from_rows, [YES]))
    branch = helper.make_graph(
        [node("Loop", ["", "yes", "x"], ["y1"], body=body())], "branch", [], [value("y1", None)]
    )
    twice = node("If", ["yes"], ["y"], then_branch=branch, else_branch=branch)
    assert endless in refused(saved(tmp_path, [twice], [YES]))
    function = helper.make_function(
        "own", "f", ["a", "t"], ["b"],
        [node("Loop", ["", "t", "a"], ["b"], body=body())], [helper.make_opsetid("", 17)],
    )  # fmt: skip
    call = node("f", ["x", "yes"], ["y"], domain="own")
    assert endless in refused(saved(tmp_path, [call], [YES], functions=[function]))


def test_loops_that_run_too_often_are_refused(tmp_path: Path) -> None:
    text = "run more than 100,000 operations"
    assert text in refused(saved(tmp_path, [loop("m")], [YES, const("m", 2**60)]))
    inner = [node("Loop", ["m", "go", "v"], ["w"], body=body())]
    nested = [loop("m", inner=inner)]
    assert text in refused(saved(tmp_path, nested, [YES, const("m", 1000)]))
    # a name of the inside that hides a small number of the outside is not that number
    hidden = [
        node("Cast", ["v"], ["m"], to=INT),
        node("Loop", ["m", "go", "v"], ["w"], body=body()),
    ]
    assert "does not say" in refused(saved(tmp_path, [loop("k", inner=hidden)], [
        YES, const("m", 3), const("k", 2)
    ]))  # fmt: skip


def test_a_loop_that_says_how_often_it_runs_is_run(tmp_path: Path) -> None:
    for stated in (const("m", 3), const("m", [3])):
        nodes = [node("Squeeze", ["m"], ["rounds"]), loop("rounds")]
        model = load(saved(tmp_path, nodes, [YES, stated]), name="model.onnx")
        X = np.array([[0.5, -1.0, 2.0, 0.0]], dtype=np.float32)
        scores = np.exp(np.tanh(np.tanh(np.tanh(X))))
        np.testing.assert_allclose(model.predict_proba(X), scores / scores.sum(), atol=1e-6)


def test_a_scan_along_the_rows_or_a_known_table_is_run(tmp_path: Path) -> None:
    inner = helper.make_graph(
        [node("Add", ["total", "row"], ["new"]), node("Identity", ["row"], ["out"])],
        "body",
        [value("total", [4]), value("row", [4])],
        [value("new", [4]), value("out", [4])],
    )
    start = const("start", np.zeros(4, dtype=np.float32))
    nodes = [node("Scan", ["start", "x"], ["sum", "y"], body=inner, num_scan_inputs=1)]
    model = load(saved(tmp_path, nodes, [start]), name="model.onnx")
    assert model.predict_proba(np.eye(4)).shape == (4, 4)
    unknown = [
        node("Cast", ["x"], ["whole"], to=INT),
        node("Unique", ["whole"], ["few"], sorted=1),
        node("Cast", ["few"], ["long"], to=FLOAT),
        node("Unsqueeze", ["long", "one"], ["rows"]),
        node("Scan", ["start", "rows"], ["sum", "z"], body=inner, num_scan_inputs=1),
        node("Add", ["x", "sum"], ["y"]),
    ]
    assert "loop (Scan)" in refused(saved(tmp_path, unknown, [start, const("one", [1])]))


def doubling(times: int) -> list[Any]:
    names = ["x", *(f"d{i}" for i in range(times))]
    nodes = [node("Concat", [one, one], [two], axis=1) for one, two in pairwise(names)]
    return [*nodes, node("ReduceSum", [names[-1], "axes"], ["s"]), node("Add", ["x", "s"], ["y"])]


AXES = const("axes", [1])


def test_tensors_that_grow_beyond_a_row_are_refused(tmp_path: Path) -> None:
    what = refused(saved(tmp_path, doubling(30), [AXES]))
    assert "of one row; the limit is 33,554,432" in what
    filled = [
        node("ConstantOfShape", ["shape"], ["big"]),
        node("ReduceSum", ["big"], ["s"], keepdims=0),
        node("Add", ["x", "s"], ["y"]),
    ]
    what = refused(saved(tmp_path, filled, [const("shape", [2**32])]))
    assert "4,294,967,296 numbers ('big')" in what
    # a graph that takes a fixed number of rows, all of which count
    assert "of 64 rows" in refused(saved(tmp_path, doubling(22), [AXES], rows=64))
    model = load(saved(tmp_path, doubling(8), [AXES], rows=64), name="model.onnx")
    assert model.predict_proba(np.zeros((3, 4))).shape == (3, 4)


def test_rows_that_take_much_are_tried_and_run_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load(saved(tmp_path, doubling(18), [AXES]), name="model.onnx")
    inputs = model._core.inputs  # type: ignore[attr-defined]
    assert inputs.cost.row_cells == 4 << 18
    assert inputs.trial_rows == 13  # times 2^20 numbers
    sizes = []
    original = onnx_model.run

    def counted(session: Any, names: list[str], feed: Any) -> Any:
        sizes.append(len(feed["x"]))
        return original(session, names, feed)

    monkeypatch.setattr(onnx_model, "run", counted)
    assert model.predict_proba(np.zeros((100, 4))).shape == (100, 4)
    assert sum(sizes) == 100
    assert max(sizes) <= 64  # of 2^26 numbers each
    sizes.clear()
    monkeypatch.setattr(block_rows, "FEW_CELLS", np.inf)  # without a trial of sizes
    assert model.predict_proba(np.zeros((100, 4))).shape == (100, 4)
    assert sizes == [64, 36]


def test_weights_are_no_growth(tmp_path: Path) -> None:
    """A quantised model makes its weights anew, and they are as large as what is stored."""
    weights = np.ones((4, 12_000_000), dtype=np.int8)
    nodes = [
        node("Cast", ["q"], ["w"], to=FLOAT),
        node("Slice", ["w", "begin", "end", "axis"], ["few"]),
        node("MatMul", ["x", "few"], ["y"]),
    ]
    inits = [const("q", weights), const("begin", [0]), const("end", [3]), const("axis", [1])]
    assert load(saved(tmp_path, nodes, inits), name="m.onnx").predict_proba(np.eye(4)).shape == (
        4,
        3,
    )


def test_functions_that_unfold_without_bound_are_refused(tmp_path: Path) -> None:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    functions = [
        helper.make_function("own", "f0", ["a"], ["b"], [node("Tanh", ["a"], ["b"])], opsets)
    ]
    for i in range(1, 40):
        twice = [
            node(f"f{i - 1}", ["a"], ["m"], domain="own"),
            node(f"f{i - 1}", ["m"], ["b"], domain="own"),
        ]
        functions.append(helper.make_function("own", f"f{i}", ["a"], ["b"], twice, opsets))
    call = [node("f39", ["x"], ["y"], domain="own")]
    words = refused(saved(tmp_path, call, functions=functions))
    assert "at least 32,768 operations; the limit is 20,000 operations" in words
    itself = helper.make_function(
        "own", "f", ["a"], ["b"], [node("f", ["a"], ["b"], domain="own")], opsets
    )
    call = [node("f", ["x"], ["y"], domain="own")]
    assert "calls itself" in refused(saved(tmp_path, call, functions=[itself]))


def chain(n: int) -> list[Any]:
    names = ["x", *(f"r{i}" for i in range(n - 1)), "y"]
    return [node("Relu", [one], [two]) for one, two in pairwise(names)]


def test_graphs_of_many_nodes_are_refused_and_of_some_thousand_read(tmp_path: Path) -> None:
    assert "20,000 operations" in refused(saved(tmp_path, chain(20_000)))
    model = load(saved(tmp_path, chain(3000)), name="model.onnx")
    assert model.kind == "ReLU network (ONNX), 3,000 hidden layers of 4"


@pytest.mark.parametrize("what", ["hidden size", "doubling", "loop", "growing shape"])
def test_each_ends_within_seconds_and_500_mb(tmp_path: Path, what: str) -> None:
    """The first hides its size from the file: it ends in the trial.

    The last grows while its shapes are inferred, since the values of whole numbers are followed.
    """
    names = ["s0", "s1", "s2", "s3", "s4"]
    growing = [node("Concat", [one] * 60, [two], axis=0) for one, two in pairwise(names)]
    growing += [
        node("Gather", ["s4", "axes"], ["first"]),
        node("Cast", ["first"], ["f"], to=FLOAT),
        node("Add", ["x", "f"], ["y"]),
    ]
    hidden = [
        node("Cast", ["size"], ["shape"], to=INT),
        node("ConstantOfShape", ["shape"], ["big"]),
        node("ReduceSum", ["big"], ["s"], keepdims=0),
        node("Add", ["x", "s"], ["y"]),
    ]
    path, says = {
        "hidden size": lambda: (
            saved(tmp_path, hidden, [const("size", [2.0**28])]),
            r"The model, opened and tried on 61 rows, needed more than \d+ MiB of memory",
        ),
        "doubling": lambda: (saved(tmp_path, doubling(26), [AXES]), "of one row"),
        "loop": lambda: (saved(tmp_path, [loop("")], [YES]), "how often it runs"),
        "growing shape": lambda: (
            saved(tmp_path, growing, [const("s0", np.arange(2)), AXES]),
            r"The model, opened and tried on 1 row, needed more than \d+ MiB of memory",
        ),
    }[what]()
    with pytest.raises(InputError, match=says):
        run_limited(
            "kdcal_core.review.in_worker:inspect_model",
            {"path": str(path), "name": "model.onnx"},
            seconds=60,
            memory_bytes=500 << 20,
        )


def test_a_forest_of_a_hundred_classes_is_no_bomb(tmp_path: Path) -> None:
    """Its small numbers take a byte each in the file and eight in memory, some times over."""
    n, k = 6000, 100  # trees of one split, and classes
    trees = np.repeat(np.arange(n), 3)
    leaves = {"class_treeids": np.repeat(np.arange(n), 2 * k)}
    leaves["class_nodeids"] = np.tile(np.repeat([1, 2], k), n)
    leaves["class_ids"] = np.tile(np.arange(k), 2 * n)
    forest = node(
        "TreeEnsembleClassifier", ["x"], ["label", "p"], domain="ai.onnx.ml",
        nodes_treeids=trees.tolist(), nodes_nodeids=[0, 1, 2] * n, nodes_featureids=[0] * 3 * n,
        nodes_values=[0.0] * 3 * n, nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"] * n,
        nodes_truenodeids=[1, 0, 0] * n, nodes_falsenodeids=[2, 0, 0] * n,
        class_weights=[1.0 / n / k] * (2 * n * k), classlabels_int64s=list(range(k)),
        **{name: numbers.tolist() for name, numbers in leaves.items()},
    )  # fmt: skip
    graph = helper.make_graph(
        [forest], "g", [value("x", ["n", 4])], [value("label", None, INT), value("p", None)]
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    reply = run_limited(
        "kdcal_core.review.in_worker:inspect_model", {"path": str(path), "name": path.name}
    )
    assert reply["model"]["kind"] == "Tree ensemble (ONNX), 6,000 trees"
