"""A configuration is read strictly: what is not known is named, with the nearest known name."""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import fields, replace
from pathlib import Path

import pytest

from kdcal_core.audit import (
    WatchLimits,
    audit_settings,
    config_text,
    limits_of,
    read_config,
    subject_of,
)
from kdcal_core.audit.config import (
    WATCH_KEYS,
    WATCH_OF_CLASSES,
    WATCH_OF_FORECASTS,
    AuditConfig,
)
from kdcal_core.errors import InputError
from kdcal_core.review import Decision, Limit, Review

START = '[files]\npredictions = "p.csv"\n[roles]\ntarget = "y"\n'


def read(folder: Path, text: str) -> AuditConfig:
    path = folder / "audit.toml"
    path.write_text(text, "utf-8")
    return read_config(path)


def test_what_is_given_is_read(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        """
        [audit]
        title = "November"
        project = "Credit risk"
        not_enough_evidence = "fail"
        [files]
        model = "m.onnx"
        calibration = "c.csv"
        evaluation = "/data/e.csv"
        foreign = ["f.csv"]
        calibrator = "b.kdcal"
        [roles]
        target = "default"
        classes = ["no", "yes"]
        event = "yes"
        groups = ["sex"]
        [limits.KC001]
        at_most = 0.04
        [limits.KC002]
        at_least = -0.02
        at_most = 0.02
        against = "baseline"
        [checks]
        skip = ["KC010"]
        [decision]
        threshold = 0.3
        false_negative = 4
        [baseline]
        audit = "before/audit.json"
        """,
    )
    assert found.decision == Decision(0.3, {"false_negative": 4.0})
    assert (found.title, found.project, found.undecided) == ("November", "Credit risk", "fail")
    assert found.files.model == str(tmp_path / "m.onnx")
    assert found.files.data == str(tmp_path / "c.csv")
    assert found.files.evaluation == "/data/e.csv"
    assert found.files.foreign == (str(tmp_path / "f.csv"),)
    assert found.calibrator == str(tmp_path / "b.kdcal")
    assert (found.event, found.groups) == ("yes", ("sex",))
    assert found.limits == {"KC001": Limit(high=0.04), "KC002": Limit(-0.02, 0.02, "baseline")}
    assert "KC010" not in found.codes
    assert "KC001" in found.codes
    assert found.baseline == str(tmp_path / "before/audit.json")


