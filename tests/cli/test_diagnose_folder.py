"""``kdcal diagnose --predictions FOLDER`` reports what it does of one file with the same rows."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kdcal_core.cli import main
from kdcal_core.data.parquet_folder import ROOTS


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A folder of two files, and one file with the same rows."""
    root = tmp_path_factory.mktemp("diagnose")
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    table = pa.table({"p_yes": p, "y": np.where(rng.random(3000) < p**1.3, "yes", "no")})
    folder = root / "parts"
    folder.mkdir()
    pq.write_table(table.slice(0, 1700), folder / "a.parquet", row_group_size=500)
    pq.write_table(table.slice(1700), folder / "b.parquet")
    pq.write_table(table, root / "whole.parquet")
    return folder, root / "whole.parquet"


def run(capsys, *arguments):
    code = main(["diagnose", "--target", "y", *map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_numbers_are_those_of_one_file(places, capsys):
    folder, whole = places
    code, out, err = run(capsys, "--predictions", folder, "--event", "yes", "--json", "-")
    assert (code, err) == (0, "")
    code, other, _ = run(capsys, "--predictions", whole, "--event", "yes", "--json", "-")
    ours, theirs = (json.loads(text) for text in (out, other))
    assert ours["inputs"]["calibration"]["rows"] == 3000
    assert ours["inputs"]["calibration"]["files"] == 2
    (ours,), (theirs,) = ours["sets"], theirs["sets"]
    assert ours["n"] == theirs["n"]
    assert ours["classes"] == theirs["classes"]
    assert ours["confusion"] == theirs["confusion"]
    assert ours["findings"] == theirs["findings"]
    assert ours["event"] == theirs["event"] == "yes"
    mine = [one["label"] for one in ours["estimates"]]
    assert mine == [one["label"] for one in theirs["estimates"]]
    for a, b in zip(ours["reliability"], theirs["reliability"], strict=True):
        for part in ("n", "confidence", "frequency", "low", "high"):
            assert a[part] == pytest.approx(b[part], abs=1e-12)
    for a, b in zip(ours["estimates"], theirs["estimates"], strict=True):
        assert a["value"] == pytest.approx(b["value"], abs=2e-3)
        assert a["meaning"] == b["meaning"]


def test_the_report_says_what_is_not_available(places, capsys):
    code, out, _ = run(capsys, "--predictions", places[0])
    assert code == 0
    assert "parts, 3,000 rows" in out
    assert "2 files and 5 row groups were read" in out
    assert "were read.\nThe results are about the confidence in the predicted class." in out
    assert "--event yes.\n" in out
    assert "not available for a folder" in out
    assert "\nAccuracy" in out


@pytest.mark.parametrize(
    ("more", "what"),
    [
        (["--weight", "p_yes"], "--weight"),
        (["--bins", "51"], "51"),
        (["--evaluation", "x.csv"], "--evaluation"),
    ],
)
def test_what_needs_the_rows_is_refused(places, capsys, more, what):
    code, out, err = run(capsys, "--predictions", places[0], *more)
    assert (code, out) == (2, "")
    assert what in err


def test_a_file_that_is_read_is_never_overwritten(places, capsys):
    part = places[0] / "a.parquet"
    before = part.read_bytes()
    code, _, err = run(capsys, "--predictions", places[0], "--json", part, "--force")
    assert code == 2
    assert "one of those that are read" in err
    assert part.read_bytes() == before


def test_only_folders_of_the_setting_are_read(places, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv(ROOTS, str(tmp_path))
    code, _, err = run(capsys, "--predictions", places[0])
    assert code == 2
    assert "may not be read" in err
