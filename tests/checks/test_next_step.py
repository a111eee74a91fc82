"""What to do next: first what no repair of all rows mends, then fails, rows, or nothing."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from kdcal_core.checks import (
    CHECKS,
    LEVELS,
    CheckedReview,
    CheckResult,
    JudgedPart,
    MeasuredCheck,
    MeasuredChecks,
    MeasuredPart,
    Verdict,
    evidence_text,
    headline,
    judge_checks,
    next_step,
    part_text,
)
from kdcal_core.diagnostics import Estimate
from kdcal_core.review import Limit

GAP = Estimate("Gap", "Observed minus stated", 0.23, 0.18, 0.28, 386)
GAIN = Estimate("Log loss gained", "Log loss gained", 0.12, 0.1, 0.14, 900, percent=True)
ALIKE = "A repair that treats all rows alike leaves this as it is."


def found(code: str, verdict: Verdict, *parts: tuple[str, Estimate], rows: int | None = None):
    judged = tuple(JudgedPart(name, one, verdict, rows_needed=rows) for name, one in parts)
    return CheckResult(code, verdict, Limit(), judged)


def said(*results: CheckResult, complete: bool = True) -> str:
    return next_step(CheckedReview(results, 0.95, 900), complete=complete)


def test_a_fault_of_one_place_goes_before_an_earlier_fail() -> None:
    everywhere = found("KC001", "fail", ("", GAP))
    for code, name, where in (
        ("KC007", "region is Coast", "where region is Coast"),
        ("KC008", "Coast", "in Coast"),
        ("KC024", "x is above 2", "where x is above 2"),
        ("KC025", "Coast", "in Coast"),
    ):
        step = said(everywhere, found(code, "fail", (name, GAP)))
        most = f"Most wrong {where}: observed minus stated 0.23 (0.18 to 0.28). {ALIKE} "
        assert step == most + CHECKS[code].remedy
        assert said(everywhere, found(code, "pass", (name, GAP))) == CHECKS["KC001"].remedy


def test_the_best_repair_tried_and_its_gain_follow() -> None:
    beta, platt = ("Beta", GAIN), ("Platt", replace(GAIN, value=0.02, low=-0.01, high=0.05))
    worth = said(found("KC103", "fail", beta, platt))
    assert worth == (
        f"{CHECKS['KC103'].remedy} The best of the 2 quick calibrators tried, Beta, lowers log "
        "loss by 12.0% (10.0% to 14.0%)."
    )
    vain = said(
        found(
            "KC123", "pass", ("Isotonic", platt[1]), ("Local", replace(GAIN, value=-0.01, low=-0.1))
        )
    )
    assert vain.startswith("Nothing. Keep the model")
    assert "None of the 2 recalibrators tried lowers CRPS beyond chance; Isotonic" in vain
    assert "closest, with 2% (−1% to 5%)." in vain


@pytest.mark.parametrize(
    ("code", "loss", "tried"),
    [("KC103", "log loss", "quick calibrators"), ("KC123", "CRPS", "recali")],
)
def test_against_a_baseline_the_gain_is_still_that_on_these_rows(
    code: str, loss: str, tried: str
) -> None:
    def gains(**values: float) -> MeasuredChecks:
        parts = []
        for name, value in values.items():
            one = replace(GAIN, value=value, low=value - 0.04, high=value + 0.04)
            ends = ((one.low,) * len(LEVELS), (one.high,) * len(LEVELS))
            parts.append(MeasuredPart(name, one, *ends))
        return MeasuredChecks((MeasuredCheck(code, tuple(parts)),), 900)

    limits = {code: Limit(high=0.05, against="baseline")}
    for then in ({"Beta": 0.34, "Platt": 0.01}, {"Platt": 0.01}):  # Beta was not tried
        checked = judge_checks(gains(Platt=0.1, Beta=0.2), limits, baseline=gains(**then))
        step = next_step(checked)
        assert f"The best of the 2 {tried}" in step
        assert f"tried, Beta, lowers {loss} by 20% (16% to 24%)." in step


def test_rows_are_asked_for_once_every_check_is_made() -> None:
    few = found("KC001", "not enough evidence", ("", GAP), rows=2000)
    more = found("KC002", "not enough evidence", ("", GAP), rows=12_000)
    unknown = found("KC003", "not enough evidence", ("", replace(GAP, value=math.nan)))
    assert said(few, more, unknown).startswith("Collect about 12,000 held-out rows of the same")
    assert said(unknown).startswith("Collect more held-out rows of the same kind")
    assert said(few, more, complete=False) == ""
    assert said(complete=False) == ""


def test_rows_that_nobody_can_collect_are_not_asked_for() -> None:
    few = found("KC001", "not enough evidence", ("", GAP), rows=2000)
    never = found("KC004", "not enough evidence", ("", GAP), rows=210_000)
    assert said(few, never) == (
        "Collect about 2,000 held-out rows of the same kind, and check again. To decide "
        "calibration slope would take 210,000 held-out rows or more: the estimate lies too close "
        "to its limit."
    )
    assert said(never) == "Collect about 210,000 held-out rows of the same kind, and check again."
    on_it = replace(never, parts=(replace(never.parts[0], rows_needed=64_000_000_000),))
    words = "would take more than 100,000,000 held-out rows"
    assert words in said(few, on_it)
    assert said(on_it).startswith(f"More rows are no help: to decide calibration slope {words}")
    assert evidence_text(on_it, on_it.worst).startswith("More than 100,000,000 rows of the same")


def test_the_end_of_an_interval_is_not_written_as_the_limit_that_it_misses() -> None:
    part = found("KC001", "not enough evidence", ("", replace(GAP, low=0.0, high=0.0502))).worst
    result = replace(found("KC001", "pass", ("", GAP)), limit=Limit(high=0.05), parts=(part,))
    assert "0.0502), limit: at most 0.05" in part_text(result, part)


def test_a_place_that_may_be_beyond_its_limit_is_named_first() -> None:
    gap = replace(GAP, value=-0.15, low=-0.18, high=-0.09, n=150)
    place = found("KC007", "not enough evidence", ("ward is B", gap), rows=200)
    place = replace(place, limit=Limit(-0.1, 0.1))
    assert said(place) == (
        "Look where ward is B: observed minus stated −0.15 (−0.18 to −0.09) may be beyond the "
        "limit. Collect about 1,200 held-out rows of the same kind, and check again."
    )
    (part,) = place.parts
    assert evidence_text(place, part) == (
        "About 200 rows of this part, which has 150, would decide."
    )
    within = replace(place, limit=Limit(-0.16, 0.16))
    assert said(within).startswith("Collect about 1,200")


def test_one_region_of_all_rows_is_no_place() -> None:
    everywhere = found("KC007", "fail", ("all rows", GAP))
    assert said(everywhere) == (
        "No part of the inputs stands out: over all rows, observed minus stated is 0.23 (0.18 to "
        "0.28). Use a repair that treats all rows alike."
    )
    assert said(found("KC001", "fail", ("", GAP)), everywhere) == CHECKS["KC001"].remedy
    local = found("KC008", "fail", ("Coast", GAP))
    assert said(everywhere, local).startswith("Most wrong in Coast: ")


def test_a_fault_that_all_groups_share_is_no_fault_of_one_group() -> None:
    near = replace(GAP, value=0.21, low=0.16, high=0.26, n=514)
    alike = found("KC008", "fail", ("Coast", GAP), ("Hills", near))
    assert said(alike) == (
        "No group stands out: in Coast, observed minus stated is 0.23 (0.18 to 0.28), and "
        "elsewhere no different beyond chance. Use a repair that treats all rows alike."
    )
    everywhere = found("KC001", "fail", ("", GAP))
    assert said(everywhere, alike) == CHECKS["KC001"].remedy
    fault = CHECKS["KC001"].fault
    assert headline(CheckedReview((everywhere, alike), 0.95, 900)).endswith(f"checks: {fault}.")
    opposite = replace(near, value=-0.2, low=-0.25, high=-0.15)
    apart = found("KC008", "fail", ("Coast", GAP), ("Hills", opposite))
    assert said(everywhere, apart).startswith("Most wrong in Coast: ")
    # the worst place may be like the rest, and a smaller one not
    small = replace(GAP, value=-0.3, low=-0.45, high=-0.15, n=40)
    most = replace(GAP, n=860)
    third = found("KC008", "fail", ("Coast", most), ("Marsh", small))
    assert said(third).startswith("Most wrong in Marsh: observed minus stated −0.3")


@pytest.mark.parametrize(("side", "word"), [(-1.0, "few"), (1.0, "many")])
def test_the_remedy_of_coverage_is_that_of_its_side(side: float, word: str) -> None:
    held = replace(GAP, value=0.2 * side, low=0.2 * side - 0.03, high=0.2 * side + 0.03)
    result = found("KC022", "fail", ("the 50% interval", held))
    assert result.remedy.startswith(f"Too {word} outcomes inside: ")
    assert said(result) == result.remedy
    change = replace(held, value=-held.value)  # against a baseline, a difference of its own side
    part = replace(result.parts[0], estimate=change, now=held)
    assert replace(result, parts=(part,)).remedy == result.remedy


def test_groups_that_nobody_declared_are_asked_for() -> None:
    unasked = CheckResult("KC008", None, Limit(), (), "No groups are declared.")
    passed = found("KC001", "pass", ("", GAP))
    branch = (
        "Declare the groups that matter, for instance by branch, which the model does not read: "
        "no group is judged yet."
    )

    def step(*results: CheckResult, undeclared: tuple[str, ...] = ("branch",)) -> str:
        return next_step(CheckedReview(results, 0.95, 900), undeclared=undeclared)

    assert step(passed, unasked) == branch
    assert step(passed, unasked, undeclared=()).startswith("Nothing. Keep")
    failed = found("KC001", "fail", ("", GAP))
    assert step(failed, unasked) == f"{CHECKS['KC001'].remedy} {branch}"
    # where groups are judged, or not asked about, nothing is said of them
    for results in ([passed], [passed, found("KC008", "pass", ("north", GAP))]):
        assert step(*results).startswith("Nothing. Keep")


def test_the_rows_of_one_predicted_class_are_called_a_part() -> None:
    gap = Estimate("Confidence gap", "Confidence gap", 0.49, 0.03, 0.68, 7)
    two = found("KC005", "not enough evidence", ("yes", gap), ("no", replace(gap, n=2993)), rows=8)
    assert evidence_text(two, two.worst) == "About 8 rows of this part, which has 7, would decide."
    assert "of the same kind" in evidence_text(two, two.parts[1])


def test_a_fault_that_no_calibrator_repairs_is_always_named() -> None:
    over, place = found("KC001", "fail", ("", GAP)), found("KC007", "fail", ("ward is B", GAP))
    poor = found("KC101", "fail", ("", GAP))
    gain = found("KC103", "fail", ("Beta", GAIN))
    for results in ((over, poor), (place, poor), (over, poor, gain)):
        step = said(*results)
        assert step.endswith(
            "The model has another fault: it tells the classes apart too poorly. No calibrator can "
            "change the order of the rows by much. The model needs better inputs, more rows or "
            "another method."
        )
        assert step.startswith(said(*(one for one in results if one != poor)))
    assert said(poor) == CHECKS["KC101"].remedy
    spread, trivial = found("KC021", "fail", ("", GAP)), found("KC121", "fail", ("", GAP))
    assert CHECKS["KC121"].remedy in said(spread, trivial)


def test_what_may_cause_all_other_faults_stands_alone() -> None:
    """To recalibrate comes second where two classes may be exchanged."""
    over, poor, gain = found("KC001", "fail", ("", GAP)), found("KC101", "fail", ("", GAP)), GAIN
    for others in ((), (over, poor), (over, poor, found("KC103", "fail", ("Beta", gain)))):
        assert said(*others, found("KC205", "fail", ("", GAP))) == (
            "Begin with the data: the model ranks the rows the wrong way round. "
            f"{CHECKS['KC205'].remedy}"
        )


def test_the_headline_names_each_kind_of_fault_before_a_second_of_one() -> None:
    codes = ("KC001", "KC004", "KC005", "KC101", "KC103", "KC203", "KC205")
    results = [found(one, "fail", ("default", GAP)) for one in codes]
    first = ", ".join(CHECKS[one].fault for one in ("KC001", "KC101", "KC205"))
    assert f"fails 7 of 7 checks: {first} and more." in headline(
        CheckedReview(tuple(results), 0.95, 900)
    )


def test_no_remedy_sends_a_reader_of_a_report_to_a_screen() -> None:
    for check in CHECKS.values():
        for name in (" page", "Compare ", "Confidence by class"):
            assert name not in check.remedy + check.above, check.code
