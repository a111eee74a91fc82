"""A comparison as a table, and what lies close to the best."""

import numpy as np
import pytest

from kdcal_core.calibration import TopLabelConfidence
from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import all_estimates
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
