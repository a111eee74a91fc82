"""The form of a figure that a browser draws once.

Streamlit gives plotly a copy of every figure just after it was drawn, with the width that the page
then has. plotly draws a copy again if it may differ: it compares lists with ``datarevision``, but
takes packed arrays and templates for new ones. Lists are therefore sent, and a layout without a
template.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import numpy as np
import plotly.graph_objects as go
import plotly.io

from kdcal_core.data import FloatArray

_EXACT = 22.0  # the last power of ten that a float holds exactly


class DrawnFigure(go.Figure):  # type: ignore[misc]
    """A figure that is not changed: the form that is sent to the browser is made once."""

    _sent: dict[str, Any]

    @classmethod
    def of(cls, figure: go.Figure) -> DrawnFigure:
        """The figure itself, just drawn, because plotly would check every value of a copy again."""
        sent: dict[str, Any] = _as_lists(figure.to_dict())
        sent["layout"] = _without_template(sent["layout"], sent["data"])
        content = plotly.io.to_json(sent, validate=False).encode()
        sent["layout"]["datarevision"] = hashlib.sha256(content).hexdigest()[:16]
        figure.__class__ = cls
        drawn: DrawnFigure = figure
        drawn._sent = sent
        return drawn

    def to_dict(self) -> dict[str, Any]:
        """The data sent to the browser; shared, and must not be changed."""
        return self._sent


def _as_lists(value: Any) -> Any:
    """A part of a figure with lists in place of packed arrays."""
    if isinstance(value, dict):
        if "bdata" in value:
            return _unpacked(value)
        return {key: _as_lists(part) for key, part in value.items()}
    return [_as_lists(part) for part in value] if isinstance(value, list | tuple) else value


def _unpacked(packed: dict[str, Any]) -> list[Any]:
    values = np.frombuffer(base64.b64decode(packed["bdata"]), packed["dtype"])
    if values.dtype.kind == "f":
        values = _seven_digits(values.astype(np.float64))
    shape = [int(n) for n in str(packed.get("shape", "-1")).split(",")]
    unpacked: list[Any] = values.reshape(shape).tolist()
    return unpacked


def _seven_digits(values: FloatArray) -> FloatArray:
    """Numbers as short as a screen needs them: half of what is sent, parsed and copied.

    Whole numbers, such as those of rows, and the smallest p values stay as they are.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        decimals = np.nan_to_num(6.0 - np.floor(np.log10(np.abs(values))))
    scale = 10.0 ** np.clip(decimals, 0.0, _EXACT)
    return np.where(decimals > _EXACT, values, np.rint(values * scale) / scale)


def _without_template(layout: dict[str, Any], traces: list[dict[str, Any]]) -> dict[str, Any]:
    """The layout with what its template says wherever it says nothing itself."""
    said = layout.get("template", {}).get("layout", {})
    axes = {_axis(trace.get(f"{way}axis", way)) for trace in traces for way in "xy"}
    axes |= {key for key in layout if _is_axis(key)}
    filled = {key: value for key, value in said.items() if not _is_axis(key)}
    counted = {_axis(_along(trace)) for trace in traces if trace["type"] in ("bar", "box")}
    for axis in sorted(axes):
        if axis[:5] in said:
            # as plotly decides where a template says the colour, and not where a layout does
            lines = {"showline": False, "showgrid": axis not in counted}
            filled[axis] = {**lines, **said[axis[:5]]}
    own = {key: value for key, value in layout.items() if key != "template"}
    merged: dict[str, Any] = _merged(filled, own)
    return merged


def _is_axis(key: str) -> bool:
    return key.startswith(("xaxis", "yaxis"))


def _along(trace: dict[str, Any]) -> str:
    """The axis along which bars stand side by side."""
    way = "y" if trace.get("orientation") == "h" else "x"
    reference: str = trace.get(f"{way}axis", way)
    return reference


def _axis(reference: str) -> str:
    """The layout's name of an axis: "y2" is "yaxis2"."""
    return f"{reference[0]}axis{reference[1:]}"


def _merged(below: Any, above: Any) -> Any:
    """``above``, in its own order, and then what only ``below`` says."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    own = {key: _merged(below.get(key), value) for key, value in above.items()}
    return own | {key: value for key, value in below.items() if key not in above}
