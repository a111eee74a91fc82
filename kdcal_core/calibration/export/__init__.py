"""Export of calibrators: as files without pickle, and as part of an ONNX model."""

from __future__ import annotations

from kdcal_core.calibration.export.calibrator_file import (
    LoadedCalibrator,
    load_calibrator,
    save_calibrator,
)
from kdcal_core.calibration.export.card import (
    CalibratorCard,
    make_card,
)
from kdcal_core.calibration.export.onnx_export import OnnxExport, can_export_onnx, export_onnx
from kdcal_core.models.file_marks import CardEstimate, DataMark, ModelMark

__all__ = [
    "CalibratorCard",
    "CardEstimate",
    "DataMark",
    "LoadedCalibrator",
    "ModelMark",
    "OnnxExport",
    "can_export_onnx",
    "export_onnx",
    "load_calibrator",
    "make_card",
    "save_calibrator",
]


def __dir__() -> list[str]:
    return sorted(__all__)
