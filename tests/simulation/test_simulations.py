"""The simulations against their text: counts in cells, shares of the box, brute force, edges."""

from functools import cache
from math import pi

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from kdcal_core.errors import InputError
from kdcal_core.simulation import SIMULATIONS, Simulated, sinewave, true_posterior, trunk
from kdcal_core.simulation.classification import acceptance

NAMES = tuple(SIMULATIONS)
PLANAR = tuple(name for name in NAMES if SIMULATIONS[name].in_box)


@cache
def million(name: str) -> Simulated:
    # at the printed noise the spiral's arms do not overlap, and no cell would hold both classes
    settings = {"noise": 0.8} if name == "spiral" else {}
    return SIMULATIONS[name].function(1_000_000, seed=11, **settings)


def misfit(drawn: Simulated, posterior, side=0.1) -> tuple[float, float]:
    """How far the counts of class 0 in cells of the plane lie from what the posterior says.

    The chi-squared statistic of the cells with enough of both classes, and the sum over all
    rows, each in its standard deviations.
    """
    column = np.floor(np.clip(drawn.X[:, :2], -4.999, 4.999) / side).astype(int) + 50
    cell = 100 * column[:, 0] + column[:, 1]
    spread = posterior[:, 0] * posterior[:, 1]
    miss = np.bincount(cell, (drawn.y == 0) - posterior[:, 0])
    variance = np.bincount(cell, spread)
    enough = variance > 10
    assert enough.sum() > 20
    statistic = np.sum(miss[enough] ** 2 / variance[enough])
    return (
        (statistic - enough.sum()) / np.sqrt(2 * enough.sum()),
        miss.sum() / np.sqrt(spread.sum()),
    )


@pytest.mark.parametrize("name", NAMES)
def test_counts_in_small_cells_are_the_posterior(name):
    drawn = million(name)
    assert np.abs(misfit(drawn, drawn.posterior)).max() < 4


@pytest.mark.parametrize("name", ["circle", "polynomial"])
def test_a_posterior_that_forgets_the_box_is_found_out(name):
    drawn = million(name)
    odds = drawn.posterior * [acceptance(name, 0), acceptance(name, 1)]
    assert abs(misfit(drawn, odds / odds.sum(axis=1, keepdims=True))[1]) > 8


@pytest.mark.parametrize(
    ("name", "printed"),
    [("circle", (0.998, 0.775)), ("sinewave", (0.882, 0.882)), ("polynomial", (0.960, 0.986))],
)
def test_the_box_keeps_the_share_that_a_million_draws_keep(name, printed):
    rng = np.random.default_rng(3)
    x, noise = rng.uniform(-1, 1, 1_000_000), 0.1 * rng.normal(size=1_000_000)
    if name == "circle":
        drawn = [
            np.abs((r + noise) * [np.cos(np.pi * x), np.sin(np.pi * x)]).max(axis=0)
            for r in (0.75, 1.0)
        ]
    elif name == "sinewave":
        drawn = [np.abs(c + noise) for c in (np.cos(np.pi * x), np.sin(np.pi * x))]
    else:
        drawn = [np.abs(c + noise) for c in (x, x**3)]
    for label in (0, 1):
        share = acceptance(name, label)
        assert share == pytest.approx(np.mean(drawn[label] < 1), abs=0.002)
        assert round(share, 3) == pytest.approx(printed[label], abs=0.0011)


def test_xor_keeps_its_corners():
    drawn = SIMULATIONS["gaussian_xor"].function(100_000, seed=4)
    kept = norm(0.5, 0.25).cdf(1) - norm(0.5, 0.25).cdf(-1)
    assert kept**2 == pytest.approx(0.955, abs=0.001)
    same = drawn.X[:, 0] * drawn.X[:, 1] > 0
    assert same[drawn.y == 1].mean() > 0.95
    assert same[drawn.y == 0].mean() < 0.05
    quarter = np.abs(drawn.X[(drawn.X > 0).all(axis=1) & (drawn.y == 1)])
    assert quarter.mean(axis=0) == pytest.approx([0.49, 0.49], abs=0.01)


