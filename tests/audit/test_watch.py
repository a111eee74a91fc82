"""`kdcal watch`: exit codes, continued states, models and predictions, and refused input."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pandas as pd
import pytest
from made_reviews import scored
from workerless import run_here

import kdcal_core.audit
from kdcal_core.audit import (
    AuditConfig,
    Record,
    Watch,
    WatchLimits,
    WatchSettings,
    audits_of_rows,
    by_default,
    content_bytes,
    disputed_rate,
    event_rates,
    finding,
    rate_views,
    read_config,
    read_state,
    reference_rates_words,
    result_words,
    run_gate,
    run_watch,
    state_bytes,
    system_user,
    watch_json,
    watch_json_text,
    watch_junit,
    watch_kinds,
    watch_state,
    watch_table,
    why_no_features,
)
from kdcal_core.audit.signing import canonical, digest
from kdcal_core.audit.watch_kinds import WatchedClasses
from kdcal_core.audit.watch_words import cautions
from kdcal_core.calibration import CALIBRATORS
from kdcal_core.charts import moved_beyond_chance
from kdcal_core.cli import main
from kdcal_core.cli.watch import watch_report
from kdcal_core.diagnostics import label_shift, score_shift
from kdcal_core.errors import InputError
from kdcal_core.review import (
    Limit,
    NamedFiles,
    Question,
    Workspace,
    add_watched,
    remove_watched,
    scored_review,
    set_question,
)

pytestmark = pytest.mark.usefixtures("work_here")

ROOT = Path(__file__).parents[2]
CANCER = ROOT / "sample_data" / "breast_cancer"
SCHEMA = json.loads((Path(kdcal_core.audit.__file__).parent / "watch.schema.json").read_text())


def table(seed: int, n: int = 1500, mean: float = 0.0, sharpness: float = 1.0) -> pd.DataFrame:
    """Predictions whose log odds are too large by a factor, and outcomes."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(mean, 1.5, n)
    y = rng.random(n) < 1.0 / (1.0 + np.exp(-odds))
    stated = 1.0 / (1.0 + np.exp(-sharpness * odds))
    return pd.DataFrame(
        {"proba_no": 1.0 - stated, "proba_yes": stated, "y": np.where(y, "yes", "no")}
    )


