"""What the Watch page shows of a new table: finding, tiles, scores, and further sections."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pandas as pd
import streamlit as st

from app.shared import job_results, navigation, session, sign_in, tiles
from app.shared.charts import drawn_once, file_stem, is_dark, show
from app.shared.sections import sections
from app.shared.tables import show_table
from app.watch import watch_audit, watch_unknown
from app.watch.watch_tables import MADE_WORDS
from kdcal_core.audit import (
    BEYOND_FORECASTS,
    BEYOND_SCORES,
    UNLIKE,
    Watch,
    WatchSettings,
    WithLabels,
    assumptions,
    beside,
    disputed_rate,
    event_rates,
    finding,
    label_free_cautions,
    order_words,
    rate_views,
    reference_rates_words,
    score_name,
    share_cautions,
    state_bytes,
    watch_table,
    weights_words,
)
from kdcal_core.calibration import CALIBRATORS
from kdcal_core.charts import (
    MOST_CLASSES,
    class_shares_chart,
    drift_words,
    e_process_chart,
    e_process_words,
    e_value_text,
    frozen_bins_chart,
    gap_chart,
    measures_chart,
    moved_beyond_chance,
    watched_scores_chart,
)
from kdcal_core.diagnostics import (
    NOT_GIVEN,
    Estimate,
    LabelShift,
    ScoreCounts,
    ScoreShift,
    estimate_text,
    interval_text,
    value_text,
)
from kdcal_core.errors import InputError
from kdcal_core.review import DIVIDED, Review, open_doubts
from kdcal_core.text import counted, escape_markdown, formatted, p_text, printable


def watched(review: Review, settings: WatchSettings) -> Watch | None:
    """What was found about the new table; until then the job's progress, or why there is none."""
    try:
        asked = watch_table.request(session.workspace(), review, settings)
    except InputError as error:
        session.error_box(error)
        return None
    job = job_results.finished(asked, review.id)
    return None if job is None else job_results.result_of(job, watch_table)


def answer(review: Review, watch: Watch, method: str | None) -> None:
    """Everything below the choice of the table, for the model or a calibrated version."""
    st.header(escape_markdown(finding(watch), 900), anchor=False)
    picture, beside = tiles.answer()
    counts, shift, name, others = _pictured(watch)
    with picture:
        show(
            drawn_once(watched_scores_chart, counts, shift, name, others, **_look(watch)),
            key="watch_scores",
            of=review.title,
            finding=False,
        )
    with beside:
        _tiles(watch)
    _about(review, watch, method)
    _notes(review, watch)
    regression = watch.forecasts is not None
    shares = {"Class shares": partial(_shares, review, watch)}
    sections(
        "watch_sections",
        {
            "Without labels": partial(_estimates, review, watch),
            "Labels that arrive late": partial(_late_labels, review, watch),
            "Forecasts" if regression else "Scores": partial(_scores, review, watch),
            **({} if regression else shares),
            "Unknown rows": partial(watch_unknown.unknown_rows, review, watch),
        },
    )


def _pictured(watch: Watch) -> tuple[ScoreCounts, ScoreShift, str, LabelShift | ScoreShift | None]:
    """What the picture shows: the score or, of a regression, what the finding is about."""
    width, counts = watch.width, watch.width_scores
    if width is not None and counts is not None:
        by_median = moved_beyond_chance(watch.shift, width)
        if not by_median and moved_beyond_chance(width, watch.shift):
            level = watch.forecasts.reference.level if watch.forecasts else math.nan
            return counts, width, f"Width of the {100 * level:g}% interval", watch.shift
    name = score_name(watch)
    return watch.scores, watch.shift, f"{name[:1].upper()}{name[1:]}", beside(watch)


def _look(watch: Watch) -> dict[str, bool]:
    """The theme, and whether a calibrated version's rows are drawn."""
    return {"dark": is_dark(), "calibrated": bool(watch.state.of.calibrator)}


