"""The folder of reviews: ids from addresses, atomic writes, permissions, pruning."""

import io
import json
import os
import stat
import threading
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdcal_core.data import Roles
from kdcal_core.errors import InputError
from kdcal_core.jobs import default_root
from kdcal_core.models import ModelInfo
from kdcal_core.review import (
    ColumnInfo,
    Review,
    SetInfo,
    TableInfo,
    Workspace,
    rename_review,
)
from kdcal_core.review import workspace as workspace_module
from kdcal_core.store import decode, encode
from kdcal_core.store.disk import KnownFiles, identity_of

FULL = Review(
    id="a" * 16,
    title="<b>title</b>",
    model=ModelInfo(
        kind="Forest",
        classes=("a", "b"),
        named_classes=True,
        n_features=2,
        feature_names=None,
        has_codes=True,
        has_embedding=False,
        digest="0f",
        name="m.onnx",
        size_bytes=3,
    ),
    model_file="f.onnx",
    classes=("a", "b"),
    tables={
        "calibration": TableInfo(
            name="t.csv",
            digest="ff",
            n_rows=2,
            columns=(ColumnInfo("x", "number", 1, 2, ("1", "2")),),
            notes=("note",),
            size_bytes=10,
            file="t.arrow",
        )
    },
    roles=Roles(target="y", features=("x",), outputs=(("a", "p_a"), ("b", "p_b"))),
    sets={"calibration": SetInfo("dd", 2, 0.5, "set-1")},
    sample=None,
    notes=("n",),
)


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "home")


def test_a_review_comes_back_as_it_was():
    assert decode(Review, json.loads(json.dumps(encode(FULL)))) == FULL
    assert FULL.scored
    assert FULL.ready
    assert not FULL.has_evaluation
    assert FULL.accuracy == {"calibration": 0.5}


@pytest.mark.parametrize(
    "change",
    [
        {"classes": "ab"},
        {"classes": [1]},
        {"title": None},
        {"tables": []},
        {"parent": {"kind": "Forest"}},
        {"roles": {"output_kind": "hex"}},
        {"sets": {"calibration": {"digest": "d", "n_rows": True, "accuracy": 1, "folder": "f"}}},
        {"extra": 1},
    ],
)
def test_a_wrong_shape_is_refused(change):
    with pytest.raises(TypeError):
        decode(Review, {**json.loads(json.dumps(encode(FULL))), **change})


@pytest.mark.parametrize(
    "bad",
    [
        "",
        ".",
        "..",
        "../../../etc",
        "a" * 15,
        "a" * 17,
        "a" * 15 + "/",
        "a" * 15 + "\n",
        "\x00" * 16,
        "../" + "a" * 13,
        "a" * 16,
    ],
)
def test_what_is_no_id_never_touches_the_disk(workspace, bad):
    assert not workspace.exists(bad)
    with pytest.raises(InputError, match="no such review"):
        workspace.read(bad)
    workspace.create()
    workspace.delete(bad)
    assert workspace.root.exists()


@given(st.text(max_size=20))
def test_no_text_leads_outside(tmp_path_factory, text):
    workspace = Workspace(tmp_path_factory.getbasetemp() / "home")
    assert not workspace.exists(text)


def test_folders_are_private(workspace):
    review_id = workspace.create()
    for folder in (workspace.root, workspace.folder(review_id)):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_create_read_update_delete(workspace):
    review_id = workspace.create()
    assert workspace.read(review_id) == Review(id=review_id)
    changed = workspace.update(review_id, lambda review: replace(review, title="New"))
    assert Workspace(workspace.root).read(review_id) == changed
    workspace.delete(review_id)
    assert not workspace.exists(review_id)
    workspace.delete(review_id)


def test_no_id_looks_like_an_option_of_a_command(workspace, monkeypatch):
    ids = iter(["-hF3k2bq9Zr0Wx7a", "aHF3k2bq9Zr0Wx7a", "-iF3k2bq9Zr0Wx7a", "bIF3k2bq9Zr0Wx7a"])
    monkeypatch.setattr(workspace_module.secrets, "token_urlsafe", lambda size: next(ids))
    made = workspace.create()
    assert made == "aHF3k2bq9Zr0Wx7a"
    assert workspace.duplicate(made, "A copy") == "bIF3k2bq9Zr0Wx7a"


def test_a_failing_change_changes_nothing(workspace):
    review_id = workspace.create()

    def fail(review):
        raise InputError("No")

    with pytest.raises(InputError):
        workspace.update(review_id, fail)
    assert workspace.read(review_id) == Review(id=review_id)
    assert [path.name for path in workspace.folder(review_id).iterdir()] == ["review.json"]


