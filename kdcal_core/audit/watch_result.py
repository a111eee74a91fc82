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
    NOT_GIVEN,
    ComparedMeasure,
    Estimate,
    ForecastMeasures,
    LabelFree,
    LabelFreeForecasts,
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
        Untrusted text. None of a regression.
    shift : ScoreShift
    scores : ScoreCounts
        Of the watched score, or of the predicted medians of a regression.
    estimated : LabelFreePerformance or LabelFreeForecasts
        The latter of a regression.
    shares : LabelShift or None
    why_no_shares : str
    labels : WithLabels or ForecastMeasures or None
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
    width : ScoreShift or None
    width_scores : ScoreCounts or None
        Of the interval widths of a regression.
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
    estimated: LabelFreePerformance | LabelFreeForecasts
    shares: LabelShift | None
    why_no_shares: str
    labels: WithLabels | ForecastMeasures | None
    test: SequentialCalibration | None
    results: tuple[WatchResult, ...]
    notes: tuple[str, ...]
    state: WatchState
    exit_code: int
    seed: int
    unknown: UnknownChange | None = None
    audit: ReferenceAudit | None = None
    width: ScoreShift | None = None
    width_scores: ScoreCounts | None = None

    @property
    def verdict(self) -> Verdict:
        """The worst of all results; "pass" if nothing has a limit."""
        return worst(self.results)

    @property
    def forecasts(self) -> LabelFreeForecasts | None:
        """The estimates without labels of a regression; None of a classification."""
        return self.estimated if isinstance(self.estimated, LabelFreeForecasts) else None

    @property
    def performance(self) -> LabelFreePerformance:
        """The estimates without labels of a classification."""
        if isinstance(self.estimated, LabelFreeForecasts):
            raise TypeError("a watch of a regression has no classes")
        return self.estimated

    @property
    def shifts(self) -> tuple[ScoreShift, ...]:
        """The drift of the score, or of predicted medians and of interval widths."""
        return (self.shift,) if self.width is None else (self.shift, self.width)

    @property
    def measures(self) -> tuple[ComparedMeasure, ...]:
        """What is compared with the reference rows, without labels and from labels.

        Accuracy, AUROC and rate of the event if there is one, and the calibration error; of a
        regression CRPS, interval width, coverage and PIT distance.
        """
        if self.forecasts is not None:
            labels = self.labels if isinstance(self.labels, ForecastMeasures) else None
            return forecast_comparison(self.forecasts, labels)
        known = self.labels if isinstance(self.labels, WithLabels) else None
        of_event, error = self.performance.event, self.watched
        correct = self.performance.predictions.rate
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
        from_labels = None if known is None else known.calibration_error
        return (
            *found,
            ComparedMeasure("Calibration error", error.reference_error, new, from_labels),
        )

    @property
    def watched(self) -> LabelFree:
        """The estimates of the watched score of a classification."""
        of_event = self.performance.event
        return of_event if self.event and of_event is not None else self.performance.predictions

    @property
    def outside(self) -> Estimate:
        """Share of new rows that are unlike all reference rows."""
        found = self.forecasts
        return self.watched.outside if found is None else found.outside


def forecast_comparison(
    found: LabelFreeForecasts, labels: ForecastMeasures | None
) -> tuple[ComparedMeasure, ...]:
    """The measures of a regression: CRPS, interval width, coverage and PIT distance."""
    known, stated = found.reference, f"{100 * found.reference.level:g}% intervals"
    compared = [
        ComparedMeasure("CRPS", known.crps, found.crps, None if labels is None else labels.crps),
        ComparedMeasure(
            f"Width of {stated}", known.width, found.width, None if labels is None else labels.width
        ),
    ]
    for at, row in enumerate(known.coverage):
        one = None if labels is None else labels.coverage[at].coverage
        title = f"Coverage of {100 * row.level:g}% intervals"
        compared.append(ComparedMeasure(title, row.coverage, _not_given(row.coverage), one))
    distance = known.pit_distance
    one = None if labels is None else labels.pit_distance
    return (*compared, ComparedMeasure("PIT distance", distance, _not_given(distance), one))


def _not_given(one: Estimate) -> Estimate:
    """What only labels show."""
    nothing = float("nan")
    return replace(one, value=nothing, low=nothing, high=nothing, expected=None, interval=NOT_GIVEN)


def with_unknown(watch: Watch, unknown: UnknownChange, most: float, undecided: Undecided) -> Watch:
    """The watch with a limit on the rows that lie where the model has seen hardly any data."""
    results = (*watch.results, judged_by_density(unknown, most))
    return replace(
        watch,
        unknown=unknown,
        results=results,
        exit_code=exit_code(worst(results), undecided),
    )
