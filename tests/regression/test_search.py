"""Nearest rows: against all distances, with ties, and with any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from threadpoolctl import threadpool_limits

from kdcal_core.regression import neighbour_search
from kdcal_core.regression.neighbour_search import NeighbourSearch, recall


def brute(space, points, k):
    distance = np.sqrt(((points[:, None] - space[None]) ** 2).sum(axis=2))
    index = np.argsort(distance, axis=1, kind="stable")[:, :k]
    return index, np.take_along_axis(distance, index, axis=1)


@pytest.mark.parametrize("columns", [1, 3, 8, 9, 20])
@pytest.mark.parametrize("k", [1, 7, 300])
def test_search_finds_the_nearest_rows(columns, k):
    rng = np.random.default_rng(columns)
    space, points = rng.normal(size=(300, columns)), rng.normal(size=(40, columns))
    found = NeighbourSearch(space).query(points, k)
    index, distance = brute(space, points, k)
    np.testing.assert_array_equal(found.index, index)
    np.testing.assert_allclose(found.distance, distance, rtol=1e-12)


@pytest.mark.parametrize("columns", [2, 12])
def test_search_far_from_the_origin_loses_no_digits(columns):
    rng = np.random.default_rng(0)
    space, points = rng.normal(size=(500, columns)), rng.normal(size=(20, columns))
    far = NeighbourSearch(space + 2.0**30).query(points + 2.0**30, 10)
    index, _ = brute((space + 2.0**30) - 2.0**30, (points + 2.0**30) - 2.0**30, 10)
    np.testing.assert_array_equal(far.index, index)


@given(
    space=arrays(np.int64, (60, 10), elements=st.integers(0, 1)),
    points=arrays(np.int64, (5, 10), elements=st.integers(0, 1)),
    columns=st.sampled_from([1, 2, 10]),
    k=st.integers(1, 60),
)
def test_search_gives_ties_to_the_lowest_row(space, points, columns, k):
    space, points = space[:, :columns].astype(float), points[:, :columns].astype(float)
    found = NeighbourSearch(space).query(points, k)
    np.testing.assert_array_equal(found.index, brute(space, points, k)[0])


@pytest.mark.parametrize("columns", [2, 12])
def test_search_is_the_same_with_one_thread(columns):
    rng = np.random.default_rng(1)
    space = np.round(rng.normal(size=(3000, columns)), 1)
    points = np.round(rng.normal(size=(700, columns)), 1)
    many = NeighbourSearch(space).query(points, 50)
    with threadpool_limits(1):
        one = NeighbourSearch(space).query(points, 50)
    assert many.index.tobytes() == one.index.tobytes()
    assert many.distance.tobytes() == one.distance.tobytes()


def test_search_of_identical_rows_takes_the_first():
    for columns in (1, 20):
        found = NeighbourSearch(np.zeros((5000, columns))).query(np.ones((3, columns)), 4)
        assert found.index.tolist() == [[0, 1, 2, 3]] * 3


@pytest.mark.parametrize("columns", [2, 20])
def test_approximate_search_keeps_its_promise(columns):
    rng = np.random.default_rng(2)
    space, points = rng.normal(size=(2000, columns)), rng.normal(size=(100, columns))
    search = NeighbourSearch(space, "approximate", epsilon=0.5)
    found, true = search.query(points, 20), NeighbourSearch(space).query(points, 20)
    assert (found.distance <= 1.5 * true.distance * (1 + 1e-12)).all()
    same = np.mean(
        [len(set(a) & set(b)) / 20 for a, b in zip(found.index, true.index, strict=True)]
    )
    assert recall(search, found.index, points, sample=100) == pytest.approx(same)
    careful = NeighbourSearch(space, "approximate").query(points, 20)
    np.testing.assert_array_equal(careful.index, true.index)


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e-170, 1e25, 1e160])
@pytest.mark.parametrize("columns", [2, 3, 4])
@pytest.mark.parametrize("decimals", [0, 15])
def test_a_tree_and_a_look_at_all_rows_find_the_same(columns, scale, decimals, monkeypatch):
    rng = np.random.default_rng(columns)
    space = np.round(rng.normal(size=(900, columns)), decimals) * scale
    space[0] *= 1000  # an outlier
    points = np.vstack([rng.normal(size=(40, columns)) * scale, space[:5]])
    found = []
    for dense in (0, 10**9):
        monkeypatch.setattr(neighbour_search, "DENSE", dense)
        found.append(NeighbourSearch(space).query(points, 60))
    assert found[0].index.tobytes() == found[1].index.tobytes()
    assert found[0].distance.tobytes() == found[1].distance.tobytes()


def test_search_counts_what_lies_within_a_radius():
    rng = np.random.default_rng(3)
    for columns in (2, 12):
        space, points = rng.normal(size=(400, columns)), rng.normal(size=(30, columns))
        distance = brute(space, points, 400)[1]
        counted = NeighbourSearch(space).count_within(points, 1.5)
        np.testing.assert_array_equal(counted, (distance <= 1.5).sum(axis=1))


def test_search_reports_its_progress_and_can_be_stopped():
    seen = []
    search = NeighbourSearch(np.arange(10.0)[:, None])
    search.query(np.array([[1.0]]), 2, lambda share, note: seen.append(share))
    assert seen[0] == 0.0
    assert seen[-1] == 1.0

    def stop(share, note):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search.query(np.array([[1.0]]), 2, stop)


def in_products(space, points, k):
    """The exact search above the tree's columns against all distances."""
    found = NeighbourSearch(space).query(points, k)
    squared = np.stack([((space - point) ** 2) @ np.ones(space.shape[1]) for point in points])
    order = np.argsort(squared, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(found.index, order)


@pytest.mark.parametrize("hard", ["outlier", "far point", "scales", "tiny", "huge", "two lumps"])
def test_single_precision_hides_no_neighbour(hard, monkeypatch):
    monkeypatch.setattr("kdcal_core.regression.neighbour_search.CHUNK", 64)
    monkeypatch.setattr("kdcal_core.regression.neighbour_search.PILOT", 100)
    rng = np.random.default_rng(4)
    space, points = rng.normal(size=(1000, 9)), rng.normal(size=(30, 9))
    if hard == "outlier":
        space[7] = 1e7
        points[0] = 1e7
    elif hard == "far point":
        points[:10] *= 1e6
    elif hard == "scales":
        space[:, 1:] *= 1e-7
        points[:, 1:] *= 1e-7
    elif hard == "tiny":
        space, points = space * 1e-120, points * 1e-120
    elif hard == "huge":
        space, points = space * 1e120, points * 1e120
    else:
        space[::2] += 1e5
        points[::3] += 1e5
    in_products(space, points, 20)


@pytest.mark.parametrize("order", ["nearest last", "pilot rows far", "pilot rows near"])
def test_order_of_the_rows_hides_no_neighbour(order, monkeypatch):
    monkeypatch.setattr("kdcal_core.regression.neighbour_search.CHUNK", 64)
    monkeypatch.setattr("kdcal_core.regression.neighbour_search.PILOT", 100)
    rng = np.random.default_rng(5)
    space, points = rng.normal(size=(2000, 9)), 0.1 * rng.normal(size=(20, 9))
    if order == "nearest last":
        space = space[np.argsort(-np.abs(space).max(axis=1))]
    else:
        space[::20] *= 30.0 if order == "pilot rows far" else 1e-3
    in_products(space, points, 30)
    in_products(space, points, 1500)


def test_ties_beyond_the_room_go_to_the_lowest_rows(monkeypatch):
    monkeypatch.setattr("kdcal_core.regression.neighbour_search.CHUNK", 64)
    monkeypatch.setattr("kdcal_core.regression.neighbour_search.PILOT", 100)
    rng = np.random.default_rng(6)
    space = rng.integers(0, 2, size=(3000, 9)).astype(float)
    space[:, 1:] *= rng.random((3000, 1)) < 0.3
    points = np.r_[rng.integers(0, 2, size=(20, 9)).astype(float), rng.normal(size=(20, 9))]
    in_products(space, points, 25)


def test_search_is_the_same_on_one_core(monkeypatch):
    rng = np.random.default_rng(7)
    space, points = rng.normal(size=(3000, 7)).round(1), rng.normal(size=(700, 7)).round(1)
    many = NeighbourSearch(space).query(points, 50)
    monkeypatch.setattr("kdcal_core.blocks.cores", lambda: 1)
    one = NeighbourSearch(space).query(points, 50)
    assert many.index.tobytes() == one.index.tobytes()
    assert many.distance.tobytes() == one.distance.tobytes()
