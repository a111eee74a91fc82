"""The upper part of the Recalibration page: settings, job, finding, maps, coverage by column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from app.recalibration import recalibration_results as found
from app.recalibration import recalibration_settings
from app.recalibration import recalibration_text as text
from app.recalibration.recalibration_results import Finished, View
from app.shared import in_browser, job_results, navigation, tiles
from app.shared.box_selection import Box
from app.shared.charts import dragged, drawn_once, is_dark, show
from app.shared.emphasis import quiet
from app.shared.one_of import one_of
from app.shared.seen_charts import seen
from kdcal_core.charts import (
    PAPERS,
    better_model_words,
    coverage_by_chart,
    misses_chart,
    misses_grid_chart,
    recalibration_advice,
    recalibration_finding,
    recalibrator_title,
)
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.evaluation import MODEL, STATED, meanings
from kdcal_core.review import Review
from kdcal_core.tasks import (
    AXES,
    MEAN,
    OUTCOME,
    recalibrate,
    recalibration_judged_text,
    repair_keys,
    space_title,
)
from kdcal_core.text import escape_markdown

MAP = "recalibration_map"


@dataclass(frozen=True, eq=False)
class Places:
    """The rows on the map, (m,), their places, (m, 2), and the box that contains them."""

    rows: IntArray
    xy: FloatArray
    whole: Box


def recalibrated(review: Review) -> View | None:
    """A finished recalibration and the chosen method; until then the page shows progress."""
    row = st.container(horizontal=True, vertical_alignment="center", gap="medium")
    with row, job_results.settings_card(review.id, "recalibration"):
        settings, button = recalibration_settings.choose(review), st.empty()
    asked = job_results.request(recalibrate, review, settings)
    if asked is None:
        return None
    job = job_results.asked_for(
        asked,
        review.id,
        button,
        label="Recalibrate",
        name="recalibration",
        will_show=text.WILL_SHOW,
    )
    opened = None if job is None else found.run_of(job)
    if opened is None:
        return None
    key, run = opened
    return _view(review, key, run, row)


def _view(review: Review, key: str, run: Finished, row: Any) -> View | None:
    methods = [one for one in run.record.keys if one != MODEL]
    if not methods:
        _warnings(run)
        return None
    best = run.record.choice.key
    titles = {one.key: recalibrator_title(one.key, one.title) for one in run.record.methods}
    with row:
        chosen = one_of(
            "Method in the pictures below",
            {one: titles[one] for one in methods},
            best if best in methods else methods[0],
            key=f"recalibration_shown_{key[:16]}",
            label_visibility="collapsed",
            width="content",
        )
    return View(review, key, run, chosen)


def answer(view: View) -> Places | None:
    """The gain in one sentence, the maps before and after, and the tiles beside them."""
    finding = recalibration_finding(view.model, view.method)
    st.header(escape_markdown(finding, 600), anchor=False)
    better = better_model_words(view.run.record.methods, view.run.record.choice)
    if better:
        st.markdown(escape_markdown(better, 600))
    picture, beside = tiles.answer()
    with picture:
        places = _maps(view)
    with beside:
        _tiles(view)
    _warnings(view.run)  # below the picture, which they would push out of the first screen
    _further_words(view)
    with st.container(horizontal=True, vertical_alignment="center"):
        _how_to_read()
        if view.chosen in repair_keys():
            navigation.page_link("export", "Choose a repair and export it")
    return places


def _warnings(run: Finished) -> None:
    for note in run.record.notes:
        st.warning(escape_markdown(note, 600), icon=":material/visibility:")


def _tiles(view: View) -> None:
    model, method = view.model, view.method
    shown = [key for key in text.TILES if key in method.scores.rows]
    changes = {**method.differences, "rmse": None}
    tiles.estimate_column(
        [method.scores.rows[key] for key in shown],
        notes=[
            tiles.before_and_change(model.scores.rows.get(key), changes.get(key)) for key in shown
        ],
    )


def _further_words(view: View) -> None:
    """What else was found, and how the methods were judged."""
    method, record = view.method, view.run.record
    local = text.local_finding(view.model, method, record.space)
    advice = recalibration_advice(record.methods, record.choice)
    st.markdown(f"{escape_markdown(local, 400)} {escape_markdown(advice, 600)}")
    outside = view.review.sets[view.judged.which].outside
    noted = dict.fromkeys((*view.model.notes, *method.notes))
    notes = (recalibration_judged_text(record), *noted, *text.outside_notes(outside))
    st.caption(" ".join(escape_markdown(note, 400) for note in notes))


def _how_to_read() -> None:
    with st.popover("How to read this", type=quiet(), icon=":material/help:"):
        st.markdown(meanings(text.TILES) + text.BEFORE)
        st.markdown(text.WORK)
        st.caption(f"Summarised from {PAPERS['Torres et al.']}.")


def numbers_of(view: View) -> list[str]:
    """Features that are numbers, in the order of the table."""
    review = view.review
    assert review.roles is not None
    table = review.tables[view.judged.which]
    kinds = {column.name: column.kind for column in table.columns}
    return [name for name in review.roles.features if kinds.get(name) == "number"]


def title_of(view: View, name: str) -> str:
    """The shown name of an axis or a column. Untrusted text."""
    if name in AXES:
        where = space_title(view.run.record.space).lower()
        return f"Principal axis {AXES.index(name) + 1} ({where})"
    if name == MEAN:
        return "Predicted mean"
    return f"{view.judged.outcome} (outcome)" if name == OUTCOME else name


def _maps(view: View) -> Places | None:
    """Outcomes outside their intervals, on maps before and after; None while a job runs."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("Missed outcomes, before and after", anchor=False, width="content")
        with st.popover("Axes and intervals", icon=":material/tune:", type=quiet()):
            across, up = _axes(view)
            level = _level()
    shown = found.map_of(view, across, up, level)
    if shown is None:
        return None
    rows, xy, panels = shown.rows, shown.xy, (shown.before, shown.after)
    titles = (title_of(view, across), title_of(view, up))
    chart = drawn_once(
        dragged,
        misses_chart,
        "select",
        xy,
        panels,
        dark=is_dark(),
        x_title=titles[0],
        y_title=titles[1],
        level=level,
        rows=rows,
        narrow=in_browser.is_narrow(),
    )
    seen(
        *(view.review, "missed", "Missed outcomes, before and after", "recalibration"),
        *(misses_grid_chart, xy, panels),
        x_title=titles[0],
        y_title=titles[1],
        level=level,
        settings=f"{view.method.title}; on a grid in place of the map of single rows",
    )
    show(chart, key=MAP, of=view.review.title, finding=False, on_box=lambda: None)
    st.markdown(escape_markdown(chart.finding, 1000))
    st.caption("Drag a box on a map to see the intervals of the rows in it below.")
    if shown.before.n > len(rows):
        st.caption(
            f"The maps show {len(rows):,} of {shown.before.n:,} rows, drawn at random; the "
            "counts are those of all rows."
        )
    return Places(rows, xy, found.whole_map(xy))


