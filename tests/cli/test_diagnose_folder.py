"""``kdcal diagnose --predictions FOLDER`` reports what it does of one file with the same rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import norm

from kdcal_core.cli import main
from kdcal_core.data.parquet_folder import ROOTS

pytestmark = pytest.mark.usefixtures("work_here")


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A folder of two files, and one file with the same rows."""
    root = tmp_path_factory.mktemp("diagnose")
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    table = pa.table({"p_yes": p, "y": np.where(rng.random(3000) < p**1.3, "yes", "no")})
    folder = root / "parts"
    folder.mkdir()
    pq.write_table(table.slice(0, 1700), folder / "a.parquet", row_group_size=500)
    pq.write_table(table.slice(1700), folder / "b.parquet")
    pq.write_table(table, root / "whole.parquet")
    return folder, root / "whole.parquet"


@pytest.fixture(scope="module", params=["normal", "quantiles", "samples", "intervals"])
def forecasts(request, tmp_path_factory):
    """A regression's folder of two files, and one file with the same rows."""
    root = tmp_path_factory.mktemp(request.param)
    rng = np.random.default_rng(0)
    mean, std = rng.normal(20.0, 2.0, 1200), rng.uniform(0.8, 1.6, 1200)
    y = mean + 1.2 * std * rng.normal(size=1200)
    at = {name: mean + norm.ppf(p) * std for name, p in
          (("q05", 0.05), ("q25", 0.25), ("q50", 0.5), ("q75", 0.75), ("q95", 0.95))}  # fmt: skip
    columns = {
        "normal": {"mean": mean, "std": std},
        "quantiles": {f"quantile_0.{one[1:]}": values for one, values in at.items()},
        "samples": {f"sample_{k}": mean + std * rng.normal(size=1200) for k in range(1, 21)},
        "intervals": {"lower_90": at["q05"], "upper_90": at["q95"]},
    }[request.param]
    table = pa.table({**columns, "y": y, "true_mean": mean + 0.1})
    folder = root / "parts"
    folder.mkdir()
    pq.write_table(table.slice(0, 700), folder / "a.parquet", row_group_size=300)
    pq.write_table(table.slice(700), folder / "b.parquet")
    pq.write_table(table, root / "whole.parquet")
    return request.param, folder, root / "whole.parquet"