def written(frame: pd.DataFrame, path: Path) -> Path:
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def place(work_here: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("watch")
    written(table(0), folder / "reference.csv")
    return folder


@pytest.fixture(scope="module")
def config(place: Path) -> AuditConfig:
    files = NamedFiles(target="y", predictions=str(place / "reference.csv"))
    return AuditConfig("A <b>watch", files, event="yes")


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little is drawn behind shifts of scores and shares, in tests of counted rows and labels."""
    monkeypatch.setattr(watch_kinds, "score_shift", partial(score_shift, n_draws=99))
    monkeypatch.setattr(watch_kinds, "label_shift", partial(label_shift, n_draws=20))
    monkeypatch.setattr(import_module("kdcal_core.diagnostics.label_shift"), "_SHUFFLES", 199)


def limited(config: AuditConfig, **limits: float) -> AuditConfig:
    return replace(config, watch=WatchLimits(**limits))


@pytest.fixture(scope="module")
def same(place: Path, config: AuditConfig) -> Watch:
    limits = limited(
        config, accuracy_at_least=0.6, auc_at_least=0.6, rate_change_at_most=0.2,
        calibration_error_at_most=0.2,
    )  # fmt: skip
    return run_watch(limits, written(table(1).drop(columns="y"), place / "same.csv"))


@pytest.fixture(scope="module")
def late(place: Path, config: AuditConfig) -> Watch:
    """Labels that show over-confidence, of scores that did not drift."""
    frame = table(2, 2000)
    rng = np.random.default_rng(3)
    odds = np.log(frame["proba_yes"] / frame["proba_no"])
    frame["y"] = np.where(rng.random(2000) < 1.0 / (1.0 + np.exp(-0.4 * odds)), "yes", "no")
    return run_watch(config, written(frame, place / "late.csv"))


def test_the_same_distribution_passes_without_labels(same: Watch) -> None:
    assert (same.verdict, same.exit_code) == ("pass", 0)
    assert [one.source for one in same.results] == ["scores"] + 4 * ["without labels"]
    assert (same.test, same.labels) == (None, None)
    assert same.performance.event is not None
    assert same.shares is not None
    assert same.shares.adjusted.shape == (0, 2)  # nothing of a table's size is stored
    assert same.which == "calibration"


def test_shifted_scores_fail(place: Path, config: AuditConfig) -> None:
    moved = written(table(4, mean=1.5).drop(columns="y"), place / "moved.csv")
    found = run_watch(config, moved)
    assert [(one.key, one.verdict) for one in found.results] == [("psi_at_most", "fail")]
    assert found.exit_code == 1
    assert found.shift.psi.p_value < 0.01
    assert run_watch(limited(config, psi_at_most=np.inf), moved).exit_code == 0


def test_estimates_of_the_rate_that_exclude_each_other_are_named(
    place: Path, config: AuditConfig, same: Watch
) -> None:
    assert disputed_rate(same) == ""
    moved = table(4, mean=1.5)  # the scores moved, and equal ones have equal chances
    found = run_watch(config, written(moved.drop(columns="y"), place / "disputed.csv"))
    assert found.performance.event is not None
    assert found.shares is not None
    by_scores = found.performance.event.rate.rows
    assert by_scores.low < (moved["y"] == "yes").mean() < by_scores.high
    assert found.shares.shares[1].low > by_scores.high
    said = disputed_rate(found)
    assert said.startswith("The rate of yes is ")
    assert "No shares of the classes explain the new probabilities (p value below 0.0001)" in said
    assert said.endswith("Only labels show the rate.")
    assert watch_json(found)["class_shares"]["fit_p_value"] < 0.01
    assert said in finding(found)
    assert said in cautions(found)
    rates = event_rates(found)
    assert rates is not None
    assert rates.contradict
    assert watch_json(found)["event_rates"]["contradict"]
    by_scores_words, by_shares_words = (words for _, words in rate_views(rates))
    assert "(covariate shift): assumes" in by_scores_words
    assert "(label shift), which is ruled out here: assumes" in by_shares_words
    possible = replace(found, shares=replace(found.shares, fit_p_value=0.5))
    assert disputed_rate(possible).endswith("Only labels show which.")
    assert all("Believe it where" in one for one in (by_scores_words, by_shares_words))
    assert "the mean of their probabilities" in reference_rates_words(rates)


def test_labels_and_poor_calibration_say_which_rate_to_believe(
    place: Path, config: AuditConfig, same: Watch
) -> None:
    moved = table(4, mean=1.5)
    moved.loc[400:, "y"] = None
    found = run_watch(config, written(moved, place / "disputed-half.csv"))
    assert disputed_rate(found).endswith("contradicts the estimate by the shares.")
    rates = event_rates(found)
    assert rates is not None
    assert [words.split(":")[0] for _, words in rate_views(rates)][-1] == (
        "from the labels of 400 new rows"
    )
    unlabelled = replace(rates, from_labels=None)
    poor = replace(unlabelled, calibrated=False)
    assert "calibrate first" in rate_views(poor)[1][1]
    assert "calibrate first" not in rate_views(unlabelled)[1][1]
    agreeing = event_rates(same)
    assert agreeing is not None
    assert "do not contradict each other" in reference_rates_words(agreeing)


def test_an_estimate_that_is_not_given_contradicts_nothing(
    place: Path, config: AuditConfig
) -> None:
    far = table(5, 300, mean=12.0)
    found = run_watch(config, written(far.drop(columns="y"), place / "far-off.csv"))
    assert not found.watched.covered
    rates = event_rates(found)
    assert rates is not None
    assert not rates.contradict
    assert disputed_rate(found) == ""
    assert len(rate_views(rates)) == 1


def test_late_labels_signal_after_some_rows(late: Watch) -> None:
    assert late.test is not None
    assert late.test.recalibrate
    assert 10 < (late.test.crossed_at or 0) < 1000
    assert [(one.key, one.verdict) for one in late.results] == [
        ("psi_at_most", "pass"),
        ("alpha", "fail"),
    ]
    assert late.exit_code == 1
    assert "Recalibrate" in watch_json(late)["results"][1]["said"]


@pytest.mark.usefixtures("few_draws")
def test_rows_that_are_not_covered_are_not_enough_evidence(
    place: Path, config: AuditConfig
) -> None:
    far = pd.DataFrame({"proba_yes": np.full(300, 0.99999)})
    far["proba_no"] = 1.0 - far["proba_yes"]
    path = written(far, place / "far.csv")
    limits = limited(config, psi_at_most=np.inf, accuracy_at_least=0.7)
    found = run_watch(limits, path)
    assert not found.watched.covered
    assert (found.verdict, found.exit_code) == ("not enough evidence", 3)
    assert run_watch(replace(limits, undecided="pass"), path).exit_code == 0
    assert any("do not cover" in one for one in watch_json(found)["cautions"])
    strict = run_watch(limited(config, psi_at_most=np.inf, unknown_at_most=0.1), path)
    assert [(one.key, one.verdict) for one in strict.results] == [("unknown_at_most", "fail")]
    assert "limit at most 10%" in watch_json(strict)["results"][0]["said"]
    jsonschema.validate(json.loads(watch_json_text(strict)), SCHEMA)


@pytest.mark.usefixtures("few_draws")
def test_measures_with_labels_decide_where_all_rows_have_one(
    place: Path, config: AuditConfig
) -> None:
    frame = table(5, 800)
    frame["y"] = np.where(frame["proba_yes"] > 0.5, "no", "yes")  # always wrong
    limits = limited(config, psi_at_most=np.inf, accuracy_at_least=0.5)
    found = run_watch(limits, written(frame, place / "wrong.csv"))
    assert [(one.source, one.verdict) for one in found.results] == 2 * [("labels", "fail")]
    frame.loc[::2, "y"] = None
    half = run_watch(limits, written(frame, place / "half.csv"))
    assert (half.table.rows, half.table.labelled) == (800, 400)
    assert half.results[0].source == "without labels"
    assert any("400 rows have no label yet" in one for one in half.notes)


def test_the_json_follows_its_published_schema(same: Watch, late: Watch) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for one in (same, late):
        jsonschema.validate(json.loads(watch_json_text(one)), SCHEMA)


def test_junit_has_a_case_for_each_result(same: Watch, late: Watch) -> None:
    for one, failures in ((same, "0"), (late, "1")):
        suite = ElementTree.fromstring(watch_junit(one))
        assert (suite.get("tests"), suite.get("failures")) == (str(len(one.results)), failures)


@pytest.mark.usefixtures("few_draws")
def test_a_state_in_two_halves_gives_the_same_as_at_once(
    place: Path, config: AuditConfig, late: Watch, same: Watch
) -> None:
    whole = pd.read_csv(place / "late.csv")
    first = run_watch(config, written(whole[:700], place / "first.csv"))
    path = place / "watch.json"
    path.write_bytes(state_bytes(first.state))
    second = run_watch(config, written(whole[700:], place / "second.csv"), state=path)
    assert second.test is not None
    assert late.test is not None
    for name in ("e_value", "crossed_at", "gap", "p_value"):
        assert getattr(second.test, name) == getattr(late.test, name)
    assert second.shift.bins.edges.tolist() == late.shift.bins.edges.tolist()
    assert [one.rows for one in second.state.tables] == [700, 1300]
    assert watch_json(second)["earlier_tables"] == 1
    # a table without labels does not change the test
    third = run_watch(config, place / "same.csv", state=path)  # written by `same`
    assert third.state.test.n == 700
    with pytest.raises(InputError, match="would count twice"):
        run_watch(config, place / "first.csv", state=path)


def test_a_review_gives_the_same_as_the_files_that_it_was_made_of(
    place: Path, config: AuditConfig, late: Watch
) -> None:
    workspace = Workspace(place / "reviews")
    review = scored_review(workspace, config.files)
    set_question(workspace, review.id, Question(event="yes"))
    review = add_watched(workspace, review.id, place / "late.csv", "late.csv")
    asked = watch_table.request(workspace, review, WatchSettings("late.csv", title=config.title))
    folder = place / "by-review"
    folder.mkdir()
    run_here(asked.target, asked.kwargs, folder=folder)
    found = watch_table.read(folder)
    assert watch_json_text(found) == watch_json_text(late)
    assert state_bytes(found.state) == state_bytes(late.state)


@pytest.mark.usefixtures("few_draws")
def test_earlier_tables_of_a_review_count_as_their_states_do(
    place: Path, config: AuditConfig, late: Watch
) -> None:
    workspace = Workspace(place / "earlier")
    review = scored_review(workspace, config.files)
    set_question(workspace, review.id, Question(event="yes"))
    whole = pd.read_csv(place / "late.csv")
    for name, part in (("one.csv", whole[:700]), ("two.csv", whole[700:])):
        review = add_watched(workspace, review.id, written(part, place / name), name)
    (one, first), _ = ((name, table.digest) for name, table in review.watched.items())
    folder = place / "by-earlier"
    folder.mkdir()
    settings = WatchSettings("two.csv", earlier=((one, first),))
    asked = watch_table.request(workspace, review, settings)
    run_here(asked.target, asked.kwargs, folder=folder)
    found = watch_table.read(folder)
    assert found.test is not None
    assert late.test is not None
    assert found.test.e_value == late.test.e_value
    assert [table.rows for table in found.state.tables] == [700, 1300]
    again = replace(settings, table=one)
    asked = watch_table.request(workspace, review, again)
    with pytest.raises(InputError, match="would count twice"):
        run_here(asked.target, asked.kwargs, folder=folder)
    with pytest.raises(InputError, match="no longer part of the review"):
        watch_table.request(workspace, review, replace(settings, digest="0" * 64))
    review = remove_watched(workspace, review.id, one)
    assert list(review.watched) == ["two.csv"]
    assert len([*workspace.folder(review.id).glob("*.arrow")]) == 2  # its file is gone too
    with pytest.raises(InputError, match="no longer part of the review"):
        watch_table.request(workspace, review, settings)


def test_only_calibrators_of_probabilities_can_be_watched(place: Path, config: AuditConfig) -> None:
    workspace = Workspace(place / "methods")
    review = scored_review(workspace, config.files)
    review = add_watched(workspace, review.id, written(table(12, 200), place / "m.csv"), "m.csv")
    needy = next(key for key, one in CALIBRATORS.items() if one.needs)
    for key, said in ((needy, "cannot be watched"), ("none", "There is no calibrator")):
        with pytest.raises(InputError, match=said):
            watch_table.request(workspace, review, WatchSettings("m.csv", method=key))
    platt, model = (
        watch_table.request(workspace, review, WatchSettings("m.csv", method=one))
        for one in ("platt", None)
    )
    assert platt.key != model.key


def test_a_made_table_shifts_only_the_scores() -> None:
    rows = scored(3000, name="evaluation")
    proba, y = WatchedClasses(0, 0).made(rows.proba, rows.y, 0)
    score = rows.proba[:, 0]
    assert 1500 < len(y) < 2100
    assert proba[:, 0].mean() > score.mean() + 0.05
    assert (y[: len(y) // 2] >= 0).all()
    assert (y[len(y) // 2 :] == -1).all()
    known = {tuple(one) for one in np.asarray(rows.proba)}
    assert all(tuple(one) in known for one in proba)
    assert len({tuple(one) for one in proba}) == len(proba)  # no row twice


def test_a_state_of_something_else_is_refused(
    place: Path, config: AuditConfig, same: Watch
) -> None:
    path = place / "other.json"
    path.write_bytes(state_bytes(same.state))
    for other, said in (
        (replace(config, event="no"), "another event"),
        (limited(config, alpha=0.01), "began with alpha 0.05"),
        (
            replace(
                config,
                files=replace(config.files, predictions=str(written(table(9), place / "o.csv"))),
            ),
            "other reference rows",
        ),
    ):
        with pytest.raises(InputError, match=said):
            run_watch(other, place / "same.csv", state=path)


def test_a_damaged_state_is_one_clear_error(place: Path, same: Watch) -> None:
    path = place / "damaged.json"
    whole = state_bytes(same.state)
    altered = json.loads(whole)
    altered["state"]["test"]["gap"] = altered["state"]["test"]["offset"]
    altered["sha256"] = digest(canonical(altered["state"]))
    many = state_bytes(replace(same.state, counted=np.arange(3, dtype=np.uint64)))
    contents = [
        b"",
        many,  # keys of rows that the test did not count
        b"[1",
        b"[]",
        b"{}",
        whole[:-100],
        whole.replace(b'"largest": 0.0', b'"largest": 1.0'),
        json.dumps(altered).encode(),
    ]
    assert contents[-2] != whole
    for content in contents:
        path.write_bytes(content)
        with pytest.raises(InputError, match="damaged, or is not a state"):
            read_state(path)
    path.write_bytes(whole.replace(b'"format": 4', b'"format": 9'))
    with pytest.raises(InputError, match="newer kdcal"):
        read_state(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_state(place / "nothing.json")


@pytest.fixture(scope="module")
def cancer(place: Path) -> AuditConfig:
    path = place / "cancer.toml"
    path.write_text(
        f'[files]\nmodel = "{CANCER}/model.skops"\ncalibration = "{CANCER}/calibration.parquet"\n'
        '[roles]\ntarget = "diagnosis"\n[watch]\naccuracy_at_least = 0.8\npsi_at_most = inf\n'
    )
    return read_config(path)


def test_a_model_scores_the_new_rows(place: Path, cancer: AuditConfig) -> None:
    frame = pd.read_parquet(CANCER / "evaluation.parquet")
    target = cancer.files.target
    by_features = limited(cancer, unknown_at_most=0.5, accuracy_at_least=0.8, psi_at_most=np.inf)
    by_features = replace(by_features, weighted_by="features")
    found = run_watch(by_features, CANCER / "evaluation.parquet")
    assert found.table.rows == found.table.labelled == len(frame)
    assert [one.source for one in found.results] == ["features", "labels", "labels"]
    assert found.performance.predictions.weighted_by == "features"
    effective = f"{found.watched.effective_rows:,.0f}"
    assert f"{found.n_reference:,} reference rows count as {effective}." in watch_report(found)
    jsonschema.validate(json.loads(watch_json_text(found)), SCHEMA)
    bare = NamedFiles(target="y", predictions=str(place / "reference.csv"))
    with pytest.raises(InputError, match="cannot be weighted by features"):
        run_watch(replace(by_features, files=bare), place / "reference.csv")
    feature = next(one for one in frame.columns if one != target)
    with pytest.raises(InputError, match="lacks a column that the model needs") as error:
        run_watch(cancer, written(frame.drop(columns=feature), place / "lacks.csv"))
    assert (error.value.column, error.value.file) == (feature, "lacks.csv")


def test_rows_where_the_model_has_seen_hardly_any_data_have_a_limit(
    place: Path, cancer: AuditConfig
) -> None:
    asked = limited(cancer, unknown_by_density_at_most=0.1, psi_at_most=np.inf)
    frame = pd.read_parquet(CANCER / "evaluation.parquet").drop(columns=str(cancer.files.target))
    found = run_watch(asked, written(frame * 50.0, place / "far.csv"))
    (share,) = found.results
    assert found.unknown is not None
    assert (share.verdict, share.source, share.estimate) == ("fail", "features", found.unknown.new)
    assert found.exit_code == 1
    assert found.unknown.new.value > 0.9
    assert found.unknown.reference.value < 0.1
    jsonschema.validate(json.loads(watch_json_text(found)), SCHEMA)
    assert "Unknown by density" in watch_report(found)
    bare = NamedFiles(target="y", predictions=str(place / "reference.csv"))
    with pytest.raises(InputError, match=r"watch\.unknown_by_density_at_most cannot be answered"):
        run_watch(replace(asked, files=bare), place / "reference.csv")


def test_a_calibrator_s_output_is_watched(place: Path, config: AuditConfig) -> None:
    fitted = written(table(12, 1500, sharpness=2.5), place / "over-fit.csv")
    over = written(table(10, 1500, sharpness=2.5), place / "over.csv")
    out = place / "over.kdcal"
    words = ["calibrate", "--calibrator", "platt", "--predictions", str(fitted), "--target", "y"]
    assert main([*words, "--out", str(out)]) == 0
    bare = replace(config, files=replace(config.files, predictions=str(over)))
    new = written(table(11, 1500, sharpness=2.5), place / "over-new.csv")
    assert run_watch(bare, new).verdict == "fail"
    found = run_watch(replace(bare, calibrator=str(out)), new)
    assert (found.verdict, found.table.labelled) == ("pass", 1500)
    without = written(table(11, 500, sharpness=2.5).drop(columns="y"), place / "over-bare.csv")
    assert run_watch(replace(bare, calibrator=str(out)), without).table.labelled == 0
    for files, data in (
        (replace(bare.files, predictions=str(fitted)), new),  # the reference rows
        (bare.files, fitted),  # the new ones
    ):
        with pytest.raises(InputError, match=r"'over\.kdcal' was fitted on the rows"):
            run_watch(replace(bare, files=files, calibrator=str(out)), data)
    broken = table(11, 60)
    broken.loc[4, "proba_yes"] = 7.0
    with pytest.raises(InputError, match="row 5") as error:
        run_watch(replace(bare, calibrator=str(out)), written(broken, place / "broken.csv"))
    assert error.value.file == "broken.csv"


def shifted(place: Path) -> tuple[Path, pd.DataFrame]:
    """Reference rows and new ones with larger values in one feature that the model leaves out."""
    rng = np.random.default_rng(20)
    frames = []
    for mean in (0.0, 1.0):
        seen, unseen = rng.normal(size=1500), rng.normal(mean, 1.0, 1500)
        chance = 1.0 / (1.0 + np.exp(-(seen + 1.5 * unseen)))
        stated = 1.0 / (1.0 + np.exp(-2.0 * seen))
        frame = pd.DataFrame({"proba_no": 1.0 - stated, "proba_yes": stated})
        frame["unseen"] = unseen
        frame["y"] = np.where(rng.random(1500) < chance, "yes", "no")
        frames.append(frame)
    return written(frames[0], place / "shift-reference.csv"), frames[1]


@pytest.mark.usefixtures("few_draws")
def test_weights_by_features_correct_a_calibrator_s_rate(place: Path, config: AuditConfig) -> None:
    """The rate of the event is far off by scores, with the calibrator too, and near by features."""
    reference, new = shifted(place)
    truth = float((new["y"] == "yes").mean())
    files = NamedFiles(target="y", predictions=str(reference), features=("unseen",),
                       outputs=(("no", "proba_no"), ("yes", "proba_yes")))  # fmt: skip
    workspace = Workspace(place / "shifts")
    review = scored_review(workspace, files)
    set_question(workspace, review.id, Question(event="yes"))
    path = written(new.drop(columns="y"), place / "shift-new.csv")
    review = add_watched(workspace, review.id, path, "new.csv")
    assert why_no_features(review, "new.csv") == ""
    found = {}
    asks: tuple[tuple[str | None, Any], ...] = (
        (None, "features"),
        ("platt", "scores"),
        ("platt", "features"),
    )
    for method, by in asks:
        asked = WatchSettings("new.csv", method=method, weighted_by=by)
        request = watch_table.request(workspace, review, asked)
        folder = place / f"shift-{method}-{by}"
        folder.mkdir()
        run_here(request.target, request.kwargs, folder=folder)
        found[method, by] = watch_table.read(folder)
    rates = {key: one.performance.event.rate.rows.value for key, one in found.items()}
    assert abs(rates["platt", "scores"] - truth) > 0.08
    assert abs(rates["platt", "features"] - truth) < 0.05
    assert abs(rates[None, "features"] - truth) < 0.05
    model, platt = (found[method, "features"] for method in (None, "platt"))
    # weights are of rows; the scores are the calibrator's
    assert model.watched.effective_rows == pytest.approx(platt.watched.effective_rows)
    assert model.watched.calibration_error.value > platt.watched.calibration_error.value + 0.02
    assert platt.state.of.calibrator.startswith("platt fitted on ")
    lacks = written(new.drop(columns=["y", "unseen"]), place / "shift-lacks.csv")
    review = add_watched(workspace, review.id, lacks, "lacks.csv")
    with pytest.raises(InputError, match=r"the new table lacks the column 'unseen'.*lacks\.csv"):
        watch_table.request(workspace, review, WatchSettings("lacks.csv", weighted_by="features"))


def test_the_command_weights_a_calibrator_s_output_by_the_model_s_features(
    place: Path, cancer: AuditConfig
) -> None:
    out = place / "cancer.kdcal"
    fitted = pd.read_parquet(CANCER / "calibration.parquet")
    halves = [written(fitted[at::2], place / f"half-{at}.csv") for at in (0, 1)]
    words = ["calibrate", "--calibrator", "platt", "--model", str(cancer.files.model)]
    words += ["--data", str(halves[0]), "--target", "diagnosis", "--out", str(out)]
    assert main(words) == 0
    files = replace(cancer.files, data=str(halves[1]))
    asked = replace(cancer, files=files, calibrator=str(out), weighted_by="features")
    new = pd.read_parquet(CANCER / "evaluation.parquet").drop(columns="diagnosis")
    found = run_watch(asked, written(new, place / "cancer-new.csv"))
    assert found.watched.weighted_by == "features"
    assert found.watched.effective_rows < found.n_reference == len(fitted[1::2])


def test_worker_processes_give_the_same(
    place: Path, config: AuditConfig, late: Watch, real_workers: None
) -> None:
    assert watch_json_text(run_watch(config, place / "late.csv")) == watch_json_text(late)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"proba_yes": 1.5}, "proba_yes.*row 3"),
        ({"y": "maybe"}, "maybe.*row 3"),
    ],
)
def test_bad_values_name_their_row(
    place: Path, config: AuditConfig, change: dict[str, object], said: str
) -> None:
    frame = table(6, 60)
    for column, value in change.items():
        frame.loc[2, column] = value
    with pytest.raises(InputError) as error:
        run_watch(config, written(frame, place / "bad.csv"))
    assert re.search(said, str(error.value))
    assert error.value.file == "bad.csv"


def test_other_unusable_tables_are_refused(place: Path, config: AuditConfig) -> None:
    (place / "empty.csv").write_text("proba_no,proba_yes,y\n")
    with pytest.raises(InputError, match=r"empty\.csv"):
        run_watch(config, place / "empty.csv")
    with pytest.raises(InputError, match="lacks a column of the predictions"):
        run_watch(config, written(table(6, 60)[["proba_no", "y"]], place / "one.csv"))
    with pytest.raises(InputError, match="no such file"):
        run_watch(config, place / "nothing.csv")


def test_few_rows_have_no_shares_but_the_rest(place: Path, config: AuditConfig) -> None:
    found = run_watch(config, written(table(7, 20), place / "few.csv"))
    assert found.shares is None
    assert any("shares cannot be estimated" in one for one in watch_json(found)["cautions"])
    jsonschema.validate(json.loads(watch_json_text(found)), SCHEMA)


def test_limits_are_read_strictly(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    head = '[files]\npredictions = "p.csv"\n[roles]\ntarget = "y"\n[watch]\n'
    for line, said in (
        ("accuracy_at_last = 0.9", "Did you mean 'accuracy_at_least'"),
        ("accuracy_at_least = 90", "watch.accuracy_at_least is 90"),
        ("alpha = 0.0", "watch.alpha is 0"),
        ("psi_at_most = nan", "watch.psi_at_most is nan"),
        ('psi_at_most = "low"', "watch.psi_at_most is not a number"),
        ('weighted_by = "feature"', "Did you mean 'features'"),
    ):
        path.write_text(f"{head}{line}\n")
        with pytest.raises(InputError, match=re.escape(said)):
            read_config(path)
    path.write_text(f"{head}auc_at_least = 1\n")
    assert read_config(path).watch == WatchLimits(auc_at_least=1.0)
    assert read_config(path).weighted_by == "scores"


def test_limits_of_an_event_need_two_classes(tmp_path: Path) -> None:
    rows = ROOT / "sample_data" / "digits_predictions" / "calibration.parquet"
    files = NamedFiles(target="label", predictions=str(rows))
    with pytest.raises(InputError, match="of an event of two classes"):
        run_watch(AuditConfig("D", files, watch=WatchLimits(auc_at_least=0.9)), rows)


def test_the_guide_s_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    guide = (ROOT / "app" / "guides" / "watch.md").read_text()
    (tmp_path / "sample_data").symlink_to(ROOT / "sample_data")
    monkeypatch.chdir(tmp_path)
    said = re.findall(r"```bash\n(.*?)```", guide, re.DOTALL)
    commands = [line for one in said for line in one.replace("\\\n", " ").splitlines()]
    init, first, second = (one.split()[1:] for one in commands)
    assert main(init) == 0
    (limits,) = re.findall(r"```toml\n(\[watch\]\n.*?)```", guide, re.DOTALL)
    with Path("audit.toml").open("a") as file:
        file.write(f"\n{limits}")
    capsys.readouterr()
    assert main([*first, "--junit", "junit.xml"]) == 1
    printed = capsys.readouterr().out
    for line in re.findall(r"```text\n(.*?)```", guide, re.DOTALL)[0].splitlines():
        assert line in printed
    assert ElementTree.parse("junit.xml").getroot().get("failures") == "1"
    jsonschema.validate(json.loads(Path("october/result.json").read_text()), SCHEMA)
    november = pd.read_parquet("sample_data/adult/calibration.parquet")[:1000]
    november.drop(columns="income").to_parquet("november.parquet")
    assert main(second) == 1
    printed = capsys.readouterr().out
    assert "november/watch.json" in printed
    assert "of an earlier table" in re.sub(r"\s+", " ", printed)
    jsonschema.validate(json.loads(Path("november/result.json").read_text()), SCHEMA)
    again = ["--data", "sample_data/adult/evaluation.parquet", "--state", "november/watch.json"]
    assert main(["watch", "--config", "audit.toml", *again]) == 2
    assert "would count twice" in capsys.readouterr().err


def three_classes(seed: int, n: int, weights: tuple[float, float, float]) -> pd.DataFrame:
    """Predictions of equal classes, with their true ones, whose confidence is that of any class."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size=n, p=np.array(weights) / sum(weights))
    confidence = rng.uniform(0.5, 0.95, n)
    told = np.where(rng.random(n) < confidence, y, (y + rng.integers(1, 3, n)) % 3)
    proba = np.repeat(((1.0 - confidence) / 2.0)[:, None], 3, axis=1)
    proba[np.arange(n), told] = confidence
    frame = pd.DataFrame(proba, columns=[f"proba_{one}" for one in "abc"])
    frame["y"] = ["abc"[one] for one in y]
    return frame


def test_shares_that_changed_are_a_finding_though_no_score_moved(tmp_path: Path) -> None:
    reference = written(three_classes(0, 900, (1.0, 1.0, 1.0)), tmp_path / "three.csv")
    config = AuditConfig("Three", NamedFiles(target="y", predictions=str(reference)))
    new = three_classes(1, 600, (0.05, 0.05, 0.9)).drop(columns="y")
    found = run_watch(config, written(new, tmp_path / "new.csv"))
    assert not moved_beyond_chance(found.shift, found.shares)
    assert finding(found).startswith(
        "The classes' shares changed beyond chance (p value 0.0005): c"
    )
    assert "Accuracy: " in finding(found)
    same = three_classes(2, 600, (1.0, 1.0, 1.0)).drop(columns="y")
    found = run_watch(config, written(same, tmp_path / "same.csv"))
    assert finding(found).startswith("Nothing beyond chance has changed in 600 new rows: PSI")


@pytest.mark.usefixtures("few_draws")
def test_labels_that_come_again_under_another_name_count_once(
    place: Path, config: AuditConfig, late: Watch
) -> None:
    whole = pd.read_csv(place / "late.csv")
    half = whole.copy()
    half["y"] = half["y"].where(np.arange(len(half)) < 900)
    first = run_watch(config, written(half, place / "half.csv"))
    assert "Limits, if there are any, are held against" in " ".join(first.notes)
    path = place / "half.json"
    path.write_bytes(state_bytes(first.state))
    again = run_watch(config, written(whole, place / "full.csv"), state=path)
    assert late.test is not None
    assert again.test is not None
    assert (again.state.test.n, again.test.e_value) == (2000, late.test.e_value)
    assert "900 of 2,000 labelled rows of the table full.csv equal rows" in " ".join(again.notes)
    assert again.labels is not None
    assert again.labels.accuracy.n == 2000  # measures use all labels
    # nothing new
    path.write_bytes(state_bytes(again.state))
    third = run_watch(config, written(whole[:500], place / "part.csv"), state=path)
    assert (third.test, third.state.test.n) == (None, 2000)
    assert "no labels that were not counted before" in watch_json(third)["results"][1]["said"]
    # the review leaves out the same rows
    workspace = Workspace(place / "copies")
    review = scored_review(workspace, config.files)
    set_question(workspace, review.id, Question(event="yes"))
    for name in ("half.csv", "full.csv"):
        review = add_watched(workspace, review.id, place / name, name)
    settings = WatchSettings("full.csv", earlier=(("half.csv", review.watched["half.csv"].digest),))
    asked = watch_table.request(workspace, review, settings)
    folder = place / "by-copies"
    folder.mkdir()
    run_here(asked.target, asked.kwargs, folder=folder)
    found = watch_table.read(folder)
    assert state_bytes(found.state) == state_bytes(again.state)
    assert found.notes == again.notes


@pytest.mark.usefixtures("few_draws")
def test_rows_that_are_equal_by_chance_all_count(place: Path, config: AuditConfig) -> None:
    rng = np.random.default_rng(5)

    def few(n: int) -> pd.DataFrame:
        """Rows of nine different probabilities, as of a model with few inputs."""
        p = rng.integers(1, 10, n) / 10.0
        y = np.where(rng.random(n) < p, "yes", "no")
        return pd.DataFrame({"proba_no": 1.0 - p, "proba_yes": p, "y": y})

    path = place / "few.json"
    path.write_bytes(state_bytes(run_watch(config, written(few(300), place / "f1.csv")).state))
    found = run_watch(config, written(few(200), place / "f2.csv"), state=path)
    assert found.state.test.n == 500
    (note,) = found.notes
    assert "cannot be told from those of tables before" in note


@pytest.mark.usefixtures("few_draws")
def test_a_file_that_grows_counts_its_rows_once(place: Path, config: AuditConfig) -> None:
    rng = np.random.default_rng(6)
    p = rng.integers(1, 10, 400) / 10.0  # nine probabilities: no row is unlike all others
    y = np.where(rng.random(400) < p, "yes", "no")
    grown = pd.DataFrame({"proba_no": 1.0 - p, "proba_yes": p, "y": y})
    path, state = place / "grown.json", None
    for n in (100, 250, 400):
        found = run_watch(config, written(grown[:n], place / f"g{n}.csv"), state=state)
        state = path
        state.write_bytes(state_bytes(found.state))
        assert found.state.test.n == n
    assert "250 of 400 labelled rows" in found.notes[0]


def test_a_state_keeps_the_keys_of_so_many_rows(late: Watch, monkeypatch: Any) -> None:
    monkeypatch.setattr(watch_state, "MOST_KEYS", 10)
    keys = np.arange(6, dtype=np.uint64)
    state = replace(late.state, counted=keys)
    after = watch_state.with_counted(state, keys + np.uint64(6), fine=False)
    assert after.counted.tolist() == [*range(2, 12)]
    assert not after.fine


def test_a_state_of_the_first_format_is_read(place: Path, late: Watch) -> None:
    about = json.loads(state_bytes(late.state))
    about["format"] = 1
    for one in ("counted", "fine", "clusters"):
        about["state"].pop(one)
    about["state"]["of"]["audited"] = about["state"]["of"].pop("reference")
    about["sha256"] = digest(canonical(about["state"]))
    path = place / "first-format.json"
    path.write_text(json.dumps(about))
    assert read_state(path).test.n == 2000
    assert not len(read_state(path).counted)
    assert read_state(path).of == late.state.of


@pytest.mark.usefixtures("few_draws")
def test_rows_sorted_by_their_outcome_are_warned_of(place: Path, config: AuditConfig) -> None:
    fair = table(31, 900)
    apart = run_watch(config, written(fair, place / "fair.csv"))
    assert not apart.state.in_runs
    assert apart.state.test.crossed_at is None
    path = place / "fair.json"
    path.write_bytes(state_bytes(apart.state))
    found = run_watch(config, written(table(32, 900).sort_values("y"), place / "sorted.csv"))
    assert found.state.test.crossed_at is not None
    warning = "The outcomes stand in long runs"
    assert finding(found).startswith(warning)
    assert warning in watch_json(found)["results"][1]["said"]
    assert warning in " ".join(watch_json(found)["cautions"])
    # the signal stands with the next table, and so does the warning
    path.write_bytes(state_bytes(found.state))
    after = run_watch(config, written(table(33, 300), place / "after.csv"), state=path)
    assert finding(after).startswith(warning)


def test_the_rows_of_a_made_table_are_shuffled() -> None:
    rows = scored(2000, name="evaluation")
    order = np.argsort(rows.y, kind="stable")
    rows = replace(rows, proba=rows.proba[order], y=rows.y[order], digest="")
    _, y = WatchedClasses(0, 0).made(rows.proba, rows.y, 0)
    known = y[: len(y) // 2]
    assert np.count_nonzero(known[1:] != known[:-1]) > 0.3 * len(known) * 0.5
    again, _ = WatchedClasses(0, 0).made(rows.proba, rows.y, 0)
    np.testing.assert_array_equal(again, WatchedClasses(0, 0).made(rows.proba, rows.y, 0)[0])


def of_patients(seed: int, n_patients: int, mean: float = 0.0, rows: int = 10) -> pd.DataFrame:
    """Rows of patients: each patient's odds are alike, and so are the outcomes."""
    rng = np.random.default_rng(seed)
    n = n_patients * rows
    odds = np.repeat(rng.normal(mean, 1.2, n_patients), rows) + rng.normal(0.0, 0.6, n)
    chance = np.repeat(rng.random(n_patients), rows)
    p = 1.0 / (1.0 + np.exp(-odds))
    named = [f"{seed}-{one}" for one in np.repeat(np.arange(n_patients), rows)]
    y = np.where(chance < p, "yes", "no")
    return pd.DataFrame({"proba_no": 1.0 - p, "proba_yes": p, "y": y, "patient": named})


def test_patients_of_both_tables_are_counted_where_both_name_them(tmp_path: Path) -> None:
    written(of_patients(0, 60), tmp_path / "old.csv")
    rows = NamedFiles(target="y", predictions=str(tmp_path / "old.csv"))
    new = of_patients(1, 40)
    asked = written(new, tmp_path / "new.csv")
    found, alone = (
        run_watch(AuditConfig("x", files, event="yes"), asked)
        for files in (replace(rows, cluster="patient"), rows)
    )
    for one in (found, alone):
        assert not [note for note in one.notes if "independent" in note]
    # each patient is one step of the sequential test
    assert (found.state.test.n, alone.state.test.n) == (len(new), len(new))
    assert found.state.test.within == len(new) - new["patient"].nunique()
    assert alone.state.test.within == 0
    assert found.test is not None
    assert any("Rows of one cluster" in one for one in found.test.assumptions)
    for test, other in zip(found.shift.tests, alone.shift.tests, strict=True):
        assert test.estimate.value == other.estimate.value
        assert (test.estimate.expected or 0.0) > 1.5 * (other.estimate.expected or np.inf)
    assert found.labels is not None
    assert alone.labels is not None
    for one, other in (
        (found.labels.accuracy, alone.labels.accuracy),
        (found.labels.calibration_error, alone.labels.calibration_error),
        (found.performance.predictions.rate.rows, alone.performance.predictions.rate.rows),
    ):
        assert one.high - one.low > 1.3 * (other.high - other.low)
    jsonschema.validate(watch_json(found), SCHEMA)

    nameless = written(new.drop(columns="patient"), tmp_path / "nameless.csv")
    config = AuditConfig("x", replace(rows, cluster="patient"), event="yes")
    lacking = run_watch(config, nameless)
    assert [one for one in lacking.notes if "independent" in one and "'patient'" in one]
    assert not [one for one in lacking.notes if one.startswith("The sequential test")]
    assert lacking.shift.tests == alone.shift.tests


@pytest.mark.usefixtures("few_draws")
def test_a_new_table_of_one_day_is_counted_by_rows_and_says_so(tmp_path: Path) -> None:
    old, new = table(5, 400), table(6, 60)
    old["day"], new["day"] = np.arange(400) // 10, 40
    files = NamedFiles(target="y", predictions=str(written(old, tmp_path / "old.csv")), time="day")
    found = run_watch(AuditConfig("x", files), written(new, tmp_path / "new.csv"))
    (note,) = [one for one in found.notes if "independent" in one]
    assert "one time" in note
    assert "new.csv" in note


@pytest.mark.usefixtures("few_draws")
def test_a_table_of_one_cluster_is_one_step_of_the_test(tmp_path: Path) -> None:
    """As a table of one day is, where rows of a day belong together."""
    old, new = of_patients(5, 60), of_patients(6, 1, rows=40)
    files = NamedFiles(
        target="y", predictions=str(written(old, tmp_path / "old.csv")), cluster="patient"
    )
    found = run_watch(AuditConfig("x", files), written(new, tmp_path / "new.csv"))
    assert (found.state.test.n, found.state.test.within) == (40, 39)
    (note,) = [one for one in found.notes if "independent" in one]
    assert "but for the sequential test" in note
    assert "one cluster" in note


@pytest.mark.usefixtures("few_draws")
def test_a_patient_who_comes_back_counts_once(tmp_path: Path) -> None:
    old, first, second = (of_patients(seed, 60) for seed in (11, 12, 13))
    second.loc[:99, "patient"] = first["patient"].to_numpy()[:100]
    second.loc[100:104, "patient"] = None  # nothing says that they came before
    files = NamedFiles(
        target="y", predictions=str(written(old, tmp_path / "old.csv")), cluster="patient"
    )
    config, state = AuditConfig("x", files, event="yes"), tmp_path / "state.json"
    known = run_watch(config, written(first, tmp_path / "first.csv")).state
    assert len(known.clusters) == 60
    state.write_bytes(state_bytes(known))
    found = run_watch(config, written(second, tmp_path / "second.csv"), state=state)
    (note,) = [one for one in found.notes if "of clusters" in one]
    assert note.startswith("100 of 600 labelled rows of the table second.csv are of clusters")
    assert found.state.test.n == 600 + 500
    new = second[100:]
    alone = run_watch(config, written(new, tmp_path / "new.csv"), state=state)
    assert alone.state.test.offset.tobytes() == found.state.test.offset.tobytes()
    # all of them again, with other rows
    again = of_patients(14, 60).assign(patient=first["patient"])
    none = run_watch(config, written(again, tmp_path / "again.csv"), state=state)
    assert (none.test, none.state.test.n) == (None, 600)


def test_patients_are_counted_behind_a_calibrator(tmp_path: Path) -> None:
    fitted = written(of_patients(7, 60), tmp_path / "fit.csv")
    old = written(of_patients(8, 60), tmp_path / "old.csv")
    new = written(of_patients(9, 40), tmp_path / "new.csv")
    out = str(tmp_path / "own.kdcal")
    words = ["calibrate", "--calibrator", "platt", "--predictions", str(fitted), "--target", "y"]
    assert main([*words, "--out", out]) == 0
    files = NamedFiles(target="y", predictions=str(old), cluster="patient")
    found = run_watch(AuditConfig("x", files, event="yes", calibrator=out), new)
    assert "clusters" in found.shift.wasserstein.estimate.interval

    workspace = Workspace(tmp_path / "reviews")
    review = scored_review(workspace, files)
    review = add_watched(workspace, review.id, new, "new.csv")
    settings = WatchSettings(table="new.csv", method="platt")
    asked = watch_table.request(workspace, review, settings)
    folder = tmp_path / "by-review"
    folder.mkdir()
    run_here(asked.target, asked.kwargs, folder=folder)
    page = watch_table.read(folder)
    assert "clusters" in page.shift.wasserstein.estimate.interval
    assert page.state.test.within > 0

    review = add_watched(workspace, review.id, written(of_patients(10, 30), new), "newer.csv")
    earlier = (("new.csv", review.watched["new.csv"].digest),)
    settings = WatchSettings(table="newer.csv", earlier=earlier)
    asked = watch_table.request(workspace, review, settings)
    folder = tmp_path / "after-another"
    folder.mkdir()
    run_here(asked.target, asked.kwargs, folder=folder)
    both = watch_table.read(folder).state.test
    assert both.within == both.n - 70  # patients of both tables


@pytest.mark.usefixtures("no_pictures")
def test_the_limits_of_an_audit_of_the_reference_rows_hold_too(
    place: Path,
    config: AuditConfig,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KDCAL_HOME", str(place / "home"))
    limits = {"KC001": Limit(high=0.02), "KC101": Limit(low=0.99)}
    record = Record()
    asked = replace(config, project="Credit", limits=limits, codes=("KC001", "KC101"))
    record.create("Credit", system_user())
    gate = run_gate(asked, record=record)
    (judged,) = audits_of_rows(record, gate.content.rows_digest)
    assert judged[1].id == gate.audit
    assert by_default([judged]) is None  # a draft
    new = written(table(40), place / "held.csv")
    found = run_watch(config, new, audit=gate.content, judged=judged)
    assert found.audit is not None
    assert found.audit.limits == {"calibration_error_at_most": 0.02, "auc_at_least": 0.99}
    held = {one.key: one for one in found.results if one.of_audit}
    assert held.keys() == found.audit.limits.keys()
    assert held["auc_at_least"].verdict == "fail"
    assert found.exit_code == 1
    assert "limit at least 0.99 (of the audit)" in result_words(found, held["auc_at_least"])
    assert finding(found).endswith("Beyond a limit of the audit: AUROC of the event.")
    assert "calibration set, judged by the audit 'A <b>watch' of Credit of " in watch_report(found)
    kept = watch_json(found)["audit"]
    assert (kept["id"], kept["project"], kept["state"]) == (gate.audit, "Credit", "draft")
    jsonschema.validate(json.loads(watch_json_text(found)), SCHEMA)
    # limits of one's own come first, and a limit of another event does not apply
    own = run_watch(limited(config, auc_at_least=0.5), new, audit=gate.content)
    assert [one.key for one in own.results if one.of_audit] == ["calibration_error_at_most"]
    assert own.audit is not None
    assert (own.audit.audit, own.audit.content) == ("", found.audit.content)  # of a file
    other = run_watch(replace(config, view="confidence"), new, audit=gate.content)
    assert other.audit is not None
    assert other.audit.limits == {"auc_at_least": 0.99}
    # on the command line by the beginning of its id or its file, and none of other rows
    toml = '[files]\npredictions = "reference.csv"\n[roles]\ntarget = "y"\nevent = "yes"\n'
    (place / "audit.toml").write_text(toml)
    (place / "audit.json").write_bytes(content_bytes(gate.content))
    words = ["watch", "--config", str(place / "audit.toml"), "--data", str(new), "--json"]
    for name in (gate.audit[:6], str(place / "audit.json")):
        assert main([*words, "--audit", name]) == 1
        said = json.loads(capsys.readouterr().out)
        assert said["audit"]["sha256"] == kept["sha256"]
    (place / "others.toml").write_text(toml.replace("reference.csv", "held.csv"))
    words[2] = str(place / "others.toml")
    assert main([*words, "--audit", gate.audit]) == 2
    error = re.sub(r"\s+", " ", capsys.readouterr().err)
    assert "judged other predictions or outcomes than those of the 1,500 reference rows" in error
    assert "held.csv" in error
    assert main([*words, "--audit", "0000"]) == 2
    assert "No audit has an id that begins with '0000'" in capsys.readouterr().err


@pytest.mark.usefixtures("no_pictures")
def test_an_audit_of_a_calibrator_s_output_is_one_of_the_reference_rows(
    tmp_path: Path,
) -> None:
    fitted, old, new = (
        written(table(seed, 400, sharpness=2.5), tmp_path / f"{seed}.csv") for seed in (50, 51, 52)
    )
    out = str(tmp_path / "own.kdcal")
    words = ["calibrate", "--calibrator", "platt", "--predictions", str(fitted), "--target", "y"]
    assert main([*words, "--out", out]) == 0
    files = NamedFiles(target="y", predictions=str(old))
    config = AuditConfig("x", files, event="yes", calibrator=out, codes=("KC101",))
    content = run_gate(config).content
    found = run_watch(config, new, audit=content)
    assert found.audit is not None
    assert found.audit.limits == {"auc_at_least": 0.7}
    with pytest.raises(InputError, match="judged other predictions"):
        run_watch(replace(config, calibrator=None), new, audit=content)


def test_the_latest_approved_audit_comes_first_then_a_submitted_one() -> None:
    def one(state: str) -> Any:
        return SimpleNamespace(), SimpleNamespace(state=state)

    draft, submitted, approved = one("draft"), one("submitted"), one("approved")
    assert by_default([draft, submitted, approved]) is approved
    assert by_default([draft, submitted, one("rejected")]) is submitted
    assert by_default([draft, one("superseded")]) is None
