"""The sets of operators that a model names."""

from __future__ import annotations

from typing import Any

from kdcal_core.calibration.export.onnx_nodes import Nodes
from kdcal_core.errors import InputError

_LEAST_OPSET, _USUAL_OPSET = 13, 17


def check_opset(model: Any) -> None:
    """Name the usual operators where the model names none, and refuse a version that is too old.

    Raises
    ------
    InputError
    """
    from onnx import helper

    opset = next((one for one in model.opset_import if one.domain in ("", "ai.onnx")), None)
    if opset is None:
        model.opset_import.append(helper.make_opsetid("", _USUAL_OPSET))
    elif opset.version < _LEAST_OPSET:
        raise InputError(
            f"The model's operators are of version {opset.version}, and the calibrator needs "
            f"{_LEAST_OPSET} or newer",
            fix="Export the model again with a newer opset, or use the calibrator file.",
        )


def name_domains(model: Any, nodes: Nodes) -> None:
    """Name the sets of operators that the model did not need."""
    from onnx import helper

    named = {one.domain for one in model.opset_import}
    for domain in sorted({node.domain for node in nodes.nodes if node.domain} - named):
        model.opset_import.append(helper.make_opsetid(domain, 1))
