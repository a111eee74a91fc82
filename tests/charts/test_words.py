"""The sentences beside the figures, on results whose finding is known."""

from __future__ import annotations

import numpy as np
import pytest
from texts.snapshot import Texts

from kdcal_core.calibration import ConfidenceCurve
from kdcal_core.charts import decisions
from kdcal_core.charts.calibrator import calibrator_map_words
from kdcal_core.charts.confidence import (
    bandwidth_alt,
    bandwidth_words,
    confidence_words,
    noise_words,
)
from kdcal_core.charts.decisions import cost_words
from kdcal_core.charts.methods import losses_words
from kdcal_core.charts.score_histograms import histogram_words
from kdcal_core.diagnostics import (
    Costs,
    HistogramAnchor,
    ScoreHistogram,
    best_threshold,
    decision_counts,
    top_label_losses,
)
from kdcal_core.diagnostics.calibrator_map import CalibratorMap, MapLine

EDGES = np.linspace(0, 1, 11)


def anchor(label: int, confidence: list[float], count: list[float]) -> HistogramAnchor:
    share = np.full(10, np.nan)
    rows = np.zeros(10)
    share[-len(confidence) :] = confidence
    rows[-len(count) :] = count
    return HistogramAnchor(label, EDGES, share, rows, share - 0.1, share + 0.1)


def curve(label: int, bandwidth: float, n_tp: int = 3, n_fp: int = 1) -> ConfidenceCurve:
    grid = np.linspace(0.5, 1, 5)
    return ConfidenceCurve(label, grid, grid, grid, grid, bandwidth, n_tp, n_fp, 0.5)


def test_noise_is_weighted_by_rows_and_names_the_largest_gap(texts: Texts) -> None:
    pair = (anchor(1, [0.5, 0.9], [1, 99]), anchor(1, [0.9, 0.8], [1, 99]))
    sentence = noise_words([pair], ["a", "b"])
    texts(sentence)
    assert "10.3 points" in sentence  # (2 * 0.4 + 198 * 0.1) / 200 = 0.103


def test_halves_that_agree_are_not_said_to_differ() -> None:
    pair = (anchor(0, [1.0, 1.0], [5, 5]), anchor(0, [1.0, 1.0], [5, 5]))
    sentence = noise_words([pair], ["a"])
    assert "agree in every bin" in sentence
    assert "(20 rows)" in sentence


def test_noise_without_a_common_bin_is_said() -> None:
    pair = (anchor(0, [np.nan, 1.0], [0, 5]), anchor(0, [1.0, np.nan], [5, 0]))
    assert "cannot be shown" in noise_words([pair], ["a"])


def test_bandwidths_name_the_class_that_pays_most(texts: Texts) -> None:
    two, one = [curve(0, 0.02), curve(1, 0.02)], [curve(0, 0.02), curve(1, 0.1)]
    texts(bandwidth_words(two, one, ["a", "b"]))
    assert "same bandwidths" in bandwidth_words(two, two, ["a", "b"])
    none = [curve(0, np.nan)]
    assert "no curve" in bandwidth_words(none, none, ["a"])


def test_the_grid_of_bandwidths_is_described_with_its_strips_of_rows(texts: Texts) -> None:
    two, one = [curve(0, 0.02), curve(1, 0.02)], [curve(0, 0.02), curve(1, 0.1)]
    anchors = [anchor(0, [0.5, 0.9], [1, 1200]), anchor(1, [0.5], [7])]
    alt = bandwidth_alt(two, one, anchors, ["a", "b"])
    texts(alt)
    assert bandwidth_words(two, one, ["a", "b"]) in alt
    assert bandwidth_alt(two[:1], one[:1], anchors[:1], ["a"]).endswith(": 1,201 in all.")


def test_confidence_words_count_the_rows(texts: Texts) -> None:
    texts(confidence_words(curve(0, 0.1), "a"))
    assert "nothing can be said" in confidence_words(curve(0, 0.1, 0, 0), "a")


def test_histogram_words_count_confident_errors_with_the_edge_bin(texts: Texts) -> None:
    wrong, right = np.zeros(10), np.ones(10)
    wrong[-1], wrong[0] = 3, 1
    sentence = histogram_words(ScoreHistogram(None, EDGES, right, wrong))
    texts(sentence)
    assert "3 of 4 wrong predictions" in sentence
    assert "1 of 10 right ones" in sentence
    assert "no error" in histogram_words(ScoreHistogram(None, EDGES, right, wrong * 0))


