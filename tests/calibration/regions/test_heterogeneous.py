"""HeterogeneousCalibrator: its partitions, its manners, and what it refuses."""

import itertools
import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from estimator_checks import CHECKS
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss

from kdcal_core.calibration import calibrated, fit_calibrator
from kdcal_core.calibration.export.calibrator_file import Decoder, Encoder
from kdcal_core.calibration.regions import MAPS, HeterogeneousCalibrator
from kdcal_core.calibration.regions.column_partition import MAX_REGIONS, NUMBER_BINS
from kdcal_core.data import ScoredSet
from kdcal_core.errors import InputError, InputWarning

CUTS = ["tree", "column", "groups"]
# kernel densities search a bandwidth in every region, which takes its time
QUICK = [kind for kind in MAPS if kind != "kde"]


def people(n=1500, seed=0):
    """A model that is over-confident and blind to the job; categories and missing values."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n).astype(float),
            "job": rng.choice(["Sales", "Tech", "Care"], n),
            "noise": rng.normal(size=n),
        }
    )
    score = rng.normal(size=n)
    odds = score + 1.5 * (frame["job"] == "Sales") - 1.5 * (frame["age"] > 50)
    y = (rng.random(n) < expit(odds.to_numpy())).astype(int)
    frame.loc[rng.random(n) < 0.1, "age"] = np.nan
    p = expit(2 * score)
    return np.c_[1 - p, p], y, frame


def make(partition, **settings):
    column = {"column": "job", "groups": ["job", "age"]}.get(partition)
    return HeterogeneousCalibrator(partition, column=column, **settings)


@pytest.mark.parametrize(
    ("partition", "kind"), [*itertools.product(CUTS, QUICK), ("column", "kde")]
)
def test_it_repairs_what_the_model_does_not_see(partition, kind):
    proba, y, frame = people()
    fresh, truth, new = people(4000, 1)
    calibrator = make(partition, calibrator=kind).fit(proba, y, frame)
    found = calibrator.predict_proba(fresh, new)
    assert found.shape == fresh.shape
    assert ((found >= 0) & (found <= 1)).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert log_loss(truth, found) < log_loss(truth, fresh) - 0.03
    calibrator.check_state()
    covered = sum(region.n for region in calibrator.regions_)
    assert covered == (len(y) if partition != "tree" else 4 * len(y))
    for region in calibrator.regions_:
        assert sum(region.n_by_class) == region.n
        assert region.n_positive <= region.n
        assert region.words == calibrator.trees_[region.layer].words(region.leaf)


def test_training_rows_grow_one_tree_and_the_calibration_rows_fit_it():
    proba, y, frame = people()
    _, labels, training = people(6000, 2)
    calibrator = HeterogeneousCalibrator("tree").fit(
        proba, y, frame, X_partition=training, y_partition=labels
    )
    (tree,) = calibrator.trees_
    assert 4 <= tree.n_leaves <= 8
    leaf = np.asarray(tree.apply(frame))
    assert [region.n for region in calibrator.regions_] == np.bincount(
        leaf, minlength=tree.n_leaves
    ).tolist()
    found = calibrator.predict_proba(proba, frame)
    for region in calibrator.regions_:
        own = leaf == region.leaf
        slope, offset = (region.parameters[name][0] for name in ("slope", "offset"))
        odds = np.log(proba[own, 1] / proba[own, 0])
        np.testing.assert_allclose(found[own, 1], expit(slope * odds + offset), atol=1e-9)
    # its regions do not depend on the calibration rows' labels
    other = clone(calibrator).fit(proba, 1 - y, frame, X_partition=training, y_partition=labels)
    np.testing.assert_array_equal(other.trees_[0].threshold, tree.threshold)


def test_without_training_rows_no_row_serves_a_tree_and_its_maps():
    proba, y, frame = people()
    calibrator = HeterogeneousCalibrator("tree", random_state=3).fit(proba, y, frame)
    assert len(calibrator.layers_) == 5
    assert "5 trees" in calibrator.notes_[0]
    grown = [int(tree.n[0]) for tree in calibrator.trees_]
    fitted = [
        sum(region.n for region in calibrator.regions_ if region.layer == layer)
        for layer in range(5)
    ]
    assert sum(grown) == len(y)
    assert [a + b for a, b in zip(grown, fitted, strict=True)] == [len(y)] * 5
    mean = np.mean([layer.predict(proba, frame) for layer in calibrator.layers_], axis=0)
    np.testing.assert_allclose(calibrator.predict_proba(proba, frame), mean)


@pytest.mark.parametrize("partition", CUTS)
def test_one_seed_gives_one_answer(partition):
    proba, y, frame = people(600)
    first = make(partition).fit(proba, y, frame)
    again = clone(first).fit(proba, y, frame)
    want = first.predict_proba(proba, frame)
    np.testing.assert_array_equal(again.predict_proba(proba, frame), want)
    # weights count by their ratios, columns by their names
    mixed = frame[["noise", "job", "age"]]
    np.testing.assert_array_equal(first.predict_proba(proba, mixed), want)
    heavy = clone(first).fit(proba, y, frame, np.full(600, 7.0))
    np.testing.assert_allclose(heavy.predict_proba(proba, frame), want, atol=1e-9)


@pytest.mark.parametrize("partition", CUTS)
def test_several_classes(partition):
    rng = np.random.default_rng(0)
    frame = people(400)[2]
    proba = rng.dirichlet(np.ones(4), 400)
    y = np.array([rng.choice(4, p=row) for row in proba])
    for kind in QUICK:
        found = make(partition, calibrator=kind).fit(proba, y, frame).predict_proba(proba, frame)
        np.testing.assert_allclose(found.sum(axis=1), 1)
        assert ((found >= 0) & (found <= 1)).all()
    fitted = make(partition).fit(proba, y, frame)
    assert all(len(region.parameters["slope"]) == 4 for region in fitted.regions_)


@pytest.mark.parametrize("partition", CUTS)
@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_few_rows(partition, n):
    proba, y, frame = people(n)
    calibrator = make(partition).fit(proba, y, frame)
    found = calibrator.predict_proba(*people(50, 1)[::2])
    np.testing.assert_allclose(found.sum(axis=1), 1)
    if partition == "tree":
        assert any(re.search(r"With \d+ rows or more", note) for note in calibrator.notes_)
        # nothing was cut, so one map answers everywhere
        assert len({region.words for region in calibrator.regions_}) == 1


def test_regions_that_need_care_are_named_with_the_rows_that_would_do():
    proba, y, frame = people(900)
    frame["job"] = np.where(np.arange(900) < 3, "Rare", frame["job"])
    y = np.where(frame["job"] == "Tech", 1, y)
    proba = np.where((frame["job"] == "Care").to_numpy()[:, None], proba[:, ::-1], proba)
    calibrator = make("column").fit(proba, y, frame)
    flags = {region.words: region for region in calibrator.regions_}
    assert "few rows" in flags["job is Rare"].flags or "one class" in flags["job is Rare"].flags
    assert flags["job is Tech"].flags[0] == "one class"
    # its rows say nothing of the order: the slope is that of all rows
    slope = [flags[words].parameters["slope"] for words in ("job is Tech", "any other job")]
    assert slope[0] == pytest.approx(slope[1], abs=1e-8)
    assert flags["job is Care"].flags == ("negative slope",)
    assert flags["job is Care"].parameters["slope"][0] < 0
    assert flags["job is Sales"].flags == ()
    assert flags["any other job"].flags == ("no rows",)
    assert flags["job is Rare"].needed > 3
    text = " ".join(calibrator.notes_)
    assert f"about {flags['job is Rare'].needed:,} would do" in text
    assert "job is Care" in text
    assert "any other job" not in text


def test_values_that_the_fit_has_not_seen_have_the_map_of_all_rows():
    proba, y, frame = people()
    calibrator = make("column").fit(proba, y, frame)
    new = pd.DataFrame({"job": ["Pilot", None]})
    found = calibrator.predict_proba(proba[:2], new)
    nowhere = HeterogeneousCalibrator("column", column="same").fit(proba, y, frame.assign(same="x"))
    want = nowhere.predict_proba(proba[:2], pd.DataFrame({"same": ["y", "y"]}))
    np.testing.assert_allclose(found, want, atol=1e-6)


def test_a_number_is_cut_at_its_quantiles_and_the_rest_of_the_inputs_is_let_be():
    proba, y, frame = people()
    frame["when"] = pd.Timestamp("2026-01-01")
    calibrator = HeterogeneousCalibrator("column", column="age").fit(proba, y, frame)
    assert calibrator.columns_ == ("age",)
    assert len(calibrator.regions_) == NUMBER_BINS + 2  # one for missing, one for the rest
    words = [region.words for region in calibrator.regions_]
    assert "age is missing" in words
    assert sum(word.startswith("age above") for word in words) == NUMBER_BINS - 1
    calibrator.predict_proba(proba, frame[["age"]])


def test_a_column_with_thousands_of_values_pools_the_rarest():
    proba, y, frame = people(6000)
    rng = np.random.default_rng(0)
    frame["id"] = np.where(rng.random(6000) < 0.5, "often", rng.integers(0, 3000, 6000).astype(str))
    with pytest.warns(InputWarning, match="id"):
        calibrator = HeterogeneousCalibrator("column", column="id").fit(proba, y, frame)
    assert len(calibrator.regions_) <= 256
    assert any("rarest" in note for note in calibrator.notes_)
    assert calibrator.regions_[0].n >= 3 * calibrator.regions_[-2].n
    calibrator.predict_proba(proba, frame)


def test_too_many_combinations_pool_the_rarest():
    proba, y, frame = people(6000)
    rng = np.random.default_rng(0)
    for name in "abc":
        frame[name] = rng.choice(list("0123456789xyz"), 6000)
    calibrator = HeterogeneousCalibrator("groups", column=list("abc")).fit(proba, y, frame)
    assert len(calibrator.regions_) == MAX_REGIONS + 1
    assert any("combinations" in note for note in calibrator.notes_)
    assert calibrator.regions_[-1].n > 0
    assert calibrator.regions_[0].words.count(" and ") == 2


@pytest.mark.parametrize("partition", CUTS)
def test_inputs_of_other_columns_are_refused(partition):
    proba, y, frame = people(300)
    calibrator = make(partition).fit(proba, y, frame)
    with pytest.raises(InputError, match="lack a column") as caught:
        calibrator.predict_proba(proba, frame.drop(columns="job"))
    assert caught.value.column == "job"
    with pytest.raises(InputError, match="rows of inputs"):
        calibrator.predict_proba(proba, frame[:-1])


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"X": np.zeros(300)}, "must be a table"),
        ({"X": np.zeros((299, 2))}, "299 rows of inputs"),
        ({"sample_weight": np.r_[0.0, np.ones(299)]}, "weight"),
        ({"X_partition": np.zeros((3, 3))}, "only the inputs are given"),
        ({"y_partition": [0, 1, 0]}, "only the labels are given"),
        ({"y": np.full(300, 2)}, "out of range"),
    ],
)
def test_bad_input_is_refused(change, match):
    proba, y, frame = people(300)
    given = {"proba": proba, "y": y, "X": frame, **change}
    with pytest.raises(InputError, match=match):
        HeterogeneousCalibrator().fit(**given)


def test_a_partition_column_that_is_not_there():
    proba, y, frame = people(300)
    for column in (None, "nope"):
        with pytest.raises(InputError, match="column"):
            HeterogeneousCalibrator("column", column=column).fit(proba, y, frame)
    with pytest.raises(InputError, match="do not have") as caught:
        HeterogeneousCalibrator("groups", column=["job", "nope"]).fit(proba, y, frame)
    assert caught.value.column == "nope"


def test_training_rows_of_other_columns_are_refused():
    proba, y, frame = people(300)
    with pytest.raises(InputError, match="lack a column"):
        HeterogeneousCalibrator().fit(proba, y, frame, X_partition=frame[["age"]], y_partition=y)


def test_not_fitted():
    with pytest.raises(NotFittedError):
        HeterogeneousCalibrator().predict_proba([[0.5, 0.5]], [[1.0]])


@pytest.mark.parametrize("check", CHECKS)
def test_sklearns_own_checks(check):
    check("HeterogeneousCalibrator", HeterogeneousCalibrator())


def test_fitted_like_every_other_calibrator():
    proba, y, frame = people(800)
    rows = ScoredSet(proba, y, ("no", "yes"), "digest", "calibration")
    fitted = fit_calibrator(HeterogeneousCalibrator("tree"), rows, frame, training=(frame, y))
    found = calibrated(fitted, proba, frame)
    assert len(fitted.layers_) == 1
    np.testing.assert_array_equal(found.predicted, found.proba.argmax(axis=1))


@pytest.mark.parametrize("partition", CUTS)
def test_state_that_contradicts_itself_is_refused(partition):
    proba, y, frame = people(600)
    calibrator = make(partition).fit(proba, y, frame)
    for name, wrong in (
        ("layers_", ()),
        ("layers_", [1]),
        ("regions_", None),
        ("columns_", ("age", 3)),
        ("n_classes_", 3),
    ):
        kept = getattr(calibrator, name)
        setattr(calibrator, name, wrong)
        with pytest.raises(InputError, match="contradicts itself"):
            calibrator.check_state()
        setattr(calibrator, name, kept)
    calibrator.check_state()


def test_progress_is_reported_and_cancels():
    proba, y, frame = people(400)
    text = []
    HeterogeneousCalibrator("tree").fit(
        proba, y, frame, progress=lambda share, sentence: text.append((share, sentence))
    )
    shares = [share for share, _ in text]
    assert shares == sorted(shares)
    assert all(0 <= share <= 1 and sentence for share, sentence in text)

    def stop(share, sentence):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        HeterogeneousCalibrator("tree").fit(proba, y, frame, progress=stop)


def test_no_warning_of_a_plain_fit():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        proba, y, frame = people(500)
        HeterogeneousCalibrator("tree").fit(proba, y, frame).predict_proba(proba, frame)


@pytest.mark.parametrize("width", [2, 9])
def test_combinations_of_few_and_of_many_columns(width):
    """Up to eight columns are one whole number, more are compared byte by byte."""
    proba, y, _ = people(500)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"c{i}": rng.choice(["a", "b"], 500) for i in range(width)})
    calibrator = HeterogeneousCalibrator("groups").fit(proba, y, frame)
    counted = frame.value_counts()
    assert [region.n for region in calibrator.regions_] == [*counted, 0]
    at = calibrator.trees_[0].apply(frame)
    for region in calibrator.regions_[:4]:
        rows = np.flatnonzero(at == region.leaf)
        words = " and ".join(f"{name} is {frame[name][rows[0]]}" for name in frame)
        assert region.words == words
        assert frame.iloc[rows].nunique().max() == 1


@pytest.mark.parametrize("kind", list(MAPS))
@pytest.mark.parametrize("partition", CUTS)
def test_what_is_kept_answers_alike(partition, kind):
    proba, y, frame = people(150)
    fitted = make(partition, calibrator=kind).fit(proba, y, frame)
    encoder = Encoder()
    text = json.loads(json.dumps(encoder.estimator(fitted)))
    again = Decoder(encoder.arrays, json.loads(json.dumps(encoder.records))).estimator(text)
    np.testing.assert_array_equal(
        again.predict_proba(proba, frame), fitted.predict_proba(proba, frame)
    )
    assert [vars(one) for one in again.regions_] == [vars(one) for one in fitted.regions_]


@pytest.mark.parametrize("kind", ["column", "groups"])
def test_columns_without_names_are_found_by_their_number(kind):
    proba, y, frame = people(400)
    named = frame[["job", "age"]].set_axis(["0", "1"], axis=1)
    numbered = named.set_axis([0, 1], axis=1)
    asked = "0" if kind == "column" else ["0", "1"]
    fits = [
        HeterogeneousCalibrator(kind, column=asked).fit(proba, y, X).predict_proba(proba, X)
        for X in (named, numbered)
    ]
    np.testing.assert_array_equal(*fits)


def test_two_columns_of_one_name_are_refused_where_they_are_read():
    proba, y, frame = people(400)
    twice = pd.concat([frame, frame[["job"]]], axis=1)
    for settings in ({}, {"partition": "column", "column": "job"}, {"partition": "groups"}):
        with pytest.raises(InputError, match="Two columns") as caught:
            HeterogeneousCalibrator(**settings).fit(proba, y, twice)
        assert caught.value.column == "job"
    HeterogeneousCalibrator("column", column="age").fit(proba, y, twice)


def test_groups_of_no_column_are_refused():
    proba, y, frame = people(400)
    with pytest.raises(InputError, match="No column is named"):
        HeterogeneousCalibrator("groups", column=[]).fit(proba, y, frame)


def test_it_is_not_said_that_training_rows_lack_where_they_were_given():
    proba, y, frame = people(600)
    given = HeterogeneousCalibrator("auc").fit(proba, y, frame, X_partition=frame, y_partition=y)
    alone = HeterogeneousCalibrator("auc").fit(proba, y, frame)
    assert "are not used" in given.notes_[0]
    assert "No rows of the model's training set" in alone.notes_[0]


def care(n=3000, seed=0):
    """One job has no positives, in another the scores are reversed."""
    proba, y, frame = people(n, seed)
    frame = frame[["job"]]
    y = np.where(frame["job"] == "Tech", 0, y)
    return np.where((frame["job"] == "Care").to_numpy()[:, None], proba[:, ::-1], proba), y, frame


@pytest.mark.parametrize("partition", ["forest", "boosted"])
def test_partitions_without_a_list_of_regions_count_those_that_need_care(partition):
    proba, y, frame = care()
    fitted = HeterogeneousCalibrator(partition, n_trees=4, max_depth=2).fit(proba, y, frame)
    one_class = falling = regions = 0
    for layer in fitted.layers_:
        leaf = layer.partition.apply(frame)
        slope = getattr(layer.maps, "maps", layer.maps).parameters[0, :, 0]
        for region in range(layer.partition.n_leaves):
            regions += 1
            one_class += len(set(y[leaf == region])) == 1
            falling += slope[region] < 0
    assert one_class > 0
    assert falling > 0
    text = fitted.notes_[1]
    assert f"regions ({regions:,})" in text
    assert re.search(rf"\b{one_class} (has|have) only one class", text)
    assert re.search(rf"in {falling} a higher score means", text)


@pytest.mark.parametrize("partition", ["forest", "boosted"])
def test_nothing_is_said_of_regions_that_need_no_care(partition):
    proba, y, frame = people()
    fitted = HeterogeneousCalibrator(partition, n_trees=3, max_depth=1).fit(proba, y, frame)
    assert len(fitted.notes_) == 1


def test_a_rule_that_several_trees_share_is_named_once():
    proba, y, frame = care()
    for n in (20, 3000):
        fitted = HeterogeneousCalibrator("tree").fit(proba[:n], y[:n], frame[:n])
        assert len(fitted.layers_) == 5
        for note in fitted.notes_:
            named = re.findall(r"'([^']*)' \(", note)
            assert len(named) == len(set(named))
    assert any("'job is Tech' (" in note for note in fitted.notes_)


@pytest.mark.parametrize("partition", ["tree", "forest", "boosted", "auc"])
def test_one_of_a_kind_is_not_told_as_many(partition):
    proba, y, frame = people(400)
    few = HeterogeneousCalibrator(partition, n_trees=1).fit(proba[:1], y[:1], frame[:1])
    two = HeterogeneousCalibrator(partition, n_trees=2).fit(proba[:1], y[:1], frame[:1])
    many = HeterogeneousCalibrator(partition, n_trees=1).fit(proba, y, frame)
    for note in (*few.notes_, *two.notes_, *many.notes_):
        assert not re.search(r"\b1 (trees|partitions|regions|rows|calibration rows)", note)
