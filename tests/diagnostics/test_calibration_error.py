"""Calibration errors: brute force, probcal, a row-by-row bootstrap, and coverage by simulation."""

from importlib import import_module

import numpy as np
import pytest
from drawn_rows import draw
from hypothesis import given, settings
from hypothesis import strategies as st
from probcal.metrics import ece as probcal_ece
from scipy.special import ndtri

from kdcal_core.diagnostics import (
    calibration_error,
    confidence_calibration_error,
    confidence_smooth_calibration_error,
    smooth_calibration_error,
)
from kdcal_core.diagnostics.calibration_error import resampled, row_draws
from kdcal_core.diagnostics.error_interval import inverted_test, over_shapes, row_quantiles
from kdcal_core.diagnostics.targets import bin_table, confidence_target, edges_for, targets
from kdcal_core.errors import InputError
from kdcal_core.statistics import clopper_pearson
from tests.benchmarks.bench_coverage import measure

NORMS = ["l1", "l2", "max"]


def brute_error(problems, norm, n_bins):
    """The definition, with loops: problems are (share, score, hit, weight)."""
    terms = []
    for share, score, hit, weight in problems:
        for b in range(n_bins):
            inside = (score <= (b + 1) / n_bins) & ((score > b / n_bins) | (b == 0))
            if inside.any():
                mass = weight[inside].sum()
                gap = abs((weight * (hit - score))[inside].sum()) / mass
                terms.append((share * mass / weight.sum(), gap))
    if norm == "l1":
        return sum(w * g for w, g in terms)
    if norm == "l2":
        return sum(w * g * g for w, g in terms) ** 0.5
    return max(g for _, g in terms)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 60),
    st.integers(2, 5),
    st.integers(0, 999),
    st.sampled_from(NORMS),
    st.sampled_from(["confidence", "top-label", "class"]),
)
def test_the_value_is_the_definition(n, n_classes, seed, norm, kind):
    proba, y = draw(n, n_classes, seed)
    weight = np.random.default_rng(seed).uniform(0.5, 2.0, n)
    top, score = proba.argmax(axis=1), proba.max(axis=1)
    if kind == "confidence":
        problems = [(1.0, score, (top == y) * 1.0, weight)]
    elif kind == "top-label":
        parts = [top == k for k in sorted(set(top.tolist()))]
        problems = [
            (weight[part].sum() / weight.sum(), score[part], (top == y)[part] * 1.0, weight[part])
            for part in parts
        ]
    else:
        problems = [(1 / n_classes, proba[:, k], (y == k) * 1.0, weight) for k in range(n_classes)]
    got = calibration_error(
        proba, y, kind=kind, norm=norm, n_bins=6, sample_weight=weight, n_boot=20
    )
    assert got.value == pytest.approx(brute_error(problems, norm, 6))
    if got.interval.startswith("none"):
        assert norm == "max"
        assert np.isnan(got.low)
    else:
        assert 0.0 <= got.low <= got.value <= got.high <= 1.0
    assert got.n == n


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("strategy", "theirs"), [("uniform", "width"), ("quantile", "mass")])
def test_probcal_agrees(norm, strategy, theirs):
    proba, y = draw(1500, 2, 1, sharp=1.7)
    hit = (proba.argmax(axis=1) == y).astype(int)
    score = proba.max(axis=1)
    mine = confidence_calibration_error(score, hit, norm=norm, strategy=strategy, n_boot=10).value
    # equal-mass edges are scores here and interpolated there
    slack = 1e-9 if strategy == "uniform" else 0.02
    other = probcal_ece(hit, score, n_bins=15, strategy=theirs, norm=norm)
    assert mine == pytest.approx(other, abs=slack)


@pytest.fixture
def no_intervals(monkeypatch):
    """Intervals take most of the time, also of one draw, and these tests read none."""
    room = import_module("kdcal_core.diagnostics.calibration_error")
    monkeypatch.setattr(room, "_interval", lambda *_: (np.nan, np.nan))


