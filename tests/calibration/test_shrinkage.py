"""Few rows do no harm: what a class's own rows say is drawn to one safe temperature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from kdcal_core.calibration import CALIBRATORS, DirichletScaling, TopLabelKDE
from kdcal_core.calibration._temperature_fit import safe_temperature, tempered
from kdcal_core.calibration.shrinkage import AMOUNTS, pooled
from kdcal_core.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore::kdcal_core.errors.InputWarning")

SHRUNK = [
    key
    for key, entry in CALIBRATORS.items()
    if not entry.needs and "shrinkage" in entry.factory().get_params()
]
each = pytest.mark.parametrize("key", SHRUNK)
# methods whose own rule is harmful with few rows, as measured
HARMFUL = ("kde_mon2", "histogram", "cwoc", "tswa", "platt", "isotonic", "venn_abers")


def drawn(n, n_classes, lift, sharper=1.0, seed=0):
    """Rows of a model that is sharper than the truth, with few errors where the lift is high."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, n_classes))
    logits[np.arange(n), rng.integers(0, n_classes, n)] += lift
    y = (rng.random((n, 1)) > softmax(logits, axis=1).cumsum(axis=1)).sum(axis=1)
    return softmax(sharper * logits, axis=1), np.minimum(y, n_classes - 1)


def top_label_loss(confidence, proba, y):
    happened = np.where(proba.argmax(axis=1) == y, confidence, 1.0 - confidence)
    return float(-np.log(np.maximum(happened, 1e-15)).mean())


def change(key, shrinkage, n, n_classes, lift, sharper=1.0, seeds=3):
    """Mean top-label log loss against the model as it is, on 3,000 rows not seen."""
    found = []
    for seed in range(seeds):
        proba, y = drawn(n + 3000, n_classes, lift, sharper, seed)
        ours = CALIBRATORS[key].factory().set_params(shrinkage=shrinkage)
        ours.fit(proba[:n], y[:n])
        rest = proba[n:], y[n:]
        after = top_label_loss(ours.predict_confidence(rest[0]), *rest)
        found.append(after - top_label_loss(rest[0].max(axis=1), *rest))
    return float(np.mean(found))


@pytest.mark.parametrize(
    ("key", "n", "n_classes", "lift"),
    [
        *((key, 100, 15, 4.5) for key in (*HARMFUL, "vector", "dirichlet")),
        *((key, 300, 10, 7.0) for key in ("kde_mon2", "platt")),
    ],
)
def test_sparse_classes_and_few_errors_do_no_harm(key, n, n_classes, lift):
    alone = change(key, None, n, n_classes, lift)
    safe = change(key, "auto", n, n_classes, lift)
    assert safe < 0.003
    assert alone > 0.01
    assert safe < alone


@pytest.mark.parametrize("key", ["kde_mon2", "histogram", "tswa", "platt", "venn_abers"])
def test_what_is_gained_with_many_rows_stays(key):
    """Each predicted class has a temperature of its own, which none for all can repair."""
    proba, y = drawn(9000, 4, 2.0)
    faults = np.array([3.0, 0.4, 1.0, 0.6])[proba.argmax(axis=1)]
    stated = softmax(np.log(proba) * faults[:, None], axis=1)
    fit, rest = (stated[:5000], y[:5000]), (stated[5000:], y[5000:])
    ours = CALIBRATORS[key].factory().fit(*fit)
    shared = tempered(rest[0], ours.anchor_temperature_).max(axis=1)
    after = top_label_loss(ours.predict_confidence(rest[0]), *rest)
    alone = CALIBRATORS[key].factory().set_params(shrinkage=None).fit(*fit)
    assert np.isfinite(ours.shrinkage_)
    assert after < top_label_loss(shared, *rest) - 0.01
    # methods that answer with a vector choose by the loss of the whole of it
    assert after < top_label_loss(alone.predict_confidence(rest[0]), *rest) + 0.01


@each
def test_nothing_is_certain_that_the_shared_temperature_is_not(key):
    proba, y = drawn(300, 10, 4.0)
    ours = CALIBRATORS[key].factory().set_params(shrinkage=1.0).fit(proba, y)
    new, _ = drawn(2000, 10, 4.0, seed=5)
    shared = tempered(new, ours.anchor_temperature_).max(axis=1)
    said = ours.predict_confidence(new)
    assert (1 - said).min() > (1 - shared).min() / 400
    assert said.min() > 1e-3


@each
def test_infinite_shrinkage_is_the_shared_temperature_itself(key):
    proba, y = drawn(400, 5, 2.0, sharper=2.0)
    ours = CALIBRATORS[key].factory().set_params(shrinkage=np.inf).fit(proba, y)
    new, _ = drawn(300, 5, 2.0, sharper=2.0, seed=3)
    want = tempered(new, ours.anchor_temperature_)
    assert ours.anchor_temperature_ != 1.0
    np.testing.assert_allclose(ours.predict_proba(new), want, rtol=1e-9)
    np.testing.assert_allclose(ours.predict_confidence(new), want.max(axis=1), rtol=1e-9)


