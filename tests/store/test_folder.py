"""Results in a folder: written whole, read as they were, and checked once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kdcal_core.errors import InputError
from kdcal_core.store import keep_array, load, load_part, save
from kdcal_core.store.folder import read_array


@dataclass(frozen=True)
class Settings:
    radii: tuple[float, ...] = (0.25, 1.0)


@dataclass(frozen=True, eq=False)
class Result:
    settings: Settings
    few: NDArray[np.float64]
    many: NDArray[np.int64]
    again: NDArray[np.int64]


@pytest.fixture
def folder(tmp_path):
    many = np.arange(1000)
    save(tmp_path, Result(Settings(), np.array([np.nan]), many, many.copy()))
    return tmp_path


def refused(read):
    with pytest.raises(InputError, match="no longer kept in full"):
        read()


def test_a_result_comes_back_with_equal_arrays_once(folder):
    found = load(folder, Result)
    assert found.settings == Settings()
    assert np.isnan(found.few).all()
    assert found.many.tolist() == list(range(1000))
    assert found.again is found.many
    assert not found.many.flags.writeable
    assert len(list(folder.glob("*.npy"))) == 1


def test_one_part_is_read_alone_after_every_file_is_checked(folder):
    assert load_part(folder, "settings", Settings) == Settings()
    for path in folder.glob("*.npy"):
        path.unlink()
    refused(lambda: load(folder, Result))
    refused(lambda: load_part(folder, "settings", Settings))


@pytest.mark.parametrize("change", [b"", b"[1]", b"{}", b"[" * 200_000, None])
def test_a_record_that_was_changed_is_noticed(folder, change):
    path = folder / "record.json"
    path.unlink() if change is None else path.write_bytes(change)
    refused(lambda: load(folder, Result))


def test_a_record_of_another_version_or_of_huge_numbers_is_noticed(folder):
    path = folder / "record.json"
    text = json.loads(path.read_text())
    path.write_text(json.dumps({**text, "version": text["version"] + 1}))
    refused(lambda: load(folder, Result))
    path.write_text(json.dumps(text).replace("0.25", "1" + "0" * 400))
    refused(lambda: load(folder, Result))


def test_a_file_that_was_changed_added_or_lost_is_noticed(folder):
    (path,) = folder.glob("*.npy")
    whole = path.read_bytes()
    for harmed in (whole[:-1] + b"\xff", whole[:-8], b"PK\x03\x04"):
        path.write_bytes(harmed)
        refused(lambda: load(folder, Result))
    path.write_bytes(whole)
    (folder / "more").mkdir()
    (folder / "more" / "file.txt").write_text("text")
    refused(lambda: load(folder, Result))


def test_files_below_the_folder_belong_to_the_result(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "model.zip").write_bytes(b"model")
    save(tmp_path, Settings())
    assert load(tmp_path, Settings) == Settings()
    (tmp_path / "inner" / "model.zip").write_bytes(b"other")
    refused(lambda: load(tmp_path, Settings))


@dataclass(frozen=True, eq=False)
class Several:
    by_name: Mapping[str, Settings]
    arrays: Mapping[str, NDArray[np.int64]]


def test_a_mapping_is_read_key_by_key(tmp_path):
    arrays = {"a": np.arange(500), "b": np.arange(1000)}
    save(tmp_path, Several({"x": Settings((3.0,))}, arrays))
    found = load(tmp_path, Several)
    assert dict(found.by_name) == {"x": Settings((3.0,))}
    assert list(found.arrays) == ["a", "b"]
    for path in tmp_path.glob("*.npy"):
        if len(np.load(path)) == 1000:
            path.unlink()
    assert found.arrays["a"].tolist() == list(range(500))
    refused(lambda: found.arrays["b"])
    with pytest.raises(KeyError):
        found.arrays["c"]


@dataclass(frozen=True)
class WithFiles:
    folder: Path
    model: Path | None


def test_paths_follow_the_folder_and_never_leave_it(tmp_path):
    folder, moved = tmp_path / "draft", tmp_path / "kept"
    folder.mkdir()
    save(folder, WithFiles(folder, folder / "model.zip"))
    folder.rename(moved)
    assert load(moved, WithFiles) == WithFiles(moved, moved / "model.zip")
    path = moved / "record.json"
    for outside in ("../model.zip", "/etc/passwd"):
        path.write_text(path.read_text().replace("model.zip", outside))
        refused(lambda: load(moved, WithFiles))
        path.write_text(path.read_text().replace(outside, "model.zip"))


def test_a_result_of_another_kind_is_refused(folder):
    refused(lambda: load(folder, Settings))


def test_a_name_of_an_array_never_leaves_the_folder(folder, tmp_path):
    np.save(tmp_path.parent / "outside.npy", np.arange(3))
    path = folder / "record.json"
    text = json.loads(path.read_text())
    text["result"]["many"] = {"array": "../outside"}
    path.write_text(json.dumps(text))
    refused(lambda: load(folder, Result))


def test_large_arrays_are_mapped_and_none_can_be_written(tmp_path):
    for n in (200, 300_000):
        kept = keep_array(tmp_path, np.arange(n))
        assert kept.tolist() == list(range(n))
        assert not kept.flags.writeable
        assert isinstance(kept.base, np.memmap) == (n == 300_000)


def test_what_was_kept_ahead_is_not_written_again(tmp_path):
    kept = keep_array(tmp_path, np.arange(1000))
    (path,) = tmp_path.glob("*.npy")
    before = path.stat().st_mtime_ns
    save(tmp_path, Result(Settings(), np.zeros(1), kept, kept))
    assert [one.stat().st_mtime_ns for one in tmp_path.glob("*.npy")] == [before]
    assert load(tmp_path, Result).many.tolist() == list(range(1000))


def test_an_array_larger_than_any_memory_or_with_objects_is_refused(tmp_path):
    said = {"descr": "<f8", "fortran_order": False, "shape": (10**13, 2)}
    with (tmp_path / "huge.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, said)
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    for name in ("huge", "objects", "none"):
        with pytest.raises((OSError, ValueError, MemoryError)):
            read_array(tmp_path / f"{name}.npy")
