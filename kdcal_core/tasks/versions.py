"""Two reviews side by side: which rows both have, and how every measure differs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from kdcal_core.blocks import on_all_cores
from kdcal_core.data import ScoredSet, check_weight
from kdcal_core.data.equal_rows import EqualRows
from kdcal_core.diagnostics import (
    ChangedEstimate,
    QuantileReliability,
    Reliability,
    changed_estimates,
    quantile_reliability,
)
from kdcal_core.diagnostics.summaries import ClassSummary, summarise, summary_reliability
from kdcal_core.distributions import RegressionSet, randomised_pit
from kdcal_core.errors import InputError
from kdcal_core.evaluation import (
    MEASURES,
    MatchedRows,
    SameBy,
    SetRows,
    changed_measures,
    compare_forecasts,
    compare_versions,
    forecast_estimates,
    matched,
)
from kdcal_core.evaluation.paired import LEAST_ROWS
from kdcal_core.progress import part_of
from kdcal_core.review import Review, ReviewReader, Workspace, identity
from kdcal_core.review.review import input_columns
from kdcal_core.statistics import is_telling
from kdcal_core.tasks.decorators import BOTH_SETS, Request, Sets, require_scored, review_task
from kdcal_core.tasks.pit_measures import LEVELS, SEED, scale_of
from kdcal_core.tasks.set_measures import every_estimate, overall, overall_reliability

LEAST_SHARE = 0.5
"""Share of the smaller set's rows that must be in both, for a comparison on them alone."""
_COLUMNS_NAMED = 5
S = TypeVar("S", ScoredSet, RegressionSet)