BAD = {
    "a table": ("[audti]\n", "'\\[audti\\]'.*Did you mean 'audit'"),
    "a key": (START + 'traget = "y"', "roles.traget.*Did you mean 'target'"),
    "a check": (START + "[limits.KC0001]\nat_most = 1", "no check 'KC0001'.*Did you mean 'KC001'"),
    "a check with a lost digit": (START + "[limits.KC01]\nat_most = 1", "Did you mean 'KC001'"),
    "a check in small letters": (START + "[limits.kc201]\nat_most = 1", "Did you mean 'KC201'"),
    "a check of another number": (START + "[limits.KC013]\nat_most = 1", "Did you mean 'KC01"),
    "an end that no estimate has": (
        START + "[limits.KC001]\nat_most = -1",
        "limits.KC001: Values of the check KC001 .overall calibration. are 0 to 1, and the limit "
        "is at most −1",
    ),
    "a percentage": (START + "[limits.KC005]\nat_least = -5\nat_most = 5", "are −100% to 100%"),
    "fewer rows than none": (START + "[limits.KC202]\nat_least = -1", "are at least 0"),
    "a title for a code": (
        START + "[limits.overall_calibration]\nat_most = 1",
        "Did you mean KC001 \\(overall calibration\\)",
    ),
    "an end": (START + "[limits.KC001]\nat_mots = 1", "limits.KC001.at_mots.*'at_most'"),
    "a kind": (
        START + '[limits.KC001]\nat_most = "little"',
        "limits.KC001.at_most is not a number",
    ),
    "a boolean": (START + "[limits.KC001]\nat_most = true", "is not a number"),
    "no value can pass": (
        START + "[limits.KC001]\nat_least = 2\nat_most = 1",
        "limits.KC001: No value lies within",
    ),
    "a number too large": (
        START + "[limits.KC001]\nat_most = 1" + 400 * "0",
        "limits.KC001 has a number that is too large",
    ),
    "a comparison": (START + '[limits.KC001]\nagainst = "luck"', "cannot be against 'luck'"),
    "chance where there is no test": (
        START + '[limits.KC202]\nagainst = "chance"',
        "limits.KC202.*no limit against chance",
    ),
    "no baseline": (
        START + '[limits.KC001]\nagainst = "baseline"\nat_most = 0.01',
        "compare with a baseline, and none is given",
    ),
    "a verdict": (
        '[audit]\nnot_enough_evidence = "fial"\n' + START,
        "not_enough_evidence cannot be 'fial'.*Did you mean 'fail'",
    ),
    "no rows": ('[roles]\ntarget = "y"', "No rows are given"),
    "no target": ('[files]\npredictions = "p.csv"', "target = "),
    "no check is left": (
        START + '[checks]\nonly = ["KC001"]\nskip = ["KC001"]',
        "No check is left",
    ),
    "a threshold": (START + "[decision]\nthreshold = 1.5", "threshold cannot be 1.5"),
    "a case": (START + "[decision]\nfalse_positiv = 1", "Did you mean 'false_positive'"),
    "a list of numbers": (START + "groups = [1]", "roles.groups is not a list of texts"),
    "a group twice": (START + 'groups = ["a", "b", "a"]', "roles.groups names a column twice"),
    "a directory": ('[files]\ndirectory = "none"\n[roles]\ntarget = "y"', "no such directory"),
    "no TOML": ("a = ", "is not TOML"),
    "a table twice": ("[audit]\n[audit]\n", "is not TOML"),
    "a text for a table": ("audit = 'x'\n" + START, "\\[audit\\] is not a table"),
}


@pytest.mark.parametrize(("text", "said"), BAD.values(), ids=BAD)
def test_what_is_not_known_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=f"(?s){said}") as error:
        read(tmp_path, text)
    assert error.value.file in ("audit.toml", str(tmp_path / "none"))
    assert error.value.fix


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_config(tmp_path / "none.toml")


def test_a_directory_is_told_apart_by_names(tmp_path: Path) -> None:
    for name in ("model.onnx", "train.csv", "cal.csv", "test.csv", "ood.csv", ".hidden.csv"):
        (tmp_path / name).write_text("a,b\n1,2\n")
    found = read(tmp_path, '[files]\ndirectory = "."\n[roles]\ntarget = "b"\n').files
    names = (found.model, found.data, found.evaluation, found.training, *found.foreign)
    assert [Path(str(one)).name for one in names] == [
        *("model.onnx", "cal.csv", "test.csv", "train.csv", "ood.csv")
    ]


def written(review: Review, files: dict[str, str]) -> str:
    limits = limits_of(review.task)
    subject = subject_of(review, audit_settings(review))
    return config_text(subject, limits, title=review.title, project="P", files=files)


def test_what_init_writes_asks_what_the_review_asks(tmp_path: Path, review: Review) -> None:
    files = {"model": "m.skops", "calibration": 'a "quoted" \\ name\n.csv', "evaluation": "e.csv"}
    found = read(tmp_path, written(review, files))
    assert found.title == review.title
    assert found.files.data == str(tmp_path / files["calibration"])
    assert found.event == review.classes[review.event or 0]
    assert found.limits["KC001"].against == "value"
    assert math.isinf(found.limits["KC001"].low)


