"""MMC*, and AUROC and FPR@95 of foreign rows, as Compare measures and pairs them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from kdcal_core.calibration import Calibrated
from kdcal_core.data import FloatArray, ScoredSet
from kdcal_core.diagnostics import fpr_at_95_tpr, mean_max_confidence, ood_auroc
from kdcal_core.diagnostics.calibration_error import row_draws
from kdcal_core.evaluation import MEASURES, compare
from kdcal_core.evaluation.compare import far_rows
from kdcal_core.evaluation.measures import Drawn, Judged
from kdcal_core.evaluation.paired import PairedDifference, against_model
from kdcal_core.review import ReviewData
from kdcal_core.statistics import Dependence

KEYS = ("foreign_auc", "fpr95", "mmc_errors")


def two(p: FloatArray) -> FloatArray:
    return np.column_stack([1 - p, p])


def judged(n: int, m: int, seed: int, *, coarse: bool = False, far: float = 0.0) -> Judged:
    """Two methods that state confidences of the same quality; the second is worse by ``far``."""
    rng = np.random.default_rng(seed)
    inner, outer = 1.5 + rng.normal(size=(2, n)), rng.normal(size=(2, m))
    outer[1] += far
    squashed = [1 / (1 + np.exp(-side)) for side in (inner, outer)]
    inner, outer = (0.5 + 0.5 * (np.round(one, 1) if coarse else one) for one in squashed)
    y = (rng.random(n) < 0.75).astype(np.int64)
    said = tuple(Calibrated(two(p), np.ones(n, dtype=np.int64), p) for p in inner)
    prior = np.array([0.5, 0.5])
    fold = np.zeros(n, dtype=np.int64)
    return Judged(y, np.ones(n), fold, said, tuple(map(two, outer)), prior, n, ("a", "b"))


def pair(key: str, rows: Judged) -> PairedDifference:
    draws = row_draws(len(rows.y), 200, np.random.default_rng(0))
    compared = MEASURES[key].compared
    assert compared is not None
    found = compared(rows, Drawn(draws, 0.95, 0))
    assert found is not None
    return against_model(found[1], MEASURES[key], ["a", "b"], 0, len(rows.y), 0.95)[1]


class Flat:
    """A model that answers by its only feature."""

    def predict_proba(self, X: pd.DataFrame) -> FloatArray:
        return two(np.clip(X["p"].to_numpy(), 0.02, 0.98))


@pytest.mark.parametrize("weighted", [False, True])
def test_compare_shows_the_estimates_of_the_diagnostics(weighted: bool) -> None:
    rng = np.random.default_rng(1)
    p, far = rng.uniform(0.02, 0.98, 400), rng.uniform(0.3, 0.8, 90)
    y = (rng.random(400) < p**2).astype(np.int64)
    weight = rng.integers(1, 4, 400).astype(np.float64) if weighted else None
    rows = ScoredSet(two(p), y, ("no", "yes"), "digest", "calibration", weight)
    X, foreign = pd.DataFrame({"p": p}), {"far": pd.DataFrame({"p": far})}
    data = ReviewData(rows, None, rows.classes, {"calibration": X}, model=Flat(), foreign=foreign)
    scores = compare(["sts"], data, n_boot=100).method("uncalibrated").scores
    sides = two(p).max(axis=1), two(far).max(axis=1)
    star = mean_max_confidence(two(p), y, of="errors", sample_weight=weight)
    expected = {
        "foreign_auc": ood_auroc(*sides, by="confidence", weight_in=weight),
        "fpr95": fpr_at_95_tpr(*sides, by="confidence", weight_in=weight),
        "mmc_errors": replace(star, lower_is_better=True),
    }
    for key, one in expected.items():
        assert scores[key] == replace(one, label=MEASURES[key].title)
    if weight is not None:
        again = np.repeat(sides[0], weight.astype(int))
        for measure in (ood_auroc, fpr_at_95_tpr):
            repeated = measure(again, sides[1]).value
            assert measure(*sides, weight_in=weight).value == pytest.approx(repeated)


def test_without_wrong_or_foreign_rows_there_is_nothing_to_compare() -> None:
    rows = judged(60, 40, 0)
    draws = Drawn(row_draws(60, 100, np.random.default_rng(0)), 0.95, 0)
    for key in KEYS:
        compared = MEASURES[key].compared
        assert compared is not None
        assert compared(replace(rows, far=(), y=np.ones(60, dtype=np.int64)), draws) is None


@pytest.mark.parametrize("coarse", [False, True])
def test_equal_methods_are_rarely_told_apart_and_a_worse_one_is(coarse: bool) -> None:
    found = {
        key: [pair(key, judged(300, 400, s, coarse=coarse)) for s in range(60)] for key in KEYS
    }
    for key, pairs in found.items():
        assert sum(one.p_value < 0.05 for one in pairs) <= 9, key
        assert all(one.difference.low <= one.difference.value for one in pairs)
    worse = judged(2000, 2000, 1, coarse=coarse, far=1.0)
    assert [pair(key, worse).verdict for key in KEYS[:2]] == ["worse", "worse"]


def test_copies_of_far_rows_are_compared_as_one_of_each() -> None:
    rows = judged(200, 40, 5, far=0.3)
    copies = replace(rows, far=tuple(np.repeat(one, 10, axis=0) for one in rows.far))
    clusters = Dependence.of("cluster", np.repeat(np.arange(40), 10))
    for key in ("foreign_auc", "fpr95", "oce"):
        widths = [
            one.difference.high - one.difference.low
            for one in (
                pair(key, rows),
                pair(key, replace(copies, far_dependence=clusters)),
                pair(key, copies),
            )
        ]
        assert widths[1] == pytest.approx(widths[0], rel=0.1), key
        assert widths[2] < 0.9 * widths[0], key


def test_far_rows_of_several_tables_keep_their_own_clusters() -> None:
    proba, y = two(np.linspace(0.1, 0.9, 40)), np.arange(40) % 2
    rows = ScoredSet(proba, y, ("a", "b"), "", "calibration")
    far = {one: pd.DataFrame({"p": [0.2, 0.4, 0.6]}) for one in ("one", "two")}
    pairs = {"two": Dependence.of("cluster", ["x", "x", "y"])}
    data = ReviewData(
        rows,
        None,
        rows.classes,
        {"calibration": pd.DataFrame({"p": rows.proba[:, 1]})},
        model=Flat(),
        foreign=far,
        foreign_dependence=pairs,
    )
    found = far_rows(data, 0)
    assert found.dependence is not None
    assert found.dependence.unit.tolist() == [0, 1, 2, 3, 3, 4]
    assert "those of one cluster" in found.words
    assert far_rows(replace(data, foreign_dependence={}), 0).dependence is None


def test_a_method_that_agrees_on_every_row_does_not_differ() -> None:
    rows = judged(300, 200, 3)
    same = replace(rows, found=(rows.found[0],) * 2, far=(rows.far[0],) * 2)
    for key in KEYS:
        one = pair(key, same)
        assert one.difference.value == 0.0
        assert one.verdict == "cannot be told apart"