@pytest.mark.parametrize("shrinkage", [20.0, np.inf])
def test_the_curve_of_two_classes_is_what_the_calibrator_answers(shrinkage):
    proba, y = drawn(150, 2, 2.5, sharper=1.5)
    ours = TopLabelKDE(0.06, shrinkage=shrinkage).fit(proba, y)
    curve = ours.curve(1)
    at = curve.score > 0.5
    said = ours.predict_confidence(np.column_stack([1 - curve.score, curve.score])[at])
    np.testing.assert_allclose(curve.safe[at], said, atol=1e-5)


@pytest.mark.parametrize(
    ("key", "scale"),
    [*((key, 1 / 300) for key in SHRUNK), ("kde_mon2", 2e5), ("platt", 2e5), ("tswa", 2e5)],
)
def test_only_ratios_of_weights_count(key, scale):
    """Weights that add up to one, or that count people, leave the rows as many as they are."""
    proba, y = drawn(300, 3, 2.0, sharper=2.0)
    new, _ = drawn(100, 3, 2.0, sharper=2.0, seed=1)
    plain = CALIBRATORS[key].factory().fit(proba, y)
    weighed = CALIBRATORS[key].factory().fit(proba, y, np.full(300, scale))
    np.testing.assert_allclose(
        weighed.predict_confidence(new), plain.predict_confidence(new), atol=1e-5
    )


def test_unequal_weights_count_as_fewer_rows():
    proba, y = drawn(600, 3, 2.0, sharper=2.0)
    weight = np.where(np.arange(600) % 2, 9.0, 1.0)
    ours = CALIBRATORS["confidence"].factory().set_params(shrinkage=50.0).fit(proba, y, weight)
    assert ours.rows_.sum() == pytest.approx(weight.sum() ** 2 / (weight**2).sum())


@each
def test_without_rows_worth_a_trial_the_shared_temperature_answers(key):
    proba, y = drawn(20, 4, 2.0)
    assert CALIBRATORS[key].factory().fit(proba, y).shrinkage_ == np.inf


def test_kernel_densities_are_the_beta_mean_of_the_rows_nearby():
    proba, y = drawn(800, 3, 2.0, sharper=1.5)
    ours = TopLabelKDE(0.05, shrinkage=7.0).fit(proba, y)
    new, _ = drawn(200, 3, 2.0, sharper=1.5, seed=2)
    shared = tempered(new, ours.anchor_temperature_)
    predicted, score = proba.argmax(axis=1), proba.max(axis=1)
    for row, (p, c) in enumerate(zip(new, shared, strict=True)):
        label = p.argmax()
        mine = predicted == label
        at = max(p[label], score[mine].min())  # the ratio is held constant below all scores
        near = np.exp(-0.5 * ((score[mine] - at) / 0.05) ** 2)
        ratio = near[y[mine] == label].sum() / near.sum()
        rows = np.exp(-0.5 * ((score[mine] - p[label]) / 0.05) ** 2).sum()
        want = (rows * ratio + 7.0 * c[label]) / (rows + 7.0)
        assert ours.predict_confidence(new[[row]])[0] == pytest.approx(want, abs=2e-6)
    full = ours.predict_proba(new)
    others = np.arange(3) != new.argmax(axis=1)[:, None]
    ratio = (full[others] / shared[others]).reshape(-1, 2)
    np.testing.assert_allclose(ratio[:, 0], ratio[:, 1], rtol=1e-9)


def test_rules_of_one_search_have_the_amounts_of_fits_of_their_own():
    proba, y = drawn(2000, 3, 1.5, sharper=2.5)
    searched = TopLabelKDE("mon2").fit(proba, y)
    for rule in ("mon", "mon4"):
        other, own = searched.with_rule(rule), TopLabelKDE(rule).fit(proba, y)
        assert other.shrinkage_ == own.shrinkage_
        np.testing.assert_array_equal(
            other.predict_confidence(proba), own.predict_confidence(proba)
        )
        again = other.with_rule("mon2")
        np.testing.assert_array_equal(
            again.predict_confidence(proba), searched.predict_confidence(proba)
        )


def test_a_class_with_right_rows_alone_is_sure_only_where_they_are():
    rng = np.random.default_rng(0)
    score = np.concatenate([rng.uniform(0.9, 0.99, 60), rng.uniform(0.5, 0.99, 200)])
    first = np.arange(260) < 60
    proba = np.where(first, score, 1 - score)[:, None] * [1.0, -1.0] + [0.0, 1.0]
    y = np.where(first, 0, (rng.random(260) < score).astype(int))
    ours = TopLabelKDE(shrinkage=10.0).fit(proba, y)
    inside, outside = ours.predict_confidence([[0.95, 0.05], [0.55, 0.45]])
    shared = tempered(np.array([[0.95, 0.05], [0.55, 0.45]]), ours.anchor_temperature_)[:, 0]
    assert inside > shared[0]
    assert inside < 1
    assert outside == pytest.approx(shared[1], abs=1e-6)


