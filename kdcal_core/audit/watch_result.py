"""What a watch found: a new table against the reference rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kdcal_core.audit.config import Undecided
from kdcal_core.audit.gate import exit_code
from kdcal_core.audit.watch_audit import ReferenceAudit
from kdcal_core.audit.watch_limits import WatchResult, WithLabels, judged_by_density, worst
from kdcal_core.audit.watch_state import WatchedTable, WatchState
from kdcal_core.checks import Verdict
from kdcal_core.diagnostics import (
    ComparedMeasure,
    LabelFree,
    LabelFreePerformance,
    LabelShift,
    ScoreCounts,
    ScoreShift,
    SequentialCalibration,
    UnknownChange,
)
from kdcal_core.review import Which


@dataclass(frozen=True, eq=False)
class Watch:
    """A new table against the reference rows.

    Attributes
    ----------
    title : str
    which : {"calibration", "evaluation"}
        The reference set.
    n_reference : int
    table : WatchedTable
        The new one.
    event : str
        The class whose probability is the watched score; empty for the confidence.
    asked_event : str
        The class of ``estimated.event``; empty with more than two classes.
    classes : tuple of str
        Untrusted text.
    shift : ScoreShift
    scores : ScoreCounts
        Of the watched score.
    estimated : LabelFreePerformance
    shares : LabelShift or None
    why_no_shares : str
    labels : WithLabels or None
        None if no new row has a label.
    test : SequentialCalibration or None
        Over all labelled rows since the state began; None if none of this table counts.
    unknown : UnknownChange or None
        Rows that lie where the model has seen hardly any data; None where that was not asked.
    results : tuple of WatchResult
    notes : tuple of str
        Untrusted text.
    state : WatchState
    exit_code : int
    seed : int
    audit : ReferenceAudit or None
        The audit of the reference rows to which the new table is held.
    """

    title: str
    which: Which
    n_reference: int
    table: WatchedTable
    event: str
    asked_event: str
    classes: tuple[str, ...]
    shift: ScoreShift
    scores: ScoreCounts
    estimated: LabelFreePerformance
    shares: LabelShift | None
    why_no_shares: str
    labels: WithLabels | None
    test: SequentialCalibration | None
    results: tuple[WatchResult, ...]
    notes: tuple[str, ...]
    state: WatchState
    exit_code: int
    seed: int
    unknown: UnknownChange | None = None
    audit: ReferenceAudit | None = None

    @property
    def verdict(self) -> Verdict:
        """The worst of all results; "pass" if nothing has a limit."""
        return worst(self.results)

    @property
    def measures(self) -> tuple[ComparedMeasure, ...]:
        """Accuracy, AUROC and rate of the event if there is one, and the calibration error."""
        known, of_event, error = self.labels, self.estimated.event, self.watched
        correct = self.estimated.predictions.rate
        accuracy = None if known is None else known.accuracy
        found = [ComparedMeasure("Accuracy", correct.reference, correct.rows, accuracy)]
        if of_event is not None:
            area, rate = (None, None) if known is None else (known.auc, known.rate)
            found += [
                ComparedMeasure(f"{what} of {self.asked_event}", one.reference, one.rows, labels)
                for what, one, labels in (
                    ("AUROC", of_event.auc, area),
                    ("Rate", of_event.rate, rate),
                )
            ]
        new = error.calibration_error
        labels = None if known is None else known.calibration_error
        return (*found, ComparedMeasure("Calibration error", error.reference_error, new, labels))

    @property
    def watched(self) -> LabelFree:
        """The estimates of the watched score."""
        of_event = self.estimated.event
        return of_event if self.event and of_event is not None else self.estimated.predictions


def with_unknown(watch: Watch, unknown: UnknownChange, most: float, undecided: Undecided) -> Watch:
    """The watch with a limit on the rows that lie where the model has seen hardly any data."""
    results = (*watch.results, judged_by_density(unknown, most))
    return replace(
        watch,
        unknown=unknown,
        results=results,
        exit_code=exit_code(worst(results), undecided),
    )
