"""``kdcal audit init`` passes on every file and column that it is given or finds in a review."""

from __future__ import annotations

import contextlib
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_reviews import line, too_sure

from kdcal_core.audit import AuditConfig, read_config
from kdcal_core.cli import main
from kdcal_core.review import Workspace, start_sample

SAMPLES = Path(__file__).parents[2] / "sample_data"
pytestmark = pytest.mark.usefixtures("work_here")


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path / "home"))


def initial(*words: str) -> AuditConfig:
    assert main(["audit", "init", *words, "--out", "audit.toml"]) == 0
    return read_config(Path("audit.toml"))


def xor(*words: str) -> tuple[str, ...]:
    folder = SAMPLES / "xor_forest"
    rows = ("--model", str(folder / "model.skops"), "--data", str(folder / "calibration.parquet"))
    return (*rows, "--target", "class", *words)


def test_foreign_tables_are_passed_on(capsys: pytest.CaptureFixture[str]) -> None:
    ring = str(SAMPLES / "xor_forest" / "foreign_ring_at_radius_2.parquet")
    pd.read_parquet(ring)[:50].to_csv("more.csv", index=False)
    found = initial(*xor("--foreign", ring, "--foreign", "more.csv"))
    assert found.files.foreign == (ring, str(Path("more.csv").absolute()))
    over = ("--foreign", "more.csv", "--out", "more.csv", "--force")
    assert main(["audit", "init", *xor(*over)]) == 2
    assert "one of those that are read" in capsys.readouterr().err


def test_paths_are_relative_where_files_and_configuration_move_together(tmp_path: Path) -> None:
    def written(out: str, data: str) -> Path:
        words = ("--predictions", data, "--target", "truth", "--out", out, "--force")
        assert main(["audit", "init", *words]) == 0
        return Path(tomllib.loads(Path(out).read_text())["files"]["predictions"])

    made = too_sure(120, 0)
    truth = (made["target"] == "yes").map({True: "yes", False: "no"})
    stated = pd.DataFrame({"proba_no": 1 - made["yes"], "proba_yes": made["yes"], "truth": truth})
    outside = tmp_path / "outside.csv"
    for folder in ("here/data", "here/gates", "here/deep/er"):
        (tmp_path / folder).mkdir(parents=True)
    for path in (outside, tmp_path / "here" / "data" / "rows.csv"):
        stated.to_csv(path, index=False)
    with contextlib.chdir("here"):
        Path("linked").symlink_to("deep/er")
        assert written("audit.toml", "data/rows.csv") == Path("data/rows.csv")
        beside = written("gates/audit.toml", str(Path("data/rows.csv").absolute()))
        assert beside == Path("../data/rows.csv")
        apart = written("audit.toml", "../outside.csv")
        assert (apart.is_absolute(), apart.resolve()) == (True, outside)
        assert written(str(tmp_path / "audit.toml"), "data/rows.csv") == Path("here/data/rows.csv")
        # from the folder that the link names, ".." leads elsewhere
        assert written("linked/audit.toml", "data/rows.csv").is_absolute()
    Path("here").rename("there")
    asked = read_config(Path("there/gates/audit.toml"))
    assert all(Path(one).exists() for one in asked.reads)


def test_the_foreign_tables_of_a_review_are_passed_on() -> None:
    workspace = Workspace()
    review = start_sample(workspace, "xor_forest")
    assert main(["audit", "init", *xor(), "--out", "files.toml"]) == 0
    assert read_config(Path("files.toml")).files.foreign == ()
    found = initial("--review", review.id)
    assert [Path(one).name for one in found.files.foreign] == [
        one.name for one in review.foreign.values()
    ]
    assert found.files.foreign


