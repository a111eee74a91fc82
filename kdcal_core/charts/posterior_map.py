"""Posterior heat maps side by side over two axes, and the reliability of the rows in a box.

Feature and class names are not escaped in the sentences: escape them before they reach a screen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from kdcal_core.charts.chart import Chart, panel, template
from kdcal_core.charts.palette import Palette, palette, posterior_scale
from kdcal_core.charts.posterior_map_words import Cells, map_alt
from kdcal_core.charts.reliability import reliability_alt, reliability_figure
from kdcal_core.data.schema import FloatArray, IntArray
from kdcal_core.diagnostics import ReliabilityCurve
from kdcal_core.text import escape_html

_FIELD = 25  # points a side of a map whose numbers are stored
MAX_POINTS = 1000  # each takes the browser 76 us to draw
_GAP = 0.035  # between panels, as a share of the width
_HEIGHTS = {2: 310, 3: 270}  # of a panel, by the number of panels in a row; 200 for more
_TOP, _BOTTOM = 64, 84  # around the panels: legend and titles; axis and colour bar
_BAR = 0.3  # of the width
_BETWEEN = 46  # pixels from a row of panels to the next
_STACKED = 161  # height of a panel if there are several rows of them
_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "x", "star", "hexagon")


_COLOUR = r"""
**Colour** is the probability of the class shown: red is near 1, blue near 0, and white is the
prior, the class's share among the rows of the fit, which is the probability without any knowledge
of the row."""
_ROWS = r""" **Rows** of that class are red circles and all others blue crosses, so that a right map
has the colour of its rows; in a map of the confidence each class has its own colour."""
_BEYOND = r""" **The dashed
box** is the range of the data. Beyond it there are no rows, and a model's
probability there is extrapolation.

**A forest or a ReLU network cuts its inputs into polytopes**. In the outermost ones its confidence
stays the same, or grows, however far away a point is (Dey et al., section 1; this picture is their
Fig. 8). **The kernel density version** keeps the polytopes and puts a Gaussian in each, centred on
the rows of the polytope (Eqs. 14, 15 and 19). A constant is added to every density, so the
posterior

$$g_y(x)=\frac{(\tilde f_y(x)+c)\,P(y)}{\sum_k(\tilde f_k(x)+c)\,P(k)}\qquad\text{(Eqs. 8 and 9)}$$

goes to the prior where all densities are small compared with it (Prop. 2): far from the rows the
map turns white. How far out that begins depends on the held-out rows: the floor $c$ is set so that
all but a share alpha of them are above it. Inside the data the probability is a blend of the
region's class shares and the model's own probability (our addition to the papers).

**With more features than the two shown** the map is a slice: in every other direction it stays in
the middle of the data, or at the chosen row. A point beyond the box is then still like the rows in
most features, and the version may stay sure there. The sentence above therefore uses the density,
which depends on all features, and not the box. The page Out of distribution shows rows for which
all features leave the data together.
"""
_DRAG = """
**Drag a box** on any panel to see its rows below. A double click removes it.
"""
MAP = _COLOUR + _ROWS + _BEYOND + _DRAG
IN_THE_BOX = r"""
Only the rows in the box. **Horizontal axis**: the stated confidence. **Vertical axis**: how often
the model is right. On the dashed diagonal the two agree; points below it are over-confident, points
above it under-confident. Slate circles are the model, stars its kernel density version. Bars are
exact (Clopper-Pearson) 95% intervals. Grey boxes contain the points of a perfectly calibrated model
with the stated confidences in 95% of all samples of this size (for the bins see Salamon et al., Eq.
5). Points from fewer than 100 rows are smaller, from fewer than 20 small and hollow.