def _about(review: Review, watch: Watch, method: str | None) -> None:
    """Which rows are compared with which, and whether an audit has judged the reference rows."""
    table, earlier = watch.table, len(watch.state.tables) - 1
    before = f" {counted(earlier, 'table')} came before." if earlier else ""
    label = "" if method is None else f" All scores are those of {CALIBRATORS[method].label}."
    if watch.forecasts is not None:
        label = " All forecasts are as loaded, without a recalibrator."
    judged = watch_audit.judged_words(review, watch, method)
    st.caption(
        f"{counted(table.rows, 'new row')}, {table.labelled:,} with a label, against the "
        f"{watch.n_reference:,} reference rows: the {watch.which} set{judged}.{before}{label}"
    )


def _notes(review: Review, watch: Watch) -> None:
    """What must be known of the rows, beside what the header says."""
    if not watch.table.sha256:
        st.caption(f"The new rows are {MADE_WORDS}")
    doubts = open_doubts(review)
    for note in watch.notes:
        if note not in doubts:
            st.caption(escape_markdown(note, 600))


def _warnings(cautions: Sequence[str]) -> None:
    for one in cautions:
        st.warning(escape_markdown(one, 600), icon=":material/warning:")


def _tiles(watch: Watch) -> None:
    first = _accuracy if watch.forecasts is None else _crps
    found = [first(watch), _drift(watch), _unknown(watch), _fourth(watch)]
    tiles.estimate_column([one for one, _ in found], notes=[note for _, note in found])


def _accuracy(watch: Watch) -> tuple[Estimate, str]:
    """From labels if all rows have one, else without labels."""
    one = watch.measures[0]
    reference = f"reference {value_text(one.reference)}"
    known = watch.labels
    if isinstance(known, WithLabels) and watch.table.labelled == watch.table.rows:
        return replace(known.accuracy, label="Accuracy"), f"from labels; {reference}"
    return replace(one.new, label="Estimated accuracy"), f"without labels; {reference}"


def _crps(watch: Watch) -> tuple[Estimate, str]:
    """The same of a regression."""
    one = watch.measures[0]
    reference = f"reference {value_text(one.reference)}"
    if one.labels is not None and watch.table.labelled == watch.table.rows:
        return one.labels, f"from labels; {reference}"
    return replace(one.new, label="Expected CRPS"), f"without labels; {reference}"


def _drift(watch: Watch) -> tuple[Estimate, str]:
    """The drift that the picture shows."""
    _, shift, _, others = _pictured(watch)
    label = "PSI" if watch.width is None else f"PSI of {shift.noun}"
    return replace(shift.psi.estimate, label=label), drift_words(shift, others)


def _unknown(watch: Watch) -> tuple[Estimate, str]:
    if watch.forecasts is not None:
        return replace(watch.outside, label=BEYOND_FORECASTS), "by median and interval width"
    found = watch.watched
    if found.weighted_by == "features":
        return replace(found.outside, label=UNLIKE), "by all features"
    return replace(found.outside, label=BEYOND_SCORES), "by their score alone"


def _fourth(watch: Watch) -> tuple[Estimate, str]:
    """The sequential test with labels; else the event's rate, or the calibration error."""
    if watch.test is not None:
        least = formatted(1.0 / watch.test.state.alpha, ",.3g")
        e_value = e_value_text(watch.test)
        label = "Stated minus seen" if watch.forecasts is None else "PIT minus one half"
        gap = replace(watch.test.gap, label=label)
        if watch.test.crossed_at is not None:  # perhaps though the mean is right
            return gap, f"e-value {e_value}; it has signalled: {watch.test.fault}"
        return gap, f"e-value {e_value}; {least} would be a signal"
    if watch.forecasts is None and watch.performance.event is not None:
        rate = watch.performance.event.rate
        note = f"without labels; reference {value_text(rate.reference)}"
        if disputed_rate(watch):
            note = "if rows of equal scores have equal chances; see Class shares"
        return replace(rate.rows, label="Event rate"), note
    one = watch.measures[-1] if watch.forecasts is None else watch.measures[1]
    if watch.forecasts is not None:
        return one.new, f"of the new rows; reference {value_text(one.reference)}"
    return one.new, f"without labels; reference {value_text(one.reference)}"


