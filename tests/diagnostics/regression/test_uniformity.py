"""Tests of uniformity: against scipy, by brute force from the definitions, and their levels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from kdcal_core.diagnostics import kolmogorov_smirnov, uniformity_tests
from kdcal_core.diagnostics.regression.uniformity import (
    anderson_darling_tail,
    cramer_von_mises_tail,
    frosini_law,
    kolmogorov_smirnov_of,
)
from kdcal_core.errors import InputError

unit = st.floats(0.001, 0.999)
samples = st.lists(unit, min_size=2, max_size=60).map(np.array)


@settings(max_examples=40, deadline=None)
@given(samples)
def test_statistics_by_their_definitions(u):
    found = {test.name: test for test in uniformity_tests(u)}
    n, x = len(u), np.sort(u)
    i = np.arange(1, n + 1)
    ks, cvm = stats.kstest(u, "uniform"), stats.cramervonmises(u, "uniform")
    assert found["kolmogorov_smirnov"].statistic == pytest.approx(ks.statistic)
    assert found["kolmogorov_smirnov"].p_value == pytest.approx(ks.pvalue, abs=1e-6)
    assert found["cramer_von_mises"].statistic == pytest.approx(cvm.statistic)
    assert found["cramer_von_mises"].p_value == pytest.approx(cvm.pvalue, abs=1e-9)
    anderson = -n - np.mean((2 * i - 1) * (np.log(x) + np.log(1 - x[::-1])))
    assert found["anderson_darling"].statistic == pytest.approx(anderson)
    frosini = np.abs(x - (i - 0.5) / n).sum() / n**0.5
    assert found["frosini"].statistic == pytest.approx(frosini)


@pytest.mark.parametrize(
    ("n", "square"),
    [
        *((100_000, square) for square in (0.5, 2.2001, 6.0)),
        *((100_001, square) for square in (1.5, 2.1999, 2.2001, 3.0)),
        *((300_000, square) for square in (0.5, 2.1999, 6.0)),
    ],
)
def test_a_p_value_of_many_rows_is_nearly_the_exact_one(n, square):
    """To the last bit up to 100,000 rows, and where it is not small."""
    statistic = (square / n) ** 0.5
    found = kolmogorov_smirnov_of(statistic, float(n), n).p_value
    exact = float(stats.kstwo.sf(statistic, n))
    assert found == pytest.approx(exact, rel=2e-4)
    if n == 100_000 or square < 2.2:
        assert found == exact


@settings(max_examples=25, deadline=None)
@given(st.lists(unit, min_size=3, max_size=20, unique=True), st.integers(2, 4))
def test_a_weight_counts_as_copies_of_the_row(u, times):
    u = np.array(u)
    weighted = uniformity_tests(u, sample_weight=np.r_[float(times), np.ones(len(u) - 1)])
    copies = uniformity_tests(np.r_[np.repeat(u[0], times - 1), u])
    effective = (len(u) + times - 1) ** 2 / (len(u) - 1 + times**2)
    assert weighted[0].statistic == pytest.approx(copies[0].statistic)
    area = np.sort(np.r_[np.repeat(u[0], times - 1), u])
    grid = (np.arange(200_000) + 0.5) / 200_000
    below = np.searchsorted(area, grid, side="right") / len(area)
    square = effective * np.mean((below - grid) ** 2)
    assert weighted[1].statistic == pytest.approx(square, abs=1e-3)
    weighed = effective * np.mean((below - grid) ** 2 / (grid * (1 - grid)))
    assert weighted[2].statistic == pytest.approx(weighed, abs=2e-2)


@pytest.mark.parametrize(
    ("tail", "critical", "p"),
    [
        # Stephens 1974, Table 1; the last from Marsaglia and Marsaglia 2004
        (cramer_von_mises_tail, 0.347, 0.10),
        (cramer_von_mises_tail, 0.461, 0.05),
        (cramer_von_mises_tail, 0.743, 0.01),
        (anderson_darling_tail, 1.933, 0.10),
        (anderson_darling_tail, 2.492, 0.05),
        (anderson_darling_tail, 3.8781250216, 0.01),
    ],
)
def test_limit_laws_have_the_printed_critical_values(tail, critical, p):
    assert tail(critical) == pytest.approx(p, rel=5e-3)


@pytest.mark.parametrize("tail", [cramer_von_mises_tail, anderson_darling_tail])
def test_limit_laws_fall_smoothly_into_the_far_tail(tail):
    scale = 1.0 if tail is anderson_darling_tail else 0.2
    p = np.array([tail(x) for x in scale * np.linspace(0.05, 60, 400)])
    assert np.all(np.diff(p) <= 1e-12)
    assert 0.0 < p[-1] < 1e-20
    assert p[0] > 0.99


def test_frosini_critical_values_do_not_depend_on_n_beyond_200():
    few, many = frosini_law(200, 10_000, 0), frosini_law(2000, 10_000, 1)
    for q, margin in ((0.5, 0.01), (0.9, 0.02), (0.95, 0.03), (0.99, 0.06)):
        assert np.quantile(few, q) == pytest.approx(np.quantile(many, q), abs=margin)


def test_frosini_law_is_the_law_of_the_statistic():
    rng = np.random.default_rng(5)
    u = np.sort(rng.random((4000, 12)), axis=1)
    drawn = np.abs(u - (np.arange(12) + 0.5) / 12).sum(axis=1) / 12**0.5
    assert stats.ks_2samp(drawn, frosini_law(12, 10_000, 0)).pvalue > 1e-3


@pytest.mark.parametrize("n", [8, 300])
def test_levels_hold_for_uniform_values(n):
    rng = np.random.default_rng(n)
    p = np.array([[t.p_value for t in uniformity_tests(rng.random(n))] for _ in range(1200)])
    # 1,200 tries: the standard error of a rate of 5% is 0.6%
    assert np.all(np.abs((p < 0.05).mean(axis=0) - 0.05) < 0.022)
    assert np.all((p < 0.01).mean(axis=0) < 0.022)


def test_levels_hold_with_weights():
    rng = np.random.default_rng(3)
    weight = rng.gamma(2.0, size=400)
    p = np.array(
        [
            [t.p_value for t in uniformity_tests(rng.random(400), sample_weight=weight)]
            for _ in range(800)
        ]
    )
    assert np.all(np.abs((p < 0.05).mean(axis=0) - 0.05) < 0.027)


def test_a_gross_fault_is_found_by_every_test():
    u = np.random.default_rng(0).beta(0.5, 0.5, 1000)
    assert all(test.p_value < 1e-3 for test in uniformity_tests(u))
    assert uniformity_tests(u)[3].p_value == pytest.approx(1 / 10_001)


def test_values_of_0_and_1_are_clipped_and_counted():
    found = uniformity_tests([0.0, 0.3, 0.6, 1.0, 1.0])[2]
    assert np.isfinite(found.statistic)
    assert found.note.startswith("3 ")
    assert uniformity_tests([0.2, 0.7])[2].note == ""


def test_bad_input_names_the_row():
    for bad in (np.nan, -0.1, 1.1):
        with pytest.raises(InputError, match="row 2"):
            kolmogorov_smirnov([0.5, bad])
    with pytest.raises(InputError):
        kolmogorov_smirnov([])
    with pytest.raises(InputError, match=r"10,000"):
        uniformity_tests([0.5, 0.6], draws=100)
