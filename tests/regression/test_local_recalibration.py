"""Algorithm 1 of Torres et al.: by loops, at its edges, and on the line of section 4.1."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from kdcal_core.distributions import LogNormal, Normal, Weighted
from kdcal_core.errors import InputError, InputWarning
from kdcal_core.regression import GlobalRecalibration, LocalRecalibration
from kdcal_core.simulation import heteroscedastic
from tests.benchmarks.bench_ensembles import two_peaks


def algorithm_1(base, y, space, new, new_space, k=None, radius=None):
    """Samples and weights of every new row, by loops."""
    pit = base.cdf(y)
    answers = []
    for j in range(len(new)):
        d = np.sqrt(((space - new_space[j]) ** 2).sum(axis=1))
        near = sorted(range(len(d)), key=lambda i: (d[i], i))
        if radius is None:
            near = near[:k]
            u = d[near[-1]] * 1.001
        else:
            near, u = [i for i in near if d[i] <= radius], radius
        weights = np.array([1 - (d[i] / u) ** 2 for i in near])
        samples = np.array([new[j : j + 1].ppf(pit[i])[0] for i in near])
        answers.append((samples, weights / weights.sum()))
    return answers


def rows(n, columns, seed):
    rng = np.random.default_rng(seed)
    space = rng.normal(size=(n, columns))
    y = space[:, 0] ** 2 + rng.normal(size=n)
    return Normal(np.full(n, 1.0) + 0.1 * space[:, 0], 1.5), y, space


@pytest.mark.parametrize("settings", [{"k": 30}, {"k": 1}, {"k": 200}, {"radius": 2.5}])
@pytest.mark.parametrize("columns", [2, 10])
def test_local_recalibration_is_algorithm_1(settings, columns):
    base, y, space = rows(200, columns, seed=0)
    new, _, points = rows(12, columns, seed=1)
    points[:] *= 0.2  # near enough to many rows for any radius
    if columns == 10 and "radius" in settings:
        settings = {"radius": 3.5}
    local = LocalRecalibration(standardise=False, smoothing="none", **settings).fit(base, y, space)
    recalibrated = local.predict(new, points)
    for j, (samples, weights) in enumerate(algorithm_1(base, y, space, new, points, **settings)):
        one = recalibrated[j : j + 1]
        assert one.mean()[0] == pytest.approx((weights * samples).sum(), rel=1e-9)
        order = np.argsort(samples)
        place = np.searchsorted(np.cumsum(weights[order]), 0.3)
        assert one.ppf(0.3)[0] == pytest.approx(samples[order][place], rel=1e-9)
        assert one.cdf(0.7)[0] == pytest.approx(weights[samples <= 0.7].sum(), abs=1e-9)


def test_local_space_is_standardised_by_the_fit_rows():
    base, y, space = rows(300, 3, seed=2)
    new, _, points = rows(20, 3, seed=3)
    units = np.array([1.0, 1000.0, 1e-6])
    plain = LocalRecalibration(k=40).fit(base, y, space).predict(new, points)
    scaled = (
        LocalRecalibration(k=40).fit(base, y, space * units + 5).predict(new, points * units + 5)
    )
    np.testing.assert_allclose(scaled.mean(), plain.mean(), rtol=1e-6)
    constant = np.c_[space, np.full(300, 0.1)]
    wider = LocalRecalibration(k=40).fit(base, y, constant)
    np.testing.assert_allclose(
        wider.predict(new, np.c_[points, np.full(20, 0.1)]).mean(), plain.mean(), rtol=1e-9
    )


def test_local_with_all_rows_and_uniform_weights_is_global():
    base, y, space = rows(150, 2, seed=4)
    new, _, points = rows(10, 2, seed=5)
    local = LocalRecalibration(k=150, kernel="uniform", smoothing="none").fit(base, y, space)
    local = local.predict(new, points)
    everywhere = GlobalRecalibration().fit(base, y).predict(new)
    for answer in (lambda d: d.mean(), lambda d: d.std(), lambda d: d.ppf(0.05)):
        np.testing.assert_allclose(answer(local), answer(everywhere), rtol=1e-9)
    np.testing.assert_allclose(local.crps(np.zeros(10)), everywhere.crps(np.zeros(10)))


def test_local_of_one_calibration_row():
    with pytest.warns(InputWarning, match="There are 1 calibration rows"):
        local = LocalRecalibration(2, smoothing="none").fit(Normal([0.0], 1.0), [1.0], [0.0])
    recalibrated = local.predict(Normal([5.0, 6.0], 2.0), [0.0, 9.0])
    np.testing.assert_allclose(recalibrated.mean(), [7.0, 8.0])
    assert local.k_ == 1


def test_local_of_identical_rows_weighs_them_alike():
    y = np.array([-1.0, 0.0, 2.0])
    local = LocalRecalibration(k=3, smoothing="none").fit(Normal(np.zeros(3), 1.0), y, np.ones(3))
    assert local.predict(Normal([0.0], 1.0), [1.0]).mean()[0] == pytest.approx(1 / 3)


def test_local_radius_that_holds_few_rows_takes_the_nearest():
    base, y, space = rows(400, 1, seed=6)
    local = LocalRecalibration(radius=0.3, standardise=False, smoothing="none").fit(base, y, space)
    with pytest.warns(InputWarning, match="1 of 2 rows have fewer than 50"):
        recalibrated = local.predict(Normal([0.0, 0.0], 1.0), [[0.0], [40.0]])
    assert local.n_fallback_ == 1
    nearest = LocalRecalibration(k=50, standardise=False, smoothing="none").fit(base, y, space)
    expected = nearest.predict(Normal([0.0], 1.0), [[40.0]]).mean()
    np.testing.assert_allclose(recalibrated.mean()[1:], expected)


def test_local_radius_on_which_all_neighbours_lie_takes_the_nearest():
    space = np.repeat([0.0, 1.0], 60)
    base, y = Normal(np.zeros(120), 1.0), np.repeat([-1.0, 1.0], 60)
    local = LocalRecalibration(radius=0.5, standardise=False, smoothing="none").fit(base, y, space)
    with pytest.warns(InputWarning, match="1 of 1 rows"):  # all weigh nothing: 1 - (d / u)^2 = 0
        recalibrated = local.predict(Normal([0.0], 1.0), [0.5])
    np.testing.assert_allclose(recalibrated.mean(), -1.0)  # 50 rows, ties to the lowest


def test_local_counts_outcomes_outside_the_support():
    base = Weighted(np.tile([1.0, 2.0, 3.0], (4, 1)), np.ones(3))
    for method in (LocalRecalibration(k=4), GlobalRecalibration()):
        with pytest.warns(InputWarning, match="2 of 4 calibration outcomes lie outside"):
            method.fit(base, [0.0, 2.0, 9.0, 2.5], np.arange(4.0))
        assert method.n_outside_ == 2
        assert np.isfinite(method.predict(base, np.arange(4.0)).mean()).all()


def test_outcomes_beyond_the_digits_of_a_probability_are_counted_on_both_sides():
    logs = np.append(np.zeros(998), [-9.0, 9.0])  # Phi(-9) is no 0, but no interval reaches it
    base = LogNormal(np.zeros(1000), 1.0)
    for method in (LocalRecalibration(k=4), GlobalRecalibration()):
        assert method.fit(base, np.exp(logs), np.arange(1000.0)).n_outside_ == 2


def test_local_shows_bad_input():
    base, y, space = rows(60, 2, seed=7)
    local = LocalRecalibration(k=10).fit(base, y, space)
    with pytest.raises(InputError, match=r"space .* is missing"):
        local.predict(base)
    with pytest.raises(InputError, match="3 columns and the fit had 2"):
        local.predict(base, np.zeros((60, 3)))
    space[4, 1] = np.nan
    with pytest.raises(InputError) as caught:
        local.fit(base, y, space)
    assert (caught.value.row, caught.value.column) == (5, "2")


def test_local_radius_that_holds_too_much_is_refused(monkeypatch):
    monkeypatch.setattr("kdcal_core.regression.local.MOST_FLOATS", 1000)
    base, y, space = rows(100, 2, seed=8)
    with pytest.raises(InputError, match="too many"):
        LocalRecalibration(radius=50.0).fit(base, y, space).predict(base, space)


def test_local_reports_its_recall():
    base, y, space = rows(3000, 8, seed=9)
    rough = LocalRecalibration(k=50, search="approximate", epsilon=1.0).fit(base, y, space)
    rough.predict(base[:300], space[:300])
    assert 0.3 < rough.recall_ < 1.0
    exact = LocalRecalibration(k=50).fit(base, y, space)
    exact.predict(base[:300], space[:300])
    assert exact.recall_ is None


def test_local_is_the_same_with_one_thread():
    base, y, space = rows(2000, 12, seed=10)
    space = space.round(0)
    local = LocalRecalibration(k=100).fit(base, y, space)
    many = local.predict(base, space).arrays()
    with threadpool_limits(1):
        one = LocalRecalibration(k=100).fit(base, y, space).predict(base, space).arrays()
    assert all(many[name].tobytes() == one[name].tobytes() for name in many)


def misspecified_line(n, seed):
    data = heteroscedastic(3 * n, seed=seed)
    x, y = data.X[:, 0], data.y
    fit, calibration, evaluation = (slice(i * n, (i + 1) * n) for i in range(3))
    mean = np.polyval(np.polyfit(x[fit], y[fit], 1), x)
    std = float(np.sqrt(((y - mean)[calibration] ** 2).mean()))
    parts = [(Normal(mean[part], std), y[part], x[part]) for part in (calibration, evaluation)]
    return *parts, data.distribution[evaluation]


@pytest.mark.parametrize("smoothing", ["none", "kernel"])
def test_local_recalibration_repairs_the_misspecified_line(smoothing):
    (base, y, x), (new, outcome, points), true = misspecified_line(10_000, seed=0)
    recalibrated = (
        LocalRecalibration(1000, smoothing=smoothing).fit(base, y, x).predict(new, points)
    )

    def smis(distribution):
        low, high = distribution.interval(0.95)
        outside = np.maximum(low - outcome, 0) + np.maximum(outcome - high, 0)
        return (high - low + 40 * outside).mean() / np.abs(y).mean()

    low, high = recalibrated.interval(0.95)
    assert ((low <= outcome) & (outcome <= high)).mean() == pytest.approx(0.95, abs=0.01)
    # Table 1: 2.7475 before, 2.0947 after; MSE against the true mean 14,546 before, 304 after
    assert smis(new) == pytest.approx(2.72, abs=0.1)
    assert smis(recalibrated) == pytest.approx(2.05, abs=0.1)
    error = ((recalibrated.mean() - true.mean()) ** 2).mean()
    assert ((new.mean() - true.mean()) ** 2).mean() == pytest.approx(14_500, rel=0.05)
    assert error < 600


def test_a_calibrated_model_stays_calibrated():
    rng = np.random.default_rng(11)
    x = rng.normal(size=(8000, 3))
    base = Normal(x[:, 0], 1.0)
    y = x[:, 0] + rng.normal(size=8000)
    local = LocalRecalibration(k=500).fit(base[:4000], y[:4000], x[:4000])
    recalibrated = local.predict(base[4000:], x[4000:])
    held, new = y[4000:], base[4000:]
    assert recalibrated.crps(held).mean() == pytest.approx(new.crps(held).mean(), rel=0.01)
    for level in (0.1, 0.5, 0.9):
        assert (held <= recalibrated.ppf(level)).mean() == pytest.approx(level, abs=0.03)


def test_no_warning_where_nothing_is_the_matter():
    base, y, space = rows(100, 2, seed=12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LocalRecalibration(k=100).fit(base, y, space).predict(base, space).interval(0.9)


@pytest.mark.parametrize(("n", "k"), [(30, 30), (400, 50), (2_500, 100)])
def test_nobodys_choice_of_k_grows_with_the_root_of_the_rows(n, k):
    local = LocalRecalibration().fit(Normal(np.zeros(n), 1.0), np.zeros(n), np.arange(n))
    assert local.k_ == k


def test_smoothing_keeps_two_peaks_apart():
    base, y, space = two_peaks(1200, 0)
    new, new_y, points = two_peaks(1500, 1)
    local = LocalRecalibration(k=500).fit(base, y, space)
    recalibrated = local.predict(new, points)
    assert 0 < local.bandwidth_ < 1
    for level in (0.5, 0.8, 0.95):
        low, high = recalibrated.interval(level)
        assert abs(np.mean((low <= new_y) & (new_y <= high)) - level) < 0.04
    paper = LocalRecalibration(k=500, smoothing="none").fit(base, y, space).predict(new, points)
    wide = LocalRecalibration(k=500, smoothing="kernel").fit(base, y, space).predict(new, points)
    assert recalibrated.crps(new_y).mean() < 1.001 * paper.crps(new_y).mean()
    assert recalibrated.crps(new_y).mean() < 0.996 * wide.crps(new_y).mean()
    assert recalibrated.log_density(new_y).mean() > wide.log_density(new_y).mean() + 0.1


@pytest.mark.parametrize("settings", [{"k": 200}, {"radius": 0.5}])
def test_one_peak_is_smoothed_as_before(settings):
    base, y, space = rows(1500, 2, seed=7)
    local = LocalRecalibration(**settings).fit(base, y, space)
    assert local.bandwidth_ >= 0.5
    assert LocalRecalibration(smoothing="none").fit(base, y, space).bandwidth_ == 0
    assert LocalRecalibration(k=1).fit(base, y, space).bandwidth_ == 1  # nothing to try it on
