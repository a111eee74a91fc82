"""The measures that pages show of a scored set: functions from rows to small frozen results.

The app calls them in its own process where the rows are few. Where there are many (`is_large`), a
worker does, and the app reads the result from disk. The server thus never holds the rows of a large
review, or estimators that hold them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict, TypeVar

import numpy as np

from kdcal_core.calibration import (
    CALIBRATORS,
    ConfidenceCurve,
    TopLabelCalibrator,
    TopLabelKDE,
    score_calibrator,
)
from kdcal_core.data import (
    Fitness,
    FloatArray,
    IntArray,
    RegressionFitness,
    ScoredSet,
    outcome_column,
    target_labels,
)
from kdcal_core.diagnostics import (
    AnchorKind,
    Confusion,
    CumulativeDifferences,
    Estimate,
    HistogramAnchor,
    Kind,
    Reliability,
    ScoreHistogram,
    Strategy,
    confusion,
    cumulative_differences,
    event_summary,
    histogram_anchor,
    question_estimates,
    reliability,
    score_histogram,
    summary,
    two_halves,
)
from kdcal_core.diagnostics.influence import question_influences, row_groups, sums_by_name
from kdcal_core.diagnostics.summaries import (
    ClassSummary,
    distinct_rows,
    summary_anchor,
    summary_confusion,
    summary_event_estimates,
    summary_halves,
    summary_of_predicted,
    summary_reliability,
    summary_scores,
    summary_tiles,
)
from kdcal_core.errors import InputError, quiet
from kdcal_core.evaluation import MEASURES, Losses, estimates_of, influences_of, losses_by_class
from kdcal_core.evaluation.overlap import Note, SetRows, cluster_note, shared, shared_note
from kdcal_core.review import ReviewReader, Which
from kdcal_core.review.review import WHICH, input_columns
from kdcal_core.statistics import GroupSums
from kdcal_core.tasks.decorators import (
    BOTH_SETS,
    FITTED,
    SUMMED,
    Sets,
    review_task,
    the_set,
    the_set_and_its_scale,
)
from kdcal_core.tasks.drawn_sets import drawn_of

MAX_CLOUD = 2_000
_POINTS, _EDGE = 400, 1e-6  # of a method's line; maps may jump where classes are tied or certain
_RULES = ("mon2", "mon", "mon4")  # bandwidth rules found in one search
Calibrator = TypeVar("Calibrator", bound=TopLabelCalibrator)


@dataclass(frozen=True)
class Refused:
    """Why a measure cannot be computed, as in `InputError`. Names are untrusted text."""

    what: str
    fix: str
    file: str | None
    column: str | None
    row: int | None

    @classmethod
    def of(cls, error: InputError) -> Refused:
        """The reason given by an error."""
        return cls(error.what, error.fix, error.file, error.column, error.row)

    def error(self) -> InputError:
        """The reason as an error to raise."""
        return InputError(self.what, fix=self.fix, file=self.file, column=self.column, row=self.row)


@dataclass(frozen=True, eq=False)
class SetFitness:
    """What a set is suited for, for a classification or a regression."""

    classification: Fitness | None
    regression: RegressionFitness | None


@review_task("Load: counting rows", reads=the_set)
def set_fitness(sets: Sets, *, which: Which) -> SetFitness:
    """The set's rows, and cautions for the reviewer."""
    found = sets.reader.fitness(which)
    if isinstance(found, RegressionFitness):
        return SetFitness(None, found)
    return SetFitness(found, None)


class Asked(TypedDict):
    """The question of a reliability diagram, and its bins."""

    kind: Kind
    n_bins: int
    strategy: Strategy
    label: int | None


@dataclass(frozen=True, eq=False)
class SetOverview:
    """Results at the top of the pages: reliability, four estimates, scores, confusion."""

    reliability: Reliability
    estimates: tuple[Estimate, ...]
    scores: ScoreHistogram
    confusion: Confusion


