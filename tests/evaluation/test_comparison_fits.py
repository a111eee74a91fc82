"""Who is fitted on what, and judged by which rows."""

import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pandas as pd
import pytest

from kdcal_core.calibration import (
    Calibrator,
    IsotonicConfidence,
    calibrated,
    fit_calibrator,
)
from kdcal_core.data import ScoredSet
from kdcal_core.data.splits import random_folds
from kdcal_core.diagnostics import auroc, brier, calibration_error, estimate_text, log_loss
from kdcal_core.errors import InputError, InputWarning
from kdcal_core.evaluation import compare
from kdcal_core.review import ReviewData

SPEED = {"fit_seconds", "predict_seconds"}


def scored(n, n_classes, seed, sharp=2.0, weighted=False, name="calibration"):
    rng = np.random.default_rng(seed)
    odds = np.exp(1.5 * rng.normal(size=(n, n_classes)))
    p = odds / odds.sum(axis=1, keepdims=True)
    y = (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    stated = p**sharp
    weight = rng.uniform(0.5, 2.0, n) if weighted else None
    return ScoredSet(
        stated / stated.sum(axis=1, keepdims=True),
        y,
        tuple("abcdefgh"[:n_classes]),
        f"{seed}",
        name,
        weight,
    )


def review(n=300, n_classes=3, seed=0, evaluation=None, **kwargs):
    rows = scored(n, n_classes, seed, **kwargs)
    return ReviewData(rows, evaluation, rows.classes, {})


class Refuses(Calibrator):
    """Cannot be fitted."""

    def fit(self, proba, y, sample_weight=None):
        raise ValueError("no such thing")

    def predict_proba(self, proba):
        return proba


class Shy(Calibrator):
    """Says the same of every row: the mean of the features' first column it was fitted on."""

    needs_inputs = True

    def fit(self, proba, y, X, sample_weight=None):
        self.n_classes_, self.notes_ = proba.shape[1], ()
        self.mean_ = float(X.iloc[:, 0].mean())
        return self

    def predict_proba(self, proba, X):
        return np.column_stack([np.full(len(X), 1 - self.mean_), np.full(len(X), self.mean_)])


@pytest.mark.parametrize("weighted", [False, True])
def test_each_row_is_judged_by_the_fit_that_left_its_fold_out(weighted):
    data = review(weighted=weighted)
    rows = data.calibration
    fold = random_folds(len(rows.y), 4, 7)
    proba = np.empty_like(rows.proba)
    for i in range(4):
        kept = fold != i
        part = ScoredSet(
            rows.proba[kept],
            rows.y[kept],
            rows.classes,
            "",
            "",
            rows.weight[kept] if weighted else None,
        )
        proba[~kept] = calibrated(fit_calibrator("isotonic", part), rows.proba[~kept]).proba
    found = compare(["isotonic"], data, folds=4, seed=7, n_boot=100)
    method = found.method("isotonic")
    wanted = log_loss(proba, rows.y, sample_weight=rows.weight)
    assert method.scores["log_loss"].value == pytest.approx(wanted.value)
    assert method.scores["log_loss"].low == pytest.approx(wanted.low)
    classwise = calibration_error(proba, rows.y, kind="class", sample_weight=rows.weight)
    assert method.scores["classwise_ece"].value == pytest.approx(classwise.value)
    assert found.judged == "cross-fitted on the calibration set"
    assert (found.n, found.folds, found.overlap) == (300, 4, None)


@pytest.mark.parametrize("against", ["model", "best"])
def test_a_difference_is_that_of_the_two_estimates_shown(against):
    """Whatever corrects a measure for noise corrects its interval, not one number of three."""
    found = compare(["isotonic", "histogram", "sts"], review(400, 3, seed=1), folds=4, n_boot=100)
    other = {
        key: found.reference if against == "model" else best for key, best in found.best.items()
    }
    looked_at = 0
    for measure in (one.key for one in found.measures if (one.key, against) in found.paired):
        for pair in found.paired[measure, against]:
            before = found.method(other[measure]).scores[measure].value
            change = found.method(pair.key).scores[measure].value - before
            assert pair.difference.value == pytest.approx(change, abs=1e-12), (measure, pair.key)
            assert pair.difference.low <= pair.difference.value <= pair.difference.high
            lower = found.measure(measure).lower_is_better
            if pair.verdict != "cannot be told apart":
                assert pair.verdict == ("better" if (change < 0.0) == lower else "worse")
            looked_at += pair.key != other[measure]
    assert looked_at >= 24


def test_the_evaluation_set_judges_one_fit_unless_cross_fitting_is_asked_for():
    evaluation = scored(200, 3, 5, name="evaluation")
    data = review(evaluation=evaluation)
    found = compare(["sts"], data, n_boot=100)
    answer = calibrated(fit_calibrator("sts", data.calibration), evaluation.proba)
    assert found.method("sts").scores["brier"].value == pytest.approx(
        brier(answer.proba, evaluation.y).value
    )
    assert (found.judged, found.n, found.folds, found.overlap) == ("evaluation set", 200, 0, 0)
    crossed = compare(["sts"], data, n_boot=100, judge="cross-fitted")
    assert (crossed.n, crossed.folds) == (300, 5)
    with pytest.raises(InputError, match="no evaluation set"):
        compare(["sts"], review(), judge="evaluation")


def without_times(found):
    table = found.table()
    return table[~table["measure"].isin(SPEED)].reset_index(drop=True)


def test_who_fits_changes_nothing():
    data = review(80, 2)
    keys = ["isotonic"]
    alone = compare(keys, data, folds=2, n_boot=100)
    with ThreadPoolExecutor(2) as threads:
        pd.testing.assert_frame_equal(
            without_times(alone),
            without_times(compare(keys, data, folds=2, n_boot=100, executor=threads)),
        )
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        pd.testing.assert_frame_equal(
            without_times(alone),
            without_times(compare(keys, data, folds=2, n_boot=100, executor=processes)),
        )


def test_threads_keep_each_others_warnings_quiet():
    data = review(60, 2)
    keys = ["isotonic", "platt", "beta", "venn_abers", "histogram", "kde_mon2"]
    with ThreadPoolExecutor(8) as threads, warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)  # which any that got out would be
        for _ in range(2):
            compare(keys, data, folds=5, n_boot=100, executor=threads)


