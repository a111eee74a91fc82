"""A home that others use too: other processes, other users, and one that can only be read."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kdcal_core.errors import InputError
from kdcal_core.jobs import JobManager, default_root, jobs
from kdcal_core.review import Review, ReviewReader, Workspace, start_sample
from kdcal_core.review.workspace import KEEP_DAYS

ROOT = Path(__file__).parents[2]
SAMPLE = "digits_predictions"
WRITE = """
import sys
from dataclasses import replace
from pathlib import Path
from kdcal_core.review import Workspace

home, review, who, n = sys.argv[1:]
for i in range(int(n)):
    Workspace(Path(home)).update(review, lambda r: replace(r, notes=(*r.notes, f"{who} {i}")))
"""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_changes_from_several_processes_all_arrive(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    review_id = workspace.create()
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITE, str(tmp_path), review_id, who, "60"], cwd=ROOT
        )
        for who in "abc"
    ]
    assert [one.wait(60) for one in writers] == [0, 0, 0]
    assert len(workspace.read(review_id).notes) == 180


def test_a_writer_that_does_not_let_go_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kdcal_core.store.disk import locked

    monkeypatch.setattr("kdcal_core.review.workspace._LOCK_SECONDS", 0.05)
    workspace = Workspace(tmp_path)
    review_id = workspace.create()
    with (
        locked(workspace.lock(review_id, "write")),
        pytest.raises(InputError, match=f"writing the review {review_id}"),
    ):
        workspace.update(review_id, lambda review: review)


def test_files_that_go_while_the_review_is_written_do_no_harm(tmp_path: Path) -> None:
    """Other steps of the review write and delete in its folder at the same time."""
    workspace = Workspace(tmp_path / "home")
    review_id = workspace.create()
    folder = workspace.folder(review_id)
    (folder / "gone").symlink_to(folder / "nowhere")
    (folder / "theirs").symlink_to(tmp_path / "theirs")
    (tmp_path / "theirs").write_text("theirs")
    (tmp_path / "theirs").chmod(0o644)
    rglob = Path.rglob

    def vanishing(self: Path, pattern: str) -> Iterator[Path]:
        yield self / "just-deleted.tmp"
        yield from rglob(self, pattern)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "rglob", vanishing)
        workspace.update(review_id, lambda review: replace(review, title="New"))
    assert workspace.read(review_id).title == "New"
    assert mode(tmp_path / "theirs") == 0o644


def test_a_review_is_as_it_was_where_its_files_cannot_be_made_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Workspace(tmp_path)
    review_id = workspace.create()

    def denied(folder: Path) -> None:
        raise PermissionError(folder)

    monkeypatch.setattr("kdcal_core.review.workspace.make_private", denied)
    with pytest.raises(PermissionError):
        workspace.update(review_id, lambda review: replace(review, title="New"))
    assert workspace.read(review_id).title != "New"


def test_a_review_is_not_deleted_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Workspace(tmp_path)
    review_id = workspace.create()
    deleting = threading.Thread(target=workspace.delete, args=[review_id])

    def change(review: Review) -> Review:
        deleting.start()
        time.sleep(0.1)
        return review

    workspace.update(review_id, change)
    deleting.join()
    assert not (tmp_path / review_id).exists()

    old, month = workspace.create(), time.time() - (KEEP_DAYS + 1) * 86_400
    os.utime(workspace.folder(old) / "review.json", (month, month))
    pruning = threading.Thread(target=workspace.create)

    def use(review: Review) -> Review:
        os.utime(workspace.folder(old) / "review.json", (month, month))  # reading it has used it
        pruning.start()
        time.sleep(0.1)
        return replace(review, title="In use again")

    workspace.update(old, use)
    pruning.join()
    assert workspace.read(old).title == "In use again"


def test_a_file_system_without_locks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")
    workspace = Workspace(tmp_path)
    review_id = workspace.create()

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    began = time.monotonic()
    for write in (
        lambda: workspace.update(review_id, lambda review: review),
        lambda: start_sample(workspace, SAMPLE),
    ):
        with pytest.raises(OSError, match="cannot lock files"):
            write()
    assert time.monotonic() - began < 5  # it does not wait for what never comes


def test_a_review_read_again_is_what_another_process_wrote(tmp_path: Path) -> None:
    mine, other = Workspace(tmp_path), Workspace(tmp_path)
    review_id = mine.create()
    for number in range(200):  # faster than the clock of the file system ticks
        title = f"{number:03}"
        other.update(review_id, lambda review, title=title: replace(review, title=title))
        assert mine.read(review_id).title == title


def test_a_review_that_did_not_change_is_decoded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Workspace(tmp_path)
    review_id = workspace.create()
    time.sleep(0.15)
    first = workspace.read(review_id)

    def never(*_: object) -> Review:
        raise AssertionError("decoded again")

    monkeypatch.setattr("kdcal_core.review.workspace.decode", never)
    assert workspace.read(review_id) is first


@pytest.mark.usefixtures("work_here")
def test_a_folder_of_others_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o755)
    (shared / "theirs").write_text("theirs")
    (shared / "theirs").chmod(0o644)
    monkeypatch.setenv("KDCAL_HOME", str(shared))
    review = start_sample(Workspace(), SAMPLE)
    manager = JobManager(folder=default_root() / "jobs")
    echo = "job_probes:echo"
    manager.wait(manager.submit(echo, {"value": 1}, title="Echo", key="k"))
    assert (mode(shared), mode(shared / "theirs")) == (0o755, 0o644)
    assert sorted(path.name for path in shared.iterdir()) == ["kdcal", "theirs"]
    everything = [shared / "kdcal", *(shared / "kdcal").rglob("*")]
    assert manager.find("k") is not None
    assert Workspace().folder(review.id) in everything
    for path in everything:
        assert mode(path) == (0o700 if path.is_dir() else 0o600), path


def test_the_records_of_jobs_alone_make_a_private_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path))
    jobs().wait(jobs().start(lambda progress, cancelled: 1, title="One"))
    assert mode(default_root()) == mode(default_root() / "jobs") == 0o700


def old_home(home: Path, review_id: str) -> Path:
    """The review as an earlier version kept it: in ``KDCAL_HOME`` itself."""
    shutil.move(home / "kdcal" / review_id, home / review_id)
    return home / review_id


@pytest.mark.usefixtures("work_here")
def test_a_home_of_an_earlier_version_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path))
    review = start_sample(Workspace(), SAMPLE)
    folder = old_home(tmp_path, review.id)
    for workspace in (Workspace(), Workspace(tmp_path / "kdcal")):  # as a worker opens it
        assert workspace.folder(review.id) == folder
        assert workspace.read(review.id) == review
        assert ReviewReader(workspace, review.id).scored("calibration").n_rows > 0
    Workspace().update(review.id, lambda one: replace(one, title="New"))
    assert Workspace().read(review.id).title == "New"
    assert not (tmp_path / "kdcal" / review.id).exists()

    month = time.time() - (KEEP_DAYS + 1) * 86_400
    os.utime(folder / "review.json", (month, month))
    Workspace().create()
    assert not folder.exists()


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The id of a review in a home that this process can read and not write."""
    with tempfile.TemporaryDirectory() as base:
        Path(base).chmod(0o755)  # pytest's own folders let no other user in
        home = Path(base) / "home"
        monkeypatch.setenv("KDCAL_HOME", str(home))
        review_id = start_sample(Workspace(), SAMPLE).id
        state = Workspace().folder(review_id) / "review.json"
        days_ago = time.time() - 3 * 86_400
        os.utime(state, (days_ago, days_ago))
        for path in (home, *home.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        root = os.geteuid() == 0
        if root:
            os.seteuid(65534)  # permissions do not hold for root
        try:
            yield review_id
        finally:
            if root:
                os.seteuid(0)
            for path in (home, *home.rglob("*")):
                if path.is_dir():
                    path.chmod(0o700)


@pytest.mark.usefixtures("work_here")
def test_a_home_that_can_only_be_read_is_read(read_only: str) -> None:
    workspace = Workspace()
    assert workspace.read(read_only).ready
    assert ReviewReader(workspace, read_only).scored("calibration").n_rows > 0
    for write in (
        workspace.create,
        lambda: workspace.update(read_only, lambda review: replace(review, title="New")),
        lambda: start_sample(workspace, SAMPLE),
    ):
        with pytest.raises(PermissionError):
            write()
    manager = JobManager(folder=default_root() / "jobs")
    assert manager.find("k") is None
    assert manager.last_ended([read_only]) is None
