"""Lemmas 4.1 to 4.4 and 9.1 of Durfee et al. on simulated distributions, and what they promise."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit

from kdcal_core.calibration.regions import (
    HeterogeneousCalibrator,
    Hierarchy,
    Scores,
    fit_maps,
)
from kdcal_core.diagnostics.auc import auc, paired_auc
from kdcal_core.simulation import BEST_WEIGHTS, auc_of_weight, overconfident_scores


def transformed_auc(value, p1, p0):
    """Definition 4.2: P(T of a positive > T of a negative), ties one half, by brute force."""
    t = value.ravel()
    above = (t[:, None] > t) + 0.5 * (t[:, None] == t)
    return p1.ravel() @ above @ p0.ravel()


def ratio(p1, p0):
    """Lemma 9.1's zero-safe likelihood ratio: p1 / (p0 + p1), 0 where both are 0."""
    total = p0 + p1
    return np.divide(p1, total, out=np.zeros_like(total), where=total > 0)


def laws(seed, regions=4, scores=6, holes=0.2):
    """Two distributions over (region, score), with cells that one or both never reach."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(2):
        law = rng.dirichlet(np.ones(regions * scores)).reshape(regions, scores)
        law[rng.random(law.shape) < holes] = 0
        found.append(law / law.sum())
    return (*found, rng)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 100_000))
def test_the_likelihood_ratio_has_the_largest_auc_among_transforms(seed):
    p1, p0, rng = laws(seed)
    score = np.arange(6.0)
    # Lemma 4.1: one transform of the score for all regions
    q1, q0 = p1.sum(axis=0), p0.sum(axis=0)
    best = transformed_auc(ratio(q1, q0), q1, q0)
    for value in (*rng.normal(size=(30, 6)), *np.sort(rng.normal(size=(5, 6))), score, -score):
        assert transformed_auc(value, q1, q0) <= best + 1e-12
    # Lemma 4.3: a transform of its own in every region
    parted = transformed_auc(ratio(p1, p0), p1, p0)
    for value in rng.normal(size=(30, 4, 6)):
        assert transformed_auc(value, p1, p0) <= parted + 1e-12
    # partitioning can only improve, and so can a finer partition
    coarse = np.stack([p1[:2].sum(axis=0), p1[2:].sum(axis=0)])
    coarse0 = np.stack([p0[:2].sum(axis=0), p0[2:].sum(axis=0)])
    middle = transformed_auc(ratio(coarse, coarse0), coarse, coarse0)
    assert best - 1e-12 <= middle <= parted + 1e-12


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 100_000), st.floats(0.01, 0.99))
def test_likelihood_ratio_and_posterior_order_alike(seed, prior):
    """Lemmas 4.2 and 4.4, for any share of positives."""
    p1, p0, _ = laws(seed, holes=0.0)
    posterior = prior * p1 / (prior * p1 + (1 - prior) * p0)
    assert np.argsort(ratio(p1, p0).ravel()).tolist() == np.argsort(posterior.ravel()).tolist()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 100_000))
def test_every_point_of_the_roc_curve_is_above_that_of_another_transform(seed):
    """Section 10: at each false positive rate the likelihood ratio's true positive rate."""
    p1, p0, rng = laws(seed)

    def curve(value):
        order = np.argsort(-value.ravel(), kind="stable")
        levels = -value.ravel()[order]
        ends = np.append(np.flatnonzero(np.diff(levels)), len(order) - 1)
        fpr = np.append(0, np.cumsum(p0.ravel()[order])[ends])
        return fpr, np.append(0, np.cumsum(p1.ravel()[order])[ends])

    best = curve(ratio(p1, p0))
    for value in rng.normal(size=(10, 4, 6)):
        fpr, tpr = curve(value)
        # where the curve rises upright its upper end counts
        upper = np.maximum(
            np.interp(fpr, *best), best[1][np.searchsorted(best[0], fpr + 1e-12) - 1]
        )
        assert (tpr <= upper + 1e-9).all()


def test_the_ratio_is_safe_at_zero():
    """Lemma 9.1: a cell that only positives reach stands on top, one without both at the end."""
    p1, p0 = np.array([0.5, 0.5, 0.0, 0.0]), np.array([0.0, 0.5, 0.5, 0.0])
    assert ratio(p1, p0).tolist() == [1.0, 0.5, 0.0, 0.0]
    assert transformed_auc(ratio(p1, p0), p1, p0) == pytest.approx(0.875)


def test_one_rising_map_leaves_the_order_and_the_auc():
    """R81: correcting over-confidence alone changes probabilities, not the ranking."""
    drawn = overconfident_scores(4000, seed=1)
    scores = Scores(drawn.proba, drawn.y, np.ones(4000))
    nowhere = np.zeros(4000, dtype=int)
    for kind in ("platt", "temperature"):
        fit = fit_maps(kind, scores, nowhere, Hierarchy.flat(1))
        after = fit.maps.predict(drawn.proba, nowhere)[:, 1]
        assert auc(after, drawn.y).value == pytest.approx(auc(drawn.score, drawn.y).value, abs=1e-9)
        assert np.abs(after - drawn.proba[:, 1]).max() > 0.1