def test_the_safe_temperature_leaves_a_calibrated_model_alone_and_corrects_a_wrong_one():
    kept = [safe_temperature(*drawn(100, 4, 2.0, seed=s), np.ones(100)) for s in range(40)]
    assert np.mean(np.array(kept) == 1.0) > 0.6
    proba, y = drawn(5000, 4, 2.0, sharper=2.0)
    assert safe_temperature(proba, y, np.ones(5000)) == pytest.approx(2.0, abs=0.15)
    assert 1 < safe_temperature(proba[:100], y[:100], np.ones(100)) < 2.5
    for loss in ("brier", "full"):
        assert safe_temperature(proba, y, np.ones(5000), loss=loss) == pytest.approx(2.0, abs=0.15)


def test_never_an_error_seen_is_no_reason_to_sharpen_far():
    score = np.linspace(0.8, 0.99, 50)
    proba = np.column_stack([score, 1 - score])
    assert safe_temperature(proba, np.zeros(50, dtype=int), np.ones(50)) > 0.4


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("nan"), 3, None, "auto"])
def test_amounts_that_no_fit_leaves_are_refused(wrong):
    ours = CALIBRATORS["histogram"].factory().fit(*drawn(100, 3, 2.0))
    ours.check_state()
    ours.shrinkage_ = wrong
    with pytest.raises(InputError, match="contradicts itself"):
        ours.check_state()


@each
def test_a_refit_forgets_the_shrinkage_of_an_earlier_fit(key):
    proba, y = drawn(120, 3, 2.0)
    ours = CALIBRATORS[key].factory().fit(proba, y)
    ours.set_params(shrinkage=None).fit(proba, y)
    alone = CALIBRATORS[key].factory().set_params(shrinkage=None).fit(proba, y)
    ours.check_state()
    np.testing.assert_array_equal(ours.predict_proba(proba), alone.predict_proba(proba))


def test_amounts_rise_to_infinity():
    assert list(AMOUNTS) == sorted(AMOUNTS)
    assert AMOUNTS[-1] == np.inf
    assert pooled(np.ones(2), np.zeros(2), np.full(2, 0.3), 5.0).tolist() == [0.3, 0.3]


def test_dirichlet_of_many_classes_gains():
    proba, y = drawn(800, 40, 5.0, sharper=1.5)
    ours = DirichletScaling().fit(proba, y)
    new, truth = drawn(3000, 40, 5.0, sharper=1.5, seed=4)
    rows = np.arange(len(truth))
    before, after = new[rows, truth], ours.predict_proba(new)[rows, truth]
    assert -np.log(after).mean() < -np.log(before).mean()


@each
@pytest.mark.parametrize("value", [True, False, np.True_])
def test_a_yes_or_no_is_no_amount(key, value):
    ours = CALIBRATORS[key].factory().set_params(shrinkage=value)
    with pytest.raises(ValueError, match="shrinkage"):
        ours.fit(*drawn(60, 3, 2.0))


def test_no_number_of_a_calibrator_may_be_a_yes_or_no():
    with pytest.raises(ValueError, match="'strength' parameter of DirichletScaling"):
        DirichletScaling(True).fit(*drawn(60, 3, 2.0))


def test_a_trial_of_dirichlet_uses_the_strength_of_the_whole_fit():
    proba, y = drawn(200, 3, 2.0)
    ours = DirichletScaling().fit(proba, y)
    assert ours._trial(proba[:150], y[:150], np.ones(150)).strength_ == ours.strength_


def test_venn_abers_of_many_classes_and_few_rows_is_as_calibrated_as_the_model():
    """The mean of ten draws of 100 rows and 15 classes; .29 without shrinkage."""
    before, after = [], []
    for seed in range(10):
        proba, y = drawn(5100, 15, 4.5, 1.1, seed)
        new, right = proba[100:], proba[100:].argmax(axis=1) == y[100:]
        ours = CALIBRATORS["venn_abers"].factory().fit(proba[:100], y[:100])
        before.append(top_label_ece(new.max(axis=1), right))
        after.append(top_label_ece(ours.predict_confidence(new), right))
    assert np.mean(after) < np.mean(before)


def top_label_ece(confidence, right):
    order = np.argsort(confidence)
    gaps = [(confidence[part] - right[part]).sum() for part in np.array_split(order, 15)]
    return float(np.abs(gaps).sum() / len(order))
