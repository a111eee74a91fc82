"""Rules in words, and that they say exactly which rows are in a leaf."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdcal_core.errors import InputError
from kdcal_core.partition.tree import (
    Condition,
    Gini,
    InputColumn,
    bin_inputs,
    grow_tree,
)


def some_frame(seed, n=300, missing=0.15):
    rng = np.random.default_rng(seed)
    age = rng.integers(17, 90, n).astype(float)
    hours = rng.normal(40, 10, n)
    job = np.array(["Sales", "Craft", "Clerk", "Farm", "Tech", None], dtype=object)
    hours[rng.random(n) < missing] = np.nan
    frame = pd.DataFrame(
        {"age": age, "hours": hours, "job": job[rng.integers(0, 6, n)], "flag": rng.random(n) < 0.4}
    )
    return frame, rng.integers(0, 2, n)


def obeys(frame, condition):
    """Rows that a condition lets through, by what it says of itself and not by codes."""
    values = frame[condition.column.name]
    missing = values.isna().to_numpy()
    if condition.column.kind == "category":
        passes = values.astype(object).map(str).isin(condition.categories).to_numpy()
    else:
        low = -np.inf if condition.low is None else condition.low
        high = np.inf if condition.high is None else condition.high
        some = condition.allowed[: condition.column.bins].any()
        passes = some & ((values > low) & (values <= high)).to_numpy()
    return np.where(missing, condition.missing, passes)


@given(st.integers(0, 500), st.integers(1, 6), st.integers(1, 30))
@settings(max_examples=40, deadline=None)
def test_a_rule_says_which_rows_are_in_its_leaf(seed, depth, min_rows):
    frame, y = some_frame(seed)
    tree = grow_tree(bin_inputs(frame), Gini(y), max_depth=depth, min_rows=min_rows)
    leaf = tree.apply(frame)
    for number in range(tree.n_leaves):
        inside = np.ones(len(frame), dtype=bool)
        for condition in tree.rule(number):
            inside &= obeys(frame, condition)
        assert inside.tolist() == (leaf == number).tolist()
    assert len({tree.words(number) for number in range(tree.n_leaves)}) == tree.n_leaves


def numbers(has_missing=False):
    return InputColumn("age", "number", np.array([28.0, 41.0, 12500.0]), has_missing=has_missing)


def codes(*allowed):
    return np.isin(np.arange(256), allowed)


@pytest.mark.parametrize(
    ("column", "allowed", "words"),
    [
        (numbers(), codes(0), "age is up to 28"),
        (numbers(), codes(1), "age is above 28 and up to 41"),
        (numbers(), codes(3, 4), "age is above 12,500"),
        (numbers(True), codes(3, 4), "age is above 12,500 or missing"),
        (numbers(True), codes(4), "age is missing"),
        (numbers(True), codes(0, 1, 2, 3), "age is not missing"),
    ],
)
def test_words_of_numbers(column, allowed, words):
    assert Condition(column, allowed).words == words


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([0, 1, 1], ("promo is 0", "promo is 1")),
        ([0.0, 1.0, np.nan], ("promo is 0", "promo is 1")),
        ([0, 1, 2], ("promo is up to 0", "promo is above 0 and up to 1")),
        ([0.0, 0.7, 0.7], ("promo is up to 0", "promo is above 0")),
        ([-1, 1, 1], ("promo is up to 0", "promo is above 0")),
    ],
)
def test_numbers_0_and_1_are_named(values, words):
    (column,) = bin_inputs(pd.DataFrame({"promo": values})).columns
    column.check()
    assert tuple(Condition(column, codes(code)).words for code in (0, 1)) == words
    assert Condition(column, codes(0, 1)).words == (
        "promo is not missing" if len(column.edges) == 1 else "promo is up to 1"
    )


def test_what_is_not_0_and_1_is_refused_as_such():
    for column in (
        InputColumn("x", "number", np.array([0.5]), binary=True),
        InputColumn("x", "category", categories=("0", "1"), binary=True),
    ):
        with pytest.raises(InputError, match="contradicts itself"):
            column.check()


def jobs(n=7, has_missing=False):
    return InputColumn(
        "job", "category", categories=tuple("ABCDEFGHIJ"[:n]), has_missing=has_missing
    )


@pytest.mark.parametrize(
    ("column", "allowed", "words"),
    [
        (jobs(), codes(0), "job is A"),
        (jobs(), codes(0, 2), "job is A or C"),
        (jobs(), codes(0, 2, 3), "job is A, C or D"),
        (jobs(), codes(0, 1, 2, 3, 4), "job is not F or G"),
        (jobs(10), codes(0, 1, 2, 3), "job is A, B, C or 1 more"),
        (jobs(10), codes(0, 1, 2, 3, 4), "job is A, B, C or 2 more"),
        (jobs(2), codes(1), "job is B"),
        (jobs(2, True), codes(2), "job is missing"),
        (jobs(4, True), codes(0, 1, 2, 3), "job is not missing"),
        (jobs(4, True), codes(0, 4), "job is A or missing"),
        (InputColumn("job", "category", categories=("", "x", "y")), codes(0), 'job is ""'),
    ],
)
def test_words_of_categories(column, allowed, words):
    assert Condition(column, allowed).words == words


@pytest.mark.parametrize(
    ("column", "allowed", "label"),
    [
        (jobs(), codes(0, 2), "job is A or C"),
        (jobs(), codes(0, 2, 3), "job is A, C or 1 more"),
        (jobs(10), codes(0, 1, 2, 3, 4), "job is A, B or 3 more"),
        (jobs(10), codes(0, 1, 2, 3, 4, 5, 6), "job is not H, I or 1 more"),
        (numbers(), codes(1), "age is above 28 and up to 41"),
    ],
)
def test_where_there_is_little_room_two_names_are_reported(column, allowed, label):
    assert Condition(column, allowed).label == label


def test_conditions_on_one_column_are_merged():
    x = np.repeat(np.arange(8.0), 5)[:, None]
    y = np.repeat([0, 1, 0, 1, 0, 1, 0, 1], 5)
    tree = grow_tree(bin_inputs(x), Gini(y), max_depth=8, min_rows=5)
    assert [tree.words(leaf) for leaf in range(tree.n_leaves)] == [
        "column 1 is up to 0",
        *[f"column 1 is above {i} and up to {i + 1}" for i in range(6)],
        "column 1 is above 6",
    ]
    assert all(len(tree.rule(leaf)) == 1 for leaf in range(tree.n_leaves))


def test_a_tree_of_one_leaf_holds_all_rows():
    tree = grow_tree(bin_inputs(np.ones((5, 1))), Gini(np.zeros(5, dtype=int)))
    assert tree.words(0) == "all rows"
    assert tree.rule(0) == ()
    assert [node.words for node in tree.nodes()] == ["all rows"]
    assert tree.depth.tolist() == [0]


def test_nodes_for_drawing_tell_the_branch_above_them():
    frame, y = some_frame(3)
    tree = grow_tree(bin_inputs(frame), Gini(y), max_depth=3)
    nodes = tree.nodes()
    for node in nodes[1:]:
        above = nodes[node.parent]
        assert node.depth == above.depth + 1 == tree.depth[node.node]
        assert above.leaf is None
        siblings = [other for other in nodes if other.parent == node.parent]
        assert sum(other.n for other in siblings) == above.n
        assert len({other.words for other in siblings}) == 2
    assert [node.leaf for node in nodes if node.leaf is not None] == list(range(tree.n_leaves))


def test_the_way_to_a_leaf():
    frame, y = some_frame(4)
    tree = grow_tree(bin_inputs(frame), Gini(y), max_depth=3)
    counts = np.bincount(tree.apply(frame), minlength=tree.n_leaves)
    assert (tree.paths.T @ counts).tolist() == tree.n.tolist()
    for leaf in range(tree.n_leaves):
        way = tree.ancestors(leaf)
        assert way[0] == 0
        assert tree.leaf_of_node[way[-1]] == leaf
        assert tree.parent[way[1:]].tolist() == way[:-1].tolist()
        assert np.flatnonzero(tree.paths[leaf]).tolist() == way.tolist()


@pytest.mark.parametrize("leaf", [-1, 99])
def test_a_leaf_that_is_not_there(leaf):
    frame, y = some_frame(0)
    with pytest.raises(InputError, match="no leaf"):
        grow_tree(bin_inputs(frame), Gini(y)).words(leaf)
