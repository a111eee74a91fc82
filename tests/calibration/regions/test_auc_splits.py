"""Splits that raise the AUC: against every pair of rows, and the tree they grow."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from kdcal_core.calibration.regions import HeterogeneousCalibrator
from kdcal_core.calibration.regions.one_tree import AucGain, calibrated_auc
from kdcal_core.partition.tree import bin_inputs, grow_tree

counts = st.lists(st.integers(0, 4), min_size=1, max_size=6)


def auc_of_pairs(value, y):
    """Durfee et al., Definition 2.1 over every pair of a positive and a negative row."""
    positive, negative = value[y][:, None], value[~y][None, :]
    return ((positive > negative) + 0.5 * (positive == negative)).mean()


def ratio_by_cell(cell, y):
    """Lemma 9.1's value of each row: the share of positives in its cell."""
    return np.array([y[cell == c].mean() for c in cell])


@given(st.data())
def test_cells_have_the_auc_of_their_rows(data):
    p = np.array(data.draw(counts))
    n = np.array(data.draw(st.lists(st.integers(0, 4), min_size=len(p), max_size=len(p))))
    found = calibrated_auc(p, n)
    if not p.sum() or not n.sum():
        assert found == 0.5
        return
    cell = np.repeat(np.arange(len(p)), p + n)
    y = np.concatenate([np.arange(a + b) < a for a, b in zip(p, n, strict=True)])
    np.testing.assert_allclose(found, auc_of_pairs(ratio_by_cell(cell, y), y), atol=1e-12)
    pairs = sum(abs(p[i] * n[j] - p[j] * n[i]) for i in range(len(p)) for j in range(i))
    np.testing.assert_allclose(found, 0.5 + 0.5 * pairs / (p.sum() * n.sum()), atol=1e-12)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=50)
def test_no_other_value_of_the_cells_has_a_larger_auc_and_cutting_never_lowers_it(seed):
    rng = np.random.default_rng(seed)
    cell, y = rng.integers(0, 5, 40), rng.random(40) < 0.4
    y[:2] = True, False
    p, n = np.bincount(cell[y], minlength=5), np.bincount(cell[~y], minlength=5)
    best = calibrated_auc(p, n)
    assert all(auc_of_pairs(rng.normal(size=5)[cell], y) <= best + 1e-12 for _ in range(20))
    finer = 2 * cell + rng.integers(0, 2, 40)
    cut = calibrated_auc(np.bincount(finer[y], minlength=10), np.bincount(finer[~y], minlength=10))
    assert cut >= best - 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_the_first_split_is_the_one_that_raises_the_auc_most(seed):
    rng = np.random.default_rng(seed)
    n, bins = 60, 3
    X = rng.integers(0, 4, (n, 3)).astype(float)
    score = rng.normal(size=n)
    y = rng.random(n) < 1 / (1 + np.exp(-score - 2 * (X[:, 1] > 1)))
    edges = np.quantile(score, [1 / 3, 2 / 3])
    bin_of = np.searchsorted(edges, score)
    before = auc_of_pairs(ratio_by_cell(bin_of, y), y)
    lifts = {
        (column, cut): auc_of_pairs(ratio_by_cell(2 * bin_of + (X[:, column] > cut), y), y) - before
        for column in range(3)
        for cut in range(3)
        if 5 <= (X[:, column] > cut).sum() <= n - 5
    }
    criterion = AucGain(score, y, bins=bins)
    tree = grow_tree(bin_inputs(X), criterion, max_depth=1, min_rows=5)
    leaf = tree.apply(X)
    lift = auc_of_pairs(ratio_by_cell(2 * bin_of + leaf, y), y) - before
    np.testing.assert_allclose(lift, max(lifts.values()), atol=1e-12)
    sums = np.stack(
        [np.bincount(criterion.stats.cells[leaf == side], minlength=2 * bins) for side in (0, 1)]
    )[..., None].astype(float)
    np.testing.assert_allclose(criterion.gain(sums[0], sums[1]), lift * n, rtol=1e-9)


def test_a_deeper_gain_counts_the_rest_as_one_region():
    rng = np.random.default_rng(0)
    n = 80
    score, y = rng.normal(size=n), rng.random(n) < 0.4
    region = rng.integers(0, 3, n)  # left, right and the rest
    criterion = AucGain(score, y, bins=2)
    bin_of = (score > np.median(score)).astype(int)
    sums = [
        np.bincount(criterion.stats.cells[region == r], minlength=4)[:, None].astype(float)
        for r in range(2)
    ]
    after = auc_of_pairs(ratio_by_cell(3 * bin_of + region, y), y)
    before = auc_of_pairs(ratio_by_cell(2 * bin_of + (region == 2), y), y)
    np.testing.assert_allclose(criterion.gain(*sums), (after - before) * n, rtol=1e-9)


def test_categories_are_ordered_by_what_their_scores_do_not_tell():
    """The second category has more positives, but only because its scores are higher."""
    score = np.repeat([-1.0, 1.0], 8)
    y = np.array([1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0], bool)
    category = np.array([0] * 2 + [1] * 2 + [0] * 4 + [1] * 8)
    criterion = AucGain(score, y, bins=2)
    sums = np.stack(
        [np.bincount(criterion.stats.cells[category == c], minlength=4) for c in (0, 1)]
    )[..., None].astype(float)
    order = criterion.order(sums)
    assert order[0] > order[1]
    assert y[category == 0].mean() < y[category == 1].mean()


def test_it_lifts_the_auc_of_new_rows():
    rng = np.random.default_rng(0)
    X, score = rng.normal(size=(6000, 4)), rng.normal(size=6000)
    y = (rng.random(6000) < 1 / (1 + np.exp(-score - 3 * (X[:, 2] > 0) + 1.5))).astype(int)
    p = 1 / (1 + np.exp(-3 * score))
    proba = np.c_[1 - p, p]
    fitted = HeterogeneousCalibrator("auc").fit(proba[:3000], y[:3000], X[:3000])
    found = fitted.predict_proba(proba[3000:], X[3000:])[:, 1]
    assert roc_auc_score(y[3000:], found) > roc_auc_score(y[3000:], p[3000:]) + 0.08
    assert "column 3" in fitted.regions_[0].words
