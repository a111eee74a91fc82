"""Spiegelhalter's test: by its formula, at its level, and with power against wrong log odds."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from kdcal_core.diagnostics import spiegelhalter_test
from kdcal_core.errors import InputError
from kdcal_core.statistics import Dependence, RowDesign


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
