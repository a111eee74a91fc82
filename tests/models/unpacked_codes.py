"""Codes of ReLU layers as the booleans that they hold."""

import numpy as np


def bits_of(codes):
    """One boolean array a layer, by the definition of the packing."""
    layers = []
    for width, part in zip(codes.layer_widths, codes.layer_slices(), strict=True):
        words = codes.words[:, part]
        j = np.arange(width)
        layers.append((words[:, j // 64] >> (j % 64).astype(np.uint64)) & np.uint64(1) == 1)
    return layers
