"""Scores against scikit-learn, brute force and simulation; matrices of Salamon et al., Fig. 1."""

import numpy as np
import pytest
from drawn_rows import draw
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import accuracy_score, brier_score_loss, confusion_matrix, roc_auc_score
from sklearn.metrics import log_loss as sklearn_log_loss

from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import (
    accuracy,
    all_estimates,
    auroc,
    brier,
    brier_decomposition,
    confidence_brier,
    confidence_brier_decomposition,
    confidence_gap,
    confidence_log_loss,
    confusion,
    log_loss,
    mean_max_confidence,
    summary,
    top_label_brier,
    top_label_log_loss,
)
from kdcal_core.errors import InputError
from kdcal_core.statistics import Dependence, RowDesign


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_scikit_learn_agrees(n_classes, weighted):
    proba, y = draw(400, n_classes, 1)
    w = np.random.default_rng(0).uniform(0.5, 2, 400) if weighted else None
    labels = list(range(n_classes))
    top = proba.argmax(axis=1)
    assert accuracy(proba, y, sample_weight=w).value == pytest.approx(
        accuracy_score(y, top, sample_weight=w)
    )
    assert log_loss(proba, y, sample_weight=w).value == pytest.approx(
        sklearn_log_loss(y, proba, labels=labels, sample_weight=w)
    )
    assert brier(proba, y, sample_weight=w).value == pytest.approx(
        brier_score_loss(y, proba, labels=labels, sample_weight=w, scale_by_half=False)
    )
    score = proba[:, 1] if n_classes == 2 else proba
    theirs = (
        roc_auc_score(y, score, sample_weight=w)
        if n_classes == 2
        else np.average(
            [roc_auc_score(y == k, proba[:, k], sample_weight=w) for k in labels],
            weights=[(np.ones(400) if w is None else w)[y == k].sum() for k in labels],
        )
    )
    assert auroc(proba, y, sample_weight=w).value == pytest.approx(theirs)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([0.0, 0.2, 0.5, 1.0]), st.integers(0, 1)), max_size=30))
def test_auroc_of_ties_is_the_share_of_ordered_pairs(rows):
    rows = [*rows, (0.5, 0), (0.5, 1)]
    p, y = (np.array(column) for column in zip(*rows, strict=True))
    pairs = [(a > b) + 0.5 * (a == b) for a in p[y == 1] for b in p[y == 0]]
    e = auroc(np.column_stack([1 - p, p]), y)
    assert e.value == pytest.approx(np.mean(pairs))
    assert 0.0 <= e.low <= e.value <= e.high <= 1.0


def test_auroc_of_one_true_class_is_not_defined():
    e = auroc([[0.9, 0.1], [0.2, 0.8]], [1, 1])
    assert np.isnan(e.value)
    assert "not defined" in e.interval


def test_delongs_interval_covers():
    rng = np.random.default_rng(3)
    truth, covered = 0.7602, 0  # P(N(1, 1) > N(0, 1)) = Phi(1 / sqrt 2)
    for _ in range(300):
        y = np.r_[np.zeros(60, int), np.ones(60, int)]
        p = 1 / (1 + np.exp(-(rng.normal(size=120) + y)))
        e = auroc(np.column_stack([1 - p, p]), y)
        covered += e.low <= truth <= e.high
    assert 0.91 <= covered / 300 <= 0.98


def test_top_label_losses_are_equations_14_and_15_over_n():
    proba, y = draw(100, 4, 4)
    said, right = proba.max(axis=1), proba.argmax(axis=1) == y
    nll = -np.log(said[right]).sum() - np.log(1 - said[~right]).sum()
    square = ((1 - said[right]) ** 2).sum() + (said[~right] ** 2).sum()
    assert top_label_log_loss(proba, y).value == pytest.approx(nll / 100)
    assert top_label_brier(proba, y).value == pytest.approx(square / 100)
    assert confidence_log_loss(said, right) == top_label_log_loss(proba, y)
    assert confidence_brier(said, right) == top_label_brier(proba, y)


