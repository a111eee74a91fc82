"""A gate of a folder of files judges as one of a table of the same rows, or says why not."""

from __future__ import annotations

import html
import io
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from audit_people import ME
from audit_place import Place
from test_gate import SCHEMA

from kdcal_core.audit import (
    AuditConfig,
    Gate,
    config_of,
    content_bytes,
    gate_json,
    gate_summary,
    read_config,
    read_content,
    run_gate,
    verify,
)
from kdcal_core.audit.gate import load_gate
from kdcal_core.audit.gate_files import load_files
from kdcal_core.audit.report import html_report, markdown_report
from kdcal_core.checks import CHECKS, NEEDS_ROWS
from kdcal_core.cli import main
from kdcal_core.data.parquet_folder import ROOTS
from kdcal_core.errors import InputError
from kdcal_core.review import Limit, NamedFiles, folder_review, folder_summary

pytestmark = pytest.mark.usefixtures("work_here")

FROM_SUMMARY = tuple(code for code, one in CHECKS.items() if one.from_summary is not None)
NEED_THE_ROWS = ("KC201", "KC203")
CODES = (*FROM_SUMMARY, *NEED_THE_ROWS)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """An empty place in a file. A gate asks the record alone, whose tests try both databases."""
    return Place(tmp_path / "audits", None)


