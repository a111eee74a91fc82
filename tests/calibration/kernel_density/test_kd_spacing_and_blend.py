"""The spacing of polytopes and the blend with the parent, against brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brute

from kdcal_core.calibration.kernel_density.blend import Blend, fit_blend
from kdcal_core.calibration.kernel_density.spacing import neighbour_spacing
from kdcal_core.partition import LeafCodes, find_polytopes, geodesic_kernel


def _polytopes(rng, p=60, trees=12):
    codes = find_polytopes(LeafCodes(rng.integers(0, 5, (p, trees)).astype(np.int32))).codes
    return codes, rng.normal(size=(len(codes), 3))


def test_spacing_is_that_of_an_enumeration_where_every_polytope_is_asked_alone():
    codes, centres = _polytopes(np.random.default_rng(0), p=9)
    kernel = geodesic_kernel(codes)
    np.fill_diagonal(kernel, -1)
    distance = ((centres[:, None] - centres[None]) ** 2).sum(axis=2)
    np.fill_diagonal(distance, np.inf)
    tied = np.where(kernel == kernel.max(axis=1, keepdims=True), distance, np.inf)
    gap = (centres - centres[tied.argmin(axis=1)]) ** 2
    np.testing.assert_allclose(neighbour_spacing(codes, centres), gap.mean(axis=0))
    gap = (centres - centres[distance.argmin(axis=1)]) ** 2
    np.testing.assert_allclose(neighbour_spacing(None, centres), gap.mean(axis=0))


def test_spacing_follows_the_units_of_each_coordinate():
    codes, centres = _polytopes(np.random.default_rng(1))
    scaled = centres * [1.0, 1.0, 10.0]
    np.testing.assert_allclose(
        neighbour_spacing(None, scaled[:, 2:]), 100 * neighbour_spacing(None, centres[:, 2:])
    )
    assert neighbour_spacing(codes, centres, seed=3) == pytest.approx(
        neighbour_spacing(codes, centres, seed=3), rel=0
    )
    assert neighbour_spacing(codes, centres).min() > 0


def test_spacing_of_many_polytopes_estimates_the_mean_gap():
    centres = np.arange(3000.0)[:, None]
    assert neighbour_spacing(None, centres)[0] == pytest.approx(1.0, abs=0.3)


def test_a_single_polytope_has_no_spacing():
    assert neighbour_spacing(None, np.ones((1, 2))).tolist() == [0.0, 0.0]


def _opinions(rng, n=300, n_classes=3):
    y = rng.integers(0, n_classes, n)
    parent = rng.dirichlet(np.ones(n_classes), n)
    local = rng.dirichlet(np.ones(n_classes), n)
    parent[np.arange(n), y] += 0.6 * rng.random(n)
    local[np.arange(n), y] += 0.3 * rng.random(n)
    return (
        parent / parent.sum(axis=1, keepdims=True),
        local / local.sum(axis=1, keepdims=True),
        y,
    )


def _log_loss(blend, parent, local, y):
    return -np.log(blend.mix(parent, local)[np.arange(len(y)), y]).mean()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_weights_are_those_of_a_grid_search(seed):
    parent, local, y = _opinions(np.random.default_rng(seed))
    prior = np.full(3, 1 / 3)
    fitted = fit_blend(parent, local, y, prior)
    best = brute(
        lambda w: _log_loss(Blend(w[0], w[1], tuple(prior)), parent, local, y),
        [(0, 6), (0, 6)],
        Ns=25,
    )
    assert [fitted.parent, fitted.graph] == pytest.approx(best.tolist(), abs=0.02)


def test_on_its_own_rows_it_is_no_worse_than_either_opinion():
    rng = np.random.default_rng(5)
    parent, local, y = _opinions(rng)
    prior = np.full(3, 1 / 3)
    fitted = _log_loss(fit_blend(parent, local, y, prior), parent, local, y)
    for alone in (Blend(1, 0, tuple(prior)), Blend(0, 1, tuple(prior))):
        assert fitted <= _log_loss(alone, parent, local, y) + 1e-9


def test_an_opinion_that_knows_nothing_gets_no_weight():
    rng = np.random.default_rng(6)
    y = rng.integers(0, 2, 4000)
    said = np.where(rng.random(4000) < 0.2, 1 - y, y)
    useful = np.where(np.eye(2, dtype=bool)[said], 0.8, 0.2)
    noise = rng.dirichlet([1.0, 1.0], 4000)
    fitted = fit_blend(noise, useful, y, np.array([0.5, 0.5]))
    assert fitted.parent < 0.1
    assert fitted.graph == pytest.approx(1.0, abs=0.1)


@given(
    st.floats(0, 20),
    st.floats(0, 20),
    st.lists(st.sampled_from([0.0, 1e-300, 0.25, 1.0]), min_size=3, max_size=3),
)
def test_any_opinions_blend_to_a_distribution(parent, graph, raw):
    opinion = np.array([raw]) if sum(raw) else np.array([[1.0, 0.0, 0.0]])
    opinion = opinion / opinion.sum()
    mixed = Blend(parent, graph, (0.0, 0.5, 0.5)).mix(opinion, opinion[:, ::-1])
    assert np.isfinite(mixed).all()
    assert mixed.sum() == pytest.approx(1.0)


def test_certain_opinions_that_agree_keep_finite_weights():
    sure = np.eye(2)[[0, 1, 0]]
    fitted = fit_blend(sure, sure, np.array([0, 1, 0]), np.array([0.5, 0.5]))
    assert np.isfinite(fitted.mix(sure, sure)).all()
    assert fitted.mix(sure, sure)[0, 0] > 0.999
