"""Measures take names of classes, one column of P(event) and frames with columns in any order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from kdcal_core.calibration.regions import HeterogeneousCalibrator
from kdcal_core.diagnostics import (
    auc,
    calibration_intercept,
    calibration_slope,
    certain_share,
    confusion,
    hellinger_distances,
    kernel_similarity,
    label_free_performance,
    label_shift,
    mean_max_confidence,
    ood_calibration_error,
    paired_auc,
    top_label_losses,
)
from kdcal_core.diagnostics.targets import class_shares
from kdcal_core.errors import InputError
from kdcal_core.evaluation.second_model import SecondModel
from kdcal_core.partition import pack_bits

RNG = np.random.default_rng(0)
P, NEW = RNG.beta(1.0, 1.5, 400), RNG.beta(1.5, 1.0, 300)
Y = (RNG.random(400) < P).astype(int)
NAMES = np.array(["no", "yes"])
X = pd.DataFrame({"age": RNG.integers(18, 80, 400), "ward": RNG.choice(["a", "b"], 400)})


def pair(p):
    return np.column_stack([1.0 - p, p])


def frame(p):
    """Named columns in another order than that of the names."""
    return pd.DataFrame({"yes": p, "no": 1.0 - p})


def values(found):
    """What is compared of a result."""
    if hasattr(found, "shares"):
        return [one.value for one in found.shares]
    if hasattr(found, "predictions"):
        return [found.predictions.rate.rows.value, found.event.rate.rows.value]
    if hasattr(found, "joint"):
        return found.joint
    if isinstance(found, tuple):
        return [float(one) for one in found]
    return found if isinstance(found, np.ndarray) else float(found)


OF_ROWS = {
    "label_shift": lambda make, y: label_shift(make(NEW), make(P), y, n_draws=2),
    "label_free": lambda make, y: label_free_performance(make(P), y, make(NEW), n_draws=10),
    "confusion": lambda make, y: confusion(make(P), y),
    "certain": lambda make, y: certain_share(make(np.round(P))),
    "foreign": lambda make, y: ood_calibration_error(make(NEW), [0.5, 0.5]),
    "hellinger": lambda make, y: hellinger_distances(make(NEW), make(P[:300])),
    "mean_max_confidence": lambda make, y: mean_max_confidence(make(P)),
    "second_model": lambda make, y: SecondModel(5).fit(make(P), y, X).predict_proba(make(P), X),
    "partition": lambda make, y: (
        HeterogeneousCalibrator()
        .fit(make(P), y, X, X_partition=X, y_partition=y)
        .predict_proba(make(P), X)
    ),
}


@pytest.mark.parametrize("name", OF_ROWS)
@pytest.mark.parametrize("form", [frame, lambda p: p, lambda p: pd.Series(p, name="yes")])
def test_rows_in_every_form_give_the_same(name, form):
    wanted = values(OF_ROWS[name](pair, Y))
    np.testing.assert_allclose(values(OF_ROWS[name](form, NAMES[Y])), wanted, atol=1e-12)


OF_LABELS = {
    "confusion": lambda y: confusion(y[::-1], y),
    "losses": lambda y: top_label_losses({"a": P}, y, y[::-1], n_classes=2, rows="rows").nll,
    "shares": lambda y: class_shares(y, 2)[0],
    "kernel": lambda y: kernel_similarity(pack_bits([RNG_BITS]), y).within,
    "auc": lambda y: auc(P, y),
    "paired_auc": lambda y: paired_auc(P, np.roll(P, 1), y).difference,
    "intercept": lambda y: calibration_intercept(P, y),
    "slope": lambda y: calibration_slope(P, y),
}
RNG_BITS = RNG.integers(0, 2, (400, 6))


@pytest.mark.parametrize("name", OF_LABELS)
@pytest.mark.parametrize("kind", [list, pd.Series, lambda y: pd.Series(y, dtype="category")])
def test_names_of_classes_are_labels(name, kind):
    wanted = values(OF_LABELS[name](Y))
    y = kind(NAMES[Y])
    np.testing.assert_array_equal(values(OF_LABELS[name](y)), wanted)


def test_predicted_classes_are_told_from_probabilities():
    assert confusion([0.0, 1.0, 1.0], [0, 1, 0]).joint.tolist() == [[1.0, 1.0], [0.0, 1.0]]
    assert confusion([0.2, 0.7, 1.0], [0, 1, 0]).joint.tolist() == [[1.0, 1.0], [0.0, 1.0]]
    three = confusion(["a", "c", "b"], ["a", "b", "b"])
    assert three.joint.tolist() == [[1, 0, 0], [0, 1, 1], [0, 0, 0]]


def test_names_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="name 3 classes"):
        auc([0.1, 0.2, 0.3], ["a", "b", "c"])
    with pytest.raises(InputError, match="missing"):
        confusion(["a", "b"], ["a", None])
    with pytest.raises(InputError, match="named 'yes', and its place"):
        label_shift(frame(NEW).rename(columns={"no": "other"}), frame(P), NAMES[Y])
    with pytest.raises(InputError, match="labels of the calibration rows are numbers"):
        HeterogeneousCalibrator().fit(pair(P), Y, X, X_partition=X, y_partition=NAMES[Y])
