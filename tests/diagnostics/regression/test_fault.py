"""Which fault is said, on PIT values made with each, and how its size is stated."""

import numpy as np
import pytest
from scipy import stats

from kdcal_core.diagnostics import fault
from kdcal_core.distributions import Quantiles, randomised_pit
from kdcal_core.errors import InputError


def pits(shift=0.0, spread=1.0, n=400, seed=0):
    """PIT values of standard normal statements on outcomes shifted and stretched."""
    outcome = shift + spread * np.random.default_rng(seed).standard_normal(n)
    return stats.norm.cdf(outcome)


@pytest.mark.parametrize(
    ("pit", "kind"),
    [
        (pits(0.5), "too low"),
        (pits(-0.5), "too high"),
        (pits(spread=1.5), "too narrow"),
        (pits(spread=0.6), "too wide"),
        (pits(), "none"),
        # extreme: all outcomes above nearly all of the stated distribution, or at its middle
        (pits(6.0), "too low"),
        (np.ones(30), "too low"),
        (np.zeros(30), "too high"),
        (np.full(30, 0.5), "too wide"),
        (np.repeat([0.0, 1.0], 15), "too narrow"),
        # both, the larger named
        (pits(0.8, 1.2), "too low"),
        (pits(0.2, 2.0), "too narrow"),
    ],
)
def test_the_fault_is_named(pit, kind):
    found = fault(pit)
    assert found.kind == kind
    assert (found.p_value < 0.05) == (kind != "none")


def test_a_departure_of_higher_order_is_other():
    # two lumps with the mean and the variance of uniform values
    at = 12.0**-0.5
    pit = np.repeat([0.5 - at, 0.5 + at], 200)
    found = fault(pit)
    assert found.kind == "other"
    assert found.bias.value == pytest.approx(0.0, abs=1e-12)
    assert found.spread.value == pytest.approx(0.0, abs=1e-12)
    assert "wrong shape" in found.words


def test_the_sentence_counts(texts):
    pit = np.concatenate([np.linspace(0.51, 0.99, 342), np.linspace(0.01, 0.49, 70)])
    found = fault(pit, place="here")
    low, high = stats.binomtest(342, 412).proportion_ci(0.95, "exact")
    texts(found.words)
    assert f"({100 * low:.0f} to {100 * high:.0f}%)" in found.words


def test_the_sentence_of_a_spread_counts_outcomes_outside_intervals(texts):
    pit = pits(spread=2.0, n=300)
    outside = np.mean(np.abs(pit - 0.5) > 0.45)
    texts(fault(pit).words)
    assert f"{100 * outside:.0f}% of 300 rows" in fault(pit).words


def test_sizes_are_mean_and_standard_deviation():
    pit = pits(0.3, 1.4)
    found = fault(pit)
    assert found.bias.value == pytest.approx(pit.mean() - 0.5)
    assert found.spread.value == pytest.approx(pit.std() * 12**0.5 - 1)
    assert found.bias.low < found.bias.value < found.bias.high
    assert found.spread.low < found.spread.value < found.spread.high


@pytest.mark.parametrize("n", [15, 200])
def test_fault_is_rarely_named_where_there_is_none(n):
    rng = np.random.default_rng(n)
    named = np.mean([fault(rng.random(n)).kind != "none" for _ in range(1500)])
    assert 0.02 < named < 0.066


def test_intervals_of_sizes_hold():
    rng = np.random.default_rng(4)
    bias, spread = 2 / 3 - 0.5, (1 / 18) ** 0.5 * 12**0.5 - 1  # of Beta(2, 1)
    found = [fault(rng.beta(2, 1, 100)) for _ in range(600)]
    held_bias = np.mean([f.bias.low <= bias <= f.bias.high for f in found])
    held_spread = np.mean([f.spread.low <= spread <= f.spread.high for f in found])
    assert 0.92 < held_bias < 0.98
    assert 0.92 < held_spread < 0.985


def test_weights_turn_the_fault():
    pit = np.concatenate([np.full(50, 0.93), np.full(50, 0.07)]) + np.tile([-0.05, 0.05], 50)
    heavy = np.repeat([9.0, 1.0], 50)
    assert fault(pit).kind == "too narrow"
    assert fault(pit, sample_weight=heavy).kind == "too low"
    assert fault(pit, sample_weight=heavy[::-1]).kind == "too high"


def test_one_row_is_no_fault():
    found = fault([0.5])
    assert found.kind == "none"
    assert "1 row " in found.words


def test_bad_values_are_named():
    with pytest.raises(InputError, match="row 1"):
        fault([2.0])
    with pytest.raises(InputError, match="level"):
        fault([0.5], level=0.0)


def test_no_fault_is_said_beside_a_coverage_that_is_off(texts):
    # of 1,000 outcomes 80 lie beyond the 95% intervals; their mean and variance are uniform's
    rest = np.linspace(0.0295, 0.9705, 920)
    tails = np.r_[np.linspace(0.001, 0.024, 40), np.linspace(0.976, 0.999, 40)]
    found = fault(np.r_[rest, tails])
    assert found.kind == "too narrow"
    texts(found.words)
    assert fault(np.linspace(0.0255, 0.9745, 1000)).kind == "too wide"


def test_a_spread_that_the_coverage_contradicts_is_a_wrong_shape():
    # narrow in the middle and heavy at both ends: 95% intervals hold 89%
    far = np.r_[np.linspace(0.001, 0.024, 55), np.linspace(0.976, 0.999, 55)]
    found = fault(np.r_[far, np.linspace(0.3, 0.7, 890)])
    assert found.kind == "other"


def test_the_share_of_the_95_percent_interval_alone_can_speak():
    # moments of the uniform distribution, and too few outcomes beyond the 95% interval
    rng = np.random.default_rng(0)
    n, kinds = 2500, []
    for _ in range(20):
        pit = rng.random(n)
        far = np.flatnonzero(np.abs(pit - 0.5) > 0.45)
        moved = rng.choice(far, len(far) // 2, replace=False)
        pit[moved] = np.where(pit[moved] > 0.5, 0.999, 0.001)  # from the 90% to beyond the 95%
        kinds.append(fault(pit).kind)
    assert kinds.count("none") <= 2


def test_a_lone_interval_is_named_by_nothing_but_itself() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=4000)
    for width, kind in ((1.6449, "none"), (1.0, "too narrow"), (3.0, "too wide")):
        ends = np.tile([[-width, width]], (len(y), 1))
        stated = Quantiles([0.05, 0.95], ends)
        found = fault(randomised_pit(stated, y, 0), stated=stated.stated_levels)
        assert found.kind == kind
        assert "outcomes fall outside the stated 90% interval in" in found.words
