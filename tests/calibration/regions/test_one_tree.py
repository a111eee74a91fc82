"""Trees cut back by cross-validation."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from kdcal_core.calibration.regions import HeterogeneousCalibrator
from kdcal_core.calibration.regions.one_tree import FOLDS, held_out_losses
from kdcal_core.calibration.regions.region_layers import FitRows
from kdcal_core.data.splits import random_folds
from kdcal_core.partition.tree import Gini, bin_inputs, grow_tree
from kdcal_core.statistics import Dependence, RowDesign


def rows(n=2000, seed=0, effect=3.0):
    rng = np.random.default_rng(seed)
    X, score = rng.normal(size=(n, 4)), rng.normal(size=n)
    y = (rng.random(n) < expit(score + effect * (X[:, 0] > 0) - effect / 2)).astype(int)
    p = expit(2 * score)
    return np.c_[1 - p, p], y, X


def test_losses_are_those_of_logistic_regressions_fitted_on_the_other_folds():
    proba, y, X = rows(600)
    fitting = FitRows(proba, y, np.ones(600), _frame(X), None, None)
    settings = HeterogeneousCalibrator("tree", pooling=False)
    tree = grow_tree(bin_inputs(_frame(X)), Gini(y), max_depth=2, min_rows=100)
    found = held_out_losses(settings, fitting, tree)
    fold = random_folds(len(y), FOLDS, 0)
    score = np.log(proba[:, 1] / proba[:, 0])[:, None]
    inside = tree.paths[tree.apply(_frame(X))]
    for node in range(tree.n_nodes):
        total = 0.0
        for out in (fold == i for i in range(FOLDS)):
            fit, judged = inside[:, node] & ~out, inside[:, node] & out
            model = LogisticRegression(C=np.inf).fit(score[fit], y[fit])
            total += judged.sum() * log_loss(
                y[judged], model.predict_proba(score[judged]), labels=[0, 1]
            )
        np.testing.assert_allclose(found[node], total, rtol=1e-3)


@pytest.mark.parametrize("training", [False, True])
def test_cuts_that_say_nothing_go_and_the_one_that_does_stays(training):
    proba, y, X = rows()
    _, labels, more = rows(4000, 1)
    given = {"X_partition": more, "y_partition": labels} if training else {}
    whole, cut = (
        HeterogeneousCalibrator("tree", prune=prune, max_depth=4).fit(proba, y, X, **given)
        for prune in (False, "cv")
    )
    assert sum(t.n_leaves for t in cut.trees_) < 0.6 * sum(t.n_leaves for t in whole.trees_)
    assert all("column 1" in tree.words(0) for tree in cut.trees_)


def test_pruned_trees_are_no_worse_on_new_rows():
    proba, y, X = rows(1000)
    fresh, truth, new = rows(6000, 2)
    whole, cut = (
        log_loss(
            truth,
            HeterogeneousCalibrator("tree", prune=prune, max_depth=5, pooling=False, min_rows=10)
            .fit(proba, y, X)
            .predict_proba(fresh, new),
        )
        for prune in (False, "cv")
    )
    assert cut < whole


def test_too_few_rows_to_judge_by_leave_the_tree():
    proba, y, X = rows(4)
    fitted = HeterogeneousCalibrator("tree", prune="cv").fit(proba, y, X)
    assert fitted.predict_proba(proba, X).shape == (4, 2)


def _frame(X):
    import pandas as pd

    return pd.DataFrame(X, columns=[f"column {i + 1}" for i in range(X.shape[1])])


@pytest.mark.parametrize("partition", ["tree", "forest", "boosted"])
def test_rows_of_a_cluster_count_as_far_as_they_say_something_new(partition):
    """Taken for independent, 20 nearly equal rows of each cluster would be learnt by heart."""
    proba, y, X = rows(60, 1, effect=0.0)
    many = np.repeat(np.arange(60), 20)
    near = X[many] + 0.05 * np.random.default_rng(2).normal(size=(1200, 4))
    design = RowDesign(None, Dependence.of("cluster", many))
    new, _, inputs = rows(200, 3)
    one, together, apart = (
        HeterogeneousCalibrator(partition).fit(*given).predict_proba(new, _frame(inputs))
        for given in (
            (proba, y, _frame(X)),
            (proba[many], y[many], _frame(near), design),
            (proba[many], y[many], _frame(near)),
        )
    )
    assert np.abs(together - one).mean() < 0.02
    assert np.abs(apart - one).mean() > 0.05
