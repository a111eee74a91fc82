"""The local test: its family-wise guarantee, its power, and what is done where it finds nothing."""

import numpy as np
import pytest
from scipy import stats

from kdcal_core.distributions import Normal
from kdcal_core.errors import InputError
from kdcal_core.regression import LocalRecalibration, WhereNeeded, local_uniformity
from kdcal_core.regression.local_test import legendre, step_down


def misspecified_line(n, seed):
    """Torres et al., section 4.1: the best line through a parabola whose noise widens."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(2, 20, n)
    y = 10 + 5 * x**2 + rng.normal(0, 30 * x)
    return Normal(-460 + 110 * x, np.full(n, 384.4)), y, x


def test_the_family_wise_error_is_kept():
    wrong = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        found = local_uniformity(
            rng.random(300), rng.normal(size=(300, 2)), k=60, centres=60, draws=99, seed=seed
        )
        wrong += found.needed.any()
    # 300 tries at 5%: 25 or more would happen once in 200 times
    assert wrong <= stats.binom.ppf(0.995, 300, 0.05)
    # and the correction is not so strict that it never errs
    assert wrong >= stats.binom.ppf(0.005, 300, 0.05)


def test_the_calibrated_half_keeps_its_guarantee_beside_a_fault():
    wrong = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        x = np.concatenate([rng.random(150), rng.random(150) + 10])
        pit = np.where(x < 5, rng.random(300) ** 3, rng.random(300))
        found = local_uniformity(pit, x, k=40, centres=60, draws=99, seed=seed)
        right_half = x[found.centres] > 5
        assert found.needed[~right_half].all()
        wrong += found.needed[right_half].any()
    assert wrong <= stats.binom.ppf(0.995, 100, 0.05)


def test_the_opposite_faults_of_the_line_are_found_and_named():
    model, y, x = misspecified_line(1000, 0)
    found = local_uniformity(model.cdf(y), x)
    assert found.overall_p == 1 / 1000
    assert found.needed.mean() > 0.5
    left, middle = x[found.centres] < 4, np.abs(x[found.centres] - 11) < 1
    assert found.scores[left, 0].min() > 3  # the line lies below the parabola: too low
    assert found.scores[middle, 0].max() < -3  # and above it: too high
    assert found.scores[left, 1].max() < 0  # noise is small there: predictions too wide
    assert "needed in" in found.words


def test_good_coverage_overall_hides_it():
    model, y, _ = misspecified_line(1000, 0)
    low, high = model.interval(0.95)
    assert abs(((low <= y) & (y <= high)).mean() - 0.95) < 0.03


def test_statistic_is_neymans():
    rng = np.random.default_rng(1)
    pit, x = rng.random(50), rng.normal(size=50)
    found = local_uniformity(pit, x, k=10, centres=5, draws=9)
    for centre, near, scores in zip(found.centres, found.near, found.scores, strict=True):
        nearest = np.argsort(np.abs(x - x[centre]))[:10]
        assert set(near) == set(nearest)
        expected = [
            np.sqrt(2 * order + 1)
            * np.polynomial.legendre.legval(2 * pit[nearest] - 1, np.eye(5)[order]).sum()
            for order in (1, 2, 3, 4)
        ]
        np.testing.assert_allclose(scores, np.array(expected) / np.sqrt(10))
    np.testing.assert_allclose(found.statistic, (found.scores**2).sum(axis=1))


def test_polynomials_are_orthonormal():
    at, weight = np.polynomial.legendre.leggauss(20)
    values = legendre((at + 1) / 2)
    np.testing.assert_allclose(values * weight / 2 @ values.T, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(values @ weight, 0, atol=1e-12)


def test_step_down_is_westfall_and_youngs():
    rng = np.random.default_rng(2)
    statistic, null = rng.normal(1, 1, 7), rng.normal(size=(40, 7))
    adjusted, least = np.empty(7), 0.0
    left = list(range(7))
    for worst in np.argsort(-statistic):
        p = (1 + (null[:, left].max(axis=1) >= statistic[worst]).sum()) / 41
        least = max(least, p)
        adjusted[worst] = least
        left.remove(worst)
    np.testing.assert_allclose(step_down(statistic, null), adjusted)


def test_corrected_p_values_are_never_smaller():
    model, y, x = misspecified_line(300, 3)
    found = local_uniformity(model.cdf(y), x, draws=199)
    assert np.all(found.adjusted_p >= found.p_value)


def test_rows_that_are_all_equal_are_one_neighbourhood():
    found = local_uniformity(np.linspace(0.01, 0.99, 40), np.zeros(40), k=40, centres=10)
    assert not found.needed.any()
    assert len(set(found.statistic.round(12))) == 1
    assert "No miscalibration beyond chance" in found.words


def test_same_seed_same_answer():
    model, y, x = misspecified_line(200, 4)
    first, again = (local_uniformity(model.cdf(y), x, draws=99, seed=3) for _ in range(2))
    assert np.array_equal(first.adjusted_p, again.adjusted_p)
    assert np.array_equal(first.centres, again.centres)


@pytest.mark.parametrize(
    ("pit", "space", "k", "message"),
    [
        ([0.1] * 9 + [1.1], np.zeros(10), None, "row 10"),
        ([0.1] * 9 + [np.nan], np.zeros(10), None, "row 10"),
        ([0.1] * 4, np.zeros(4), None, "at least 5"),
        ([0.1] * 10, np.zeros(9), None, "shape"),
        ([0.1] * 10, np.zeros(10), 11, "11 rows cannot"),
        ([0.1] * 10, np.zeros(10), 4, "4 rows cannot"),
    ],
)
def test_bad_input_is_reported(pit, space, k, message):
    with pytest.raises(InputError, match=message):
        local_uniformity(pit, space, k=k)


def test_the_test_can_be_stopped():
    def stop(share, note):
        raise InterruptedError

    with pytest.raises(InterruptedError):
        local_uniformity(np.full(50, 0.5), np.zeros(50), progress=stop)


def test_a_calibrated_model_is_left_as_it_is():
    rng = np.random.default_rng(5)
    x = rng.normal(size=500)
    model = Normal(x, 1.0)
    fitted = WhereNeeded(LocalRecalibration(k=50), draws=199).fit(model, rng.normal(x, 1), x)
    assert fitted.predict(model, x) is model


def test_only_the_faulty_rows_are_repaired():
    rng = np.random.default_rng(6)
    x = rng.random(3000)
    model = Normal(np.zeros(3000), 1.0)
    y = np.where(x < 0.3, 1.5, 0.0) + rng.normal(size=3000)
    local = LocalRecalibration(k=100)
    fitted = WhereNeeded(local).fit(model, y, x)
    recalibrated = fitted.predict(model, x)
    far, faulty = x > 0.5, x < 0.25
    np.testing.assert_array_equal(recalibrated.ppf(0.3)[far], model.ppf(0.3)[far])
    always = local.fit(model, y, x).predict(model, x)
    np.testing.assert_array_equal(recalibrated.ppf(0.3)[faulty], always.ppf(0.3)[faulty])
