"""Pages open folders of the server's setting only, and get the rows of all their files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kdcal_core.data import Roles, at_most
from kdcal_core.data.parquet_folder import PartedTable, parquet_files
from kdcal_core.errors import InputError
from kdcal_core.quotas import TABLE
from kdcal_core.review import (
    Workspace,
    accept_folders,
    add_table,
    create_review,
    open_doubts,
    score,
    set_roles,
)
from kdcal_core.review import folders_on_server as module
from kdcal_core.review.folders_on_server import gathered_table, server_folders


@pytest.fixture
def places(tmp_path):
    """A root with a folder of two files, another folder with one outside, and one to write into."""
    root, outside, into = (tmp_path / name for name in ("root", "outside", "into"))
    for one in (root / "scores" / "later", root / "_notes", outside, into):
        one.mkdir(parents=True)
    table = pa.table({"p": np.arange(10) / 10.0, "y": ["no", "yes"] * 5})
    pq.write_table(table.slice(0, 6), root / "scores" / "a.parquet", row_group_size=4)
    pq.write_table(table.slice(6), root / "scores" / "later" / "b.parquet")
    for one in (root / "_notes", outside):
        pq.write_table(table, one / "x.parquet")
    return root.resolve(), outside, into


def test_the_rows_of_all_files_come_in_the_order_of_names(places):
    root, _, into = places
    path = gathered_table(root / "scores", into, [root])
    found = pq.read_table(path)
    assert found["p"].to_pylist() == pytest.approx((np.arange(10) / 10.0).tolist())
    assert found["y"].to_pylist() == ["no", "yes"] * 5


def test_rows_are_drawn_from_all_files_of_a_folder_that_is_too_large(tmp_path, monkeypatch):
    root, into = tmp_path / "root", tmp_path / "into"
    (root / "scores").mkdir(parents=True)
    into.mkdir()
    p = np.arange(50_000) / 50_000.0
    y = np.where(np.random.default_rng(0).random(50_000) < p, "yes", "no")
    table = pa.table({"proba_yes": p, "y": y})
    pq.write_table(table.slice(0, 30_000), root / "scores" / "a.parquet", row_group_size=20_000)
    pq.write_table(table.slice(30_000), root / "scores" / "b.parquet")
    root = root.resolve()
    monkeypatch.setenv(TABLE.variable, "0.001")  # GiB: some 65,000 numbers a column
    monkeypatch.setenv("KDCAL_MAX_ROWS", "20000")
    with pytest.raises(InputError, match="rows") as found:
        gathered_table(root / "scores", into, [root])
    assert "Let rows be drawn" in found.value.fix
    path = gathered_table(root / "scores", into, [root], most=5_000)
    some = pq.read_table(path)["proba_yes"].to_numpy()
    np.testing.assert_array_equal(some, p[at_most(50_000, 5_000)])
    workspace = Workspace(tmp_path / "home")
    review = create_review(workspace)
    review = add_table(workspace, review.id, "calibration", path, "scores, drawn.parquet")
    assert score(workspace, review.id).sets["calibration"].n_rows == 5_000


def test_only_folders_with_tables_are_listed(places):
    root, _, _ = places
    assert server_folders([root]) == (root, root / "scores", root / "scores" / "later")


def test_a_long_list_is_cut(places, monkeypatch):
    monkeypatch.setattr(module, "MOST_FOLDERS", 2)
    assert len(server_folders([places[0]])) == 2


@pytest.mark.parametrize("name", ["../outside", "scores/../../outside", "link", "/outside"])
def test_a_way_out_of_the_roots_is_refused(places, tmp_path, name):
    root, outside, into = places
    (root / "link").symlink_to(outside)
    folder = tmp_path / "outside" if name == "/outside" else root / name
    assert folder.is_dir()
    with pytest.raises(InputError, match="may not be read"):
        gathered_table(folder, into, [root])
    assert list(into.iterdir()) == []
    assert all("outside" not in str(one) for one in server_folders([root]))


def test_a_link_to_a_file_outside_is_refused(places):
    root, outside, into = places
    (root / "scores" / "c.parquet").symlink_to(outside / "x.parquet")
    with pytest.raises(InputError, match="leads out of the folders"):
        gathered_table(root / "scores", into, [root])


def test_without_a_root_nothing_is_read(places):
    root, _, into = places
    assert server_folders([]) == ()
    with pytest.raises(InputError, match="may not be read"):
        gathered_table(root / "scores", into, [])


def test_more_than_memory_holds_is_refused_with_what_can_judge_it(places, monkeypatch):
    root, _, into = places
    table = PartedTable(parquet_files(root / "scores"))
    monkeypatch.setattr("kdcal_core.data.parquet_folder.TABLE", replace(TABLE, default=5e-7))
    with pytest.raises(
        InputError, match="would take 544 bytes in memory; the limit is 537"
    ) as found:
        table.write(into / "all.parquet")
    assert "kdcal audit run" in found.value.fix
    assert list(into.iterdir()) == []


def test_columns_of_different_kinds_are_refused(places):
    root, _, into = places
    pq.write_table(pa.table({"p": ["high"], "y": ["no"]}), root / "scores" / "c.parquet")
    with pytest.raises(InputError, match="different types") as found:
        gathered_table(root / "scores", into, [root])
    assert (found.value.file, found.value.column) == ("c.parquet", "p")


def test_faults_of_gathered_rows_name_the_file_of_the_folder(places, tmp_path):
    root, _, into = places
    table = pa.table({"p": [0.2, 0.3, 1.5], "y": ["no", "yes", "yes"], "only": [1, 2, 3]})
    pq.write_table(table, root / "scores" / "later" / "c.parquet")
    workspace = Workspace(tmp_path / "reviews")
    review = create_review(workspace)
    add_table(
        workspace, review.id, "calibration", gathered_table(root / "scores", into, [root]), "all"
    )
    roles = Roles(target="y", outputs=(("yes", "p"),))
    review = set_roles(workspace, review.id, roles, ("no", "yes"))
    (doubt,) = open_doubts(review)
    assert "'only' (not in 2 of 3 files, the first 'a.parquet')" in doubt
    assert open_doubts(accept_folders(workspace, review.id)) == ()
    with pytest.raises(InputError, match="above 1") as found:
        score(workspace, review.id)
    assert (found.value.file, found.value.row) == ("later/c.parquet", 3)
    with pytest.raises(InputError, match="other files of the table have") as found:
        set_roles(workspace, review.id, replace(roles, weight="only"), ("no", "yes"))
    assert (found.value.file, found.value.column) == ("a.parquet", "only")
