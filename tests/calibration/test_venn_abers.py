"""Venn-Abers prediction against isotonic fits with the row put in, and against venn-abers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdcal_core.calibration import VennAbers

pytestmark = pytest.mark.filterwarnings("ignore::kdcal_core.errors.InputWarning")


def by_force(p, y, weight, new):
    """p0 and p1 of one score: two isotonic regressions with the row itself among the data.

    The fit at a score is the largest, over where a block begins, of the smallest, over where it
    ends, of the means of the blocks that hold the score (Barlow et al. 1972).
    """
    found = []
    score, home = np.unique(np.append(p, new), return_inverse=True)
    weight = np.append(weight, 1.0)
    total = np.append(0.0, np.bincount(home, weight).cumsum())
    at = np.searchsorted(score, new)
    for label in (0, 1):
        hits = np.append(0.0, np.bincount(home, weight * np.append(y, label)).cumsum())
        first, last = np.arange(at + 1)[:, None], np.arange(at + 1, len(total))
        means = (hits[last] - hits[first]) / (total[last] - total[first])
        found.append(means.min(axis=1).max())
    return found


def pair(p):
    p = np.asarray(p, dtype=float)
    return np.column_stack([1 - p, p])


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 12), st.integers(0, 1), st.sampled_from([0.5, 1.0, 2.0])),
        min_size=1,
        max_size=25,
    )
)
def test_both_isotonic_fits_at_seen_and_unseen_scores(rows):
    p = np.array([row[0] for row in rows]) / 12
    y = np.array([row[1] for row in rows])
    weight = np.array([row[2] for row in rows])
    low, high = VennAbers(shrinkage=None).fit(pair(p), y, weight).interval(pair(np.arange(25) / 24))
    want = np.array([by_force(p, y, weight, new) for new in np.arange(25) / 24])
    np.testing.assert_allclose(low[:, 1], want[:, 0], atol=1e-9)
    np.testing.assert_allclose(high[:, 1], want[:, 1], atol=1e-9)
    np.testing.assert_allclose(high[:, 0], 1 - low[:, 1], atol=1e-15)


def test_the_package_says_the_same():
    from venn_abers import VennAbers as Theirs

    rng = np.random.default_rng(0)
    p = rng.random(3000)
    y = (rng.random(3000) < p**2).astype(int)
    new = rng.random(500)
    theirs = Theirs()
    theirs.fit(pair(p), y)
    single, both = theirs.predict_proba(pair(new))
    ours = VennAbers(shrinkage=None).fit(pair(p), y)
    low, high = ours.interval(pair(new))
    np.testing.assert_allclose(ours.predict_proba(pair(new)), single, atol=1e-9)
    np.testing.assert_allclose(np.column_stack([low[:, 1], high[:, 1]]), both, atol=1e-9)


def test_several_classes_are_each_against_the_rest_then_scaled():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(4), 600)
    y = np.array([rng.choice(4, p=row) for row in proba])
    alone = np.column_stack(
        [
            VennAbers(shrinkage=None)
            .fit(pair(proba[:, j]), y == j)
            .predict_proba(pair(proba[:, j]))[:, 1]
            for j in range(4)
        ]
    )
    got = VennAbers(shrinkage=None).fit(proba, y).predict_proba(proba)
    np.testing.assert_allclose(got, alone / alone.sum(axis=1, keepdims=True), atol=1e-12)


def test_it_rises_and_what_is_kept_is_small():
    rng = np.random.default_rng(0)
    p = rng.random(50_000)
    y = (rng.random(50_000) < p).astype(int)
    ours = VennAbers(shrinkage=None).fit(pair(p), y)
    said = ours.predict_proba(pair(np.linspace(0, 1, 2001)))[:, 1]
    assert (np.diff(said) >= -1e-12).all()
    np.testing.assert_allclose(said, np.linspace(0, 1, 2001), atol=0.05)
    assert len(ours.lower_[0]) + len(ours.upper_[0]) < 10_000


def test_one_of_the_two_is_calibrated():
    """Vovk et al. (2015) Theorem 1: the expert that knows the row's own class is calibrated."""
    rng = np.random.default_rng(1)
    text, label = [], []
    for _ in range(400):
        p = rng.random(41)
        y = (rng.random(41) < np.where(p < 0.5, 0.1, 0.7)).astype(int)
        low, high = VennAbers(shrinkage=None).fit(pair(p[:40]), y[:40]).interval(pair(p[40:]))
        text.append(high[0, 1] if y[40] else low[0, 1])
        label.append(y[40])
    text, label = np.array(text), np.array(label)
    for part in (text < 0.35, text >= 0.35):
        gap = (label[part] - text[part]).mean()
        assert abs(gap) < 4 * np.sqrt(0.25 / part.sum())
