"""Partial pooling: what a region borrows, and that it pays."""

import numpy as np
import pytest
from scipy.special import expit, logit

from kdcal_core.calibration.regions import Hierarchy, Scores, fit_maps
from kdcal_core.calibration.regions.pooling import SPREAD, pool


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


def with_a_region_of_one_class(n=995, extra=0.0):
    """Five regions, in the last of which no row is positive but one of weight ``extra``."""
    rng = np.random.default_rng(0)
    leaf = np.repeat(np.arange(5), n)
    score = rng.normal(0.5 * (leaf == 4), 1.5)
    y = (rng.random(len(leaf)) < expit(0.7 * score + np.linspace(-1, 1, 5)[leaf])).astype(int)
    y[leaf == 4] = 0
    weight = np.ones(len(leaf))
    if extra:
        y[-1], weight[-1], score[-1] = 1, extra, -1.0
    p = expit(score)
    return Scores(np.c_[1 - p, p], y, weight), leaf


@pytest.mark.parametrize("kind", ["platt", "beta"])
def test_rows_of_one_class_do_not_turn_the_order_round(kind):
    """They move the offset, and the slopes are those of the region above."""
    scores, leaf = with_a_region_of_one_class()
    fit = fit_maps(kind, scores, leaf, Hierarchy.flat(6))
    *slopes, offset = (values[0] for values in fit.parameters.values())
    for slope in slopes:
        np.testing.assert_allclose(slope[4], slope[5], atol=1e-6)  # the last has no rows
    assert offset[4] < offset[:4].min()
    assert not fit.falling[4]
    q = len(fit.parameters)
    assert (q - 1) / q < fit.borrowed[0, 4] < 1


def test_a_first_row_of_the_other_class_is_no_cliff():
    at = np.c_[1 - expit(np.linspace(-3, 3, 13)), expit(np.linspace(-3, 3, 13))]
    found = []
    for extra in (0.0, 1e-6, 1e-3, 0.03, 0.2, 0.5, 1.0):
        scores, leaf = with_a_region_of_one_class(extra=extra)
        fit = fit_maps("platt", scores, leaf, Hierarchy.flat(5))
        found.append(logit(fit.maps.predict(at, np.full(13, 4))[:, 1]))
    jumps = np.abs(np.diff(found, axis=0)).max(axis=1)
    assert jumps[0] < 0.01
    assert jumps[1] < 0.05
    assert jumps.max() < 1.5


class Parabolas:
    """Losses ``(theta - best)' curvature (theta - best) / 2`` of some nodes."""

    def __init__(self, best, curvature):
        self.best, self.curvature = best, curvature

    def of_nodes(self, nodes):
        return Parabolas(self.best[nodes], self.curvature[nodes])

    def __call__(self, theta, wanted):
        gradient = np.einsum("mij,mj->mi", self.curvature, theta - self.best)
        return (
            0.5 * np.einsum("mi,mi->m", theta - self.best, gradient),
            gradient,
            self.curvature.copy(),
        )

    def bound(self):
        return self.curvature


def learned_by_hand(losses, theta, share, spread):
    """The docstring of the module, one node after the other: sisters under node 0."""
    offset = np.zeros((2, 2))
    offset[1, 1] = 1.0
    n = len(theta) - 1
    for _ in range(100):
        total, mean = 2 * SPREAD**2 * np.eye(2), []
        for v in range(1, n + 1):
            count = share[v] + (1 - share[v]) * offset
            text = losses.curvature[v] * count
            slope = losses.curvature[v] @ (theta[v] - losses.best[v])
            slope[0] *= share[v]
            inverse = np.linalg.inv(text + np.linalg.inv(spread))
            drawn = text @ theta[v] - slope + np.linalg.inv(spread) @ theta[0]
            mean.append(inverse @ drawn - theta[0])
            total += n / (n - 1) * np.outer(mean[-1], mean[-1]) + inverse
        found = total / (n + 2)
        moved = np.abs(found - spread).max() / np.trace(spread)
        spread = found
        if moved < 1e-4:
            break
    return spread


def test_a_pooled_fit_is_the_minimum_that_the_module_names():
    """Sisters with parabolas for losses, some of which count less for their slope."""
    rng = np.random.default_rng(0)
    m = 9
    root = np.array([[1.0, 0.0]])
    best = root + rng.normal(size=(m, 2)) * [0.5, 1.0]
    a = rng.normal(size=(m, 5, 2))
    losses = Parabolas(best, np.einsum("mki,mkj->mij", a, a))
    share = np.append(1.0, rng.random(m - 1))
    pooled = pool(losses.of_nodes, root, Hierarchy.flat(m - 1), share)
    # an answer that repeats itself: the spread of the fits, and the fits of the spread
    spread = SPREAD**2 * np.eye(2)
    for _ in range(3):
        theta = fits_by_hand(losses, root[0], share, spread)
        before, spread = spread, learned_by_hand(losses, theta, share, spread)
        if np.abs(spread - before).max() / np.trace(before) < 0.01:
            break
    np.testing.assert_allclose(pooled.spread[0], spread, rtol=1e-7)
    np.testing.assert_allclose(
        pooled.theta, fits_by_hand(losses, root[0], share, spread), rtol=1e-7
    )


def fits_by_hand(losses, root, share, spread):
    theta = np.tile(root, (len(share), 1))
    for v in range(1, len(share)):
        counted = share[v] * spread
        counted[1, 1] = spread[1, 1]
        pull = np.linalg.inv(counted)
        theta[v] = np.linalg.solve(
            losses.curvature[v] + pull, losses.curvature[v] @ losses.best[v] + pull @ root
        )
    return theta