def plain_posterior(name, point):
    """Bayes' rule with the densities of Dey et al., appendix D, written out for one point."""
    x, y = point[:2]
    if name == "gaussian_xor":
        f = [
            sum(norm.pdf(x, a, 0.25) * norm.pdf(y, b, 0.25) for a, b in means)
            for means in ([(-0.5, 0.5), (0.5, -0.5)], [(0.5, 0.5), (-0.5, -0.5)])
        ]
    elif name == "spiral":
        r, angle = np.hypot(x, y), np.arctan2(y, x)
        f = [
            sum(norm.pdf(angle + 2 * np.pi * m, 4 * np.pi * r + start, 0.3) for m in range(-9, 10))
            for start in (0, np.pi)
        ]
    elif name == "circle":
        r = np.hypot(x, y)
        f = [norm.pdf(r, 0.75, 0.1) / 0.998235, norm.pdf(r, 1.0, 0.1) / 0.775285]
    elif name == "sinewave":
        f = [norm.pdf(y, np.cos(np.pi * x), 0.1), norm.pdf(y, np.sin(np.pi * x), 0.1)]
    elif name == "polynomial":
        f = [norm.pdf(y, x, 0.1) / 0.960106, norm.pdf(y, x**3, 0.1) / 0.986090]
    else:
        mean = np.arange(1, len(point) + 1) ** -0.5
        f = [norm.pdf(point, mean).prod(), norm.pdf(point, -mean).prod()]
    return np.array(f) / sum(f)


@pytest.mark.parametrize("name", NAMES)
def test_the_posterior_is_bayes_rule(name):
    drawn = SIMULATIONS[name].function(60, seed=5)
    wanted = [plain_posterior(name, point) for point in drawn.X]
    np.testing.assert_allclose(drawn.posterior, wanted, atol=1e-6)
    np.testing.assert_array_equal(true_posterior(name, drawn.X), drawn.posterior)


