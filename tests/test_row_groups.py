"""Groups of rows, and the sums of influence over them that an audit keeps."""

from __future__ import annotations

import numpy as np
import pytest

from kdcal_core.statistics import Dependence, GroupSums, RowGroups, correlation
from kdcal_core.statistics.row_groups import is_telling
from kdcal_core.store import decode, encode

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, 900)
ONE, NOISE = RNG.normal(size=(2, 900))


def groups_of(y: np.ndarray = Y, dependence: Dependence | None = None, file: str = "") -> RowGroups:
    found = RowGroups.of(y, np.ones(len(y)), dependence, file)
    assert found is not None
    return found


def test_every_group_has_ten_rows_or_more() -> None:
    for n in (160, 400, 900):
        size = np.bincount(groups_of(Y[:n]).groups.unit)
        assert 16 <= len(size) <= 128
        assert size.min() >= 10
    uneven = Dependence.of("cluster", np.minimum(np.arange(900) // 3, 200))
    groups = groups_of(dependence=uneven).groups
    assert np.bincount(groups.unit).min() >= 10
    assert all(len(np.unique(groups.unit[uneven.unit == one])) == 1 for one in range(201))


@pytest.mark.parametrize(
    "dependence",
    [None, Dependence.of("cluster", np.arange(900) // 2), Dependence.of("time", np.arange(900))],
)
def test_the_correlation_is_that_of_the_rows(dependence: Dependence | None) -> None:
    groups = groups_of(dependence=dependence)
    near, far = groups.sums(ONE + 0.1 * NOISE), groups.sums(3.0 * NOISE - ONE)
    mine = groups.sums(ONE)
    assert mine is not None
    assert mine.error == pytest.approx(ONE.std() / 30.0, rel=0.2)
    assert correlation(mine, near) == pytest.approx(0.995, abs=0.002)
    assert correlation(mine, far) == pytest.approx(-0.32, abs=0.2)
    assert correlation(mine, groups.sums(ONE + 5.0)) == 1.0


def test_rows_are_known_by_outcomes_and_sorted_ones_by_their_file() -> None:
    mine = groups_of().sums(ONE)
    assert correlation(mine, groups_of(file="another").sums(ONE)) == 1.0
    assert correlation(mine, groups_of(1 - Y).sums(ONE)) is None
    ordered = np.sort(Y)
    assert RowGroups.of(ordered, np.ones(900)) is None
    here, there = (groups_of(ordered, file=name).sums(ONE) for name in ("a", "b"))
    assert correlation(here, there) is None
    assert correlation(here, groups_of(ordered, file="a").sums(NOISE)) is not None
    assert correlation(mine, None) is None


def test_an_order_that_any_set_may_have_tells_nothing() -> None:
    rng = np.random.default_rng(3)
    drawn = rng.integers(0, 2, 1000)
    for alike in (np.sort(drawn), np.tile([0, 1], 500), np.repeat(np.arange(25), 40)):
        assert not is_telling(alike)
    assert is_telling(drawn)
    assert is_telling(np.sort(rng.normal(size=200)))  # the numbers themselves tell


def test_too_few_rows_clusters_or_differences_have_no_sums() -> None:
    assert RowGroups.of(Y[:159], np.ones(159)) is None
    assert RowGroups.of(Y, np.ones(900), Dependence.of("cluster", np.arange(900) // 60)) is None
    assert groups_of().sums(np.full(900, 0.7)) is None
    assert groups_of().sums(np.where(np.arange(900) == 3, np.inf, 1.0)) is None


def test_a_file_keeps_sums_and_refuses_what_none_are() -> None:
    mine = groups_of().sums(ONE)
    kept = encode(mine)
    assert len(kept["sums"]["base64"]) < 400
    assert correlation(decode(GroupSums, kept), mine) == 1.0
    for sums, error in ((np.ones((4, 20)), 1.0), (np.ones(3), 1.0), (np.full(20, np.nan), 1.0)):
        with pytest.raises(ValueError, match="no sums over groups"):
            GroupSums("rows", error, sums.astype(np.float16))
    with pytest.raises(ValueError, match="no sums over groups"):
        decode(GroupSums, {**kept, "error": {"float": "nan"}})
