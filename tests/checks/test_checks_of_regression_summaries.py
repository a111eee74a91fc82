"""Checks of a regression say of a summary what they say of its rows, or why they cannot."""

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
from kdcal_core.diagnostics.summaries import summarise_regression
from kdcal_core.diagnostics.summaries.drawn_rows import row_numbers
from kdcal_core.distributions import Empirical, Normal, Quantiles, RegressionSet
from kdcal_core.review import Limit

CODES = [one.code for one in CHECKS.values() if "regression" in one.tasks]
ROWS_ONLY = {"KC024", "KC123", "KC201", "KC203"}
N = 3000


def predicted(kind, spread, shift=0.0):
    rng = np.random.default_rng(1)
    mean = 100.0 + rng.normal(size=N)
    y = mean + rng.normal(size=N)
    said = Normal(mean + shift, spread)
    if kind == "quantiles":
        levels = [0.005, 0.05, 0.25, 0.5, 0.75, 0.95, 0.995]
        return Quantiles(levels, said.ppf(np.array([levels]))), y
    if kind == "samples":
        return Empirical(said.ppf(rng.random((N, 30)))), y
    return said, y


def placed(distribution, y):
    """PIT values that lie where those of a summary do within jumps."""
    parts = (row_numbers(np.arange(N)) >> np.uint64(11)) * 2.0**-53
    return np.clip(distribution.pit(y, parts), 0.0, 1.0)


@pytest.mark.parametrize(
    ("kind", "spread", "shift"),  # every pair of them
    [
        ("normal", 1.0, 0.4),
        ("normal", 0.6, 0.0),
        ("quantiles", 1.0, 0.0),
        ("quantiles", 0.6, 0.4),
        ("samples", 1.0, 0.4),
        ("samples", 0.6, 0.0),
    ],
)
def test_verdicts_and_numbers_are_those_of_the_rows(kind, spread, shift):
    distribution, y = predicted(kind, spread, shift)
    groups = pd.DataFrame({"odd": np.arange(N) % 2 == 1, "part": np.arange(N) // 1100})
    rows = Evidence(RegressionSet(distribution, y, "", "calibration"), groups=lambda: groups)
    counts = SummaryEvidence(summarise_regression(distribution, y, groups=groups))
    limits = {"KC021": Limit(against="chance")} if shift and kind == "normal" else {}
    same = Evidence(rows.rows, groups=lambda: groups)
    same.once("pit", lambda: placed(distribution, y))
    measured = measure_checks(rows, CODES)
    (by_group,) = measure_checks(same, ["KC025"]).checks
    checks = tuple(by_group if one.code == "KC025" else one for one in measured.checks)
    wanted = judge_checks(replace(measured, checks=checks), limits)
    found = judge_checks(measure_checks(counts, CODES), limits)
    assert found.n == N
    compared = 0
    for ours, theirs in zip(found.results, wanted.results, strict=True):
        assert ours.code == theirs.code
        if ours.code in ROWS_ONLY:
            assert (ours.verdict, ours.why_not) == (None, NEEDS_ROWS)
            continue
        assert (ours.verdict, ours.why_not) == (theirs.verdict, theirs.why_not)
        if ours.code == "KC026":  # see tests/review/test_folder_by_time.py
            assert ours.why_not == "No column has the role Time."
            continue
        assert len(ours.parts) == len(theirs.parts) > 0
        for a, b in zip(ours.parts, theirs.parts, strict=True):
            assert (a.name, a.verdict) == (b.name, b.verdict)
            a, b = a.own, b.own
            assert (a.name, a.label, a.n, a.level) == (b.name, b.label, b.n, b.level)
            near = 0.15 * (b.high - b.low) if ours.code == "KC021" else 1e-9  # drawn intervals
            near = 1e-8 if ours.code == "KC025" else near  # squares within a cell
            np.testing.assert_allclose(
                (a.value, a.low, a.high), (b.value, b.low, b.high), atol=near
            )
            compared += 1
    assert compared >= 5


def test_equal_outcomes_have_the_same_reason():
    distribution, y = Normal(np.zeros(50), 1.0), np.ones(50)
    rows = Evidence(RegressionSet(distribution, y, "", "calibration"))
    counts = SummaryEvidence(summarise_regression(distribution, y))
    for code in ("KC023", "KC121"):
        (wanted,), (found,) = (measure_checks(one, [code]).checks for one in (rows, counts))
        assert found.why_not
        assert found == wanted
