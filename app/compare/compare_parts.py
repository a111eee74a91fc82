"""The Compare page: job, finding, dots, table, paired differences, pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from app.compare import compare_settings
from app.compare import compare_text as text
from app.shared import in_browser, job_results, navigation, tiles
from app.shared.charts import csv_button, drawn_once, drawn_square, is_dark, show
from app.shared.emphasis import quiet
from app.shared.equal_notes import copies, show_note
from app.shared.one_of import one_of
from app.shared.tables import show_table
from app.shared.version_choice import also_offer
from kdcal_core.charts import (
    against_model,
    amount,
    comparison_chart,
    comparison_finding,
    comparison_table,
    judged_text,
    method_name,
    method_reliability_chart,
    paired_chart,
    ranked,
    split_chart,
)
from kdcal_core.diagnostics import Estimate, estimate_text
from kdcal_core.evaluation import Against, Comparison, Group
from kdcal_core.review import Review
from kdcal_core.tasks import ComparisonRun, compare_calibrators
from kdcal_core.text import escape_markdown, in_sentence, p_text

_PICTURES = 12  # that three screens hold
_NOTHING = 0.0001  # of any measure: smaller changes do not matter
AGAINST: dict[Against, str] = {"model": "The model as it is", "best": "The best"}


@dataclass(frozen=True, eq=False)
class View:
    """A finished comparison and what the page shows of it.

    Attributes
    ----------
    review : Review
    run : ComparisonRun
    group : str
        The chosen group of measures.
    measure : str
        Key of the measure that orders the methods; it belongs to the group.
    """

    review: Review
    run: ComparisonRun
    group: Group
    measure: str

    @property
    def found(self) -> Comparison:
        """The comparison itself."""
        return self.run.comparison

    @property
    def order(self) -> tuple[str, ...]:
        """Methods, the best first."""
        return ranked(self.found, self.measure)

    @property
    def measures(self) -> tuple[str, ...]:
        """The group's measures, starting with the one that orders."""
        keys = [one.key for one in self.found.measures if one.group == self.group]
        return (self.measure, *(key for key in keys if key != self.measure))


def compared(review: Review) -> View | None:
    """A finished comparison; until then the page shows progress."""
    row = st.container(horizontal=True, vertical_alignment="center", gap="medium")
    with row, job_results.settings_card(review.id, "compare"):
        settings, button = compare_settings.choose(review)
    asked = job_results.request(compare_calibrators, review, settings)
    if asked is None:
        return None
    job = job_results.asked_for(
        asked, review.id, button, label="Compare", name="compare", will_show=text.WILL_SHOW
    )
    run = None if job is None else job_results.result_of(job, compare_calibrators)
    if job is None or run is None:
        return None
    if job.key == asked.key:  # not the result of settings before these
        compare_settings.to_address(review, settings)
    return _view(review, run, row)


def _view(review: Review, run: ComparisonRun, row: Any) -> View | None:
    found = run.comparison
    for key, why in found.failed.items():
        st.warning(escape_markdown(text.failed(key, why), 600), icon=":material/visibility:")
    for note in found.notes:
        if note.about == "copies" and note.sentence not in copies(review):
            show_note(note)
    if len(found.methods) < 2:
        st.info("No calibrator could be fitted, so there is nothing to compare.")
        return None
    groups = [one for one in text.GROUPS if any(m.group == one for m in found.measures)]
    with row:
        group = _group(groups)
        measure = _measure(found, group)
    return View(review, run, group, measure)


def _group(groups: Sequence[Group]) -> Group:
    return one_of(
        "What matters",
        {one: text.GROUPS[one] for one in groups},
        groups[0],
        key="compare_group",
        label_visibility="collapsed",
        width="content",
    )


def _measure(found: Comparison, group: Group) -> str:
    keys = [one.key for one in found.measures if one.group == group]
    lead = text.LEADS[group]
    measure: str = st.selectbox(
        "Ordered by",
        options=keys,
        index=keys.index(lead) if lead in keys else 0,
        format_func=lambda key: f"By {in_sentence(found.measure(key).title)}",
        key=f"compare_measure_{group}",
        persist_state="session",
        label_visibility="collapsed",
        width=260,
    )
    return measure


def answer(view: View) -> None:
    """The finding, every method by the chosen measure, and at most four estimates."""
    found = view.found
    also_offer(view.review, found.smallest_of_best("log_loss"))
    st.header(escape_markdown(comparison_finding(found, view.measure), 800), anchor=False)
    picture, beside = tiles.answer()
    with picture:
        show(
            drawn_once(comparison_chart, found, (view.measure,), view.order, dark=is_dark()),
            key=f"compare_lead_{view.measure}",
            of=view.review.title,
            finding=False,
        )
    if view.group != "speed":
        estimates, notes = text.tiles(found, view.measure)
        with beside:
            tiles.estimate_column(estimates, notes=[escape_markdown(note, 200) for note in notes])
    if words := against_model(found, view.measure):
        st.markdown(escape_markdown(words, 800))
    notes_on_rows = (judged_text(found, view.run.n_fit), *text.notes_for(found, view.group))
    st.caption(" ".join(escape_markdown(note, 600) for note in notes_on_rows))


