"""Files of a review that were changed after kdcal wrote them: one clear error, never a number."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from kdcal_core.data import Roles
from kdcal_core.errors import InputError
from kdcal_core.review import (
    Review,
    ReviewReader,
    Workspace,
    add_table,
    check_scored,
    create_review,
    review_data,
    score,
    set_roles,
    start_sample,
)
from kdcal_core.review.sealed_files import SEAL, check_folder, seal
from kdcal_core.store.disk import digest_of

pytestmark = pytest.mark.usefixtures("work_here")
N = 400


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "home")


def scored(workspace: Workspace, folder: Path, task: str = "classification") -> Review:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=N)})
    if task == "regression":
        frame = frame.assign(mean=frame.x, std=1.0, y=frame.x + rng.normal(size=N))
    else:
        p = rng.uniform(size=N)
        frame = frame.assign(p_no=1 - p, p_yes=p, y=np.where(rng.random(N) < p**2, "yes", "no"))
    review = create_review(workspace)
    frame.to_csv(folder / "rows.csv", index=False)
    review = add_table(workspace, review.id, "calibration", folder / "rows.csv", "rows.csv")
    if task == "classification":
        roles = Roles(target="y", features=("x",), outputs=(("no", "p_no"), ("yes", "p_yes")))
        set_roles(workspace, review.id, replace(roles, output_kind=review.roles.output_kind))
    return score(workspace, review.id)


def set_folder(workspace: Workspace, review: Review) -> Path:
    return workspace.folder(review.id) / review.sets["calibration"].folder


def read_calibration(workspace: Workspace, review: Review) -> None:
    reader = ReviewReader(workspace, review.id)
    if review.task == "regression":
        reader.distributions("calibration")
    else:
        reader.scored("calibration")


def unseal(folder: Path) -> None:
    """As an earlier version left it."""
    for path in folder.rglob(f"*{SEAL}"):
        path.unlink()


def reverse(values: np.ndarray) -> np.ndarray:
    return values[::-1]


def with_nan(values: np.ndarray) -> np.ndarray:
    return np.where(np.arange(values.size).reshape(values.shape) < 100, np.nan, values)


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize("damage", [reverse, with_nan])
@pytest.mark.parametrize("mapped", [True, False])
def test_probabilities_of_another_content_are_refused(
    workspace: Workspace,
    tmp_path: Path,
    sealed: bool,
    damage: Callable[[np.ndarray], np.ndarray],
    mapped: bool,
) -> None:
    review = scored(workspace, tmp_path)
    folder = set_folder(workspace, review)
    if not sealed:
        unseal(folder)
    path = folder / "proba.npy"
    if mapped:  # in place, as a bad disk does: no new file, the same size
        values = np.lib.format.open_memmap(path, mode="r+")
        values[:] = damage(np.array(values))
        values.flush()
        del values
    else:
        np.save(path, damage(np.load(path)))
    for read in (
        lambda: ReviewReader(workspace, review.id).scored("calibration"),
        lambda: check_scored(workspace, review),
        lambda: review_data(ReviewReader(workspace, review.id)),
    ):
        with pytest.raises(InputError, match=f"of the review {review.id} is damaged") as caught:
            read()
        assert "Load page" in caught.value.fix
        assert sealed == ("proba.npy" in caught.value.what)


def test_an_old_set_is_read_and_sealed(workspace: Workspace, tmp_path: Path) -> None:
    for task in ("classification", "regression"):
        review = scored(workspace, tmp_path, task)
        folder = set_folder(workspace, review)
        unseal(folder)
        assert not check_folder(folder)
        read_calibration(workspace, review)
        assert check_folder(folder)


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize("name", ["y.npy", "distribution/mean.npy"])
def test_a_regression_of_another_content_is_refused(
    workspace: Workspace, tmp_path: Path, sealed: bool, name: str
) -> None:
    review = scored(workspace, tmp_path, "regression")
    folder = set_folder(workspace, review)
    if not sealed:
        unseal(folder)
    np.save(folder / name, np.load(folder / name)[::-1])
    with pytest.raises(InputError, match=f"of the review {review.id} is damaged"):
        ReviewReader(workspace, review.id).distributions("calibration")
    with pytest.raises(InputError, match=f"of the review {review.id} is damaged"):
        check_scored(workspace, review)


def test_a_weight_that_is_gone_does_not_leave_an_unweighted_set(
    workspace: Workspace, tmp_path: Path
) -> None:
    review = scored(workspace, tmp_path)
    folder = set_folder(workspace, review)
    np.save(folder / "weight.npy", np.ones(N))
    seal(folder / "weight.npy")
    (folder / "weight.npy").unlink()
    with pytest.raises(InputError, match="no longer kept"):
        ReviewReader(workspace, review.id).scored("calibration")


def test_rows_of_another_content_are_refused(workspace: Workspace, tmp_path: Path) -> None:
    review = scored(workspace, tmp_path)
    path = workspace.folder(review.id) / review.tables["calibration"].file
    content = bytearray(path.read_bytes())
    at = content.find(
        ReviewReader(workspace, review.id).frame("calibration").x.to_numpy()[:1].tobytes()
    )
    content[at] ^= 1
    path.write_bytes(content)
    for read in (
        lambda: ReviewReader(workspace, review.id).frame("calibration"),
        lambda: score(workspace, review.id),
    ):
        with pytest.raises(InputError, match=f"{path.name} of the review {review.id} is damaged"):
            read()


def test_a_model_of_another_content_is_refused(workspace: Workspace) -> None:
    review = start_sample(workspace, "adult_network")
    path = workspace.folder(review.id) / str(review.model_file)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    for read in (
        lambda: score(workspace, review.id),
        lambda: review_data(ReviewReader(workspace, review.id), with_model=True),
        lambda: ReviewReader(workspace, review.id).model(),
    ):
        with pytest.raises(InputError, match=f"{path.name} of the review {review.id} is damaged"):
            read()


def test_a_file_that_did_not_change_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "y.npy"
    path.write_bytes(b"0" * 100)
    old = time.time() - 60
    os.utime(path, (old, old))
    time.sleep(0.15)  # a file that was just written may change again within a tick of the clock
    times = []
    digest = hashlib.file_digest

    def counted(*arguments: object) -> object:
        times.append(1)
        return digest(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(hashlib, "file_digest", counted)
    first = digest_of(path)
    assert digest_of(path) == first
    assert len(times) == 1
    path.write_bytes(b"1" * 100)
    os.utime(path, (old, old))  # whoever changes it may set its time back
    assert digest_of(path) != first
    path.write_bytes(b"0" * 100)  # at once again: the clock may not have ticked
    os.utime(path, (old, old))
    assert digest_of(path) == first


def test_files_that_systems_leave_are_not_the_reviews(workspace: Workspace, tmp_path: Path) -> None:
    """A file manager's notes and what another thread is writing come, change and go."""
    review = scored(workspace, tmp_path)
    folder = set_folder(workspace, review)
    for sealed in (True, False):
        for name in (".DS_Store", "Thumbs.db", "._y.npy", ".0123.tmp", ".nfs000001"):
            (folder / name).write_text(f"as it was, {sealed}")
        if not sealed:
            unseal(folder)
        assert check_folder(folder) == sealed
        ReviewReader(workspace, review.id).scored("calibration")
        for name in (".DS_Store", "Thumbs.db"):
            (folder / name).write_text("changed")
        for name in ("._y.npy", ".0123.tmp", ".nfs000001"):
            (folder / name).unlink()
        ReviewReader(workspace, review.id).scored("calibration")
        assert check_folder(folder)