@pytest.mark.parametrize("name", NAMES)
@given(n=st.integers(1, 40), seed=st.integers(0, 2**32))
@settings(max_examples=15, deadline=None)
def test_shapes_counts_and_seeds(name, n, seed):
    simulation = SIMULATIONS[name]
    drawn, again = simulation.function(n, seed=seed), simulation.function(n, seed=seed)
    assert drawn.X.shape == (n, simulation.n_features)
    assert np.bincount(drawn.y, minlength=2).tolist() == [n - n // 2, n // 2]
    assert drawn.posterior.sum(axis=1) == pytest.approx(1)
    assert not simulation.in_box or np.abs(drawn.X).max() <= 1
    for mine, other in zip(
        (drawn.X, drawn.y, drawn.posterior), (again.X, again.y, again.posterior), strict=True
    ):
        assert mine.tobytes() == other.tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_another_seed_gives_other_points_in_mixed_order(name):
    a, b = (SIMULATIONS[name].function(200, seed=seed) for seed in (0, 1))
    assert not np.isin(a.X, b.X).any()
    assert 60 < np.count_nonzero(np.diff(a.y)) < 140


@pytest.mark.parametrize("name", PLANAR)
def test_far_away_there_is_only_the_prior(name):
    far = np.array([[1.0001, 0.0], [0.0, -2.0], [1e6, 1e6], [-1e300, 0.0]])
    assert (true_posterior(name, far) == 0.5).all()


def test_the_spiral_reflects_and_has_no_points_beyond_its_disc():
    points = SIMULATIONS["spiral"].function(100, seed=6).X
    mirrored = true_posterior("spiral", -points)
    np.testing.assert_allclose(true_posterior("spiral", points), mirrored[:, ::-1], atol=1e-12)
    assert (true_posterior("spiral", [[0.0, 0.0], [0.9, 0.9]]) == 0.5).all()


def test_the_spirals_noise_is_a_setting():
    drawn = SIMULATIONS["spiral"].function(500, seed=6, noise=0.8)
    np.testing.assert_array_equal(true_posterior("spiral", drawn.X, noise=0.8), drawn.posterior)
    assert drawn.posterior.max(axis=1).mean() < 0.98
    assert true_posterior("spiral", drawn.X).max(axis=1).mean() > 0.99
    with pytest.raises(InputError, match="noise"):
        SIMULATIONS["spiral"].function(5, seed=0, noise=0.0)


def test_trunk_has_decided_far_out_in_any_dimension():
    for d in (1, 30, 1000):
        drawn = trunk(50, seed=1, n_features=d)
        assert drawn.X.shape == (50, d)
        ray = np.full((1, d), 1e6)
        assert true_posterior("trunk", ray).tolist() == [[1.0, 0.0]]
        assert true_posterior("trunk", -ray).tolist() == [[0.0, 1.0]]


def test_trunks_means_shrink_as_printed():
    drawn = trunk(200_000, seed=2, n_features=4)
    means = drawn.X[drawn.y == 0].mean(axis=0)
    assert means == pytest.approx([1, 2**-0.5, 3**-0.5, 0.5], abs=0.015)
    assert drawn.X[drawn.y == 1].mean(axis=0) == pytest.approx(-means, abs=0.02)
    assert drawn.X[drawn.y == 0].std(axis=0) == pytest.approx(np.ones(4), abs=0.015)


@pytest.mark.parametrize("n", [0, -3, 2.5, "a", True])
@pytest.mark.parametrize("name", NAMES)
def test_a_number_of_points_that_is_none_is_refused(name, n):
    with pytest.raises(InputError, match="whole number, at least 1"):
        SIMULATIONS[name].function(n, seed=0)


def test_points_that_cannot_be_read_are_refused_by_row():
    with pytest.raises(InputError) as caught:
        true_posterior("circle", [[0.0, 0.1], [0.2, np.nan]])
    assert (caught.value.row, caught.value.column) == (2, "2")
    with pytest.raises(InputError, match=r"shape \(1, 3\)"):
        true_posterior("circle", [[0.0, 0.1, 0.2]])
    with pytest.raises(InputError, match="no simulation 'cone'"):
        true_posterior("cone", [[0.0, 0.1]])
    with pytest.raises(InputError, match="n_features"):
        trunk(5, seed=0, n_features=0)


@pytest.mark.parametrize(
    ("frequency", "flip"), [(pi, True), (4.0, False), (4.0, True), (0.7, False)]
)
def test_waves_of_another_frequency_and_with_exchanged_classes(frequency, flip):
    drawn = sinewave(200_000, seed=3, frequency=frequency, flip=flip)
    place = np.floor((drawn.X + 1) * 10).astype(int)
    cell = place[:, 0] * 20 + place[:, 1]
    n, ones = np.bincount(cell, minlength=400), np.bincount(cell, drawn.y, 400)
    stated = np.bincount(cell, drawn.posterior[:, 1], 400)
    much = n > 500
    error = np.abs(ones - stated)[much] / np.sqrt(n[much] / 4)
    assert error.max() < 4.5
    heights = np.cos(frequency * drawn.X[:, 0]), np.sin(frequency * drawn.X[:, 0])
    for label in (0, 1):
        away = drawn.X[:, 1] - heights[label != flip]
        assert np.abs(away[drawn.y == label]).max() < 0.6


@pytest.mark.parametrize("frequency", [0.0, -1.0, 101.0, np.nan])
def test_a_frequency_without_waves_is_refused(frequency):
    with pytest.raises(InputError, match="frequency"):
        sinewave(10, seed=0, frequency=frequency)
