"""Ten samples a row, calibrated or too narrow: every recalibration reaches beyond the samples."""

import numpy as np
import pytest

from kdcal_core.distributions import Empirical
from kdcal_core.regression import RECALIBRATORS


def ensemble(n, width, seed, m=10):
    """Members of ``width`` times the spread of the outcomes."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return Empirical(x[:, None] + width * rng.normal(size=(n, m))), x + rng.normal(size=n), x


@pytest.mark.parametrize("width", [1.0, 0.5])
@pytest.mark.parametrize("key", ["local", "where_needed", "global", "isotonic"])
def test_95_percent_intervals_hold_what_they_state(key, width):
    fitted = RECALIBRATORS[key].make().fit(*ensemble(800, width, 0))
    after, y, x = ensemble(2500, width, 1)
    after = fitted.predict(after, x)
    low, high = after.interval(0.95)
    assert 0.93 < np.mean((low <= y) & (y <= high)) < 0.97
    assert np.isfinite(after.log_density(y)).all()


def test_density_recalibration_reaches_beyond_the_samples():
    fitted = RECALIBRATORS["density"].make().fit(*ensemble(800, 0.5, 0))
    after, y, _ = ensemble(1500, 0.5, 1)
    low, high = fitted.predict(after).interval(0.95)
    assert np.mean((low <= y) & (y <= high)) > 0.92


def test_a_calibrated_ensemble_is_left_alone_where_nothing_is_needed():
    fitted = RECALIBRATORS["where_needed"].make().fit(*ensemble(800, 1.0, 0))
    assert not fitted.test_.needed.any()


@pytest.mark.parametrize("m", [3, 10])
@pytest.mark.parametrize("key", ["local", "global", "isotonic", "density"])
@pytest.mark.filterwarnings("ignore:.*outcomes lie outside")
def test_outcomes_beyond_equal_samples_send_no_other_row_to_the_far_end(key, m):
    """Of few steps many are equal: no tail, so PIT 1, which was a CRPS of 90,000 elsewhere."""
    rng, n = np.random.default_rng(m), 800
    x = rng.normal(size=2 * n)
    drawn = rng.poisson(np.exp(0.7 + 0.4 * x)[:, None], (2 * n, m + 1)) * 0.3 + 0.05
    rows, y = Empirical(drawn[:, 1:]), drawn[:, 0]
    fitted = RECALIBRATORS[key].make().fit(rows[:n], y[:n], x[:n])
    assert fitted.n_outside_ > 0  # still counted, and warned of where they are many
    after = fitted.predict(rows[n:], x[n:])
    assert after.crps(y[n:]).mean() < 1.06 * rows[n:].crps(y[n:]).mean()


@pytest.mark.parametrize("key", ["local", "global", "isotonic"])
@pytest.mark.parametrize("averaged", [1, 2], ids=["calibrated", "too narrow"])
def test_intervals_of_five_counts_a_row_hold_what_they_state(key, averaged):
    """Equal samples had no tail, and 95% intervals then held 86 to 94%."""

    def counts(n, seed):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=n)
        rate = 2.0 * np.exp(0.5 * x)
        members = rng.poisson(rate[:, None, None], (n, 5, averaged)).mean(axis=2)
        return Empirical(np.round(members)), rng.poisson(rate).astype(float), x

    fitted = RECALIBRATORS[key].make().fit(*counts(2000, 0))
    assert fitted.n_outside_ == 0
    rows, y, x = counts(4000, 1)
    low, high = fitted.predict(rows, x).interval(0.95)
    assert 0.92 < np.mean((low <= y) & (y <= high)) < 0.985
