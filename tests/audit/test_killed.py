"""Killed while a file is kept, a table is loaded or a report is written: whole, or not there."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest
from killing import KILLS, in_child, kill_after
from workerless import working_here

from kdcal_core.audit import AuditContent
from kdcal_core.audit.files import Files
from kdcal_core.audit.report import html_report
from kdcal_core.audit.signing import digest
from kdcal_core.cli.terminal import write_file
from kdcal_core.review import ReviewReader, Workspace
from kdcal_core.review.steps import add_table, create_review
from kdcal_core.store.disk import PART

SAMPLE = Path(__file__).parents[2] / "sample_data" / "digits_predictions"
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")


def test_while_a_large_file_is_kept(tmp_path: Path) -> None:
    moments, files = random.Random(3), Files(tmp_path / "files")
    known: list[str] = []

    def keep(confirm: Callable[[str], None]) -> None:
        while True:
            confirm(files.put(os.urandom(8 << 20)))

    for _ in range(max(KILLS // 2, 4)):
        known += kill_after(*in_child(keep), moments.uniform(0.0, 0.15))
        there = [one for one in files.folder.glob("*/*") if not one.name.endswith(PART)]
        assert set(known) <= {one.name for one in there}
        for one in there:
            assert digest(one.read_bytes()) == one.name
            one.unlink()
        known.clear()
    files.delete_parts()
    assert [one for one in files.folder.rglob("*") if one.is_file()] == []


def test_while_a_table_is_loaded_into_a_review(tmp_path: Path) -> None:
    moments, workspace = random.Random(4), Workspace(tmp_path / "reviews")
    sources = {one: SAMPLE / f"{one}.parquet" for one in ("calibration", "evaluation")}
    review = create_review(workspace).id
    confirmed = 0

    def load(confirm: Callable[[str], None]) -> None:
        with working_here():
            while True:
                for name, path in sources.items():
                    made = add_table(workspace, review, "calibration", path, name, target="label")
                    confirm(made.tables["calibration"].digest)

    for _ in range(max(KILLS // 2, 4)):
        said = kill_after(*in_child(load), moments.uniform(0.0, 0.5))
        confirmed += len(said)
        (found,) = (one for one, _ in workspace.reviews())
        assert found.tables or not confirmed
        for table in found.tables.values():
            rows = ReviewReader(workspace, review).frame("calibration", table.column_names[:1])
            assert len(rows) == table.n_rows
            assert table.name in sources
    with working_here():
        last = add_table(workspace, review, "calibration", sources["evaluation"], "evaluation")
    assert last.tables["calibration"].name == "evaluation"
    assert confirmed


def test_while_a_report_is_written(tmp_path: Path, content: AuditContent) -> None:
    moments, target = random.Random(5), tmp_path / "report.html"
    reports = [html_report(one) for one in (content, replace(content, title="Another"))]
    confirmed = 0

    def write(confirm: Callable[[str], None]) -> None:
        for one in cycle(reports):
            write_file(target, one)
            confirm("written")

    for _ in range(max(KILLS // 2, 4)):
        said = kill_after(*in_child(write), moments.uniform(0.0, 0.1))
        confirmed += len(said)
        assert target.exists() or not confirmed
        assert not target.exists() or target.read_bytes() in reports
    assert confirmed
