"""Every check on rows whose truth is known: it passes, it fails, or it says what is missing."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from kdcal_core.checks import (
    CHECKS,
    QUICK_CALIBRATORS,
    CheckedReview,
    Evidence,
    SummaryEvidence,
    gain_of_a_recalibration,
    judge_checks,
    measure_checks,
    next_step,
    with_group_sums,
)
from kdcal_core.data import ScoredSet
from kdcal_core.data.labels import odd_answers
from kdcal_core.diagnostics import auroc, calibration_slope, confidence_calibration_error, coverage
from kdcal_core.diagnostics.summaries import summarise
from kdcal_core.distributions import Normal, Quantiles, RegressionSet
from kdcal_core.errors import InputError
from kdcal_core.evaluation import MEASURES, Space
from kdcal_core.evaluation.overlap import SetRows
from kdcal_core.regression import RECALIBRATORS
from kdcal_core.review import Limit, ReviewData
from kdcal_core.statistics import clopper_pearson

CLASSES = [one for one in CHECKS.values() if "classification" in one.tasks]
QUANTITIES = [one for one in CHECKS.values() if "regression" in one.tasks]


def classified(n: int, sharper: float = 1.0, seed: int = 0, weight=None) -> ScoredSet:
    """Two classes, log odds stated ``sharper`` times too large."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n) * 2.0
    y = (rng.random(n) < expit(z)).astype(np.int64)
    p = expit(sharper * z)
    return ScoredSet(np.column_stack([1 - p, p]), y, ("no", "yes"), "d", "evaluation", weight)


def several(n: int, sharper: float = 1.0, seed: int = 0) -> ScoredSet:
    """Four classes."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, 4)) * 1.5
    true = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = (true.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    said = np.exp(sharper * logits)
    proba = said / said.sum(axis=1, keepdims=True)
    return ScoredSet(proba, y.astype(np.int64), tuple("abcd"), "d", "evaluation")


def forecast(n: int, spread: float = 1.0, shift: float = 0.0, seed: int = 0) -> RegressionSet:
    """Normal outcomes around a known mean, forecast with another spread and place."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=n) * 2.0
    y = mean + rng.normal(size=n)
    return RegressionSet(Normal(mean + shift, spread), y, "d", "evaluation")


class Sure:
    """A model that is sure of the second class everywhere."""

    def predict_proba(self, X):
        return np.tile([[0.01, 0.99]], (len(X), 1))


def around(rows) -> dict:
    """What a review holds beside the rows: inputs, groups, tables and a model."""
    n = rows.n_rows
    rng = np.random.default_rng(n)
    table = pd.DataFrame({"x": rng.normal(size=n), "z": rng.normal(size=n)})
    groups = pd.DataFrame({"site": np.resize(["north", "south"], n)})
    found = {
        "inputs": lambda: table,
        "groups": lambda: groups,
        "sets": lambda: [SetRows(rows.name, table, rows.y)],
    }
    if isinstance(rows, ScoredSet):
        model = Sure() if len(rows.classes) == 2 else None
        data = ReviewData(
            dataclasses.replace(rows, name="calibration"), rows, rows.classes,
            {"calibration": table, "evaluation": table}, model=model,
        )  # fmt: skip
        found["review"] = lambda: data
    else:
        found["space"] = lambda: Space("inputs", table.to_numpy(), None)
    return found


def verdicts(evidence: Evidence, codes=None) -> dict[str, str | None]:
    found = judge_checks(measure_checks(evidence, codes))
    return {one.code: one.verdict for one in found.results}


def part_of(evidence: Evidence, code: str):
    (found,) = measure_checks(evidence, [code]).checks
    assert not found.why_not
    return found.parts[0].estimate