@dataclass(frozen=True)
class SharedRows:
    """Which rows two reviews have in common, and whether they are compared row by row.

    Attributes
    ----------
    by : str
        As of `kdcal_core.evaluation.MatchedRows`.
    before, after : int
        Rows that are judged in either review.
    matched : int
        Rows that were matched one by one, in order or by their content.
    weighted_alike : int
        Those of them that have the same weight in both.
    paired : int
        Rows on which the reviews are compared row by row; 0 where all rows are used, unpaired.
    equal : EqualRows or None
        How many rows of the later review equal one of the other, where rows were counted.
    columns : tuple of str
        The first columns that both describe their rows with. Untrusted text.
    n_columns : int
    alike : tuple of str
        What is equal in the same order although no row has the same columns in both: "outcomes",
        "predictions".
    """

    by: SameBy
    before: int
    after: int
    matched: int
    weighted_alike: int
    paired: int
    equal: EqualRows | None
    columns: tuple[str, ...]
    n_columns: int
    alike: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether the reviews are compared row by row on all their rows, in one order."""
        return self.by != "some" and self.paired == self.before == self.after


@dataclass(frozen=True, eq=False)
class ComparedReviews:
    """What differs between two reviews.

    Attributes
    ----------
    rows : SharedRows
    estimates : tuple of ChangedEstimate
        The later review's less the other's. Untrusted names.
    unpaired : tuple of str
        Labels of those whose interval is that of independent rows although rows are paired.
    curves : tuple of Reliability
        Of a classification: the reliability diagrams, of the other review and of the later one.
    quantiles : tuple of QuantileReliability
        Of a regression, likewise.
    """

    rows: SharedRows
    estimates: tuple[ChangedEstimate, ...]
    unpaired: tuple[str, ...] = ()
    curves: tuple[Reliability, ...] = ()
    quantiles: tuple[QuantileReliability, ...] = ()


def comparison_request(workspace: Workspace, review: Review, other: Review) -> Request:
    """The job that compares a review with another one of the same task and classes.

    Raises
    ------
    InputError
        If a review is not scored, or they are of other tasks or classes.
    """
    for one in (review, other):
        require_scored(one)
    _require_alike(review, other)
    asked = compare_reviews.request(
        workspace,
        review,
        other=other.id,
        other_is=identity(other, BOTH_SETS),
        event=review.event,
    )
    return replace(asked, reads=(*(asked.reads or ()), str(workspace.folder(other.id))))


@review_task(
    "Versions: comparing two reviews",
    reads=BOTH_SETS,
    needs=require_scored,
    edition=lambda: " ".join(("band of weighted rows, very many counted", *MEASURES)),
)
def compare_reviews(
    sets: Sets, *, other: str, other_is: dict[str, Any], event: int | None = None
) -> ComparedReviews:
    """Compare the judged rows of this review with those of another one.

    Where both judge the same rows, or enough rows of both can be matched by their content, every
    measure is paired by row; otherwise the intervals are those of independent rows.

    Parameters
    ----------
    other : str
        Id of the other review, whose numbers are subtracted.
    other_is : dict
        The `identity` of its two sets.
    event : int or None
        With two classes, the class whose probability is judged, as an index into this review's
        classes; None for the confidence.

    Raises
    ------
    InputError
        If the other review is gone or has changed, or is of another task or other classes.
    """
    sets.progress(0.0, "Reading the rows")
    reader = ReviewReader(sets.reader.workspace, other, BOTH_SETS, expected=other_is)
    _require_alike(sets.reader.review, reader.review)
    theirs = Sets(reader)
    if sets.reader.review.task == "regression":
        return _forecasts(sets, theirs)
    return _classifications(sets, theirs, event)


def _require_alike(review: Review, other: Review) -> None:
    if review.task != other.task or sorted(review.classes) != sorted(other.classes):
        raise InputError(
            "The reviews are of other tasks or classes",
            fix="Compare reviews of the same task and classes.",
        )


def _classifications(sets: Sets, theirs: Sets, event: int | None) -> ComparedReviews:
    after = sets.read(sets.reader.judged)
    before = in_order(theirs.read(theirs.reader.judged), after.classes)
    found, shared = _matched(sets, theirs, before, after)
    summaries = None
    if shared.paired:
        before, after = _paired(found, shared, before, after)
        summaries = _summaries(sets, theirs, shared, before, after)
        measured = compare_versions(
            before,
            after,
            event=event,
            seed=SEED,
            progress=part_of(sets.progress, 0.3, 0.9),
            summaries=summaries,
        )
        estimates = changed_measures(measured)
    else:
        sets.progress(0.3, "Measuring, with intervals")
        known = sets.read("calibration") if sets.reader.has("evaluation") else None
        theirs_known = (
            in_order(theirs.read("calibration"), after.classes)
            if theirs.reader.has("evaluation")
            else None
        )
        estimates = changed_estimates(
            every_estimate(before, theirs_known, event), every_estimate(after, known, event)
        )
    sets.progress(0.9, "Drawing up the reliability diagrams")
    if summaries is None:
        curves = tuple(overall_reliability(one, event) for one in (before, after))
    else:
        curves = tuple(summary_reliability(one, **overall(event)) for one in summaries)
    return ComparedReviews(shared, estimates, curves=curves)


def _summaries(
    sets: Sets, theirs: Sets, shared: SharedRows, before: ScoredSet, after: ScoredSet
) -> tuple[ClassSummary, ClassSummary] | None:
    """Those of the paired rows, where both reviews have very many; None of others."""
    kept = theirs.summary(theirs.reader.judged), sets.summary(sets.reader.judged)
    if kept[0] is None or kept[1] is None:
        return None
    if shared.whole and kept[0].classes == after.classes:
        return kept[0], kept[1]
    made = on_all_cores(
        lambda one: summarise(one.proba, one.y, one.classes),
        (before, after),
        note=lambda at: "Counting the rows that both have",
    )
    return made[0], made[1]


def _forecasts(sets: Sets, theirs: Sets) -> ComparedReviews:
    after = sets.distributions(sets.reader.judged)
    before = theirs.distributions(theirs.reader.judged)
    found, shared = _matched(sets, theirs, before, after)
    sets.progress(0.3, "Measuring, with intervals")
    scale = scale_of(sets) or 1.0
    unpaired: tuple[str, ...] = ()
    if shared.paired:
        before, after = _paired(found, shared, before, after)
        paired, rest = compare_forecasts(before, after, scale=scale, seed=SEED)
        estimates, unpaired = (*paired, *rest), tuple(one.label for one in rest)
    else:
        both = (
            list(forecast_estimates(one, scale=scale, seed=SEED).values())
            for one in (before, after)
        )
        estimates = changed_estimates(*both)
    sets.progress(0.9, "Drawing up the reliability of quantiles")
    quantiles = tuple(
        quantile_reliability(
            randomised_pit(one.distribution, one.y, SEED), LEVELS, sample_weight=one.design
        )
        for one in (before, after)
    )
    return ComparedReviews(shared, estimates, unpaired, quantiles=quantiles)


def in_order(scored: ScoredSet, classes: tuple[str, ...]) -> ScoredSet:
    """The same rows with the classes in another order.

    Examples
    --------
    >>> rows = ScoredSet(np.array([[0.9, 0.1]]), np.array([1]), ("no", "yes"), "", "")
    >>> found = in_order(rows, ("yes", "no"))
    >>> found.proba.tolist(), found.y.tolist()
    ([[0.1, 0.9]], [0])
    """
    if scored.classes == classes:
        return scored
    at = [scored.classes.index(name) for name in classes]
    return replace(scored, proba=scored.proba[:, at], y=np.argsort(at)[scored.y], classes=classes)


def _matched(
    sets: Sets, theirs: Sets, before: S, after: S
) -> tuple[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]], SharedRows]:
    """Positions of the matched rows in the other review and in this one, and what is known."""
    sets.progress(0.05, "Looking for rows that both have")
    which, other = sets.reader.judged, theirs.reader.judged
    ours, known = sets.reader.review, theirs.reader.review
    described = set(input_columns(known))
    columns = [name for name in input_columns(ours) if name in described]
    same_file = ours.tables[which].digest == known.tables[other].digest
    found = _same_rows(sets, theirs, columns, before, after, same_file=same_file)
    weights = [
        check_weight(one.weight, one.n_rows)[at]
        for one, at in ((before, found.other), (after, found.rows))
    ]
    alike = weights[0] == weights[1]
    n = int(alike.sum())
    fewest = min(before.n_rows, after.n_rows)
    paired = n if (found.whole and n == fewest) or n >= max(LEAST_ROWS, LEAST_SHARE * fewest) else 0
    shared = SharedRows(
        by=found.by,
        before=before.n_rows,
        after=after.n_rows,
        matched=len(found.rows),
        weighted_alike=n,
        paired=paired,
        equal=found.found,
        columns=tuple(columns[:_COLUMNS_NAMED]),
        n_columns=len(columns),
        alike=_alike(before, after) if found.by == "none" else (),
    )
    return (found.other[alike], found.rows[alike]), shared


def _alike(before: ScoredSet | RegressionSet, after: ScoredSet | RegressionSet) -> tuple[str, ...]:
    """What two sets say in the same order."""
    stated = [
        one.proba if isinstance(one, ScoredSet) else one.distribution.mean()
        for one in (before, after)
    ]
    found = []
    if np.array_equal(before.y, after.y) and is_telling(after.y):
        found.append("outcomes")
    then, now = stated
    if then.shape == now.shape and np.allclose(then, now, rtol=1e-6, atol=1e-9):
        found.append("predictions")
    return tuple(found)


def _same_rows(
    sets: Sets, theirs: Sets, columns: list[str], before: S, after: S, *, same_file: bool
) -> MatchedRows:
    """The rows of both; tables are read only where their file does not settle it."""
    which, other = sets.reader.judged, theirs.reader.judged
    settled = same_file and np.array_equal(before.y, after.y)
    read = not settled and bool(columns)
    names = tuple(columns)
    return matched(
        SetRows(which, sets.frame(which, names) if read else None, after.y),
        SetRows(other, theirs.frame(other, names) if read else None, before.y),
        same_file=same_file,
    )


def _paired(
    found: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]],
    shared: SharedRows,
    before: S,
    after: S,
) -> tuple[S, S]:
    """Both sets' matched rows, in one order."""
    if shared.whole:
        return before, after
    return before.only(found[0]), after.only(found[1])
