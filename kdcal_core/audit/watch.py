"""A new table against the reference rows: drift, performance, labels that arrive late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.audit.gate import exit_code
from kdcal_core.audit.watch_audit import added_limits
from kdcal_core.audit.watch_kinds import Features, Reference, Watching, as_new_rows, watching_of
from kdcal_core.audit.watch_limits import signal, worst
from kdcal_core.audit.watch_result import Watch
from kdcal_core.audit.watch_rows import NewRows, new_rows
from kdcal_core.audit.watch_settings import WatchSettings, settled, watched_of
from kdcal_core.audit.watch_state import (
    Watched,
    WatchedTable,
    WatchState,
    check_continues,
    counted_before,
    in_long_runs,
    with_counted,
)
from kdcal_core.data import Task, feature_frame, row_dependence
from kdcal_core.data.equal_rows import row_keys
from kdcal_core.diagnostics import (
    SequentialCalibration,
)
from kdcal_core.errors import InputError, quiet
from kdcal_core.evaluation import held_out_answers, methods_of
from kdcal_core.progress import Progress, part_of
from kdcal_core.review import Review, ReviewData, Which, open_doubts
from kdcal_core.review.scoring import in_file, in_rows_of
from kdcal_core.statistics import Dependence
from kdcal_core.tasks import Sets, review_task
from kdcal_core.text import counted

MADE = "made shift"
"""Name of the table that is made of the review's own rows."""


@review_task(
    "Watching a new table",
    reads=("model", "calibration", "evaluation"),
    settle=settled,
    edition="label shift tested",
    covers=lambda review: [review.event, review.event_class, list(open_doubts(review))],
)
def watch_table(sets: Sets, *, settings: WatchSettings) -> Watch:
    """Hold a new table against the review's rows: its evaluation set, else its calibration set.

    Raises
    ------
    InputError
        For a table that cannot be used, with file, column and row.

    Notes
    -----
    A limit is held against the measure with labels if all new rows have one, else against the
    estimate without labels.
    """
    review, progress = sets.reader.review, sets.progress
    of = settings.of or watched_of(review, settings.method)
    progress(0.0, "Scoring the new table")
    new = _new_table(sets, settings, part_of(progress, 0.0, 0.3))
    before, notes = _earlier(sets, settings, part_of(progress, 0.3, 0.4))
    which: Which = "calibration" if settings.table is None else sets.reader.judged
    watching = watching_of(review, settings.seed)
    old = _reference(sets, which)
    if settings.method is not None:
        old, (new, *before) = _calibrated(
            sets, which, settings, [new, *before], part_of(progress, 0.4, 0.5)
        )
    roles = sets.reader.roles
    by = roles.cluster if roles.time is None else None
    state, copies = _state_before(watching, old, before, of, by, settings)
    notes += copies
    if state is not None and settings.table is not None:
        check_continues(state, of, settings.limits.alpha, new.known)
    features = None
    if settings.weighted_by == "features":
        features = feature_frame(sets.frame(which, roles.features), roles), new.rows.inputs
    together, alone = _together(sets, which, new)
    found = _measured(
        watching, review, which, old, new, of, state, settings, features, together, by,
        part_of(progress, 0.5, 1.0),
    )  # fmt: skip
    return replace(found, notes=(*notes, *alone, *found.notes))


@dataclass(frozen=True, eq=False)
class _Rows:
    """A table, or its rows with a label, and what is known of the file."""

    known: WatchedTable
    rows: NewRows

    @classmethod
    def of(cls, file: WatchedTable, rows: NewRows) -> _Rows:
        labelled = int(rows.labelled.sum())
        return cls(replace(file, rows=rows.n, labelled=labelled), rows)


def _reference(sets: Sets, which: Which) -> Reference:
    if sets.reader.review.task == "regression":
        forecasts = sets.distributions(which)
        said = forecasts.distribution
        alike = as_new_rows(sets.reader.review, which, said)
        return Reference(said, forecasts.y, forecasts.weight is not None, alike)
    rows = sets.read(which)
    return Reference(rows.proba, rows.y, rows.weight is not None)