def _scores(review: Review, watch: Watch) -> None:
    """The three distances, each with what chance gives, and the frozen bins."""
    _distances(review, watch, watch.shift, beside(watch))
    if watch.width is not None:
        _distances(review, watch, watch.width, watch.shift)
    moved, others = "Scores", ", which also counts the test of the classes' shares"
    if watch.width is not None:
        moved, others = "Medians or widths", " over the tests of both"
    st.caption(
        f"What chance gives is drawn {watch.shift.psi.draws:,} times for two tables of these sizes "
        f"from one population. It is exceeded 5 times in 100. {moved} are said to have moved if "
        f"a p value is at most 0.05 after Holm's correction{others}."
    )


def _distances(
    review: Review, watch: Watch, shift: ScoreShift, others: LabelShift | ScoreShift | None
) -> None:
    """The distances of one kind of score."""
    tests, key = shift.tests, "" if shift is watch.shift else "_widths"
    left, right = st.columns(2, gap="medium")
    with left:
        show(
            drawn_once(frozen_bins_chart, shift, others, **_look(watch)),
            key=f"watch_bins{key}",
            of=review.title,
        )
    with right:
        show_table(
            pd.DataFrame(
                {
                    "Distance": [one.estimate.label for one in tests],
                    "New rows": [estimate_text(one.estimate, chance=False) for one in tests],
                    "By chance up to": [
                        ""
                        if one.estimate.expected is None
                        else value_text(one.estimate, one.estimate.expected)
                        for one in tests
                    ],
                    "p value": [p_text(one.p_value) for one in tests],
                }
            ),
            key=f"watch_distances{key}",
            alt=f"Three distances between the {shift.noun} of both tables, with what chance gives",
        )


def _estimates(review: Review, watch: Watch) -> None:
    """Measures without labels, beside those with labels where there are some."""
    _warnings(label_free_cautions(watch))
    show(
        drawn_once(
            measures_chart,
            watch.measures,
            of_forecasts=watch.forecasts is not None,
            **_look(watch),
        ),
        key="watch_measures",
        of=review.title,
    )
    st.caption(weights_words(watch))
    if event_rates(watch) is not None:
        st.caption(
            "The section Class shares has another estimate of the rate, and says when to believe "
            "which."
        )
    known = [one.labels for one in watch.measures]
    columns = {
        "Measure": [printable(one.title, 60) for one in watch.measures],
        "Reference": [estimate_text(one.reference, chance=False) for one in watch.measures],
        "New, without labels": [_short(one.new) for one in watch.measures],
    }
    if any(one is not None for one in known):
        columns["New, from labels"] = [
            "" if one is None else f"{estimate_text(one, chance=False)}" for one in known
        ]
    show_table(
        pd.DataFrame(columns),
        key="watch_measures_table",
        alt="Measures of the reference rows and of the new rows",
    )
    watch_audit.limits_of_audit(watch)
    _taken_for_granted(watch, "Without labels")


def _short(one: Estimate) -> str:
    """What only labels show is said once, below the chart."""
    said = estimate_text(one, chance=False)
    return "not given" if said == NOT_GIVEN else said


def _shares(review: Review, watch: Watch) -> None:
    """The classes' shares by expectation maximization."""
    shares = watch.shares
    _warnings(share_cautions(watch))
    if shares is None:
        return
    _rates(watch)
    show(
        drawn_once(class_shares_chart, shares, watch.classes, watch.shift, **_look(watch)),
        key="watch_shares",
        of=review.title,
    )
    each = list(zip(watch.classes, shares.shares, shares.changes, strict=True))[:MOST_CLASSES]
    show_table(
        pd.DataFrame(
            {
                "Class": [printable(name, 60) for name, _, _ in each],
                "Reference, mean probability": [
                    value_text(share, share.expected) for _, share, _ in each
                ],
                "New, by label shift": [estimate_text(one, chance=False) for _, one, _ in each],
                "Change": [value_text(change) for _, _, change in each],
                "Interval of the change": [interval_text(change) for _, _, change in each],
            }
        ),
        key="watch_shares_table",
        alt="The share of each class in both tables",
    )
    if len(watch.classes) > MOST_CLASSES:
        more = len(watch.classes) - MOST_CLASSES
        st.caption(f"{counted(more, 'further class', 'further classes')} in the CSV file.")
    _taken_for_granted(watch, "Shares")


