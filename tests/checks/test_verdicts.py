"""Verdicts follow from intervals, and all checks together keep one error rate."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from kdcal_core.checks import (
    CHECKS,
    LEVELS,
    CheckedReview,
    CheckResult,
    Evidence,
    JudgedPart,
    MeasuredCheck,
    MeasuredChecks,
    MeasuredPart,
    evidence_text,
    headline,
    judge_checks,
    limit_text,
    measure_checks,
    part_text,
    rows_needed,
    verdict_of,
)
from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import Estimate, unpaired_difference
from kdcal_core.errors import InputError
from kdcal_core.review import Limit

CODES = list(CHECKS)


def normal_part(value: float, error: float, name: str = "", n: int = 1000) -> MeasuredPart:
    """A part with normal intervals."""
    reach = [error * norm.ppf(0.5 + level / 2) for level in LEVELS]
    estimate = Estimate("Gap", "Gap", value, value - reach[0], value + reach[0], n)
    low, high = ([value + sign * one for one in reach] for sign in (-1, 1))
    return MeasuredPart(name, estimate, tuple(low), tuple(high))


def measured(*parts: tuple[MeasuredPart, ...]) -> MeasuredChecks:
    codes = CODES[: len(parts)]
    pairs = zip(codes, parts, strict=True)
    return MeasuredChecks(tuple(MeasuredCheck(code, each) for code, each in pairs), 1000)


def within(high: float = math.inf, low: float = -math.inf) -> dict[str, Limit]:
    return dict.fromkeys(CODES, Limit(low, high))


@pytest.mark.parametrize(
    ("limit", "verdict"),
    [
        (Limit(high=0.2), "pass"),
        (Limit(high=0.15), "pass"),  # the interval ends at the limit
        (Limit(high=0.1), "not enough evidence"),
        (Limit(high=0.05), "not enough evidence"),
        (Limit(high=0.04), "fail"),
        (Limit(low=0.05), "pass"),
        (Limit(low=0.1), "not enough evidence"),
        (Limit(low=0.16), "fail"),
        (Limit(0.0, 0.2), "pass"),
        (Limit(0.06, 0.2), "not enough evidence"),
        (Limit(0.08, 0.12), "not enough evidence"),  # the interval is wider than the limit
    ],
)
def test_the_interval_decides(limit: Limit, verdict: str) -> None:
    assert verdict_of(Estimate("Gap", "Gap", 0.1, 0.05, 0.15, 100), limit) == verdict


def test_no_interval_is_no_evidence() -> None:
    alone = Estimate("Gap", "Gap", 0.9, math.nan, math.nan, 1)
    assert verdict_of(alone, Limit(high=0.1)) == "not enough evidence"
    assert rows_needed(alone, Limit(high=0.1)) is None


@pytest.mark.parametrize(
    ("value", "limit"), [(0.03, Limit(high=0.04)), (0.05, Limit(high=0.04)), (0.0, Limit(-0.03, 9))]
)
def test_the_rows_named_would_decide(value: float, limit: Limit) -> None:
    few = normal_part(value, 0.02, n=400).estimate
    assert verdict_of(few, limit) == "not enough evidence"
    needed = rows_needed(few, limit)
    assert needed is not None
    enough = normal_part(value, 0.02 * math.sqrt(400 / needed), n=needed).estimate
    assert verdict_of(enough, limit) != "not enough evidence"
    barely = normal_part(value, 0.02 * math.sqrt(400 / (0.85 * needed))).estimate
    assert verdict_of(barely, limit) == "not enough evidence"


def test_fewer_rows_than_there_are_never_decide() -> None:
    few = Estimate("Gap", "Gap", 0.49, 0.03, 0.68, 7)
    assert rows_needed(few, Limit(-0.05, 0.05)) == 8  # 7 (0.46 / 0.44)^2, rounded up


@pytest.mark.parametrize("n", [20, 100, 182])
def test_the_rows_named_would_decide_on_a_share_that_was_never_seen(n: int) -> None:
    from kdcal_core.statistics import clopper_pearson

    def never(rows: int) -> Estimate:
        low, high = clopper_pearson(0.0, rows, 0.95)
        return Estimate("", "", 0.0, float(low), float(high), rows, interval="Clopper-Pearson")

    limit = Limit(high=0.02)
    assert verdict_of(never(n), limit) == "not enough evidence"
    assert rows_needed(never(n), limit) == 190  # 183, with two digits
    assert verdict_of(never(182), limit) == "not enough evidence"
    assert verdict_of(never(183), limit) == "pass"


def test_limits_need_room_and_a_known_kind() -> None:
    with pytest.raises(InputError, match="No value lies within"):
        Limit(0.2, 0.1)
    with pytest.raises(InputError, match="No value lies within"):
        Limit(math.nan, 0.1)
    with pytest.raises(InputError, match="cannot be against 'luck'"):
        Limit(0.0, 0.1, "luck")  # type: ignore[arg-type]


def test_levels_between_the_measured_ones_follow_a_normal_interval() -> None:
    part = normal_part(0.1, 0.02)
    for level in (0.9, 0.95, 0.98, 0.995, 0.9995, 0.99999):
        reach = 0.02 * norm.ppf(0.5 + level / 2)
        assert part.at(level).low == pytest.approx(0.1 - reach, abs=1e-9)
        assert part.at(level).high == pytest.approx(0.1 + reach, abs=1e-9)
    assert part.at(0.5).low <= 0.1 <= part.at(0.5).high


def test_ends_that_do_not_move_stay() -> None:
    ends = (-math.inf,) * len(LEVELS)
    part = MeasuredPart("", Estimate("", "", 0.0, -math.inf, 0.2, 5), ends, (0.2,) * len(LEVELS))
    assert (part.at(0.97).low, part.at(0.97).high) == (-math.inf, 0.2)


def test_fails_are_corrected_as_holm_does() -> None:
    """Two of three checks are beyond their limit; the second only once the first has failed."""
    two_sided = [0.001, 0.022, 0.4]  # p values: 0.05 / 3 < 0.022 < 0.05 / 2
    parts = [(normal_part(0.1 + norm.isf(p / 2), 1.0),) for p in two_sided]
    found = judge_checks(measured(*parts), within(0.1))
    assert [one.verdict for one in found.results] == ["fail", "fail", "not enough evidence"]
    parts[0] = (normal_part(0.1, 1.0),)
    found = judge_checks(measured(*parts), within(0.1))
    assert [one.verdict for one in found.results] == ["not enough evidence"] * 3
    assert found.results[1].worst.spared  # it would fail alone
    spared = found.results[1].worst
    assert spared.estimate.low < 0.1 < spared.estimate.high  # the interval that decided
    assert spared.rows_needed is not None
    assert spared.rows_needed > spared.estimate.n
    assert not found.results[0].worst.spared


def test_parts_of_a_check_share_its_error() -> None:
    beyond = normal_part(0.1 + norm.isf(0.03 / 2), 1.0, "a")
    alone = judge_checks(measured((beyond,)), within(0.1))
    assert alone.verdict == "fail"
    among = judge_checks(measured((normal_part(-5.0, 1.0, "b"), beyond)), within(0.1))
    assert among.verdict == "not enough evidence"
    assert among.results[0].worst.name == "a"


def test_a_check_passes_only_with_all_its_parts() -> None:
    parts = (normal_part(0.0, 0.01, "a"), normal_part(0.09, 0.01, "b"))
    (result,) = judge_checks(measured(parts), within(0.1)).results
    assert result.verdict == "not enough evidence"
    assert [one.name for one in result.parts] == ["b", "a"]
    assert [one.verdict for one in result.parts] == ["not enough evidence", "pass"]


def test_an_unanswered_check_counts_for_nothing() -> None:
    asked = MeasuredChecks((MeasuredCheck(CODES[0], why_not="There are no groups."),), 10)
    found = judge_checks(asked)
    assert found.results[0].verdict is None
    assert found.verdict == "not enough evidence"


def test_against_chance_the_p_value_decides() -> None:
    (code,) = [one for one in CODES if CHECKS[one].by_chance is not None][:1] or [None]
    if code is None:
        pytest.skip("no check has a test against chance")
    limits = {code: Limit(against="chance")}
    for p_value, verdict in ((0.03, "fail"), (0.3, "pass")):
        one = MeasuredCheck(code, (replace(normal_part(0.4, 0.1), p_value=p_value),))
        assert judge_checks(MeasuredChecks((one,), 10), limits).verdict == verdict


def test_against_chance_each_part_has_its_own_verdict() -> None:
    code = next(one for one in CODES if CHECKS[one].by_chance is not None)
    parts = [
        replace(normal_part(0.4, 0.1, name), p_value=p) for name, p in (("a", 0.3), ("b", 1e-6))
    ]
    measured_ = MeasuredChecks((MeasuredCheck(code, tuple(parts)),), 10)
    (found,) = judge_checks(measured_, {code: Limit(against="chance")}).results
    assert [(one.name, one.verdict) for one in found.parts] == [("b", "fail"), ("a", "pass")]


def test_p_values_of_parts_share_the_error() -> None:
    """The smallest of four p values is 0.03: by chance alone in one of nine reviews."""
    code = next(one for one in CODES if CHECKS[one].by_chance is not None)
    parts = [replace(normal_part(0.4, 0.1, str(p)), p_value=p) for p in (0.03, 0.4, 0.6, 0.9)]
    measured_ = MeasuredChecks((MeasuredCheck(code, tuple(parts)),), 10)
    (found,) = judge_checks(measured_, {code: Limit(against="chance")}).results
    assert found.verdict == "pass"


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, math.nan])
def test_a_level_that_is_no_probability_is_refused(level: float) -> None:
    with pytest.raises(InputError, match="level is"):
        judge_checks(MeasuredChecks((), 0), level=level)


def test_few_rows_of_a_class_are_no_fault_of_the_model() -> None:
    def rows(counted: float) -> MeasuredChecks:
        estimate = Estimate("Rows", "Rows", counted, counted, counted, 400)
        part = MeasuredPart("b", estimate, (counted,) * len(LEVELS), (counted,) * len(LEVELS))
        return MeasuredChecks((MeasuredCheck("KC202", (part,)),), 400)

    for counted, verdict, needed in (
        (12.0, "not enough evidence", 1000),
        (0.0, "not enough evidence", None),
        (30.0, "pass", None),
    ):
        (found,) = judge_checks(rows(counted)).results
        assert (found.verdict, found.worst.rows_needed) == (verdict, needed)
        assert not found.worst.spared


@pytest.mark.parametrize(
    ("estimate", "said"),
    [
        (Estimate("", "", math.nan, math.nan, math.nan, 9, interval="not defined: one class"),
         "It cannot be computed from these rows: not defined: one class."),
        (Estimate("", "", 0.04, -math.inf, math.inf, 1),
         "There are too few rows even to say how many would decide."),
        (Estimate("", "", 0.1, 0.0, 0.2, 9),
         "The estimate lies on the limit, so no number of rows can be named."),
    ],
    ids=["no value", "no interval", "on the limit"],
)  # fmt: skip
def test_no_number_of_rows_is_named_and_the_reason_is_true(estimate: Estimate, said: str) -> None:
    ends = ((estimate.low,) * len(LEVELS), (estimate.high,) * len(LEVELS))
    one = MeasuredChecks((MeasuredCheck(CODES[0], (MeasuredPart("", estimate, *ends),)),), 9)
    (found,) = judge_checks(one, within(0.1)).results
    assert found.verdict == "not enough evidence"
    assert evidence_text(found, found.worst) == said


def test_levels_that_draws_do_not_resolve_follow_from_those_that_they_do() -> None:
    reach = [0.02 * norm.ppf(0.5 + level / 2) for level in LEVELS[:2]]
    ends = tuple(0.1 - one for one in reach), tuple(0.1 + one for one in reach)
    part = MeasuredPart("", Estimate("", "", 0.1, ends[0][0], ends[1][0], 100), *ends)
    for level in (0.999, 0.99999):
        far = 0.02 * norm.ppf(0.5 + level / 2)
        assert part.at(level).high == pytest.approx(0.1 + far, abs=1e-9)
        assert part.at(level).low == pytest.approx(0.1 - far, abs=1e-9)


def test_a_limit_against_chance_needs_a_test() -> None:
    code = next(one for one in CODES if CHECKS[one].by_chance is None)
    asked = MeasuredChecks((MeasuredCheck(code, (normal_part(0.0, 1.0),)),), 10)
    with pytest.raises(InputError, match="has no limit against chance"):
        judge_checks(asked, {code: Limit(against="chance")})


@pytest.mark.parametrize("code", [one for one in CODES if CHECKS[one].by_chance is None])
def test_why_there_is_no_limit_against_chance_is_said_in_a_sentence(code: str) -> None:
    check = CHECKS[code]
    with pytest.raises(InputError) as error:
        check.limited(Limit(against="chance"))
    said = error.value.what
    assert said.startswith(
        f"The check {code} ({check.title.lower()}) has no limit against chance, "
    )
    assert said.count("because") == 1 + (code == "KC208")
    assert ". " not in said
    assert "end" in error.value.fix
    if check.target is not None:
        assert f"about {check.target:g}, its best value" in said
    for words, codes in (
        ("has 0.5, which can be the lower end", ("KC101", "KC205")),
        ("so that 0 can be the upper end", ("KC103", "KC123")),
        ("no outcomes are known there", ("KC010",)),
    ):
        assert (words in said) == (code in codes)


def test_an_end_at_the_best_value_fails_beyond_chance_alone() -> None:
    """What the error advises in place of a limit against chance."""
    limits = {"KC002": Limit(0.0, 0.0)}
    for estimate, verdict in (((0.02, 0.005), "fail"), ((0.02, 0.03), "not enough evidence")):
        asked = MeasuredChecks((MeasuredCheck("KC002", (normal_part(*estimate),)),), 1000)
        assert judge_checks(asked, limits).results[0].verdict == verdict


def test_an_unknown_code_is_refused() -> None:
    with pytest.raises(InputError, match="There is no check 'KC999'"):
        judge_checks(MeasuredChecks((), 0), {"KC999": Limit()})


def test_against_a_baseline_the_difference_is_judged() -> None:
    limits = {CODES[0]: Limit(high=0.02, against="baseline")}
    now, then = measured((normal_part(0.1, 0.005),)), measured((normal_part(0.02, 0.005),))
    found = judge_checks(now, limits, baseline=then)
    assert found.verdict == "fail"
    worst = found.results[0].worst.estimate
    reach = norm.ppf(0.975) * 0.005 * math.sqrt(2)
    assert (worst.value, worst.low) == (pytest.approx(0.08), pytest.approx(0.08 - reach))
    assert judge_checks(now, limits, baseline=now).verdict == "pass"
    assert judge_checks(now, limits).results[0].why_not == (
        "There is no baseline that answered this check."
    )


def test_a_part_that_the_baseline_lacks_is_not_passed_over() -> None:
    limits = {CODES[0]: Limit(high=0.02, against="baseline")}
    north, south = (normal_part(0.01, 0.001, name) for name in ("north", "south"))
    (found,) = judge_checks(measured((north, south)), limits, baseline=measured((north,))).results
    assert found.verdict == "not enough evidence"
    assert [(one.name, one.verdict) for one in found.parts] == [
        ("south", "not enough evidence"),
        ("north", "pass"),
    ]
    assert evidence_text(found, found.worst) == (
        "It cannot be computed from these rows: the baseline has no such part."
    )
    assert part_text(found, found.parts[1]) == (
        "Gap minus the baseline's, north, 0.000 (−0.003 to 0.003), "
        "limit: at most 0.02 above the baseline"
    )
    (none,) = judge_checks(measured((north,)), limits, baseline=measured((south,))).results
    assert none.verdict is None
    assert "The baseline has none of the parts" in none.why_not


def test_parts_that_the_data_name_are_compared_whatever_their_name() -> None:
    """The rarest class and the column with most gaps are others in the other review."""

    def found(y: list[int], missing: dict[str, int]) -> MeasuredChecks:
        n = len(y)
        rows = ScoredSet(np.full((n, 2), 0.5), np.array(y), ("no", "yes"), "d", "evaluation")
        return measure_checks(Evidence(rows, missing=missing), ["KC202", "KC203"])

    now = found([0] * 60 + [1] * 40, {"age": 30, "site": 0})
    then = found([0] * 45 + [1] * 55, {"age": 0, "site": 10})
    none = found([0] * 45 + [1] * 55, {"age": 0, "site": 0})
    limits = {code: Limit(-5.0, 5.0, against="baseline") for code in ("KC202", "KC203")}
    for before, more in ((then, 0.2), (none, 0.3)):
        rarest, gaps = judge_checks(now, limits, baseline=before).results
        assert (rarest.worst.name, rarest.worst.estimate.value) == ("yes", -5.0)
        assert (gaps.worst.name, gaps.worst.estimate.value) == ("age", pytest.approx(more))
        assert rarest.verdict == gaps.verdict == "pass"


@pytest.mark.parametrize("code", ["KC007", "KC024"])
def test_regions_are_compared_with_no_other_review(code: str) -> None:
    """A limit of an earlier version may be stored: the review still opens."""
    limit = Limit(-0.1, 0.1, against="baseline")
    with pytest.raises(InputError, match="cannot be compared with another review"):
        CHECKS[code].limited(limit)
    measured_ = MeasuredChecks((MeasuredCheck(code, (normal_part(0.0, 0.1, "x"),)),), 10)
    (found,) = judge_checks(measured_, {code: limit}, baseline=measured_).results
    assert found.verdict is None
    assert "cannot be compared with another review, because each finds" in found.why_not


@pytest.mark.parametrize(
    ("limit", "percent", "said"),
    [
        (Limit(low=0.1), False, "at least 0.1"),
        (Limit(-0.05, 0.05, "baseline"), False, "−0.05 to 0.05 above the baseline"),
        (Limit(high=0.07), True, "at most 7%"),
        (Limit(high=0.0025), True, "at most 0.25%"),
        (Limit(low=12_500), False, "at least 12,500"),
        (Limit(high=1234.5678), False, "at most 1,234.5678"),
    ],
)
def test_a_limit_keeps_its_digits_beside_a_wide_interval(
    limit: Limit, percent: bool, said: str
) -> None:
    wide = Estimate("Slope", "Slope", 12.0, -300.0, 300.0, 20, percent=percent)
    assert limit_text(limit, wide) == said


def test_intervals_of_differences_hold_the_truth() -> None:
    """Two shares of unequal size, their intervals by Clopper and Pearson: conservative."""
    from kdcal_core.statistics import clopper_pearson

    rng = np.random.default_rng(0)
    runs, held = 400, 0
    for _ in range(runs):
        ends = []
        for rate, n in ((0.1, 300), (0.04, 800)):
            seen = rng.binomial(n, rate) / n
            low, high = clopper_pearson(seen, n, 0.95)
            ends.append(Estimate("", "", seen, float(low), float(high), n))
        found = unpaired_difference(*ends)
        held += found.low <= 0.06 <= found.high
    assert held / runs > 0.93


def test_all_checks_together_keep_one_error_rate() -> None:
    """Ten checks whose truths lie on their limits: any fails in at most 5% of the runs."""
    rng = np.random.default_rng(1)
    codes = CODES[: min(len(CODES), 10)]
    failed = 0
    runs = 400
    for _ in range(runs):
        drawn = [(normal_part(0.1 + rng.normal(), 1.0),) for _ in codes]
        failed += bool(judge_checks(measured(*drawn), within(0.1)).of("fail"))
    # one-sided 2.5% a check is the most; Holm brings all to 5% and less
    assert failed / runs <= 0.05


def failing(code: str, value: float, limit: Limit, name: str = "") -> CheckResult:
    estimate = Estimate("Gap", "Gap", value, value - 0.01, value + 0.01, 900)
    return CheckResult(code, "fail", limit, (JudgedPart(name, estimate, "fail"),))


@pytest.mark.parametrize(
    ("result", "fault"),
    [
        (failing("KC004", 0.6, Limit(0.8, 1.25)), "its probabilities are too extreme"),
        (failing("KC004", 1.6, Limit(0.8, 1.25)), "its probabilities are not extreme enough"),
        (failing("KC002", -0.2, Limit(-0.03, 0.03)), "it states too little on average"),
        (
            failing("KC005", 0.2, Limit(-0.05, 0.05), "sick"),
            "it is too sure where it predicts sick",
        ),
        (failing("KC023", 0.2, Limit(-0.1, 0.1)), "its predictions are too high on average"),
        (failing("KC001", 0.2, Limit(high=0.05)), "its probabilities do not match what happens"),
    ],
)
def test_a_fault_is_named_on_its_side(result: CheckResult, fault: str) -> None:
    assert result.fault == fault
    said = headline(CheckedReview((result,), 0.95, 900))
    assert said == f"The model fails 1 of 1 check: {fault}."


def test_a_headline_says_that_other_parts_fail_too() -> None:
    one = failing("KC006", -0.2, Limit(-0.03, 0.03), "well")
    passing = replace(one.parts[0], verdict="pass")
    parts = (one.parts[0], replace(one.parts[0], name="sick"), passing)
    said = headline(CheckedReview((replace(one, parts=parts),), 0.95, 900))
    assert said.endswith(": it states well too seldom (the worst of 2 that fail).")


def test_the_same_fault_is_said_once_and_a_long_name_is_cut() -> None:
    low = Limit(-0.03, 0.03)
    twice = (failing("KC002", -0.2, low), failing("KC003", 0.5, Limit(-0.3, 0.3)))
    said = headline(CheckedReview(twice, 0.95, 900))
    assert said == "The model fails 2 of 2 checks: it states too little on average."
    long = failing("KC005", 0.2, low, "x" * 10_000)
    assert len(headline(CheckedReview((long,), 0.95, 900))) < 120


@pytest.mark.parametrize("code", CHECKS)
def test_every_fault_continues_the_sentence(code: str) -> None:
    check = CHECKS[code]
    for words in filter(None, (check.fault, check.fault_below)):
        assert words[0].islower()
        assert not words.endswith(".")