def test_company_changes_no_methods_own_numbers():
    data = review(100, 2)
    alone = compare(["sts"], data, n_boot=100).method("sts")
    among = compare(["histogram", "sts"], data, n_boot=100).method("sts")
    for key in set(alone.scores) - SPEED:
        assert alone.scores[key] == among.scores[key]


def test_what_cannot_be_fitted_is_reported_and_the_others_go_on():
    data = review(100, 2)
    found = compare(["sts", ("own", Refuses()), ("shy", Shy())], data, n_boot=100)
    assert [one.key for one in found.methods] == ["uncalibrated", "sts"]
    assert "no such thing" in found.failed["own"]
    assert "features" in found.failed["shy"]
    with ThreadPoolExecutor(2) as pool:
        again = compare(["sts", ("own", Refuses())], data, n_boot=100, executor=pool)
    assert again.failed == {"own": found.failed["own"]}


def test_methods_that_read_features_get_those_of_the_rows():
    rows = scored(90, 2, 0)
    X = pd.DataFrame({"x": np.linspace(0.0, 1.0, 90)}, index=np.arange(90) * 3)
    data = ReviewData(rows, None, rows.classes, {"calibration": X})
    found = compare([("shy", Shy())], data, folds=3, n_boot=100, far=False)
    fold = random_folds(len(rows.y), 3, 0)
    mean = np.array([X["x"].to_numpy()[fold != i].mean() for i in range(3)])[fold]
    loss = -np.log(np.where(rows.y == 1, mean, 1 - mean)).mean()
    assert found.method("shy").scores["log_loss"].value == pytest.approx(loss)
    assert found.method("shy").size_bytes == 8