def _new_table(sets: Sets, settings: WatchSettings, progress: Progress) -> _Rows:
    if settings.table is None:
        of = _reference(sets, "evaluation")
        said, y = watching_of(sets.reader.review, settings.seed).made(of.said, of.y, settings.seed)
        made = NewRows(said, y, np.arange(len(y), dtype=np.uint64), True, len(y))
        return _Rows.of(WatchedTable(MADE, "", 0, 0), made)
    file = settings.file or WatchedTable(settings.table, settings.digest, 0, 0)
    return _Rows.of(file, new_rows(sets.reader, settings.table, settings.digest, progress))


def _together(sets: Sets, which: Which, new: _Rows) -> tuple[Dependence | None, tuple[str, ...]]:
    """How the reference and then the new rows depend on one another; a note if that is unknown."""
    roles = sets.reader.roles
    column = roles.time or roles.cluster
    if column is None:
        return None, ()
    name = new.known.name[:80]
    try:
        if new.rows.units is None:
            raise InputError(
                f"The table {name} lacks the column {column[:60]!r}",
                fix="Give it, so that they are counted together.",
            )
        with in_file(new.known.name), in_rows_of(new.rows.units):
            row_dependence(new.rows.units, roles)
        both = pd.concat([sets.frame(which, (column,)), new.rows.units], ignore_index=True)
        return row_dependence(both, roles), ()
    except InputError as error:
        known = new.rows.units is not None and roles.time is None
        apart = ", but for the sequential test" if known else ""
        return None, (
            f"All new and reference rows are counted as independent here{apart}. {error}",
        )


def _earlier(
    sets: Sets, settings: WatchSettings, progress: Progress
) -> tuple[list[_Rows], tuple[str, ...]]:
    """The labelled rows of the tables before, and notes on tables that were refused."""
    found, notes = [], []
    met: dict[str, str] = {}
    for at, (name, digest) in enumerate(settings.earlier):
        if digest in met:
            same = met[digest][:80]
            notes.append(f"The table {name[:80]} is not counted: its rows are those of {same}.")
            continue
        met[digest] = name
        n = len(settings.earlier)
        here = part_of(progress, at / n, (at + 1) / n)
        try:
            rows = new_rows(sets.reader, name, digest, here, labelled=True)
        except InputError as error:
            notes.append(f"The table {name[:80]} before this one is not counted. {error}")
        else:
            found.append(_Rows.of(WatchedTable(name, digest, 0, 0), rows))
    return found, tuple(notes)


def _calibrated(
    sets: Sets, which: Which, settings: WatchSettings, tables: list[_Rows], progress: Progress
) -> tuple[Reference, list[_Rows]]:
    """The reference rows and the tables, as a calibrator states them."""
    assert settings.method is not None
    calibration = sets.read("calibration")
    evaluation = sets.read("evaluation") if which == "evaluation" else None
    with quiet():  # notes of the fit, which only Compare shows
        held = held_out_answers(
            methods_of([settings.method], settings.seed),
            ReviewData(calibration, evaluation, calibration.classes, {}),
            also={
                str(at): (one.rows.said, None) for at, one in enumerate(tables) if len(one.rows.y)
            },
            progress=progress,
        )
    if settings.method in held.failed:
        why = held.failed[settings.method].rstrip(". ")
        raise InputError(why, fix="Choose another calibrator.")
    at = next(k for k, one in enumerate(held.methods) if one.key == settings.method)
    said = held.fits[at][-1].answers
    return (
        Reference(held.said[at].proba, held.rows.y, held.rows.weight is not None),
        [
            replace(one, rows=replace(one.rows, said=said[str(k)].proba)) if str(k) in said else one
            for k, one in enumerate(tables)
        ],
    )


def _state_before(
    watching: Watching,
    old: Reference,
    before: Sequence[_Rows],
    of: Watched,
    by: str | None,
    settings: WatchSettings,
) -> tuple[WatchState | None, tuple[str, ...]]:
    """The state before the new table, None where it is the first, and notes on rows left out."""
    if not before:
        return settings.state, ()
    notes: list[str] = []
    alpha = settings.limits.alpha
    state = settings.state or _begun(watching, old, of, alpha)
    for one in before:
        check_continues(state, of, alpha, one.known)
        counts, copies = _counts(state, one, by)
        notes += copies
        if by is not None and one.rows.units is None and counts.any():
            notes.append(
                f"The sequential test counts the rows of {one.known.name[:80]} as independent, "
                f"because it lacks the column {by[:60]!r}."
            )
        test = _tested(watching, state, one.rows, counts, by)
        state = _after(watching, state, one, counts, test, by)
    return state, tuple(notes)


