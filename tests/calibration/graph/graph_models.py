"""Rows and networks that the tests of this folder share."""

import numpy as np
import torch


def xor(n, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    corner = rng.integers(0, 2, (n, 2))
    X = corner - 0.5 + noise * rng.standard_normal((n, 2))
    return X, corner[:, 0] ^ corner[:, 1]


def network(seed=0, widths=(16, 16), n_features=2, n_classes=2):
    torch.manual_seed(seed)
    layers, before = [], n_features
    for width in widths:
        layers += [torch.nn.Linear(before, width), torch.nn.ReLU()]
        before = width
    return torch.nn.Sequential(*layers, torch.nn.Linear(before, n_classes))
