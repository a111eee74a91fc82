"""Files from elsewhere, cut off and changed at random: one error that says so, or nothing at all.

An attacker may sign: the lines of a mutated export are chained and signed anew, with a key that
the export brings, so that a mutation gets as far as it can.
"""

from __future__ import annotations

import copy
import io
import json
import os
import random
import shutil
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
from audit_people import ME

from kdcal_core.audit import (
    AuditContent,
    AuditSubmitted,
    Commented,
    FindingOpened,
    LimitsLocked,
    Record,
    compare_audits,
    content_bytes,
    export_project,
    import_project,
    read_content,
    receipt_project,
    signer_of,
    trends,
    verify,
)
from kdcal_core.audit.gate_baselines import first_alike
from kdcal_core.audit.record_reading import id_of
from kdcal_core.audit.report import html_report, markdown_report
from kdcal_core.audit.signing import ENTRY, Signed, digest
from kdcal_core.checks import judge_checks
from kdcal_core.cli import main
from kdcal_core.errors import InputError
from kdcal_core.review import Limit, Review

TRIES = int(os.environ.get("KDCAL_MUTATIONS", "20"))
"""Mutations of each kind of file; thousands are tried by hand."""
SEED = int(os.environ.get("KDCAL_MUTATION_SEED", "0"))

T = TypeVar("T")
DEEP = "deep"
"""Stands for lists in lists in a file, so many that only some readers of JSON stop at them."""

ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 3.5, 10**30, -(10**300), 1e308, float("nan"), float("inf")),
    *("", "KC999", "x" * 20_000, "half \ud800", "a\x00b", "2026-13-45T99:00:00Z", "NaN"),
    *([], {}, [[]], [None], {"a": {}}, {"float": "nan"}, DEEP, DEEP),
)


def deep(levels: int) -> str:
    return "[" * levels + "]" * levels


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value inside a value of JSON."""
    pairs = value.items() if isinstance(value, dict) else ()
    pairs = enumerate(value) if isinstance(value, list) else pairs
    for name, one in pairs:
        yield (*at, name)
        yield from places(one, (*at, name))


def mutated(value: Any, choose: random.Random) -> Any:
    """A copy with one to three changes: something gone, of another kind, twice, or new."""
    made = copy.deepcopy(value)
    for _ in range(choose.randint(1, 3)):
        *way, name = choose.choice([*places(made)])
        inner = made
        for one in way:
            inner = inner[one]
        match choose.randrange(6):
            case 0:
                del inner[name]
            case 1 if isinstance(inner, list):
                inner.append(copy.deepcopy(inner[name]))
            case 1:
                inner["another"] = copy.deepcopy(choose.choice(ODD))
            case 2 if isinstance(inner[name], dict):
                inner[name] = list(inner[name].items())
            case 2 if isinstance(inner[name], str):
                inner[name] = choose.choice(
                    (inner[name][::-1], inner[name][: len(inner[name]) // 2])
                )
            case _:
                inner[name] = copy.deepcopy(choose.choice(ODD))
        if not made:
            break
    return made


def as_json(value: Any, choose: random.Random) -> bytes:
    """As a file, now and then cut off or nested deeply."""
    text = json.dumps(value)
    if choose.random() < 0.1:
        return text[: choose.randrange(len(text))].encode()
    return text.replace(f'"{DEEP}"', deep(choose.choice((100, 300, 900, 3_000)))).encode()


def tried(act: Callable[..., T], *given: Any, **more: Any) -> T | None:
    """What it returns, or None where it says with one error what is wrong and what to do."""
    try:
        return act(*given, **more)
    except InputError as error:
        refused = error
    assert "\n" not in refused.what
    assert refused.fix
    return None


@pytest.fixture(scope="module")
def small(content: AuditContent) -> AuditContent:
    """The audit with one chart, of few marks."""
    figure = '{"data": [{"type": "bar", "x": [1, 2], "y": [3, null]}], "layout": {"title": {}}}'
    chart = replace(content.charts[0], light=figure, dark=figure, table="a,b\n1,2\n")
    return replace(content, charts=(chart,))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, small: AuditContent) -> Record:
    """A record of a few entries."""
    record = Record(tmp_path_factory.mktemp("made"))
    project = record.create("Credit risk", ME).id
    record.write(project, LimitsLocked(small.limits, "note"), ME)
    audit = record.draft(project, small, ME).id
    record.write(project, AuditSubmitted(audit), ME)
    record.write(project, FindingOpened(audit, "f1", "Drift", "low", "Ben", "2026-12-31"), ME)
    record.write(project, Commented(audit, "Hm."), ME)
    return record


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a record without a project."""
    folder = tmp_path_factory.mktemp("empty") / "audits"
    record = Record(folder)
    signer_of(folder)
    record.database.close()
    return folder


def elsewhere(empty: Path, folder: Path) -> Record:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(empty, folder)
    return Record(folder)


def everything_of(content: AuditContent, other: AuditContent, *, page: bool) -> None:
    """All that shows a content."""
    tried(markdown_report, content)
    tried(compare_audits, other, content)
    tried(compare_audits, content, other)
    for one in content.charts:
        tried(one.figure, dark=True)
    if page:
        tried(html_report, content)


def test_a_content(small: AuditContent, review: Review) -> None:
    choose, values = random.Random(SEED), json.loads(content_bytes(small))
    read = 0
    limits = {code: Limit(high=0.1, against="baseline") for code in small.limits}
    for at in range(TRIES * 4):
        stored = as_json(mutated(values, choose), choose)
        content = tried(read_content, stored)
        if content is not None:
            read += 1
            everything_of(content, small, page=at % 4 == 0)
        baseline = tried(first_alike, [partial(bytes, stored)], review, review.event)
        if baseline is not None:
            judge_checks(small.measured, limits, baseline=baseline.measured)
    assert read > TRIES // 4