def run(capsys, *arguments):
    code = main(["diagnose", "--target", "y", *map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_numbers_are_those_of_one_file(places, capsys):
    folder, whole = places
    code, out, err = run(capsys, "--predictions", folder, "--event", "yes", "--json", "-")
    assert (code, err) == (0, "")
    code, other, _ = run(capsys, "--predictions", whole, "--event", "yes", "--json", "-")
    ours, theirs = (json.loads(text) for text in (out, other))
    assert ours["inputs"]["calibration"]["rows"] == 3000
    assert ours["inputs"]["calibration"]["files"] == 2
    (ours,), (theirs,) = ours["sets"], theirs["sets"]
    assert ours["n"] == theirs["n"]
    assert ours["classes"] == theirs["classes"]
    assert ours["confusion"] == theirs["confusion"]
    assert ours["findings"] == theirs["findings"]
    assert ours["event"] == theirs["event"] == "yes"
    mine = [one["label"] for one in ours["estimates"]]
    assert mine == [one["label"] for one in theirs["estimates"]]
    for a, b in zip(ours["reliability"], theirs["reliability"], strict=True):
        for part in ("n", "confidence", "frequency", "low", "high"):
            assert a[part] == pytest.approx(b[part], abs=1e-12)
    for a, b in zip(ours["estimates"], theirs["estimates"], strict=True):
        assert a["value"] == pytest.approx(b["value"], abs=2e-3)
        assert a["meaning"] == b["meaning"]


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_calibrator_is_applied_block_by_block(task, capsys, tmp_path):
    def made(seed):
        rng = np.random.default_rng(seed)
        odds, n = rng.normal(size=1200) * 1.5, 1200
        if task == "regression":
            return pa.table({"mean": odds, "std": np.ones(n), "y": odds + 1.5 * rng.normal(size=n)})
        p, seen = 1.0 / (1.0 + np.exp(-2.0 * odds)), 1.0 / (1.0 + np.exp(-odds))
        y = np.where(rng.random(n) < seen, "yes", "no")
        return pa.table({"p_no": 1.0 - p, "p_yes": p, "y": y})

    table = made(1)
    (tmp_path / "parts").mkdir()
    pq.write_table(table.slice(0, 700), tmp_path / "parts" / "a.parquet", row_group_size=300)
    pq.write_table(table.slice(700), tmp_path / "parts" / "b.parquet")
    pq.write_table(table, tmp_path / "whole.parquet")
    pq.write_table(made(0), tmp_path / "fit.parquet")
    key = {"classification": "platt", "regression": "global"}[task]
    asked = ["--target", "y", "--predictions", str(tmp_path / "fit.parquet")]
    file = tmp_path / "made.kdcal"
    assert main(["calibrate", *asked, "--calibrator", key, "--out", str(file)]) == 0
    capsys.readouterr()
    found = []
    for name in ("parts", "whole.parquet"):
        code, out, err = run(
            capsys, "--predictions", tmp_path / name, "--calibrator", file, "--json", "-"
        )
        assert (code, err) == (0, ""), err
        found.append(json.loads(out))
    ours, theirs = found
    assert ours["inputs"]["calibrator"] == theirs["inputs"]["calibrator"]
    assert ours["inputs"]["calibrator"]["name"] == "made.kdcal"
    for a, b in zip(ours["sets"][0]["estimates"], theirs["sets"][0]["estimates"], strict=True):
        assert a["label"] == b["label"]
        room = 0.2 * (b["high"] - b["low"]) + 1e-6
        assert a["value"] == pytest.approx(b["value"], abs=room), a["label"]
    plain = json.loads(run(capsys, "--predictions", tmp_path / "parts", "--json", "-")[1])
    assert plain["sets"][0]["estimates"] != ours["sets"][0]["estimates"]
    code, out, _ = run(capsys, "--predictions", tmp_path / "parts", "--calibrator", file)
    assert out.startswith("The results are about the output of the calibrator made.kdcal")
    code, _, err = run(capsys, "--predictions", tmp_path / "fit.parquet", "--calibrator", file)
    assert (code, "fitted on the rows that are judged" in err) == (2, True)
    code, _, err = run(capsys, "--predictions", tmp_path / "parts", "--calibrator", "no.kdcal")
    assert (code, "There is no such file" in err) == (2, True)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_weighted_rows_have_the_numbers_of_one_file(task, places, capsys, tmp_path):
    table = pq.read_table(places[1])
    n = table.num_rows
    rng = np.random.default_rng(2)
    if task == "regression":
        mean = rng.normal(size=n)
        table = pa.table({"mean": mean, "std": np.ones(n), "y": mean + 1.2 * rng.normal(size=n)})
    weight = rng.gamma(2.0, 1.0, n)
    table = table.append_column("w", pa.array(weight))
    (tmp_path / "parts").mkdir()
    pq.write_table(table.slice(0, 1700), tmp_path / "parts" / "a.parquet", row_group_size=500)
    pq.write_table(table.slice(1700), tmp_path / "parts" / "b.parquet")
    pq.write_table(table, tmp_path / "whole.parquet")
    asked = ["--weight", "w", "--json", "-"]
    (ours, _), (theirs, _) = (
        (json.loads(run(capsys, "--predictions", tmp_path / name, *asked)[1]), None)
        for name in ("parts", "whole.parquet")
    )
    assert ours["settings"]["weight"] == "w"
    (ours,), (theirs,) = ours["sets"], theirs["sets"]
    assert ours["n"] == theirs["n"] == n
    kish = weight.sum() ** 2 / np.square(weight).sum()
    assert f"those of {kish:,.0f} rows that count alike (Kish)" in ours["notes"][0]
    for a, b in zip(ours["estimates"], theirs["estimates"], strict=True):
        assert a["label"] == b["label"]
        width = b["high"] - b["low"]
        assert a["value"] == pytest.approx(b["value"], abs=0.2 * width + 1e-3), a["label"]


def test_a_regression_has_the_numbers_of_one_file(forecasts, capsys):
    kind, folder, whole = forecasts
    code, out, err = run(capsys, "--predictions", folder, "--json", "-")
    assert (code, err) == (0, "")
    code, other, _ = run(capsys, "--predictions", whole, "--json")
    ours, theirs = (json.loads(text) for text in (out, other))
    assert ours["task"] == theirs["task"] == "regression"
    for name in ("family", "parameters", "true_mean", "bins", "seed"):
        assert ours["settings"][name] == theirs["settings"][name]
    (ours,), (theirs,) = ours["sets"], theirs["sets"]
    assert (ours["n"], ours["distribution"]) == (theirs["n"], theirs["distribution"])
    assert ours["scale"] == pytest.approx(theirs["scale"], rel=1e-12)
    assert ours["by_column"] == []
    assert "mse_truth" in [one["key"] for one in ours["estimates"]]
    assert len(ours["coverage"]) == len(theirs["coverage"]) > 0
    for a, b in zip(ours["coverage"], theirs["coverage"], strict=True):
        assert a["level"] == b["level"]
        assert a["coverage"] == b["coverage"]
        for part in ("width", "interval_score", "smis"):
            for end in ("value", "low", "high"):
                assert a[part][end] == pytest.approx(b[part][end], rel=1e-9)
    for a, b in zip(ours["estimates"], theirs["estimates"], strict=True):
        assert (a["key"], a["label"], a["meaning"]) == (b["key"], b["label"], b["meaning"])
        drawn = a["key"] in ("qce", "wasserstein")
        near = 0.2 * (b["high"] - b["low"]) if drawn else 1e-9
        assert a["value"] == pytest.approx(b["value"], abs=near)
    assert ours["fault"]["kind"] == theirs["fault"]["kind"]
    counts = [[one["count"] for one in each["pit_histogram"]] for each in (ours, theirs)]
    if kind == "normal":
        assert counts[0] == counts[1]
        assert ours["findings"] == theirs["findings"][:-1]  # the last is about regions
    else:  # places within jumps are drawn
        assert np.abs(np.subtract(*counts)).max() < 40
    for a, b in zip(ours["tests"], theirs["tests"], strict=True):
        assert a["title"] == b["title"]
        if kind == "normal":
            # of one file Cramér and von Mises's law is that of its rows, not the limit
            assert a["p_value"] == pytest.approx(b["p_value"], rel=0.05, abs=1e-6)


def test_a_regression_is_reported_in_words(forecasts, capsys):
    kind, folder, _ = forecasts
    code, out, _ = run(capsys, "--predictions", folder, "--bins", "10")
    assert code == 0
    assert "parts, 1,200 rows, regression (" in out
    assert out.startswith("2 files and 4 row groups were read.\n\n")
    assert "regions of a column are not available for a folder" in out
    assert "CRPS" in out
    assert "Kolmogorov-Smirnov" in out
    assert "\n0.9 to 1 " in out
    assert ("state central intervals up to" in out) == (kind in ("quantiles", "intervals"))


@pytest.mark.parametrize("forecasts", ["normal"], indirect=True)
def test_single_numbers_are_refused_with_the_reason(forecasts, capsys):
    words = ("--predictions", forecasts[1], "--task", "regression", "--parameters", "mean=mean")
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert "fitted to the residuals of other rows" in err


def test_the_report_says_what_is_not_available(places, capsys):
    code, out, _ = run(capsys, "--predictions", places[0])
    assert code == 0
    assert "parts, 3,000 rows" in out
    assert "2 files and 5 row groups were read" in out
    assert "were read.\nThe results are about the confidence in the predicted class." in out
    assert "--event yes.\n" in out
    assert "not available for a folder" in out
    assert "\nAccuracy" in out


@pytest.mark.parametrize(
    ("more", "what"),
    [
        (["--bins", "51"], "51"),
        (["--evaluation", "x.csv"], "--evaluation"),
    ],
)
def test_what_needs_the_rows_is_refused(places, capsys, more, what):
    code, out, err = run(capsys, "--predictions", places[0], *more)
    assert (code, out) == (2, "")
    assert what in err


def test_a_column_of_patients_is_asked_about_and_counted(places, capsys, tmp_path):
    for file in places[0].glob("*.parquet"):
        frame = pd.read_parquet(file)
        frame.assign(patient=np.arange(len(frame)) // 3).to_parquet(tmp_path / file.name)
    said = " ".join(run(capsys, "--predictions", tmp_path)[1].split())
    assert "'patient' may name what several rows belong to" in said
    assert "Give --cluster patient for that, or an empty name" in said
    assert "several rows" not in run(capsys, "--predictions", tmp_path, "--cluster", "")[1]
    code, out, _ = run(capsys, "--predictions", tmp_path, "--cluster", "patient", "--json", "-")
    assert code == 0
    found = json.loads(out)
    assert found["settings"]["cluster"] == "patient"
    assert "count 567 clusters" in " ".join(found["sets"][0]["notes"])


def test_a_column_of_days_orders_the_rows(places, capsys, tmp_path):
    for file in places[0].glob("*.parquet"):
        frame = pd.read_parquet(file)
        days = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(len(frame)) // 40, unit="D")
        frame.assign(day=days).to_parquet(tmp_path / file.name)
    said = " ".join(run(capsys, "--predictions", tmp_path)[1].split())
    assert "'day' may say when rows were made" in said
    assert "Give --time day for that, or an empty --cluster" in said
    code, out, _ = run(capsys, "--predictions", tmp_path, "--time", "day", "--json", "-")
    found = json.loads(out)
    assert (code, found["settings"]["time"]) == (0, "day")
    assert not [one for one in found["doubts"] if "'day'" in one]
    assert "p values count 43 times, each with the 9 before it" in found["sets"][0]["notes"][0]


def test_dates_that_a_sample_leaves_open_are_those_of_all_files(places, capsys, tmp_path):
    (file, *_) = places[0].glob("*.parquet")
    frame = pd.read_parquet(file).head(450)
    for number in range(50):  # of each file 400 rows are in the sample
        days = np.where(np.arange(450) < 400, f"{number // 12 + 1:02}", "28")
        dates = [f"{number % 12 + 1:02}/{day}/2026" for day in days]
        frame.assign(day=dates).to_parquet(tmp_path / f"{number:02}.parquet")
    code, out, _ = run(capsys, "--predictions", tmp_path, "--time", "day", "--json", "-")
    assert code == 0
    assert "count 62 times" in json.loads(out)["sets"][0]["notes"][0]


def test_a_file_that_is_read_is_never_overwritten(places, capsys):
    part = places[0] / "a.parquet"
    before = part.read_bytes()
    code, _, err = run(capsys, "--predictions", places[0], "--json", part, "--force")
    assert code == 2
    assert "one of those that are read" in err
    assert part.read_bytes() == before


def test_only_folders_of_the_setting_are_read(places, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv(ROOTS, str(tmp_path))
    code, _, err = run(capsys, "--predictions", places[0])
    assert code == 2
    assert "may not be read" in err


def with_groups(path, into):
    """The same rows with groups of which one has a name that could be markup or a formula."""
    table = pq.read_table(path)
    rng = np.random.default_rng(4)
    ward = rng.choice(["north", "=<b>south</b>"], table.num_rows)
    table = table.append_column("ward", pa.array(ward)).append_column(
        "age", pa.array(rng.integers(20, 80, table.num_rows))
    )
    folder = into / "grouped"
    folder.mkdir()
    pq.write_table(table.slice(0, 500), folder / "a.parquet", row_group_size=200)
    pq.write_table(table.slice(500), folder / "b.parquet")
    pq.write_table(table, into / "grouped.parquet")
    return folder, into / "grouped.parquet"


def test_groups_are_those_of_one_file(places, capsys, tmp_path):
    folder, whole = with_groups(places[1], tmp_path)
    asked = ("--groups", "ward,age", "--event", "yes")
    found = []
    for path in (folder, whole):
        code, out, err = run(capsys, "--predictions", path, *asked, "--json", "-")
        assert (code, err) == (0, "")
        found.append(json.loads(out))
    assert [one["settings"]["groups"] for one in found] == [["ward", "age"]] * 2
    ours, theirs = (one["sets"][0] for one in found)
    assert ours["findings"] == theirs["findings"]
    assert ours["findings"][-1].startswith("Groups: ")
    assert len(ours["groups"]) == len(theirs["groups"]) > 10
    for a, b in zip(ours["groups"], theirs["groups"], strict=True):
        assert (a["name"], a["n"], a["fault"]) == (b["name"], b["n"], b["fault"])
        assert a["stated"] == pytest.approx(b["stated"], abs=1e-9)
        for part in ("observed", "gap"):
            for end in ("value", "low", "high"):
                assert a[part][end] == pytest.approx(b[part][end], abs=1e-6)
        assert a["error"]["value"] == pytest.approx(b["error"]["value"], abs=1e-9)
        assert a["auroc"]["value"] == pytest.approx(b["auroc"]["value"], abs=1e-3)
    code, out, _ = run(capsys, "--predictions", folder, *asked)
    assert "Intervals hold for all groups together." in out
    assert "ward: =<b>south</b>" in out


@pytest.mark.parametrize("forecasts", ["normal"], indirect=True)
def test_groups_of_distributions_are_those_of_one_file(forecasts, capsys, tmp_path):
    folder, whole = with_groups(forecasts[2], tmp_path)
    found = []
    for path in (folder, whole):
        code, out, _ = run(capsys, "--predictions", path, "--groups", "ward", "--json", "-")
        assert code == 0
        found.append(json.loads(out)["sets"][0])
    ours, theirs = found
    assert ours["findings"][-1] == theirs["findings"][-1]
    for a, b in zip(ours["groups"], theirs["groups"], strict=True):
        assert (a["name"], a["n"], a["fault"]) == (b["name"], b["n"], b["fault"])
        for part in ("gap", "spread"):
            for end in ("value", "low", "high"):
                assert a[part][end] == pytest.approx(b[part][end], abs=1e-7)
    code, out, _ = run(capsys, "--predictions", folder, "--groups", "ward")
    assert "=<b>south</b>" in out


def test_groups_that_cannot_be_counted_are_named(places, capsys):
    for column, what in (("p_yes", "more than 200 different values"), ("site", "no such column")):
        for path in places[: 1 if column == "p_yes" else 2]:
            code, out, err = run(capsys, "--predictions", path, "--groups", column)
            assert (code, out) == (2, "")
            assert what in err
            assert column in err


def parts(folder, *tables):
    folder.mkdir()
    for at, columns in enumerate(tables):
        pq.write_table(pa.table(columns), folder / f"{at}.parquet", row_group_size=3)
    return folder


ROWS = {"p_yes": [0.2, 0.4, 0.6, 0.7], "y": ["no", "no", "yes", "yes"]}


def test_columns_of_some_files_only_are_a_warning(tmp_path, capsys):
    folder = parts(tmp_path / "in", {**ROWS, "ward": [1, 2, 3, 4]}, ROWS)
    code, out, _ = run(capsys, "--predictions", folder)
    assert code == 0
    said = " ".join(out.split())
    assert "Warning: Only some files of the table have the column 'ward' (not in '1.parq" in said
    code, out, err = run(capsys, "--predictions", folder, "--json", "-")
    assert "'ward'" in json.loads(out)["doubts"][0]
    assert "'ward'" in err


@pytest.mark.parametrize("asked", ["--target", "--groups", "--outputs"])
def test_a_column_that_a_file_lacks_is_named_with_the_file(tmp_path, asked, capsys):
    column = {"--target": "y", "--groups": "ward", "--outputs": "p_yes"}[asked]
    rows = {**ROWS, "ward": [1, 2, 1, 2]}
    less = {name: values for name, values in rows.items() if name != column}
    folder = parts(tmp_path / "in", rows, less)
    more = {
        "--target": [],
        "--groups": ["--groups", "ward"],
        "--outputs": ["--outputs", "yes=p_yes"],
    }
    code, _, err = run(capsys, "--predictions", folder, *more[asked])
    assert code == 2
    said = " ".join(err.split())
    assert f"file '1.parquet', column '{column}'" in said
    assert "1 of 2 lack it" in said


@pytest.mark.parametrize(
    ("column", "value"), [("p_yes", 1.5), ("p_yes", float("nan")), ("y", None)]
)
def test_a_fault_in_early_rows_names_file_and_row(tmp_path, column, value, capsys):
    later = {name: [*values] for name, values in ROWS.items()}
    later[column][3] = value
    folder = parts(tmp_path / "in", ROWS, later)
    code, _, err = run(capsys, "--predictions", folder, "--outputs", "yes=p_yes")
    assert code == 2
    said = " ".join(err.split())
    assert "file '1.parquet, row group 2'" in said
    assert "row 4" in said


def test_types_that_differ_are_named_with_column_and_file(tmp_path, capsys):
    folder = parts(tmp_path / "in", ROWS, {**ROWS, "p_yes": ["low", "low", "high", "high"]})
    code, _, err = run(capsys, "--predictions", folder)
    assert code == 2
    assert "file '1.parquet', column 'p_yes'" in " ".join(err.split())


def test_a_list_or_a_pattern_is_the_folder(places, capsys):
    folder = places[0]
    _, wanted, _ = run(capsys, "--predictions", folder, "--json", "-")
    a, b = folder / "a.parquet", folder / "b.parquet"
    for named in ([b, a], [folder / "*.parquet"]):
        code, out, err = run(capsys, "--predictions", *named, "--json", "-")
        assert (code, err) == (0, "")
        ours, theirs = json.loads(out), json.loads(wanted)
        assert ours["inputs"]["calibration"].pop("name") in ("b.parquet and a.parquet", "*.parquet")
        theirs["inputs"]["calibration"].pop("name")
        assert ours == theirs
    code, out, _ = run(capsys, "--predictions", a, "--predictions", b)
    assert code == 0
    assert "2 files and 5 row groups were read" in out
    code, _, err = run(capsys, "--predictions", folder / "c-*.parquet")
    assert code == 2
    assert "No Parquet file matches the pattern" in err
    code, _, err = run(capsys, "--predictions", a, b, "--evaluation", a)
    assert code == 2
    assert "--evaluation cannot be given for a folder or a list of files" in " ".join(err.split())


SAMPLES = Path(__file__).parents[2] / "sample_data"


def test_a_model_scores_a_folder_block_by_block(tmp_path, capsys):
    place = SAMPLES / "adult"
    table, folder = pq.read_table(place / "calibration.parquet"), tmp_path / "rows"
    folder.mkdir()
    pq.write_table(table.slice(0, 2000), folder / "a.parquet", row_group_size=700)
    pq.write_table(table.slice(2000), folder / "b.parquet")
    asked = ["diagnose", "--model", str(place / "model.json"), "--target", "income",
             "--event", ">50K", "--groups", "sex", "--json"]  # fmt: skip
    found = []
    for path in (folder, place / "calibration.parquet"):
        code = main([*asked, "-", "--data", str(path)])
        said = capsys.readouterr()
        assert (code, said.err) == (0, "")
        found.append(json.loads(said.out))
    assert found[0]["inputs"]["model"] == found[1]["inputs"]["model"]
    assert found[0]["inputs"]["calibration"]["files"] == 2
    (ours,), (theirs,) = (one["sets"] for one in found)
    assert ours["n"] == theirs["n"] == table.num_rows
    for part in ("classes", "confusion", "findings", "event"):
        assert ours[part] == theirs[part]
    for a, b in zip(ours["estimates"], theirs["estimates"], strict=True):
        assert (a["label"], a["meaning"]) == (b["label"], b["meaning"])
        assert a["value"] == pytest.approx(b["value"], abs=2e-3)
    code = main([*asked[:-1], "--data", str(folder)])
    said = capsys.readouterr().out
    assert code == 0
    assert said.startswith("Model: model.json, ")
    assert "2 files and" in said
    odd = table.slice(2000).set_column(
        table.schema.get_field_index("age"), "age", pa.array(["old"] * (table.num_rows - 2000))
    )
    pq.write_table(odd, folder / "b.parquet")
    code = main([*asked, "-", "--data", str(folder)])
    assert code == 2
    assert "column 'age'" in " ".join(capsys.readouterr().err.split())
