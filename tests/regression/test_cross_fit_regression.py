"""Cross-fitted distributions: the rows' order, the folds' independence, mixed families."""

import numpy as np
import pytest
from scipy import stats

from kdcal_core.data.splits import random_folds
from kdcal_core.distributions import Gamma, Normal, Weighted, randomised_pit
from kdcal_core.distributions.wrapped import concatenate
from kdcal_core.errors import InputError, warn
from kdcal_core.regression import IsotonicRecalibration, Recalibrator, cross_fitted


class Spy:
    """Predicts the mean of the outcomes it was fitted on, and warns as a fit may."""

    def fit(self, distribution, y, space=None):
        warn("few rows")
        assert space is None or len(space) == len(y)
        self.mean = y.mean()
        return self

    def predict(self, distribution, space=None):
        return Normal(np.full(len(distribution), self.mean) + distribution.mean(), 1.0)


def test_each_row_gets_the_fit_of_the_other_folds_in_the_rows_order():
    rng = np.random.default_rng(0)
    y, mean = rng.normal(size=(2, 103))
    space = rng.normal(size=(103, 2))
    recalibrated = cross_fitted(Spy, Normal(mean, 1.0), y, space, folds=4, seed=7)
    fold = random_folds(103, 4, 7)
    expected = [y[fold != fold[i]].mean() + mean[i] for i in range(103)]
    np.testing.assert_allclose(recalibrated.mean(), expected)


def test_the_seed_alone_decides():
    rng = np.random.default_rng(1)
    model, y = Normal(np.zeros(60), 1.0), rng.normal(1, 2, 60)
    first, again, other = (
        cross_fitted(IsotonicRecalibration, model, y, seed=seed).ppf(0.9) for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_cross_fitted_isotonic_is_calibrated_on_its_own_rows():
    rng = np.random.default_rng(2)
    recalibrated = cross_fitted(
        IsotonicRecalibration, Normal(np.zeros(3000), 1.0), y := rng.normal(1, 2, 3000)
    )
    assert stats.kstest(recalibrated.cdf(y), "uniform").pvalue > 0.05


def test_progress_can_cancel():
    def stop(share, note):
        if share > 0.3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cross_fitted(Spy, Normal(np.zeros(20), 1.0), np.zeros(20), progress=stop)


def test_fewer_rows_than_folds_are_refused():
    with pytest.raises(InputError, match="folds"):
        cross_fitted(Spy, Normal(np.zeros(3), 1.0), np.zeros(3), folds=5)


def test_recalibrators_follow_the_protocol():
    assert isinstance(IsotonicRecalibration(), Recalibrator)


def test_parts_of_any_family_answer_as_one():
    rng = np.random.default_rng(4)
    parts = [
        Normal([1.0, 5.0], [1.0, 2.0]),
        Gamma(3.0, [2.0, 4.0, 8.0]),
        Weighted(rng.normal(size=(2, 9)), np.ones(9)),
    ]
    order = rng.permutation(7)
    both = concatenate(parts, order)
    y = rng.gamma(2, 2, 7)
    one_by_one = np.empty(7)
    for method in ("cdf", "cdf_left", "ppf", "log_density", "crps"):
        at = y / 20 if method == "ppf" else y
        for place, (part, i) in zip(
            order, [(p, i) for p in parts for i in range(len(p))], strict=True
        ):
            one_by_one[place] = getattr(part[i : i + 1], method)(at[place])[0]
        np.testing.assert_array_equal(getattr(both, method)(at), one_by_one)
    assert both.ppf(np.array([[0.1, 0.5, 0.9]])).shape == (7, 3)
    assert not both.continuous
    assert both[both.mean() > 3].mean().min() > 3
    chosen = both[[6, 0, 0]]
    np.testing.assert_array_equal(chosen.std(), both.std()[[6, 0, 0]])
    np.testing.assert_array_equal(chosen.cdf(y[[6, 0, 0]]), both.cdf(y)[[6, 0, 0]])
    assert randomised_pit(both, y, 0).shape == (7,)
    assert both.sample(4, 0).shape == (7, 4)
    assert len(both[:0]) == 0


def test_an_order_that_forgets_a_row_is_refused():
    with pytest.raises(InputError, match="once"):
        concatenate([Normal([0.0, 1.0], 1.0)], [0, 0])
