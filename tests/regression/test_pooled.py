"""Pooled local recalibration: both neighbourhoods by hand."""

import numpy as np
from scipy.stats import norm

from kdcal_core.distributions import Normal
from kdcal_core.regression import LocalRecalibration, PooledRecalibration


def line(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (n, 2))
    mean = x[:, 0]
    return Normal(mean, np.full(n, 1.0)), mean + rng.normal(size=n) * (1 + np.abs(mean)), x


def nearest(points, at, k):
    """Rows and Epanechnikov weights, summing to 1, of the k points nearest to one."""
    distance = np.sqrt(((points - at) ** 2).sum(axis=1))
    rows = np.argsort(distance, kind="stable")[:k]
    weight = 1 - (distance[rows] / (1.001 * distance[rows].max())) ** 2
    return rows, weight / weight.sum()


def test_the_samples_are_those_of_both_neighbourhoods_with_their_shares():
    model, y, x = line(400, 0)
    new, _, at = line(3, 1)
    fitted = PooledRecalibration(k=20, smoothing="none", similar=0.25).fit(model, y, x)
    found = fitted.predict(new, at)
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    pit = norm.cdf(y - model.mean())
    for j in range(3):
        near, w = nearest(z, (at[j] - x.mean(axis=0)) / x.std(axis=0), 20)
        alike, v = nearest(model.mean()[:, None], new.mean()[j], 50)  # an eighth of 400
        samples = new.mean()[j] + norm.ppf(np.concatenate([pit[near], pit[alike]]))
        expected = np.concatenate([0.75 * w, 0.25 * v]) @ samples
        np.testing.assert_allclose(found[j : j + 1].mean(), expected, rtol=1e-9)


def test_few_neighbours_keep_their_tails():
    model, y, x = line(2000, 2)
    new, truth, at = line(2000, 3)
    held = {}
    for kind in (LocalRecalibration, PooledRecalibration):
        fitted = kind(k=15, smoothing="none").fit(model, y, x)
        low, high = fitted.predict(new, at).interval(0.95)
        held[kind] = np.mean((low <= truth) & (truth <= high))
    short, pooled = 0.95 - held[LocalRecalibration], 0.95 - held[PooledRecalibration]
    assert short > 0.05
    assert abs(pooled) < 0.7 * short
