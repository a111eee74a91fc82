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
from numpy.typing import NDArray

from app.shared import map_results, results, session
from app.shared.charts import chart, csv_button, drawn_once, estimate_row, is_dark
from app.shared.graph_results import Version
from app.shared.numbers import number
from kdcal_core.charts import map_words, reliability_figure, words
from kdcal_core.data import IntArray, ScoredSet
from kdcal_core.diagnostics import Reliability, reliability_finding, telling
from kdcal_core.review import Review, Which
from kdcal_core.tasks import GridRun
from kdcal_core.text import escape_markdown

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
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        return Box(
            _slider(run.record.x_name, whole.x, places.x),
            _slider(run.record.y_name, whole.y, places.y),
        )


def _slider(name: str, ends: Range, key: str) -> Range:
    st.session_state.setdefault(key, ends)  # not the default: a dragged box comes this way too
    chosen: Any = st.slider(  # two ends, as the state holds two
        escape_markdown(name[:40]),
        *ends,
        step=(ends[1] - ends[0]) / STEPS,
        format="%.3g",
        key=key,
        persist_state="session",
    )
    low, high = chosen
    return low, high


def region(review: Review, run: GridRun, version: Version | None) -> None:
    """The rows in the box: what they are, and whether they bear the models out."""
    with st.container(border=True):
        st.markdown("**Rows in the box**")
        box = _chosen_box(review, run)
        which: Which = "evaluation" if review.has_evaluation else "calibration"
        inside = _inside(review, which, run, box, version)
        if box == whole_map(run):
            st.caption("This is the whole map. Drag a box on any panel, or narrow the ranges.")
        st.markdown(escape_markdown(inside.sentence, 800))
        if inside.parent.n_rows == 0:
            return
        mix = map_words.mix_words(inside.parent.y, inside.parent.classes)
        st.caption(f"{_source(review, version)}. Classes: {escape_markdown(mix, 800)}")
        if inside.parent.n_rows >= map_words.VERY_FEW:
            _reliability(review, inside)
        _table(review, which, inside)


def _source(review: Review, version: Version | None) -> str:
    if review.has_evaluation:
        return "Rows of the evaluation set"
    return "Rows of the calibration set" + (" that were held out of the fit" if version else "")


@dataclass(frozen=True, eq=False)
class Inside:
    """The rows in a box.

    Attributes
    ----------
    rows : (m,) int64
        Their positions in the set's table.
    n_all : int
        Rows that could lie in it.
    parent, version : ScoredSet
        The rows with each model's probabilities; the second None where there is none.
    unknown : (m,) bool or None
        Which of them the kernel density version calls unknown.
    """

    rows: IntArray
    n_all: int
    parent: ScoredSet
    version: ScoredSet | None
    unknown: NDArray[np.bool_] | None

    @property
    def sentence(self) -> str:
        """How many they are, and how right and how sure each model is."""
        parent, version = (
            map_results.right_and_sure(scored) if scored is not None and scored.n_rows else None
            for scored in (self.parent, self.version)
        )
        return map_words.region_finding(len(self.rows), self.n_all, parent, version)


def _inside(
    review: Review, which: Which, run: GridRun, box: Box, version: Version | None
) -> Inside:
    scored = results.scored_set(session.workspace(), review, which)
    judged = np.arange(scored.n_rows) if version is None else version.fit.run.positions
    chosen = rows_in(box, run, judged)
    rows = judged[chosen]
    parent = map_results.some_rows(scored, rows, scored.proba[rows], "model")
    if version is None:
        return Inside(rows, len(judged), parent, None, None)
    placed = version.fit.run.rows.located
    proba = version.posterior("judged", placed)[chosen]
    density = version.log_density("judged", placed)[chosen]
    return Inside(
        rows,
        len(judged),
        parent,
        map_results.some_rows(scored, rows, proba, version.key),
        density < version.graph.effective_log_floor,
    )


def _reliability(review: Review, inside: Inside) -> None:
    """The diagram of the rows, and beside it what it says."""
    parent, version = inside.parent, inside.version
    picture, beside = st.columns([1.15, 1], gap="medium")
    found = results.reliability_of(parent, "confidence", n_bins=10, strategy="uniform")
    curve, other = found.curves[0], None
    said = [f"**Model.** {_finding(found, parent)}"]
    if version is not None:
        calibrated = results.reliability_of(version, "confidence", n_bins=10, strategy="uniform")
        other = calibrated.curves[0]
        said.append(f"**Kernel density version.** {_finding(calibrated, version)}")
    named = (("model", curve), ("kernel density version", other))
    with picture:
        chart(
            drawn_once(
                reliability_figure,
                curve,
                dark=is_dark(),
                calibrated=other,
                calibrated_name="Kernel density version",
            ),
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
    with beside:
        st.markdown("\n\n".join(said))
        shown, before = (parent, None) if version is None else (version, parent)
        if before is not None:
            st.caption("The kernel density version in the box:")
        estimates = results.summary_of(shown)
        notes = None
        if before is not None:
            notes = [f"{number(one)} for the model itself" for one in results.summary_of(before)]
        for at in (0, 2):
            pair = slice(at, at + 2)
            estimate_row(estimates[pair], notes=notes[pair] if notes is not None else None)


def _finding(found: Reliability, scored: ScoredSet) -> str:
    return escape_markdown(reliability_finding(found, telling(results.summary_of(scored))), 400)


def _table(review: Review, which: Which, inside: Inside) -> None:
    frame = map_results.table_of(session.workspace(), review, which)
    order = worst_first(inside.parent)
    said = answers(inside)

    def rows(some: IntArray) -> pd.DataFrame:
        return beside(said.iloc[some], frame.iloc[inside.rows[some]], inside.rows[some])

    page = order[:PAGE_ROWS]
    more = f" of {len(order):,}" if len(order) > len(page) else ""
    st.caption(f"{len(page):,}{more} rows as they came: the wrong ones first, the surest on top.")
    st.dataframe(
        rows(page),
        hide_index=True,
        height=390 if len(page) > 10 else "content",
        key="region_rows",
        column_config={_sure(who): st.column_config.NumberColumn(format="percent") for who in WHO},
        alt="Rows in the box with what each model says of them and their own values",
    )
    csv_button(lambda: rows(order), key="region_csv", name=f"{review.title} rows in the box")


def worst_first(scored: ScoredSet) -> IntArray:
    """Order of rows: wrong before right, and the surer first."""
    wrong = scored.proba.argmax(axis=1) != scored.y
    return np.lexsort((-scored.proba.max(axis=1), ~wrong))


def answers(inside: Inside) -> pd.DataFrame:
    """One row a row: its class, what each model says of it and how surely."""
    names = np.array(inside.parent.classes, dtype=object)
    columns: dict[str, Any] = {"True class": names[inside.parent.y]}
    for who, scored in zip(WHO, (inside.parent, inside.version), strict=True):
        if scored is not None:
            columns[f"{who} says"] = names[scored.proba.argmax(axis=1)]
            columns[_sure(who)] = scored.proba.max(axis=1)
    if inside.unknown is not None:
        columns["Unknown"] = inside.unknown
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