@pytest.mark.parametrize("event", [None, 1])
def test_a_calibrated_model_of_many_rows_passes(event: int | None) -> None:
    evidence = Evidence(classified(20_000), classified(20_000, seed=1), event=event)
    found = verdicts(evidence, [one.code for one in CLASSES if one.quick])
    assert {code for code, one in found.items() if one == "fail"} == set()
    needless = {code for code, one in found.items() if one is None}
    assert needless <= {"KC003", "KC006", "KC008", "KC012", "KC203", "KC208"}  # none is certain
    assert found["KC001"] == found["KC002"] == found["KC004"] == found["KC101"] == "pass"


def test_an_over_confident_model_fails_where_it_should() -> None:
    found = verdicts(Evidence(classified(3000, 3.0), event=1))
    assert found["KC001"] == found["KC004"] == "fail"
    assert found["KC101"] == found["KC205"] == "pass"  # ranking does not change


def test_several_classes_are_judged_one_by_one() -> None:
    found = measure_checks(Evidence(several(4000, 2.5)), ["KC005", "KC006"]).checks
    assert [part.name for part in found[0].parts] == list("abcd")
    assert verdicts(Evidence(several(4000, 2.5)))["KC005"] == "fail"
    assert verdicts(Evidence(several(20_000)))["KC006"] == "pass"


def test_a_forecast_that_is_right_passes() -> None:
    evidence = Evidence(forecast(20_000), forecast(5000, seed=1), missing={"x": 0})
    found = verdicts(evidence, [one.code for one in QUANTITIES if one.quick])
    assert set(found.values()) <= {"pass", None}


@pytest.mark.parametrize(
    ("made", "code"),
    [
        (forecast(3000, 0.4), "KC021"),
        (forecast(3000, 0.4), "KC022"),
        (forecast(3000, 1.0, 1.0), "KC023"),
        (forecast(3000, 30.0), "KC121"),
    ],
    ids=["narrow, PIT", "narrow, coverage", "shifted", "far too wide"],
)
def test_a_forecast_that_is_wrong_fails(made: RegressionSet, code: str) -> None:
    assert verdicts(Evidence(made), [code])[code] == "fail"


def test_numbers_are_those_of_the_diagnostics() -> None:
    rows = classified(500, 2.0)
    evidence = Evidence(rows, event=1)
    said, hit = rows.proba[:, 1], rows.y
    ece = confidence_calibration_error(said, hit, seed=0)
    assert part_of(evidence, "KC001").value == ece.value
    assert part_of(evidence, "KC004").value == calibration_slope(said, hit).value
    assert part_of(evidence, "KC101").low == auroc(rows.proba, rows.y).low
    base = np.full_like(rows.proba, 1.0) * ((np.bincount(rows.y) + 0.5) / (len(rows.y) + 1.0))
    gained = MEASURES["log_loss"].paired(base, rows.proba, rows.y)
    assert part_of(evidence, "KC102").value == pytest.approx(gained.value, abs=1e-12)
    held = forecast(400, 0.7)
    row = coverage(held.distribution, held.y, [0.5]).rows[0].coverage
    assert part_of(Evidence(held), "KC022").low == pytest.approx(row.low - 0.5)


def test_few_rows_are_not_enough() -> None:
    found = verdicts(Evidence(classified(40), event=1), ["KC001", "KC002", "KC004"])
    assert "not enough evidence" in found.values()
    assert "fail" not in found.values()


@pytest.mark.parametrize("check", CLASSES, ids=lambda one: one.code)
@pytest.mark.parametrize(
    "rows",
    [
        classified(12),
        classified(300, weight=np.random.default_rng(0).uniform(0.1, 5.0, 300)),
        ScoredSet(np.full((60, 2), 0.5), np.arange(60) % 2, ("a", "b"), "d", "evaluation"),
        ScoredSet(np.eye(2)[np.arange(60) % 2], np.arange(60) % 2, ("a", "b"), "d", "evaluation"),
        ScoredSet(np.eye(2)[np.arange(60) % 2], 1 - np.arange(60) % 2, ("a", "b"), "d", "calib"),
        ScoredSet(np.tile([[0.9, 0.1]], (50, 1)), np.zeros(50, dtype=int), ("a", "b"), "d", "x"),
        several(30),
    ],
    ids=["twelve", "weights", "equal", "certain", "certain and wrong", "one class", "several"],
)
def test_edges_are_answered_or_say_why(check, rows: ScoredSet) -> None:
    event = 1 if len(rows.classes) == 2 else None
    more = around(rows)
    for evidence in (Evidence(rows), Evidence(rows, rows, event=event, **more)):
        (found,) = judge_checks(measure_checks(evidence, [check.code])).results
        assert found.verdict is not None or found.why_not
        for part in found.parts:
            one = part.estimate
            assert np.isnan(one.low) or one.low <= one.value <= one.high


