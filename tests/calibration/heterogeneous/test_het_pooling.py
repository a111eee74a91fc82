"""Partial pooling: what a region borrows, and that it pays."""

import numpy as np
import pytest
from scipy.special import expit, logit

from kdcal_core.calibration.heterogeneous import Hierarchy, Scores, fit_maps


def simulated(n, n_regions, spread, seed):
    """Rows whose true log odds are a line of the score, another one in every region."""
    rng = np.random.default_rng(seed)
    lines = np.array([0.8, 0.0]) + rng.normal(size=(n_regions, 2)) * spread

    def draw(m):
        leaf = rng.integers(0, n_regions, m)
        score = rng.normal(0.3, 2, m)
        truth = expit(lines[leaf, 0] * score + lines[leaf, 1])
        p = expit(score)
        y = (rng.random(m) < truth).astype(int)
        return Scores(np.c_[1 - p, p], y, np.ones(m)), leaf, truth

    return draw(n), draw(4000)


def expected_loss(kind, train, test, *, regions=True, pooling=True):
    scores, leaf, _ = train
    n_regions = int(leaf.max()) + 1
    if regions:
        fit = fit_maps(kind, scores, leaf, Hierarchy.flat(n_regions), pooling=pooling)
        found = fit.maps.predict(test[0].proba, test[1])
    else:
        fit = fit_maps(kind, scores, leaf * 0, Hierarchy.flat(1))
        found = fit.maps.predict(test[0].proba, test[1] * 0)
    p, truth = np.clip(found[:, 1], 1e-9, 1 - 1e-9), test[2]
    return -np.mean(truth * np.log(p) + (1 - truth) * np.log1p(-p))


@pytest.mark.parametrize("kind", ["platt", "beta", "temperature", "histogram"])
@pytest.mark.parametrize("rows", [10, 100, 1000])
@pytest.mark.parametrize("spread", [(0.0, 0.0), (0.4, 1.0)])
def test_pooled_regions_are_no_worse_than_one_map_nor_than_maps_on_their_own(kind, rows, spread):
    losses = []
    for seed in range(6):
        draws = simulated(8 * rows, 8, spread, seed)
        losses.append(
            [
                expected_loss(kind, *draws),
                expected_loss(kind, *draws, regions=False),
                expected_loss(kind, *draws, pooling=False),
            ]
        )
    pooled, everywhere, alone = np.mean(losses, axis=0)
    assert pooled < min(everywhere, alone) + 0.003
    if spread[1] > 0 and rows == 100 and kind != "temperature":
        assert pooled < min(everywhere, alone)


def test_a_region_borrows_less_the_more_rows_it_has_without_a_jump():
    rng = np.random.default_rng(0)
    n = np.array([2000, 2000, 2000, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512])
    leaf = np.repeat(np.arange(len(n)), n)
    score = rng.normal(0, 1.5, len(leaf))
    y = (rng.random(len(leaf)) < expit(score * 0.7 + np.sin(leaf))).astype(int)
    p = expit(score)
    fit = fit_maps("platt", Scores(np.c_[1 - p, p], y, np.ones(len(y))), leaf, Hierarchy.flat(13))
    borrowed = fit.borrowed[0, 3:]
    assert (np.diff(borrowed) < 0).all()
    assert borrowed[0] > 0.85
    assert borrowed[-1] < 0.2
    assert np.abs(np.diff(borrowed)).max() < 0.25


def test_one_more_row_moves_a_small_region_a_little():
    """No cliff: the first row, the first of the other class, the twentieth: none is special."""
    (scores, leaf, _), _ = simulated(3000, 4, (0.3, 0.6), 1)
    at = np.c_[1 - expit(np.linspace(-3, 3, 13)), expit(np.linspace(-3, 3, 13))]
    rows = np.flatnonzero(leaf == 3)[:60]
    others = np.flatnonzero(leaf != 3)
    last = None
    for n in range(len(rows)):
        kept = np.concatenate([others, rows[:n]])
        part = Scores(scores.proba[kept], scores.y[kept], np.ones(len(kept)))
        fit = fit_maps("platt", part, leaf[kept], Hierarchy.flat(4))
        found = logit(fit.maps.predict(at, np.full(13, 3))[:, 1])
        if last is not None:
            assert np.abs(found - last).max() < 0.6
        last = found


def test_separable_regions_stay_finite():
    p = np.tile([0.2, 0.4, 0.6, 0.8], 50)
    leaf = np.repeat([0, 1], 100)
    y = np.where(leaf == 0, p > 0.5, np.random.default_rng(0).random(200) < p).astype(int)
    fit = fit_maps("platt", Scores(np.c_[1 - p, p], y, np.ones(200)), leaf, Hierarchy.flat(2))
    assert 1 < fit.parameters["slope"][0, 0] < 30
    assert np.isfinite(fit.maps.parameters).all()


def test_a_deeper_region_leans_on_the_node_above_and_not_on_the_root():
    """Two branches that differ; a leaf without rows takes after its branch."""
    rng = np.random.default_rng(0)
    tree = Hierarchy(np.array([-1, 0, 0, 1, 1, 2, 2]), np.array([3, 4, 5, 6]))
    leaf = np.repeat([0, 2, 3], 1500)
    score = rng.normal(0, 1.5, len(leaf))
    y = (rng.random(len(leaf)) < expit(score + np.where(leaf == 0, 1.5, -1.5))).astype(int)
    p = expit(score)
    fit = fit_maps("platt", Scores(np.c_[1 - p, p], y, np.ones(len(y))), leaf, tree)
    offset = fit.parameters["offset"][0]
    assert offset[1] == pytest.approx(offset[0], abs=0.3)
    assert offset[1] > 1
