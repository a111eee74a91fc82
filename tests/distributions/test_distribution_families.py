"""Parametric families against scipy and scoringrules, and the rules that hold for every family."""

import importlib
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from kdcal_core.distributions import (
    Empirical,
    Gamma,
    LogNormal,
    Mapped,
    Normal,
    Quantiles,
    StudentT,
    Weighted,
)
from kdcal_core.errors import InputError

N = 5
RNG = np.random.default_rng(3)
MEAN, STD, SHAPE, DF = (
    RNG.normal(size=N),
    RNG.gamma(2, 1, N),
    RNG.gamma(3, 1, N),
    RNG.gamma(3, 1, N),
)
DF = DF + 2.5
POSITIVE = RNG.gamma(2, 1, N)
SAMPLES = RNG.normal(size=(N, 7))
KNOTS, IMAGES = [0, 0.1, 0.4, 0.6, 1], [0, 0.2, 0.2, 0.7, 1]

PARAMETRIC = {
    "normal": (Normal(MEAN, STD), stats.norm(MEAN, STD)),
    "lognormal": (LogNormal(MEAN, STD / 8), stats.lognorm(STD / 8, scale=np.exp(MEAN))),
    "gamma": (Gamma(SHAPE, POSITIVE), stats.gamma(SHAPE, scale=POSITIVE / SHAPE)),
    "gamma of one shape": (Gamma(100.0, POSITIVE), stats.gamma(100.0, scale=POSITIVE / 100)),
    "student_t": (StudentT(MEAN, STD, DF), stats.t(DF, MEAN, STD)),
}
ALL = {
    **{name: ours for name, (ours, _) in PARAMETRIC.items()},
    "samples": Empirical(SAMPLES),
    "weighted": Weighted(SAMPLES, RNG.random((N, 7))),
    "weighted alike": Weighted(np.sort(SAMPLES, axis=1), np.arange(7)),
    "quantiles": Quantiles([0.1, 0.5, 0.9], np.sort(SAMPLES[:, :3], axis=1)),
    "mapped": Mapped(Normal(MEAN, STD), KNOTS, IMAGES),
    "mapped samples": Mapped(Empirical(SAMPLES), KNOTS, IMAGES),
}


@pytest.mark.parametrize("name", PARAMETRIC)
def test_parametric_families_agree_with_scipy(name):
    ours, theirs = PARAMETRIC[name]
    y = np.array([-1e3, -2.0, 0.3, 1.0, 4.0, 1e3])
    p = np.array([0.0, 1e-12, 0.05, 0.5, 0.99, 1.0])
    expected = np.array([theirs.cdf(at) for at in y]).T
    assert_allclose(ours.cdf(y[None]), expected, rtol=1e-9, atol=0)
    assert_allclose(ours.cdf_left(y[None]), expected, rtol=1e-9)
    expected = np.array([theirs.logpdf(at) for at in y]).T
    assert_allclose(ours.log_density(y[None]), expected, rtol=1e-9, atol=1e-9)
    assert_allclose(ours.ppf(p[None]), np.array([theirs.ppf(at) for at in p]).T, rtol=1e-7)
    assert_allclose(ours.mean(), theirs.mean(), rtol=1e-10)
    assert_allclose(ours.std(), theirs.std(), rtol=1e-10)


