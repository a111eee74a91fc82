from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax

from kdcal_core.calibration import TemperatureScaling, _temperature_fit
from kdcal_core.calibration._temperature_fit import TemperatureRows, _objective, best_temperature

# as printed: without what is added where rows are few
Paper = partial(TemperatureScaling, shrinkage=None)


def rows(n=600, n_classes=4, seed=0, sharp=2.0, bias=()):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, n_classes)) * 1.5
    y = np.array([rng.choice(n_classes, p=softmax(row)) for row in logits])
    logits[:, : len(bias)] += bias
    return softmax(logits * sharp, axis=1), y


def scaled(proba, temperature, awards):
    """Eq. 18, row by row."""
    out = np.empty_like(proba)
    for i, p in enumerate(proba):
        k = p.argmax()
        z = np.log(np.maximum(p, 1e-12))
        z[k] += awards[k]
        out[i] = softmax(z / temperature[k])
    return out


def brute_loss(proba, y, temperature, awards, loss, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    k = proba.argmax(axis=1)
    rows = np.arange(len(y))
    z = np.log(np.maximum(proba, 1e-12))
    z[rows, k] += np.asarray(awards)[k]
    log_full = log_softmax(z / np.asarray(temperature)[k][:, None], axis=1)
    full = np.exp(log_full)
    s = full[rows, k]
    others = log_full.copy()
    others[rows, k] = -np.inf
    right = k == y
    if loss == "full":
        each = -log_full[rows, y]
    elif loss == "brier":
        each = np.where(right, (1 - s) ** 2, s**2)
    else:
        each = -np.where(right, log_full[rows, k], logsumexp(others, axis=1))
    return float(weight @ each / weight.sum())


SPREAD = {"shared": lambda p, n: np.full(n, p[0]), "class": lambda p, n: p[:n]}


@pytest.mark.parametrize("loss", ["top-label", "brier", "full"])
@pytest.mark.parametrize("scope", ["shared", "class"])
@pytest.mark.parametrize("awards", [False, True])
def test_the_fit_minimises_its_loss(scope, awards, loss):
    """Against a search that knows neither the gradient nor the code's form of the loss."""
    n_classes = 3
    proba, y = rows(150, n_classes, sharp=2.0, bias=(0.7, 0.0))
    weight = np.random.default_rng(3).uniform(0.5, 2, 150)
    fitted = Paper(scope, awards, loss).fit(proba, y, weight)
    n_temperatures = 1 if scope == "shared" else n_classes

    def at(p):
        award = p[n_temperatures:] if awards else np.zeros(n_classes)
        temperature = SPREAD[scope](np.exp(p[:n_temperatures]), n_classes)
        return brute_loss(proba, y, temperature, award, loss, weight)

    best = minimize(
        at, np.zeros(n_temperatures + n_classes * awards), method="Powell", options={"xtol": 1e-7}
    )
    got = brute_loss(proba, y, fitted.temperatures_, fitted.awards_, loss, weight)
    assert got <= best.fun + 1e-6
    assert got == pytest.approx(best.fun, abs=2e-3)  # Powell stops early


def test_one_temperature_is_found_again():
    proba, y = rows(30_000, sharp=2.0)
    fitted = Paper(loss="full").fit(proba, y)
    assert fitted.temperatures_[0] == pytest.approx(2.0, rel=0.05)
    assert Paper().fit(proba, y).temperatures_[0] == pytest.approx(2.0, rel=0.05)


def test_all_rows_count_where_a_subsample_starts_the_search():
    proba, y = rows(50_000, 3, seed=5)
    weight = np.ones(len(y))
    weight[::2] = 40.0
    fitted = Paper("shared", True).fit(proba, y, weight)
    problem = TemperatureRows.of(proba, y, proba.argmax(axis=1), weight)
    end = np.concatenate(
        [[np.log(fitted.temperatures_[0])], fitted.awards_ / fitted.temperatures_[0]]
    )
    _, gradient = _objective(end, problem, 3, "top-label")
    assert np.abs(gradient).max() < 1e-5


@pytest.mark.parametrize("loss", ["top-label", "brier", "full"])
@given(seed=st.integers(0, 1000), log_t=st.floats(-2.9, 2.9))
@settings(max_examples=15, deadline=None)
def test_gradients(loss, seed, log_t):
    proba, y = rows(40, 3, seed)
    problem = TemperatureRows.of(proba, y, proba.argmax(axis=1), np.ones(40))
    p = np.concatenate([[log_t], np.random.default_rng(seed).normal(size=3)])
    value, gradient = _objective(p, problem, 3, loss)
    want = brute_loss(proba, y, np.full(3, np.exp(log_t)), p[1:] * np.exp(log_t), loss)
    assert value == pytest.approx(want, rel=1e-6, abs=1e-9)
    for j in range(4):
        h = np.zeros(4)
        h[j] = 1e-5
        up, down = (_objective(p + s * h, problem, 3, loss)[0] for s in (1, -1))
        assert gradient[j] == pytest.approx((up - down) / 2e-5, rel=1e-3, abs=1e-6)


def test_vectors_are_equation_18_and_keep_the_predicted_class():
    proba, y = rows(200, bias=(1.5,))
    fitted = Paper("class", True).fit(proba, y)
    want = scaled(proba, fitted.temperatures_, fitted.awards_)
    np.testing.assert_allclose(fitted.predict_proba(proba), want, atol=1e-12)
    predicted = proba.argmax(axis=1)
    np.testing.assert_allclose(
        fitted.predict_confidence(proba), want[np.arange(200), predicted], atol=1e-12
    )
    # a negative award moves some argmax away, and the confidence stays with the prediction
    assert fitted.awards_[0] < 0
    assert (want.argmax(axis=1) != predicted).any()


def test_equation_17():
    proba, y = rows(300)
    fitted = Paper().fit(proba, y)
    power = proba ** (1 / fitted.temperatures_[0])
    np.testing.assert_allclose(
        fitted.predict_proba(proba), power / power.sum(axis=1, keepdims=True), atol=1e-9
    )
    assert (fitted.awards_ == 0).all()
    assert len(set(fitted.temperatures_)) == 1


def test_classes_never_predicted_stay_as_they_are():
    proba, y = rows(300, 3)
    proba = np.column_stack([proba, np.zeros(300)])
    fitted = Paper("class", True).fit(proba, y)
    assert fitted.temperatures_[3] == 1
    assert fitted.awards_[3] == 0


@pytest.mark.parametrize("scope", ["shared", "class"])
@pytest.mark.parametrize("awards", [False, True])
@pytest.mark.parametrize("always", [True, False])
def test_saturated_scores_and_perfect_or_hopeless_rows(scope, awards, always):
    proba = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0], [1.0, 0, 0]])
    y = proba.argmax(axis=1)
    fitted = Paper(scope, awards).fit(proba, y if always else (y + 1) % 3)
    full = fitted.predict_proba(proba)
    assert np.isfinite(full).all()
    np.testing.assert_allclose(full.sum(axis=1), 1)
    assert (fitted.temperatures_ >= 0.05 - 1e-9).all()
    assert (fitted.temperatures_ <= 20 + 1e-9).all()
    if not always:
        assert fitted.predict_confidence(proba).max() < 0.7


