"""Picks on the map of faults: neighbourhoods by a click, parts of the map by a box."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from app.shared.box_selection import Range, carried, dragged_ranges
from kdcal_core.diagnostics import OPPOSITE_FAULTS, LocalPit

MOST = 2
NAMES = ("A", "B")


@dataclass(frozen=True)
class Centre:
    """A row whose neighbourhood was picked, as an index into the rows of the local view."""

    row: int


@dataclass(frozen=True)
class Box:
    """A rectangle of the map. Without ``y`` it reaches from the bottom to the top."""

    x: Range
    y: Range | None


Pick = Centre | Box


def picked(
    selection: Any, local: LocalPit, *, only_across: bool = False
) -> Pick | Literal["nothing", "cleared"]:
    """The pick of a selection on the map; ``selection`` comes from the browser.

    A box takes precedence over the marks in it; of several boxes the last one counts.

    Parameters
    ----------
    only_across : bool
        Whether a box picks by its width only, because the vertical axis is the outcome: rows
        chosen by their outcome would make every prediction look wrong.

    Returns
    -------
    Pick, or "cleared" if the selection is empty, or "nothing" if it makes no sense
    """
    if not isinstance(selection, Mapping):
        return "nothing"
    boxes, points = selection.get("box"), selection.get("points")
    if isinstance(boxes, list) and boxes:
        return _box(selection, only_across) or "nothing"
    if isinstance(points, list) and points:
        return _centre(points[-1], local) or "nothing"
    return "cleared"


def _box(selection: Any, only_across: bool) -> Box | None:
    x, y = dragged_ranges(selection)
    if x is None or (y is None and not only_across):
        return None
    return Box(x, None if only_across else y)


def _centre(point: Any, local: LocalPit) -> Centre | None:
    """The centre with the row of the mark; marks of other rows are ignored."""
    row = carried(point)
    if not isinstance(row, int | float) or row not in local.rows:
        return None
    return Centre(int(row))


def with_pick(before: tuple[Pick, ...], pick: Pick) -> tuple[Pick, ...]:
    """The picks after one more; the oldest is dropped if there are too many."""
    return (*(one for one in before if one != pick), pick)[-MOST:]


MOST_LISTED = 500


def furthest_off(local: LocalPit) -> list[int]:
    """Positions of the neighbourhoods to choose from: those with a fault first, the worst first."""
    order = np.lexsort((-local.severity, local.kind == "none"))
    return [int(at) for at in order[:MOST_LISTED]]


def suggested(local: LocalPit) -> tuple[Pick, ...]:
    """The neighbourhoods to show before a pick; empty if no fault was found.

    If there are opposite faults, the worst of each; otherwise the worst of the two kinds that are
    furthest off.
    """
    away = local.severity
    worst = {
        str(kind): int(np.argmax(np.where(local.kind == kind, away, -1.0)))
        for kind in np.unique(local.kind[local.kind != "none"])
    }
    kinds = sorted(worst, key=lambda kind: -away[worst[kind]])
    shown = next((pair for pair in OPPOSITE_FAULTS if set(pair) <= set(kinds)), kinds[:MOST])
    return tuple(Centre(int(local.rows[worst[kind]])) for kind in shown)