@pytest.mark.parametrize("trusts", ["the model", "the tree"])
def test_regions_lie_between_the_model_and_the_tree(trusts):
    """Section 5.2: a = 1, b = 0 is the model; a = 0, b = logit of the leaf's rate the tree."""
    rng = np.random.default_rng(5)
    leaf = np.repeat([0, 1], 10_000)
    said = expit(rng.normal(size=20_000))
    rate = np.where(leaf == 0, 0.2, 0.7)
    truth = said if trusts == "the model" else rate
    y = (rng.random(20_000) < truth).astype(int)
    scores = Scores(np.c_[1 - said, said], y, np.ones(20_000))
    fit = fit_maps("platt", scores, leaf, Hierarchy.flat(2))
    np.testing.assert_allclose(fit.maps.predict(scores.proba, leaf)[:, 1], truth, atol=0.05)
    want = [1.0, 1.0] if trusts == "the model" else [0.0, 0.0]
    np.testing.assert_allclose(fit.parameters["slope"][0], want, atol=0.08)
    leafs = [0.0, 0.0] if trusts == "the model" else logit([0.2, 0.7])
    np.testing.assert_allclose(fit.parameters["offset"][0], leafs, atol=0.08)


def test_the_toy_network_is_lifted_to_its_best_auc():
    """Section 3.2: 0.829 before, 0.853 with the regions of the binary feature."""
    drawn, fresh = (overconfident_scores(40_000, seed=seed) for seed in (0, 1))
    frame = pd.DataFrame({"b": drawn.feature})
    calibrator = HeterogeneousCalibrator("column", column="b").fit(drawn.proba, drawn.y, frame)
    found = calibrator.predict_proba(fresh.proba, pd.DataFrame({"b": fresh.feature}))
    before, after = auc(fresh.score, fresh.y), auc(found[:, 1], fresh.y)
    weights = BEST_WEIGHTS["training"], BEST_WEIGHTS["held out"]
    assert before.low < auc_of_weight(weights[0]) < before.high
    assert after.low < auc_of_weight(weights[1]) < after.high
    np.testing.assert_allclose(found, fresh.posterior, atol=0.03)
    by_feature = {region.words: region for region in calibrator.regions_}
    for words, shift in (("b is 0", 1), ("b is 1", -1)):
        slope, offset = (by_feature[words].parameters[name][0] for name in ("slope", "offset"))
        assert slope == pytest.approx(0.5, abs=0.03)
        # log odds s / 2 -+ log 3 of a network that says s -+ w / 2
        want = shift * (weights[0] / 4 - np.log(3))
        assert offset == pytest.approx(want, abs=0.05)


def test_the_lift_at_each_depth_is_that_of_the_columns_it_can_know():
    """Section 5.1: a tree of depth d divides by d of three columns that the model ignores."""
    rng = np.random.default_rng(0)
    weights = np.array([1.2, 0.8, 0.5])

    def draw(n):
        x, signs = rng.normal(size=n), rng.choice([-1.0, 1.0], size=(n, 3))
        y = (rng.random(n) < expit(x + signs @ weights)).astype(int)
        p = expit(x)
        return x, signs, y, np.column_stack([1 - p, p])

    def knowing(x, signs, depth):
        """P(1 | x, the first ``depth`` columns), the others summed out."""
        rest = np.array(list(product([-1.0, 1.0], repeat=3 - depth)))
        known = x + signs[:, :depth] @ weights[:depth]
        return expit(known[:, None] + rest @ weights[depth:]).mean(axis=1)

    _, fit_signs, fit_y, fit_proba = draw(20_000)
    x, signs, y, proba = draw(20_000)
    frames = [pd.DataFrame(each, columns=["a", "b", "c"]) for each in (fit_signs, signs)]
    lifts = []
    for depth in (1, 2, 3, 4):
        fitted = HeterogeneousCalibrator("tree", max_depth=depth).fit(fit_proba, fit_y, frames[0])
        paired = paired_auc(proba[:, 1], fitted.predict_proba(proba, frames[1])[:, 1], y)
        best = auc(knowing(x, signs, min(depth, 3)), y).value
        assert paired.b.value == pytest.approx(best, abs=0.003)
        assert paired.lift.value == pytest.approx(paired.b.value / paired.a.value - 1)
        lifts.append(paired.lift.value)
    assert lifts[0] > 0.05
    assert lifts[1] > lifts[0] + 0.02
    assert lifts[2] > lifts[1] + 0.005
    assert lifts[3] == pytest.approx(lifts[2], abs=0.002)  # there is no fourth column
