"""Torres et al.'s simulations: printed formulas, moments, and what theory says of the line."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from kdcal_core.errors import InputError
from kdcal_core.simulation import (
    REGRESSION_SIMULATIONS,
    heteroscedastic,
    nonlinear20,
    rosenbrock_gamma,
    true_distribution,
)

NAMES = tuple(REGRESSION_SIMULATIONS)


@pytest.mark.parametrize("name", NAMES)
def test_outcomes_are_drawn_from_the_distribution_that_is_reported(name: str) -> None:
    drawn = REGRESSION_SIMULATIONS[name].function(20_000, seed=1)
    pit = drawn.distribution.cdf(drawn.y)
    assert stats.kstest(pit, "uniform").pvalue > 1e-3
    # ... also within halves of each coordinate, where a wrong scale would hide globally
    for column in drawn.X.T:
        for half in (column < np.median(column), column >= np.median(column)):
            assert stats.kstest(pit[half], "uniform").pvalue > 1e-5


@pytest.mark.parametrize("name", NAMES)
def test_registry_shows_the_truth_at_the_drawn_points(name: str) -> None:
    simulation = REGRESSION_SIMULATIONS[name]
    drawn = simulation.function(50, seed=3)
    again = true_distribution(name, drawn.X)
    assert drawn.X.shape == (50, simulation.n_features)
    assert simulation.sentence.endswith(".")
    assert simulation.name == name
    np.testing.assert_array_equal(again.mean(), drawn.distribution.mean())
    np.testing.assert_array_equal(again.std(), drawn.distribution.std())


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 2**32), n=st.integers(1, 40))
@settings(max_examples=15, deadline=None)
def test_seed_settles_every_number(name: str, seed: int, n: int) -> None:
    first, second = (REGRESSION_SIMULATIONS[name].function(n, seed=seed) for _ in range(2))
    np.testing.assert_array_equal(first.X, second.X)
    np.testing.assert_array_equal(first.y, second.y)
    assert len(first.distribution) == len(first.y) == n
    assert np.isfinite(first.y).all()


def test_parabola_is_equation_4() -> None:
    drawn = heteroscedastic(20_000, seed=0)
    x = drawn.X[:, 0]
    assert x.min() > 2
    assert x.max() < 20
    assert stats.kstest(x, "uniform", (2, 18)).pvalue > 1e-3
    truth = true_distribution("heteroscedastic", [[2.0], [3.0], [17.68]])
    np.testing.assert_allclose(truth.mean(), [30.0, 55.0, 10 + 5 * 17.68**2])
    np.testing.assert_allclose(truth.std(), [60.0, 90.0, 30 * 17.68])


def test_best_line_through_the_parabola_is_the_papers() -> None:
    """Section 4.1 prints 1484.01 and 384.41 at x = 17.68, and the PIT value 0.9575."""
    x = np.linspace(2, 20, 180_001)
    slope, intercept = np.polyfit(x, 10 + 5 * x**2, 1)
    assert slope == pytest.approx(110, abs=1e-2)
    assert intercept == pytest.approx(-460, abs=1e-1)
    square = integrate.quad(
        lambda at: ((10 + 5 * at**2 - (110 * at - 460)) ** 2 + (30 * at) ** 2) / 18, 2, 20
    )[0]
    assert np.sqrt(square) == pytest.approx(384.4, abs=0.05)
    mean = -460 + 110 * 17.68
    assert mean == pytest.approx(1484.01, abs=1.0)
    pit = stats.norm.cdf(2146.22, mean, np.sqrt(square))
    assert pit == pytest.approx(0.9575, abs=5e-4)


def test_line_fitted_to_a_draw_is_the_papers_within_its_spread() -> None:
    drawn = heteroscedastic(100_000, seed=5)
    slope, intercept = np.polyfit(drawn.X[:, 0], drawn.y, 1)
    residual = drawn.y - intercept - slope * drawn.X[:, 0]
    # standard errors of slope, intercept and standard deviation: about 0.25, 2.4 and 1.1
    assert slope == pytest.approx(110, abs=1.0)
    assert intercept == pytest.approx(-460, abs=10)
    assert residual.std() == pytest.approx(384.4, abs=4.5)


def test_rosenbrock_is_the_printed_function_with_a_shape_of_100() -> None:
    drawn = rosenbrock_gamma(20_000, seed=0)
    x1, x2 = drawn.X.T
    assert stats.kstest(x1, "uniform", (-2, 4)).pvalue > 1e-3
    assert stats.kstest(x2, "uniform", (-1, 6)).pvalue > 1e-3
    mean = (1 - x1) ** 2 + 10 * (x2 - x1**2) ** 2
    np.testing.assert_allclose(drawn.distribution.mean(), mean)
    np.testing.assert_allclose(drawn.distribution.std(), mean / 10)
    # a Gamma of shape 100: skewness 2 / sqrt(100), and the true model's MSE of Table 2
    assert stats.skew(drawn.y / mean) == pytest.approx(0.2, abs=0.06)
    expected = integrate.dblquad(
        lambda b, a: ((1 - a) ** 2 + 10 * (b - a**2) ** 2) ** 2 / 100 / 24, -2, 2, -1, 5
    )[0]
    assert expected == pytest.approx(59.64, rel=0.06)
    assert np.mean((drawn.y - mean) ** 2) == pytest.approx(expected, rel=0.06)


def test_valleys_floor_keeps_a_distribution() -> None:
    truth = true_distribution("rosenbrock_gamma", [[1.0, 1.0], [0.0, 0.0]])
    assert 0 < truth.mean()[0] < 1e-9
    assert truth.mean()[1] == 1.0


def test_twenty_features_follow_equation_6() -> None:
    rng = np.random.default_rng(9)
    X = rng.normal(size=(5, 20))
    x = dict(enumerate(X.T, start=1))
    bends = 10 / (x[2] ** 2 + 1) + 5 * x[4] ** 2 + 10 / (x[7] ** 2 + 1) + 5 * x[9] ** 2
    products = 5 * x[3] * x[4] + 5 * x[8] * x[9]
    lines = 5 + 10 * x[1] + 2 * x[4] + 5 * x[5] + 2 * x[6] + 5 * x[10]
    truth = true_distribution("nonlinear20", X)
    np.testing.assert_allclose(truth.mean(), lines + products + bends)
    np.testing.assert_array_equal(truth.std(), 1.0)
    changed = X.copy()
    changed[:, 10:] += 1
    np.testing.assert_array_equal(true_distribution("nonlinear20", changed).mean(), truth.mean())


def test_twenty_features_are_correlated_as_printed() -> None:
    X = nonlinear20(50_000, seed=0).X
    apart = np.abs(np.subtract.outer(np.arange(20), np.arange(20)))
    np.testing.assert_allclose(np.cov(X.T), 0.5**apart, atol=0.03)
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=0.025)


@pytest.mark.parametrize("n", [0, -1, 2.5, True])
def test_number_of_rows_is_a_number(n: object) -> None:
    for simulation in REGRESSION_SIMULATIONS.values():
        with pytest.raises(InputError, match="n is"):
            simulation.function(n, seed=0)  # type: ignore[arg-type]


def test_points_without_a_distribution_are_named() -> None:
    with pytest.raises(InputError, match="There is no simulation 'xor'"):
        true_distribution("xor", [[1.0]])
    with pytest.raises(InputError, match=r"not \(m, 2\)"):
        true_distribution("rosenbrock_gamma", [[1.0]])
    with pytest.raises(InputError, match=r"missing or infinite \(column '1', row 2\)"):
        true_distribution("heteroscedastic", [[1.0], [np.nan]])
    with pytest.raises(InputError, match=r"no distribution at −1 \(column '1', row 2\)"):
        true_distribution("heteroscedastic", [[1.0], [-1.0]])
