"""``kdcal diagnose`` on regressions: the same manners as on classifications."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from texts.snapshot import Texts

from kdcal_core.cli import arguments
from kdcal_core.cli.argument_types import parameters
from kdcal_core.data import FAMILY_PARAMETERS, Family, Task
from kdcal_core.distributions import FAMILIES

ROOT = Path(__file__).resolve().parents[2]
LINE = ROOT / "sample_data" / "heteroscedastic"
Run = Callable[..., tuple[int, str, str]]
pytestmark = pytest.mark.usefixtures("work_here")


@pytest.fixture
def run(run: Run) -> Run:
    return partial(run, "diagnose")


def frame(n: int = 400) -> pd.DataFrame:
    """A spread that is half of what it should be."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    kind = np.resize(["a", "b"], n)
    return pd.DataFrame({"x": x, "kind": kind, "mu": x, "sd": 0.5, "y": x + rng.normal(size=n)})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    frame().to_csv(path, index=False)
    return path


def test_a_table_of_predictions_is_diagnosed(
    run: Run, table: Path, tmp_path: Path, texts: Texts
) -> None:
    out = tmp_path / "out.json"
    code, said, err = run("--predictions", table, "--target", "y", "--json", out)
    assert (code, err) == (0, "")
    found = json.loads(out.read_text(encoding="utf-8"))
    assert (found["format"], found["task"]) == (1, "regression")
    assert found["settings"]["family"] == "normal"
    (one,) = found["sets"]
    rows = frame()
    z = (rows["y"] - rows["mu"]) / 0.5
    estimates = {row["key"]: row for row in one["estimates"]}
    assert estimates["rmse"]["value"] == pytest.approx(np.sqrt(np.mean((z * 0.5) ** 2)))
    assert estimates["crps"]["low"] < estimates["crps"]["value"] < estimates["crps"]["high"]
    at95 = next(row for row in one["coverage"] if row["level"] == 0.95)
    held = int((np.abs(z) <= stats.norm.ppf(0.975)).sum())
    interval = stats.binomtest(held, len(z)).proportion_ci(0.95)
    assert at95["coverage"]["value"] == pytest.approx(held / len(z))
    assert at95["coverage"]["low"] == pytest.approx(interval.low)
    ks = next(test for test in one["tests"] if test["name"] == "kolmogorov_smirnov")
    expected = stats.kstest(stats.norm.cdf(z), "uniform")
    assert ks["statistic"] == pytest.approx(expected.statistic)
    assert ks["p_value"] == pytest.approx(expected.pvalue, rel=1e-3)
    assert one["fault"]["kind"] == "too narrow"
    assert sum(row["count"] for row in one["pit_histogram"]) == 400
    assert len(one["pit_histogram"]) == 20
    assert one["by_column"][0]["column"] == "predicted mean"
    texts(said)


def test_a_model_is_run_and_the_same_input_gives_the_same_bytes(run: Run, tmp_path: Path) -> None:
    texts = []
    for name in ("one.json", "two.json"):
        code, _, err = run(
            *("--model", LINE / "model.onnx", "--data", LINE / "calibration.parquet"),
            *("--target", "y", "--by", "x", "--json", tmp_path / name),
        )
        assert (code, err) == (0, "")
        texts.append((tmp_path / name).read_text(encoding="utf-8"))
    assert texts[0] == texts[1]
    found = json.loads(texts[0])
    assert found["settings"]["family"] == "point"
    regions = found["sets"][0]["by_column"][0]["regions"]
    assert {"too wide", "too narrow"} & {one["fault"]["kind"] for one in regions}


def test_regions_of_several_columns(run: Run, table: Path) -> None:
    code, said, _ = run("--predictions", table, "--target", "y", "--by", "kind,x")
    assert code == 0
    assert "By kind" in said
    assert "By x" in said


