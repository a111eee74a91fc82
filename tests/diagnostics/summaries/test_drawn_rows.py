"""The rows that a summary draws are the same for every cut and order, and fair."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_class_summary import named, rows

from kdcal_core.calibration.shrinkage import MOST_ROWS
from kdcal_core.diagnostics.summaries import DRAWN, ClassTally, DrawnRows, drawn_rows, summarise
from kdcal_core.diagnostics.summaries._summary_kernels import rows_within
from kdcal_core.diagnostics.summaries.drawn_rows import RowDraw, row_numbers
from kdcal_core.errors import InputError

MOST = 50


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(drawn_rows, "DRAWN", MOST)
    monkeypatch.setattr(drawn_rows, "_CHUNK", 70)


def bytes_of(drawn):
    return drawn.position.tobytes() + drawn.proba.tobytes() + drawn.y.tobytes()


def test_a_calibrator_chooses_its_shrinkage_by_as_many():
    assert DRAWN == MOST_ROWS


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.integers(0, 400), max_size=6),
    st.randoms(use_true_random=False),
    st.sampled_from([2, 3]),
)
def test_any_cut_and_order_draws_the_same_bytes(few, cuts, random, k):
    proba, y = rows(k, 400)
    whole = summarise(proba, y, named(k)).drawn
    ends = sorted({0, 400, *cuts})
    parts = [summarise(proba[a:b], y[a:b], named(k), first=a) for a, b in pairwise(ends)]
    random.shuffle(parts)
    total = parts[0]
    for part in parts[1:]:
        total = part + total
    assert bytes_of(total.drawn) == bytes_of(whole)
    assert total.drawn.digest == whole.digest
    least = np.sort(np.argsort(row_numbers(np.arange(400)))[:MOST])
    np.testing.assert_array_equal(whole.position, least)
    np.testing.assert_array_equal(whole.proba, proba[least])
    np.testing.assert_array_equal(whole.y, y[least])


def test_batches_of_one_tally_draw_the_same_in_any_order(few):
    proba, y = rows(3, 900)
    found = []
    for order in ([0, 1, 2, 3, 4, 5, 6, 7, 8], [5, 8, 0, 2, 7, 1, 3, 6, 4]):
        draw = RowDraw(3)
        for part in order:
            mine = slice(100 * part, 100 * part + 100)
            draw.add(proba[mine], y[mine], 100 * part)
        found.append(draw.rows())
    assert bytes_of(found[0]) == bytes_of(found[1])
    assert found[0].may_be_of(900, 3)


def test_few_rows_are_all_drawn_in_the_order_of_the_table():
    proba, y = rows(4, 300)
    drawn = summarise(proba, y, named(4)).drawn
    np.testing.assert_array_equal(drawn.position, np.arange(300))
    assert bytes_of(drawn)[300 * 8 :] == proba.tobytes() + y.tobytes()


def test_rows_are_scaled_as_everywhere():
    drawn = summarise([[0.8, 0.1997], [0.5, 0.5]], [0, 1], ("no", "yes")).drawn
    np.testing.assert_allclose(drawn.proba.sum(axis=1), 1.0, rtol=1e-15)
    assert drawn.proba[1].tolist() == [0.5, 0.5]


def test_the_compiled_numbers_are_those_of_numpy():
    number = row_numbers(np.arange(1000, 1100))
    limit = np.sort(number)[30]
    found = np.empty(100, np.int64)
    assert rows_within(1000, 100, limit, found) == 31
    np.testing.assert_array_equal(found[:31], np.flatnonzero(number <= limit))


def test_every_part_of_a_table_is_drawn_alike(few):
    """Of ten equal parts of 200 tables each gets a tenth, within four standard errors."""
    share = np.zeros(10)
    for at in range(200):
        draw = RowDraw(2)
        draw.add(np.full((500, 2), 0.5), np.zeros(500, np.int64), 500 * at)
        share += np.bincount((draw.rows().position - 500 * at) // 50, minlength=10)
    expected = 200 * MOST / 10
    assert np.abs(share - expected).max() < 4 * np.sqrt(expected * 0.9)


def test_no_rows_add_nothing():
    one, nothing = summarise(*rows(3, 50), named(3)), ClassTally(named(3)).summary()
    assert bytes_of((nothing + one).drawn) == bytes_of(one.drawn)


def test_batches_of_the_same_places_add_to_the_same_bytes_too(few):
    one, other = (summarise(*rows(3, 40, seed), named(3)) for seed in (0, 1))
    assert bytes_of((one + other).drawn) == bytes_of((other + one).drawn)
    assert (one + other).drawn.may_be_of(80, 3)


def test_a_summary_of_before_has_none_and_neither_has_its_sum():
    one = summarise(*rows(3, 50), named(3))
    old = replace(summarise(*rows(3, 50, 1), named(3), first=50), drawn=None)
    assert (one + old).drawn is None
    assert (one + old).digest == (old + one).digest


@pytest.mark.parametrize(
    "parts",
    [
        {"position": np.array([1, 0])},
        {"y": np.array([0])},
        {"proba": np.array([[0.5, 0.5]])},
    ],
)
def test_damaged_rows_are_refused(parts):
    right = {"position": np.arange(2), "proba": np.full((2, 2), 0.5), "y": np.zeros(2, np.int64)}
    with pytest.raises(InputError, match="damaged"):
        DrawnRows(**{**right, **parts})


def test_rows_of_other_classes_or_another_number_are_refused():
    one = summarise(*rows(3, 50), named(3))
    other = summarise(*rows(2, 50), named(2)).drawn
    few = summarise(*rows(3, 49), named(3)).drawn
    for drawn in (other, few, replace(one.drawn, y=one.drawn.y + 3)):
        with pytest.raises(InputError, match="damaged"):
            replace(one, drawn=drawn)
