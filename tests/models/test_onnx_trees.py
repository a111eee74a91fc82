"""ONNX tree ensembles: leaves against scikit-learn and by hand, and indices checked first."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from scipy.special import expit
from sklearn.datasets import load_iris
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kdcal_core.errors import InputError
from kdcal_core.models.onnx_model import load
from kdcal_core.models.onnx_trees import read_trees

ML = "ai.onnx.ml"


def _value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def forest_attributes(forest, classes):
    """A scikit-learn forest's arrays as the attributes of a TreeEnsembleClassifier."""
    a = {key: [] for key in (
        "nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_values", "nodes_modes",
        "nodes_truenodeids", "nodes_falsenodeids", "class_treeids", "class_nodeids", "class_ids",
        "class_weights",
    )}  # fmt: skip
    for t, estimator in enumerate(forest.estimators_):
        tree = estimator.tree_
        for i in range(tree.node_count):
            leaf = tree.children_left[i] < 0
            a["nodes_treeids"].append(t)
            a["nodes_nodeids"].append(i)
            a["nodes_featureids"].append(0 if leaf else int(tree.feature[i]))
            # The largest float32 that is not above the threshold keeps every decision.
            value = np.float32(tree.threshold[i])
            if value > tree.threshold[i]:
                value = np.nextafter(value, np.float32(-np.inf))
            a["nodes_values"].append(0.0 if leaf else float(value))
            a["nodes_modes"].append("LEAF" if leaf else "BRANCH_LEQ")
            a["nodes_truenodeids"].append(0 if leaf else int(tree.children_left[i]))
            a["nodes_falsenodeids"].append(0 if leaf else int(tree.children_right[i]))
            if leaf:
                share = tree.value[i, 0] / tree.value[i, 0].sum() / len(forest.estimators_)
                for k, weight in enumerate(share):
                    a["class_treeids"].append(t)
                    a["class_nodeids"].append(i)
                    a["class_ids"].append(k)
                    a["class_weights"].append(float(weight))
    return {**a, "post_transform": "NONE", "classlabels_strings": classes}


def tree_model(attributes, n_features, *, op="TreeEnsembleClassifier", before=(), source="x",
               zipmap=False, n_scores=3, inits=()):  # fmt: skip
    outputs = ["label", "scores"] if op == "TreeEnsembleClassifier" else ["scores"]
    nodes = [*before, helper.make_node(op, [source], outputs, domain=ML, **attributes)]
    results = [_value("scores", ["n", n_scores])]
    if op == "TreeEnsembleClassifier":
        results.insert(0, _value("label", ["n"], TensorProto.STRING))
    if zipmap:
        nodes.append(
            helper.make_node("ZipMap", ["scores"], ["probabilities"], domain=ML,
                             classlabels_strings=attributes["classlabels_strings"])
        )  # fmt: skip
        mapped = helper.make_sequence_type_proto(
            helper.make_map_type_proto(
                TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, None)
            )
        )
        results[-1] = helper.make_value_info("probabilities", mapped)
    graph = helper.make_graph(nodes, "g", [_value("x", ["n", n_features])], results, list(inits))
    ml = 5 if op == "TreeEnsemble" else 3
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(ML, ml)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def _load(model, tmp_path):
    path = tmp_path / "trees.onnx"
    path.write_bytes(model.SerializeToString())
    return load(path, name="trees.onnx")


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    X = X.astype(np.float32).astype(float)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


@pytest.fixture(scope="module", params=[RandomForestClassifier, ExtraTreesClassifier])
def forest(request, iris):
    return request.param(n_estimators=17, random_state=0).fit(*iris)


@pytest.mark.parametrize("zipmap", [True, False])
def test_a_forest_against_sklearn(tmp_path, iris, forest, zipmap):
    X, _ = iris
    attributes = forest_attributes(forest, list(forest.classes_))
    model = _load(tree_model(attributes, 4, zipmap=zipmap), tmp_path)
    np.testing.assert_array_equal(model.codes(X).leaves, forest.apply(X))
    assert model.codes(X).leaves.dtype == np.int32
    np.testing.assert_allclose(model.predict_proba(X), forest.predict_proba(X), atol=1e-5)
    assert (model.classes, model.named_classes) == (tuple(forest.classes_), True)
    assert model.kind == "Tree ensemble (ONNX), 17 trees"


