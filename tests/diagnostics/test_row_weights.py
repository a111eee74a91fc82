"""Measures count a row of weight 3 as three rows; only what allows for noise differs."""

from __future__ import annotations

import numpy as np
import pytest

from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import certain_and_wrong, certain_share
from kdcal_core.diagnostics.all_estimates import question_estimates
from kdcal_core.evaluation.probability_measures import estimates_of


@pytest.mark.parametrize(("n_classes", "event"), [(2, 1), (3, None)])
def test_every_estimate_counts_integer_weights_as_repeated_rows(n_classes: int, event: int | None):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(n_classes, 0.5), 120).round(2)
    proba /= proba.sum(axis=1, keepdims=True)
    y = np.array([rng.choice(n_classes, p=one) for one in proba])
    copies = rng.integers(1, 4, 120)
    names = ("a", "b", "c")[:n_classes]
    weighted = ScoredSet(proba, y, names, "", "calibration", copies.astype(float))
    each = np.repeat(np.arange(120), copies)
    repeated = ScoredSet(proba[each], y[each], names, "", "calibration")
    found, wanted = (
        (*estimates_of(one), *question_estimates(one, one, event)) for one in (weighted, repeated)
    )
    compared = 0
    for mine, theirs in zip(found, wanted, strict=True):
        # a debiased error subtracts noise, which repeated rows seem to have less of; quantiles
        # that bound the range of what is stated are of the rows as they are
        if "debiased" not in mine.name and "quantile minus" not in mine.name:
            assert mine.value == pytest.approx(theirs.value, abs=1e-9), mine.name
            compared += 1
    assert compared > 25


def test_weights_widen_the_interval_of_a_share():
    proba, y = np.tile([[1.0, 0.0], [0.4, 0.6]], (50, 1)), np.tile([1, 1], 50)
    weight = np.where(np.arange(100) < 50, 9.0, 1.0)
    for share in (lambda **given: certain_share(proba, **given),
                  lambda **given: certain_and_wrong(proba, y, **given)):  # fmt: skip
        plain, weighted = share(), share(sample_weight=weight)
        assert weighted.value == pytest.approx(0.5)
        assert weighted.high - weighted.low > 1.2 * (plain.high - plain.low)