def test_changes_from_many_threads_all_arrive(workspace):
    review_id = workspace.create()

    def add(number):
        workspace.update(review_id, lambda r: replace(r, notes=(*r.notes, str(number))))

    threads = [threading.Thread(target=add, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(workspace.read(review_id).notes, key=int) == [str(n) for n in range(16)]


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[]", b'{"id": 1}', b"\xff\xfe", b"[" * 200_000, b'{"a":' * 100_000),
        b'{"id": "../../../elsewhere", "title": "Another review"}',
        b'{"id": "ID", "sets": {"calibration": {"digest": "", "n_rows": 1, "folder": "s", '
        b'"accuracy": 1' + b"0" * 400 + b"}}}",
    ],
)
def test_a_damaged_state_is_an_error_of_input(workspace, content):
    review_id = workspace.create()
    content = content.replace(b"ID", review_id.encode())
    (workspace.folder(review_id) / "review.json").write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        workspace.read(review_id)


def test_old_reviews_go_and_used_ones_stay(workspace):
    old, used, new = (workspace.create() for _ in range(3))
    month = time.time() - 31 * 86_400
    for review_id in (old, used):
        path = workspace.folder(review_id) / "review.json"
        os.utime(path, (month, month))
    workspace.read(used)
    workspace.create()
    assert [workspace.exists(i) for i in (old, used, new)] == [False, True, True]


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("a.CSV", ".csv"),
        ("../../x.onnx", ".onnx"),
        ("a.b/../c", ""),
        ("x.a b", ""),
        ("", ""),
        ("x." + "a" * 50, ""),
        ("\0.csv", ".csv"),
    ],
)
def test_uploads_lie_under_random_names(workspace, name, suffix):
    review_id = workspace.create()
    stream = io.BytesIO(b"x" * 3_000_000)
    stream.read()
    path = workspace.keep(review_id, stream, name)
    assert path.parent == workspace.folder(review_id)
    assert path.name[16:] == suffix
    assert path.stat().st_size == 3_000_000


def test_default_root(monkeypatch, tmp_path):
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path / "k"))
    assert default_root() == tmp_path / "k" / "kdcal"  # a folder of our own in it
    monkeypatch.delenv("KDCAL_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_root() == tmp_path / "kdcal"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_root() == tmp_path / ".cache" / "kdcal"


def test_reviews_are_listed_by_their_last_use_which_listing_is_not(workspace):
    assert workspace.reviews() == ()
    ids = [workspace.create() for _ in range(3)]
    for age, review_id in enumerate(ids, start=2):
        day = time.time() - age * 86_400
        os.utime(workspace.folder(review_id) / "review.json", (day, day))
    assert [review.id for review, _ in workspace.reviews()] == ids
    workspace.read(ids[2])  # a use
    (workspace.folder(ids[1]) / "review.json").write_text("{")
    assert [review.id for review, _ in workspace.reviews()] == [ids[2], ids[0]]
    used = workspace.reviews()[1][1]
    assert time.time() - used > 86_400


def test_a_copy_is_a_review_of_its_own(workspace):
    review_id = workspace.create()
    workspace.update(review_id, lambda review: replace(FULL, id=review_id))
    (workspace.folder(review_id) / "t.arrow").write_bytes(b"rows")
    copy = workspace.duplicate(review_id, "another")
    assert workspace.read(copy) == replace(FULL, id=copy, title="another")
    workspace.delete(review_id)
    assert (workspace.folder(copy) / "t.arrow").read_bytes() == b"rows"
    assert stat.S_IMODE(workspace.folder(copy).stat().st_mode) == 0o700


def test_a_title_is_changed_and_never_blank(workspace):
    review_id = workspace.create()
    assert rename_review(workspace, review_id, " March audit ").title == "March audit"
    for title in (" ", "x" * 201):
        with pytest.raises(InputError, match="needs a title"):
            rename_review(workspace, review_id, title)


def test_listed_reviews_are_read_once_however_many(tmp_path, monkeypatch):
    known = KnownFiles(3)
    monkeypatch.setattr(workspace_module, "_reviews", known)
    workspace = Workspace(tmp_path / "home")
    ids = {workspace.create() for _ in range(8)}
    monkeypatch.setattr(  # as if they had been written a while ago
        workspace_module, "identity_of", lambda path: replace(identity_of(path), settled=True)
    )
    assert {review.id for review, _ in workspace.reviews()} == ids
    monkeypatch.setattr(workspace_module, "decode", None)  # nothing is read again
    assert {review.id for review, _ in workspace.reviews()} == ids