def test_a_certain_mistake_costs_a_lot_but_not_infinity():
    assert log_loss([[1.0, 0.0]], [1]).value == pytest.approx(-np.log(1e-12))
    assert confidence_log_loss([0.0], [1]).value == pytest.approx(-np.log(1e-12))


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60), st.integers(2, 4), st.integers(0, 999), st.booleans())
def test_the_split_adds_up_and_its_parts_are_the_definitions(n, n_classes, seed, weighted):
    proba, y = draw(n, n_classes, seed)
    proba = np.round(proba, 1) + 1e-9  # ties
    proba = np.round(proba / proba.sum(axis=1, keepdims=True), 13)
    w = np.random.default_rng(seed).uniform(0.5, 2, n) if weighted else np.ones(n)
    said, hit = proba.max(axis=1), (proba.argmax(axis=1) == y).astype(float)
    mcb, dsc, unc = brier_decomposition(proba, y, sample_weight=w)
    total = top_label_brier(proba, y, sample_weight=w).value
    assert mcb.value - dsc.value + unc.value == pytest.approx(total, abs=1e-12)
    iso = IsotonicRegression().fit(said, hit, sample_weight=w).predict(said)
    best = np.average((iso - hit) ** 2, weights=w)
    assert mcb.value == pytest.approx(total - best, abs=1e-9)
    base = np.average((np.average(hit, weights=w) - hit) ** 2, weights=w)
    assert unc.value == pytest.approx(base)
    assert dsc.value == pytest.approx(base - best, abs=1e-9)
    mcb, dsc, unc = brier_decomposition(proba, y, of="vector", sample_weight=w)
    whole = brier(proba, y, sample_weight=w).value
    assert mcb.value - dsc.value + unc.value == pytest.approx(whole, abs=1e-12)
    for part in (mcb, dsc, unc):
        assert 0.0 <= part.low <= part.value <= part.high


def test_miscalibration_knows_what_chance_gives():
    proba, y = draw(3000, 3, 5)
    good = brier_decomposition(proba, y)[0]
    assert good.expected == pytest.approx(good.value, rel=0.6)
    sharp, y = draw(3000, 3, 5, sharp=2.0)
    assert brier_decomposition(sharp, y)[0].low > 5 * good.expected
    said, hit = sharp.max(axis=1), sharp.argmax(axis=1) == y
    assert confidence_brier_decomposition(said, hit) == brier_decomposition(sharp, y)


def test_chance_gives_more_miscalibration_where_rows_are_alike():
    proba, y = draw(200, 2, 7)
    alone = brier_decomposition(proba, y, of="vector")[0]
    copies = np.repeat(np.arange(200), 10)
    design = RowDesign(None, Dependence.of("cluster", copies))
    known = brier_decomposition(proba[copies], y[copies], of="vector", sample_weight=design)[0]
    unknown = brier_decomposition(proba[copies], y[copies], of="vector")[0]
    assert known.value == pytest.approx(alone.value)
    assert known.expected == pytest.approx(alone.expected, rel=0.25)
    assert unknown.expected < 0.3 * alone.expected
    assert known.low <= 1e-9
    assert unknown.low > 0.01  # repeated rows pass for independent ones


@pytest.mark.parametrize(("of", "slope"), [("vector", 1.0), ("top-label", 2.0)])
def test_intervals_of_the_split_allow_for_what_the_curve_fits_of_noise(of, slope):
    def parts(odds):
        true, said = (1 / (1 + np.exp(-one)) for one in (odds, slope * odds))
        if of == "top-label":
            true, said = np.where(odds > 0, true, 1 - true), np.maximum(said, 1 - said)
        twice = 2 if of == "vector" else 1
        return twice * np.mean((true - said) ** 2), twice * np.var(true)

    rng = np.random.default_rng(8)
    truth, covered = parts(1.5 * rng.normal(size=200_000)), np.zeros(2)
    for _ in range(100):
        odds = 1.5 * rng.normal(size=300)
        y = (rng.random(300) < 1 / (1 + np.exp(-odds))).astype(int)
        said = 1 / (1 + np.exp(-slope * odds))
        found = brier_decomposition(np.column_stack([1 - said, said]), y, of=of)[:2]
        covered += [one.low <= t <= one.high for one, t in zip(found, truth, strict=True)]
    assert covered.min() >= 89  # with the curve held fixed 0 of a right model's


def test_mean_confidence_over_all_and_over_errors():
    proba = [[0.9, 0.1], [0.3, 0.7], [0.6, 0.4]]
    assert mean_max_confidence(proba, [0, 0, 0]).value == pytest.approx(2.2 / 3)
    errors = mean_max_confidence(proba, [0, 0, 0], of="errors")
    assert errors.value == pytest.approx(0.7)
    assert errors.n == 1
    assert (errors.low, errors.high) == (0.0, 1.0)
    assert np.isnan(mean_max_confidence(proba, [0, 1, 0], of="errors").value)
    gap = confidence_gap(proba, [0, 0, 0])
    assert gap.value == pytest.approx(2.2 / 3 - 2 / 3)


