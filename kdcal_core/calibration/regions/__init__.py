"""Heterogeneous calibration: cut the inputs into regions and calibrate each.

The modules cite sections of Durfee et al., *Heterogeneous Calibration*,
https://arxiv.org/abs/2202.04837.
"""

from __future__ import annotations

from kdcal_core.calibration.regions.calibrator import HeterogeneousCalibrator
from kdcal_core.calibration.regions.flags import RegionFit
from kdcal_core.calibration.regions.hidden import layer_frame
from kdcal_core.calibration.regions.hierarchy import Hierarchy
from kdcal_core.calibration.regions.layers import Layer
from kdcal_core.calibration.regions.partitions import PARTITIONS
from kdcal_core.calibration.regions.region_map import RegionMap
from kdcal_core.calibration.regions.region_maps import MAPS, fit_maps
from kdcal_core.calibration.regions.scores import Scores

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
