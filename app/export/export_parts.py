"""The upper part of the page Choose and export: choice, finding, diagrams, the map."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import streamlit as st

from app.export import export_results as found
from app.export import export_settings
from app.export import export_text as text
from app.export.export_results import View
from app.shared import job_results, session, waiting
from app.shared.charts import drawn_once, estimate_row, is_dark, show
from app.shared.emphasis import emphasis
from kdcal_core.calibration import CALIBRATORS
from kdcal_core.charts import (
    calibrator_map_chart,
    calibrator_map_regions,
    judged_reliability_chart,
)
from kdcal_core.errors import InputError
from kdcal_core.review import Review
from kdcal_core.tasks import Gain, export_calibrator
from kdcal_core.text import escape_markdown

TILES = ("log_loss", "ece_debiased", "auc", "accuracy")


def exported(review: Review) -> View | None:
    """A fitted calibrator with its finding on top; until then the page shows progress."""
    top = st.container()
    with st.container(border=True):
        settings, button = export_settings.choose(review), st.empty()
    if settings is None:
        st.info(text.NO_COLUMNS, icon=":material/info:")
        return None
    try:
        asked = export_calibrator.request(session.workspace(), review.id, settings)
    except InputError as error:
        st.info(escape_markdown(f"{error.what}. {error.fix}", 600), icon=":material/info:")
        return None
    if waiting.find(asked.key) is None:
        if button.button(
            "Fit, judge and write the file",
            key="export_start",
            type=emphasis(),
            icon=":material/play_arrow:",
        ):
            job_results.begin(asked, review)
            st.rerun()
        with st.container(border=True):
            st.markdown(text.WILL_SHOW)
        return None
    job = job_results.finished(asked, review)
    run = None if job is None else found.run_of(job)
    if run is None:
        return None
    view = View(review, asked.key, run)
    _finding(view, top)
    return view


def _finding(view: View, top: Any) -> None:
    """What the calibrator gains, and what it costs, in a few sentences."""
    run = view.run
    with top:
        if run.gain is None:
            why = run.record.why_not_judged or ""
            st.header("The gain could not be judged", anchor=False)
            st.warning(escape_markdown(why, 600), icon=":material/visibility:")
            return
        st.header(escape_markdown(text.finding(run.record.title, run.gain), 600), anchor=False)
        st.markdown(text.also(run.gain))
        if CALIBRATORS[run.record.settings.key].family == "kernel density":
            st.caption(text.FAR)
        for note in run.gain.comparison.notes:
            st.caption(escape_markdown(note.sentence, 400))
        compared = found.comparison_of(view.review)
        if compared is not None and text.chosen_there(compared, run.gain, run.record.settings.key):
            st.caption(text.flattered(compared))


def gained(view: View, *, between: Callable[[], None]) -> None:
    """At most four estimates, what ``between`` draws, and the diagrams before and after."""
    gain = view.run.gain
    if gain is not None:
        tiles(gain)
    between()
    if gain is not None:
        key = view.run.record.settings.key
        diagrams(gain, key, f"{view.review.title} {key}", "export")


def tiles(gain: Gain) -> None:
    """After calibration, with the model's value below."""
    shown = [key for key in TILES if key in gain.pairs]
    estimate_row(
        [gain.after.scores[key] for key in shown],
        notes=[text.tile_note(gain, key) for key in shown],
    )


def diagrams(gain: Gain, method: str, name: str, key: str) -> None:
    """Reliability before and after, side by side on one scale."""
    event = gain.comparison.event
    with st.container(border=True):
        what = "Confidence in the prediction" if event is None else f"Probability of {event[:60]}"
        st.markdown(f"**Reliability before and after.** {escape_markdown(what)}")
        sides = ((gain.before, "model"), (gain.after, method))
        for column, (scores, drawn) in zip(st.columns(2, gap="medium"), sides, strict=True):
            with column:
                (curve,) = scores.reliability.curves
                show(
                    drawn_once(
                        judged_reliability_chart,
                        curve,
                        drawn,
                        of_class=event is not None,
                        dark=is_dark(),
                    ),
                    key=f"{key}_{'before' if drawn == 'model' else 'after'}",
                    of=name,
                )


def mapping(view: View) -> None:
    """What the calibrator does to a score."""
    found_map = view.run.map
    with st.container(border=True):
        st.markdown("**What the calibrator does**")
        show(
            drawn_once(
                calibrator_map_chart,
                found_map,
                view.run.record.settings.key,
                view.review.classes,
                dark=is_dark(),
            ),
            key="export_map",
            of=f"{view.review.title} {view.run.record.settings.key}",
        )
        if found_map.shape == "regions":
            _regions(calibrator_map_regions(found_map))
        for note in view.run.fit_notes:
            st.caption(escape_markdown(note, 600))
        left_out = found_map.n_lines - len(found_map.lines)
        if left_out > 0:
            what = "regions" if found_map.shape == "regions" else "classes"
            st.caption(
                f"The {len(found_map.lines)} {what} with most rows are drawn; {left_out:,} are not."
            )


def _regions(table: pd.DataFrame) -> None:
    shares = [name for name in table.columns if name.endswith("becomes")]
    st.dataframe(
        table,
        hide_index=True,
        key="export_regions",
        row_height=54,
        column_config={
            "Region": st.column_config.NumberColumn(width=60),
            "Where": st.column_config.TextColumn(width=500),
            "Rows": st.column_config.NumberColumn(format="localized", width=70),
            **{name: st.column_config.NumberColumn(format="percent") for name in shares},
        },
        alt="The regions of the calibrator with the calibrated values of some scores",
    )