def table_of(k: int, sharpness: float, n: int = 3000) -> pa.Table:
    rng = np.random.default_rng(k)
    odds = rng.normal(0.0, 1.5, (n, k))
    true, said = np.exp(odds), np.exp(sharpness * odds)
    true, said = (one / one.sum(axis=1, keepdims=True) for one in (true, said))
    y = (rng.random((n, 1)) > true.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    columns = {f"proba_c{at}": said[:, at] for at in range(k)}
    columns |= {"y": [f"c{one}" for one in y], "place": np.arange(n) % 3, **wards(n)}
    return pa.table(columns)


def forecasts_of(sharpness: float, n: int = 3000) -> pa.Table:
    """A regression's predictions: the standard deviation is too small by so much."""
    rng = np.random.default_rng(5)
    mean, std = rng.normal(50.0, 3.0, n), rng.uniform(0.5, 2.0, n)
    y = mean + std * rng.normal(size=n)
    columns = {"mean": mean, "std": std / sharpness, "y": y, "place": np.arange(n) % 3, **wards(n)}
    return pa.table(columns)


def wards(n: int) -> dict[str, Any]:
    """Columns of groups: a text with few rows of one value and with gaps, and a number."""
    rng = np.random.default_rng(11)
    ward = rng.choice(["north", "south", "=<b>east</b>"], n, p=[0.6, 0.37, 0.03])
    ward = np.where(rng.random(n) < 0.05, None, ward)
    return {"ward": pa.array(ward, pa.string()), "age": rng.integers(20, 80, n)}


def written(root: Path, k: int, sharpness: float) -> tuple[Path, Path]:
    """The same rows as a folder of three files, and as one file; a regression's for no class."""
    table, folder = table_of(k, sharpness) if k else forecasts_of(sharpness), root / "parts"
    (folder / "later").mkdir(parents=True)
    pq.write_table(table.slice(0, 1200), folder / "a.parquet", row_group_size=500)
    pq.write_table(table.slice(1200, 1000), folder / "b.parquet")
    pq.write_table(table.slice(2200), folder / "later" / "c.parquet")
    pq.write_table(table, root / "whole.parquet")
    return folder, root / "whole.parquet"


def config(path: Path, **more: object) -> AuditConfig:
    files = NamedFiles(target="y", predictions=str(path))
    return replace(AuditConfig("A gate", files, codes=CODES), **more)


GROUPS: dict[str, Any] = {
    "groups": ("ward", "age"),  # of which some are small, so the limits are wide
    "limits": {"KC008": Limit(-0.4, 0.4), "KC025": Limit(-0.45, 0.45)},
}


def both(root: Path, k: int, sharpness: float, **more: object) -> tuple[Gate, Gate]:
    folder, whole = written(root, k, sharpness)
    more = {**GROUPS, **more}
    return run_gate(config(folder, **more)), run_gate(config(whole, **more))


@pytest.fixture(scope="module")
def fair(work_here: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Gate, Gate]:
    return both(tmp_path_factory.mktemp("fair"), 2, 1.0)


@pytest.fixture(scope="module")
def sharp(work_here: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Gate, Gate]:
    return both(tmp_path_factory.mktemp("sharp"), 3, 2.5, limits={})


@pytest.fixture(scope="module")
def spread(work_here: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Gate, Gate]:
    return both(tmp_path_factory.mktemp("spread"), 0, 1.0)


@pytest.fixture(scope="module")
def narrow(work_here: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Gate, Gate]:
    return both(tmp_path_factory.mktemp("narrow"), 0, 2.5, limits={})


@pytest.mark.parametrize("gates", ["fair", "sharp", "spread", "narrow"])
def test_verdicts_and_numbers_are_those_of_one_table(
    gates: str, request: pytest.FixtureRequest
) -> None:
    ours, theirs = request.getfixturevalue(gates)
    assert (ours.verdict, ours.exit_code) == (theirs.verdict, theirs.exit_code)
    assert ours.verdict == ("pass" if gates in ("fair", "spread") else "fail")
    mine, other = ours.content, theirs.content
    assert mine.checked.n == other.checked.n == 3000
    assert mine.limits == other.limits
    assert replace(mine.subject, tables=(), doubts=()) == replace(
        other.subject, tables=(), doubts=()
    )
    for a, b in zip(mine.checked.results, other.checked.results, strict=True):
        assert a.code == b.code
        if a.code not in FROM_SUMMARY:
            assert (a.verdict, a.why_not, a.parts) == (None, NEEDS_ROWS, ())
            continue
        assert (a.verdict, a.why_not) == (b.verdict, b.why_not)
        for part, known in zip(a.parts, b.parts, strict=True):
            assert (part.name, part.verdict) == (known.name, known.verdict)
            one, two = part.estimate, known.estimate
            if a.code in ("KC008", "KC025"):
                assert one.value == pytest.approx(two.value, abs=1e-8)
            assert (one.name, one.label, one.n) == (two.name, two.label, two.n)
            np.testing.assert_allclose(
                (one.value, one.low, one.high), (two.value, two.low, two.high), rtol=0.01, atol=2e-3
            )
    labels = [one.label for one in mine.estimates]
    assert labels == [one.label for one in other.estimates if one.label in labels]
    of_rows = {"regions", "confidence"}  # a summary has none, and the guide says so
    assert {one.key for one in mine.charts} == {one.key for one in other.charts} - of_rows
    for chart in mine.charts:
        known = next(one for one in other.charts if one.key == chart.key)
        assert chart.finding == known.finding


@pytest.mark.parametrize("k", [2, 0])
def test_weighted_rows_are_judged_as_those_of_one_table(k: int, tmp_path: Path) -> None:
    folder, whole = written(tmp_path, k, 1.0)
    gates = []
    for path in (folder, whole):
        asked = config(path)
        gates.append(run_gate(replace(asked, files=replace(asked.files, weight="age"))))
    ours, theirs = (one.content.checked for one in gates)
    assert (gates[0].verdict, ours.n) == (gates[1].verdict, 3000)
    for a, b in zip(ours.results, theirs.results, strict=True):
        if a.code not in FROM_SUMMARY or a.code == "KC203":
            continue
        assert a.verdict == b.verdict, a.code
        for part, known in zip(a.parts, b.parts, strict=True):
            one, two = part.estimate, known.estimate
            room = 0.1 * (two.high - two.low) + 3e-3
            assert one.value == pytest.approx(two.value, abs=room), (a.code, one.name)
            assert (one.low, one.high) == pytest.approx((two.low, two.high), abs=2 * room), a.code


def test_the_folder_is_named_with_what_identifies_it(fair: tuple[Gate, Gate]) -> None:
    ours, theirs = fair
    jsonschema.validate(gate_json(ours), SCHEMA)
    (table,) = gate_json(ours)["tables"]
    assert (table["name"], table["rows"], table["files"]) == ("parts", 3000, 3)
    assert "files" not in gate_json(theirs)["tables"][0]
    assert read_content(content_bytes(ours.content)) == ours.content
    assert ours.content.rows_digest != theirs.content.rows_digest


def test_a_regression_has_its_report(spread: tuple[Gate, Gate], tmp_path: Path) -> None:
    ours, _ = spread
    jsonschema.validate(gate_json(ours), SCHEMA)
    assert ours.content.subject.task == "regression"
    keys = ["pit", "pit_ecdf", "coverage", "quantiles", "groups"]
    assert [one.key for one in ours.content.charts] == keys
    page = html.unescape(html_report(ours.content).decode())
    assert "PIT histogram" in page
    assert NEEDS_ROWS in page
    assert "3 files of rows, of which counts are kept" in markdown_report(ours.content)
    assert read_content(content_bytes(ours.content)) == ours.content
    folder, _ = written(tmp_path, 0, 1.0)
    again = run_gate(config(folder, **GROUPS))
    assert content_bytes(again.content) == content_bytes(ours.content)


@pytest.mark.usefixtures("no_pictures")
def test_the_digest_is_that_of_sha256sum(tmp_path: Path) -> None:
    folder, _ = written(tmp_path, 2, 1.0)
    gate = run_gate(config(folder, codes=("KC002",)))
    command = "sha256sum a.parquet b.parquet later/c.parquet | sha256sum"
    said = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, check=True)
    assert gate.content.subject.tables[0].digest == said.stdout.decode()[:64]


