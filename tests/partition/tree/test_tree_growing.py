"""The histogram tree against scikit-learn's, against brute force, and where the input is odd."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from kdcal_core.errors import InputError
from kdcal_core.partition.tree import Gini, Residual, RowStats, bin_inputs, grow_tree
from kdcal_core.store import encode


def few_values(rng, n, d, distinct=40):
    # eighths are exact in the float32 that scikit-learn computes in
    return rng.integers(0, distinct, (n, d)) / 8


def noisy_classes(rng, x, n_classes=2):
    score = x[:, 0] - 0.5 * x[:, 1] * (x[:, 2] > 2) + rng.normal(0, 1, len(x))
    return np.searchsorted(np.quantile(score, np.arange(1, n_classes) / n_classes), score)


def sides(tree):
    """Split column of every node and which training rows it holds, in preorder."""
    left, right, feature = tree.children_left, tree.children_right, tree.feature
    order, waiting = [], [0]
    while waiting:
        node = waiting.pop()
        order.append(node)
        if left[node] >= 0:
            waiting += [right[node], left[node]]
    return [int(max(feature[node], -1)) for node in order], order


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("leaves", [None, 6])
@pytest.mark.parametrize("seed", range(3))
def test_the_tree_is_scikit_learns_split_by_split(seed, leaves, n_classes):
    rng = np.random.default_rng(seed)
    x = few_values(rng, 2000, 6)
    y = noisy_classes(rng, x, n_classes)
    ours = grow_tree(bin_inputs(x), Gini(y), max_depth=4, min_rows=30, max_leaves=leaves)
    theirs = DecisionTreeClassifier(
        max_depth=4, min_samples_leaf=30, max_leaf_nodes=leaves, random_state=0
    ).fit(x, y)
    features, order = sides(theirs.tree_)
    assert ours.feature.tolist() == features
    assert ours.n.tolist() == theirs.tree_.n_node_samples[order].tolist()
    number = {node: leaf for leaf, node in enumerate(n for n in order if n in set(theirs.apply(x)))}
    assert ours.apply(x).tolist() == [number[node] for node in theirs.apply(x)]


def test_weights_count_as_repeated_rows():
    rng = np.random.default_rng(5)
    x = few_values(rng, 800, 3)
    y, times = noisy_classes(rng, x), rng.integers(1, 4, 800)
    rows = np.repeat(np.arange(800), times)
    binned = bin_inputs(x)
    weighted = grow_tree(binned, Gini(y, times), max_depth=3, min_rows=1)
    repeated = grow_tree(binned, Gini(y), max_depth=3, min_rows=1, rows=rows)
    copied = grow_tree(bin_inputs(x[rows]), Gini(y[rows]), max_depth=3, min_rows=1)
    assert weighted.feature.tolist() == repeated.feature.tolist() == copied.feature.tolist()
    assert weighted.threshold.tolist() == repeated.threshold.tolist()
    assert repeated.n.tolist() == copied.n.tolist()


def gini_loss(y, rows):
    shares = np.bincount(y[rows], minlength=2) / len(rows)
    return len(rows) * (1 - (shares**2).sum())


def best_by_brute_force(codes, columns, loss_of, min_rows):
    """Largest decrease of the loss over every threshold and subset, missing on either side."""
    n, best = len(codes), 0.0
    everything = loss_of(np.arange(n))
    for j, column in enumerate(columns):
        seen = [code for code in np.unique(codes[:, j]) if code != column.missing_code]
        if column.kind == "number":
            subsets = [set(seen[: k + 1]) for k in range(len(seen))]
        else:
            subsets = [
                {code for bit, code in enumerate(seen) if mask >> bit & 1}
                for mask in range(1, 2 ** len(seen))
            ]
        for subset in subsets:
            for missing_left in (False, True):
                goes = np.isin(codes[:, j], list(subset))
                goes |= missing_left & (codes[:, j] == column.missing_code)
                left, right = np.flatnonzero(goes), np.flatnonzero(~goes)
                if min(len(left), len(right)) >= min_rows:
                    best = max(best, everything - loss_of(left) - loss_of(right))
    return best


@st.composite
def tables(draw):
    n = draw(st.integers(4, 40))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    number = rng.integers(0, 5, n).astype(float)
    number[rng.random(n) < draw(st.sampled_from([0.0, 0.3]))] = np.nan
    names = np.array(["a", "b", "c", "d", None], dtype=object)
    category = names[rng.integers(0, draw(st.sampled_from([4, 5])), n)]
    frame = pd.DataFrame({"number": number, "category": category, "flag": rng.random(n) < 0.5})
    return frame, rng


@given(tables(), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_a_split_is_the_best_of_all(table, min_rows):
    frame, rng = table
    if min_rows > 1:
        # the best subset of categories is a cut along their order only where no size is asked for
        frame = frame[["number"]]
    y = rng.integers(0, 2, len(frame))
    residual, variance = rng.normal(size=len(frame)), rng.uniform(0.1, 0.3, len(frame))
    binned = bin_inputs(frame)
    for score, loss in (
        (Gini(y), lambda rows: gini_loss(y, rows)),
        (
            Residual(residual, variance),
            lambda rows: -(residual[rows].sum() ** 2) / variance[rows].sum(),
        ),
    ):
        best = best_by_brute_force(binned.codes, binned.columns, loss, min_rows)
        tree = grow_tree(binned, score, max_depth=1, min_rows=min_rows)
        leaf = tree.apply(frame)
        sides = [np.flatnonzero(leaf == side) for side in range(tree.n_leaves)]
        gain = loss(np.arange(len(frame))) - sum(loss(rows) for rows in sides)
        assert gain == pytest.approx(best, abs=1e-9)
        assert min(map(len, sides)) >= min(min_rows, len(frame))
        assert tree.n[tree.feature < 0].tolist() == [len(rows) for rows in sides]


def test_missing_values_go_where_they_gain_and_where_none_were_seen_to_the_larger_child():
    x = np.array([[0.0], [0], [0], [1], [1], [np.nan], [np.nan]])
    seen = grow_tree(bin_inputs(x), Gini(np.array([0, 0, 0, 1, 1, 1, 1])), min_rows=1)
    assert seen.apply(np.array([[np.nan]])).tolist() == [1]
    unseen = grow_tree(bin_inputs(x[:5]), Gini(np.array([0, 0, 0, 1, 1])), min_rows=1)
    assert unseen.apply(np.array([[np.nan]])).tolist() == [0]


def test_a_category_that_a_node_has_not_seen_goes_to_its_larger_child():
    frame = pd.DataFrame(
        {"side": [0.0] * 9 + [1.0] * 9, "job": [*"aaabbbbbb", *"ccccccccc"]},
    )
    y = np.array([1, 1, 1, 0, 0, 0, 0, 0, 0] + [1] * 9)
    tree = grow_tree(bin_inputs(frame[["side", "job"]]), Gini(y), max_depth=2, min_rows=1)
    # "b" is told from "a" and "c" at once; where only "a" and "b" were seen, "c" goes with "b"
    few = bin_inputs(frame)
    below = grow_tree(few, Gini(y), max_depth=1, min_rows=1, rows=np.arange(9))
    new = pd.DataFrame({"side": [0.0, 0.0, 0.0], "job": ["a", "b", "c"]})
    leaf = below.apply(new)
    assert leaf[2] == leaf[1] != leaf[0]
    assert tree.apply(new)[1] != tree.apply(new)[0]


def test_identical_rows_and_constant_columns_make_one_leaf():
    x = np.ones((50, 3))
    y = np.arange(50) % 2
    assert grow_tree(bin_inputs(x), Gini(y), min_rows=1).n_leaves == 1
    x[:, 1] = y
    tree = grow_tree(bin_inputs(x), Gini(y), min_rows=1)
    assert tree.feature.tolist() == [1, -1, -1]


def test_ties_go_to_the_first_column_and_the_lowest_threshold():
    x = np.array([0.0, 1, 2, 3] * 5)
    tree = grow_tree(
        bin_inputs(np.stack([x, x, -x], axis=1)), Gini(np.array([0, 1, 1, 0] * 5)), max_depth=1
    )
    assert tree.n_leaves == 1  # 20 rows leave no two leaves of 20
    tree = grow_tree(
        bin_inputs(np.stack([x, x, -x], axis=1)),
        Gini(np.array([0, 1, 1, 0] * 5)),
        max_depth=1,
        min_rows=1,
    )
    assert (tree.feature[0], tree.threshold[0]) == (0, 0)


def test_threads_change_nothing():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120_000, 20))
    residual = rng.normal(size=len(x)) + 0.1 * (x[:, 3] > 1)
    binned, score = bin_inputs(x), Residual(residual, np.ones(len(x)))
    one, two = (grow_tree(binned, score, max_depth=4, threads=threads) for threads in (1, 3))
    assert encode(one) == encode(two)


def test_columns_are_drawn_again_for_each_node_and_seed():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 8))
    y = (x.sum(axis=1) + rng.normal(size=3000) > 0).astype(int)
    binned = bin_inputs(x)
    trees = [grow_tree(binned, Gini(y), features=2, seed=seed) for seed in range(10)]
    assert len({int(tree.feature[0]) for tree in trees}) > 3
    again = grow_tree(binned, Gini(y), features=2, seed=3)
    assert again.feature.tolist() == trees[3].feature.tolist()


class LastCell:
    """A criterion of one's own: the values of cell 3, of two, that the left side gathers."""

    def __init__(self, cells, values):
        self.stats = RowStats(cells.astype(np.uint8), 4, values)

    def gain(self, left, right):
        return left[:, 3, 1] - right[:, 3, 1] + 0 * left[:, 3, 0]

    def order(self, sums):
        return -sums[..., 3, 1]


