"""An estimate is used as a number and as text, as scores of scikit-learn are."""

from dataclasses import replace

import numpy as np
import pytest

from kdcal_core.diagnostics import Estimate

LOSS = Estimate("Log loss", "Log loss", 0.51234, 0.4, 0.6, 300)


def test_it_converts_to_a_number():
    assert float(LOSS) == 0.51234
    assert np.float64(LOSS) == 0.51234
    assert np.array([LOSS, LOSS], dtype=float).tolist() == [0.51234, 0.51234]
    assert np.isnan(float(Estimate("AUC", "AUC", np.nan, np.nan, np.nan, 3)))


def test_it_rounds():
    assert round(LOSS, 2) == 0.51
    assert isinstance(round(LOSS), int)


def test_a_format_takes_the_value_and_none_the_interval_too():
    assert f"{LOSS:.3f} {LOSS:>8.1%}" == "0.512    51.2%"
    assert f"{LOSS}" == str(LOSS) == "0.51 (0.40 to 0.60)"
    with pytest.raises(ValueError, match="format"):
        format(LOSS, "no form")


def test_what_both_lack_is_the_same():
    one, other = (Estimate("", "", 0.5, float("nan"), float("nan"), 9) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert one != replace(other, low=0.5)
    assert one != replace(other, n=10)
    assert one != 0.5
