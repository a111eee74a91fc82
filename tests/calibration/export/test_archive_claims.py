"""Calibrator files whose content is a multiple of what they store are not unpacked."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.lib import format as npy

from kdcal_core.errors import InputError
from kdcal_core.jobs import run_limited
from kdcal_core.store.archive import read_archive, write_archive

ABOUT = {"kind": "calibrator", "version": 1}


def zeros(path: Path, n_bytes: int) -> Path:
    """A file of one array of zeros."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("about.json", json.dumps(ABOUT))
        with archive.open("a.npy", "w", force_zip64=True) as file:
            header = {"descr": "|u1", "fortran_order": False, "shape": (n_bytes,)}
            npy.write_array_header_1_0(file, header)
            for _ in range(n_bytes >> 20):
                file.write(bytes(1 << 20))
    return path


def test_a_file_that_unpacks_to_a_thousand_times_its_size_is_refused(tmp_path: Path) -> None:
    path = zeros(tmp_path / "zeros.kdcal", 300 << 20)
    assert path.stat().st_size < 400_000
    with pytest.raises(InputError, match=r"would unpack to 314,57.* 100 times its size"):
        read_archive(path, "calibrator")
    with pytest.raises(InputError, match="would unpack"):
        run_limited(
            "kdcal_core.store.archive:read_archive",
            {"path": str(path), "kind": "calibrator"},
            seconds=60,
            memory_bytes=500 << 20,
        )


def test_a_description_that_becomes_gigabytes_of_objects_is_refused(tmp_path: Path) -> None:
    for name, text, says in (
        ("long", "[]," * 20_000_000, "too long"),
        ("many", "[]," * 5_000_000, "5,000,00. lists and objects"),
    ):
        path = tmp_path / name
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("about.json", json.dumps(ABOUT)[:-1] + f', "x": [{text}[]]}}')
        with pytest.raises(InputError, match=says):
            read_archive(path, "calibrator")


def test_arrays_of_zeros_of_ordinary_size_are_read(tmp_path: Path) -> None:
    path = tmp_path / "ordinary.kdcal"
    write_archive(path, "calibrator", {}, {"a": np.zeros((1000, 1000))})
    assert path.stat().st_size < 80_000
    _, arrays = read_archive(path, "calibrator")
    assert arrays["a"].shape == (1000, 1000)
