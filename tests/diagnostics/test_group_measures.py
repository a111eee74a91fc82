"""Declared groups: the same numbers as the estimators give for a group's rows, and their level."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import (
    auroc,
    confidence_calibration_error,
    declared_divisions,
    describe_pit_regions,
    describe_regions,
    group_measures,
    groups_finding,
    measure_groups,
    pit_groups_finding,
)
from kdcal_core.errors import InputError
from kdcal_core.statistics import holm


def rows(n: int, seed: int, shift: float = 0.0, weight: np.ndarray | None = None) -> ScoredSet:
    """Calibrated but for the first third, whose event is rarer than stated."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.1, 0.9, n)
    truth = p - shift * (np.arange(n) < n // 3)
    y = (rng.random(n) < truth).astype(int)
    proba = np.stack([1.0 - p, p], axis=1)
    return ScoredSet(proba, y, ("no", "yes"), "digest", "evaluation", weight=weight)


def thirds(n: int) -> np.ndarray:
    return np.minimum(np.arange(n) * 3 // n, 2)


@pytest.fixture
def without_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the calibration errors, which take most of the time and decide no fault."""
    none = measure_groups(rows(300, 0), [(thirds(300), ["a", "b", "c"])], event=1).overall.error
    monkeypatch.setattr(group_measures, "event_calibration_error", lambda *_: none)


def test_every_measure_is_that_of_the_group_s_own_rows() -> None:
    n = 900
    scored = rows(n, 0, 0.1, np.random.default_rng(5).uniform(0.5, 2.0, n))
    found = measure_groups(scored, [(thirds(n), ["a", "b", "c"])], event=1)
    level = 1.0 - 0.05 / 3
    for k, one in enumerate(found.groups):
        mine = thirds(n) == k
        assert scored.weight is not None
        p, y, w = scored.proba[mine], scored.y[mine], scored.weight[mine]
        error = confidence_calibration_error(p[:, 1], y, level=level, sample_weight=w)
        assert replace(one.error, name=error.name) == error
        area = auroc(p, y, level=level, sample_weight=w, classes=scored.classes)
        assert one.area == area
        assert one.rate.value == pytest.approx(np.average(y, weights=w))
        assert one.gap.value == pytest.approx(np.average(y - p[:, 1], weights=w))
        assert one.gap.level == one.error.level == one.area.level == level
    same = describe_regions(scored, thirds(n), ["a", "b", "c"], target=1)
    assert repr([one.region for one in found.groups]) == repr(list(same.regions))


@pytest.mark.usefixtures("without_errors")
def test_of_calibrated_groups_one_in_twenty_tables_is_named() -> None:
    named = sum(
        any(
            one.region.fault != "none" or not one.gap.low <= 0.0 <= one.gap.high
            for one in measure_groups(
                rows(300, seed), [(thirds(300), ["a", "b", "c"])], event=1
            ).groups
        )
        for seed in range(100)
    )
    assert named <= 11


def test_the_finding_names_the_faulty_group_or_what_could_have_been_found() -> None:
    wrong = measure_groups(rows(3_000, 1, 0.1), [(thirds(3_000), ["a", "b", "c"])], event=1)
    assert groups_finding(wrong).startswith("1 of 3 groups is off by more than chance: a: says ")
    assert "over-confident" in groups_finding(wrong)
    right = measure_groups(rows(3_000, 2), [(thirds(3_000), ["a", "b", "c"])], event=1)
    assert groups_finding(right).startswith(
        "None of 3 groups is off by more than chance on the mean. The sm"
    )


def test_a_group_right_on_the_mean_may_be_wrong_row_by_row() -> None:
    made = rows(3_000, 3)
    p = made.proba[:, 1]
    extreme = np.where(thirds(3_000) == 1, p**4 / (p**4 + (1.0 - p) ** 4), p)
    wrong = replace(made, proba=np.stack([1.0 - extreme, extreme], axis=1))
    found = groups_finding(measure_groups(wrong, [(thirds(3_000), ["a", "b", "c"])], event=1))
    assert found.startswith(
        "None of 3 groups is off by more than chance on the mean, but in b the calibration "
        "error is beyond chance: ECE 0."
    )


def test_one_group_has_a_sentence_of_its_own() -> None:
    alone = np.zeros(3_000, dtype=int)
    wrong = measure_groups(rows(3_000, 1, 0.3), [(alone, ["a"])], event=1)
    assert groups_finding(wrong).startswith("The only group is off by more than chance: a: says ")
    right = measure_groups(rows(3_000, 2), [(alone, ["a"])], event=1)
    assert groups_finding(right).startswith(
        "The only group is not off by more than chance on the mean. The smallest gap that would "
        "have been found four times out of five is 0."
    )
    u = (np.arange(400) + 0.5) / 400
    for pit, said in (
        (u / 2 + 0.5, "The only group is off by more than chance. Where a: the mean PIT"),
        (u, "The only group is not off by more than chance."),
    ):
        found = describe_pit_regions(pit, alone[:400], ("a",))
        assert pit_groups_finding(found).startswith(said)


@pytest.mark.usefixtures("without_errors")
def test_the_smallest_gap_is_found_four_times_in_five() -> None:
    found = measure_groups(rows(900, 0), [(thirds(900), ["a", "b", "c"])], event=1)
    gap = found.groups[0].region.minimum_detectable
    hits = sum(
        measure_groups(rows(900, seed, gap), [(thirds(900), ["a", "b", "c"])], event=1)
        .groups[0]
        .region.fault
        == "over-confident"
        for seed in range(100)
    )
    assert 68 <= hits <= 97


def test_confidence_is_judged_without_an_event() -> None:
    found = measure_groups(rows(300, 0), [(thirds(300), ["a", "b", "c"])])
    assert found.overall.rate.label == "Accuracy"
    assert found.target == "the stated confidence"


def test_groups_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError):
        measure_groups(rows(300, 0), [(np.full(300, 7), ["a"])])


def test_jeffreys_test_is_the_posterior_share_below_what_is_stated() -> None:
    rng = np.random.default_rng(4)
    p = rng.uniform(0.01, 0.1, 900)
    y = (rng.random(900) < 1.6 * p).astype(np.int64)
    rows = ScoredSet(np.stack([1 - p, p], axis=1), y, ("no", "yes"), "digest", "evaluation")
    grade = np.repeat([0, 1, 2], 300)
    found = measure_groups(rows, [(grade, ["A", "B", "C"])], event=1)
    for at, one in enumerate(found.groups):
        hits = y[grade == at].sum()
        rates = rng.beta(hits + 0.5, 300 - hits + 0.5, 200_000)
        assert one.jeffreys == pytest.approx((rates <= p[grade == at].mean()).mean(), abs=0.005)
    assert found.overall.jeffreys < 0.001
    assert measure_groups(rows, [(grade, ["A", "B", "C"])]).overall.jeffreys is None
    twice = replace(rows, weight=np.full(900, 2.0))
    assert measure_groups(
        twice, [(grade, ["A", "B", "C"])], event=1
    ).overall.jeffreys == pytest.approx(found.overall.jeffreys)


def test_a_ward_with_a_fault_is_found_though_every_cross_is_too_small(without_errors) -> None:
    scored, n = rows(2400, 5), 2400
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        {"ward": rng.choice(list("ABC"), n), "nurse": rng.choice(12, n).astype(str)}
    )
    p = scored.proba[:, 1]
    over = np.where(table["ward"] == "B", p * 0.87, p)
    scored = replace(scored, y=(rng.random(n) < over).astype(np.int64))
    found = measure_groups(scored, declared_divisions(table), event=1)
    names = [one.name for one in found.groups]
    assert names[:3] == ["ward: A", "ward: B", "ward: C"]
    assert names[3].startswith("nurse: ")
    assert "A, 0" in names
    wrong = [one.name for one in found.groups if one.region.fault != "none"]
    assert "ward: B" in wrong
    assert not [one for one in wrong if one.startswith("B, ")]
    # one correction for all groups, of whichever division
    p_values = [one.region.p_value for one in found.groups]
    np.testing.assert_allclose([one.region.adjusted_p for one in found.groups], holm(p_values))
    crossed = measure_groups(scored, [declared_divisions(table)[-1]], event=1)
    widths = [
        next(one.gap.high - one.gap.low for one in made.groups if one.name == "A, 0")
        for made in (found, crossed)
    ]
    assert widths[0] > widths[1]


def test_one_declared_column_is_one_division() -> None:
    (only,) = declared_divisions(pd.DataFrame({"ward": ["A", "B"] * 50}))
    assert list(only[1]) == ["A", "B"]
