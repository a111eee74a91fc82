"""What checks judge of a summary is what they judge of its rows, within what the cells hide."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_class_summary import named, rows

from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import (
    calibration_test,
    gain_over_most_frequent,
    gains_over_shares,
    question_estimates,
)
from kdcal_core.diagnostics.calibration_test import cells_test
from kdcal_core.diagnostics.summaries import (
    summarise,
    summary_class_gaps,
    summary_gain_over_most_frequent,
    summary_gains_over_shares,
    summary_question_estimates,
    summary_range,
    summary_test,
)
from kdcal_core.errors import InputError

EXACT = {"Certain", "Certain and wrong", "Accuracy gained"}
_CELLS = ", widened to ends of cells of the summary"


def scored_rows(k: int, n: int) -> ScoredSet:
    proba, y = rows(k, n)
    proba[: n // 20] = np.eye(k)[y[: n // 20]]  # some rows are certain, some of them wrong
    proba[: n // 100] = np.eye(k)[(y[: n // 100] + 1) % k]
    return ScoredSet(proba, y, named(k), "", "evaluation")


@pytest.mark.parametrize(("k", "n", "event"), [(2, 900, 1), (2, 900, None), (4, 4000, None)])
def test_estimates_agree_with_those_of_rows(k, n, event):
    scored = scored_rows(k, n)
    summary = summarise(scored.proba, scored.y, scored.classes)
    found = summary_question_estimates(summary, event)
    wanted = question_estimates(scored, None, event)
    for ours, theirs in zip(found, wanted, strict=True):
        assert (ours.name, ours.label, ours.n, ours.level) == (
            theirs.name, theirs.label, theirs.n, theirs.level,
        )  # fmt: skip
        assert ours.interval.removesuffix(_CELLS) == theirs.interval
        assert (ours.percent, ours.lower_is_better, ours.expected) == (
            theirs.percent, theirs.lower_is_better, pytest.approx(theirs.expected, abs=1e-4),
        )  # fmt: skip
        both = [(one.value, one.low, one.high) for one in (ours, theirs)]
        if ours.label in EXACT:
            np.testing.assert_allclose(*both, rtol=1e-12)
        elif ours.label == "Gain":
            assert ours.value == pytest.approx(theirs.value, abs=1e-9)
            np.testing.assert_allclose(*both, atol=0.03 * (theirs.high - theirs.low))
        elif ours.label == "Range in log odds":
            np.testing.assert_allclose(*both, atol=0.07)
            assert ours.low <= theirs.low
            assert theirs.high <= ours.high
        else:
            np.testing.assert_allclose(*both, atol=1e-3)


@pytest.mark.parametrize("n", [200, 20_000])
def test_the_test_against_chance_is_that_of_the_rows(n):
    """Below 5,000 rows outcomes are redrawn, above them projections are normal."""
    for power in (1.0, 1.3):
        proba, y = rows(2, n, power=power)
        summary = summarise(proba, y, named(2))
        theirs = calibration_test(proba[:, 1], y)
        assert summary_test(summary, 1) == pytest.approx(theirs, abs=0.05)
        assert (summary_test(summary, 1) < 0.01) == (theirs < 0.01)


def test_the_test_of_cells_keeps_its_level():
    """Of 400 calibrated models, about one in ten has a p value up to 0.1."""
    rng = np.random.default_rng(0)
    score, count = np.linspace(0.05, 0.95, 30), np.full(30, 40.0)
    values = [cells_test(score, count, rng.binomial(40, score).astype(float)) for _ in range(400)]
    assert 0.06 < np.mean(np.array(values) <= 0.1) < 0.145


def test_few_different_scores_are_tested_as_their_rows_are():
    rng = np.random.default_rng(1)
    score = np.repeat([0.2, 0.5, 0.9], 300)
    for shift in (0.0, 0.1):
        hit = (rng.random(900) < np.clip(score + shift, 0.0, 1.0)).astype(int)
        summary = summarise(np.column_stack([1.0 - score, score]), hit, named(2))
        assert summary_test(summary, 1) == pytest.approx(calibration_test(score, hit), abs=0.05)
    assert 0.0 < calibration_test(score[::300], hit[::300]) <= 1.0  # three rows


@pytest.mark.parametrize("k", [2, 4])
def test_gains_over_what_another_set_says_agree_with_those_of_rows(k):
    scored, known = scored_rows(k, 4000), scored_rows(k, 3000)
    known = replace(known, y=np.where(np.arange(3000) % 3 == 0, 1, known.y))  # other shares
    ours, other = (summarise(one.proba, one.y, one.classes) for one in (scored, known))
    found = [*summary_gains_over_shares(ours, other), summary_gain_over_most_frequent(ours, other)]
    wanted = [*gains_over_shares(scored, known), gain_over_most_frequent(scored, known)]
    for one, two in zip(found, wanted, strict=True):
        assert (one.name, one.label) == (two.name, two.label)
        assert one.value == pytest.approx(two.value, abs=1e-9)
        room = 0.03 * (two.high - two.low)  # as above
        np.testing.assert_allclose((one.low, one.high), (two.low, two.high), atol=room)
    assert found[0].value != pytest.approx(summary_gains_over_shares(ours)[0].value, abs=1e-3)


def test_a_class_that_is_never_predicted_has_no_gap():
    summary = summarise([[0.9, 0.1, 0.0], [0.8, 0.2, 0.0]], [0, 1], ("a", "b", "c"))
    assert set(summary_class_gaps(summary, "top-label")) == {0}
    assert set(summary_class_gaps(summary, "class")) == {0, 1, 2}


def test_few_rows_say_nothing_of_far_quantiles():
    summary = summarise([[0.6, 0.4], [0.3, 0.7], [0.2, 0.8]], [0, 1, 1], ("no", "yes"))
    found = summary_range(summary, 1)
    assert found.low == 0.0
    assert found.high == pytest.approx(2 * np.log(1e12), rel=1e-3)


def test_one_row_has_no_interval_and_none_is_refused():
    one = summarise([[0.6, 0.4]], [0], ("no", "yes"))
    for gain in summary_gains_over_shares(one):
        assert (gain.low, gain.high) == (-np.inf, np.inf)
    parts = ("cells", "joint", "sums", "blocks")
    none = replace(
        one, n=0, drawn=None, **{part: np.zeros_like(getattr(one, part)) for part in parts}
    )
    with pytest.raises(InputError, match="no rows"):
        summary_question_estimates(none)
