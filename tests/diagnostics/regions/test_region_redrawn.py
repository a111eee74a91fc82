"""Regions grown on all rows and compared with redrawn outcomes."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from scipy.stats import norm

from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics.regions import describe_regions, find_regions, search_finding
from kdcal_core.diagnostics.regions.judging import Place
from kdcal_core.diagnostics.regions.search import evidence, judged_by_redraws, reached, residuals
from kdcal_core.diagnostics.regions.shift import shift_beyond
from kdcal_core.diagnostics.targets import confidence_target
from kdcal_core.errors import InputError
from kdcal_core.partition.tree import bin_inputs
from kdcal_core.statistics import Dependence, RowDesign


def drawn(n, d, gap, seed):
    """A gap where both of the first two columns are low, in 8% of the rows."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, d)), columns=[f"x{i + 1}" for i in range(d)])
    score = rng.uniform(0.6, 0.95, n)
    faulty = ((X["x1"] < -0.573) & (X["x2"] < -0.573)).to_numpy()
    right = (rng.random(n) < score - gap * faulty).astype(int)
    return bin_inputs(X), confidence_target(score, right), faulty


def test_a_right_model_is_called_faulty_no_more_often_than_said():
    false = 0
    for seed in range(80):
        X, scored, _ = drawn(400, 3, 0.0, seed)
        false += bool(find_regions(scored, X, redraws=39, seed=seed).faulty)
    assert false <= 11  # 99.9% quantile of a binomial of 80 draws with chance 0.05


def test_a_fault_that_takes_two_columns_to_name_is_found():
    X, scored, faulty = drawn(5000, 6, 0.15, 3)
    found = find_regions(scored, X, redraws=60)
    worst = found.faulty[0]
    assert worst.fault == "over-confident"
    assert {one.column.name for one in worst.conditions} == {"x1", "x2"}
    assert faulty[found.leaf == worst.leaf].mean() > 0.6
    assert worst.adjusted_p == pytest.approx(1 / 61)
    assert (found.n_grow, found.n_judge) == (5000, 5000)


def test_intervals_leave_out_zero_where_a_fault_is_named():
    for seed in range(5):
        X, scored, _ = drawn(3000, 4, 0.12, seed)
        for region in find_regions(scored, X, redraws=60, seed=seed).regions:
            edge = max(region.gap.low, -region.gap.high)
            if abs(edge) > 0.003:  # a chi-square is not the saddlepoint to the last digit
                assert (region.fault != "none") == (edge > 0)
            assert region.gap.level == 0.95


def test_the_same_seed_gives_the_same_p_values():
    X, scored, _ = drawn(800, 3, 0.1, 0)
    one, two = (find_regions(scored, X, redraws=30, seed=5) for _ in range(2))
    assert [r.p_value for r in one.regions] == [r.p_value for r in two.regions]


