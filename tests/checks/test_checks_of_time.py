"""The checks of the latest rows and forecasts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from kdcal_core.checks import (
    Evidence,
    SummaryEvidence,
    headline,
    judge_checks,
    measure_checks,
    next_step,
)
from kdcal_core.checks.verdicts import CheckResult
from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics.summaries import summarise
from kdcal_core.distributions import Normal, RegressionSet
from kdcal_core.once import Once
from kdcal_core.review import Limit
from kdcal_core.statistics import Dependence

DAYS = pd.Series(pd.date_range("2026-01-01", periods=200).strftime("%d.%m.%Y"), name="day")
DAY = np.repeat(np.arange(200), 40)
N = len(DAY)
LATE = DAY >= 180  # from 30 June on


def loans(late: float, before: float = 0.0) -> Evidence:
    """Of an event that happens more often than stated, by one number on late days."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.3, N)
    y = (rng.random(N) < p + np.where(LATE, late, before)).astype(int)
    stated = np.column_stack([1 - p, p])
    rows = ScoredSet(stated, y, ("no", "yes"), "d", "evaluation")
    return Evidence(
        replace(rows, dependence=Dependence.of("time", DAY, "day")),
        event=1,
        times=lambda: DAYS[DAY],
    )


def demand(shift: float = 0.0, spread: float = 1.0) -> Evidence:
    rng = np.random.default_rng(0)
    mean, noise = rng.normal(size=N), rng.normal(size=N)
    y = mean + noise * np.where(LATE, spread, 1.0) + np.where(LATE, shift, 0.0)
    rows = RegressionSet(Normal(mean, 1.0), y, "d", "evaluation")
    return Evidence(replace(rows, dependence=Dependence.of("time", DAY, "day")))


CHANNEL = np.resize(["app", "branch", "phone", "post", "web"], N)


def of_channels(evidence: Evidence) -> Evidence:
    return replace(evidence, groups=lambda: pd.DataFrame({"channel": CHANNEL}))


def judged(evidence: Evidence, limit: Limit | None = None) -> CheckResult:
    code = "KC012" if evidence.task == "classification" else "KC026"
    limits = None if limit is None else {code: limit}
    (found,) = judge_checks(measure_checks(evidence, [code]), limits).results
    return found


def test_a_model_that_broke_at_the_end_fails_and_says_from_when() -> None:
    result = judged(loans(0.2))
    assert result.verdict == "fail"
    worst = result.worst
    assert worst.estimate.value == pytest.approx(0.2, abs=0.04)
    assert worst.name.startswith("from 2026-07-08 on (says 0.20, sees 0.4")
    assert "; before 0.20 and 0.20)" in worst.name


def test_only_later_rows_decide_an_open_change() -> None:
    limits = {"KC012": Limit(-0.2, 0.2)}
    changed = next_step(judge_checks(measure_checks(loans(0.2), ["KC012"]), limits))
    assert changed.startswith("The latest rows differ from those before beyond chance, from 2026-")
    assert "Look on Groups when it began." in changed
    limits = {"KC012": Limit(-0.01, 0.01)}
    same = next_step(judge_checks(measure_checks(loans(0.0), ["KC012"]), limits))
    assert same == "Check again once there are later rows."


def test_a_late_fault_of_one_group_that_every_other_check_averages_away_fails() -> None:
    rng, n = np.random.default_rng(19), 365 * 50
    day = np.repeat(np.arange(365), 50)
    channel = np.resize(["app", "branch", "phone", "post", "web"], n)
    late = (day >= 365 - 42) & (channel == "phone")
    p = rng.uniform(0.1, 0.3, n)
    y = (rng.random(n) < p + 0.17 * late).astype(int)
    rows = ScoredSet(np.column_stack([1 - p, p]), y, ("no", "yes"), "d", "evaluation")
    times = Dependence.of("time", day)
    days = pd.Series(pd.date_range("2026-01-01", periods=365).strftime("%Y-%m-%d"), name="day")
    whole = Evidence(replace(rows, dependence=times), event=1, times=lambda: days[day])
    groups = replace(whole, groups=lambda: pd.DataFrame({"channel": channel}), once=Once())
    assert judged(whole).verdict == "pass"
    assert judge_checks(measure_checks(groups, ["KC008"])).verdict == "pass"
    found = judge_checks(measure_checks(groups, ["KC012"]))
    worst, *others = found.results[0].parts
    assert [one.verdict for one in (worst, *others)] == ["fail", "pass", "pass", "pass", "pass"]
    assert worst.name == "for phone from 2026-11-17 on (says 0.20, sees 0.35; before 0.20 and 0.20)"
    assert worst.estimate.interval.endswith("with the check's parts, for 24 changes")
    assert headline(found) == (
        "The model fails 1 of 1 check: its calibration changes for phone from 2026-11-17 on."
    )


