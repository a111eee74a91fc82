"""What the lab measures: settings without a fit, the measures themselves, and the switch radius."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_reviews import quiet

from kdcal_core.calibration import (
    KernelDensityForest,
    KernelDensityGraph,
    KernelDensityNetwork,
    Located,
)
from kdcal_core.errors import InputError
from kdcal_core.evaluation import meaning_of
from kdcal_core.models import wrap_model
from kdcal_core.tasks import LabSettings
from kdcal_core.tasks.lab import grow_forest, simulate
from kdcal_core.tasks.lab_measures import (
    LAB_MEASURES,
    METHODS,
    PAPER_LOG_FLOOR,
    PRINTED_LOG_FLOOR,
    GraphChoice,
    all_answers,
    data_box,
    distance_curves,
    fitted_position,
    graph_answers,
    measured,
    sure_outside,
    switch_distances,
)
from kdcal_core.tasks.lab_networks import train_network

SMALL = LabSettings(n=400, n_trees=30, n_sphere=60, n_test=500, resolution=21)


@pytest.fixture(scope="module")
def lab():
    return simulate(SMALL, quiet)


@pytest.fixture(scope="module")
def trunk():
    return simulate(replace(SMALL, simulation="trunk", n_features=3), quiet)


def graph(centres, variances, counts, **more):
    """A graph of given polytopes that lends nothing."""
    counts = np.array(counts)
    n = int(counts.sum())
    settings = {"variance_floor": 1e-6, "log_floor": -1e7, **more}
    return KernelDensityGraph(
        classes=("0", "1"), n=n, centres=np.array(centres), variances=np.array(variances),
        counts=counts, exponents=np.array([50.0]), class_masses=counts[None].astype(float),
        prior=counts.sum(axis=0) / n, gamma=50.0 / np.log(max(n, 3)), floor_quantile=None,
        holdout=None, holdout_y=None, **settings,
    )  # fmt: skip


def test_every_method_answers_everywhere(lab):
    found = all_answers(lab, GraphChoice())
    assert tuple(found) == tuple(METHODS)
    for each in found.values():
        for part, n in ((each.grid, 21 * 21), (each.spheres, 15 * 60), (each.test, 500)):
            assert part.proba.shape == (n, 2)
            np.testing.assert_allclose(part.proba.sum(axis=1), 1, atol=1e-9)
            assert part.predicted.shape == (n,)


def test_measures_are_those_of_their_definitions(lab):
    answers = all_answers(lab, GraphChoice())["sigmoid"]
    found = measured(lab, answers)
    assert tuple(found) == LAB_MEASURES
    assert all(meaning_of(one) for one in found.values())
    proba, y = lab.test.sigmoid, lab.test.y
    inside = (np.abs(lab.grid.X) <= 1).all(axis=1)
    roots = np.sqrt(lab.grid.sigmoid[inside]) - np.sqrt(lab.grid.truth[inside])
    far = lab.by_radius(lab.spheres.sigmoid)[lab.record.settings.radii.index(2.0)]
    assert found["error"].value == pytest.approx((proba.argmax(axis=1) != y).mean())
    assert found["log_loss"].value == pytest.approx(-np.log(proba[np.arange(500), y]).mean())
    assert found["box"].value == pytest.approx(
        np.sqrt(0.5 * (roots**2).sum(axis=1)).mean(), abs=1e-9
    )
    roots = np.sqrt(proba) - np.sqrt(lab.test.truth)
    assert found["hellinger"].value == pytest.approx(
        np.sqrt(0.5 * (roots**2).sum(axis=1)).mean(), abs=1e-9
    )
    assert found["confidence"].value == pytest.approx(far.max(axis=1).mean())
    for estimate in found.values():
        assert estimate.low <= estimate.value <= estimate.high


def test_without_a_box_there_are_the_rows_alone(trunk):
    answers = all_answers(trunk, GraphChoice())["model"]
    roots = np.sqrt(trunk.test.model) - np.sqrt(trunk.test.truth)
    expected = np.sqrt(0.5 * (roots**2).sum(axis=1)).mean()
    found = measured(trunk, answers)
    assert found["hellinger"].value == pytest.approx(expected, abs=1e-9)
    assert found["box"] == found["hellinger"]
    x0, x1, y0, y1 = data_box(trunk)
    assert (x0, y1) == (trunk.X[:, 0].min(), trunk.X[:, 1].max())
    assert trunk.record.edge >= max(x1, -y0)


def test_a_choice_that_chooses_nothing_leaves_what_the_data_chose(lab):
    plain = graph_answers(lab, GraphChoice())
    for distance, fitted in lab.graphs.items():
        same = fitted.posterior(lab.test.located[distance])
        np.testing.assert_array_equal(plain[distance].test.proba, same)


@pytest.mark.parametrize(
    "choice",
    [
        GraphChoice(position=20),
        GraphChoice(floor_quantile=0.3),
        GraphChoice(log_floor=-1e-7),
        GraphChoice(variance_floor=0.05),
        GraphChoice(ratio_only=True),
    ],
)
def test_every_setting_moves_both_graphs(lab, choice):
    plain, moved = graph_answers(lab, GraphChoice()), graph_answers(lab, choice)
    for distance in plain:
        assert not np.array_equal(plain[distance].grid.proba, moved[distance].grid.proba)


def test_the_same_exponent_for_both_graphs(lab):
    for distance in lab.graphs:
        moved = GraphChoice(position=7).applied(lab, distance)
        assert fitted_position(moved) == 7
        assert moved.gamma == pytest.approx(moved.exponents[7] / np.log(moved.n))


@pytest.mark.parametrize(
    "wrong",
    [
        GraphChoice(position=21),
        GraphChoice(position=-1),
        GraphChoice(floor_quantile=2.0),
        GraphChoice(floor_quantile=0.1, log_floor=-3.0),
        GraphChoice(variance_floor=0.0),
    ],
)
def test_choices_out_of_range_are_refused(lab, wrong):
    with pytest.raises(InputError):
        graph_answers(lab, wrong)


def test_the_papers_floor_lets_go_at_the_root_of_twenty_in_any_dimension():
    for d in (1, 2, 30):
        one = graph(np.zeros((2, d)), np.zeros((2, d)), [[1, 0], [0, 1]])
        np.testing.assert_allclose(switch_distances(one), np.sqrt(20), rtol=1e-3)


def test_the_printed_floor_lets_go_before_the_next_row():
    n = 10_000
    counts = np.zeros((2, 2), dtype=np.int64)
    counts[0, 0], counts[1, 1] = 1, n - 1
    shown = graph(np.zeros((2, 2)), np.zeros((2, 2)), counts, log_floor=-1e-7)
    even = replace(shown, prior=np.array([0.5, 0.5]), class_masses=np.full((1, n, 2), 0.5),
                   centres=np.zeros((n, 2)), variances=np.zeros((n, 2)))  # fmt: skip
    np.testing.assert_allclose(switch_distances(even), 0.0034, atol=3e-4)


def test_at_the_switch_radius_density_and_floor_are_equal():
    one = graph([[0.0], [5.0]], [[0.01], [0.0]], [[3, 1], [0, 2]], log_floor=-40.0)
    for r, radius in enumerate(switch_distances(one)):
        x = one.centres[[r]] + radius
        at = Located(x, np.array([r]), np.zeros(1, dtype=bool))
        assert one.log_marginal(at)[0] == pytest.approx(one.effective_log_floor)


def test_below_the_floor_at_the_centre_nothing_is_left():
    one = graph([[0.0]], [[1.0]], [[2, 2]], log_floor=50.0)
    assert switch_distances(one).tolist() == [0.0]


def test_outside_the_model_is_sure_and_the_graph_is_not(lab):
    found = all_answers(lab, GraphChoice())
    outside = (np.abs(lab.grid.X) > 1).any(axis=1)
    sure = (lab.grid.model[outside].max(axis=1) > 0.9).mean()
    assert sure_outside(lab, found["model"]) == sure
    assert sure_outside(lab, found["geodesic"]) < 0.5 * sure
    no_map = replace(lab, grid=None)
    assert np.isnan(sure_outside(no_map, all_answers(no_map, GraphChoice())["model"]))


def test_curves_of_all_methods_start_at_the_centre(lab):
    curves = distance_curves(lab, all_answers(lab, GraphChoice()))
    assert tuple(curves) == tuple(METHODS)
    assert curves["model"].radii.tolist() == list(lab.record.settings.radii)
    far = lab.by_radius(lab.papers["geodesic"].posterior(lab.spheres.papers["geodesic"]))
    np.testing.assert_allclose(curves["geodesic_paper"].mean, far.max(axis=2).mean(axis=1))


@pytest.mark.parametrize("kind", ["forest", "network"])
def test_the_papers_curve_is_a_fit_of_theirs(kind):
    """All of the papers' settings: ratio, their two constants, output bits, exponent under them."""
    small = replace(SMALL, model=kind, layers=2, width=16, epochs=40, resolution=5, n_test=100)
    lab = simulate(small, quiet)
    rows, held = lab.X[~lab.held], lab.X[lab.held]
    model = (
        wrap_model(grow_forest(rows, lab.y[~lab.held], small.n_trees, small.seed))
        if kind == "forest"
        else wrap_model(
            train_network(
                rows, lab.y[~lab.held], layers=2, width=16, epochs=40, seed=0, progress=quiet
            ),
            classes=("0", "1"),
        )
    )
    constants = {"inside": "ratio", "variance_floor": 1e-6, "log_floor": -1e7}
    fitted = (
        KernelDensityForest(model, **constants)
        if kind == "forest"
        else KernelDensityNetwork(model, output_layer="probability", **constants)
    ).fit(rows, lab.y[~lab.held], held, lab.y[lab.held])
    expected = fitted.predict_proba(lab.test.X)
    answers = all_answers(lab, GraphChoice())
    np.testing.assert_allclose(answers["geodesic_paper"].test.proba, expected, atol=1e-12)
    # the preset is the same curve, and so is what it prints: nothing is left of the blend's fit
    preset = GraphChoice(log_floor=PAPER_LOG_FLOOR, variance_floor=1e-6, ratio_only=True)
    for distance, method in (("geodesic", "geodesic_paper"), ("euclidean", "euclidean_paper")):
        moved = graph_answers(lab, preset)[distance]
        np.testing.assert_array_equal(moved.test.proba, answers[method].test.proba)
        printed = replace(preset, log_floor=PRINTED_LOG_FLOOR).applied(lab, distance)
        assert printed.gamma == printed.selection().best_gamma
