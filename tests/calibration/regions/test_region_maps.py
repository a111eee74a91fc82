"""Maps of regions: against independent libraries, against brute force, and at the edges."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import betaln, expit, logit, softmax
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from kdcal_core.calibration import TemperatureScaling, TopLabelKDE
from kdcal_core.calibration.regions import MAPS, Hierarchy, Scores, fit_maps
from kdcal_core.calibration.regions.nonparametric_maps import HistogramMaps, IsotonicMaps
from kdcal_core.calibration.regions.parametric_maps import LinearMaps, TemperatureMaps
from kdcal_core.calibration.regions.scores_and_hierarchy import EXACT
from kdcal_core.errors import InputError

ALL = list(MAPS)
QUICK = [kind for kind in ALL if kind != "kde"]


def regions(n, n_regions=3, seed=0, slope=0.3, offset=0.6):
    """Scores whose log odds are another line in every region."""
    rng = np.random.default_rng(seed)
    leaf = rng.integers(0, n_regions, n)
    score = rng.normal(0.3, 1.5, n)
    a = 0.8 + slope * rng.normal(size=n_regions)
    b = offset * rng.normal(size=n_regions)
    y = (rng.random(n) < expit(a[leaf] * score + b[leaf])).astype(int)
    p = expit(score)
    return Scores(np.c_[1 - p, p], y, np.ones(n)), leaf


def many_classes(n, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(n_classes), n)
    y = np.array([rng.choice(n_classes, p=row) for row in proba])
    return Scores(proba, y, np.ones(n)), rng.integers(0, 3, n)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_slope_one_and_offset_zero_give_back_the_model(n_classes):
    proba = np.random.default_rng(0).dirichlet(np.ones(n_classes) / 3, 500)
    leaf = np.arange(500) % 3
    n_maps = 1 if n_classes == 2 else n_classes
    for parameters in ([1.0, 0.0], [1.0, 1.0, 0.0]):
        maps = LinearMaps(np.tile(parameters, (n_maps, 3, 1)))
        np.testing.assert_allclose(maps.predict(proba, leaf), proba, atol=1e-11)
    softened = TemperatureMaps(np.ones(3)).predict(proba, leaf)
    np.testing.assert_allclose(softened, proba, atol=1e-11)


def test_slope_zero_gives_the_rates_of_the_leaves():
    rates = np.array([0.1, 0.5, 0.9])
    maps = LinearMaps(np.stack([np.zeros(3), logit(rates)], axis=1)[None])
    proba = np.random.default_rng(0).dirichlet([1, 1], 30)
    leaf = np.arange(30) % 3
    np.testing.assert_allclose(maps.predict(proba, leaf)[:, 1], rates[leaf])


@pytest.mark.parametrize("kind", ["platt", "beta"])
def test_a_score_that_says_nothing_gives_the_rates_of_the_leaves(kind):
    """With equal scores only the offset can act: an unpooled fit is the tree itself."""
    rng = np.random.default_rng(1)
    leaf = rng.integers(0, 3, 900)
    y = (rng.random(900) < np.array([0.2, 0.5, 0.7])[leaf]).astype(int)
    scores = Scores(np.tile([0.4, 0.6], (900, 1)), y, np.ones(900))
    fit = fit_maps(kind, scores, leaf, Hierarchy.flat(3), pooling=False)
    rates = np.array([y[leaf == region].mean() for region in range(3)])
    got = fit.maps.predict(scores.proba[:3], np.arange(3))[:, 1]
    np.testing.assert_allclose(got, rates, atol=1e-6)


@pytest.mark.parametrize("pooling", [True, False])
def test_one_region_is_scikit_learns_unpenalised_logistic_regression(pooling):
    scores, _ = regions(2000)
    fit = fit_maps("platt", scores, np.zeros(2000, dtype=int), Hierarchy.flat(1), pooling=pooling)
    want = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(
        logit(scores.proba[:, 1:]), scores.y
    )
    np.testing.assert_allclose(fit.parameters["slope"][0, 0], want.coef_[0, 0], rtol=1e-5)
    np.testing.assert_allclose(fit.parameters["offset"][0, 0], want.intercept_[0], atol=1e-5)
    np.testing.assert_allclose(
        fit.maps.predict(scores.proba, np.zeros(2000, dtype=int)),
        want.predict_proba(logit(scores.proba[:, 1:])),
        atol=1e-6,
    )


def test_unpooled_regions_are_logistic_regressions_of_their_own_rows():
    scores, leaf = regions(3000)
    weight = np.random.default_rng(2).uniform(0.2, 3, 3000)
    weighted = Scores(scores.proba, scores.y, weight)
    fit = fit_maps("platt", weighted, leaf, Hierarchy.flat(3), pooling=False)
    for region in range(3):
        own = leaf == region
        want = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(
            logit(scores.proba[own, 1:]), scores.y[own], weight[own]
        )
        np.testing.assert_allclose(fit.parameters["slope"][0, region], want.coef_[0, 0], rtol=1e-4)


def test_unpooled_beta_maps_minimise_the_log_loss():
    scores, leaf = regions(1500)
    fit = fit_maps("beta", scores, leaf, Hierarchy.flat(3), pooling=False)
    p = scores.proba[:, 1]

    def loss(parameters, own):
        a, b, c = parameters
        odds = a * np.log(p[own]) - b * np.log1p(-p[own]) + c
        return np.logaddexp(0, odds).sum() - odds[scores.y[own] == 1].sum()

    for region in range(3):
        own = leaf == region
        want = minimize(loss, [1, 1, 0], args=(own,), method="BFGS", options={"gtol": 1e-8})
        got = [fit.parameters[name][0, region] for name in "abc"]
        np.testing.assert_allclose(got, want.x, atol=1e-3)
        assert loss(got, own) <= want.fun + 1e-7


@pytest.mark.parametrize("n_classes", [2, 5])
def test_one_region_is_temperature_scaling(n_classes):
    scores, _ = many_classes(1200, n_classes)
    want = TemperatureScaling(loss="full", shrinkage=None).fit(scores.proba, scores.y)
    fit = fit_maps("temperature", scores, np.zeros(1200, dtype=int), Hierarchy.flat(1))
    assert fit.parameters["temperature"][0, 0] == pytest.approx(want.temperatures_[0], rel=1e-4)
    np.testing.assert_allclose(
        fit.maps.predict(scores.proba, np.zeros(1200, dtype=int)),
        want.predict_proba(scores.proba),
        atol=1e-4,
    )


def test_unpooled_isotonic_is_scikit_learns_in_every_region():
    scores, leaf = regions(2000)
    fit = fit_maps("isotonic", scores, leaf, Hierarchy.flat(3), pooling=False)
    fresh, at = regions(1000, seed=5)
    got = fit.maps.predict(fresh.proba, at)[:, 1]
    for region in range(3):
        own, new = leaf == region, at == region
        want = IsotonicRegression(out_of_bounds="clip").fit(scores.proba[own, 1], scores.y[own])
        np.testing.assert_allclose(got[new], want.predict(fresh.proba[new, 1]), atol=1e-9)


def test_unpooled_histogram_has_the_rates_of_its_bins():
    scores, leaf = regions(2000)
    fit = fit_maps("histogram", scores, leaf, Hierarchy.flat(3), pooling=False)
    edges = np.quantile(scores.proba[:, 1], np.arange(1, 10) / 10, method="inverted_cdf")
    bins = np.searchsorted(edges, scores.proba[:, 1], side="left")
    got = fit.maps.predict(scores.proba, leaf)[:, 1]
    for region in range(3):
        for one in range(10):
            own = (leaf == region) & (bins == one)
            np.testing.assert_allclose(got[own], scores.y[own].mean(), atol=1e-12)


def test_scaling_binning_says_the_mean_of_the_regions_sigmoid():
    scores, leaf = regions(2000)
    platt = fit_maps("platt", scores, leaf, Hierarchy.flat(3))
    fit = fit_maps("scaling_binning", scores, leaf, Hierarchy.flat(3))
    smooth, got = (one.maps.predict(scores.proba, leaf)[:, 1] for one in (platt, fit))
    edges = np.quantile(scores.proba[:, 1], np.arange(1, 10) / 10, method="inverted_cdf")
    bins = np.searchsorted(edges, scores.proba[:, 1], side="left")
    for region in range(3):
        for one in range(10):
            own = (leaf == region) & (bins == one)
            np.testing.assert_allclose(got[own], smooth[own].mean(), atol=1e-12)


def test_bayesian_binning_weighs_few_bins_by_how_well_they_explain():
    """Against the sum over all binnings, region by region (Naeini et al., Eqs. 1 and 2)."""
    scores, leaf = regions(400)
    got = fit_maps("bbq", scores, leaf, Hierarchy.flat(3), pooling=False)
    said = got.maps.predict(scores.proba, leaf)[:, 1]
    odds = logit(scores.proba[:, 1])
    edges = np.quantile(odds, np.arange(1, 10) / 10, method="inverted_cdf")
    fine = np.searchsorted(edges, odds, side="left")
    for region in range(3):
        merits, rates = [], []
        for count in (1, 2, 5, 10):
            merit, rate = 0.0, np.empty(400)
            for one in range(count):
                here = fine * count // 10 == one
                prior = 2 / count * expit(odds[here].mean())
                hits = scores.y[here & (leaf == region)]
                k, n = hits.sum(), len(hits)
                merit += betaln(k + prior, n - k + 2 / count - prior)
                merit -= betaln(prior, 2 / count - prior)
                rate[here] = (k + prior) / (n + 2 / count)
            merits.append(merit)
            rates.append(rate)
        want = softmax(merits) @ np.array(rates)
        np.testing.assert_allclose(said[leaf == region], want[leaf == region], atol=1e-9)


def test_bayesian_binning_needs_one_bin_where_the_score_says_nothing():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 2000)
    scores = Scores(np.c_[1 - p, p], (rng.random(2000) < 0.3).astype(int), np.ones(2000))
    nowhere = np.zeros(2000, dtype=int)
    bbq, plain = (
        fit_maps(kind, scores, nowhere, Hierarchy.flat(1)) for kind in ("bbq", "histogram")
    )
    spread = [np.ptp(one.maps.predict(scores.proba, nowhere)[:, 1]) for one in (bbq, plain)]
    assert spread[0] < 0.5 * spread[1]


def test_unpooled_densities_are_those_of_the_regions_own_rows():
    scores, leaf = regions(900)
    fit = fit_maps("kde", scores, leaf, Hierarchy.flat(3), pooling=False)
    own = leaf == 1
    want = TopLabelKDE(shrinkage=fit.maps.everywhere.shrinkage_)
    want.fit(scores.proba[own], scores.y[own])
    np.testing.assert_allclose(
        fit.maps.predict(scores.proba[own], leaf[own]), want.predict_proba(scores.proba[own])
    )


@pytest.mark.parametrize("kind", ["platt", "beta", "temperature"])
def test_gathered_rows_give_the_fit_of_the_rows(kind, monkeypatch):
    scores, leaf = regions(EXACT + 10_000)
    gathered = fit_maps(kind, scores, leaf, Hierarchy.flat(3))
    monkeypatch.setattr("kdcal_core.calibration.regions.scores_and_hierarchy.EXACT", 10**9)
    exact = fit_maps(kind, scores, leaf, Hierarchy.flat(3))
    for name, values in exact.parameters.items():
        np.testing.assert_allclose(
            gathered.parameters[name], values, atol=3e-3 if kind == "beta" else 2e-4
        )
    np.testing.assert_allclose(
        gathered.maps.predict(scores.proba, leaf), exact.maps.predict(scores.proba, leaf), atol=5e-5
    )


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n", [1, 2, 7, 60])
@pytest.mark.parametrize("pooling", [True, False])
def test_few_rows_saturated_scores_and_empty_regions(kind, n_classes, n, pooling):
    scores, leaf = many_classes(n, n_classes)
    scores.proba[: n // 3] = np.eye(n_classes)[scores.y[: n // 3]]
    fit = fit_maps(kind, scores, leaf, Hierarchy.flat(4), pooling=pooling)
    proba = np.concatenate([np.eye(n_classes), many_classes(40, n_classes, 1)[0].proba])
    for region in range(4):
        got = fit.maps.predict(proba, np.full(len(proba), region))
        assert ((got >= 0) & (got <= 1)).all()
        np.testing.assert_allclose(got.sum(axis=1), 1.0, atol=1e-9)
    assert ((fit.borrowed >= 0) & (fit.borrowed <= 1)).all()
    fit.maps.check(n_classes, 4)


@pytest.mark.parametrize(
    "kind", ["platt", "beta", "temperature", "isotonic", "histogram", "scaling_binning", "bbq"]
)
@pytest.mark.parametrize("pooling", [True, False])
def test_a_region_without_rows_has_its_ancestors_map(kind, pooling):
    scores, leaf = regions(600, n_regions=2)
    tree = Hierarchy(np.array([-1, 0, 0, 1, 1]), np.array([3, 4, 2]))
    # region 1 is empty: its map is that of the node it shares with region 0
    fit = fit_maps(kind, scores, np.where(leaf == 0, 0, 2), tree, pooling=pooling)
    shared = Hierarchy(np.array([-1, 0, 0]), np.array([1, 2]))
    want = fit_maps(kind, scores, leaf, shared, pooling=False)
    proba = np.c_[1 - np.linspace(0.05, 0.95, 50), np.linspace(0.05, 0.95, 50)]
    got = fit.maps.predict(proba, np.ones(50, dtype=int))
    if pooling:
        assert (fit.borrowed[:, 1] == 1).all()
        far = fit.maps.predict(proba, np.full(50, 2))
        near = fit.maps.predict(proba, np.zeros(50, dtype=int))
        assert np.abs(got - near).max() < np.abs(got - far).max()
    else:
        np.testing.assert_allclose(
            got, want.maps.predict(proba, np.zeros(50, dtype=int)), atol=1e-6
        )


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_keeps_the_ancestors_slope_where_regions_are_on_their_own(label):
    """Its offset has Platt's targets: the mean probability of the class is (n + 1) / (n + 2)."""
    scores, leaf = regions(600, n_regions=2)
    scores.y[leaf == 1] = label
    fit = fit_maps("platt", scores, leaf, Hierarchy.flat(2), pooling=False)
    everywhere = fit_maps("platt", scores, leaf * 0, Hierarchy.flat(1))
    assert fit.borrowed.tolist() == [[0.0, 0.5]]
    slope = fit.parameters["slope"][0, 1]
    np.testing.assert_allclose(slope, everywhere.parameters["slope"][0, 0], rtol=1e-6)
    own = leaf == 1
    found = fit.maps.predict(scores.proba[own], leaf[own])[:, label].mean()
    np.testing.assert_allclose(found, (own.sum() + 1) / (own.sum() + 2), rtol=1e-6)


