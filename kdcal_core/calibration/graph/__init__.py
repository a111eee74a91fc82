"""Kernel density graphs: calibrated inside the data, the prior outside.

The modules cite sections and equations of Dey et al., *Simple Calibration via Geodesic Kernels*,
https://openreview.net/forum?id=dpcRp8ix5T. The earlier paper is Dey et al., *Deep Discriminative
to Kernel Density Graph*, https://arxiv.org/abs/2201.13001v8.
"""

from __future__ import annotations

from kdcal_core.calibration.graph.forest_and_network import (
    KernelDensityForest,
    KernelDensityNetwork,
)
from kdcal_core.calibration.graph.gamma_floor_blend import Selection
from kdcal_core.calibration.graph.gaussians import Located
from kdcal_core.calibration.graph.graph import KernelDensityGraph

__all__ = [
    "KernelDensityForest",
    "KernelDensityGraph",
    "KernelDensityNetwork",
    "Located",
    "Selection",
]


def __dir__() -> list[str]:
    return sorted(__all__)
