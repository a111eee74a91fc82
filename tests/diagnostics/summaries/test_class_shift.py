"""Distances between two summaries' scores are those of the rows, within their bounds."""

from __future__ import annotations

import numpy as np
import pytest

from kdcal_core.diagnostics import score_shift
from kdcal_core.diagnostics.pooled_cells import PooledCells
from kdcal_core.diagnostics.summaries import ClassTally, summarise, summary_shift
from kdcal_core.errors import InputError


def summary_of(p):
    return summarise(np.column_stack([1.0 - p, p]), np.zeros(len(p), int), ("no", "yes"))


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_distances_are_those_of_rows(power):
    rng = np.random.default_rng(0)
    old, new = rng.beta(2, 5, 8000), rng.beta(2, 5, 5000) ** power
    ours = summary_shift(summary_of(old), summary_of(new), 1)
    theirs = score_shift(old, new)
    for a, b in zip(ours.tests, theirs.tests, strict=True):
        assert (a.key, a.estimate.name, a.estimate.label) == (
            b.key,
            b.estimate.name,
            b.estimate.label,
        )
        assert a.estimate.n == b.estimate.n == 5000
        assert a.estimate.value == pytest.approx(b.estimate.value, abs=2e-3)
        assert a.estimate.low <= b.estimate.value <= a.estimate.high
        assert a.p_value == pytest.approx(b.p_value, abs=0.06)
        assert a.estimate.expected == pytest.approx(b.estimate.expected, rel=0.1)


def test_scores_of_few_values_are_not_blurred():
    rng = np.random.default_rng(1)
    old, new = rng.choice([0.0, 0.25, 1.0], 3000), rng.choice([0.0, 0.25, 0.5, 1.0], 2000)
    ours = summary_shift(summary_of(old), summary_of(new), 1)
    theirs = score_shift(old, new)
    for a, b in zip(ours.tests[1:], theirs.tests[1:], strict=True):
        assert a.estimate.value == pytest.approx(b.estimate.value, abs=1e-12)


def test_more_rows_than_the_generator_deals():
    few = PooledCells(np.ones(2), np.array([3000, 4000, 3000]), np.array([300, 400, 300]))
    many = PooledCells(np.ones(2), few.reference * 10**6, few.new * 10**6)
    rng = np.random.default_rng(0)
    drawn = many.shuffled(4000, rng)[:, 0] / 3e8 - 1.0
    wanted = few.shuffled(4000, rng)[:, 0] / 3e2 - 1.0
    # noise falls with the root of the number of rows
    assert np.std(drawn) * 1e3 == pytest.approx(np.std(wanted), rel=0.06)
    assert many.distances(many.new[None, :])[0][0] == pytest.approx(0.0, abs=1e-12)


def test_what_cannot_be_compared_is_refused():
    one = summary_of(np.array([0.3]))
    with pytest.raises(InputError, match="different classes"):
        summary_shift(one, summarise([[0.3, 0.7]], [0], ("a", "b")))
    with pytest.raises(InputError, match="no rows"):
        summary_shift(one, ClassTally(("no", "yes")).summary())
    with pytest.raises(InputError, match="event is 2"):
        summary_shift(one, one, 2)
    assert summary_shift(one, one).kolmogorov_smirnov.estimate.value == 0.0