@pytest.fixture
def no_expected(monkeypatch):
    """What a calibrated model would show is computed last, and these tests do not read it."""
    room = import_module("kdcal_core.diagnostics.calibration_error")
    monkeypatch.setattr(room, "_expected", lambda *_: np.nan)


@pytest.mark.usefixtures("no_intervals")
@pytest.mark.parametrize("kind", ["confidence", "top-label", "class"])
def test_expected_is_the_mean_over_calibrated_models(kind):
    """Against the plain way: every row's outcome drawn, everything computed again."""
    proba, _ = draw(120, 3, 2)
    rng = np.random.default_rng(0)
    values = []
    with pytest.MonkeyPatch.context() as patch:
        room = import_module("kdcal_core.diagnostics.calibration_error")
        patch.setattr(room, "_expected", lambda *_: np.nan)  # read once, below
        for _ in range(300):
            y = (proba.cumsum(axis=1) > rng.random((120, 1))).argmax(axis=1)
            values.append(calibration_error(proba, y, kind=kind, n_boot=1).value)
    expected = calibration_error(proba, y, kind=kind, n_boot=1).expected
    slack = 5 * np.std(values) * (1 / 300 + 1 / 500) ** 0.5
    # for "top-label" the hits of a row are drawn from its top probability, as here
    assert expected == pytest.approx(np.mean(values), abs=slack)


@pytest.mark.parametrize("weighted", [False, True])
def test_grouped_draws_have_the_row_bootstraps_spread(weighted):
    """6,000 rows go through 2,000 groups; the naive bootstrap resamples rows."""
    proba, y = draw(6000, 3, 3, sharp=1.5)
    rng = np.random.default_rng(1)
    weight = rng.uniform(0.5, 2.0, 6000) if weighted else None
    found = targets(proba, y, weight, "confidence")
    table = bin_table(found[0], np.linspace(0, 1, 8))
    gap = np.nan_to_num(table.rate - table.score)
    share, deviation = resampled(found, (table,), gap, row_draws(6000, 2000, rng), rng)
    t, naive_gap, naive_share = found[0], [], []
    place = np.searchsorted(table.edges[1:-1], t.score)
    for _ in range(1000):
        rows = rng.integers(0, 6000, 6000)
        mass = np.bincount(place[rows], t.weight[rows], 7)
        excess = np.bincount(place[rows], (t.weight * (t.hit - t.score))[rows], 7)
        naive_gap.append(np.divide(excess, mass, out=gap.copy(), where=mass > 0) - gap)
        naive_share.append(mass / mass.sum())
    busy = table.count > 300
    ratio = deviation.std(axis=0)[busy] / np.std(naive_gap, axis=0)[busy]
    assert np.all(np.abs(ratio - 1.0) < 0.12)
    ratio = share.std(axis=0)[busy] / np.std(naive_share, axis=0)[busy]
    assert np.all(np.abs(ratio - 1.0) < 0.12)


CELLS = [
    # classes, model, rows, estimators: where intervals covered in 54 to 91% of runs before
    (4, "over-confident", 300, ("smooth ECE",)),
    (10, "under-confident", 1_000, ("ECE", "smooth ECE")),
    (10, "calibrated", 100, ("classwise ECE", "ECE")),
    (2, "over-confident", 1_000, ("ECE", "l2", "MCE", "top-label ECE")),
]


@pytest.mark.usefixtures("no_expected")
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{cell[0]}-{cell[1]}-{cell[2]}")
def test_intervals_cover_the_true_error(cell):
    """In 95 of 100 runs, less two and a half standard errors."""
    n_classes, fault, n, names = cell
    found = measure((n_classes, fault, n, 100, 3), names, many=100_000)
    for name, one in found.items():
        assert one.runs == 100
        assert one.coverage >= 0.89, name


WAVY = {
    "over": lambda s: s - 0.05,
    "wavy": lambda s: np.clip(s + 0.12 * np.sin(8 * s), 0, 1),
}