def test_a_gap_of_a_part_is_noticed_as_often_as_said():
    rng = np.random.default_rng(2)
    n, tried = 1000, 60
    X = pd.DataFrame({"ward": np.repeat(list("ABCDE"), n // 5), "x": rng.normal(size=n)})
    score, noticed = rng.uniform(0.3, 0.7, n), 0
    bins = bin_inputs(X)
    right = confidence_target(score, (rng.random(n) < score).astype(int))
    gap = find_regions(right, bins, redraws=20).unnoticed(0.8)
    for seed in range(tried):
        hit = rng.random(n) < score - gap * (X["ward"] == "B").to_numpy()
        goal = confidence_target(score, hit.astype(int))
        noticed += not find_regions(goal, bins, redraws=20, seed=seed).one_part
    assert 38 <= noticed <= 58  # 99.8% of a binomial of 60 draws with chance 0.8


def test_a_gap_of_a_part_is_noticed_where_rows_depend_without_the_price_of_dependence():
    rng = np.random.default_rng(2)
    n, size, tried = 2000, 10, 20
    cluster = np.arange(n) // size
    X = pd.DataFrame({"ward": np.repeat(list("ABCDE"), n // 5), "x": rng.normal(size=n)})
    score, bins = rng.uniform(0.3, 0.7, n), bin_inputs(X)
    design = RowDesign(np.ones(n), Dependence.of("cluster", cluster))

    def search(seed: int, gap: float = 0.0):
        # the outcomes of a cluster share half of what decides them
        decides = (rng.normal(size=n) + rng.normal(size=n // size)[cluster]) / 2**0.5
        hit = norm.cdf(decides) < score - gap * (X["ward"] == "B")
        return find_regions(
            confidence_target(score, hit.astype(int), design), bins, redraws=0, seed=seed
        )

    right = search(0)
    assert right.effect > 2.5
    gap = right.unnoticed(0.8)
    assert gap < 0.8 * replace(right, effect=1.0).unnoticed(0.8)
    assert sum(not search(seed, gap).one_part for seed in range(tried)) >= 0.7 * tried


def test_a_search_without_a_region_says_which_gap_of_a_part_it_would_have_found():
    X, scored, _ = drawn(1000, 3, 0.0, 0)
    said = search_finding(find_regions(scored, X))
    assert "a gap of 0.14 in a fifth of the rows would have been found in four of five" in said
    few = find_regions(*reversed(drawn(110, 3, 0.0, 0)[:2]))
    assert few.unnoticed(0.8) == np.inf  # 25 rows at least make a region
    assert "there are too few rows to find any part" in search_finding(few)
    assert describe_regions(scored, np.zeros(1000, dtype=int)).unnoticed(0.8) == np.inf


def test_exchanged_halves_judge_each_other():
    X, scored, _ = drawn(3000, 3, 0.2, 0)
    one, other = (find_regions(scored, X, redraws=0, swap=swap) for swap in (False, True))
    assert sorted([*one.judged, *other.judged]) == list(range(3000))
    assert not one.one_part
    assert not other.one_part
    few, many = (
        find_regions(scored, X, redraws=0, grow_share=0.3, swap=swap) for swap in (False, True)
    )
    assert few.n_grow == many.n_grow == 900


def test_too_few_redraws_or_rows_are_refused():
    X, scored, _ = drawn(300, 3, 0.0, 0)
    with pytest.raises(InputError, match=r"cannot reject at the level 0\.95\. Choose 200 redraws"):
        find_regions(scored, X, redraws=10)
    with pytest.raises(InputError, match=r"cannot reject at the level 0\.999\. Choose 10,000"):
        find_regions(scored, X, redraws=200, level=0.999)
    with pytest.raises(InputError, match="too few"):
        find_regions(scored, X, redraws=40, min_rows=200)


@pytest.mark.parametrize(("redraws", "place"), [(39, 1), (199, 9), (200, 10)])
def test_the_interval_is_that_of_the_largest_evidence_that_is_no_fault_yet(redraws, place):
    """0.05 * 200 is a little above ten as a float, but with 199 redraws ten of 200 are no fault."""
    goal = confidence_target(np.full(400, 0.5), np.arange(400) % 2)
    largest = np.linspace(1.0, 10.0, redraws)
    threshold = largest[-place]
    for more, fault in ((-1e-9, False), (1e-9, True)):
        (region,) = judged_by_redraws(
            goal,
            [Place(0, "all rows")],
            np.zeros(400, dtype=int),
            np.array([threshold + more]),
            np.zeros(1),
            np.column_stack([largest, largest]),
            0.95,
        )
        assert (region.p_value < 0.05) == fault
        assert region.gap.high == pytest.approx(threshold**0.5 * 0.5 / 20.0, rel=0.02)


@pytest.mark.parametrize("errors", [0, 1, 3, 20, 60])
@pytest.mark.parametrize("stated", [0.6, 0.97, 0.999])
def test_an_interval_excludes_the_stated_rate_exactly_where_the_evidence_is_a_fault(stated, errors):
    """Also of few errors of a model that is very sure, whose evidence is far from normal."""
    rng = np.random.default_rng(0)
    hit = (np.arange(60) >= errors).astype(float)
    weights = rng.exponential(size=60)
    for weight, spread in ((np.ones(60), 0.0), (np.ones(60), 0.3), (weights, 0.3)):
        score = expit(logit(stated) + spread * rng.normal(size=60))
        goal = confidence_target(score, hit, weight)
        (own,) = evidence(residuals(goal, hit), np.zeros(60, dtype=int))
        if own < 1.0:  # less than the largest of any redraws
            continue
        for times in (0.5, 0.99, 1.01, 2.0):
            found = shift_beyond(score, hit, weight, own * times)
            assert (found.low > 0.0 or found.high < 0.0) == (times < 1.0)
            assert found.low <= found.observed - found.stated <= found.high


def test_redraws_of_as_many_events_are_no_less_than_the_outcomes():
    """In floating point .1 + .2 + .3 is not .3 + .2 + .1, and such a tie is no evidence."""
    goal = confidence_target([0.1, 0.2, 0.3, 0.7], [0, 1, 1, 0])
    leaf = np.zeros(4, dtype=int)
    hits = [np.array(one, dtype=float) for one in itertools.permutations([0, 1, 1, 0])]
    sums = {float(residuals(goal, one).stats.values[:, 0].cumsum()[-1]) for one in hits}
    assert len(sums) > 1
    assert len({evidence(residuals(goal, one), leaf)[0] for one in hits}) == 1


def test_a_region_stands_out_by_the_better_of_two_ranks_among_all_searches():
    rng = np.random.default_rng(0)
    largest, found = rng.normal(size=(19, 2)), rng.normal(0.5, 1.0, size=(30, 2))
    for (above, plain), p in zip(found, reached(found, largest), strict=True):
        every = np.vstack([[above, plain], largest])
        ranks = [min(int((every[:, at] >= one[at]).sum()) for at in (0, 1)) for one in every]
        assert p == pytest.approx(np.mean([rank <= ranks[0] for rank in ranks]))


def test_two_ranks_do_not_raise_more_false_alarms():
    rng = np.random.default_rng(1)
    p = [
        reached(one[:1], one[1:])[0]
        for one in rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], size=(4000, 60))
    ]
    assert np.mean(np.array(p) < 0.05) < 0.05 + 3 * (0.05 * 0.95 / 4000) ** 0.5
    assert np.mean(np.array(p) < 0.2) < 0.2 + 3 * (0.2 * 0.8 / 4000) ** 0.5


def test_a_model_that_is_very_sure_is_searched() -> None:
    """A few of its errors are such strong evidence that their p value rounds to 0."""
    rng, n = np.random.default_rng(0), 400
    odds = rng.normal(size=n) * 8.0
    p = 1.0 / (1.0 + np.exp(-2.0 * odds))
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-odds))).astype(np.int64)
    rows = ScoredSet(np.column_stack([1.0 - p, p]), y, ("no", "yes"), "", "set")
    found = find_regions(
        rows, pd.DataFrame({"odds": odds, "other": rng.normal(size=n)}), max_depth=2, redraws=40
    )
    assert all(one.gap.low <= one.gap.value <= one.gap.high for one in found.regions)
