"""The list of rows whose results this machine knows: small, private, in an order of its own."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from made_reviews import line, review_of, too_sure
from workerless import working_here

from kdcal_core.review import (
    KnownResults,
    Review,
    Workspace,
    known_results,
    note_results,
    read_review,
    score,
    set_roles,
)

A, B, C, D = ("a" * 64, "b" * 64, "c" * 64, "d" * 64)


@pytest.fixture
def known(tmp_path: Path) -> KnownResults:
    return KnownResults(tmp_path / "audits")


def test_results_are_noted_once_and_what_was_known_before_is_returned(known: KnownResults) -> None:
    assert known.read() is None
    began = known.note()
    assert (began.last, began.rows) == (0, {})
    assert known.note([A, B]) == began
    first = known.note([B, C])
    assert (first.last, set(first.rows)) == (1, {A, B})
    found = known.read()
    assert found is not None
    assert {row: one.number for row, one in found.rows.items()} == {A: 1, B: 1, C: 2}
    assert found.rows[B] == first.rows[B]
    assert found.id == began.id
    assert found.place.number == 2


@pytest.mark.skipif(os.name == "nt", reason="of systems with such permissions")
def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        KnownResults(tmp_path / "audits").note([A])
    finally:
        os.umask(before)
    made = [tmp_path / "audits", *(tmp_path / "audits").iterdir()]
    assert {one.name for one in made[1:]} == {"first_results.json", ".first_results.json.lock"}
    assert not any(one.stat().st_mode & 0o077 for one in made)


def test_it_forgets_the_oldest_and_says_how_many(
    known: KnownResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_results, "MOST", 2)
    for one in (A, B, C, D):
        known.note([one])
    found = known.read()
    assert found is not None
    assert (set(found.rows), found.forgotten, found.last) == ({C, D}, 2, 4)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"[" * 100_000, b'{"id": 1}', b"\xff"])
def test_a_damaged_list_begins_anew(known: KnownResults, tmp_path: Path, content: bytes) -> None:
    began = known.note([A])
    (tmp_path / "audits" / known_results.FILE).write_bytes(content)
    assert known.read() is None
    again = known.note([B])
    assert again.rows == {}
    assert again.id != began.id


def test_two_writers_lose_nothing(known: KnownResults) -> None:
    rows = [[f"{at:032x}{part:032x}" for at in range(5)] for part in range(4)]

    def write(mine: list[str]) -> None:
        for one in mine:
            known.note([one])

    threads = [threading.Thread(target=write, args=(mine,)) for mine in rows]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    found = known.read()
    assert found is not None
    assert sorted(one.number for one in found.rows.values()) == list(range(1, 21))


@pytest.fixture(scope="module")
def review(tmp_path_factory: pytest.TempPathFactory) -> Review:
    workspace = Workspace(tmp_path_factory.mktemp("reviews"))
    with working_here():
        review_id = review_of(workspace, calibration=too_sure(60, 0), evaluation=too_sure(60, 1))
    return read_review(workspace, review_id)


def test_another_review_of_the_same_rows_is_no_way_around_it(review: Review) -> None:
    note_results(replace(review, id="another"))
    found = note_results(review)
    assert found is not None
    assert set(found.rows) == {one.digest for one in review.sets.values()}


def test_what_an_earlier_version_kept_in_the_review_comes_first(review: Review) -> None:
    at = "2026-11-20T16:20:00.000000Z"
    found = note_results(replace(review, first_results=at))
    assert found is not None
    assert {(one.number, one.at) for one in found.rows.values()} == {(0, at)}


def test_a_disk_that_takes_nothing_hinders_nobody(
    review: Review, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(known_results, "write_json", full)
    assert note_results(review) is None


@pytest.mark.parametrize("made", [too_sure, line])
def test_a_column_that_becomes_a_cluster_or_a_weight_later_makes_no_rows_anew(
    tmp_path: Path, made
) -> None:
    workspace = Workspace(tmp_path / "reviews")
    table = made(60, 0).assign(ward=[f"w{one % 7}" for one in range(60)], factor=2.0)
    with working_here():
        before = read_review(workspace, review_of(workspace, calibration=table))
        note_results(before)
        inputs = tuple(one for one in before.roles.features if one not in ("ward", "factor"))
        roles = replace(before.roles, cluster="ward", weight="factor", features=inputs)
        set_roles(workspace, before.id, roles)
        after = score(workspace, before.id)
    own, later = before.sets["calibration"], after.sets["calibration"]
    assert own.digest != later.digest  # other intervals, so another result
    found = note_results(after)
    assert found is not None
    assert set(later.known_as) & set(found.rows)
