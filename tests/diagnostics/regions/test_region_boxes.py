"""The best box of two columns, and trees that begin with it."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from kdcal_core.diagnostics.regions import find_pit_regions, find_regions
from kdcal_core.diagnostics.regions.boxes import BoxGrid
from kdcal_core.diagnostics.targets import confidence_target
from kdcal_core.partition.tree import Cut, Residual, bin_inputs, grow_tree


def inside(binned, box):
    """The rows that the cuts lead to."""
    rows = np.ones(len(binned), dtype=bool)
    for cut in box.cuts:
        rows &= cut.goes_left[binned.codes[:, cut.feature]] == cut.then_left
    return rows


@pytest.mark.parametrize("seed", range(4))
def test_the_best_box_is_the_best_of_all(seed):
    """Against every box of a table with few values, a category and missing numbers."""
    rng = np.random.default_rng(seed)
    n, least = 400, 15
    frame = pd.DataFrame(
        {
            "a": rng.integers(0, 4, n).astype(float),
            "b": rng.integers(0, 3, n),
            "c": rng.choice(["x", "y", "z"], n),
        }
    )
    frame.loc[rng.random(n) < 0.15, "a"] = np.nan
    residual, variance = rng.normal(size=n), rng.uniform(0.5, 1.5, n)
    values = np.column_stack([residual, variance])
    binned = bin_inputs(frame)
    box = BoxGrid(binned, np.arange(n)).best(values, least, 2)
    codes = binned.codes.astype(int)

    def gain(rows):
        sides = [values[side].sum(axis=0) for side in (rows, ~rows, rows | True)]
        one, other, both = (r * r / v if v else 0.0 for r, v in sides)
        return one + other - both

    def intervals(at):
        k = codes[:, at].max() + 1
        runs = [(i, i) for i in range(k)] if at == 2 else product(range(k), range(k))
        return [(lo, hi) for lo, hi in runs if lo <= hi] + [(0, k - 1)]

    assert box is not None
    found = inside(binned, box)
    assert gain(found) - box.price == pytest.approx(box.worth)
    assert found.sum() >= least
    of_two = [(0, 1), (0, 2), (1, 2)]
    best = 0.0
    for a, b in of_two:
        for (lo_a, hi_a), (lo_b, hi_b) in product(intervals(a), intervals(b)):
            in_a = (codes[:, a] >= lo_a) & (codes[:, a] <= hi_a)
            in_b = (codes[:, b] >= lo_b) & (codes[:, b] <= hi_b)
            # the parts that the cuts leave over, in their order
            parts = [codes[:, a] > hi_a, codes[:, a] < lo_a] if a < 2 else [~in_a]
            parts += [in_a & (codes[:, b] > hi_b), in_a & (codes[:, b] < lo_b)]
            if b == 2:
                parts[-2:] = [in_a & ~in_b]
            rows = in_a & in_b
            if not rows.all() and all(not 0 < p.sum() < least for p in [*parts, rows]):
                best = max(best, gain(rows) if rows.any() else 0.0)
    # the best by gain cannot be better by more than the difference of the prices
    assert gain(found) <= best + 1e-9
    assert best - gain(found) <= 2 * 2 * np.log(15) + 2 * np.log(3)


def test_a_box_in_the_middle_of_two_columns_is_found():
    """No single cut shows it, because its rows lie in the middle of both."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(4000, 6)), columns=[f"x{i + 1}" for i in range(6)])
    score = rng.uniform(0.6, 0.95, 4000)
    faulty = ((X["x2"].abs() < 0.67) & (X["x5"].abs() < 0.32)).to_numpy()
    right = (rng.random(4000) < score - 0.25 * faulty).astype(int)
    found = find_regions(confidence_target(score, right), X, redraws=60)
    worst = found.faulty[0]
    assert {one.column.name for one in worst.conditions} == {"x2", "x5"}
    assert faulty[found.leaf == worst.leaf].mean() > 0.6
    assert all(region.n >= 126 for region in found.regions)  # twice the root of the rows

    u = np.where(faulty, rng.random(4000) / 2, rng.random(4000))
    worst = find_pit_regions(u, X).faulty[0]
    assert {one.column.name for one in worst.conditions} == {"x2", "x5"}
    assert worst.fault == "too high"


def test_a_tree_begins_with_the_cuts_that_are_named():
    X = np.column_stack([np.arange(80.0) % 8, np.arange(80) // 10])
    binned = bin_inputs(X)
    low = np.arange(256) <= 3
    first = [Cut(0, low, True), Cut(1, low, False)]
    score = Residual(np.where(X[:, 1] == 7, 1.0, 0.0), np.ones(80))
    tree = grow_tree(binned, score, max_depth=1, min_rows=1, first=first)
    words = [tree.words(leaf) for leaf in range(tree.n_leaves)]
    assert words == [
        "column 1 is up to 3; column 2 is up to 3",
        "column 1 is up to 3; column 2 is above 3",
        "column 1 is above 3",
    ]
