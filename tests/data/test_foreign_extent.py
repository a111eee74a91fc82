"""Where a table's rows lie: values that no distance can be measured by."""

import numpy as np
import pandas as pd
import pytest

from kdcal_core.data.foreign_rows import extent
from kdcal_core.errors import InputError


@pytest.mark.parametrize("value", [1e300, -1e160])
def test_a_column_of_vast_values_is_one_clear_error(value):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "vast": [value, 1.0, 2.0]})
    with np.errstate(all="raise"), pytest.raises(InputError, match="beyond 1e100") as error:
        extent(frame)
    assert error.value.column == "vast"


def test_large_values_that_can_be_squared_are_measured():
    frame = pd.DataFrame({"a": [0.0, 1e99, 2e99]})
    with np.errstate(over="raise"):
        assert extent(frame).reach == pytest.approx(1.5**0.5)