@review_task(
    "Measuring all rows, with intervals",
    reads=the_set,
    edition=f"{SUMMED}, scores of rows, splits by unit",
)
def set_overview(sets: Sets, *, which: Which, event: int | None = None) -> SetOverview:
    """The reliability diagram of all predictions, with the estimates above it.

    With ``event``, diagram and estimates are those of that class's probability.
    """
    rows = sets.summary(which)
    if rows is not None:
        return _overview_of(rows, event)
    scored = sets.read(which)
    sets.progress(0.1, "Counting")
    tables = confusion(scored.proba, scored.y, len(scored.classes), sample_weight=scored.design)
    scores = score_histogram(scored.proba, scored.y, kind="confidence")  # of rows, not of weights
    sets.progress(0.3, "Drawing up the reliability diagram")
    overall = overall_reliability(scored, event)
    sets.progress(0.6, "Measuring, with intervals")
    tiles = summary(scored) if event is None else event_summary(scored, event)
    return SetOverview(overall, tuple(tiles), scores, tables)


def _overview_of(rows: ClassSummary, event: int | None) -> SetOverview:
    tiles = summary_tiles(rows) if event is None else summary_event_estimates(rows, event)
    return SetOverview(
        summary_reliability(rows, **overall(event)),
        tiles,
        summary_scores(rows),
        summary_confusion(rows),
    )


@review_task("Reliability: drawing up the diagram", reads=the_set, edition=f"{SUMMED}, all rows")
def set_reliability(
    sets: Sets,
    *,
    which: Which,
    kind: Kind,
    n_bins: int,
    strategy: Strategy,
    label: int | None = None,
) -> Reliability:
    """The reliability diagram of one class, or of all classes."""
    asked: Asked = {"kind": kind, "n_bins": n_bins, "strategy": strategy, "label": label}
    rows = sets.summary(which)
    if rows is not None:
        return summary_reliability(rows, **asked)
    scored = sets.read(which)
    return reliability(scored.proba, scored.y, sample_weight=scored.design, **asked)


@review_task("Reliability: adding up the differences", reads=the_set, edition="rows together")
def set_differences(
    sets: Sets, *, which: Which, kind: Kind, label: int | None = None
) -> CumulativeDifferences:
    """The cumulative differences of one question."""
    scored = sets.read(which)
    return cumulative_differences(
        scored.proba, scored.y, kind=kind, label=label, sample_weight=scored.design
    )


@dataclass(frozen=True, eq=False)
class Estimates:
    """Some estimates."""

    estimates: tuple[Estimate, ...]


@review_task(
    "Reliability: measuring everything, with intervals",
    reads=the_set_and_its_scale,
    edition=lambda: " ".join(("those of checks, Brier minus expected, weighted range", *MEASURES)),
)
def set_estimates(sets: Sets, *, which: Which, event: int | None = None) -> Estimates:
    """All estimates of the set, also those that checks judge, of the confidence or of an event.

    Those of the evaluation set compare with the calibration set.
    """
    scored = sets.read(which)
    known = sets.read("calibration") if which == "evaluation" else None
    sets.progress(0.1, "Measuring, with intervals")
    return Estimates(every_estimate(scored, known, event))


def every_estimate(
    scored: ScoredSet, known: ScoredSet | None, event: int | None
) -> tuple[Estimate, ...]:
    """All estimates of a set; ``known`` is the calibration set with which it is compared."""
    found = (*estimates_of(scored), *question_estimates(scored, known, event))
    if scored.grouping is None:
        return found
    return of_units(found, "clusters" if scored.grouping.kind == "cluster" else "near times")


def of_units(found: Iterable[Estimate], units: str) -> tuple[Estimate, ...]:
    """Estimates whose intervals say that rows of these units count together."""
    return tuple(
        replace(one, interval=f"{one.interval}; rows of {units} together") for one in found
    )


