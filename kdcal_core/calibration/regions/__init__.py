"""Heterogeneous calibration: divide the inputs into regions and calibrate each.

The modules cite sections of Durfee et al., *Heterogeneous Calibration*,
https://arxiv.org/abs/2202.04837.
"""

from __future__ import annotations

from kdcal_core.calibration.regions.heterogeneous import (
    PARTITIONS,
    HeterogeneousCalibrator,
    layer_frame,
)
from kdcal_core.calibration.regions.region_layers import MAPS, Layer, RegionFit, RegionMap, fit_maps
from kdcal_core.calibration.regions.scores_and_hierarchy import Hierarchy, Scores

__all__ = [
    "MAPS",
    "PARTITIONS",
    "HeterogeneousCalibrator",
    "Hierarchy",
    "Layer",
    "RegionFit",
    "RegionMap",
    "Scores",
    "fit_maps",
    "layer_frame",
]


def __dir__() -> list[str]:
    return sorted(__all__)