def test_a_written_configuration_names_the_checks_with_a_limit_against_chance(
    tmp_path: Path, review: Review
) -> None:
    text = written(review, {"model": "m.skops", "calibration": "c.csv"})
    (said,) = re.findall(r"# only for (.*), which have a test of that", text)
    for code in limits_of(review.task):
        ends = rf"(?<=\[limits.{code}\]\n)[^[#]*"
        chance = re.sub(ends, 'against = "chance"\n', text)
        if code in said:
            assert read(tmp_path, chance).limits[code].against == "chance"
        else:
            with pytest.raises(InputError, match="no limit against chance"):
                read(tmp_path, chance)
    subject, few = subject_of(review, audit_settings(review)), {"KC002": Limit(-0.1, 0.1)}
    assert 'against = "chance"' not in config_text(subject, few, title="t")


def test_a_chosen_threshold_and_costs_are_written(tmp_path: Path, review: Review) -> None:
    event = review.classes[review.event or 0]
    decision = Decision(0.25, {"false_negative": 5.0, "true_positive": -1.0})
    asked = replace(review, question=replace(review.question, decisions={event: decision}))
    files = {"model": "m.skops", "calibration": "c.csv"}
    assert read(tmp_path, written(asked, files)).decision == decision
    assert read(tmp_path, written(review, files)).decision == Decision()


@pytest.mark.parametrize(
    ("text", "required"),
    [
        ("[limits.KC008]\nat_most = 0.2", ("KC008",)),
        ("[limits.KC001]\nat_most = 0.05", ()),  # its own limit
        ('[checks]\nonly = ["KC008", "KC001"]', ("KC001", "KC008")),
        ('[checks]\nskip = ["KC002"]', ()),
        ('[limits.KC008]\nat_most = 0.2\n[checks]\nskip = ["KC008"]', ()),
        ('[limits.KC008]\nat_most = 0.2\n[checks]\nonly = ["KC001"]', ("KC001",)),
    ],
)
def test_what_is_asked_for_must_be_answered(
    tmp_path: Path, text: str, required: tuple[str, ...]
) -> None:
    assert read(tmp_path, START + text).required == required


def test_the_defaults_that_init_writes_ask_for_nothing_more(tmp_path: Path, review: Review) -> None:
    files = {"model": "m.skops", "calibration": "c.csv"}
    assert read(tmp_path, written(review, files)).required == ()
    subject, limits = subject_of(review, audit_settings(review)), limits_of(review.task)
    few = dict(list(limits.items())[:3])
    for required in ((), tuple(few)):
        text = config_text(subject, few, title="t", files=files, required=required)
        found = read(tmp_path, text)
        assert found.required == required
        assert limits_of(review.task, found.codes, found.limits) == few


def test_every_line_of_a_written_configuration_is_known_or_a_comment(review: Review) -> None:
    found = tomllib.loads(written(review, {"model": "m"}))
    assert set(found) == {"audit", "files", "roles", "limits"}


def test_the_limits_of_a_watch_are_written_as_a_comment(tmp_path: Path, review: Review) -> None:
    subject = subject_of(review, audit_settings(review))
    for of_task, others in (
        (subject, WATCH_OF_FORECASTS),
        (replace(subject, task="regression", classes=(), event=None), WATCH_OF_CLASSES),
    ):
        text = config_text(of_task, limits_of(of_task.task), title="T", files={"model": "m"})
        assert "weighted_by" not in text or of_task is subject
        _, _, commented = text.partition("# [watch]\n")
        chosen = "\n".join(line.removeprefix("# ") for line in commented.splitlines())
        found = read(tmp_path, f"{written(review, {'model': 'm', 'calibration': 'c.csv'})}\n"
                     f"[watch]\n{chosen}\n").watch  # fmt: skip
        missing = {key for key in WATCH_KEYS if getattr(found, key) is None}
        assert missing == set(others)
    text = written(review, {"model": "m", "calibration": "c.csv"})
    assert read(tmp_path, text).watch == WatchLimits()
    assert {one.name for one in fields(WatchLimits)} == {*WATCH_KEYS}