def test_a_criterion_of_ones_own_gets_sums_by_cell_and_value():
    rng = np.random.default_rng(0)
    n = 500
    x = rng.integers(0, 30, (n, 3)).astype(float)
    cells, values = rng.integers(0, 4, n), rng.normal(size=(n, 2))
    binned = bin_inputs(x)
    tree = grow_tree(binned, LastCell(cells, values), max_depth=1, min_rows=5)

    def gain(goes):
        wanted = np.where(cells == 3, values[:, 1], 0)
        return wanted[goes].sum() - wanted[~goes].sum()

    splits = [x[:, j] <= edge for j in range(3) for edge in range(29)]
    best = max(gain(goes) for goes in splits if min(goes.sum(), n - goes.sum()) >= 5)
    assert gain(tree.apply(x) == 0) == pytest.approx(best)
    named = bin_inputs(pd.DataFrame({"job": x[:, 0].astype(int).astype(str)}))
    tree = grow_tree(named, LastCell(cells, values), max_depth=1, min_rows=1)
    by_job = pd.Series(np.where(cells == 3, values[:, 1], 0)).groupby(x[:, 0]).sum()
    # categories in descending order of their sum: those above zero go left
    assert gain(tree.leaf_of_node[tree.left[0]] == tree.apply(named)) == pytest.approx(
        by_job.abs().sum()
    )


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (np.array([0, 4], dtype=np.uint8), np.ones((2, 1))),
        (np.array([0, 1]), np.ones((2, 1))),
        (np.zeros(2, dtype=np.uint8), np.ones(2)),
        (np.zeros(2, dtype=np.uint8), np.ones((3, 1))),
        (np.zeros(2, dtype=np.uint8), np.ones((2, 1), dtype=np.float32)),
    ],
)
def test_cells_and_values_that_do_not_fit_are_refused(cells, values):
    with pytest.raises(InputError, match="does not fit together"):
        RowStats(cells, 4, values)


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ({"max_depth": -1}, "depth"),
        ({"min_rows": 0}, "least number of rows"),
        ({"max_leaves": 0}, "leaves"),
        ({"features": 3}, "columns drawn"),
        ({"threads": 0}, "threads"),
        ({"rows": np.array([], dtype=int)}, "at least one"),
        ({"rows": np.array([0, 4])}, "from 0 to 3"),
        ({"rows": np.array([0.5])}, "whole numbers"),
    ],
)
def test_settings_out_of_range_are_reported(setting, text):
    binned = bin_inputs(np.arange(8.0).reshape(4, 2))
    with pytest.raises(InputError, match=text):
        grow_tree(binned, Gini(np.array([0, 1, 0, 1])), **setting)


def test_rows_of_inputs_and_labels_must_be_the_same():
    with pytest.raises(InputError, match="4 rows of inputs and 3"):
        grow_tree(bin_inputs(np.arange(4.0)[:, None]), Gini(np.array([0, 1, 0])))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Gini(np.array([0.5, 1.0])), "whole numbers"),
        (lambda: Gini(np.array([-1, 1])), "from 0"),
        (lambda: Gini(np.array([0, 1]), np.array([1.0, -1.0])), "row 2"),
        (lambda: Gini(np.array([0, 1]), np.zeros(2)), "not all zero"),
        (lambda: Gini(np.array([[0.5, np.nan]])), "finite"),
        (lambda: Residual(np.array([0.1, np.inf]), np.ones(2)), "row 2"),
        (lambda: Residual(np.array([0.1]), np.array([-1.0])), "not below zero"),
        (lambda: Residual(np.zeros(2), np.ones(3)), "one number a row"),
    ],
)
def test_bad_criteria_are_reported(make, text):
    with pytest.raises(InputError, match=text):
        make()