class Flat:
    """A model that says the same everywhere."""

    def predict_proba(self, X):
        return np.tile([0.9, 0.1], (len(X), 1))


@pytest.mark.parametrize("foreign", [False, True])
def test_far_rows_are_the_users_own_or_on_a_sphere(foreign):
    rows = scored(200, 2, 0)
    X = pd.DataFrame({"x": np.random.default_rng(0).normal(size=200), "kind": ["a", "b"] * 100})
    own = {"mine": X.iloc[:30] + X.iloc[:30]} if foreign else {}
    data = ReviewData(rows, None, rows.classes, {"calibration": X}, model=Flat(), foreign=own)
    found = compare(["confidence"], data, n_boot=100)
    model = found.method("uncalibrated").scores
    prior = max(np.mean(rows.y == 0), np.mean(rows.y == 1))
    assert model["oce"].value == pytest.approx(abs(0.9 - prior))
    assert model["oce"].n == (30 if foreign else 1000)
    pair = found.paired["oce", "model"][1]
    assert pair.difference.value == pytest.approx(
        found.method("confidence").scores["oce"].value - abs(0.9 - prior)
    )
    assert any(
        ("30 foreign rows" if foreign else "on a sphere") in note.sentence for note in found.notes
    )


def test_far_away_less_confidence_than_the_prior_is_not_better():
    y = (np.arange(200) >= 180).astype(np.int64)  # nine tenths are of one class
    rows = ScoredSet(np.tile([0.9, 0.1], (200, 1)), y, ("a", "b"), "", "calibration")
    X = pd.DataFrame({"x": np.random.default_rng(0).normal(0.5, 0.1, 200)})  # Shy says a half
    data = ReviewData(rows, None, rows.classes, {"calibration": X}, model=Flat())
    found = compare([("shy", Shy())], data, n_boot=100)
    outside = [one.key for one in found.measures if one.group == "outside"]
    assert outside == ["oce", "foreign_auc", "fpr95"]
    assert found.best["oce"] == "uncalibrated"
    verdicts = [found.paired[key, "model"][1].verdict for key in outside]
    # Shy's five fits say not quite the same, the model says the same everywhere
    assert verdicts[0] == "worse"
    assert found.method("uncalibrated").scores["foreign_auc"].value == pytest.approx(0.5, abs=1e-12)
    assert found.method("uncalibrated").scores["fpr95"].value == 1.0


def test_without_a_model_nothing_is_asked_far_away():
    found = compare([], review(60, 2), n_boot=100)
    assert not any(one.group == "outside" for one in found.measures)
    assert any("no model" in note.sentence for note in found.notes)
    with pytest.raises(InputError, match="no model"):
        compare([], review(60, 2), n_boot=100, far=True)


def test_progress_rises_to_one_and_may_cancel():
    text = []
    compare(["sts"], review(60, 2), n_boot=100, progress=lambda share, _: text.append(share))
    assert text == sorted(text)
    assert text[0] == 0.0
    assert text[-1] == 1.0

    def stop(share, note):
        if share > 0.2:
            raise KeyboardInterrupt(note)

    with pytest.raises(KeyboardInterrupt):
        compare(["sts"], review(60, 2), n_boot=100, progress=stop)


def test_rows_of_both_sets_are_counted_and_warned_of():
    data = review(200, 2)
    shared = ScoredSet(
        data.calibration.proba[:50], data.calibration.y[:50], data.classes, "", "evaluation"
    )
    with pytest.warns(InputWarning, match="50 rows of the evaluation set"):
        found = compare(["sts"], ReviewData(data.calibration, shared, data.classes, {}), n_boot=100)
    assert found.overlap == 50


