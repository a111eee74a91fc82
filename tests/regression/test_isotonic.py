"""Isotonic recalibration: the ECDF of the PIT values as printed, and ends that stay open."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.isotonic import IsotonicRegression

from kdcal_core.distributions import Normal, Weighted
from kdcal_core.errors import InputError, InputWarning
from kdcal_core.regression import IsotonicRecalibration

ends = pytest.mark.parametrize("ends", ["open", "printed"])


def too_wide(n, seed=0):
    rng = np.random.default_rng(seed)
    mean = rng.normal(0, 5, n)
    return Normal(mean, np.full(n, 3.0)), rng.normal(mean + 0.5, 1.0)


def test_the_printed_map_is_isotonic_regression_of_the_ecdf():
    model, y = too_wide(200)
    fitted = IsotonicRecalibration("printed", smoothing="none").fit(model, y)
    pit = stats.norm.cdf(y, model.mean(), 3.0)
    target = [np.mean([other <= p for other in pit]) for p in pit]  # Torres et al., section 2
    library = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(pit, target)
    inside = np.linspace(pit.min(), pit.max(), 500)
    recalibrated = np.interp(inside, fitted.knots_, fitted.values_)
    np.testing.assert_allclose(recalibrated, library.predict(inside), atol=1e-12)


def test_new_rows_are_calibrated_and_sharper():
    model, y = too_wide(4000)
    fitted = IsotonicRecalibration().fit(model, y)
    new_model, new_y = too_wide(4000, seed=1)
    recalibrated = fitted.predict(new_model)
    assert stats.kstest(recalibrated.cdf(new_y), "uniform").statistic < 0.035
    assert recalibrated.crps(new_y).mean() < 0.75 * new_model.crps(new_y).mean()
    np.testing.assert_allclose(recalibrated.mean() - new_model.mean(), 0.5, atol=0.1)


def test_the_least_rows_leave_the_model_where_nothing_is_known():
    recalibrated = (
        IsotonicRecalibration().fit(Normal([0.0], 1.0), [0.0]).predict(Normal([0.0], 1.0))
    )
    # one outcome in the middle: half the mass on either side, as in the model
    np.testing.assert_allclose(
        recalibrated.cdf([[-2.0, 0.0, 3.0]]), Normal([0.0], 1.0).cdf([[-2.0, 0, 3]])
    )


def test_an_outcome_beyond_all_others_is_impossible_only_as_printed():
    model, y = too_wide(500)
    beyond = np.array([[model.mean()[0] + 12.0]])
    open_, printed = (
        IsotonicRecalibration(e).fit(model, y).predict(model[:1]) for e in ("open", "printed")
    )
    assert printed.cdf(beyond)[0, 0] == 1.0
    assert printed.log_density(beyond)[0, 0] == -np.inf
    assert np.isfinite(open_.log_density(beyond)[0, 0])


def test_open_ends_are_exact_for_a_new_row():
    # exchangeable rows: P(the new PIT lies below the i-th of n) is i / (n + 1), whatever n
    rng = np.random.default_rng(3)
    pit = rng.random((2000, 10)) ** 2
    below = []
    for known in pit:
        fitted = IsotonicRecalibration().fit(Normal(np.zeros(9), 1.0), stats.norm.ppf(known[:9]))
        below.append(fitted.predict(Normal([0.0], 1.0)).cdf(stats.norm.ppf(known[9:]))[0])
    counts = np.bincount((np.array(below) * 10).astype(int), minlength=10)
    assert stats.chisquare(counts).pvalue > 0.01


@ends
def test_ties_make_one_corner(ends):
    fitted = IsotonicRecalibration(ends).fit(Normal(np.zeros(4), 1.0), [0.0, 0.0, 0.0, 1.0])
    assert len(fitted.knots_) == 4
    assert fitted.values_[1] == 3 / (5 if ends == "open" else 4)


def test_outcomes_outside_the_support_are_counted_and_their_mass_kept():
    model = Weighted(np.tile([0.0, 1.0, 2.0], (10, 1)), np.ones(3))
    y = np.array([-5.0, -5.0, 9.0, 0.5, 0.5, 0.5, 1.5, 1.5, 1.5, 1.5])
    with pytest.warns(InputWarning, match="3 of 10 calibration outcomes lie outside"):
        fitted = IsotonicRecalibration("printed").fit(model, y)
    assert fitted.n_outside_ == 3
    corners = np.column_stack([fitted.knots_, fitted.values_])
    np.testing.assert_allclose(corners, [[0, 0], [1 / 3, 0.5], [2 / 3, 0.9], [1, 1]])


@ends
def test_all_outcomes_outside_leave_the_model(ends):
    with pytest.warns(InputWarning, match="2 of 2 calibration outcomes lie outside"):
        fitted = IsotonicRecalibration(ends).fit(Weighted([[0.0], [0.0]], [1.0]), [5.0, 6.0])
    assert fitted.knots_.tolist() == fitted.values_.tolist() == [0, 1]


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.sampled_from(["open", "printed"])
)
def test_the_map_rises_from_zero_to_one_for_any_outcomes(y, ends):
    model = Normal(np.zeros(len(y)), 1.0)
    recalibrated = IsotonicRecalibration(ends).fit(model, y).predict(model)
    at = np.linspace(-9, 9, 50)[np.newaxis]
    cdf = recalibrated.cdf(at)
    assert np.all(np.diff(cdf, axis=1) >= 0)
    assert cdf.min() >= 0
    assert cdf.max() <= 1


def test_bad_outcomes_name_their_row():
    model = Normal(np.zeros(3), 1.0)
    with pytest.raises(InputError, match="row 2"):
        IsotonicRecalibration().fit(model, [0.0, np.nan, 1.0])
    with pytest.raises(InputError, match="shape"):
        IsotonicRecalibration().fit(model, [0.0])
    with pytest.raises(InputError, match="numbers"):
        IsotonicRecalibration().fit(model, ["a", "b", "c"])


@pytest.mark.parametrize("n", [100, 1000])
@pytest.mark.parametrize("spread", [0.5, 1.0, 3.0])
def test_the_density_is_smooth_and_the_distribution_function_as_calibrated(n, spread):
    rng = np.random.default_rng(n)
    mean, new = rng.normal(size=n), rng.normal(size=4000)
    y, new_y = mean + rng.normal(size=n), new + rng.normal(size=4000)
    model, new_model = Normal(mean, spread), Normal(new, spread)
    smooth, printed = (
        IsotonicRecalibration(smoothing=smoothing).fit(model, y).predict(new_model)
        for smoothing in ("auto", "none")
    )
    best = -stats.norm.logpdf(new_y, new).mean()  # that of the truth
    assert -printed.log_density(new_y).mean() > best + 0.3  # what joined corners cost
    assert smooth.log_density(new_y).mean() > printed.log_density(new_y).mean() + 0.25
    if n == 1000:
        assert -smooth.log_density(new_y).mean() < best + 0.05
    assert smooth.crps(new_y).mean() < (1.002 if n == 1000 else 1.01) * printed.crps(new_y).mean()
    uniform = [stats.kstest(one.cdf(new_y), "uniform").statistic for one in (smooth, printed)]
    assert uniform[0] < uniform[1] + 0.005


@ends
def test_the_smooth_map_goes_through_corners_and_rises(ends):
    model, y = too_wide(700)
    smooth = IsotonicRecalibration(ends).fit(model, y)
    printed = IsotonicRecalibration(ends, smoothing="none").fit(model, y)
    assert len(smooth.knots_) < len(printed.knots_)
    assert (np.diff(smooth.knots_) > 0).all()
    assert (np.diff(smooth.values_) >= 0).all()
    shared = np.isin(printed.knots_, smooth.knots_)
    assert shared[[0, 1, -2, -1]].all()
    away = np.interp(printed.knots_, smooth.knots_, smooth.values_) - printed.values_
    assert np.abs(away).max() < 0.03
    assert (np.abs(away) < 1e-9).sum() > 15