@pytest.mark.parametrize("check", QUANTITIES, ids=lambda one: one.code)
@pytest.mark.parametrize("n", [2, 12])
def test_edges_of_regressions_are_answered_or_say_why(check, n: int) -> None:
    for rows in (forecast(n), RegressionSet(Normal(np.zeros(n), 1.0), np.zeros(n), "d", "x")):
        more = around(rows)
        more.pop("review", None)
        (found,) = judge_checks(measure_checks(Evidence(rows, **more), [check.code])).results
        assert found.verdict is not None or found.why_not


def test_copies_are_counted_beyond_chance() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=400)})
    y = rng.integers(0, 2, 400)
    judged = SetRows("evaluation", table[:200], y[:200])
    rows = classified(200)
    for start, verdict in ((200, "pass"), (150, "fail")):
        other = SetRows("calibration", table[start : start + 200], y[start : start + 200])
        evidence = Evidence(rows, sets=lambda other=other: [judged, other])
        assert verdicts(evidence, ["KC201"])["KC201"] == verdict
    (found,) = measure_checks(evidence, ["KC201"]).checks
    assert found.parts[0].estimate.value == pytest.approx(50 / 200)


def test_copies_are_looked_for_only_in_a_second_table() -> None:
    rows = classified(200)
    sets = [SetRows("evaluation", pd.DataFrame({"x": rows.proba[:, 1]}), rows.y)]
    for evidence in (Evidence(rows), Evidence(rows, sets=lambda: sets)):
        (found,) = measure_checks(evidence, ["KC201"]).checks
        assert found.why_not == (
            "It needs a second table. Give the training rows, or a calibration set besides these "
            "rows."
        )


def test_equal_rows_of_few_values_are_no_copies() -> None:
    rng = np.random.default_rng(0)
    tables = [pd.DataFrame({"x": rng.integers(0, 20, 3000)}) for _ in range(2)]
    ys = [rng.integers(0, 2, 3000) for _ in range(2)]
    kinds = ("evaluation", "calibration")
    sets = [SetRows(kind, table, y) for kind, table, y in zip(kinds, tables, ys, strict=True)]
    found = verdicts(Evidence(classified(3000), sets=lambda: sets), ["KC201"])
    assert found["KC201"] != "fail"


def test_counted_rows_have_no_width_and_shares_have() -> None:
    rows = classified(500)
    evidence = Evidence(rows, missing={"a": 200, "b": 10})
    fewest = part_of(evidence, "KC202")
    assert fewest.low == fewest.value == fewest.high == np.bincount(rows.y).min()
    missing = part_of(evidence, "KC203")
    assert missing.value == 0.4
    assert missing.low == pytest.approx(clopper_pearson(0.4, 500, 0.975)[0])  # one of two columns
    assert missing.high == pytest.approx(clopper_pearson(0.4, 500, 0.95)[1])
    assert verdicts(evidence)["KC203"] == "fail"
    few = classified(12)
    assert verdicts(Evidence(few, missing={"a": 3}), ["KC203"])["KC203"] == "not enough evidence"


def test_an_exchanged_target_is_caught() -> None:
    rows = classified(800)
    found = verdicts(Evidence(ScoredSet(rows.proba, 1 - rows.y, rows.classes, "d", "x"), event=1))
    assert found["KC205"] == found["KC204"] == found["KC102"] == "fail"


