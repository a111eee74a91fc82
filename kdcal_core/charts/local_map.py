"""Where distributions are wrong, and how: neighbourhoods on a map (Torres et al., Fig. 1e)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kdcal_core.charts.chart import Chart, new_figure
from kdcal_core.charts.marks import MAX_MARKS, hovered
from kdcal_core.charts.palette import Palette, faded, palette
from kdcal_core.charts.pit import FAULT_TITLES, fault_colour
from kdcal_core.data.schema import FloatArray
from kdcal_core.diagnostics import CoverageRow, estimate_text
from kdcal_core.diagnostics.regression import (
    OPPOSITE_FAULTS,
    Coverage,
    Fault,
    LocalPit,
    local_finding,
    regression_findings,
)
from kdcal_core.text import counted, escape_html, figures_text, p_text

# each has a colour and a symbol, so that no reader needs the colour
FAULT_SYMBOLS = {
    "none": "circle",
    "other": "circle-open-dot",
    "too low": "triangle-down",
    "too high": "triangle-up",
    "too narrow": "diamond-tall",
    "too wide": "diamond-wide",
}
_RINGS = ("circle-open", "square-open", "hexagon-open")
_MAX_MEMBERS = 120
_WEAK, _STRONG = 0.05, 0.35  # sizes of the faults with the smallest and the largest mark


_KINDS = tuple(kind for kind in FAULT_TITLES if kind != "none")

LOCAL_MAP = r"""
Each mark is a neighbourhood: a row and the rows nearest to it. Its PIT values are tested
separately, and the p values are corrected for the number of neighbourhoods. Colour **and** shape
show the fault. Amber triangles pointing down: predictions too low. Pink triangles pointing up: too
high. Tall red diamonds: spread too narrow. Wide blue diamonds: too wide. Larger and stronger marks
are further off. Small grey marks: no fault beyond chance, which does not prove that the model is
right.

