"""A box on the posterior map: the rows in it, how right and how sure the models are there."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app.widgets import graph_results, map_results, results, session
from app.widgets.charts import chart, csv_button, estimate_row, is_dark
from app.widgets.graph_results import Fit, Setting
from kdcal_core.data import IntArray, ScoredSet, escape_markdown
from kdcal_core.diagnostics import Reliability, reliability_finding, telling
from kdcal_core.figures import map_words, reliability_figure, words
from kdcal_core.review import Review, Which
from kdcal_core.runs import GridRun

PAGE_ROWS = 100
STEPS = 400  # of the sliders across the map
WHO = ("Model", "Density version")

RELIABILITY = r"""
The rows in the box alone. **Across**: what each model states. **Up**: how often it is right. On
the dashed diagonal the two agree; points below it are over-confident, points above it
under-confident. Slate points are the model, teal ones its kernel density version; bars are exact
(Clopper-Pearson) 95% intervals, grey boxes where the points of a perfectly calibrated model with
the stated confidences would fall in 95% of all samples of this size (paper 002 Eq. 5 has the
bins). Points from fewer than 100 rows are pale, from fewer than 20 paler.

A model that is well calibrated over all rows can be over-confident in one corner and
under-confident in another: that is what the box is for.
"""

Range = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """A rectangle of the map."""

    x: Range
    y: Range


def whole_map(run: GridRun) -> Box:
    """All that is drawn."""
    return Box((float(run.x[0]), float(run.x[-1])), (float(run.y[0]), float(run.y[-1])))


def dragged_box(selection: Any, whole: Box) -> Box:
    """The box dragged last on any panel, cut to the map; the whole map where there is none.

    ``selection`` comes from the browser and may hold anything.
    """
    boxes = selection.get("box") if isinstance(selection, Mapping) else None
    if not isinstance(boxes, list) or not boxes or not isinstance(boxes[-1], Mapping):
        return whole
    x, y = (_range(boxes[-1].get(axis)) for axis in ("x", "y"))
    if x is None or y is None:
        return whole
    box = Box(_cut(x, whole.x), _cut(y, whole.y))
    return box if box.x[0] < box.x[1] and box.y[0] < box.y[1] else whole


def _range(ends: Any) -> Range | None:
    if not isinstance(ends, list | tuple) or len(ends) != 2:
        return None
    if not all(isinstance(end, int | float) and math.isfinite(end) for end in ends):
        return None
    return float(min(ends)), float(max(ends))


def _cut(ends: Range, to: Range) -> Range:
    low, high = (min(max(end, to[0]), to[1]) for end in ends)
    return low, high


def rows_in(box: Box, run: GridRun, judged: IntArray) -> IntArray:
    """Which of the judged rows lie in the box: positions in ``judged``, ascending."""
    return np.flatnonzero(np.isin(judged, run.inside(box.x, box.y)))


@dataclass(frozen=True)
class Places:
    """Where the session keeps the box of one map: the sliders' keys."""

    x: str
    y: str

    @classmethod
    def of(cls, review: Review, run: GridRun) -> Places:
        drawn = (review.id, run.record.x_name, run.record.y_name, whole_map(run))
        told = hashlib.sha256(repr(drawn).encode()).hexdigest()[:12]
        return cls(f"map_box_x_{told}", f"map_box_y_{told}")


def take_box(review: Review, run: GridRun) -> None:
    """Callback: the box that was just dragged moves the sliders below the map."""
    state = st.session_state.get("posterior_map")
    box = dragged_box(getattr(state, "selection", None), whole_map(run))
    places = Places.of(review, run)
    st.session_state[places.x], st.session_state[places.y] = box.x, box.y


def on_box(review: Review, run: GridRun) -> Any:
    """What the chart calls when a box is dragged or cleared."""
    return partial(take_box, review, run)


def _chosen_box(review: Review, run: GridRun) -> Box:
    whole, places = whole_map(run), Places.of(review, run)
    chosen = []
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        for name, ends, key in (
            (run.record.x_name, whole.x, places.x),
            (run.record.y_name, whole.y, places.y),
        ):
            chosen.append(
                st.slider(
                    escape_markdown(name[:40]),
                    *ends,
                    value=ends,
                    step=(ends[1] - ends[0]) / STEPS,
                    format="%.3g",
                    key=key,
                )
            )
    return Box(*chosen)


def region(review: Review, run: GridRun, fit: Fit | None, setting: Setting | None) -> None:
    """The rows in the box: what they are, and whether they bear the models out."""
    with st.container(border=True):
        st.markdown("**Rows in the box**")
        box = _chosen_box(review, run)
        whole = box == whole_map(run)
        which: Which = "evaluation" if review.has_evaluation else "calibration"
        scored = results.scored_set(session.workspace(), review, which)
        judged = np.arange(scored.n_rows) if fit is None else fit.run.positions
        chosen = rows_in(box, run, judged)
        inside = judged[chosen]
        parent = map_results.some_rows(scored, inside, scored.proba[inside], "model")
        version, unknown = None, None
        if fit is not None and setting is not None:
            placed = fit.run.rows.located
            assert placed is not None  # a graph was fitted, so there is a partition
            graph = graph_results.graph_at(fit, setting)
            proba = graph_results.posterior(fit, setting, "judged", placed)[chosen]
            version = map_results.some_rows(scored, inside, proba, f"{fit.key}, {setting}")
            unknown = graph.unknown(placed)[chosen]
        _say(parent, version, len(judged), whole)
        if whole:
            st.caption("The whole map. Drag a box on any panel, or narrow the ranges here.")
        if len(inside) >= map_words.VERY_FEW:
            estimates = results.summary_of(version or parent)
            estimate_row(estimates, results.summary_of(parent) if version else None)
        if len(inside) == 0:
            return
        left, right = st.columns([1, 1], gap="medium")
        with left:
            _reliability(review, parent, version)
        with right:
            _table(review, which, inside, parent, version, unknown)


