"""Models and estimators that the tests of this folder share."""

import pytest
from graph_models import xor
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier

from kdcal_core.calibration import KernelDensityForest, KernelDensityNetwork


@pytest.fixture(scope="module")
def forest():
    return RandomForestClassifier(30, random_state=0).fit(*xor(300))


@pytest.fixture(scope="module")
def net():
    return MLPClassifier((16, 16), random_state=0, max_iter=400).fit(*xor(300))


@pytest.fixture(scope="module")
def fitted(forest, net):
    rows = *xor(300, seed=1), *xor(200, seed=2)
    return {
        "forest": KernelDensityForest(forest).fit(*rows),
        "network": KernelDensityNetwork(net).fit(*rows),
        "euclidean": KernelDensityForest(forest, distance="euclidean").fit(*rows),
    }
