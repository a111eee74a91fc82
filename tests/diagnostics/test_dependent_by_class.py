"""Measures by predicted class and of foreign rows, where rows depend on one another."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from scipy.special import ndtr

from kdcal_core.diagnostics import (
    beyond_noise,
    confusion,
    fpr_at_95_tpr,
    histogram_anchor,
    ood_auroc,
    ood_calibration_error,
    reliability,
    top_label_losses,
    two_halves,
    unknown_change,
    unknown_share,
)
from kdcal_core.diagnostics.reliability import _pool
from kdcal_core.diagnostics.targets import class_shares
from kdcal_core.statistics import Dependence, RowDesign, effective_size

# the package names a function as this module
reliability_file = importlib.import_module("kdcal_core.diagnostics.reliability")


def _rows(n: int = 240) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, n)
    return np.stack([1.0 - p, p], axis=1), (rng.random(n) < p).astype(int)


def _found(proba: np.ndarray, y: np.ndarray, design: RowDesign | None) -> dict[str, np.ndarray]:
    """Ends of intervals of every measure."""
    score, far = proba.max(axis=1), np.linspace(0.5, 0.9, 60)
    predicted = proba.argmax(axis=1)
    losses = top_label_losses(
        {"model": score}, predicted, y, n_classes=2, rows="rows", sample_weight=design
    )
    anchor = histogram_anchor(proba, y, label=1, n_bins=4, sample_weight=design)
    estimates = [
        ood_auroc(score, far, by="confidence", weight_in=design),
        fpr_at_95_tpr(score, far, by="confidence", weight_in=design),
        unknown_share(score < 0.6, sample_weight=design),
    ]
    return {
        "losses": np.stack([losses.nll_low, losses.nll_high, losses.brier_low, losses.brier_high]),
        "overall": np.stack([losses.overall_nll_low, losses.overall_nll_high]),
        "anchor": np.stack([anchor.low, anchor.high]),
        "foreign": np.array([(one.low, one.high) for one in estimates]).T,
        "shares": np.array(class_shares(y, 2, design)[1]),
    }


def test_clusters_of_one_row_give_the_bytes_of_rows():
    proba, y = _rows()
    single = RowDesign(None, Dependence.of("cluster", np.arange(240)[::-1]))
    both = [_found(proba, y, one) for one in (None, single)]
    assert all(both[0][key].tobytes() == both[1][key].tobytes() for key in both[0])
    halves = [two_halves(proba, y, label=1, sample_weight=one) for one in (None, single)]
    assert halves[0][0].table().equals(halves[1][0].table())


@pytest.mark.parametrize("key", ["losses", "overall", "anchor", "foreign", "shares"])
def test_rows_repeated_in_their_cluster_say_nothing_new(key: str):
    proba, y = _rows()
    four = np.repeat(np.arange(240), 4)
    names = np.array([f"ward {7 * one % 240}" for one in range(240)])[four]
    order = np.random.default_rng(1).permutation(960)
    clusters = RowDesign(None, Dependence.of("cluster", names[order].tolist()))
    once = _found(proba, y, None)[key]
    together = _found(proba[four][order], y[four][order], clusters)[key]
    alone = _found(proba[four], y[four], None)[key]
    assert together == pytest.approx(once, rel=0.05, abs=0.02, nan_ok=True)
    assert alone != pytest.approx(once, rel=0.05, abs=0.005, nan_ok=True)


def test_a_predicted_class_counts_by_its_own_design_effect():
    proba, y = _rows()
    unit = np.arange(240) // 8
    together = Dependence.of("cluster", unit)
    found = confusion(proba, y, sample_weight=RowDesign(None, together)).effective
    mine = proba.argmax(axis=1) == 1
    right = (y[mine] == 1).astype(float)
    own = effective_size(right - right.mean(), np.ones(mine.sum()), together.only(mine))
    assert found is not None
    # one correlation for both classes, so not exactly its own
    assert 0.5 * own < found[1] <= mine.sum() + 1e-9
    first, second = two_halves(proba, y, label=1, sample_weight=RowDesign(None, together))
    assert first.count.sum() + second.count.sum() == mine.sum()


def test_one_cluster_and_a_class_without_rows():
    proba, y = _rows(40)
    proba = np.stack([np.full(40, 0.2), np.full(40, 0.8)], axis=1)
    one = RowDesign(None, Dependence.of("cluster", np.r_[np.zeros(40), 1]).only(np.arange(40)))
    losses = top_label_losses(
        {"model": proba[:, 1]}, np.ones(40, int), y, n_classes=2, rows="rows", sample_weight=one
    )
    assert np.isnan(losses.nll[0, 0])
    assert losses.nll_low[0, 1] <= losses.nll[0, 1] <= losses.nll_high[0, 1]
    anchor = histogram_anchor(proba, y, label=1, sample_weight=one)
    some = anchor.count > 0
    assert (anchor.low[some] <= anchor.confidence[some]).all()
    area = ood_auroc(proba[:, 1], [0.1, 0.9], by="confidence", weight_in=one)
    assert area.low <= area.value <= area.high


def test_all_rows_of_a_class_count_as_the_clusters_that_span_its_bins() -> None:
    """Each bin has a row of a cluster or two, so that bins alone hardly know of the clusters."""
    rng = np.random.default_rng(0)
    proba = np.exp(2.0 * rng.normal(size=(600, 3)))
    proba /= proba.sum(axis=1, keepdims=True)
    here = proba.argmax(axis=1) == 0
    design = RowDesign(None, Dependence.of("cluster", np.repeat(np.arange(60), 10)))
    said, gaps, found = proba[here, 0].mean(), [], []
    for _ in range(200):
        y = (proba.cumsum(axis=1) > np.repeat(rng.random(60), 10)[:, None]).argmax(axis=1)
        gaps.append((y[here] == 0).mean() - said)
        if len(found) < 20:
            curve = reliability(
                proba, y, kind="top-label", smooth=False, sample_weight=design
            ).curves[0]
            found.append(_pool(curve, np.flatnonzero(curve.count > 0)).effective)
    independent = said * (1.0 - said) / np.var(gaps)
    assert 0.7 * independent < np.mean(found) < 1.1 * independent < 0.6 * here.sum()


def _in_clusters(seed: int, power: float = 1.0) -> tuple[np.ndarray, np.ndarray, RowDesign]:
    """60 clusters of 10 rows, whose scores and outcomes are alike; three classes."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(60), 10)
    both = [rng.normal(size=(60, k))[cluster] + rng.normal(size=(600, k)) for k in (3, 1)]
    proba = np.exp(1.4 * both[0])
    true = proba**power
    shares = true.cumsum(axis=1) / true.sum(axis=1, keepdims=True)
    y = np.minimum((shares < ndtr(both[1] / 2.0**0.5)).sum(axis=1), 2)
    design = RowDesign(None, Dependence.of("cluster", cluster))
    return proba / proba.sum(axis=1, keepdims=True), y, design