def test_the_files_of_another_set_are_refused_with_their_seals(
    workspace: Workspace, tmp_path: Path
) -> None:
    for task in ("classification", "regression"):
        review = scored(workspace, tmp_path, task)
        folder = set_folder(workspace, review)
        np.save(folder / "y.npy", np.load(folder / "y.npy")[::-1])
        seal(folder / "y.npy")
        assert check_folder(folder)
        with pytest.raises(InputError, match=f"of the review {review.id} is damaged"):
            read_calibration(workspace, review)


def test_a_seal_whose_write_was_lost_is_written_again(workspace: Workspace, tmp_path: Path) -> None:
    """A machine that loses power can leave an empty file."""
    review = scored(workspace, tmp_path)
    folder = set_folder(workspace, review)
    (folder / f"y.npy{SEAL}").write_text("")
    ReviewReader(workspace, review.id).scored("calibration")
    assert check_folder(folder)
    (folder / f"y.npy{SEAL}").write_text("")
    np.save(folder / "y.npy", np.load(folder / "y.npy")[::-1])
    with pytest.raises(InputError, match="is damaged"):
        ReviewReader(workspace, review.id).scored("calibration")


def state_of(workspace: Workspace, review: Review) -> tuple[Path, dict[str, object]]:
    path = workspace.folder(review.id) / "review.json"
    return path, json.loads(path.read_text())


def test_a_changed_table_without_its_seal_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    review = scored(workspace, tmp_path)
    table = workspace.folder(review.id) / review.tables["calibration"].file
    frame = pd.read_feather(table)
    frame.assign(x=-frame.x).to_feather(table, compression="uncompressed")
    table.with_name(table.name + SEAL).unlink()
    for step in (
        lambda: ReviewReader(workspace, review.id).frame("calibration"),
        lambda: score(workspace, review.id),
    ):
        with pytest.raises(InputError, match="is damaged"):
            step()


def test_a_set_that_names_another_tables_file_is_refused(
    workspace: Workspace, tmp_path: Path
) -> None:
    review = scored(workspace, tmp_path)
    frame = pd.read_csv(tmp_path / "rows.csv").iloc[::-1]
    frame.to_csv(tmp_path / "more.csv", index=False)
    review = add_table(workspace, review.id, "evaluation", tmp_path / "more.csv", "more.csv")
    path, state = state_of(workspace, review)
    state["tables"]["evaluation"]["file"] = state["tables"]["calibration"]["file"]
    time.sleep(0.2)
    path.write_text(json.dumps(state))
    ReviewReader(workspace, review.id).frame("calibration")
    with pytest.raises(InputError, match="is damaged"):
        ReviewReader(workspace, review.id).frame("evaluation")


def test_a_seal_that_is_a_folder_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "y.npy"
    np.save(path, np.arange(3))
    path.with_name(path.name + SEAL).mkdir()
    with pytest.raises(InputError, match="is damaged"):
        check_folder(tmp_path)


def test_a_table_of_an_earlier_version_is_read(workspace: Workspace, tmp_path: Path) -> None:
    review = scored(workspace, tmp_path)
    path, state = state_of(workspace, review)
    del state["tables"]["calibration"]["sha256"]
    time.sleep(0.2)
    path.write_text(json.dumps(state))
    assert len(ReviewReader(workspace, review.id).frame("calibration")) == N


def test_drafts_of_killed_openings_are_removed_once_they_are_stale(
    workspace: Workspace, opened_anew: None
) -> None:
    stale, fresh = (workspace.root / f"draft-{word}" for word in ("stale", "fresh"))
    for draft in (stale, fresh):
        draft.mkdir(parents=True)
    os.utime(stale, (0, time.time() - 7200))
    start_sample(workspace, "digits_predictions")
    assert (stale.exists(), fresh.exists()) == (False, True)
