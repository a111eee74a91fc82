"""A folder's summary is that of its rows, and a faulty value is named with its place."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kdcal_core.data import Roles, ScoredSet
from kdcal_core.data.parquet_folder import PartedTable, parquet_files
from kdcal_core.diagnostics.summaries import (
    class_groups,
    pit_groups,
    summarise,
    summarise_regression,
)
from kdcal_core.distributions import Empirical, Normal
from kdcal_core.errors import InputError
from kdcal_core.review.folder_summary import (
    sample_of_folder,
    summarise_table,
    summary_of_folder,
)
from kdcal_core.review.folder_tallies import DeclaredGroups

ROLES = Roles(target="y", outputs=(("yes", "p"),))
CLASSES = ("no", "yes")


def made(folder, n=1000, files=3, spoil=None):
    """Files of a binary prediction; ``spoil`` changes the columns of the last file."""
    rng = np.random.default_rng(0)
    p = rng.random(n)
    y = rng.random(n) < p
    cut = np.linspace(0, n, files + 1).astype(int)
    for at, (a, b) in enumerate(pairwise(cut)):
        columns = {"p": p[a:b].tolist(), "y": np.where(y[a:b], "yes", "no").tolist()}
        if spoil is not None and at == files - 1:
            spoil(columns)
        columns["other"] = ["unused"] * (b - a)
        pq.write_table(pa.table(columns), folder / f"part-{at}.parquet", row_group_size=100)
    return p, y


def test_a_worker_summarises_all_rows(tmp_path):
    folder, first, second = (tmp_path / name for name in ("in", "sample", "summary"))
    for one in (folder, first, second):
        one.mkdir()
    p, y = made(folder)
    path, size = sample_of_folder(folder, first)
    assert (size.files, size.groups, size.rows) == (3, 12, 1000)
    assert size.file_rows == (333, 333, 334)
    assert pq.read_metadata(path).num_columns == 3
    shares = []
    found = summary_of_folder(
        folder, ROLES, CLASSES, second, progress=lambda share, note: shares.append(share)
    )
    wanted = summarise(np.column_stack([1.0 - p, p]), y.astype(int), CLASSES)
    assert found.digest == wanted.digest
    assert shares[-1] == 1.0


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_and_row_groups_do_not_change_the_bytes(tmp_path, threads):
    p, y = made(tmp_path, n=700)
    found = summarise_table(PartedTable(parquet_files(tmp_path)), ROLES, CLASSES, threads=threads)
    wanted = summarise(np.column_stack([1.0 - p, p]), y.astype(int), CLASSES)
    assert found.digest == wanted.digest


def fault(column, value):
    def spoil(columns):
        columns[column][150] = value

    return spoil


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (fault("p", float("nan")), "missing"),
        (fault("p", None), "missing"),
        (fault("p", 1.5), "below 0 or above 1"),
        (fault("p", float("inf")), "infinite|above 1"),
        (fault("y", "perhaps"), "perhaps"),
        (fault("y", None), "missing"),
    ],
)
def test_a_fault_is_named_with_file_row_group_and_row(tmp_path, spoil, what):
    made(tmp_path, n=900, spoil=spoil)
    with pytest.raises(InputError, match=what) as found:
        summarise_table(PartedTable(parquet_files(tmp_path)), ROLES, CLASSES)
    assert found.value.file == "part-2.parquet, row group 2"
    assert found.value.row == 151


def test_a_cancelled_pass_ends(tmp_path):
    made(tmp_path)

    class StopError(Exception):
        pass

    def stop(share, note):
        raise StopError

    with pytest.raises(StopError):
        summarise_table(PartedTable(parquet_files(tmp_path)), ROLES, CLASSES, stop)


def test_what_needs_the_rows_is_refused(tmp_path):
    made(tmp_path)
    timed = Roles(target="y", outputs=(("yes", "p"),), time="other")
    with pytest.raises(InputError, match="A time is no number and no date"):
        summary_of_folder(tmp_path, timed, CLASSES, tmp_path)
    (tmp_path / "summary").mkdir()
    alone = replace(timed, time=None, cluster="other")
    with pytest.raises(InputError, match="All rows are of one cluster") as found:
        summary_of_folder(tmp_path, alone, CLASSES, tmp_path / "summary")
    assert (found.value.file, found.value.column) == (str(tmp_path), "other")
    numbers = Roles(task="regression", target="y", family="point", parameters=(("mean", "p"),))
    with pytest.raises(InputError, match="single numbers cannot be given as a folder") as found:
        summary_of_folder(tmp_path, numbers, (), tmp_path)
    assert found.value.file == str(tmp_path)


SPREAD = Roles(task="regression", target="y", family="normal",
               parameters=(("mean", "m"), ("std", "s")))  # fmt: skip


def forecasts(folder, n=900, value=None):
    """Files of a regression's predictions; ``value`` is the 700th spread."""
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=n), rng.uniform(0.5, 2.0, n)
    y = mean + std * rng.normal(size=n)
    if value is not None:
        std[699] = value
    table = pa.table({"m": mean, "s": std, "y": y, "other": ["unused"] * n})
    for at in range(3):
        part = table.slice(at * n // 3, n // 3)
        pq.write_table(part, folder / f"part-{at}.parquet", row_group_size=70)
    return mean, std, y


@pytest.mark.parametrize("threads", [1, 3])
def test_distributions_are_summarised_with_the_same_bytes(tmp_path, threads):
    mean, std, y = forecasts(tmp_path)
    found = summarise_table(PartedTable(parquet_files(tmp_path)), SPREAD, (), threads=threads)
    assert found.digest == summarise_regression(Normal(mean, std), y).digest


def test_samples_get_their_place_from_the_whole_table(tmp_path):
    rng = np.random.default_rng(0)
    drawn, y = rng.normal(size=(600, 4)), rng.normal(size=600)
    table = pa.table({f"s{at}": drawn[:, at] for at in range(4)} | {"y": y})
    pq.write_table(table.slice(0, 250), tmp_path / "a.parquet", row_group_size=60)
    pq.write_table(table.slice(250), tmp_path / "b.parquet")
    columns = tuple((f"{at + 1}", f"s{at}") for at in range(4))
    roles = Roles(task="regression", target="y", family="samples", parameters=columns)
    found = summarise_table(PartedTable(parquet_files(tmp_path)), roles, ())
    assert found.digest == summarise_regression(Empirical(drawn), y).digest


@pytest.mark.parametrize(("value", "what"), [(0.0, "above zero"), (float("nan"), "missing")])
def test_a_faulty_distribution_is_named_with_its_place(tmp_path, value, what):
    forecasts(tmp_path, value=value)
    with pytest.raises(InputError, match=what) as found:
        summarise_table(PartedTable(parquet_files(tmp_path)), SPREAD, ())
    assert (found.value.file, found.value.column) == ("part-2.parquet, row group 2", "s")
    assert found.value.row == 100


GROUPS = DeclaredGroups(("ward", "old", "stage"), 1)


def grouped(folder, n=900, files=3, size=70, stage=None):
    """Files of a binary prediction with groups; the first lacks values, so its types differ."""
    rng = np.random.default_rng(2)
    p = rng.random(n)
    y = (rng.random(n) < p).astype(int)
    frame = pd.DataFrame(
        {"ward": rng.choice(["A", "B", "C"], n), "old": rng.random(n) < 0.4,
         "stage": rng.integers(0, 4, n).astype(float)}
    )  # fmt: skip
    frame["old"] = frame["old"].astype("boolean")
    frame.loc[5:9, :] = None
    cut = np.linspace(0, n, files + 1).astype(int)
    for at, (a, b) in enumerate(pairwise(cut)):
        part = pa.Table.from_pandas(frame[a:b], preserve_index=False)
        if at:
            part = part.set_column(2, "stage", part["stage"].cast(pa.int64()))
            part = part.set_column(0, "ward", part["ward"].dictionary_encode())
        if at and stage is not None:
            part = part.set_column(2, "stage", stage(part["stage"]))
        part = part.append_column("p", pa.array(p[a:b]))
        part = part.append_column("y", pa.array(np.where(y[a:b], "yes", "no")))
        pq.write_table(part, folder / f"part-{at}.parquet", row_group_size=size)
    return frame, ScoredSet(np.column_stack([1.0 - p, p]), y, CLASSES, "", "calibration")


@pytest.mark.parametrize(
    ("files", "size", "threads"), [(1, 1000, 1), (3, 70, 1), (3, 70, 2), (7, 20, 5)]
)
def test_groups_are_the_same_for_any_cut_and_threads(tmp_path, files, size, threads):
    frame, scored = grouped(tmp_path, files=files, size=size)
    table = PartedTable(parquet_files(tmp_path))
    found = summarise_table(table, ROLES, CLASSES, threads=threads, groups=GROUPS)
    wanted = summarise(scored.proba, scored.y, CLASSES)
    assert found.digest == wanted.digest
    assert found.groups.digest == class_groups(frame, scored, 1).digest
    assert summarise_table(table, ROLES, CLASSES).groups is None


def test_a_worker_counts_groups(tmp_path):
    folder, into = tmp_path / "in", tmp_path / "out"
    for one in (folder, into):
        one.mkdir()
    frame, scored = grouped(folder)
    found = summary_of_folder(folder, ROLES, CLASSES, into, groups=GROUPS)
    assert found.groups.digest == class_groups(frame, scored, 1).digest


def test_groups_of_distributions_are_the_same_for_any_threads(tmp_path):
    mean, std, y = forecasts(tmp_path)
    wanted = pit_groups(pd.DataFrame({"other": ["unused"] * len(y)}), Normal(mean, std).cdf(y))
    for threads in (1, 3):
        table, asked = PartedTable(parquet_files(tmp_path)), DeclaredGroups(("other",))
        found = summarise_table(table, SPREAD, (), threads=threads, groups=asked)
        assert found.groups.digest == wanted.digest


@pytest.mark.parametrize(
    ("stage", "what"),
    [
        (lambda column: pa.array([f"s{one}" for one in column.to_pylist()]), "text in one part"),
        (lambda column: pa.array(np.arange(300) / 7.0), "200 different values"),
        (lambda column: pa.array(np.arange(300).astype("datetime64[s]")), "dates"),
    ],
)
def test_a_group_that_cannot_be_counted_is_named(tmp_path, stage, what):
    grouped(tmp_path, size=300, stage=stage)
    with pytest.raises(InputError, match=what) as found:
        summarise_table(PartedTable(parquet_files(tmp_path)), ROLES, CLASSES, groups=GROUPS)
    assert found.value.column == "stage"