def test_the_leaves_weights_give_the_ensembles_own_scores(tmp_path, iris, forest):
    X, _ = iris
    attributes = forest_attributes(forest, list(forest.classes_))
    model = _load(tree_model(attributes, 4), tmp_path)
    weight = {}
    for t, i, k, w in zip(
        *(attributes[f"class_{part}"] for part in ("treeids", "nodeids", "ids", "weights")),
        strict=True,
    ):
        weight[t, i, k] = w
    leaves = model.codes(X).leaves
    scores = [
        [sum(weight[t, leaf, k] for t, leaf in enumerate(row)) for k in range(3)] for row in leaves
    ]
    np.testing.assert_allclose(model.predict_proba(X), scores, atol=1e-5)


def test_trees_behind_a_scaler_see_scaled_rows(tmp_path, iris):
    X, y = iris
    pipeline = make_pipeline(StandardScaler(), RandomForestClassifier(9, random_state=0)).fit(X, y)
    scaler, forest = pipeline[0], pipeline[1]
    scale = helper.make_node("Scaler", ["x"], ["scaled"], domain=ML,
                             offset=scaler.mean_.tolist(),
                             scale=(1 / scaler.scale_).tolist())  # fmt: skip
    model = tree_model(
        forest_attributes(forest, list(forest.classes_)), 4, before=[scale], source="scaled"
    )
    wrapped = _load(model, tmp_path)
    scaled = (X.astype(np.float32) - scaler.mean_.astype(np.float32)) * (1 / scaler.scale_).astype(
        np.float32
    )
    np.testing.assert_array_equal(wrapped.codes(X).leaves, forest.apply(scaled))


def test_many_rows_are_streamed_in_blocks(tmp_path, iris, forest):
    X = np.random.default_rng(0).uniform(0, 7, size=(9_001, 4)).astype(np.float32).astype(float)
    model = _load(tree_model(forest_attributes(forest, list(forest.classes_)), 4), tmp_path)
    np.testing.assert_array_equal(model.codes(X).leaves, forest.apply(X))


# One stump for each kind of split, against the runtime itself

COMPARE = {
    "BRANCH_LEQ": np.less_equal,
    "BRANCH_LT": np.less,
    "BRANCH_GTE": np.greater_equal,
    "BRANCH_GT": np.greater,
    "BRANCH_EQ": np.equal,
    "BRANCH_NEQ": np.not_equal,
}