def test_it_never_does_worse_than_nothing():
    for seed in range(10):
        proba, y = rows(5, 3, seed)
        before = -log_softmax(np.log(proba), axis=1)[np.arange(5), y].mean()
        after = Paper(loss="full").fit(proba, y).predict_proba(proba)
        assert -np.log(after[np.arange(5), y]).mean() <= before + 1e-9


def test_brier_fit_is_the_best_of_several_descents():
    """Eq. 15 can have several minima; the one under the best start is not the deepest here."""
    rng = np.random.default_rng(126)
    proba, y = rng.dirichlet([0.5] * 3, 20), rng.integers(0, 3, 20)
    rows = TemperatureRows.of(proba, y, proba.argmax(axis=1), np.ones(20))
    fitted = Paper(awards=True, loss="brier").fit(proba, y)
    temperature = fitted.temperatures_[0]
    at = np.concatenate([[np.log(temperature)], fitted.awards_ / temperature])
    found = _objective(at, rows, 3, "brier")[0]
    for start in (0.3, 0.6, 1.0, 1.6, 3.0):
        other = minimize(
            _objective,
            [np.log(start), 0.0, 0.0, 0.0],
            args=(rows, 3, "brier"),
            jac=True,
            method="L-BFGS-B",
            bounds=[(np.log(0.05), np.log(20.0)), (-30, 30), (-30, 30), (-30, 30)],
        )
        assert found <= other.fun + 1e-6


