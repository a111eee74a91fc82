"""The local view of the PIT page: a map of neighbourhoods, and the picked ones beside all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
import streamlit as st

from app.pit import pit_picks
from app.pit.pit_picks import Box, Pick
from app.shared import in_browser, pit_results, session, set_results
from app.shared.charts import dragged, drawn_once, is_dark, show
from app.shared.emphasis import quiet
from app.shared.one_of import one_of
from app.shared.pit_results import Judged
from app.shared.seen_charts import seen
from kdcal_core.charts import (
    FAULT_TITLES,
    PickedNeighbourhood,
    PitPanel,
    local_grid_chart,
    local_map_chart,
    pit_panels_chart,
)
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics import LocalPit, estimate_text
from kdcal_core.tasks import (
    AXES,
    LAYER,
    MEAN,
    OUTCOME,
    SPREAD,
    PitGroup,
    PitOverview,
    PitPlaces,
    in_box,
    is_large,
    local_rows,
    space_names,
    space_title,
)
from kdcal_core.text import counted, escape_markdown, in_sentence

LEAST_ROWS = 10
_MANY_VALUES = 12
SIZES = (20, 50, 100, 200, 500, 1000, 2000)
MapKind = Literal["principal", "columns", "prediction"]
MAPS: dict[MapKind, str] = {
    "principal": "Principal axes",
    "columns": "Two columns",
    "prediction": "Prediction against outcome",
}


Tool = Literal["click", "box"]


# Streamlit accepts no clicks while dragging draws a box, so there are two ways to pick
TOOLS: dict[Tool, str] = {"click": "Click", "box": "Box"}
DRAGS: dict[Tool, str] = {"click": "zoom", "box": "select"}


@dataclass(frozen=True, eq=False)
class Axes:
    """The axes of the map, and what distinguishes it from other maps of the same rows.

    Titles are untrusted text.
    """

    x_title: str
    y_title: str
    key: str
    shows_outcome: bool


@dataclass(frozen=True, eq=False)
class Shown:
    """A group of rows, shown beside all rows."""

    name: str
    what: str
    group: PitGroup
    ring: PickedNeighbourhood


@dataclass(frozen=True, eq=False)
class LocalView:
    """The results of the local view, for the other parts of the page."""

    places: PitPlaces
    local: LocalPit
    groups: tuple[Shown, ...]
    picks: str  # where the session keeps what was picked


@dataclass(frozen=True)
class MapSettings:
    """What the map shows: the space of the neighbours, its axes, and their number."""

    space: str
    kind: MapKind
    x: str
    y: str
    k: int


def settings(judged: Judged) -> MapSettings | None:
    """The settings of the map, in one fold; None if there are too few rows for a map."""
    n = len(local_rows(judged.n_rows))
    if n < LEAST_ROWS:
        return None
    with st.popover("Map and neighbourhoods", icon=":material/tune:", type=quiet()):
        space = _space_name(judged)
        kind = _map_kind(judged, space)
        x, y = _columns(judged) if kind == "columns" else ("", "")
        return MapSettings(space, kind, x, y, _size(n))


def local_view(judged: Judged, chosen: MapSettings | None) -> LocalView | None:
    """Draw the map of places; None if there is no map."""
    if chosen is None:
        n = len(local_rows(judged.n_rows))
        st.caption(
            f"Neighbourhoods cannot be told apart among {n:,} rows: at least {LEAST_ROWS} "
            "are needed."
        )
        return None
    line = st.container(horizontal=True, vertical_alignment="center")
    with line:
        st.subheader("Place by place", anchor=False, width="content")
        tool = _tool()
    across, up = _on_the_map(chosen.kind, chosen.x, chosen.y)
    places = _places(judged, chosen.space, chosen.k, across, up)
    if places is None:
        return None
    if places.local is None:
        st.caption("All rows are the same here, so there are no places to compare.")
        return None
    axes = _axes(judged, chosen.space, places)
    with line:
        _choose_place(judged, axes, places, places.local)
    return _draw(judged, axes, places, places.local, tool)


def _space_name(judged: Judged) -> str:
    names = space_names(judged.review)
    name: str = st.selectbox(
        "Rows are near in",
        options=names,
        format_func=space_title,
        key=f"pit_space_{judged.review.id}",
        persist_state="session",
        width=210,
        help="What makes two rows neighbours: similar inputs, similar activations of a hidden "
        "layer of the model, or similar predictions (mean and spread). Each column is "
        "standardised. Torres et al. recalibrate in any of them; faults are clearest in a space "
        "in which the model distinguishes rows.",
    )
    return name


def _map_kind(judged: Judged, space: str) -> MapKind:
    """Principal axes would be a line of one number per row, and a few points of categories."""
    roles = judged.review.roles
    inputs = roles.features if space.startswith("inputs") and roles is not None else ()
    few, mixed = 0 < len(inputs) <= 2, len(numeric_columns(judged)) < len(inputs)
    default: MapKind = "columns" if (few or mixed) and numeric_columns(judged) else "principal"
    if space == "prediction":
        default = "prediction"
    kinds = [kind for kind in MAPS if kind != "principal" or not few]
    chosen: MapKind = st.selectbox(
        "Map",
        options=kinds,
        index=kinds.index(default) if default in kinds else 0,
        format_func=lambda kind: (
            "Mean and spread" if kind == "principal" and space == "prediction" else MAPS[kind]
        ),
        key=f"pit_map_kind_{judged.review.id}_{default}",
        persist_state="session",
        width=220,
        help="Where the rows are drawn. It does not change which rows are neighbours.",
    )
    return chosen


def numeric_columns(judged: Judged) -> list[str]:
    """Features that are numbers, in the table's order."""
    roles = judged.review.roles
    assert roles is not None
    kinds = {column.name: column.kind for column in judged.review.tables[judged.which].columns}
    return [name for name in roles.features if kinds.get(name) == "number"]


