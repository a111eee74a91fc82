"""What a summary says of one predicted class is what its rows say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_class_summary import named, rows

from kdcal_core.calibration import TopLabelKDE
from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import histogram_anchor, reliability, two_halves
from kdcal_core.diagnostics import summary as tiles_of
from kdcal_core.diagnostics.summaries import (
    distinct_rows,
    drawn_rows,
    predicted_class,
    summarise,
    summary_anchor,
    summary_halves,
    summary_of_predicted,
)
from kdcal_core.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore::kdcal_core.errors.InputWarning")


@pytest.mark.parametrize("k", [2, 4])
def test_tiles_and_reliability_are_those_of_the_rows_of_the_class(k):
    proba, y = rows(k, 4000, power=1.4)
    tiles, diagram = summary_of_predicted(summarise(proba, y, named(k)), 1)
    mine = proba.argmax(axis=1) == 1
    theirs = tiles_of(ScoredSet(proba[mine], y[mine], named(k), "", "evaluation"))
    for one, other in zip(tiles, theirs, strict=True):
        assert (one.name, one.label, one.n, one.interval) == (
            other.name, other.label, other.n, other.interval,
        )  # fmt: skip
        both = [(each.value, each.low, each.high) for each in (one, other)]
        np.testing.assert_allclose(*both, atol=2e-4)
    (ours,), (wanted,) = diagram.curves, reliability(proba[mine], y[mine]).curves
    np.testing.assert_array_equal(ours.count, wanted.count)
    np.testing.assert_allclose(ours.accuracy, wanted.accuracy)
    assert (diagram.kind, diagram.n) == ("confidence", int(mine.sum()))


def test_a_class_that_is_never_predicted_has_neither():
    proba = [[0.9, 0.1, 0.0], [0.8, 0.2, 0.0]]
    assert summary_of_predicted(summarise(proba, [0, 1], ("a", "b", "c")), 2) == ((), None)


@pytest.mark.parametrize("kind", ["top-label", "class"])
@pytest.mark.parametrize("n_bins", [5, 13, 25])
def test_histograms_are_exactly_those_of_the_rows(kind, n_bins):
    proba, y = rows(3, 2000)
    ours = summary_anchor(summarise(proba, y, named(3)), label=2, kind=kind, n_bins=n_bins)
    theirs = histogram_anchor(proba, y, label=2, kind=kind, n_bins=n_bins)
    for part in ("edges", "confidence", "count", "low", "high"):
        np.testing.assert_allclose(getattr(ours, part), getattr(theirs, part), rtol=1e-12)


@pytest.mark.parametrize("kind", ["top-label", "class"])
def test_halves_differ_as_much_as_those_of_the_rows(kind):
    """Over 200 draws, the differences of shares vary alike: within a quarter."""
    proba, y = rows(2, 4000)
    summary = summarise(proba, y, named(2))
    ours, theirs = [], []
    for seed in range(200):
        pair = summary_halves(summary, label=1, kind=kind, seed=seed)
        assert pair[0].count.sum() + pair[1].count.sum() == histogram_rows(proba, kind)
        ours.append(pair[0].confidence[-2] - pair[1].confidence[-2])
        pair = two_halves(proba, y, label=1, kind=kind, seed=seed)
        theirs.append(pair[0].confidence[-2] - pair[1].confidence[-2])
    assert abs(np.mean(ours)) < 3 * np.std(ours) / np.sqrt(200)
    assert np.std(ours) == pytest.approx(np.std(theirs), rel=0.25)


def histogram_rows(proba, kind):
    return len(proba) if kind == "class" else int((proba.argmax(axis=1) == 1).sum())


def wide(k, n):
    """Rows of which the cells' means are not the scores, with overlapping classes."""
    rng = np.random.default_rng(k)
    odds = rng.normal(size=(n, k)) * 1.5
    y = (odds + rng.gumbel(size=odds.shape)).argmax(axis=1)
    proba = np.exp(1.4 * odds)
    return proba / proba.sum(axis=1, keepdims=True), y


@pytest.mark.parametrize("k", [2, 3, 6])
def test_a_curve_of_few_rows_is_that_of_the_rows_to_the_last_bit(k):
    proba, y = wide(k, 5000)
    by_cells = TopLabelKDE().fit_counts(*distinct_rows(summarise(proba, y, named(k))))
    by_rows = TopLabelKDE().fit(proba, y)
    for label in range(k):
        ours, theirs = by_cells.curve(label), by_rows.curve(label)
        assert (ours.n_tp, ours.n_fp, ours.bandwidth) == (
            theirs.n_tp, theirs.n_fp, theirs.bandwidth,
        )  # fmt: skip
        for part in ("score", "confidence", "density_tp", "density_fp", "rows", "safe"):
            np.testing.assert_array_equal(getattr(ours, part), getattr(theirs, part))
    np.testing.assert_array_equal(by_cells.predict_proba(proba), by_rows.predict_proba(proba))


