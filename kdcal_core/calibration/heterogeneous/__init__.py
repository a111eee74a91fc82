"""Heterogeneous calibration: cut the inputs into regions and calibrate each (paper 004)."""

from __future__ import annotations

from kdcal_core.calibration.heterogeneous.calibrator import HeterogeneousCalibrator
from kdcal_core.calibration.heterogeneous.flags import RegionFit
from kdcal_core.calibration.heterogeneous.hidden import layer_frame
from kdcal_core.calibration.heterogeneous.hierarchy import Hierarchy
from kdcal_core.calibration.heterogeneous.layers import Layer
from kdcal_core.calibration.heterogeneous.partitions import PARTITIONS
from kdcal_core.calibration.heterogeneous.region_maps import MAPS, fit_maps
from kdcal_core.calibration.heterogeneous.scores import Scores

__all__ = [
    "MAPS",
    "PARTITIONS",
    "HeterogeneousCalibrator",
    "Hierarchy",
    "Layer",
    "RegionFit",
    "Scores",
    "fit_maps",
    "layer_frame",
]