def _say(parent: ScoredSet, version: ScoredSet | None, n_all: int, whole: bool) -> None:
    if parent.n_rows == 0:
        sentence = map_words.region_finding(0, n_all, None, None)
    else:
        sentence = map_words.region_finding(
            parent.n_rows,
            n_all,
            map_results.right_and_sure(parent),
            map_results.right_and_sure(version) if version is not None else None,
        )
    st.markdown(escape_markdown(sentence, 800))
    if parent.n_rows:
        st.caption(f"Classes: {escape_markdown(map_words.mix_words(parent.y, parent.classes))}")


def _reliability(review: Review, parent: ScoredSet, version: ScoredSet | None) -> None:
    if parent.n_rows < map_words.VERY_FEW:
        return
    found = results.reliability_of(parent, "confidence", n_bins=10, strategy="uniform")
    curve, other = found.curves[0], None
    said = [f"**Model.** {_finding(found, parent)}"]
    if version is not None:
        calibrated = results.reliability_of(version, "confidence", n_bins=10, strategy="uniform")
        other = calibrated.curves[0]
        said.append(f"**Kernel density version.** {_finding(calibrated, version)}")
    st.markdown("  \n".join(said))
    named = (("model", curve), ("kernel density version", other))
    chart(
        reliability_figure(curve, dark=is_dark(), calibrated=other),
        key="region_reliability",
        takeaway="",
        how_to_read=RELIABILITY,
        alt=words.reliability_alt(curve),
        table=lambda: pd.concat(
            [one.table().assign(of=name) for name, one in named if one is not None],
            ignore_index=True,
        ),
        name=f"{review.title} reliability in the box",
    )


def _finding(found: Reliability, scored: ScoredSet) -> str:
    return escape_markdown(reliability_finding(found, telling(results.summary_of(scored))), 400)


def _table(
    review: Review,
    which: Which,
    inside: IntArray,
    parent: ScoredSet,
    version: ScoredSet | None,
    unknown: Any,
) -> None:
    frame = map_results.table_of(session.workspace(), review, which)
    order = worst_first(parent)
    page = order[:PAGE_ROWS]
    more = f" of {len(inside):,}" if len(inside) > PAGE_ROWS else ""
    st.caption(f"{len(page):,} rows{more}: the wrong ones first, the surest of them on top.")
    columns = answers(parent, version, unknown)
    st.dataframe(
        beside(columns.iloc[page], frame.iloc[inside[page]], inside[page]),
        hide_index=True,
        height=560 if len(page) > 14 else "content",
        key="region_rows",
        column_config={_sure(who): st.column_config.NumberColumn(format="percent") for who in WHO},
        alt="Rows in the box with what each model says of them and their own values",
    )
    csv_button(
        lambda: beside(columns.iloc[order], frame.iloc[inside[order]], inside[order]),
        key="region_csv",
        name=f"{review.title} rows in the box",
    )


def worst_first(scored: ScoredSet) -> IntArray:
    """Order of rows: wrong before right, and the surer first."""
    wrong = scored.proba.argmax(axis=1) != scored.y
    return np.lexsort((-scored.proba.max(axis=1), ~wrong))


def answers(parent: ScoredSet, version: ScoredSet | None, unknown: Any) -> pd.DataFrame:
    """One row a row: its class, what each model says of it and how surely."""
    names = np.array(parent.classes, dtype=object)
    columns: dict[str, Any] = {"True class": names[parent.y]}
    for who, scored in zip(WHO, (parent, version), strict=True):
        if scored is not None:
            columns[f"{who} says"] = names[scored.proba.argmax(axis=1)]
            columns[_sure(who)] = scored.proba.max(axis=1)
    if version is not None:
        columns["Unknown"] = unknown
    return pd.DataFrame(columns)


def _sure(who: str) -> str:
    return f"{who}'s confidence"


def beside(columns: pd.DataFrame, frame: pd.DataFrame, positions: IntArray) -> pd.DataFrame:
    """Answers and original values side by side; the table's own names give way to ours."""
    ours = columns.reset_index(drop=True)
    ours.insert(0, "Row", positions + 1)
    theirs = frame.reset_index(drop=True)
    theirs.columns = _apart([str(name) for name in theirs.columns], set(ours.columns))
    return pd.concat([ours, theirs], axis=1)


def _apart(names: list[str], taken: set[str]) -> list[str]:
    found = []
    for name in names:
        while name in taken:
            name += " (table)"
        taken.add(name)
        found.append(name)
    return found