def stump(mode="BRANCH_LEQ", value=0.5, missing=0, **changes):
    attributes = {
        "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [1, 0, 0],
        "nodes_values": [value, 0.0, 0.0], "nodes_modes": [mode, "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0],
        "nodes_missing_value_tracks_true": [missing, 0, 0],
        "class_treeids": [0, 0, 0, 0], "class_nodeids": [1, 1, 2, 2], "class_ids": [0, 1, 0, 1],
        "class_weights": [0.9, 0.1, 0.2, 0.8], "classlabels_strings": ["no", "yes"],
        "post_transform": "NONE",
    }  # fmt: skip
    # An empty list is left out: an attribute without values has no type.
    return {
        k: v for k, v in {**attributes, **changes}.items() if not (isinstance(v, list) and not v)
    }


@pytest.mark.parametrize("missing", [0, 1])
@pytest.mark.parametrize("mode", list(COMPARE))
def test_every_kind_of_split_goes_where_the_runtime_goes(tmp_path, mode, missing):
    model = _load(tree_model(stump(mode, 0.1, missing), 2, n_scores=2), tmp_path)
    # 0.1 as float64 is a little below float32(0.1): the comparison is made in float32.
    x = np.array([-1, 0.1, float(np.float32(0.1)), 0.2, -0.0] + [np.nan] * missing)
    X = np.c_[np.zeros_like(x), x]
    yes = COMPARE[mode](x.astype(np.float32), np.float32(0.1)) | (np.isnan(x) & (missing == 1))
    np.testing.assert_array_equal(model.codes(X).leaves[:, 0], np.where(yes, 1, 2))
    np.testing.assert_allclose(model.predict_proba(X)[:, 0], np.where(yes, 0.9, 0.2), atol=1e-6)


def test_nan_is_refused_where_the_trees_have_no_place_for_it(tmp_path):
    model = _load(tree_model(stump(), 2, n_scores=2), tmp_path)
    with pytest.raises(InputError, match="missing value"):
        model.codes(np.array([[0.0, np.nan]]))


def test_trees_keep_the_order_of_the_file_and_their_own_node_ids(tmp_path):
    """Two trees with scattered ids, the second one's root not first: leaves keep their ids."""
    attributes = stump(
        nodes_treeids=[7, 7, 7, 3, 3, 3], nodes_nodeids=[5, 9, 2, 4, 1, 0],
        nodes_featureids=[1, 0, 0, 0, 0, 0], nodes_values=[0.5, 0, 0, 0, -1.0, 0],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF", "LEAF", "BRANCH_GT", "LEAF"],
        nodes_truenodeids=[9, 0, 0, 0, 4, 0], nodes_falsenodeids=[2, 0, 0, 0, 0, 0],
        nodes_missing_value_tracks_true=[],
        class_treeids=[7, 7, 3, 3], class_nodeids=[9, 2, 4, 0], class_ids=[0, 1, 0, 1],
        class_weights=[0.5, 0.5, 0.5, 0.5],
    )  # fmt: skip
    table = read_trees(helper.make_node("TreeEnsembleClassifier", ["x"], ["l", "s"], **attributes))
    X = np.array([[-2.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    assert table.apply(X).tolist() == [[9, 0], [9, 4], [2, 4]]


def test_boosted_trees_with_double_thresholds(tmp_path, iris):
    """A regressor whose sum goes through a sigmoid; thresholds given as a double tensor."""
    X, y = iris
    y = y == "virginica"
    boosted = GradientBoostingClassifier(n_estimators=6, random_state=0).fit(X, y)
    a = {key: [] for key in ("nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_modes",
         "nodes_truenodeids", "nodes_falsenodeids", "target_treeids", "target_nodeids",
         "target_ids")}  # fmt: skip
    values, weights = [], []
    for t, (estimator,) in enumerate(boosted.estimators_):
        tree = estimator.tree_
        leaf = tree.children_left < 0
        n = tree.node_count
        a["nodes_treeids"] += [t] * n
        a["nodes_nodeids"] += list(range(n))
        a["nodes_featureids"] += np.where(leaf, 0, tree.feature).tolist()
        a["nodes_modes"] += ["LEAF" if is_leaf else "BRANCH_LEQ" for is_leaf in leaf]
        a["nodes_truenodeids"] += np.where(leaf, 0, tree.children_left).tolist()
        a["nodes_falsenodeids"] += np.where(leaf, 0, tree.children_right).tolist()
        values += tree.threshold.tolist()
        a["target_treeids"] += [t] * int(leaf.sum())
        a["target_nodeids"] += np.flatnonzero(leaf).tolist()
        a["target_ids"] += [0] * int(leaf.sum())
        weights += (boosted.learning_rate * tree.value[leaf, 0, 0]).tolist()
    prior = float(boosted._raw_predict_init(X[:1])[0, 0])
    doubles = {
        "nodes_values_as_tensor": values, "target_weights_as_tensor": weights,
        "base_values_as_tensor": [prior],
    }  # fmt: skip
    trees = helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["raw"], domain=ML, n_targets=1, post_transform="NONE",
        **a, **{k: numpy_helper.from_array(np.array(v), k) for k, v in doubles.items()},
    )  # fmt: skip
    graph = helper.make_graph(
        [trees, helper.make_node("Cast", ["raw"], ["f"], to=TensorProto.FLOAT),
         helper.make_node("Sigmoid", ["f"], ["p"])],
        "g", [_value("x", ["n", 4], TensorProto.DOUBLE)], [_value("p", ["n", 1])],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(ML, 3)]
    model = _load(helper.make_model(graph, opset_imports=opsets, ir_version=9), tmp_path)
    np.testing.assert_array_equal(model.codes(X).leaves, boosted.apply(X)[:, :, 0])
    np.testing.assert_allclose(
        model.predict_proba(X)[:, 1], expit(boosted.decision_function(X)), atol=1e-6
    )


# The newer form of ai.onnx.ml 5


def tree5(**changes):
    """Two trees: a split of two splits, and a lone leaf written as a root with equal answers."""
    attributes = {
        "n_targets": 2, "aggregate_function": 1, "post_transform": 0, "tree_roots": [0, 3],
        "nodes_featureids": [0, 1, 1, 0],
        "nodes_splits": numpy_helper.from_array(np.array([0, -1, 1, 0], np.float32)),
        "nodes_modes": numpy_helper.from_array(np.array([0, 3, 1, 0], np.uint8)),
        "nodes_truenodeids": [1, 0, 2, 4], "nodes_trueleafs": [0, 1, 1, 1],
        "nodes_falsenodeids": [2, 1, 3, 4], "nodes_falseleafs": [0, 1, 1, 1],
        "leaf_targetids": [0, 1, 0, 1, 0],
        "leaf_weights": numpy_helper.from_array(np.array([1, 1, 1, 1, 0.5], np.float32)),
    }  # fmt: skip
    # An empty list is left out: an attribute without values has no type.
    return {
        k: v for k, v in {**attributes, **changes}.items() if not (isinstance(v, list) and not v)
    }


def test_the_newer_form_by_hand(tmp_path):
    nodes = helper.make_node("TreeEnsemble", ["x"], ["raw"], domain=ML, **tree5())
    graph = helper.make_graph(
        [nodes, helper.make_node("Softmax", ["raw"], ["p"], axis=-1)],
        "g", [_value("x", ["n", 2])], [_value("p", ["n", 2])],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(ML, 5)]
    model = _load(helper.make_model(graph, opset_imports=opsets, ir_version=9), tmp_path)
    X = np.array([[-1, 0], [-1, -1], [0, 5], [1, 0], [1, 1]])
    assert model.codes(X).leaves.tolist() == [[0, 4], [1, 4], [0, 4], [2, 4], [3, 4]]
    raw = np.array([[1.5, 0], [0.5, 1], [1.5, 0], [1.5, 0], [0.5, 1]])
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expit(raw[:, 1] - raw[:, 0]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tree_roots": [0, 9]}, "tree_roots"),
        ({"tree_roots": []}, "no nodes"),
        ({"tree_roots": [0]}, "same node"),
        ({"tree_roots": [0, 0, 3]}, "reached twice"),
        ({"nodes_truenodeids": [1, 0, 2, 5]}, "outside 0 to 4"),
        ({"nodes_falsenodeids": [4, 1, 3, 4]}, "outside 0 to 3"),
        ({"nodes_falsenodeids": [0, 1, 3, 4]}, "reached twice"),
        ({"nodes_featureids": [0, 1]}, "expected 2"),
        ({"leaf_targetids": [0, 1, 0, 1, 2]}, "leaf_targetids"),
        ({"leaf_targetids": [0, 1, 0, 1]}, "leaf_weights"),
        ({"nodes_modes": numpy_helper.from_array(np.array([0, 3, 6, 0], np.uint8))}, "nodes_modes"),
        ({"nodes_falsenodeids": [2, 0, 3, 4]}, "same node"),
    ],
)
def test_broken_newer_trees_are_refused(changes, message):
    node = helper.make_node("TreeEnsemble", ["x"], ["raw"], domain=ML, **tree5(**changes))
    with pytest.raises(InputError, match=message):
        read_trees(node)


# Broken trees: refused before the runtime sees them


@pytest.fixture
def no_trees_in_the_runtime(monkeypatch):
    """Fails where a session is made of a graph that holds trees."""
    import onnx
    import onnxruntime

    true_session = onnxruntime.InferenceSession

    def session(content, *args, **kwargs):
        ops = {node.op_type for node in onnx.load_from_string(content).graph.node}
        assert not any(op.startswith("TreeEnsemble") for op in ops)
        return true_session(content, *args, **kwargs)

    monkeypatch.setattr(onnxruntime, "InferenceSession", session)


BROKEN = [
    ({"nodes_truenodeids": [9, 0, 0]}, "does not exist"),
    ({"nodes_falsenodeids": [-2, 0, 0]}, "out of range"),
    ({"nodes_truenodeids": [0, 0, 0]}, "root"),
    ({"nodes_truenodeids": [2, 0, 0]}, "root"),
    ({"nodes_featureids": [2, 0, 0]}, "feature 2 of 2"),
    ({"nodes_featureids": [-1, 0, 0]}, "feature -1 of 2"),
    ({"nodes_featureids": [2**40, 0, 0]}, "feature"),
    ({"nodes_featureids": [1, 0]}, "nodes_featureids"),
    ({"nodes_values": [0.5]}, "nodes_values"),
    ({"nodes_modes": ["BRANCH_LEQ", "LEAF"]}, "nodes_modes"),
    ({"nodes_modes": ["BRANCH_XOR", "LEAF", "LEAF"]}, "unknown kind"),
    ({"nodes_falsenodeids": [2, 0]}, "nodes_falsenodeids"),
    ({"nodes_nodeids": [0, 1, 1]}, "same id"),
    ({"nodes_nodeids": [0, 1, 2**40]}, "out of range"),
    ({"nodes_treeids": [0, 0, 1]}, "does not exist"),
    ({"nodes_treeids": [], "nodes_nodeids": []}, "no nodes"),
    ({"nodes_missing_value_tracks_true": [1]}, "tracks_true"),
    ({"class_nodeids": [1, 1, 2, 3]}, "does not exist"),
    ({"class_treeids": [0, 0, 0, 5]}, "does not exist"),
    ({"class_ids": [0, 1, 0, 2]}, "class_ids"),
    ({"class_ids": [0, 1, 0, -1]}, "class_ids"),
    ({"class_weights": [1.0]}, "class_weights"),
    (
        # Node 1 and 2 feed each other, beside the tree of node 0.
        {"nodes_modes": ["LEAF", "BRANCH_LEQ", "BRANCH_LEQ"], "nodes_truenodeids": [0, 2, 1],
         "nodes_falsenodeids": [0, 2, 1]},
        "never reached",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), BROKEN)
def test_broken_trees_are_refused_before_the_runtime_sees_them(
    tmp_path, no_trees_in_the_runtime, changes, message
):
    with pytest.raises(InputError, match=message) as caught:
        _load(tree_model(stump(**changes), 2, n_scores=2), tmp_path)
    assert caught.value.file == "trees.onnx"


def test_features_behind_other_operators_are_checked_too(tmp_path, no_trees_in_the_runtime):
    """Four columns in, one kept: the split on the second reads beyond the row."""
    keep = helper.make_node("Gather", ["x", "kept"], ["one"], axis=1)
    kept = numpy_helper.from_array(np.array([2]), "kept")
    model = tree_model(stump(), 4, n_scores=2, before=[keep], source="one", inits=[kept])
    with pytest.raises(InputError, match="feature 1 of 1"):
        _load(model, tmp_path)


def test_trees_hidden_in_a_branch_are_refused(tmp_path, no_trees_in_the_runtime):
    hidden = helper.make_node("TreeEnsembleClassifier", ["x"], ["l", "s"], domain=ML, **stump())
    branch = helper.make_graph([hidden], "b", [], [_value("s", ["n", 2])])
    model = tree_model(stump(), 2, n_scores=2)
    model.graph.node.append(
        helper.make_node("If", ["c"], ["r"], then_branch=branch, else_branch=branch)
    )
    with pytest.raises(InputError, match="branch or loop"):
        _load(model, tmp_path)


def test_a_chain_of_ten_thousand_nodes_is_walked_without_recursion():
    n = 10_000
    split, leaf = np.arange(n), np.arange(n, 2 * n + 1)
    attributes = stump(
        nodes_treeids=[0] * (2 * n + 1), nodes_nodeids=[*split, *leaf],
        nodes_featureids=[0] * (2 * n + 1), nodes_values=[*split.astype(float), *[0.0] * (n + 1)],
        nodes_modes=["BRANCH_LEQ"] * n + ["LEAF"] * (n + 1),
        nodes_truenodeids=[*leaf[:n], *[0] * (n + 1)],
        nodes_falsenodeids=[*split[1:], leaf[n], *[0] * (n + 1)],
        nodes_missing_value_tracks_true=[],
    )  # fmt: skip
    attributes.update(class_treeids=[0], class_nodeids=[n], class_ids=[0], class_weights=[1.0])
    node = helper.make_node("TreeEnsembleClassifier", ["x"], ["l", "s"], **attributes)
    rows = np.array([[-5.0], [17.5], [1e9]])
    assert read_trees(node).apply(rows)[:, 0].tolist() == [n, n + 18, 2 * n]


def test_files_of_skl2onnx(tmp_path, iris):
    skl2onnx = pytest.importorskip("skl2onnx")
    from skl2onnx.common.data_types import FloatTensorType

    X, y = iris
    for model in (
        RandomForestClassifier(8, random_state=0),
        GradientBoostingClassifier(n_estimators=3, random_state=0),
    ):
        model.fit(X, y)
        types = [("x", FloatTensorType([None, 4]))]
        onnx_model = skl2onnx.to_onnx(model, initial_types=types, target_opset={"": 17, ML: 3})
        wrapped = _load(onnx_model, tmp_path)
        assert wrapped.classes == tuple(model.classes_)
        np.testing.assert_allclose(wrapped.predict_proba(X), model.predict_proba(X), atol=1e-5)
        if isinstance(model, RandomForestClassifier):
            np.testing.assert_array_equal(wrapped.codes(X).leaves, model.apply(X))
