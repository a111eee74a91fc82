"""The spacing of polytopes and the blend with the model, against brute force."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brute
from scipy.special import softmax
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from kdcal_core.calibration import KernelDensityForest, KernelDensityNetwork
from kdcal_core.calibration.graph.fit_graph import neighbour_spacing
from kdcal_core.calibration.graph.gamma_floor_blend import (
    Blend,
    fit_blend,
    log_loss_and_slope,
    opinions,
)
from kdcal_core.calibration.graph.gaussians import inside
from kdcal_core.errors import InputError, InputWarning
from kdcal_core.partition import LeafCodes, find_polytopes, geodesic_kernel

THIRDS = np.full(3, 1 / 3)


def _polytopes(rng, p=60, trees=12):
    codes = find_polytopes(LeafCodes(rng.integers(0, 5, (p, trees)).astype(np.int32))).codes
    return codes, rng.normal(size=(len(codes), 3))


def test_spacing_is_that_of_an_enumeration_where_every_polytope_is_asked_alone():
    codes, centres = _polytopes(np.random.default_rng(0), p=9)
    kernel = geodesic_kernel(codes)
    np.fill_diagonal(kernel, -1)
    distance = ((centres[:, None] - centres[None]) ** 2).sum(axis=2)
    np.fill_diagonal(distance, np.inf)
    tied = np.where(kernel == kernel.max(axis=1, keepdims=True), distance, np.inf)
    gap = (centres - centres[tied.argmin(axis=1)]) ** 2
    np.testing.assert_allclose(neighbour_spacing(codes, centres), gap.mean(axis=0))
    gap = (centres - centres[distance.argmin(axis=1)]) ** 2
    np.testing.assert_allclose(neighbour_spacing(None, centres), gap.mean(axis=0))


def test_spacing_follows_the_units_of_each_coordinate():
    codes, centres = _polytopes(np.random.default_rng(1))
    scaled = centres * [1.0, 1.0, 10.0]
    np.testing.assert_allclose(
        neighbour_spacing(None, scaled[:, 2:]), 100 * neighbour_spacing(None, centres[:, 2:])
    )
    assert neighbour_spacing(codes, centres, seed=3) == pytest.approx(
        neighbour_spacing(codes, centres, seed=3), rel=0
    )
    assert neighbour_spacing(codes, centres).min() > 0


def test_spacing_of_many_polytopes_estimates_the_mean_gap():
    centres = np.arange(3000.0)[:, None]
    assert neighbour_spacing(None, centres)[0] == pytest.approx(1.0, abs=0.3)


def test_a_single_polytope_has_no_spacing():
    assert neighbour_spacing(None, np.ones((1, 2))).tolist() == [0.0, 0.0]


def _opinions(rng, n=300, n_classes=3):
    y = rng.integers(0, n_classes, n)
    model = rng.dirichlet(np.ones(n_classes), n)
    local = rng.dirichlet(np.ones(n_classes), n)
    model[np.arange(n), y] += 0.6 * rng.random(n)
    local[np.arange(n), y] += 0.3 * rng.random(n)
    return (
        model / model.sum(axis=1, keepdims=True),
        local / local.sum(axis=1, keepdims=True),
        y,
    )


def _log_loss(blend, model, local, y):
    return -np.log(blend.mix(model, local, THIRDS)[np.arange(len(y)), y]).mean()


def _searched(model, local, y, before):
    """Weights of a grid search with the penalty: with a graph after a step before, or without."""

    def penalised(w):
        if before is None:
            blend, away = Blend(w[0], 0.0), w[0] + 1 / w[0] - 2
        else:
            blend = Blend(*w)
            away = (w[0] / before.model - 0.5) ** 2 + (w[1] - 0.5) ** 2
        return _log_loss(blend, model, local, y) + 3 / len(y) * away

    ranges = [(0.05, 6)] if before is None else [(0, 6)] * 2
    best = np.atleast_1d(brute(penalised, ranges, Ns=25))
    return Blend(float(best[0]), 0.0 if before is None else float(best[1]))


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("useful", [True, False])
def test_the_weights_are_those_of_a_grid_search(seed, useful):
    rng = np.random.default_rng(seed)
    model, local, y = _opinions(rng, n=200)
    if not useful:
        local = rng.dirichlet([1.0] * 3, 200)
    best = Blend(1.0, 0.0)
    for graph in (False, True):
        step = _searched(model, local, y, best if graph else None)
        each = [-np.log(one.mix(model, local, THIRDS)[np.arange(200), y]) for one in (best, step)]
        gain = each[0] - each[1]
        if gain.sum() > (max(1.0, 2 * gain.std() * np.sqrt(200)) if graph else 0.5):
            best = step
    fitted = fit_blend(model, local, y, THIRDS)
    assert (best.graph > 0) == useful
    assert [fitted.model, fitted.graph] == pytest.approx([best.model, best.graph], abs=0.02)


@pytest.mark.parametrize("right", [0.4, 4.0])
def test_a_temperature_far_from_one_is_found_from_a_few_hundred_rows(right):
    """A penalty on the weight itself made 2.6 of a weight of 4 (digits, 300 held-out rows)."""
    rng = np.random.default_rng(3)
    score = rng.normal(size=(300, 10))
    true = softmax(right * score, axis=1)
    y = (rng.random((300, 1)) > true.cumsum(axis=1)).sum(axis=1).clip(max=9)
    prior, nothing = np.full(10, 0.1), np.full((300, 10), 0.1)
    fitted = fit_blend(softmax(score, axis=1), nothing, y, prior)
    assert fitted.graph == 0
    assert fitted.model == pytest.approx(right, rel=0.15)


def test_a_temperature_is_taken_though_one_row_causes_its_whole_gain():
    """By the standard error alone an over-confident network stayed as it is (wdbc)."""
    n, wrong = 100, 1
    model = np.tile([1 - 1e-4, 1e-4], (n, 1))
    y = (np.arange(n) < wrong).astype(np.int64)
    prior, nothing = np.array([0.6, 0.4]), np.full((n, 2), 0.5)
    fitted = fit_blend(model, nothing, y, prior)
    each = [_row_losses(one, model, nothing, y, prior) for one in (Blend(1.0, 0.0), fitted)]
    gain = each[0] - each[1]
    assert fitted.model < 0.8
    assert 0.5 / n < gain.mean() < gain.std(ddof=1) / np.sqrt(n)


def _row_losses(blend, model, local, y, prior):
    return -np.log(blend.mix(model, local, prior)[np.arange(len(y)), y])


def test_on_its_own_rows_it_is_no_worse_than_either_opinion():
    rng = np.random.default_rng(5)
    model, local, y = _opinions(rng)
    fitted = _log_loss(fit_blend(model, local, y, THIRDS), model, local, y)
    for alone in (Blend(1, 0), Blend(0, 1)):
        assert fitted <= _log_loss(alone, model, local, y) + 1e-9


def test_an_opinion_that_knows_nothing_gets_no_weight():
    rng = np.random.default_rng(6)
    y = rng.integers(0, 2, 4000)
    said = np.where(rng.random(4000) < 0.2, 1 - y, y)
    useful = np.where(np.eye(2, dtype=bool)[said], 0.8, 0.2)
    noise = rng.dirichlet([1.0, 1.0], 4000)
    fitted = fit_blend(noise, useful, y, np.array([0.5, 0.5]))
    assert fitted.model < 0.1
    assert fitted.graph == pytest.approx(1.0, abs=0.1)


def test_the_blend_is_that_of_its_formula():
    rng = np.random.default_rng(4)
    model, local, _ = _opinions(rng, n=20)
    model[0], local[1] = [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]
    prior, a, b = np.array([0.2, 0.3, 0.5]), 0.7, 1.9
    mixed = Blend(a, b).mix(model, local, prior)
    for i in range(20):
        score = [
            (0.999 * model[i, k] + 0.001 * prior[k]) ** a * max(local[i, k], 1e-6) ** b
            for k in range(3)
        ]
        np.testing.assert_allclose(mixed[i], np.array(score) / sum(score), rtol=1e-12)


@given(st.floats(0, 10), st.floats(0, 10), st.integers(0, 10**6))
def test_the_slope_is_that_of_finite_differences(a, b, seed):
    model, local, y = _opinions(np.random.default_rng(seed), n=40)
    logs, step = opinions(model, local, THIRDS), 1e-5
    mass = np.random.default_rng(seed).exponential(size=40)
    rows = logs, y, mass / mass.mean()
    _, slope = log_loss_and_slope(np.array([a, b]), *rows)
    for at, move in enumerate(np.eye(2) * step):
        up, down = (log_loss_and_slope(np.array([a, b]) + s * move, *rows)[0] for s in (1, -1))
        assert slope[at] == pytest.approx((up - down) / (2 * step), abs=1e-6)


@given(
    st.floats(0, 20),
    st.floats(0, 20),
    st.lists(st.sampled_from([0.0, 1e-300, 0.25, 1.0]), min_size=3, max_size=3),
)
def test_any_opinions_blend_to_a_distribution(model, graph, raw):
    opinion = np.array([raw]) if sum(raw) else np.array([[1.0, 0.0, 0.0]])
    opinion = opinion / opinion.sum()
    prior = np.array([0.0, 0.5, 0.5])
    mixed = Blend(model, graph).mix(opinion, opinion[:, ::-1], prior)
    assert np.isfinite(mixed).all()
    assert mixed.sum() == pytest.approx(1.0)


def test_a_model_too_sure_by_itself_gets_one_temperature():
    rng = np.random.default_rng(9)
    truth = rng.dirichlet([1.0, 1.0], 4000)
    y = (rng.random(4000) < truth[:, 1]).astype(int)
    sure = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    fitted = fit_blend(sure, rng.dirichlet([1.0, 1.0], 4000), y, np.array([0.5, 0.5]))
    assert fitted.model == pytest.approx(0.5, abs=0.05)
    assert fitted.graph == 0.0
    # The best temperature of these rows gains 1.66 nats, which the graph's opinion only repeats.
    right = fit_blend(truth, sure, y, np.array([0.5, 0.5]))
    assert right.model == pytest.approx(1.0, abs=0.07)
    assert right.graph == 0.0


def test_certain_opinions_that_agree_keep_finite_weights():
    sure = np.eye(2)[[0, 1, 0]]
    prior = np.array([0.5, 0.5])
    fitted = fit_blend(sure, sure, np.array([0, 1, 0]), prior)
    assert np.isfinite(fitted.mix(sure, sure, prior)).all()
    assert fitted.mix(sure, sure, prior)[0, 0] > 0.999


def test_one_row_does_not_run_away_with_the_weights():
    model, local = np.array([[0.6, 0.4]]), np.array([[0.4, 0.6]])
    fitted = fit_blend(model, local, np.array([0]), np.array([0.5, 0.5]))
    assert 1.0 <= fitted.model < 1.5
    assert fitted.graph == 0.0


def _noisy_xor(n, seed):
    rng = np.random.default_rng(seed)
    corner = rng.integers(0, 2, (n, 2))
    return corner - 0.5 + 0.3 * rng.standard_normal((n, 2)), corner[:, 0] ^ corner[:, 1]


ROWS = *_noisy_xor(200, 1), *_noisy_xor(150, 2)


@pytest.fixture(scope="module")
def forest():
    return RandomForestClassifier(30, random_state=0).fit(*_noisy_xor(200, 1))


@pytest.fixture(scope="module")
def model(forest):
    return KernelDensityForest(forest).fit(*ROWS)


def test_the_posterior_is_the_blend_as_far_as_the_density_reaches(forest, model):
    X = np.concatenate([_noisy_xor(100, 3)[0], [[1.4, -1.2], [1e9, 0.0]]])
    graph, located = model.graph_, model.locate(X)
    np.testing.assert_array_equal(located.proba, forest.predict_proba(X))
    shares = model.class_masses_ / model.class_masses_.sum(axis=0)
    joint = shares[located.index] * model.prior_
    local = joint / joint.sum(axis=1, keepdims=True)
    blended = graph.blend.mix(forest.predict_proba(X), local, model.prior_)
    density = np.exp(graph.log_marginal(located))[:, None]
    floor = np.exp(graph.effective_log_floor)
    expected = (density * blended + floor * model.prior_) / (density + floor)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-9)
    np.testing.assert_array_equal(model.predict_proba(X)[-1], model.prior_)
    assert model.blend_ == graph.blend
    # What marks rows as unknown is the same without the blend.
    ratio = KernelDensityForest(forest, inside="ratio").fit(*ROWS)
    np.testing.assert_array_equal(model.is_unknown(X), ratio.is_unknown(X))
    assert ratio.log_floor_ == model.log_floor_
    assert ratio.gamma_ == model.gamma_


def test_weights_of_one_and_nothing_are_the_model_and_the_graph(forest, model):
    X = _noisy_xor(100, 4)[0]
    located = model.locate(X)
    graph = model.graph_.with_settings(log_floor=-np.inf)
    wrapped = replace(graph, blend=Blend(1.0, 0.0)).posterior(located)
    expected = 0.999 * forest.predict_proba(X) + 0.001 * model.prior_
    np.testing.assert_allclose(wrapped, expected, rtol=1e-12)
    alone = replace(graph, blend=Blend(0.0, 1.0)).posterior(located)
    np.testing.assert_allclose(alone, replace(graph, blend=None).posterior(located), atol=1e-5)


def test_only_another_gamma_moves_the_weights():
    rows = *_noisy_xor(200, 1), *_noisy_xor(400, 2)
    forest = RandomForestClassifier(30, max_depth=2, random_state=0).fit(*rows[:2])
    graph = KernelDensityForest(forest).fit(*rows).graph_
    assert graph.blend.graph > 0  # the votes of shallow trees are too unsure, their regions are not
    for settings in ({"variance_floor": 0.3}, {"log_floor": -5.0}, {"floor_quantile": 0.2}):
        assert graph.with_settings(**settings).blend == graph.blend
    gamma = float(graph.gammas[0])
    moved, again = graph.with_settings(gamma=gamma), KernelDensityForest(forest, gamma=gamma)
    assert moved.blend != graph.blend
    assert moved.blend == again.fit(*rows).blend_
    back = moved.with_settings(gamma=graph.gamma)
    assert back.blend == graph.blend
    half = replace(
        graph.holdout,
        x=graph.holdout.x[::2],
        index=graph.holdout.index[::2],
        tied=graph.holdout.tied[::2],
        proba=graph.holdout.proba[::2],
    )
    halved = replace(graph, holdout=half, holdout_y=graph.holdout_y[::2])
    assert halved.blended().blend != graph.blend


def test_rows_without_the_models_probabilities_are_refused_by_a_blend_alone(model):
    bare = replace(model.locate(ROWS[0]), proba=None)
    with pytest.raises(InputError, match="lack the model's probabilities"):
        model.graph_.posterior(bare)
    assert np.isfinite(model.graph_.log_marginal(bare)).all()
    assert np.isfinite(replace(model.graph_, blend=None).posterior(bare)).all()
    none_held = replace(model.graph_, holdout=None, holdout_y=None)
    with pytest.raises(InputError, match="needs held-out rows"):
        none_held.blended()


def test_probabilities_that_are_known_are_not_asked_for(model):
    X = _noisy_xor(20, 5)[0]
    given_proba = np.tile([0.25, 0.75], (20, 1))
    located = model.locate(X, proba=given_proba)
    np.testing.assert_array_equal(located.proba, given_proba)
    assert not np.allclose(model.graph_.posterior(located), model.predict_proba(X))


CONSTANTS = {"inside": "ratio", "variance_floor": 1e-6, "log_floor": -1e7}


def test_the_papers_forest_is_a_fit_with_their_constants(forest, model):
    X = np.concatenate([_noisy_xor(50, 6)[0], [[3.0, 3.0]]])
    fitted = KernelDensityForest(forest, **CONSTANTS).fit(*ROWS)
    papers = model.in_the_papers(*ROWS)
    np.testing.assert_array_equal(papers.predict_proba(X), fitted.predict_proba(X))
    # the exponent is chosen under the papers' floor, not under that of the blend's fit
    assert papers.gamma_ == papers.selection_.best_gamma
    printed = model.in_the_papers(*ROWS, log_floor=-1e-7)
    assert printed.log_floor_ == -1e-7
    assert printed.gamma_ == printed.selection_.best_gamma


def test_the_papers_network_has_the_output_layer_in_its_paths():
    net = MLPClassifier((16, 16), random_state=0, max_iter=300).fit(*ROWS[:2])
    model = KernelDensityNetwork(net, scale="standard").fit(*ROWS)
    papers = model.in_the_papers(*ROWS)
    assert (model.output_layer_, papers.output_layer_) == ("exclude", "probability")
    fitted = KernelDensityNetwork(net, output_layer="probability", **CONSTANTS).fit(*ROWS)
    X = np.concatenate([_noisy_xor(50, 6)[0], [[3.0, 3.0]]])
    np.testing.assert_array_equal(papers.predict_proba(X), fitted.predict_proba(X))


def test_a_loaded_graph_cannot_be_the_papers_without_rows(forest, model, tmp_path):
    model.save(tmp_path / "model.kd")
    loaded = KernelDensityForest.load(tmp_path / "model.kd", forest)
    with pytest.raises(InputError, match="does not keep the rows of the fit"):
        loaded.in_the_papers()
    assert loaded.in_the_papers(*ROWS).gamma_ == model.in_the_papers(*ROWS).gamma_


def test_a_network_keeps_its_accuracy_without_the_outputs_bits():
    net = MLPClassifier((32, 32), random_state=0, max_iter=600).fit(*ROWS[:2])
    model = KernelDensityNetwork(net).fit(*ROWS)
    assert model.output_layer_ == "exclude"
    X, y = _noisy_xor(1500, 7)
    assert model.score(X, y) > net.score(X, y) - 0.01
    ratio = KernelDensityNetwork(net, output_layer="exclude", inside="ratio").fit(*ROWS)

    def loss(proba):
        return -np.log(np.maximum(proba[np.arange(1500), y], 1e-12)).mean()

    assert loss(model.predict_proba(X)) < loss(ratio.predict_proba(X)) + 0.01
    assert loss(model.predict_proba(X)) < loss(net.predict_proba(X))


def test_classes_in_another_order_blend_alike(forest, model):
    class Turned:
        kind, named_classes, feature_names, n_features = "Forest", True, None, 2
        classes = ("1", "0")

        def predict_proba(self, X):
            return forest.predict_proba(X)[:, ::-1]

        def codes(self, X):
            return model._placement.model.codes(X)

    other = KernelDensityForest(Turned()).fit(*ROWS)
    assert other.blend_.model == pytest.approx(model.blend_.model, abs=1e-6)
    assert other.blend_.graph == pytest.approx(model.blend_.graph, abs=1e-6)


def test_another_prior_enters_by_bayes_rule_inside_and_rules_out_what_it_rules_out(forest, model):
    X, _ = _noisy_xor(100, 7)
    shares = np.bincount(ROWS[1]) / len(ROWS[1])
    same = model.predict_proba(X)
    plain = KernelDensityForest(forest, prior=shares).fit(*ROWS)
    np.testing.assert_allclose(plain.predict_proba(X), same, rtol=1e-9)
    prior = np.array([0.95, 0.05])
    text = KernelDensityForest(forest, gamma=2.0, prior=prior, log_floor=-np.inf).fit(*ROWS)
    untold = KernelDensityForest(forest, gamma=2.0, log_floor=-np.inf).fit(*ROWS)
    odds = untold.predict_proba(X) * prior / shares
    expected = odds / odds.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(text.predict_proba(X), expected, rtol=1e-6, atol=1e-12)
    never = KernelDensityForest(forest, prior=[1.0, 0.0]).fit(*ROWS)
    assert never.predict_proba(X)[:, 1].max() == 0.0


def test_a_rare_category_does_not_hide_rows_far_away_in_the_numbers():
    rng = np.random.default_rng(11)
    n = 900
    kind = np.where(rng.random(n) < 0.02, rng.choice(["u", "v", "w"], n), "usual")
    frame = pd.DataFrame({"x1": rng.normal(size=n), "x2": rng.normal(size=n), "kind": kind})
    y = (frame["x1"] + 0.5 * rng.normal(size=n) > 0).to_numpy().astype(int)
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["kind"]), remainder="passthrough"
    )
    forest = make_pipeline(encode, RandomForestClassifier(40, random_state=0))
    forest.fit(frame[:500], y[:500])
    model = KernelDensityForest(forest, scale="standard").fit(
        frame[:500], y[:500], frame[500:], y[500:]
    )
    far = frame[500:].assign(x1=6.0, x2=-6.0)
    assert model.is_unknown(far).mean() > 0.99
    assert model.is_unknown(frame[500:]).mean() <= 0.02
    coordinates = model.locate(frame).x
    usual = coordinates[kind == "usual"]
    # one category costs as much as another, however rare
    gaps = [np.linalg.norm(coordinates[kind == k][0, 2:] - usual[0, 2:]) for k in ("u", "v", "w")]
    assert gaps == pytest.approx([gaps[0]] * 3)


def _three_clouds(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return rng.normal(size=(n, 3)) + 1.2 * y[:, None], y


@pytest.mark.parametrize("missing", [0, 2])
def test_a_class_that_few_rows_lack_is_not_ruled_out(missing):
    """Forty rows without one class: its rows were given probabilities down to 1e-49."""
    forest = RandomForestClassifier(50, min_samples_leaf=3, random_state=0)
    forest.fit(*_three_clouds(200, 0))
    X, y = _three_clouds(60, 1)
    with pytest.warns(InputWarning, match=f"no row of class '{missing}'"):
        model = KernelDensityForest(forest).fit(X[y != missing], y[y != missing])
    X, y = _three_clouds(2000, 2)
    own, said = forest.predict_proba(X), model.predict_proba(X)
    np.testing.assert_allclose(said.sum(axis=1), 1.0)
    n = model.graph_.n
    assert model.prior_[missing] == pytest.approx(0.5 / (n + 0.5))
    np.testing.assert_allclose(model.predict_proba([[1e6] * 3])[0], model.prior_)
    share = inside(model.graph_.log_marginal(model.locate(X)), model.graph_.log_fallback)
    expected = share * own[:, missing] + (1 - share) * model.prior_[missing]
    np.testing.assert_allclose(said[:, missing], expected)
    loss = [-np.log(p[np.arange(len(y)), y].clip(1e-12)).mean() for p in (own, said)]
    assert loss[1] < loss[0] + 1.0  # was 2 to 4 above it


def test_a_given_prior_rules_a_class_without_rows_in_or_out(forest):
    X, y = ROWS[:2]
    one = X[y == 1], y[y == 1]
    with pytest.warns(InputWarning, match="no row of class"):
        in_, out = (
            KernelDensityForest(forest, prior=prior).fit(*one) for prior in ([0.3, 0.7], [0.0, 1.0])
        )
    share = inside(in_.graph_.log_marginal(in_.locate(X)), in_.graph_.log_fallback)
    own = forest.predict_proba(X)[:, 0]
    np.testing.assert_allclose(in_.predict_proba(X)[:, 0], share * own + (1 - share) * 0.3)
    np.testing.assert_array_equal(out.predict_proba(X)[:, 0], 0.0)


def test_held_out_rows_of_a_class_without_prior_leave_the_weights_alone():
    model, local, y = _opinions(np.random.default_rng(8), n=60)
    prior = np.array([0.4, 0.0, 0.6])
    among = y != 1
    fitted = fit_blend(model, local, y, prior)
    assert fitted == fit_blend(model[among], local[among], y[among], prior)
    mixed = fitted.mix(model, local, prior)
    np.testing.assert_allclose(mixed[:, 1], model[:, 1])
    np.testing.assert_allclose(mixed.sum(axis=1), 1.0)