def test_one_class_moves_no_region_away_from_it():
    """Ten rows of very low scores without a positive: Platt's target of 1 / 12 would raise them."""
    scores, leaf = regions(610, n_regions=2)
    leaf = np.where(np.arange(610) < 600, 0, 1)
    p = np.where(leaf == 1, 1e-4, scores.proba[:, 1])
    y = np.where(leaf == 1, 0, scores.y)
    text = Scores(np.c_[1 - p, p], y, np.ones(610))
    fit = fit_maps("platt", text, leaf, Hierarchy.flat(2), pooling=False)
    everywhere = fit_maps("platt", text, leaf * 0, Hierarchy.flat(1))
    assert fit.borrowed.tolist() == [[0.0, 1.0]]
    for name in ("slope", "offset"):
        np.testing.assert_allclose(fit.parameters[name][0, 1], everywhere.parameters[name][0, 0])


def test_all_rows_of_one_class_keep_the_model():
    scores, leaf = regions(50)
    scores.y[:] = 1
    fit = fit_maps("platt", scores, leaf * 0, Hierarchy.flat(1))
    np.testing.assert_allclose(fit.maps.predict(scores.proba, leaf * 0), scores.proba, atol=1e-9)


def test_scores_that_part_the_classes_have_platts_targets():
    p = np.array([0.1, 0.2, 0.3, 0.7, 0.8])
    y = np.array([0, 0, 0, 1, 1])
    fit = fit_maps("platt", Scores(np.c_[1 - p, p], y, np.ones(5)), y * 0, Hierarchy.flat(1))
    target = np.where(y == 1, 3 / 4, 1 / 5)

    def loss(parameters):
        odds = parameters[0] * logit(p) + parameters[1]
        return np.logaddexp(0, odds).sum() - odds @ target

    want = minimize(loss, [1, 0], options={"gtol": 1e-9}).x
    got = [fit.parameters[name][0, 0] for name in ("slope", "offset")]
    np.testing.assert_allclose(got, want, atol=1e-4)