def signed_anew(entries: list[Any], files: dict[str, bytes], key: Path) -> bytes:
    """An export of these entries, chained and signed with another key that it brings."""
    signer = signer_of(key)
    lines, before = [], None
    for at, entry in enumerate(entries):
        one = copy.deepcopy(entry)
        if isinstance(one, dict):
            if "previous" in one:
                one["previous"] = before
            if at == 0 and isinstance(one.get("body"), dict):
                one["body"]["key"] = signer.public
        payload = json.dumps(one).replace(f'"{DEEP}"', deep(300)).encode()
        before = digest(payload)
        lines.append(signer.sign(payload, ENTRY).envelope())
    name = entries[0].get("body") if isinstance(entries[0], dict) else None
    name = name.get("name") if isinstance(name, dict) else None
    project = id_of(name) if isinstance(name, str) else "0" * 16
    about = {"kind": "kdcal record", "version": 1, "project": project, "lines": lines}
    return zipped(json.dumps(about).encode(), files)


def zipped(lines: bytes, files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("lines.json", lines)
        for name, content in files.items():
            archive.writestr(f"files/{name}", content)
    return made.getvalue()


def test_an_export(made: Record, empty: Path, small: AuditContent, tmp_path: Path) -> None:
    choose, path = random.Random(SEED + 1), tmp_path / "record.zip"
    project = made.projects()[0]
    export_project(made, project.id, path)
    whole = path.read_bytes()
    entries = [json.loads(signed.payload) for _, signed in made.database.read(project.id)]
    values = json.loads(content_bytes(small))
    with zipfile.ZipFile(path) as archive:
        about = json.loads(archive.read("lines.json"))
    taken = 0
    for at in range(TRIES * 2):
        stored, those = content_bytes(small), entries
        match at % 4:
            case 0:  # the lines as they are stored
                files = {digest(stored): stored}
                path.write_bytes(zipped(as_json(mutated(about, choose), choose), files))
            case 1:  # bytes of the file
                cut, end = sorted(choose.randrange(len(whole)) for _ in range(2))
                bad = whole[:cut] + choose.randbytes(choose.randrange(9)) + whole[end:]
                path.write_bytes(choose.choice((whole[:cut], bad)))
            case 2:  # what the lines say
                those = mutated(entries, choose) or [{}]
                path.write_bytes(signed_anew(those, {digest(stored): stored}, tmp_path / "key"))
            case 3:  # the file of the audit
                stored = as_json(mutated(values, choose), choose)
                those = copy.deepcopy(entries)
                content = tried(read_content, stored)
                facts = those[2]["body"]
                facts["content"] = digest(stored)
                if content is not None:
                    facts |= {
                        "title": content.title,
                        "headline": content.headline,
                        "verdict": content.checked.verdict,
                        "n": content.checked.n,
                        "model": content.model_digest,
                        "rows": content.rows_digest,
                        "question": content.question_digest,
                        "locked": None,
                    }
                    facts["limits"] = json.loads(stored)["limits"]
                path.write_bytes(signed_anew(those, {digest(stored): stored}, tmp_path / "key"))
        record = elsewhere(empty, tmp_path / "audits")
        found = tried(import_project, record, path)
        if found is None:
            assert record.database.projects() == ()
            assert not [*record.files.folder.rglob("*")] or at % 4 == 3
        else:
            taken += 1
            assert verify(record, found).holds
            (audit,) = record.project(found).audits.values()
            content = record.content(audit)
            tried(html_report, content, audit, record.project(found))
            tried(trends, [(audit, content), (audit, small)])
            everything_of(content, small, page=False)
        record.database.close()
    assert taken > 0


def test_a_receipt(made: Record) -> None:
    choose, project = random.Random(SEED + 2), made.projects()[0]
    receipt = made.receipt(project.id, next(iter(project.audits)))
    payload = json.loads(Signed.of(receipt).payload)
    for at in range(TRIES * 2):
        if at % 2:
            text = as_json(mutated(payload, choose), choose)
            given: Any = signer_of(made.root).sign(text, Signed.of(receipt).kind).envelope()
        else:
            given = mutated(receipt, choose)
        found = verify(made, project.id, receipts=[given])
        assert found.n_receipts == 1
        assert all("\n" not in one for one in found.altered)
        tried(receipt_project, given)


def test_commands_end_with_one_line(
    made: Record,
    small: AuditContent,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path))
    choose, values = random.Random(SEED + 3), json.loads(content_bytes(small))
    project = made.projects()[0]
    receipt = made.receipt(project.id, next(iter(project.audits)))
    whole, path, key = tmp_path / "whole.json", tmp_path / "given.json", signer_of(made.root).public
    whole.write_bytes(content_bytes(small))
    for at in range(TRIES):
        of = (values, receipt, key, receipt)[at % 4]
        path.write_bytes(as_json(mutated(of, choose), choose))
        words = (
            ("compare", str(whole), str(path)),
            ("verify", "--receipt", str(path)),
            ("verify", "--key", str(path)),
            ("import", str(path)),
        )[at % 4]
        code = main(["audit", *words])
        said = capsys.readouterr()
        assert code in (0, 1, 2), said.err
        assert "Unexpected" not in said.err
        assert "Traceback" not in said.err
        assert len(said.err.splitlines()) == (1 if code == 2 else 0)