def test_groups_that_change_as_all_rows_do_or_by_chance_are_no_parts() -> None:
    for evidence in (loans(0.2), loans(0.0), demand(shift=1.2), demand()):
        whole, groups = judged(evidence), judged(of_channels(replace(evidence, once=Once())))
        assert groups == whole


def test_a_group_of_few_times_or_rows_keeps_no_sound_model_from_passing() -> None:
    few = np.where(DAY >= 195, "new", "old")
    few[:50] = "rare"
    evidence = replace(loans(0.0), groups=lambda: pd.DataFrame({"branch": few}))
    assert judged(evidence, Limit(-0.1, 0.1)).verdict == "pass"


def test_forecasts_of_one_group_that_widen_at_the_end_fail() -> None:
    rng = np.random.default_rng(0)
    wide = np.where(LATE & (CHANNEL == "phone"), 4.0, 1.0)
    rows = RegressionSet(Normal(np.zeros(N), 1.0), wide * rng.normal(size=N), "d", "evaluation")
    evidence = Evidence(replace(rows, dependence=Dependence.of("time", DAY)))
    assert judged(evidence).verdict != "fail"
    found = judged(of_channels(replace(evidence, once=Once())))
    assert found.worst.name.startswith("for phone from time 1")
    assert found.worst.estimate.label == "Change of the coverage of the 80% interval"
    assert (found.verdict, found.worst.verdict) == ("fail", "fail")


@pytest.mark.parametrize("wrong", [0.0, 0.1])
def test_a_model_that_is_as_it_was_passes_though_it_is_wrong_all_the_time(wrong: float) -> None:
    assert judged(loans(wrong, wrong), Limit(-0.1, 0.1)).verdict == "pass"


def test_forecasts_that_move_or_widen_at_the_end_fail_in_their_own_part() -> None:
    moved, wider = judged(demand(shift=1.2)), judged(demand(spread=3.0))
    assert (moved.verdict, wider.verdict) == ("fail", "fail")
    assert moved.worst.estimate.label == "Change of the mean PIT"
    assert moved.worst.name.startswith("from time 189 of 200 on (0.8")
    assert {one.estimate.label for one in wider.parts if one.verdict == "fail"} == {
        "Change of the coverage of the 80% interval"
    }
    assert judged(demand(), Limit(-0.15, 0.15)).verdict == "pass"


def test_numbers_of_a_clock_are_said_as_dates() -> None:
    seconds = pd.Series(1_767_225_600 + 86_400 * DAY, name="timestamp")
    (part, *_) = judged(replace(loans(0.2), times=lambda: seconds)).parts
    assert part.name.startswith("from 2026-07-08 on")


def test_without_an_order_in_time_there_is_no_answer() -> None:
    evidence = loans(0.0)
    for together in (None, Dependence.of("cluster", DAY, "shop")):
        result = judged(replace(evidence, rows=replace(evidence.scored, dependence=together)))
        assert (result.verdict, result.why_not) == (None, "No column has the role Time.")
    few = replace(evidence.scored, dependence=Dependence.of("time", DAY // 50, "day"))
    assert judged(replace(evidence, rows=few)).why_not.startswith("These rows are of 4 different")
    summary = summarise(evidence.scored.proba, evidence.scored.y, evidence.scored.classes)
    (found,) = measure_checks(SummaryEvidence(summary, 1), ["KC012"]).checks
    assert found.why_not == "No column has the role Time."
