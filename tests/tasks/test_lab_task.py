"""The simulation lab: all methods asked about a map, spheres and fresh rows."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from small_reviews import quiet

from kdcal_core.errors import InputError
from kdcal_core.simulation import SIMULATIONS, gaussian_xor, true_posterior
from kdcal_core.store import encode, load
from kdcal_core.tasks import LabRun, LabSettings, simulate
from kdcal_core.tasks.decorators import carry_out
from kdcal_core.tasks.lab_networks import train_network

SMALL = LabSettings(n=300, n_trees=30, n_sphere=40, n_test=500, resolution=21, radii=(0, 1, 2, 20))
NETWORK = replace(SMALL, model="network", layers=2, width=32, epochs=60)


def run(settings, folder):
    request = simulate.request(settings)
    carry_out(**json.loads(json.dumps(request.kwargs)), folder=str(folder), progress=quiet)
    return load(folder, LabRun)


@pytest.fixture(scope="module")
def forest(tmp_path_factory):
    return run(SMALL, tmp_path_factory.mktemp("forest"))


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    return run(NETWORK, tmp_path_factory.mktemp("network"))


def test_the_rows_drawn_and_their_division(forest):
    drawn = gaussian_xor(300, seed=0)
    np.testing.assert_array_equal(forest.X, drawn.X)
    np.testing.assert_array_equal(forest.y, drawn.y)
    assert forest.held.sum() == forest.record.n_holdout == 90
    assert forest.record.n_fit == 210
    for graph in forest.graphs.values():
        assert (graph.n, graph.n_holdout) == (210, 90)
        np.testing.assert_array_equal(np.sort(graph.holdout_y), np.sort(drawn.y[forest.held]))


@pytest.mark.parametrize("kind", ["forest", "network"])
def test_the_paper_s_finding_inside_and_outside(kind, request):
    lab = request.getfixturevalue(kind)
    test = lab.test
    for name in ("model", "isotonic", "sigmoid"):
        proba = getattr(test, name)
        np.testing.assert_allclose(proba.sum(axis=1), 1)
        assert np.mean(proba.argmax(axis=1) != test.y) < 0.15
    for distance, graph in lab.graphs.items():
        assert np.mean(graph.predict(test.located[distance]) != test.y) < 0.15
        far = lab.by_radius(graph.posterior(lab.spheres.located[distance]))[-1]
        assert far.max(axis=1).mean() == pytest.approx(graph.prior.max(), abs=0.01)
    # the model itself stays certain far away
    assert lab.by_radius(lab.spheres.model)[-1].max(axis=1).mean() > 0.7


@pytest.mark.parametrize(
    ("simulation", "coded"),
    [("sinewave", {"frequency": 4.0, "flip": True}), ("spiral", {"noise": 0.8})],
)
def test_rows_and_truth_may_be_those_of_the_authors_code(simulation, coded, tmp_path):
    found = run(replace(SMALL, simulation=simulation, n=100, coded=True), tmp_path)
    drawn = SIMULATIONS[simulation].function(100, seed=0, **coded)
    np.testing.assert_array_equal(found.X, drawn.X)
    np.testing.assert_array_equal(
        found.test.truth, true_posterior(simulation, found.test.X, **coded)
    )
    assert np.abs(found.test.truth - true_posterior(simulation, found.test.X)).max() > 0.3


def test_where_text_and_code_agree_it_is_one_job():
    keys = {simulate.request(replace(SMALL, coded=coded)).key for coded in (False, True)}
    assert len(keys) == 1


def test_the_map_is_laid_out_as_its_axis_says(forest):
    axis = forest.axis
    assert (axis[0], axis[-1], len(axis)) == (-2, 2, 21)
    points = forest.as_map(forest.grid.X)
    for j, i in ((0, 0), (3, 17), (20, 4)):
        np.testing.assert_array_equal(points[j, i], [axis[i], axis[j]])
    np.testing.assert_array_equal(forest.grid.truth, true_posterior("gaussian_xor", forest.grid.X))
    assert forest.as_map(forest.grid.truth[:, 0])[0, 0] == 0.5  # the corner is out of the box


def test_spheres_lie_at_their_radii(forest):
    norms = np.linalg.norm(forest.spheres.X, axis=1).reshape(4, 40)
    reach = np.linalg.norm(forest.X, axis=1).max()
    assert forest.record.reach == pytest.approx(reach)
    np.testing.assert_allclose(norms, np.array([[0, 1, 2, 20]]).T * reach * np.ones(40), atol=1e-9)
    assert forest.by_radius(forest.spheres.model).shape == (4, 40, 2)


def test_the_test_rows_are_fresh(forest):
    drawn = {tuple(row) for row in forest.X}
    assert not any(tuple(row) in drawn for row in forest.test.X)
    assert forest.spheres.y is None


def test_the_map_of_trunk_shows_its_first_two_dimensions_twice_as_wide_as_the_data(tmp_path):
    lab = run(replace(SMALL, simulation="trunk", n_features=3), tmp_path)
    assert lab.X.shape == (300, 3)
    assert lab.axis[-1] == -lab.axis[0] == 2 * np.abs(lab.X[:, :2]).max()
    points = lab.as_map(lab.grid.X)
    np.testing.assert_array_equal(points[20, 4], [lab.axis[4], lab.axis[20], 0])
    np.testing.assert_array_equal(lab.grid.truth, true_posterior("trunk", lab.grid.X))


def test_one_dimension_has_no_map(tmp_path):
    lab = run(replace(SMALL, simulation="trunk", n_features=1), tmp_path)
    assert lab.grid is None
    assert lab.axis.size == 0
    assert lab.spheres.X.shape == (160, 1)


@pytest.mark.parametrize("settings", [SMALL, NETWORK])
def test_the_same_seed_gives_the_same_bytes_and_another_another(settings, tmp_path):
    small = replace(settings, n=60, n_test=20, resolution=3, epochs=3, n_trees=3)
    folders = {name: tmp_path / name for name in ("one", "two", "three")}
    for name, folder in folders.items():
        folder.mkdir()
        run(replace(small, seed=7 if name == "three" else 0), folder)
    for path in folders["one"].iterdir():
        assert path.read_bytes() == (folders["two"] / path.name).read_bytes()
    one, three = (load(folders[which], LabRun) for which in ("one", "three"))
    assert not np.array_equal(one.X, three.X)
    assert not np.array_equal(one.test.model, three.test.model)


@pytest.mark.parametrize(
    "wrong",
    [
        {"simulation": "no such"},
        {"n": 5},
        {"n_trees": 0},
        {"layers": 0},
        {"resolution": 1},
        {"radii": ()},
        {"seed": -1},
        {"radii": (1.0, float("nan"))},
        {"width": 10**7},
    ],
)
def test_settings_out_of_range_are_refused_before_anything_starts(wrong, tmp_path):
    with pytest.raises(InputError):
        simulate.request(replace(SMALL, **wrong))
    with pytest.raises(InputError):
        carry_out(
            **{"task": "simulate", "given": {"settings": encode(replace(SMALL, **wrong))}},
            folder=str(tmp_path),
            progress=quiet,
        )
    assert list(tmp_path.iterdir()) == []


def test_training_shows_each_epoch_and_can_be_stopped():
    drawn = gaussian_xor(64, seed=0)
    heard = []

    class StopError(Exception):
        pass

    def progress(share, note):
        heard.append((share, note))
        if len(heard) == 3:
            raise StopError

    with pytest.raises(StopError):
        train_network(drawn.X, drawn.y, layers=1, width=4, epochs=10, seed=0, progress=progress)
    assert [share for share, _ in heard] == [0.1, 0.2, 0.3]
    assert heard[0][1].startswith("Epoch 1, loss 0.")


def test_training_stops_where_nothing_improves_any_more():
    X, y = np.zeros((32, 2)), np.repeat([0, 1], 16)
    heard = []
    train_network(
        X, y, layers=1, width=2, epochs=5000, seed=0, progress=lambda s, note: heard.append(s)
    )
    assert len(heard) < 2000


def test_training_leaves_torch_as_it_was():
    import torch

    state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    train_network(np.eye(2), np.array([0, 1]), layers=1, width=2, epochs=1, seed=3, progress=quiet)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.get_num_threads() == threads