Click a mark, or drag a box, to see the PIT histogram of the rows there. Good coverage over all rows
can hide local faults, so always look here (Torres et al., sections 4.1, 4.2 and 5).
"""


@dataclass(frozen=True, eq=False)
class PickedNeighbourhood:
    """A neighbourhood to mark with a ring: its name, its centre and its rows (m, 2) on the map."""

    name: str
    centre: tuple[float, float]
    rows: FloatArray


def local_map_chart(
    local: LocalPit,
    *,
    dark: bool = False,
    x_title: str,
    y_title: str,
    picked: Sequence[PickedNeighbourhood] = (),
    identity: bool = False,
) -> Chart:
    """The map of neighbourhoods; its parameters are those of `local_map_figure`."""
    return Chart(
        local_map_figure(
            local, dark=dark, x_title=x_title, y_title=y_title, picked=picked, identity=identity
        ),
        finding=local_finding(local),
        alt=local_map_alt(local, x_title, y_title),
        how_to_read=LOCAL_MAP,
        table=local.table,
        name="neighbourhoods",
    )


def local_map_figure(
    local: LocalPit,
    *,
    dark: bool,
    x_title: str,
    y_title: str,
    picked: Sequence[PickedNeighbourhood] = (),
    identity: bool = False,
) -> go.Figure:
    """The centres of neighbourhoods: colour and symbol show the kind of fault, size its strength.

    Centres where the corrected test finds nothing are small and grey. ``customdata`` starts with
    the row of each centre, which a selection returns. A figure that changes loses its selection:
    pass ``picked`` only if the picks are kept elsewhere.

    Parameters
    ----------
    x_title, y_title : str
        Untrusted.
    picked : sequence of PickedNeighbourhood
        Marked with rings, at most 120 rows of each.
    identity : bool
        Draw the line on which both axes are equal, for prediction against outcome.
    """
    colours = palette(dark)
    figure = new_figure(dark, height=400)
    drawn = _drawn(local.kind, MAX_MARKS - _MAX_MEMBERS * len(picked) - 10)
    rings = [_ring(one, _RINGS[at % len(_RINGS)], colours) for at, one in enumerate(picked)]
    figure.add_traces([rows for rows, _ in rings])  # below, so that they hide no mark
    for name in FAULT_TITLES:
        mine = drawn[local.kind[drawn] == name]
        if mine.size:
            figure.add_trace(_centres(local, mine, name, colours))
    figure.add_traces([centre for _, centre in rings])
    if identity and local.xy.size:
        figure.add_trace(_identity(local.xy, colours))
    figure.update_layout(
        xaxis={"title_text": escape_html(x_title, limit=60)},
        yaxis={"title_text": escape_html(y_title, limit=60)},
        dragmode="select",
        clickmode="event",
        legend={"itemsizing": "constant"},
        margin={"t": 72},
    )
    return figure


def _drawn(kind: NDArray[np.str_], most: int) -> NDArray[np.intp]:
    """All centres, or an even share of each kind if there are too many."""
    order = np.argsort(kind, kind="stable")
    if order.size > most:
        order = order[np.linspace(0, order.size - 1, most).astype(np.int64)]
    return np.sort(order)


def _centres(local: LocalPit, mine: NDArray[np.intp], kind: str, colours: Palette) -> go.Scatter:
    sound = kind == "none"
    count = int((local.kind == kind).sum())
    strength = np.abs((local.bias if kind in ("too low", "too high") else local.spread)[mine])
    share = np.clip((strength - _WEAK) / (_STRONG - _WEAK), 0.0, 1.0)
    colour = colours.muted if kind in ("none", "other") else fault_colour(kind, colours)
    return go.Scatter(
        x=local.xy[mine, 0],
        y=local.xy[mine, 1],
        mode="markers",
        marker={
            "symbol": FAULT_SYMBOLS[kind],
            "color": faded(colour, 0.7) if sound else colour,
            "size": 3.5 if sound else 5.0 + 4.0 * share,
            "line": {"width": 0},
        },
        unselected={"marker": {"opacity": 0.3}},
        name=f"{FAULT_TITLES[kind].capitalize()} ({count:,})",
        customdata=local.rows[mine, np.newaxis],
        **hovered(
            f"Row {{:,.0f}} and its {local.k:,} neighbours<br>"
            "mean PIT {:.2f} (right: 0.50)<br>"
            "spread of PIT {:+z.0%} (right: 0%)<br>"
            f"{100 * local.interval:g}% intervals hold {{:.1%}}<br>"
            "corrected p {}",
            local.rows[mine] + 1,
            local.bias[mine] + 0.5,
            local.spread[mine],
            local.coverage[mine],
            [p_text(p) for p in local.adjusted_p[mine]],
            name=FAULT_TITLES[kind],
        ),
    )


def _ring(one: PickedNeighbourhood, symbol: str, colours: Palette) -> tuple[go.Scatter, go.Scatter]:
    name = escape_html(one.name, limit=40)
    kept = np.linspace(0, len(one.rows) - 1, min(len(one.rows), _MAX_MEMBERS)).astype(int)
    common: dict[str, Any] = {"legendgroup": name, "hoverinfo": "skip"}
    rows = go.Scatter(
        x=one.rows[kept, 0],
        y=one.rows[kept, 1],
        mode="markers",
        marker={
            "symbol": symbol,
            "size": 5,
            "color": faded(colours.truth, 0.35),
            "line": {"width": 1},
        },
        name=f"{name} ({counted(len(one.rows), 'row')})",
        **common,
    )
    centre = go.Scatter(
        x=[one.centre[0]],
        y=[one.centre[1]],
        mode="markers+text",
        marker={"symbol": "cross-thin-open", "size": 15, "color": colours.truth},
        text=[f"<b>{name}</b>"],
        textposition="top center",
        textfont={"size": 13, "color": colours.text},
        showlegend=False,
        **common,
    )
    return rows, centre


def _identity(x: FloatArray, colours: Palette) -> go.Scatter:
    ends = [float(x.min()), float(x.max())]
    return go.Scatter(
        x=ends,
        y=ends,
        mode="lines",
        line={"color": colours.truth, "width": 1, "dash": "4px,4px"},
        name="Both equal",
        hoverinfo="skip",
    )


def local_map_alt(local: LocalPit, x_title: str, y_title: str) -> str:
    """Alternative text of the map of faults, with where each kind lies on average."""
    places = []
    for kind in _KINDS:
        mine = local.xy[local.kind == kind]
        if len(mine):
            x, y = (figures_text(at) for at in np.median(mine, axis=0))
            places.append(f"{FAULT_TITLES[kind]} around {x}, {y}")
    where = f" In the middle: {'; '.join(places)}." if places else ""
    return f"Map of neighbourhoods over {x_title} and {y_title}. {local_finding(local)}{where}"


def pit_findings(
    coverage: Coverage,
    fault: Fault,
    *,
    local: LocalPit | None = None,
    fitted_spread: bool = False,
) -> tuple[str, ...]:
    """The main findings on PIT values, first the one that the total hides.

    Parameters
    ----------
    coverage, fault, local, fitted_spread
        As for `regression_findings`.
    """
    first, *more = regression_findings(coverage, fault, local=local, fitted_spread=fitted_spread)
    if local is not None and local.n_faulty:
        first = _places_words(coverage.main, local, fitted_spread)
    return (first, *more)


_NEAR = 0.05  # a coverage this near to the stated level hides what places show


def _places_words(row: CoverageRow, local: LocalPit, fitted_spread: bool) -> str:
    """How many places are off, whatever all rows together show."""
    kinds = set(local.kind.tolist())
    opposite = any(set(pair) <= kinds for pair in OPPOSITE_FAULTS)
    held, named = row.coverage, f"{100 * row.level:g}% intervals"
    what = f"{named} with a fitted spread hold" if fitted_spread else f"Stated {named} hold"
    near = held.low - _NEAR <= row.level <= held.high + _NEAR
    joined = "but" if near else "and"  # the total may be as far off
    return (
        f"{what} {estimate_text(held, chance=False)} of all {held.n:,} outcomes, "
        f"{joined} {local.n_faulty:,} of {len(local.kind):,} places are off by more than chance"
        f"{', in opposite ways' if opposite else ''}."
    )
