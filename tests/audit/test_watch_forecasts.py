"""`kdcal watch` of a regression: drift of forecasts, what is expected, and late outcomes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest
from workerless import run_here

import kdcal_core.audit
from kdcal_core.audit import (
    AuditConfig,
    CalibratorFacts,
    Watch,
    WatchLimits,
    WatchSettings,
    finding,
    read_state,
    run_gate,
    run_watch,
    state_bytes,
    watch_json,
    watch_json_text,
    watch_junit,
    watch_table,
)
from kdcal_core.cli import main
from kdcal_core.cli.watch import watch_report
from kdcal_core.diagnostics import ForecastMeasures
from kdcal_core.errors import InputError
from kdcal_core.review import Limit, NamedFiles, Workspace, add_watched, scored_review

pytestmark = pytest.mark.usefixtures("work_here")

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "sample_data"
SCHEMA = json.loads((Path(kdcal_core.audit.__file__).parent / "watch.schema.json").read_text())


def table(
    seed: int, n: int = 800, mean: float = 0.0, spread: float = 1.0, narrow: float = 1.0
) -> pd.DataFrame:
    """Normal forecasts, and outcomes that scatter more than is stated by a factor."""
    rng = np.random.default_rng(seed)
    middle, stated = rng.normal(mean, 2.0, n), spread * rng.uniform(0.5, 1.5, n)
    y = middle + narrow * stated * rng.normal(size=n)
    return pd.DataFrame({"middle": middle, "stated": stated, "y": y})


def written(frame: pd.DataFrame, path: Path) -> Path:
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def place(work_here: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("forecasts")
    written(table(0, 1500), folder / "reference.csv")
    return folder


@pytest.fixture(scope="module")
def config(place: Path) -> AuditConfig:
    files = NamedFiles(
        target="y", predictions=str(place / "reference.csv"), task="regression", family="normal",
        parameters=(("mean", "middle"), ("std", "stated")),
    )  # fmt: skip
    return AuditConfig("Forecasts", files)


@pytest.fixture(scope="module")
def late(place: Path, config: AuditConfig) -> Watch:
    limits = WatchLimits(coverage_error_at_most=0.05, calibration_error_at_most=0.03)
    return run_watch(
        replace(config, watch=limits), written(table(1, narrow=1.5), place / "late.csv")
    )


def test_the_same_forecasts_pass_without_outcomes(place: Path, config: AuditConfig) -> None:
    limits = WatchLimits(
        crps_at_most=0.8, unknown_at_most=0.05, coverage_error_at_most=0.05, psi_at_most=0.2
    )
    same = written(table(2).drop(columns="y"), place / "same.csv")
    found = run_watch(replace(config, watch=limits), same)
    assert [(one.key, one.source, one.verdict) for one in found.results] == [
        ("psi_at_most", "scores", "pass"),
        ("psi_at_most", "scores", "pass"),
        ("unknown_at_most", "forecasts", "pass"),
        ("crps_at_most", "without labels", "pass"),
    ]  # coverage is held against outcomes alone
    assert finding(found).startswith("Nothing beyond chance has changed in 800 new rows: PSI")
    truth = float(np.mean(2.0 * table(2)["stated"] / (2.0 * np.pi**0.5)))  # of calibrated forecasts
    assert found.forecasts is not None
    assert found.forecasts.crps.low < truth < found.forecasts.crps.high
    jsonschema.validate(json.loads(watch_json_text(found)), SCHEMA)
    said = watch_report(found)
    assert "Drift of the interval widths" in said
    assert "the predicted medians and the interval widths of the forecasts as given." in said
    assert "times what their forecasts expect" in said


def test_wider_intervals_are_a_finding_though_no_median_moved(
    place: Path, config: AuditConfig
) -> None:
    wide = written(table(3, spread=1.3).drop(columns="y"), place / "wide.csv")
    found = run_watch(config, wide)
    assert finding(found).startswith("The interval widths have moved beyond chance: PSI")
    assert [one.verdict for one in found.results] == ["pass", "fail"]
    assert found.width is not None
    assert found.width.wasserstein.estimate.value == pytest.approx(0.3 * 2.563, rel=0.15)
    moved = written(table(4, mean=2.0).drop(columns="y"), place / "moved.csv")
    assert finding(run_watch(config, moved)).startswith("The predicted medians have moved")


def test_late_outcomes_signal_and_have_their_coverage(late: Watch) -> None:
    assert late.test is not None
    assert late.test.recalibrate
    assert "too narrow" in late.test.fault
    assert finding(late).startswith("Recalibrate: the labels contradict the stated forecasts")
    assert isinstance(late.labels, ForecastMeasures)
    for row, truth in zip(late.labels.coverage, (0.347, 0.607, 0.809), strict=True):
        assert row.coverage.low < truth < row.coverage.high  # P(|z| < z_level / 1.5)
    verdicts = {(one.key, one.verdict, one.source) for one in late.results if one.key != "alpha"}
    assert ("coverage_error_at_most", "fail", "labels") in verdicts
    assert ("calibration_error_at_most", "fail", "labels") in verdicts
    assert late.exit_code == 1
    jsonschema.validate(json.loads(watch_json_text(late)), SCHEMA)
    failed = sum(one.verdict == "fail" for one in late.results)
    assert f'failures="{failed}"' in watch_junit(late)


def test_a_state_in_two_halves_gives_the_same_as_at_once(
    place: Path, config: AuditConfig, late: Watch
) -> None:
    whole = pd.read_csv(place / "late.csv")
    first = run_watch(config, written(whole[:300], place / "first.csv"))
    path = place / "watch.json"
    path.write_bytes(state_bytes(first.state))
    assert len(read_state(path).all_bins) == 2
    second = run_watch(config, written(whole[300:], place / "second.csv"), state=path)
    assert second.test is not None
    assert late.test is not None
    assert (second.test.e_value, second.test.gap) == (late.test.e_value, late.test.gap)
    assert second.width is not None
    np.testing.assert_array_equal(second.width.bins.edges, first.state.all_bins[1].edges)
    again = run_watch(config, written(whole[:200], place / "again.csv"), state=path)
    assert "200 of 200 labelled rows" in " ".join(again.notes)
    damaged = json.loads(path.read_text())
    damaged["state"]["further_bins"] = []
    path.write_text(json.dumps(damaged))
    with pytest.raises(InputError, match="damaged"):
        read_state(path)


def test_a_review_gives_the_same_and_makes_a_table(
    place: Path, config: AuditConfig, late: Watch
) -> None:
    workspace = Workspace(place / "reviews")
    files = replace(config.files, evaluation=str(written(table(5), place / "further.csv")))
    review = scored_review(workspace, files)
    review = add_watched(workspace, review.id, place / "late.csv", "late.csv")
    found = {}
    for name in ("late.csv", None):
        asked = watch_table.request(workspace, review, WatchSettings(name))
        folder = place / f"review-{name}"
        folder.mkdir()
        run_here(asked.target, asked.kwargs, folder=folder)
        found[name] = watch_table.read(folder)
    assert found["late.csv"].test is not None
    assert late.test is not None
    assert found["late.csv"].which == "evaluation"
    assert found["late.csv"].table.labelled == 800
    made = found[None]
    assert finding(made).startswith("The predicted medians have moved")
    assert 0 < made.table.labelled < made.table.rows
    assert made.which == "calibration"
    for settings, said in (
        (WatchSettings("late.csv", method="platt"), "of probabilities"),
        (WatchSettings("late.csv", weighted_by="features"), "the review is a regression"),
    ):
        with pytest.raises(InputError, match=said):
            watch_table.request(workspace, review, settings)


def test_models_quantiles_and_single_numbers_are_watched(tmp_path: Path) -> None:
    diamonds = SAMPLES / "diamonds_quantiles"
    files = NamedFiles(target="price", predictions=str(diamonds / "calibration.parquet"))
    found = run_watch(AuditConfig("Q", files), diamonds / "evaluation.parquet")
    assert found.test is not None
    assert found.forecasts is not None
    assert found.forecasts.factor.low < found.forecasts.factor.high
    rows = table(6, 600).assign(log=lambda one: one["middle"] / 5.0)
    rows["positive"] = np.exp(rows["log"] + 0.1 * (rows["y"] - rows["middle"]))
    old, new = written(rows[:400], tmp_path / "old.csv"), written(rows[400:], tmp_path / "new.csv")
    for family, target, parameters in (
        ("point", "y", ("mean", "middle")),
        ("log_point", "positive", ("log_mean", "log")),
    ):
        points = NamedFiles(
            target=target, predictions=str(old), task="regression", family=family,
            parameters=(parameters,),
        )  # fmt: skip
        found = run_watch(AuditConfig("P", points), new)
        assert found.test is not None
        assert not found.test.recalibrate
        # the cross-fitted spreads of the reference rows are no drift
        assert found.width is not None
        assert found.width.psi.p_value > 0.05
        assert found.width.wasserstein.estimate.value < 0.1 * found.measures[1].new.value
    model = SAMPLES / "heteroscedastic"
    files = NamedFiles(
        target="y", model=str(model / "model.onnx"), data=str(model / "calibration.parquet"),
        task="regression",
    )  # fmt: skip
    rows = pd.read_parquet(model / "evaluation.parquet")[:1500].drop(columns="y")
    found = run_watch(AuditConfig("M", files), written(rows, tmp_path / "rows.csv"))
    assert [one.verdict for one in found.results] == ["pass", "pass"]


@pytest.mark.usefixtures("no_pictures")
def test_limits_of_an_audit_of_forecasts_hold_too(place: Path, config: AuditConfig) -> None:
    late = written(table(1, narrow=1.5), place / "held.csv")
    limits = {"KC021": Limit(high=0.04), "KC022": Limit(-0.1, 0.1)}
    content = run_gate(replace(config, limits=limits, codes=("KC021", "KC022"))).content
    found = run_watch(config, late, audit=content)
    assert found.audit is not None
    assert found.audit.limits == {
        "calibration_error_at_most": 0.04,
        "coverage_error_at_most": 0.1,
    }
    assert {one.key for one in found.results if one.of_audit} == found.audit.limits.keys()
    assert "Beyond a limit of the audit: " in finding(found)
    sided = {"KC021": Limit(high=0.04), "KC022": Limit(-0.1, 0.2)}
    content = run_gate(replace(config, limits=sided, codes=("KC021", "KC022"))).content
    found = run_watch(config, late, audit=content)
    assert found.audit is not None
    assert found.audit.limits == {"calibration_error_at_most": 0.04}


def test_what_does_not_fit_a_regression_is_refused(place: Path, config: AuditConfig) -> None:
    new = written(table(7, 60), place / "new.csv")
    for key in ("accuracy_at_least", "unknown_by_density_at_most"):
        limits = WatchLimits(**{key: 0.5})
        with pytest.raises(InputError, match=f"watch.{key}"):
            run_watch(replace(config, watch=limits), new)
    with pytest.raises(InputError, match="lacks a column of the predictions") as error:
        run_watch(config, written(table(7, 60).drop(columns="stated"), place / "lacks.csv"))
    assert error.value.column == "stated"
    frame = table(7, 60)
    frame.loc[2, "stated"] = -1.0
    with pytest.raises(InputError, match="row 3") as error:
        run_watch(config, written(frame, place / "bad.csv"))
    assert error.value.file == "bad.csv"
    rows = SAMPLES / "digits_predictions" / "calibration.parquet"
    classes = NamedFiles(target="label", predictions=str(rows))
    with pytest.raises(InputError, match=r"watch\.crps_at_most is of a regression"):
        run_watch(AuditConfig("D", classes, watch=WatchLimits(crps_at_most=1.0)), rows)


def test_the_recalibrated_forecasts_are_watched(place: Path, config: AuditConfig) -> None:
    fitted = written(table(30, 1500, narrow=1.5), place / "narrow-fit.csv")
    out = place / "global.kdcal"
    columns = ["--parameters", "mean=middle,std=stated"]
    asked = ["calibrate", "--calibrator", "global", "--predictions", str(fitted), "--target", "y"]
    assert main([*asked, "--task", "regression", *columns, "--out", str(out)]) == 0
    over = written(table(31, 1500, narrow=1.5), place / "narrow.csv")
    bare = replace(config, files=replace(config.files, predictions=str(over)))
    new = written(table(32, narrow=1.5), place / "narrow-new.csv")
    as_it_is, found = (run_watch(replace(bare, calibrator=one), new) for one in (None, str(out)))
    assert as_it_is.test is not None
    assert as_it_is.test.recalibrate
    assert found.test is not None
    assert not found.test.recalibrate
    assert (found.verdict, found.table.labelled, found.table.name) == (
        "pass", 800, "narrow-new.csv",
    )  # fmt: skip
    assert "of the recalibrated forecasts." in watch_report(found)
    content = run_gate(replace(bare, codes=("KC022",))).content
    chosen = replace(content, calibrator=CalibratorFacts("global", "Global recalibration", ""))
    warned, silent = (run_watch(bare, new, audit=one).notes for one in (chosen, content))
    assert "The audit chose Global recalibration for this model" in warned[0]
    assert not any("The audit chose" in one for one in silent)
    own = run_gate(replace(bare, calibrator=str(out), codes=("KC022",))).content
    assert not run_watch(replace(bare, calibrator=str(out)), new, audit=own).notes
    widths = [one.measures[1].new.value for one in (found, as_it_is)]
    assert widths[0] / widths[1] == pytest.approx(1.5, rel=0.1)
    assert watch_json(found)["reference"]["calibrator"] == found.state.of.calibrator != ""
    for files, data in (
        (replace(bare.files, predictions=str(fitted)), new),  # the reference rows
        (bare.files, fitted),  # the new ones
    ):
        with pytest.raises(InputError, match=r"'global\.kdcal' was fitted on the rows"):
            run_watch(replace(bare, files=files, calibrator=str(out)), data)
    broken = table(33, 60)
    broken.loc[4, "stated"] = -1.0
    with pytest.raises(InputError, match="row 5") as error:
        run_watch(replace(bare, calibrator=str(out)), written(broken, place / "broken.csv"))
    assert error.value.file == "broken.csv"


def test_patients_are_counted_together(tmp_path: Path, config: AuditConfig) -> None:
    def of_patients(seed: int, n: int) -> pd.DataFrame:
        """Ten rows of each patient, whose outcomes share their deviation."""
        frame, rng = table(seed, 10 * n), np.random.default_rng(seed)
        frame["patient"] = [f"{seed}-{one}" for one in np.repeat(np.arange(n), 10)]
        return frame.assign(y=frame["middle"] + frame["stated"] * np.repeat(rng.normal(size=n), 10))

    old, new = (
        written(of_patients(seed, n), tmp_path / f"{seed}.csv") for seed, n in ((20, 60), (21, 40))
    )
    alone = replace(config, files=replace(config.files, predictions=str(old)))
    found, rows = (
        run_watch(one, new)
        for one in (replace(alone, files=replace(alone.files, cluster="patient")), alone)
    )
    assert (found.state.test.n, found.state.test.within) == (400, 360)
    assert not found.state.test.crossed_at
    assert rows.state.test.within == 0
    for one, other in zip(found.measures, rows.measures, strict=True):
        assert one.labels is not None
        assert other.labels is not None
        assert one.labels.value == other.labels.value
        if one.title != found.measures[1].title:  # widths do not depend on the patient
            assert one.labels.high - one.labels.low > 1.3 * (other.labels.high - other.labels.low)
    assert "clusters" in found.shift.wasserstein.estimate.interval