def test_the_true_mean_is_passed_on() -> None:
    folder = SAMPLES / "heteroscedastic"
    table = pd.read_parquet(folder / "calibration.parquet")[:400]
    table.rename(columns={"true_mean": "the mean"}).to_csv("rows.csv", index=False)
    words = ("--model", str(folder / "model.onnx"), "--data", "rows.csv", "--target", "y")
    assert initial(*words, "--true-mean", "the mean").files.true_mean == "the mean"
    assert main(["audit", "init", *words, "--out", "without.toml"]) == 0
    assert read_config(Path("without.toml")).files.true_mean is None


def test_weight_classes_event_and_groups_are_passed_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = too_sure(120, 0)
    proba = {"proba_0": 1.0 - table["yes"], "proba_1": table["yes"]}
    truth = (table["target"] == "yes").map({True: "yes", False: "no"})
    places = {"site": ["a", "b"] * 60, "ward": np.arange(120) // 4}
    rows = pd.DataFrame({**proba, "truth": truth, "mass": 2.0, **places})
    rows.to_csv("rows.csv", index=False)
    words = ("--predictions", "rows.csv", "--target", "truth", "--weight", "mass")
    words += ("--cluster", "ward")
    found = initial(*words, "--classes", "no,yes", "--event", "no", "--groups", "site")
    assert (found.files.weight, found.event, found.groups) == ("mass", "no", ("site",))
    assert (found.files.cluster, found.files.time) == ("ward", None)
    assert found.files.outputs == (("no", "proba_0"), ("yes", "proba_1"))
    for wrong, said in (
        (("--event", "perhaps"), "--event names no class: 'perhaps'"),
        (("--groups", "town"), "The table has no such column (file 'rows.csv', column 'town'"),
    ):
        given = (*words, "--classes", "no,yes", *wrong, "--out", "no.toml")
        assert main(["audit", "init", *given]) == 2
        assert said in capsys.readouterr().err
        assert not Path("no.toml").exists()


def test_repeated_identifiers_stay_a_question(capsys: pytest.CaptureFixture[str]) -> None:
    """The gate then warns of them too, until the line says one or the other."""
    rows = too_sure(800, 0)[["target", "yes"]].rename(columns={"yes": "p_yes"})
    rows.assign(patient_id=[f"a{at // 2}" for at in range(800)]).to_csv("rows.csv", index=False)
    words = ("audit", "init", "--predictions", "rows.csv", "--target", "target")
    assert main([*words, "--out", "open.toml"]) == 0
    assert "'patient_id' (400 in 800 rows) names what several rows" in capsys.readouterr().out
    assert '# cluster = "patient_id"' in Path("open.toml").read_text()
    assert read_config(Path("open.toml")).files.cluster is None
    assert main([*words, "--cluster", "", "--out", "alone.toml"]) == 0
    assert read_config(Path("alone.toml")).files.cluster == ""


def test_the_order_in_time_stays_a_question_until_a_line_says_it() -> None:
    rows = too_sure(800, 0)[["target", "yes"]].rename(columns={"yes": "p_yes"})
    rows.assign(day=pd.date_range("2026-01-01", periods=800)).to_csv("rows.csv", index=False)
    words = ("audit", "init", "--predictions", "rows.csv", "--target", "target")
    assert main([*words, "--out", "open.toml"]) == 0
    text = Path("open.toml").read_text()
    assert '# cluster = ""  # rows are independent' in text
    Path("said.toml").write_text(text.replace('# time = "day"', 'time = "day"'))
    found = read_config(Path("said.toml")).files
    assert (found.cluster, found.time) == (None, "day")
    assert main([*words, "--time", "day", "--out", "given.toml"]) == 0
    assert read_config(Path("given.toml")).files.time == "day"
    assert "# time" not in Path("given.toml").read_text()


def test_family_and_parameters_are_passed_on() -> None:
    line(120, 0).rename(columns={"mean": "mu", "std": "sigma"}).to_csv("rows.csv", index=False)
    words = ("--predictions", "rows.csv", "--target", "y", "--family", "normal")
    found = initial(*words, "--parameters", "mean=mu,std=sigma").files
    assert (found.family, found.parameters) == ("normal", (("mean", "mu"), ("std", "sigma")))
