"""A box on the posterior map: its rows, and the accuracy and confidence of the models there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from app.posterior_map import map_results
from app.posterior_map.map_results import Boxed, Map
from app.shared.box_selection import Box, Range, dragged_box
from app.shared.charts import csv_button, drawn_once, is_dark, show
from app.shared.graph_results import Version
from app.shared.row_tables import beside, most_text
from app.shared.sections import sections
from app.shared.seen_charts import seen
from app.shared.tables import show_table
from app.shared.tiles import estimate_row
from kdcal_core.charts import box_finding, box_reliability_chart, mix_words
from kdcal_core.diagnostics import headline_estimate, reliability_finding, value_text
from kdcal_core.review import Review
from kdcal_core.tasks import FEWEST, BoxJudged, BoxRows, GridRun, RowsInBox
from kdcal_core.text import escape_markdown

PAGE_ROWS = 100
STEPS = 400  # of the sliders across the map
WHO = ("Model", "Density version")


def whole_map(run: GridRun) -> Box:
    """The box of the whole map."""
    return Box((float(run.x[0]), float(run.x[-1])), (float(run.y[0]), float(run.y[-1])))


@dataclass(frozen=True)
class Places:
    """The keys of the sliders that hold the box of one map in the session."""

    x: str
    y: str

    @classmethod
    def of(cls, review: Review, run: GridRun) -> Places:
        drawn = (review.id, run.record.x_name, run.record.y_name, whole_map(run))
        digest = hashlib.sha256(repr(drawn).encode()).hexdigest()[:12]
        return cls(f"map_box_x_{digest}", f"map_box_y_{digest}")


def take_box(review: Review, run: GridRun) -> None:
    """Callback: set the sliders below the map to the dragged box."""
    state = st.session_state.get("posterior_map")
    box = dragged_box(getattr(state, "selection", None), whole_map(run))
    places = Places.of(review, run)
    st.session_state[places.x], st.session_state[places.y] = box.x, box.y


def on_box(review: Review, run: GridRun) -> Any:
    """The callback of the chart when a box is dragged or cleared."""
    return partial(take_box, review, run)


def _chosen_box(review: Review, run: GridRun) -> Box:
    whole, places = whole_map(run), Places.of(review, run)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        return Box(
            _slider(run.record.x_name, whole.x, places.x),
            _slider(run.record.y_name, whole.y, places.y),
        )


def _slider(name: str, ends: Range, key: str) -> Range:
    st.session_state.setdefault(key, ends)  # not as a default, because a dragged box sets it too
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


def rows_in_box(review: Review, drawn: Map, version: Version | None) -> None:
    """The rows in the box, and whether they support the models."""
    with st.container(border=True):
        st.subheader("Rows in the box", anchor=False)
        run = drawn.run
        boxed = Boxed(review, drawn, _chosen_box(review, run), version)
        found = map_results.inside(boxed, PAGE_ROWS)
        if found is None:
            return
        if boxed.box == whole_map(run):
            st.caption("This is the whole map. Drag a box on any panel, or narrow the ranges.")
        st.markdown(escape_markdown(_sentence(found), 800))
        if found.model is None:
            return
        mix = mix_words(found.count, review.classes)
        st.caption(f"{_source(review, version)}. Classes: {escape_markdown(mix, 800)}")
        shown: dict[str, Callable[[], None]] = {}
        if found.table.n >= FEWEST:
            shown["Reliability"] = partial(_reliability, review, found.model, found.version)
        sections("box_sections", {**shown, "Rows": partial(_table, boxed, found.table)})


def _source(review: Review, version: Version | None) -> str:
    if review.has_evaluation:
        return "Rows of the evaluation set"
    return "Rows of the calibration set" + (" that were held out of the fit" if version else "")


def _sentence(found: RowsInBox) -> str:
    """The number of rows, and the accuracy and confidence of each model."""
    model, version = (
        None if judged is None else (judged.right, judged.sure)
        for judged in (found.model, found.version)
    )
    return box_finding(found.table.n, found.n_all, model, version)


def _reliability(review: Review, model: BoxJudged, version: BoxJudged | None) -> None:
    """The diagram of the rows with its findings."""
    picture, beside = st.columns(2, gap="medium")
    assert model.reliability is not None  # of enough rows
    curve, other = model.reliability.curves[0], None
    said = [f"**Model.** {_finding(model)}"]
    if version is not None:
        assert version.reliability is not None  # as of the model
        other = version.reliability.curves[0]
        said.append(f"**Kernel density version.** {_finding(version)}")
    seen(
        *(review, "map_box", "Reliability in a box of the posterior map", "posterior_map"),
        *(box_reliability_chart, curve, other),
        settings="the rows in the box that was drawn last",
    )
    with picture:
        show(
            drawn_once(box_reliability_chart, curve, other, dark=is_dark()),
            key="box_reliability",
            of=review.title,
        )
    with beside:
        st.markdown("\n\n".join(said))
        shown, before = (model, None) if version is None else (version, model)
        if before is not None:
            st.caption("The kernel density version in the box:")
        notes = None
        if before is not None:
            notes = [f"{value_text(one)} for the model itself" for one in before.estimates]
        for at in (0, 2):
            pair = slice(at, at + 2)
            estimate_row(shown.estimates[pair], notes=notes[pair] if notes is not None else None)


def _finding(judged: BoxJudged) -> str:
    assert judged.reliability is not None  # of enough rows
    return escape_markdown(
        reliability_finding(judged.reliability, headline_estimate(judged.estimates)), 400
    )


def _table(boxed: Boxed, page: BoxRows) -> None:
    shown = _rows(page)
    more = f" of {page.n:,}" if page.n > len(shown) else ""
    st.caption(f"{len(shown):,}{more} rows: the wrong ones first, the most confident on top.")
    show_table(
        shown,
        height=390 if len(shown) > 10 else "content",
        key="box_rows",
        column_config={_sure(who): st.column_config.NumberColumn(format="percent") for who in WHO},
        alt="Rows in the box with each model's predictions and their own values",
    )
    every = map_results.every_row_of(boxed, f"Prepare {most_text(page.n)} as CSV")
    if every is not None:
        csv_button(
            lambda: _rows(every()), key="box_csv", of=boxed.review.title, what="rows in the box"
        )


def _rows(found: BoxRows) -> pd.DataFrame:
    return beside(found.said, found.own, found.rows)


def _sure(who: str) -> str:
    return f"{who}'s confidence"