def test_losses_words_tell_clear_from_unclear(texts: Texts) -> None:
    rng = np.random.default_rng(0)
    n = 4000
    y = (rng.random(n) > 0.7).astype(int)
    said = {"uncalibrated": np.full(n, 0.99), "confidence": np.full(n, 0.7)}
    losses = top_label_losses(said, np.zeros(n, int), y, n_classes=2, rows="evaluation set")
    sentence = losses_words(losses, list(said))
    texts(sentence)
    assert "clearly more" in sentence
    near = {"uncalibrated": np.full(n, 0.701), "confidence": np.full(n, 0.7)}
    losses = top_label_losses(near, np.zeros(n, int), y, n_classes=2, rows="evaluation set")
    assert "clearly" not in losses_words(losses, list(near))


def test_a_calibrator_of_a_rare_event_is_told_at_scores_that_rows_have() -> None:
    grid, rows = np.linspace(0.0, 1.0, 101), np.linspace(0.01, 0.25, 400)

    def told(lines: tuple[MapLine, ...], stated: np.ndarray) -> str:
        y = np.tile(grid / 2, (len(lines), 1))
        found = CalibratorMap("event", lines, len(lines), grid, y, stated, stated / 2)
        return calibrator_map_words(found)

    one = (MapLine("yes", 400),)
    assert told(one, rows) == "A stated 5% becomes 2.5%, 10% becomes 5.0% and 20% becomes 10.0%."
    assert told(one, np.r_[rows, np.full(40, 0.8)]).startswith("A stated 50% becomes 25%")
    # without lines, of the rows near each score
    assert told((), rows).startswith("Rows that state about 5% become 2% to 3%, about 10% become")


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        (
            Costs(false_positive=20.0),
            "It flags 3 of 2,000 rows, nearly the same as flagging none: with these costs the "
            "model does not pay.",
        ),
        (
            Costs(false_negative=500.0),
            "It flags 1,990 of 2,000 rows, nearly the same as flagging every row: with these costs "
            "the model does not pay.",
        ),
        (Costs(), ""),
    ],
)
def test_a_cheapest_threshold_that_flags_nearly_none_or_all_says_so(
    costs: Costs, said: str
) -> None:
    stated = np.repeat([0.01, 0.2, 0.6, 0.97], [10, 1487, 500, 3])
    happened = np.zeros(2000)
    happened[10:310] = happened[1500:1900] = happened[-3:] = 1.0
    counts = decision_counts(stated, happened)
    words = cost_words(counts, costs, best_threshold(counts, costs), 0.5)
    assert said in words
    assert bool(said) == ("It flags" in words)


def test_a_threshold_that_flags_few_rows_of_a_rare_event_pays() -> None:
    happened = np.repeat([0.0, 1.0], [9_940, 60])
    counts = decision_counts(np.where(happened > 0, 0.9, 0.01), happened)
    words = cost_words(counts, Costs(), best_threshold(counts, Costs()), 0.5)
    assert "It flags 60 of 10,000 rows. Thresholds from" in words


def test_a_cheapest_threshold_that_flags_no_row_says_so() -> None:
    counts = decision_counts(np.repeat([0.1, 0.3], 50), np.tile([0, 0, 0, 1], 25))
    costs = Costs(false_positive=9.0)
    words = cost_words(counts, costs, best_threshold(counts, costs), 0.5)
    assert words.startswith("Flagging none costs least: 0.25 ")
    assert "per row. With these costs the model does not pay." in words
    assert "Thresholds from" not in words


@pytest.mark.parametrize(
    ("found", "said"),
    [((0.081, 0.084), "At thresholds near 8% "), ((0.08, 0.3), "At thresholds from 8% to 30% ")],
)
def test_a_stretch_of_one_percentage_is_named_once(
    monkeypatch: pytest.MonkeyPatch, found: tuple[float, float], said: str
) -> None:
    monkeypatch.setattr(decisions, "useful_thresholds", lambda counts: found)
    assert said in decisions._useful_words(decision_counts([0.2, 0.8], [0, 1]), None, "Platt")
