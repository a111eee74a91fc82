"""A new table against the reference rows of a classification: drift, performance, late labels."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.audit.gate import exit_code
from kdcal_core.audit.watch_audit import added_limits
from kdcal_core.audit.watch_limits import WithLabels, judged, signal, worst
from kdcal_core.audit.watch_result import Watch
from kdcal_core.audit.watch_rows import UNLABELLED, NewRows, new_rows
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
from kdcal_core.data import FloatArray, IntArray, ScoredSet, feature_frame, row_dependence
from kdcal_core.data.equal_rows import are_fine, row_keys
from kdcal_core.diagnostics import (
    Estimate,
    SequentialCalibration,
    auc,
    confidence_calibration_error,
    freeze_bins,
    label_free_performance,
    label_shift,
    score_counts,
    score_shift,
    sequential_calibration,
    start_watch,
)
from kdcal_core.diagnostics.estimate import share_estimate
from kdcal_core.errors import InputError, InputWarning
from kdcal_core.evaluation import held_out_answers, methods_of
from kdcal_core.progress import Progress, part_of
from kdcal_core.review import Review, ReviewData, Which, open_doubts
from kdcal_core.review.scoring import in_file, in_rows_of
from kdcal_core.statistics import Dependence, design_of, effective_size
from kdcal_core.tasks import Sets, review_task
from kdcal_core.tasks.decorators import require_classification
from kdcal_core.text import counted

MADE = "made shift"
"""Name of the table that is made of the review's own rows."""

_MADE_LEAST = 0.2  # chance that the row with the lowest score is in the made table