def rare(n: int, stated: float) -> ScoredSet:
    """A risk of an event in a tenth of the rows, with log odds ``stated`` too high."""
    rng = np.random.default_rng(1)
    z = rng.normal(size=n) - 2.5
    y = (rng.random(n) < expit(z)).astype(np.int64)
    p = expit(z + stated)
    return ScoredSet(np.column_stack([1 - p, p]), y, ("no", "yes"), "d", "evaluation")


def test_a_stated_risk_of_a_rare_event_need_not_name_it() -> None:
    rows = rare(4000, 0.0)
    (asked,) = measure_checks(Evidence(rows, event=1), ["KC204"]).checks
    assert "states a risk of yes and hardly ever names it: 0.8% of the rows" in asked.why_not
    assert odd_answers(rows.proba, rows.y, rows.classes) is None
    named = rare(4000, 3.0)  # names the event in most rows
    assert verdicts(Evidence(named, event=1), ["KC204"])["KC204"] == "fail"
    confidence = measure_checks(Evidence(rows), ["KC204"]).checks[0]
    assert not confidence.why_not  # whoever asks for the predicted class is answered
    unranked = dataclasses.replace(rows, y=np.random.default_rng(0).permutation(rows.y))
    assert not measure_checks(Evidence(unranked, event=1), ["KC204"]).checks[0].why_not


def test_the_errors_of_a_stated_risk_are_no_sign_of_confidence() -> None:
    rows = rare(4000, 0.0)  # right everywhere
    (asked,) = measure_checks(Evidence(rows, event=1), ["KC009"]).checks
    assert "rows in which a low risk came true" in asked.why_not
    assert not measure_checks(Evidence(rows), ["KC009"]).checks[0].why_not
    assert not measure_checks(Evidence(rare(4000, 3.0), event=1), ["KC009"]).checks[0].why_not


def test_few_rows_that_name_a_risk_are_not_judged_by_themselves() -> None:
    rows = rare(4000, 0.0)  # right everywhere; 33 rows name the event
    answer = measure_checks(Evidence(rows, event=1), ["KC005"])
    assert [part.name for part in answer.checks[0].parts] == ["no"]
    assert verdicts(Evidence(rows, event=1), ["KC005"])["KC005"] == "pass"
    summed = measure_checks(SummaryEvidence(summarise(rows.proba, rows.y, rows.classes), 1))
    (also,) = [one for one in summed.checks if one.code == "KC005"]
    assert [part.name for part in also.parts] == ["no"]
    (paired,) = with_group_sums(answer, Evidence(rows, event=1)).checks
    assert paired.parts[0].sums is not None
    assert verdicts(Evidence(rows), ["KC005"])["KC005"] == "not enough evidence"
    too_sure = rows.proba[:, 1].copy()
    too_sure[too_sure > 0.3] = 0.95  # 201 rows, of which two fifths are events
    several = ScoredSet(
        np.column_stack([1 - too_sure, too_sure]), rows.y, rows.classes, "d", "evaluation"
    )
    assert verdicts(Evidence(several, event=1), ["KC005"])["KC005"] == "fail"


def test_labels_in_place_of_probabilities_are_caught() -> None:
    rows = classified(800)
    hard = np.eye(2)[rows.proba.argmax(axis=1)]
    found = verdicts(Evidence(ScoredSet(hard, rows.y, rows.classes, "d", "x")))
    assert found["KC206"] == "fail"
    few = Evidence(ScoredSet(hard[:5], rows.y[:5], rows.classes, "d", "x"))
    assert verdicts(few, ["KC206"])["KC206"] != "fail"  # five forests may well be unanimous


def test_probabilities_that_do_not_differ_are_caught_where_there_are_rows_enough() -> None:
    for n, verdict in ((3000, "fail"), (50, "not enough evidence")):
        rows = classified(n)
        near = 0.5 + 0.01 * (rows.proba - 0.5)
        evidence = Evidence(ScoredSet(near, rows.y, rows.classes, "d", "x"))
        assert verdicts(evidence, ["KC209"])["KC209"] == verdict
        assert verdicts(Evidence(rows), ["KC209"])["KC209"] == "pass"


