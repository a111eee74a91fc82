"""Trees as arrays: saved and read, pruned, and hostile ones refused."""

import dataclasses
import itertools
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdcal_core.errors import InputError
from kdcal_core.partition.tree import Gini, PartitionTree, bin_inputs, grow_tree, prune_tree
from kdcal_core.store import decode, encode


def grown(seed=0, depth=3, n=400):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "job": np.array(list("abcde"))[rng.integers(0, 5, n)],
            "z": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
        }
    )
    y = (rng.normal(size=n) + frame["x"] + frame["job"].isin(["a", "c"]) > 0.5).astype(int)
    return grow_tree(bin_inputs(frame), Gini(y), max_depth=depth, min_rows=10), frame


def test_arrays_there_and_back():
    tree, frame = grown()
    again = decode(PartitionTree, json.loads(json.dumps(encode(tree))))
    assert again.apply(frame).tolist() == tree.apply(frame).tolist()
    assert [again.words(leaf) for leaf in range(again.n_leaves)] == [
        tree.words(leaf) for leaf in range(tree.n_leaves)
    ]
    assert encode(again) == encode(tree)


def parts(tree):
    """The tree as a file holds it: JSON columns, and arrays that may be written."""
    arrays = {key: array.copy() for key, array in vars(tree).items() if key in NAMES}
    return {**arrays, "columns": encode(tree.columns)}


NAMES = [one.name for one in dataclasses.fields(PartitionTree) if one.name != "columns"]


def changed(tree, name, change):
    found = parts(tree)
    found[name] = change(found[name])
    return found


def put(at, value):
    def change(array):
        array[at] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("feature", put(0, 3)),
        ("feature", put(0, -2)),
        ("feature", put(-1, 0)),
        ("feature", lambda array: array.astype(np.int64)),
        ("feature", lambda array: array[:-1]),
        ("threshold", put(0, 300)),
        ("threshold", put(0, -2)),
        ("left", put(0, 0)),
        ("left", put(0, 10**6)),
        ("left", put(0, -5)),
        ("right", put(0, 1)),
        ("parent", put(1, 2)),
        ("parent", put(0, 0)),
        ("leaf_of_node", put(-1, 50)),
        ("n", put(0, -1)),
        ("n", put(0, 10**9)),
        ("subsets", lambda array: array[:, :-1]),
        ("subsets", lambda array: array.astype(np.uint8)),
        ("missing_left", lambda array: array.astype(np.uint8)),
        ("columns", lambda columns: columns[:-1]),
        ("columns", lambda columns: []),
        ("columns", lambda columns: [7]),
        ("columns", lambda columns: [columns]),
        ("columns", lambda columns: [{"name": "a"}]),
    ],
)
def test_arrays_that_contradict_each_other_are_refused(name, change):
    tree, _ = grown()
    with pytest.raises((InputError, TypeError)):
        decode(PartitionTree, changed(tree, name, change))


def test_an_array_that_lacks_is_noticed():
    found = parts(grown()[0])
    del found["left"]
    with pytest.raises(TypeError, match="left"):
        decode(PartitionTree, found)


@given(st.integers(0, 10**6), st.sampled_from(["feature", "threshold", "left", "right", "parent"]))
@settings(max_examples=200, deadline=None)
def test_whatever_is_altered_a_row_still_finds_a_leaf_or_the_tree_is_refused(seed, name):
    tree, frame = grown()
    rng = np.random.default_rng(seed)
    at, value = rng.integers(0, tree.n_nodes), rng.integers(-3, 12)
    try:
        altered = decode(PartitionTree, changed(tree, name, put(at, value)))
    except InputError:
        return
    leaf = altered.apply(frame)
    assert leaf.min() >= 0
    assert leaf.max() < altered.n_leaves


@pytest.mark.parametrize(
    "described",
    [
        {"kind": "strange"},
        {"edges": [2.0, 1.0]},
        {"edges": [float("inf")]},
        {"edges": list(range(254))},
        {"edges": [[1.0]]},
        {"kind": "category", "categories": ["a", "a"]},
        {"kind": "category", "categories": [1, 2]},
        {"kind": "category", "pooled": True},
        {"kind": "category", "categories": ["a"], "edges": [1.0]},
        {"pooled": 1},
        {"name": 3},
        {"more": 3},
    ],
)
def test_columns_that_contradict_themselves_are_refused(described):
    tree = grow_tree(bin_inputs(np.ones((5, 1))), Gini(np.zeros(5, dtype=int)))
    whole = {"name": "a", "kind": "number", "edges": [], "categories": [], "pooled": False}
    column = whole | {"has_missing": False}
    sound = {**column, "edges": np.array(column["edges"], dtype=np.float64)}
    assert decode(PartitionTree, parts(tree) | {"columns": [sound]}).n_leaves == 1
    column |= described
    column["edges"] = np.array(column["edges"], dtype=np.float64)
    with pytest.raises((InputError, TypeError)):
        decode(PartitionTree, parts(tree) | {"columns": [column]})


def test_codes_of_other_columns_are_refused():
    tree, frame = grown()
    with pytest.raises(InputError, match="other columns"):
        tree.apply(bin_inputs(frame.head(50)))
    with pytest.raises(InputError, match="other columns"):
        tree.apply(bin_inputs(np.ones((3, 1))))
    assert tree.apply(bin_inputs(frame.head(50), like=tree.columns)).shape == (50,)


def subtrees(tree, node=0):
    """Every set of nodes that makes a tree from a node on."""
    yield [node]
    if tree.feature[node] >= 0:
        for left, right in itertools.product(
            list(subtrees(tree, tree.left[node])), list(subtrees(tree, tree.right[node]))
        ):
            yield [node, *left, *right]


@pytest.mark.parametrize("penalty", [0.0, 0.7])
@pytest.mark.parametrize("seed", range(5))
def test_pruning_finds_the_best_of_all_subtrees(seed, penalty):
    tree, frame = grown(seed)
    losses = np.random.default_rng(seed).uniform(0, 1, tree.n_nodes) * 2.0**-tree.depth
    pruned = prune_tree(tree, losses, penalty=penalty)

    def loss_of(kept):
        leaves = [n for n in kept if tree.feature[n] < 0 or tree.left[n] not in kept]
        return sum(losses[n] + penalty for n in leaves), sorted(kept)

    _, kept = min(map(loss_of, subtrees(tree)))
    assert pruned.n_nodes == len(kept)
    assert pruned.n.tolist() == tree.n[kept].tolist()
    # rows of a pruned leaf are those of all leaves that were below it
    whole, coarse = tree.apply(frame), pruned.apply(frame)
    for leaf in range(tree.n_leaves):
        assert len(set(coarse[whole == leaf])) == 1


def test_pruning_nothing_gives_back_the_tree():
    tree, _ = grown()
    same = tree.pruned(range(tree.n_nodes))
    assert encode(same) == encode(tree)
    assert tree.pruned([]).n_leaves == 1


@pytest.mark.parametrize("keep", [[1], [3], [99], [-1]])
def test_nodes_that_make_no_tree_are_reported(keep):
    tree, _ = grown()
    with pytest.raises(InputError, match=r"make no tree|Nodes to keep"):
        tree.pruned(keep)


@pytest.mark.parametrize("loss", [np.zeros(2), np.full(15, np.nan)])
def test_pruning_needs_a_loss_for_each_node(loss):
    tree, _ = grown()
    with pytest.raises(InputError, match="finite loss"):
        prune_tree(tree, loss)
