"""Measures of a scored set: the same from a worker as in the process, and small."""

from __future__ import annotations

import dataclasses
import json
import shutil
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from small_reviews import Made, csv
from texts.snapshot import Texts

from kdcal_core.calibration import score_calibrator
from kdcal_core.data import ScoredSet
from kdcal_core.distributions import Normal, RegressionSet
from kdcal_core.errors import InputError
from kdcal_core.evaluation import Space
from kdcal_core.review import (
    Review,
    ReviewReader,
    SetInfo,
    Workspace,
    add_table,
    create_review,
    score,
    set_roles,
)
from kdcal_core.statistics import Dependence
from kdcal_core.store import encode
from kdcal_core.tasks import (
    AXES,
    MEAN,
    OUTCOME,
    SPREAD,
    Sets,
    class_curves,
    class_growth,
    class_halves,
    class_histograms,
    class_method,
    class_shares,
    is_large,
    method_losses,
    pit_along,
    pit_histograms,
    pit_overview,
    pit_places,
    pit_rows,
    predicted_class,
    set_differences,
    set_estimates,
    set_fitness,
    set_overview,
    set_pit_groups,
    set_reliability,
)
from kdcal_core.tasks.decorators import carry_out

SET = {"which": "calibration"}
LABELS = {**SET, "labels": [0, 1]}
ASKED = (
    (set_fitness, SET),
    (set_overview, SET),
    (set_reliability, {**SET, "kind": "class", "n_bins": 10, "strategy": "quantile", "label": 1}),
    (set_reliability, {**SET, "kind": "top-label", "n_bins": 5, "strategy": "uniform"}),
    (set_differences, {**SET, "kind": "confidence"}),
    (set_differences, {**SET, "kind": "class", "label": 1}),
    (set_estimates, SET),
    (set_estimates, {**SET, "event": 1}),
    (predicted_class, {**SET, "label": 1}),
    (class_histograms, {**LABELS, "n_bins": 10}),
    (class_halves, {**LABELS, "seed": 3}),
    (class_curves, {**LABELS, "bandwidth": "mon2"}),
    (class_curves, {**LABELS, "bandwidth": 0.1}),
    (class_growth, {**LABELS, "bandwidth": "mon2", "seed": 3}),
    (class_method, {**LABELS, "key": "isotonic"}),
    (class_method, {**LABELS, "key": "sts"}),
    (class_histograms, {**SET, "labels": [1], "n_bins": 10, "kind": "class"}),
    (class_halves, {**SET, "labels": [1], "seed": 3, "kind": "class"}),
    (class_shares, SET),
    (method_losses, {"methods": ["uncalibrated", "sts"], "with_evaluation": True}),
)
PIT_ASKED = (
    (pit_overview, SET),
    (pit_histograms, {**SET, "bins": [5, 20]}),
    (set_pit_groups, {**SET, "columns": ["word"]}),
    (pit_along, {**SET, "column": "word", "bins": 4}),
    (pit_along, {**SET, "column": SPREAD, "bins": 4}),
    (pit_places, {**SET, "space": "inputs", "k": 20, "across": "x", "up": OUTCOME}),
    (pit_places, {**SET, "space": "inputs", "k": 20, "across": AXES[0], "up": AXES[1]}),
    (pit_places, {**SET, "space": "prediction", "k": 20, "across": AXES[0], "up": AXES[1]}),
    (pit_rows, {**SET, "level": 0.9}),
    (pit_rows, {**SET, "level": 0.8, "missed_only": True, "among": [5, 3, 60], "most": 2}),
)