def every_sums(
    sets: Sets, which: Which, event: int | None, estimates: Sequence[Estimate]
) -> dict[str, GroupSums]:
    """What pairs the estimates of `set_estimates` with another model's, by their names."""
    scored = sets.read(which)
    groups = row_groups(scored, sets.reader.review.tables[which].digest)
    if groups is None:
        return {}
    known = sets.read("calibration") if which == "evaluation" else None
    asked = question_influences(scored, known, event)
    whole = influences_of(scored, estimates[: len(estimates) - len(asked)])
    found = zip(estimates, (*whole, *asked), strict=True)
    return sums_by_name(groups, found)


@dataclass(frozen=True, eq=False)
class PredictedClass:
    """The rows predicted to be one class; without rows there is no reliability."""

    estimates: tuple[Estimate, ...]
    reliability: Reliability | None


@review_task("Confidence by class: measuring the rows of one class", reads=the_set, edition=SUMMED)
def predicted_class(sets: Sets, *, which: Which, label: int) -> PredictedClass:
    """The four estimates of the rows predicted to be one class, and their reliability."""
    rows = sets.summary(which)
    if rows is not None:
        return PredictedClass(*summary_of_predicted(rows, label))
    mine = _predicted_as(sets.read(which), label)
    if not mine.n_rows:
        return PredictedClass((), None)
    return PredictedClass(tuple(summary(mine)), overall_reliability(mine))


@dataclass(frozen=True, eq=False)
class ClassHistograms:
    """Histograms under the curves, one for each predicted class."""

    anchors: tuple[HistogramAnchor, ...]


@review_task("Confidence by class: counting scores", reads=the_set, edition="rows together")
def class_histograms(
    sets: Sets,
    *,
    which: Which,
    labels: Sequence[int],
    n_bins: int,
    kind: AnchorKind = "top-label",
) -> ClassHistograms:
    """The histogram under the curves of each of these classes."""
    rows = sets.summary(which)
    if rows is not None:
        return ClassHistograms(
            tuple(summary_anchor(rows, label=at, kind=kind, n_bins=n_bins) for at in labels)
        )
    scored = sets.read(which)
    return ClassHistograms(
        tuple(
            histogram_anchor(
                scored.proba,
                scored.y,
                label=at,
                kind=kind,
                n_bins=n_bins,
                sample_weight=scored.design,
            )
            for at in labels
        )
    )


@dataclass(frozen=True, eq=False)
class ClassHalves:
    """Histograms of two random halves of the rows, one pair for each predicted class."""

    halves: tuple[tuple[HistogramAnchor, HistogramAnchor], ...]


@review_task("Confidence by class: halving the rows", reads=the_set, edition="rows together")
def class_halves(
    sets: Sets,
    *,
    which: Which,
    labels: Sequence[int],
    seed: int,
    kind: AnchorKind = "top-label",
) -> ClassHalves:
    """Histograms of two halves for these classes, which show the effect of noise alone."""
    rows = sets.summary(which)
    if rows is not None:
        return ClassHalves(
            tuple(summary_halves(rows, label=at, kind=kind, seed=seed) for at in labels)
        )
    scored = sets.read(which)
    return ClassHalves(
        tuple(
            two_halves(
                scored.proba,
                scored.y,
                label=at,
                kind=kind,
                seed=seed,
                sample_weight=scored.design,
            )
            for at in labels
        )
    )


@dataclass(frozen=True, eq=False)
class ClassCurves:
    """Curves of some predicted classes by bandwidth rule, with the fit's notes on each.

    A note is the part of a sentence after the class's name.
    """

    curves: dict[str, tuple[ConfidenceCurve, ...]]
    notes: dict[str, tuple[tuple[str, ...], ...]]