def test_the_mean_of_a_class_is_known_as_surely_as_its_clusters_say(monkeypatch) -> None:
    """By the few rows of its bins it is two standard errors off in more than 8% of runs."""
    monkeypatch.setattr(reliability_file, "BAND_DRAWS", 10)  # not looked at
    proba, _, design = _in_clusters(2)
    here, rng = proba.argmax(axis=1) == 0, np.random.default_rng(1)
    said, far = proba[here, 0].mean(), []
    for _ in range(150):
        both = np.repeat(rng.normal(size=60), 10) + rng.normal(size=600)
        y = (proba.cumsum(axis=1) < ndtr(both / 2.0**0.5)[:, None]).sum(axis=1)
        curve = reliability(
            proba, y, kind="top-label", label=0, smooth=False, sample_weight=design
        ).curves[0]
        bins = np.flatnonzero(curve.count)
        rows = np.array(
            [_pool(curve, bins).effective, reliability_file._rows_of_all(curve, curve.together)]
        )
        error = np.sqrt(said * (1.0 - said) / rows)
        far.append(abs((y[here] == 0).mean() - said) > 2.0 * error)
    by_bins, whole = np.mean(far, axis=0)
    assert by_bins > 0.08
    assert whole <= 0.05


def test_calibrated_classes_are_rarely_off_and_wrong_ones_are(monkeypatch) -> None:
    monkeypatch.setattr(reliability_file, "BAND_DRAWS", 10)  # not looked at
    found = []
    for seed, power in (*((seed, 1.0) for seed in range(20)), (0, 0.6), (1, 0.6)):
        proba, y, design = _in_clusters(seed, power)
        diagrams = reliability(proba, y, kind="top-label", smooth=False, sample_weight=design)
        found.append(any(beyond_noise(diagrams)))
    assert sum(found[:20]) <= 3
    assert all(found[20:])


