"""Panels side by side, set one below the other for a narrow screen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kdcal_core.charts.chart import ACROSS, UP

_ONE_COLUMN = 4  # panels at most; more stand in two columns
_GAP, _BETWEEN = 0.14, 92  # between columns, of the width; between rows, in pixels
_LEAST, _SQUARE = 190, {1: 270, 2: 130}  # height of a panel, and of a square one by columns
_NEAR, _USUAL = 1e-3, 450


@dataclass(frozen=True)
class _Panel:
    """An x axis with the y axes that are anchored to it, and the rectangle that they fill."""

    x: str
    ys: tuple[str, ...]
    left: float
    right: float
    low: float
    top: float

    def has_title(self, x: float, y: float) -> bool:
        """Whether the place is above it."""
        return self.left - _NEAR <= x <= self.right + _NEAR and abs(y - self.top) <= _NEAR


def stacked(layout: Mapping[str, Any]) -> dict[str, Any]:
    """What replaces parts of a figure's layout where three panels in a row would be cramped.

    Parameters
    ----------
    layout : mapping
        Of a figure as JSON.

    Returns
    -------
    dict
        By name of the part; empty if there is nothing to set below anything else.

    Examples
    --------
    >>> from kdcal_core.charts.chart import new_grid
    >>> wide = new_grid(["a", "b", "c"], False).to_dict()["layout"]
    >>> narrow = stacked(wide)
    >>> [narrow[f"xaxis{n}"]["domain"] for n in ("", 2, 3)]
    [[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]
    >>> narrow["yaxis"]["domain"][0] > narrow["yaxis2"]["domain"][1], narrow["height"] > 800
    (True, True)
    >>> stacked({**wide, **narrow})
    {}
    """
    panels = _panels(layout)
    named = any("ticktext" in layout[y] for one in panels for y in one.ys)
    columns = 1 if named or len(panels) <= _ONE_COLUMN else 2  # names need the width
    if len({round(one.left, 3) for one in panels}) <= columns:
        return {}
    margin = layout.get("margin", {})
    frame = margin.get("t", 0) + margin.get("b", 0)
    inside = layout.get("height", _USUAL) - frame
    each = max((one.top - one.low) * inside for one in panels)
    squared = any("scaleanchor" in layout[y] for one in panels for y in one.ys)
    each = _SQUARE[columns] if squared else max(each, _LEAST)
    rows = -(-len(panels) // columns)
    whole = rows * each + (rows - 1) * _BETWEEN
    found: dict[str, Any] = {"height": whole + frame}
    places = []
    for at, one in enumerate(panels):
        down, across = divmod(at, columns)
        width = (1.0 - _GAP * (columns - 1)) / columns
        left, top = across * (width + _GAP), 1.0 - down * (each + _BETWEEN) / whole
        low = max(top - each / whole, 0.0)
        places.append(_Panel(one.x, one.ys, left, left + width, low, top))
        found |= _axes(layout, panels, one, places[-1])
    found["annotations"] = [_moved(one, panels, places) for one in layout.get("annotations", ())]
    legend = layout.get("legend", {})
    if "y" in legend and legend.get("yref") != "container":
        found["legend"] = {**legend, "y": 1.0 + (legend["y"] - 1.0) * inside / whole}
    return found


def _panels(layout: Mapping[str, Any]) -> list[_Panel]:
    """From the left of the top row to the right of the lowest one."""
    found = []
    for x in (one for one in layout if one.startswith("xaxis")):
        name = x.replace("axis", "")
        ys = tuple(
            one
            for one in layout
            if one.startswith("yaxis") and layout[one].get("anchor", "x") == name
        )
        if not ys or "domain" not in layout[x] or any("domain" not in layout[y] for y in ys):
            continue
        ends = [layout[y]["domain"] for y in ys]
        low, top = min(one[0] for one in ends), max(one[1] for one in ends)
        left, right = layout[x]["domain"]
        found.append(_Panel(x, ys, left, right, low, top))
    return sorted(found, key=lambda one: (-round(one.top, 3), one.left))


def _axes(
    layout: Mapping[str, Any], panels: list[_Panel], one: _Panel, place: _Panel
) -> dict[str, Any]:
    """The axes of a panel at its new place, each with the numbers and title of the outer ones."""
    outer = layout[panels[-1].x]
    found: dict[str, Any] = {
        one.x: {
            **layout[one.x],
            "domain": [place.left, place.right],
            "showticklabels": outer.get("showticklabels", True),
        }
    }
    high, new = one.top - one.low, place.top - place.low
    for y, first in zip(one.ys, panels[0].ys, strict=False):
        ends = [place.low + (end - one.low) / high * new for end in layout[y]["domain"]]
        kept = {key: layout[first][key] for key in ("title",) if key in layout[first]}
        shown = layout[first].get("showticklabels", True)
        found[y] = {**layout[y], **kept, "domain": ends, "showticklabels": shown}
    return found


def _moved(note: Mapping[str, Any], panels: list[_Panel], places: list[_Panel]) -> dict[str, Any]:
    """The title of a panel above it; what belongs to the figure stays."""
    paper = note.get("xref") == note.get("yref") == "paper"
    if not paper or note.get("name") in (ACROSS, UP):
        return dict(note)
    for one, place in zip(panels, places, strict=True):
        if one.has_title(note["x"], note["y"]):
            across = (note["x"] - one.left) / (one.right - one.left)
            x = place.left + across * (place.right - place.left)
            return {**note, "x": x, "y": place.top}
    return dict(note)