def _spread_out(judged: Judged) -> list[str]:
    """Numeric features with so many values that marks along them do not cover each other."""
    columns = judged.review.tables[judged.which].columns
    many = {column.name for column in columns if column.n_distinct >= _MANY_VALUES}
    return [name for name in numeric_columns(judged) if name in many]


def column_title(judged: Judged, name: str) -> str:
    """The shown name of a column or prediction; untrusted text."""
    ours = dict(zip(AXES, ("First principal axis", "Second principal axis"), strict=True))
    ours |= {MEAN: "Predicted mean", SPREAD: "Predicted standard deviation"}
    return ours.get(name) or (judged.outcome if name == OUTCOME else name)[:60]


def _columns(judged: Judged) -> tuple[str, str]:
    across = [*numeric_columns(judged), MEAN, SPREAD]
    spread_out = _spread_out(judged) or across[:1]
    title = partial(column_title, judged)
    x: str = st.selectbox(
        "Across",
        options=across,
        index=across.index(spread_out[0]),
        format_func=title,
        key=f"pit_x_{judged.review.id}",
        persist_state="session",
        width=170,
    )
    up = [name for name in across if name != x] + [OUTCOME]
    if len(numeric_columns(judged)) > 1:
        second = up.index(next((name for name in spread_out if name != x), MEAN))
    else:
        second = len(up) - 1
    y: str = st.selectbox(
        "Up",
        options=up,
        index=second,
        format_func=title,
        key=f"pit_y_{judged.review.id}",
        persist_state="session",
        width=170,
    )
    return x, y