@pytest.fixture(scope="module")
def scoringrules():
    """The library without numba, for which it would compile what is not used here for 10 s."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "numba", None)
        return importlib.import_module("scoringrules")


@pytest.mark.parametrize("y", [0.01, 0.7, 3.0, 50.0])
def test_closed_forms_of_the_crps_agree_with_scoringrules(scoringrules, y):
    theirs = {
        "normal": scoringrules.crps_normal(y, MEAN, STD),
        "lognormal": scoringrules.crps_lognormal(y, MEAN, STD / 8),
        "gamma": scoringrules.crps_gamma(y, SHAPE, scale=POSITIVE / SHAPE),
        "gamma of one shape": scoringrules.crps_gamma(y, 100.0, scale=POSITIVE / 100),
        "student_t": scoringrules.crps_t(y, DF, MEAN, STD),
    }
    for name, expected in theirs.items():
        assert_allclose(PARAMETRIC[name][0].crps(y), expected, rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("y", [-0.4, 0.0, 1.3])
def test_the_crps_is_its_integral(name, y):
    ours = ALL[name]
    grid = np.unique(
        np.r_[
            y,
            -np.geomspace(20, 1e5, 3000),
            np.linspace(-20, 20, 80_001),
            np.geomspace(20, 1e5, 3000),
        ]
    )
    foot, top = ours.cdf_left(grid[None, 1:]), ours.cdf(grid[None, :-1])
    inside = ((foot + top) / 2 - (grid[:-1] >= y)) ** 2
    assert_allclose(ours.crps(y), (inside * np.diff(grid)).sum(1), rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("name", ALL)
def test_one_rule_of_shapes_holds_for_all(name):
    ours = ALL[name]
    p = np.array([0.2, 0.5, 0.8])
    for ask, at in ((ours.cdf, p), (ours.cdf_left, p), (ours.ppf, p), (ours.log_density, p)):
        table = ask(at[None])
        assert table.shape == (N, 3)
        assert ask(0.5).shape == (N,)
        assert_allclose(ask(0.5), table[:, 1])
        assert_allclose(ask(np.full(N, 0.5)), table[:, 1])
        assert_allclose(ask(np.tile(at, (N, 1))), table)
    assert ours.mean().shape == ours.std().shape == ours.crps(0.5).shape == (N,)
    assert ours.sample(4, seed=0).shape == (N, 4)
    with pytest.raises(InputError, match="does not match 5 rows"):
        ours.cdf(np.zeros(3))
    with pytest.raises(InputError, match="does not match"):
        ours.cdf(np.zeros((2, 3)))


@pytest.mark.parametrize("name", ALL)
def test_rows_are_chosen_like_an_arrays(name):
    ours = ALL[name]
    for rows in (slice(1, 3), np.array([4, 0, 0]), np.array([True, False, True, False, False])):
        assert type(ours[rows]) is type(ours)
        assert_allclose(ours[rows].cdf(0.4), ours.cdf(0.4)[rows])
        assert_allclose(ours[rows].crps(0.4), ours.crps(0.4)[rows])
    assert len(ours[np.zeros(N, dtype=bool)]) == 0
    assert ours[[]].cdf(0.4).shape == ours[[]].mean().shape == (0,)


@pytest.mark.parametrize("name", ALL)
def test_blocks_change_nothing(name, monkeypatch):
    ours, at = ALL[name], RNG.random((N, 3))
    whole = [ours.cdf(at), ours.ppf(at), ours.log_density(at), ours.crps(at[:, 0]), ours.std()]
    monkeypatch.setattr("kdcal_core.distributions.distribution.BLOCK_FLOATS", 8)
    parts = [ours.cdf(at), ours.ppf(at), ours.log_density(at), ours.crps(at[:, 0]), ours.std()]
    for one, other in zip(whole, parts, strict=True):
        assert_allclose(other, one, rtol=1e-14)


@pytest.mark.parametrize("name", ALL)
def test_samples_have_the_moments_and_the_seed(name):
    ours = ALL[name]
    drawn = ours.sample(40_000, seed=1)
    assert_allclose(drawn[:, :9], ours.sample(40_000, seed=1)[:, :9])
    if name != "samples":  # whose mean is that of the ensemble: tests/distributions/test_ensembles
        error = ours.std() / 200
        assert (np.abs(drawn.mean(axis=1) - ours.mean()) < 5 * error).all()
    levels = np.mean(drawn <= ours.ppf(0.7)[:, None], axis=1)
    assert_allclose(levels, ours.cdf(ours.ppf(0.7)), atol=0.012)


@pytest.mark.parametrize("name", ALL)
@given(p=st.floats(0, 1))
@settings(max_examples=40, deadline=None)
def test_the_quantile_function_inverts_from_the_left(name, p):
    ours = ALL[name]
    at = ours.ppf(p)
    assert not np.isnan(at).any()
    assert (ours.cdf(at) >= p - 1e-9).all()
    assert (ours.cdf_left(at) <= p + 1e-9).all()
    assert (ours.cdf(np.nextafter(at, -np.inf)) <= p + 1e-9).all()


@pytest.mark.parametrize("name", ALL)
def test_impossible_arguments_are_refused(name):
    ours = ALL[name]
    with pytest.raises(InputError, match="not a probability"):
        ours.ppf(1.01)
    with pytest.raises(InputError, match="not a probability"):
        ours.ppf(np.nan)
    with pytest.raises(InputError, match="row 2"):
        ours.cdf([0, np.nan, 0, 0, 0])
    with pytest.raises(InputError, match="infinite"):
        ours.crps(np.inf)
    for level in (0, 1, -0.5):
        with pytest.raises(InputError, match="strictly between"):
            ours.interval(level)
    with pytest.raises(InputError, match="numbers"):
        ours.cdf("a")


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Normal([0, np.nan], 1), "mean is nan .*row 2"),
        (lambda: Normal([0, 0, 0], [1, 1, 0]), "std is 0 .*row 3"),
        (lambda: Gamma([1, -1], 1), r"shape is −1 .*row 2"),
        (lambda: Gamma(1, [0.0]), "mean is 0"),
        (lambda: StudentT(0, 1, [3, 1]), "df is 1 .*row 2"),
        (lambda: LogNormal([0, 800], 1), "row 2"),
        (lambda: Normal([0, 1], [1, 1, 1]), "different numbers of rows"),
        (lambda: Normal([[0, 1]], 1), "dimensions"),
        (lambda: Normal(["a"], 1), "numbers"),
    ],
)
def test_impossible_parameters_are_named(build, words):
    with pytest.raises(InputError, match=words):
        build()


def test_tails_keep_their_digits():
    assert_allclose(Normal(0, 1).cdf(-38.0), stats.norm.cdf(-38))
    assert_allclose(Normal(0, 1).log_density(1e8), -0.5e16, rtol=1e-9)
    assert_allclose(StudentT(0, 1, 3).cdf(-1e60), stats.t.cdf(-1e60, 3))
    tiny = Gamma(100, 1e-300)
    assert tiny.cdf(1.0) == 1
    assert_allclose(tiny.ppf(0.5), 1e-300 * stats.gamma(100).ppf(0.5) / 100)
    assert_allclose(Gamma(1e8, 1.0).crps(1.0), Normal(1.0, 1e-4).crps(1.0), rtol=1e-3)
    assert_allclose(StudentT(0, 1, 1e9).crps(0.4), Normal(0, 1).crps(0.4), rtol=1e-6)
    assert np.isinf(StudentT(0, 1, 2).std()).all()


@pytest.mark.parametrize("std", [6.0, 10.0, 25.0])
def test_the_crps_of_a_wide_lognormal_keeps_its_digits(std):
    # E|Y - 1| - E|Y - Y'| / 2 of Y = exp(std Z), whose two means agree to all digits of a double
    small = stats.norm.logsf(std / np.sqrt(2)) + std**2 / 2
    expected = 2 * (np.exp(small) - np.exp(stats.norm.logcdf(-std) + std**2 / 2))
    assert_allclose(LogNormal(0.0, std).crps(1.0), expected, rtol=1e-9)


@pytest.mark.parametrize("shape", [3.7, [3.7, 5.0, 0.2]])
def test_gamma_quantiles_of_levels_that_recur(shape):
    levels = np.random.default_rng(0).uniform(size=50)
    many = levels[np.random.default_rng(1).integers(0, 50, (3, 5_000))]
    gamma = Gamma(shape, [1.0, 20.0, 0.3])
    expected = stats.gamma.ppf(many, np.reshape(shape, (-1, 1)))
    expected = expected * (gamma.mean() / np.broadcast_to(shape, 3))[:, None]
    np.testing.assert_allclose(gamma.ppf(many), expected, rtol=1e-12)
