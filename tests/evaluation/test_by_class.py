"""Losses by predicted class, by the engine that compares."""

from __future__ import annotations

import numpy as np
import pytest
from made_reviews import scored

from kdcal_core.calibration import TopLabelHistogram, TopLabelKDE, methods_by_class
from kdcal_core.data import ScoredSet
from kdcal_core.data.splits import random_folds
from kdcal_core.errors import InputError
from kdcal_core.evaluation import compare, held_out_answers, losses_by_class, methods_of
from kdcal_core.review import ReviewData

pytestmark = pytest.mark.filterwarnings("ignore::kdcal_core.errors.InputWarning")


def test_cross_fitting_uses_the_other_folds_only():
    data = scored()
    fold = random_folds(len(data.y), 4, 7)
    methods = methods_of([("own", TopLabelHistogram())])
    found = held_out_answers(methods, ReviewData(data, None, data.classes, {}), folds=4, seed=7)
    assert [one.key for one in found.methods] == ["uncalibrated", "own"]
    got = found.said[1].confidence
    for i in range(4):
        part = TopLabelHistogram().fit(data.proba[fold != i], data.y[fold != i])
        np.testing.assert_array_equal(
            got[fold == i], part.predict_confidence(data.proba[fold == i])
        )


def test_progress_can_cancel():
    def stop(share, sentence):
        raise KeyboardInterrupt

    data = scored(60)
    with pytest.raises(KeyboardInterrupt):
        losses_by_class(data, None, ["sts"], progress=stop)


def test_comparison():
    data, new = scored(300, sharp=5.0), scored(300, seed=5, name="evaluation", sharp=5.0)
    words = []
    keys = list(methods_by_class())
    got = losses_by_class(data, new, keys, folds=3, progress=lambda s, text: words.append(s))
    assert words == sorted(words)
    assert words[-1] == 1
    assert list(got.resubstitution.methods) == keys
    assert "3 folds" in got.cross_fitted.rows
    mon2 = keys.index("kde_mon2")
    alone = TopLabelKDE().fit(data.proba, data.y)
    fold, crossed = random_folds(len(data.y), 3, 0), np.empty(data.n_rows)
    for i in range(3):
        part = TopLabelKDE().fit(data.proba[fold != i], data.y[fold != i])
        crossed[fold == i] = part.predict_confidence(data.proba[fold == i])
    for losses, confidence, rows in (
        (got.resubstitution, alone.predict_confidence(data.proba), data),
        (got.evaluation, alone.predict_confidence(new.proba), new),
        (got.cross_fitted, crossed, data),
    ):
        p = np.where(rows.proba.argmax(axis=1) == rows.y, confidence, 1 - confidence)
        assert losses.overall_nll[mon2] == pytest.approx(-np.log(np.clip(p, 1e-12, 1)).mean())
    # the model's scores are far too sharp: calibrating must help on new rows
    assert got.evaluation.overall_nll[mon2] < got.evaluation.overall_nll[0]
    assert losses_by_class(data, None, ["sts"], folds=2).evaluation is None


def test_comparison_refuses():
    with pytest.raises(InputError, match="no method 'magic'"):
        losses_by_class(scored(), None, ["magic"])
    with pytest.raises(InputError, match="No method is given"):
        losses_by_class(scored(), None, [])
    with pytest.raises(InputError, match="reads more than probabilities"):
        losses_by_class(scored(), None, ["kernel_density"])
    other = ScoredSet(scored().proba, scored().y, ("x", "y", "z"), "d", "evaluation")
    with pytest.raises(InputError, match="other classes"):
        losses_by_class(scored(), other, ["sts"])


def test_the_page_by_class_and_the_comparison_fit_and_fold_alike():
    """With two classes the model's log loss is its top-label log loss, and so is STS's."""
    rng = np.random.default_rng(4)
    p = rng.uniform(0.02, 0.98, 400)
    y = (rng.random(400) < 0.5 + 0.4 * (p - 0.5)).astype(int)
    rows = ScoredSet(np.column_stack([1 - p, p]), y, ("no", "yes"), "digest", "calibration")
    by_class = losses_by_class(rows, None, ["uncalibrated", "sts"]).cross_fitted
    compared = compare(["sts"], ReviewData(rows, None, rows.classes, {}), n_boot=100)
    for place, method in enumerate(compared.methods):
        assert by_class.overall_nll[place] == pytest.approx(
            method.scores["log_loss"].value, rel=1e-12
        )
