"""The test of calibration: its level, its power over single statistics, its edges."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from scipy.special import expit, logit

from kdcal_core.diagnostics import calibration_test
from kdcal_core.diagnostics.calibration_test import DEGREES

module = import_module("kdcal_core.diagnostics.calibration_test")  # the function has its name


def share_refused(n: int, fault, runs: int = 200, seed: int = 0, at: float = 0.05) -> float:
    rng = np.random.default_rng(seed)
    refused = 0
    for run in range(runs):
        score = expit(rng.normal(size=n) * 1.5)
        hit = (rng.random(n) < fault(score)).astype(int)
        refused += calibration_test(score, hit, seed=run) <= at
    return refused / runs


@pytest.mark.parametrize("n", [30, 300, 6000])
def test_a_calibrated_model_is_refused_as_often_as_is_said(n: int) -> None:
    assert share_refused(n, lambda p: p) < 0.05 + 3 * (0.05 * 0.95 / 200) ** 0.5


@pytest.mark.parametrize(
    ("fault", "least"),
    [
        (lambda p: expit(0.5 * logit(p)), 0.95),  # over-confident
        (lambda p: expit(logit(p) + 0.4), 0.9),  # shifted
        (lambda p: np.clip(p + 0.12 * np.sin(4 * np.pi * p), 0, 1), 0.6),  # a wave
    ],
    ids=["slope", "shift", "wave"],
)
def test_faults_are_found_in_600_rows(fault, least: float) -> None:
    assert share_refused(600, fault, runs=100) > least


def test_spiegelhalter_s_contrast_finds_slopes_more_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def shares(*faults) -> list[float]:
        return [share_refused(500, fault, runs=150) for fault in faults]

    faults = (lambda p: expit(1.25 * logit(p)), lambda p: expit(logit(p) - 0.3))
    slope, shift, level = shares(*faults, lambda p: p)
    monkeypatch.setattr(
        module, "_contrast", lambda score, *_: (0.0 * score, np.zeros(DEGREES), 0.0)
    )
    slope_alone, shift_alone = shares(*faults)
    assert slope > slope_alone + 0.05
    assert level < 0.09
    assert shift > shift_alone - 0.04


def test_the_contrast_s_share_of_the_shapes() -> None:
    rng = np.random.default_rng(0)
    score = rng.uniform(0.02, 0.98, 400)
    spread = np.sqrt(score * (1.0 - score))
    shapes = module._shapes(score, spread)
    contrast, shared, rest = module._contrast(score, spread, shapes)
    assert np.linalg.norm(contrast) == pytest.approx(1.0)
    assert shared @ shared + rest**2 == pytest.approx(1.0)
    # Spiegelhalter's z is the projection of the standardised residuals
    hit = rng.random(400) < score
    z = ((hit - score) * (1 - 2 * score)).sum()
    z /= (np.square(1 - 2 * score) * score * (1 - score)).sum() ** 0.5
    assert ((hit - score) / spread) @ contrast == pytest.approx(z)


def test_the_law_of_many_rows_is_that_of_redrawn_outcomes() -> None:
    """Just above and below the number of rows from which on the law is normal."""
    rng = np.random.default_rng(0)
    score = expit(rng.normal(size=5_001))
    hit = (rng.random(5_001) < expit(0.93 * logit(score))).astype(int)
    many, few = calibration_test(score, hit), calibration_test(score[:-1], hit[:-1])
    assert many == pytest.approx(few, abs=0.03)


def test_equal_scores_leave_the_offset_alone() -> None:
    score = np.full(200, 0.5)
    assert calibration_test(score, np.arange(200) % 2) > 0.9
    assert calibration_test(score, np.arange(200) % 5 == 0) < 0.01


def test_weights_of_one_size_change_nothing() -> None:
    rng = np.random.default_rng(3)
    score = rng.uniform(0.1, 0.9, 300)
    hit = (rng.random(300) < score).astype(int)
    assert calibration_test(score, hit, sample_weight=np.full(300, 2.5)) == calibration_test(
        score, hit
    )


def test_certain_scores_that_are_wrong_are_refused() -> None:
    score = np.array([0.0, 1.0] * 50)
    assert calibration_test(score, np.array([0, 1] * 50)) > 0.05
    assert calibration_test(score, np.array([1, 0] * 50)) < 0.01