def _begun(watching: Watching, old: Reference, of: Watched, alpha: float) -> WatchState:
    """The state before the first table."""
    bins = watching.begin(old)
    return WatchState(of, bins[0], watching.start(bins, alpha), further_bins=bins[1:])


_NOT_TOLD = (
    "Rows of the table {name} cannot be told from those of tables before, because many are equal "
    "by chance. If it holds earlier rows too, the sequential test counts them again: give new rows "
    "only, or a column that tells rows apart."
)


def _counts(
    state: WatchState, one: _Rows, by: str | None
) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """Which rows the test counts, and notes on those with a label that it leaves out.

    It counts labelled rows that it has not counted, of clusters that it has not counted.
    """
    counts, notes = _without_copies(state, one)
    keys, known = _clusters(one.rows, by)
    again = counts & known & np.isin(keys, state.clusters)
    if not again.any():
        return counts, notes
    n, of = int(again.sum()), int(one.rows.labelled.sum())
    return counts & ~again, (
        *notes,
        f"{n:,} of {counted(of, 'labelled row')} of the table {one.known.name[:80]} "
        f"{'is' if n == 1 else 'are'} of clusters, by the column {str(by)[:60]!r}, that the "
        f"sequential test has counted in a table before, and {'does' if n == 1 else 'do'} not "
        "count again: rows of one cluster may depend on one another in other tables too.",
    )


def _clusters(rows: NewRows, by: str | None) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """The key of each row's cluster, and whether the row has one, (m,) each."""
    if by is None or rows.units is None:
        return np.zeros(len(rows.y), dtype=np.uint64), np.zeros(len(rows.y), dtype=bool)
    return row_keys(rows.units[[by]]), rows.units[by].notna().to_numpy(dtype=bool)


def _without_copies(state: WatchState, one: _Rows) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """Labelled rows but for copies of rows that were counted; a note on these."""
    counts = one.rows.labelled
    copies = counted_before(state, one.rows.keys[counts], one.rows.fine)
    if not copies.any():
        unknown = len(state.counted) and counts.any() and not (one.rows.fine and state.fine)
        return counts, (_NOT_TOLD.format(name=one.known.name[:80]),) if unknown else ()
    n, of = int(copies.sum()), int(counts.sum())
    counts = counts.copy()
    counts[np.flatnonzero(counts)[copies]] = False
    return counts, (
        f"{n:,} of {counted(of, 'labelled row')} of the table {one.known.name[:80]} "
        f"{'equals a row' if n == 1 else 'equal rows'} that the sequential test has counted in a "
        f"table before, and {'does' if n == 1 else 'do'} not count again.",
    )


def _tested(
    watching: Watching,
    state: WatchState,
    rows: NewRows,
    counts: NDArray[np.bool_],
    by: str | None,
) -> SequentialCalibration | None:
    """The sequential test over the rows that count, by their clusters; None if there are none."""
    if not counts.any():
        return None
    cluster = None
    if by is not None and rows.units is not None:
        cluster = pd.factorize(rows.units[by])[0][counts]  # rows without one count as one cluster
    return watching.tested(rows.said[counts], rows.y[counts], cluster, state)


def _after(
    watching: Watching,
    state: WatchState,
    one: _Rows,
    counts: NDArray[np.bool_],
    test: SequentialCalibration | None,
    by: str | None,
) -> WatchState:
    """The state after a table."""
    clusters, known = _clusters(one.rows, by)
    state = with_counted(
        state, one.rows.keys[counts], one.rows.fine, clusters[counts & known] if by else None
    )
    runs = in_long_runs(watching.sides(one.rows.said[counts], one.rows.y[counts]))
    return replace(
        state,
        test=state.test if test is None else test.state,
        tables=(*state.tables, one.known),
        in_runs=state.in_runs or runs,
    )


