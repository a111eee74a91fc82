"""Two rows on their way through a forest or a network (Dey et al., Fig. 1).

A forest is drawn tree by tree, as a line to the leaf that both rows share or a fork to their two
leaves. A network is drawn layer by layer, one mark a unit, with some of the paths on which both
rows are activated identically.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from kdcal_core.charts.chart import LEGEND_BELOW, Chart, new_figure
from kdcal_core.charts.marks import hovered
from kdcal_core.charts.palette import Palette, faded, method_style, palette
from kdcal_core.data import IntArray
from kdcal_core.partition import RowPair
from kdcal_core.text import counted, listed

Places = tuple[NDArray[Any], NDArray[Any]]
MOST_TREES, MOST_UNITS, MOST_LAYERS = 100, 24, 8
"""How many are drawn; the kernel counts all."""
_TREES_ACROSS = 13
_PATHS = 5
_TREE, _LAYER, _AROUND = 40, 58, 74  # pixels
_TO_LEAF = 0.62  # of the distance between two rows of trees
_APART = 0.24  # of a leaf from the middle of its tree

FOREST = r"""
Each fork is a tree of the model. A **straight line** to one filled mark: both rows fall into the
same leaf. A **fork**: the first row falls into one leaf (circle), the second into another
(diamond). The kernel $\mathcal{K}$ is the share of trees with a straight line, and the geodesic
distance is $1-\mathcal{K}$ (Dey et al., Fig. 1 and Eq. 11 and 13). Rows with $\mathcal{K}=1$ share
a polytope.
"""
NETWORK = r"""
Each mark is a ReLU unit, and each line of marks a layer. **Filled:** the unit is on for both rows.
**Hollow:** it is off for both, which counts as equal too. **Grey triangles:** on for one row only.
An activation path takes one unit of each layer; a few of the paths on which both rows are equal are
drawn. The kernel $\mathcal{K}$ is the share of such paths, which is the product of the layers'
shares of equal units, and the geodesic distance is $1-\mathcal{K}$ (Dey et al., Fig. 1 and Eq. 12
and 13). Rows with $\mathcal{K}=1$ share a polytope.
"""


def row_pair_chart(pair: RowPair, rows: tuple[int, int], *, dark: bool = False) -> Chart:
    """Two rows in the model's partition.

    Parameters
    ----------
    rows : tuple of two int
        Their positions in the table, from 0; the screen counts from 1.
    """
    forest = not pair.layer_widths
    names = (f"row {rows[0] + 1:,}", f"row {rows[1] + 1:,}")
    draw = _forest if forest else _network
    finding = row_pair_finding(pair, rows)
    return Chart(
        draw(pair, names, dark),
        finding=finding,
        alt=f"{'Trees' if forest else 'Units'} that two rows share. {finding}",
        how_to_read=FOREST if forest else NETWORK,
        table=lambda: _table(pair, names),
        name="rows in the partition",
    )


def row_pair_finding(pair: RowPair, rows: tuple[int, int]) -> str:
    """What two rows share, with the kernel, the distance, and how much of it is drawn.

    Examples
    --------
    >>> pair = RowPair(np.array([4, 2]), np.array([4, 3]), (), 0.5)
    >>> row_pair_finding(pair, (0, 6))
    'Rows 1 and 7 share the leaf in 1 of 2 trees: K = 0.500, geodesic distance 0.500.'
    """
    named = f"Rows {rows[0] + 1:,} and {rows[1] + 1:,}"
    kernel = f"K = {pair.kernel:.3f}, geodesic distance {1 - pair.kernel:.3f}."
    if not pair.layer_widths:
        n, drawn = len(pair.first), len(_even(len(pair.first), MOST_TREES))
        shared = int(pair.same.sum())
        left_out = f" {drawn:,} of {n:,} trees are drawn." if drawn < n else ""
        return f"{named} share the leaf in {shared:,} of {counted(n, 'tree')}: {kernel}{left_out}"
    shares = [
        f"{int(pair.same[units].sum()):,} of {counted(width, 'unit')} of layer {at}"
        for at, (units, width) in enumerate(zip(pair.layers(), pair.layer_widths, strict=True), 1)
    ]
    left_out = ""
    if max(pair.layer_widths) > MOST_UNITS:
        left_out = f" At most {MOST_UNITS} units of a layer are drawn."
    if len(pair.layer_widths) > MOST_LAYERS:
        left_out += f" The first {MOST_LAYERS} of {len(pair.layer_widths)} layers are drawn."
    return (
        f"{named} are equal in {listed(shares)}, so on {pair.kernel:.1%} of the activation paths: "
        f"{kernel}{left_out}"
    )


def _even(n: int, most: int) -> IntArray:
    """Positions 0 to n - 1, or an even share of them."""
    return np.arange(n) if n <= most else np.arange(most) * n // most


def _forest(pair: RowPair, names: tuple[str, str], dark: bool) -> go.Figure:
    colours, drawn = palette(dark), _even(len(pair.first), MOST_TREES)
    across = min(_TREES_ACROSS, len(drawn))
    down, x = np.divmod(np.arange(len(drawn)), across)
    same, top = pair.same[drawn], -down.astype(np.float64)
    low = top - _TO_LEAF
    shared, figure = _shared(colours), new_figure(dark, height=_AROUND + _TREE * (down[-1] + 1))
    fork = ~same
    left, right = x - _APART, x + _APART
    figure.add_traces(
        [
            _lines(
                [(left[fork], low[fork]), (x[fork], top[fork]), (right[fork], low[fork])],
                faded(colours.muted, 0.6),
                1,
            ),
            _lines([(x[same], top[same]), (x[same], low[same])], shared, 3),
            _marks(
                (x[same], low[same]),
                "Both rows",
                {"symbol": "circle", "size": 9, "color": shared},
                hovered(
                    "Tree {:,.0f}: both in leaf {:.0f}", drawn[same] + 1, pair.first[drawn][same]
                ),
            ),
        ]
    )
    for name, place, leaves, symbol in (
        (names[0], left, pair.first, "circle-open"),
        (names[1], right, pair.second, "diamond-open"),
    ):
        figure.add_trace(
            _marks(
                (place[fork], low[fork]),
                f"{name.capitalize()} alone",
                {"symbol": symbol, "size": 7, "color": colours.muted},
                hovered(
                    f"Tree {{:,.0f}}: {name} in leaf {{:.0f}}",
                    drawn[fork] + 1,
                    leaves[drawn][fork],
                ),
            )
        )
    _plain_axes(figure, (-0.6, across - 0.4), (float(low[-1]) - 0.3, 0.2))
    return figure


def _network(pair: RowPair, names: tuple[str, str], dark: bool) -> go.Figure:
    colours = palette(dark)
    layers = pair.layers()[:MOST_LAYERS]
    units = [part.start + _even(part.stop - part.start, MOST_UNITS) for part in layers]
    widest = max(map(len, units))
    # a narrow layer stands in the middle
    x = [np.arange(len(one)) + (widest - len(one)) / 2 for one in units]
    y = [np.full(len(one), -float(at)) for at, one in enumerate(units)]
    number = np.concatenate([one - part.start + 1 for one, part in zip(units, layers, strict=True)])
    layer = np.repeat(np.arange(1, len(units) + 1), [len(one) for one in units])
    every, at_x, at_y = np.concatenate(units), np.concatenate(x), np.concatenate(y)
    on, other = pair.first[every] == 1, pair.second[every] == 1
    shared = _shared(colours)
    figure = new_figure(dark, height=_AROUND + _LAYER * len(units))
    alike = [across[pair.same[one]] for across, one in zip(x, units, strict=True)]
    if len(units) > 1 and all(map(len, alike)):
        paths = np.array([one[_even(len(one), _PATHS)[_spread(len(one))]] for one in alike])
        points = [(across, np.full(_PATHS, -float(at))) for at, across in enumerate(paths)]
        figure.add_trace(_lines(points, faded(shared, 0.55), 2))
    for which, name, said, mark in (
        (on & other, "On for both", "on for both rows", {"symbol": "circle", "color": shared}),
        (~on & ~other, "Off for both", "off for both rows", _hollow(shared)),
        (on & ~other, f"On for {names[0]} only", f"on for {names[0]} only", _side("left", colours)),
        (
            other & ~on,
            f"On for {names[1]} only",
            f"on for {names[1]} only",
            _side("right", colours),
        ),
    ):
        text = hovered(f"Layer {{:.0f}}, unit {{:,.0f}}: {said}", layer[which], number[which])
        figure.add_trace(_marks((at_x[which], at_y[which]), name, {"size": 9, **mark}, text))
    for at, part in enumerate(layers):
        equal, width = int(pair.same[part].sum()), part.stop - part.start
        many = counted(width, "unit")
        figure.add_annotation(
            text=f"Layer {at + 1}: {equal:,} of {many} equal ({equal / width:.1%})",
            bgcolor=colours.page,  # over the paths
            xref="paper",
            x=0,
            y=-at + 0.38,
            xanchor="left",
            showarrow=False,
            font={"size": 12, "color": colours.muted},
        )
    _plain_axes(figure, (-0.7, widest - 0.3), (0.6 - len(units), 0.6))
    return figure


def _spread(n: int) -> IntArray:
    """Which of up to `_PATHS` equal units each path takes; few units serve several paths."""
    return np.arange(_PATHS) * min(n, _PATHS) // _PATHS


def _shared(colours: Palette) -> str:
    return method_style("kernel_density", colours)[0]


def _hollow(colour: str) -> dict[str, object]:
    return {"symbol": "circle-open", "color": colour, "line": {"width": 1.5}}


def _side(side: str, colours: Palette) -> dict[str, object]:
    return {"symbol": f"triangle-{side}", "color": colours.muted}


def _lines(points: list[Places], colour: str, width: float) -> go.Scatter:
    """One line for each place, through its points in their order."""
    x, y = (
        np.column_stack([*(point[axis] for point in points), np.full(len(points[0][0]), np.nan)])
        for axis in (0, 1)
    )
    return go.Scatter(
        x=x.ravel(),
        y=y.ravel(),
        mode="lines",
        line={"color": colour, "width": width},
        hoverinfo="skip",
        showlegend=False,
    )


def _marks(
    at: Places,
    name: str,
    marker: dict[str, object],
    text: dict[str, object],
) -> go.Scatter:
    return go.Scatter(x=at[0], y=at[1], mode="markers", marker=marker, name=name, **text)


def _plain_axes(figure: go.Figure, x: tuple[float, float], y: tuple[float, float]) -> None:
    hidden = {"showgrid": False, "showticklabels": False, "fixedrange": True}
    figure.update_layout(
        xaxis={**hidden, "range": x},
        yaxis={**hidden, "range": y},
        legend=LEGEND_BELOW,
        margin={"l": 8, "t": 8, "b": 58},
        dragmode=False,
    )


def _table(pair: RowPair, names: tuple[str, str]) -> pd.DataFrame:
    if not pair.layer_widths:
        where = {"tree": np.arange(1, len(pair.first) + 1)}
        titles = [f"leaf of {name}" for name in names]
    else:
        widths = np.array(pair.layer_widths)
        where = {
            "layer": np.repeat(np.arange(1, len(widths) + 1), widths),
            "unit": np.concatenate([np.arange(1, width + 1) for width in widths]),
        }
        titles = [f"on for {name}" for name in names]
    both = dict(zip(titles, (pair.first, pair.second), strict=True))
    if len(both) < 2:  # one row twice
        both[f"{titles[1]} again"] = pair.second
    return pd.DataFrame({**where, **both, "same": pair.same})