def _axes(view: View) -> tuple[str, str]:
    """The axes of the map, initially those that show most in two dimensions."""
    features = numbers_of(view)
    options = [*features, *AXES, MEAN, OUTCOME]
    assert view.review.roles is not None
    if len(view.review.roles.features) > 2:
        first = AXES
    elif len(features) == 2:
        first = (features[0], features[1])
    else:
        first = (features[0] if features else MEAN, OUTCOME)
    across, up = (
        st.selectbox(
            label,
            options=options,
            index=options.index(name),
            format_func=lambda name: title_of(view, name)[:60],
            key=f"recalibration_{label.lower()}_{view.review.id}",
            persist_state="session",
            width=260,
        )
        for label, name in zip(("Across", "Up"), first, strict=True)
    )
    return across, up


def _level() -> float:
    level: float = st.selectbox(
        "Intervals",
        options=STATED,
        index=STATED.index(0.95),
        format_func=lambda level: f"{level:.0%}",
        key="recalibration_level",
        persist_state="session",
        width=110,
        help="Stated probability of the central intervals, here and in the cards below.",
    )
    return level


def level_of() -> float:
    """The stated probability chosen for the maps."""
    return float(st.session_state.get("recalibration_level", 0.95))


def over_a_column(view: View) -> None:
    """Coverage along a column, before and after."""
    assert view.review.roles is not None
    with st.container(border=True):
        title, setting = st.columns([2, 1], vertical_alignment="center")
        title.subheader("Coverage along a column", anchor=False)
        with setting:
            column: str = st.selectbox(
                "Column",
                options=[*view.review.roles.features, MEAN],
                format_func=lambda name: title_of(view, name)[:60],
                key=f"recalibration_column_{view.review.id}",
                persist_state="session",
            )
        level = level_of()
        bins = found.coverage_over(view, column, level)
        if bins is None:
            return
        shown: dict[str, Any] = {
            "column": title_of(view, column),
            "after": bins.after,
            "after_name": view.method.title,
            "after_by": view.chosen,
        }
        titled = "recalibration_column", "Coverage along a column, recalibrated", "recalibration"
        drawn = bins.names, bins.before
        seen(view.review, *titled, coverage_by_chart, *drawn, settings=view.method.title, **shown)
        show(
            drawn_once(coverage_by_chart, *drawn, dark=is_dark(), **shown),
            key="recalibration_coverage",
            of=view.review.title,
        )
