"""Kernel density graphs (papers 000 and 001): calibrated inside the data, the prior outside."""

from __future__ import annotations

from kdcal_core.calibration.graph.forest import KernelDensityForest
from kdcal_core.calibration.graph.graph import KernelDensityGraph
from kdcal_core.calibration.graph.located import Located
from kdcal_core.calibration.graph.network import KernelDensityNetwork
from kdcal_core.calibration.graph.selection import Selection

__all__ = [
    "KernelDensityForest",
    "KernelDensityGraph",
    "KernelDensityNetwork",
    "Located",
    "Selection",
]
