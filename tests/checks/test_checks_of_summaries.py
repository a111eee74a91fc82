"""From a summary checks say what they say of its rows, or why they cannot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from kdcal_core.checks import (
    CHECKS,
    NEEDS_ROWS,
    Evidence,
    SummaryEvidence,
    judge_checks,
    measure_checks,
)
from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics.summaries import class_groups, summarise
from kdcal_core.review import Limit

ANSWERED = [code for code, one in CHECKS.items() if one.from_summary is not None]
FROM_SUMMARY = [one for one in ANSWERED if "classification" in CHECKS[one].tasks]
ROWS_ONLY = ("KC007", "KC010", "KC011", "KC103", "KC201", "KC203")


def stated(k: int, n: int, power: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    true = rng.dirichlet(np.full(k, 0.7), n)
    said = true**power
    said /= said.sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > true.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    said[: n // 10] = np.eye(k)[y[: n // 10]]
    said[0] = np.eye(k)[(y[0] + 1) % k]
    return said, y


def groups_of(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    ward = rng.choice(["A", "B", "C", "<b>D</b>"], n, p=[0.6, 0.3, 0.095, 0.005])
    return pd.DataFrame({"ward": ward, "age": rng.integers(20, 70, n)})


@pytest.mark.parametrize(
    ("k", "event", "power"), [(2, 1, 1.0), (2, 0, 2.0), (2, None, 1.0), (4, None, 2.0)]
)
def test_verdicts_and_names_are_those_of_the_rows(k, event, power):
    proba, y = stated(k, 3000, power)
    classes = tuple("abcd"[:k])
    scored, groups = ScoredSet(proba, y, classes, "", "calibration"), groups_of(len(y))
    rows = Evidence(scored, event=event, groups=lambda: groups)
    summary = replace(summarise(proba, y, classes), groups=class_groups(groups, scored, event))
    counts = SummaryEvidence(summary, event)
    limits = {"KC001": Limit(against="chance")} if event == 0 else {}
    wanted, found = (
        judge_checks(measure_checks(one, FROM_SUMMARY), limits) for one in (rows, counts)
    )
    assert found.n == wanted.n == 3000
    assert found.verdict == wanted.verdict
    assert len(found.results) == len(FROM_SUMMARY)
    for ours, theirs in zip(found.results, wanted.results, strict=True):
        assert (ours.code, ours.verdict, ours.why_not) == (
            theirs.code, theirs.verdict, theirs.why_not,
        )  # fmt: skip
        for a, b in zip(ours.parts, theirs.parts, strict=True):
            assert (a.name, a.verdict) == (b.name, b.verdict)
            a, b = a.own, b.own
            assert (a.name, a.label, a.n, a.level) == (b.name, b.label, b.n, b.level)
            width = b.high - b.low
            if ours.code == "KC008":
                close = (b.value, b.low, b.high)
                np.testing.assert_allclose((a.value, a.low, a.high), close, atol=1e-5 * width)
                assert a.value == pytest.approx(b.value, abs=1e-9)
                assert a.interval == b.interval
            np.testing.assert_allclose(
                (a.value, a.low, a.high), (b.value, b.low, b.high), atol=0.05 * width + 1e-3
            )


def test_what_needs_the_rows_says_so():
    proba, y = stated(2, 200, 1.0)
    found = measure_checks(SummaryEvidence(summarise(proba, y, ("no", "yes")), 1))
    said = {one.code: one.why_not for one in found.checks}
    assert {code for code, why in said.items() if why == NEEDS_ROWS} == set(ROWS_ONLY)
    assert set(said) == {code for code, one in CHECKS.items() if "classification" in one.tasks}
    assert "in many files" in NEEDS_ROWS


@pytest.mark.parametrize("code", ["KC204", "KC009"])
def test_a_risk_of_a_rare_event_has_the_same_reason(code: str):
    rng = np.random.default_rng(0)
    p = rng.beta(1.0, 20.0, 4000)
    said, y = np.column_stack([1.0 - p, p]), (rng.random(4000) < p).astype(int)
    rows = ScoredSet(said, y, ("no", "yes"), "", "calibration")
    (wanted,) = measure_checks(Evidence(rows, event=1), [code]).checks
    (found,) = measure_checks(SummaryEvidence(summarise(said, y, rows.classes), 1), [code]).checks
    assert "states a risk of yes" in wanted.why_not
    assert found == wanted


@pytest.mark.parametrize(
    ("said", "y", "code"),
    [
        ([[0.9, 0.1], [0.2, 0.8]], [0, 1], "KC009"),  # no error
        ([[0.9, 0.1], [0.2, 0.8]], [0, 1], "KC208"),  # nothing certain
        ([[0.9, 0.1], [0.2, 0.8]], [0, 1], "KC006"),  # the event of two classes
    ],
)
def test_what_no_rows_could_answer_has_the_same_reason(said, y, code):
    rows = ScoredSet(np.array(said), np.array(y), ("no", "yes"), "", "calibration")
    (wanted,) = measure_checks(Evidence(rows, event=1), [code]).checks
    (found,) = measure_checks(SummaryEvidence(summarise(said, y, rows.classes), 1), [code]).checks
    assert wanted.why_not
    assert found == wanted


def test_a_test_against_chance_is_there_for_summaries_too():
    """Without a p value a limit against chance would always be met."""
    for code in ANSWERED:
        one = CHECKS[code]
        assert (one.from_summary.by_chance is None) == (one.by_chance is None)