def test_the_report_says_that_counts_were_judged(fair: tuple[Gate, Gate]) -> None:
    ours, theirs = fair
    page = html.unescape(html_report(ours.content).decode())
    assert "lie in many files, which may be larger than memory" in page
    assert NEEDS_ROWS in page
    assert "lie in many files" not in html_report(theirs.content).decode()
    assert "3 files of rows, of which counts are kept" in markdown_report(ours.content)
    assert "A table of predictions" in markdown_report(theirs.content)


def test_the_same_folder_gives_the_same_bytes(fair: tuple[Gate, Gate], tmp_path: Path) -> None:
    folder, _ = written(tmp_path, 2, 1.0)
    again = run_gate(config(folder, **GROUPS))
    assert content_bytes(again.content) == content_bytes(fair[0].content)


@pytest.mark.parametrize("gates", ["fair", "sharp", "spread", "narrow"])
def test_groups_are_those_of_one_table(gates: str, request: pytest.FixtureRequest) -> None:
    """Counts and names of every group, in the check and in the chart's table."""
    ours, theirs = request.getfixturevalue(gates)
    code = "KC008" if gates in ("fair", "sharp") else "KC025"
    found, wanted = (
        next(one for one in each.content.checked.results if one.code == code)
        for each in (ours, theirs)
    )
    assert len(found.parts) > 10
    names = {one.name for one in found.parts}
    assert {"ward: north", "ward: missing", "ward: =<b>east</b>", "all others"} < names
    assert [(one.name, one.verdict, one.estimate.n) for one in found.parts] == [
        (one.name, one.verdict, one.estimate.n) for one in wanted.parts
    ]
    assert ("fail" in {one.verdict for one in found.parts}) == (gates in ("sharp", "narrow"))
    tables = [
        pd.read_csv(io.StringIO(next(c for c in each.content.charts if c.key == "groups").table))
        for each in (ours, theirs)
    ]
    assert list(tables[0]) == list(tables[1])
    for column in tables[0].columns.drop(list(tables[0].filter(regex="area|error_|p_value"))):
        mine, other = (one[column] for one in tables)
        if mine.dtype.kind == "f":
            np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-6)
        else:
            assert mine.tolist() == other.tolist()
    if code == "KC008":
        chart = next(one for one in ours.content.charts if one.key == "groups")
        several = gates == "sharp"  # of three classes the area needs the rows
        assert tables[0]["area"].isna().all() == several
        assert chart.alt.startswith("Three" if several else "Four")
        assert ("AUROC" in chart.light) != several
    assert "<b>east</b>" not in html_report(ours.content).decode()


def test_groups_that_cannot_be_counted_are_refused_with_their_column(tmp_path: Path) -> None:
    folder, _ = written(tmp_path, 2, 1.0)
    with pytest.raises(InputError, match="more than 200 different values") as found:
        run_gate(config(folder, groups=("proba_c0",)))
    assert found.value.column == "proba_c0"
    with pytest.raises(InputError, match="no such column") as found:
        run_gate(config(folder, groups=("site",)))
    assert found.value.column == "site"


@pytest.mark.usefixtures("no_pictures")
def test_a_record_keeps_it_and_a_table_may_be_its_baseline(place: Place, tmp_path: Path) -> None:
    rows = written(tmp_path, 2, 1.1)  # of which no other test has known results
    record, (folder, whole) = place.open(), rows
    table = run_gate(config(whole))
    earlier = tmp_path / "audit.json"
    earlier.write_bytes(content_bytes(table.content))
    limits = {"KC001": Limit(high=0.02, against="baseline")}
    asked = config(folder, project="P", baseline=str(earlier), limits=limits)
    gate = run_gate(asked, record=record, who=ME)
    assert gate.content.checked.results[0].worst.estimate.value == pytest.approx(0.0, abs=1e-6)
    audit = record.project(gate.project).audits[gate.audit]
    assert (audit.facts.locked, audit.facts.results_known) == (2, "")
    assert gate.receipt is not None
    assert verify(record, gate.project, receipts=[gate.receipt]).holds
    assert record.content(audit) == gate.content
    again = run_gate(asked, record=record, who=ME)
    facts = record.project(again.project).audits[again.audit].facts
    assert "kdcal first computed them on this machine" in facts.first_results


