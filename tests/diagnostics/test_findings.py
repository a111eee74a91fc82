"""Findings say what the numbers say, in words a reviewer can read aloud."""

import numpy as np
import pytest

from kdcal_core.diagnostics import (
    Estimate,
    beyond_noise,
    calibration_error,
    confidence_calibration_error,
    confidence_reliability,
    confusion,
    confusion_finding,
    estimate_text,
    headline_estimate,
    reliability,
    reliability_finding,
)
from kdcal_core.diagnostics.scores import target_gap
from kdcal_core.diagnostics.targets import confidence_target
from kdcal_core.text import number_text


def model(n, n_classes, seed, sharp):
    rng = np.random.default_rng(seed)
    odds = np.exp(2.0 * rng.normal(size=(n, n_classes)))
    proba = odds / odds.sum(axis=1, keepdims=True)
    y = (proba.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    stated = proba**sharp
    return stated / stated.sum(axis=1, keepdims=True), y


def test_over_confidence_is_placed_and_measured(texts):
    score = np.r_[np.full(300, 0.55), np.full(300, 0.93)]
    hit = np.r_[np.arange(300) < 165, np.arange(300) < 240].astype(int)
    texts(reliability_finding(confidence_reliability(score, hit, n_bins=5)))


def test_under_confidence_below_and_between(texts):
    score = np.r_[np.full(200, 0.1), np.full(200, 0.9)]
    hit = np.r_[np.arange(200) < 90, np.arange(200) < 180].astype(int)
    texts(reliability_finding(confidence_reliability(score, hit, n_bins=5)), "below")
    middle = confidence_reliability(np.full(200, 0.5), np.ones(200, int), n_bins=5)
    texts(reliability_finding(middle), "between")


def test_noise_is_called_noise(texts):
    proba, y = model(569, 3, 0, 1.0)
    error = calibration_error(proba, y)
    texts(reliability_finding(reliability(proba, y), error))


def test_calibrated_models_are_seldom_accused():
    wrong = 0
    for seed in range(60):
        proba, y = model(400, 3, seed, 1.0)
        text = reliability_finding(reliability(proba, y, kind="class", smooth=False))
        wrong += not text.startswith("Within")
    assert wrong <= 8


def test_the_worst_class_is_named_as_it_is_written(texts):
    proba, y = model(3000, 3, 1, 2.5)
    names = ("<b>cat</b>", "dog", "*fish*")
    text = reliability_finding(reliability(proba, y, kind="class"), class_names=names)
    texts(text)
    assert sum(name in text for name in names) == 1


def off_in_no_bin(rows_more):
    """Ten bins of 40 rows that are right in some rows more or less than stated."""
    score = np.repeat(np.arange(0.325, 0.8, 0.05), 40)
    right = np.rint(40 * score[::40]) + rows_more
    return score, (np.arange(400) % 40 < np.repeat(right, 40)).astype(int)


def test_an_error_that_no_bin_shows_is_still_reported(texts):
    score, hit = off_in_no_bin(np.repeat([5, -5], 5))
    error = confidence_calibration_error(score, hit, n_bins=20)
    texts(reliability_finding(confidence_reliability(score, hit, n_bins=20), error))


def test_a_gap_below_zero_is_reported_too(texts):
    score, hit = off_in_no_bin(4)
    gap = target_gap(confidence_target(score, hit), 0.95)
    texts(reliability_finding(confidence_reliability(score, hit, n_bins=20), gap))


def test_what_one_of_several_measures_shows_by_chance_is_called_chance(texts):
    """The gap's own interval lies just below 0; neither the ECE nor any bin is unusual."""
    score, hit = off_in_no_bin(np.r_[np.repeat(2, 9), 3])
    gap = target_gap(confidence_target(score, hit), 0.95)
    assert -0.01 < gap.high < 0.0
    texts(reliability_finding(confidence_reliability(score, hit, n_bins=20), gap))


def test_calibrated_models_are_named_in_one_run_of_twenty():
    """Asked apart, confidence gap, ECE and diagram named 10% of these."""
    named = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        score = rng.uniform(0.5, 1.0, 500)
        hit = (rng.random(500) < score).astype(int)
        gap = target_gap(confidence_target(score, hit), 0.95)
        error = confidence_calibration_error(score, hit, n_boot=100, seed=seed)
        result = confidence_reliability(score, hit, smooth=False)
        named += not reliability_finding(result, headline_estimate([gap, error])).startswith(
            "Within"
        )
    assert named <= 28  # 5% of 400, and two standard errors


def test_noise_in_several_classes_speaks_of_classes(texts):
    proba, y = model(60, 3, 0, 1.0)
    texts(reliability_finding(reliability(proba, y, kind="class", smooth=False)))


def test_many_classes_that_are_all_a_little_too_sure_are_found(texts):
    """No bin of 26 classes with 38 rows each leaves its band; the rows of a class together do."""
    proba, y = model(1000, 26, 0, 2.0)
    found = reliability(proba, y, kind="top-label", smooth=False)
    assert sum(beyond_noise(found)) > 10
    texts(reliability_finding(found), "many")
    proba, y = model(150, 5, 0, 2.0)
    texts(reliability_finding(reliability(proba, y, kind="top-label", smooth=False)), "one")


def test_a_class_that_is_never_predicted_is_not_off():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([5.0, 5.0, 0.1], 400)
    assert set(proba.argmax(axis=1)) == {0, 1}
    found = reliability(proba, np.full(400, 0), kind="top-label", smooth=False)
    assert beyond_noise(found) == (True, True, False)
    assert reliability_finding(found).startswith("2 of 3 classes are off")


@pytest.mark.parametrize(("n", "n_classes"), [(90, 3), (300, 10)])
def test_calibrated_models_of_several_classes_are_seldom_accused(n, n_classes):
    accused = 0
    for seed in range(100):
        proba, y = model(n, n_classes, seed, 1.0)
        accused += any(beyond_noise(reliability(proba, y, kind="top-label", smooth=False)))
    assert accused <= 9  # 5%, and two standard errors


def test_one_row_reads_well(texts):
    texts(reliability_finding(confidence_reliability([0.6], [1])))


@pytest.mark.parametrize(
    ("value", "width", "percent", "text"),
    [
        (0.04312, 0.02, False, "0.043"),
        (0.04312, 0.2, False, "0.04"),
        (0.4123, 0.6, False, "0.41"),
        (0.9996, 1.0, False, "1.00"),
        (12.4, 60.0, False, "12"),
        (0.8312, 0.06, False, "0.83"),
        (0.931, 0.3, True, "93%"),
        (0.931, 0.03, True, "93.1%"),
        (-0.0001, 0.2, False, "0.00"),
        (1234.5, 50.0, False, "1,234"),
        (0.5, 0.0, False, "0.500"),
        (1481.9706, 0.0, False, "1,482"),
        (1313.01907, 2e-12, False, "1,313"),
        (0.0, 0.0, True, "0.0%"),
        (np.nan, 0.1, False, "not defined"),
    ],
)
def test_decimals_follow_the_interval(value, width, percent, text):
    assert number_text(value, width, percent) == text


def test_an_undefined_estimate_says_why():
    nothing = Estimate("AUROC", "AUROC", np.nan, np.nan, np.nan, 3, interval="not defined: why")
    assert estimate_text(nothing) == "not defined: why"


def test_a_class_that_is_right_less_often_beyond_chance_is_named(texts):
    predicted = np.repeat([0, 1, 2], 60)
    true = predicted.copy()
    true[:24] = [1] * 20 + [2] * 4
    texts(confusion_finding(confusion(predicted, true, 3), ("cat", "dog", "fish")), "cat")
    texts(confusion_finding(confusion([0, 1], [0, 1], 2)), "all right")


def test_one_wrong_row_of_a_rare_class_is_no_finding(texts):
    """A class of one row, wrong, among 214 classes: it was the headline."""
    rng = np.random.default_rng(0)
    predicted = np.r_[213, rng.integers(0, 57, 199)]
    true = np.where(rng.random(200) < 0.95, predicted, (predicted + 1) % 214)
    true[0] = 5
    names = [f"type {k}" for k in range(214)]
    text = confusion_finding(confusion(predicted, true, 214), names)
    texts(text)
    assert "type 213" not in text


def test_a_class_of_few_predictions_is_not_said_to_be_as_right_as_the_others():
    """Of 7 rows predicted as a rare event 1 was right, and the sentence cleared that class."""
    predicted = np.repeat([0, 1], [300, 7])
    true = predicted.copy()
    true[:30], true[-6:] = 1, 0
    said = confusion_finding(confusion(predicted, true, 2), ("no", "yes"))
    assert said.startswith("No class predicted for 10 rows or more is right less often")
    twice = confusion(np.tile(predicted, 2), np.tile(true, 2), 2)  # with 14 rows it is named
    assert confusion_finding(twice, ("no", "yes")).startswith("A prediction of class yes is right")


def test_few_confusions_are_chance():
    """Classes that are right equally often are named in about one run of twenty."""
    named = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        predicted = rng.integers(0, 20, 300)
        true = np.where(rng.random(300) < 0.8, predicted, rng.integers(0, 20, 300))
        named += confusion_finding(confusion(predicted, true, 20)).startswith("A prediction")
    assert named <= 16


def test_weights_are_no_rows_in_a_confusion(texts):
    predicted, true = np.repeat([0, 1], [40, 400]), np.repeat([1, 0, 1], [4, 36, 400])
    weight = np.where(np.arange(440) < 1, 500.0, 1.0)
    heavy = confusion(predicted, true, 2, sample_weight=weight)
    assert heavy.effective[0] < 2.0
    assert confusion_finding(heavy).startswith("No class predicted for 10 rows or more")
    texts(confusion_finding(confusion(predicted, true, 2)), "without weights")


def test_a_stretch_of_a_few_rows_is_no_headline(texts):
    """Clearly over-confident on average; the bin of three rows outside the band is not named."""
    score = np.r_[np.full(3, 0.95), np.full(200, 0.55)]
    hit = np.r_[np.zeros(3), np.arange(200) < 106].astype(int)
    gap = Estimate("Gap", "Confidence gap", 0.04, 0.01, 0.07, 203, percent=True)
    texts(reliability_finding(confidence_reliability(score, hit, n_bins=10), gap))


def test_weights_do_not_pass_for_rows():
    """A calibrated model whose rows weigh unequally is not called off beyond noise."""
    alarms = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        score = rng.uniform(0.5, 1.0, 500)
        hit = (rng.random(500) < score).astype(int)
        weight = np.exp(1.2 * rng.normal(size=500))
        result = confidence_reliability(score, hit, sample_weight=weight, smooth=False)
        alarms += not reliability_finding(result).startswith("Within")
    assert alarms <= 6


def test_the_interval_in_a_finding_is_that_of_the_effective_rows(texts):
    weight = np.where(np.arange(400) < 40, 100.0, 1.0)
    hit = (np.arange(400) % 2 == 0).astype(int)
    result = confidence_reliability([0.95] * 400, hit, n_bins=10, sample_weight=weight)
    (curve,) = result.curves
    assert curve.effective[-1] == pytest.approx(weight.sum() ** 2 / (weight**2).sum())
    texts(reliability_finding(result))


def test_the_telling_estimate_is_the_gap_where_it_is_clear():
    error = Estimate("ECE", "ECE", 0.1, 0.0, 0.2, 50)
    clear = Estimate("Gap", "Confidence gap", -0.1, -0.2, -0.05, 50, percent=True)
    vague = Estimate("Gap", "Confidence gap", -0.1, -0.2, 0.05, 50, percent=True)
    assert headline_estimate([clear, error]) is clear
    assert headline_estimate([vague, error]) is error
    assert headline_estimate([]) is None