def test_bad_settings_are_refused():
    with pytest.raises(InputError, match="divided into 5 folds"):
        compare(["sts"], review(4, 2), n_boot=100)
    with pytest.raises(InputError, match="named twice"):
        compare(["sts", "sts"], review(60, 2))
    with pytest.raises(InputError):
        compare(["no such"], review(60, 2))
    with pytest.raises(InputError, match="n_boot"):
        compare(["sts"], review(60, 2), n_boot=10)
    with pytest.raises(InputError, match="level"):
        compare(["sts"], review(60, 2), level=1.0)


def test_one_class_alone_has_no_area():
    rows = scored(60, 2, 0)
    data = ReviewData(
        ScoredSet(rows.proba, np.zeros(60, dtype=np.int64), rows.classes, "", "calibration"),
        None,
        rows.classes,
        {},
    )
    found = compare(["confidence"], data, n_boot=100)
    assert "auc" not in [one.key for one in found.measures]
    assert any("all of one class" in note.sentence for note in found.notes)


def test_few_rows_tell_nothing_apart_and_the_number_that_would_do_is_said():
    for n in (2, 12, 19):
        found = compare(
            ["isotonic", "platt"],
            review(n_classes=2, evaluation=scored(n, 2, 5, name="evaluation")),
            n_boot=100,
        )
        verdicts = {pair.verdict for pairs in found.paired.values() for pair in pairs}
        assert verdicts == {"cannot be told apart"}
        assert any(
            f"{n} rows are too few" in note.sentence and "20 rows" in note.sentence
            for note in found.notes
        )
    enough = compare(
        ["isotonic"],
        review(n_classes=2, evaluation=scored(20, 2, 5, name="evaluation")),
        n_boot=100,
    )
    assert not any("rows are too few" in note.sentence for note in enough.notes)


def test_one_row_does_not_judge():
    data = review(n_classes=2, evaluation=scored(1, 2, 5, name="evaluation"))
    with pytest.raises(InputError, match="at least 20 rows"):
        compare(["isotonic"], data, n_boot=100)


@pytest.mark.parametrize("n", [8, 19, 20])
def test_fewer_than_twenty_rows_that_are_all_right_get_no_interval(n, texts):
    """All alike, their losses would have an interval without width around nearly zero."""
    y = np.arange(n) % 2
    proba = np.column_stack([1.0 - y, y]) * 0.98 + 0.01
    rows = ScoredSet(proba, y, ("no", "yes"), "digest", "calibration")
    found = compare(["isotonic"], ReviewData(rows, None, rows.classes, {}), n_boot=100, far=False)
    shown = [one.scores[m.key] for one in found.methods for m in found.measures[:2]]
    shown += [pair.difference for pair in found.paired["log_loss", "model"]]
    few = n < 20
    assert all(np.isnan([one.low, one.high]).all() == few for one in shown)
    assert all(np.isfinite(one.value) for one in shown)
    texts([one.sentence for one in found.notes])
    assert any("20 rows" in note.sentence for note in found.notes) == few
    assert all(("no interval" in estimate_text(one)) == few for one in shown)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_models_auc_is_that_of_every_other_page(n_classes):
    """Cross-fitted, rows are ranked inside folds for the differences, not for the model itself."""
    one = review(250, n_classes, 3)
    found = compare([("isotonic", IsotonicConfidence(shrinkage=None))], one, n_boot=100)
    rows = one.calibration
    want = auroc(rows.proba, rows.y)
    shown = found.methods[0].scores["auc"]
    assert (shown.value, shown.low, shown.high) == pytest.approx((want.value, want.low, want.high))
    (_, pair) = found.paired["auc", "model"]
    change = found.methods[1].scores["auc"].value - shown.value
    assert change == pytest.approx(pair.difference.value)
    assert change != 0.0