@review_task(
    "Watching a new table",
    reads=("model", "calibration", "evaluation"),
    needs=require_classification(
        "watching is for a classification",
        fix="Audit the new rows of a regression once they have outcomes.",
    ),
    settle=settled,
    edition="reference rows and their audit",
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
    old = sets.read(which)
    if settings.method is not None:
        old, (new, *before) = _calibrated(
            sets, which, settings, [new, *before], part_of(progress, 0.4, 0.5)
        )
    roles = sets.reader.roles
    by = roles.cluster if roles.time is None else None
    state, copies = _state_before(old, before, of, review.event, by, settings)
    notes += copies
    if state is not None and settings.table is not None:
        check_continues(state, of, settings.limits.alpha, new.known)
    features = None
    if settings.weighted_by == "features":
        features = feature_frame(sets.frame(which, roles.features), roles), new.rows.inputs
    together, alone = _together(sets, which, new)
    found = _measured(
        review, which, old, new, of, state, settings, features, together,
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


def _new_table(sets: Sets, settings: WatchSettings, progress: Progress) -> _Rows:
    if settings.table is None:
        proba, y = made_shift(sets.read("evaluation"), sets.reader.review.event, settings.seed)
        made = NewRows(proba, y, row_keys(proba), are_fine(proba), len(y))
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
        return None, (f"All new and reference rows are counted as independent here. {error}",)


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
) -> tuple[ScoredSet, list[_Rows]]:
    """The reference rows and the tables, as a calibrator states them."""
    assert settings.method is not None
    calibration = sets.read("calibration")
    evaluation = sets.read("evaluation") if which == "evaluation" else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # notes of the fit, which only Compare shows
        held = held_out_answers(
            methods_of([settings.method], settings.seed),
            ReviewData(calibration, evaluation, calibration.classes, {}),
            also={
                str(at): (one.rows.proba, None) for at, one in enumerate(tables) if len(one.rows.y)
            },
            progress=progress,
        )
    if settings.method in held.failed:
        why = held.failed[settings.method].rstrip(". ")
        raise InputError(why, fix="Choose another calibrator.")
    at = next(k for k, one in enumerate(held.methods) if one.key == settings.method)
    said = held.fits[at][-1].answers
    return (
        replace(held.rows, proba=held.said[at].proba, digest=""),
        [
            replace(one, rows=replace(one.rows, proba=said[str(k)].proba))
            if str(k) in said
            else one
            for k, one in enumerate(tables)
        ],
    )


def _state_before(
    old: ScoredSet,
    before: Sequence[_Rows],
    of: Watched,
    event: int | None,
    by: str | None,
    settings: WatchSettings,
) -> tuple[WatchState | None, tuple[str, ...]]:
    """The state before the new table, None where it is the first, and notes on rows left out."""
    if not before:
        return settings.state, ()
    notes: list[str] = []
    alpha, bins = settings.limits.alpha, freeze_bins(_score(old.proba, event))
    state = settings.state or WatchState(of, bins, start_watch(alpha, bins.edges))
    for one in before:
        check_continues(state, of, alpha, one.known)
        counts, copies = _counts(state, one)
        notes += copies
        if by is not None and one.rows.units is None and counts.any():
            notes.append(
                f"The sequential test counts the rows of {one.known.name[:80]} as independent, "
                f"because it lacks the column {by[:60]!r}."
            )
        test = _tested(state, one.rows, counts, event, by)
        state = _after(state, one, counts, test, event)
    return state, tuple(notes)


def _counts(state: WatchState, one: _Rows) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """Which rows the test counts: labelled ones that it has not counted; a note on the others."""
    counts = one.rows.labelled
    copies = counted_before(state, one.rows.keys[counts], one.rows.fine)
    if not copies.any():
        return counts, ()
    n, of = int(copies.sum()), int(counts.sum())
    counts = counts.copy()
    counts[np.flatnonzero(counts)[copies]] = False
    return counts, (
        f"{n:,} of {counted(of, 'labelled row')} of the table {one.known.name[:80]} "
        f"{'equals a row' if n == 1 else 'equal rows'} that the sequential test has counted in a "
        f"table before, and {'does' if n == 1 else 'do'} not count again.",
    )


def _tested(
    state: WatchState,
    rows: NewRows,
    counts: NDArray[np.bool_],
    event: int | None,
    by: str | None,
) -> SequentialCalibration | None:
    """The sequential test over the rows that count, by their clusters; None if there are none."""
    if not counts.any():
        return None
    proba, y, cluster = rows.proba[counts], rows.y[counts], None
    if by is not None and rows.units is not None:
        cluster = pd.factorize(rows.units[by])[0][counts]  # rows without one count as one cluster
    return sequential_calibration(
        _score(proba, event), _hit(proba, y, event), cluster=cluster, state=state.test
    )


def _after(
    state: WatchState,
    one: _Rows,
    counts: NDArray[np.bool_],
    test: SequentialCalibration | None,
    event: int | None,
) -> WatchState:
    """The state after a table."""
    state = with_counted(state, one.rows.keys[counts], one.rows.fine)
    runs = in_long_runs(_hit(one.rows.proba[counts], one.rows.y[counts], event))
    return replace(
        state,
        test=state.test if test is None else test.state,
        tables=(*state.tables, one.known),
        in_runs=state.in_runs or runs,
    )


def made_shift(rows: ScoredSet, event: int | None, seed: int) -> tuple[FloatArray, IntArray]:
    """A table whose scores are shifted, of real rows: probabilities and classes of both.

    A row is taken with a chance that grows with the rank of its score, from 1 in 5 for the lowest
    to 1 for the highest, so that only the distribution of the scores changes. Rows are shuffled,
    because the set may be sorted. The first half of them has labels, as if the others were still to
    come.
    """
    score = _score(rows.proba, event)
    rank = np.argsort(np.argsort(score, kind="stable")) / max(len(score) - 1, 1)
    chance = _MADE_LEAST + (1.0 - _MADE_LEAST) * rank
    rng = np.random.default_rng(seed)
    taken = rng.permutation(np.flatnonzero(rng.random(len(score)) < chance))
    y = np.array(rows.y[taken], dtype=np.int64)
    y[len(y) // 2 :] = UNLABELLED
    return np.array(rows.proba[taken]), y


def _measured(
    review: Review,
    which: Which,
    reference: ScoredSet,
    rows: _Rows,
    of: Watched,
    earlier: WatchState | None,
    settings: WatchSettings,
    features: tuple[pd.DataFrame, pd.DataFrame | None] | None,
    together: Dependence | None,
    progress: Progress,
) -> Watch:
    """All that is computed from the arrays."""
    event, asked, seed = review.event, review.event_class, settings.seed
    proba, y, table = rows.rows.proba, rows.rows.y, rows.known
    score, new = (_score(one, event) for one in (reference.proba, proba))
    bins = freeze_bins(score) if earlier is None else earlier.bins
    progress(0.0, "Measuring drift")
    shift = score_shift(score, new, bins=bins, dependence=together, seed=seed)
    progress(0.3, "Estimating performance without labels")
    old_features, new_features = features or (None, None)
    estimated = label_free_performance(
        reference.proba,
        reference.y,
        proba,
        event=asked,
        weighting=settings.weighted_by,
        features=old_features,
        new_features=new_features,
        dependence=together,
        seed=seed,
    )
    progress(0.7, "Estimating the classes' shares")
    shares, why_not = None, ""
    try:
        shares = label_shift(proba, reference.proba, reference.y, dependence=together, seed=seed)
        shares = replace(shares, adjusted=shares.adjusted[:0])  # as large as the table, and unused
    except InputError as error:  # few rows; the other measures stay
        why_not = str(error)
    there = rows.rows.labelled
    before = earlier or WatchState(of, bins, start_watch(settings.limits.alpha, bins.edges))
    counts, copies = _counts(before, rows)
    test = labels = None
    if there.any():
        progress(0.9, "Testing calibration on the labels")
        by = together.column if together is not None and together.kind == "cluster" else None
        test = _tested(before, rows.rows, counts, event, by)
        of_labels = None if together is None else together.only(len(score) + np.flatnonzero(there))
        labels = _with_labels(proba[there], y[there], event, asked, of_labels, seed)
    after = _after(before, rows, counts, test, event)
    added = added_limits(settings.limits, settings.audit)
    limits = replace(settings.limits, **added)
    held = judged(limits, shift, estimated, event, labels, bool(there.all()))
    results = (
        *(replace(one, of_audit=one.key in added) for one in held),
        *signal(test, after.test),
    )
    progress(1.0, "Done")
    return Watch(
        title=settings.title or review.title,
        which=which,
        n_reference=len(score),
        table=table,
        event=of.event,
        asked_event="" if asked is None else review.classes[asked],
        classes=review.classes,
        shift=shift,
        scores=score_counts(score, new),
        estimated=estimated,
        shares=shares,
        why_no_shares=why_not,
        labels=labels,
        test=test,
        results=results,
        notes=(
            *copies,
            *([] if test is None else _test_alone(together)),
            *_notes(review, reference.weight is not None, table, of),
        ),
        state=after,
        exit_code=exit_code(worst(results), settings.undecided),
        seed=seed,
        audit=settings.audit,
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


def _score(proba: FloatArray, event: int | None) -> FloatArray:
    """The event's probability, or the confidence; a sum may exceed 1 by rounding."""
    found = proba.max(axis=1) if event is None else proba[:, event]
    return np.asarray(np.minimum(found, 1.0))


def _hit(proba: FloatArray, y: IntArray, event: int | None) -> IntArray:
    return np.asarray(y == (proba.argmax(axis=1) if event is None else event)).astype(np.int64)


def _with_labels(
    proba: FloatArray,
    y: IntArray,
    event: int | None,
    asked: int | None,
    together: Dependence | None,
    seed: int,
) -> WithLabels:
    right, of_event = _hit(proba, y, None), _hit(proba, y, asked)
    score, hit = _score(proba, event), _hit(proba, y, event)
    design = design_of(None, together)
    area = None if asked is None else auc(proba[:, asked], of_event, sample_weight=design)
    return WithLabels(
        accuracy=_share(right, "Accuracy", together, lower_is_better=False),
        calibration_error=confidence_calibration_error(score, hit, seed=seed, sample_weight=design),
        auc=area,
        rate=None if asked is None else _share(of_event, "Event rate", together),
    )


def _share(
    flags: IntArray, name: str, together: Dependence | None, lower_is_better: bool | None = None
) -> Estimate:
    value, hit = float(flags.mean()), flags.astype(np.float64)
    rows = effective_size(hit - value, np.ones(len(flags)), together)
    return share_estimate(name, name, value, rows, len(flags), lower_is_better=lower_is_better)


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
            "Limits, if there are any, are held against estimates without labels, and the "
            "sequential test uses the other rows. If one outcome is known sooner than the other, "
            "wait for all labels."
        )
    return tuple(notes)
