import numpy as np
import pytest
from made_reviews import scored
from scipy.stats import binomtest

from kdcal_core.diagnostics import histogram_anchor, top_label_losses, two_halves
from kdcal_core.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore::kdcal_core.errors.InputWarning")


def test_losses_are_equations_14_and_15():
    data = scored()
    predicted = data.proba.argmax(axis=1)
    weight = np.random.default_rng(1).uniform(0.5, 2, 300)
    confidence = np.random.default_rng(2).random(300)
    confidence[:2] = 0.0, 1.0
    got = top_label_losses(
        {"m": confidence}, predicted, data.y, n_classes=4, rows="r", sample_weight=weight
    )
    for k in range(3):
        tp = (predicted == k) & (data.y == k)
        fp = (predicted == k) & (data.y != k)
        p = np.clip(confidence, 1e-12, 1 - 1e-12)
        nll = -(weight * np.log(p))[tp].sum() - (weight * np.log(1 - p))[fp].sum()
        brier = (weight * (1 - confidence) ** 2)[tp].sum() + (weight * confidence**2)[fp].sum()
        mass = weight[tp | fp].sum()
        assert got.nll[0, k] == pytest.approx(nll / mass)
        assert got.brier[0, k] == pytest.approx(brier / mass)
        assert got.n[k] == (tp | fp).sum()
    assert np.isnan(got.nll[0, 3])
    assert got.overall_nll[0] == pytest.approx(
        np.average(got.nll[0, :3], weights=np.bincount(predicted, weights=weight))
    )
    assert (got.nll_low[0, :3] < got.nll[0, :3]).all()
    assert len(got.table()) == 4


def test_intervals_cover_the_mean_as_often_as_they_say():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(300):
        confidence = rng.random(400)
        y = (rng.random(400) >= confidence).astype(int)
        got = top_label_losses({"m": confidence}, np.zeros(400, int), y, n_classes=2, rows="r")
        covered += got.brier_low[0, 0] <= 1 / 6 <= got.brier_high[0, 0]
    assert 0.91 <= covered / 300 <= 0.985


def test_anchor_is_equation_5_with_clopper_pearson():
    data = scored(500)
    anchor = histogram_anchor(data.proba, data.y, label=1, n_bins=8)
    predicted, score = data.proba.argmax(axis=1), data.proba.max(axis=1)
    for b in range(8):
        mine = (predicted == 1) & (score > b / 8) & (score <= (b + 1) / 8)
        assert anchor.count[b] == mine.sum()
        if not mine.any():
            assert np.isnan([anchor.confidence[b], anchor.low[b], anchor.high[b]]).all()
            continue
        right = int((data.y[mine] == 1).sum())
        exact = binomtest(right, int(mine.sum())).proportion_ci(0.95, "exact")
        assert anchor.confidence[b] == pytest.approx(right / mine.sum())
        assert anchor.low[b] == pytest.approx(exact.low)
        assert anchor.high[b] == pytest.approx(exact.high)
    assert len(anchor.table()) == 8


def test_the_anchor_of_a_class_counts_all_rows_at_its_probability():
    data = scored(500)
    weight = np.random.default_rng(2).uniform(0.2, 3.0, 500)
    anchor = histogram_anchor(
        data.proba, data.y, label=1, kind="class", n_bins=8, sample_weight=weight
    )
    p = data.proba[:, 1]
    for b in range(8):
        mine = (p > b / 8) & (p <= (b + 1) / 8) if b else p <= 1 / 8
        assert anchor.count[b] == mine.sum()
        if mine.any():
            share = weight[mine & (data.y == 1)].sum() / weight[mine].sum()
            assert anchor.confidence[b] == pytest.approx(share)
    assert anchor.count.sum() == 500
    halves = two_halves(data.proba, data.y, label=1, kind="class", seed=1)
    assert {one.kind for one in halves} == {anchor.kind} == {"class"}
    assert sum(one.count.sum() for one in halves) == 500


def test_halves_share_no_row_and_use_all():
    data = scored(401)
    whole = histogram_anchor(data.proba, data.y, label=2)
    first, second = two_halves(data.proba, data.y, label=2, seed=3)
    np.testing.assert_array_equal(first.count + second.count, whole.count)
    again, _ = two_halves(data.proba, data.y, label=2, seed=3)
    np.testing.assert_array_equal(again.count, first.count)
    with pytest.raises(InputError, match="no class 3"):
        histogram_anchor(data.proba, data.y, label=3)
    with pytest.raises(InputError, match="halved"):
        two_halves(data.proba[:1], data.y[:1], label=0)


def test_a_class_without_errors_does_not_look_certain():
    said = {"sure": np.full(30, 1.0), "modest": np.full(30, 0.9)}
    zeros = np.zeros(30, dtype=int)
    got = top_label_losses(said, zeros, zeros, n_classes=2, rows="thirty rows, all right")
    assert (got.nll_high[:, 0] > got.nll[:, 0]).all()
    assert (got.brier_high[:, 0] > got.brier[:, 0]).all()
    # one error among the next thirty rows would not surprise; the interval allows for it
    assert got.nll_high[0, 0] > -np.log(1e-12) / 30
