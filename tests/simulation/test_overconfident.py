"""The toy of Durfee et al. against numeric integration of its densities, and against draws."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from kdcal_core.errors import InputError
from kdcal_core.simulation import BEST_WEIGHTS, auc_of_weight, overconfident_scores

HELD_OUT, TRAINING = BEST_WEIGHTS["held out"], BEST_WEIGHTS["training"]


def integrated_auc(weight: float, std: float) -> float:
    """P(score of class 1 > score of class 0), Def. 2.1 as an integral over the scores."""

    def parts(label: int) -> list[tuple[float, float]]:
        return [(0.75 if b == label else 0.25, 2 * label - 1 + weight * (b - 0.5)) for b in (0, 1)]

    def below(t: float) -> float:
        return sum(share * norm.cdf(t, mean, std) for share, mean in parts(0))

    def inner(t: float) -> float:
        return below(t) * sum(share * norm.pdf(t, mean, std) for share, mean in parts(1))

    return float(quad(inner, -30, 30, limit=400)[0])


@pytest.mark.parametrize("weight", [-1.0, 0.0, 0.5, TRAINING, HELD_OUT, 9.0])
@pytest.mark.parametrize(("rows", "std"), [("held out", 2.0), ("training", np.sqrt(1.6))])
def test_auc_is_the_integral(weight, rows, std):
    assert auc_of_weight(weight, rows=rows) == pytest.approx(integrated_auc(weight, std), abs=1e-8)


def test_auc_of_the_text():
    found = auc_of_weight([0.0, TRAINING, HELD_OUT])
    np.testing.assert_allclose(found, [0.760, 0.829, 0.853], atol=5e-4)
    assert pytest.approx(0.4) == TRAINING / HELD_OUT


@pytest.mark.parametrize("rows", ["held out", "training"])
def test_no_weight_beats_the_likelihood_ratio(rows):
    grid = np.linspace(-5, 15, 4001)
    curve = auc_of_weight(grid, rows=rows)
    assert grid[curve.argmax()] == pytest.approx(BEST_WEIGHTS[rows], abs=0.01)


@pytest.mark.parametrize("rows", ["held out", "training"])
def test_drawn_scores_have_the_auc(rows):
    drawn = overconfident_scores(200_000, seed=1, rows=rows)
    assert roc_auc_score(drawn.y, drawn.score) == pytest.approx(
        float(auc_of_weight(TRAINING, rows=rows)), abs=0.004
    )
    # the likelihood ratio is the best order that there is (Lemma 4.1), whatever was stated
    assert roc_auc_score(drawn.y, drawn.log_ratio) == pytest.approx(
        float(auc_of_weight(BEST_WEIGHTS[rows], rows=rows)), abs=0.004
    )


def test_the_posterior_is_calibrated_and_the_network_over_confident():
    drawn = overconfident_scores(400_000, seed=2)
    edges = np.linspace(0, 1, 21)
    for stated, calibrated in ((drawn.posterior, True), (drawn.proba, False)):
        np.testing.assert_allclose(stated.sum(axis=1), 1.0)
        bins = np.digitize(stated[:, 1], edges[1:-1])
        n = np.bincount(bins)
        gap = np.bincount(bins, drawn.y - stated[:, 1]) / np.sqrt(n / 4)
        assert (np.abs(gap).max() < 4) == calibrated
    confident = drawn.proba.max(axis=1)
    right = drawn.proba.argmax(axis=1) == drawn.y
    assert confident.mean() > right.mean() + 0.05


def test_training_rows_lead_to_the_weight():
    """The weight is what cross entropy asks for on training rows (Durfee et al., section 3.2)."""
    drawn = overconfident_scores(400_000, seed=3, rows="training", weight=0.0)
    X = np.column_stack([drawn.score, drawn.feature])
    slope, jump = LogisticRegression(C=np.inf).fit(X, drawn.y).coef_[0]
    assert slope == pytest.approx(1.25, abs=0.02)
    assert jump / slope == pytest.approx(TRAINING, abs=0.03)


def test_equal_seeds_give_equal_rows_and_halves():
    first, again, other = (overconfident_scores(101, seed=seed) for seed in (5, 5, 6))
    assert np.array_equal(first.score, again.score)
    assert not np.array_equal(first.score, other.score)
    assert np.bincount(first.y).tolist() == [51, 50]
    assert set(first.feature) == {0, 1}


def test_far_scores_stay_probabilities():
    drawn = overconfident_scores(50, seed=0, weight=1e4)
    assert np.isfinite(drawn.proba).all()
    assert ((drawn.proba > 0) | (np.abs(drawn.score[:, None]) > 700)).all()


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: overconfident_scores(0, seed=0), "n is 0"),
        (lambda: overconfident_scores(5, seed=0, rows="test"), "'test'"),
        (lambda: overconfident_scores(5, seed=0, weight=np.nan), "weight is nan"),
        (lambda: auc_of_weight([1.0, np.inf]), "weight"),
        (lambda: auc_of_weight("much"), "weight is 'much'"),
    ],
)
def test_bad_input_is_reported(call, word):
    with pytest.raises(InputError, match=word):
        call()