A model that is well calibrated over all rows can be over-confident in one corner and
under-confident in another. The box shows it.
"""


@dataclass(frozen=True, eq=False)
class PosteriorPanel:
    """One heat map: its title and the posterior of the class shown, (n_y, n_x), 0 to 1."""

    title: str
    posterior: FloatArray


@dataclass(frozen=True, eq=False)
class MapPoints:
    """Rows drawn on the first panel: places (n,), (n,) and classes (n,)."""

    x: FloatArray
    y: FloatArray
    label: IntArray
    classes: tuple[str, ...]


def posterior_map_chart(
    x: FloatArray,
    y: FloatArray,
    panels: Sequence[PosteriorPanel],
    points: MapPoints | None,
    *,
    class_name: str,
    prior: float,
    x_title: str,
    y_title: str,
    outside: Cells,
    dark: bool = False,
    equal: bool = False,
    data_box: tuple[float, float, float, float] | None = None,
    narrow: bool = False,
) -> Chart:
    """The maps of a class, or of the confidence if ``class_name`` is empty.

    ``outside`` marks the cells beyond the range of the data, (n_y, n_x). On a ``narrow`` page, a
    phone's, the maps stand one below the other. The other parameters are those of
    `posterior_map_figure`. The page adds the finding: see `map_finding`.
    """

    def table() -> pd.DataFrame:
        across, up = np.meshgrid(x, y)
        columns = {x_title: across.ravel(), y_title: up.ravel()}
        return pd.DataFrame(columns | {one.title: one.posterior.ravel() for one in panels})

    shown = f"the probability of class {class_name}" if class_name else "confidence"
    return Chart(
        posterior_map_figure(
            x,
            y,
            panels,
            points,
            class_name=class_name,
            scale_title="" if class_name else "Confidence",
            prior=prior,
            x_title=x_title,
            y_title=y_title,
            dark=dark,
            equal=equal,
            data_box=data_box,
            columns=1 if narrow else None,
        ),
        finding="",
        alt=map_alt(
            *(x_title, y_title, shown, [(one.title, one.posterior) for one in panels], outside),
            rows=points is not None,
        ),
        how_to_read=MAP,
        table=table,
        name="posterior map",
    )


def posterior_field_chart(
    x: FloatArray,
    y: FloatArray,
    panels: Sequence[PosteriorPanel],
    *,
    outside: Cells,
    dark: bool = False,
    **settings: Any,
) -> Chart:
    """The maps of `posterior_map_chart` without the rows, at no more than 25 points a side.

    It holds no single row, and its data stay small.

    Examples
    --------
    >>> x = np.linspace(0.0, 1.0, 100)
    >>> panels = [PosteriorPanel("Model", np.full((100, 100), 0.5))]
    >>> chart = posterior_field_chart(
    ...     *(x, x, panels), outside=np.tile(x > 0.5, (100, 1)),
    ...     class_name="", prior=0.5, x_title="a", y_title="b",
    ... )
    >>> len(chart.table()), [trace.type for trace in chart.figure.data]
    (625, ['heatmap'])
    """
    across, up = (_some(len(axis)) for axis in (x, y))
    cells = np.ix_(up, across)
    fewer = [replace(one, posterior=one.posterior[cells]) for one in panels]
    made = posterior_map_chart(
        *(x[across], y[up], fewer, None), outside=outside[cells], dark=dark, **settings
    )
    return replace(made, table=lambda: made.table().round(4), how_to_read=_COLOUR + _BEYOND)


def _some(n: int) -> NDArray[np.int64]:
    """Places of a grid's axis, both ends included."""
    return np.unique(np.linspace(0, n - 1, min(n, _FIELD)).round().astype(np.int64))


def box_reliability_chart(
    model: ReliabilityCurve, version: ReliabilityCurve | None, *, dark: bool = False
) -> Chart:
    """Reliability of the rows in a box, for the model and its kernel density version if any."""
    named = (("model", model), ("kernel density version", version))
    return Chart(
        reliability_figure(
            model,
            dark=dark,
            calibrated=version,
            calibrated_name="Kernel density version",
            calibrated_by="kernel_density",
        ),
        finding="",
        alt=reliability_alt(model),
        how_to_read=IN_THE_BOX,
        table=lambda: pd.concat(
            [one.table().assign(of=name) for name, one in named if one is not None],
            ignore_index=True,
        ),
        name="reliability in the box",
    )