def dots(view: View) -> None:
    """Every measure of the group, with intervals."""
    found = view.found
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.subheader(f"{text.GROUPS[view.group]}", anchor=False, width="content")
            with st.popover("What these groups mean", icon=":material/help:", type=quiet()):
                st.markdown(text.MATTERS)
        show(
            drawn_once(
                comparison_chart,
                found,
                view.measures,
                view.order,
                dark=is_dark(),
                narrow=in_browser.is_narrow(),
            ),
            key=f"compare_dots_{view.group}",
            of=view.review.title,
        )


def further(view: View) -> dict[str, Callable[[], None]]:
    """The pictures and the numbers, by title."""
    differences = {} if view.group == "speed" else {"Paired differences": partial(paired, view)}
    return {
        "Every measure": partial(dots, view),
        **differences,
        "Reliability diagrams": partial(pictures, view),
        "Calibration or knowledge": partial(parts, view),
        "All numbers": partial(table, view),
    }


def paired(view: View) -> None:
    """Differences on the same rows, against the model as it is or against the best."""
    found = view.found
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.subheader("Paired differences, row by row", anchor=False)
            against = one_of(
                "Compared with",
                AGAINST,
                "model",
                key="compare_against",
                label_visibility="collapsed",
            )
        show(
            drawn_once(
                paired_chart,
                found,
                view.measures,
                view.order,
                against,
                dark=is_dark(),
                narrow=in_browser.is_narrow(),
            ),
            key=f"compare_paired_{view.group}_{against}",
            of=view.review.title,
        )
        pairs = {pair.key: pair for pair in found.paired[view.measure, against]}
        other = found.best[view.measure] if against == "best" else found.reference
        rows = [
            {
                "Method": method_name(found, key),
                f"{found.measure(view.measure).title}: difference": _cell(
                    text.difference(found, view.measure, pairs[key])
                ),
                "p": p_text(pairs[key].p_value),
                "p, allowing for all methods": p_text(pairs[key].adjusted_p),
                "Verdict": pairs[key].verdict,
            }
            for key in view.order
            if key != other
        ]
        with st.expander(
            "P values and verdicts", key="compare_pairs_table", on_change="rerun"
        ) as it:
            if it.open:
                show_table(
                    pd.DataFrame(rows),
                    height="content",
                    key="compare_pairs",
                    alt="Paired differences of every method with p values and verdicts",
                )


def pictures(view: View) -> None:
    """The reliability diagrams of the best methods and the model, or of every one, on one scale."""
    order, model = view.order, view.found.reference
    with st.container(border=True):
        if len(order) > _PICTURES and not st.toggle(
            f"All {len(order)} methods", key="compare_all_pictures", persist_state="session"
        ):
            best = [key for key in order if key != model][: _PICTURES - 1]
            order = tuple(key for key in order if key in (*best, model))
        show(
            drawn_square(method_reliability_chart, view.found, order, dark=is_dark()),
            key=f"compare_pictures_{len(order)}",
            of=view.review.title,
        )


def parts(view: View) -> None:
    """The Brier score of every method, split into miscalibration and discrimination."""
    with st.container(border=True):
        st.subheader("What calibration corrects, and what is new knowledge", anchor=False)
        show(
            drawn_once(split_chart, view.found, view.order, dark=is_dark()),
            key="compare_parts",
            of=view.review.title,
        )


def table(view: View) -> None:
    """All measures of all methods, and notes on the fits."""
    found = view.found
    with st.container(border=True):
        st.subheader("All numbers", anchor=False)
        show_table(
            pd.DataFrame([_line(found, key) for key in view.order]),
            height="content",
            key="compare_table",
            column_config={
                "Method": st.column_config.TextColumn(pinned=True),
                **{
                    one.title: st.column_config.TextColumn(help=one.meaning)
                    for one in found.measures
                },
            },
            alt="Every measure of every method with its interval, times and size",
        )
        csv_button(
            lambda: comparison_table(found, [one.key for one in found.measures]),
            key="compare_table_csv",
            of=view.review.title,
            what="comparison",
        )
        notes = [(one.name, note) for one in found.methods for note in one.notes]
        if notes:
            with st.expander("Notes from the fits", icon=":material/notes:"):
                for name, note in notes:
                    st.caption(escape_markdown(f"{name}: {note}", 600))


def onward() -> None:
    """Links to the next pages."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("Look at one calibrator closely and save it as a file:")
        navigation.page_link("export", "Choose and export")


def _line(found: Comparison, key: str) -> dict[str, str]:
    method = found.method(key)
    line = {"Method": method_name(found, key)}
    for measure in found.measures:
        estimate = method.scores[measure.key]
        line[measure.title] = (
            amount(measure.key, estimate.value) if measure.group == "speed" else _cell(estimate)
        )
    return line


def _cell(estimate: Estimate) -> str:
    if 0 < max(abs(estimate.low), abs(estimate.high)) < _NOTHING:
        return f"less than {_NOTHING} either way"
    return estimate_text(estimate, chance=False)