def test_a_falling_region_is_kept_and_flagged():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 4000)
    leaf = np.repeat([0, 1], 2000)
    y = (rng.random(4000) < np.where(leaf == 0, p, 1 - p)).astype(int)
    fit = fit_maps("platt", Scores(np.c_[1 - p, p], y, np.ones(4000)), leaf, Hierarchy.flat(2))
    assert fit.falling.tolist() == [False, True]
    assert fit.parameters["slope"][0, 1] == pytest.approx(-1, abs=0.1)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_region_of_one_class_has_its_ancestors_temperature_without_pooling(n_classes):
    many = many_classes(600, n_classes, seed=3)[0]
    leaf = np.repeat([0, 1, 2], 200)
    first = many.proba.argmax(axis=1) == 0
    y = np.where((leaf == 1) & first, 0, many.y)
    kept = (leaf != 1) | first
    one = Scores(many.proba[kept], y[kept], np.ones(kept.sum()))
    fit = fit_maps("temperature", one, leaf[kept], Hierarchy.flat(4), pooling=False)
    whole = fit_maps("temperature", one, np.zeros(kept.sum(), int), Hierarchy.flat(1)).maps
    assert fit.maps.temperatures[[1, 3]] == pytest.approx(whole.temperatures[0])
    assert fit.borrowed[0].tolist() == [0, 1, 0, 1]


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from(["platt", "isotonic", "histogram", "bbq", "temperature"]),
)
def test_weights_are_repeated_rows(seed, kind):
    rng = np.random.default_rng(seed)
    scores, leaf = regions(200, seed=seed)
    times = rng.integers(1, 4, 200)
    whole = np.repeat(np.arange(200), times)
    weighted = fit_maps(
        kind, Scores(scores.proba, scores.y, times.astype(float)), leaf, Hierarchy.flat(3)
    )
    repeated = fit_maps(
        kind,
        Scores(scores.proba[whole], scores.y[whole], np.ones(len(whole))),
        leaf[whole],
        Hierarchy.flat(3),
    )
    at = regions(30, seed=seed + 1)
    np.testing.assert_allclose(
        weighted.maps.predict(at[0].proba, at[1]),
        repeated.maps.predict(at[0].proba, at[1]),
        atol=1e-4,
    )


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(QUICK))
def test_regions_may_be_numbered_in_any_order(seed, kind):
    scores, leaf = regions(80, seed=seed)
    swap = np.array([2, 0, 1])
    one = fit_maps(kind, scores, leaf, Hierarchy.flat(3))
    other = fit_maps(kind, scores, swap[leaf], Hierarchy.flat(3))
    np.testing.assert_allclose(
        one.maps.predict(scores.proba, leaf),
        other.maps.predict(scores.proba, swap[leaf]),
        atol=1e-6,
    )


