"""Kernel density graphs (papers 000 and 001): calibrated inside the data, the prior outside."""

from __future__ import annotations

from kdcal_core.calibration.kernel_density.forest import KernelDensityForest
from kdcal_core.calibration.kernel_density.graph import KernelDensityGraph
from kdcal_core.calibration.kernel_density.located import Located
from kdcal_core.calibration.kernel_density.network import KernelDensityNetwork
from kdcal_core.calibration.kernel_density.selection import Selection

__all__ = [
    "KernelDensityForest",
    "KernelDensityGraph",
    "KernelDensityNetwork",
    "Located",
    "Selection",
]