def test_columns_can_be_named(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    odd = frame().rename(columns={"mu": "centre", "sd": "breadth"})
    odd.assign(breadth=odd["breadth"] ** 2).to_csv(path, index=False)
    words = ("--predictions", path, "--target", "y", "--task", "regression")
    out = tmp_path / "out.json"
    code, _, _ = run(*words, "--parameters", "mean=centre,variance=breadth", "--json", out)
    assert code == 0
    settings = json.loads(out.read_text(encoding="utf-8"))["settings"]
    assert settings["family"] == "normal"
    assert settings["parameters"] == {"mean": "centre", "variance": "breadth"}


def test_what_asks_for_care_is_noted(run: Run, tmp_path: Path, texts: Texts) -> None:
    path = tmp_path / "crossing.csv"
    rows = frame(25)
    low, few = rows["mu"] - 1, np.arange(25) < 3
    rows = rows.assign(q10=low, q50=rows["mu"], q90=np.where(few, low - 1, rows["mu"] + 1))
    rows.to_csv(path, index=False)
    levels = "0.1=q10,0.5=q50,0.9=q90"
    code, said, err = run("--predictions", path, "--target", "y", "--parameters", levels)
    assert (code, err) == (0, "")
    texts(said)
    assert "(3 of 25)" in said
    code, said, err = run(
        "--predictions", path, "--target", "y", "--parameters", "0.1=q90,0.5=q50,0.9=q10"
    )
    assert code == 2
    assert "are the columns reversed?" in err


def test_clusters_count_where_they_are_asked_for(run: Run, table: Path, tmp_path: Path) -> None:
    four = pd.concat([frame().assign(ward=[f"w{one}" for one in range(400)])] * 4)
    four.to_csv(table, index=False)
    words = ("--predictions", table, "--target", "y", "--by", "kind")
    found = {}
    for name, more in (("rows", ()), ("clusters", ("--cluster", "ward"))):
        out = tmp_path / f"{name}.json"
        code, said, err = run(*words, *more, "--json", out)
        assert (code, err) == (0, "")
        found[name] = json.loads(out.read_text(encoding="utf-8"))
    width = {
        name: [
            row["high"] - row["low"]
            for row in one["sets"][0]["estimates"]
            if row["key"] in ("crps", "rmse", "qce", "coverage95")
        ]
        for name, one in found.items()
    }
    assert np.divide(width["clusters"], width["rows"]) == pytest.approx(np.full(4, 2.0), rel=0.15)
    assert found["clusters"]["settings"]["cluster"] == "ward"
    said = " ".join(said.split())
    assert "Rows of one ward are kept together in folds and intervals: 400 clusters" in said
    assert "p value from 10,000 draws of clusters" in said
    assert "log odds" not in said


@pytest.mark.parametrize(
    ("change", "words", "shown"),
    [
        ({"sd": 0.0}, (), "column 'sd', row 1"),
        ({"y": "high"}, ("--task", "regression"), "The outcome holds no numbers"),
        ({"y": 5.0}, (), "The target holds only the value '5', so no prediction can be judged"),
        ({"y": 5.0}, ("--task", "regression"), "The target holds only the value '5.0'"),
        ({}, ("--family", "gamma", "--parameters", "mean=mu,shape=sd"), "above zero only"),
        ({}, ("--parameters", "mean=mu,std=none"), "column 'none'"),
        ({}, ("--by", "nowhere"), "column 'nowhere'"),
        ({}, ("--classes", "a,b"), "--classes is for a classification"),
        ({}, ("--task", "classification", "--by", "x"), "--by is for a regression"),
        ({}, ("--parameters", "1.5=mu,0.5=sd", "--family", "quantiles"), "between 0 and 1"),
    ],
)
def test_bad_input_is_one_line(
    run: Run, tmp_path: Path, change: dict[str, object], words: tuple[str, ...], shown: str
) -> None:
    path = tmp_path / "bad.csv"
    frame(60).assign(**change).to_csv(path, index=False)
    code, said, err = run("--predictions", path, "--target", "y", *words)
    assert (code, said) == (2, "")
    assert err.count("\n") == 1
    assert shown in err


@pytest.mark.parametrize("text", ["mean", "=mu", "mean=", "mean=mu,,std=s"])
def test_parameters_of_another_form_are_refused(run: Run, text: str, texts: Texts) -> None:
    code, _, err = run("--predictions", "x.csv", "--target", "y", "--parameters", text)
    assert code == 2
    texts(err)
    assert parameters("a=b=c") == (("a", "b=c"),)


def test_every_task_and_family_can_be_asked_for() -> None:
    assert get_args(Task) == arguments.TASKS
    assert get_args(Family) == arguments.FAMILIES == tuple(FAMILIES)
    for family, spec in FAMILIES.items():
        assert FAMILY_PARAMETERS[family] == spec.parameters