@pytest.mark.usefixtures("no_expected")
@pytest.mark.parametrize("truth", list(WAVY))
def test_a_gap_that_is_no_logistic_map_is_covered_too(truth):
    rng = np.random.default_rng(7)
    true = WAVY[truth]
    many = 0.5 + 0.5 * np.random.default_rng(0).beta(3.0, 1.2, 400_000)
    place = np.searchsorted(np.arange(1, 15) / 15, many)
    count = np.bincount(place, minlength=15)
    gap = np.bincount(place, true(many) - many, 15) / np.maximum(count, 1)
    target = np.sum(count / count.sum() * np.abs(gap))
    covered = 0
    for seed in range(150):
        score = 0.5 + 0.5 * rng.beta(3.0, 1.2, 400)
        hit = (rng.random(400) < true(score)).astype(int)
        e = confidence_calibration_error(score, hit, n_boot=300, seed=seed)
        covered += e.low - 1e-12 <= target <= e.high + 1e-12
    assert covered >= 0.90 * 150


def _bump(score):
    """Over-confident between 0.7 and 0.9, right elsewhere."""
    return np.where((score > 0.7) & (score < 0.9), score - 0.15, score)


@pytest.mark.usefixtures("no_expected")
@pytest.mark.parametrize(
    ("settings", "before"),
    [({"strategy": "quantile"}, 85), ({"norm": "max"}, 88)],
    ids=["equal mass", "MCE"],
)
def test_a_fault_of_a_few_bins_is_covered(settings, before):
    rng = np.random.default_rng(4)
    many = rng.uniform(0.5, 1.0, 200_000)
    covered = 0
    for seed in range(100):
        score = rng.uniform(0.5, 1.0, 1_000)
        hit = (rng.random(1_000) < _bump(score)).astype(int)
        strategy = settings.get("strategy", "uniform")
        edges = edges_for(confidence_target(score, hit), 15, strategy)
        place = np.searchsorted(edges[1:-1], many)
        count = np.bincount(place, minlength=15)
        gap = np.abs(np.bincount(place, _bump(many) - many, 15)) / np.maximum(count, 1)
        true = gap.max() if "norm" in settings else count @ gap / len(many)
        e = confidence_calibration_error(score, hit, n_boot=150, seed=seed, **settings)
        covered += e.low <= true <= e.high
    assert covered >= 93 > before


@pytest.mark.usefixtures("no_expected")
def test_the_largest_gap_of_one_bin_is_covered_and_not_always():
    """Upper ends of all bins at once (Bonferroni) held the truth in every run."""
    rng = np.random.default_rng(8)
    covered, high = 0, []
    for seed in range(300):
        score = np.repeat((np.arange(15) + 0.5) / 15, 100)
        hit = rng.random(1500) < np.where(score == score[1050], score - 0.2, score)
        e = confidence_calibration_error(score, hit, norm="max", n_boot=1, seed=seed)
        assert e.low <= e.value <= e.high
        covered += e.low <= 0.2 <= e.high
        high.append(e.high)
    assert 0.93 * 300 <= covered <= 0.985 * 300
    assert np.mean(high) < 0.31


def test_the_largest_gap_of_a_lone_bin_has_that_bins_interval():
    e = confidence_calibration_error([0.72] * 50, [1] * 40 + [0] * 10, norm="max")
    low, high = clopper_pearson(0.8, 50, 0.95)
    assert e.low == pytest.approx(max(0.0, low - 0.72))
    assert e.high == pytest.approx(max(high - 0.72, 0.72 - low))


@pytest.mark.usefixtures("no_expected")
def test_squared_gaps_of_a_rare_event_are_covered():
    """Stated Beta(1, 30), true 1.7 times as often: l2 held the truth in 91% of these runs."""
    many = np.random.default_rng(77).beta(1.0, 30.0, 200_000)
    place = np.searchsorted(np.arange(1, 15) / 15, many)
    count = np.bincount(place, minlength=15)
    gap = np.bincount(place, np.minimum(0.7 * many, 1.0 - many), 15) / np.maximum(count, 1)
    true = np.sqrt(count / count.sum() @ gap**2)
    covered = 0
    for run in range(400):
        rng = np.random.default_rng([77, 300, run])
        score = rng.beta(1.0, 30.0, 300)
        hit = (rng.random(300) < np.minimum(1.7 * score, 1.0)).astype(int)
        e = confidence_calibration_error(score, hit, norm="l2", n_boot=200, seed=run)
        covered += e.low <= true <= e.high
    assert covered >= 0.94 * 400