def test_a_model_that_stays_in_the_middle_is_caught_and_a_rare_event_is_not() -> None:
    rng = np.random.default_rng(0)
    for low, high, verdict in ((0.4, 0.6, "fail"), (0.01, 0.2, "pass"), (0.02, 0.98, "pass")):
        p = rng.uniform(low, high, 3000)
        y = (rng.random(3000) < p).astype(np.int64)
        rows = ScoredSet(np.column_stack([1 - p, p]), y, ("no", "yes"), "d", "x")
        assert verdicts(Evidence(rows, event=1), ["KC209"])["KC209"] == verdict


def test_certainty_is_a_fault_where_it_is_wrong() -> None:
    rng = np.random.default_rng(0)
    certain = np.arange(2000) % 2 == 0
    said = np.where(certain, 1.0, 0.6)
    for errors, verdict in ((0.0, "pass"), (0.04, "not enough evidence"), (0.1, "fail")):
        wrong = rng.random(2000) < np.where(certain, errors, 0.4)
        for y in (np.where(wrong, 0, 1), np.where(wrong, 1, 0)):  # at 1, and at 0
            stated = np.column_stack([1 - said, said])
            stated = stated if y[~wrong][0] == 1 else stated[:, ::-1]
            rows = ScoredSet(np.ascontiguousarray(stated), y, ("no", "yes"), "d", "x")
            assert verdicts(Evidence(rows, event=1), ["KC208"])["KC208"] == verdict


def test_where_no_row_is_certain_none_can_be_wrong() -> None:
    for n in (20, 2000):  # few rows, too: no number of them would be asked for in vain
        (found,) = judge_checks(measure_checks(Evidence(classified(n)), ["KC208"])).results
        assert found.verdict is None
        assert found.why_not == (
            "No row gives a class a probability of exactly 1, so no certain one can be wrong."
        )
    few = ScoredSet(np.tile([[0.0, 1.0]], (20, 1)), np.ones(20, int), ("no", "yes"), "d", "x")
    (found,) = judge_checks(measure_checks(Evidence(few), ["KC208"])).results
    assert (found.verdict, found.worst.rows_needed) == ("not enough evidence", 190)


def test_sets_that_differ_are_not_stable() -> None:
    now = classified(4000, 3.0, seed=1)
    found = verdicts(Evidence(now, classified(4000)), ["KC011"])
    assert found["KC011"] == "fail"
    assert verdicts(Evidence(classified(20_000, seed=2), classified(20_000)))["KC011"] == "pass"


def test_a_limit_has_the_unit_of_its_estimates() -> None:
    """Also where there is no answer, in whose place the check says the unit."""
    parts = [
        (one.code, part.estimate)
        for rows in (classified(300), several(300), forecast(300))
        for one in measure_checks(
            Evidence(rows, rows, missing={"x": 1}, **around(rows)),
            [one.code for one in CHECKS.values() if one.quick],
        ).checks
        for part in one.parts
    ]
    assert len({code for code, _ in parts}) > 20
    others = {code for code, one in parts if one.percent != CHECKS[code].percent}
    assert others == {"KC011", "KC025"}  # parts of both kinds
    for code, one in parts:
        least, most = CHECKS[code].bounds
        assert least <= one.value <= most, (code, one)
    for check in CHECKS.values():
        assert check.chosen(check.limit) == check.limit


def test_a_limit_beyond_what_estimates_can_be_is_not_chosen() -> None:
    beyond = {"KC001": Limit(high=-1), "KC101": Limit(low=70), "KC103": Limit(low=2)}
    for code, limit in beyond.items():
        with pytest.raises(InputError, match=f"Values of the check {code} .* and the limit is"):
            CHECKS[code].chosen(limit)
        assert CHECKS[code].limited(limit) == limit  # one that was stored is still read
    assert CHECKS["KC001"].chosen(Limit(high=-0.01, against="baseline")).high == -0.01
    assert CHECKS["KC001"].chosen(Limit(0.0, 1.0)) == Limit(0.0, 1.0)


