"""What a calibrator file may name: these classes, and no others."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kdcal_core.errors import InputError

_HOME = "kdcal_core.calibration."
_REGIONS = f"{_HOME}regions"
_TREE = "kdcal_core.partition.tree"
#: Calibrators by the name of their class, with the module that holds it.
CALIBRATOR_HOMES: dict[str, str] = {
    "UncalibratedConfidence": f"{_HOME}uncalibrated",
    "TopLabelConfidence": f"{_HOME}class_confidence",
    "TopLabelHistogram": f"{_HOME}histogram",
    "TopLabelKDE": f"{_HOME}kde",
    "TemperatureScaling": f"{_HOME}temperature",
    "CumulativeConfidence": f"{_HOME}cumulative",
    "IsotonicConfidence": f"{_HOME}one_vs_rest",
    "SigmoidConfidence": f"{_HOME}one_vs_rest",
    "PlattScaling": f"{_HOME}log_odds_maps",
    "BetaCalibration": f"{_HOME}log_odds_maps",
    "ClasswiseHistogram": f"{_HOME}classwise_histogram",
    "VectorScaling": f"{_HOME}softmax_maps",
    "DirichletScaling": f"{_HOME}softmax_maps",
    "VennAbers": f"{_HOME}venn_abers",
    "HeterogeneousCalibrator": f"{_HOME}regions.calibrator",
    "KernelDensityCalibrator": f"{_HOME}graph.as_calibrator",
}
#: Frozen dataclasses in fitted state.
RECORD_HOMES: dict[str, str] = {
    "Curve": f"{_HOME}_curve",
    "InputColumn": f"{_TREE}.columns",
    "PartitionTree": f"{_TREE}.tree",
    "ColumnPartition": f"{_REGIONS}.columns",
    "Layer": f"{_REGIONS}.layers",
    "RegionFit": f"{_REGIONS}.flags",
    "LinearMaps": f"{_REGIONS}._linear",
    "IsotonicMaps": f"{_REGIONS}._isotonic",
    "HistogramMaps": f"{_REGIONS}._histogram",
    "TemperatureMaps": f"{_REGIONS}._temperature",
    "DensityMaps": f"{_REGIONS}._density",
    "Damped": f"{_REGIONS}.boosted",
}
#: Estimators that need their parent.
ESTIMATOR_HOMES: dict[str, str] = {
    "KernelDensityForest": f"{_HOME}graph.forest",
    "KernelDensityNetwork": f"{_HOME}graph.network",
}


def known_class(name: Any, homes: dict[str, str]) -> type[Any]:
    """The class of this name; it is imported from where this module says, not the file.

    Raises
    ------
    InputError
        There is none: the file is of a kdcal that knew it, or no work of kdcal at all.

    Examples
    --------
    >>> known_class("Curve", RECORD_HOMES).__name__
    'Curve'
    """
    if not isinstance(name, str) or name not in homes:
        raise InputError(
            f"The file holds a {str(name)[:60]!r}, which this kdcal does not know",
            fix="It was saved by a newer kdcal: install that one, or fit the calibrator again.",
        )
    found: type[Any] = getattr(import_module(homes[name]), name)
    return found