@pytest.mark.usefixtures("no_pictures")
def test_a_check_that_must_be_answered_is_not_passed_over(tmp_path: Path) -> None:
    folder, _ = written(tmp_path, 2, 1.0)
    gate = run_gate(
        config(folder, groups=("place",), codes=("KC002", "KC007"), required=("KC007",))
    )
    assert (gate.verdict, gate.exit_code) == ("not enough evidence", 3)
    assert "none were declared" not in html_report(gate.content).decode()


def test_the_order_in_time_is_judged(tmp_path: Path) -> None:
    folder, _ = written(tmp_path, 2, 1.0)
    for file in folder.rglob("*.parquet"):
        frame = pd.read_parquet(file)
        frame.assign(day=np.arange(len(frame)) // 20).to_parquet(file)
    asked = config(folder, codes=("KC012",))
    gate = run_gate(replace(asked, files=replace(asked.files, time="day")))
    (found,) = gate.content.checked.results
    assert len(found.parts) >= 3
    assert all(part.name.startswith("from ") for part in found.parts)
    assert "'day'" not in " ".join(gate.content.subject.doubts)
    assert all("of near times together" in one.interval for one in gate.content.estimates)


def test_what_needs_the_rows_is_refused(tmp_path: Path) -> None:
    folder, whole = written(tmp_path, 2, 1.0)
    asked = config(folder)
    for name, value in (("evaluation", str(whole)), ("training", str(whole))):
        with pytest.raises(
            InputError, match=f"{name} cannot be given for a folder or a list of files: "
        ):
            run_gate(replace(asked, files=replace(asked.files, **{name: value})))
    with pytest.raises(InputError, match="no such file"):
        run_gate(replace(asked, calibrator="beta.kdcal"))


@pytest.mark.usefixtures("real_workers")
def test_workers_read_parts_of_a_large_folder_with_the_same_bytes(
    spread: tuple[Gate, Gate], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = written(tmp_path, 0, 1.0)
    read: list[int] = []

    class Workers(ThreadPoolExecutor):
        n_workers = 2

        def submit(self, fn: Any, /, *given: Any, **more: Any) -> Future[Any]:
            read.append(given[1])
            return super().submit(fn, *given, **more)

    @contextmanager
    def chosen(name: str | None = None) -> Iterator[Workers | None]:
        if name == "none":
            yield None
            return
        with Workers(2) as made:
            yield made

    monkeypatch.setattr(folder_summary, "chosen_executor", chosen)
    run_gate(config(folder, codes=("KC022",)))
    monkeypatch.setattr(folder_summary, "_WORTH", 1)
    (tmp_path / "one").mkdir()
    load_gate(config(folder), str(tmp_path / "one"))  # as a worker does
    assert read == []
    again = run_gate(config(folder, **GROUPS))
    assert content_bytes(again.content) == content_bytes(spread[0].content)
    assert sum(read) == 3000
    assert len(read) > 1


def test_a_fault_names_its_place_and_records_nothing(place: Place, tmp_path: Path) -> None:
    record, (folder, _) = place.open(), written(tmp_path, 2, 1.0)
    table = table_of(2, 1.0, 8000)
    values = table["proba_c1"].to_numpy().copy()
    values[7999] = 1.5  # not among the rows of the sample
    spoilt = table.set_column(1, "proba_c1", pa.array(values))
    pq.write_table(spoilt, folder / "later" / "d.parquet")
    with pytest.raises(InputError) as found:
        run_gate(config(folder, project="P"), record=record, who=ME)
    assert "later/d.parquet, row group 1" in str(found.value)
    assert found.value.row == 8000
    assert record.projects() == ()


def test_a_folder_that_changes_meanwhile_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = written(tmp_path, 2, 1.0)
    summarise = folder_review.summary_of_folder

    def slowly(*given: object, **more: object) -> object:
        found = summarise(*given, **more)
        pq.write_table(table_of(2, 1.0, 10), folder / "b.parquet")
        os.utime(folder / "b.parquet", (1, 1))
        return found

    monkeypatch.setattr(folder_review, "summary_of_folder", slowly)
    with pytest.raises(InputError, match="changed while it was read"):
        run_gate(config(folder, codes=("KC002",)))


def test_only_folders_of_the_setting_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = written(tmp_path, 2, 1.0)
    monkeypatch.setenv(ROOTS, str(tmp_path / "parts" / "later"))
    with pytest.raises(InputError, match="may not be read"):
        run_gate(config(folder))


def test_the_command_from_its_configuration_to_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder, _ = written(tmp_path, 2, 1.0)
    words = ["audit", "init", "--predictions", "parts", "--target", "y", "--event", "c1"]
    assert main([*words, "--groups", "place", "--out", "audit.toml"]) == 0
    asked = read_config(Path("audit.toml"))
    assert asked.groups == ("place",)
    assert (asked.title, asked.files.predictions) == ("parts", str(folder))
    assert set(asked.reads) >= {str(one) for one in folder.rglob("*.parquet")}
    before = (folder / "a.parquet").read_bytes()
    run = ["audit", "run", "--config", "audit.toml", "--out", "done"]
    assert main([*run, "--junit", "parts/a.parquet"]) == 2
    assert (folder / "a.parquet").read_bytes() == before
    capsys.readouterr()
    assert main([*run, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said == json.loads(Path("done/gate.json").read_text())
    assert "lie in many files" in Path("done/report.html").read_text()
    content = read_content(Path("done/audit.json").read_bytes())
    Path("again.toml").write_text(config_of(content))
    assert main(["audit", "run", "--config", "again.toml", "--out", "again"]) == 0
    assert Path("again/audit.json").read_bytes() == Path("done/audit.json").read_bytes()


@pytest.mark.usefixtures("no_pictures")
def test_columns_of_some_files_only_are_a_doubt_of_the_audit(tmp_path: Path) -> None:
    folder, _ = written(tmp_path, 2, 1.0)
    part = pq.read_table(folder / "b.parquet")
    pq.write_table(part.append_column("sex", pa.array(["f"] * len(part))), folder / "b.parquet")
    gate = run_gate(config(folder, codes=("KC002",)))
    (doubt,) = gate.content.subject.doubts
    assert "'sex' (not in 2 of 3 files, the first 'a.parquet')" in doubt
    with pytest.raises(InputError, match="other files of the table have") as found:
        run_gate(config(folder, codes=("KC002",), groups=("sex",)))
    assert (found.value.file, found.value.column) == ("a.parquet", "sex")


def test_a_list_of_files_is_judged_as_their_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fair: tuple[Gate, Gate]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder, _ = written(tmp_path, 2, 1.0)
    files = ("parts/later", "parts/b.parquet", "parts/a.parquet")
    listed = config(folder, **GROUPS)
    listed = replace(listed, files=replace(listed.files, predictions=files))
    ours, theirs = run_gate(listed).content, fair[0].content
    (mine,), (other,) = ours.subject.tables, theirs.subject.tables
    assert mine.name == "later, b.parquet and a.parquet"
    assert mine.listed == ("later", "b.parquet", "a.parquet")
    assert replace(mine, name="parts", listed=()) == other
    (folder / "again.toml").write_text(config_of(ours))  # beside the files, as the report says
    again = run_gate(read_config(folder / "again.toml")).content
    assert (again.subject, again.rows_digest) == (ours.subject, ours.rows_digest)
    assert again.checked.results == ours.checked.results
    assert replace(ours, subject=theirs.subject) == theirs
    words = ["audit", "init", "--predictions", *files, "--target", "y", "--event", "c1"]
    (tmp_path / "[one]").mkdir()
    asked = tmp_path / "[one]" / "audit.toml"
    assert main([*words, "--out", str(asked)]) == 0
    said = asked.read_text()
    assert 'predictions = ["../parts/later", "../parts/b.parquet", "../parts/a.parquet"]' in said
    assert {Path(one).name for one in read_config(asked).reads} == {f"{n}.parquet" for n in "abc"}
    asked.write_text(said.replace('["../parts/later", "../parts/b', '"../parts/**/*').replace(
        '*.parquet", "../parts/a.parquet"]', '*.parquet"'
    ))  # fmt: skip
    (found,) = run_gate(read_config(asked)).content.subject.tables
    assert (found.name, found.digest, found.files) == ("*.parquet", other.digest, 3)
    assert found.listed == ("**/*.parquet",)
    asked.write_text(said.replace('["../parts/later"', "[1"))
    with pytest.raises(InputError, match="predictions is not a text or a list of texts"):
        read_config(asked)
    with pytest.raises(InputError, match="rows are in several files"):
        load_files(listed, str(tmp_path / "one"))


SAMPLES = Path(__file__).parents[2] / "sample_data"


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize(
    ("sample", "target", "codes"),
    [("adult", "income", ("KC001", "KC002", "KC003")), ("diamonds", "price", ("KC022",))],
)
def test_a_model_scores_the_folder_that_is_judged(
    sample: str, target: str, codes: tuple[str, ...], tmp_path: Path
) -> None:
    (model,) = (SAMPLES / sample).glob("model.*")
    whole, folder = SAMPLES / sample / "calibration.parquet", tmp_path / "rows"
    folder.mkdir()
    table = pq.read_table(whole)
    pq.write_table(table.slice(0, 900), folder / "a.parquet", row_group_size=400)
    pq.write_table(table.slice(900), folder / "b.parquet")
    files = NamedFiles(target=target, model=str(model), data=(str(folder / "*.parquet"),))
    asked = AuditConfig("A gate", files, codes=codes)
    assert set(asked.reads) == {str(model), str(folder / "a.parquet"), str(folder / "b.parquet")}
    ours = run_gate(asked).content
    theirs = run_gate(replace(asked, files=replace(files, data=str(whole)))).content
    assert ours.subject.model == theirs.subject.model
    assert (ours.subject.tables[0].files, ours.checked.n) == (2, theirs.checked.n)
    for a, b in zip(ours.checked.results, theirs.checked.results, strict=True):
        assert (a.code, a.verdict) == (b.code, b.verdict)
        assert a.worst.estimate.value == pytest.approx(b.worst.estimate.value, abs=2e-3)
    assert f"Model {model.stem}" in markdown_report(ours)
    shutil.copy(model, tmp_path / model.name)
    changing = replace(asked, files=replace(files, model=str(tmp_path / model.name)))
    (place := tmp_path / "loaded").mkdir()
    with pytest.MonkeyPatch.context() as patched:
        sampled = gate_summary.sampled_review

        def then_changed(*given: Any) -> Any:
            found = sampled(*given)
            (tmp_path / model.name).write_bytes(model.read_bytes() + b" ")
            return found

        patched.setattr(gate_summary, "sampled_review", then_changed)
        with pytest.raises(InputError, match="changed while rows were read"):
            load_gate(changing, str(place))


@pytest.mark.usefixtures("no_pictures")
def test_a_calibrators_output_is_judged_block_by_block_or_scored_into_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder, whole = written(tmp_path, 2, 2.5)
    fit = ["calibrate", "--predictions", str(whole), "--target", "y", "--calibrator", "platt"]
    assert main([*fit, "--out", "platt.kdcal"]) == 0
    words = ["score", "--calibrator", "platt.kdcal", "--predictions", "parts", "--keep", "y,ward"]
    assert main([*words, "-o", "scored"]) == 0
    asked = [config(one, groups=("ward",), codes=("KC001",)) for one in
             (folder, tmp_path / "scored", folder)]  # fmt: skip
    asked[2] = replace(asked[2], calibrator=str(tmp_path / "platt.kdcal"))
    gates = [run_gate(one) for one in asked]
    before, after, direct = (
        abs(one.content.checked.results[0].worst.estimate.value) for one in gates
    )
    assert gates[1].content.checked.n == 3000
    assert after < 0.3 * before
    assert direct == pytest.approx(after, abs=1e-9)
    content = gates[2].content
    assert content.headline.startswith("The calibrated model")
    assert content.calibrator is not None
    assert (content.calibrator.title, content.calibrator.rows) == (
        "platt.kdcal",
        content.subject.tables[0].digest,
    )
    assert content.rows_digest == gates[1].content.rows_digest


@pytest.mark.usefixtures("no_pictures")
def test_a_calibrator_is_not_judged_on_a_file_to_which_it_was_fitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder, _ = written(tmp_path, 2, 2.5)
    fit = ["calibrate", "--predictions", str(folder / "b.parquet"), "--target", "y"]
    assert main([*fit, "--calibrator", "platt", "--out", "platt.kdcal"]) == 0
    with pytest.raises(InputError, match="was fitted on the rows of one of the files") as found:
        run_gate(replace(config(folder), calibrator=str(tmp_path / "platt.kdcal")))
    assert found.value.file == "b.parquet"
