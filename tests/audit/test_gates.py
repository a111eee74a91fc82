"""Many audits in one run: the list, one table, one exit code; on any backend the same bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from kdcal_core import audit
from kdcal_core.audit import Gate, NamedConfig, content_bytes, read_configs, run_gates
from kdcal_core.cli import main
from kdcal_core.errors import InputError
from kdcal_core.jobs.executors import Call, Workers
from kdcal_core.jobs.parcels import reply_to

pytestmark = pytest.mark.usefixtures("work_here")

CONFIG = """
[audit]
title = "Audit of {name}"
{more}
[files]
predictions = "p.csv"
[roles]
target = "y"
event = "yes"
[checks]
only = ["KC001"]
"""


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Predictions of two models, one of them over-confident, and a list of their audits."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path / "home"))
    rng = np.random.default_rng(0)
    odds = rng.normal(0.0, 1.5, 2000)
    y = np.where(rng.random(2000) < 1.0 / (1.0 + np.exp(-odds)), "yes", "no")
    for name, sharpness, more in (("a", 1.0, 'project = "Night"'), ("b", 3.0, "")):
        folder = tmp_path / "models" / name
        folder.mkdir(parents=True)
        p = 1.0 / (1.0 + np.exp(-sharpness * odds))
        table = pd.DataFrame({"proba_no": 1.0 - p, "proba_yes": p, "y": y})
        table.to_csv(folder / "p.csv", index=False)
        (folder / "audit.toml").write_text(CONFIG.format(name=name, more=more))
    Path("project.toml").write_text('configs = ["models/*/audit.toml", "models/b/audit.toml"]')
    return tmp_path


def follows_its_schema(found: dict[str, Any]) -> None:
    """The published one, which refers to that of a single gate."""
    folder = Path(audit.__file__).parent
    ours, one = (
        json.loads((folder / name).read_text())
        for name in ("gates.schema.json", "gate.schema.json")
    )
    known = Registry().with_resource(one["$id"], Resource.from_contents(one))
    Draft202012Validator.check_schema(ours)
    validator = Draft202012Validator(ours, registry=known)
    validator.validate(found)
    found["audits"][-1]["gate"]["verdict"] = "perhaps"
    assert not validator.is_valid(found)
    found["audits"][-1]["gate"]["verdict"] = "fail"


def test_the_worst_audit_gives_the_exit_code(
    models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", "run", "--all", "project.toml", "--out", "night"]) == 1
    said = capsys.readouterr().out
    for words in ("models/a/audit.toml", "pass", "2 audits: 1 passed, 1 failed.", "Wrote night."):
        assert words in said
    folders = sorted(one.name for one in Path("night").iterdir())
    assert folders == ["001-models-a-audit", "002-models-b-audit"]
    kept = sorted(one.name for one in Path("night", folders[0]).iterdir())
    assert kept == ["audit.json", "gate.json", "receipt.json", "report.html", "report.md"]


@pytest.mark.usefixtures("no_pictures")
def test_input_that_cannot_be_used_ends_its_own_audit_only(
    models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("models/a/p.csv").write_text("y\nyes\nno\n")
    words = ["audit", "run", "--all", "project.toml", "--json", "--junit", "night.xml"]
    assert main(words) == 2
    found = json.loads(capsys.readouterr().out)
    follows_its_schema(found)
    assert found["exit_code"] == 2
    assert [one["exit_code"] for one in found["audits"]] == [2, 1]
    assert found["audits"][0]["gate"] is None
    assert found["audits"][1]["gate"]["title"] == "Audit of b"
    suites = ElementTree.parse("night.xml").getroot()
    assert [one.get("errors") for one in suites] == ["1", "0"]
    assert suites[1].get("failures") == "1"
    assert found["audits"][0]["error"] == suites[0][0][0].get("message")


class SentHere(Workers):
    """Carries out what is sent at once, as a worker does, but starts no process.

    That results do not depend on the process is tried in `tests/jobs/test_executors.py`.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, 2)
        self.calls = 0

    def begin(self, call: Call) -> None:
        self.calls += 1
        self.settle(call, reply_to(call.parcel, self.folder, call.future.asked.is_set))


def test_workers_compute_the_same_bytes_and_this_process_keeps_the_record(
    models: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    configs = read_configs(Path("project.toml"))
    shares: list[float] = []
    here = list(run_gates(configs, progress=lambda share, note: shares.append(share)))
    executor = SentHere(tmp_path_factory.mktemp("shared"))
    there = list(run_gates(configs, executor=executor))
    assert executor.calls == 4  # the rows and the checks of both
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    for one, other in zip(here, there, strict=True):
        assert isinstance(one.gate, Gate)
        assert isinstance(other.gate, Gate)
        assert content_bytes(one.gate.content) == content_bytes(other.gate.content)
        assert bool(one.gate.receipt) == bool(other.gate.receipt) == (one.gate.project != "")
    first = [one[0].gate for one in (here, there)]
    assert len({one.audit for one in first if one}) == 2
    assert len({one.project for one in first if one}) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("configs = []", "needs configs"),
        ("configs = ['a.toml']\nmore = 1", "needs configs"),
        ("configs = [1]", "There is no configuration '1'"),
        ("configs = ['']", "There is no configuration"),
        ("configs = ['none/*.toml']", "There is no configuration 'none/"),
        ("configs = ['**.toml/..']", "There is no configuration"),
        ("configs =", "is not TOML"),
    ],
)
def test_a_list_that_cannot_be_used_says_so(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "project.toml").write_text(text)
    with pytest.raises(InputError, match=words):
        read_configs(tmp_path / "project.toml")


def test_a_pattern_finds_each_configuration_once_and_never_the_list(tmp_path: Path) -> None:
    for name in ("b.toml", "a.toml", "project.toml"):
        (tmp_path / name).write_text('configs = ["*.toml", "b.toml"]')
    found = read_configs(tmp_path / "project.toml")
    assert found == tuple(NamedConfig(one, tmp_path / one) for one in ("a.toml", "b.toml"))


def test_no_audit_writes_over_what_another_reads(
    models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Path("models/b/p.csv").read_bytes()
    words = ["audit", "run", "--all", "project.toml", "--junit", "models/b/p.csv"]
    assert main(words) == 2
    assert Path("models/b/p.csv").read_bytes() == before