@pytest.mark.parametrize("loss", ["top-label", "brier", "full"])
@pytest.mark.parametrize("scope", ["shared", "class"])
def test_a_slope_of_exactly_zero_is_a_valley(scope, loss):
    p = np.tile([2 / 3, 1 - 2 / 3], (3, 1))
    fitted = TemperatureScaling(scope=scope, loss=loss, shrinkage=None).fit(p, [0, 0, 1])
    assert fitted.temperatures_ == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("loss", ["top-label", "brier", "full"])
def test_rows_that_say_nothing_leave_the_model_as_it_is(loss):
    fitted = TemperatureScaling(loss=loss, shrinkage=None).fit(np.full((6, 2), 0.5), [0, 1] * 3)
    assert (fitted.temperatures_ == 1.0).all()


def test_of_all_brier_valleys_the_lowest_is_found():
    grid = np.linspace(np.log(0.05), np.log(20.0), 500)
    for seed in range(60):
        rng = np.random.default_rng(seed)
        p = softmax(rng.normal(size=(20, 2)) * 30, axis=1)
        y = np.where(rng.random(20) < 0.7, p.argmax(axis=1), rng.integers(2, size=20))
        rows = TemperatureRows.of(p, y, p.argmax(axis=1), np.ones(20))
        found, _ = best_temperature(rows, 1, False, "brier")
        losses = [_objective(np.array([t]), rows, 1, "brier")[0] for t in grid]
        assert _objective(np.log([found]), rows, 1, "brier")[0] <= min(losses) + 1e-9


def test_a_safe_temperature_is_sought_once_for_the_same_rows(monkeypatch):
    """All methods of a comparison shrink towards it; a changed array is other rows."""
    calls, seek = [], _temperature_fit._safe_temperature
    monkeypatch.setattr(_temperature_fit, "_KNOWN", {})
    monkeypatch.setattr(
        _temperature_fit, "_safe_temperature", lambda *rows: (calls.append(1), seek(*rows))[1]
    )
    rng = np.random.default_rng(0)
    proba = softmax(4 * rng.normal(size=(80, 3)), axis=1)
    y, weight = rng.integers(0, 3, 80), np.ones(80)
    first = _temperature_fit.safe_temperature(proba, y, weight)
    assert first == _temperature_fit.safe_temperature(proba.copy(), y, weight)
    assert len(calls) == 1
    y[:40] = proba[:40].argmax(axis=1)
    assert _temperature_fit.safe_temperature(proba, y, weight) < first
    _temperature_fit.safe_temperature(proba, y, weight, loss="brier")
    assert len(calls) == 3
    for at in range(2 * _temperature_fit._MOST_KNOWN):
        _temperature_fit.safe_temperature(proba[:20], y[:20], weight[:20] + at)
    assert len(_temperature_fit._KNOWN) == _temperature_fit._MOST_KNOWN