def test_what_must_lie_between_two_ends_has_a_best_value() -> None:
    for code, check in CHECKS.items():
        between = math.isfinite(check.limit.low) and math.isfinite(check.limit.high)
        assert (check.target is not None) == between, code
        if check.target is not None:
            assert check.limit.low < check.target < check.limit.high, code


def test_every_check_says_all_that_a_reader_needs() -> None:
    from app.shared.navigation import places

    for code, check in CHECKS.items():
        assert check.question.endswith("?"), code
        assert check.remedy.endswith("."), code
        assert check.method.endswith("."), code
        assert check.page in places(), code


def test_a_faulty_region_is_found_and_named() -> None:
    rng = np.random.default_rng(0)
    rows = classified(6000)
    age = rng.uniform(20, 80, 6000)
    y = np.where((age > 60) & (rng.random(6000) < 0.5), 0, rows.y)
    faulty = ScoredSet(rows.proba, y, rows.classes, "d", "evaluation")
    table = pd.DataFrame({"age": age, "noise": rng.normal(size=6000)})
    (found,) = judge_checks(
        measure_checks(Evidence(faulty, event=1, inputs=lambda: table), ["KC007"])
    ).results
    assert found.verdict == "fail"
    assert "age" in found.worst.name
    assert found.worst.estimate.high < -0.1
    fine = Evidence(rows, event=1, inputs=lambda: table)
    assert verdicts(fine, ["KC007"])["KC007"] != "fail"


def in_a_ward(n: int, gap: float, seed: int) -> Evidence:
    """P(event) is too high by ``gap`` in one of five wards."""
    rng = np.random.default_rng(seed)
    ward = rng.choice(list("ABCDE"), n)
    p = rng.uniform(0.3, 0.7, n)
    y = (rng.random(n) < p - gap * (ward == "B")).astype(np.int64)
    rows = ScoredSet(np.column_stack([1 - p, p]), y, ("no", "yes"), "d", "evaluation")
    table = pd.DataFrame({"ward": ward, "noise": rng.normal(size=n)})
    return Evidence(rows, event=1, inputs=lambda: table)


@pytest.mark.parametrize("n", [300, 2000])
def test_regions_do_not_pass_where_one_is_missed(n: int) -> None:
    found = [verdicts(in_a_ward(n, 0.15, seed), ["KC007"])["KC007"] for seed in range(20)]
    assert found.count("pass") <= 4  # 99.9% quantile of a binomial of 20 draws with chance 0.05


def test_regions_pass_with_rows_enough_to_find_one() -> None:
    found = [
        judge_checks(measure_checks(in_a_ward(n, 0.0, 0), ["KC007"])).results[0]
        for n in (1000, 12_000)
    ]
    assert [one.verdict for one in found] == ["not enough evidence", "pass"]
    few = found[0].worst
    assert few.name == "any other fifth of the rows"
    assert not few.is_place
    assert 3000 < few.rows_needed < 16_000


def test_declared_groups_are_judged_alone_and_crossed() -> None:
    rng = np.random.default_rng(0)
    rows = classified(4000)
    table = pd.DataFrame({"sex": rng.choice(["f", "m"], 4000), "old": rng.random(4000) < 0.3})
    wrong = (table["sex"] == "f") & table["old"] & (rng.random(4000) < 0.6)
    y = np.where(wrong, 1, rows.y)
    faulty = ScoredSet(rows.proba, y, rows.classes, "d", "evaluation")
    (found,) = judge_checks(
        measure_checks(Evidence(faulty, event=1, groups=lambda: table), ["KC008"])
    ).results
    assert found.verdict == "fail"
    assert found.worst.name == "f, True"
    alone = {"sex: f", "sex: m", "old: False", "old: True"}
    assert {one.name for one in found.parts} > alone
    assert len(found.parts) == 8  # each column alone, and both together
    assert verdicts(Evidence(rows, event=1), ["KC008"])["KC008"] is None