@review_task(
    "Confidence by class: fitting the kernel densities",
    reads=the_set,
    edition="many rows as their summary, of any classes",
)
def class_curves(
    sets: Sets, *, which: Which, labels: Sequence[int], bandwidth: str | float
) -> ClassCurves:
    """The kernel density curves of some classes for every bandwidth rule of one search.

    ``bandwidth`` is "mon2" for those rules, "loo" or a number; the result's keys are the rules as
    text. Of very many rows it is fitted on the cells of their summary.
    """
    sets.progress(0.1, "Choosing bandwidths")
    rows = sets.summary(which)
    distinct = None if rows is None else distinct_rows(rows)
    if distinct is not None:
        with quiet():  # as in `fitted`
            first = TopLabelKDE(bandwidth).fit_counts(*distinct)
    else:
        first = fitted(TopLabelKDE(bandwidth), sets.read(which))
    sets.progress(0.7, "Drawing the curves")
    by_rule = {str(bandwidth): first}
    if bandwidth == "mon2":
        by_rule |= {rule: first.with_rule(rule) for rule in _RULES[1:]}
    return ClassCurves(
        {rule: tuple(one.curve(at) for at in labels) for rule, one in by_rule.items()},
        {rule: tuple(one.notes_of(at) for at in labels) for rule, one in by_rule.items()},
    )


@dataclass(frozen=True, eq=False)
class MethodPoints:
    """A method's confidences for one predicted class, as a curve in the score or as a cloud."""

    score: FloatArray
    confidence: FloatArray


@dataclass(frozen=True, eq=False)
class ClassMethod:
    """A method's confidences for some predicted classes.

    They are curves in the score. Methods that use the whole vector of more than two classes are
    evaluated on an even sample of the set's rows instead.
    """

    is_curve: bool
    points: tuple[MethodPoints, ...]