def _rates(watch: Watch) -> None:
    """The estimates of the event's rate: what each assumes, and when to believe it."""
    found = event_rates(watch)
    if found is None:
        return
    st.subheader(f"Rate of {escape_markdown(found.event)} in the new rows", anchor=False)
    if found.contradict and not found.misfit:  # which the tab says above
        _warnings([disputed_rate(watch)])
    st.markdown(
        "\n".join(
            f"* **{escape_markdown(value, 100)}** {escape_markdown(words, 900)}"
            for value, words in rate_views(found)
        )
    )
    st.caption(escape_markdown(reference_rates_words(found), 900))


def _late_labels(review: Review, watch: Watch) -> None:
    """The sequential test over the labels so far, and what to do about it."""
    before = watch.state.test
    truth, stated = "true class", "probabilities"
    if watch.forecasts is not None:
        truth, stated = "outcome", "distributions"
    _warnings([order] if (order := order_words(watch)) else [])
    if watch.test is None and watch.labels is not None:
        st.markdown("All labels of this table were counted with the tables before it.")
    elif watch.test is None:
        st.markdown(
            "The new table has no labels yet. Once some have arrived, give the table again with "
            f"its column of the {truth}: a test then says whether the stated {stated} hold. "
            "It may be looked at after every label."
        )
    if watch.test is not None:
        st.subheader(escape_markdown(e_process_words(watch.test), 600), anchor=False)
        left, right = st.columns(2, gap="medium")
        with left:
            show(
                drawn_once(e_process_chart, watch.test, dark=is_dark()),
                key="watch_e",
                of=review.title,
                finding=False,
            )
        with right:
            show(
                drawn_once(gap_chart, watch.test, dark=is_dark()),
                key="watch_gap",
                of=review.title,
                finding=False,
            )
    elif before.crossed_at is not None:
        st.markdown(
            f"The test has signalled at labelled row {before.crossed_at:,} of the tables before."
        )
    _what_to_do(watch)
    if watch.table.sha256:
        _state(review, watch)
    _taken_for_granted(watch, "Test")


def _what_to_do(watch: Watch) -> None:
    if watch.state.test.crossed_at is None:
        return
    st.markdown(
        "**What to do:** recalibrate the forecasts on recent labelled rows, and review those. The "
        "signal stands until then."
        if watch.forecasts is not None
        else "**What to do:** choose a calibrator on recent labelled rows, write its file, and "
        "review the recalibrated model. The signal stands until then. A calibrated version can be "
        "chosen at the top of the page: it shows whether that one would have signalled too."
    )
    with st.container(horizontal=True):
        if watch.forecasts is not None:
            navigation.page_link("recalibration", "Recalibrate the forecasts")
            return
        navigation.page_link("compare", "Compare calibrators")
        navigation.page_link("export", "Write its file")


def _state(review: Review, watch: Watch) -> None:
    """The state as a file, with which `kdcal watch` goes on, or why it cannot."""
    if why_not := _no_state(review, watch):
        st.caption(f"`kdcal watch` cannot go on from here, because {why_not}.")
        return
    st.download_button(
        "State for the command line",
        data=sign_in.while_it_lasts(lambda: state_bytes(watch.state)),
        file_name=f"{file_stem(f'{review.title} watch')}.json",
        mime="application/json",
        key="watch_state",
        type="tertiary",
        icon=":material/download:",
        on_click="ignore",
        help="kdcal watch --state goes on from here. The file holds no rows.",
    )


def _no_state(review: Review, watch: Watch) -> str:
    """Why the command line would refuse the state: it knows calibrators and tables by files."""
    if watch.state.of.calibrator:
        return "the calibrator was chosen here and has no file"
    if any(note.startswith(DIVIDED) for note in review.notes):
        return "the reference rows are a part of a file"
    return ""


def _taken_for_granted(watch: Watch, kind: str) -> None:
    """The assumptions behind the numbers of a section."""
    said: Sequence[str] = [words for of, words in assumptions(watch) if of == kind]
    if said:
        st.subheader("What these numbers assume", anchor=False)
        st.markdown("\n".join(f"* {escape_markdown(one, 400)}" for one in said))