@pytest.mark.parametrize("k", [2, 3, 6])
def test_a_curve_of_the_cells_is_that_of_the_rows(k):
    """Scores within a cell count at their mean; cells are narrower than any bandwidth."""
    proba, y = wide(k, 60_000)
    by_cells = TopLabelKDE(shrinkage=5.0).fit_counts(*distinct_rows(summarise(proba, y, named(k))))
    by_rows = TopLabelKDE(shrinkage=5.0).fit(proba, y)
    np.testing.assert_allclose(by_cells.bandwidths_, by_rows.bandwidths_, rtol=0.06)
    for label in range(k):
        ours, theirs = by_cells.curve(label), by_rows.curve(label)
        assert (ours.n_tp, ours.n_fp) == (theirs.n_tp, theirs.n_fp)
        np.testing.assert_allclose(ours.lower_limit, theirs.lower_limit, atol=1e-3)
        inside = np.linspace(ours.lower_limit, 1.0, 400) > ours.lower_limit + 0.02
        np.testing.assert_allclose(ours.safe[inside], theirs.safe[inside], atol=2e-2)
    np.testing.assert_allclose(
        by_cells.predict_proba(proba), by_rows.predict_proba(proba), atol=1e-2
    )


@pytest.mark.parametrize("k", [2, 3, 6])
def test_distinct_rows_stand_for_all_rows(k):
    proba, y = wide(k, 30_000)
    summary = summarise(proba, y, named(k))
    cells, labels, count = distinct_rows(summary)
    assert len(cells) < 30_000 == count.sum()
    np.testing.assert_allclose(cells.sum(axis=1), 1.0, rtol=1e-12)
    assert (cells >= 0).all()
    predicted = cells.argmax(axis=1)
    joint = np.zeros((k, k))
    np.add.at(joint, (labels, predicted), count)
    np.testing.assert_array_equal(np.diag(joint), np.diag(summary.joint))
    np.testing.assert_array_equal(joint.sum(axis=0), summary.joint.sum(axis=0))
    assert count @ cells.max(axis=1) == pytest.approx(proba.max(axis=1).sum())
    # the others share the rest as in rows of the class
    square = (count @ np.square(cells)).sum()
    assert square == pytest.approx(np.square(proba).sum(), rel=2e-3)


def test_a_class_without_drawn_rows_shares_the_rest_evenly(monkeypatch):
    monkeypatch.setattr(drawn_rows, "DRAWN", 40)
    proba, y = rows(3, 4000)
    proba = proba[proba.argmax(axis=1) < 2]
    rare = np.array([[0.1, 0.2, 0.7], [0.3, 0.1, 0.6]])
    cells, labels, count = distinct_rows(
        summarise(np.r_[proba, rare], np.r_[y[: len(proba)], 2, 0], named(3))
    )
    mine = cells.argmax(axis=1) == 2
    np.testing.assert_allclose(np.sort(cells[mine], axis=1)[:, :2], [[0.2] * 2, [0.15] * 2][::-1])
    assert sorted(count[mine]) == [1, 1]
    assert 2 in labels[mine]


def test_a_tie_stays_with_its_class(monkeypatch):
    monkeypatch.setattr(drawn_rows, "DRAWN", 2)
    cells, labels, count = distinct_rows(summarise([[0.5, 0.5]] * 4, [0, 1, 1, 1], named(2)))
    assert cells.argmax(axis=1).tolist() == [0, 0]
    assert (labels.tolist(), count.tolist()) == ([0, 1], [1.0, 3.0])
    third, more = 1.0 / 3.0, np.nextafter(1.0 / 3.0, 1.0)
    tied = [[third] * 3] * 3 + [[third, third, more]] * 3 + [[0.45, 0.1, 0.45]] * 3
    cells, _, count = distinct_rows(summarise(tied, [0] * 9, named(3)))
    predicted = np.bincount(cells.argmax(axis=1), weights=count, minlength=3)
    assert predicted.tolist() == [6.0, 0.0, 3.0]


def test_a_summary_that_cannot_say_has_no_distinct_rows(monkeypatch):
    proba, y = rows(3, 50)
    summary = replace(summarise(proba, y, named(3)), drawn=None)
    assert distinct_rows(summary) is None
    two = summarise(*rows(2, 50), named(2))
    assert distinct_rows(replace(two, drawn=None)) is not None
    monkeypatch.setattr(drawn_rows, "DRAWN", 20)
    monkeypatch.setattr(predicted_class, "_MOST_NUMBERS", 30)
    assert distinct_rows(summarise(proba, y, named(3))) is None


def test_other_labels_are_refused():
    with pytest.raises(InputError, match="There is no class 3"):
        summary_anchor(summarise(*rows(3, 50), named(3)), label=3)