@review_task(
    lambda arguments: f"Confidence by class: fitting {CALIBRATORS[arguments['key']].label}",
    reads=the_set,
    edition=f"drawn rows of very many, {FITTED}",
)
def class_method(
    sets: Sets,
    *,
    which: Which,
    labels: Sequence[int],
    key: str,
    kind: AnchorKind = "top-label",
) -> ClassMethod:
    """A method of the registry with its default settings, fitted on the set.

    With two classes and ``kind`` "class", the points are calibrated probabilities of each class
    over all its stated ones. Of very many rows it is fitted on drawn ones.
    """
    scored = drawn_of(sets, which).read(which)
    sets.progress(0.1, f"Fitting {CALIBRATORS[key].label}")
    calibrator = fitted(score_calibrator(key), scored)
    n_classes = len(scored.classes)
    if kind == "class":
        if n_classes != 2:
            raise InputError(
                f"A line of an event needs two classes, and there are {n_classes}",
                fix="Ask for the rows predicted as each class.",
            )
        stated = np.linspace(_EDGE, 1.0 - _EDGE, _POINTS)
        rows = np.column_stack([1.0 - stated, stated])
        mapped = calibrator.predict_proba(rows)
        ends = {1: (stated, mapped[:, 1]), 0: (stated, mapped[::-1, 0])}
        return ClassMethod(True, tuple(MethodPoints(*ends[label]) for label in labels))
    is_curve = calibrator.follows_score
    predicted = scored.proba.argmax(axis=1)
    points = []
    for label in labels:
        if is_curve:
            score = np.linspace(1.0 / n_classes + _EDGE, 1.0, _POINTS)
            rows = np.repeat(((1.0 - score) / (n_classes - 1))[:, None], n_classes, axis=1)
            rows[:, label] = score
        else:
            mine = np.flatnonzero(predicted == label)
            rows = scored.proba[mine[:: max(len(mine) // MAX_CLOUD, 1)]]
            score = rows[:, label].copy()
        calibrated = calibrator.predict_confidence(rows) if len(rows) else score
        points.append(MethodPoints(score, calibrated))
    return ClassMethod(is_curve, tuple(points))


@review_task(
    "Confidence by class: comparing the methods",
    reads=lambda arguments: BOTH_SETS if arguments["with_evaluation"] else ("calibration",),
    edition=f"rows together, drawn rows of very many, {FITTED}",
)
def method_losses(sets: Sets, *, methods: Sequence[str], with_evaluation: bool) -> Losses:
    """Losses by class of methods fitted on the calibration set; of very many rows, drawn ones."""
    evaluation = drawn_of(sets, "evaluation").read("evaluation") if with_evaluation else None
    rows = drawn_of(sets, "calibration").read("calibration")
    return losses_by_class(rows, evaluation, methods, progress=sets.progress)


def largest_classes(joint: FloatArray, most: int) -> IntArray:
    """The most often predicted classes in a table of counts, in the order of the classes."""
    order = np.argsort(-joint.sum(axis=0), kind="stable")[:most]
    return np.sort(order)


def overall_reliability(scored: ScoredSet, event: int | None = None) -> Reliability:
    """The reliability diagram above the pages, of the confidence or of an event's probability."""
    return reliability(scored.proba, scored.y, sample_weight=scored.design, **overall(event))


def overall(event: int | None) -> Asked:
    """What is asked of the reliability diagram of the confidence, or of an event."""
    kind: Kind = "confidence" if event is None else "class"
    return {"kind": kind, "n_bins": 15, "strategy": "uniform", "label": event}


def _predicted_as(scored: ScoredSet, label: int) -> ScoredSet:
    mine = scored.proba.argmax(axis=1) == label
    return replace(scored.only(mine), digest=f"{scored.digest}, predicted {label}")


def fitted(calibrator: Calibrator, scored: ScoredSet) -> Calibrator:
    """The calibrator, fitted on the set without warnings."""
    # the page shows the fitted calibrator's notes, which say the same as the warnings
    with quiet():
        return calibrator.fit(scored.proba, scored.y, sample_weight=scored.design)


@dataclass(frozen=True)
class EqualSets:
    """Notes for each pair of tables with equal rows: training, calibration, evaluation, foreign."""

    notes: tuple[Note, ...]


@review_task(
    "Load: comparing rows of the tables",
    reads=(*BOTH_SETS, "training", "foreign"),
    edition="identifiers aside",
)
def equal_sets(sets: Sets) -> EqualSets:
    """Rows that are in two tables of the review, for all pairs except two tables of foreign rows.

    Compare and Regions give the same note for the evaluation and the calibration set.

    Raises
    ------
    InputError
        Where a file is missing, or the training rows have a class that the model does not have.
    """
    tables = tables_of(sets)
    notes = []
    for at, rows in enumerate(tables):
        sets.progress(at / len(tables), "Comparing rows")
        for other in tables[:at]:
            found = None if other.kind == "foreign" else shared(rows, other)
            note = None if found is None else shared_note(found, rows, other)
            if note is not None:
                notes.append(note)
    return EqualSets((*notes, *_shared_clusters(sets.reader)))


def _shared_clusters(reader: ReviewReader) -> tuple[Note, ...]:
    """A note where both sets have rows of the same clusters."""
    column = reader.roles.cluster
    if column is None or not reader.has("evaluation"):
        return ()
    rows = [reader.frame(which, [column])[column] for which in ("evaluation", "calibration")]
    found = cluster_note(column, *rows)
    return () if found is None else (found,)


def tables_of(sets: Sets) -> list[SetRows]:
    """Every table of the review, with what is compared with other tables."""
    reader = sets.reader
    review, roles = reader.review, reader.roles
    columns = input_columns(review)
    tables = []
    if reader.has("training") and roles.target is not None and columns:
        frame = reader.frame("training", [*columns, *roles.label_columns])
        name = reader.name("training")
        y = (
            outcome_column(frame, roles, file=name)
            if review.task == "regression"
            else target_labels(frame, roles, review.classes, file=name)
        )
        tables.append(SetRows("training", frame[columns], y))
    for which in WHICH:
        if which not in review.sets:
            continue
        inputs = reader.frame(which, columns) if columns else None
        if review.task == "regression":
            tables.append(SetRows(which, inputs, sets.distributions(which).y))
        else:
            scored = sets.read(which)
            tables.append(SetRows(which, inputs, scored.y, scored.proba))
    for name in review.foreign if roles.features else ():
        rows = reader.foreign(name).reset_index(drop=True)
        tables.append(SetRows("foreign", rows, None, name=name))
    return tables
