"""Any cut and order of the rows gives the same bytes, and estimates agree with those of rows."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdcal_core.data import ScoredSet
from kdcal_core.data.binning import bin_index, bin_sums, uniform_edges
from kdcal_core.diagnostics import (
    all_estimates,
    brier_decomposition,
    calibration_intercept,
    calibration_slope,
    confusion,
    decision_counts,
    event_summary,
    reliability,
)
from kdcal_core.diagnostics.calibration_error import error_of_bins
from kdcal_core.diagnostics.summaries import (
    BINS,
    ClassSummary,
    ClassTally,
    area_bound,
    summarise,
    summary_confusion,
    summary_decisions,
    summary_estimates,
    summary_event_estimates,
    summary_line,
    summary_reliability,
)
from kdcal_core.diagnostics.summaries import class_summary as module
from kdcal_core.diagnostics.summaries.class_estimates import _binned
from kdcal_core.diagnostics.summaries.class_split import split_bound
from kdcal_core.diagnostics.summaries.score_cells import ScoreCells
from kdcal_core.diagnostics.summaries.score_grid import cell_index, upper_ends
from kdcal_core.errors import InputError
from kdcal_core.store import load, save


def rows(k: int, n: int, seed: int = 0, power: float = 1.3) -> tuple[np.ndarray, np.ndarray]:
    """Stated probabilities that are too sure, and true classes."""
    rng = np.random.default_rng(seed)
    true = rng.dirichlet(np.full(k, 0.7), n)
    said = true**power
    said /= said.sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > true.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    return said, y


def named(k: int) -> tuple[str, ...]:
    return tuple(f"class {one}" for one in range(k))


# what is hard to place: ends of bins in both spellings, thresholds, ends of the range
EDGE = [0.0, 1.0, 0.3, 3 * 0.1, 0.5, 1 / 15, 7 / 15, 1e-12, 5e-324, 1 - 2**-53, 0.0625, 0.29]
score = st.sampled_from(EDGE) | st.floats(0.0, 1.0)


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.tuples(score, st.integers(0, 1)), min_size=1, max_size=40),
    st.lists(st.integers(0, 40), max_size=4),
    st.randoms(use_true_random=False),
)
def test_any_cut_and_order_gives_the_same_bytes(given_rows, cuts, random):
    p, y = (np.array(part) for part in zip(*given_rows, strict=True))
    proba = np.column_stack([1.0 - p, p])
    whole = summarise(proba, y, ("no", "yes"))
    ends = sorted({0, len(p), *(min(cut, len(p)) for cut in cuts)})
    parts = [summarise(proba[a:b], y[a:b], ("no", "yes"), first=a) for a, b in pairwise(ends)]
    random.shuffle(parts)
    total = parts[0]
    for part in parts[1:]:
        total = part + total
    for part in ("cells", "joint", "sums", "blocks"):
        assert getattr(total, part).tobytes() == getattr(whole, part).tobytes()
    assert total.digest == whole.digest
    assert total.n == whole.n == len(p)


@settings(max_examples=25, deadline=None)
@given(st.lists(score, min_size=1, max_size=30))
def test_a_score_lies_in_the_cell_of_the_binning_kernel(scores):
    p = np.array(scores)
    found = summarise(np.column_stack([1.0 - p, p]), np.ones(len(p), int), ("no", "yes"))
    counts = bin_sums(cell_index(p), len(upper_ends()))
    np.testing.assert_array_equal(found.cells[1, 1, :, 0], counts)


@pytest.mark.parametrize("n_bins", BINS)
def test_every_edge_of_equal_bins_is_the_end_of_a_cell(n_bins):
    assert np.isin(uniform_edges(n_bins), upper_ends()).all()


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(score, st.integers(0, 1)), min_size=1, max_size=40), st.sampled_from(BINS)
)
def test_bins_follow_exactly(given_rows, n_bins):
    p, y = (np.array(part) for part in zip(*given_rows, strict=True))
    summary = summarise(np.column_stack([1.0 - p, p]), y, ("no", "yes"))
    table = ScoreCells.of_class(summary, 1).table(n_bins)
    index = bin_index(p, uniform_edges(n_bins))
    np.testing.assert_array_equal(table.count, bin_sums(index, n_bins))
    hits = np.nan_to_num(table.rate) * table.count
    np.testing.assert_allclose(hits, bin_sums(index, n_bins, y.astype(float)), atol=1e-12)
    mass = np.nan_to_num(table.score) * table.count
    np.testing.assert_allclose(mass, bin_sums(index, n_bins, p), atol=1e-12)


SAME = {  # values that the cells do not blur at all; intervals need no draws
    "Accuracy",
    "Confidence gap",
    "Top-label log loss",
    "Log loss",
    "Brier score",
    "Top-label Brier",
    "Mean confidence",
    "Confidence on errors",
    "MCE",
}


@pytest.mark.parametrize(("k", "n"), [(4, 6000), (2, 300)])
def test_estimates_agree_with_those_of_rows(k, n):
    proba, y = rows(k, n)
    summary = summarise(proba, y, named(k))
    scored = ScoredSet(proba, y, named(k), "", "evaluation")
    found, wanted = summary_estimates(summary), all_estimates(scored)
    assert [one.label for one in found] == [one.label for one in wanted]
    for ours, theirs in zip(found, wanted, strict=True):
        cells = "edges at" if "equal mass" in theirs.label else "isotonic in"
        assert ours.name.removesuffix(f", {cells} cells of the summary") == theirs.name
        assert ours.n == theirs.n
        assert np.isnan(ours.low) == np.isnan(theirs.low)
        width = max(np.nan_to_num(theirs.high - theirs.low), 1e-3)
        if ours.label in SAME:
            values = [(one.value, one.low, one.high) for one in (ours, theirs)]
            np.testing.assert_allclose(*values, rtol=1e-9, atol=1e-9)
            continue
        blur = 1e-6 if "equal-width" in ours.name or "ECE" in ours.label else 1e-3
        blur = 2e-3 if "equal mass" in ours.label or "Smooth" in ours.label else blur
        assert ours.value == pytest.approx(theirs.value, abs=blur)
        # ends of intervals differ by what other draws would change
        draws = 0.25 if theirs.label in {"Classwise ECE", "Smooth ECE"} else 0.12
        assert np.abs(np.nan_to_num([ours.low - theirs.low, ours.high - theirs.high])).max() <= (
            draws * width + blur
        )


@pytest.mark.parametrize("k", [2, 4])
def test_an_event_agrees_with_that_of_rows(k):
    proba, y = rows(k, 5000, seed=3)
    summary = summarise(proba, y, named(k))
    scored = ScoredSet(proba, y, named(k), "", "evaluation")
    for ours, theirs in zip(
        summary_event_estimates(summary, 1), event_summary(scored, 1), strict=True
    ):
        assert (ours.name, ours.label, ours.n) == (theirs.name, theirs.label, theirs.n)
        values = [(one.value, one.low, one.high) for one in (ours, theirs)]
        np.testing.assert_allclose(*values, atol=1e-4)
    hit = (y == 1).astype(int)
    lines = calibration_intercept(proba[:, 1], hit), calibration_slope(proba[:, 1], hit)
    for ours, theirs in zip(summary_line(summary, 1), lines, strict=True):
        assert ours.name == theirs.name
        values = [(one.value, one.low, one.high) for one in (ours, theirs)]
        np.testing.assert_allclose(*values, atol=2e-3)


def test_the_area_lies_within_its_bound():
    rng = np.random.default_rng(1)
    p = rng.beta(0.02, 30.0, 3000)  # nearly all below 0.001
    y = (rng.random(3000) < 30.0 * p).astype(int)
    proba = np.column_stack([1.0 - p, p])
    summary = summarise(proba, y, named(2))
    scored = ScoredSet(proba, y, named(2), "", "evaluation")
    exact, found = event_summary(scored, 1)[0], summary_event_estimates(summary, 1)[0]
    bound = area_bound(summary, 1)
    assert 0.0 < bound < 0.01
    assert abs(found.value - exact.value) <= bound + 1e-12
    assert found.low <= exact.low + bound
    assert found.high >= exact.high - bound


@pytest.mark.parametrize(("k", "n"), [(2, 50), (2, 30_000), (4, 3000)])
def test_parts_of_the_score_say_how_far_below_those_of_rows_they_may_be(k, n):
    proba, y = rows(k, n, seed=7)
    summary = summarise(proba, y, named(k))
    for of, what in (("vector", "Brier score"), ("top-label", "Top-label Brier")):
        ours = {one.name: one for one in summary_estimates(summary)}
        brier = next(one for one in ours.values() if one.label == what)
        exact = brier_decomposition(proba, y, of=of)
        cells = ", isotonic in cells of the summary"
        found = [ours.get(one.name + cells) or ours[one.name] for one in exact]
        assert found[0].value - found[1].value + found[2].value == pytest.approx(brier.value)
        for mine, theirs in zip(found[:2], exact[:2], strict=True):
            stated = re.search(r"; the value is at most (\S+) lower", mine.interval)
            bound = float(stated[1]) if stated else 0.0
            assert (bound > 0.0) == (mine.name.endswith(cells))
            assert -1e-9 <= theirs.value - mine.value <= 1.1 * bound + 1e-9
        assert found[2].name == exact[2].name
    if n == 30_000:
        assert bound < 0.001


def test_the_bound_of_the_split_is_reached():
    p = np.r_[np.full(50, 0.50001), np.full(50, 0.50002)]  # one cell
    y = np.repeat([0, 1], 50)
    proba = np.column_stack([1.0 - p, p])
    summary = summarise(proba, y, named(2))
    fitted = summary_estimates(summary)
    found = next(one for one in fitted if one.label == "Top-label miscalibration")
    rows_ = brier_decomposition(proba, y)[0]
    cells = ScoreCells.of_confidence(summary)
    assert len(cells.place) == 1
    assert found.value < rows_.value <= found.value + split_bound(cells)


def test_decisions_and_confusion_are_those_of_rows():
    p = np.r_[np.arange(0, 1001) / 1000, EDGE]
    y = (np.arange(len(p)) % 3 == 0).astype(int)
    proba = np.column_stack([1.0 - p, p])
    summary = summarise(proba, y, named(2))
    ours, theirs = summary_decisions(summary, 1), decision_counts(p, y)
    np.testing.assert_array_equal(ours.mass, theirs.mass)
    np.testing.assert_array_equal(ours.square, theirs.square)
    assert ours.n == theirs.n
    np.testing.assert_array_equal(summary_confusion(summary).joint, confusion(proba, y).joint)


@pytest.mark.parametrize("kind", ["confidence", "top-label", "class"])
def test_diagrams_are_those_of_rows(kind):
    proba, y = rows(3, 3000)
    ours = summary_reliability(summarise(proba, y, named(3)), kind=kind, n_bins=10)
    theirs = reliability(proba, y, kind=kind, n_bins=10)
    for a, b in zip(ours.curves, theirs.curves, strict=True):
        assert (a.label, a.n) == (b.label, b.n)
        for part in ("edges", "count", "confidence", "accuracy", "low", "high"):
            np.testing.assert_allclose(getattr(a, part), getattr(b, part), atol=1e-12)
        np.testing.assert_allclose(a.band_low, b.band_low, atol=0.05)
        np.testing.assert_allclose(
            np.interp(b.smooth_x, a.smooth_x, a.smooth_y), b.smooth_y, atol=2e-3
        )


def test_intervals_cover_the_errors_of_new_rows():
    # the interval of the classwise ECE comes from blocks: as often right as that of rows
    def error(n, seed):
        bins = _binned(summarise(*rows(3, n, seed), named(3)), "class", "uniform")
        return error_of_bins(bins, "class", "l1", 15, "uniform", False, 0.95, 1000, 0)

    truth, held = error(200_000, 9).value, 0
    for seed in range(8):
        found = error(3000, 100 + seed)
        held += found.low <= truth <= found.high
    assert held >= 6  # 95% of 8 runs: fewer than 6 has a chance of 0.6%


@pytest.mark.parametrize(
    ("proba", "y", "row"),
    [
        ([[0.5, 0.5], [np.nan, 0.5]], [0, 0], 2),
        ([[0.5, 0.5], [1.5, -0.5]], [0, 0], 2),
        ([[0.5, 0.4]], [0], 1),
        ([[0.5, 0.5], [0.5, 0.5]], [0, 2], 2),
        ([[0.5, 0.5]], [-1], 1),
        ([[np.inf, 0.5]], [0], 1),
    ],
)
def test_a_faulty_row_is_named(proba, y, row):
    tally = ClassTally(("no", "yes"))
    with pytest.raises(InputError) as found:
        tally.add(np.array(proba), np.array(y), first=0)
    assert found.value.row == row
    with pytest.raises(InputError, match="faulty batch"):
        tally.add([[0.5, 0.5]], [0], first=0)


def test_one_row_one_class_and_no_rows():
    one = summarise([[0.4, 0.6]], [1], named(2))
    found = {each.label: each for each in summary_estimates(one)}
    assert found["Accuracy"].value == 1.0
    assert np.isnan(found["AUROC"].value)
    assert np.isnan(found["Confidence on errors"].value)
    empty = ClassTally(named(2)).summary()
    assert (empty + one).digest == one.digest
    with pytest.raises(InputError, match="no rows"):
        summary_estimates(empty)


def test_what_does_not_fit_is_refused():
    one = summarise([[0.4, 0.6]], [1], named(2))
    with pytest.raises(InputError, match="different classes"):
        one + summarise([[0.4, 0.6]], [1], ("no", "yes"))
    with pytest.raises(InputError, match="damaged"):
        replace(one, grid=2)
    with pytest.raises(InputError, match="damaged"):
        replace(one, n=7)
    with pytest.raises(InputError, match="2 to 100"):
        ClassTally(("alone",))
    with pytest.raises(InputError, match="at most"):
        ClassTally(named(2)).add([[0.5, 0.5]], [0], first=module.MOST_ROWS)
    with pytest.raises(InputError, match="51"):
        summary_reliability(one, n_bins=51)


def test_large_counts_add_exactly():
    one = summarise([[0.25, 0.75]] * 3, [1, 1, 0], named(2))
    total, doublings = one, 31
    for _ in range(doublings):
        total = total + total
    assert total.n == 3 * 2**doublings
    assert total.moments("confidence")[0] == 0.75 * total.n
    assert summary_estimates(total)[0].value == 2 / 3


def test_it_is_stored_whole(tmp_path: Path):
    proba, y = rows(3, 500)
    summary = summarise(proba, y, ("<b>", "../x", "ü"))
    save(tmp_path, summary)
    found = load(tmp_path, ClassSummary)
    assert found.digest == summary.digest
    assert (found + summary).n == 1000
