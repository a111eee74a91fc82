"""Normal distributions far too narrow: Algorithm 1 holds where PIT values would be 0 or 1."""

from __future__ import annotations

import numpy as np
import pytest

from kdcal_core.distributions import Gamma, Normal
from kdcal_core.regression import (
    GlobalRecalibration,
    IsotonicRecalibration,
    LocalRecalibration,
    select_neighbours,
)
from kdcal_core.regression.recalibrators import widened, widening_of


def narrow(n, seed, factor):
    """Outcomes whose true spread is ``factor`` times the stated one."""
    rng = np.random.default_rng(seed)
    x, stated = rng.uniform(0, 1, n), rng.uniform(0.5, 2, n)
    return x, Normal(10 * x, stated), 10 * x + factor * stated * rng.standard_normal(n)


@pytest.mark.parametrize("factor", [1.0, 10.0, 1000.0])
@pytest.mark.parametrize(
    "method",
    [LocalRecalibration(400), GlobalRecalibration(), IsotonicRecalibration()],
    ids=lambda method: type(method).__name__,
)
def test_intervals_hold_however_narrow_the_stated_ones_were(method, factor):
    x, stated, y = narrow(3000, 0, factor)
    x_new, stated_new, y_new = narrow(3000, 1, factor)
    low, high = method.fit(stated, y, x).predict(stated_new, x_new).interval(0.95)
    assert np.mean((low <= y_new) & (y_new <= high)) == pytest.approx(0.95, abs=0.015)
    assert np.isfinite([low, high]).all()


def test_the_sample_is_that_of_algorithm_1_by_hand():
    x, stated, y = narrow(200, 2, 50.0)
    local = LocalRecalibration(200, kernel="uniform", smoothing="none").fit(stated, y, x)
    assert local.widening_ > 1
    assert local.n_outside_ == 0
    recalibrated = local.predict(Normal([3.0], 0.5), [0.5])
    z = (y - stated.mean()) / stated.std()
    np.testing.assert_allclose(recalibrated.samples[0], np.sort(3.0 + 0.5 * z), rtol=1e-9)


def test_nothing_is_widened_without_need():
    x, stated, y = narrow(500, 3, 1.0)
    assert widening_of(stated, y) == 1.0
    assert widened(stated, 1.0) is stated
    gamma = Gamma(2.0, np.ones(2))
    assert widening_of(gamma, np.array([1.0, 1e9])) == 1.0
    assert widened(gamma, 3.0) is gamma
    assert LocalRecalibration(50).fit(stated, y, x).widening_ == 1.0


def test_neighbours_are_chosen_on_the_same_scale():
    x, stated, y = narrow(600, 4, 30.0)
    found = select_neighbours(stated, y, {"x": x}, [20, 200], folds=3)
    assert found.model_crps == pytest.approx(stated.crps(y).mean())
    assert found.helps
    assert found.crps[0, 1] == pytest.approx(
        Normal(stated.mean(), 30 * stated.std()).crps(y).mean(), rel=0.05
    )
