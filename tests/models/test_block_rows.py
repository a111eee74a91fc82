"""Blocks of rows: every row once, in a size that a short trial finds."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

from kdcal_core.models import block_rows
from kdcal_core.models.block_rows import FEW_CELLS, FEWEST, timed_blocks
from kdcal_core.models.onnx_model import load

MANY = FEW_CELLS  # cells of a row, so that any number of rows is worth a trial


def _sizes(n_rows, most, seconds_of):
    """Sizes of the blocks if a block of m rows takes ``seconds_of(m)``."""
    now, sizes = [0.0], []
    for block in timed_blocks(n_rows, most, MANY, lambda: now[0]):
        assert block.start == sum(sizes)
        sizes.append(block.stop - block.start)
        now[0] += seconds_of(sizes[-1])
    assert sum(sizes) == n_rows
    return sizes


def test_blocks_grow_while_that_is_faster_and_then_keep_the_best_size():
    # beyond 64 rows the caches overflow
    sizes = _sizes(2000, 8192, lambda m: (1.0 + m / 16) * (1 if m <= 64 else 4))
    assert sizes[:6] == [FEWEST, FEWEST, 2 * FEWEST, 64, 128, 64]
    assert set(sizes[5:-1]) == {64}


def test_the_first_block_does_not_count_for_it_prepares_the_runtime():
    slow_start = iter([100.0])
    sizes = _sizes(1008, 8192, lambda m: next(slow_start, 0.0) + m)  # no size is better
    assert set(sizes[:-1]) == {FEWEST, 2 * FEWEST}
    assert sizes.count(2 * FEWEST) == 1


@pytest.mark.parametrize("n_rows", [0, 1, FEWEST, 33, 100, 5000])
@pytest.mark.parametrize("most", [1, FEWEST, 60, 8192])
def test_every_row_is_in_one_block_and_none_is_too_large(n_rows, most):
    sizes = _sizes(n_rows, most, lambda m: 1.0)
    assert max(sizes) <= most


@pytest.mark.parametrize("n_rows", [100, 1003, 5000])
@pytest.mark.parametrize("most", [40, 100, 8192])
@pytest.mark.parametrize("seconds", [lambda m: 1.0, lambda m: m, lambda m: m * m])
def test_only_the_first_block_has_an_odd_size(n_rows, most, seconds):
    """It is the same whatever the clock says, so that no bit of an answer depends on the clock."""
    first, *others = _sizes(n_rows, most, seconds)
    assert first == FEWEST + n_rows % FEWEST
    assert all(size % FEWEST == 0 for size in others)


def test_few_cells_are_not_tried():
    assert [one.stop for one in timed_blocks(10_000, 8192, FEW_CELLS // 10_000)] == [8192, 10_000]


@pytest.fixture
def convolutional(tmp_path):
    """Images of 16 x 16, two convolutions, 214 classes."""
    rng = np.random.default_rng(0)

    def given(name, *shape):
        return numpy_helper.from_array(rng.normal(size=shape).astype(np.float32) * 0.2, name)

    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["image"]),
        helper.make_node("Conv", ["image", "w1"], ["c1"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c2"], ["r2"]),
        helper.make_node("GlobalAveragePool", ["r2"], ["mean"]),
        helper.make_node("Flatten", ["mean"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w3"], ["z"]),
        helper.make_node("Softmax", ["z"], ["p"], axis=1),
    ]
    weights = [given("w1", 16, 1, 3, 3), given("w2", 16, 16, 3, 3), given("w3", 16, 214)]
    shape = numpy_helper.from_array(np.array([-1, 1, 16, 16]), "shape")
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 256])],
        [helper.make_tensor_value_info("p", TensorProto.FLOAT, ["n", 214])],
        [shape, *weights],
    )
    opsets = [helper.make_opsetid("", 17)]
    path = tmp_path / "images.onnx"
    save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    return load(path, name="images.onnx"), rng.normal(size=(1344, 256)).astype(np.float32)


def test_probabilities_do_not_depend_on_the_blocks(convolutional, monkeypatch):
    model, X = convolutional
    tried = model.predict_proba(X)
    assert len(X) * model._core.inputs.cost.row_cells > FEW_CELLS  # so blocks were tried
    monkeypatch.setattr(block_rows, "FEW_CELLS", np.inf)
    whole = model.predict_proba(X)
    assert tried.shape == (1344, 214)
    np.testing.assert_allclose(tried, whole, rtol=1e-5, atol=1e-8)