def test_a_repair_is_worth_it_for_an_over_confident_model_alone() -> None:
    for sharper, verdict in ((3.0, "fail"), (1.0, "pass")):
        rows = classified(3000, sharper)
        named = ScoredSet(rows.proba, rows.y, rows.classes, "d", "calibration")
        review = ReviewData(named, None, rows.classes, {})
        evidence = Evidence(named, review=lambda review=review: review)
        (found,) = judge_checks(measure_checks(evidence, ["KC103"])).results
        assert found.verdict == verdict
        assert len(found.parts) == len(QUICK_CALIBRATORS)


def two_halves(n: int, fault: float, seed: int = 0) -> tuple[RegressionSet, np.ndarray]:
    """Predictions too low where x is below 0 and as much too high elsewhere, with x."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (n, 1))
    y = np.where(x[:, 0] < 0.0, fault, -fault) + rng.normal(size=n)
    return RegressionSet(Normal(np.zeros(n), 1.0), y, "d", "evaluation"), x


@pytest.mark.parametrize("cross_fitted", [False, True])
def test_local_recalibration_repairs_what_the_total_hides(
    cross_fitted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gain_of_a_recalibration, "MOST_ROWS", 1500)
    for fault, verdict in ((1.5, "fail"), (0.0, "pass")):
        (rows, x), (fit, x_fit) = two_halves(3000, fault), two_halves(2000, fault, 1)
        space = Space("inputs", x_fit, None if cross_fitted else x)
        evidence = Evidence(
            fit if cross_fitted else rows,
            None if cross_fitted else fit,
            space=lambda space=space: space,
        )
        (found,) = judge_checks(measure_checks(evidence, ["KC123"])).results
        assert found.verdict == verdict
        assert {one.name: one.estimate.n for one in found.parts} == {
            RECALIBRATORS[key].title: 1500 for key in ("isotonic", "local")
        }
        if fault:  # cut off at 0, the mixture is N(+-1.5, 1) again: CRPS falls to 1 / sqrt(pi)
            rng = np.random.default_rng(2)
            now = Normal(np.zeros(99_999), 1.0).crps(1.5 + rng.normal(size=99_999)).mean()
            assert found.worst.name == "Local recalibration"
            gain = 1.0 - np.pi**-0.5 / now
            assert found.worst.estimate.value == pytest.approx(gain, abs=0.03)
            assert "Local recalibration, lowers CRPS by " in next_step(judged_alone(found))
        else:
            assert "lowers CRPS beyond chance" in next_step(judged_alone(found))


def judged_alone(result) -> CheckedReview:
    return CheckedReview((result,), 0.95, 0)


def test_a_model_that_stays_sure_far_away_fails() -> None:
    rows = classified(300)
    evidence = Evidence(rows, event=1, **around(rows))
    assert verdicts(evidence, ["KC010"])["KC010"] == "fail"
    estimate = part_of(evidence, "KC010")
    assert estimate.value == pytest.approx(0.99 - np.bincount(rows.y).max() / 300)


def test_a_lone_interval_is_judged_by_the_level_it_states() -> None:
    rng = np.random.default_rng(2)
    middle, y = rng.normal(size=5000), rng.normal(size=5000)
    ends = np.column_stack([middle - 1.6449, middle + 1.6449])
    rows = RegressionSet(Quantiles([0.05, 0.95], ends), middle + y, "d", "evaluation")
    (found,) = measure_checks(Evidence(rows), ["KC022"]).checks
    assert [one.name for one in found.parts] == ["the 90% interval"]
    assert verdicts(Evidence(rows), ["KC021", "KC022"]) == {"KC021": "pass", "KC022": "pass"}
    narrow = RegressionSet(
        Quantiles([0.05, 0.95], 0.5 * ends + 0.5 * middle[:, None]), middle + y, "d", "evaluation"
    )
    assert verdicts(Evidence(narrow), ["KC021", "KC022"]) == {"KC021": "fail", "KC022": "fail"}
