"""Files that were cut off, altered, or built to do harm: one clear error, never another number."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import zipfile

import numpy as np
import pytest
from calibrator_file_cases import card, fitted, heterogeneous, scored, table
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.lib import format as npy

from kdcal_core.calibration.export import load_calibrator, save_calibrator
from kdcal_core.calibration.export.calibrator_file import Decoder
from kdcal_core.errors import InputError
from kdcal_core.store.archive import errors_name_file

FIXTURE = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
KEYS = ("sts", "kde_mon2", "cwoc", "isotonic", "venn_abers", "dirichlet", "tree")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("saved")
    for key in KEYS:
        if key == "tree":
            calibrator, rows = heterogeneous(max_depth=2)
        else:
            calibrator, rows, _, _ = fitted(key, 2)
        save_calibrator(calibrator, place / key, card("", calibrator, rows, table()))
    return place


def opened(path):
    """A file's parts, read by nothing of kdcal's."""
    with zipfile.ZipFile(path) as archive:
        about = json.loads(archive.read("about.json"))
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        arrays = {name: np.load(io.BytesIO(archive.read(name))) for name in names}
    return about, arrays


def written(path, members):
    """A zip archive with a seal that fits, whatever is in it."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.comment = bytes(71)
        for name, content in members.items():
            archive.writestr(name, content)
    return resealed(path, path.read_bytes())


def resealed(path, content):
    body = content[:-71]
    path.write_bytes(body + b"sha256:" + hashlib.sha256(body).hexdigest().encode())
    return path


def npy_bytes(array):
    file = io.BytesIO()
    npy.write_array(file, np.asarray(array), allow_pickle=False)
    return file.getvalue()


def rebuilt(path, about, arrays):
    members = {"about.json": json.dumps(about)}
    return written(path, members | {name: npy_bytes(array) for name, array in arrays.items()})


def refused(path, **given):
    with pytest.raises(InputError) as error:
        load_calibrator(path, **given)
    assert error.value.file == path.name
    return str(error.value)


@settings(max_examples=80, deadline=None, suppress_health_check=FIXTURE)
@given(st.data(), st.sampled_from(KEYS))
def test_a_file_cut_off_anywhere_is_refused(folder, data, key):
    whole = (folder / key).read_bytes()
    cut = folder / "cut"
    cut.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    refused(cut)


@settings(max_examples=250, deadline=None, suppress_health_check=FIXTURE)
@given(st.data(), st.sampled_from(KEYS))
def test_a_file_altered_anywhere_is_refused(folder, data, key):
    whole = bytearray((folder / key).read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at] ^= data.draw(st.integers(1, 255))
    altered = folder / "altered"
    altered.write_bytes(whole)
    if bytes(whole) != (folder / key).read_bytes():
        refused(altered)


def test_bytes_all_over_a_small_file_matter(folder):
    whole = (folder / "sts").read_bytes()
    # every byte of the first header and of the directory and the seal, each seventh between
    for at in {*range(60), *range(60, len(whole), 7), *range(len(whole) - 300, len(whole))}:
        altered = folder / "altered"
        altered.write_bytes(whole[:at] + bytes([whole[at] ^ 0x20]) + whole[at + 1 :])
        refused(altered)


@pytest.mark.parametrize("added", [b"\0", b"more", b"PK\x05\x06" + bytes(18)])
def test_bytes_added_at_either_end_are_refused(folder, added):
    whole = (folder / "sts").read_bytes()
    for content in (whole + added, added + whole):
        (folder / "longer").write_bytes(content)
        refused(folder / "longer")


WEIRD = st.sampled_from(
    [
        *(None, True, False, 0, -1, 1, 2, 10**6, 10**30, 0.5, -0.5, 1e308, "", "x", [], {}),
        *({"float": "nan"}, {"float": "inf"}, {"array": 0}, {"array": 10**9}, {"record": 0}),
        *(
            {"tuple": []},
            {"tuple": [{"tuple": []}]},
            {"dict": {}},
            {"unknown": 1},
            {"a": 1, "b": 2},
        ),
        *({"calibrator": {"class": "os", "parameters": {}, "state": {}}}, {"estimator": {}}),
    ]
)


def places(text, at=()):
    """Every place in a description."""
    yield at
    if isinstance(text, dict | list):
        for key, one in text.items() if isinstance(text, dict) else enumerate(text):
            yield from places(one, (*at, key))


def changed(text, at, value):
    if not at:
        return value
    text = copy.copy(text)
    text[at[0]] = changed(text[at[0]], at[1:], value)
    return text


def harmless(path):
    """It is refused, or it answers with distributions."""
    try:
        loaded = load_calibrator(path)
        proba = loaded.predict_proba(scored(2, seed=7).proba, table(seed=7))
    except InputError:
        return
    assert proba.shape == (400, 2)


@settings(max_examples=200, deadline=None, suppress_health_check=FIXTURE)
@given(st.data(), st.sampled_from(KEYS), WEIRD)
def test_a_description_with_other_values_does_no_harm(folder, data, key, value):
    about, arrays = opened(folder / key)
    at = data.draw(st.sampled_from(list(places(about))))
    harmless(rebuilt(folder / "hostile", changed(about, at, value), arrays))


