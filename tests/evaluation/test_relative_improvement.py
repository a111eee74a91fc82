"""Relative improvement against its definition."""

import numpy as np
import pytest

from kdcal_core.errors import InputError
from kdcal_core.evaluation import relative_improvement


def test_improvement_is_equation_21():
    assert float(relative_improvement(0.4, 0.1)) == pytest.approx((0.4 - 0.1) / 0.4)
    assert float(relative_improvement(0.1, 0.4)) == pytest.approx(-3.0)
    grid = relative_improvement([[0.2], [0.4]], [0.1, 0.2])
    np.testing.assert_allclose(grid, [[0.5, 0.0], [0.75, 0.5]])


def test_a_model_without_error_can_only_be_held_or_lost():
    change = relative_improvement([0.0, 0.0], [0.0, 1e-9])
    assert change.tolist() == [0.0, -np.inf]


def test_values_that_are_none_are_refused():
    with pytest.raises(InputError) as caught:
        relative_improvement([0.1, -0.2], [0.1, 0.1])
    assert caught.value.row == 2
    with pytest.raises(InputError, match="method"):
        relative_improvement(0.1, np.nan)
