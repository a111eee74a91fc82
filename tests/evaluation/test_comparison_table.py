"""A comparison as a table, and what lies close to the best."""

import numpy as np
import pytest

from kdcal_core.calibration import TopLabelConfidence
from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import all_estimates, event_calibration_error
from kdcal_core.diagnostics.targets import targets
from kdcal_core.errors import InputError
from kdcal_core.evaluation import compare
from kdcal_core.review import ReviewData


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 1500)
    y = (rng.random(1500) < 0.5 + 0.4 * (p - 0.5)).astype(np.int64)
    return ScoredSet(np.column_stack([1 - p, p]), y, ("no", "yes"), "", "calibration")


@pytest.fixture(scope="module")
def found(rows):
    conf1 = ("Conf1", TopLabelConfidence(shrinkage=None))
    return compare(["sts", "csts", conf1], ReviewData(rows, None, rows.classes, {}))


@pytest.fixture(scope="module")
def skewed():
    """A rare event, whose probability is overstated; confidence in predictions hides most of it."""
    rng = np.random.default_rng(4)
    p = rng.beta(1, 6, 1200)
    y = (rng.random(1200) < 0.6 * p).astype(np.int64)
    weight = rng.uniform(0.5, 2.0, 1200)
    return ScoredSet(np.column_stack([1 - p, p]), y, ("no", "yes"), "", "calibration", weight)


def test_calibration_errors_of_an_event_are_of_its_probability(skewed):
    both = ReviewData(skewed, None, skewed.classes, {})
    of_event, of_other, of_top = (
        compare(["isotonic"], both, folds=3, n_boot=100, event=event) for event in (1, 0, None)
    )
    p, y, weight = skewed.proba[:, 1], skewed.y, skewed.weight
    place = np.ceil(p * 15).astype(int)
    gaps = [abs(weight[place == b] @ (p - y)[place == b]) for b in range(16)]
    model = of_event.method("uncalibrated")
    assert model.scores["ece"].value == pytest.approx(sum(gaps) / weight.sum(), abs=1e-12)
    assert model.scores["ece"].name.startswith("ECE of the event's probability: l1")
    (target,) = targets(skewed.proba, skewed.y, skewed.weight, "class", 1)
    assert model.scores["ece"].value == event_calibration_error(target, 0.95).value
    (curve,) = model.reliability.curves
    said = np.nansum(curve.confidence * curve.weight) / curve.weight.sum()
    assert said == pytest.approx(np.average(p, weights=weight))
    assert (of_event.event, of_other.event, of_top.event) == ("yes", "no", None)
    for key in ("ece", "smooth_ece", "mce", "l2"):
        here, there, top = (
            one.method("isotonic").scores[key].value for one in (of_event, of_other, of_top)
        )
        assert here == pytest.approx(there, abs=2e-3), key
        assert here != top, key
    for key in ("log_loss", "brier", "auc", "accuracy"):
        assert of_event.method("isotonic").scores[key] == of_top.method("isotonic").scores[key]


@pytest.mark.parametrize("event", [2, -1])
def test_an_event_that_is_no_class_is_refused(rows, event):
    with pytest.raises(InputError, match=f"event is {event}"):
        compare(["sts"], ReviewData(rows, None, rows.classes, {}), event=event)


def test_what_lies_close_to_the_best_is_named(found):
    close = set(found.close_to_best("log_loss"))
    assert {"sts", "csts"} <= close
    assert "uncalibrated" not in close


def test_table_has_every_measure_and_method_once(found):
    table = found.table()
    assert len(table) == len(found.measures) * len(found.methods)
    assert not table.duplicated(["measure", "method"]).any()
    log_loss = table[table["measure"] == "log_loss"].set_index("method")
    sts, model = log_loss.loc["sts"], log_loss.loc["uncalibrated"]
    assert sts["less_model"] == pytest.approx(sts["value"] - model["value"])
    assert sts["low"] <= sts["value"] <= sts["high"]


def test_one_label_is_one_estimator_wherever_it_is_shown(found, rows):
    """The model's own number beside its calibrators is the one of ``kdcal diagnose``."""
    alone = {one.label: one for one in all_estimates(rows)}
    table = found.table().set_index(["method", "measure"])
    shown = {one.title: table.loc[("uncalibrated", one.key)] for one in found.measures}
    both = [label for label in shown if label in alone]
    assert {
        "ECE, debiased (l1, 15 equal-width bins)",
        "l2 error, debiased (l2, 15 equal-width bins)",
        "MCE",
        "Classwise ECE",
    } <= {*both}
    for label in both:
        assert shown[label]["value"] == pytest.approx(alone[label].value, abs=1e-12), label