def test_many_classes_of_dependent_rows_are_judged_without_draws(monkeypatch) -> None:
    proba, y, design = _in_clusters(0, 0.5)
    never = np.column_stack([proba, np.full(600, 1e-9)])
    never /= never.sum(axis=1, keepdims=True)
    monkeypatch.setattr(reliability_file, "NULL_DRAWS", 20)
    diagrams = reliability(never, y, kind="top-label", smooth=False, sample_weight=design)
    off = beyond_noise(diagrams)
    assert any(off)
    assert not off[3]  # never predicted
    one = reliability(never, y, kind="top-label", label=3, smooth=False, sample_weight=design)
    assert beyond_noise(one) == (False,)


def _foreign(rows: int, cluster: object = None) -> list[tuple[float, float]]:
    """Ends of intervals of 24 foreign rows, each so many times, beside 200 in clusters."""
    rng = np.random.default_rng(3)
    ordinary, far = rng.normal(size=200), np.repeat(rng.normal(-1.0, 1.0, 24), rows)
    together = None if cluster is None else Dependence.of("cluster", cluster)
    said = ndtr(far)
    given = {"weight_in": RowDesign(None, Dependence.of("cluster", np.arange(200) // 5))}
    found = (
        ood_auroc(ordinary, far, dependence_out=together, **given),
        fpr_at_95_tpr(ordinary, far, dependence_out=together, **given),
        ood_calibration_error(np.column_stack([said, 1.0 - said]), [0.5, 0.5], dependence=together),
    )
    return [(one.low, one.high) for one in found]


def test_copies_of_foreign_rows_say_no_more_than_one_of_each() -> None:
    single, rows = _foreign(1), _foreign(8)
    assert _foreign(1, np.arange(24)) == single  # clusters of one row are rows
    together = _foreign(8, np.repeat(np.arange(24), 8))
    for one, copied, alone in zip(single, together, rows, strict=True):
        width = one[1] - one[0]
        assert copied[1] - copied[0] == pytest.approx(width, rel=0.15)
        assert alone[1] - alone[0] < 0.9 * width
    # a single cluster says nothing of others; the OCE is at most 0.5 here
    least = (0.5, 0.5, 0.49)
    for (low, high), width in zip(_foreign(8, np.zeros(192)), least, strict=True):
        assert high - low > width


def test_unknown_rows_of_clusters_change_less_surely() -> None:
    old, new = np.arange(40) < 4, np.arange(40) < 12
    copied = [np.repeat(one, 10) for one in (new, old)]
    together = Dependence.of("cluster", np.repeat(np.arange(80), 10))
    rows, clusters = unknown_change(*copied), unknown_change(*copied, dependence=together)
    assert rows.p_value < 1e-6
    assert 0.005 < clusters.p_value < 0.1
    assert clusters.test == "wild bootstrap by clusters"
    assert clusters.change.low < 0.05 < rows.change.low
    single = Dependence.of("cluster", np.arange(80))
    assert unknown_change(new, old, dependence=single) == unknown_change(new, old)