def test_rows_without_errors_do_not_look_certain():
    proba = np.tile([0.97, 0.03], (40, 1))
    gap = confidence_gap(proba, np.zeros(40, int))
    assert gap.value == pytest.approx(-0.03)
    assert gap.low < gap.value < 0.0 < gap.high
    for estimate in (top_label_log_loss, top_label_brier):
        loss = estimate(proba, np.zeros(40, int))
        chance = estimate(np.tile([0.97, 0.03], (100, 1)), (np.arange(100) < 3).astype(int)).value
        assert loss.low < loss.value < chance < loss.high
    saturated = confidence_gap(np.tile([1.0, 0.0], (20, 1)), np.zeros(20, int))
    assert saturated.value == 0.0
    assert saturated.high > 0.1


@pytest.mark.parametrize("n", [30, 200])
@pytest.mark.parametrize("over", [0.0, 0.05])
def test_top_label_intervals_cover_where_errors_are_few(n, over):
    rng = np.random.default_rng(n)
    covered = np.zeros(3)
    for _ in range(300):
        score = rng.uniform(0.95, 1.0, n)
        y = (rng.random(n) >= score - over).astype(int)
        proba = np.column_stack([score, 1.0 - score])
        grid = np.linspace(0.95, 1.0, 2002)[:-1]
        odd = np.mean((grid - over) * np.square(1 - grid) + (1 - grid + over) * np.square(grid))
        surprise = -(grid - over) * np.log(grid) - (1 - grid + over) * np.log(1 - grid)
        truths = (over, odd, surprise.mean())
        for i, estimate in enumerate((confidence_gap, top_label_brier, top_label_log_loss)):
            e = estimate(proba, y)
            covered[i] += e.low <= truths[i] <= e.high
    assert covered[0] >= 0.93 * 300
    assert covered[1:].min() >= 0.87 * 300


def test_intervals_of_means_cover():
    rng = np.random.default_rng(6)
    proba, y = draw(100_000, 3, 6)
    truth = log_loss(proba, y).value
    covered = 0
    for _ in range(200):
        rows = rng.integers(0, 100_000, 300)
        e = log_loss(proba[rows], y[rows])
        covered += e.low <= truth <= e.high
    assert covered >= 180


def test_confusion_is_scikit_learns():
    proba, y = draw(300, 4, 7)
    top = proba.argmax(axis=1)
    mine = confusion(proba, y)
    np.testing.assert_array_equal(mine.joint, confusion_matrix(y, top, labels=range(4)))
    np.testing.assert_allclose(
        mine.confusion, confusion_matrix(y, top, labels=range(4), normalize="true")
    )
    np.testing.assert_allclose(
        mine.reverse, confusion_matrix(y, top, labels=range(4), normalize="pred")
    )
    np.testing.assert_array_equal(confusion(top, y, 4).joint, mine.joint)


def test_minor_capsid_of_paper_002_figure_1():
    """875 proteins were called minor capsid and 63 of them were: Conf1 is 0.07."""
    others = [8, 0, 4, 9, 171, 3, 2, 0, 615]
    true = np.repeat(np.arange(10), [others[0], 63, *others[1:]])
    result = confusion(np.ones(len(true), int), true, 10)
    assert result.joint[:, 1].sum() == 875
    assert round(result.reverse[1, 1], 2) == 0.07


def test_a_class_without_rows_is_nan_not_a_number():
    result = confusion([0, 0], [0, 0], 2)
    assert np.isnan(result.confusion[1]).all()
    assert np.isnan(result.reverse[:, 1]).all()
    with pytest.raises(InputError):
        confusion([0, 2], [0, 0], 2)


def test_the_tiles_are_the_functions_and_serve_calibrated_confidences_too():
    proba, y = draw(300, 3, 8)
    scored = ScoredSet(proba, y, ("a", "b", "c"), "digest", "evaluation")
    tiles = summary(scored)
    assert len(tiles) == 4
    assert tiles[0] == accuracy(proba, y)
    assert tiles[3] == top_label_log_loss(proba, y)
    assert summary(scored, proba.max(axis=1)) == tiles
    lower = summary(scored, 0.5 * proba.max(axis=1))
    assert lower[0] == tiles[0]
    assert lower[1].value < tiles[1].value