def test_a_largest_gap_of_thin_bins_has_no_interval_and_says_why():
    proba, y = draw(200, 6, 1)
    e = calibration_error(proba, y, norm="max")
    assert np.isnan(e.low)
    assert np.isnan(e.high)
    assert e.value > 0.0
    assert e.interval.startswith(
        "none: the largest gap mostly comes from the bins with fewest rows"
    )
    score = np.repeat([0.55, 0.65, 0.75], 40)
    full = confidence_calibration_error(score, np.arange(120) % 2, norm="max")
    assert full.low <= full.value <= full.high


def test_where_noise_explains_the_value_the_interval_ends_at_it():
    """Thin bins: the value lies above what the rows support, and the lower end takes all 5%."""
    noise = np.abs(np.random.default_rng(0).normal(size=(4000, 30))).mean(axis=1)
    truth = np.linspace(0.0, 2.0, 41)
    value = float(np.quantile(noise, 0.96))
    low, high = inverted_test(value, truth, (np.hypot(t, noise) for t in truth), 0.95)
    assert high == value
    assert low > 0.0  # beyond what 95% of calibrated models show
    low, high = inverted_test(noise.mean(), truth, (np.hypot(t, noise) for t in truth), 0.95)
    assert (low, high) == (0.0, noise.mean())


@pytest.mark.parametrize("n", [1, 2, 3, 10, 999, 1000])
def test_quantiles_of_rows_are_numpys_to_the_last_bit(n):
    rng = np.random.default_rng(n)
    values = rng.normal(size=(40, n))
    levels = np.vstack([[[0.0, 0.5, 1.0], [0.025, 0.975, 0.95]], rng.random((38, 3))])
    expected = [np.quantile(*row, method="weibull") for row in zip(values, levels, strict=True)]
    np.testing.assert_array_equal(row_quantiles(values, levels), expected)


@pytest.mark.usefixtures("no_expected")
@pytest.mark.parametrize("true", [0.0, 0.05, 0.1, 0.2])
def test_an_interval_at_the_end_of_the_scale_holds_its_level(true):
    """Equal tails held a true 0 in 97.5%: no error is below it."""
    places = (np.arange(200) + 0.5) / 200
    noise = 0.1 * ndtri((np.arange(4000) + 0.5) / 4000)
    truth = np.linspace(0.0, 0.8, 33)
    draws = [t + noise for t in truth]
    held = 0
    for value in true + 0.1 * ndtri(places):
        low, high = inverted_test(value, truth, draws, 0.95, shown=max(value, 0.0))
        held += low <= true <= high
    assert 0.945 <= held / 200 <= 0.96


def test_gaps_of_few_hits_are_tried_with_either_sign():
    def along(shape):
        return (0.0, 0.3) if shape[0] < 0 else (0.0, 0.2)

    rate = np.array([0.05, 0.05])
    assert over_shapes(along, [np.ones(2)], rate, np.array([150.0, 150.0])) == (0.0, 0.3)
    assert over_shapes(along, [np.ones(2)], 1.0 - rate, np.array([150.0, 150.0])) == (0.0, 0.3)
    assert over_shapes(along, [np.ones(2)], rate, np.array([500.0, 500.0])) == (0.0, 0.2)


def test_a_calibrated_model_is_within_noise_and_a_bad_one_is_not():
    proba, y = draw(2000, 3, 11)
    good = calibration_error(proba, y)
    assert good.low == 0.0
    assert good.expected == pytest.approx(good.value, rel=0.6)
    sharp, y = draw(2000, 3, 11, sharp=2.0)
    bad = calibration_error(sharp, y)
    assert bad.low > 3 * bad.expected


