"""Measures by predicted class and of foreign rows, where rows depend on one another."""

from __future__ import annotations

import numpy as np
import pytest

from kdcal_core.diagnostics import (
    confusion,
    fpr_at_95_tpr,
    histogram_anchor,
    ood_auroc,
    reliability,
    top_label_losses,
    two_halves,
    unknown_share,
)
from kdcal_core.diagnostics.reliability import _pool
from kdcal_core.diagnostics.targets import class_shares
from kdcal_core.statistics import Dependence, RowDesign, effective_size


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
