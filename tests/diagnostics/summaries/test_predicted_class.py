"""What a summary says of one predicted class is what its rows say."""

from __future__ import annotations

import numpy as np
import pytest
from test_class_summary import named, rows

from kdcal_core.calibration import TopLabelKDE
from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import histogram_anchor, reliability, two_halves
from kdcal_core.diagnostics import summary as tiles_of
from kdcal_core.diagnostics.summaries import (
    distinct_rows,
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


def test_a_curve_of_the_cells_is_that_of_the_rows():
    """Scores within a cell count at their mean; cells are narrower than any bandwidth."""
    proba, y = rows(2, 15_000, power=1.4)
    by_cells = TopLabelKDE().fit_counts(*distinct_rows(summarise(proba, y, named(2))))
    by_rows = TopLabelKDE().fit(proba, y)
    np.testing.assert_allclose(by_cells.bandwidths_, by_rows.bandwidths_, rtol=0.06)
    for label in (0, 1):
        ours, theirs = by_cells.curve(label), by_rows.curve(label)
        assert (ours.n_tp, ours.n_fp) == (theirs.n_tp, theirs.n_fp)
    score = np.linspace(0.51, 0.99, 200)
    vectors = np.column_stack([1.0 - score, score])
    np.testing.assert_allclose(
        by_cells.predict_proba(vectors), by_rows.predict_proba(vectors), atol=5e-3
    )


def test_distinct_rows_stand_for_all_rows():
    proba, y = rows(2, 3000)
    cells, labels, count = distinct_rows(summarise(proba, y, named(2)))
    assert count.sum() == 3000
    predicted = cells.argmax(axis=1)
    joint = np.zeros((2, 2))
    np.add.at(joint, (labels, predicted), count)
    np.testing.assert_array_equal(joint, summarise(proba, y, named(2)).joint)
    assert count @ cells.max(axis=1) == pytest.approx(proba.max(axis=1).sum())


def test_a_tie_stays_with_the_first_class():
    cells, labels, count = distinct_rows(summarise([[0.5, 0.5]] * 4, [0, 1, 1, 1], named(2)))
    assert cells.argmax(axis=1).tolist() == [0, 0]
    assert (labels.tolist(), count.tolist()) == ([0, 1], [1.0, 3.0])


def test_more_classes_and_other_labels_are_refused():
    summary = summarise(*rows(3, 50), named(3))
    with pytest.raises(InputError, match="There are 3 classes"):
        distinct_rows(summary)
    with pytest.raises(InputError, match="There is no class 3"):
        summary_anchor(summary, label=3)
