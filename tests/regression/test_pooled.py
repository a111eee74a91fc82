"""Pooled local recalibration: its three groups by hand, and the tails that it keeps."""

import numpy as np
import pytest
from scipy.stats import norm

from kdcal_core.distributions import Normal
from kdcal_core.regression import LocalRecalibration, PooledRecalibration


def line(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (n, 2))
    mean = x[:, 0]
    return Normal(mean, np.full(n, 1.0)), mean + rng.normal(size=n) * (1 + np.abs(mean)), x


def nearest(points, at, k, own=None):
    """Rows and Epanechnikov weights, summing to 1, of the k points nearest to one."""
    distance = np.sqrt(((points - at) ** 2).sum(axis=1))
    if own is not None:
        distance[own] = np.inf
    rows = np.argsort(distance, kind="stable")[:k]
    weight = 1 - (distance[rows] / (1.001 * distance[rows].max())) ** 2
    return rows, weight / weight.sum()


def local(score, rows, weight):
    mean = weight @ score[rows]
    return mean, np.sqrt(weight @ (score[rows] - mean) ** 2)


def test_the_samples_are_those_of_the_three_groups_with_their_shares():
    n, k = 400, 20
    model, y, x = line(n, 0)
    new, _, at = line(3, 1)
    fitted = PooledRecalibration(k=k, smoothing="none", similar=0.2).fit(model, y, x)
    found = fitted.predict(new, at)
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    score = y - model.mean()  # the probits of the PIT values
    own = [local(score, *nearest(z, z[i], k, own=i)) for i in range(n)]
    residual = np.array([(score[i] - mean) / spread for i, (mean, spread) in enumerate(own)])
    for j in range(3):
        point = (at[j] - x.mean(axis=0)) / x.std(axis=0)
        near, w = nearest(z, point, k)
        far, v = nearest(z, point, 5 * k)
        alike, u = nearest(model.mean()[:, None], new.mean()[j], 50)  # an eighth of 400
        mean, spread = local(score, near, w)
        samples = np.concatenate([score[near], mean + spread * residual[far], score[alike]])
        expected = np.concatenate([0.4 * w, 0.4 * v, 0.2 * u]) @ (new.mean()[j] + samples)
        # a PIT value next to 1 has few digits left
        np.testing.assert_allclose(found[j : j + 1].mean(), expected, atol=1e-6)


def test_few_neighbours_keep_their_tails():
    model, y, x = line(2000, 2)
    new, truth, at = line(2000, 3)
    low, high = norm.interval(0.95, new.mean(), 1 + np.abs(new.mean()))
    error, held = {}, {}
    for kind in (LocalRecalibration, PooledRecalibration):
        found = kind(k=15).fit(model, y, x).predict(new, at)
        ends = found.interval(0.95)
        held[kind] = np.mean((ends[0] <= truth) & (truth <= ends[1]))
        error[kind] = np.mean(np.abs(ends[0] - low) + np.abs(ends[1] - high))
    assert 0.93 < held[PooledRecalibration] < 0.97
    assert error[PooledRecalibration] < 0.7 * error[LocalRecalibration]


def test_the_share_follows_what_the_fault_follows():
    rng = np.random.default_rng(4)
    x = rng.uniform(-2, 2, 800)
    model = Normal(rng.normal(size=800), 1.0)
    by_place = model.mean() + 4 * np.sign(x) + rng.normal(size=800)
    by_prediction = model.mean() * (1 + rng.normal(size=800))
    assert PooledRecalibration(k=30).fit(model, by_place, x).similar_ == 0.0
    assert PooledRecalibration(k=30).fit(model, by_prediction, x).similar_ == 0.75


@pytest.mark.parametrize("n", [2, 5, 30])
def test_a_handful_of_rows_is_enough(n):
    model, y, x = line(n, 5)
    found = PooledRecalibration().fit(model, y, x).predict(model, x)
    assert np.isfinite(found.crps(y)).all()
