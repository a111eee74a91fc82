"""The measures that pages show of decisions and declared groups, made as in `set_measures`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kdcal_core.calibration import CALIBRATORS
from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import (
    Band,
    Costs,
    DecisionCounts,
    GroupTable,
    decision_counts,
    declared_divisions,
    measure_groups,
    paired_net_benefit,
)
from kdcal_core.diagnostics.summaries import summary_decisions, summary_groups
from kdcal_core.errors import InputError, quiet
from kdcal_core.evaluation import held_out_answers, methods_of
from kdcal_core.review import PARTS, Decision, Which, review_data
from kdcal_core.tasks.counted_groups import with_class_groups
from kdcal_core.tasks.decorators import FITTED, SUMMED, Sets, require_scored, review_task, the_set


@review_task("Decisions: counting rows by threshold", reads=the_set, edition=SUMMED)
def set_decisions(sets: Sets, *, which: Which, event: int) -> DecisionCounts:
    """Rows by outcome and decision, at every threshold of one class's probability."""
    summary = sets.summary(which)
    if summary is not None:
        return summary_decisions(summary, event)
    rows = sets.read(which)
    return decision_counts(rows.proba[:, event], rows.y == event, sample_weight=rows.design)


def threshold_of(counts: DecisionCounts, decision: Decision) -> float:
    """The chosen threshold; else what the costs imply; else the share of rows with the event.

    Examples
    --------
    >>> from kdcal_core.diagnostics import decision_counts
    >>> counts = decision_counts([0.1] * 9 + [0.9], [0] * 9 + [1])
    >>> threshold_of(counts, Decision())
    0.1
    >>> threshold_of(counts, Decision(costs={"false_negative": 4.0}))
    0.2
    >>> threshold_of(counts, Decision(0.3, {"false_negative": 4.0}))
    0.3
    """
    if decision.threshold is not None:
        return decision.threshold
    implied = Costs(**decision.costs).threshold if decision.costs else counts.rate
    return float(counts.thresholds[counts.at(implied)])


@dataclass(frozen=True, eq=False)
class RepairedDecisions:
    """Decisions by calibrated probabilities, on rows that the calibrator was not fitted on.

    ``gained`` is the net benefit less the model's, paired by row.
    """

    name: str
    counts: DecisionCounts
    gained: Band


@review_task(
    lambda arguments: f"Decisions: fitting {CALIBRATORS[arguments['method']].label}",
    reads=PARTS,
    needs=require_scored,
    edition=f"rows together, {FITTED}",
)
def repaired_decisions(sets: Sets, *, which: Which, event: int, method: str) -> RepairedDecisions:
    """Decisions by a calibrator that is fitted on the calibration set, or cross-fitted on it."""
    name, rows, repaired = _repaired(sets, which, method)
    hit, weight = rows.y == event, rows.design
    score = repaired.proba[:, event]
    return RepairedDecisions(
        name,
        decision_counts(score, hit, sample_weight=weight),
        paired_net_benefit(score, rows.proba[:, event], hit, sample_weight=weight),
    )


def _repaired(sets: Sets, which: Which, method: str) -> tuple[str, ScoredSet, ScoredSet]:
    """A calibrator's name, and the rows of a set as the model and as the calibrator state them."""
    review = review_data(sets.reader, with_model=False)
    with quiet():  # notes of the fit, which only Compare shows
        held = held_out_answers(
            methods_of([method], 0),
            review,
            judge="cross-fitted" if which == "calibration" else "evaluation",
            progress=sets.progress,
        )
    if method in held.failed:
        raise InputError(held.failed[method].rstrip(". "), fix="Choose another calibrator.")
    at = next(k for k, one in enumerate(held.methods) if one.key == method)
    # without the digest of the model's rows, as whose results nothing may be kept
    return (
        held.methods[at].name,
        held.rows,
        replace(held.rows, proba=held.said[at].proba, digest=""),
    )


@review_task(
    "Groups: measuring every group",
    reads=the_set,
    edition="with every column, and many rows counted",
)
def set_groups(
    sets: Sets, *, which: Which, event: int | None, columns: Sequence[str]
) -> GroupTable:
    """The measures of every group of each column alone, and of all columns together."""
    summary = with_class_groups(sets, which, event, columns)
    if summary is not None:
        return summary_groups(summary, event)
    divisions = declared_divisions(sets.frame(which, tuple(columns)))
    return measure_groups(sets.read(which), divisions, event=event)


@dataclass(frozen=True, eq=False)
class RepairedGroups:
    """Groups by calibrated probabilities, on rows that the calibrator was not fitted on."""

    name: str
    table: GroupTable


@review_task(
    lambda arguments: f"Groups: fitting {CALIBRATORS[arguments['method']].label}",
    reads=PARTS,
    needs=require_scored,
    edition=f"with every column, {FITTED}",
)
def repaired_groups(
    sets: Sets, *, which: Which, event: int | None, columns: Sequence[str], method: str
) -> RepairedGroups:
    """`set_groups` for a calibrator, fitted on the calibration set or cross-fitted on it."""
    divisions = declared_divisions(sets.frame(which, tuple(columns)))
    name, _, repaired = _repaired(sets, which, method)
    return RepairedGroups(name, measure_groups(repaired, divisions, event=event))
