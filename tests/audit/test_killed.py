"""Killed while a file is kept or a table is loaded: it is there whole, or not at all."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from killing import KILLS, Says, Tally, kills
from workerless import working_here

from kdcal_core.audit.files import Files
from kdcal_core.audit.signing import digest
from kdcal_core.review import ReviewReader, Workspace
from kdcal_core.review.added_files import add_table
from kdcal_core.review.steps import create_review
from kdcal_core.store.disk import PART

SAMPLE = Path(__file__).parents[2] / "sample_data" / "digits_predictions"
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")


def kill_while_a_large_file_is_kept(folder: Path, n: int, seconds: float = 0.15) -> Tally:
    moments, tally, files = random.Random(3), Tally(), Files(folder / "files")

    def keep(child: Says) -> None:
        while True:
            content = os.urandom(8 << 20)
            child.begins("keep a file")
            child.confirms(files.put(content))

    for known in kills(keep, n, seconds, moments, tally):
        there = [one for one in files.folder.glob("*/*") if not one.name.endswith(PART)]
        assert set(known) <= {one.name for one in there}
        for one in there:
            assert digest(one.read_bytes()) == one.name
            one.unlink()
    files.delete_parts()
    assert [one for one in files.folder.rglob("*") if one.is_file()] == []
    return tally


def test_while_a_large_file_is_kept(tmp_path: Path) -> None:
    kill_while_a_large_file_is_kept(tmp_path, KILLS // 2)


def kill_while_a_table_is_loaded(folder: Path, n: int, seconds: float = 0.5) -> Tally:
    moments, tally, workspace = random.Random(4), Tally(), Workspace(folder / "reviews")
    sources = {one: SAMPLE / f"{one}.parquet" for one in ("calibration", "evaluation")}
    review = create_review(workspace).id

    def load(child: Says) -> None:
        with working_here():
            while True:
                for name, path in sources.items():
                    child.begins("upload a table")
                    made = add_table(workspace, review, "calibration", path, name, target="label")
                    child.confirms(made.tables["calibration"].digest)

    for _ in kills(load, n, seconds, moments, tally):
        (found,) = (one for one, _ in workspace.reviews())
        assert found.tables or not tally.confirmed
        for table in found.tables.values():
            rows = ReviewReader(workspace, review).frame("calibration", table.column_names[:1])
            assert len(rows) == table.n_rows
            assert table.name in sources
    with working_here():
        last = add_table(workspace, review, "calibration", sources["evaluation"], "evaluation")
    assert last.tables["calibration"].name == "evaluation"
    return tally


def test_while_a_table_is_loaded_into_a_review(tmp_path: Path) -> None:
    assert kill_while_a_table_is_loaded(tmp_path, KILLS // 2).confirmed
