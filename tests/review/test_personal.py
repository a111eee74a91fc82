"""In a person's workspace, reviews of others do not exist."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kdcal_core.errors import InputError
from kdcal_core.review import PersonalWorkspace, Review, Workspace
from kdcal_core.review.workspace import KEEP_DAYS, STATE

ANN, EVE = ("https://id.example.org", "ann"), ("https://id.example.org", "eve")


def said(act: Callable[[], object]) -> str:
    with pytest.raises(InputError) as refused:
        act()
    return str(refused.value)


def test_every_way_to_a_review_of_another_is_a_way_to_none(tmp_path: Path) -> None:
    anns, eves = PersonalWorkspace(ANN, tmp_path), PersonalWorkspace(EVE, tmp_path)
    review = anns.create()
    ways: tuple[Callable[[str], object], ...] = (
        eves.read,
        eves.folder,
        eves.new_file,
        lambda one: eves.update(one, lambda known: known),
        lambda one: eves.duplicate(one, "Copy"),
        lambda one: eves.keep(one, Path(__file__), "rows.csv"),
    )
    for way in ways:
        assert said(lambda way=way: way(review)) == said(lambda way=way: way("A" * 16))
    eves.delete(review)
    assert anns.read(review).owner == ANN
    assert eves.reviews() == ()
    assert [one.id for one, _ in anns.reviews()] == [review]


def test_a_review_stays_its_owners_whatever_is_written(tmp_path: Path) -> None:
    anns = PersonalWorkspace(ANN, tmp_path)
    review = anns.create()
    anns.update(review, lambda known: Review(known.id, title="Anew"))
    assert Workspace(tmp_path).read(review) == Review(review, title="Anew", owner=ANN)
    copy = anns.duplicate(review, "Copy")
    assert Workspace(tmp_path).read(copy).owner == ANN


def test_without_sign_in_only_reviews_without_an_owner_are_there(tmp_path: Path) -> None:
    here, anns = PersonalWorkspace(None, tmp_path), PersonalWorkspace(ANN, tmp_path)
    nobodys, hers = Workspace(tmp_path).create(), anns.create()
    assert (here.exists(nobodys), here.exists(hers)) == (True, False)
    assert (anns.exists(nobodys), anns.exists(hers)) == (False, True)


def test_a_damaged_review_is_nobodys(tmp_path: Path) -> None:
    anns = PersonalWorkspace(ANN, tmp_path)
    review = anns.create()
    (anns.folder(review) / STATE).write_text("{")
    assert not anns.exists(review)
    assert "is damaged" in said(lambda: PersonalWorkspace(None, tmp_path).read(review))


def test_old_reviews_of_everybody_are_deleted(tmp_path: Path) -> None:
    anns, eves = PersonalWorkspace(ANN, tmp_path), PersonalWorkspace(EVE, tmp_path)
    review = anns.create()
    old = time.time() - (KEEP_DAYS + 1) * 86_400
    os.utime(anns.folder(review) / STATE, (old, old))
    eves.create()
    assert not anns.exists(review)
