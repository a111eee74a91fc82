"""Every recalibrator of the registry can be made, fitted and asked in one way."""

import inspect

import numpy as np
import pytest

from kdcal_core.distributions import Normal
from kdcal_core.regression import RECALIBRATORS, Recalibrator

each = pytest.mark.parametrize("key", list(RECALIBRATORS))


# "recommended" answers as one of the others, and fits them all to choose: test_recommended.py
@pytest.mark.parametrize("key", [key for key in RECALIBRATORS if key != "recommended"])
def test_it_repairs_a_model_that_is_too_wide(key):
    spec = RECALIBRATORS[key]
    rng = np.random.default_rng(0)
    space = rng.normal(size=(600, 2))
    mean = space[:, 0]
    y = rng.normal(mean, 1.0)
    settings = {"k": 100} if "k" in spec.settings else {}
    fitted = spec.make(**settings).fit(Normal(mean, np.full(600, 3.0)), y, space)
    assert isinstance(fitted, Recalibrator)
    recalibrated = fitted.predict(Normal(mean[:200], np.full(200, 3.0)), space[:200])
    assert len(recalibrated) == 200
    assert np.all(np.abs(recalibrated.std() - 1) < 0.75)


@each
def test_what_people_read_is_there(key):
    spec = RECALIBRATORS[key]
    assert spec.key == key
    assert spec.sentence.endswith(".")
    assert spec.reference
    assert set(spec.settings) <= set(inspect.signature(spec.make).parameters)