def other_arrays(array, data):
    flat = array.astype(np.float64, copy=True).reshape(-1)
    how = data.draw(st.sampled_from(["value", "shape", "type", "empty", "order"]))
    if how == "shape":
        return array.reshape(-1, 1) if array.ndim == 1 else array.reshape(-1)[:-1]
    if how == "type":
        return array.astype(data.draw(st.sampled_from(["f4", "i8", "u1", "?", "i4", "f8"])))
    if how == "empty" or not flat.size:
        return array.reshape(-1)[:0]
    if how == "order":
        return array[::-1].copy()
    odd = data.draw(st.sampled_from([np.nan, np.inf, -np.inf, -1.0, 2.0, 255.0, 1e30]))
    flat[data.draw(st.integers(0, flat.size - 1))] = odd
    with np.errstate(invalid="ignore", over="ignore"):
        return flat.astype(array.dtype).reshape(array.shape)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(max_examples=200, deadline=None, suppress_health_check=FIXTURE)
@given(st.data(), st.sampled_from(KEYS))
def test_arrays_of_other_values_and_shapes_do_no_harm(folder, data, key):
    about, arrays = opened(folder / key)
    if arrays:
        name = data.draw(st.sampled_from(sorted(arrays)))
        arrays[name] = other_arrays(arrays[name], data)
    harmless(rebuilt(folder / "hostile", about, arrays))


def test_a_newer_version_and_another_kind_are_reported(folder):
    about, arrays = opened(folder / "sts")
    said = refused(rebuilt(folder / "newer", {**about, "version": 4}, arrays))
    assert "newer kdcal" in said
    said = refused(rebuilt(folder / "other", {**about, "kind": "KernelDensityForest"}, arrays))
    assert "contains a KernelDensityForest" in said
    about["calibrator"]["class"] = "os.system"
    assert "does not know" in refused(rebuilt(folder / "class", about, arrays))


def test_state_under_names_that_are_no_state_is_refused(folder):
    for name in ("__class__", "predict_proba", "fit", "__dict__", "_note"):
        about, arrays = opened(folder / "sts")
        about["calibrator"]["state"][name] = 1
        assert "contradicts itself" in refused(rebuilt(folder / "names", about, arrays))


def test_a_file_without_a_seal_is_refused(folder):
    about, arrays = opened(folder / "sts")
    path = folder / "unsealed"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("about.json", json.dumps(about))
        for name, array in arrays.items():
            archive.writestr(name, npy_bytes(array))
    assert "seal" in refused(path)


def test_bombs_and_lying_headers_are_refused(folder):
    about, arrays = opened(folder / "sts")
    (name, *_) = arrays
    header = io.BytesIO()
    npy.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    lies = {
        "huge": header.getvalue(),
        "objects": b"\x93NUMPY\x01\x00"
        + b"\x46\x00"
        + b"{'descr': '|O', 'shape': (1,), 'fortran_order': False}".ljust(70),
        "text": b"no array at all",
        "empty": b"",
    }
    for what, content in lies.items():
        members = {"about.json": json.dumps(about)}
        members |= {one: npy_bytes(array) for one, array in arrays.items()}
        refused(written(folder / what, members | {name: content}))
    refused(written(folder / "deep", {"about.json": "[" * 100_000}))
    refused(written(folder / "long", {"about.json": " " * (1 << 27)}))
    refused(written(folder / "none", {}))
    bomb = written(folder / "bomb", {"about.json": json.dumps(about), name: bytes(1 << 20)})
    content = bomb.read_bytes()
    size = (1 << 20).to_bytes(4, "little")
    assert size in content
    refused(resealed(bomb, content.replace(size, b"\xfe\xff\xff\xff")))


def test_content_beyond_the_free_memory_is_not_unpacked(folder, monkeypatch):
    monkeypatch.setattr("kdcal_core.memory.available_bytes", lambda: 1000)
    assert "memory" in refused(folder / "kde_mon2")


def test_what_is_no_file_is_reported(folder):
    (folder / "text").write_text("hello")
    (folder / "nothing").write_bytes(b"")
    for name in ("text", "nothing", "folder"):
        (folder / "folder").mkdir(exist_ok=True)
        refused(folder / name)
    assert "cannot be opened" in refused(folder / "no such file")


def test_numbers_too_large_to_compute_with_are_refused(folder, tmp_path):
    for key, size in (("kde_mon2", 1e308), ("dirichlet", -1e308)):
        about, arrays = opened(folder / key)
        tried = 0
        for name, array in arrays.items():
            if array.dtype != np.float64 or (array.min() >= 0 and array.max() <= 1):
                continue
            other = {**arrays, name: np.full_like(array, size)}
            path = rebuilt(tmp_path / "large", about, other)
            with pytest.raises(InputError, match="contradicts itself"):
                load_calibrator(path)
            tried += 1
        assert tried


def test_values_in_values_without_end_are_one_error():
    value = 0
    for _ in range(5000):
        value = {"tuple": [value]}
    with pytest.raises(InputError, match="contradicts itself"), errors_name_file("deep"):
        Decoder({}, []).value(value)