def posterior_map_figure(
    x: FloatArray,
    y: FloatArray,
    panels: Sequence[PosteriorPanel],
    points: MapPoints | None,
    *,
    class_name: str,
    prior: float,
    x_title: str,
    y_title: str,
    dark: bool,
    equal: bool = False,
    data_box: tuple[float, float, float, float] | None = None,
    columns: int | None = None,
    scale_title: str = "",
) -> go.Figure:
    """The rows, then one heat map per panel, all on the same two axes.

    Parameters
    ----------
    x, y : (n_x,), (n_y,)
        The grid.
    panels : sequence of PosteriorPanel
    points : MapPoints or None
        At most 1,000 of them are drawn. None for the maps alone.
    class_name, x_title, y_title : str
        Untrusted text. Rows of the class, one of those of ``points``, have the colour of the
        scale's upper end and all others that of its lower end. If it is empty, the maps show no
        single class, and each class has its own colour.
    prior : float
        Prior of the class shown, drawn in white.
    equal : bool
        Whether a unit has the same length on both axes; for axes of the same kind, such as those
        of the simulations.
    data_box : (x0, x1, y0, y1), optional
        Range of the data; points beyond it are out of distribution.
    columns : int, optional
        Panels in a row, including that of the rows; by default all.
    scale_title : str, optional
        Meaning of the colours, if it is not the probability of one class. Our own text.
    """
    colours = palette(dark)
    first = 0 if points is None else 1
    n = len(panels) + first
    names = [panel(at) for at in range(n)]
    aspect = float((y[-1] - y[0]) / (x[-1] - x[0])) if equal else 1.0
    places = list(_places(n, columns or n, aspect))
    figure = go.Figure(layout=_layout(places, x, y, dark, equal))
    if points is not None:
        figure.add_traces(_points(points, class_name, colours, names[0]))
    for at, shown in enumerate(panels):
        figure.add_trace(
            go.Heatmap(
                x=x,
                y=y,
                z=shown.posterior.astype(np.float32),
                zmin=0.0,
                zmax=1.0,
                colorscale=[list(stop) for stop in posterior_scale(colours, prior)],
                showscale=at == len(panels) - 1,
                colorbar=_colour_bar(colours),
                hovertemplate=(
                    f"{escape_html(shown.title)}<br>%{{x}}, %{{y}}: %{{z:.1%}}<extra></extra>"
                ),
                **names[at + first],
            )
        )
    figure.add_annotation(_bar_title(scale_title or _probability(class_name), colours))
    for at, title in enumerate([*["Rows"] * first, *(shown.title for shown in panels)]):
        figure.add_annotation(_title(title, places[at], colours))
    if data_box is not None:
        ink = colours.surface if dark else colours.text  # the maps themselves are light
        for name in names:
            on_page = first and name is names[0]
            figure.add_shape(_box(data_box, name, colours.muted if on_page else ink))
    for at, name in enumerate(names):
        axis = name["xaxis"].replace("x", "xaxis")
        if places[at].lowest:
            figure.update_layout({axis: {"title_text": escape_html(x_title, limit=24)}})
        if places[at].left == 0:
            axis = name["yaxis"].replace("y", "yaxis")
            figure.update_layout({axis: {"title_text": escape_html(y_title, limit=24)}})
    return figure


@dataclass(frozen=True)
class _Place:
    """The position of a panel, in shares of the plot, and the layout's height in pixels."""

    left: float
    right: float
    bottom: float
    top: float
    lowest: bool
    height: int


