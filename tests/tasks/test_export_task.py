"""A calibrator taken away: fitted, judged, written, drawn, and tried on a review again."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small_reviews import Made, csv, made, quiet, rows

from kdcal_core import load_calibrator
from kdcal_core.calibration import TopLabelHistogram, calibrated, fit_calibrator
from kdcal_core.calibration.export.score_table import score_table
from kdcal_core.calibration.regions.region_layers import MAPS
from kdcal_core.calibration.settings import INNER_MAPS
from kdcal_core.charts import calibrator_map_chart, calibrator_map_regions
from kdcal_core.charts.calibrator import calibrator_map_figure
from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import log_loss
from kdcal_core.diagnostics.calibrator_map import MOST_LINES, calibrator_map
from kdcal_core.errors import InputError
from kdcal_core.review import (
    ReviewReader,
    Workspace,
    add_table,
    create_review,
    review_data,
    score,
    start_sample,
)
from kdcal_core.store import encode, load
from kdcal_core.store.archive import read_archive, write_archive
from kdcal_core.tasks.decorators import carry_out
from kdcal_core.tasks.export import (
    FEW_TREES,
    ExportRun,
    ExportSettings,
    TriedRun,
    export_calibrator,
    partition_columns,
    try_calibrator,
    wanted_of,
)


def exported(made: Made, folder: Path, settings: ExportSettings) -> ExportRun:
    folder.mkdir(exist_ok=True)
    asked = export_calibrator.request(made.workspace, made.review.id, settings)
    carry_out(**json.loads(json.dumps(asked.kwargs)), folder=str(folder), progress=quiet)
    return load(folder, ExportRun)


def tried(made: Made, path: Path, folder: Path) -> TriedRun:
    folder.mkdir(exist_ok=True)
    asked = try_calibrator.request(
        made.workspace, made.review.id, path=path, name="mine.kdcal", digest="a"
    )
    carry_out(**json.loads(json.dumps(asked.kwargs)), folder=str(folder), progress=quiet)
    return load(folder, TriedRun)


@pytest.fixture(scope="module")
def platt(forest: Made, tmp_path_factory) -> ExportRun:
    return exported(forest, tmp_path_factory.mktemp("platt"), ExportSettings("platt"))


@pytest.fixture(scope="module")
def network(tmp_path_factory) -> Made:
    """An ONNX network with an evaluation set."""
    workspace = Workspace(tmp_path_factory.mktemp("network"))
    return Made(workspace, start_sample(workspace, "xor_network"), None, {})


def predictions(folder: Path, proba: np.ndarray, y: np.ndarray, **more: object) -> Made:
    """A review of predictions alone."""
    names = [f"proba_{i}" for i in range(proba.shape[1])]
    frame = pd.DataFrame(proba, columns=names).assign(y=y, **more)
    workspace = Workspace(folder)
    review_id = create_review(workspace).id
    content = io.BytesIO(frame.to_csv(index=False).encode())
    add_table(workspace, review_id, "calibration", content, "rows.csv")
    return Made(workspace, score(workspace, review_id), None, {"calibration": frame})


def softmax(n: int, n_classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, n_classes))
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    soft = np.exp(logits / 2) / np.exp(logits / 2).sum(axis=1, keepdims=True)
    y = (soft.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return proba, y


def test_the_file_holds_what_a_fit_on_the_calibration_set_says(
    forest: Made, platt: ExportRun
) -> None:
    data = review_data(ReviewReader(forest.workspace, forest.review.id))
    expected = calibrated(fit_calibrator("platt", data.calibration), data.evaluation.proba)
    loaded = load_calibrator(platt.calibrator_file, any_model=True)
    assert np.array_equal(loaded.predict_proba(data.evaluation.proba), expected.proba)
    assert repr(loaded.card) == repr(platt.card)  # an interval of few rows is not a number
    assert platt.card.model.digest == forest.review.model.digest
    assert platt.card.data["calibration"].digest == forest.review.tables["calibration"].digest
    assert platt.record.n_fit == 150


def test_the_gain_is_that_of_rows_the_fit_has_not_seen(forest: Made, platt: ExportRun) -> None:
    data = review_data(ReviewReader(forest.workspace, forest.review.id))
    found = calibrated(fit_calibrator("platt", data.calibration), data.evaluation.proba)
    y = data.evaluation.y
    before, after = (log_loss(p, y).value for p in (data.evaluation.proba, found.proba))
    gain = platt.gain
    assert gain.comparison.judged == "evaluation set"
    assert gain.before.scores["log_loss"].value == pytest.approx(before)
    assert gain.after.scores["log_loss"].value == pytest.approx(after)
    assert gain.pairs["log_loss"].difference.value == pytest.approx(after - before)
    text = {one.label: one for one in platt.card.estimates}
    assert text["Log loss"].before == pytest.approx(before)
    assert text["Log loss"].after == pytest.approx(after)
    assert "evaluation set" in text["Log loss"].judged


def test_a_model_that_is_no_onnx_file_gives_none_and_says_so(platt: ExportRun) -> None:
    assert platt.onnx_file is None
    assert "not an ONNX file" in platt.record.why_no_onnx


def test_an_onnx_model_goes_out_with_its_calibrator(network: Made, tmp_path: Path) -> None:
    run = exported(network, tmp_path, ExportSettings("sts"))
    assert run.record.why_no_onnx is None
    assert run.record.onnx_difference < 1e-5
    data = review_data(ReviewReader(network.workspace, network.review.id))
    session = pytest.importorskip("onnxruntime").InferenceSession(run.onnx_file)
    X = data.inputs["evaluation"].to_numpy(np.float32)
    found = session.run(["calibrated_probabilities"], {session.get_inputs()[0].name: X})[0]
    expected = load_calibrator(run.calibrator_file, any_model=True).predict_proba(
        data.evaluation.proba
    )
    assert np.abs(found - expected).max() < 1e-5


def test_cross_fitting_judges_where_there_is_no_evaluation_set(mixed: Made, tmp_path: Path) -> None:
    run = exported(mixed, tmp_path, ExportSettings("heterogeneous_tree", "isotonic", max_depth=2))
    assert run.gain.comparison.folds == 5
    assert run.record.title == "Isotonic regression in each region of a shallow tree"
    assert "5 folds" in run.card.estimates[0].judged


@pytest.mark.parametrize("inner", sorted(MAPS))
def test_every_map_of_a_region_has_a_name_and_forests_of_slow_ones_few_trees(inner: str) -> None:
    wanted = wanted_of(ExportSettings("heterogeneous_forest", inner))
    assert wanted.title.startswith(INNER_MAPS[inner])
    assert wanted.calibrator.n_trees == (FEW_TREES if inner == "kde" else 100)
    assert f"of {wanted.calibrator.n_trees} shallow trees" in wanted.title


def test_a_column_divides_the_rows_and_each_value_has_its_line(mixed: Made, tmp_path: Path) -> None:
    run = exported(mixed, tmp_path, ExportSettings("heterogeneous_tree", columns=("colour",)))
    assert run.record.title == "Platt scaling for each value of colour"
    found = run.map
    assert found.shape == "regions"
    colours = mixed.tables["calibration"]["colour"]
    lines = {line.name: (line.n, y) for line, y in zip(found.lines, found.y, strict=True)}
    loaded = load_calibrator(run.calibrator_file, any_model=True)
    for colour in ("red", "green", "blue"):
        name = next(one for one in lines if colour in one)
        n, y = lines[name]
        assert n == (colours == colour).sum()
        X = pd.DataFrame({"a": 0.0, "b": 0.0, "colour": [colour] * len(found.x)})
        text = loaded.predict_proba(np.column_stack([1 - found.x, found.x]), X)[:, 1]
        assert np.allclose(text, y)
    assert list(calibrator_map_regions(found)["Rows"]) == [line.n for line in found.lines]


def test_a_column_that_is_no_feature_can_divide_the_rows_and_new_ones_are_scored(
    forest: Made, tmp_path: Path
) -> None:
    tables = {
        which: rows(n, seed).assign(shop=np.where(np.arange(n) % 3, "north", "south"))
        for which, n, seed in (("calibration", 150, 1), ("evaluation", 80, 2))
    }
    shops = made(tmp_path, forest.model, tables)
    assert partition_columns(shops.review) == ("a", "b", "shop")
    run = exported(shops, tmp_path / "run", ExportSettings("heterogeneous_tree", columns=("shop",)))
    assert run.card.features == ("a", "b", "shop")
    assert "training" not in run.card.data
    again = tried(shops, run.calibrator_file, tmp_path / "tried")
    after = [one.gain.after.scores["log_loss"].value for one in (run, again)]
    assert after[0] == pytest.approx(after[1])
    new, out = tmp_path / "new.csv", tmp_path / "out.csv"
    new.write_bytes(csv(tables["evaluation"].drop(columns="kind")).getvalue())
    model = tmp_path / "model.skops"
    score_table(str(run.calibrator_file), str(new), str(out), ".csv", model=str(model))
    data = review_data(ReviewReader(shops.workspace, shops.review.id))
    X = pd.concat([data.inputs["evaluation"], data.groups["evaluation"]], axis=1)
    expected = load_calibrator(run.calibrator_file, any_model=True).predict_proba(
        data.evaluation.proba, X
    )
    columns = [f"proba_{name}" for name in shops.review.classes]
    assert np.allclose(pd.read_csv(out)[columns], expected)


def test_several_columns_and_pruning_are_at_hand(mixed: Made, tmp_path: Path) -> None:
    several = ExportSettings("heterogeneous_tree", columns=("colour", "a"))
    run = exported(mixed, tmp_path / "several", several)
    assert run.record.title == "Platt scaling for each combination of colour, a"
    assert load_calibrator(run.calibrator_file, any_model=True).calibrator.columns_ == (
        "colour",
        "a",
    )
    pruned = exported(mixed, tmp_path / "pruned", ExportSettings("heterogeneous_tree", prune=True))
    assert pruned.card.parameters["prune"] == "cv"


def test_regions_of_a_hidden_layer_go_out_whole(network: Made, tmp_path: Path) -> None:
    layer = network.review.model.layers[0]
    run = exported(network, tmp_path / "run", ExportSettings("heterogeneous_tree", layer=layer))
    assert run.record.title == (
        f"Platt scaling in each region of a shallow tree, on the layer {layer}"
    )
    assert run.card.layer == layer
    assert run.card.features == tuple(network.review.roles.features)
    assert run.record.why_no_onnx is None
    assert run.record.onnx_difference < 1e-5
    data = review_data(ReviewReader(network.workspace, network.review.id), with_model=True)
    loaded = load_calibrator(run.calibrator_file, model=data.model)
    found = loaded.predict_proba(data.evaluation.proba, data.inputs["evaluation"])
    after = run.gain.after.scores["log_loss"].value
    assert log_loss(found, data.evaluation.y).value == pytest.approx(after)
    again = tried(network, run.calibrator_file, tmp_path / "tried")
    assert again.gain.after.scores["log_loss"].value == pytest.approx(after)
    with pytest.raises(InputError, match="cannot use a hidden layer"):
        exported(network, tmp_path / "no", ExportSettings("platt", layer=layer))


def test_the_map_is_of_the_event() -> None:
    p = np.random.default_rng(0).uniform(0.02, 0.98, 500)
    y = (np.random.default_rng(1).random(500) < p**2).astype(int)
    data = ScoredSet(np.column_stack([1 - p, p]), y, ("ja", "nein"), "digest", "rows")
    fitted = fit_calibrator("beta", data)
    first, second = (calibrator_map(fitted, data, None, seed=0, event=at) for at in (0, 1))
    assert first.lines[0].name == "ja"
    assert first.y[0] == pytest.approx(1.0 - second.y[0][::-1])
    assert first.rows_x == pytest.approx(1.0 - second.rows_x)
    chart = calibrator_map_chart(first, "beta", data.classes, dark=False)
    assert chart.finding.startswith("Probability of ja")
    assert "ja" in chart.figure.layout.xaxis.title.text


def test_the_lines_of_many_classes_are_those_most_often_predicted() -> None:
    proba, y = softmax(3000, 12, 0)
    names = tuple(f"c{i}" for i in range(12))
    data = ScoredSet(proba, y, names, "digest", "rows")
    fitted = fit_calibrator(TopLabelHistogram(shrinkage=None), data)
    found = calibrator_map(fitted, data, None, seed=0)
    counts = np.bincount(proba.argmax(axis=1), minlength=12)
    most = np.argsort(-counts, kind="stable")[:MOST_LINES]
    assert [line.name for line in found.lines] == [names[i] for i in most]
    assert [line.n for line in found.lines] == [counts[i] for i in most]
    assert found.n_lines == 12
    at = 300  # a score of 0.75
    top, score = proba.argmax(axis=1), proba.max(axis=1)
    bin_of = (top == most[3]) & (score > 0.7) & (score <= 0.8)
    assert found.y[3, at] == pytest.approx((y[bin_of] == most[3]).mean())
    several = calibrator_map(fit_calibrator("dirichlet", data), data, None, seed=0)
    assert several.shape == "rows"  # it looks at all twelve probabilities
    assert np.isnan(found.y[:, found.x <= 1 / 12]).all()
    figure = calibrator_map_figure(found, "histogram", dark=False, x_title="in", y_title="out")
    assert len(figure.data) == 2 + MOST_LINES
    chart = calibrator_map_chart(found, "histogram", names, dark=False)
    assert "%" in chart.finding
    assert chart.finding in chart.alt
    assert list(chart.table().columns[1:]) == [
        f"{i}: {line.name}" for i, line in enumerate(found.lines, 1)
    ]


def test_partitions_that_are_averaged_show_real_rows_alone(mixed: Made, tmp_path: Path) -> None:
    run = exported(mixed, tmp_path, ExportSettings("heterogeneous_boosted"))
    assert run.map.shape == "rows"
    assert run.map.lines == ()
    data = review_data(ReviewReader(mixed.workspace, mixed.review.id))
    found = load_calibrator(run.calibrator_file, any_model=True).predict_proba(
        data.calibration.proba, data.inputs["calibration"]
    )
    pairs = set(zip(data.calibration.proba[:, 1], found[:, 1].round(9), strict=True))
    drawn = zip(run.map.rows_x, run.map.rows_y.round(9), strict=True)
    assert set(drawn) == pairs
    chart = calibrator_map_chart(run.map, "heterogeneous_boosted", mixed.review.classes, dark=False)
    assert len(chart.table()) == 150
    assert chart.finding.startswith("Probability of ")


def test_what_cannot_be_judged_is_written_and_says_why(tmp_path: Path) -> None:
    proba, y = softmax(4, 2, 0)
    y[:] = np.arange(4) % 2
    few = predictions(tmp_path / "home", proba, y)
    run = exported(few, tmp_path / "run", ExportSettings("sts"))
    assert run.gain is None
    assert "fold" in run.record.why_not_judged
    assert run.card.estimates == ()
    assert run.record.why_no_onnx == "There is no model, only its predictions."
    assert load_calibrator(run.calibrator_file, any_model=True).card.model is None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (ExportSettings("nothing"), "There is no calibrator 'nothing'"),
        (ExportSettings("uncalibrated"), "There is no calibrator 'uncalibrated'"),
        (ExportSettings("heterogeneous_tree", inner="magic"), "'calibrator' cannot be 'magic'"),
        (ExportSettings("heterogeneous_tree", max_depth=99), "'max_depth' cannot be 99"),
        (ExportSettings("heterogeneous_tree", min_rows=0), "'min_rows' cannot be 0"),
        (ExportSettings("heterogeneous_tree", columns=("z",)), "no such column"),
        (ExportSettings("heterogeneous_tree", columns=("a", "kind")), "no such column"),
        (ExportSettings("heterogeneous_tree", columns=("a",), prune=True), "'prune' does nothing"),
        (ExportSettings("heterogeneous_forest", columns=("a",)), "no setting 'column'"),
        (ExportSettings("heterogeneous_tree", layer="hidden 1"), "no hidden layer 'hidden 1'"),
        (ExportSettings("platt", folds=1), "folds"),
    ],
)
def test_settings_that_there_are_none_of_are_refused(
    forest: Made, settings: ExportSettings, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        export_calibrator.request(forest.workspace, forest.review.id, settings)


def test_prior_floor_and_distance_of_a_kernel_density_version_are_in_its_file(
    forest: Made, tmp_path: Path
) -> None:
    settings = ExportSettings("kernel_density", distance="auto", log_floor=-1e7, prior=(0.1, 0.9))
    run = exported(forest, tmp_path, settings)
    reader = ReviewReader(forest.workspace, forest.review.id)
    loaded = load_calibrator(run.calibrator_file, model=reader.model_path)
    far = rows(3, 1)[["a", "b"]] + 1e9
    np.testing.assert_allclose(
        loaded.predict_proba(forest.model.predict_proba(far), far), [[0.1, 0.9]] * 3
    )
    assert "prior = [0.1, 0.9]" in run.record.title
    assert "log_floor = -10000000.0" in run.record.title


def test_a_calibrator_that_the_review_cannot_have_is_refused(tmp_path: Path) -> None:
    made = predictions(tmp_path, *softmax(50, 3, 1))
    with pytest.raises(InputError, match="is not available here: the rows have no features"):
        export_calibrator.request(made.workspace, made.review.id, ExportSettings("kernel_density"))


def test_other_settings_are_another_job_and_the_same_are_the_same(forest: Made) -> None:
    keys = [
        export_calibrator.request(forest.workspace, forest.review.id, one).key
        for one in (
            ExportSettings("platt"),
            ExportSettings("platt"),
            ExportSettings("platt", seed=1),
            ExportSettings("sts"),
        )
    ]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


def test_a_result_that_was_changed_is_not_read(forest: Made, tmp_path: Path) -> None:
    run = exported(forest, tmp_path, ExportSettings("sts"))
    run.calibrator_file.write_bytes(run.calibrator_file.read_bytes() + b"x")
    with pytest.raises(InputError, match="no longer kept"):
        load(tmp_path, ExportRun)


def test_a_tried_file_shows_what_it_showed_when_it_was_written(
    forest: Made, platt: ExportRun, tmp_path: Path
) -> None:
    found = tried(forest, platt.calibrator_file, tmp_path)
    assert encode(found.card) == encode(platt.card)  # some numbers are missing in both
    assert found.has_model
    assert not found.same_rows
    for key in ("log_loss", "brier", "auc", "accuracy"):
        one, other = (gain.after.scores[key] for gain in (found.gain, platt.gain))
        assert one.value == other.value
    assert found.gain.pairs["log_loss"].verdict == platt.gain.pairs["log_loss"].verdict


def test_a_tried_file_that_was_fitted_on_these_rows_says_so(mixed: Made, tmp_path: Path) -> None:
    run = exported(mixed, tmp_path / "run", ExportSettings("heterogeneous_tree"))
    assert tried(mixed, run.calibrator_file, tmp_path / "tried").same_rows


def test_another_models_file_is_refused(mixed: Made, platt: ExportRun, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"belongs to the model 'model\.skops'") as caught:
        tried(mixed, platt.calibrator_file, tmp_path)
    assert caught.value.file == "mine.kdcal"


@pytest.mark.parametrize("cut", [0, 10, 0.5, 0.99])
def test_a_file_cut_off_anywhere_is_refused(
    forest: Made, platt: ExportRun, tmp_path: Path, cut: float
) -> None:
    content = platt.calibrator_file.read_bytes()
    path = tmp_path / "cut.kdcal"
    path.write_bytes(content[: int(cut * len(content)) if cut < 1 else int(cut)])
    with pytest.raises(InputError) as caught:
        tried(forest, path, tmp_path / "out")
    assert caught.value.file == "mine.kdcal"


def test_an_altered_file_and_one_of_a_newer_version_are_refused(
    forest: Made, platt: ExportRun, tmp_path: Path
) -> None:
    content = bytearray(platt.calibrator_file.read_bytes())
    content[len(content) // 2] ^= 1
    altered, newer = tmp_path / "altered.kdcal", tmp_path / "newer.kdcal"
    altered.write_bytes(content)
    with pytest.raises(InputError, match=r"altered|damaged|cut"):
        tried(forest, altered, tmp_path / "out")
    about, arrays = read_archive(platt.calibrator_file, "calibrator", newest=3, sealed=True)
    write_archive(newer, "calibrator", {**about, "version": 4}, arrays)
    with pytest.raises(InputError, match="has version 4"):
        tried(forest, newer, tmp_path / "out")


def test_files_for_other_classes_or_columns_are_refused(tmp_path: Path) -> None:
    proba, y = softmax(200, 2, 3)
    one = predictions(tmp_path / "one", proba, y, size=proba[:, 0])
    run = exported(one, tmp_path / "run", ExportSettings("heterogeneous_tree"))
    assert tried(one, run.calibrator_file, tmp_path / "tried").card.features == ("size",)
    other = predictions(tmp_path / "other", proba, y, weight_kg=proba[:, 0])
    with pytest.raises(InputError, match="lacks a column") as caught:
        tried(other, run.calibrator_file, tmp_path / "out")
    assert caught.value.column == "size"
    three = predictions(tmp_path / "three", *softmax(200, 3, 3))
    with pytest.raises(InputError, match="was fitted for the classes '0' and '1', and the review"):
        tried(three, run.calibrator_file, tmp_path / "out")