@pytest.mark.usefixtures("no_intervals", "no_expected")
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("gap", [0.0, 0.03])
def test_debiasing_takes_off_noise(norm, gap):
    """Kumar et al. 2019: the l2 square is unbiased before its floor, l1 loses some excess."""
    rng = np.random.default_rng(4)
    score = np.repeat([0.55, 0.65, 0.75, 0.85, 0.95], 60)
    plain, debiased, square = [], [], []
    for _ in range(300):
        hit = (rng.random(300) < score - gap).astype(int)
        settings_ = {"norm": norm, "n_bins": 10, "n_boot": 1}
        plain.append(confidence_calibration_error(score, hit, **settings_).value)
        debiased.append(confidence_calibration_error(score, hit, debiased=True, **settings_).value)
        rate = hit.reshape(5, 60).mean(axis=1)
        square.append(np.mean((rate - score[::60]) ** 2 - rate * (1 - rate) / 59))
    assert abs(np.mean(debiased) - gap) < abs(np.mean(plain) - gap)
    if norm == "l2":
        np.testing.assert_allclose(np.square(debiased), np.maximum(square, 0.0), atol=1e-12)
        assert np.mean(square) == pytest.approx(gap**2, abs=4e-4)


def test_two_classes_count_both_curves_without_doubling_their_evidence():
    """The curves of two classes mirror each other, so the interval is that of one."""
    proba, y = draw(800, 2, 5, sharp=2.0)
    one = confidence_calibration_error(proba[:, 1], y, n_bins=10)
    both = calibration_error(proba, y, kind="class", n_bins=10)
    assert both.value == pytest.approx(one.value, abs=0.01)
    assert both.high - both.low == pytest.approx(one.high - one.low, rel=0.2)


@pytest.mark.parametrize("hit", [0, 1])
@pytest.mark.parametrize("score", [0.0, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("n", [1, 30])
def test_pure_outcomes_never_look_certain(hit, score, n):
    e = confidence_calibration_error([score] * n, [hit] * n)
    assert e.value == pytest.approx(abs(hit - score))
    assert e.high - e.low > 0.0


def test_names_are_full():
    proba, y = draw(50, 3, 6)
    name = calibration_error(
        proba, y, kind="class", norm="l2", n_bins=9, strategy="quantile", debiased=True, n_boot=5
    ).name
    assert name == "Classwise l2 calibration error: l2 norm, 9 equal-mass bins, debiased"
    assert calibration_error(proba, y, n_boot=5).interval.endswith("5 draws")


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"norm": "l3"}, "norm"),
        ({"norm": "max", "debiased": True}, "debiased"),
        ({"n_boot": 0}, "n_boot"),
        ({"level": 0.0}, "level"),
        ({"kind": "all"}, "kind"),
    ],
)
def test_senseless_settings_are_refused(settings_, message):
    with pytest.raises(InputError, match=message):
        calibration_error([[0.9, 0.1], [0.2, 0.8]], [0, 1], **settings_)


def brute_smooth(score, hit, weight, bandwidth):
    """The integral of the smoothed gaps' magnitude under the reflected kernel, on a fine mesh."""
    mesh = (np.arange(4000) + 0.5) / 4000
    smoothed = np.zeros(4000)
    for shift in (-2.0, 0.0, 2.0):
        for image in (score + shift, -score + shift):
            z = (mesh[:, None] - image) / bandwidth
            kernel = np.exp(-0.5 * z * z) / (bandwidth * np.sqrt(2 * np.pi))
            smoothed += kernel @ (weight * (hit - score) / weight.sum())
    return np.abs(smoothed).mean()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shift", [0.0, 0.15])
def test_smooth_error_is_the_fixed_point_of_its_definition(shift, weighted):
    rng = np.random.default_rng(1)
    score = 1.0 - 0.6 * rng.random(300) ** 2
    hit = (rng.random(300) < score - shift).astype(int)
    weight = rng.uniform(0.5, 2.0, 300) if weighted else np.ones(300)
    e = confidence_smooth_calibration_error(score, hit, sample_weight=weight, n_boot=2)
    assert e.name.endswith("reflected Gaussian kernel on [0, 1]")
    assert brute_smooth(score, hit, weight, e.value) == pytest.approx(e.value, rel=2e-3)


