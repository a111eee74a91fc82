"""A partition of the inputs drawn as a tree: the root at the left, a line for each region."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from kdcal_core.data import FloatArray, escape_html
from kdcal_core.figures.palette import Palette, palette
from kdcal_core.figures.template import new_figure
from kdcal_core.partition.tree import PartitionTree, TreeNode

_LINE = 46  # pixels for a region
_SMALLEST, _LARGEST = 11.0, 30.0
_LETTERS = 104  # of the conditions from the root to a region
_STRONG = 0.2  # a gap of this size has the full colour
_CAPTION_ROOM = 0.42  # of the width of the branches, at the right


@dataclass(frozen=True)
class RegionMark:
    """How a region of the tree is shown.

    Attributes
    ----------
    caption : str
        Stands beside it: what the model says and what is seen. Untrusted.
    strength : float
        Which way the fault goes and how far: above 0 red (over-confident), below 0 blue
        (under-confident), full at 0.2 either way.
    clear : bool
        Whether the fault is beyond chance; a region without one stays grey and hollow.
    hover : tuple of str
        Lines of the hover box. Untrusted.
    """

    caption: str
    strength: float
    clear: bool
    hover: tuple[str, ...] = ()


def region_tree_figure(
    tree: PartitionTree, marks: Sequence[RegionMark], *, dark: bool, picked: int | None = None
) -> go.Figure:
    """The tree with its conditions on the branches and one mark a region, in leaf order.

    The marks are the last trace, and a mark's number is its region's. ``picked`` is ringed.

    Raises
    ------
    ValueError
        Where there is not one mark a region.
    """
    if len(marks) != tree.n_leaves:
        raise ValueError(f"{len(marks)} marks for {tree.n_leaves} regions")
    colours = palette(dark)
    nodes = tree.nodes()
    height = _heights(tree, nodes)
    levels = max(int(tree.depth.max()), 1)
    figure = new_figure(dark, height=64 + _LINE * tree.n_leaves)
    figure.add_trace(_branches(nodes, height, colours))
    figure.add_trace(_conditions(nodes, height, _LETTERS // levels, colours))
    figure.add_trace(_marks(tree, nodes, height, marks, colours, picked))
    figure.update_layout(
        xaxis={
            "visible": False,
            "range": [-0.08, levels * (1 + _CAPTION_ROOM)],
            "fixedrange": True,
        },
        yaxis={"visible": False, "range": [tree.n_leaves - 0.4, -0.6], "fixedrange": True},
        showlegend=False,
        hovermode="closest",
        dragmode=False,
        clickmode="event+select",
        margin={"l": 8, "r": 8, "t": 16, "b": 8},
    )
    return figure


def _heights(tree: PartitionTree, nodes: Sequence[TreeNode]) -> FloatArray:
    """Where each node stands from top to bottom: regions one below the other, others between."""
    leaf = np.array([-1 if node.leaf is None else node.leaf for node in nodes])
    lines = np.where(tree.paths.T, np.arange(tree.n_leaves), np.nan)
    between = (np.nanmin(lines, axis=1) + np.nanmax(lines, axis=1)) / 2.0
    return np.where(leaf >= 0, leaf, between)


def _branches(nodes: Sequence[TreeNode], height: FloatArray, colours: Palette) -> go.Scatter:
    x: list[float | None] = []
    y: list[float | None] = []
    for node in nodes:
        if node.parent is not None:
            from_ = node.depth - 1
            x += [from_, from_ + 0.06, from_ + 0.06, node.depth, None]
            y += [height[node.parent], height[node.parent], height[node.node], height[node.node]]
            y += [None]
    return go.Scatter(
        x=x, y=y, mode="lines", hoverinfo="skip", line={"color": colours.muted, "width": 1}
    )


def _conditions(
    nodes: Sequence[TreeNode], height: FloatArray, letters: int, colours: Palette
) -> go.Scatter:
    below = [node for node in nodes if node.parent is not None]
    words = ["" if node.condition is None else node.condition.words for node in below]
    return go.Scatter(
        x=[node.depth - 0.92 for node in below],
        y=[height[node.node] for node in below],
        mode="text",
        text=[escape_html(word, limit=letters) for word in words],
        customdata=[escape_html(word, limit=300) for word in words],
        textposition="top right",
        textfont={"size": 12, "color": colours.text},
        hovertemplate="%{customdata}<extra></extra>",
    )


def _marks(
    tree: PartitionTree,
    nodes: Sequence[TreeNode],
    height: FloatArray,
    marks: Sequence[RegionMark],
    colours: Palette,
    picked: int | None,
) -> go.Scatter:
    leaves = sorted((node for node in nodes if node.leaf is not None), key=_leaf_of)
    share = np.array([node.n for node in leaves], dtype=float) / max(tree.n[0], 1)
    strength = [mark.strength / _STRONG if mark.clear else 0.0 for mark in marks]
    ring = [colours.truth if at == picked else colours.muted for at in range(len(marks))]
    return go.Scatter(
        x=[node.depth for node in leaves],
        y=[height[node.node] for node in leaves],
        mode="markers+text",
        text=[escape_html(mark.caption, limit=90) for mark in marks],
        textposition="middle right",
        textfont={"size": 13, "color": colours.text},
        cliponaxis=False,
        customdata=["<br>".join(escape_html(line, limit=200) for line in m.hover) for m in marks],
        hovertemplate="%{customdata}<extra></extra>",
        marker={
            "size": _SMALLEST + (_LARGEST - _SMALLEST) * np.sqrt(share),
            "color": np.clip(strength, -1.0, 1.0),
            "cmin": -1.0,
            "cmax": 1.0,
            "colorscale": colours.diverging,
            "opacity": 1.0,
            "line": {
                "color": ring,
                "width": [3.0 if at == picked else 1.0 for at in range(len(marks))],
            },
        },
        # a click must not fade the other marks
        selected={"marker": {"opacity": 1.0}},
        unselected={"marker": {"opacity": 1.0}},
    )


def _leaf_of(node: TreeNode) -> int:
    assert node.leaf is not None
    return node.leaf