def _places(n: int, columns: int, aspect: float) -> Iterator[_Place]:
    rows = -(-n // columns)
    panel_height = _HEIGHTS.get(columns, 200) if rows == 1 else _STACKED
    panel_height = round(panel_height * min(max(aspect, 0.6), 1.0))
    inside = rows * panel_height + (rows - 1) * _BETWEEN
    gap = _BETWEEN / inside
    width, tall = (1 - _GAP * (columns - 1)) / columns, (1 - gap * (rows - 1)) / rows
    for at in range(n):
        down, across = divmod(at, columns)
        left, top = across * (width + _GAP), 1 - down * (tall + gap)
        bottom = 0.0 if down == rows - 1 else top - tall
        yield _Place(left, left + width, bottom, top, at + columns >= n, inside + _TOP + _BOTTOM)


def _layout(
    places: Sequence[_Place], x: FloatArray, y: FloatArray, dark: bool, equal: bool
) -> dict[str, Any]:
    height = places[0].height
    layout: dict[str, Any] = {
        "template": template(dark),
        "height": height,
        "margin": {"l": 58, "t": _TOP, "b": _BOTTOM},
        "dragmode": "select",
        "clickmode": "event",
        "legend": {"y": 1 + 28 / (height - _TOP - _BOTTOM)},
    }
    # a frame, because a map that ends white cannot be told from a white page
    frame = {"showline": True, "mirror": True, "linecolor": palette(dark).grid, "showgrid": False}
    for at, place in enumerate(places):
        name = panel(at)
        x_axis, y_axis = name["xaxis"].replace("x", "xaxis"), name["yaxis"].replace("y", "yaxis")
        layout[x_axis] = {
            "domain": [place.left, place.right],
            "anchor": name["yaxis"],
            "range": [x[0], x[-1]],
            "nticks": 4,
            **frame,
            "showticklabels": place.lowest,
            "constrain": "domain",
        }
        layout[y_axis] = {
            "domain": [place.bottom, place.top],
            "anchor": name["xaxis"],
            "range": [y[0], y[-1]],
            "nticks": 5,
            **frame,
            "showticklabels": place.left == 0,
            "constrain": "domain",
            "constraintoward": "top",
        }
        if equal:
            layout[y_axis] |= {"scaleanchor": name["xaxis"], "scaleratio": 1}
        if at:
            layout[x_axis]["matches"], layout[y_axis]["matches"] = "x", "y"
    return layout


def _points(
    points: MapPoints, class_name: str, colours: Palette, axes: dict[str, str]
) -> list[go.Scatter]:
    shown = _sample(points.label)
    label = points.label[shown]
    names = np.array([escape_html(name, limit=24) for name in points.classes], dtype=object)
    return [
        go.Scatter(
            x=points.x[shown[mine]],
            y=points.y[shown[mine]],
            mode="markers",
            marker={
                "size": 5,
                "opacity": 0.8,
                "color": colour,
                "symbol": symbol,
                # the ends of the scale are dark, as the dark page is
                "line": {"width": 0.6 if class_name else 0, "color": colours.muted},
            },
            name=name,
            text=names[label[mine]],
            hovertemplate="%{x}, %{y}<extra>%{text}</extra>",
            **axes,
        )
        for mine, name, colour, symbol in _kinds(label, points.classes, class_name, colours)
        if mine.any()
    ]


def _kinds(
    label: IntArray, classes: tuple[str, ...], class_name: str, colours: Palette
) -> Iterator[tuple[Cells, str, str, str]]:
    """Rows that look alike, with their name, colour and symbol: of one class, or in it or not."""
    names = [escape_html(name, limit=24) for name in classes]
    if not class_name:
        for at, name in enumerate(names):
            turn, step = divmod(at, len(colours.classes))
            yield label == at, name, colours.classes[step], _SYMBOLS[turn % len(_SYMBOLS)]
        return
    shown = classes.index(class_name)
    others = names[1 - shown] if len(names) == 2 else "Other classes"
    yield label != shown, others, colours.posterior[0], "x"
    yield label == shown, names[shown], colours.posterior[-1], "circle"


def _sample(label: IntArray) -> NDArray[np.int64]:
    """At most 1,000 rows, evenly spaced within each class."""
    order = np.argsort(label, kind="stable")
    if order.size <= MAX_POINTS:
        return order
    return order[np.linspace(0, order.size - 1, MAX_POINTS).astype(np.int64)]


def _probability(class_name: str) -> str:
    return f"P({escape_html(class_name, limit=24)})"


def _colour_bar(colours: Palette) -> dict[str, Any]:
    """The scale, placed below the panels so that it takes none of their width."""
    return {
        "orientation": "h",
        "tickvals": [0, 0.5, 1],  # which stand side by side on a phone too
        "tickangle": 0,
        "tickformat": ".0%",
        "tickfont": {"size": 11, "color": colours.muted},
        "thickness": 9,
        "len": _BAR,
        "x": 1.0,
        "xanchor": "right",
        "xpad": 12,
        "y": 0.0,
        "yref": "container",  # in paper coordinates it would push the panels up
        "yanchor": "bottom",
        "ypad": 2,
        "outlinewidth": 0,
    }


def _bar_title(text: str, colours: Palette) -> dict[str, Any]:
    return {
        "text": text,
        "x": 1 - _BAR,
        "y": 0.0,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "right",
        "yanchor": "middle",
        "yshift": 24 - _BOTTOM,
        "showarrow": False,
        "font": {"size": 12, "color": colours.muted},
    }


def _title(text: str, place: _Place, colours: Palette) -> dict[str, Any]:
    return {
        # a method's long name in two lines, which fit above a narrow panel
        "text": escape_html(text, limit=36).replace(", ", ",<br>"),
        "x": (place.left + place.right) / 2,
        "y": place.top,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "center",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 13, "color": colours.text},
    }


def _box(
    box: tuple[float, float, float, float], axes: dict[str, str], colour: str
) -> dict[str, Any]:
    x0, x1, y0, y1 = box
    return {
        "type": "rect",
        "x0": x0,
        "x1": x1,
        "y0": y0,
        "y1": y1,
        "xref": axes["xaxis"],
        "yref": axes["yaxis"],
        "line": {"color": colour, "width": 1.2, "dash": "3px,3px"},
    }
