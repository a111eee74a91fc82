"""Charts of a new table against the reference rows: marks, words, and extreme values."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from plotly import graph_objects as go

from kdcal_core.charts import (
    Chart,
    class_shares_chart,
    drift_words,
    e_process_chart,
    e_process_words,
    e_value_text,
    frozen_bins_chart,
    gap_chart,
    measures_chart,
    moved_beyond_chance,
    shares_words,
    shift_words,
    watched_scores_chart,
)
from kdcal_core.charts.palette import palette
from kdcal_core.data import FloatArray
from kdcal_core.diagnostics import (
    ComparedMeasure,
    LabelShift,
    ScoreShift,
    SequentialCalibration,
    label_free_performance,
    label_shift,
    number_counts,
    number_shift,
    score_counts,
    score_shift,
    sequential_calibration,
    sequential_uniformity,
)

HOSTILE = "<img src=x onerror=alert(1)>"
RNG = np.random.default_rng(0)
REFERENCE, NEW = RNG.beta(2, 2, 1500), RNG.beta(3, 2, 3000)
SAME = RNG.beta(2, 2, 1000)


def happens(probability: FloatArray) -> NDArray[np.bool_]:
    """Outcomes of these probabilities; the same whichever test asks first."""
    return np.random.default_rng(1).random(len(probability)) < probability


@pytest.fixture(scope="module")
def moved() -> ScoreShift:
    return score_shift(REFERENCE, NEW)


@pytest.fixture(scope="module")
def wrong() -> SequentialCalibration:
    """Of labels that contradict the probabilities."""
    return sequential_calibration(NEW, happens(NEW**2))


@pytest.fixture(scope="module")
def right() -> SequentialCalibration:
    return sequential_calibration(SAME, happens(SAME))


@pytest.fixture(scope="module")
def measures() -> tuple[ComparedMeasure, ...]:
    both = [np.column_stack([1 - one, one]) for one in (REFERENCE, NEW)]
    y = happens(REFERENCE).astype(int)
    found = label_free_performance(both[0], y, both[1], n_draws=50)
    rate, area = found.predictions.rate, found.predictions.auc
    return (
        ComparedMeasure("Accuracy", rate.reference, rate.rows, replace(rate.rows, n=400)),
        ComparedMeasure(f"AUROC of {HOSTILE}", area.reference, area.rows, None),
    )


@pytest.fixture(scope="module")
def shares() -> LabelShift:
    both = [np.column_stack([1 - one, one]) for one in (REFERENCE, NEW)]
    y = happens(REFERENCE).astype(int)
    return label_shift(both[1], both[0], y, n_draws=20)


def traces(figure: go.Figure) -> dict[str, go.Scatter]:
    return {one.name: one for one in figure.data}


@pytest.mark.parametrize("dark", [False, True])
def test_both_tables_are_counted_on_the_scale_of_log_odds(moved: ScoreShift, dark: bool) -> None:
    counts = score_counts(REFERENCE, NEW)
    chart = watched_scores_chart(counts, moved, f"Probability of {HOSTILE}", dark=dark)
    bars, steps = (
        traces(chart.figure)["1,500 reference rows"],
        traces(chart.figure)["3,000 new rows"],
    )
    assert np.isclose(bars.y.sum(), 1.0)
    assert np.isclose(steps.y[:-1].sum(), 1.0)
    assert len(steps.x) == len(bars.x) + 1  # from edge to edge
    assert steps.line.color == palette(dark).classes[4]
    assert np.isfinite(bars.x).all()
    assert "<img" not in chart.figure.layout.xaxis.title.text
    assert chart.table()["new_rows"].sum() == 3000
    low, high = chart.figure.layout.xaxis.range
    assert low < math.log(REFERENCE.min() / (1.0 - REFERENCE.min())) < 0.0
    assert 0.0 < math.log(NEW.max() / (1.0 - NEW.max())) < high
    assert high - low < 14.0  # without the bins that have no rows


def test_words_of_a_shift_name_what_chance_gives(moved: ScoreShift) -> None:
    assert moved_beyond_chance(moved)
    assert shift_words(moved).startswith("The scores have moved beyond chance: PSI 0.")
    assert "by chance up to 0.0" in shift_words(moved)
    same = score_shift(REFERENCE, SAME)
    assert not moved_beyond_chance(same)
    assert "have not moved" in shift_words(same)
    # only a Wasserstein distance refuses: it is the one that is named
    hidden = replace(moved, psi=replace(moved.psi, p_value=0.9))
    hidden = replace(hidden, kolmogorov_smirnov=replace(hidden.kolmogorov_smirnov, p_value=0.9))
    assert "Wasserstein-1" in shift_words(hidden)


def test_all_tests_of_change_are_corrected_together(moved: ScoreShift, shares: LabelShift) -> None:
    def of(drift: float, change: float) -> tuple[str, str]:
        ks, w = (replace(one, p_value=0.9) for one in (moved.kolmogorov_smirnov, moved.wasserstein))
        psi = replace(moved.psi, p_value=drift)
        shift = replace(moved, psi=psi, kolmogorov_smirnov=ks, wasserstein=w)
        both = replace(shares, p_value=change)
        return shift_words(shift, both), shares_words(both, ("no", "yes"), shift)

    # between the single and the corrected level the words do not contradict their verdict
    scores, classes = of(0.02, 0.03)
    assert "have not moved beyond chance: PSI" in scores
    assert "(p value 0.020, 0.080 after Holm's correction)" in scores
    assert "did not change beyond chance (p value 0.030, 0.090 after Holm's correction)" in classes
    scores, classes = of(0.015, 0.001)
    assert "have moved beyond chance" in scores
    assert "by chance up to" in scores
    assert "changed beyond chance (p value 0.001): " in classes


def test_frozen_bins_hold_equal_shares_of_the_reference_rows(moved: ScoreShift) -> None:
    reference, new = frozen_bins_chart(moved, dark=False).figure.data
    assert np.allclose(reference.y, 0.1, atol=0.001)
    assert np.isclose(new.y.sum(), 1.0)
    assert (new.error_y.array > 0.0).all()


def test_measures_without_labels_are_open_marks(measures: tuple[ComparedMeasure, ...]) -> None:
    chart = measures_chart(measures, dark=False)
    symbols = [one.marker.symbol for one in chart.figure.data]
    assert symbols == ["circle", "diamond-open", "diamond", "circle", "diamond-open"]
    assert "<img" not in str(chart.figure.layout)
    assert chart.panels is not None
    assert len(chart.panels.figures) == 2
    assert list(chart.table()["rows"][:3]) == [
        "reference",
        "new, without labels",
        "new, from labels",
    ]
    nothing = replace(measures[0], new=replace(measures[0].new, value=math.nan, interval="not so"))
    assert ", not so" in measures_chart([nothing], dark=False).finding


def test_class_shares_stand_beside_the_reference_ones(shares: LabelShift) -> None:
    chart = class_shares_chart(shares, (HOSTILE, "yes"), dark=True)
    reference, new = chart.figure.data
    assert np.allclose(reference.x, shares.reference_prior)
    assert np.allclose(new.x, shares.prior)
    assert "<img" not in str(chart.figure.layout)
    assert "changed beyond chance" in chart.finding
    assert len(chart.table()) == 2


def test_the_e_process_is_drawn_with_its_crossing(
    wrong: SequentialCalibration, right: SequentialCalibration
) -> None:
    drawn = traces(e_process_chart(wrong, dark=False).figure)
    assert list(drawn["signal"].x) == [wrong.crossed_at]
    line = drawn["e-value"]
    assert wrong.crossed_at in line.x
    assert len(line.x) <= 802
    assert max(line.y) == pytest.approx(wrong.log_e_values.max() / math.log(10.0))
    assert "signal" not in traces(e_process_chart(right, dark=False).figure)
    assert "Recalibrate" in e_process_words(wrong)
    assert "No signal in 1,000 labelled rows" in e_process_words(right)


def test_rows_are_numbered_over_all_tables(right: SequentialCalibration) -> None:
    more = sequential_calibration(NEW, happens(NEW**2), state=right.state)
    line = traces(e_process_chart(more, dark=False).figure)["e-value"]
    assert line.x[0] >= 1001
    assert line.x[-1] == 4000
    written = e_process_chart(more, dark=False).table()  # the rows that are drawn, and no others
    assert written["labelled_row"].tolist() == list(line.x)
    assert len(written) < 1000


def test_an_e_value_beyond_all_numbers_can_be_said(wrong: SequentialCalibration) -> None:
    huge = replace(
        wrong, log_e_values=np.linspace(0.0, 2500.0, len(wrong.log_e_values)), e_value=math.inf
    )
    assert e_value_text(huge).endswith(" × 10¹⁰⁸⁵")
    assert len(e_process_chart(huge, dark=False).figure.layout.yaxis.tickvals) < 10


def test_the_confidence_sequence_narrows(wrong: SequentialCalibration) -> None:
    chart = gap_chart(wrong, dark=False)
    low, high = chart.figure.data
    width = np.array(high.y) - np.array(low.y)
    assert width[-1] < 0.2 < width[0]
    assert "the model states too much" in chart.finding
    assert chart.figure.layout.yaxis.tickformat == ".0%"  # zero has no sign


def test_every_chart_has_its_words(
    moved: ScoreShift,
    wrong: SequentialCalibration,
    measures: tuple[ComparedMeasure, ...],
    shares: LabelShift,
) -> None:
    charts: list[Chart] = [
        watched_scores_chart(score_counts(REFERENCE, NEW), moved, "Confidence", dark=False),
        frozen_bins_chart(moved, dark=False),
        measures_chart(measures, dark=False),
        class_shares_chart(shares, ("a", "b"), dark=False),
        e_process_chart(wrong, dark=False),
        gap_chart(wrong, dark=False),
    ]
    for one in charts:
        assert one.finding in one.alt
        assert one.how_to_read.strip()
        assert len(one.table())
    assert len({one.name for one in charts}) == len(charts)


def test_forecasts_are_drawn_in_their_own_units() -> None:
    old, new = 1e4 * REFERENCE, 1e4 * NEW
    shift = number_shift(old, new, noun="predicted medians")
    width = number_shift(REFERENCE, SAME, noun="interval widths")
    counts = number_counts(old, new)
    chart = watched_scores_chart(counts, shift, "Predicted median", width, dark=False)
    assert chart.finding.startswith("The predicted medians have moved beyond chance: PSI")
    assert "in 40 bins of equal width" in chart.how_to_read
    low, high = chart.figure.layout.xaxis.range
    assert old.min() - 500 < low < high < old.max() + 500
    assert chart.figure.layout.xaxis.ticktext is None
    bins = frozen_bins_chart(shift, width, dark=False)
    names = bins.figure.data[0].customdata
    assert names[0].startswith("up to ")
    assert names[-1].startswith("above ")
    assert "predicted medians" in bins.figure.layout.xaxis.title.text
    assert list(bins.table()["score_low"][:1]) == [-np.inf]
    # the tests of both are corrected together
    assert not moved_beyond_chance(width, shift)
    assert drift_words(shift, width).startswith("by chance up to")


def test_what_is_known_of_the_reference_rows_alone_is_only_in_the_table(
    measures: tuple[ComparedMeasure, ...],
) -> None:
    nothing = replace(measures[1].new, value=math.nan, low=math.nan, high=math.nan)
    given = [measures[0], replace(measures[1], new=nothing, labels=None)]
    chart = measures_chart(given, dark=False, of_forecasts=True)
    assert chart.panels is not None
    assert len(chart.panels.figures) == 1
    assert len(set(chart.table()["measure"])) == 2
    assert "CRPS" in chart.how_to_read


def test_the_sequential_test_of_forecasts_speaks_of_pit_values() -> None:
    rng = np.random.default_rng(9)
    pit, place = rng.random(400) ** 1.6, rng.random(400)
    found = sequential_uniformity(pit, place)
    assert "PIT values" in e_process_chart(found, dark=False).how_to_read
    chart = gap_chart(found, dark=False)
    assert chart.finding.startswith("On average outcomes are lower than forecast: −")
    assert chart.figure.layout.yaxis.title.text == "Mean PIT value minus one half"
    assert "%" not in chart.figure.layout.yaxis.tickformat
    fair = sequential_uniformity(rng.random(400), place)
    assert "may be right" in gap_chart(fair, dark=False).finding
