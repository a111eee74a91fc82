"""Spiegelhalter's test: by its formula, at its level, and with power against wrong log odds."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import estimate_text, question_estimates, spiegelhalter_test
from kdcal_core.diagnostics.influence import question_influences
from kdcal_core.diagnostics.spiegelhalter import brier_gap
from kdcal_core.diagnostics.summaries import summarise, summary_question_estimates
from kdcal_core.diagnostics.targets import confidence_target
from kdcal_core.errors import InputError
from kdcal_core.statistics import Dependence, RowDesign
from kdcal_core.text import p_text


def two(p):
    return np.stack([1.0 - p, p], axis=1)


def drawn(n, seed):
    rng = np.random.default_rng(seed)
    odds = 1.5 * rng.normal(size=n)
    return odds, (rng.random(n) < expit(odds)).astype(int), rng


@pytest.mark.parametrize("weighted", [False, True])
def test_z_is_its_formula(weighted):
    odds, y, rng = drawn(60, 0)
    p, w = expit(odds), rng.uniform(0.5, 3.0, 60) if weighted else np.ones(60)
    top, bottom = 0.0, 0.0
    for score, hit, weight in zip(p, y, w, strict=True):
        top += weight * (hit - score) * (1 - 2 * score)
        bottom += weight**2 * (1 - 2 * score) ** 2 * score * (1 - score)
    found = spiegelhalter_test(two(p), y, kind="class", label=1, sample_weight=w)
    assert found.z == pytest.approx(top / bottom**0.5)
    assert found.p_value == pytest.approx(2 * norm.sf(abs(found.z)))
    assert found.n == 60
    # of two classes the other's, and the confidence's, are the same
    other = spiegelhalter_test(two(p), y, kind="class", label=0, sample_weight=w)
    top_label = spiegelhalter_test(two(p), y, sample_weight=w)
    assert other.z == pytest.approx(found.z)
    assert top_label.z == pytest.approx(found.z)


def test_the_confidence_of_many_classes_is_that_of_the_top_label():
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(4), 80)
    y = rng.integers(0, 4, 80)
    said, right = p.max(axis=1), p.argmax(axis=1) == y
    alone = spiegelhalter_test(two(said), right.astype(int), kind="class", label=1)
    assert spiegelhalter_test(p, y).z == pytest.approx(alone.z)


@pytest.mark.parametrize("design", ["rows", "weights", "clusters"])
def test_a_right_model_is_rejected_at_the_level_and_one_too_sure_nearly_always(design):
    wrong, found = [], []
    for seed in range(400):
        odds, y, rng = drawn(400, seed)
        given = None
        if design == "weights":
            given = rng.exponential(size=400) + 0.01
        if design == "clusters":
            cluster = np.repeat(np.arange(100), 4)
            odds, y = odds[::4][cluster], y[::4][cluster]
            given = RowDesign(None, Dependence.of("cluster", cluster))
        right = spiegelhalter_test(two(expit(odds)), y, sample_weight=given)
        wrong.append(right.p_value < 0.05)
        sure = spiegelhalter_test(two(expit(2.0 * odds)), y, sample_weight=given)
        found.append(sure.p_value < 0.05 and sure.z > 0.0)
    assert 0.02 <= np.mean(wrong) <= 0.09
    assert np.mean(found) > 0.8


def test_what_says_nothing_has_no_z_and_what_is_missing_is_named():
    assert np.isnan(spiegelhalter_test(two(np.array([0.0, 0.5, 1.0])), [0, 1, 1]).z)
    with pytest.raises(InputError, match="No class is named"):
        spiegelhalter_test(two(np.array([0.2, 0.7])), [0, 1], kind="class")
    with pytest.raises(InputError, match="No row is predicted"):
        spiegelhalter_test(two(np.array([0.7, 0.7])), [0, 1], kind="top-label", label=0)


def test_it_stands_beside_intercept_and_slope_with_its_p_value():
    odds, y, _ = drawn(800, 3)
    proba = two(expit(1.6 * odds))
    rows = ScoredSet(proba, y, ("no", "yes"), "digest", "evaluation")
    for event in (None, 1):
        what = "the confidence" if event is None else "the event's probability"
        found = question_estimates(rows, event=event)
        names = [one.name for one in found]
        at = names.index(f"Brier score minus its expectation, of {what}")
        assert found[at - 1].label == "Calibration slope"
        p = proba.max(axis=1) if event is None else proba[:, 1]
        hit = proba.argmax(axis=1) == y if event is None else y
        test = spiegelhalter_test(proba, y, kind="confidence" if event is None else "class",
                                  label=event)  # fmt: skip
        one = found[at]
        assert one.value == pytest.approx(np.mean((hit - p) ** 2 - p * (1 - p)))
        assert one.value / (one.high - one.value) * norm.ppf(0.975) == pytest.approx(test.z)
        assert one.interval.endswith(f"p value {p_text(test.p_value)}")
        summed = summary_question_estimates(summarise(proba, y, ("no", "yes")), event)
        (merged,) = (each for each in summed if each.name == one.name)
        assert merged.value == pytest.approx(one.value, abs=1e-4)
        pull = question_influences(rows, event=event)[at]
        assert pull is not None
        assert pull.mean() == pytest.approx(one.value)


@pytest.mark.parametrize("clusters", [False, True])
def test_the_interval_excludes_0_where_the_test_refuses(clusters):
    for seed in range(40):
        odds, y, _ = drawn(200, seed)
        proba = two(expit(1.2 * odds))
        together = Dependence.of("cluster", np.arange(200) // 4) if clusters else None
        rows = ScoredSet(proba, y, ("no", "yes"), "", "evaluation", dependence=together)
        (one,) = (each for each in question_estimates(rows) if each.label == "Brier minus expected")
        refused = spiegelhalter_test(proba, y, sample_weight=rows.design).p_value < 0.05
        assert (not one.low <= 0.0 <= one.high) == refused


def test_the_estimate_says_why_there_is_no_value():
    one = brier_gap(confidence_target([0.0, 0.5, 1.0], [0, 1, 1]), 0.95)
    assert estimate_text(one).startswith("not defined, because")