@pytest.mark.parametrize(
    ("n", "n_classes", "outcome", "certain"),  # every pair of them
    [
        (1, 2, "right", False),
        (1, 30, "wrong", True),
        (2, 2, "wrong", True),
        (2, 30, "right", False),
        (40, 2, "right", True),
        (40, 30, "wrong", False),
    ],
)
def test_every_estimate_holds_its_order_at_the_edges(n, n_classes, outcome, certain):
    proba = np.full((n, n_classes), 0.0 if certain else 0.4 / (n_classes - 1))
    proba[:, 0] = 1.0 if certain else 0.6
    y = np.full(n, 0 if outcome == "right" else 1)
    scored = ScoredSet(proba, y, tuple(map(str, range(n_classes))), "digest", "evaluation")
    for e in (*all_estimates(scored), *all_estimates(scored, proba[:, 0] * 0.5)):
        assert e.name
        assert e.interval
        if np.isfinite(e.value) and e.interval.startswith("none"):
            assert n < 20 or e.label == "Smooth ECE"
            assert np.isnan(e.low)
        elif np.isfinite(e.value):
            assert e.low <= e.value <= e.high
        else:
            assert "not defined" in e.interval


def test_no_two_estimates_of_a_set_share_a_label():
    proba, y = draw(200, 4, 3)
    scored = ScoredSet(proba, y, ("a", "b", "c", "d"), "digest", "calibration")
    labels = [estimate.label for estimate in all_estimates(scored)]
    assert len(set(labels)) == len(labels)


@pytest.mark.parametrize("parted", [True, False])
def test_many_classes_of_a_few_rows_leave_an_interval_that_says_something(parted):
    """214 classes, 58 with rows and most of them with one: the interval was 0 to 1."""
    rng = np.random.default_rng(0)
    y = np.concatenate([np.arange(58), rng.integers(0, 12, 142)])
    proba = rng.dirichlet(np.full(214, 0.02), 200)
    proba[np.arange(200), y] += 1.0 if parted else 0.3
    proba /= proba.sum(axis=1, keepdims=True)
    e = auroc(proba, y)
    assert (e.value == 1.0) == parted
    assert 0.8 < e.low <= e.value <= e.high <= 1.0
    assert e.value > 0.97


@pytest.mark.parametrize("value", ["one", "many"])
def test_an_interval_near_one_covers(value):
    """Areas near 1, with classes of one row and several: where the logit scale gives way."""
    covered, runs, n_classes = 0, 150, 2 if value == "one" else 30
    rng = np.random.default_rng(5)
    shift = 4.5 if value == "one" else 3.5
    whole = rng.integers(0, n_classes, 20_000)
    share = 0.85 ** np.arange(n_classes)
    share = np.array([0.9, 0.1]) if value == "one" else share / share.sum()

    def rows(n):
        y = rng.choice(n_classes, n, p=share)
        z = rng.normal(size=(n, n_classes))
        z[np.arange(n), y] += shift
        p = np.exp(z)
        return p / p.sum(axis=1, keepdims=True), y

    truth = auroc(*rows(len(whole))).value
    for _ in range(runs):
        p, y = rows(60)
        if len(np.unique(y)) > 1:
            e = auroc(p, y)
            covered += e.low <= truth <= e.high
        else:
            covered += 1
    assert covered / runs >= 0.92


def test_wholly_parted_classes_leave_auroc_in_doubt():
    score = np.linspace(0.05, 0.95, 20)
    y = (score > 0.5).astype(int)
    e = auroc(np.column_stack([1 - score, score]), y)
    assert (e.value, e.high) == (1.0, 1.0)
    assert e.low == pytest.approx(0.025 ** (1 / 10))


def test_the_area_of_two_classes_names_the_one_whose_probability_ranks():
    proba, y = [[0.9, 0.1], [0.6, 0.4], [0.65, 0.35], [0.2, 0.8]], [0, 0, 1, 1]
    assert auroc(proba, y, classes=("good", "bad")).name == "AUROC: the class bad"
    rows = ScoredSet(np.array(proba), np.array(y), ("good", "bad"), "", "calibration")
    names = [one.name for one in all_estimates(rows) if one.label == "AUROC"]
    assert names == ["AUROC: the class bad"]