@pytest.mark.parametrize(
    ("n", "power", "authors"), [(100, 1.0, 0.0587), (1000, 1.0, 0.0298), (1000, 0.6, 0.0708)]
)
def test_smooth_error_is_its_authors(n, power, authors):
    """Numbers of the authors' package, relplot 1.0.3 at its defaults, on these very rows."""
    rng = np.random.default_rng(0)
    score = rng.random(n)
    hit = (rng.random(n) < 1.0 / (1.0 + (1.0 / score - 1.0) ** power)).astype(int)
    mine = confidence_smooth_calibration_error(score, hit, n_boot=2).value
    assert mine == pytest.approx(authors, abs=1e-3)


def test_smooth_error_knows_its_noise():
    proba, y = draw(500, 3, 9)
    good = smooth_calibration_error(proba, y)
    assert good.low == 0.0 < good.value <= good.high
    assert good.expected == pytest.approx(good.value, rel=0.6)
    sharp, y = draw(500, 3, 9, sharp=2.5)
    assert smooth_calibration_error(sharp, y).low > good.expected


@pytest.mark.parametrize("rows", [([1.0], [1]), ([0.0], [0]), ([0.7] * 5, [1] * 5), ([1.0], [0])])
def test_smooth_error_at_its_edges(rows):
    e = confidence_smooth_calibration_error(*rows)
    assert np.isnan(e.low)
    assert e.interval.startswith("none on fewer than 200 rows")
    many = confidence_smooth_calibration_error(rows[0] * 200, rows[1] * 200)
    assert 0.0 <= many.low <= many.value <= many.high <= 1.0
    assert many.value == pytest.approx(e.value, abs=1e-6)
    assert e.value == pytest.approx(abs(np.mean(rows[1]) - np.mean(rows[0])), abs=1e-3)


@pytest.mark.usefixtures("no_expected")
@pytest.mark.parametrize(
    ("kind", "norm", "n", "weighted"),  # every pair of them
    [
        ("confidence", "l1", 20, False),
        ("confidence", "l2", 60, True),
        ("confidence", "max", 200, False),
        ("top-label", "l1", 60, False),
        ("top-label", "l2", 200, False),
        ("top-label", "max", 20, True),
        ("class", "l1", 200, True),
        ("class", "l2", 20, False),
        ("class", "max", 60, False),
    ],
)
def test_a_higher_level_never_gives_a_narrower_interval(kind, norm, n, weighted):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=(n, 3))
        true = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        y = (true.cumsum(axis=1) > rng.random(n)[:, None]).argmax(axis=1)
        settings_ = {
            "kind": kind,
            "norm": norm,
            "n_boot": 200,
            "n_bins": 2 if norm == "max" else 15,
        }
        settings_["sample_weight"] = rng.uniform(0.2, 3.0, n) if weighted else None
        stated = true**1.5 / (true**1.5).sum(axis=1, keepdims=True)
        levels = (0.2, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999)
        found = [calibration_error(stated, y, level=level, **settings_) for level in levels]
        lows, highs = [e.low for e in found], [e.high for e in found]
        if not found[0].interval.startswith("none"):
            assert lows == sorted(lows, reverse=True)
            assert highs == sorted(highs)


def test_a_higher_level_never_gives_a_narrower_smooth_interval():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        score = rng.uniform(0.5, 1.0, 300)
        hit = (rng.random(300) < score - 0.05 * seed).astype(int)
        found = [
            confidence_smooth_calibration_error(score, hit, level=level, n_boot=60)
            for level in (0.5, 0.8, 0.9, 0.95, 0.99)
        ]
        lows, highs = [e.low for e in found], [e.high for e in found]
        assert lows == sorted(lows, reverse=True)
        assert highs == sorted(highs)
