"""Nearest neighbour regression against a loop, and what it refuses."""

import numpy as np
import pytest

from kdcal_core.errors import InputError
from kdcal_core.regression import NeighbourRegression


@pytest.mark.parametrize("kernel", ["epanechnikov", "uniform"])
def test_it_is_the_weighted_outcomes_of_the_nearest(kernel):
    rng = np.random.default_rng(0)
    space, y = rng.normal(size=(60, 2)) * [1.0, 100.0], rng.normal(size=60)
    new = rng.normal(size=(7, 2)) * [1.0, 100.0]
    predicted = NeighbourRegression(9, kernel).fit(None, y, space).predict(None, new)
    for row, mean in zip(new, predicted.mean(), strict=True):
        distance = np.sqrt((((space - row) / space.std(axis=0)) ** 2).sum(axis=1))
        near = np.argsort(distance)[:9]
        weight = np.ones(9)
        if kernel == "epanechnikov":
            weight = 1 - (distance[near] / (distance[near].max() * (1 + 1e-3))) ** 2
        assert np.isclose(mean, np.average(y[near], weights=weight))


def test_k_is_capped_and_constant_columns_count_for_nothing():
    y, space = np.arange(5.0), np.column_stack([np.arange(5.0), np.full(5, 3.0)])
    fitted = NeighbourRegression(k=1000, kernel="uniform").fit(None, y, space)
    assert fitted.k_ == 5
    assert fitted.predict(None, [[0.0, 99.0]]).mean().tolist() == [2.0]
    one = NeighbourRegression(k=1).fit(None, y, space)
    assert one.predict(None, [[3.2, -7.0]]).mean().tolist() == [3.0]


def test_bad_spaces_are_refused():
    fitted = NeighbourRegression(k=2).fit(None, np.arange(5.0), np.arange(5.0))
    with pytest.raises(InputError, match="missing"):
        fitted.predict(None)
    with pytest.raises(InputError, match="2 columns"):
        fitted.predict(None, np.zeros((1, 2)))
    with pytest.raises(InputError, match="row 2"):
        NeighbourRegression().fit(None, [1.0, np.inf], [0.0, 1.0])