@pytest.mark.parametrize(
    "maps",
    [
        LinearMaps(np.ones((1, 3, 2))),
        LinearMaps(np.ones((1, 2, 4))),
        LinearMaps(np.full((1, 2, 2), np.nan)),
        TemperatureMaps(np.zeros(2)),
        TemperatureMaps(np.ones(3)),
        HistogramMaps(np.zeros((1, 9)), np.full((1, 2, 10), 1.5)),
        HistogramMaps(np.linspace(1, 0, 9)[None], np.zeros((1, 2, 10))),
        HistogramMaps(np.full((1, 9), np.nan), np.zeros((1, 2, 10))),
        IsotonicMaps(np.array([1, 3]), np.array([0.1, 0.2]), np.array([0.1, 0.2])),
        IsotonicMaps(np.array([0, 2]), np.array([0.1, 0.2]), np.array([0.1, 0.2])),
        IsotonicMaps(np.array([1, 3]), np.array([0.1, 0.4, 0.2]), np.array([0.1, 0.2, 0.3])),
    ],
)
def test_maps_that_contradict_themselves_are_refused(maps):
    with pytest.raises(InputError, match="contradicts itself"):
        maps.check(2, 2)


@pytest.mark.parametrize("kind", ["platt", "beta"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_scores_of_zero_and_one_that_are_often_wrong(kind, n_classes, seed):
    """Nearly no curvature where the fit starts; the rates of right and wrong are the answer."""
    rng = np.random.default_rng(seed)
    proba = np.eye(n_classes)[rng.integers(0, n_classes, 120)]
    y = rng.integers(0, n_classes, 120)
    weight = np.exp(2 * rng.normal(size=120))
    leaf = rng.integers(0, 5, 120)
    scores = Scores(proba, y, weight / weight.mean())
    for n_regions, at in ((1, leaf * 0), (5, leaf)):
        fit = fit_maps(kind, scores, at, Hierarchy.flat(n_regions))
        found = fit.maps.predict(proba, at)
        assert np.isfinite(found).all()
        loss = np.average(-np.log(np.maximum(found[np.arange(120), y], 1e-12)), weights=weight)
        assert loss < np.log(n_classes) + 0.02


@pytest.mark.parametrize("kind", ["platt", "beta"])
@pytest.mark.parametrize("n", [2_000, EXACT + 10_000])
def test_scores_that_hardly_differ_are_fitted_like_others(kind, n):
    """Logits shrunk to a hundred-thousandth carry the order that they had."""
    scores, leaf = regions(n)
    odds = logit(scores.proba[:, 1])
    found = []
    for scale in (1.0, 1e-5):
        p = expit(scale * odds / odds.std())
        fit = fit_maps(
            kind, Scores(np.c_[1 - p, p], scores.y, scores.weight), leaf, Hierarchy.flat(3)
        )
        found.append(fit.maps.predict(np.c_[1 - p, p], leaf)[:, 1])
    if kind == "platt":
        np.testing.assert_allclose(*found, atol=1e-3)
    else:  # log p and -log(1 - p) are then the same line
        assert np.corrcoef(*found)[0, 1] > 0.95
