"""A box dragged over a picture, as reported by the browser."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Range = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """A rectangle of a picture."""

    x: Range
    y: Range


def dragged_ranges(selection: Any) -> tuple[Range | None, Range | None]:
    """The ends, along x and along y, of the last box dragged on any panel; None without them.

    ``selection`` comes from the browser and may contain anything.
    """
    boxes = selection.get("box") if isinstance(selection, Mapping) else None
    if not isinstance(boxes, list) or not boxes or not isinstance(boxes[-1], Mapping):
        return None, None
    return _range(boxes[-1].get("x")), _range(boxes[-1].get("y"))


def dragged_box(selection: Any, whole: Box) -> Box:
    """The last box dragged, cut to the picture; without a box, the whole picture."""
    x, y = dragged_ranges(selection)
    if x is None or y is None:
        return whole
    box = Box(_cut(x, whole.x), _cut(y, whole.y))
    return box if box.x[0] < box.x[1] and box.y[0] < box.y[1] else whole


def carried(point: Any) -> Any:
    """The first value that a clicked mark carries, from the browser; None without one."""
    values = point.get("customdata") if isinstance(point, Mapping) else None
    if isinstance(values, Mapping):  # arrays may arrive as objects with numeric keys
        return values.get("0")
    return values[0] if isinstance(values, list | tuple) and values else None


def _range(ends: Any) -> Range | None:
    if not isinstance(ends, list | tuple) or len(ends) != 2:
        return None
    if not all(isinstance(end, int | float) and math.isfinite(end) for end in ends):
        return None
    return float(min(ends)), float(max(ends))


def _cut(ends: Range, to: Range) -> Range:
    low, high = (min(max(end, to[0]), to[1]) for end in ends)
    return low, high
