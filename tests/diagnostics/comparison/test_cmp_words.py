"""What a comparison is said to show."""

import numpy as np
import pytest

from kdcal_core.calibration import TopLabelConfidence
from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import compare, comparison_words
from kdcal_core.review import ReviewData


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 1500)
    y = (rng.random(1500) < 0.5 + 0.4 * (p - 0.5)).astype(np.int64)
    rows = ScoredSet(np.column_stack([1 - p, p]), y, ("no", "yes"), "", "calibration")
    conf1 = ("Conf1", TopLabelConfidence(shrinkage=None))
    return compare(["sts", "csts", conf1], ReviewData(rows, None, rows.classes, {}))


def test_who_leads_who_is_close_and_who_beats_the_parent(found):
    words = comparison_words(found, "log_loss")
    lead = found.method(found.best["log_loss"])
    assert words[0].startswith(f"{lead.name} has the lowest value of Log loss: ")
    close = set(found.close_to_best("log_loss"))
    assert {"sts", "csts"} <= close
    assert "uncalibrated" not in close
    assert "cannot be told apart on these 1,500 rows." in words[1]
    assert words[1].startswith(lead.name)
    assert words[2].startswith("Better than the parent: ")
    assert "STS" in words[2]


def test_accuracy_that_is_the_same_says_so(found):
    assert comparison_words(found, "accuracy")[-1] == (
        "No method can be told apart from the parent."
    )


def test_ranking_by_class_alone_is_worse(found):
    """The class's own confidence forgets the score."""
    assert "Worse than the parent: Conf1." in comparison_words(found, "auc")


def test_speed_is_a_number_alone(found):
    (sentence,) = comparison_words(found, "size_bytes")
    assert sentence == "Uncalibrated has the lowest value of Bytes when fitted: 0.000."


def test_table_has_every_measure_and_method_once(found):
    table = found.table()
    assert len(table) == len(found.measures) * len(found.methods)
    assert not table.duplicated(["measure", "method"]).any()
    log_loss = table[table["measure"] == "log_loss"].set_index("method")
    sts, parent = log_loss.loc["sts"], log_loss.loc["uncalibrated"]
    assert sts["less_parent"] == pytest.approx(sts["value"] - parent["value"])
    assert sts["low"] <= sts["value"] <= sts["high"]