def _measured(
    watching: Watching,
    review: Review,
    which: Which,
    reference: Reference,
    rows: _Rows,
    of: Watched,
    earlier: WatchState | None,
    settings: WatchSettings,
    features: Features | None,
    together: Dependence | None,
    by: str | None,
    progress: Progress,
) -> Watch:
    """All that is computed from the arrays."""
    asked, table, there = review.event_class, rows.known, rows.rows.labelled
    before = earlier or _begun(watching, reference, of, settings.limits.alpha)
    found = watching.found(
        reference, rows.rows, before.all_bins, settings, features, together,
        part_of(progress, 0.0, 0.9),
    )  # fmt: skip
    counts, copies = _counts(before, rows, by)
    test = None
    if there.any():
        progress(0.9, "Testing calibration on the labels")
        test = _tested(watching, before, rows.rows, counts, by)
    after = _after(watching, before, rows, counts, test, by)
    added = added_limits(settings.limits, settings.audit)
    limits = replace(settings.limits, **added)
    held = watching.judged(limits, found, bool(there.all()))
    results = (
        *(replace(one, of_audit=one.key in added) for one in held),
        *signal(test, after.test),
    )
    progress(1.0, "Done")
    return Watch(
        title=settings.title or review.title,
        which=which,
        n_reference=len(reference.y),
        table=table,
        event=of.event,
        asked_event="" if asked is None else review.classes[asked],
        classes=review.classes,
        shift=found.shift,
        scores=found.scores,
        estimated=found.estimated,
        shares=found.shares,
        why_no_shares=found.why_no_shares,
        labels=found.labels,
        test=test,
        results=results,
        notes=(
            *copies,
            *_not_as_chosen(settings, of, review.task),
            *([] if test is None else _test_alone(together)),
            *_notes(review, reference.weighted, table, of),
        ),
        state=after,
        exit_code=exit_code(worst(results), settings.undecided),
        seed=settings.seed,
        audit=settings.audit,
        width=found.width,
        width_scores=found.width_scores,
    )


def _test_alone(together: Dependence | None) -> tuple[str, ...]:
    """A note that the sequential test knows no dependence in time, where there may be any."""
    if together is None or together.alone or together.kind == "cluster":
        return ()
    return (
        "The sequential test takes every row as independent of those before it. Where outcomes "
        f"of rows near in {together.column[:60]} are alike, it may signal for calibrated "
        "probabilities more often than its level says. Nothing says how far that reaches, so the "
        "rows cannot be counted together as those of one cluster can.",
    )


def _not_as_chosen(settings: WatchSettings, of: Watched, task: Task) -> tuple[str, ...]:
    """A note that the audit chose a calibrator, and what is watched is without it."""
    if settings.audit is None or not settings.audit.chosen or of.calibrator:
        return ()
    stated = "forecasts" if task == "regression" else "probabilities"
    return (
        f"The audit chose {settings.audit.chosen[:80]} for this model. All {stated} here are those "
        "of the model as it is; 'kdcal watch' with files.calibrator watches the other ones.",
    )


_HELD_BY: dict[Task, str] = {
    "classification": "Limits, if there are any, are held against estimates without labels",
    "regression": "Limits on the CRPS, if there are any, are held against its estimate without "
    "labels, those on PIT distance and coverage against the rows with a label",
}


def _notes(review: Review, weighted: bool, table: WatchedTable, of: Watched) -> tuple[str, ...]:
    notes = list(open_doubts(review))
    if weighted:
        notes.append(
            "The reference rows have weights, which are not used here: every row counts 1."
        )
    if table.sha256 == of.reference:
        notes.append("The new table is the reference table itself: nothing can have changed.")
    if 0 < table.labelled < table.rows:
        lacking = counted(table.rows - table.labelled, "row")
        notes.append(
            f"{lacking} {'has' if table.rows - table.labelled == 1 else 'have'} no label yet. "
            f"{_HELD_BY[review.task]}, and the sequential test uses the other rows. If one outcome "
            "is known sooner than the other, wait for all labels."
        )
    return tuple(notes)