def _size(n: int) -> int:
    """Rows of a neighbourhood: from a few to half of all."""
    sizes = [k for k in SIZES if k <= n // 2] or [max(n // 2, 5)]
    wanted = min(max(n // 10, 50), 500)
    if len(sizes) == 1:
        return sizes[0]
    k: int = st.select_slider(
        "Rows of a neighbourhood",
        options=sizes,
        value=max((size for size in sizes if size <= wanted), default=sizes[0]),
        format_func=lambda k: f"{k:,}",
        key="pit_k",
        persist_state="session",
        width=230,
        help="With few rows, faults are local, but only large ones stand out from chance. With "
        "many rows, small faults stand out, but different places are mixed.",
    )
    return k


def _tool() -> Tool:
    return one_of(
        "Pick by",
        TOOLS,
        "click",
        key="pit_tool",
        label_visibility="collapsed",
        width="content",
        help="A click on a mark picks its row and neighbours; dragging zooms, and a double click "
        "zooms out. A box picks all rows in it.",
    )


def _places(judged: Judged, space: str, k: int, across: str, up: str) -> PitPlaces | None:
    """The places in the chosen space; until they are computed, those of the predictions."""
    layer = space.startswith(LAYER) and not is_large(judged.review)
    if layer and set_results.layer_of(judged.review, space) is None:
        return None
    found = pit_results.places_of(judged, space, k, across, up)
    if found is not None and found.refused is not None:
        session.error_box(found.refused.error())
        st.caption("Until then, rows are near each other if their predictions are.")
    return found


def _on_the_map(kind: MapKind, x: str, y: str) -> tuple[str, str]:
    if kind == "prediction":
        return MEAN, OUTCOME
    return AXES if kind == "principal" else (x, y)


def _axes(judged: Judged, space: str, places: PitPlaces) -> Axes:
    x, y = (column_title(judged, name) for name in (places.across, places.up))
    return Axes(x, y, f"{space} {places.across} {places.up}", places.up == OUTCOME)


def _picks_key(judged: Judged, axes: Axes) -> str:
    """Where the picks on this map are kept."""
    return f"pit_picks_{judged.key}_{axes.key}"


def _choose_place(judged: Judged, axes: Axes, places: PitPlaces, local: LocalPit) -> None:
    """Pick a place by the keyboard: the same as a click on its mark."""
    key = f"pit_place_{judged.short}_{axes.key}"
    st.selectbox(
        "Pick from a list",
        options=pit_picks.furthest_off(local),
        index=None,
        format_func=lambda at: (
            f"Row {int(places.rows[local.rows[at]]) + 1:,}: {FAULT_TITLES[str(local.kind[at])]}, "
            f"mean PIT {local.bias[at] + 0.5:.2f}"
        ),
        key=key,
        placeholder="Pick from a list, furthest off first",
        label_visibility="collapsed",
        width=290,
        on_change=_take_chosen,
        args=(key, _picks_key(judged, axes), local),
    )


def _take_chosen(key: str, picks: str, local: LocalPit) -> None:
    """Callback: add the chosen place to the picks, and clear the choice."""
    at = st.session_state[key]
    if at is not None:
        pick = pit_picks.Centre(int(local.rows[at]))
        st.session_state[picks] = pit_picks.with_pick(st.session_state.get(picks, ()), pick)
        st.session_state[key] = None


def _draw(judged: Judged, axes: Axes, places: PitPlaces, local: LocalPit, tool: Tool) -> LocalView:
    picks = _picks_key(judged, axes)
    chosen: tuple[Pick, ...] = st.session_state.get(picks, ())
    groups = _groups(places, local, chosen or pit_picks.suggested(local))
    seen(
        *(judged.review, "pit_map", "Where distributions are wrong", "pit"),
        *(local_grid_chart, replace(local, near=np.empty((0, 0), np.int64))),
        x_title=axes.x_title,
        y_title=axes.y_title,
        settings=f"neighbourhoods of {local.k:,} rows, on a grid in place of the map of single "
        f"rows; {judged.which} set",
    )
    show(
        drawn_once(
            dragged,
            local_map_chart,
            DRAGS[tool],
            replace(local, near=np.empty((0, 0), np.int64)),
            dark=is_dark(),
            x_title=axes.x_title,
            y_title=axes.y_title,
            picked=[shown.ring for shown in groups],
            identity=(places.across, places.up) == (MEAN, OUTCOME),
        ),
        key="pit_map",
        of=f"{judged.review.title} {judged.which}",
        finding=False,  # shown at the top of the page
        on_pick=partial(_take, picks, local, axes.shows_outcome),
    )
    _about_the_map(judged, axes, places, local)
    return LocalView(places, local, groups, picks)


def picked(judged: Judged, whole: PitOverview, view: LocalView) -> None:
    """The picked places beside all rows: their histograms, and their faults in words."""
    with st.container(border=True):
        _panels(judged, whole, view.groups)
        _about_groups(view.groups, view.picks in st.session_state, view.picks)


def _take(places: str, local: LocalPit, only_across: bool) -> None:
    """Callback: add what was clicked or dragged to the picks."""
    selection = getattr(st.session_state.get("pit_map"), "selection", None)
    pick = pit_picks.picked(selection, local, only_across=only_across)
    if pick == "cleared":
        st.session_state.pop(places, None)
    elif pick != "nothing":
        st.session_state[places] = pit_picks.with_pick(st.session_state.get(places, ()), pick)


def _groups(places: PitPlaces, local: LocalPit, picks: Sequence[Pick]) -> tuple[Shown, ...]:
    shown = []
    for name, pick in zip(pit_picks.NAMES, picks, strict=False):
        if isinstance(pick, Box):
            rows = np.flatnonzero(in_box(places.xy, pick.x, pick.y))
            what, centre = f"{len(rows):,} rows in the box", _middle(places.xy[rows])
        else:
            rows = local.around(pick.row)
            row = int(places.rows[pick.row]) + 1
            what = f"row {row:,} and the {len(rows) - 1:,} rows nearest to it"
            centre = (float(places.xy[pick.row, 0]), float(places.xy[pick.row, 1]))
        if len(rows):
            ring = PickedNeighbourhood(name, centre, places.xy[rows])
            shown.append(Shown(name, what, places.group(rows), ring))
    return tuple(shown)


def _middle(xy: FloatArray) -> tuple[float, float]:
    x, y = np.median(xy, axis=0) if len(xy) else (np.nan, np.nan)
    return float(x), float(y)


def _panels(judged: Judged, whole: PitOverview, groups: Sequence[Shown]) -> None:
    """The picked groups beside all rows, on one scale."""
    panels = [
        PitPanel("All rows", whole.histogram, whole.fault.kind),
        *(PitPanel(one.name, one.group.histogram, one.group.fault.kind) for one in groups),
    ]
    faults = [f"place {one.name}: {in_sentence(one.group.fault.words)}" for one in groups]
    seen(
        *(judged.review, "pit_places", "PIT of the places looked at", "pit"),
        *(pit_panels_chart, panels),
        name="PIT of neighbourhoods",
        columns=3,
        settings=f"{counted(len(groups), 'place')} of the map; {judged.which} set",
        finding=" ".join(one[0].upper() + one[1:] for one in faults),
    )
    show(
        drawn_once(
            pit_panels_chart,
            panels,
            name="PIT of neighbourhoods",
            columns=3,
            dark=is_dark(),
            narrow=in_browser.is_narrow(),
        ),
        key="pit_panels",
        of=f"{judged.review.title} {judged.which}",
        finding=False,
    )


def _about_groups(groups: Sequence[Shown], chosen: bool, places: str) -> None:
    """The fault of each picked group, in words."""
    for one in groups:
        held, level = one.group.coverage.coverage, one.group.coverage.level
        st.markdown(
            f"**{one.name}**, {one.what}. {escape_markdown(one.group.fault.words, 400)} "
            f"{100 * level:g}% intervals hold {estimate_text(held, chance=False)}."
        )
    if chosen:
        st.button(
            "Back to the places furthest off",
            key="pit_unpick",
            icon=":material/restart_alt:",
            on_click=st.session_state.pop,
            args=(places, None),
        )
    _how_picked(len(groups), chosen)


def _how_picked(count: int, chosen: bool) -> None:
    if chosen:
        st.caption(
            "Each is tested alone, as if it were the only pick. With many tries some place will "
            "look wrong by chance; the map's colours are corrected for that."
        )
    elif count:
        st.caption(
            "Until you pick, these are the places furthest off. Click a mark, drag a box, or take "
            "a place from the list: the last two picks are shown."
        )
    else:
        st.caption(
            "Click a mark, choose the box and drag it, or take a place from the list, to see the "
            "rows there."
        )


def _about_the_map(judged: Judged, axes: Axes, places: PitPlaces, local: LocalPit) -> None:
    lines = [
        f"{len(local.kind):,} neighbourhoods, p values from {local.draws:,} random draws "
        "(seed 0), corrected for all of them (Westfall and Young)."
    ]
    n, looked = judged.n_rows, len(places.rows)
    if looked < n:
        lines.append(f"Neighbours are among {looked:,} of {n:,} rows, drawn at random.")
    unplaced = int((~np.isfinite(places.xy).all(axis=1)).sum())
    if unplaced:
        lines.append(f"{unplaced:,} rows have no value on an axis and are not drawn.")
    if places.weight is not None:
        lines.append("The map does not use row weights.")
    if axes.shows_outcome:
        lines.append(
            "A box picks rows by its width only: rows picked by their outcome would make every "
            "prediction look wrong."
        )
    st.caption(" ".join(lines))


def group_rows(view: LocalView | None) -> dict[str, IntArray]:
    """The rows of each group by its name."""
    return {} if view is None else {one.name: one.group.rows for one in view.groups}