@pytest.fixture(scope="module")
def numbers(tmp_path_factory) -> Made:
    """Predictive distributions of a regression, with a feature, a word and weights."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=90)
    frame = pd.DataFrame(
        {
            "x": x,
            "word": np.where(x > 0, "high", "low"),
            "mean": x,
            "std": 1.0 + x**2,
            "y": x + rng.normal(size=90),
        }
    )
    workspace = Workspace(tmp_path_factory.mktemp("numbers"))
    review = create_review(workspace)
    review = add_table(workspace, review.id, "calibration", csv(frame), "rows.csv")
    assert review.roles is not None
    set_roles(workspace, review.id, dataclasses.replace(review.roles, features=("x",)))
    return Made(workspace, score(workspace, review.id), None, {"calibration": frame})


def quiet(share, note):
    assert 0 <= share <= 1


def sets_of(made: Made) -> Sets:
    return Sets(ReviewReader(made.workspace, made.review.id), quiet)


def given(scored: ScoredSet) -> Sets:
    """One scored set, whatever is asked for."""
    review = Review("a" * 16)
    reader = SimpleNamespace(review=review, scored=lambda _: scored, summary=lambda _: None)
    return Sets(reader, quiet)


@pytest.mark.parametrize(("measure", "settings"), ASKED)
def test_a_worker_leaves_what_the_process_computes(forest, tmp_path, measure, settings) -> None:
    asked = measure.request(forest.workspace, forest.review, **settings)
    sent = json.loads(json.dumps(asked.kwargs, allow_nan=False))
    carry_out(**sent, folder=str(tmp_path), progress=quiet)
    here = measure(sets_of(forest), **settings)
    assert encode(measure.read(tmp_path)) == encode(here)


@pytest.mark.parametrize(("measure", "settings"), PIT_ASKED)
def test_a_worker_leaves_what_the_process_computes_of_a_regression(
    numbers, tmp_path, measure, settings
) -> None:
    asked = measure.request(numbers.workspace, numbers.review, **settings)
    sent = json.loads(json.dumps(asked.kwargs, allow_nan=False))
    carry_out(**sent, folder=str(tmp_path), progress=quiet)
    here = measure(sets_of(numbers), **settings)
    assert encode(measure.read(tmp_path)) == encode(here)


def test_a_measure_declares_what_it_reads_and_nothing_else(
    forest, numbers, tmp_path, monkeypatch
) -> None:
    read, whole = set(), ReviewReader._declared

    def recorded(self: ReviewReader, part: str) -> None:
        read.add(part)
        whole(self, part)

    monkeypatch.setattr(ReviewReader, "_declared", recorded)
    workspace = Workspace(tmp_path)
    shutil.copytree(numbers.workspace.root, tmp_path, dirs_exist_ok=True)
    add_table(
        workspace, numbers.review.id, "evaluation", csv(numbers.tables["calibration"]), "x.csv"
    )
    judged = dataclasses.replace(
        numbers, workspace=workspace, review=score(workspace, numbers.review.id)
    )
    for made, each in ((forest, ASKED), (numbers, PIT_ASKED), (judged, PIT_ASKED)):
        for measure, asked in each:
            for which in made.review.sets if "which" in asked else (None,):
                settings = asked if which is None else {**asked, "which": which}
                declared = measure.reads_at(**settings)
                read.clear()
                reader = ReviewReader(made.workspace, made.review.id, declared)
                measure(Sets(reader, quiet), **settings)
                assert read == set(declared), (measure.__name__, settings)


def test_a_method_s_line_of_an_event_is_its_probability_of_it() -> None:
    rng = np.random.default_rng(1)
    p = rng.beta(2, 3, 400)
    proba, y = np.column_stack([1 - p, p]), (rng.random(400) < p**2).astype(int)
    rows = ScoredSet(proba, y, ("no", "yes"), "digest", "calibration")
    for key in ("isotonic", "kde_mon2"):
        found = class_method(given(rows), which="calibration", labels=[1, 0], key=key, kind="class")
        fitted = score_calibrator(key).fit(proba, y)
        for label, points in zip((1, 0), found.points, strict=True):
            asked = np.column_stack([1 - points.score, points.score])[:, [1 - label, label]]
            mapped = fitted.predict_proba(asked)[:, label]
            np.testing.assert_allclose(points.confidence, mapped, atol=1e-9)


def test_growing_rows_end_at_the_curve_of_all_and_keep_clusters_together() -> None:
    rng = np.random.default_rng(2)
    cluster = np.repeat(np.arange(100), 6)
    p = np.repeat(rng.uniform(0.5, 1.0, 100), 6)  # alike within a cluster
    proba, y = np.column_stack([1 - p, p]), (rng.random(600) < p).astype(int)
    alike = Dependence.of("cluster", cluster)
    rows = ScoredSet(proba, y, ("no", "yes"), "digest", "calibration", dependence=alike)
    settings = {"which": "calibration", "labels": [1], "bandwidth": "mon2"}
    parts = [one for (one,) in class_growth(given(rows), **settings, seed=0).curves]
    numbers_of_rows = [one.n_tp + one.n_fp for one in parts]
    assert numbers_of_rows == sorted(numbers_of_rows)
    assert all(n % 6 == 0 for n in numbers_of_rows)
    assert 100 <= numbers_of_rows[0] <= 200
    (known,) = class_curves(given(rows), **settings).curves["mon2"]
    np.testing.assert_array_equal(parts[-1].confidence, known.confidence)
    assert parts[-1].n_tp == known.n_tp
    again = class_growth(given(rows), **settings, seed=1).curves[0][0]
    assert not np.array_equal(again.confidence, parts[0].confidence)


def test_rows_are_taken_furthest_out_first(numbers) -> None:
    sets = sets_of(numbers)
    found, table = pit_rows(sets, which="calibration", level=0.9), numbers.tables["calibration"]
    assert found.n == 90
    assert (np.diff(np.abs(found.pit - 0.5)) <= 0).all()
    assert found.own["word"].tolist() == table["word"].iloc[found.rows].tolist()
    assert "y" not in found.own
    np.testing.assert_array_equal(found.y, table["y"].iloc[found.rows])
    few = pit_rows(sets, which="calibration", level=0.9, missed_only=True, most=3)
    np.testing.assert_array_equal(few.rows, found.rows[:3])
    assert few.n == int((np.abs(found.pit - 0.5) > 0.45).sum())


def test_neighbours_are_those_that_were_tested(numbers) -> None:
    sets = sets_of(numbers)
    found = pit_places(sets, which="calibration", space="inputs", k=10, across="x", up=OUTCOME)
    assert found.local is not None
    x = numbers.tables["calibration"]["x"].to_numpy()
    for row in found.local.rows[:5]:
        nearest = np.argsort(np.abs(x - x[row]), kind="stable")[:10]
        assert found.local.around(int(row)).tolist() == sorted(nearest)
    group = found.group(found.local.around(int(found.local.rows[0])))
    assert group.coverage.coverage.n == group.fault.n == group.histogram.n == 10


def test_rows_without_a_place_say_why_and_lie_where_their_predictions_do(tmp_path) -> None:
    frame = pd.DataFrame({"mean": range(40), "std": 1.0, "y": range(40)})
    workspace = Workspace(tmp_path)
    review = create_review(workspace)
    add_table(workspace, review.id, "calibration", csv(frame), "rows.csv")
    score(workspace, review.id)
    sets = Sets(ReviewReader(workspace, review.id))
    found = pit_places(sets, which="calibration", space="inputs", k=10, across=AXES[0], up=AXES[1])
    assert found.refused is not None
    assert "no feature columns" in str(found.refused.error())
    assert (found.across, found.up) == (MEAN, SPREAD)


def test_results_about_a_regression_hold_no_rows() -> None:
    rng, n = np.random.default_rng(0), 400_000
    x = rng.normal(size=n)
    scored = RegressionSet(Normal(x, 1.0), x + rng.normal(size=n), "digest", "calibration")
    frame = pd.DataFrame({"x": x, "word": "a"})
    space = Space("inputs", x[:, None], None)
    kept = {("set", "calibration"): scored}

    def keep(key, make):
        if key[0] == "frame":
            return frame
        return kept[key] if key in kept else make()

    sets_of_review = {"calibration": SetInfo("digest", n, None, "set-1")}
    review = Review("a" * 16, sets=sets_of_review, chosen_task="regression")
    reader = SimpleNamespace(review=review, regression_summary=lambda which: None)
    sets = Sets(reader, quiet, open_space=lambda _: space, keep=keep)
    for measure, settings in PIT_ASKED:
        if measure is not pit_rows:
            size = len(json.dumps(encode(measure(sets, **settings))))
            assert size < 3_000_000, measure.__name__  # 20,000 rows of the local view


def test_settings_and_rows_name_the_result(forest, linear) -> None:
    def key(made, **settings):
        return set_estimates.request(made.workspace, made.review, **settings).key

    assert key(forest, which="calibration") == key(forest, which="calibration")
    others = {key(forest, which="evaluation"), key(linear, which="calibration")}
    assert key(forest, which="calibration") not in others


def test_a_changed_file_is_not_believed(forest, tmp_path) -> None:
    asked = class_histograms.request(forest.workspace, forest.review, **{**LABELS, "n_bins": 5})
    carry_out(**asked.kwargs, folder=str(tmp_path), progress=quiet)
    path = tmp_path / "record.json"
    whole = path.read_text()
    for old, new in (("<f8", "|O"), ("<f8", "<U2"), ('"shape": [5]', '"shape": [-1]'), ("=", "")):
        assert old in whole
        path.write_text(whole.replace(old, new))
        with pytest.raises(InputError, match="no longer kept"):
            class_histograms.read(tmp_path)


def test_a_job_can_only_ask_for_a_measure(forest, tmp_path) -> None:
    asked = set_overview.request(forest.workspace, forest.review, **SET).kwargs
    for name in ("fitted", "load_set", "__builtins__", "np"):
        with pytest.raises(ValueError, match="not a task"):
            carry_out(**{**asked, "task": name}, folder=str(tmp_path), progress=quiet)


def test_what_is_noted_of_a_class_stands_beside_its_curve(tmp_path, texts: Texts) -> None:
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 300) * [1.0, 1.0, 0.0]
    proba /= proba.sum(axis=1, keepdims=True)  # the last class is never predicted
    label = (proba.cumsum(axis=1) > rng.random(300)[:, None]).argmax(axis=1)
    scored = ScoredSet(proba, label, ("a", "b", "c"), "digest", "calibration")
    sets = given(scored)
    found = class_curves(sets, which="calibration", labels=[2, 0], bandwidth="mon2")
    for name, notes in found.notes.items():
        texts(notes[0][0], str(name))
        assert notes[1] == ()


def test_results_hold_no_rows() -> None:
    """A kept result of any measure, whatever the method keeps of them."""
    rng, n = np.random.default_rng(0), 40_000
    proba = rng.dirichlet(np.ones(3), n)
    label = (proba.cumsum(axis=1) > rng.random(n)[:, None]).argmax(axis=1)
    scored = ScoredSet(proba, label, ("a", "b", "c"), "digest", "calibration")
    sets = given(scored)
    for measure, settings in ASKED:
        if measure not in (method_losses, set_fitness):
            size = len(json.dumps(encode(measure(sets, **settings))))
            assert size < 300_000, measure.__name__


def test_few_rows_stay_in_the_process(forest) -> None:
    assert not is_large(forest.review)
    info = dataclasses.replace(forest.review.sets["calibration"], n_rows=10_000_000)
    assert is_large(dataclasses.replace(forest.review, sets={"calibration": info}))
