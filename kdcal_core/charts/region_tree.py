"""A partition of the inputs drawn as a tree, with the root at the left and one line per region."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.colors import sample_colorscale

from kdcal_core.charts.chart import new_figure
from kdcal_core.charts.palette import Palette, palette
from kdcal_core.data import FloatArray
from kdcal_core.partition.tree import PartitionTree, TreeNode
from kdcal_core.text import escape_html

_LINE, _LEAST_LINE = 56, 38  # pixels for a region, and where there are many
_ENOUGH = 330  # pixels for all regions, where that suffices
_SMALLEST, _LARGEST = 11.0, 30.0
_LETTERS = 72  # of the conditions from the root to a region, in one line of a narrow page
_TEXT_LINE = 15  # pixels of a line of a condition, above that of its branch
_PHONE, _STEP, _LETTER = 290, 14, 6.4  # pixels of an outline: its width, a level, a letter
_REGION, _BETWEEN, _ASIDE = 38, 4, 4  # of a region and its caption; below, beside a condition
_HALF_CAPTION = 8  # pixels of a caption in one line, below the region before
_STRONG = 0.2  # a gap of this size has the full colour
_LEAST = 0.35  # smallest share of the full colour for a clear fault
_CAPTION_ROOM = 0.43  # of the width of the branches, at the right
_OF_PIT = ("too low", "too high", "too narrow", "too wide")
_LEGEND = {
    "over-confident": "Over-confident beyond chance",
    "under-confident": "Under-confident beyond chance",
    "too low": "Predictions too low",
    "too high": "Predictions too high",
    "too narrow": "Spread too narrow",
    "too wide": "Spread too wide",
    "other": "Wrong in another way",
    "none": "Within chance",
}


@dataclass(frozen=True)
class RegionMark:
    """How a region of the tree is shown.

    Attributes
    ----------
    caption : str
        The text beside it: stated and observed values. Untrusted.
    fault : str
        The fault of a :class:`kdcal_core.diagnostics.Region`; with "none" the mark is hollow.
    strength : float
        Size of the fault; at 0.2 a fault of the confidence has its full colour.
    hover : tuple of str
        Lines of the hover box. Untrusted.
    """

    caption: str
    fault: str = "none"
    strength: float = 0.0
    hover: tuple[str, ...] = ()


def region_tree_figure(
    tree: PartitionTree,
    marks: Sequence[RegionMark],
    *,
    dark: bool,
    picked: int | None = None,
    narrow: bool = False,
) -> go.Figure:
    """The tree with its conditions on the branches and one mark per region, in leaf order.

    The first value of a mark's ``customdata`` is the number of its region. ``picked`` has a ring.
    With ``narrow`` the tree is an outline that a phone has room for: one branch below the other,
    each set in by its depth, and every region below its condition.

    Raises
    ------
    ValueError
        If the number of marks is not that of the regions.
    """
    if len(marks) != tree.n_leaves:
        raise ValueError(f"{len(marks)} marks for {tree.n_leaves} regions")
    colours = palette(dark)
    nodes = tree.nodes()
    places = (_outline if narrow else _from_the_left)(tree, nodes)
    figure = new_figure(dark, height=places.height)
    figure.add_trace(_branches(nodes, places, colours))
    figure.add_trace(_conditions(nodes, places, colours))
    figure.add_traces(_legend(marks, colours))
    figure.add_trace(_marks(tree, nodes, places, marks, colours, picked))
    figure.update_layout(
        xaxis={"visible": False, "range": places.x_range, "fixedrange": True},
        yaxis={"visible": False, "range": places.y_range, "fixedrange": True},
        hovermode="closest",
        dragmode=False,
        clickmode="event+select",
        margin={"l": 8, "t": 36, "b": 8},
        legend={"itemclick": False, "itemdoubleclick": False},
    )
    return figure


@dataclass(frozen=True)
class _Places:
    """Where the parts of the tree stand: arrays have a value for each node.

    A branch leads from a node's ``x`` and ``y`` down or up at ``turn`` to those of its child, whose
    condition stands at ``words_x`` and ``words_y``. A region's mark is at ``x`` and ``mark_y``.
    """

    x: FloatArray
    y: FloatArray
    turn: FloatArray
    words_x: FloatArray
    words_y: FloatArray
    words_at: str
    words: list[str]
    mark_x: FloatArray
    mark_y: FloatArray
    two_lines: NDArray[np.bool_]
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    height: int


def _from_the_left(tree: PartitionTree, nodes: Sequence[TreeNode]) -> _Places:
    """The root at the left, and one line per region."""
    levels = max(int(tree.depth.max()), 1)
    line = min(_LINE, max(_LEAST_LINE, _ENOUGH // tree.n_leaves))
    most = (line - _HALF_CAPTION) // _TEXT_LINE  # lines of a condition
    above = max(0.7, most * _TEXT_LINE / line)
    x, y = tree.depth.astype(float), _heights(tree, nodes)
    return _Places(
        x,
        y,
        turn=x + 0.06,
        words_x=x - 0.92,
        words_y=y,
        words_at="top right",
        words=[_in_lines(_label(node), _LETTERS // levels, most) for node in nodes],
        mark_x=x,
        mark_y=y,
        two_lines=tree.depth == tree.depth.max(),
        x_range=(-0.08, levels * (1 + _CAPTION_ROOM)),
        y_range=(tree.n_leaves - 0.4, -above),
        height=96 + round(line * (tree.n_leaves + above - 0.7)),
    )


def _outline(tree: PartitionTree, nodes: Sequence[TreeNode]) -> _Places:
    """One node below the other, in pixels of a phone's page."""
    x: FloatArray = tree.depth.astype(np.float64) * _STEP
    letters = ((_PHONE - x - _ASIDE) // _LETTER).astype(int)
    words = [_in_lines(_label(node), letters[node.node], 3) for node in nodes]
    top, mark = np.zeros(len(nodes)), np.zeros(len(nodes))
    end = 0.0
    for node, lines in zip(nodes, words, strict=True):
        top[node.node] = end
        if node.parent is not None:
            end += _TEXT_LINE * (1 + lines.count("<br>")) + _BETWEEN
        mark[node.node] = end + _REGION / 2
        end += _REGION if node.leaf is not None else 0.0
    return _Places(
        x,
        top + _TEXT_LINE / 2 + 3,
        turn=x,
        words_x=x + _ASIDE,
        words_y=top,
        words_at="bottom right",
        words=words,
        mark_x=x + _STEP,
        mark_y=mark,
        two_lines=np.ones(len(nodes), dtype=bool),
        x_range=(-4.0, float(_PHONE)),
        y_range=(end, 0.0),
        height=round(end) + 64,
    )


def _label(node: TreeNode) -> str:
    return "" if node.condition is None else node.condition.label


def region_colour(fault: str, strength: float, colours: Palette) -> str:
    """The fill of a region: the page's colour if within chance, otherwise that of its fault.

    Examples
    --------
    >>> light = palette(dark=False)
    >>> region_colour("too low", 0.1, light) == light.too_low
    True
    """
    if fault == "none":
        return colours.surface
    if fault in _OF_PIT:
        return str(getattr(colours, fault.replace(" ", "_")))
    if fault == "other":
        return colours.muted
    share = min(max(abs(strength) / _STRONG, _LEAST), 1.0)
    at = 0.5 + 0.5 * share * (1.0 if fault == "over-confident" else -1.0)
    return str(sample_colorscale([list(stop) for stop in colours.diverging], [at])[0])


def _legend(marks: Sequence[RegionMark], colours: Palette) -> list[go.Scatter]:
    """The meaning of the colours that occur."""
    there = {mark.fault for mark in marks}
    return [
        go.Scatter(
            x=[None],
            y=[None],
            mode="markers",
            name=words,
            marker={
                "size": 13,
                "color": region_colour(fault, _typical(fault, marks), colours),
                "line": {"color": colours.muted, "width": 1},
            },
            hoverinfo="skip",
        )
        for fault, words in _LEGEND.items()
        if fault in there
    ]


def _typical(fault: str, marks: Sequence[RegionMark]) -> float:
    """The median strength of a fault's marks, so that the legend has a colour that occurs."""
    return float(np.median([mark.strength for mark in marks if mark.fault == fault]))


def _heights(tree: PartitionTree, nodes: Sequence[TreeNode]) -> FloatArray:
    """The height of each node: regions one below the other, other nodes midway between them."""
    leaf = np.array([-1 if node.leaf is None else node.leaf for node in nodes])
    lines = np.where(tree.paths.T, np.arange(tree.n_leaves), np.nan)
    between = (np.nanmin(lines, axis=1) + np.nanmax(lines, axis=1)) / 2.0
    return np.where(leaf >= 0, leaf, between)


def _branches(nodes: Sequence[TreeNode], places: _Places, colours: Palette) -> go.Scatter:
    x: list[float | None] = []
    y: list[float | None] = []
    for node in nodes:
        if node.parent is not None:
            above, at = node.parent, node.node
            x += [places.x[above], places.turn[above], places.turn[above], places.x[at], None]
            y += [places.y[above], places.y[above], places.y[at], places.y[at], None]
    return go.Scatter(
        x=x,
        y=y,
        mode="lines",
        hoverinfo="skip",
        showlegend=False,
        line={"color": colours.muted, "width": 1},
    )


def _conditions(nodes: Sequence[TreeNode], places: _Places, colours: Palette) -> go.Scatter:
    below = [node for node in nodes if node.parent is not None]
    words = ["" if node.condition is None else node.condition.words for node in below]
    return go.Scatter(
        x=[places.words_x[node.node] for node in below],
        y=[places.words_y[node.node] for node in below],
        mode="text",
        text=[places.words[node.node] for node in below],
        customdata=[escape_html(word, limit=300) for word in words],
        textposition=places.words_at,
        textfont={"size": 12, "color": colours.text},
        hovertemplate="%{customdata}<extra></extra>",
        unselected={"textfont": {"color": colours.text}},
        showlegend=False,
    )


def _in_lines(words: str, letters: int, most: int) -> str:
    """The words in at most so many lines, the last one cut if they are longer.

    Examples
    --------
    >>> _in_lines("occupation is Exec-managerial, Adm-clerical or 5 more", 24, 3)
    'occupation is Exec-<br>managerial, Adm-clerical<br>or 5 more'
    """
    lines = textwrap.wrap(" ".join(words.split()), letters) or [""]
    shown = [*lines[: most - 1], " ".join(lines[most - 1 :])] if len(lines) > most else lines
    return "<br>".join(escape_html(line, limit=letters) for line in shown)


def _marks(
    tree: PartitionTree,
    nodes: Sequence[TreeNode],
    places: _Places,
    marks: Sequence[RegionMark],
    colours: Palette,
    picked: int | None,
) -> go.Scatter:
    leaves = sorted((node for node in nodes if node.leaf is not None), key=_leaf_of)
    share = np.array([node.n for node in leaves], dtype=float) / max(tree.n[0], 1)
    captions = [
        _caption(mark.caption, in_one=not places.two_lines[node.node])
        for node, mark in zip(leaves, marks, strict=True)
    ]
    ring = [colours.truth if at == picked else colours.muted for at in range(len(marks))]
    hover = ["<br>".join(escape_html(line, limit=200) for line in m.hover) for m in marks]
    return go.Scatter(
        x=[places.mark_x[node.node] for node in leaves],
        y=[places.mark_y[node.node] for node in leaves],
        mode="markers+text",
        text=captions,
        textposition="middle right",
        textfont={"size": 13, "color": colours.text},
        cliponaxis=False,
        showlegend=False,
        customdata=[[at, lines] for at, lines in enumerate(hover)],
        hovertemplate="%{customdata[1]}<extra></extra>",
        marker={
            "size": _SMALLEST + (_LARGEST - _SMALLEST) * np.sqrt(share),
            "color": [region_colour(mark.fault, mark.strength, colours) for mark in marks],
            "opacity": 1.0,
            "line": {
                "color": ring,
                "width": [3.0 if at == picked else 1.0 for at in range(len(marks))],
            },
        },
        # a click must not fade the other marks and their captions
        selected={"marker": {"opacity": 1.0}},
        unselected={"marker": {"opacity": 1.0}, "textfont": {"color": colours.text}},
    )


def _caption(words: str, *, in_one: bool) -> str:
    """What a region says and what its rows show.

    At the deepest level in two lines, so that narrow pages hold it; further left there is room for
    one, which leaves that of the conditions beside it. An outline has two everywhere.
    """
    says, _, shows = (words, "", "") if in_one else words.partition(", ")
    lines = [escape_html(line, limit=60) for line in (says, shows) if line]
    return "<br>".join(f"   {line}" for line in lines)


def _leaf_of(node: TreeNode) -> int:
    assert node.leaf is not None
    return node.leaf
